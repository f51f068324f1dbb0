use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PortError, Stop};
use crate::geometry::Point;

/// A pointer button.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Button {
    /// The main button.
    #[default]
    Left,
    /// The wheel button.
    Middle,
    /// The context-menu button.
    Right,
}

/// A key that changes what others do while it is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Modifier {
    /// Shift.
    Shift,
    /// Control.
    #[serde(alias = "control")]
    Ctrl,
    /// Alt.
    #[serde(alias = "option")]
    Alt,
    /// The Windows, command or super key.
    #[serde(alias = "meta", alias = "cmd", alias = "command", alias = "win")]
    Super,
}

/// A complete click: moves, and presses and releases `count` times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Click {
    /// Where, in screen pixels.
    pub at: Point,
    /// Which button.
    pub button: Button,
    /// How many presses, at a pace that toolkits take for one multiple click.
    pub count: u32,
    /// Held during the click. Others that the user holds are neutralised and put back.
    pub modifiers: Vec<Modifier>,
    /// Time between press and release.
    pub hold: Duration,
    /// Must not be taken for one double click together with a click of ours just before it, at the same place: waits until
    /// toolkits do not.
    pub apart: bool,
}

/// A complete drag: presses at one point, moves to another in a straight line, and lets go there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drag {
    /// Where the button is pressed, in screen pixels.
    pub from: Point,
    /// Where it is released, in screen pixels.
    pub to: Point,
    /// Which button.
    pub button: Button,
    /// Held during the drag. Others that the user holds are neutralised and put back.
    pub modifiers: Vec<Modifier>,
    /// Time that the way takes.
    pub duration: Duration,
}

/// Which part of a content comes into view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// What is above.
    Up,
    /// What is below.
    Down,
    /// What is to the left.
    Left,
    /// What is to the right.
    Right,
}

/// Turns of a wheel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Where the pointer is, in screen pixels.
    pub at: Point,
    /// Which way.
    pub direction: Direction,
    /// How many notches.
    pub notches: u32,
    /// Held meanwhile. Others that the user holds are neutralised and put back.
    pub modifiers: Vec<Modifier>,
    /// Must turn what lies here, not what a turn of ours just before it has begun to scroll elsewhere: waits until browsers let
    /// go of that.
    pub apart: bool,
}

/// One key, named as X keysyms are (`Return`, `Page_Down`, `F5`, `a`, `eacute`), or a single character.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key(pub String);

/// A key with the modifiers that are held around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chord {
    /// Pressed in this order, released in reverse.
    pub modifiers: Vec<Modifier>,
    /// The key itself; `None` presses the modifiers alone.
    pub key: Option<Key>,
}

/// Counts the units of an input operation as they are delivered, for whoever watches it meanwhile. All clones are one count.
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<AtomicUsize>);

impl Tally {
    /// `done` units have been delivered so far.
    pub fn reach(&self, done: usize) {
        self.0.store(done, Ordering::Relaxed);
    }

    /// Units delivered so far.
    pub fn done(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// How far an input operation got before it ended or was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivered {
    /// Complete units (characters, presses) that were delivered; none if it was stopped in the middle of the first.
    pub done: usize,
    /// Units that were asked for.
    pub total: usize,
}

impl Delivered {
    /// Whether everything was delivered.
    pub const fn complete(&self) -> bool {
        self.done == self.total
    }
}

/// The pointer of the seat.
#[async_trait]
pub trait Pointer: Send + Sync {
    /// Where the pointer is, in screen pixels.
    ///
    /// # Errors
    /// `Unavailable`, `DesktopLost`, `DesktopNotResponding`.
    async fn position(&self) -> Result<Point, PortError>;

    /// Moves the pointer; real motion events, nothing pressed.
    ///
    /// # Errors
    /// As [`Pointer::position`].
    async fn move_to(&self, to: Point) -> Result<(), PortError>;

    /// Clicks. Stops only between complete presses; nothing stays pressed whatever happens.
    ///
    /// # Errors
    /// `Stopped` (nothing delivered), and those of [`Pointer::position`].
    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError>;

    /// Drags; the units of the answer are moves. One that is stopped on its way goes back to where it began and lets go
    /// there; nothing stays pressed whatever happens.
    ///
    /// # Errors
    /// `Stopped` (nothing was pressed), and those of [`Pointer::position`].
    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError>;

    /// Turns the wheel; the units of the answer are notches.
    ///
    /// # Errors
    /// `Stopped` (nothing delivered), and those of [`Pointer::position`].
    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError>;
}

/// The keyboard of the seat.
#[async_trait]
pub trait Keyboard: Send + Sync {
    /// Types `text` exactly, whatever the layout, group, locks or held modifiers; newline is Return and tab is Tab. Waits
    /// `delay` after each character. Stops only between complete characters. `typed` counts them as they go out.
    ///
    /// # Errors
    /// `Untypable` names the first character that cannot be typed (nothing was typed then), `Stopped`, and those of
    /// [`Pointer::position`].
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError>;

    /// Checks that `text` can be typed, and types nothing.
    ///
    /// # Errors
    /// `Untypable` names the first character that cannot be typed, and those of [`Pointer::position`].
    async fn require_typable(&self, text: &str) -> Result<(), PortError>;

    /// Presses `chord` `repeat` times, each held for `hold`. Stops between presses and lets go at once in the middle of a hold,
    /// which is then no complete press.
    ///
    /// # Errors
    /// `Untypable` for a key name that is not known or not on this keyboard, `Stopped`, and those of
    /// [`Pointer::position`].
    async fn press(
        &self,
        chord: &Chord,
        repeat: u32,
        hold: Duration,
        stop: &Stop,
    ) -> Result<Delivered, PortError>;
}
