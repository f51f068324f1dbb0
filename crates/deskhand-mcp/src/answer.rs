//! Outcomes as MCP spells them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deskhand_core::call::Answer;
use deskhand_core::driver::ToolListing;
use deskhand_core::{Code, Error, Outcome};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A tool as `tools/list` shows it.
pub(crate) fn tool(listing: ToolListing) -> Tool {
    let mut annotations = ToolAnnotations::new().read_only(listing.read_only);
    if !listing.read_only {
        // Both hints mean nothing for a tool that only reads.
        annotations = annotations.destructive(listing.destructive).idempotent(listing.idempotent);
    }
    Tool::new(listing.name, listing.description, listing.input_schema).with_annotations(annotations)
}

/// The result of a call. Only an unknown tool and a lost service are errors of the protocol: a model sees a result, but
/// many clients hide a protocol error from it.
pub(crate) fn result(outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    match outcome {
        Ok(answer) => Ok(success(answer)),
        Err(error) if error.code == Code::UnknownTool => Err(ErrorData::invalid_params(error.message, None)),
        Err(error) if error.code == Code::ServiceUnreachable => Err(protocol_error(&error)),
        Err(error) => Ok(failure(&error)),
    }
}

/// An error that has no place in a result.
pub(crate) fn protocol_error(error: &Error) -> ErrorData {
    let data = json!({ "code": error.code.name(), "recovery": error.code.recovery() });
    ErrorData::internal_error(error.message.clone(), Some(data))
}

fn success(answer: Answer) -> CallToolResult {
    let mut content = Vec::with_capacity(1 + answer.images.len());
    if !answer.text.is_empty() {
        content.push(ContentBlock::text(answer.text));
    }
    content.extend(
        answer.images.into_iter().map(|image| ContentBlock::image(STANDARD.encode(&image.bytes), image.mime)),
    );
    let mut result = CallToolResult::success(content);
    result.is_error = None; // `false` is the default and need not be said
    result.structured_content = match answer.structured {
        Value::Null => None,
        structured => Some(structured),
    };
    result
}

fn failure(error: &Error) -> CallToolResult {
    let mut result = CallToolResult::error(vec![ContentBlock::text(error.message.clone())]);
    result.structured_content = Some(error.structured());
    result
}
