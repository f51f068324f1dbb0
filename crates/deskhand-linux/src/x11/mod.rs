//! The ports on an X11 display: windows, pixels, pointer and keyboard, in the wire protocol alone.
//!
//! Requests of the X protocol block the thread that waits for their replies, so each connection has a thread of its
//! own (`worker`): one for windows, one for input, one for captures, one that counts changes, and one that shows the
//! agents' cursors while there are any. None is started before its first call, and none wakes up while nothing happens.

mod authority;
mod checks;
pub mod claim;
mod clipboard;
mod connection;
mod devices;
mod fence;
pub mod guard;
mod input;
mod keyboard;
mod overlay;
mod pointer;
mod screen;
mod windows;
mod worker;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{
    Capture, CaptureRequest, Chord, Click, Delivered, Display, Drag, Fact, FrameChange, Hit, Keyboard,
    Pointer, PortError, Screen, Stop, Tally, Wheel, Window, WindowId, WindowState, Windows,
};
use deskhand_core::geometry::Point;
use tokio::sync::{Mutex, watch};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::DropGuard;

pub use clipboard::X11Clipboard;
use connection::{Link, Trouble};
use guard::Guard;
use input::Input;
use overlay::Own;
pub(crate) use overlay::X11Overlay;
use screen::Camera;
use windows::activate::Standing;
use windows::changes::Watcher;
use windows::listing::{self, Listing};
use worker::{SERVER_PATIENCE, Worker};

use crate::environment::EnvironmentSource;

/// A window manager that has not focused a window after this time is not going to. A busy one takes half a second:
/// some grab all their keys anew whenever the keymap changes.
const ACTIVATION_BOUND: Duration = Duration::from_secs(2);

/// A focused window that something covers is given this time to come to the front; something that stays above by
/// its nature must not cost more.
const RAISE_BOUND: Duration = Duration::from_millis(200);

/// Window managers let a window that was minimised fly in; it counts as arrived when nothing has moved for [`STILL`].
const SETTLE_BOUND: Duration = Duration::from_millis(600);

/// Twice the time of a slow animation's frame.
const STILL: Duration = Duration::from_millis(60);

/// So many ids of windows that were seen are kept, to tell a closed window from one that never was.
const SEEN_WINDOWS: usize = 10_000;

/// The adapter. One value serves all its ports.
pub struct X11 {
    source: Arc<dyn EnvironmentSource>,
    desk: Worker<Desk>,
    input: Worker<Input>,
    camera: Worker<Camera>,
    guard: Guard,
    seen: Seen,
    own: Own,
    reached: Reached,
    watcher: Mutex<Option<Watcher>>,
}

/// What listings have shown.
#[derive(Clone, Default)]
struct Seen(Arc<std::sync::Mutex<Known>>);

#[derive(Default)]
struct Known {
    /// All that ever were.
    ids: HashSet<WindowId>,
    /// The newest listing.
    windows: Vec<Window>,
}

impl Seen {
    fn listed(&self, listing: &Listing) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.ids.len() + listing.windows.len() > SEEN_WINDOWS {
            known.ids.clear();
        }
        known.ids.extend(listing.windows.iter().map(|listed| listed.window.id));
        known.windows = listing.windows.iter().map(|listed| listed.window.clone()).collect();
    }

    fn last(&self) -> Vec<Window> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).windows.clone()
    }

    /// A window that is not there is gone if it was ever seen, and unknown if not.
    fn judge(&self, error: PortError) -> PortError {
        match error {
            PortError::WindowGone(id) => {
                let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if known.ids.contains(&id) { PortError::WindowGone(id) } else { PortError::UnknownWindow(id) }
            }
            other => other,
        }
    }
}

/// What the thread for windows owns.
struct Desk {
    link: Link,
    seen: Seen,
    /// Programs that were given an id for their start.
    starts: u64,
}

impl Desk {
    fn list(&mut self) -> Result<Listing, Trouble> {
        self.link.drain()?;
        let listing = listing::read(&self.link)?;
        self.seen.listed(&listing);
        Ok(listing)
    }
}

/// Whether the display was there once: one that is not there any more is lost, whichever connection finds that out.
#[derive(Clone, Default)]
struct Reached(Arc<AtomicBool>);

impl Reached {
    /// What became of opening a connection.
    fn judge<T>(&self, opened: Result<T, PortError>) -> Result<T, PortError> {
        match opened {
            Err(PortError::Unavailable { .. }) if self.0.load(Ordering::Acquire) => {
                Err(PortError::DesktopLost)
            }
            Ok(opened) => {
                self.0.store(true, Ordering::Release);
                Ok(opened)
            }
            Err(error) => Err(error),
        }
    }
}

impl std::fmt::Debug for X11 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("X11").finish_non_exhaustive()
    }
}

