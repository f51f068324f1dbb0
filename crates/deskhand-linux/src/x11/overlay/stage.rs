//! The thread of the cursors: their windows, and when they look different.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{Act, AgentCursor, Display, PortError};
use deskhand_core::geometry::Point;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::{Connection, RequestConnection as _};
use x11rb::protocol::Event;
use x11rb::protocol::shape::{self, ConnectionExt as _};
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ClipOrdering, Colormap, ColormapAlloc, ConfigureWindowAux,
    ConnectionExt as _, CreateGCAux, CreateWindowAux, EventMask, ImageFormat, ImageOrder, Pixmap, PropMode,
    Rectangle, StackMode, VisualClass, Visualid, Window as XWindow, WindowClass,
};
use x11rb::wrapper::ConnectionExt as _;

use super::motion::{Look, Motion};
use super::own::{Own, Sprite};
use super::picture::{Drawing, Picture, Side};
use super::{Mailbox, Message};
use crate::environment::SessionEnvironment;
use crate::x11::connection::{Link, Trouble};
use crate::x11::screen;

/// Windows that come above cursors are followed by them so often after an act. Something else that wants to be above
/// everything, such as a screen lock, wins.
const MAX_RAISES: u32 = 12;

/// A window that opens is placed and restacked a few times: what came above is looked at once for so long.
const SETTLING: Duration = Duration::from_millis(60);

/// Bytes of a picture that one request carries: below what every server takes.
const PIECE: usize = 64 * 1024;

/// What the thread owns.
pub(super) struct Stage {
    link: Link,
    own: Own,
    displays: Vec<Display>,
    /// Visual and colours of windows with coverage, if the display has them.
    translucent: Option<(Visualid, Colormap)>,
    opaque: (u8, Visualid),
    /// The selection that a compositing manager owns.
    compositing: u32,
    cursors: HashMap<Arc<str>, Cursor>,
    raises: u32,
    /// When to look whether something is above the cursors.
    look: Option<Instant>,
}

/// A cursor that is shown.
struct Cursor {
    agent: AgentCursor,
    motion: Motion,
    window: XWindow,
    translucent: bool,
    side: Side,
    scale: f64,
    plain: Costume,
    pressed: Costume,
    worn: Worn,
}

/// A picture, and its copy that the server paints the window from.
struct Costume {
    picture: Picture,
    pixmap: Pixmap,
    pixels: Arc<deskhand_core::desktop::Pixels>,
}

/// How the window is at the moment.
#[derive(Clone, Copy, PartialEq)]
struct Worn {
    at: Point,
    pressed: bool,
    opacity: u32,
}

impl Stage {
    /// Connects to the display.
    pub(super) fn open(environment: &SessionEnvironment, own: &Own) -> Result<Self, PortError> {
        let link = Link::open(environment)?;
        Ok(Self::prepare(link, own.clone())?)
    }

    fn prepare(link: Link, own: Own) -> Result<Self, Trouble> {
        let displays = screen::displays(&link)?;
        if link.x.extension_information(shape::X11_EXTENSION_NAME)?.is_none() {
            // A window that takes clicks must not lie over others.
            return Err(PortError::NotSupported("the display server has no shaped windows".to_owned()).into());
        }
        let setup = link.x.setup();
        let found = setup
            .roots
            .iter()
            .position(|root| root.root == link.root)
            .zip(setup.roots.iter().find(|root| root.root == link.root));
        let (number, root) = found.ok_or(Trouble::Lost)?;
        if !matches!(root.root_depth, 24 | 32) || setup.image_byte_order != ImageOrder::LSB_FIRST {
            let why = "the display keeps its pixels in a form that is not supported".to_owned();
            return Err(PortError::NotSupported(why).into());
        }
        let visual = root
            .allowed_depths
            .iter()
            .filter(|depth| depth.depth == 32)
            .flat_map(|depth| &depth.visuals)
            .find(|visual| visual.class == VisualClass::TRUE_COLOR && visual.red_mask == 0x00ff_0000)
            .map(|visual| visual.visual_id);
        let translucent = match visual {
            Some(visual) => {
                let colours = link.x.generate_id()?;
                link.x.create_colormap(ColormapAlloc::NONE, colours, link.root, visual)?;
                Some((visual, colours))
            }
            None => None,
        };
        let opaque = (root.root_depth, root.root_visual);
        let compositing = format!("_NET_WM_CM_S{number}");
        let compositing = link.x.intern_atom(false, compositing.as_bytes())?.reply()?.atom;
        let notify = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        link.x.change_window_attributes(link.root, &notify)?;
        own.set_client(setup.resource_id_base, setup.resource_id_mask);
        let cursors = HashMap::new();
        Ok(Self { link, own, displays, translucent, opaque, compositing, cursors, raises: 0, look: None })
    }

