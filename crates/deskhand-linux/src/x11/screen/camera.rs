//! Takes pictures, on a connection and a thread of its own.

use std::collections::{HashMap, HashSet};

use deskhand_core::desktop::{Capture, CaptureRequest, CaptureTarget, Pixels, PortError, WindowId};
use deskhand_core::geometry::Rect;
use tokio_util::sync::DropGuard;
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::Event;
use x11rb::protocol::composite::{self, ConnectionExt as _};
use x11rb::protocol::damage::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{ConnectionExt as _, Drawable, ImageOrder, Window as XWindow};

use super::pixels::{Alpha, Layer, convert, cut, lay, merge};
use super::reveal::{self, Painted};
use super::segment::{Part, Segment};
use crate::environment::SessionEnvironment;
use crate::x11::connection::{Link, Trouble, unless_refused};
use crate::x11::overlay::Own;
use crate::x11::windows::frame::remainder;
use crate::x11::windows::listing::{self, Listed, Listing};

/// A window that changes its size while its picture is taken is tried so many times.
const TRIES: usize = 3;

/// What the capture thread owns.
pub(in crate::x11) struct Camera {
    pub(super) link: Link,
    /// What we show ourselves.
    pub(super) own: Own,
    segment: Segment,
    /// Whether windows can be had without what covers them.
    pub(super) composite: bool,
    /// Windows (children of the root) that this connection has redirected. The server keeps them so until the
    /// connection ends.
    redirected: HashMap<XWindow, Painted>,
    /// Windows (children of the root) of which something has been seen: one that shows nothing has just been mapped.
    drawn: HashSet<XWindow>,
    /// Held until the picture is what it will be, by whoever waits for that.
    hold: Hold,
}

/// Something to let go of.
#[derive(Default)]
struct Hold {
    guard: Option<DropGuard>,
    /// The next pixels are the whole picture.
    is_last: bool,
}

impl Camera {
    /// Connects. `own` is what is in no picture.
    pub(in crate::x11) fn open(environment: &SessionEnvironment, own: Own) -> Result<Self, PortError> {
        let link = Link::open(environment)?;
        let composite = extensions(&link).map_err(PortError::from)?;
        Ok(Self {
            link,
            own,
            segment: Segment::default(),
            composite,
            redirected: HashMap::new(),
            drawn: HashSet::new(),
            hold: Hold::default(),
        })
    }

    /// Whether windows can be captured without what covers them.
    pub(in crate::x11) fn has_composite(&self) -> bool {
        self.composite
    }

    /// Waits for a sign of life of the display server.
    pub(in crate::x11) fn sync(&self) -> Result<(), Trouble> {
        self.link.sync()
    }

    /// Whether pixels come through shared memory.
    pub(in crate::x11) fn has_shared_memory(&mut self) -> Result<bool, Trouble> {
        self.segment.is_shared(&self.link)
    }

    /// Takes a picture. `guard` is dropped once the picture is what it will be; what remains is work of ours.
    ///
    /// # Errors
    /// `WindowGone`, `CaptureFailed`.
    pub(in crate::x11) fn capture(
        &mut self,
        request: CaptureRequest,
        guard: Option<DropGuard>,
    ) -> Result<Capture, Trouble> {
        self.hold = Hold { guard, is_last: false };
        let captured = self.take(request);
        self.hold = Hold::default();
        captured
    }

    fn take(&mut self, request: CaptureRequest) -> Result<Capture, Trouble> {
        self.take_events()?;
        match request.target {
            CaptureTarget::Region(region) => {
                let mut capture = self.region(region)?;
                if !request.agent_cursors {
                    self.uncover(&mut capture)?;
                }
                Ok(capture)
            }
            CaptureTarget::Window(id) => {
                for _ in 0..TRIES {
                    if let Some(mut capture) = self.window(id)? {
                        if request.agent_cursors {
                            self.cover(&mut capture);
                        }
                        return Ok(capture);
                    }
                }
                let why = format!("window {id} keeps changing while its picture is taken; try again");
                Err(PortError::CaptureFailed(why).into())
            }
        }
    }

