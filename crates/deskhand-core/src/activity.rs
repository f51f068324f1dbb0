//! What changes in applications by itself, so that it is not taken for the effect of an action.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::desktop::{Accessibility, Change, ChangeKind, ElementId};

/// An element that changes so often in a row between two of our actions does so by itself: the effect of one is a burst.
const HABIT: u32 = 3;
/// Elements of an application that are remembered as aimed at: what a burst of calls touches in a second.
const MAX_AIMED: usize = 64;
/// Elements that are remembered. An animation touches a handful; a page that loads is forgotten soon.
const MAX_ELEMENTS: usize = 2048;
/// An element that changed by itself so shortly before an action may do so again: a clock, a progress bar.
const RESTLESS: Duration = Duration::from_secs(3);
/// Changes within so short a time are one.
const BURST: Duration = Duration::from_millis(50);
/// What changes so soon after our own action is ascribed to it.
const OURS: Duration = Duration::from_secs(1);

/// Remembers which elements changed lately without our doing.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
}

/// How an element changed.
#[derive(Clone, Copy, Debug)]
struct Changed {
    last: Instant,
    /// When it last did while nobody acted. Once is no habit: a program fills its window when it starts.
    alone: Option<Instant>,
    /// How often in a row between two of our actions, and between which.
    streak: (u32, u64),
    /// When it last did so by itself, apart from the last time.
    by_itself: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    /// Since when changes are watched.
    watching: Option<Instant>,
    changed: HashMap<ElementId, Changed>,
    order: VecDeque<ElementId>,
    acted: HashMap<Arc<str>, Acted>,
    /// The elements that our actions on an application were aimed at, the last one at the end, and when.
    aimed: HashMap<Arc<str>, VecDeque<(ElementId, Instant)>>,
}

/// Our actions on one application.
#[derive(Debug)]
struct Acted {
    under_way: u32,
    /// How many there have been.
    count: u64,
    /// When the last one ended.
    ended: Instant,
    /// When the last one ended that showed no effect: it may still come.
    open: Option<Instant>,
}

