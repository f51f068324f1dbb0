//! What a line means. Told apart by hand, because the errors must say what is wrong, and because a call is too large to
//! be tried against every kind of request in turn.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, ClientJsonRpcMessage, ClientRequest, DiscoverRequest, GetPromptRequest,
    InitializeRequest, ListPromptsRequest, ListResourcesRequest, ListToolsRequest, ReadResourceRequest,
    RequestId,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Key of a request's `_meta` by which it opens a session without a handshake (protocol 2026-07-28).
const INLINE_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

/// A call of a tool: what is taken out of the message before it goes on.
#[derive(Debug)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
    /// What the client wants to hear of its progress by: a string or a whole number.
    pub(crate) progress_token: Option<Value>,
}

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: RequestId,
    pub(crate) request: ClientRequest,
    /// Set for `tools/call`.
    pub(crate) call: Option<ToolCall>,
    /// It brings the session's facts with it and needs no handshake.
    pub(crate) inline: bool,
}

impl Request {
    /// Whether it may come before the handshake.
    pub(crate) fn may_open(&self) -> bool {
        self.inline
            || matches!(self.request, ClientRequest::PingRequest(_) | ClientRequest::InitializeRequest(_))
    }

    /// Whether it says something about the server without beginning a session.
    pub(crate) fn is_probe(&self) -> bool {
        matches!(self.request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_))
    }
}

/// One message.
#[derive(Debug)]
pub(crate) enum Message {
    Request(Box<Request>),
    /// `notifications/cancelled` for that request.
    Cancel(RequestId, ClientJsonRpcMessage),
    /// Anything that is not answered.
    Other(ClientJsonRpcMessage),
    /// Not a message; to be answered.
    Invalid(Invalid),
    /// Not a message, and nothing that one could answer.
    Ignored,
}

/// Why a message was refused.
#[derive(Debug)]
pub(crate) struct Invalid {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: Box<ErrorData>,
}

/// A line.
#[derive(Debug)]
pub(crate) enum Parsed {
    One(Box<Message>),
    Batch(Vec<Value>),
}

/// Reads a line.
pub(crate) fn parse(line: &[u8]) -> Parsed {
    match serde_json::from_slice(line) {
        Ok(Value::Array(batch)) => Parsed::Batch(batch),
        Ok(value) => Parsed::One(Box::new(message(value))),
        Err(error) => Parsed::One(Box::new(Message::Invalid(Invalid {
            id: salvage_id(line),
            error: Box::new(ErrorData::parse_error(format!("the line is not JSON: {error}"), None)),
        }))),
    }
}

/// The request's id out of a line that is not JSON, so that the error reaches its caller: a lone surrogate in a text or a
/// `NaN` does not make the rest unreadable. Looks for the key `id` of the outermost object.
fn salvage_id(line: &[u8]) -> Option<RequestId> {
    let (mut depth, mut string_start, mut escaped) = (0_usize, None, false);
    for (at, byte) in line.iter().copied().enumerate() {
        match (string_start, byte) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), b'\\') => escaped = true,
            (Some(start), b'"') => {
                string_start = None;
                let rest = line[at + 1..].trim_ascii_start();
                if depth == 1 && &line[start..at] == b"id" && rest.first() == Some(&b':') {
                    let mut values = serde_json::Deserializer::from_slice(&rest[1..]).into_iter::<Value>();
                    return request_id(&values.next()?.ok()?);
                }
            }
            (Some(_), _) => {}
            (None, b'"') => string_start = Some(at + 1),
            (None, b'{' | b'[') => depth += 1,
            (None, b'}' | b']') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

/// Reads one message.
pub(crate) fn message(value: Value) -> Message {
    let Value::Object(fields) = value else {
        return refuse(None, ErrorData::invalid_request("a message must be a JSON object", None));
    };
    let id = match fields.get("id") {
        None => None,
        Some(id) => match request_id(id) {
            Some(id) => Some(id),
            None => return bad_id(&fields),
        },
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return refuse(id, ErrorData::invalid_request("`jsonrpc` must be \"2.0\"", None));
    }
    let method = match fields.get("method") {
        Some(Value::String(method)) => method.clone(),
        Some(_) => return refuse(id, ErrorData::invalid_request("`method` must be a string", None)),
        None if fields.contains_key("result") || fields.contains_key("error") => {
            return other(Value::Object(fields));
        }
        None => return refuse(id, ErrorData::invalid_request("`method` is missing", None)),
    };
    match id {
        Some(id) => request(id, &method, fields),
        None => notification(&method, fields),
    }
}

fn request_id(id: &Value) -> Option<RequestId> {
    match id {
        Value::String(text) => Some(RequestId::String(text.as_str().into())),
        Value::Number(number) => number.as_i64().map(RequestId::Number),
        _ => None,
    }
}

