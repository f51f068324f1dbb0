//! The clipboard: X11's selections `CLIPBOARD` and `PRIMARY`, by the rules of the ICCCM.
//!
//! Content stays with its owner and is converted for each reader, so what was written is served for as long as this
//! process lives. It has a connection and a thread of its own: a reader waits for another program, and must not hold up
//! input or windows meanwhile. Content is in no log.

mod atoms;
mod incremental;
mod owner;
mod reader;

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use deskhand_core::desktop::{
    Clipboard, ClipboardContent, ClipboardData, ClipboardWritten, PortError, Selection, Stop,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};
use x11rb::CURRENT_TIME;
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    ConnectionExt as _, CreateWindowAux, EventMask, Window as XWindow, WindowClass,
};

use self::atoms::ClipboardAtoms;
use self::owner::Held;
use super::connection::{Link, Trouble};
use super::worker::{Pulse, Worker};
use crate::environment::EnvironmentSource;

/// How long an owner may take for each step of a transfer. Programs answer from memory; the slowest seen, an office program
/// that renders a picture first, took half a second.
const OWNER_PATIENCE: Duration = Duration::from_secs(2);

/// How long a whole transfer may take: content at the limit takes a second or two.
const TRANSFER: Duration = Duration::from_secs(15);

/// How long a clipboard manager may take at our end, which must not be put off for long.
const HAND_OVER: Duration = Duration::from_millis(1500);

/// While another program is waited for, so often it is looked whether anybody still wants the answer.
const LOOK: Duration = Duration::from_millis(50);

/// The adapter.
pub struct X11Clipboard {
    worker: Arc<Worker<Board>>,
    /// Serves others while we own a selection; ends with this value.
    serving: Mutex<Option<DropGuard>>,
}

impl std::fmt::Debug for X11Clipboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("X11Clipboard").finish_non_exhaustive()
    }
}

/// What the thread owns.
struct Board {
    link: Link,
    atoms: ClipboardAtoms,
    /// Owns selections; is never shown.
    window: XWindow,
    held: Held,
}

impl Board {
    fn open(environment: &crate::environment::SessionEnvironment) -> Result<Self, PortError> {
        let link = Link::open(environment)?;
        let opened = || -> Result<(ClipboardAtoms, XWindow), Trouble> {
            let atoms = ClipboardAtoms::new(&link.x)?.reply()?;
            let window = hidden_window(&link)?;
            link.sync()?;
            Ok((atoms, window))
        };
        let (atoms, window) = opened()?;
        Ok(Self { link, atoms, window, held: Held::default() })
    }

    /// Does what other programs have asked for since the last time.
    fn serve(&mut self) -> Result<(), Trouble> {
        while let Some(event) = self.link.x.poll_for_event()? {
            self.take(&event)?;
        }
        self.held.forget_stuck(&self.link)?;
        Ok(self.link.x.flush()?)
    }

    fn take(&mut self, event: &Event) -> Result<(), Trouble> {
        self.held.take(&self.link, &self.atoms, self.window, event)
    }

