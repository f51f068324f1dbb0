//! What lies beneath our own windows in a picture of the desktop.
//!
//! People see agents' cursors, agents do not. To hide them for a picture would be seen as a flicker, so the parts of the
//! picture that may show them are put together anew: the desktop's background, and each window's own pixels.

use deskhand_core::desktop::{Capture, Pixels};
use deskhand_core::geometry::Rect;
use x11rb::connection::RequestConnection as _;
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{AtomEnum, ConnectionExt as _, Window as XWindow};

use super::camera::Camera;
use super::pixels::{Layer, cut, lay};
use crate::x11::connection::{Trouble, unless_refused};
use crate::x11::windows::listing::{self, Listing};

impl Camera {
    /// Replaces what our own windows cover in a picture of the desktop by what lies beneath them.
    pub(super) fn uncover(&mut self, capture: &mut Capture) -> Result<(), Trouble> {
        let frame = capture.frame;
        // Asked after the picture was taken, so it has every place that can be in it.
        let covered: Vec<Rect> =
            self.own.areas().iter().filter_map(|area| area.intersection(&frame)).collect();
        let Some(bounds) = covered.iter().copied().reduce(|one, other| one.union(&other)) else {
            return Ok(());
        };
        if !self.composite {
            // Windows have no pixels but those that are seen.
            capture.stale = true;
            return Ok(());
        }
        let listing = listing::read(&self.link)?;
        let mut beneath = self.background(&listing, bounds)?;
        let mut hidden = covered.clone();
        for (top, area) in listing.stack.clone() {
            if self.own.is_own(top) {
                continue;
            }
            hidden.push(area);
            let Some(part) = area.intersection(&bounds) else { continue };
            match self.redirect_top(&listing, top, area)? {
                Some(painted) => capture.stale |= !painted,
                None => continue,
            }
            let client = listing.carried_by(top).map_or(area, |listed| listed.window.client);
            let Some(layer) = self.layer_of(top, part, area, client)? else { continue };
            for shape in self.shape(top, area)? {
                if let Some(part) = shape.intersection(&part) {
                    let pixels = cut(&layer.pixels, layer.frame, part);
                    lay(&mut beneath.rgba, bounds, &Layer { pixels, frame: part });
                }
            }
        }
        for area in &covered {
            capture.stale |= !patch(capture, &hidden, *area, &cut(&beneath, bounds, *area));
        }
        Ok(())
    }

    /// The picture that the desktop has as its background, if it has one; else nothing.
    fn background(&mut self, listing: &Listing, area: Rect) -> Result<Pixels, Trouble> {
        let nothing = || Pixels {
            width: area.width,
            height: area.height,
            rgba: vec![0; area.width as usize * area.height as usize * 4],
        };
        let (root, name) = (self.link.root, self.link.atoms._XROOTPMAP_ID);
        let said = self.link.x.get_property(false, root, name, AtomEnum::PIXMAP, 0, 1)?.reply()?;
        let Some(pixmap) = said.value32().and_then(|mut values| values.next()) else { return Ok(nothing()) };
        let Some(size) = unless_refused(self.link.x.get_geometry(pixmap)?.reply())? else {
            return Ok(nothing());
        };
        let whole = Rect::new(0, 0, size.width.into(), size.height.into());
        if whole.intersection(&area) == Some(area) {
            return Ok(self.pixels(pixmap, area, whole, whole)?.unwrap_or_else(nothing));
        }
        // A small one is repeated.
        let Some(tile) = self.pixels(pixmap, whole, whole, whole)? else { return Ok(nothing()) };
        let mut canvas = nothing();
        let reach =
            |length: u32, step: u32| (0..length.div_ceil(step.max(1))).map(move |number| number * step);
        for y in reach(listing.root.height, whole.height) {
            for x in reach(listing.root.width, whole.width) {
                let place = Rect::new(x.cast_signed(), y.cast_signed(), whole.width, whole.height);
                if let Some(part) = place.intersection(&area) {
                    let layer = Layer { pixels: cut(&tile, place, part), frame: part };
                    lay(&mut canvas.rgba, area, &layer);
                }
            }
        }
        Ok(canvas)
    }

    /// The parts of the screen that a window covers.
    fn shape(&self, top: XWindow, area: Rect) -> Result<Vec<Rect>, Trouble> {
        let x = &self.link.x;
        if x.extension_information(shape::X11_EXTENSION_NAME)?.is_none() {
            return Ok(vec![area]);
        }
        let rectangles = unless_refused(x.shape_get_rectangles(top, shape::SK::BOUNDING)?.reply())?;
        let rectangles = rectangles.into_iter().flat_map(|reply| reply.rectangles);
        let part = |part: x11rb::protocol::xproto::Rectangle| {
            let (left, top) = (area.x.saturating_add(part.x.into()), area.y.saturating_add(part.y.into()));
            Rect::new(left, top, part.width.into(), part.height.into()).intersection(&area)
        };
        Ok(rectangles.filter_map(part).collect())
    }
}

