//! `type_text`: text into an element, or into whatever has the focus.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::click::{focus_element, focus_window, name_of};
use super::target::{self, Aim, Element, QueryArgument};
use super::{Spec, Surface, Tool};
use crate::desktop::{
    Chord, Delivered, Details, Key, Modifier, PortError, State, Text, TreeNote, TreeRequest, Window, WindowId,
};
use crate::effect::{Delivery, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::{Snapshot, quote};

/// Characters in one call. More is a file, not typing.
const MAX_TEXT: usize = 100_000;
/// Longest pause between characters.
const MAX_DELAY_MS: u64 = 1000;
/// Characters of a field that are read back. What is longer cannot be compared as a whole.
const READ_BACK: usize = 200_000;
/// How long typed characters may take to show up; each that does starts it anew.
const SETTLE: Duration = Duration::from_millis(400);
/// What a character may take on a slow desktop; the call's deadline grows with the text.
const PER_CHARACTER: Duration = Duration::from_millis(20);

/// Types text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Text, any Unicode; newline is Return, tab is Tab.
    pub(super) text: String,
    /// Window to type into; without it, the one that has the focus.
    pub(super) window_id: Option<WindowId>,
    /// Element to type into, by its number in the newest snapshot of the window; without it, the one that has the focus.
    pub(super) element_index: Option<u32>,
    /// As in click.
    pub(super) query: Option<QueryArgument>,
    /// Snapshot that the number is from, if not the newest.
    pub(super) snapshot_id: Option<String>,
    /// Replace what is there instead of inserting.
    pub(super) clear: Option<bool>,
    /// Milliseconds between characters, for programs that are slow.
    #[schemars(range(min = 0, max = 1000))]
    pub(super) delay_ms: Option<u64>,
    /// `background` writes through accessibility only; `foreground` uses the keyboard; `auto` takes the first that works.
    pub(super) delivery: Option<Delivery>,
    /// As in click.
    pub(super) restore: Option<bool>,
}

impl Arguments {
    fn aim(&self) -> Aim {
        Aim {
            window_id: self.window_id,
            element_index: self.element_index,
            query: self.query.clone(),
            snapshot_id: self.snapshot_id.clone(),
            ..Aim::default()
        }
    }
}

fn check(arguments: &Arguments) -> Result<()> {
    let length = arguments.text.chars().count();
    if length > MAX_TEXT {
        return Err(Error::argument(
            "text",
            format!("{length} characters are too many; expected at most {MAX_TEXT}"),
        ));
    }
    if length == 0 && arguments.clear != Some(true) {
        return Err(Error::argument("text", "is empty; expected some text (or `clear` to empty the field)"));
    }
    // A carriage return alone, escapes and other control characters are keys, not text.
    if let Some(control) = arguments.text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        let message =
            format!("contains the control character U+{:04X}; use press_key for keys", u32::from(control));
        return Err(Error::argument("text", message));
    }
    crate::settings::within("delay_ms", arguments.delay_ms, &(0..=MAX_DELAY_MS))?;
    match arguments.aim().is_element() {
        true => arguments.aim().check_element(),
        false if arguments.snapshot_id.is_some() => {
            Err(Error::argument("snapshot_id", "belongs to an `element_index`"))
        }
        false => Ok(()),
    }
}

async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
    let write = async {
        if arguments.aim().is_element() {
            let element = target::element(&context, &arguments.aim()).await?;
            into_element(&context, &arguments, element).await
        } else {
            into_focus(&context, &arguments).await
        }
    };
    let judge = |written| judge(&context, &arguments, written);
    context.operate(arguments.restore.unwrap_or(false), write, judge).await
}

async fn judge(context: &Context, arguments: &Arguments, written: Written) -> Result<EffectReport> {
    match written {
        Written::Judged(report) => Ok(report),
        Written::Typed(typed) => typed.judge(context, arguments).await,
    }
}

/// How far writing came within its step.
enum Written {
    Judged(EffectReport),
    Typed(Box<Typed>),
}

pub(super) async fn into_element_whole(
    context: &Context,
    arguments: &Arguments,
    element: Element,
) -> Result<EffectReport> {
    judge(context, arguments, into_element(context, arguments, element).await?).await
}

