//! `press_key` and `hotkey`.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::reading::Family;
use super::type_text::Focus;
use super::{Spec, Surface, Tool, click};
use crate::desktop::{Chord, PortError, TreeNote, TreeRequest, Window, WindowId};
use crate::effect::{Effect, EffectReport, Expectation, Observer, Route, Target};
use crate::engine::Context;
use crate::error::Result;
use crate::keys;
use crate::queue::StepKind;

/// Time between press and release of a key, if not given.
const HOLD_MS: u64 = 10;
/// Longest hold: a key that is held longer is a mistake of units.
const MAX_HOLD_MS: u64 = 10_000;
/// Most repetitions in one call.
const MAX_REPEAT: u32 = 200;

/// Presses one key, perhaps with modifiers.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyArguments {
    /// Key by X keysym or common name, with modifiers if any: `Return`, `ctrl+s`, `F5`, `Page_Down`, `é`.
    key: String,
    /// Window to raise first; without it the key goes to whatever has the focus.
    window_id: Option<WindowId>,
    /// How many times.
    #[schemars(range(min = 1, max = 200))]
    repeat: Option<u32>,
    /// Milliseconds between press and release.
    #[schemars(range(min = 0, max = 10000))]
    hold_ms: Option<u64>,
    /// As in click.
    restore: Option<bool>,
}

/// Presses keys together.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HotkeyArguments {
    /// Modifiers and one key: `["ctrl", "shift", "s"]`.
    keys: Vec<String>,
    /// Window to raise first; without it the keys go to whatever has the focus.
    window_id: Option<WindowId>,
    /// Milliseconds between press and release.
    #[schemars(range(min = 0, max = 10000))]
    hold_ms: Option<u64>,
    /// As in click.
    restore: Option<bool>,
}

struct Press {
    chord: Chord,
    window: Option<WindowId>,
    repeat: u32,
    hold: Duration,
    restore: bool,
}

async fn run(press: Press, context: Context) -> Result<EffectReport> {
    let judge = |(observer, window)| judge(&context, observer, window);
    context.operate(press.restore, deliver(&press, &context), judge).await
}

async fn deliver(press: &Press, context: &Context) -> Result<(Observer, Option<Window>)> {
    let window = match press.window {
        Some(id) => {
            let window = context.window(id).await?;
            if let Err(error) = click::focus_window(context, &window).await
                && !has_menu_open(context, &window).await?
            {
                return Err(error);
            }
            Some(window)
        }
        None => context.desktop().windows.list().await?.into_iter().find(|window| window.focused),
    };
    if let (Some(turn), Some(window)) = (context.turn().filter(|turn| turn.may_write()), &window) {
        // Whether the key may be written down depends on what it goes to.
        match Focus::of(context, window).await {
            Ok(focus) if !focus.silent => turn.types_into(focus.holder.as_ref()),
            _ => {}
        }
    }
    let snapshot = window.as_ref().and_then(|window| context.session().newest_snapshot(window.id).ok());
    let owner =
        snapshot.as_ref().and_then(|snapshot| snapshot.nodes.first()).map(|node| node.id.owner.clone());
    let target = Target { owner: owner.as_ref(), element: None, window: window.as_ref(), wants_focus: false };
    let observer = Observer::start(context, target).await;
    let keyboard = &context.desktop().keyboard;
    let delivered = keyboard.press(&press.chord, press.repeat, press.hold, context.stop()).await?;
    context.delivered(delivered, "presses")?;
    Ok((observer, window))
}

/// Whether a menu of the window is open that takes the keys itself, whatever has the focus.
async fn has_menu_open(context: &Context, window: &Window) -> Result<bool> {
    let has_popup = !Family::of(context, window.id).await?.popups.is_empty();
    Ok(has_popup && context.desktop().windows.hit_test(window.frame.center()).await?.grabbed)
}

