//! Sessions: what one agent owns, and its end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::SessionId;
use crate::desktop::{Node, Window, WindowId};
use crate::error::{Code, Error, Result};
use crate::geometry::{PictureFrame, Rect};
use crate::settings::Overrides;
use crate::tree::{Numbering, Snapshot};

/// Snapshots kept for a session; the oldest are dropped. A busy agent looks at a handful of windows a few times each.
pub const MAX_SNAPSHOTS: usize = 32;
/// Pictures that a session remembers the place of; the oldest are dropped. Some are small parts of others.
pub const MAX_PICTURES: usize = 64;
/// Ended sessions that are remembered, so that their ids stay refused.
pub const MAX_ENDED: usize = 1024;
/// Sessions that live at a time.
pub const MAX_SESSIONS: usize = 256;

/// One agent's state.
#[derive(Debug)]
pub struct Session {
    /// Its line in the desktop's queue.
    pub lane: Arc<str>,
    /// Cancelled when its client leaves: calls that have done nothing yet are not begun any more.
    pub leaving: CancellationToken,
    /// Cancelled when the session ends.
    pub ended: CancellationToken,
    /// Its calls that run.
    pub calls: TaskTracker,
    /// Whether it is the anonymous session, which reads and writes the global settings.
    pub anonymous: bool,
    state: Mutex<Owned>,
}

#[derive(Debug, Default)]
struct Owned {
    overrides: Overrides,
    snapshots: VecDeque<Arc<Snapshot>>,
    snapshots_taken: u64,
    /// Of the windows that have a snapshot.
    numberings: HashMap<WindowId, Numbering>,
    pictures: VecDeque<Arc<Shown>>,
    pictures_taken: u64,
}

/// A picture that the session was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Names it within its session.
    pub id: String,
    /// What it shows.
    pub of: PictureOf,
    /// Which part of the screen that was then.
    pub frame: PictureFrame,
    /// Frame of the window that it shows, as it was then.
    pub window: Option<Rect>,
}

impl Shown {
    /// The window that it shows.
    pub const fn window_id(&self) -> Option<WindowId> {
        match self.of {
            PictureOf::Window(id) => Some(id),
            PictureOf::Desktop => None,
        }
    }

    /// By how much what it shows has moved since, to the right and down: `window` is its window as it is now.
    ///
    /// # Errors
    /// `stale_snapshot` if the window has another size now, so that nothing need be where it was.
    pub fn moved(&self, window: Option<&Window>) -> Result<(i32, i32)> {
        let (Some(then), Some(now)) = (self.window, window.map(|window| window.frame)) else {
            return Ok((0, 0));
        };
        if (then.width, then.height) != (now.width, now.height) {
            let message = format!(
                "the window was {then} when picture {} was taken and is {now} now; take a new picture",
                self.id
            );
            return Err(Error::new(Code::StaleSnapshot, message));
        }
        Ok((now.x.saturating_sub(then.x), now.y.saturating_sub(then.y)))
    }
}

/// What a picture shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PictureOf {
    /// A window.
    Window(WindowId),
    /// The desktop, or one display of it.
    Desktop,
}

impl std::fmt::Display for PictureOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Window(id) => write!(f, "window {id}"),
            Self::Desktop => f.write_str("the desktop"),
        }
    }
}

