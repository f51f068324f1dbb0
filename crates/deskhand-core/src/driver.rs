//! The seam between a transport and whatever runs the calls: an engine in this process, or a client of a service.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::call::{Call, Outcome, SessionId};
use crate::error::Error;

/// Which tools a client is shown. Tools that are not shown can still be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The small set that serves nearly every task.
    #[default]
    Default,
    /// All tools, aliases included.
    Full,
}

/// A tool as a client is shown it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolListing {
    /// Its name.
    pub name: String,
    /// For a model: what it does and when to use it.
    pub description: String,
    /// JSON schema of its arguments: an object.
    pub input_schema: Arc<Map<String, Value>>,
    /// Only reads.
    pub read_only: bool,
    /// May change or lose the user's data.
    pub destructive: bool,
    /// Repeating it with the same arguments changes nothing more.
    pub idempotent: bool,
}

/// Runs calls. A transport cannot tell which kind it has.
pub trait Driver: Send + Sync + 'static {
    /// The tools of `profile`, in their documented order.
    ///
    /// # Errors
    /// `service_unreachable` where the list comes from a service.
    fn tools(&self, profile: Profile) -> BoxFuture<'_, Result<Vec<ToolListing>, Error>>;

    /// Submits a call. The call's place in the desktop's queue is taken *during this function*, before it returns:
    /// calls that are submitted one after another act in that order. Nothing runs until the future is polled; dropping it
    /// cancels the call.
    fn submit(&self, call: Call) -> BoxFuture<'static, Outcome>;

    /// Says that the session's client is leaving: calls that still wait for their first turn on the desktop are not begun
    /// and answer `session_ended`; those that are at it go on, until they end or [`Driver::end_session`].
    fn leave(&self, session: &SessionId);

    /// Ends a session: cancels and awaits its calls and drops what it owns. Bounded.
    fn end_session(&self, session: SessionId) -> BoxFuture<'_, ()>;
}