    fn region(&mut self, region: Rect) -> Result<Capture, Trouble> {
        let desktop = self.link.root_area()?;
        let Some(frame) = region.intersection(&desktop) else {
            let why = format!("{region} lies outside of the desktop, which is {desktop}");
            return Err(PortError::CaptureFailed(why).into());
        };
        let root = self.link.root;
        let pixels = self.pixels(root, frame, desktop, frame)?;
        let pixels = pixels
            .ok_or_else(|| PortError::CaptureFailed("the desktop has just changed its size".to_owned()))?;
        Ok(Capture { pixels, frame, stale: false })
    }

    /// Draws agents' cursors over the picture of a window, which has nothing of what lies over it.
    fn cover(&self, capture: &mut Capture) {
        for sprite in self.own.cursors() {
            if let Some(part) = sprite.area.intersection(&capture.frame) {
                let layer = Layer { pixels: cut(&sprite.pixels, sprite.area, part), frame: part };
                lay(&mut capture.pixels.rgba, capture.frame, &layer);
            }
        }
    }

    /// `None`: something changed on the way, so it is worth another try.
    fn window(&mut self, id: WindowId) -> Result<Option<Capture>, Trouble> {
        let listing = listing::read(&self.link)?;
        let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
        if !listed.viewable {
            let why = if listed.window.minimized {
                format!("window {id} is minimised, so it has no pixels; bring_to_front shows it")
            } else {
                format!(
                    "window {id} is not on the screen (another workspace?), so it has no pixels; bring_to_front shows it"
                )
            };
            return Err(PortError::CaptureFailed(why).into());
        }
        if !self.composite {
            return self.uncovered_part(&listing, listed).map(Some);
        }
        let mut stale = false;
        let mut layers = Vec::new();
        self.hold.is_last = listing.popups(id).next().is_none() && self.drawn.contains(&listed.top);
        for part in std::iter::once(listed).chain(listing.popups(id)) {
            match self.redirect(&listing, part)? {
                Some(painted) => stale |= !painted,
                None => return Ok(None),
            }
            let mut layer = self.layer(part)?;
            let is_black = layer.as_ref().is_some_and(|layer| layer.is_black(part.window.client));
            if part.window.id == id && !is_black {
                self.drawn.insert(part.top);
            } else if part.window.id == id {
                // It may be what the application draws; but a window that was just mapped begins like this.
                reveal::await_drawing(&self.link, part.top)?;
                layer = self.layer(part)?;
                stale |= layer.as_ref().is_some_and(|layer| layer.is_black(part.window.client));
            }
            match layer {
                Some(layer) => layers.push(layer),
                // A popup that has just closed is no part of the picture.
                None if part.window.id != id => {}
                None => return Ok(None),
            }
        }
        let merged = merge(layers).ok_or_else(|| {
            PortError::CaptureFailed(format!("window {id} and its popups are too large for one picture"))
        })?;
        Ok(Some(Capture { pixels: merged.pixels, frame: merged.frame, stale }))
    }

    /// Sees to it that a window has memory of its own. Whether it has been painted there; `None`: it is gone.
    fn redirect(&mut self, listing: &Listing, part: &Listed) -> Result<Option<bool>, Trouble> {
        self.redirect_top(listing, part.top, part.top_area)
    }

    /// The same for a child of the root, whatever it is.
    pub(super) fn redirect_top(
        &mut self,
        listing: &Listing,
        top: XWindow,
        area: Rect,
    ) -> Result<Option<bool>, Trouble> {
        if let Some(painted) = self.redirected.get(&top) {
            return Ok(Some(*painted == Painted::Yes));
        }
        let hidden = listing.hidden_part(top, area);
        let painted = reveal::redirect(&self.link, top, area, hidden)?;
        if let Some(painted) = painted {
            self.redirected.insert(top, painted);
        }
        Ok(painted.map(|painted| painted == Painted::Yes))
    }

    /// Takes in which applications have drawn at last.
    fn take_events(&mut self) -> Result<(), Trouble> {
        while let Some(event) = self.link.x.poll_for_event()? {
            let Event::DamageNotify(event) = event else { continue };
            let waiting = Painted::NotYet(event.damage);
            if let Some(painted) = self.redirected.values_mut().find(|painted| **painted == waiting) {
                *painted = Painted::Yes;
                self.link.x.damage_destroy(event.damage)?;
            }
        }
        Ok(())
    }

    fn layer(&mut self, part: &Listed) -> Result<Option<Layer>, Trouble> {
        let Some(frame) = part.window.frame.intersection(&part.top_area) else { return Ok(None) };
        self.layer_of(part.top, frame, part.top_area, part.window.client)
    }

