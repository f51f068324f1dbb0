//! A call and its outcome, as they pass between a transport and a [`Driver`](crate::Driver).

use std::sync::Arc;

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error};
use crate::progress::ProgressSink;
use crate::session::Lease;

/// Names one agent's session: unique, no secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(pub Arc<str>);

impl SessionId {
    /// An id from its text.
    pub fn new(id: &str) -> Self {
        Self(id.into())
    }
}

impl std::fmt::Display for SessionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// One request to run a tool.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The tool's name.
    pub tool: String,
    /// Its arguments as the caller gave them.
    pub arguments: Map<String, Value>,
    /// Whose call it is; `None`: the anonymous session.
    pub session: Option<SessionId>,
    /// What shows that the caller may use the session, if that has a lease.
    pub lease: Option<Lease>,
    /// Cancelled when the client cancels the request or leaves.
    pub cancel: CancellationToken,
    /// Hears of the call before its answer, if it takes long.
    pub progress: Option<ProgressSink>,
}

impl Call {
    /// A call of the anonymous session that nobody can cancel.
    pub fn anonymous(tool: &str, arguments: Map<String, Value>) -> Self {
        Self { tool: tool.to_owned(), arguments, ..Self::default() }
    }
}

/// A picture of an answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Image {
    /// `image/png` or `image/jpeg`.
    pub mime: &'static str,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

impl std::fmt::Debug for Image {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Image({}, {} bytes)", self.mime, self.bytes.len())
    }
}

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// For the model: short, first.
    pub text: String,
    /// For programs; does not repeat the text.
    pub structured: Value,
    /// Pictures, if any.
    pub images: Vec<Image>,
}

/// The outcome of a call.
pub type Outcome = Result<Answer, Error>;

/// What may be kept of an outcome for people: nothing that was typed, and nothing of the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gist {
    /// `confirmed`, `unverifiable` or `suspected_noop`, if it acted.
    pub(crate) effect: Option<String>,
    /// Code of the error, if it failed.
    pub(crate) code: Option<String>,
    /// How far the input of a failed call got.
    pub(crate) delivery: Option<String>,
}

impl Gist {
    pub(crate) fn of(outcome: &Outcome) -> Self {
        match outcome {
            Ok(answer) => Self { effect: word(&answer.structured["effect"]), ..Self::default() },
            Err(error) => Self::of_error(error),
        }
    }

    pub(crate) fn of_error(error: &Error) -> Self {
        let delivery = error.details.as_ref().and_then(|details| word(&details["delivery"]));
        Self { effect: None, code: Some(error.code.name().to_owned()), delivery }
    }

    /// That of a call that was given up before it began.
    pub(crate) fn never_begun(acts: bool) -> Self {
        let delivery = acts.then(|| "not_delivered".to_owned());
        Self { effect: None, code: Some(Code::Cancelled.name().to_owned()), delivery }
    }
}

fn word(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}
