//! `select_text`: a part of a text, through accessibility, else with the keyboard.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::click::focus_element;
use super::target::{self, Aim, Element, QueryArgument};
use super::{Spec, Surface, Tool};
use crate::desktop::{Chord, Key, Modifier, PortError, State, Text, WindowId};
use crate::effect::{Delivery, EFFECT_WAIT, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::{is_interactive, is_text_input, quote};

/// Characters of a text that are looked through. What is longer cannot be counted as a whole.
const READ: usize = 200_000;
/// Presses of arrow keys that a selection with the keyboard may take: some ten seconds.
const MAX_STEPS: usize = 1000;
/// Time between press and release of an arrow key.
const HOLD: Duration = Duration::from_millis(2);
/// Characters of the selected text that the answer shows.
const SHOWN: usize = 80;

/// Characters, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Range {
    /// First character.
    start: usize,
    /// The one after the last; `start` puts the caret there.
    end: usize,
}

/// Selects a part of an element's text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// As in click.
    window_id: Option<WindowId>,
    /// As in click.
    element_index: Option<u32>,
    /// As in click.
    query: Option<QueryArgument>,
    /// As in click.
    snapshot_id: Option<String>,
    /// Text to select.
    text: Option<String>,
    /// Which of several, from 1.
    #[schemars(range(min = 1))]
    occurrence: Option<usize>,
    /// Characters to select, instead of a text.
    range: Option<Range>,
    /// As in click.
    delivery: Option<Delivery>,
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

    /// The characters that are meant.
    fn range_in(&self, content: &str, length: usize) -> Result<Range> {
        match (&self.text, self.range) {
            (Some(text), _) => find(content, text, self.occurrence),
            (None, Some(range)) if range.end > length => {
                Err(Error::argument("range", format!("the text has {length} characters")))
            }
            (None, range) => {
                range.ok_or_else(|| Error::argument("text", "missing; expected `text` or `range`"))
            }
        }
    }
}

fn find(content: &str, text: &str, occurrence: Option<usize>) -> Result<Range> {
    let places: Vec<usize> = content.match_indices(text).map(|(place, _)| place).collect();
    let place = match (occurrence, places.as_slice()) {
        (_, []) => {
            return Err(Error::new(Code::ElementNotFound, format!("{} does not occur", quote(text, 60))));
        }
        (None, [only]) => *only,
        (None, several) => {
            let message = format!(
                "{} occurs {} times; say which with `occurrence`; nothing was selected",
                quote(text, 60),
                several.len()
            );
            return Err(Error::new(Code::Ambiguous, message)
                .with_details(serde_json::json!({"occurrences": several.len()})));
        }
        (Some(number), all) => *all.get(number - 1).ok_or_else(|| {
            Error::argument("occurrence", format!("{} occurs {} times", quote(text, 60), all.len()))
        })?,
    };
    let start = content[..place].chars().count();
    Ok(Range { start, end: start + text.chars().count() })
}

fn excerpt(content: &str, range: Range) -> String {
    content.chars().skip(range.start).take(range.end - range.start).collect()
}

/// The whole text of an element.
async fn read(context: &Context, element: &Element) -> Result<Text> {
    let text = element.details(context, READ, false).await?.text.ok_or_else(|| {
        let message = format!(
            "{} shows no text that could be selected by its characters; drag over it, or double-click a word",
            element.describe()
        );
        Error::new(Code::NotSupported, message)
    })?;
    if text.content.chars().count() < text.length {
        let message =
            format!("the text has {} characters, too many to count; drag over what is wanted", text.length);
        return Err(Error::new(Code::NotSupported, message));
    }
    Ok(text)
}

fn is_selected(text: &Text, range: Range) -> bool {
    if range.start == range.end {
        text.selections.is_empty() && text.caret == Some(range.start)
    } else {
        text.selections == [(range.start, range.end)]
    }
}

/// Reads the text until the range is what is selected, a bounded time.
async fn settled(context: &Context, element: &Element, range: Range) -> Result<Text> {
    let mut patience = Patience::start(context, EFFECT_WAIT).await?;
    loop {
        let text = read(context, element).await?;
        if is_selected(&text, range) || !patience.another_look(context).await {
            return Ok(text);
        }
    }
}

/// Selects through accessibility. The answer is what is selected then.
async fn through_accessibility(context: &Context, element: &Element, range: Range) -> Result<Text> {
    match context.desktop().accessibility.select_text(element.id(), range.start, range.end).await {
        Ok(_) => settled(context, element, range).await,
        Err(PortError::NotSupported(_)) => read(context, element).await,
        Err(error) => Err(error.into()),
    }
}

fn has_caret(element: &Element) -> bool {
    // Firefox offers to edit all its texts, so the interface tells nothing.
    element.node.states.has(State::Editable) || is_text_input(element.role())
}

fn is_in_document(element: &Element) -> bool {
    ["document web", "document text", "document spreadsheet", "document frame", "document presentation"]
        .iter()
        .any(|role| element.is_in(role))
}

