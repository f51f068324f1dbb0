//! The engine: the one way in which a call reaches the desktop.
//!
//! Everything that must hold for every call is here: arguments, consent, session, the place in the queue, deadline and
//! cancellation, recording, and that a panicking handler costs one call.

mod attended;
mod context;
mod input;
mod invoke;
mod leased;
mod restore;

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use context::Context;
pub(crate) use context::{see, see_holding};
pub use input::UNSTOPPABLE_INPUT;
pub use invoke::{GRACE, UNSTOPPABLE};
pub use leased::Leased;
pub(crate) use restore::Restored;

use crate::activity::Activity;
use crate::activity_log::{ActivityLog, ActivityLogState, Noted};
use crate::agent_cursor::Cursors;
use crate::call::{Call, Outcome, SessionId};
use crate::consent::gate::Gate;
use crate::consent::{Leave, Report};
use crate::desktop::{Desktop, Stop};
use crate::driver::{Driver, Profile, ToolListing};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::limits::Limits;
use crate::preview::{Preview, Viewer};
use crate::queue::{DesktopQueue, StepKind};
use crate::recording::trajectory::Reason;
use crate::recording::{Afterlooks, Recordings, Turn};
use crate::session::{IDLE_END, Lease, Session, SessionInfo, Sessions};
use crate::settings::{GlobalSettings, Settings};
use crate::tools::{self, Surface};
use invoke::Admitted;

/// Runs tools on a desktop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
}

/// What all calls of an engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) desktop: Desktop,
    pub(crate) host: Host,
    pub(crate) queue: DesktopQueue,
    pub(crate) sessions: Sessions,
    pub(crate) cursors: Arc<Cursors>,
    pub(crate) preview: Arc<Preview>,
    pub(crate) settings: GlobalSettings,
    pub(crate) activity: Arc<Activity>,
    pub(crate) gate: Arc<Gate>,
    /// The operator's.
    pub(crate) recordings: Recordings,
    /// Pictures from after calls, of all recordings.
    pub(crate) afterlooks: Afterlooks,
    /// Cancelled when the engine has failed.
    pub(crate) failed: CancellationToken,
    /// Cancelled when the desktop is gone.
    pub(crate) desktop_lost: CancellationToken,
}

impl Shared {
    /// The engine is not to be trusted any more: no call is taken from now on, those under way end, no handle is valid.
    fn fail(&self, why: &str) {
        tracing::error!(why, "deskhand has failed and takes no more calls");
        self.failed.cancel();
        self.sessions.clear();
    }

    /// The desktop for one call of `session`, with who looks on.
    fn desktop_of(
        &self,
        session: &Session,
        settings: &Settings,
        leave: &Arc<Leave>,
        (surface, turn): (Surface, Option<&Arc<Turn>>),
    ) -> Desktop {
        let is_shown = surface == Surface::Control && settings.agent_cursor;
        let cursor = is_shown.then(|| self.cursors.of(session));
        attended::attended(&self.desktop, cursor, turn.cloned(), leave)
    }
}

impl Engine {
    /// An engine on `desktop`. Does no I/O.
    pub fn new(desktop: Desktop, host: Host) -> Self {
        let settings = GlobalSettings::new(host.settings_file.clone());
        let cursors = Arc::new(Cursors::new(Arc::clone(&desktop.overlay)));
        let idle = host.session_idle.unwrap_or(IDLE_END);
        let preview = Arc::new(Preview::new(Arc::clone(&desktop.overlay), host.preview));
        let sessions = Sessions::new(host.limits, idle, Arc::clone(&cursors));
        let consent = Arc::clone(&host.consent);
        let gate = Gate::new(consent, Arc::clone(&desktop.accessibility), host.background.clone());
        let shared = Arc::new_cyclic(|shared| Shared {
            desktop: input::watched(desktop, shared),
            host,
            queue: DesktopQueue::default(),
            sessions,
            cursors,
            preview,
            settings,
            activity: Arc::default(),
            gate: Arc::new(gate),
            recordings: Recordings::default(),
            afterlooks: Afterlooks::default(),
            failed: CancellationToken::new(),
            desktop_lost: CancellationToken::new(),
        });
        Self { shared }
    }

