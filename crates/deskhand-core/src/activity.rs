//! What changes in applications by itself, so that it is not taken for the effect of an action.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use crate::desktop::{Accessibility, Change, ChangeKind, ElementId};

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

/// When an element changed by itself. Once is no habit: a program fills its window when it starts.
#[derive(Clone, Copy, Debug)]
struct Changed {
    last: Instant,
    before: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    watching: bool,
    changed: HashMap<ElementId, Changed>,
    order: VecDeque<ElementId>,
    /// Per application: how many of our actions are under way, and when the last one ended.
    acted: HashMap<Arc<str>, (u32, Instant)>,
    /// The element that our last action on an application was aimed at, and when.
    aimed: HashMap<Arc<str>, (ElementId, Instant)>,
}

impl Activity {
    /// Begins to watch, if it does not yet. The task ends with the engine or the connection.
    pub(crate) async fn watch(self: &Arc<Self>, accessibility: &Arc<dyn Accessibility>) {
        if std::mem::replace(&mut self.lock().watching, true) {
            return;
        }
        let Ok(mut changes) = accessibility.changes().await else {
            self.lock().watching = false;
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
                        activity.lock().watching = false;
                        return;
                    }
                }
            }
        });
    }

    /// Says that we are acting on the application `owner`, until the answer is dropped.
    pub(crate) fn acting(self: &Arc<Self>, owner: &Arc<str>) -> Acting {
        self.lock().acted.entry(Arc::clone(owner)).or_insert((0, Instant::now())).0 += 1;
        Acting { activity: Arc::clone(self), owner: Arc::clone(owner) }
    }

    /// Says at which element an action is aimed. The answer is what the action before was aimed at, if it was a moment ago:
    /// what still changes there is of that action.
    pub(crate) fn aim(&self, element: &ElementId) -> Option<ElementId> {
        let before = self.lock().aimed.insert(Arc::clone(&element.owner), (element.clone(), Instant::now()));
        before.filter(|(_, aimed)| aimed.elapsed() < OURS).map(|(element, _)| element)
    }

    /// Whether `element` has been changing by itself.
    pub(crate) fn is_restless(&self, element: &ElementId) -> bool {
        let state = self.lock();
        state
            .changed
            .get(element)
            .and_then(|changed| changed.before)
            .is_some_and(|at| at.elapsed() < RESTLESS)
    }

    fn note(&self, change: Change) {
        if matches!(change.kind, ChangeKind::Lost | ChangeKind::Window) {
            return;
        }
        let mut state = self.lock();
        let ours = |(under_way, ended): &(u32, Instant)| *under_way > 0 || ended.elapsed() < OURS;
        if state.acted.get(&change.element.owner).is_some_and(ours) {
            return;
        }
        let now = Instant::now();
        if let Some(changed) = state.changed.get_mut(&change.element) {
            if now - changed.last >= BURST {
                *changed = Changed { before: Some(changed.last), last: now };
            }
            return;
        }
        state.changed.insert(change.element.clone(), Changed { before: None, last: now });
        state.order.push_back(change.element);
        if state.order.len() > MAX_ELEMENTS
            && let Some(oldest) = state.order.pop_front()
        {
            state.changed.remove(&oldest);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        if let Some((under_way, ended)) = self.activity.lock().acted.get_mut(&self.owner) {
            *under_way = under_way.saturating_sub(1);
            *ended = Instant::now();
        }
    }
}
