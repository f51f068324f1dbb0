//! What a session owns: its setting overrides, the look of its cursor, and what it has been shown.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, MutexGuard, PoisonError};

use super::Session;
use crate::agent_cursor::Look;
use crate::desktop::{Node, Window, WindowId};
use crate::error::{Code, Error, Result};
use crate::geometry::{PictureFrame, Rect};
use crate::settings::Overrides;
use crate::tree::{Numbering, Snapshot};

/// Pictures that a session remembers the place of; the oldest are dropped. Some are small parts of others.
pub const MAX_PICTURES: usize = 64;

/// Windows whose spent indices are remembered one by one: more than are ever open. With more, all windows begin where the
/// highest of them ended.
const MAX_SPENT: usize = 1024;

/// Snapshots, pictures, overrides and the look of its cursor.
#[derive(Debug, Default)]
pub(super) struct Owned {
    overrides: Overrides,
    cursor: Look,
    snapshots: VecDeque<Arc<Snapshot>>,
    snapshots_taken: u64,
    /// Of the windows that have a snapshot.
    numberings: HashMap<WindowId, Numbering>,
    spent: Spent,
    pictures: VecDeque<Arc<Shown>>,
    pictures_taken: u64,
}

/// The indices that were given out in windows whose numbering was dropped: a caller may still know them.
#[derive(Debug, Default)]
struct Spent {
    /// The first free one of each window.
    free: HashMap<WindowId, u32>,
    /// That of all other windows: for those that were forgotten.
    floor: u32,
}

impl Spent {
    fn free(&self, window: WindowId) -> u32 {
        self.free.get(&window).copied().unwrap_or(self.floor)
    }

    fn remember(&mut self, window: WindowId, next: u32) {
        self.free.insert(window, next);
        if self.free.len() > MAX_SPENT {
            self.floor = self.free.drain().fold(self.floor, |floor, (_, next)| floor.max(next));
        }
    }
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
    fn owned(&self) -> MutexGuard<'_, Owned> {
        self.owned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This session's setting overrides.
    pub fn overrides(&self) -> Overrides {
        self.owned().overrides.clone()
    }

    /// Changes this session's overrides.
    pub fn change_overrides(&self, set: &Overrides, unset: &[String]) {
        let overrides = &mut self.owned().overrides;
        overrides.merge(set);
        for name in unset {
            overrides.unset(name);
        }
    }

    /// What the session chose of its cursor.
    pub(crate) fn cursor_look(&self) -> Look {
        self.owned().cursor.clone()
    }

    /// Changes what the session chose of its cursor.
    pub(crate) fn change_cursor_look(&self, change: impl FnOnce(&mut Look)) {
        change(&mut self.owned().cursor);
    }

    /// The indices of the elements of `window`: as in its kept snapshots, and new ones for new objects. Where all its
    /// snapshots were dropped, all are new: none is ever given to another object.
    pub fn indices(&self, window: WindowId, nodes: &[Node]) -> Vec<u32> {
        let mut state = self.owned();
        let Owned { numberings, spent, .. } = &mut *state;
        numberings.entry(window).or_insert_with(|| Numbering::from(spent.free(window))).indices(nodes)
    }

    /// Whether an element of `window` may have had this index in a snapshot.
    pub fn had_index(&self, window: WindowId, index: u32) -> bool {
        let state = self.owned();
        let mut of_window = state.snapshots.iter().filter(|snapshot| snapshot.window.id == window);
        index < state.spent.free(window) || of_window.any(|snapshot| snapshot.place(index).is_some())
    }

    /// Keeps a snapshot and gives it its id.
    pub fn keep(&self, make: impl FnOnce(String) -> Snapshot) -> Arc<Snapshot> {
        let mut state = self.owned();
        state.snapshots_taken += 1;
        let snapshot = Arc::new(make(format!("s{}", state.snapshots_taken)));
        while state.snapshots.len() >= self.limits.snapshots.max(1) {
            state.snapshots.pop_front();
        }
        state.snapshots.push_back(Arc::clone(&snapshot));
        let Owned { snapshots, numberings, spent, .. } = &mut *state;
        numberings.retain(|window, numbering| {
            let is_kept = snapshots.iter().any(|snapshot| snapshot.window.id == *window);
            if !is_kept {
                spent.remember(*window, numbering.next());
            }
            is_kept
        });
        snapshot
    }

    /// The snapshot called `id`.
    ///
    /// # Errors
    /// `unknown_handle` if this session was never given it, `stale_snapshot` if it was dropped since.
    pub fn snapshot(&self, id: &str) -> Result<Arc<Snapshot>> {
        let state = self.owned();
        if let Some(snapshot) = state.snapshots.iter().find(|snapshot| snapshot.id == id) {
            return Ok(Arc::clone(snapshot));
        }
        Err(if given("s", id, state.snapshots_taken) {
            let message = "this session has no such snapshot (the newest are kept); take a new one with get_window_state";
            Error::new(Code::StaleSnapshot, message)
        } else {
            let message = "this session was never given such a snapshot; get_window_state gives one";
            Error::new(Code::UnknownHandle, message)
        })
    }

    /// The newest snapshot of `window` that the caller has seen.
    ///
    /// # Errors
    /// `stale_snapshot` if there is none.
    pub fn newest_snapshot(&self, window: WindowId) -> Result<Arc<Snapshot>> {
        self.owned()
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
        let mut state = self.owned();
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
        self.owned().pictures.back().cloned()
    }

    /// The newest picture of `of` that this session was given.
    pub fn picture_of(&self, of: PictureOf) -> Option<Arc<Shown>> {
        self.owned().pictures.iter().rev().find(|picture| picture.of == of).cloned()
    }

    /// The picture called `id`.
    ///
    /// # Errors
    /// `unknown_handle` if this session was never given it, `stale_snapshot` if it was dropped since.
    pub fn picture(&self, id: &str) -> Result<Arc<Shown>> {
        let state = self.owned();
        if let Some(picture) = state.pictures.iter().find(|picture| picture.id == id) {
            return Ok(Arc::clone(picture));
        }
        Err(if given("p", id, state.pictures_taken) {
            let message =
                "this session was given no such picture (the newest are remembered); take a new one";
            Error::new(Code::StaleSnapshot, message)
        } else {
            Error::new(Code::UnknownHandle, "this session was never given such a picture; take one")
        })
    }

    /// How many snapshots are kept.
    pub fn snapshots_kept(&self) -> usize {
        self.owned().snapshots.len()
    }

    /// Drops everything.
    pub(super) fn clear(&self) {
        *self.owned() = Owned::default();
    }
}

/// Whether `id` is `prefix` and a number that has been given out.
fn given(prefix: &str, id: &str, last: u64) -> bool {
    id.strip_prefix(prefix)
        .and_then(|number| number.parse::<u64>().ok())
        .is_some_and(|number| (1..=last).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_indices_are_remembered_for_every_window_in_bounded_space() {
        let mut spent = Spent::default();
        for window in 0..5000_u32 {
            spent.remember(WindowId(window.into()), window % 300 + 1);
            assert!(spent.free.len() <= MAX_SPENT);
        }
        for window in 0..5000_u32 {
            assert!(spent.free(WindowId(window.into())) > window % 300, "window {window}");
        }
    }
}
