//! Frames of elements: what a toolkit says, and where that is on the screen.

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, Window};
use deskhand_core::geometry::Rect;

use super::app::{App, Failure, Toolkit};
use super::bus::Bus;

/// AT-SPI's number of screen coordinates.
pub(super) const SCREEN: u32 = 0;
/// AT-SPI's number of window coordinates.
pub(super) const WINDOW: u32 = 1;

/// Device pixels for one logical pixel, as desktops offer them.
const SCALES: [f64; 7] = [1.0, 1.25, 1.5, 1.75, 2.0, 3.0, 4.0];
/// Pixels by which a frame may differ from the window that it is the frame of.
const TOLERANCE: f64 = 2.0;

/// Asks for the extents of `id`. `None` where it gives none that mean anything.
pub(super) async fn ask(
    bus: &Bus,
    app: &App,
    id: &ElementId,
    space: u32,
    until: Instant,
) -> Result<Option<Rect>, Failure> {
    let interface = "org.a11y.atspi.Component";
    let answer = app
        .ask_for::<((i32, i32, i32, i32),), _>(bus, &id.object, interface, "GetExtents", &(space,), until)
        .await;
    match answer {
        Ok(((x, y, width, height),)) => Ok(usable(x, y, width, height)),
        Err(Failure::Object(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Extents that mean something: GTK gives `INT_MIN` for what is not realised, others −1 or nothing.
fn usable(x: i32, y: i32, width: i32, height: i32) -> Option<Rect> {
    let nowhere = x == i32::MIN || y == i32::MIN || (x == -1 && y == -1 && width <= 1 && height <= 1);
    match (u32::try_from(width), u32::try_from(height)) {
        (Ok(width), Ok(height)) if !nowhere && width > 0 && height > 0 => Some(Rect { x, y, width, height }),
        _ => None,
    }
}

/// How the extents of one window's elements become screen pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Space {
    /// AT-SPI's number of the coordinates to ask for.
    pub kind: u32,
    /// Screen place of their origin.
    origin: (i32, i32),
    /// Device pixels for one of theirs.
    scale: f64,
}

impl Space {
    /// For the elements of `window`, whose frame object says that it has the extents `frame` (screen coordinates).
    pub(super) fn of(toolkit: Toolkit, window: &Window, frame: Option<Rect>) -> Self {
        let scale = frame.map_or(1.0, |frame| scale(&frame, window));
        if toolkit.extents_start_at_window() {
            Self { kind: WINDOW, origin: (window.client.x, window.client.y), scale }
        } else {
            Self { kind: SCREEN, origin: (0, 0), scale }
        }
    }

    /// Screen pixels of `rect`.
    pub(super) fn to_screen(self, rect: Rect) -> Rect {
        let scaled = |value: i32| (f64::from(value) * self.scale).round() as i32; // saturates
        let (left, top) = (scaled(rect.x), scaled(rect.y));
        let size = |value: u32| (f64::from(value) * self.scale).round() as u32;
        Rect {
            x: left.saturating_add(self.origin.0),
            y: top.saturating_add(self.origin.1),
            width: size(rect.width),
            height: size(rect.height),
        }
    }

    /// The toolkit's coordinates of a screen point.
    pub(super) fn from_screen(self, x: i32, y: i32) -> (i32, i32) {
        let unscaled =
            |value: i32, origin: i32| (f64::from(value.saturating_sub(origin)) / self.scale).floor() as i32;
        (unscaled(x, self.origin.0), unscaled(y, self.origin.1))
    }
}

/// Device pixels for one pixel of `frame`, which is the frame of `window` with or without its borders.
fn scale(frame: &Rect, window: &Window) -> f64 {
    let fits = |scale: f64, area: &Rect| {
        let near = |logical: u32, device: u32| {
            (f64::from(logical) * scale - f64::from(device)).abs() <= TOLERANCE * scale
        };
        near(frame.width, area.width) && near(frame.height, area.height)
    };
    SCALES
        .into_iter()
        .find(|scale| fits(*scale, &window.client) || fits(*scale, &window.frame))
        .unwrap_or(1.0)
}