    /// Shows what `mailbox` asks for until there is nothing to see any more.
    pub(super) fn play(mut self, mailbox: &Mailbox, bell: &OwnedFd) -> Result<(), Trouble> {
        loop {
            let (messages, closed) = mailbox.take();
            if closed {
                self.cursors.keys().cloned().collect::<Vec<_>>().iter().try_for_each(|id| self.end(id))?;
            }
            for message in messages {
                match message {
                    Message::Show(agent, act) => self.act(agent, act)?,
                    Message::Remove(id) => self.end(&id)?,
                }
            }
            self.take_events()?;
            let next = self.dress()?;
            self.own.set_cursors(self.cursors.keys().cloned().collect());
            match next {
                Some(next) => {
                    let next = self.look.map_or(next, |look| look.min(next));
                    self.link.x.flush()?;
                    self.wait(bell, next.saturating_duration_since(Instant::now()));
                }
                None => {
                    self.link.sync()?;
                    if mailbox.retire() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Waits until somebody rings, an event comes, or the time is over.
    fn wait(&self, bell: &OwnedFd, time: Duration) {
        let mut sources = [
            PollFd::from_borrowed_fd(self.link.x.stream().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
        ];
        let time = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        // Broken off by a signal or an error: messages, connection and clock are looked at again anyway.
        let _ = poll(&mut sources, Some(&time));
        // Empty if nobody rang.
        let _ = rustix::io::read(bell, &mut [0; 8]);
    }

    fn act(&mut self, agent: AgentCursor, act: Act) -> Result<(), Trouble> {
        let now = Instant::now();
        self.raises = 0;
        let (glide, linger) = (agent.glide, agent.linger);
        let translucent = self.translucent.is_some() && self.is_composited()?;
        let motion = match self.cursors.get_mut(&agent.id) {
            Some(cursor) => {
                cursor.motion.follow(act, glide, linger, now);
                cursor.motion.clone()
            }
            None => match Motion::begin(act, glide, linger, now) {
                Some(motion) => motion,
                None => return Ok(()),
            },
        };
        let scale = self.scale_at(motion.goal());
        let side = self.side(&agent, motion.goal(), scale);
        let fits = |cursor: &Cursor| {
            // How it moves does not change how it looks.
            let AgentCursor { label, colour, size, .. } = &cursor.agent;
            (label, *colour, *size) == (&agent.label, agent.colour, agent.size)
                && (cursor.side, cursor.translucent) == (side, translucent)
                && (cursor.scale - scale).abs() < f64::EPSILON
        };
        if self.cursors.get(&agent.id).is_some_and(fits) {
            return Ok(());
        }
        let id = Arc::clone(&agent.id);
        let cursor = self.dressed(agent, motion, side, scale, translucent)?;
        // The new one is there before the old one goes.
        if let Some(old) = self.cursors.insert(id, cursor) {
            self.destroy(&old)?;
        }
        Ok(())
    }

    fn is_composited(&self) -> Result<bool, Trouble> {
        Ok(self.link.x.get_selection_owner(self.compositing)?.reply()?.owner != x11rb::NONE)
    }

    fn display_at(&self, at: Point) -> Option<&Display> {
        self.displays.iter().find(|display| display.frame.contains(at)).or(self.displays.first())
    }

    fn scale_at(&self, at: Point) -> f64 {
        self.display_at(at).map_or(1.0, |display| display.scale)
    }

    /// Where there is room for the label.
    fn side(&self, agent: &AgentCursor, at: Point, scale: f64) -> Side {
        let plain = Side { left: false, above: false };
        let Some(display) = self.display_at(at) else { return plain };
        let (width, height) = drawing(agent, plain, scale, false, true).label_size();
        Side {
            left: f64::from(at.x) + f64::from(width) > display.frame.right() as f64,
            above: f64::from(at.y) + f64::from(height) > display.frame.bottom() as f64,
        }
    }

    /// Makes the window of a cursor, and shows it.
    fn dressed(
        &mut self,
        agent: AgentCursor,
        motion: Motion,
        side: Side,
        scale: f64,
        translucent: bool,
    ) -> Result<Cursor, Trouble> {
        let (depth, visual) = match self.translucent.filter(|_| translucent) {
            Some((visual, _)) => (32, visual),
            None => self.opaque,
        };
        let costume = |pressed| {
            let picture = drawing(&agent, side, scale, pressed, translucent).draw();
            self.costume(picture, depth, translucent)
        };
        let (plain, pressed) = (costume(false)?, costume(true)?);
        let at = motion.look(Instant::now()).at;
        let window = self.link.x.generate_id()?;
        self.own.place(window, Sprite { area: plain.picture.area(at), pixels: Arc::clone(&plain.pixels) });
        let area = plain.picture.area(at);
        let mut attributes = CreateWindowAux::new()
            .override_redirect(1)
            .border_pixel(0)
            .background_pixmap(plain.pixmap)
            .event_mask(EventMask::NO_EVENT);
        if let Some((_, colours)) = self.translucent.filter(|_| translucent) {
            attributes = attributes.colormap(colours);
        }
        let x = &self.link.x;
        x.create_window(
            depth,
            window,
            self.link.root,
            short(area.x),
            short(area.y),
            u16::try_from(area.width).unwrap_or(u16::MAX),
            u16::try_from(area.height).unwrap_or(u16::MAX),
            0,
            WindowClass::INPUT_OUTPUT,
            visual,
            &attributes,
        )?;
        // No click, no pointer and no drop ever reaches it.
        x.shape_rectangles(shape::SO::SET, shape::SK::INPUT, ClipOrdering::UNSORTED, window, 0, 0, &[])?;
        if !translucent {
            let runs: Vec<Rectangle> = plain.picture.runs().iter().map(rectangle).collect();
            let (set, bounding) = (shape::SO::SET, shape::SK::BOUNDING);
            x.shape_rectangles(set, bounding, ClipOrdering::YX_BANDED, window, 0, 0, &runs)?;
        }
        let atoms = &self.link.atoms;
        // What is dragged about has no shadow and no animation with any compositor.
        let kind = [atoms._NET_WM_WINDOW_TYPE_DND];
        x.change_property32(PropMode::REPLACE, window, atoms._NET_WM_WINDOW_TYPE, AtomEnum::ATOM, &kind)?;
        let class = b"agent-cursor\0deskhand\0";
        x.change_property8(PropMode::REPLACE, window, AtomEnum::WM_CLASS, AtomEnum::STRING, class)?;
        let name = format!("agent cursor: {}", agent.label);
        let text = atoms.UTF8_STRING;
        x.change_property8(PropMode::REPLACE, window, atoms._NET_WM_NAME, text, name.as_bytes())?;
        x.map_window(window)?;
        let worn = Worn { at, pressed: false, opacity: u32::MAX };
        Ok(Cursor { agent, motion, window, translucent, side, scale, plain, pressed, worn })
    }

    /// Hands a picture to the server.
    fn costume(&self, picture: Picture, depth: u8, translucent: bool) -> Result<Costume, Trouble> {
        let x = &self.link.x;
        let (width, height) = (picture.pixels.width, picture.pixels.height);
        let (columns, rows) =
            (u16::try_from(width).unwrap_or(u16::MAX), u16::try_from(height).unwrap_or(u16::MAX));
        let pixmap = x.generate_id()?;
        x.create_pixmap(depth, pixmap, self.link.root, columns, rows)?;
        let context = x.generate_id()?;
        x.create_gc(context, pixmap, &CreateGCAux::new())?;
        let bytes = if translucent { picture.premultiplied() } else { picture.opaque() };
        let stride = width.max(1) as usize * 4;
        let at_once = (PIECE / stride).max(1);
        for (place, piece) in bytes.chunks(at_once * stride).enumerate() {
            let top = i16::try_from(place * at_once).unwrap_or(i16::MAX);
            let rows = u16::try_from(piece.len() / stride).unwrap_or(u16::MAX);
            let format = ImageFormat::Z_PIXMAP;
            x.put_image(format, pixmap, context, columns, rows, 0, top, 0, depth, piece)?;
        }
        x.free_gc(context)?;
        let pixels = Arc::new(picture.pixels.clone());
        Ok(Costume { picture, pixmap, pixels })
    }

    /// Makes every window look as it should now. When the next of them will look different; `None`: there is none.
    fn dress(&mut self) -> Result<Option<Instant>, Trouble> {
        let now = Instant::now();
        let mut next: Option<Instant> = None;
        let mut over = Vec::new();
        for (id, cursor) in &mut self.cursors {
            let look = cursor.motion.look(now);
            match look.next {
                Some(change) => next = Some(next.map_or(change, |next| next.min(change))),
                None => over.push(Arc::clone(id)),
            }
            cursor.wear(&self.link, &self.own, &look)?;
        }
        for id in over {
            self.end(&id)?;
        }
        Ok(next)
    }

    fn end(&mut self, id: &str) -> Result<(), Trouble> {
        match self.cursors.remove(id) {
            Some(cursor) => self.destroy(&cursor),
            None => Ok(()),
        }
    }

    fn destroy(&self, cursor: &Cursor) -> Result<(), Trouble> {
        self.link.x.destroy_window(cursor.window)?;
        self.link.x.free_pixmap(cursor.plain.pixmap)?;
        self.link.x.free_pixmap(cursor.pressed.pixmap)?;
        self.own.take(cursor.window);
        Ok(())
    }

    /// Follows windows that came above the cursors.
    fn take_events(&mut self) -> Result<(), Trouble> {
        let mut covered = false;
        while let Some(event) = self.link.x.poll_for_event()? {
            let risen = match event {
                Event::MapNotify(event) => event.window,
                Event::ConfigureNotify(event) => event.window,
                _ => continue,
            };
            covered |= !self.own.is_own(risen);
        }
        if covered && self.raises < MAX_RAISES {
            self.look.get_or_insert_with(|| Instant::now() + SETTLING);
        }
        if self.look.is_some_and(|look| look <= Instant::now()) {
            self.look = None;
            self.rise()?;
        }
        Ok(())
    }

    /// Raises the cursors if something is above them.
    fn rise(&mut self) -> Result<(), Trouble> {
        let stack = self.link.x.query_tree(self.link.root)?.reply()?.children;
        if stack.last().is_none_or(|highest| self.own.is_own(*highest)) {
            return Ok(());
        }
        self.raises += 1;
        let above = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
        for cursor in self.cursors.values() {
            self.link.x.configure_window(cursor.window, &above)?;
        }
        Ok(())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Nothing is left of a stage that has come to its end, and another may have begun; else the connection broke.
        if !self.cursors.is_empty() {
            for cursor in self.cursors.values() {
                self.own.take(cursor.window);
            }
            self.own.set_cursors(Vec::new());
        }
        self.own.forget_client(self.link.x.setup().resource_id_base);
    }
}

impl Cursor {
    fn wear(&mut self, link: &Link, own: &Own, look: &Look) -> Result<(), Trouble> {
        let opacity = (look.opacity * f64::from(u32::MAX)) as u32;
        let wanted = Worn { at: look.at, pressed: look.pressed && self.translucent, opacity };
        if wanted == self.worn {
            return Ok(());
        }
        let costume = if wanted.pressed { &self.pressed } else { &self.plain };
        let area = costume.picture.area(wanted.at);
        if (wanted.at, wanted.pressed) != (self.worn.at, self.worn.pressed) {
            own.place(self.window, Sprite { area, pixels: Arc::clone(&costume.pixels) });
        }
        if wanted.pressed != self.worn.pressed {
            let attributes = ChangeWindowAttributesAux::new().background_pixmap(costume.pixmap);
            link.x.change_window_attributes(self.window, &attributes)?;
            link.x.clear_area(false, self.window, 0, 0, 0, 0)?;
        }
        if wanted.at != self.worn.at {
            let place = ConfigureWindowAux::new().x(area.x).y(area.y).stack_mode(StackMode::ABOVE);
            link.x.configure_window(self.window, &place)?;
        }
        if opacity != self.worn.opacity {
            let name = link.atoms._NET_WM_WINDOW_OPACITY;
            let replace = PropMode::REPLACE;
            link.x.change_property32(replace, self.window, name, AtomEnum::CARDINAL, &[opacity])?;
        }
        self.worn = wanted;
        Ok(())
    }
}

fn drawing(agent: &AgentCursor, side: Side, scale: f64, pressed: bool, translucent: bool) -> Drawing<'_> {
    Drawing {
        label: &agent.label,
        colour: agent.colour,
        height: (f64::from(agent.size) * scale) as f32,
        scale: scale as f32,
        side,
        pressed,
        translucent,
    }
}

fn short(value: i32) -> i16 {
    i16::try_from(value).unwrap_or(if value < 0 { i16::MIN } else { i16::MAX })
}

fn rectangle(area: &deskhand_core::geometry::Rect) -> Rectangle {
    Rectangle {
        x: short(area.x),
        y: short(area.y),
        width: u16::try_from(area.width).unwrap_or(u16::MAX),
        height: u16::try_from(area.height).unwrap_or(u16::MAX),
    }
}
