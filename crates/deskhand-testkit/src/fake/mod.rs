//! A desktop that exists only in memory, made from a short text.
//!
//! ```text
//! window 1 "Editor" app=editor pid=100 800x600+100+50 focused
//!   push button "Save" @10,10 80x30 changes=3
//!   check box "Wrap" @10,50 80x20
//!   label "ready"
//!   text "Body" @10,80 400x200 text="abc" focused
//! window 2 "Cover" app=other pid=200 100x100+120+70
//! ```
//!
//! Windows stand from back to front; element frames are relative to their window. Words after the name: states
//! (`focused`, `checked`, `disabled`, `hidden`), `text="…"`, `value=n..m=v`, and how the element behaves: `dead` (its action
//! claims to work and does nothing, and it takes no keys), `refuses` (its action answers false), `silent` (works without a visible change), `changes=n`
//! (its action renames element n of the window), `springs` (a toggle button that lets go by itself a moment after it was pressed), `scrolled-away` (has no
//! frame until it has been scrolled into view, and moves into it), `opens="Title"` (its action opens a window), `no-editable-text`.

mod accessibility;
mod clipboard;
mod input;
mod overlay;
mod parse;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::desktop::{
    Accessibility as _, Apps, Capture, CaptureRequest, CaptureTarget, Change, ChangeKind, Check, Desktop,
    Display, ElementId, Ended, Fact, FrameChange, Health, Hit, InstalledApp, LaunchRequest, Launched, Need,
    Node, Pixels, PortError, RunningApp, Screen, Stop, Text, Value, Window, WindowId, WindowKind,
    WindowState, Windows,
};
use deskhand_core::geometry::{Point, Rect};
use tokio::sync::{broadcast, watch};

/// The fake desktop. Cheap to clone; all clones are one desktop.
#[derive(Clone, Debug)]
pub struct FakeDesktop {
    state: Arc<Mutex<State>>,
    changes: broadcast::Sender<Change>,
    windows_changed: Arc<watch::Sender<u64>>,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) windows: Vec<FakeWindow>,
    pub(crate) pointer: Point,
    /// What reached the desktop, in order.
    pub(crate) journal: Vec<String>,
    pub(crate) frozen: Vec<u32>,
    pub(crate) reading_stuck: bool,
    pub(crate) key_time: Duration,
    pub(crate) grabbed: bool,
    pub(crate) stuck: bool,
    pub(crate) silent: bool,
    pub(crate) clipboards: clipboard::Clipboards,
    pub(crate) captures: usize,
    pub(crate) overlay: overlay::Cursors,
    next_window: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FakeWindow {
    pub(crate) window: Window,
    pub(crate) elements: Vec<FakeElement>,
}

#[derive(Clone, Debug)]
pub(crate) struct FakeElement {
    pub(crate) node: Node,
    pub(crate) frame: Option<Rect>,
    pub(crate) text: Option<Text>,
    pub(crate) value: Option<Value>,
    pub(crate) behaviour: Behaviour,
    pub(crate) gone: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Behaviour {
    pub(crate) dead: bool,
    pub(crate) refuses: bool,
    pub(crate) changes: Option<usize>,
    pub(crate) opens: Option<String>,
    pub(crate) springs: bool,
    /// Where it is a while after it was scrolled into view.
    pub(crate) comes_into_view: Option<Rect>,
}

impl FakeDesktop {
    /// Makes a desktop.
    ///
    /// # Panics
    /// If the text does not follow the format above.
    pub fn new(text: &str) -> Self {
        let windows = parse::windows(text);
        let next_window = windows.iter().map(|window| window.window.id.0).max().unwrap_or(0) + 1;
        let state = State {
            windows,
            pointer: Point::new(0, 0),
            journal: Vec::new(),
            frozen: Vec::new(),
            reading_stuck: false,
            key_time: Duration::ZERO,
            grabbed: false,
            stuck: false,
            silent: false,
            clipboards: clipboard::Clipboards::default(),
            captures: 0,
            overlay: overlay::Cursors::default(),
            next_window,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            changes: broadcast::channel(256).0,
            windows_changed: Arc::new(watch::channel(0).0),
        }
    }

