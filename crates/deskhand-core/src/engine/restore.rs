//! Gives back what an operation took from the person at the desktop: the focus, the stacking order and the pointer.

use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::Context;
use crate::desktop::{PortError, Window, WindowId, WindowKind, WindowState};
use crate::effect::EffectReport;
use crate::error::Result;
use crate::geometry::Point;

/// How long window managers may take to put windows back in their order.
const RESTACK_BOUND: Duration = Duration::from_millis(400);

/// Whether everything is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Restored {
    Whole,
    /// Not, and why.
    Not(String),
}

impl Context {
    /// Runs one operation with real input: `deliver` in its turn, then `judge` on what came of it. With `restore`, both are
    /// part of one step, and at its end, however it ends, focus, stacking order and pointer are as before.
    pub(crate) async fn operate<T, J>(
        &self,
        restore: bool,
        deliver: impl Future<Output = Result<T>>,
        judge: impl FnOnce(T) -> J,
    ) -> Result<EffectReport>
    where
        J: Future<Output = Result<EffectReport>>,
    {
        if !restore {
            return judge(self.act(deliver).await?).await;
        }
        self.act(async {
            let before = Arrangement::look(self).await?;
            let report = match deliver.await {
                Ok(delivered) => judge(delivered).await,
                Err(error) => Err(error),
            };
            let restored = match before.give_back(self).await {
                Ok(restored) => restored,
                Err(error) => Restored::Not(format!("focus and pointer were not given back: {error}")),
            };
            report.map(|report| report.restored(restored))
        })
        .await
    }
}

/// How the desktop is arranged.
struct Arrangement {
    /// Lowest first.
    windows: Vec<Window>,
    pointer: Point,
}

impl Arrangement {
    async fn look(context: &Context) -> Result<Self, PortError> {
        let desktop = context.desktop();
        Ok(Self { windows: desktop.windows.list().await?, pointer: desktop.pointer.position().await? })
    }

    async fn give_back(&self, context: &Context) -> Result<Restored, PortError> {
        let desktop = context.desktop();
        let now = desktop.windows.list().await?;
        let is_new = |window: &&Window| !self.windows.iter().any(|old| old.id == window.id);
        if let Some(popup) = now.iter().filter(is_new).find(|window| window.kind == WindowKind::Popup) {
            let why = format!(
                "focus and pointer were not given back, since that would close what opened (window {})",
                popup.id
            );
            return Ok(Restored::Not(why));
        }
        if desktop.pointer.position().await? != self.pointer {
            desktop.pointer.move_to(self.pointer).await?;
        }
        for window in self.windows.iter().filter(|window| window.minimized) {
            if now.iter().any(|other| other.id == window.id && !other.minimized) {
                desktop.windows.set_state(window.id, WindowState::Minimized).await?;
            }
        }
        let focused = self.windows.iter().find(|window| window.focused);
        if let Some(window) = focused.filter(|window| now.iter().any(|other| other.id == window.id)) {
            match desktop.windows.activate(window.id).await {
                Ok(()) => {}
                Err(PortError::NotSupported(why)) => return Ok(Restored::Not(why)),
                Err(error) => return Err(error),
            }
        }
        self.restack(context).await
    }

    /// Puts the windows in their old order, from the top down.
    async fn restack(&self, context: &Context) -> Result<Restored, PortError> {
        let windows = &context.desktop().windows;
        let mut changes = windows.changes().await?;
        changes.mark_unchanged();
        let deadline = Instant::now() + RESTACK_BOUND;
        let mut asked = false;
        loop {
            let now = windows.list().await?;
            let (old, new) = (order(&self.windows, &now), order(&now, &self.windows));
            if old == new {
                return Ok(Restored::Whole);
            }
            if !asked {
                for pair in old.windows(2).rev() {
                    windows.put_below(pair[0], pair[1]).await?;
                }
                asked = true;
            }
            if !matches!(tokio::time::timeout_at(deadline, changes.changed()).await, Ok(Ok(()))) {
                let why = "the focus was given back, the stacking order of the windows was not".to_owned();
                return Ok(Restored::Not(why));
            }
        }
    }
}

/// Windows of `list` that are in `other` as well and can be put in order, lowest first.
fn order(list: &[Window], other: &[Window]) -> Vec<WindowId> {
    let can = |window: &&Window| {
        matches!(window.kind, WindowKind::Normal | WindowKind::Dialog) && !window.minimized
    };
    let is_there = |window: &&Window| other.iter().filter(can).any(|there| there.id == window.id);
    list.iter().filter(can).filter(is_there).map(|window| window.id).collect()
}
