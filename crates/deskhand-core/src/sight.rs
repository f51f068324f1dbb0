//! What a window looks like, to be compared with what it looks like later: evidence where an application tells nothing.

use std::hash::{DefaultHasher, Hasher};

use crate::desktop::{Capture, CaptureTarget, Direction, WindowId};
use crate::engine::Context;
use crate::geometry::Rect;

/// So many lines must be found again for a picture to count as moved: fewer are alike by chance.
const LEAST_LINES: usize = 20;

/// So many of all lines must be found again. The others are bars and headings that stand still.
const LEAST_SHARE: f64 = 0.6;

/// The distance that fits best must fit so much better than every other: rows of a list look alike.
const LEAST_LEAD: f64 = 0.05;

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
            if before == after {
                return 0;
            }
            before.chunks_exact(4).zip(after.chunks_exact(4)).filter(|(a, b)| a != b).count()
        };
        Some(rows.map(differ).sum())
    }

    /// What can be said of how the content of `region` (screen) has moved along `direction`. `None` if the looks do not show
    /// the same part of the screen.
    pub(crate) fn motion(&self, now: &Self, region: &Rect, direction: Direction) -> Option<Motion> {
        if self.0.frame != now.0.frame {
            return None;
        }
        let across = matches!(direction, Direction::Left | Direction::Right);
        let lines = |strip: &Rect| Some((self.lines(strip, across)?, now.lines(strip, across)?));
        let strips = strips(region, across).iter().map(lines).collect::<Option<_>>()?;
        Some(Motion { strips, forwards: matches!(direction, Direction::Down | Direction::Right) })
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
        if !across {
            return Some(rows.into_iter().map(number).collect());
        }
        let columns = rows.first().map_or(0, |row| row.len() / 4);
        let column = |at: usize| -> Vec<u8> {
            rows.iter().filter_map(|row| row.get(at * 4..at * 4 + 4)).flatten().copied().collect()
        };
        Some((0..columns).map(|at| number(&column(at))).collect())
    }
}

/// A number for the pixels of a line. `None`: they are all of one colour.
fn number(line: &[u8]) -> Option<u64> {
    let is_plain = line.len() < 8 || line[4..] == line[..line.len() - 4];
    let mut hasher = DefaultHasher::new();
    // All at once: pixel by pixel takes a hundred times as long.
    hasher.write(line);
    (!is_plain).then(|| hasher.finish())
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

/// Lines of one strip, as numbers.
type Lines = Vec<Option<u64>>;

/// Two looks at the same place, to be laid over each other.
#[derive(Debug)]
pub(crate) struct Motion {
    /// Lines of each strip, before and now.
    strips: Vec<(Lines, Lines)>,
    forwards: bool,
}

impl Motion {
    fn length(&self) -> i64 {
        self.strips.first().map_or(0, |(before, _)| i64::try_from(before.len()).unwrap_or(0))
    }

    fn fit(&self, pixels: i64) -> Option<f64> {
        // Content goes the other way when it is scrolled.
        let shift = if self.forwards { -pixels } else { pixels };
        let mut score = Score::default();
        for (before, now) in &self.strips {
            score.add(before, now, shift);
        }
        (score.alike + score.unlike >= LEAST_LINES).then(|| score.share())
    }

    /// The share of lines that are found again where they are if the content was scrolled by `pixels`. `None`: too little
    /// of it is still seen to tell.
    pub(crate) fn share(&self, pixels: i64) -> Option<f64> {
        let is_much = pixels.abs() <= self.length() / 4 * 3;
        if is_much { self.fit(pixels) } else { None }
    }

    /// Whether the content was scrolled by `pixels`, as far as the picture tells.
    pub(crate) fn agrees(&self, pixels: i64) -> Option<bool> {
        self.share(pixels).map(|share| share >= LEAST_SHARE)
    }

    /// By how many pixels it was scrolled. `None` if that cannot be told: lines that repeat fit at many places.
    pub(crate) fn distance(&self) -> Option<i64> {
        let shares = (0..self.length()).filter_map(|pixels| Some((pixels, self.fit(pixels)?)));
        let shares: Vec<_> = shares.collect();
        let (pixels, best) =
            *shares.iter().max_by(|(a, one), (b, other)| one.total_cmp(other).then(b.cmp(a)))?;
        let rival = |(at, share): &(i64, f64)| (at - pixels).abs() > 1 && best - share < LEAST_LEAD;
        (best >= LEAST_SHARE && !shares.iter().any(rival)).then_some(pixels)
    }
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

    /// Counts the lines that are alike, and those that are not, if what was at a line is `shift` lines further now. Lines
    /// of a single colour say nothing.
    fn add(&mut self, before: &[Option<u64>], now: &[Option<u64>], shift: i64) {
        let (old, new) = if shift < 0 { (-shift, 0) } else { (0, shift) };
        let old = before.get(usize::try_from(old).unwrap_or(0)..).unwrap_or_default();
        let new = now.get(usize::try_from(new).unwrap_or(0)..).unwrap_or_default();
        for (one, other) in old.iter().zip(new) {
            match (one, other) {
                (None, None) => {}
                (one, other) if one == other => self.alike += 1,
                _ => self.unlike += 1,
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
        let distance = |one: &Sight, other: &Sight, direction| {
            one.motion(other, &region, direction).and_then(|motion| motion.distance())
        };
        let before = sight(40, 60, pattern);
        let down = sight(40, 60, |x, y| pattern(x, y + 15));
        assert_eq!(distance(&before, &down, Direction::Down), Some(15));
        assert_eq!(distance(&down, &before, Direction::Up), Some(15));
        assert_eq!(distance(&before, &before, Direction::Down), Some(0));
        let flat = sight(40, 60, |_, _| 3);
        assert_eq!(distance(&flat, &flat, Direction::Down), None);
        let right = sight(40, 60, |x, y| pattern(y, x + 9));
        let left = sight(40, 60, |x, y| pattern(y, x));
        assert_eq!(distance(&left, &right, Direction::Right), Some(9));
    }

    #[test]
    fn rows_that_look_alike_do_not_tell_how_far() {
        let region = Rect::new(10, 20, 40, 100);
        let before = sight(40, 100, |x, y| pattern(x, y % 12));
        let after = sight(40, 100, |x, y| pattern(x, (y + 40) % 12));
        let motion = before.motion(&after, &region, Direction::Down).expect("the same part of the screen");
        assert_eq!(motion.distance(), None);
        assert_eq!(motion.agrees(40), Some(true));
        assert_eq!(motion.agrees(41), Some(false));
        assert_eq!(motion.agrees(99), None, "too little of it is left");
    }
}