    /// Begins the session called `id`, or finds it; `label` is for people. With `lease` it lives until
    /// [`Driver::end_session`], and only calls with the lease that comes back belong to it. Without, it ends after an idle
    /// time, and any call that names it belongs to it.
    ///
    /// # Errors
    /// `session_ended`, `session_in_use` if it has a lease already, `limit_exceeded`.
    pub fn open_session(&self, id: &SessionId, lease: bool, label: Option<&str>) -> Result<Option<Lease>> {
        self.shared.sessions.open(id, lease, label)
    }

    /// The named sessions, in the order of their ids.
    pub fn sessions(&self) -> Vec<SessionInfo> {
        self.shared.sessions.list()
    }

    /// Ends a session, as [`Driver::end_session`] does. Whether there was one.
    pub async fn close_session(&self, id: &SessionId) -> bool {
        self.shared.sessions.end(id).await
    }

    /// Ends all sessions, each as [`Driver::end_session`] does, side by side, and the operator's recordings with them.
    pub async fn end_sessions(&self) {
        tokio::join!(self.shared.sessions.end_all(), self.shared.recordings.stop(Reason::DriverEnd));
    }

    /// How many recordings of the operator's run; tells when that changes.
    pub fn recordings(&self) -> watch::Receiver<usize> {
        self.shared.recordings.running()
    }

    /// What can be said about the activity log, if there is one.
    pub fn activity_log(&self) -> Option<ActivityLogState> {
        self.shared.host.activity_log.as_ref().map(ActivityLog::state)
    }

    /// How many named sessions there are, those included that are being cleaned up; tells when that changes.
    pub fn named_sessions(&self) -> watch::Receiver<usize> {
        self.shared.sessions.named()
    }

    /// What the person at the machine allows at this moment.
    pub async fn consent(&self) -> Report {
        self.shared.gate.report().await
    }

    /// What it and its owner allow clients.
    pub fn limits(&self) -> &Limits {
        &self.shared.host.limits
    }

    /// How many steps wait for their turn on the desktop.
    pub fn waiting(&self) -> usize {
        self.shared.queue.waiting()
    }

    /// Says that the desktop is gone: calls that run end with `desktop_lost`.
    pub fn lose_desktop(&self) {
        self.shared.desktop_lost.cancel();
    }

    /// Cancelled when the engine has failed: an operation of its own could not be stopped. It refuses all calls then
    /// (`process_failed`), and the process should end with a failure.
    pub fn failed(&self) -> CancellationToken {
        self.shared.failed.clone()
    }

    /// Runs one call. Its place in the queue is taken before this function returns; the rest happens as the future is
    /// polled. Dropping the future cancels the call. Within a Tokio runtime.
    pub fn invoke(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.begin(call, None)
    }

