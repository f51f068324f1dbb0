//! The thread of what is shown: its windows, and when they look different.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use deskhand_core::desktop::{Act, AgentCursor, Display, PortError, PreviewFrame};
use deskhand_core::geometry::Point;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ChangeWindowAttributesAux, ConfigureWindowAux, ConnectionExt as _, EventMask, Pixmap, PropMode,
    StackMode, Window as XWindow,
};
use x11rb::wrapper::ConnectionExt as _;

use super::canvas::Picture;
use super::motion::{Look, Motion};
use super::own::{Own, Sprite};
use super::pane::{Pane, Panes};
use super::picture::{Drawing, Side};
use super::preview::Preview;
use super::{Delivery, Mailbox, Message};
use crate::environment::SessionEnvironment;
use crate::x11::connection::{Link, Trouble};
use crate::x11::screen;

/// Windows that come above cursors are followed by them so often after an act. Something else that wants to be above
/// everything, such as a screen lock, wins.
const MAX_RAISES: u32 = 12;

/// A window that opens is placed and restacked a few times: what came above is looked at once for so long.
const SETTLING: Duration = Duration::from_millis(60);

/// What the thread owns.
pub(super) struct Stage {
    link: Link,
    own: Own,
    panes: Panes,
    displays: Vec<Display>,
    cursors: HashMap<Arc<str>, Cursor>,
    preview: Option<Preview>,
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
        let panes = Panes::prepare(&link)?;
        let notify = ChangeWindowAttributesAux::new().event_mask(EventMask::SUBSTRUCTURE_NOTIFY);
        link.x.change_window_attributes(link.root, &notify)?;
        let setup = link.x.setup();
        own.set_client(setup.resource_id_base, setup.resource_id_mask);
        let (cursors, preview) = (HashMap::new(), None);
        Ok(Self { link, own, panes, displays, cursors, preview, raises: 0, look: None })
    }

    /// Shows what `mailbox` asks for until there is nothing to see any more.
    pub(super) fn play(mut self, mailbox: &Mailbox, bell: &OwnedFd) -> Result<(), Trouble> {
        loop {
            let Delivery { messages, preview, closed } = mailbox.take();
            if closed {
                self.preview(None)?;
                self.cursors.keys().cloned().collect::<Vec<_>>().iter().try_for_each(|id| self.end(id))?;
            }
            for message in messages {
                match message {
                    Message::Show(agent, act) => self.act(agent, act)?,
                    Message::Remove(id) => self.end(&id)?,
                }
            }
            if let Some(frame) = preview.filter(|_| !closed) {
                self.preview(frame)?;
            }
            self.take_events()?;
            let next = self.dress()?;
            self.own.set_cursors(self.cursors.keys().cloned().collect());
            if next.is_none() && self.preview.is_none() {
                self.link.sync()?;
                if mailbox.retire() {
                    return Ok(());
                }
                continue;
            }
            self.link.x.flush()?;
            let next = next.into_iter().chain(self.look).min();
            self.wait(bell, next.map(|next| next.saturating_duration_since(Instant::now())));
        }
    }

    /// Shows a frame in the preview, or closes it.
    fn preview(&mut self, frame: Option<PreviewFrame>) -> Result<(), Trouble> {
        let old = self.preview.take();
        let Some(frame) = frame else { return old.map_or(Ok(()), |old| old.close(&self.link, &self.own)) };
        if old.as_ref().is_none_or(|old| old.is_news(&frame)) {
            self.raises = 0;
        }
        let place = old.as_ref().map(Preview::place);
        let new = Preview::show(old, (&self.link, &self.own, &self.panes), &frame)?;
        if place != Some(new.place()) {
            self.cursors_above()?;
        }
        self.preview = Some(new);
        Ok(())
    }

    /// Waits until somebody rings, an event comes, or the time is over, if there is one.
    fn wait(&self, bell: &OwnedFd, time: Option<Duration>) {
        let mut sources = [
            PollFd::from_borrowed_fd(self.link.x.stream().as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(bell.as_fd(), PollFlags::IN),
        ];
        let time = time.map(|time| Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 }));
        // Broken off by a signal or an error: messages, connection and clock are looked at again anyway.
        let _ = poll(&mut sources, time.as_ref());
        // Empty if nobody rang.
        let _ = rustix::io::read(bell, &mut [0; 8]);
    }

    fn act(&mut self, agent: AgentCursor, act: Act) -> Result<(), Trouble> {
        let now = Instant::now();
        self.raises = 0;
        let (glide, linger) = (agent.glide, agent.linger);
        let translucent = self.panes.are_translucent(&self.link)?;
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
        let costume = |pressed| {
            let picture = drawing(&agent, side, scale, pressed, translucent).draw();
            self.costume(picture, translucent)
        };
        let (plain, pressed) = (costume(false)?, costume(true)?);
        let at = motion.look(Instant::now()).at;
        let window = self.link.x.generate_id()?;
        let area = plain.picture.area(at);
        self.own.place(window, Sprite { area, pixels: Arc::clone(&plain.pixels), is_cursor: true });
        let name = format!("agent cursor: {}", agent.label);
        let new =
            Pane { window, area, pixmap: plain.pixmap, class: b"agent-cursor\0deskhand\0", name: &name };
        self.panes.open(&self.link, &new, &plain.picture, translucent)?;
        let worn = Worn { at, pressed: false, opacity: u32::MAX };
        Ok(Cursor { agent, motion, window, translucent, side, scale, plain, pressed, worn })
    }

    /// Hands a picture to the server.
    fn costume(&self, picture: Picture, translucent: bool) -> Result<Costume, Trouble> {
        let pixmap = self.panes.upload(&self.link, &picture, translucent)?;
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
        if let Some(preview) = &self.preview {
            self.link.x.configure_window(preview.place().0, &above)?;
        }
        self.cursors_above()
    }

    fn cursors_above(&self) -> Result<(), Trouble> {
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
        if let Some(preview) = &self.preview {
            self.own.take(preview.place().0);
        }
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
            own.place(self.window, Sprite { area, pixels: Arc::clone(&costume.pixels), is_cursor: true });
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