async fn into_element(context: &Context, arguments: &Arguments, element: Element) -> Result<Written> {
    element.require_enabled(context).await?;
    let delivery = arguments.delivery.unwrap_or_default();
    if delivery != Delivery::Foreground {
        match through_accessibility(context, arguments, &element).await? {
            Some(report) => return Ok(Written::Judged(report)),
            None if delivery == Delivery::Background => {
                let message = format!(
                    "{} cannot be written to in the background; nothing was typed; use delivery \"foreground\"",
                    element.describe()
                );
                return Err(Error::new(Code::NotSupported, message));
            }
            None => {}
        }
    }
    if !focus_element(context, &element).await? {
        let message = format!(
            "{} did not take the keyboard focus; nothing was typed; click it, check what is focused, and type without an \
             element",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    let before = read_text(context, &element).await?;
    let window = element.window.clone();
    keyboard(context, arguments, window, Some(element), before, false)
        .await
        .map(|typed| Written::Typed(Box::new(typed)))
}

/// Writes through the accessibility interfaces and reads back. `None`: the element cannot, or did not.
async fn through_accessibility(
    context: &Context,
    arguments: &Arguments,
    element: &Element,
) -> Result<Option<EffectReport>> {
    let single_line = !element.node.states.has(State::MultiLine);
    if !element.node.interfaces.editable_text || (single_line && arguments.text.contains(['\n', '\t'])) {
        return Ok(None);
    }
    let Some(before) = read_text(context, element).await? else {
        // A password field shows nothing back: real keys are the surer way, unless they are ruled out.
        return if arguments.delivery == Some(Delivery::Background) {
            write_blind(context, arguments, element).await
        } else {
            Ok(None)
        };
    };
    let focused = element.node.states.has(State::Focused);
    let wanted = expected(&before, &arguments.text, arguments.clear == Some(true), focused);
    let Some(wanted) = wanted else { return Ok(None) };
    let accessibility = &context.desktop().accessibility;
    let replaces = arguments.clear == Some(true) || before.selections.iter().any(|(start, end)| end > start);
    let claim = if replaces {
        accessibility.set_text(element.id(), &wanted.content).await
    } else {
        accessibility.insert_text(element.id(), wanted.at, &arguments.text).await
    };
    match claim {
        Ok(_) => {}
        Err(PortError::NotSupported(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let report = |effect| {
        EffectReport::new(effect, Route::AxText)
            .in_window(Some(element.window.id))
            .on(element)
            .from(shown(&before.content))
    };
    let unverifiable = |hint| report(Effect::Unverifiable).hint(hint);
    let after = match written(context, element, &before, &wanted).await {
        Ok(Some(after)) => after,
        // What may have been written is never written again.
        Ok(None) | Err(_) => {
            return Ok(Some(unverifiable("it was accepted, and the field cannot be read any more")));
        }
    };
    Ok(match after.content {
        content if content == wanted.content => Some(report(Effect::Confirmed).to(shown(&content))),
        // The toolkit said yes and did nothing, as some do.
        content if content == before.content => None,
        content => {
            let hint = "the field holds something else than was written: it may format or check its content";
            Some(unverifiable(hint).to(shown(&content)))
        }
    })
}

/// How long a toolkit that said yes may take to show it: browsers write in another process.
const WRITE_WAIT: Duration = Duration::from_millis(150);

/// Reads a field until it shows what was written, or something else than before, or nothing for [`WRITE_WAIT`].
async fn written(
    context: &Context,
    element: &Element,
    before: &Text,
    wanted: &Wanted,
) -> Result<Option<Text>> {
    let mut patience = Patience::start(context, WRITE_WAIT).await?;
    loop {
        let after = read_text(context, element).await?;
        let same = after
            .as_ref()
            .is_some_and(|after| after.content == before.content && wanted.content != before.content);
        if !same {
            return Ok(after);
        }
        if !patience.another_look(context).await {
            return read_text(context, element).await;
        }
    }
}

async fn write_blind(
    context: &Context,
    arguments: &Arguments,
    element: &Element,
) -> Result<Option<EffectReport>> {
    let accessibility = &context.desktop().accessibility;
    let claim = if arguments.clear == Some(true) {
        accessibility.set_text(element.id(), &arguments.text).await
    } else {
        accessibility.insert_text(element.id(), 0, &arguments.text).await
    };
    match claim {
        Ok(true) => Ok(Some(
            EffectReport::new(Effect::Unverifiable, Route::AxText)
                .in_window(Some(element.window.id))
                .hint("a password field cannot be read back"),
        )),
        Ok(false) | Err(PortError::NotSupported(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

async fn into_focus(context: &Context, arguments: &Arguments) -> Result<Written> {
    let window = match arguments.window_id {
        Some(id) => context.window(id).await?,
        None => {
            let windows = context.desktop().windows.list().await?;
            let focused = windows.into_iter().find(|window| window.focused);
            focused.ok_or_else(|| Error::argument("window_id", "missing; no window has the focus"))?
        }
    };
    if arguments.delivery == Some(Delivery::Background) {
        let element = focused_element(context, &window).await?.0.ok_or_else(|| {
            let message =
                format!("{} tells no focused element to write to in the background", name_of(&window));
            Error::new(Code::NotSupported, format!("{message}; name one with `element_index`"))
        })?;
        return into_element(context, arguments, element).await;
    }
    focus_window(context, &window).await?;
    let (element, silent) = focused_element(context, &window).await?;
    let before = match &element {
        Some(element) => read_text(context, element).await?,
        None => None,
    };
    keyboard(context, arguments, window, element, before, silent)
        .await
        .map(|typed| Written::Typed(Box::new(typed)))
}

/// The element that has the focus in `window`, if its tree tells; and whether its application does not answer.
async fn focused_element(context: &Context, window: &Window) -> Result<(Option<Element>, bool)> {
    let request = TreeRequest { max_nodes: 20_000, budget: Duration::from_secs(2), text_limit: 0 };
    let tree = match context.desktop().accessibility.tree(window, &request, context.stop()).await {
        Ok(tree) => tree,
        Err(PortError::Unavailable { .. } | PortError::NotSupported(_)) => return Ok((None, false)),
        Err(error) => return Err(error.into()),
    };
    let silent = tree.notes.iter().any(|note| matches!(note, TreeNote::NotResponding { .. }));
    // The innermost: some toolkits mark the containers as well.
    let Some(place) =
        tree.nodes.iter().rposition(|node| node.states.has(State::Focused) && node.interfaces.text)
    else {
        return Ok((None, silent));
    };
    let node = tree.nodes[place].clone();
    let snapshot = Snapshot::passing(window.clone(), tree.nodes);
    let place = u32::try_from(place).unwrap_or(u32::MAX);
    let acting = Some(Arc::new(context.activity().acting(&node.id.owner)));
    let element = Element { snapshot: snapshot.into(), place, window: window.clone(), node, acting };
    Ok((Some(element), silent))
}

async fn read_text(context: &Context, element: &Element) -> Result<Option<Text>> {
    let details: Details = element.details(context, READ_BACK, false).await?;
    // Of a longer text the beginning says too little.
    let is_whole = |text: &Text| text.content.chars().count() == text.length;
    Ok(details.text.filter(is_whole))
}

/// Real keys have been delivered; whether they arrived is read back.
struct Typed {
    /// The application does not answer.
    silent: bool,
    window: Window,
    element: Option<Element>,
    before: Option<Text>,
}

async fn keyboard(
    context: &Context,
    arguments: &Arguments,
    window: Window,
    element: Option<Element>,
    before: Option<Text>,
    silent: bool,
) -> Result<Typed> {
    if arguments.clear == Some(true) {
        clear(context, element.as_ref()).await?;
    }
    if let Some(element) = &element {
        context.activity().aim(element.id());
    }
    type_while_focused(context, arguments, &window).await?;
    Ok(Typed { window, element, before, silent })
}

/// Types, and stops when the keyboard goes to another application: the rest was not meant for it.
async fn type_while_focused(context: &Context, arguments: &Arguments, window: &Window) -> Result<()> {
    let windows = &context.desktop().windows;
    let mut changes = windows.changes().await?;
    changes.borrow_and_update();
    let delay = Duration::from_millis(arguments.delay_ms.unwrap_or(0));
    let stop = context.stop().child_token();
    let mut typing = context.desktop().keyboard.type_text(&arguments.text, delay, &stop);
    let mut thief = None;
    let delivered = loop {
        tokio::select! {
            biased;
            delivered = &mut typing => break delivered,
            alive = changes.changed(), if thief.is_none() => {
                if alive.is_err() {
                    return Err(PortError::DesktopLost.into());
                }
                thief = focus_thief(&windows.list().await?, window);
                if thief.is_some() {
                    stop.cancel();
                }
            }
        }
    };
    let Some(thief) = thief else { return context.delivered(delivered?, "characters") };
    let Delivered { done, total } = match delivered {
        Ok(delivered) => delivered,
        Err(PortError::Stopped) => Delivered { done: 0, total: arguments.text.chars().count() },
        Err(error) => return Err(error.into()),
    };
    let details = serde_json::json!({"delivery": "partial", "done": done, "total": total});
    let message = format!("{thief} after about {done} of {total} characters; the rest was not typed");
    Err(Error::new(Code::FocusLost, message).with_details(details))
}

/// Says who has the focus now, if it is neither `window` nor a window of the same application.
fn focus_thief(windows: &[Window], window: &Window) -> Option<String> {
    let ours = |other: &Window| {
        other.id == window.id
            || other.parent == Some(window.id)
            || (other.pid.is_some() && other.pid == window.pid)
    };
    match windows.iter().find(|other| other.focused) {
        Some(focused) if ours(focused) => None,
        Some(focused) => Some(format!("{} of {} took the focus", name_of(focused), quote(&focused.app, 40))),
        None if windows.iter().any(ours) => None,
        None => Some(format!("{} was closed", name_of(window))),
    }
}

/// Empties a field: selects all of it and deletes.
async fn clear(context: &Context, element: Option<&Element>) -> Result<()> {
    let Some(element) = element else {
        return Err(Error::argument(
            "clear",
            "needs an `element_index`: without one it is not known what would be lost",
        ));
    };
    if !(element.node.interfaces.editable_text || crate::tree::is_text_input(element.role())) {
        let message =
            format!("{} is no text field, so its content cannot be selected safely", element.describe());
        return Err(Error::argument("clear", message));
    }
    let keyboard = &context.desktop().keyboard;
    let hold = Duration::from_millis(10);
    let select_all = Chord { modifiers: vec![Modifier::Ctrl], key: Some(Key("a".to_owned())) };
    let delete = Chord { modifiers: Vec::new(), key: Some(Key("BackSpace".to_owned())) };
    for chord in [select_all, delete] {
        let delivered = keyboard.press(&chord, 1, hold, context.stop()).await?;
        context.delivered(delivered, "keys")?;
    }
    Ok(())
}

impl Typed {
    async fn judge(self, context: &Context, arguments: &Arguments) -> Result<EffectReport> {
        let report = EffectReport::new(Effect::Unverifiable, Route::Keyboard).in_window(Some(self.window.id));
        let (Some(element), Some(before)) = (&self.element, &self.before) else {
            let hint = if self.silent {
                "the application does not answer; what was typed waits for it"
            } else {
                "what was typed cannot be read back here; look at a picture"
            };
            return Ok(report.hint(hint));
        };
        let wanted = expected(before, &arguments.text, arguments.clear == Some(true), true);
        let report = report.from(shown(&before.content));
        let after = self.settled(context, element, wanted.as_ref()).await?;
        let Some(after) = after else {
            return Ok(report.hint("the field cannot be read any more"));
        };
        let report = report.to(shown(&after.content));
        Ok(match wanted {
            Some(wanted) if after.content == wanted.content => {
                EffectReport { effect: Effect::Confirmed, ..report }
            }
            _ if after.content == before.content && !arguments.text.is_empty() => {
                EffectReport { effect: Effect::SuspectedNoop, ..report }
                    .hint("the text of the focused element did not change; check where the focus is")
            }
            _ => report.hint(
                "the field holds something else than was typed: it may complete, format or check its content",
            ),
        })
    }

    /// Reads the field until it holds what is wanted, or nothing has changed for a while.
    async fn settled(
        &self,
        context: &Context,
        element: &Element,
        wanted: Option<&Wanted>,
    ) -> Result<Option<Text>> {
        let mut changes = context.desktop().accessibility.changes().await.ok();
        let mut last: Option<Text> = None;
        let mut deadline = tokio::time::Instant::now() + SETTLE;
        loop {
            let now = match read_text(context, element).await {
                Ok(now) => now,
                Err(error) if error.code == Code::ElementGone => return Ok(None),
                Err(error) => return Err(error),
            };
            let Some(now) = now else { return Ok(None) };
            if wanted.is_some_and(|wanted| wanted.content == now.content) {
                return Ok(Some(now));
            }
            if last.as_ref().is_none_or(|last| last.content != now.content) {
                deadline = tokio::time::Instant::now() + SETTLE;
            }
            last = Some(now);
            if context.stop().is_cancelled() || tokio::time::Instant::now() >= deadline {
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
}

/// What a field should hold afterwards.
struct Wanted {
    content: String,
    /// Where the text goes, in characters.
    at: usize,
}

/// `None` if it cannot be told: several selections.
fn expected(before: &Text, text: &str, clear: bool, focused: bool) -> Option<Wanted> {
    if clear {
        return Some(Wanted { content: text.to_owned(), at: 0 });
    }
    let selections: Vec<_> = before.selections.iter().filter(|(start, end)| end > start).collect();
    let end = before.content.chars().count();
    let (start, stop) = match selections.as_slice() {
        [] => {
            // The caret of a field without focus is where it was last, which nobody sees: text goes to the end.
            let caret = if focused { before.caret.unwrap_or(end).min(end) } else { end };
            (caret, caret)
        }
        [(start, stop)] => (*start, *stop),
        _ => return None,
    };
    let characters = || before.content.chars();
    let content = characters().take(start).chain(text.chars()).chain(characters().skip(stop)).collect();
    Some(Wanted { content, at: start })
}

/// A field's content for an answer: its end, where typing shows.
fn shown(content: &str) -> String {
    const LIMIT: usize = 100;
    let length = content.chars().count();
    if length <= LIMIT {
        return quote(content, LIMIT);
    }
    let tail: String = content.chars().skip(length - LIMIT).collect();
    format!("…{} ({length} characters)", quote(&tail, LIMIT))
}

fn timeout(arguments: &Arguments) -> Duration {
    let characters = u32::try_from(arguments.text.chars().count()).unwrap_or(u32::MAX);
    let each = PER_CHARACTER + Duration::from_millis(arguments.delay_ms.unwrap_or(0));
    Duration::from_secs(30) + each.saturating_mul(characters)
}

pub(super) struct TypeText;

impl Tool for TypeText {
    const SPEC: Spec = Spec {
        name: "type_text",
        description: "Type text into an element, or into whatever has the focus in a window, exactly as given whatever the \
                      keyboard layout. The text is read back where the element allows it.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "element_index": 7, "text": "Grüße"}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        check(arguments)
    }

    fn timeout(arguments: &Arguments) -> Option<Duration> {
        Some(timeout(arguments))
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        run(arguments, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str, caret: usize, selections: &[(usize, usize)]) -> Text {
        let length = content.chars().count();
        Text { content: content.to_owned(), length, caret: Some(caret), selections: selections.to_vec() }
    }

    fn after(before: &Text, typed: &str, clear: bool, focused: bool) -> String {
        expected(before, typed, clear, focused)
            .map_or("?".into(), |wanted| format!("{}@{}", wanted.content, wanted.at))
    }

    #[test]
    fn text_goes_to_the_caret_the_end_or_the_selection() {
        assert_eq!(after(&text("äöü", 1, &[]), "x", false, true), "äxöü@1");
        assert_eq!(after(&text("äöü", 1, &[]), "x", false, false), "äöüx@3");
        assert_eq!(after(&text("äöü", 1, &[(1, 3)]), "x", false, true), "äx@1");
        assert_eq!(after(&text("äöü", 1, &[]), "x", true, true), "x@0");
        assert_eq!(after(&text("äöü", 1, &[(0, 1), (2, 3)]), "x", false, true), "?");
    }
}