async fn judge(context: &Context, mut observer: Observer, window: Option<Window>) -> Result<EffectReport> {
    let snapshot = window.as_ref().and_then(|window| context.session().newest_snapshot(window.id).ok());
    let report = |effect| EffectReport::new(effect, Route::Keyboard).in_window(window.as_ref().map(|w| w.id));
    Ok(match observer.evidence(context, snapshot.as_deref(), Expectation::Possible).await {
        Some(evidence) => report(Effect::Confirmed).to(evidence),
        None => {
            observer.leave_open(context);
            match observer.doubtful() {
                Some(seen) => report(Effect::Unverifiable).doubtful(seen),
                None if is_silent(context, window.as_ref(), observer.owner()).await => {
                    report(Effect::Unverifiable).hint("the application does not answer; the key waits for it")
                }
                None => report(Effect::Unverifiable),
            }
        }
    })
}

/// How long an application may take to say that it is there.
const ANSWER_BUDGET: Duration = Duration::from_secs(2);

/// Whether the window's application, known on the accessibility bus as `owner`, answers nothing.
async fn is_silent(context: &Context, window: Option<&Window>, owner: Option<&str>) -> bool {
    let accessibility = &context.desktop().accessibility;
    if let Some(owner) = owner {
        return matches!(accessibility.fence(owner).await, Err(PortError::AppNotResponding { .. }));
    }
    let Some(window) = window else { return false };
    let request = TreeRequest { max_nodes: 1, budget: ANSWER_BUDGET, text_limit: 0 };
    match accessibility.tree(window, &request, context.stop()).await {
        Ok(tree) => tree.notes.iter().any(|note| matches!(note, TreeNote::NotResponding { .. })),
        Err(error) => matches!(error, PortError::AppNotResponding { .. }),
    }
}

fn check_hold(hold_ms: Option<u64>) -> Result<()> {
    crate::settings::within("hold_ms", hold_ms, &(0..=MAX_HOLD_MS))
}

pub(super) struct PressKey;

impl Tool for PressKey {
    const SPEC: Spec = Spec {
        name: "press_key",
        description: "Press a key, alone or with modifiers, as real keyboard input. With `window_id` the window is raised first.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"key": "ctrl+s", "window_id": 4194310}"#,
    };
    type Arguments = KeyArguments;
    type Reply = EffectReport;

    fn check(arguments: &KeyArguments) -> Result<()> {
        crate::settings::within("repeat", arguments.repeat, &(1..=MAX_REPEAT))?;
        check_hold(arguments.hold_ms)?;
        keys::chord("key", &[&arguments.key]).map(drop)
    }

    async fn run(arguments: KeyArguments, context: Context) -> Result<EffectReport> {
        let press = Press {
            chord: keys::chord("key", &[&arguments.key])?,
            window: arguments.window_id,
            repeat: arguments.repeat.unwrap_or(1),
            hold: Duration::from_millis(arguments.hold_ms.unwrap_or(HOLD_MS)),
            restore: arguments.restore.unwrap_or(false),
        };
        run(press, context).await
    }
}

pub(super) struct Hotkey;

impl Tool for Hotkey {
    const SPEC: Spec = Spec {
        name: "hotkey",
        description: "Press modifiers and a key together; as `press_key`, with the keys in a list.",
        listed: false,
        example: r#"{"keys": ["ctrl", "s"]}"#,
        ..PressKey::SPEC
    };
    type Arguments = HotkeyArguments;
    type Reply = EffectReport;

    fn check(arguments: &HotkeyArguments) -> Result<()> {
        check_hold(arguments.hold_ms)?;
        let keys: Vec<_> = arguments.keys.iter().map(String::as_str).collect();
        keys::chord("keys", &keys).map(drop)
    }

    async fn run(arguments: HotkeyArguments, context: Context) -> Result<EffectReport> {
        let keys: Vec<_> = arguments.keys.iter().map(String::as_str).collect();
        let press = Press {
            chord: keys::chord("keys", &keys)?,
            window: arguments.window_id,
            repeat: 1,
            hold: Duration::from_millis(arguments.hold_ms.unwrap_or(HOLD_MS)),
            restore: arguments.restore.unwrap_or(false),
        };
        run(press, context).await
    }
}
