//! The wire between a client and the service, for whoever writes a client in another language.
//!
//! A Unix stream socket carries one JSON object a line, UTF-8, both ways, at most [`MAX_LINE_BYTES`] a line. A request has
//! an `id` that the client chooses, a `method` ([`METHODS`] lists them all), the method's parameters beside them, and
//! a `session_id` if it belongs to a session:
//!
//! ```json
//! {"id": 1, "method": "call", "session_id": "mcp-12-17a", "tool": "list_windows", "arguments": {}}
//! ```
//!
//! The answer carries the same `id` and either `ok` or `error`:
//!
//! ```json
//! {"id": 1, "ok": {"text": "no windows", "structured": {"windows": []}}}
//! ```
//!
//! **Order.** Calls take their place on the desktop in the order of their lines. Answers come in any order. A client need not
//! read an answer before it sends the next request.
//!
//! **Not promised.** Fields may be added to any object: ignore what you do not know. A client that does not read loses its
//! connection once more waits for it than `limits` of [`Hello`]'s answer says. A line that is no request is answered with an error whose `id` is
//! null, if none can be told; a line that is too long ends the connection.
//!
//! **Sessions.** A request without `session_id` has an anonymous session of its own. `session_id` is left out
//! then, not null. A connection that said `hello` with `lease` *is* the life of its session: when it closes, for whatever
//! reason, the session ends. Other connections may close after each request; what they did in a named session stays for
//! its idle time.

mod document;
mod message;
mod methods;

pub use crate::holder::Lifetime;
pub use document::markdown;
pub use message::{Failure, Reply, Request, RequestError};
pub(crate) use message::{answer_line, error_line, progress_line, request_line};
pub use methods::{
    ActivityLogReport, Call, CallParameters, Called, Cancel, CancelParameters, Consent, ConsentReport, Empty,
    Hello, HelloParameters, Leave, Limits, List, ListParameters, Listed, METHODS, Method, Picture, Profile,
    Progressed, SessionEnd, SessionEndParameters, SessionEnded, SessionReport, Sessions, SessionsListed,
    Shutdown, Status, StatusReport, Stopping, Tool, Welcome,
};
#[cfg(any(feature = "host-consent", test))]
pub use methods::{HostChallenge, MachineConsentHost};

/// Version of this wire. A service and a client of one build always agree on it.
pub const PROTOCOL: u32 = 1;

/// Longest line that is read, in bytes: a picture or a long text fits, a stream without line ends cannot fill the memory.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;