/// Selects with the keyboard: to the nearer end of the text, along it, and on with shift.
async fn with_keyboard(context: &Context, element: &Element, text: &Text, range: Range) -> Result<()> {
    let Range { start, end } = range;
    let from_end = text.length - end < start;
    let (home, arrow, way) = match from_end {
        false => ("Home", "Right", start),
        true => ("End", "Left", text.length - end),
    };
    if way + (end - start) > MAX_STEPS {
        let message = format!(
            "it would take {} key presses; drag over what is wanted, or use press_key with shift",
            way + (end - start)
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    // Qt's fields of one line know no end of the document.
    let whole = if element.node.states.has(State::MultiLine) { vec![Modifier::Ctrl] } else { Vec::new() };
    let steps = [(whole, home, 1), (Vec::new(), arrow, way), (vec![Modifier::Shift], arrow, end - start)];
    for (modifiers, key, repeat) in steps {
        let Ok(repeat @ 1..) = u32::try_from(repeat) else { continue };
        let chord = Chord { modifiers, key: Some(Key(key.to_owned())) };
        let delivered = context.desktop().keyboard.press(&chord, repeat, HOLD, context.stop()).await?;
        context.delivered(delivered, "key presses")?;
    }
    Ok(())
}

async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
    context.act(select(&arguments, &context)).await
}

async fn select(arguments: &Arguments, context: &Context) -> Result<EffectReport> {
    let element = target::element(context, &arguments.aim()).await?;
    element.require_enabled(context).await?;
    // Firefox says that what its own tabs and buttons are called can be selected, and that it is.
    if is_interactive(element.role()) && !has_caret(&element) && !is_in_document(&element) {
        let message =
            format!("{} holds no text that could be selected; nothing was done", element.describe());
        return Err(Error::new(Code::NotSupported, message));
    }
    let before = read(context, &element).await?;
    let range = arguments.range_in(&before.content, before.length)?;
    let delivery = arguments.delivery.unwrap_or_default();
    let report = |route, text: &Text| report(&element, route, &before, text, range);
    if delivery != Delivery::Foreground {
        let text = through_accessibility(context, &element, range).await?;
        if is_selected(&text, range) {
            return Ok(report(Route::AxText, &text));
        }
        if delivery == Delivery::Background {
            let message = format!(
                "{} does not let its text be selected in the background; use delivery \"foreground\"",
                element.describe()
            );
            return Err(Error::new(Code::NotSupported, message));
        }
    }
    // The text of a page has no caret: keys, and the click that would focus it, select something else or nothing.
    if !has_caret(&element) {
        let message = format!(
            "{} has no caret that keys could move; nothing was selected; use delivery \"auto\", or drag over what is wanted",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    if !focus_element(context, &element).await? {
        let message = format!("{} did not take the keyboard focus; nothing was selected", element.describe());
        return Err(Error::new(Code::NotSupported, message));
    }
    // Browsers let the text be selected of what has the focus.
    if delivery != Delivery::Foreground {
        let text = through_accessibility(context, &element, range).await?;
        if is_selected(&text, range) {
            return Ok(report(Route::AxText, &text));
        }
    }
    with_keyboard(context, &element, &before, range).await?;
    let text = settled(context, &element, range).await?;
    Ok(report(Route::Keyboard, &text))
}

fn report(element: &Element, route: Route, before: &Text, text: &Text, range: Range) -> EffectReport {
    let report = |effect| EffectReport::new(effect, route).in_window(Some(element.window.id)).on(element);
    if is_selected(text, range) {
        let Range { start, end } = range;
        let what = match start == end {
            true => format!("caret at {start}"),
            false => format!("{start}..{end} {}", quote(&excerpt(&text.content, range), SHOWN)),
        };
        return report(Effect::Confirmed).to(what);
    }
    match text.selections.as_slice() {
        [] => report(Effect::Unverifiable)
            .hint("it tells no selection; look at a picture, or copy with ctrl+c and use clipboard_read"),
        [(start, end), ..] => {
            let selected = excerpt(&text.content, Range { start: *start, end: *end });
            let moved = text.selections != before.selections;
            report(if moved { Effect::Unverifiable } else { Effect::SuspectedNoop })
                .to(format!("{start}..{end} {}", quote(&selected, SHOWN)))
                .hint("something else is selected; drag over what is wanted")
        }
    }
}

pub(super) struct SelectText;

impl Tool for SelectText {
    const SPEC: Spec = Spec {
        name: "select_text",
        description: "Select a part of an element's text, by what it says or by its characters, and read back what is selected.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"window_id": 4194310, "element_index": 7, "text": "Grüße"}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        match (&arguments.text, arguments.range) {
            (Some(_), Some(_)) => return Err(Error::argument("range", "give `text` or `range`, not both")),
            (None, None) => return Err(Error::argument("text", "missing; expected `text` or `range`")),
            (Some(text), None) if text.is_empty() => return Err(Error::argument("text", "is empty")),
            (None, Some(range)) if range.start > range.end => {
                return Err(Error::argument("range", "`start` is beyond `end`"));
            }
            (None, Some(_)) if arguments.occurrence.is_some() => {
                return Err(Error::argument("occurrence", "belongs to `text`"));
            }
            _ => {}
        }
        if arguments.occurrence == Some(0) {
            return Err(Error::argument("occurrence", "is counted from 1"));
        }
        arguments.aim().check_element()
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        run(arguments, context).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_by_characters() {
        let range = |text, occurrence| find("ä😀b ä😀", text, occurrence).map(|r| (r.start, r.end));
        assert_eq!(range("b", None), Ok((2, 3)));
        assert_eq!(range("ä😀", Some(2)), Ok((4, 6)));
        assert_eq!(range("ä😀", None).unwrap_err().code, Code::Ambiguous);
        assert_eq!(range("x", None).unwrap_err().code, Code::ElementNotFound);
        assert_eq!(range("b", Some(2)).unwrap_err().code, Code::InvalidArgument);
    }
}
