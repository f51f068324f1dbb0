use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::{Fact, PortError};
use crate::geometry::{Point, Rect};

/// The display server's own number of a top-level window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WindowId(pub u64);

impl std::fmt::Display for WindowId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a window is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowKind {
    /// An application's window.
    #[default]
    Normal,
    /// A dialogue of an application's window.
    Dialog,
    /// A menu, combo box list, tooltip: a window that its client places without the window manager.
    Popup,
    /// The picture that a program shows while it starts.
    Splash,
    /// The background of the desktop.
    Desktop,
    /// A panel or dock.
    Dock,
}

/// One top-level window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Window {
    /// Names the window in every other tool.
    #[serde(rename = "window_id")]
    pub id: WindowId,
    /// Process that owns it, if known.
    pub pid: Option<u32>,
    /// Application name, from the window's class or its process.
    pub app: String,
    /// Title, as the application set it.
    pub title: String,
    /// Visible frame in screen pixels: window manager borders included, client-side shadows cut off.
    pub frame: Rect,
    /// The client's own area in screen pixels: without the window manager's borders, with client-side shadows.
    /// What accessibility calls window coordinates is relative to its corner.
    #[serde(skip)]
    pub client: Rect,
    /// Whether keyboard input goes to it.
    pub focused: bool,
    /// Whether it is minimised.
    pub minimized: bool,
    /// Whether it fills its display's working area.
    #[serde(skip_serializing_if = "is_unset")]
    pub maximized: bool,
    /// Whether it fills its display, decorations gone.
    #[serde(skip_serializing_if = "is_unset")]
    pub fullscreen: bool,
    /// Place in the stack; the greatest is in front.
    pub z: u32,
    /// What the window is for.
    pub kind: WindowKind,
    /// Window that this popup or dialogue belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<WindowId>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the shape that serde asks for
fn is_unset(flag: &bool) -> bool {
    !*flag
}

impl Window {
    /// How it stands on its display.
    pub const fn state(&self) -> WindowState {
        if self.minimized {
            WindowState::Minimized
        } else if self.fullscreen {
            WindowState::Fullscreen
        } else if self.maximized {
            WindowState::Maximized
        } else {
            WindowState::Normal
        }
    }
}

/// How a window stands on its display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowState {
    /// With a frame of its own.
    Normal,
    /// Put away.
    Minimized,
    /// Filling the working area.
    Maximized,
    /// Filling the display.
    Fullscreen,
}

/// What of a window's visible frame is to be another, in screen pixels; what is `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names of a rectangle's fields
pub struct FrameChange {
    pub x: Option<i32>,
    pub y: Option<i32>,
    pub width: Option<u32>,
    pub height: Option<u32>,
}

impl FrameChange {
    /// `frame` with the change.
    pub fn of(&self, frame: Rect) -> Rect {
        Rect::new(
            self.x.unwrap_or(frame.x),
            self.y.unwrap_or(frame.y),
            self.width.unwrap_or(frame.width),
            self.height.unwrap_or(frame.height),
        )
    }
}

/// What lies at a point of the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Top-level window that would receive a press there, popups included; `None`: the bare root.
    pub window: Option<Window>,
    /// A foreign client holds the pointer, so the press would go to that client.
    pub grabbed: bool,
    /// All windows, as they were when this was found out.
    pub windows: Vec<Window>,
}

/// Top-level windows of the desktop.
#[async_trait]
pub trait Windows: Send + Sync {
    /// All top-level windows in stacking order, lowest first, popups included. Asks the window system only, so no
    /// application can delay it.
    ///
    /// # Errors
    /// `Unavailable`, `DesktopLost`, `DesktopNotResponding`.
    async fn list(&self) -> Result<Vec<Window>, PortError>;

    /// The windows as somebody was told them last, if they were listed before: for who has to do with a window system that
    /// is silent. Asks nothing.
    fn last_listed(&self) -> Vec<Window> {
        Vec::new()
    }

    /// What a press at `point` (screen) would reach, with input shapes respected.
    ///
    /// # Errors
    /// As [`Windows::list`].
    async fn hit_test(&self, point: Point) -> Result<Hit, PortError>;

    /// Raises the window and gives it the keyboard focus; returns when the window system says so, or with
    /// `NotSupported` when it did not within its bound. Does nothing to a window that has the focus and lies
    /// uncovered already.
    ///
    /// # Errors
    /// `WindowGone`, `NotSupported`, and those of [`Windows::list`].
    async fn activate(&self, window: WindowId) -> Result<(), PortError>;

    /// Asks for another visible frame, and returns when that has been asked for: window managers and applications have a
    /// say in it, so what came of it is read from [`Windows::list`].
    ///
    /// # Errors
    /// `WindowGone`, `NotSupported` for popups, and those of [`Windows::list`].
    async fn set_frame(&self, window: WindowId, change: FrameChange) -> Result<(), PortError>;

    /// Asks for another state; as [`Windows::set_frame`].
    ///
    /// # Errors
    /// `NotSupported` also for all but `Normal` where there is no window manager.
    async fn set_state(&self, window: WindowId, state: WindowState) -> Result<(), PortError>;

    /// Asks for `window` to lie directly below `above`, the focus left alone; as [`Windows::set_frame`].
    ///
    /// # Errors
    /// As [`Windows::set_frame`].
    async fn put_below(&self, window: WindowId, above: WindowId) -> Result<(), PortError>;

    /// Name of the window manager (perhaps empty); `None` if there is none.
    ///
    /// # Errors
    /// As [`Windows::list`].
    async fn manager(&self) -> Result<Option<String>, PortError>;

    /// Asks the window's application to close it, as the close button does; it may ask the person first. `false`: the
    /// window takes no such request.
    ///
    /// # Errors
    /// `WindowGone`, and those of [`Windows::list`].
    async fn close(&self, window: WindowId) -> Result<bool, PortError>;

    /// What the window system says of a window, raw, for a bug report.
    ///
    /// # Errors
    /// `WindowGone`, and those of [`Windows::list`].
    async fn facts(&self, window: WindowId) -> Result<Vec<Fact>, PortError>;

    /// A fresh id for the start of `program`, which passes it on to the windows that it opens; `None` where the window
    /// system knows no such thing.
    ///
    /// # Errors
    /// As [`Windows::list`].
    async fn startup_id(&self, program: &str) -> Result<Option<String>, PortError>;

    /// Windows that say of themselves that the start with this id opened or showed them.
    ///
    /// # Errors
    /// As [`Windows::list`].
    async fn started_as(&self, startup_id: &str) -> Result<Vec<WindowId>, PortError>;

    /// A number that grows whenever a top-level window appears, disappears, moves, is restacked, retitled or focused.
    /// Used to wait without polling; connects on the first call.
    ///
    /// # Errors
    /// As [`Windows::list`].
    async fn changes(&self) -> Result<watch::Receiver<u64>, PortError>;
}
