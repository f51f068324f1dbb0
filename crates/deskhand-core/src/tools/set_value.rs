//! `set_value`: a slider, a field, a check box, a combo box, a cell: each set in its own way and read back.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::choose;
use super::click;
use super::judge::{is_in_closed_menu, toggle_state};
use super::steps;
use super::target::{self, Aim, Element, QueryArgument};
use super::type_text;
use super::{Spec, Surface, Tool};
use crate::desktop::{Chord, Key, Node, PortError, State, Tally, WindowId};
use crate::effect::{Delivery, EFFECT_WAIT, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::{is_text_input, is_toggle, quote};

/// A date with its time has so many fields at most; what has more is a form.
const MAX_PARTS: usize = 8;

/// What is said of a colour for a button: inputs for colours tell none, and open a chooser of their toolkit.
const COLOUR: &str = "if it chooses a colour, click it, set the channels that its chooser shows, or click Custom and type the \
                      code there with Return, and close the chooser with Return or its button";

/// Whether `text` is a colour's code, such as `#ff8800`.
fn is_colour(text: &str) -> bool {
    let code = text.trim().strip_prefix('#').unwrap_or_default();
    matches!(code.len(), 3 | 4 | 6 | 8) && code.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A value as the caller writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "invalid type, expected a string, a number, or true or false")]
pub(super) enum Wanted {
    Flag(bool),
    Number(f64),
    Text(String),
}

impl JsonSchema for Wanted {
    fn schema_name() -> Cow<'static, str> {
        "Value".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number", "boolean"] })
    }
}

impl Wanted {
    fn number(&self) -> Option<f64> {
        match self {
            Wanted::Number(number) => Some(*number),
            Wanted::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
            Wanted::Flag(_) => None,
        }
    }

    fn flag(&self) -> Option<bool> {
        match self {
            Wanted::Flag(flag) => Some(*flag),
            Wanted::Number(number) if *number == 0.0 || *number == 1.0 => Some(*number == 1.0),
            Wanted::Number(_) => None,
            Wanted::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "on" | "yes" | "checked" | "1" => Some(true),
                "false" | "off" | "no" | "unchecked" | "0" => Some(false),
                _ => None,
            },
        }
    }

    /// Refuses to write true or false as a word: where they are meant, they are a state.
    fn require_text(&self, element: &Element) -> Result<()> {
        let Wanted::Flag(flag) = self else { return Ok(()) };
        let message = format!(
            "{} tells no state that could be set to {flag}; nothing was done; click it, or give a text: \"{flag}\"",
            element.describe()
        );
        Err(Error::new(Code::NotSupported, message))
    }

    fn text(&self) -> String {
        match self {
            Wanted::Flag(flag) => flag.to_string(),
            Wanted::Number(number) => number.to_string(),
            Wanted::Text(text) => text.clone(),
        }
    }
}

/// Sets an element's value.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window of the element.
    window_id: Option<WindowId>,
    /// Element, by its number in the newest snapshot of the window.
    element_index: Option<u32>,
    /// As in click.
    query: Option<QueryArgument>,
    /// Snapshot that the number is from, if not the newest.
    snapshot_id: Option<String>,
    /// Number for sliders, text for fields, true or false for check boxes, the entry's name for combo boxes.
    value: Wanted,
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
}

async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
    context
        .act(async {
            let element = target::element(&context, &arguments.aim()).await?;
            element.require_enabled(&context).await?;
            let role = element.role().to_owned();
            let holds_flag =
                element.node.states.has(State::Checkable) || is_check_cell(&element) || is_opener(&element);
            if is_toggle(&role) || (holds_flag && arguments.value.flag().is_some()) {
                set_toggle(&context, &arguments, element).await
            } else if role == "combo box" {
                let delivery = arguments.delivery.unwrap_or_default();
                match choose::entry(&context, delivery, &element, &arguments.value.text()).await? {
                    Some(report) => Ok(report),
                    None => set_text(&context, &arguments, element).await,
                }
            } else if role == "table cell" && element.is_in("document spreadsheet") {
                set_cell(&context, &arguments, element).await
            } else if element.node.interfaces.value && arguments.value.number().is_some() {
                set_number(&context, &arguments, element).await
            } else if let Some(parts) = parts(&element) {
                let message = format!(
                    "{} is set in parts, nothing was done: set_value on each of {parts}",
                    element.describe()
                );
                Err(Error::new(Code::NotSupported, message))
            } else if (element.node.interfaces.editable_text || is_text_input(&role))
                && !is_pressed_only(&role)
            {
                set_text(&context, &arguments, element).await
            } else if element.node.interfaces.value {
                Err(Error::argument("value", format!("expected a number for {}", element.describe())))
            } else {
                let instead = match is_colour(&arguments.value.text()) && role == "button" {
                    true => COLOUR,
                    false => "if it switches or opens something, click it",
                };
                let message = format!(
                    "{} holds no value that could be set; nothing was done; {instead}",
                    element.describe()
                );
                Err(Error::new(Code::NotSupported, message))
            }
        })
        .await
}

