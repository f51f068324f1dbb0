use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::DropGuard;

use super::invoke::Tracked;
use super::{Engine, Shared};
use crate::activity::Activity;
use crate::agent_cursor::Cursors;
use crate::call::{Call, Outcome};
use crate::consent::{Grant, Leave};
use crate::desktop::{Capture, CaptureRequest, Check, Delivered, Desktop, Stop, Window, WindowId};
use crate::error::{Code, Error, Result};
use crate::host::Host;
use crate::progress::{Part, ProgressSink, Reporter};
use crate::queue::{StepKind, Ticket};
use crate::recording::Turn;
use crate::session::{Session, Sessions};
use crate::settings::{GlobalSettings, Settings};

/// What a tool is given besides its arguments: whose call it is, how long it may take, and the way to the desktop.
#[derive(Clone, Debug)]
pub struct Context {
    shared: Arc<Shared>,
    desktop: Desktop,
    session: Arc<Session>,
    id: u64,
    settings: Settings,
    deadline: Instant,
    stop: Stop,
    /// The place that was taken when the request was read; the first step uses it.
    ticket: Arc<Mutex<Option<Ticket>>>,
    overlapped: Arc<AtomicBool>,
    /// Whether it is at work: a step has had its turn, or it waits for something other than its turn.
    begun: Arc<AtomicBool>,
    acting: Acting,
    progress: Option<Reporter>,
    /// `None` before the call runs.
    tracked: Option<Tracked>,
    leave: Arc<Leave>,
    /// `None`: nobody records the call.
    turn: Option<Arc<Turn>>,
}

/// Whether a call is in a step that acts, and so holds the queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Acting(Arc<AtomicUsize>);

