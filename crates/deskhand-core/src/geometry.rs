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

    /// The pixel in which a place of the screen lies. What is no number, or beyond all displays, ends at the limits.
    pub fn from_screen(x: f64, y: f64) -> Self {
        Self { x: x.floor() as i32, y: y.floor() as i32 }
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

    /// The screen pixel at `x`, `y` of a window whose visible frame this is.
    pub fn window_to_screen(&self, x: f64, y: f64) -> Point {
        Point::from_screen(f64::from(self.x) + x, f64::from(self.y) + y)
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

/// Which part of the screen a picture shows, and its own size: all that converts points between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PictureFrame {
    /// What it shows, in screen pixels.
    pub screen: Rect,
    /// Its width in image pixels.
    pub width: u32,
    /// Its height in image pixels.
    pub height: u32,
}

impl PictureFrame {
    /// Screen pixels for one image pixel, horizontally and vertically.
    pub fn scale(&self) -> (f64, f64) {
        (
            f64::from(self.screen.width) / f64::from(self.width.max(1)),
            f64::from(self.screen.height) / f64::from(self.height.max(1)),
        )
    }

    /// The image pixels that show `rect` of the screen, as far as the picture does.
    pub fn from_screen(&self, rect: &Rect) -> Option<Rect> {
        let rect = rect.intersection(&self.screen)?;
        let (across, down) = self.scale();
        let span = |start: i64, end: i64, origin: i32, scale: f64, size: u32| {
            let at = |place: i64| (place - i64::from(origin)) as f64 / scale;
            let first = (at(start).floor() as u32).min(size.saturating_sub(1));
            (first, (at(end).ceil() as u32).clamp(first + 1, size.max(first + 1)))
        };
        let (left, right) = span(rect.x.into(), rect.right(), self.screen.x, across, self.width);
        let (top, bottom) = span(rect.y.into(), rect.bottom(), self.screen.y, down, self.height);
        let corner = |place: u32| i32::try_from(place).unwrap_or(i32::MAX);
        Some(Rect::new(corner(left), corner(top), right - left, bottom - top))
    }

    /// The part of the screen that is shown from `x`, `y`, `width` x `height` image pixels large. Parts of pixels count as
    /// whole ones; what lies outside of the picture is left out. `None` if all of it does.
    pub fn area_to_screen(&self, x: f64, y: f64, width: f64, height: f64) -> Option<Rect> {
        let (across, down) = self.scale();
        let span = |start: f64, length: f64, scale: f64, size: u32| {
            let first = (start * scale).floor().clamp(0.0, size.into()) as u32;
            let last = ((start + length) * scale).ceil().clamp(0.0, size.into()) as u32;
            (last > first).then(|| (first, last - first))
        };
        let (left, width) = span(x, width, across, self.screen.width)?;
        let (top, height) = span(y, height, down, self.screen.height)?;
        let (x, y) =
            (self.screen.x.saturating_add_unsigned(left), self.screen.y.saturating_add_unsigned(top));
        Some(Rect { x, y, width, height })
    }

    /// The screen pixel under the middle of the image pixel at `x`, `y`; `None` outside of the picture.
    pub fn to_screen(&self, x: f64, y: f64) -> Option<Point> {
        let inside = (0.0..f64::from(self.width)).contains(&x) && (0.0..f64::from(self.height)).contains(&y);
        let (across, down) = self.scale();
        let place = |at: f64, scale: f64, start: i32, size: u32| {
            // Whole numbers name a pixel, so its middle is meant; fractions name the place itself.
            let middle = if at.fract() == 0.0 { at + 0.5 } else { at };
            let offset = ((middle * scale).floor() as u32).min(size.saturating_sub(1));
            start.saturating_add_unsigned(offset)
        };
        inside.then(|| {
            Point::new(
                place(x, across, self.screen.x, self.screen.width),
                place(y, down, self.screen.y, self.screen.height),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scaled_pixel_lands_inside_the_screen_pixels_that_it_shows() {
        for scale in [1.0, 1.25, 1.5, 2.0] {
            let screen = Rect::new(-300, -200, 1000, 700);
            let (width, height) = ((1000.0 / scale) as u32, (700.0 / scale) as u32);
            let frame = PictureFrame { screen, width, height };
            let (across, down) = frame.scale();
            for (x, y) in [(0, 0), (width - 1, height - 1), (width / 2, height / 3)] {
                let point = frame.to_screen(f64::from(x), f64::from(y)).unwrap();
                let exact = (-300.0 + (f64::from(x) + 0.5) * across, -200.0 + (f64::from(y) + 0.5) * down);
                assert!((f64::from(point.x) - exact.0).abs() <= 1.0, "{scale} {point:?} {exact:?}");
                assert!((f64::from(point.y) - exact.1).abs() <= 1.0, "{scale} {point:?} {exact:?}");
                assert!(screen.contains(point));
            }
            assert_eq!(frame.to_screen(f64::from(width), 0.0), None);
            assert_eq!(frame.to_screen(-1.0, 0.0), None);
            assert_eq!(frame.to_screen(f64::NAN, 0.0), None);
        }
    }

    #[test]
    fn areas_of_a_picture_and_of_the_screen_are_each_others() {
        let frame = PictureFrame { screen: Rect::new(-300, -200, 1000, 700), width: 500, height: 350 };
        let area = frame.area_to_screen(10.0, 20.0, 30.0, 40.5).unwrap();
        assert_eq!(area, Rect::new(-280, -160, 60, 81));
        assert_eq!(frame.from_screen(&area), Some(Rect::new(10, 20, 30, 41)));
        assert_eq!(frame.area_to_screen(490.0, 0.0, 100.0, 10.0), Some(Rect::new(680, -200, 20, 20)));
        assert_eq!(frame.area_to_screen(500.0, 0.0, 10.0, 10.0), None);
        assert_eq!(frame.area_to_screen(f64::NAN, 0.0, 10.0, 10.0), None);
        assert_eq!(frame.from_screen(&Rect::new(-301, 0, 1, 1)), None);
        let tiny = PictureFrame { screen: Rect::new(0, 0, 1000, 1000), width: 10, height: 10 };
        assert_eq!(tiny.from_screen(&Rect::new(999, 999, 1, 1)), Some(Rect::new(9, 9, 1, 1)));
    }

    #[test]
    fn window_points_are_relative_to_the_visible_frame_wherever_it_lies() {
        let frame = Rect::new(-300, 40, 200, 100);
        assert_eq!(frame.window_to_screen(0.0, 0.0), Point::new(-300, 40));
        assert_eq!(frame.window_to_screen(10.9, 99.5), Point::new(-290, 139));
    }

    #[test]
    fn rectangles_meet_and_join_across_the_origin() {
        let (left, right) = (Rect::new(-100, 0, 150, 50), Rect::new(0, -20, 80, 40));
        assert_eq!(left.intersection(&right), Some(Rect::new(0, 0, 50, 20)));
        assert_eq!(left.union(&right), Rect::new(-100, -20, 180, 70));
        assert_eq!(left.intersection(&Rect::new(50, 0, 10, 10)), None);
        assert!(left.contains(Point::new(49, 49)) && !left.contains(Point::new(50, 49)));
        let huge = Rect::new(i32::MIN, i32::MIN, u32::MAX, u32::MAX);
        assert_eq!(huge.union(&huge), huge);
    }
}