impl Session {
    fn new(id: Option<&SessionId>) -> Self {
        Self {
            lane: id.map_or_else(|| Arc::from(""), |id| Arc::clone(&id.0)),
            leaving: CancellationToken::new(),
            ended: CancellationToken::new(),
            calls: TaskTracker::new(),
            anonymous: id.is_none(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Owned> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This session's setting overrides.
    pub fn overrides(&self) -> Overrides {
        self.lock().overrides.clone()
    }

    /// Changes this session's overrides.
    pub fn change_overrides(&self, set: &Overrides, unset: &[String]) {
        let overrides = &mut self.lock().overrides;
        overrides.merge(set);
        for name in unset {
            overrides.unset(name);
        }
    }

    /// The indices of the elements of `window`: as in its earlier snapshots, and new ones for new objects.
    pub fn indices(&self, window: WindowId, nodes: &[Node]) -> Vec<u32> {
        self.lock().numberings.entry(window).or_default().indices(nodes)
    }

    /// Whether a kept snapshot of `window` has an element with this index.
    pub fn had_index(&self, window: WindowId, index: u32) -> bool {
        let state = self.lock();
        let mut of_window = state.snapshots.iter().filter(|snapshot| snapshot.window.id == window);
        of_window.any(|snapshot| snapshot.place(index).is_some())
    }

    /// Keeps a snapshot and gives it its id.
    pub fn keep(&self, make: impl FnOnce(String) -> Snapshot) -> Arc<Snapshot> {
        let mut state = self.lock();
        state.snapshots_taken += 1;
        let snapshot = Arc::new(make(format!("s{}", state.snapshots_taken)));
        if state.snapshots.len() == MAX_SNAPSHOTS {
            state.snapshots.pop_front();
        }
        state.snapshots.push_back(Arc::clone(&snapshot));
        let Owned { snapshots, numberings, .. } = &mut *state;
        numberings.retain(|window, _| snapshots.iter().any(|snapshot| snapshot.window.id == *window));
        snapshot
    }

    /// The snapshot called `id`.
    ///
    /// # Errors
    /// `stale_snapshot` if it is unknown or was dropped.
    pub fn snapshot(&self, id: &str) -> Result<Arc<Snapshot>> {
        self.lock().snapshots.iter().find(|snapshot| snapshot.id == id).cloned().ok_or_else(|| {
            Error::new(
                Code::StaleSnapshot,
                "this session has no such snapshot (the newest are kept); take a new one with get_window_state",
            )
        })
    }

    /// The newest snapshot of `window` that the caller has seen.
    ///
    /// # Errors
    /// `stale_snapshot` if there is none.
    pub fn newest_snapshot(&self, window: WindowId) -> Result<Arc<Snapshot>> {
        self.lock()
            .snapshots
            .iter()
            .rev()
            .find(|snapshot| snapshot.seen.is_some() && snapshot.window.id == window)
            .cloned()
            .ok_or_else(|| {
                Error::new(
                    Code::StaleSnapshot,
                    format!(
                        "this session has no snapshot of window {window}; take one with get_window_state"
                    ),
                )
            })
    }

    /// Remembers what a picture shows, so that points in it can be given back, and gives it its id.
    pub fn remember_picture(&self, of: PictureOf, frame: PictureFrame, window: Option<Rect>) -> String {
        let mut state = self.lock();
        state.pictures_taken += 1;
        let id = format!("p{}", state.pictures_taken);
        if state.pictures.len() == MAX_PICTURES {
            state.pictures.pop_front();
        }
        state.pictures.push_back(Arc::new(Shown { id: id.clone(), of, frame, window }));
        id
    }

    /// The newest picture that this session was given.
    pub fn newest_picture(&self) -> Option<Arc<Shown>> {
        self.lock().pictures.back().cloned()
    }

    /// The newest picture of `of` that this session was given.
    pub fn picture_of(&self, of: PictureOf) -> Option<Arc<Shown>> {
        self.lock().pictures.iter().rev().find(|picture| picture.of == of).cloned()
    }

    /// The picture called `id`.
    ///
    /// # Errors
    /// `stale_snapshot` if it is unknown or was dropped.
    pub fn picture(&self, id: &str) -> Result<Arc<Shown>> {
        self.lock().pictures.iter().find(|picture| picture.id == id).cloned().ok_or_else(|| {
            let message =
                "this session was given no such picture (the newest are remembered); take a new one";
            Error::new(Code::StaleSnapshot, message)
        })
    }

    fn clear(&self) {
        *self.lock() = Owned::default();
    }
}

/// The sessions of an engine.
#[derive(Debug, Default)]
pub struct Sessions {
    state: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    live: HashMap<Option<SessionId>, Arc<Session>>,
    ended: VecDeque<SessionId>,
}

impl Sessions {
    /// The session called `id`, made if it is new; `None` is the anonymous one.
    ///
    /// # Errors
    /// `session_ended` for an id that has ended, `limit_exceeded` if too many live.
    pub fn get(&self, id: Option<&SessionId>) -> Result<Arc<Session>> {
        let mut table = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.live.get(&id.cloned()) {
            return Ok(Arc::clone(session));
        }
        if id.is_some_and(|id| table.ended.contains(id)) {
            return Err(Error::new(Code::SessionEnded, "this session has ended; start a new one"));
        }
        if table.live.len() >= MAX_SESSIONS {
            let message = format!("there are {MAX_SESSIONS} sessions, the limit `sessions`; end one first");
            return Err(Error::new(Code::LimitExceeded, message));
        }
        let session = Arc::new(Session::new(id));
        table.live.insert(id.cloned(), Arc::clone(&session));
        Ok(session)
    }

    /// The session's client leaves.
    pub fn leave(&self, id: &SessionId) {
        let table = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(session) = table.live.get(&Some(id.clone())) {
            session.leaving.cancel();
        }
    }

    /// Ends a session: refuses its id from now on, cancels its calls, waits for them, and drops what it owned. A session
    /// that has ended already is not an error.
    pub async fn end(&self, id: &SessionId) {
        let session = {
            let mut table = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(session) = table.live.remove(&Some(id.clone())) else { return };
            if table.ended.len() == MAX_ENDED {
                table.ended.pop_front();
            }
            table.ended.push_back(id.clone());
            session
        };
        session.ended.cancel();
        session.calls.close();
        // Every call ends within its own grace time after it is cancelled.
        session.calls.wait().await;
        session.clear();
    }
}