impl Acting {
    fn begin(&self) -> ActingGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        ActingGuard(self.clone())
    }

    pub(super) fn now(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

struct ActingGuard(Acting);

impl Drop for ActingGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes a picture, if the screen may be seen at this moment. A call's only way to pixels.
///
/// # Errors
/// `consent_required`, and those of the port.
pub(crate) async fn see(
    desktop: &Desktop,
    leave: &Leave,
    request: CaptureRequest,
    stop: &Stop,
) -> Result<Capture> {
    leave.require_sight().await?;
    Ok(desktop.screen.capture(request, stop).await?)
}

/// The same for whoever waits to do something until the picture is done: `hold` is dropped then.
///
/// # Errors
/// As [`see`].
pub(crate) async fn see_holding(
    desktop: &Desktop,
    leave: &Leave,
    request: CaptureRequest,
    hold: DropGuard,
    stop: &Stop,
) -> Result<Capture> {
    leave.require_sight().await?;
    Ok(desktop.screen.capture_holding(request, hold, stop).await?)
}

impl Context {
    pub(super) fn new(
        (shared, desktop): (Arc<Shared>, Desktop),
        (session, id, leave): (Arc<Session>, u64, Arc<Leave>),
        settings: Settings,
        deadline: Instant,
        stop: Stop,
        ticket: Option<Ticket>,
        progress: Option<ProgressSink>,
    ) -> Self {
        let ticket = Arc::new(Mutex::new(ticket));
        Self {
            shared,
            desktop,
            session,
            id,
            settings,
            deadline,
            stop,
            ticket,
            overlapped: Arc::default(),
            begun: Arc::default(),
            acting: Acting::default(),
            progress: progress.map(Reporter::new),
            tracked: None,
            leave,
            turn: None,
        }
    }

    /// The same, as a turn of recordings.
    pub(super) fn recorded(self, turn: Option<Arc<Turn>>) -> Self {
        Self { turn, ..self }
    }

    /// What is noted of the call for a recording of it; `None`: nobody records it.
    pub(crate) fn turn(&self) -> Option<&Arc<Turn>> {
        self.turn.as_ref()
    }

    /// Makes another call of the same session, which goes the whole way of every call.
    pub(crate) fn invoke(&self, call: Call) -> BoxFuture<'static, Outcome> {
        Engine { shared: Arc::clone(&self.shared) }.invoke_within(&self.session, call)
    }

    /// The engine's parts; for the tools that record.
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The caller's session, to be kept.
    pub(crate) fn own_session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(super) fn track(&mut self, tracked: Tracked) {
        self.tracked = Some(tracked);
    }

    pub(super) fn acting(&self) -> Acting {
        self.acting.clone()
    }

    /// From now on the end of the session does not wait for this call: it waits for that end itself.
    pub(crate) fn step_out(&self) {
        if let Some(tracked) = &self.tracked {
            tracked.step_out();
        }
    }

    /// All sessions; for their own tools.
    pub(crate) fn sessions(&self) -> &Sessions {
        &self.shared.sessions
    }

    /// Does `work`, and tells the caller meanwhile what `part` says of it, if the caller listens.
    pub(crate) async fn reporting<T>(&self, part: impl Fn() -> Part, work: impl Future<Output = T>) -> T {
        match &self.progress {
            Some(reporter) => reporter.during(part, work).await,
            None => work.await,
        }
    }

    /// The desktop. Steps go through [`Context::step`].
    pub fn desktop(&self) -> &Desktop {
        &self.desktop
    }

    /// What people see of agents.
    pub(crate) fn cursors(&self) -> &Cursors {
        &self.shared.cursors
    }

    /// The process's surroundings.
    pub fn host(&self) -> &Host {
        &self.shared.host
    }

    /// The caller's session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The call's number among those of its session.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Effective settings of this call.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The global settings.
    pub fn global_settings(&self) -> &GlobalSettings {
        &self.shared.settings
    }

    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.shared.activity
    }

    /// When the call must have answered.
    pub const fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Asked when the call must stop.
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Whether a read of this call gave up its place in the queue.
    pub fn overlapped(&self) -> bool {
        self.overlapped.load(Ordering::Relaxed)
    }

    /// Runs one step in its turn.
    ///
    /// # Errors
    /// `cancelled` if the call was asked to stop before its turn came; `session_ended` if its client left before it had
    /// done anything; `consent_required`; else those of the step.
    pub async fn step<T>(&self, kind: StepKind, step: impl Future<Output = Result<T>>) -> Result<T> {
        let taken = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
        let ticket = match taken {
            Some(ticket) if ticket.kind() == kind => ticket,
            _ => self.shared.queue.ticket(&self.session.lane, kind),
        };
        let begun = self.begun.load(Ordering::Relaxed);
        let waiting = Instant::now();
        let part = || {
            Part::Waiting(format!("waits for its turn on the desktop ({} s)", waiting.elapsed().as_secs()))
        };
        let permit = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(self.not_delivered()),
            // Before the client's leaving: a call that came to the front of the queue in time is run.
            permit = self.reporting(part, ticket.turn()) => permit,
            () = self.session.leaving.cancelled(), if !begun => return Err(Self::never_begun()),
        };
        self.leave.require_step(kind).await?;
        self.begun.store(true, Ordering::Relaxed);
        let _acting = (kind == StepKind::Act).then(|| self.acting.begin());
        match (kind, &self.turn) {
            (StepKind::Read, _) => {}
            (StepKind::Act, Some(turn)) => turn.begin(&self.shared, &self.leave),
            (StepKind::Act, None) => self.shared.afterlooks.hurry(),
        }
        let (result, overlapped) = permit.run(step).await;
        self.overlapped.fetch_or(overlapped, Ordering::Relaxed);
        result
    }

    fn never_begun() -> Error {
        Error::new(Code::SessionEnded, "the client left before this call had its turn; nothing was done")
    }

    /// Runs a step that only reads.
    ///
    /// # Errors
    /// As [`Context::step`].
    pub async fn read<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        self.step(StepKind::Read, step).await
    }

    /// Runs a step that acts.
    ///
    /// # Errors
    /// As [`Context::step`].
    pub async fn act<T>(&self, step: impl Future<Output = Result<T>>) -> Result<T> {
        self.step(StepKind::Act, step).await
    }

    /// Takes a picture, if the screen may be seen at this moment.
    ///
    /// # Errors
    /// `consent_required`, and those of the port.
    pub async fn capture(&self, request: impl Into<CaptureRequest>) -> Result<Capture> {
        see(self.desktop(), &self.leave, request.into(), &self.stop).await
    }

    /// What the person at the machine allows at this moment.
    pub(crate) async fn consent(&self) -> Grant {
        self.leave.grant().await
    }

    /// The same as one line of a report.
    pub(crate) async fn consent_check(&self) -> Check {
        self.leave.check().await
    }

    /// Whether the screen may be seen at this moment. What is read of it beside a step asks first.
    pub(crate) async fn sees(&self) -> bool {
        self.consent().await.sees()
    }

    /// Gives up the place that the call was admitted with: it is at work from now on, and will take others later.
    pub fn leave_queue(&self) {
        self.begun.store(true, Ordering::Relaxed);
        self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Waits, or fails when the call is asked to stop.
    ///
    /// # Errors
    /// `cancelled`.
    pub async fn pause(&self, duration: Duration) -> Result<()> {
        tokio::select! {
            () = self.stop.cancelled() => Err(self.stopped()),
            () = tokio::time::sleep(duration) => Ok(()),
        }
    }

    /// The error of a call that was asked to stop while it waited or read.
    pub fn stopped(&self) -> Error {
        Error::new(Code::Cancelled, "stopped while it waited")
    }

    /// The error of a call that was asked to stop before it did anything.
    pub fn not_delivered(&self) -> Error {
        if !self.leave.acts() {
            return Error::new(Code::Cancelled, "stopped before it had read anything");
        }
        Error::new(Code::Cancelled, "nothing was delivered")
            .with_details(json!({"delivery": "not_delivered"}))
    }

    /// Checks that an input operation was carried out whole.
    ///
    /// # Errors
    /// `cancelled`, saying how far it got.
    pub fn delivered(&self, delivered: Delivered, unit: &str) -> Result<()> {
        let Delivered { done, total } = delivered;
        match done {
            _ if delivered.complete() => Ok(()),
            _ => Err(Error::new(Code::Cancelled, format!("stopped after {done} of {total} complete {unit}"))
                .with_details(json!({"delivery": "partial", "done": done, "total": total}))),
        }
    }

    /// The window called `id`.
    ///
    /// # Errors
    /// `unknown_window`, and those of the port.
    pub async fn window(&self, id: WindowId) -> Result<Window> {
        let windows = self.desktop().windows.list().await?;
        let window = self.window_among(&windows, id)?;
        if let Some(turn) = &self.turn {
            turn.at_window(window);
        }
        Ok(window.clone())
    }

    /// The window called `id`, one of `windows`.
    ///
    /// # Errors
    /// `unknown_window`, or `window_gone` if this session has seen it.
    pub fn window_among<'w>(&self, windows: &'w [Window], id: WindowId) -> Result<&'w Window> {
        windows.iter().find(|window| window.id == id).ok_or_else(|| {
            let seen = self.session.newest_snapshot(id).is_ok();
            let error = if seen {
                crate::desktop::PortError::WindowGone(id)
            } else {
                crate::desktop::PortError::UnknownWindow(id)
            };
            error.into()
        })
    }
}