    /// `frame` of a child of the root that has `area`; `client` is where its coverage counts. `None`: it is gone.
    pub(super) fn layer_of(
        &mut self,
        top: XWindow,
        frame: Rect,
        area: Rect,
        client: Rect,
    ) -> Result<Option<Layer>, Trouble> {
        let pixmap = self.link.x.generate_id()?;
        let named = self.link.x.composite_name_window_pixmap(top, pixmap)?.check();
        if unless_refused(named)?.is_none() {
            // The server has given this number to another window since.
            self.redirected.remove(&top);
            self.drawn.remove(&top);
            return Ok(None);
        }
        let pixels = self.pixels(pixmap, frame, area, client);
        self.link.x.free_pixmap(pixmap)?;
        Ok(pixels?.map(|pixels| Layer { pixels, frame }))
    }

    /// Without XComposite: what the screen shows of the window.
    fn uncovered_part(&mut self, listing: &Listing, listed: &Listed) -> Result<Capture, Trouble> {
        let covered = listing.hidden_part(listed.top, listed.top_area);
        let mut capture = self.region(listed.window.frame)?;
        capture.stale = covered.iter().any(|part| part.intersection(&capture.frame).is_some());
        Ok(capture)
    }

    /// Pixels of `frame` from a drawable that shows `area`, all in screen coordinates. `client` is where coverage
    /// counts.
    pub(super) fn pixels(
        &mut self,
        drawable: Drawable,
        frame: Rect,
        area: Rect,
        client: Rect,
    ) -> Result<Option<Pixels>, Trouble> {
        let part = Part {
            x: i16::try_from(i64::from(frame.x) - i64::from(area.x)).unwrap_or(i16::MAX),
            y: i16::try_from(i64::from(frame.y) - i64::from(area.y)).unwrap_or(i16::MAX),
            width: u16::try_from(frame.width).unwrap_or(u16::MAX),
            height: u16::try_from(frame.height).unwrap_or(u16::MAX),
        };
        let hold = self.hold.guard.take_if(|_| self.hold.is_last);
        let Some(raw) = self.segment.read(&self.link, drawable, part, hold)? else { return Ok(None) };
        let alpha = match raw.depth {
            24 => Alpha::None,
            32 => Alpha::Premultiplied(Rect::new(
                client.x.saturating_sub(frame.x),
                client.y.saturating_sub(frame.y),
                client.width,
                client.height,
            )),
            other => {
                let why = format!("the display has colours of {other} bits; only 24 and 32 are supported");
                return Err(PortError::CaptureFailed(why).into());
            }
        };
        if self.link.x.setup().image_byte_order != ImageOrder::LSB_FIRST {
            let why = "the display is on a machine of the other byte order".to_owned();
            return Err(PortError::CaptureFailed(why).into());
        }
        let mut rgba = raw.bytes;
        convert(&mut rgba, frame.width, alpha);
        Ok(Some(Pixels { width: frame.width, height: frame.height, rgba }))
    }
}

/// Tells the server which versions of the extensions we speak, without which it refuses their requests.
fn extensions(link: &Link) -> Result<bool, Trouble> {
    let present = |name| link.x.extension_information(name).map(|found| found.is_some());
    if !present(composite::X11_EXTENSION_NAME)? || !present(damage::X11_EXTENSION_NAME)? {
        return Ok(false);
    }
    // Pixmaps of windows came with 0.2.
    let version = link.x.composite_query_version(0, 4)?;
    link.x.damage_query_version(1, 1)?.reply()?;
    let version = version.reply()?;
    Ok((version.major_version, version.minor_version) >= (0, 2))
}

impl Listing {
    /// The parts of `top`, a child of the root that has `area`, that are off the screen or under other windows, in screen
    /// coordinates.
    pub(in crate::x11) fn hidden_part(&self, top: XWindow, area: Rect) -> Vec<Rect> {
        let above = self.stack.iter().skip_while(|(other, _)| *other != top).skip(1);
        let covers: Vec<Rect> = above.map(|&(_, area)| area).collect();
        let mut hidden = remainder(area, &[self.root]);
        hidden.extend(covers.iter().filter_map(|cover| cover.intersection(&area)));
        hidden
    }
}
