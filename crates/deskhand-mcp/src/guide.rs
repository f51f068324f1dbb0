//! A text that explains the tools to a model, offered as a prompt and as a resource: some clients show the one, some the
//! other.

use rmcp::model::{
    ErrorData, GetPromptResult, Prompt, PromptMessage, ReadResourceResult, Resource, ResourceContents, Role,
};

/// What all guides are written in.
const MIME: &str = "text/markdown";

/// A guide. What it says is no business of this crate.
#[derive(Clone, Debug)]
pub struct Guide {
    /// Name of the prompt and of the resource.
    pub name: String,
    /// The resource's address.
    pub uri: String,
    /// Title that people see.
    pub title: String,
    /// One sentence: what it is good for.
    pub description: String,
    /// The text, in Markdown.
    pub text: String,
}

impl Guide {
    pub(crate) fn prompt(&self) -> Prompt {
        Prompt::new(self.name.clone(), Some(self.description.clone()), None).with_title(self.title.clone())
    }

    pub(crate) fn as_prompt(&self, name: &str) -> Result<GetPromptResult, ErrorData> {
        if name != self.name {
            let reason = format!("there is no prompt {name:?}; there is {:?}", self.name);
            return Err(ErrorData::invalid_params(reason, None));
        }
        let message = PromptMessage::new_text(Role::User, self.text.clone());
        Ok(GetPromptResult::new(vec![message]).with_description(self.description.clone()))
    }

    pub(crate) fn resource(&self) -> Resource {
        Resource::new(self.uri.clone(), self.name.clone())
            .with_title(self.title.clone())
            .with_description(self.description.clone())
            .with_mime_type(MIME)
            .with_size(self.text.len() as u64)
    }

    pub(crate) fn as_resource(&self, uri: &str) -> Result<ReadResourceResult, ErrorData> {
        if uri != self.uri {
            let reason = format!("there is no resource {uri:?}; there is {:?}", self.uri);
            return Err(ErrorData::resource_not_found(reason, None));
        }
        let contents = ResourceContents::text(self.text.clone(), self.uri.clone()).with_mime_type(MIME);
        Ok(ReadResourceResult::new(vec![contents]))
    }
}