    /// The same for a call that is part of another one, of that one's session.
    pub(crate) fn invoke_within(&self, session: &Arc<Session>, call: Call) -> BoxFuture<'static, Outcome> {
        self.begin(call, Some(Arc::clone(session)))
    }

    fn begin(&self, call: Call, within: Option<Arc<Session>>) -> BoxFuture<'static, Outcome> {
        let noted = self.note(&call, within.as_deref());
        match self.admit(call, within) {
            Ok(admitted) => Admitted { noted, ..admitted }.run().boxed(),
            Err(error) => {
                if let Some(noted) = noted {
                    noted.refuse(&error);
                }
                std::future::ready(Err(error)).boxed()
            }
        }
    }

    /// The call for the activity log, if there is one.
    fn note(&self, call: &Call, within: Option<&Session>) -> Option<Noted> {
        let log = self.shared.host.activity_log.as_ref()?;
        let named = match within {
            Some(_) => None,
            None => call.session.as_ref().and_then(|id| self.shared.sessions.get(id)),
        };
        Some(Noted::new(log, call, within.or(named.as_deref())))
    }

    fn admit(&self, call: Call, within: Option<Arc<Session>>) -> Result<Admitted> {
        if self.shared.failed.is_cancelled() {
            let message = "deskhand has failed and ends; reconnect, and check what the last input did";
            return Err(Error::new(Code::ProcessFailed, message));
        }
        let tool = tools::find(&call.tool).ok_or_else(|| {
            Error::new(Code::UnknownTool, format!("there is no tool `{}`", printable(&call.tool)))
        })?;
        let mut arguments = call.arguments;
        arguments.retain(|key, _| !key.starts_with('_'));
        let names = arguments.keys().cloned().collect();
        // The tool takes them; of a call that acts a copy is kept for whoever records it.
        let recorded = (tool.spec.queue == Some(StepKind::Act)).then(|| arguments.clone());
        let prepared = tool.prepare(arguments)?;
        let leave = Arc::new(Leave::new(&self.shared.gate, &tool.spec));
        let asked = invoke::ask(&leave)?;
        let session = match within {
            Some(session) => session,
            None => self.shared.sessions.of_call(call.session.as_ref(), call.lease.as_ref())?,
        };
        let (global, own) = (self.shared.settings.overrides(), session.overrides());
        let process = self.shared.preview.overrides();
        let settings = Settings::effective(&[&self.shared.host.defaults, &global, &own, &process]);
        let turn =
            recorded.and_then(|arguments| self.turn(tool.spec.name, arguments, &session, settings.preview));
        let entry = session.begin_call(tool.spec.name, tool.spec.queue, names)?;
        let is_set = global.call_timeout_ms.or(own.call_timeout_ms).is_some();
        let takes = if is_set { Duration::ZERO } else { prepared.takes };
        let desktop = self.shared.desktop_of(&session, &settings, &leave, (tool.spec.surface, turn.as_ref()));
        let ticket = tool.spec.queue.map(|kind| self.shared.queue.ticket(&session.lane, kind));
        let timeout = prepared.timeout.unwrap_or_else(|| settings.call_timeout() + takes);
        let stop = Stop::new();
        let context = Context::new(
            (Arc::clone(&self.shared), desktop),
            (Arc::clone(&session), entry.id(), Arc::clone(&leave)),
            settings,
            Instant::now() + timeout,
            stop.clone(),
            ticket,
            call.progress,
        )
        .recorded(turn);
        let shared = Arc::clone(&self.shared);
        let (tool, cancel) = (tool.spec.name, call.cancel);
        let noted = None;
        Ok(Admitted {
            shared,
            tool,
            prepared,
            context,
            session,
            cancel,
            timeout,
            stop,
            entry,
            noted,
            asked,
            leave,
        })
    }
}

impl Engine {
    /// A call of `session` as it is recorded, previewed or logged, if it is.
    fn turn(
        &self,
        tool: &'static str,
        arguments: Map<String, Value>,
        session: &Session,
        preview: bool,
    ) -> Option<Arc<Turn>> {
        let mut recordings = session.recordings.join();
        recordings.extend(self.shared.recordings.join());
        let viewer = preview.then(|| Viewer::new(&self.shared, self.shared.cursors.of(session), tool));
        let is_noted = viewer.is_some() || !recordings.is_empty() || self.shared.host.activity_log.is_some();
        is_noted.then(|| Arc::new(Turn::new(tool, arguments, session.title(), (recordings, viewer))))
    }
}

impl Driver for Engine {
    fn tools(&self, profile: Profile) -> BoxFuture<'_, Result<Vec<ToolListing>>> {
        std::future::ready(Ok(tools::listing(profile))).boxed()
    }

    fn submit(&self, call: Call) -> BoxFuture<'static, Outcome> {
        self.invoke(call)
    }

    fn leave(&self, session: &SessionId) {
        self.shared.sessions.leave(session);
    }

    fn end_session(&self, session: SessionId) -> BoxFuture<'_, ()> {
        async move {
            self.shared.sessions.end(&session).await;
        }
        .boxed()
    }
}

/// A caller's own word, fit to stand in a message.
fn printable(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).take(64).collect()
}