    /// The ports of this desktop.
    pub fn desktop(&self) -> Desktop {
        Desktop {
            windows: Arc::new(self.clone()),
            screen: Arc::new(self.clone()),
            accessibility: Arc::new(self.clone()),
            pointer: Arc::new(self.clone()),
            keyboard: Arc::new(self.clone()),
            clipboard: Arc::new(self.clone()),
            apps: Arc::new(self.clone()),
            overlay: Arc::new(self.clone()),
            health: Arc::new(self.clone()),
        }
    }

    /// What reached the desktop so far; forgets it.
    pub fn take_journal(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().journal)
    }

    /// How many pictures were taken so far.
    pub fn captures(&self) -> usize {
        self.lock().captures
    }

    /// Removes an element from its application, as a program does that rebuilds its window.
    pub fn remove_element(&self, window: u64, index: usize) {
        let id = {
            let mut state = self.lock();
            let element = &mut state.window_mut(window).elements[index];
            element.gone = true;
            element.node.id.clone()
        };
        self.tell(id, ChangeKind::Children);
    }

    /// Moves the focus within a window, as a program does by itself.
    pub async fn focus_element(&self, window: u64, index: usize) {
        let id = self.lock().window_mut(window).elements[index].node.id.clone();
        // The fake's elements always take it.
        let _ = self.focus(&id).await;
    }

    /// Tells that an object went which the caller never saw.
    pub fn tell_gone(&self, element: ElementId) {
        self.tell(element, ChangeKind::State(deskhand_core::desktop::State::Defunct, true));
    }

    /// Renames an element, as a program does by itself.
    pub fn rename_element(&self, window: u64, index: usize, name: &str) {
        let id = {
            let mut state = self.lock();
            let element = &mut state.window_mut(window).elements[index];
            name.clone_into(&mut element.node.name);
            element.node.id.clone()
        };
        self.tell(id, ChangeKind::Name);
    }

    /// Tells that an element has moved, as each frame of an animation does.
    pub fn move_element(&self, window: u64, index: usize) {
        let id = self.lock().window_mut(window).elements[index].node.id.clone();
        self.tell(id, ChangeKind::Bounds);
    }

    /// Closes a window.
    pub fn close_window(&self, window: u64) {
        self.lock().windows.retain(|other| other.window.id.0 != window);
        self.windows_changed.send_modify(|number| *number += 1);
    }

    /// Opens a window of process `pid` in front.
    pub fn open_window(&self, title: &str, pid: u32) {
        self.lock().open(title, pid);
        self.windows_changed.send_modify(|number| *number += 1);
    }

    /// Stops or continues a process: a stopped one answers nothing on the accessibility bus.
    pub fn freeze(&self, pid: u32, frozen: bool) {
        let mut state = self.lock();
        state.frozen.retain(|other| *other != pid);
        if frozen {
            state.frozen.push(pid);
        }
    }

    /// Makes each key take so long, so that typing can be stopped in the middle.
    pub fn set_key_time(&self, time: Duration) {
        self.lock().key_time = time;
    }

    /// Makes the keyboard's operations go on for ever, whoever asks them to stop.
    pub fn set_keyboard_stuck(&self, stuck: bool) {
        self.lock().stuck = stuck;
    }

    /// Makes elements be read for ever, whoever asks that to stop.
    pub fn set_reading_stuck(&self, stuck: bool) {
        self.lock().reading_stuck = stuck;
    }

    /// Makes the display server fall silent in the middle of what is typed.
    pub fn set_silent(&self, silent: bool) {
        self.lock().silent = silent;
    }

    /// Pretends that another program holds the pointer.
    pub fn set_grabbed(&self, grabbed: bool) {
        self.lock().grabbed = grabbed;
    }

    fn arrange(&self, id: WindowId, change: impl FnOnce(&mut Window)) -> Result<(), PortError> {
        {
            let mut state = self.lock();
            let window = state.windows.iter_mut().find(|window| window.window.id == id);
            change(&mut window.ok_or(PortError::WindowGone(id))?.window);
        }
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(())
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn tell(&self, element: ElementId, kind: ChangeKind) {
        // No receiver is a desktop that nobody watches.
        let _ = self.changes.send(Change { element, kind });
    }
}

impl State {
    pub(crate) fn window_mut(&mut self, id: u64) -> &mut FakeWindow {
        match self.windows.iter_mut().find(|window| window.window.id.0 == id) {
            Some(window) => window,
            None => panic!("the test names window {id}, which is not there"),
        }
    }