impl Activity {
    /// Begins to watch, if it does not yet. The task ends with the engine or the connection.
    pub(crate) async fn watch(self: &Arc<Self>, accessibility: &Arc<dyn Accessibility>) {
        if self.lock().watching.replace(Instant::now()).is_some() {
            return;
        }
        let Ok(mut changes) = accessibility.changes().await else {
            self.lock().watching = None;
            return;
        };
        let activity: Weak<Self> = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                let change = changes.recv().await;
                let Some(activity) = activity.upgrade() else { return };
                match change {
                    Ok(change) => activity.note(change),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => {
                        activity.lock().watching = None;
                        return;
                    }
                }
            }
        });
    }

    /// Whether what changes by itself has not been watched for long enough to be known.
    pub(crate) fn is_new(&self) -> bool {
        self.lock().watching.is_none_or(|since| since.elapsed() < OURS)
    }

    /// Says that we are acting on the application `owner`, until the answer is dropped.
    pub(crate) fn acting(self: &Arc<Self>, owner: &Arc<str>) -> Acting {
        let mut state = self.lock();
        let first = || Acted { under_way: 0, count: 0, ended: Instant::now(), open: None };
        let acted = state.acted.entry(Arc::clone(owner)).or_insert_with(first);
        acted.under_way += 1;
        acted.count += 1;
        Acting { activity: Arc::clone(self), owner: Arc::clone(owner) }
    }

    /// Says at which element an action is aimed. The answer is what the action before was aimed at, if it was a moment ago:
    /// what still changes there is of that action.
    pub(crate) fn aim(&self, element: &ElementId) -> Option<ElementId> {
        let mut state = self.lock();
        let aimed = state.aimed.entry(Arc::clone(&element.owner)).or_default();
        let before = aimed.back().filter(|(_, at)| at.elapsed() < OURS).map(|(element, _)| element.clone());
        if aimed.len() == MAX_AIMED {
            aimed.pop_front();
        }
        aimed.push_back((element.clone(), Instant::now()));
        before
    }

    /// Whether an action was aimed at `element` a moment ago.
    pub(crate) fn was_aimed_at(&self, element: &ElementId) -> bool {
        let state = self.lock();
        let mut aimed = state.aimed.get(&element.owner).into_iter().flatten();
        aimed.any(|(other, at)| other == element && at.elapsed() < OURS)
    }

    /// Says that an action on the application `owner` has shown no effect yet, or none that is its own for certain.
    pub(crate) fn leave_open(&self, owner: &Arc<str>) {
        if let Some(acted) = self.lock().acted.get_mut(owner) {
            acted.open = Some(Instant::now());
        }
    }

    /// Whether the effect of an earlier action on the application `owner` may still come.
    pub(crate) fn is_open(&self, owner: &Arc<str>) -> bool {
        let state = self.lock();
        state.acted.get(owner).and_then(|acted| acted.open).is_some_and(|at| at.elapsed() < OURS)
    }

    /// Whether what changed has been changing by itself.
    pub(crate) fn changes_by_itself(&self, change: &Change) -> bool {
        self.is_restless(&key(change))
    }

    /// Whether `element` has been changing by itself.
    pub(crate) fn is_restless(&self, element: &ElementId) -> bool {
        let state = self.lock();
        let at = state.changed.get(element).and_then(|changed| changed.by_itself);
        at.is_some_and(|at| at.elapsed() < RESTLESS)
    }

    /// Says that what changed was seen to change by itself.
    pub(crate) fn is_a_habit(&self, change: &Change) {
        let mut state = self.lock();
        state.remember(key(change)).by_itself = Some(Instant::now());
    }

    fn note(&self, change: Change) {
        // Places are no evidence of anything, and GTK 3 announces them in each frame of an animation: a check box would be
        // taken for restless after it was clicked, and the next click on it for one that did nothing.
        if matches!(change.kind, ChangeKind::Lost | ChangeKind::Window | ChangeKind::Bounds) {
            return;
        }
        let mut state = self.lock();
        let acted = state.acted.get(&change.element.owner);
        if acted.is_some_and(|acted| acted.under_way > 0) {
            return;
        }
        let ours = acted.is_some_and(|acted| acted.ended.elapsed() < OURS);
        let count = acted.map_or(0, |acted| acted.count);
        let key = key(&change);
        let now = Instant::now();
        let is_new = !state.changed.contains_key(&key);
        let changed = state.remember(key);
        if !is_new && now - changed.last < BURST {
            return;
        }
        let in_a_row = if changed.streak.1 == count { changed.streak.0 + 1 } else { 1 };
        let habit = (in_a_row >= HABIT).then_some(changed.last);
        if !ours {
            changed.by_itself = changed.alone.or(changed.by_itself);
            changed.alone = Some(now);
        }
        changed.by_itself = changed.by_itself.max(habit);
        changed.streak = (in_a_row, count);
        changed.last = now;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remember(&mut self, element: ElementId) -> &mut Changed {
        if !self.changed.contains_key(&element) {
            self.order.push_back(element.clone());
            if self.order.len() > MAX_ELEMENTS
                && let Some(oldest) = self.order.pop_front()
            {
                self.changed.remove(&oldest);
            }
        }
        let new = || Changed { last: Instant::now(), alone: None, streak: (0, 0), by_itself: None };
        self.changed.entry(element).or_insert_with(new)
    }
}

/// What a change is remembered by. A page that replaces a text by another has a new object each time: that some
/// object of the application went is all that is alike.
fn key(change: &Change) -> ElementId {
    match change.kind {
        ChangeKind::State(crate::desktop::State::Defunct, _) => {
            ElementId { owner: Arc::clone(&change.element.owner), object: "(gone)".into() }
        }
        _ => change.element.clone(),
    }
}

/// An action on an application that is under way.
#[derive(Debug)]
pub(crate) struct Acting {
    activity: Arc<Activity>,
    owner: Arc<str>,
}

impl Drop for Acting {
    fn drop(&mut self) {
        if let Some(acted) = self.activity.lock().acted.get_mut(&self.owner) {
            acted.under_way = acted.under_way.saturating_sub(1);
            acted.ended = Instant::now();
        }
    }
}
