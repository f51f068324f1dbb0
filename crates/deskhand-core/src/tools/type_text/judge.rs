//! What typing with real keys did: read back from the field, and from what else changed.

use std::time::Duration;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::time::Instant;

use super::Arguments;
use super::field::{self, Content, Wanted, expected, inserted_at, shown};
use super::focus::Focus;
use crate::desktop::{Change, ChangeKind, State, Text, Window};
use crate::effect::{Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Result};
use crate::tools::Element;
use crate::tools::under::named;
use crate::tree::{is_item, is_text_input};

/// How long typed characters may take to show up; each that does starts it anew.
const SETTLE: Duration = Duration::from_millis(400);

/// Real keys have been delivered; whether they arrived is read back.
pub(super) struct Typed {
    /// The application does not answer.
    pub(super) silent: bool,
    pub(super) window: Window,
    pub(super) element: Option<Element>,
    pub(super) before: Content,
    /// What changed since just before the first key.
    pub(super) changes: Option<Receiver<Change>>,
}

impl Typed {
    pub(super) async fn judge(mut self, context: &Context, arguments: &Arguments) -> Result<EffectReport> {
        let report = EffectReport::new(Effect::Unverifiable, Route::Keyboard).in_window(Some(self.window.id));
        let Some(element) = self.element.clone() else {
            let hint = if self.silent {
                "the application does not answer; what was typed waits for it"
            } else {
                "what was typed cannot be read back here; look at a picture"
            };
            return Ok(report.hint(hint));
        };
        let Some(before) = self.before.text.take() else {
            return self.judge_value(context, &element, report).await;
        };
        let clear = arguments.clear == Some(true);
        let wanted = expected(&before, &arguments.text, clear, true);
        let report = report.from(shown(&before.content));
        let Some(after) = settled(context, &element, wanted.as_ref()).await? else {
            return Ok(report.hint("the field cannot be read any more"));
        };
        let report = report.between(&before.content, &after.content);
        if wanted.is_some_and(|wanted| after.content == wanted.content) {
            return Ok(EffectReport { effect: Effect::Confirmed, ..report });
        }
        if !clear && let Some(at) = inserted_at(&before.content, &arguments.text, &after.content) {
            let hint = format!("it was inserted at character {at}, where the caret was");
            return Ok(EffectReport { effect: Effect::Confirmed, ..report }.hint(hint));
        }
        if let Some(place) = moved_to(context, &element).await {
            if let Some(turn) = context.turn() {
                turn.went_on(arguments.text.ends_with(['\t', '\n']));
            }
            let hint = format!("the focus moved on to {place} while typing; the rest went there");
            return Ok(report.hint(hint));
        }
        if after.content != before.content || arguments.text.is_empty() {
            let hint =
                "the field holds something else than was typed: it may complete, format or check its content";
            return Ok(report.hint(hint));
        }
        // A browser answers for a page that is busy: nothing tells that the keys still wait for it.
        let may_come_late = !is_text_input(element.role()) || element.is_in("document web");
        if may_come_late || self.something_changed(context, &element) {
            return Ok(report.hint(uncommitted(&element)));
        }
        Ok(EffectReport { effect: Effect::SuspectedNoop, ..report }
            .hint("the text of the focused element did not change; check where the focus is"))
    }

    /// An element that shows no text may show a number: parts of dates and times do.
    async fn judge_value(
        &self,
        context: &Context,
        element: &Element,
        report: EffectReport,
    ) -> Result<EffectReport> {
        if let Some(before) = self.before.value {
            let mut patience = Patience::start(context, SETTLE).await?;
            loop {
                let now = match field::read_all(context, element).await {
                    Ok(now) => now.value,
                    Err(error) if error.code == Code::ElementGone => None,
                    Err(error) => return Err(error),
                };
                if let Some(now) = now.filter(|now| *now != before) {
                    let report = EffectReport { effect: Effect::Confirmed, ..report };
                    return Ok(report.from(before.to_string()).to(now.to_string()));
                }
                if !patience.another_look(context).await {
                    break;
                }
            }
        }
        Ok(report.hint("what was typed cannot be read back here; look at a picture"))
    }

    /// Whether anything of its application that may hold the typed text changed, apart from the element.
    fn something_changed(&mut self, context: &Context, element: &Element) -> bool {
        let Some(changes) = &mut self.changes else { return false };
        loop {
            match changes.try_recv() {
                Ok(change) => {
                    let holds = matches!(
                        change.kind,
                        ChangeKind::Text | ChangeKind::Value | ChangeKind::Children | ChangeKind::Name
                    );
                    let is_ours = change.element.owner == element.id().owner;
                    if holds && is_ours && !context.activity().is_restless(&change.element) {
                        return true;
                    }
                }
                Err(TryRecvError::Lagged(_)) => return true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
            }
        }
    }
}

/// Where the focus is, if it is no longer at `element`. A toolkit that marks nothing as focused tells nothing by that.
async fn moved_to(context: &Context, element: &Element) -> Option<String> {
    let accessibility = &context.desktop().accessibility;
    if accessibility.probe(element.id()).await.is_ok_and(|node| node.states.has(State::Focused)) {
        return None;
    }
    Focus::of(context, &element.window).await.ok()?.holder.map(|holder| named(&holder))
}

fn uncommitted(element: &Element) -> &'static str {
    if is_item(element.role()) {
        "it is being edited; press_key Return commits it, Escape gives it up"
    } else {
        "its own text did not change; what was typed may show elsewhere, or when it is committed; look at the window"
    }
}

/// Reads the field until it holds what is wanted, or nothing has changed for a while.
async fn settled(context: &Context, element: &Element, wanted: Option<&Wanted>) -> Result<Option<Text>> {
    let mut changes = context.desktop().accessibility.changes().await.ok();
    let mut last: Option<Text> = None;
    let mut deadline = Instant::now() + SETTLE;
    loop {
        let now = match field::read(context, element).await {
            Ok(now) => now,
            Err(error) if error.code == Code::ElementGone => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some(now) = now else { return Ok(None) };
        if wanted.is_some_and(|wanted| wanted.content == now.content) {
            return Ok(Some(now));
        }
        if last.as_ref().is_none_or(|last| last.content != now.content) {
            deadline = Instant::now() + SETTLE;
        }
        last = Some(now);
        if context.stop().is_cancelled() || Instant::now() >= deadline {
            return Ok(last);
        }
        let changed = async {
            match &mut changes {
                Some(changes) => loop {
                    match changes.recv().await {
                        Ok(change) if change.element == *element.id() => break,
                        Ok(_) => {}
                        Err(_) => break,
                    }
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = changed => {}
            () = context.stop().cancelled() => {}
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}
