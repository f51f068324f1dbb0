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
        for (top, area) in listing.stack.clone() {
            if self.own.is_own(top) {
                continue;
            }
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
            patch(capture, &covered, *area, &cut(&beneath, bounds, *area));
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

/// Puts `beneath` in the place of `area`. Where it has nothing, the bare desktop goes on as it is beside what is covered.
fn patch(capture: &mut Capture, covered: &[Rect], area: Rect, beneath: &Pixels) {
    let frame = capture.frame;
    let is_free = |x: i64, y: i64| {
        let inside = |rect: &Rect| {
            x >= i64::from(rect.x) && x < rect.right() && y >= i64::from(rect.y) && y < rect.bottom()
        };
        inside(&frame) && !covered.iter().any(inside)
    };
    let place = |x: i64, y: i64| {
        let (column, row) = (x - i64::from(frame.x), y - i64::from(frame.y));
        usize::try_from((row * i64::from(frame.width) + column) * 4).unwrap_or(0)
    };
    let (left, top) = (i64::from(area.x) - 1, i64::from(area.y) - 1);
    for (y, row) in (i64::from(area.y)..).zip(beneath.rgba.chunks_exact((area.width as usize * 4).max(1))) {
        let beside = [(left, y), (area.right(), y)].into_iter().find(|(x, y)| is_free(*x, *y));
        for (x, point) in (i64::from(area.x)..).zip(row.as_chunks::<4>().0) {
            let around = || [(x, top), (x, area.bottom())].into_iter().find(|(x, y)| is_free(*x, *y));
            let mut colour = [0, 0, 0, 255];
            if point[3] < 255
                && let Some((x, y)) = beside.or_else(around)
                && let Some(next) = capture.pixels.rgba.get(place(x, y)..place(x, y) + 4)
            {
                colour.copy_from_slice(next);
            }
            let one = Rect::new(0, 0, 1, 1);
            lay(
                &mut colour,
                one,
                &Layer { pixels: Pixels { width: 1, height: 1, rgba: point.to_vec() }, frame: one },
            );
            let at = place(x, y);
            if let Some(pixel) = capture.pixels.rgba.get_mut(at..at + 4) {
                pixel.copy_from_slice(&colour);
            }
        }
    }
}
