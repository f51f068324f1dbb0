//! Whether what lies at a point looks as it did when it was recorded. Pure.

use crate::desktop::Pixels;
use crate::geometry::{Point, Rect};

/// Half the side of what is compared, in screen pixels: a button or a line of text, and a little of what is around it.
const REACH: f64 = 24.0;
/// Mean difference, of 255, up to which it is the same thing. Measured: another colour under the pointer is up to 8, the ring that a
/// browser draws around what has the focus up to 20; a button or a line of text that is gone from a white page 23 to 30, another
/// button more.
const MOST: f64 = 22.0;

/// A picture of a part of the screen, and the point in question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    /// The picture, in whatever size.
    pub(crate) pixels: &'p Pixels,
    /// What it shows, in screen pixels.
    pub(crate) frame: Rect,
    /// The point, in screen pixels.
    pub(crate) at: Point,
}

impl Place<'_> {
    /// The pixel of the picture in which the point lies.
    fn pixel(&self) -> (i64, i64) {
        let along = |at: i32, start: i32, shown: u32, size: u32| {
            let into = f64::from(at) - f64::from(start) + 0.5;
            (into * f64::from(size) / f64::from(shown.max(1))).floor() as i64
        };
        (
            along(self.at.x, self.frame.x, self.frame.width, self.pixels.width),
            along(self.at.y, self.frame.y, self.frame.height, self.pixels.height),
        )
    }

    fn colour(&self, x: i64, y: i64) -> Option<[u8; 3]> {
        let inside = |at: i64, size: u32| u32::try_from(at).ok().filter(|at| *at < size);
        let (x, y) = (inside(x, self.pixels.width)?, inside(y, self.pixels.height)?);
        let start = (y as usize * self.pixels.width as usize + x as usize) * 4;
        let pixel = self.pixels.rgba.get(start..start + 3)?;
        Some([pixel[0], pixel[1], pixel[2]])
    }
}

/// Whether the same lies at both points. Both pictures have the same scale.
pub(crate) fn alike(then: &Place<'_>, now: &Place<'_>) -> bool {
    difference(then, now).is_none_or(|difference| difference <= MOST)
}

/// Mean difference around the points, of 255; `None` if one of them is in no picture.
fn difference(then: &Place<'_>, now: &Place<'_>) -> Option<f64> {
    let scale = f64::from(then.pixels.width) / f64::from(then.frame.width.max(1));
    let reach = (REACH * scale).max(4.0);
    let (from, to) = (then.pixel(), now.pixel());
    let (mut sum, mut count) = (0.0, 0.0);
    let side = reach.round() as i64;
    for down in -side..side {
        for across in -side..side {
            let one = then.colour(from.0 + across, from.1 + down);
            let other = now.colour(to.0 + across, to.1 + down);
            if let (Some(one), Some(other)) = (one, other) {
                let apart = one.iter().zip(other).map(|(one, other)| f64::from(one.abs_diff(other)));
                sum += apart.sum::<f64>() / 3.0;
                count += 1.0;
            }
        }
    }
    (count > 0.0).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A light ground with a dark box of 60x24 in it.
    fn picture(left: u32, ground: u8) -> Pixels {
        let (width, height) = (200, 100);
        let mut rgba = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let inside = (left..left + 60).contains(&x) && (40..64).contains(&y);
                let grey = if inside { 40 } else { ground };
                rgba.extend_from_slice(&[grey, grey, grey, 255]);
            }
        }
        Pixels { width, height, rgba }
    }

    #[test]
    fn another_shade_is_the_same_thing_and_another_thing_is_not() {
        let (then, shaded, moved) = (picture(50, 240), picture(50, 225), picture(120, 240));
        let frame = Rect::new(-30, 10, 200, 100);
        let place = |pixels| Place { pixels, frame, at: Point::new(50, 62) };
        assert!(alike(&place(&then), &place(&then)));
        assert!(alike(&place(&then), &place(&shaded)));
        assert!(!alike(&place(&then), &place(&moved)));
        let elsewhere =
            Place { frame: Rect::new(500, 300, 200, 100), at: Point::new(580, 352), ..place(&then) };
        assert!(alike(&place(&then), &elsewhere), "in a window that was moved");
        let outside = Place { at: Point::new(5000, 62), ..place(&then) };
        assert!(alike(&outside, &outside), "of what was not seen nothing can be said");
    }
}