impl X11 {
    /// An adapter for the display that `source` names. Connects to nothing. `program` is our own executable, which is
    /// started as the [`guard`] at the first input.
    pub fn new(source: Arc<dyn EnvironmentSource>, program: PathBuf) -> Self {
        let silent = PortError::DesktopNotResponding;
        let seen = Seen::default();
        let known = seen.clone();
        let reached = Reached::default();
        let (first, second, third) = (reached.clone(), reached.clone(), reached.clone());
        let desk = Worker::new("x11-windows", Arc::clone(&source), silent, move |environment| {
            let link = first.judge(Link::open(environment))?;
            Ok(Desk { link, seen: known.clone(), starts: 0 })
        });
        let own = Own::default();
        let unseen = own.clone();
        let camera =
            Worker::new("x11-capture", Arc::clone(&source), PortError::CaptureBusy, move |environment| {
                second.judge(Camera::open(environment, unseen.clone()))
            });
        let guard = Guard::new(program);
        let guarded = guard.clone();
        let still_silent = PortError::DesktopStillSilent;
        let input = Worker::new("x11-input", Arc::clone(&source), still_silent, move |environment| {
            third.judge(Input::open(environment, &guarded))
        });
        Self { source, desk, input, camera, guard, seen, own, reached, watcher: Mutex::new(None) }
    }

    /// The guard, for other parts of the program that change something which must not outlive us.
    pub fn guard(&self) -> Guard {
        self.guard.clone()
    }

    /// What shows people the agents' cursors, which this adapter does not see.
    pub(crate) fn overlay(&self) -> X11Overlay {
        X11Overlay::new(Arc::clone(&self.source), self.own.clone())
    }

    /// Runs something on the thread for windows that goes by the windows as they are now.
    async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Link, &Listing) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, PortError> {
        let work = move |desk: &mut Desk, _: &_, _: &_| {
            let listing = desk.list()?;
            work(&desk.link, &listing)
        };
        self.desk.run(&Stop::new(), false, work).await.map_err(|error| self.seen.judge(error))
    }

    /// Waits until `window` is in front, or until it has the focus and does not come to the front.
    async fn reach(
        &self,
        window: WindowId,
        takes_focus: bool,
        changes: &mut watch::Receiver<u64>,
        begun: Instant,
    ) -> Result<(), PortError> {
        loop {
            let look = move |desk: &mut Desk, _: &_, _: &_| {
                Ok(windows::activate::standing(&desk.list()?, window, takes_focus)?)
            };
            let bound = match self.desk.run(&Stop::new(), false, look).await? {
                Standing::InFront => return Ok(()),
                Standing::Covered => RAISE_BOUND,
                Standing::Behind => ACTIVATION_BOUND,
            };
            match timeout_at(begun + bound, changes.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(PortError::DesktopLost),
                Err(_) if bound == RAISE_BOUND => return Ok(()),
                Err(_) => {
                    return Err(PortError::NotSupported(format!(
                        "the window manager did not give the focus to window {window}"
                    )));
                }
            }
        }
    }
}

#[async_trait]
impl Windows for X11 {
    async fn list(&self) -> Result<Vec<Window>, PortError> {
        let work = |desk: &mut Desk, _: &_, _: &_| desk.list();
        let listing = self.desk.run(&Stop::new(), false, work).await?;
        Ok(listing.windows.into_iter().map(|listed| listed.window).collect())
    }

    fn last_listed(&self) -> Vec<Window> {
        self.seen.last()
    }

    async fn hit_test(&self, point: Point) -> Result<Hit, PortError> {
        self.ask(move |link, listing| windows::hit::test(link, listing, point)).await
    }

    async fn activate(&self, window: WindowId) -> Result<(), PortError> {
        let mut changes = self.changes().await?;
        changes.mark_unchanged();
        let begun = Instant::now();
        let asked = self.ask(move |link, listing| windows::activate::ask(link, listing, window)).await?;
        if asked.before == Standing::InFront {
            return Ok(());
        }
        self.reach(window, asked.takes_focus, &mut changes, begun).await?;
        if asked.hidden {
            let settled = begun + SETTLE_BOUND;
            while matches!(
                timeout_at(settled.min(Instant::now() + STILL), changes.changed()).await,
                Ok(Ok(()))
            ) {}
        }
        Ok(())
    }

    async fn set_frame(&self, window: WindowId, change: FrameChange) -> Result<(), PortError> {
        self.ask(move |link, listing| windows::arrange::set_frame(link, listing, window, change)).await
    }

    async fn set_state(&self, window: WindowId, state: WindowState) -> Result<(), PortError> {
        self.ask(move |link, listing| windows::arrange::set_state(link, listing, window, state)).await
    }

    async fn put_below(&self, window: WindowId, above: WindowId) -> Result<(), PortError> {
        self.ask(move |link, listing| windows::arrange::put_below(link, listing, window, above)).await
    }

    async fn manager(&self) -> Result<Option<String>, PortError> {
        self.ask(windows::arrange::manager).await
    }

    async fn close(&self, window: WindowId) -> Result<bool, PortError> {
        self.ask(move |link, listing| windows::close::ask(link, listing, window)).await
    }

    async fn facts(&self, window: WindowId) -> Result<Vec<Fact>, PortError> {
        self.ask(move |link, listing| windows::facts::read(link, listing, window)).await
    }