fn bad_id(fields: &Map<String, Value>) -> Message {
    // The answer to a request of ours that has no usable id concerns nobody.
    if !fields.contains_key("method") && (fields.contains_key("result") || fields.contains_key("error")) {
        return Message::Ignored;
    }
    refuse(None, ErrorData::invalid_request("`id` must be a string or an integer", None))
}

fn refuse(id: Option<RequestId>, error: ErrorData) -> Message {
    Message::Invalid(Invalid { id, error: Box::new(error) })
}

fn request(id: RequestId, method: &str, mut fields: Map<String, Value>) -> Message {
    // `"params": null` is what some encoders make of absent parameters.
    if fields.get("params").is_some_and(Value::is_null) {
        fields.remove("params");
    }
    if fields.get("params").is_some_and(|params| !params.is_object()) {
        return refuse(Some(id), ErrorData::invalid_params("`params` must be an object", None));
    }
    let inline =
        fields.get("params").and_then(|p| p.get("_meta")).is_some_and(|m| m.get(INLINE_VERSION).is_some());
    let mut call = None;
    if method == "tools/call" {
        match take_call(&mut fields) {
            Ok(taken) => call = Some(taken),
            Err(reason) => return refuse(Some(id), ErrorData::invalid_params(reason, None)),
        }
    }
    // The SDK's own reader takes a known method with bad parameters for an unknown method.
    let value = Value::Object(fields);
    let request = match method {
        "initialize" => typed::<InitializeRequest>(value).map(ClientRequest::from),
        "server/discover" => typed::<DiscoverRequest>(value).map(ClientRequest::from),
        "tools/list" => typed::<ListToolsRequest>(value).map(ClientRequest::from),
        "tools/call" => typed::<CallToolRequest>(value).map(ClientRequest::from),
        "prompts/list" => typed::<ListPromptsRequest>(value).map(ClientRequest::from),
        "prompts/get" => typed::<GetPromptRequest>(value).map(ClientRequest::from),
        "resources/list" => typed::<ListResourcesRequest>(value).map(ClientRequest::from),
        "resources/read" => typed::<ReadResourceRequest>(value).map(ClientRequest::from),
        _ => typed::<ClientRequest>(value),
    };
    match request {
        Ok(request) => Message::Request(Box::new(Request { id, request, call, inline })),
        Err(error) => refuse(Some(id), error),
    }
}

fn typed<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value)
        .map_err(|error| ErrorData::invalid_params(format!("`params`: {error}"), None))
}

/// Takes name and arguments out of a `tools/call`.
fn take_call(fields: &mut Map<String, Value>) -> Result<ToolCall, String> {
    let Some(Value::Object(params)) = fields.get_mut("params") else {
        return Err("`params` is missing: tools/call needs `name`".to_owned());
    };
    let name = match params.get("name") {
        Some(Value::String(name)) => name.clone(),
        Some(_) => return Err("`name` must be a string".to_owned()),
        None => return Err("`name` is missing: the name of a tool".to_owned()),
    };
    let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
    let progress_token = token.filter(|token| token.is_string() || token.is_i64() || token.is_u64()).cloned();
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(ToolCall { name, arguments: Map::new(), progress_token }),
        Some(Value::Object(arguments)) => Ok(ToolCall { name, arguments, progress_token }),
        Some(other) => Err(format!("`arguments` of {name} must be an object, not {}", kind(&other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn notification(method: &str, fields: Map<String, Value>) -> Message {
    let cancelled = (method == "notifications/cancelled")
        .then(|| fields.get("params").and_then(|params| params.get("requestId")).and_then(request_id))
        .flatten();
    match (cancelled, other(Value::Object(fields))) {
        (Some(id), Message::Other(message)) => Message::Cancel(id, message),
        (_, message) => message,
    }
}

fn other(value: Value) -> Message {
    match serde_json::from_value(value) {
        Ok(message) => Message::Other(message),
        // Notifications and answers are never answered, not even bad ones.
        Err(_) => Message::Ignored,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_broken_line_is_found_where_it_can_be() {
        let id = |line: &str| salvage_id(line.as_bytes()).map(RequestId::into_json_value);
        assert_eq!(id(r#"{"id":7,"params":{"text":"\ud800"}}"#), Some(7.into()));
        assert_eq!(id(r#"{"params":{"id":1,"x":NaN,"t":"\"{"}, "id" : "a"}"#), Some("a".into()));
        for hopeless in ["", "garbage", "{", r#"{"id""#, r#"{"id":"#, r#"{"id":{}}"#, r#"}{"id":1}"#] {
            assert_eq!(id(hopeless), None, "{hopeless}");
        }
    }
}
