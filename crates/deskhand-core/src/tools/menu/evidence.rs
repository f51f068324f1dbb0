//! What choosing an item did. Menus that open and close change much by themselves, which says nothing.

use std::collections::HashSet;

use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::activity::Acting;
use crate::desktop::{Change, ChangeKind, ElementId, Node, State, Window, WindowId, WindowKind};
use crate::effect::{EFFECT_WAIT, Effect, EffectReport, Route};
use crate::engine::Context;
use crate::error::Result;
use crate::tree::{is_toggle, quote, spoken};

/// Watches from just before an item is chosen.
pub(super) struct Watch {
    changes: Option<broadcast::Receiver<Change>>,
    restacked: Option<watch::Receiver<u64>>,
    /// What was there before a menu was opened and belongs to none.
    telling: HashSet<ElementId>,
    window: Window,
    before: Vec<Window>,
    _acting: Acting,
}

/// The windows that an item may open, close or rename.
fn proper(windows: Vec<Window>) -> Vec<Window> {
    windows.into_iter().filter(|window| window.kind != WindowKind::Popup).collect()
}

impl Watch {
    pub(super) async fn start(
        context: &Context,
        window: &Window,
        telling: HashSet<ElementId>,
        item: &Node,
    ) -> Self {
        let acting = context.activity().acting(&item.id.owner);
        let desktop = context.desktop();
        context.activity().watch(&desktop.accessibility).await;
        let mut restacked = desktop.windows.changes().await.ok();
        if let Some(number) = &mut restacked {
            number.borrow_and_update();
        }
        let before = desktop.windows.list().await.map(proper).unwrap_or_default();
        Self {
            changes: desktop.accessibility.changes().await.ok(),
            restacked,
            telling,
            window: window.clone(),
            before,
            _acting: acting,
        }
    }

    /// Says what choosing `item` did.
    pub(super) async fn judge(
        mut self,
        context: &Context,
        window: WindowId,
        item: &Node,
        route: Route,
    ) -> Result<EffectReport> {
        let mut report = EffectReport::new(Effect::Confirmed, route).in_window(Some(window));
        report.element = Some(format!("{} {}", spoken(&item.role), quote(&item.name, 60)));
        let deadline = Instant::now() + EFFECT_WAIT;
        let checkable = is_checkable(item);
        let mut evidence = None;
        loop {
            if checkable && let Some(now) = self.checked_now(context, item).await {
                return Ok(report.from(word(item)).to(now));
            }
            if evidence.is_none() {
                evidence = self.windows_evidence(context).await;
            }
            if evidence.is_some() && !checkable {
                break;
            }
            match self.another(context, deadline).await {
                Next::Evidence(found) => evidence = evidence.or(Some(found)),
                Next::Look => {}
                Next::TimeUp => break,
            }
        }
        // Not all toolkits say beforehand that an item can be checked.
        if let Some(now) = self.checked_now(context, item).await {
            return Ok(report.from(word(item)).to(now));
        }
        Ok(match evidence {
            Some(evidence) => report.to(evidence),
            None if checkable => {
                let unread = EffectReport { effect: Effect::Unverifiable, ..report };
                unread.from(word(item)).hint("its state was not seen to change; open the menu and look")
            }
            None => EffectReport { effect: Effect::Unverifiable, ..report }
                .hint("no change was seen; look at the window before going on"),
        })
    }

    /// The item's state, if it is another than before.
    async fn checked_now(&self, context: &Context, item: &Node) -> Option<&'static str> {
        let now = context.desktop().accessibility.probe(&item.id).await.ok()?;
        (is_checked(&now) != is_checked(item)).then(|| word(&now))
    }

    async fn windows_evidence(&self, context: &Context) -> Option<String> {
        let after = proper(context.desktop().windows.list().await.ok()?);
        let before = &self.before;
        let ours = |other: &&Window| {
            (other.pid.is_some() && other.pid == self.window.pid) || other.parent == Some(self.window.id)
        };
        let is_in = |list: &[Window], id: WindowId| list.iter().any(|window| window.id == id);
        if let Some(new) = after.iter().filter(ours).find(|new| !is_in(before, new.id)) {
            return Some(format!("window {} {} opened", new.id, quote(&new.title, 60)));
        }
        if let Some(closed) = before.iter().filter(ours).find(|old| !is_in(&after, old.id)) {
            return Some(format!("window {} {} closed", closed.id, quote(&closed.title, 60)));
        }
        let now = after.iter().find(|other| other.id == self.window.id)?;
        let then = before.iter().find(|other| other.id == self.window.id)?;
        (now.title != then.title).then(|| format!("title is now {}", quote(&now.title, 60)))
    }

    async fn another(&mut self, context: &Context, deadline: Instant) -> Next {
        let changed = async {
            match &mut self.changes {
                Some(changes) => changes.recv().await,
                None => std::future::pending().await,
            }
        };
        let restacked = async {
            match &mut self.restacked {
                Some(number) => number.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = changed => match change {
                Ok(change) => self.counts(context, &change).map_or(Next::Look, Next::Evidence),
                Err(broadcast::error::RecvError::Lagged(_)) => Next::Look,
                Err(broadcast::error::RecvError::Closed) => {
                    self.changes = None;
                    Next::Look
                }
            },
            alive = restacked => {
                if !alive {
                    self.restacked = None;
                }
                Next::Look
            }
            () = context.stop().cancelled() => Next::TimeUp,
            () = tokio::time::sleep_until(deadline) => Next::TimeUp,
        }
    }

    /// A change outside of the menus, in words.
    fn counts(&self, context: &Context, change: &Change) -> Option<String> {
        let elsewhere =
            self.telling.contains(&change.element) && !context.activity().is_restless(&change.element);
        let what = match change.kind {
            ChangeKind::Text => "a text changed",
            ChangeKind::Value => "a value changed",
            ChangeKind::Name => "a name changed",
            ChangeKind::State(State::Checked, _) => "a check mark changed",
            _ => return None,
        };
        elsewhere.then(|| what.to_owned())
    }
}

enum Next {
    Evidence(String),
    Look,
    TimeUp,
}

/// Whether an item says that it can be checked.
pub(super) fn is_checkable(item: &Node) -> bool {
    is_toggle(&item.role) || item.states.has(State::Checkable) || is_checked(item)
}

/// What is told of `item` when its menu is open once more, and `now` is the item.
pub(super) fn reopened(report: EffectReport, item: &Node, now: &Node) -> EffectReport {
    let read = EffectReport { hint: None, ..report }.from(word(item)).to(word(now));
    if is_checked(now) != is_checked(item) {
        return EffectReport { effect: Effect::Confirmed, ..read };
    }
    let hint = match item.role.as_str() {
        "radio menu item" if is_checked(item) => "it was chosen already",
        _ => "its menu was opened once more and tells the same state; look at the window",
    };
    EffectReport { effect: Effect::SuspectedNoop, ..read }.hint(hint)
}

fn is_checked(node: &Node) -> bool {
    node.states.has(State::Checked)
}

fn word(node: &Node) -> &'static str {
    if is_checked(node) { "checked" } else { "unchecked" }
}
