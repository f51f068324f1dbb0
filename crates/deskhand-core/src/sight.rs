//! What a window looks like, to be compared with what it looks like later: evidence where an application tells nothing.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::desktop::{Capture, CaptureTarget, Direction, WindowId};
use crate::engine::Context;
use crate::geometry::Rect;

/// So many lines must be found again for a picture to count as moved: fewer are alike by chance.
const LEAST_LINES: usize = 20;

/// So many of all lines must be found again. The others are bars and headings that stand still.
const LEAST_SHARE: f64 = 0.6;

/// A picture is compared in so many strips.
const STRIPS: u32 = 8;

/// One look at a window.
#[derive(Debug)]
pub(crate) struct Sight(Capture);

impl Sight {
    /// Looks at a window. `None` if it cannot be seen now: evidence is nothing that an action fails for want of.
    pub(crate) async fn of(context: &Context, window: WindowId) -> Option<Self> {
        let target = CaptureTarget::Window(window);
        context.capture(target).await.ok().map(Self)
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

    /// By how many pixels what `region` shows has moved against `direction`, the way that content goes when it is scrolled.
    /// `None` if that cannot be told.
    pub(crate) fn scrolled(&self, now: &Self, region: &Rect, direction: Direction) -> Option<i64> {
        if self.0.frame != now.0.frame {
            return None;
        }
        let across = matches!(direction, Direction::Left | Direction::Right);
        let mut scores = HashMap::new();
        for strip in strips(region, across) {
            score(&self.lines(&strip, across)?, &now.lines(&strip, across)?, &mut scores);
        }
        let found = scores.into_iter().filter(|(_, Score { alike, .. })| *alike >= LEAST_LINES);
        let (shift, score) = found.max_by(|(a, one), (b, other)| {
            one.share().total_cmp(&other.share()).then(b.abs().cmp(&a.abs()))
        })?;
        let forwards = matches!(direction, Direction::Down | Direction::Right);
        (score.share() >= LEAST_SHARE).then_some(if forwards { -shift } else { shift })
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

    /// A number for each row or column of `region`; `None` for one of a single colour, which is everywhere.
    fn lines(&self, region: &Rect, across: bool) -> Option<Vec<Option<u64>>> {
        let rows: Vec<&[u8]> = self.rows(region)?.collect();
        let number = |line: &mut dyn Iterator<Item = &[u8]>| {
            let mut hasher = DefaultHasher::new();
            let mut first = None;
            let mut plain = true;
            for pixel in line {
                plain &= *first.get_or_insert(pixel) == pixel;
                pixel.hash(&mut hasher);
            }
            (!plain).then(|| hasher.finish())
        };
        if !across {
            return Some(rows.iter().map(|row| number(&mut row.chunks_exact(4))).collect());
        }
        let columns = rows.first().map_or(0, |row| row.len() / 4);
        let column = |at: usize| number(&mut rows.iter().filter_map(|row| row.get(at * 4..at * 4 + 4)));
        Some((0..columns).map(column).collect())
    }
}

/// `region` in parts, side by side: what stands still in one, as a scroll bar does, does not hide what moves in the others.
fn strips(region: &Rect, across: bool) -> Vec<Rect> {
    let length = if across { region.height } else { region.width };
    let part = length.div_ceil(STRIPS).max(1);
    let starts = (0..length).step_by(part as usize);
    let strip = |start: u32| {
        let size = part.min(length - start);
        if across {
            Rect { y: region.y.saturating_add_unsigned(start), height: size, ..*region }
        } else {
            Rect { x: region.x.saturating_add_unsigned(start), width: size, ..*region }
        }
    };
    starts.map(strip).collect()
}

/// How well two pictures fit that are laid over each other.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    alike: usize,
    unlike: usize,
}

impl Score {
    fn share(self) -> f64 {
        self.alike as f64 / (self.alike + self.unlike).max(1) as f64
    }
}

/// Counts for each shift how many lines are alike, and how many are not. Lines of a single colour say nothing.
fn score(before: &[Option<u64>], after: &[Option<u64>], scores: &mut HashMap<i64, Score>) {
    let length = i64::try_from(before.len().min(after.len())).unwrap_or(0);
    for shift in 1 - length..length {
        let (old, new) = if shift < 0 { (-shift, 0) } else { (0, shift) };
        let old = before.get(usize::try_from(old).unwrap_or(0)..).unwrap_or_default();
        let new = after.get(usize::try_from(new).unwrap_or(0)..).unwrap_or_default();
        let score = scores.entry(shift).or_default();
        for (one, other) in old.iter().zip(new) {
            match (one, other) {
                (None, None) => {}
                (one, other) if one == other => score.alike += 1,
                _ => score.unlike += 1,
            }
        }
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

    fn pattern(x: u32, y: u32) -> u8 {
        (x.wrapping_mul(7) ^ y.wrapping_mul(y).wrapping_mul(13)) as u8
    }

    #[test]
    fn changed_pixels_are_counted_in_the_region_alone() {
        let before = sight(20, 20, |_, _| 1);
        let after = sight(20, 20, |x, y| if x < 2 && y < 3 { 9 } else { 1 });
        assert_eq!(before.changed(&after, &Rect::new(10, 20, 20, 20)), Some(6));
        assert_eq!(before.changed(&after, &Rect::new(11, 20, 20, 1)), Some(1));
        assert_eq!(before.changed(&sight(19, 20, |_, _| 1), &Rect::new(10, 20, 20, 20)), None);
    }

    #[test]
    fn what_was_scrolled_is_found_again() {
        let region = Rect::new(10, 20, 40, 60);
        let before = sight(40, 60, pattern);
        let down = sight(40, 60, |x, y| pattern(x, y + 15));
        assert_eq!(before.scrolled(&down, &region, Direction::Down), Some(15));
        assert_eq!(down.scrolled(&before, &region, Direction::Up), Some(15));
        assert_eq!(before.scrolled(&before, &region, Direction::Down), Some(0));
        let flat = sight(40, 60, |_, _| 3);
        assert_eq!(flat.scrolled(&flat, &region, Direction::Down), None);
        let right = sight(40, 60, |x, y| pattern(y, x + 9));
        let left = sight(40, 60, |x, y| pattern(y, x));
        assert_eq!(left.scrolled(&right, &region, Direction::Right), Some(9));
    }
}
