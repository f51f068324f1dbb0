//! Counts changes of the window tree as the server reports them, so that waiting needs no polling.

use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};

use deskhand_core::desktop::PortError;
use rustix::net::{Shutdown, shutdown};
use tokio::sync::{oneshot, watch};
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ConnectionExt as _, EventMask, NotifyDetail, NotifyMode,
    Window as XWindow,
};

use crate::environment::SessionEnvironment;
use crate::x11::connection::{Link, Trouble};
use crate::x11::overlay::Own;

/// A thread that reads events, and the number that it counts up. Ends when it is dropped.
pub(in crate::x11) struct Watcher {
    /// The number.
    pub(in crate::x11) counter: watch::Receiver<u64>,
    socket: OwnedFd,
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Wakes the thread, which sleeps in the connection and owns everything else.
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

/// Starts the thread, which connects and then tells the result.
pub(in crate::x11) fn start(
    environment: std::sync::Arc<SessionEnvironment>,
    own: Own,
) -> Result<oneshot::Receiver<Result<Watcher, PortError>>, PortError> {
    let (started, answer) = oneshot::channel();
    std::thread::Builder::new()
        .name("x11-events".to_owned())
        .spawn(move || match begin(&environment, own) {
            Ok((observer, watcher)) => {
                if started.send(Ok(watcher)).is_ok() {
                    observer.observe();
                }
            }
            Err(error) => {
                let _ = started.send(Err(error));
            }
        })
        .map_err(|error| PortError::Internal(format!("no thread for events: {error}")))?;
    Ok(answer)
}

fn begin(environment: &SessionEnvironment, own: Own) -> Result<(Observer, Watcher), PortError> {
    let link = Link::open(environment)?;
    let socket = link.x.stream().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| PortError::Internal(format!("no descriptor for events: {error}")))?;
    let (counter, reader) = watch::channel(0);
    let mut observer = Observer { link, own, counter, observed: HashSet::new(), unseen: HashSet::new() };
    observer.begin().map_err(PortError::from)?;
    Ok((observer, Watcher { counter: reader, socket }))
}

struct Observer {
    link: Link,
    own: Own,
    counter: watch::Sender<u64>,
    observed: HashSet<XWindow>,
    /// Windows of our own, which are no part of the desktop. Kept until they are told to be gone: their client may have
    /// ended by then.
    unseen: HashSet<XWindow>,
}

impl Observer {
    fn begin(&mut self) -> Result<(), Trouble> {
        let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::PROPERTY_CHANGE;
        let attributes = ChangeWindowAttributesAux::new().event_mask(mask);
        self.link.x.change_window_attributes(self.link.root, &attributes)?;
        let children = self.link.x.query_tree(self.link.root)?.reply()?.children;
        for window in children {
            if self.own.is_own(window) {
                self.unseen.insert(window);
            } else {
                self.observe_window(window)?;
            }
        }
        self.observe_clients()?;
        self.link.sync()
    }

    fn observe(mut self) {
        while let Ok(event) = self.link.x.wait_for_event() {
            match self.changes(&event) {
                Ok(true) => self.counter.send_modify(|number| *number += 1),
                Ok(false) => {}
                Err(_) => break,
            }
            if self.link.x.flush().is_err() {
                break;
            }
        }
    }

    /// Whether `event` is a change that counts; begins to observe the windows that it announces.
    fn changes(&mut self, event: &Event) -> Result<bool, Trouble> {
        if self.is_own(event) {
            return Ok(false);
        }
        let atoms = &self.link.atoms;
        Ok(match event {
            Event::PropertyNotify(event) if event.window == self.link.root => {
                if event.atom == atoms._NET_CLIENT_LIST {
                    self.observe_clients()?;
                    return Ok(true);
                }
                let counts = [
                    atoms._NET_ACTIVE_WINDOW,
                    atoms._NET_CLIENT_LIST_STACKING,
                    atoms._NET_CURRENT_DESKTOP,
                    atoms._NET_SUPPORTING_WM_CHECK,
                ];
                counts.contains(&event.atom)
            }
            Event::PropertyNotify(event) => self.counts(event.atom),
            Event::CreateNotify(event) => {
                self.observe_window(event.window)?;
                true
            }
            Event::DestroyNotify(event) => {
                self.observed.remove(&event.window);
                true
            }
            Event::FocusIn(event) => {
                event.mode == NotifyMode::NORMAL && event.detail != NotifyDetail::POINTER
            }
            Event::MapNotify(_)
            | Event::UnmapNotify(_)
            | Event::ConfigureNotify(_)
            | Event::ReparentNotify(_)
            | Event::CirculateNotify(_)
            | Event::GravityNotify(_) => true,
            _ => false,
        })
    }

    fn is_own(&mut self, event: &Event) -> bool {
        match event {
            Event::CreateNotify(event) if self.own.is_own(event.window) => {
                self.unseen.insert(event.window);
                true
            }
            Event::DestroyNotify(event) => self.unseen.remove(&event.window),
            Event::MapNotify(event) => self.unseen.contains(&event.window),
            Event::UnmapNotify(event) => self.unseen.contains(&event.window),
            Event::ConfigureNotify(event) => self.unseen.contains(&event.window),
            _ => false,
        }
    }

    fn counts(&self, property: Atom) -> bool {
        let atoms = &self.link.atoms;
        let counts = [
            AtomEnum::WM_NAME.into(),
            AtomEnum::WM_CLASS.into(),
            AtomEnum::WM_TRANSIENT_FOR.into(),
            atoms.WM_STATE,
            atoms._NET_WM_NAME,
            atoms._NET_WM_STATE,
            atoms._NET_WM_WINDOW_TYPE,
            atoms._NET_FRAME_EXTENTS,
            atoms._GTK_FRAME_EXTENTS,
        ];
        counts.contains(&property)
    }

    fn observe_clients(&mut self) -> Result<(), Trouble> {
        let list = self.link.atoms._NET_CLIENT_LIST;
        let reply = self
            .link
            .x
            .get_property(false, self.link.root, list, AtomEnum::WINDOW, 0, u32::MAX / 4)?
            .reply()?;
        for window in reply.value32().into_iter().flatten() {
            self.observe_window(window)?;
        }
        Ok(())
    }

    /// Asks for the events of `window`. That it may be gone by now is no error; the answer is not waited for.
    fn observe_window(&mut self, window: XWindow) -> Result<(), Trouble> {
        if self.observed.insert(window) {
            let mask = EventMask::PROPERTY_CHANGE | EventMask::STRUCTURE_NOTIFY | EventMask::FOCUS_CHANGE;
            let attributes = ChangeWindowAttributesAux::new().event_mask(mask);
            self.link.x.change_window_attributes(window, &attributes)?;
        }
        Ok(())
    }
}