    pub(crate) fn open(&mut self, title: &str, pid: u32) {
        let id = self.next_window;
        self.next_window += 1;
        let text = format!("window {id} {title:?} app=fake pid={pid} 300x200+50+50");
        self.windows.extend(parse::windows(&text));
    }

    /// The windows as the port tells them.
    fn list(&self) -> Vec<Window> {
        let place = |(z, window): (usize, &FakeWindow)| Window { z: z as u32, ..window.window.clone() };
        self.windows.iter().enumerate().map(place).collect()
    }

    fn top_at(&self, point: Point) -> Option<Window> {
        self.list().into_iter().rev().find(|window| !window.minimized && window.frame.contains(point))
    }
}

#[async_trait]
impl Windows for FakeDesktop {
    async fn list(&self) -> Result<Vec<Window>, PortError> {
        Ok(self.lock().list())
    }

    async fn hit_test(&self, point: Point) -> Result<Hit, PortError> {
        let state = self.lock();
        Ok(Hit { window: state.top_at(point), grabbed: state.grabbed, windows: state.list() })
    }

    async fn activate(&self, id: WindowId) -> Result<(), PortError> {
        {
            let mut state = self.lock();
            let place = state.windows.iter().position(|window| window.window.id == id);
            let place = place.ok_or(PortError::WindowGone(id))?;
            if state.windows[place].window.focused && place + 1 == state.windows.len() {
                return Ok(());
            }
            let is_popup = |other: &FakeWindow| {
                other.window.kind == WindowKind::Popup && other.window.parent == Some(id)
            };
            if state.windows.iter().any(is_popup) {
                return Err(PortError::NotSupported(format!("window {id} has a popup open")));
            }
            // A window that may not be covered, as panels may not, stays in front.
            let window = state.windows.remove(place);
            let top =
                state.windows.iter().filter(|other| !other.window.title.contains("always on top")).count();
            state.windows.insert(top, window);
            for other in &mut state.windows {
                other.window.focused = other.window.id == id;
            }
            state.journal.push(format!("activate {id}"));
        }
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(())
    }

    async fn set_frame(&self, id: WindowId, change: FrameChange) -> Result<(), PortError> {
        self.arrange(id, |window| {
            // A title says of a window that it keeps its size.
            let size = (window.frame.width, window.frame.height);
            window.frame = change.of(window.frame);
            if window.title.contains("fixed") {
                (window.frame.width, window.frame.height) = size;
            }
        })
    }

    async fn set_state(&self, id: WindowId, state: WindowState) -> Result<(), PortError> {
        self.arrange(id, |window| {
            window.minimized = state == WindowState::Minimized;
            window.maximized = state == WindowState::Maximized;
            window.fullscreen = state == WindowState::Fullscreen;
        })
    }

    async fn put_below(&self, id: WindowId, above: WindowId) -> Result<(), PortError> {
        {
            let mut state = self.lock();
            let place = state.windows.iter().position(|window| window.window.id == id);
            let window = state.windows.remove(place.ok_or(PortError::WindowGone(id))?);
            let above = state.windows.iter().position(|window| window.window.id == above);
            let place = above.unwrap_or(state.windows.len());
            state.windows.insert(place, window);
        }
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(())
    }

    async fn startup_id(&self, _: &str) -> Result<Option<String>, PortError> {
        Ok(None)
    }

    async fn started_as(&self, _: &str) -> Result<Vec<WindowId>, PortError> {
        Ok(Vec::new())
    }

    async fn manager(&self) -> Result<Option<String>, PortError> {
        Ok(Some("fake".to_owned()))
    }

