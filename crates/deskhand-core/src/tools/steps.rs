//! Setting a number with the keyboard, where a toolkit takes none through accessibility: by its digits, or step by step.

use std::time::Duration;

use super::click::focus_element;
use super::target::Element;
use crate::desktop::{Chord, Key, Tally, Value};
use crate::effect::{EFFECT_WAIT, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};

/// Presses of an arrow key for one value: some ten seconds.
const MAX_STEPS: f64 = 500.0;
/// Time between press and release of a key.
const HOLD: Duration = Duration::from_millis(5);

/// Sets `element` from `before` to `wanted`, and reads back what it shows then.
pub(super) async fn set(
    context: &Context,
    element: &Element,
    before: Value,
    wanted: f64,
) -> Result<EffectReport> {
    let report = |effect, now: f64| {
        EffectReport::new(effect, Route::Keyboard)
            .in_window(Some(element.window.id))
            .from(before.current.to_string())
            .to(now.to_string())
    };
    if !focus_element(context, element).await? {
        let message = format!(
            "{} takes no value through accessibility, and no keyboard focus; drag it",
            element.describe()
        );
        return Err(Error::new(Code::NotSupported, message));
    }
    // A click that gives the focus may have moved a slider.
    let mut now = read(context, element).await?;
    if is_spin(element) && wanted.fract() == 0.0 && !is_same(now, wanted) {
        let digits = format!("{wanted:.0}");
        let delivered = context
            .desktop()
            .keyboard
            .type_text(&digits, Duration::ZERO, &Tally::default(), context.stop())
            .await?;
        context.delivered(delivered, "characters")?;
        now = await_change(context, element, |value| is_same(value, wanted)).await?;
    }
    if !is_same(now, wanted) {
        // The first step tells which way it goes and how far. Digits may have moved the focus on.
        focus_element(context, element).await?;
        let from = now;
        let (more, less) = if is_spin(element) { ("Up", "Down") } else { ("Right", "Left") };
        let key = if wanted > from { more } else { less };
        press(context, key, 1).await?;
        now = await_change(context, element, |value| !is_same(value, from)).await?;
        let (way, left) = (now - from, wanted - now);
        let steps = (left / way).round();
        if way != 0.0 && (1.0..=MAX_STEPS).contains(&steps) {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // from 1 to the limit
            press(context, key, steps as u32).await?;
            now = await_change(context, element, |value| is_same(value, wanted)).await?;
        }
    }
    Ok(if is_same(now, wanted) {
        report(Effect::Confirmed, now)
    } else if is_same(now, before.current) {
        report(Effect::SuspectedNoop, now).hint("it takes neither a value nor keys; drag it")
    } else {
        report(Effect::Unverifiable, now).hint("it took another value: it may have steps of its own")
    })
}

fn is_spin(element: &Element) -> bool {
    element.role() == "spin button"
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-6 * other.abs().max(1.0)
}

async fn press(context: &Context, key: &str, times: u32) -> Result<()> {
    let chord = Chord { modifiers: Vec::new(), key: Some(Key(key.to_owned())) };
    let delivered = context.desktop().keyboard.press(&chord, times, HOLD, context.stop()).await?;
    context.delivered(delivered, "key presses")
}

async fn read(context: &Context, element: &Element) -> Result<f64> {
    let value = element.details(context, 0, false).await?.value;
    let value = value
        .ok_or_else(|| Error::new(Code::NotSupported, format!("{} tells no value", element.describe())))?;
    Ok(value.current)
}

/// Reads until it is as expected, a bounded time.
async fn await_change(
    context: &Context,
    element: &Element,
    is_expected: impl Fn(f64) -> bool,
) -> Result<f64> {
    let mut patience = Patience::start(context, EFFECT_WAIT).await?;
    loop {
        let now = read(context, element).await?;
        if is_expected(now) || !patience.another_look(context).await {
            return Ok(now);
        }
    }
}
