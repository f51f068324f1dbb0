//! `get_session`, `list_sessions` and `end_session`. A session sees and ends itself alone; a caller without a session is the
//! operator, who sees and ends them all.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool};
use crate::call::SessionId;
use crate::engine::{Context, GRACE};
use crate::error::{Code, Error, Result};
use crate::limits::Limits;
use crate::session::{PastCall, Session, SessionInfo};

/// Names a session.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Which {
    /// Id of the session; only the operator (a caller without a session) can name another than its own.
    session: Option<String>,
}

/// The error for an id that is not the caller's own, whether there is such a session or not.
fn unknown() -> Error {
    Error::new(Code::UnknownHandle, "there is no such session; list_sessions shows those that you can name")
}

impl Which {
    /// The id that is meant, if the caller may name it; `None`: the caller's own, and it has none.
    fn id(&self, context: &Context) -> Result<Option<SessionId>> {
        let own = context.session();
        match &self.session {
            None if own.anonymous => Ok(None),
            None => Ok(Some(SessionId(Arc::clone(&own.lane)))),
            Some(id) if own.anonymous || **id == *own.lane => Ok(Some(SessionId::new(id))),
            Some(_) => Err(unknown()),
        }
    }
}

/// A session and what it did.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    #[serde(flatten)]
    info: SessionInfo,
    last_calls: Vec<PastCall>,
    limits: Limits,
}

impl Report {
    /// Of the call that asks, nothing is said.
    fn of(session: &Session, asking: Option<u64>) -> Self {
        let mut info = session.info();
        info.calls.retain(|call| Some(call.id) != asking);
        Self { info, last_calls: session.last_calls(), limits: *session.limits() }
    }
}

impl Reply for Report {
    fn text(&self) -> String {
        let mut text = line(&self.info);
        for call in &self.info.calls {
            let _ = write!(text, "\nrunning: #{} {} for {} ms", call.id, call.tool, call.running_ms);
        }
        for call in &self.last_calls {
            let _ = write!(text, "\n{}", past_line(call));
        }
        text
    }
}

fn line(info: &SessionInfo) -> String {
    let mut text =
        info.session.as_ref().map_or_else(|| "no session".to_owned(), |id| format!("session {id}"));
    if let Some(label) = &info.label {
        let _ = write!(text, " ({label})");
    }
    let _ = write!(
        text,
        ": {}, {} s old, {} snapshots, {} running",
        if info.leased { "leased" } else { "no lease" },
        info.age_ms / 1000,
        info.snapshots,
        info.calls.len()
    );
    if !info.overrides.is_empty() {
        let _ = write!(text, ", overrides {}", info.overrides.join(", "));
    }
    text
}

fn past_line(call: &PastCall) -> String {
    let mut text = format!("#{} {}({})", call.id, call.tool, call.arguments.join(", "));
    match (&call.code, &call.effect) {
        (Some(code), _) => {
            let _ = write!(text, ": {code}");
        }
        (None, Some(effect)) => {
            let _ = write!(text, ": {effect}");
        }
        (None, None) => text.push_str(": done"),
    }
    if let Some(delivery) = &call.delivery {
        let _ = write!(text, ", {delivery}");
    }
    if let (Some(done), Some(total)) = (call.done, call.total) {
        let _ = write!(text, " ({done} of {total})");
    }
    let _ = write!(text, ", {} ms", call.duration_ms);
    text
}

pub(super) struct GetSession;

impl Tool for GetSession {
    const SPEC: Spec = Spec {
        name: "get_session",
        description: "This session: settings that it overrides, snapshots, calls under way, limits, and what became of its last \
                      calls, also of cancelled ones: how far their input got.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Which;
    type Reply = Report;

    async fn run(arguments: Which, context: Context) -> Result<Report> {
        match arguments.id(&context)? {
            Some(id) if *id.0 != *context.session().lane => {
                let session = context.sessions().get(&id).ok_or_else(unknown)?;
                Ok(Report::of(&session, None))
            }
            _ => Ok(Report::of(context.session(), Some(context.id()))),
        }
    }
}

/// Sessions.
#[derive(Clone, Debug, Serialize)]
pub(super) struct List {
    sessions: Vec<SessionInfo>,
}

impl Reply for List {
    fn text(&self) -> String {
        if self.sessions.is_empty() {
            return "no sessions".to_owned();
        }
        self.sessions.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(super) struct ListSessions;

impl Tool for ListSessions {
    const SPEC: Spec = Spec {
        name: "list_sessions",
        description: "One's own session; for the operator (a caller without a session) all of them.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = List;

    async fn run(_: Nothing, context: Context) -> Result<List> {
        let session = context.session();
        let sessions = if session.anonymous { context.sessions().list() } else { vec![session.info()] };
        Ok(List { sessions })
    }
}

/// What ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ended {
    session: String,
    /// Whether its clean-up is complete.
    cleaned_up: bool,
}

impl Reply for Ended {
    fn text(&self) -> String {
        let rest = if self.cleaned_up { "" } else { "; its clean-up goes on" };
        format!("session {} has ended{rest}", self.session)
    }
}

/// How long the answer waits for the clean-up: less than [`GRACE`], within which the caller's own call must answer if it is
/// its own session that ends.
const CLEAN_UP_PATIENCE: Duration = GRACE.saturating_sub(Duration::from_millis(200));

pub(super) struct EndSession;

impl Tool for EndSession {
    const SPEC: Spec = Spec {
        name: "end_session",
        description: "End this session: its calls are cancelled, its settings and snapshots dropped, and its id is refused from then \
                      on. The operator (a caller without a session) can end any.",
        surface: Surface::None,
        queue: None,
        destructive: true,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Which;
    type Reply = Ended;

    async fn run(arguments: Which, context: Context) -> Result<Ended> {
        let Some(id) = arguments.id(&context)? else {
            return Err(Error::argument("session", "missing; you have no session, so name the one to end"));
        };
        // Its own call must not wait for itself.
        context.step_out();
        let end = context.sessions().end(&id);
        let cleaned_up = match tokio::time::timeout(CLEAN_UP_PATIENCE, end).await {
            Ok(true) => true,
            Ok(false) => return Err(unknown()),
            Err(_) => false,
        };
        Ok(Ended { session: id.to_string(), cleaned_up })
    }
}
