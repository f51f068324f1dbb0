//! Where a cursor is at which time. Nothing here waits or draws.

use std::time::{Duration, Instant};

use deskhand_core::desktop::Act;
use deskhand_core::geometry::Point;

/// Sixty pictures a second, as many displays show.
pub(super) const FRAME: Duration = Duration::from_millis(16);
/// How long the ring of a press is seen.
const RING: Duration = Duration::from_millis(240);
/// How long a cursor takes to fade away.
pub(super) const FADE: Duration = Duration::from_millis(200);
/// A way of this many pixels takes the whole time of a glide; a shorter one takes less.
const FAR: f64 = 700.0;
/// The share of a glide's time that the shortest way takes.
const LEAST: f64 = 0.35;
/// A cursor that appears comes from this far, so that the eye is led to it.
const FIRST_STEP: (i32, i32) = (34, 44);

/// A part of the way.
#[derive(Clone, Copy, Debug)]
struct Leg {
    from: Point,
    to: Point,
    begins: Instant,
    ends: Instant,
    /// At the pace of a drag, which does not slow down.
    even: bool,
}

impl Leg {
    fn at(&self, now: Instant) -> Point {
        let time = self.ends.saturating_duration_since(self.begins).as_secs_f64();
        let gone = now.saturating_duration_since(self.begins).as_secs_f64();
        let share = if time > 0.0 { (gone / time).clamp(0.0, 1.0) } else { 1.0 };
        let share = if self.even { share } else { 1.0 - (1.0 - share).powi(3) };
        let between =
            |from: i32, to: i32| (f64::from(from) + (f64::from(to) - f64::from(from)) * share).round() as i32;
        Point::new(between(self.from.x, self.to.x), between(self.from.y, self.to.y))
    }
}

/// The way of one cursor, from its first act to its end.
#[derive(Clone, Debug)]
pub(super) struct Motion {
    legs: Vec<Leg>,
    /// From when to when a ring is seen.
    ring: Option<(Instant, Instant)>,
    /// When it begins to fade.
    fades: Instant,
}

/// What is to be seen at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Look {
    pub(super) at: Point,
    pub(super) pressed: bool,
    /// From 0, not to be seen, to 1.
    pub(super) opacity: f64,
    /// When it looks different next; `None`: its time is over.
    pub(super) next: Option<Instant>,
}

impl Motion {
    /// A cursor that appears. `None` for keys, which are pressed nowhere.
    pub(super) fn begin(act: Act, glide: Duration, linger: Duration, now: Instant) -> Option<Self> {
        let to = first_point(act)?;
        let from = if glide.is_zero() {
            to
        } else {
            Point::new(to.x.saturating_add(FIRST_STEP.0), to.y.saturating_add(FIRST_STEP.1))
        };
        let legs = vec![Leg { from, to: from, begins: now, ends: now, even: false }];
        let mut motion = Self { legs, ring: None, fades: now };
        motion.follow(act, glide, linger, now);
        Some(motion)
    }

    /// Goes on to where the next act is, from wherever it is now.
    pub(super) fn follow(&mut self, act: Act, glide: Duration, linger: Duration, now: Instant) {
        let here = self.place(now);
        if let Some(to) = first_point(act) {
            let leg = Leg { from: here, to, begins: now, ends: now + time_for(here, to, glide), even: false };
            self.legs = vec![leg];
            self.ring = None;
            match act {
                Act::Press(_) => self.ring = Some((leg.ends, leg.ends + RING)),
                Act::Drag { from, to, duration } => {
                    let ends = leg.ends + duration;
                    self.legs.push(Leg { from, to, begins: leg.ends, ends, even: true });
                    self.ring = Some((leg.ends, ends));
                }
                Act::Point(_) | Act::Keys => {}
            }
        }
        self.fades = self.arrival().max(now) + linger;
    }

    fn arrival(&self) -> Instant {
        let ends = self.legs.last().map(|leg| leg.ends);
        ends.into_iter().chain(self.ring.map(|ring| ring.1)).max().unwrap_or(self.fades)
    }

    fn place(&self, now: Instant) -> Point {
        let leg = self.legs.iter().find(|leg| now < leg.ends).or(self.legs.last());
        leg.map_or(Point::default(), |leg| leg.at(now))
    }

    /// Where it will come to rest.
    pub(super) fn goal(&self) -> Point {
        self.legs.last().map_or(Point::default(), |leg| leg.to)
    }