    async fn startup_id(&self, program: &str) -> Result<Option<String>, PortError> {
        let program = program.to_owned();
        let work = move |desk: &mut Desk, _: &_, _: &_| {
            desk.starts += 1;
            windows::startup::new_id(&desk.link, &program, desk.starts)
        };
        self.desk.run(&Stop::new(), false, work).await.map(Some).map_err(|error| self.seen.judge(error))
    }

    async fn started_as(&self, startup_id: &str) -> Result<Vec<WindowId>, PortError> {
        let id = startup_id.to_owned();
        self.ask(move |link, listing| windows::startup::started_as(link, listing, &id)).await
    }

    async fn changes(&self) -> Result<watch::Receiver<u64>, PortError> {
        let environment = self.source.get().await?;
        let mut watcher = self.watcher.lock().await;
        if let Some(watcher) = &*watcher {
            let counter = watcher.counter.clone();
            // The other end is gone only if the connection broke.
            return if counter.has_changed().is_ok() { Ok(counter) } else { Err(PortError::DesktopLost) };
        }
        let started = windows::changes::start(environment, self.own.clone())?;
        let started = timeout(SERVER_PATIENCE, started).await.map_err(|_| PortError::DesktopNotResponding)?;
        let started =
            started.map_err(|_| PortError::Internal("the thread for events broke down".to_owned()))?;
        let started = self.reached.judge(started)?;
        let counter = started.counter.clone();
        *watcher = Some(started);
        Ok(counter)
    }
}

#[async_trait]
impl Pointer for X11 {
    async fn position(&self) -> Result<Point, PortError> {
        self.input.run(&Stop::new(), false, |input, _, _| pointer::position(&input.link)).await
    }

    async fn move_to(&self, to: Point) -> Result<(), PortError> {
        self.input.run(&Stop::new(), false, move |input, _, _| pointer::move_to(&input.link, to)).await
    }

    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError> {
        let click = click.clone();
        let work = move |input: &mut Input, pulse: &_, stop: &_| pointer::click(input, pulse, &click, stop);
        self.input.run(stop, false, work).await
    }

    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError> {
        let drag = drag.clone();
        let work = move |input: &mut Input, pulse: &_, stop: &_| pointer::drag(input, pulse, &drag, stop);
        self.input.run(stop, false, work).await
    }

    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError> {
        let wheel = wheel.clone();
        let work =
            move |input: &mut Input, pulse: &_, stop: &_| pointer::turn_wheel(input, pulse, &wheel, stop);
        self.input.run(stop, false, work).await
    }
}

#[async_trait]
impl Screen for X11 {
    async fn displays(&self) -> Result<Vec<Display>, PortError> {
        self.desk.run(&Stop::new(), false, |desk, _, _| screen::displays(&desk.link)).await
    }

    async fn ready(&self) -> Result<(), PortError> {
        self.camera.run(&Stop::new(), false, |camera, _, _| camera.sync()).await
    }

    async fn capture(&self, request: CaptureRequest, stop: &Stop) -> Result<Capture, PortError> {
        let work = move |camera: &mut Camera, _: &_, _: &_| camera.capture(request, None);
        self.camera.run(stop, true, work).await.map_err(|error| self.seen.judge(error))
    }

    async fn capture_holding(
        &self,
        request: CaptureRequest,
        hold: DropGuard,
        stop: &Stop,
    ) -> Result<Capture, PortError> {
        let work = move |camera: &mut Camera, _: &_, _: &_| camera.capture(request, Some(hold));
        self.camera.run(stop, true, work).await.map_err(|error| self.seen.judge(error))
    }
}

#[async_trait]
impl Keyboard for X11 {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        let (text, typed) = (text.to_owned(), typed.clone());
        let work = move |input: &mut Input, pulse: &_, stop: &_| {
            keyboard::typing::type_text(input, pulse, (&text, &typed), delay, stop)
        };
        self.input.run(stop, false, work).await
    }

    async fn require_typable(&self, text: &str) -> Result<(), PortError> {
        let text = text.to_owned();
        let work =
            move |input: &mut Input, pulse: &_, _: &_| keyboard::typing::require_typable(input, pulse, &text);
        self.input.run(&Stop::new(), false, work).await
    }

    async fn press(
        &self,
        chord: &Chord,
        repeat: u32,
        hold: Duration,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        let chord = chord.clone();
        let work = move |input: &mut Input, pulse: &_, stop: &_| {
            keyboard::typing::press(input, pulse, &chord, repeat, hold, stop)
        };
        self.input.run(stop, false, work).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_display_that_was_there_is_lost_and_one_that_never_was_is_not_available() {
        let reached = Reached::default();
        let gone =
            || Err::<(), _>(PortError::Unavailable { what: "the display", why: "nobody answers".to_owned() });
        assert!(matches!(reached.judge(gone()), Err(PortError::Unavailable { .. })));
        reached.judge(Ok(())).expect("it is there");
        assert!(matches!(reached.clone().judge(gone()), Err(PortError::DesktopLost)));
    }
}
