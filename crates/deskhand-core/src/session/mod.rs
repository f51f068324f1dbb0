//! Sessions: what one agent owns, its calls, and its end.
//!
//! A session with a *lease* lives as long as who holds the lease, a connection or this process's own client; its id is
//! accepted together with the [`Lease`] alone. One without lives until it has been idle for a time. A call that names no
//! session has one of its own, which ends with it.

mod calls;
mod owned;
mod table;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(crate) use calls::Entry;
pub use calls::{CallInFlight, MAX_PAST_CALLS, PastCall};
pub use owned::{MAX_PICTURES, PictureOf, Shown};
pub use table::{IDLE_END, MAX_ENDED, Sessions};

use crate::call::SessionId;
use crate::error::Result;
use crate::limits::Limits;
use crate::queue::StepKind;
use crate::recording::Recordings;
use calls::{CallLog, millis};

/// The right to a leased session. Whoever serves the connection that the session lives by keeps it and puts it into that
/// connection's calls; it cannot be made from an id.
#[derive(Clone, Debug)]
pub struct Lease(Arc<()>);

impl Lease {
    fn new() -> Self {
        Self(Arc::new(()))
    }

    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// One agent's state.
#[derive(Debug)]
pub struct Session {
    /// Its line in the desktop's queue.
    pub lane: Arc<str>,
    /// Cancelled when its client leaves: calls that have done nothing yet are not begun any more.
    pub leaving: CancellationToken,
    /// Cancelled when the session ends.
    pub ended: CancellationToken,
    /// Its calls that run.
    pub calls: TaskTracker,
    /// Whether it is that of one call that named none, which reads and writes the global settings.
    pub anonymous: bool,
    /// What it records.
    pub(crate) recordings: Recordings,
    /// Cancelled when its end is complete.
    cleaned: CancellationToken,
    started: Instant,
    limits: Limits,
    log: Arc<CallLog>,
    about: Mutex<About>,
    owned: Mutex<owned::Owned>,
}

#[derive(Debug, Default)]
struct About {
    label: Option<String>,
    lease: Option<Lease>,
}

/// What can be said about a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its id; `None`: it is that of one call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// For a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it lives by a connection.
    pub leased: bool,
    /// How long it has lived.
    pub age_ms: u64,
    /// How long ago a call came or was answered.
    pub idle_ms: u64,
    /// Names of the settings that it overrides.
    pub overrides: Vec<&'static str>,
    /// Snapshots that it keeps.
    pub snapshots: usize,
    /// Calls under way.
    pub calls: Vec<CallInFlight>,
}

impl Session {
    fn new(id: &SessionId, limits: Limits) -> Self {
        Self::with(Arc::clone(&id.0), CallLog::new(), false, limits)
    }

    fn with(lane: Arc<str>, log: Arc<CallLog>, anonymous: bool, limits: Limits) -> Self {
        Self {
            lane,
            leaving: CancellationToken::new(),
            ended: CancellationToken::new(),
            calls: TaskTracker::new(),
            anonymous,
            recordings: Recordings::default(),
            cleaned: CancellationToken::new(),
            started: Instant::now(),
            limits,
            log,
            about: Mutex::default(),
            owned: Mutex::default(),
        }
    }

    /// Notes a call that has come, whose arguments have these names.
    pub(crate) fn begin_call(
        &self,
        tool: &'static str,
        kind: Option<StepKind>,
        arguments: Vec<String>,
    ) -> Result<Entry> {
        self.log.begin(tool, kind, arguments, self.limits.calls)
    }

    /// What can be said about it.
    pub fn info(&self) -> SessionInfo {
        let about = self.about.lock().unwrap_or_else(PoisonError::into_inner);
        SessionInfo {
            session: (!self.anonymous).then(|| self.lane.to_string()),
            label: about.label.clone(),
            leased: about.lease.is_some(),
            age_ms: millis(self.started.elapsed()),
            idle_ms: millis(self.log.last_active().elapsed()),
            overrides: self.overrides().names(),
            snapshots: self.snapshots_kept(),
            calls: self.log.in_flight(),
        }
    }

    /// What people call it: its label, or else its id.
    pub fn title(&self) -> Option<String> {
        self.label().or_else(|| (!self.anonymous).then(|| self.lane.to_string()))
    }

    /// What its client called it.
    pub(crate) fn label(&self) -> Option<String> {
        self.with_about(|about| about.label.clone())
    }

    /// What became of its last calls, the newest last.
    pub fn last_calls(&self) -> Vec<PastCall> {
        self.log.past()
    }

    /// Its limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    fn with_about<T>(&self, look: impl FnOnce(&mut About) -> T) -> T {
        look(&mut self.about.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// When it will have been idle for `time`, at the earliest: a call that is under way may end now.
    pub(crate) fn idle_end(&self, time: Duration) -> Instant {
        self.log.idle_since().unwrap_or_else(Instant::now) + time
    }

    fn leased(&self) -> bool {
        self.with_about(|about| about.lease.is_some())
    }
}