/// Puts `beneath` in the place of `area`. Where it has nothing, the bare desktop goes on as it is in the nearest place where
/// it can be seen: `hidden` is where it cannot. Whether there was such a place for all of it.
fn patch(capture: &mut Capture, hidden: &[Rect], area: Rect, beneath: &Pixels) -> bool {
    let frame = capture.frame;
    let mut is_known = true;
    for (y, row) in (area.y..).zip(beneath.rgba.chunks_exact((area.width as usize * 4).max(1))) {
        let beside = bare(hidden, frame, (area.x, y), (1, 0));
        for (x, point) in (area.x..).zip(row.as_chunks::<4>().0) {
            let mut colour = [0, 0, 0, 255];
            if point[3] < 255 {
                match beside.or_else(|| bare(hidden, frame, (x, area.y), (0, 1))) {
                    Some(bare) => colour.copy_from_slice(pixel(capture, bare)),
                    None => is_known = false,
                }
            }
            let one = Rect::new(0, 0, 1, 1);
            lay(
                &mut colour,
                one,
                &Layer { pixels: Pixels { width: 1, height: 1, rgba: point.to_vec() }, frame: one },
            );
            pixel(capture, (x, y)).copy_from_slice(&colour);
        }
    }
    is_known
}

/// The colour of a picture at a point of the screen that lies within its frame.
fn pixel(capture: &mut Capture, (x, y): (i32, i32)) -> &mut [u8] {
    let frame = capture.frame;
    let (column, row) = (i64::from(x) - i64::from(frame.x), i64::from(y) - i64::from(frame.y));
    let place = usize::try_from((row * i64::from(frame.width) + column) * 4).unwrap_or(0);
    &mut capture.pixels.rgba[place..place + 4]
}

/// The nearest point on a line through `from` that is in the frame and not hidden.
fn bare(hidden: &[Rect], frame: Rect, from: (i32, i32), (across, down): (i32, i32)) -> Option<(i32, i32)> {
    let walk = |forward: bool| {
        let (mut x, mut y) = (i64::from(from.0), i64::from(from.1));
        // Each step leaves one of them for good.
        for _ in 0..=hidden.len() {
            let is_in = |rect: &&Rect| {
                x >= i64::from(rect.x) && x < rect.right() && y >= i64::from(rect.y) && y < rect.bottom()
            };
            if !is_in(&&frame) {
                return None;
            }
            let Some(rect) = hidden.iter().find(is_in) else {
                let steps = (x - i64::from(from.0)).abs() + (y - i64::from(from.1)).abs();
                return Some((steps, (i32::try_from(x).ok()?, i32::try_from(y).ok()?)));
            };
            match (forward, across != 0) {
                (true, true) => x = rect.right(),
                (false, true) => x = i64::from(rect.x) - 1,
                (true, false) => y = rect.bottom(),
                (false, false) => y = i64::from(rect.y) - 1,
            }
        }
        None
    };
    debug_assert_eq!(across + down, 1);
    [walk(true), walk(false)].into_iter().flatten().min().map(|(_, point)| point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_bare_point_is_neither_ours_nor_a_window_s() {
        let frame = Rect::new(0, 0, 100, 50);
        let hidden = [Rect::new(40, 10, 20, 20), Rect::new(20, 0, 25, 50), Rect::new(60, 12, 10, 5)];
        let across = |y| bare(&hidden, frame, (40, y), (1, 0));
        assert_eq!(across(12), Some((19, 12)), "past the window on the left, which is nearer");
        assert_eq!(across(25), Some((60, 25)));
        assert_eq!(bare(&hidden, frame, (50, 10), (0, 1)), Some((50, 9)));
        assert_eq!(bare(&[frame], frame, (50, 10), (0, 1)), None);
    }

    #[test]
    fn a_bare_desktop_goes_on_and_a_window_does_not() {
        // A desktop of 7, with a window of 200 in its left half and something of ours over the edge of both.
        let frame = Rect::new(0, 0, 10, 4);
        let rgba = (0..40).flat_map(|place| [if place % 10 < 5 { 200 } else { 7 }, 0, 0, 255]).collect();
        let pixels = Pixels { width: 10, height: 4, rgba };
        let mut capture = Capture { pixels, frame, stale: false };
        let (window, ours) = (Rect::new(0, 0, 5, 4), Rect::new(3, 1, 4, 2));
        let rgba = (0..8).flat_map(|place| if place % 4 < 2 { [200, 0, 0, 255] } else { [0; 4] }).collect();
        assert!(patch(&mut capture, &[window, ours], ours, &Pixels { width: 4, height: 2, rgba }));
        let row: Vec<u8> = capture.pixels.rgba[40..80].iter().step_by(4).copied().collect();
        assert_eq!(row, [200, 200, 200, 200, 200, 7, 7, 7, 7, 7]);
    }
}
