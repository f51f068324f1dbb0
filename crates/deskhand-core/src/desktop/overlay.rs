use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::Pixels;
use crate::geometry::{Point, Rect};

/// A colour, opaque.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour {
    /// Red, 0 to 255.
    pub red: u8,
    /// Green, 0 to 255.
    pub green: u8,
    /// Blue, 0 to 255.
    pub blue: u8,
}

impl Colour {
    /// A colour from `0xRRGGBB`.
    pub const fn new(rgb: u32) -> Self {
        let [_, red, green, blue] = rgb.to_be_bytes();
        Self { red, green, blue }
    }
}

impl std::fmt::Display for Colour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.red, self.green, self.blue)
    }
}

impl FromStr for Colour {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6);
        digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .map(Self::new)
            .ok_or_else(|| "is no colour; expected \"#RRGGBB\"".to_owned())
    }
}

/// What a person sees of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCursor {
    /// Tells the cursors of a desktop apart.
    pub id: Arc<str>,
    /// Stands beside the cursor; one line.
    pub label: String,
    /// Fills the cursor and the ground of its label.
    pub colour: Colour,
    /// Height of the arrow in logical pixels: what a display's scale multiplies.
    pub size: u32,
    /// How long it may take to glide to another point; zero: it jumps.
    pub glide: Duration,
    /// How long it stays after the last act.
    pub linger: Duration,
}

/// What an agent does, and where, in screen pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It presses a button, or activates what is there.
    Press(Point),
    /// It points there, and presses nothing.
    Point(Point),
    /// It holds a button on the way from one point to another.
    Drag {
        /// Where the way begins.
        from: Point,
        /// Where it ends.
        to: Point,
        /// How long it takes.
        duration: Duration,
    },
    /// It uses the keyboard: a cursor that is shown stays where it is.
    Keys,
}

/// What the preview shows at a moment.
#[derive(Clone, Debug)]
pub struct PreviewFrame {
    /// The window that an agent acts on, as large as it is to be shown.
    pub pixels: Pixels,
    /// Who does what there; one line, which is cut where there is no room for it.
    pub caption: String,
    /// The agent's colour.
    pub colour: Colour,
    /// The display that it is shown on, in screen pixels.
    pub display: Rect,
    /// That display's scale.
    pub scale: f64,
    /// Places that it should not lie over, in screen pixels.
    pub keep_clear: Vec<Point>,
    /// Where the window itself is on the screen, to be covered as little as may be.
    pub window: Option<Rect>,
}

/// Shows people what agents do.
///
/// Nothing that it shows takes part in the desktop: it is in no list of windows and under no hit test, takes no input and
/// no focus, and is in no picture but those that ask for agent cursors. What it needs (windows, a thread, a connection) exists only
/// while something is shown.
pub trait Overlay: Send + Sync {
    /// Shows what the agent does. Returns at once: drawing goes on by itself, and where it fails nothing is shown. Within
    /// a Tokio runtime.
    fn show(&self, cursor: &AgentCursor, act: Act);

    /// Takes the cursor called `id` away, if it is shown. Returns at once.
    fn remove(&self, id: &str);

    /// Whether the cursor called `id` is on the screen now.
    fn is_shown(&self, id: &str) -> bool;

    /// Shows this in the preview, a small window in a corner; `None` closes it. Returns at once, as [`Overlay::show`] does.
    fn preview(&self, frame: Option<PreviewFrame>);
}

#[cfg(test)]
mod tests {
    use super::Colour;

    #[test]
    fn a_colour_is_read_as_it_is_written() {
        for text in ["#0a84ff", "#000000", "#ffffff"] {
            assert_eq!(text.parse::<Colour>().unwrap().to_string(), text);
        }
        for wrong in ["", "red", "#12345", "#1234567", "0a84ff", "#+12345", "#ééé"] {
            assert!(wrong.parse::<Colour>().is_err(), "{wrong}");
        }
    }
}
