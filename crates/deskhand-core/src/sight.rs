//! What a window looks like, to be compared with what it looks like later: evidence where an application tells nothing.

use crate::desktop::{Capture, CaptureTarget, WindowId};
use crate::engine::Context;
use crate::geometry::Rect;

/// One look at a window.
#[derive(Debug)]
pub(crate) struct Sight(Capture);

impl Sight {
    /// Looks at a window. `None` if it cannot be seen now: evidence is nothing that an action fails for want of.
    pub(crate) async fn of(context: &Context, window: WindowId) -> Option<Self> {
        let target = CaptureTarget::Window(window);
        context.desktop().screen.capture(target, context.stop()).await.ok().map(Self)
    }

    /// How many pixels of `region` (screen) are others now. `None` if the looks do not show the same part of the screen.
    pub(crate) fn changed(&self, now: &Self, region: &Rect) -> Option<usize> {
        if self.0.frame != now.0.frame {
            return None;
        }
        let rows = self.rows(region)?.zip(now.rows(region)?);
        let differ = |(before, after): (&[u8], &[u8])| {
            before.chunks_exact(4).zip(after.chunks_exact(4)).filter(|(a, b)| a != b).count()
        };
        Some(rows.map(differ).sum())
    }

    /// The pixels of `region`, row by row.
    fn rows(&self, region: &Rect) -> Option<impl Iterator<Item = &[u8]>> {
        let Capture { pixels, frame, .. } = &self.0;
        let part = frame.intersection(region)?;
        let offset = |at: i32, start: i32| usize::try_from(i64::from(at) - i64::from(start)).unwrap_or(0);
        let (left, top) = (offset(part.x, frame.x), offset(part.y, frame.y));
        let (width, height) = (part.width as usize, part.height as usize);
        let stride = pixels.width as usize * 4;
        Some((top..top + height).filter_map(move |row| {
            let start = row * stride + left * 4;
            pixels.rgba.get(start..start + width * 4)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::Pixels;

    /// A picture whose pixel at each place is `colour(x, y)`.
    fn sight(width: u32, height: u32, colour: impl Fn(u32, u32) -> u8) -> Sight {
        let shades = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let rgba = shades.flat_map(|(x, y)| [colour(x, y), 0, 0, 255]).collect();
        let frame = Rect::new(10, 20, width, height);
        Sight(Capture { pixels: Pixels { width, height, rgba }, frame, stale: false })
    }

    #[test]
    fn changed_pixels_are_counted_in_the_region_alone() {
        let before = sight(20, 20, |_, _| 1);
        let after = sight(20, 20, |x, y| if x < 2 && y < 3 { 9 } else { 1 });
        assert_eq!(before.changed(&after, &Rect::new(10, 20, 20, 20)), Some(6));
        assert_eq!(before.changed(&after, &Rect::new(11, 20, 20, 1)), Some(1));
        assert_eq!(before.changed(&sight(19, 20, |_, _| 1), &Rect::new(10, 20, 20, 20)), None);
    }
}