/// The fields that a date or time is made of, in words; `None` if it is none or has no such parts.
fn parts(element: &Element) -> Option<String> {
    let nodes = &element.snapshot.nodes;
    let is_below = |mut place: u32| {
        while let Some(parent) = nodes[place as usize].parent {
            if parent == element.place {
                return true;
            }
            place = parent;
        }
        false
    };
    if !matches!(element.role(), "date editor" | "panel" | "section") {
        return None;
    }
    let is_part = |node: &Node| matches!(node.role.as_str(), "spin button" | "entry");
    let places = (0u32..).zip(nodes).filter(|(place, node)| is_part(node) && is_below(*place));
    let parts: Vec<String> = places
        .map(|(place, node)| {
            format!("[{}] {} {}", element.snapshot.index(place), node.role, quote(&node.name, 40))
        })
        .collect();
    (2..=MAX_PARTS).contains(&parts.len()).then(|| parts.join(", "))
}

/// A cell of a list that holds a check box: GTK 3 tells so only by what can be done to it.
fn is_check_cell(element: &Element) -> bool {
    let is_cell = element.role() == "table cell" && !element.is_in("document spreadsheet");
    is_cell && element.node.name.is_empty() && element.node.interfaces.action
}

/// Firefox says of all that shows text that it can be edited.
fn is_pressed_only(role: &str) -> bool {
    matches!(role, "button" | "link" | "menu item")
}

/// A button that opens and closes a part of its window, and says which it is: `<summary>` of pages.
fn is_opener(element: &Element) -> bool {
    element.role() == "button" && element.node.states.has(State::Expandable)
}

/// Whether a toggle is on, or what a button opens is open.
fn is_on(node: &Node) -> bool {
    let opens = matches!(node.role.as_str(), "button" | "toggle button");
    let states = node.states;
    states.has(State::Checked) || states.has(State::Pressed) || (opens && states.has(State::Expanded))
}

async fn set_toggle(context: &Context, arguments: &Arguments, element: Element) -> Result<EffectReport> {
    let wanted = arguments.value.flag().ok_or_else(|| {
        Error::argument("value", format!("expected true or false for {}", element.describe()))
    })?;
    if is_on(&element.node) == wanted {
        let report = EffectReport::new(Effect::Confirmed, Route::AxValue).in_window(Some(element.window.id));
        if is_in_closed_menu(&element.node) {
            let hint =
                "so its closed menu tells, which may be of old; nothing was done; open the menu and look";
            return Ok(EffectReport { effect: Effect::Unverifiable, ..report }
                .to(toggle_state(element.node.states))
                .hint(hint));
        }
        return Ok(report.to(format!("{} was so already", element.describe())));
    }
    let report = click::toggle(context, arguments.delivery.unwrap_or_default(), element.clone()).await?;
    if report.effect != Effect::Confirmed {
        return Ok(report);
    }
    // What else changed tells that it was clicked, not how it stands.
    let before = toggle_state(element.node.states);
    let mut patience = Patience::start(context, EFFECT_WAIT).await?;
    loop {
        let node = match context.desktop().accessibility.probe(element.id()).await {
            Ok(node) => node,
            Err(PortError::ElementGone) => return Ok(report),
            Err(error) => return Err(error.into()),
        };
        let report = || report.clone().from(before).to(toggle_state(node.states));
        if is_on(&node) == wanted {
            return Ok(report());
        }
        if !patience.another_look(context).await {
            let hint = "it was clicked and does not show the state that was asked for; look at the window";
            return Ok(EffectReport { effect: Effect::Unverifiable, ..report() }.hint(hint));
        }
    }
}

