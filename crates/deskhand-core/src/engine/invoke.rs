//! The life of one call, from its place in the queue to its outcome.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Context, Shared};
use crate::activity_log::Noted;
use crate::call::Outcome;
use crate::consent::Leave;
use crate::consent::gate::Watch;
use crate::desktop::Stop;
use crate::error::{Code, Error};
use crate::session::{Entry, Session};
use crate::subject::Subject;
use crate::tools::Prepared;

/// How long a call that was asked to stop may take to say how far it got. An input operation stops within one key.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long after it was asked to stop a step that acts may still hold the queue. The longest that a port waits is 30 s, for
/// a desktop and a program on it to start; a longer step is a fault of ours that nothing else mends. Input has a closer
/// bound, [`UNSTOPPABLE_INPUT`](super::UNSTOPPABLE_INPUT).
pub const UNSTOPPABLE: Duration = Duration::from_secs(40);

/// Why a call was asked to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Deadline,
    Caller,
    SessionEnd,
    Failure,
    DesktopLost,
    Revoke,
}

/// What the end of a session waits for, as long as a call runs; a call that ends its own session lets go of it.
#[derive(Clone, Debug)]
pub(super) struct Tracked(Arc<Mutex<Option<TaskTrackerToken>>>);

impl Tracked {
    fn new(session: &Session) -> Self {
        Self(Arc::new(Mutex::new(Some(session.calls.token()))))
    }

