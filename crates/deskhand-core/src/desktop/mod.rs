//! The ports: what the engine asks of a desktop, and the plain values that go through them.
//!
//! Each trait has one reason to change, so that a desktop can be composed of different adapters. Every method
//! is bounded by its adapter or takes a [`Stop`]; none may block the thread that polls it. Adapters connect on
//! first use: making a [`Desktop`] does no I/O.

mod accessibility;
mod apps;
mod clipboard;
mod input;
mod overlay;
mod screen;
mod windows;

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

pub use accessibility::{
    Accessibility, Action, Change, ChangeKind, Details, DetailsRequest, ElementId, Interfaces, Node, State,
    States, Text, Tree, TreeNote, TreeRequest, Value,
};
pub use apps::{Apps, Ended, InstalledApp, LaunchRequest, Launched, RunningApp};
pub use clipboard::{Clipboard, ClipboardContent, ClipboardData, ClipboardWritten, Selection};
pub use input::{
    Button, Chord, Click, Delivered, Direction, Drag, Key, Keyboard, Modifier, Pointer, Tally, Wheel,
};
pub use overlay::{Act, AgentCursor, Colour, Overlay, PreviewFrame};
pub use screen::{Capture, CaptureRequest, CaptureTarget, Display, Pixels, Screen};
pub use windows::{FrameChange, Hit, Window, WindowId, WindowKind, WindowState, Windows};

/// Asks a running operation to stop. An input operation looks at it between complete key or button events
/// and releases what it holds before it returns.
pub type Stop = CancellationToken;

/// A desktop: its ports. Cheap to clone.
#[derive(Clone)]
pub struct Desktop {
    /// Top-level windows.
    pub windows: Arc<dyn Windows>,
    /// Displays and pixels.
    pub screen: Arc<dyn Screen>,
    /// Element trees.
    pub accessibility: Arc<dyn Accessibility>,
    /// The pointer.
    pub pointer: Arc<dyn Pointer>,
    /// The keyboard.
    pub keyboard: Arc<dyn Keyboard>,
    /// Copy and paste.
    pub clipboard: Arc<dyn Clipboard>,
    /// Applications.
    pub apps: Arc<dyn Apps>,
    /// What people see of agents.
    pub overlay: Arc<dyn Overlay>,
    /// What works here.
    pub health: Arc<dyn Health>,
}

impl std::fmt::Debug for Desktop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desktop").finish_non_exhaustive()
    }
}

/// Says what works on this desktop and what does not.
#[async_trait]
pub trait Health: Send + Sync {
    /// Probes every subsystem, each with its own bound; never fails, a broken subsystem is a check that says so.
    async fn checks(&self) -> Vec<Check>;

    /// What an agent wants to do here, and which checks each of it stands on.
    fn needs(&self) -> &'static [Need];
}

/// Something that an agent does, and the checks that it stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What it does: `see_the_screen`.
    pub name: &'static str,
    /// Names of checks.
    pub checks: &'static [&'static str],
}

/// The state of one subsystem.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Check {
    /// Short stable name, such as `x11` or `accessibility_bus`.
    pub name: String,
    /// Whether it works.
    pub status: CheckStatus,
    /// What was found, in one sentence.
    pub detail: String,
    /// The command or the step that mends it, if it does not work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// How a [`Check`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// Works.
    Ok,
    /// Works in part; something will be missing.
    Degraded,
    /// Does not work.
    Missing,
}

/// Something raw that an adapter knows, for a bug report. Text of the screen in it is not escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it is about.
    pub name: String,
    /// What is so.
    pub value: String,
}

impl Fact {
    /// A fact.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into() }
    }
}

/// Why a port could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PortError {
    /// The subsystem cannot be reached at all: no display, no bus.
    #[error("{what} is not reachable: {why}")]
    Unavailable {
        /// The subsystem, in words a person knows.
        what: &'static str,
        /// The reason, and what to do about it.
        why: String,
    },
    /// This desktop, toolkit or object cannot do it.
    #[error("{0}")]
    NotSupported(String),
    /// There is no such window, and there was none when we looked first.
    #[error("there is no window {0}")]
    UnknownWindow(WindowId),
    /// The window has been closed.
    #[error("window {0} has been closed")]
    WindowGone(WindowId),
    /// The element no longer exists.
    #[error("the element no longer exists")]
    ElementGone,
    /// The application is not running any more, or never was.
    #[error("no application matches {0}")]
    AppGone(String),
    /// The application did not answer within its bound.
    #[error("{app} does not answer (it was asked for {waiting_for})")]
    AppNotResponding {
        /// The application's name.
        app: String,
        /// What was asked of it.
        waiting_for: String,
    },
    /// The display server did not answer within its bound. Whether the request was carried out is not known.
    #[error("the display server does not answer")]
    DesktopNotResponding,
    /// The display server did not answer while input was on its way to it.
    #[error("the display server does not answer; whether the input was delivered is uncertain")]
    InputUncertain,
    /// The display server has not answered an earlier request yet; nothing more was sent to it.
    #[error("the display server does not answer; nothing was sent to it")]
    DesktopStillSilent,
    /// The display server has ended.
    #[error("the display server has ended")]
    DesktopLost,
    /// Another process owns the desktop; says who and what to do.
    #[error("{0}")]
    InUse(String),
    /// An earlier capture still waits for the display server.
    #[error("an earlier capture still waits for the display server")]
    CaptureBusy,
    /// Pixels could not be had.
    #[error("{0}")]
    CaptureFailed(String),
    /// A key or character that this keyboard cannot produce. Nothing was typed.
    #[error("{0} cannot be typed here")]
    Untypable(String),
    /// A program could not be started.
    #[error("{0}")]
    LaunchFailed(String),
    /// A program did not hand over content that it had offered.
    #[error("{0}")]
    TransferFailed(String),
    /// Content is larger than what was asked for.
    #[error("the content has {size} bytes or more, and at most {limit} are read")]
    TooLarge {
        /// What is known of its size, in bytes.
        size: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// [`Stop`] was asked before anything was delivered.
    #[error("stopped before anything was delivered")]
    Stopped,
    /// An adapter's own fault.
    #[error("{0}")]
    Internal(String),
}
