use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::DropGuard;

use super::{PortError, Stop, WindowId};
use crate::error::Error;
use crate::geometry::Rect;

/// One monitor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Display {
    /// Names the display in other tools: its place in the list, from 0.
    pub display: u32,
    /// Connector or output name.
    pub name: String,
    /// Where it lies, in screen pixels.
    pub frame: Rect,
    /// Device pixels for one logical pixel of its user interface.
    pub scale: f64,
    /// Whether panels and new windows go there.
    pub primary: bool,
}

impl Display {
    /// The display with number `wanted`, else the primary one.
    ///
    /// # Errors
    /// `invalid_argument` if there is none with that number.
    pub(crate) fn choose(displays: &[Self], wanted: Option<u32>) -> Result<&Self, Error> {
        let chosen = match wanted {
            Some(number) => displays.iter().find(|display| display.display == number),
            None => displays.iter().find(|display| display.primary).or_else(|| displays.first()),
        };
        let count = displays.len();
        let there = match count {
            1 => "there is 1 display, with number 0".to_owned(),
            _ => format!("there are {count} displays, numbered from 0"),
        };
        chosen.ok_or_else(|| Error::argument("display", there))
    }
}

/// What to take a picture of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureTarget {
    /// A part of the desktop as a person sees it, in screen pixels.
    Region(Rect),
    /// A window alone, without what covers it, with its own popups merged in.
    Window(WindowId),
}

/// A picture that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// What it shows.
    pub target: CaptureTarget,
    /// Whether agent cursors are in it; otherwise it shows what lies below them.
    pub agent_cursors: bool,
}

/// Without agent cursors.
impl From<CaptureTarget> for CaptureRequest {
    fn from(target: CaptureTarget) -> Self {
        Self { target, agent_cursors: false }
    }
}

/// Pixels of a [`CaptureTarget`].
#[derive(Clone, Debug)]
pub struct Capture {
    /// The pixels.
    pub pixels: Pixels,
    /// Which part of the screen they show. For a window: its visible frame, grown by its popups, cut at the edge of
    /// the desktop where that could not be had.
    pub frame: Rect,
    /// The window may not have repainted yet: pixels of what covered it may be left.
    pub stale: bool,
}

/// 8-bit RGBA, straight alpha, rows without padding.
#[derive(Clone)]
pub struct Pixels {
    /// Columns.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// `width * height * 4` bytes.
    pub rgba: Vec<u8>,
}

impl std::fmt::Debug for Pixels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pixels({}x{})", self.width, self.height)
    }
}

/// Displays and their pixels.
#[async_trait]
pub trait Screen: Send + Sync {
    /// The monitors, in a stable order; there is at least one.
    ///
    /// # Errors
    /// `Unavailable`, `DesktopLost`, `DesktopNotResponding`.
    async fn displays(&self) -> Result<Vec<Display>, PortError>;

    /// Whether a picture can be taken now: an earlier one that still waits for the display server keeps the slot.
    ///
    /// # Errors
    /// `CaptureBusy`, and those of [`Screen::displays`].
    async fn ready(&self) -> Result<(), PortError>;

    /// Takes a picture. Never changes focus, stacking or pointer. Has one slot: see document 04 of the specification.
    ///
    /// # Errors
    /// `CaptureBusy`, `CaptureFailed` (a minimised window, with the reason), `WindowGone`, and those of
    /// [`Screen::displays`].
    async fn capture(&self, request: CaptureRequest, stop: &Stop) -> Result<Capture, PortError>;

    /// The same for whoever waits to do something until it is done: `hold` is dropped once nothing that happens on the
    /// desktop changes the picture any more, or it has failed; that may be well before the answer.
    ///
    /// # Errors
    /// As [`Screen::capture`].
    async fn capture_holding(
        &self,
        request: CaptureRequest,
        hold: DropGuard,
        stop: &Stop,
    ) -> Result<Capture, PortError> {
        let _hold = hold;
        self.capture(request, stop).await
    }
}