    pub(super) fn look(&self, now: Instant) -> Look {
        let moving = self.legs.last().is_some_and(|leg| now < leg.ends);
        let pressed = self.ring.is_some_and(|(from, to)| (from..to).contains(&now));
        let faded = now.saturating_duration_since(self.fades).as_secs_f64() / FADE.as_secs_f64();
        let next = if now >= self.fades + FADE {
            None
        } else if moving || now >= self.fades {
            Some(now + FRAME)
        } else {
            let ring = self.ring.into_iter().flat_map(|(from, to)| [from, to]);
            ring.filter(|change| *change > now).chain([self.fades]).min()
        };
        Look { at: self.place(now), pressed, opacity: (1.0 - faded).clamp(0.0, 1.0), next }
    }
}

fn first_point(act: Act) -> Option<Point> {
    match act {
        Act::Press(at) | Act::Point(at) => Some(at),
        Act::Drag { from, .. } => Some(from),
        Act::Keys => None,
    }
}

fn time_for(from: Point, to: Point, glide: Duration) -> Duration {
    let way = f64::from(to.x.saturating_sub(from.x)).hypot(f64::from(to.y.saturating_sub(from.y)));
    if way < 1.0 { Duration::ZERO } else { glide.mul_f64((LEAST + way / FAR).min(1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GLIDE: Duration = Duration::from_millis(260);
    const LINGER: Duration = Duration::from_secs(3);

    /// Times and places of all pictures until the end.
    fn watch(motion: &Motion, mut now: Instant) -> Vec<(Instant, Look)> {
        let mut seen = Vec::new();
        while let Some(next) = motion.look(now).next {
            assert!(next > now);
            seen.push((now, motion.look(now)));
            now = next;
        }
        seen
    }

    #[test]
    fn f12_a_press_is_some_frames_and_then_nothing_until_it_fades() {
        let now = Instant::now();
        let mut motion = Motion::begin(Act::Press(Point::new(10, 10)), GLIDE, LINGER, now).unwrap();
        motion.follow(Act::Press(Point::new(900, 500)), GLIDE, LINGER, now + LINGER);
        let seen = watch(&motion, now + LINGER);
        assert!(seen.len() < 40, "{}", seen.len());
        let rests = seen.windows(2).filter(|pair| pair[1].0 - pair[0].0 > 2 * FRAME).count();
        assert_eq!(rests, 2, "it rests with the ring and without it");
        assert!(seen.iter().any(|(_, look)| look.pressed && look.at == Point::new(900, 500)));
        let ways = seen.iter().map(|(_, look)| look.at.x);
        assert!(ways.is_sorted(), "it goes straight to the point");
        assert_eq!(motion.look(now + 2 * LINGER + Duration::from_secs(1)).next, None);
    }

    #[test]
    fn keys_keep_it_and_show_nothing_by_themselves() {
        let now = Instant::now();
        assert!(Motion::begin(Act::Keys, GLIDE, LINGER, now).is_none());
        let mut motion = Motion::begin(Act::Point(Point::new(10, 10)), GLIDE, LINGER, now).unwrap();
        let later = now + Duration::from_secs(2);
        motion.follow(Act::Keys, GLIDE, LINGER, later);
        let look = motion.look(later + LINGER - FRAME);
        assert_eq!((look.at, look.opacity), (Point::new(10, 10), 1.0));
    }

    #[test]
    fn a_drag_goes_the_whole_way_at_its_own_pace() {
        let now = Instant::now();
        let (from, to) = (Point::new(100, 100), Point::new(300, 100));
        let act = Act::Drag { from, to, duration: Duration::from_secs(1) };
        let motion = Motion::begin(act, Duration::ZERO, LINGER, now).unwrap();
        assert_eq!(motion.look(now).at, from);
        let half = motion.look(now + Duration::from_millis(500));
        assert_eq!((half.at, half.pressed), (Point::new(200, 100), true));
        assert_eq!((motion.goal(), motion.look(now + Duration::from_millis(1001)).at), (to, to));
    }

    #[test]
    fn without_a_glide_it_jumps() {
        let now = Instant::now();
        let mut motion = Motion::begin(Act::Point(Point::new(5, 6)), Duration::ZERO, LINGER, now).unwrap();
        assert_eq!(motion.look(now).at, Point::new(5, 6));
        motion.follow(Act::Point(Point::new(500, 600)), Duration::ZERO, LINGER, now);
        assert_eq!(motion.look(now).at, Point::new(500, 600));
    }
}
