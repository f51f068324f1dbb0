//! Whether an application has followed its window.
//!
//! A window has its new frame as soon as the window manager has given it; what is in it follows with the application's next
//! picture, and until then is told to be where it was.

use std::time::Duration;

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, Window, WindowKind};
use deskhand_core::geometry::Rect;

use super::app::{Failure, Toolkit};
use super::bus::Bus;
use super::extents;
use super::frames::Found;

/// An application that has not followed after this time is not going to: what is in the window does not depend on its frame.
pub(super) const PATIENCE: Duration = Duration::from_millis(300);
/// It is looked at so often. About one frame.
pub(super) const LOOK: Duration = Duration::from_millis(15);

/// Parts of a window that are asked for. In toolkits they fill it, bars and content.
const PARTS: usize = 3;

/// A window's own area with the places of what it consists of, both as they were told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    area: Rect,
    parts: Vec<Option<Rect>>,
}

impl Layout {
    /// Asks for the parts of `window` that are known.
    pub(super) async fn ask(
        bus: &Bus,
        found: &Found,
        window: &Window,
        until: Instant,
    ) -> Result<Self, Failure> {
        let parts: Vec<ElementId> = match window.kind {
            // Popups are made where they are.
            WindowKind::Popup => Vec::new(),
            _ => found.app.memory().mirror.children(&found.root).iter().take(PARTS).cloned().collect(),
        };
        let asked = parts.iter().map(|part| extents::ask(bus, &found.app, part, extents::SCREEN, until));
        let parts = futures_util::future::try_join_all(asked).await?;
        Ok(Self { area: window.client, parts })
    }

    /// Whether the window has changed since `before`, and nothing in it has. Places on the screen follow a window that moves
    /// at once, sizes only with the next layout.
    pub(super) fn is_behind(&self, before: &Self, toolkit: Toolkit) -> bool {
        let size = |area: &Rect| (area.width, area.height);
        let corner = |area: &Rect| (area.x, area.y);
        let as_before = |same: fn(&Rect, &Rect) -> bool| {
            let mut both = self
                .parts
                .iter()
                .zip(&before.parts)
                .filter_map(|(now, then)| Some((now.as_ref()?, then.as_ref()?)));
            self.parts.len() == before.parts.len()
                && self.parts.iter().any(Option::is_some)
                && both.all(|(now, then)| same(now, then))
        };
        if size(&self.area) != size(&before.area) {
            return as_before(|now, then| (now.width, now.height) == (then.width, then.height));
        }
        let moved = corner(&self.area) != corner(&before.area);
        moved
            && !toolkit.extents_start_at_window()
            && as_before(|now, then| (now.x, now.y) == (then.x, then.y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_that_have_not_followed_their_window_are_behind() {
        let layout = |area: Rect, part: Option<Rect>| Layout { area, parts: vec![part] };
        let before = layout(Rect::new(0, 0, 300, 200), Some(Rect::new(0, 20, 300, 180)));
        let wider = Rect::new(0, 0, 400, 200);
        let moved = Rect::new(50, 0, 300, 200);
        let behind = |now: Layout, toolkit| now.is_behind(&before, toolkit);
        assert!(behind(Layout { area: wider, ..before.clone() }, Toolkit::Gtk3));
        assert!(behind(Layout { area: wider, ..before.clone() }, Toolkit::Gtk4));
        assert!(behind(Layout { area: moved, ..before.clone() }, Toolkit::Gtk3));
        assert!(
            !behind(Layout { area: moved, ..before.clone() }, Toolkit::Gtk4),
            "it counts from the window"
        );
        assert!(!behind(layout(wider, Some(Rect::new(0, 20, 400, 180))), Toolkit::Gtk3), "it has followed");
        let moved_only = layout(Rect::new(50, 0, 400, 200), Some(Rect::new(50, 20, 300, 180)));
        assert!(behind(moved_only, Toolkit::Gtk3), "it has followed the move, and not yet the size");
        assert!(!behind(before.clone(), Toolkit::Gtk3));
        let silent = layout(before.area, None);
        assert!(!layout(wider, None).is_behind(&silent, Toolkit::Gtk3), "it tells nothing");
    }
}
