//! Arithmetic of window frames.

use deskhand_core::geometry::Rect;

/// Widths at the four sides, as `_NET_FRAME_EXTENTS` and `_GTK_FRAME_EXTENTS` give them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::x11) struct Extents {
    /// Left.
    pub(in crate::x11) left: u32,
    /// Right.
    pub(in crate::x11) right: u32,
    /// Top.
    pub(in crate::x11) top: u32,
    /// Bottom.
    pub(in crate::x11) bottom: u32,
}

impl Extents {
    /// From the property's four numbers; anything else is no extents.
    pub(in crate::x11) fn from_property(values: &[u32]) -> Option<Self> {
        match *values {
            [left, right, top, bottom] => Some(Self { left, right, top, bottom }),
            _ => None,
        }
    }

    /// The same width at all sides.
    pub(in crate::x11) const fn even(width: u32) -> Self {
        Self { left: width, right: width, top: width, bottom: width }
    }
}

/// What a person sees as the window: the client's area with the window manager's decoration around it and without
/// the shadow that the client draws itself. Extents that make no sense (wider than the window) are ignored.
pub(in crate::x11) fn visible_frame(client: Rect, decoration: Extents, shadow: Extents) -> Rect {
    let grown = Rect::new(
        client.x.saturating_sub_unsigned(decoration.left),
        client.y.saturating_sub_unsigned(decoration.top),
        client.width.saturating_add(decoration.left).saturating_add(decoration.right),
        client.height.saturating_add(decoration.top).saturating_add(decoration.bottom),
    );
    let across = shadow.left.saturating_add(shadow.right);
    let down = shadow.top.saturating_add(shadow.bottom);
    if across >= grown.width || down >= grown.height {
        return grown;
    }
    Rect::new(
        grown.x.saturating_add_unsigned(shadow.left),
        grown.y.saturating_add_unsigned(shadow.top),
        grown.width - across,
        grown.height - down,
    )
}

/// The parts of `area` that none of `covers` covers, as rectangles that do not overlap.
pub(in crate::x11) fn remainder(area: Rect, covers: &[Rect]) -> Vec<Rect> {
    let mut left = vec![area];
    left.retain(|rect| !rect.is_empty());
    for cover in covers {
        left = left.into_iter().flat_map(|rect| without(rect, cover)).collect();
    }
    left
}

/// `rect` without `hole`, as up to four rectangles: above, below, left and right of it.
fn without(rect: Rect, hole: &Rect) -> Vec<Rect> {
    let Some(hole) = rect.intersection(hole) else { return vec![rect] };
    let span = |start: i64, end: i64| u32::try_from(end - start).unwrap_or(0);
    // All edges lie inside `rect`, so they fit into its own numbers.
    let at = |edge: i64| i32::try_from(edge).unwrap_or(i32::MAX);
    let height = |top: i64, bottom: i64| span(top, bottom);
    let parts = [
        Rect::new(rect.x, rect.y, rect.width, height(rect.y.into(), hole.y.into())),
        Rect::new(rect.x, at(hole.bottom()), rect.width, height(hole.bottom(), rect.bottom())),
        Rect::new(rect.x, hole.y, span(rect.x.into(), hole.x.into()), hole.height),
        Rect::new(at(hole.right()), hole.y, span(hole.right(), rect.right()), hole.height),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_grows_the_frame_and_shadows_shrink_it() {
        let client = Rect::new(100, 100, 400, 300);
        let decoration = Extents { left: 1, right: 2, top: 20, bottom: 5 };
        assert_eq!(visible_frame(client, decoration, Extents::default()), Rect::new(99, 80, 403, 325));
        let shadow = Extents { left: 26, right: 26, top: 23, bottom: 29 };
        assert_eq!(visible_frame(client, Extents::default(), shadow), Rect::new(126, 123, 348, 248));
    }

    #[test]
    fn extents_that_leave_nothing_are_ignored() {
        let client = Rect::new(0, 0, 40, 40);
        assert_eq!(visible_frame(client, Extents::default(), Extents::even(20)), client);
        assert_eq!(visible_frame(client, Extents::default(), Extents::even(u32::MAX)), client);
        assert_eq!(Extents::from_property(&[1, 2, 3]), None);
    }

    #[test]
    fn what_is_left_beside_covers() {
        let area = Rect::new(0, 0, 10, 10);
        assert_eq!(remainder(area, &[]), vec![area]);
        assert_eq!(remainder(area, &[area]), vec![]);
        assert_eq!(remainder(area, &[Rect::new(5, 0, 50, 50)]), vec![Rect::new(0, 0, 5, 10)]);
        let ring = remainder(area, &[Rect::new(2, 3, 4, 5)]);
        let pixels: u32 = ring.iter().map(|rect| rect.width * rect.height).sum();
        assert_eq!(pixels, 100 - 20);
        assert_eq!(remainder(area, &[Rect::new(-5, -5, 10, 20), Rect::new(5, 0, 5, 10)]), vec![]);
    }
}