    /// Is not waited for any more.
    pub(super) fn step_out(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The question whether a call may run; `None` if that was answered.
pub(super) type Asking = Option<BoxFuture<'static, Result<(), Error>>>;

/// Asks whether a call may run. A source that has the answer is heard before anything else of the call. One that must wait
/// for it is awaited later, with the place in the queue taken: places are in the order of reading.
pub(super) fn ask(leave: &Arc<Leave>) -> Result<Asking, Error> {
    let leave = Arc::clone(leave);
    let mut asked = async move { leave.require().await }.boxed();
    match (&mut asked).now_or_never() {
        Some(answer) => answer.map(|()| None),
        None => Ok(Some(asked)),
    }
}

/// A call that has its place in the queue.
pub(super) struct Admitted {
    pub(super) shared: Arc<Shared>,
    pub(super) tool: &'static str,
    pub(super) prepared: Prepared,
    pub(super) context: Context,
    pub(super) session: Arc<Session>,
    pub(super) cancel: CancellationToken,
    pub(super) timeout: Duration,
    pub(super) stop: Stop,
    pub(super) entry: Entry,
    /// `None`: there is no activity log.
    pub(super) noted: Option<Noted>,
    pub(super) asked: Asking,
    pub(super) leave: Arc<Leave>,
}

impl Admitted {
    /// Runs the call. Dropping the future asks it to stop: it must not be cut in the middle, and its outcome is noted all
    /// the same.
    pub(super) async fn run(self) -> Outcome {
        let tool = self.tool;
        let abandoned = CancellationToken::new();
        let _abandoned_when_dropped = abandoned.clone().drop_guard();
        let outcome = tokio::spawn(self.supervise(abandoned)).await;
        outcome.unwrap_or_else(|error| Err(broken(tool, &error)))
    }

    async fn supervise(mut self, abandoned: CancellationToken) -> Outcome {
        let (turn, noted) = (self.context.turn().cloned(), self.noted.take());
        if turn.is_none() && noted.is_none() {
            return self.handle(abandoned).await;
        }
        let (shared, leave) = (Arc::clone(&self.shared), Arc::clone(&self.leave));
        let session = Arc::clone(&self.session);
        let outcome = self.handle(abandoned).await;
        if let Some(noted) = noted {
            let subject = turn.as_ref().map_or(Subject::Display, |turn| turn.found_subject());
            noted.conclude(&outcome, &shared.desktop, &leave, subject);
        }
        if let Some(turn) = turn {
            turn.conclude(&outcome, &shared, leave, session);
        }
        outcome
    }

    async fn handle(self, abandoned: CancellationToken) -> Outcome {
        let Self {
            shared,
            tool,
            prepared,
            mut context,
            session,
            cancel,
            timeout,
            stop,
            entry,
            asked,
            leave,
            ..
        } = self;
        // Taken before the look, so that the end of the session waits for it or is seen here.
        let tracked = Tracked::new(&session);
        if session.ended.is_cancelled() {
            return settle(
                entry,
                Err(Error::new(Code::SessionEnded, "this session has ended; nothing was done")),
            );
        }
        if let Some(asked) = asked
            && let Err(error) = asked.await
        {
            return settle(entry, Err(error));
        }
        let consented = leave.watch();
        let conclude = |outcome: Outcome| {
            let outcome = if leave.acts() { outcome } else { outcome.map_err(without_delivery) };
            leave.conclude(outcome, consented.as_ref())
        };
        context.track(tracked.clone());
        let deadline = context.deadline();
        let acting = context.acting();
        let handler = async move {
            let outcome = (prepared.run)(context).await;
            tracked.step_out();
            outcome
        };
        let mut handler = tokio::spawn(handler);
        let asked = tokio::select! {
            biased;
            done = &mut handler => {
                return settle(entry, conclude(joined(tool, done)).await);
            }
            () = cancel.cancelled() => Asked::Caller,
            () = abandoned.cancelled() => Asked::Caller,
            // Before the session, which ends with the desktop.
            () = shared.desktop_lost.cancelled() => Asked::DesktopLost,
            () = session.ended.cancelled() => Asked::SessionEnd,
            () = shared.failed.cancelled() => Asked::Failure,
            () = revoked(consented.as_ref()) => Asked::Revoke,
            () = tokio::time::sleep_until(deadline) => Asked::Deadline,
        };
        stop.cancel();
        let since = Instant::now();
        let outcome = match tokio::time::timeout_at(since + GRACE, &mut handler).await {
            Ok(done) => joined(tool, done),
            Err(_) => {
                tracing::error!(tool, "a call did not stop within its grace time");
                tokio::spawn(watch(Arc::clone(&shared), tool, handler, acting, since));
                Err(unstopped(tool, leave.acts()))
            }
        };
        let outcome = outcome.map_err(|error| told(error, asked, timeout));
        settle(entry, conclude(outcome).await)
    }
}

/// Waits until what the call needs is no longer allowed.
async fn revoked(watch: Option<&Watch>) {
    match watch {
        Some(watch) => watch.revoked().cancelled().await,
        None => std::future::pending().await,
    }
}

/// Notes the outcome, and gives it back.
fn settle(entry: Entry, outcome: Outcome) -> Outcome {
    entry.settle(&outcome);
    outcome
}

/// Says why a call was cancelled.
fn told(error: Error, asked: Asked, timeout: Duration) -> Error {
    if error.code != Code::Cancelled {
        return error;
    }
    let Error { message, details, .. } = error;
    let (code, message) = match asked {
        Asked::Caller | Asked::Revoke => (Code::Cancelled, message),
        Asked::Deadline => (Code::Timeout, format!("no answer within {} ms: {message}", timeout.as_millis())),
        Asked::SessionEnd => (Code::SessionEnded, format!("the session ended: {message}")),
        Asked::DesktopLost => (Code::DesktopLost, format!("the display server has ended: {message}")),
        Asked::Failure => (Code::ProcessFailed, format!("deskhand failed and ends: {message}")),
    };
    Error { code, message, details }
}

/// The error of a call that has not said how far it got.
fn unstopped(tool: &str, acts: bool) -> Error {
    if !acts {
        return Error::new(Code::Cancelled, format!("{tool} did not stop in time and is not waited for"));
    }
    let message = format!("{tool} did not stop in time; whether its input was delivered is uncertain");
    Error::new(Code::Cancelled, message).with_details(json!({"delivery": "uncertain"}))
}

/// The error of a tool that never acts: ports speak of delivery for whoever asks.
fn without_delivery(mut error: Error) -> Error {
    if let Some(Value::Object(details)) = &mut error.details {
        details.remove("delivery");
        if details.is_empty() {
            error.details = None;
        }
    }
    error
}

/// Waits on for a handler that did not stop in time. While it holds the queue nobody else can act, so if it goes on doing so
/// the engine has failed.
async fn watch(
    shared: Arc<Shared>,
    tool: &'static str,
    handler: JoinHandle<Outcome>,
    acting: super::context::Acting,
    since: Instant,
) {
    tokio::select! {
        biased;
        _ = handler => {}
        () = tokio::time::sleep_until(since + UNSTOPPABLE) => if acting.now() {
            shared.fail(&format!("{tool} cannot be stopped"));
        },
    }
}

fn joined(tool: &'static str, done: Result<Outcome, tokio::task::JoinError>) -> Outcome {
    done.unwrap_or_else(|error| Err(broken(tool, &error)))
}

fn broken(tool: &'static str, error: &tokio::task::JoinError) -> Error {
    tracing::error!(tool, panicked = error.is_panic(), "a tool failed");
    Error::new(Code::InternalError, format!("{tool} failed inside the driver; other calls go on"))
}