async fn set_number(context: &Context, arguments: &Arguments, element: Element) -> Result<EffectReport> {
    let wanted = arguments.value.number().unwrap_or_default();
    let read = async || -> Result<_> {
        let value = element.details(context, 0, false).await?.value;
        value.ok_or_else(|| Error::new(Code::NotSupported, format!("{} tells no value", element.describe())))
    };
    let before = read().await?;
    if before.maximum > before.minimum && !(before.minimum..=before.maximum).contains(&wanted) {
        let message = format!("{wanted} is out of range; expected {} to {}", before.minimum, before.maximum);
        return Err(Error::argument("value", message));
    }
    let report = |effect| {
        EffectReport::new(effect, Route::AxValue)
            .in_window(Some(element.window.id))
            .from(before.current.to_string())
    };
    if arguments.delivery != Some(Delivery::Foreground) {
        match context.desktop().accessibility.set_number(element.id(), wanted).await {
            Ok(_) | Err(PortError::NotSupported(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let reached = |value: f64| (value - wanted).abs() <= 1e-6 * wanted.abs().max(1.0);
        let mut patience = Patience::start(context, EFFECT_WAIT).await?;
        let mut after = read().await?;
        // Browsers apply it in another process, after they have answered.
        while !reached(after.current)
            && after.current == before.current
            && patience.another_look(context).await
        {
            after = read().await?;
        }
        if after.current == before.current {
            after = read().await?;
        }
        let reached = reached(after.current);
        if reached {
            return Ok(report(Effect::Confirmed).to(after.current.to_string()));
        }
        if after.current != before.current {
            let hint = "the element took another value: it may have steps of its own";
            return Ok(report(Effect::Unverifiable).to(after.current.to_string()).hint(hint));
        }
    }
    if arguments.delivery == Some(Delivery::Background) {
        let hint = "it takes no value in the background; use delivery \"foreground\"";
        return Ok(report(Effect::SuspectedNoop).to(before.current.to_string()).hint(hint));
    }
    if element.node.interfaces.editable_text {
        return set_text(context, arguments, element).await;
    }
    steps::set(context, &element, before, wanted).await
}

async fn set_text(context: &Context, arguments: &Arguments, element: Element) -> Result<EffectReport> {
    arguments.value.require_text(&element)?;
    let typing = type_text::Arguments {
        text: type_text::one_line_breaks(&arguments.value.text()),
        clear: Some(true),
        delivery: arguments.delivery,
        is_value: true,
        ..type_text::Arguments::default()
    };
    type_text::into_element_whole(context, &typing, element).await
}

/// Fills a spreadsheet's cell: selects it with the pointer, types, and presses Return; or Delete, to empty it.
async fn set_cell(context: &Context, arguments: &Arguments, element: Element) -> Result<EffectReport> {
    if arguments.delivery == Some(Delivery::Background) {
        let message = format!(
            "{} can only be filled with the keyboard; use delivery \"foreground\"",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    arguments.value.require_text(&element)?;
    let text = arguments.value.text();
    if text.contains(char::is_control) {
        return Err(Error::argument("value", "expected one line without tabs for a cell"));
    }
    let read = async || -> Result<String> {
        let details = element.details(context, 400, false).await?;
        Ok(details.text.map(|text| text.content).unwrap_or_default())
    };
    let before = read().await?;
    if !click::press_row(context, &element).await? {
        let message = format!(
            "{} was clicked and is not the cell that is selected; nothing was typed",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    let keyboard = &context.desktop().keyboard;
    // Return alone would leave the cell as it is.
    let last = if text.is_empty() {
        "Delete"
    } else {
        let delivered = keyboard.type_text(&text, Duration::ZERO, &Tally::default(), context.stop()).await?;
        context.delivered(delivered, "characters")?;
        "Return"
    };
    let last = Chord { modifiers: Vec::new(), key: Some(Key(last.to_owned())) };
    let delivered = keyboard.press(&last, 1, Duration::from_millis(10), context.stop()).await?;
    context.delivered(delivered, "keys")?;
    let mut patience = Patience::start(context, EFFECT_WAIT).await?;
    let mut after = read().await?;
    while after != text && patience.another_look(context).await {
        after = read().await?;
    }
    let report = EffectReport::new(Effect::Confirmed, Route::Keyboard)
        .in_window(Some(element.window.id))
        .between(&before, &after);
    Ok(if after == text {
        report
    } else if text.is_empty() {
        // Calc goes on telling the content that an emptied cell had.
        let hint =
            "Delete was pressed in it; its old text may be told until it is filled again; look at a picture";
        EffectReport { effect: Effect::Unverifiable, ..report }.hint(hint)
    } else if after == before {
        EffectReport { effect: Effect::SuspectedNoop, ..report }
            .hint("the cell did not change; look at the window")
    } else {
        let hint = "the cell shows it in another form, as a formula or format does";
        EffectReport { effect: Effect::Unverifiable, ..report }.hint(hint)
    })
}

pub(super) struct SetValue;

impl Tool for SetValue {
    const SPEC: Spec = Spec {
        name: "set_value",
        description: "Set an element's value whole: slider, spin button, text field, check box, combo box, table cell. The \
                      value is read back.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: true,
        listed: true,
        example: r#"{"window_id": 4194310, "element_index": 9, "value": 50}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        arguments.aim().check_element()
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        run(arguments, context).await
    }
}