    async fn close(&self, id: WindowId) -> Result<bool, PortError> {
        {
            let mut state = self.lock();
            let place = state.windows.iter().position(|window| window.window.id == id);
            let place = place.ok_or(PortError::WindowGone(id))?;
            state.journal.push(format!("close {id}"));
            let window = state.windows[place].window.clone();
            // A star says that there is something to save, which programs ask about.
            if window.title.starts_with('*') {
                state.open("Save changes?", window.pid.unwrap_or(0));
            } else {
                state.windows.remove(place);
            }
        }
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(true)
    }

    async fn facts(&self, id: WindowId) -> Result<Vec<Fact>, PortError> {
        let windows = self.lock().list();
        let window = windows.into_iter().find(|window| window.id == id).ok_or(PortError::WindowGone(id))?;
        Ok(vec![Fact::new("WM_NAME", window.title)])
    }

    async fn changes(&self) -> Result<watch::Receiver<u64>, PortError> {
        Ok(self.windows_changed.subscribe())
    }
}

#[async_trait]
impl Screen for FakeDesktop {
    async fn displays(&self) -> Result<Vec<Display>, PortError> {
        let frame = Rect::new(0, 0, 1920, 1080);
        Ok(vec![Display { display: 0, name: "fake".to_owned(), frame, scale: 1.0, primary: true }])
    }

    async fn ready(&self) -> Result<(), PortError> {
        Ok(())
    }

    async fn capture(&self, request: CaptureRequest, _: &Stop) -> Result<Capture, PortError> {
        self.lock().captures += 1;
        let frame = match request.target {
            CaptureTarget::Region(frame) => frame,
            CaptureTarget::Window(id) => {
                let windows = self.lock().list();
                let window =
                    windows.into_iter().find(|window| window.id == id).ok_or(PortError::WindowGone(id))?;
                if window.minimized {
                    return Err(PortError::CaptureFailed("the window is minimised".to_owned()));
                }
                window.frame
            }
        };
        let rgba = [200, 100, 50, 255].repeat((frame.width * frame.height) as usize);
        let pixels = Pixels { width: frame.width, height: frame.height, rgba };
        Ok(Capture { pixels, frame, stale: false })
    }
}

#[async_trait]
impl Apps for FakeDesktop {
    async fn running(&self) -> Result<Vec<RunningApp>, PortError> {
        let mut apps: HashMap<String, Vec<u32>> = HashMap::new();
        for window in self.lock().list() {
            apps.entry(window.app).or_default().extend(window.pid);
        }
        let mut apps: Vec<_> =
            apps.into_iter().map(|(name, pids)| RunningApp { name, desktop_id: None, pids }).collect();
        apps.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(apps)
    }

    async fn installed(&self) -> Result<Vec<InstalledApp>, PortError> {
        Ok(vec![InstalledApp { name: "Editor".to_owned(), desktop_id: "editor".to_owned() }])
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, PortError> {
        let pid = {
            let mut state = self.lock();
            let pid = 1000 + u32::try_from(state.windows.len()).unwrap_or(0);
            if !matches!(request.app.as_str(), "false" | "editor") {
                return Err(PortError::AppGone(request.app.clone()));
            }
            state.journal.push(format!("launch {}", request.app));
            match request.app.as_str() {
                "false" => return Ok(Launched { pid: 1, name: "false".to_owned(), startup_id: None }),
                _ => state.open("New editor", pid),
            }
            pid
        };
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(Launched { pid, name: request.app.clone(), startup_id: None })
    }

    async fn exited(&self, pid: u32) -> Option<i32> {
        (pid == 1).then_some(1)
    }

    async fn descends_from(&self, pid: u32, ancestor: u32) -> bool {
        pid == ancestor
    }

    async fn end(&self, pid: u32, force: bool) -> Result<Ended, PortError> {
        self.lock().journal.push(format!("end {pid}{}", if force { " by force" } else { "" }));
        self.lock().windows.retain(|window| window.window.pid != Some(pid));
        self.windows_changed.send_modify(|number| *number += 1);
        Ok(if force { Ended::Killed } else { Ended::Exited })
    }
}

#[async_trait]
impl Health for FakeDesktop {
    async fn checks(&self) -> Vec<Check> {
        Vec::new()
    }

    fn needs(&self) -> &'static [Need] {
        &[Need { name: "see_the_screen", checks: &["display"] }]
    }
}
