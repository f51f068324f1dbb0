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
/// What changes so soon after our own action is ascribed to it.
const OURS: Duration = Duration::from_secs(1);

/// Remembers which elements changed lately without our doing.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    watching: bool,
    changed: HashMap<ElementId, Instant>,
    order: VecDeque<ElementId>,
    acted: HashMap<Arc<str>, Instant>,
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

    /// Says that we are about to act on the application `owner`.
    pub(crate) fn acting(&self, owner: &Arc<str>) {
        self.lock().acted.insert(Arc::clone(owner), Instant::now());
    }

    /// Whether `element` has been changing by itself.
    pub(crate) fn is_restless(&self, element: &ElementId) -> bool {
        self.lock().changed.get(element).is_some_and(|changed| changed.elapsed() < RESTLESS)
    }

    fn note(&self, change: Change) {
        if matches!(change.kind, ChangeKind::Lost | ChangeKind::Window) {
            return;
        }
        let mut state = self.lock();
        if state.acted.get(&change.element.owner).is_some_and(|acted| acted.elapsed() < OURS) {
            return;
        }
        if state.changed.insert(change.element.clone(), Instant::now()).is_none() {
            state.order.push_back(change.element);
            if state.order.len() > MAX_ELEMENTS
                && let Some(oldest) = state.order.pop_front()
            {
                state.changed.remove(&oldest);
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
