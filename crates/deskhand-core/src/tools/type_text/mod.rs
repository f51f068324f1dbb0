//! `type_text`: text into an element, or into whatever has the focus.

mod background;
mod field;
mod focus;
mod judge;
mod keys;

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use self::field::Content;
pub(crate) use self::field::differing;
pub(super) use self::focus::Focus;
use self::judge::Typed;
use super::click::{focus_element, focus_window, name_of};
use super::target::{self, Aim, Element, QueryArgument};
use super::{Spec, Surface, Tool};
use crate::desktop::{State, Window, WindowId};
use crate::effect::{Delivery, EffectReport};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;

/// Characters in one call. More is a file, not typing.
const MAX_TEXT: usize = 100_000;
/// Longest pause between characters.
const MAX_DELAY_MS: u64 = 1000;
/// What a character may take on a slow desktop; the call's deadline grows with the text.
const PER_CHARACTER: Duration = Duration::from_millis(30);

/// Types text.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Text, any Unicode; newline is Return, tab is Tab.
    pub(super) text: String,
    /// Its window; without one, the one that has the focus.
    pub(super) window_id: Option<WindowId>,
    /// Element by number; without one, what has the focus.
    pub(super) element_index: Option<u32>,
    /// As in click.
    pub(super) query: Option<QueryArgument>,
    /// Snapshot that the number is from, if not the newest.
    pub(super) snapshot_id: Option<String>,
    /// Replace what is there instead of inserting.
    pub(super) clear: Option<bool>,
    /// Milliseconds between characters.
    #[schemars(range(min = 0, max = 1000))]
    pub(super) delay_ms: Option<u64>,
    /// `background` writes through accessibility only; `foreground` uses the keyboard; `auto` takes the first that works.
    pub(super) delivery: Option<Delivery>,
    /// As in click.
    pub(super) restore: Option<bool>,
    /// It is a value: no character of it may do what a key does, such as leave the field or submit its form.
    #[serde(skip)]
    pub(super) is_value: bool,
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
    let text = one_line_breaks(&arguments.text);
    if let Some(control) = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
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

/// The text with `\r\n` as the one line break that it is.
pub(super) fn one_line_breaks(text: &str) -> String {
    text.replace("\r\n", "\n")
}

async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
    let arguments = Arguments { text: one_line_breaks(&arguments.text), ..arguments };
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
        match background::write(context, arguments, &element).await? {
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
    if arguments.is_value {
        require_keys_that_write(&element, &arguments.text)?;
    }
    if !focus_element(context, &element).await? {
        let message = format!(
            "{} did not take the keyboard focus; nothing was typed; click it, check what is focused, and type without an \
             element",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    let window = element.window.clone();
    keyboard(context, arguments, window, Some(element), false).await
}

/// Refuses a value of which a character would act as a key.
fn require_keys_that_write(element: &Element, text: &str) -> Result<()> {
    let is_editor = element.role() == "text" || element.is_in("document web");
    let breaks_lines = is_editor && element.node.states.has(State::MultiLine);
    let acts = |c: &char| c.is_control() && !(*c == '\n' && breaks_lines);
    let Some(key) = text.chars().find(acts) else { return Ok(()) };
    let key = match key {
        '\n' | '\r' => "a line break",
        '\t' => "a tab",
        _ => "a control character",
    };
    let message = format!(
        "has {key}, which {} takes only from the keyboard, where it can leave the field or submit a form; nothing was \
         typed; leave it out, or write the parts with type_text and send the keys you mean with press_key",
        element.describe()
    );
    Err(Error::argument("value", message))
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
        let element = Focus::of(context, &window).await?.element.ok_or_else(|| {
            let message =
                format!("{} tells no focused element to write to in the background", name_of(&window));
            Error::new(Code::NotSupported, format!("{message}; name one with `element_index`"))
        })?;
        return into_element(context, arguments, element).await;
    }
    focus_window(context, &window).await?;
    let Focus { element, silent, .. } = if window.focused && arguments.clear != Some(true) {
        Focus::of(context, &window).await?
    } else {
        Focus::soon_of(context, &window).await?
    };
    // Of an application that does not answer nobody knows what has the focus.
    if let (Some(turn), false) = (context.turn(), silent) {
        turn.types_into(element.as_ref().map(|element| &element.node));
    }
    keyboard(context, arguments, window, element, silent).await
}

/// Types with real keys.
async fn keyboard(
    context: &Context,
    arguments: &Arguments,
    window: Window,
    element: Option<Element>,
    silent: bool,
) -> Result<Written> {
    let before = match &element {
        Some(element) => field::read_all(context, element).await?,
        None => Content::default(),
    };
    let changes = context.desktop().accessibility.changes().await.ok();
    keys::deliver(context, arguments, &window, element.as_ref()).await?;
    Ok(Written::Typed(Box::new(Typed { silent, window, element, before, changes })))
}

pub(super) struct TypeText;

impl Tool for TypeText {
    const SPEC: Spec = Spec {
        name: "type_text",
        description: "Type text exactly as given, whatever the keyboard layout, into an element or into what has the focus. It goes \
                      to the caret, or to the end of a field without focus, and is read back where possible.",
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

    fn takes(arguments: &Arguments) -> Duration {
        let characters = u32::try_from(arguments.text.chars().count()).unwrap_or(u32::MAX);
        let each = PER_CHARACTER + Duration::from_millis(arguments.delay_ms.unwrap_or(0));
        each.saturating_mul(characters)
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        run(arguments, context).await
    }
}
