//! Which windows of the display are ours, so that we do not see ourselves, and what part of the screen they cover.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use deskhand_core::desktop::Pixels;
use deskhand_core::geometry::Rect;
use x11rb::protocol::xproto::Window as XWindow;

/// A place that a window of ours has left may still show it so long: compositors paint a frame later, and some let
/// windows fade away.
const AFTERGLOW: Duration = Duration::from_millis(500);

/// What the overlay shows. All clones are one.
#[derive(Clone, Default)]
pub(in crate::x11) struct Own(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// The bits that all ids of our windows begin with; 0: there are none.
    client: AtomicU32,
    /// Those bits.
    mask: AtomicU32,
    shown: Mutex<Shown>,
}

#[derive(Default)]
struct Shown {
    now: HashMap<XWindow, Sprite>,
    /// Places that were left, the newest last.
    before: VecDeque<(Instant, Rect)>,
    cursors: Vec<Arc<str>>,
}

/// A window of ours.
#[derive(Clone)]
pub(in crate::x11) struct Sprite {
    /// In screen pixels.
    pub(in crate::x11) area: Rect,
    pub(in crate::x11) pixels: Arc<Pixels>,
    /// Whether it is an agent's cursor.
    pub(in crate::x11) is_cursor: bool,
}

impl Own {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Windows of the client with this base are ours. Said before it makes the first.
    pub(super) fn set_client(&self, base: u32, resource_mask: u32) {
        self.0.mask.store(!resource_mask, Ordering::Release);
        self.0.client.store(base, Ordering::Release);
    }

    /// That client has no windows any more; its base may be given to another program.
    pub(super) fn forget_client(&self, base: u32) {
        // Another connection of ours may have taken its place already.
        let _ = self.0.client.compare_exchange(base, 0, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether this window is ours.
    pub(in crate::x11) fn is_own(&self, window: XWindow) -> bool {
        let client = self.0.client.load(Ordering::Acquire);
        client != 0 && window & self.0.mask.load(Ordering::Acquire) == client
    }

    /// `window` is about to be where `sprite` says. Said before the server hears of it, so that no picture shows it where
    /// it is not known to be.
    pub(super) fn place(&self, window: XWindow, sprite: Sprite) {
        let mut shown = self.shown();
        if let Some(left) = shown.now.insert(window, sprite) {
            shown.leave(left.area);
        }
    }

    /// `window` is gone.
    pub(super) fn take(&self, window: XWindow) {
        let mut shown = self.shown();
        if let Some(left) = shown.now.remove(&window) {
            shown.leave(left.area);
        }
    }

    /// These cursors can be seen.
    pub(super) fn set_cursors(&self, cursors: Vec<Arc<str>>) {
        self.shown().cursors = cursors;
    }

    /// Whether this cursor can be seen.
    pub(super) fn shows(&self, cursor: &str) -> bool {
        self.shown().cursors.iter().any(|shown| **shown == *cursor)
    }

    /// Where a picture taken at this moment may show windows of ours.
    pub(in crate::x11) fn areas(&self) -> Vec<Rect> {
        let shown = self.shown();
        let recent = shown.before.iter().filter(|(left, _)| left.elapsed() < AFTERGLOW);
        shown.now.values().map(|sprite| sprite.area).chain(recent.map(|(_, area)| *area)).collect()
    }

    /// The cursors that are shown at this moment.
    pub(in crate::x11) fn cursors(&self) -> Vec<Sprite> {
        self.shown().now.values().filter(|sprite| sprite.is_cursor).cloned().collect()
    }
}

impl Shown {
    fn leave(&mut self, area: Rect) {
        while self.before.front().is_some_and(|(left, _)| left.elapsed() >= AFTERGLOW) {
            self.before.pop_front();
        }
        self.before.push_back((Instant::now(), area));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sprite(x: i32) -> Sprite {
        let pixels = Arc::new(Pixels { width: 0, height: 0, rgba: Vec::new() });
        Sprite { area: Rect::new(x, 0, 10, 10), pixels, is_cursor: true }
    }

    #[test]
    fn windows_are_told_apart_by_their_client() {
        let own = Own::default();
        assert!(!own.is_own(0x0040_0001) && !own.is_own(1), "there is none yet");
        own.set_client(0x0040_0000, 0x001f_ffff);
        assert!(own.is_own(0x0040_0001) && own.is_own(0x005f_ffff));
        assert!(!own.is_own(0x0060_0001) && !own.is_own(0x0020_0001));
        own.forget_client(0x0060_0000);
        assert!(own.is_own(0x0040_0001), "an older connection's end says nothing of this one");
        own.forget_client(0x0040_0000);
        assert!(!own.is_own(0x0040_0001));
    }

    #[test]
    fn a_place_that_was_left_counts_for_a_while() {
        let own = Own::default();
        own.place(7, sprite(0));
        own.place(7, sprite(100));
        assert_eq!(own.areas().len(), 2);
        own.take(7);
        assert_eq!((own.areas().len(), own.cursors().len()), (2, 0));
        let long_ago = Instant::now().checked_sub(2 * AFTERGLOW).unwrap();
        own.shown().before.iter_mut().for_each(|(left, _)| *left = long_ago);
        assert_eq!(own.areas().len(), 0);
        own.place(7, sprite(0));
        own.take(7);
        assert_eq!(own.shown().before.len(), 1, "old places are forgotten");
    }
}
