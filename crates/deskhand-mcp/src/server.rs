//! What the SDK asks of a server.

use std::borrow::Cow;
use std::sync::Arc;

use deskhand_core::Driver;
use deskhand_core::driver::Profile;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    Implementation, ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};

use crate::answer;
use crate::call::Submitted;
use crate::flow::Flow;
use crate::guide::Guide;

/// The first published version of the protocol.
const FIRST_VERSION: &str = "2024-10-07";

pub(crate) struct Server {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) profile: Profile,
    pub(crate) version: String,
    pub(crate) instructions: String,
    pub(crate) guide: Guide,
    pub(crate) flow: Arc<Flow>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_prompts().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("deskhand", self.version.clone()))
            .with_instructions(self.instructions.clone())
    }

    /// What the SDK knows, and its forerunner: the TypeScript SDK still offers it, and what it has of tools is the same.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        let first = serde_json::from_value::<ProtocolVersion>(FIRST_VERSION.into()).ok();
        first.into_iter().chain(ProtocolVersion::KNOWN_VERSIONS.iter().cloned()).collect()
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.driver.tools(self.profile).await.map_err(|error| answer::protocol_error(&error))?;
        Ok(ListToolsResult::with_all_items(tools.into_iter().map(answer::tool).collect()))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(submitted) = context.extensions.remove::<Submitted>() else {
            return Err(ErrorData::internal_error("the call was not submitted", None));
        };
        let outcome = submitted.run(&self.flow.abandon).await;
        answer::result(outcome).map(CallToolResponse::from)
    }
    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(vec![self.guide.prompt()]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        self.guide.as_prompt(&request.name).map(GetPromptResponse::from)
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(vec![self.guide.resource()]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.guide.as_resource(&request.uri).map(ReadResourceResponse::from)
    }
}
