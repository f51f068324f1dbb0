//! Points and rectangles, and the one place where coordinates change their space.
//!
//! Three spaces exist. *Screen*: device pixels of the whole desktop, origin top left; a display may lie left of
//! or above the origin, so coordinates may be negative. *Window*: device pixels relative to the window's visible
//! frame (client-side shadows cut off). *Image*: pixels of the picture that the caller was given.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A point in the space that its context names; screen space unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Pixels to the right of the origin.
    pub x: i32,
    /// Pixels below the origin.
    pub y: i32,
}

impl Point {
    /// A point from its coordinates.
    pub const fn new(x: i32, y: i32) -> Self {
        Self { x, y }
    }
}

/// A rectangle in the space that its context names; screen space unless said otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Rect {
    /// Left edge.
    pub x: i32,
    /// Top edge.
    pub y: i32,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl Rect {
    /// A rectangle from its top left corner and its size.
    pub const fn new(x: i32, y: i32, width: u32, height: u32) -> Self {
        Self { x, y, width, height }
    }

    /// The first column to the right of the rectangle.
    pub fn right(&self) -> i64 {
        i64::from(self.x) + i64::from(self.width)
    }

    /// The first row below the rectangle.
    pub fn bottom(&self) -> i64 {
        i64::from(self.y) + i64::from(self.height)
    }

    /// Whether the rectangle covers no pixel.
    pub const fn is_empty(&self) -> bool {
        self.width == 0 || self.height == 0
    }

    /// Whether the pixel at `point` lies inside.
    pub fn contains(&self, point: Point) -> bool {
        point.x >= self.x
            && point.y >= self.y
            && i64::from(point.x) < self.right()
            && i64::from(point.y) < self.bottom()
    }

    /// The pixel in the middle (of an empty rectangle: its corner).
    pub fn center(&self) -> Point {
        Point::new(
            self.x.saturating_add_unsigned(self.width / 2),
            self.y.saturating_add_unsigned(self.height / 2),
        )
    }

    /// The part that both rectangles cover, if any.
    pub fn intersection(&self, other: &Rect) -> Option<Rect> {
        let (x, y) = (self.x.max(other.x), self.y.max(other.y));
        let width = self.right().min(other.right()) - i64::from(x);
        let height = self.bottom().min(other.bottom()) - i64::from(y);
        match (u32::try_from(width), u32::try_from(height)) {
            (Ok(width), Ok(height)) if width > 0 && height > 0 => Some(Rect { x, y, width, height }),
            _ => None,
        }
    }

    /// The smallest rectangle that covers both.
    pub fn union(&self, other: &Rect) -> Rect {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        let extent = |end: i64, start: i32| u32::try_from(end - i64::from(start)).unwrap_or(u32::MAX);
        Rect {
            x,
            y,
            width: extent(self.right().max(other.right()), x),
            height: extent(self.bottom().max(other.bottom()), y),
        }
    }
}

impl std::fmt::Display for Rect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{} at {},{}", self.width, self.height, self.x, self.y)
    }
}
