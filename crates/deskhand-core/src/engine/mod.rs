//! The engine: the one way in which a call reaches the desktop.
//!
//! Everything that must hold for every call is here: arguments, session, the place in the queue, deadline and
//! cancellation, and that a panicking handler costs one call. (Consent and recording will stand here too.)

mod context;
mod restore;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

pub use context::Context;
pub(crate) use restore::Restored;

use crate::activity::Activity;
use crate::call::{Call, Outcome, SessionId};
use crate::desktop::{Desktop, Stop};
use crate::driver::{Driver, Profile, ToolListing};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::queue::DesktopQueue;
use crate::session::{Session, Sessions};
use crate::settings::{GlobalSettings, Settings};
use crate::tools::{self, Prepared};

/// How long a call that was asked to stop may take to say how far it got. An input operation stops within one key.
pub const GRACE: Duration = Duration::from_secs(2);
/// Calls of one session that may be under way. Far more than any agent uses; a bound against a runaway client.
pub const MAX_CALLS_PER_SESSION: usize = 1024;

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
    pub(crate) settings: GlobalSettings,
    pub(crate) activity: Arc<Activity>,
}

impl Engine {
    /// An engine on `desktop`. Does no I/O.
    pub fn new(desktop: Desktop, host: Host) -> Self {
        let settings = GlobalSettings::new(host.settings_file.clone());
        let shared = Shared {
            desktop,
            host,
            queue: DesktopQueue::default(),
            sessions: Sessions::default(),
            settings,
            activity: Arc::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Runs one call. Its place in the queue is taken before this function returns; the rest happens as the future is
    /// polled. Dropping the future cancels the call.
    pub fn invoke(&self, call: Call) -> BoxFuture<'static, Outcome> {
        match self.admit(call) {
            Ok(admitted) => admitted.run().boxed(),
            Err(error) => std::future::ready(Err(error)).boxed(),
        }
    }

    fn admit(&self, call: Call) -> Result<Admitted> {
        let tool = tools::find(&call.tool).ok_or_else(|| {
            Error::new(Code::UnknownTool, format!("there is no tool `{}`", printable(&call.tool)))
        })?;
        let mut arguments = call.arguments;
        arguments.retain(|key, _| !key.starts_with('_'));
        let prepared = tool.prepare(arguments)?;
        let session = self.shared.sessions.get(call.session.as_ref())?;
        if session.calls.len() >= MAX_CALLS_PER_SESSION {
            let message =
                format!("{MAX_CALLS_PER_SESSION} calls are under way, the limit `calls`; await some first");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        let settings = Settings::effective(&[&self.shared.settings.overrides(), &session.overrides()]);
        let ticket = tool.spec.queue.map(|kind| self.shared.queue.ticket(&session.lane, kind));
        let timeout = prepared.timeout.unwrap_or_else(|| settings.call_timeout());
        let stop = Stop::new();
        let context = Context::new(
            Arc::clone(&self.shared),
            Arc::clone(&session),
            settings,
            Instant::now() + timeout,
            stop.clone(),
            ticket,
        );
        Ok(Admitted { tool: tool.spec.name, prepared, context, session, cancel: call.cancel, timeout, stop })
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
        async move { self.shared.sessions.end(&session).await }.boxed()
    }
}

/// Why a call was asked to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Deadline = 1,
    Caller,
    SessionEnd,
}

/// A call that has its place in the queue.
struct Admitted {
    tool: &'static str,
    prepared: Prepared,
    context: Context,
    session: Arc<Session>,
    cancel: tokio_util::sync::CancellationToken,
    timeout: Duration,
    stop: Stop,
}

impl Admitted {
    async fn run(self) -> Outcome {
        let Self { tool, prepared, context, session, cancel, timeout, stop } = self;
        let deadline = context.deadline();
        // A caller that goes away while the call runs must not cut it in the middle: it is asked to stop.
        let _abandoned = stop.clone().drop_guard();
        let mut handler = tokio::spawn(session.calls.track_future((prepared.run)(context)));
        let asked = AtomicU8::new(0);
        let ask = |reason: Asked| {
            asked.store(reason as u8, Ordering::Relaxed);
            stop.cancel();
        };
        tokio::select! {
            biased;
            done = &mut handler => return settle(tool, done),
            () = cancel.cancelled() => ask(Asked::Caller),
            () = session.ended.cancelled() => ask(Asked::SessionEnd),
            () = tokio::time::sleep_until(deadline) => ask(Asked::Deadline),
        }
        let outcome = match tokio::time::timeout(GRACE, handler).await {
            Ok(done) => settle(tool, done),
            Err(_) => {
                tracing::error!(tool, "a call did not stop within its grace time");
                let message =
                    format!("{tool} did not stop in time; whether its input was delivered is uncertain");
                Err(Error::new(Code::Cancelled, message)
                    .with_details(serde_json::json!({"delivery": "uncertain"})))
            }
        };
        let by_deadline = asked.load(Ordering::Relaxed) == Asked::Deadline as u8;
        outcome.map_err(|error| match error.code {
            Code::Cancelled if by_deadline => {
                let message = format!("no answer within {} ms: {}", timeout.as_millis(), error.message);
                Error { code: Code::Timeout, message, details: error.details }
            }
            _ => error,
        })
    }
}

fn settle(tool: &'static str, done: std::result::Result<Outcome, tokio::task::JoinError>) -> Outcome {
    done.unwrap_or_else(|error| {
        tracing::error!(tool, panicked = error.is_panic(), "a tool failed");
        Err(Error::new(Code::InternalError, format!("{tool} failed inside the driver; other calls go on")))
    })
}

/// A caller's own word, fit to stand in a message.
fn printable(word: &str) -> String {
    word.chars().filter(|c| !c.is_control()).take(64).collect()
}