    /// Waits for an event that `look` finds; what others ask for meanwhile is done. `None`: it did not come in time.
    fn wait<T>(
        &mut self,
        until: Instant,
        pulse: &Pulse,
        stop: &Stop,
        mut look: impl FnMut(&Event) -> Option<T>,
    ) -> Result<Option<T>, Trouble> {
        loop {
            self.link.x.flush()?;
            while let Some(event) = self.link.x.poll_for_event()? {
                if let Some(found) = look(&event) {
                    return Ok(Some(found));
                }
                self.take(&event)?;
            }
            pulse.beat();
            if stop.is_cancelled() {
                return Err(PortError::Stopped.into());
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.link.await_events(left.min(LOOK));
        }
    }

    /// A moment of the server's clock, as owners have to name it.
    fn now(&mut self, pulse: &Pulse) -> Result<u32, Trouble> {
        let (window, atom) = (self.window, self.atoms.DESKHAND_TIME);
        self.link.x.change_property(
            x11rb::protocol::xproto::PropMode::APPEND,
            window,
            atom,
            self.atoms.INTEGER,
            8,
            0,
            &[],
        )?;
        let look = |event: &Event| match event {
            Event::PropertyNotify(notify) if notify.window == window && notify.atom == atom => {
                Some(notify.time)
            }
            _ => None,
        };
        // The server answers this itself.
        let time = self.wait(Instant::now() + OWNER_PATIENCE, pulse, &Stop::new(), look)?;
        Ok(time.unwrap_or(CURRENT_TIME))
    }

    fn write(
        &mut self,
        selection: Selection,
        data: ClipboardData,
        pulse: &Pulse,
    ) -> Result<ClipboardWritten, Trouble> {
        let time = self.now(pulse)?;
        let atom = self.atoms.of(selection);
        self.link.x.set_selection_owner(self.window, atom, time)?;
        if self.link.x.get_selection_owner(atom)?.reply()?.owner != self.window {
            let why = "another program took the clipboard at the same moment; try again";
            return Err(PortError::NotSupported(why.to_owned()).into());
        }
        self.held.put(&self.link, &self.atoms, selection, data, time)?;
        Ok(ClipboardWritten { volatile: selection == Selection::Primary || self.manager()?.is_none() })
    }

    /// The clipboard manager, if one runs.
    fn manager(&self) -> Result<Option<XWindow>, Trouble> {
        let owner = self.link.x.get_selection_owner(self.atoms.CLIPBOARD_MANAGER)?.reply()?.owner;
        Ok(Some(owner).filter(|owner| *owner != x11rb::NONE))
    }

    /// Lets the clipboard manager copy what we own.
    fn hand_over(&mut self, pulse: &Pulse, stop: &Stop) -> Result<(), Trouble> {
        if !self.held.holds(Selection::Clipboard) || self.manager()?.is_none() {
            return Ok(());
        }
        let (window, atoms) = (self.window, self.atoms);
        let targets = self.held.targets(Selection::Clipboard);
        let bytes: Vec<u8> = targets.iter().flat_map(|target| target.to_ne_bytes()).collect();
        let count = u32::try_from(targets.len()).unwrap_or(0);
        let replace = x11rb::protocol::xproto::PropMode::REPLACE;
        self.link.x.change_property(
            replace,
            window,
            atoms.DESKHAND_SELECTION,
            atoms.ATOM,
            32,
            count,
            &bytes,
        )?;
        self.link.x.convert_selection(
            window,
            atoms.CLIPBOARD_MANAGER,
            atoms.SAVE_TARGETS,
            atoms.DESKHAND_SELECTION,
            CURRENT_TIME,
        )?;
        let look = |event: &Event| match event {
            Event::SelectionNotify(notify) if notify.selection == atoms.CLIPBOARD_MANAGER => Some(()),
            _ => None,
        };
        if self.wait(Instant::now() + HAND_OVER, pulse, stop, look)?.is_none() {
            tracing::warn!("the clipboard manager did not take the clipboard in time");
        }
        Ok(())
    }
}

/// A window that is never shown: what selections belong to and what is handed over to.
fn hidden_window(link: &Link) -> Result<XWindow, Trouble> {
    let window = link.x.generate_id()?;
    let aux = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    link.x.create_window(0, window, link.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &aux)?;
    Ok(window)
}

impl X11Clipboard {
    /// An adapter for the display that `source` names. Connects to nothing.
    pub fn new(source: Arc<dyn EnvironmentSource>) -> Self {
        let silent = PortError::DesktopNotResponding;
        let worker = Worker::new("x11-clipboard", source, silent, Board::open);
        Self { worker: Arc::new(worker), serving: Mutex::new(None) }
    }

    /// Begins to answer what other programs ask for, and to take what the server sends unasked, if that has not begun.
    async fn serve(&self) -> Result<(), PortError> {
        let mut serving = self.serving.lock().await;
        if serving.is_some() {
            return Ok(());
        }
        let socket = |board: &mut Board, _: &_, _: &_| {
            let stream = board.link.x.stream();
            let socket = rustix::io::fcntl_dupfd_cloexec(stream, 3);
            Ok(socket.map_err(|error| PortError::Internal(format!("no second descriptor: {error}")))?)
        };
        let socket = self.worker.run(&Stop::new(), false, socket).await?;
        // SAFETY: the value owns its descriptor and is neither replaced nor given out mutably.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }
            .map_err(|error| PortError::Internal(format!("the clipboard cannot be watched: {error}")))?;
        let ended = CancellationToken::new();
        *serving = Some(ended.clone().drop_guard());
        let worker = Arc::clone(&self.worker);
        tokio::spawn(async move {
            while let Some(Ok(mut ready)) = ended.run_until_cancelled(socket.readable()).await {
                // Cleared first: what arrives while the thread reads is told again.
                ready.clear_ready();
                match worker.run(&Stop::new(), false, |board, _, _| board.serve()).await {
                    Err(PortError::DesktopLost) => return,
                    Err(error) => tracing::debug!(%error, "the clipboard was not served"),
                    Ok(()) => {}
                }
            }
        });
        Ok(())
    }
}

#[async_trait]
impl Clipboard for X11Clipboard {
    async fn read(
        &self,
        selection: Selection,
        mime: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<ClipboardContent, PortError> {
        self.serve().await?;
        let mime = mime.to_owned();
        let work = move |board: &mut Board, pulse: &Pulse, stop: &Stop| {
            board.serve()?;
            reader::read(board, selection, &mime, limit, pulse, stop)
        };
        self.worker.run(stop, false, work).await
    }

    async fn write(&self, selection: Selection, data: ClipboardData) -> Result<ClipboardWritten, PortError> {
        self.serve().await?;
        let work = move |board: &mut Board, pulse: &Pulse, _: &_| board.write(selection, data, pulse);
        self.worker.run(&Stop::new(), false, work).await
    }

    async fn hand_over(&self) {
        if self.serving.lock().await.is_none() {
            return;
        }
        let work = |board: &mut Board, pulse: &Pulse, stop: &Stop| board.hand_over(pulse, stop);
        let stop = Stop::new();
        let handed = tokio::time::timeout(HAND_OVER, self.worker.run(&stop, false, work));
        if let Ok(Err(error)) = handed.await {
            tracing::debug!(%error, "the clipboard was not handed over");
        }
    }
}
