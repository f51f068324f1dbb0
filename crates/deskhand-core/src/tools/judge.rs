//! What a click did: told from the element itself where it shows a state, else from what changed in its application.

use std::time::Duration;

use super::click::Done;
use super::target::Element;
use crate::desktop::{Node, PortError, State, States};
use crate::effect::{EFFECT_WAIT, Effect, EffectReport, Expectation, Observer, Route};
use crate::engine::Context;
use crate::error::Result;
use crate::tree::{is_item, is_toggle};

/// How long a toggle of a page is waited for. A browser answers for its pages without asking them, so that of a page which
/// is busy nothing tells that it is.
const PAGE_WAIT: Duration = Duration::from_secs(1);

/// Says what a click did.
pub(super) async fn judge(context: &Context, done: Done, count: u32) -> Result<EffectReport> {
    let Done { route, point, mut observer, element, window, expectation } = done;
    let report = |effect| {
        let report = EffectReport::new(effect, route).in_window(window.as_ref().map(|w| w.id)).at(point);
        match &element {
            Some(element) => report.on(element),
            None => report,
        }
    };
    let snapshot = match (&element, &window) {
        (Some(element), _) => Some(element.snapshot.clone()),
        (None, Some(window)) => context.session().newest_snapshot(window.id).ok(),
        (None, None) => None,
    };
    match &element {
        Some(element) if matches!(route, Route::AxFocus | Route::AxSelection) => {
            let state = if route == Route::AxFocus { "focused" } else { "selected" };
            return Ok(report(Effect::Confirmed).to(format!("{} is {state}", element.describe())));
        }
        Some(element)
            if route != Route::AxAction
                && is_row(element.role())
                && element.node.states.has(State::Selectable)
                && count == 1 =>
        {
            return judge_row(context, element, &mut observer, report(Effect::Confirmed)).await;
        }
        Some(element) if is_toggle(element.role()) && count == 1 => {
            return judge_toggle(context, element, &mut observer, report(Effect::Confirmed)).await;
        }
        _ => {}
    }
    Ok(match observer.evidence(context, snapshot.as_deref(), expectation).await {
        Some(evidence) => report(Effect::Confirmed).to(evidence),
        None => match own_change(context, element.as_ref()).await {
            Some(change) => report(Effect::Confirmed).to(change),
            None => {
                if expectation != Expectation::Unlikely {
                    observer.leave_open(context);
                }
                match observer.doubtful() {
                    Some(seen) => report(Effect::Unverifiable).doubtful(seen),
                    None => report(Effect::Unverifiable)
                        .hint("no change was seen; look at the window before going on"),
                }
            }
        },
    })
}

/// What of the element's own state is another now, whether or not its toolkit announced it.
async fn own_change(context: &Context, element: Option<&Element>) -> Option<String> {
    const TELLING: [(State, &str); 5] = [
        (State::Checked, "checked"),
        (State::Expanded, "expanded"),
        (State::Indeterminate, "mixed"),
        (State::Pressed, "pressed"),
        (State::Selected, "selected"),
    ];
    let element = element?;
    let now = match context.desktop().accessibility.probe(element.id()).await {
        Ok(now) => now.states,
        Err(PortError::ElementGone) => return Some("the element is gone".to_owned()),
        Err(_) => return None,
    };
    let before = element.node.states;
    let (state, word) = TELLING.into_iter().find(|(state, _)| now.has(*state) != before.has(*state))?;
    Some(format!("it is {}{word}", if now.has(state) { "" } else { "not " }))
}

/// Things in a list that a click selects.
fn is_row(role: &str) -> bool {
    is_item(role) && !role.ends_with("menu item")
}

/// A click on a row selects it: it must be the one that is selected or focused now.
pub(super) async fn judge_row(
    context: &Context,
    element: &Element,
    observer: &mut Observer,
    report: EffectReport,
) -> Result<EffectReport> {
    let mut evidence = None;
    let deadline = tokio::time::Instant::now() + EFFECT_WAIT;
    loop {
        match context.desktop().accessibility.probe(element.id()).await {
            Ok(node) if node.states.has(State::Selected) => {
                return Ok(report.to(format!("{} is selected", element.describe())));
            }
            Ok(node) if node.states.has(State::Focused) => {
                return Ok(report.to(format!("{} is focused", element.describe())));
            }
            Ok(_) => {}
            Err(PortError::ElementGone) => return Ok(report.to("the element is gone")),
            Err(error) => return Err(error.into()),
        }
        if tokio::time::Instant::now() >= deadline || context.stop().is_cancelled() {
            break;
        }
        match observer.evidence(context, Some(&element.snapshot), Expectation::Certain).await {
            Some(found) => evidence = Some(found),
            None => break,
        }
    }
    observer.leave_open(context);
    let unverifiable = EffectReport { effect: Effect::Unverifiable, after: evidence, ..report };
    Ok(unverifiable.hint("it is not the one that is selected now; look at the window"))
}

/// A toggle shows its state: it must have changed. (A toggle button may spring back, as a calculator's keys do: then
/// what else changed in its application counts.)
pub(super) async fn judge_toggle(
    context: &Context,
    element: &Element,
    observer: &mut Observer,
    report: EffectReport,
) -> Result<EffectReport> {
    let before = toggle_state(element.node.states);
    let of_page = element.is_in("document web");
    let wait = if of_page { PAGE_WAIT } else { EFFECT_WAIT };
    let deadline = tokio::time::Instant::now() + wait;
    let mut closed;
    loop {
        match context.desktop().accessibility.probe(element.id()).await {
            Ok(node) if toggle_state(node.states) != before => {
                return Ok(report.from(before).to(toggle_state(node.states)));
            }
            Ok(node) => closed = is_in_closed_menu(&node),
            Err(PortError::ElementGone) => return Ok(report.from(before).to("the element is gone")),
            Err(error) => return Err(error.into()),
        }
        if tokio::time::Instant::now() >= deadline || context.stop().is_cancelled() {
            break;
        }
        match observer.evidence(context, Some(&element.snapshot), Expectation::Certain).await {
            Some(evidence) if element.role() == "toggle button" => return Ok(report.to(evidence)),
            Some(_) => {}
            None if of_page => {}
            None => break,
        }
    }
    observer.leave_open(context);
    if let Some(seen) = observer.doubtful().filter(|_| element.role() == "toggle button") {
        return Ok(EffectReport { effect: Effect::Unverifiable, ..report }.doubtful(seen));
    }
    if closed {
        let hint = "its menu is closed, and may tell its state only when it is open again; open it and look";
        return Ok(EffectReport { effect: Effect::Unverifiable, ..report }.from(before).hint(hint));
    }
    if of_page {
        let hint = "its page has shown no change yet, and may be busy; wait_for its state or look before clicking it again";
        return Ok(EffectReport { effect: Effect::Unverifiable, ..report }.from(before).hint(hint));
    }
    let unchanged = EffectReport { effect: Effect::SuspectedNoop, ..report };
    let hint = match element.role() {
        "radio button" | "radio menu item" if before == "checked" => "it was chosen already",
        _ => "its state did not change; try delivery \"foreground\", or look at the window",
    };
    Ok(unchanged.from(before).to(before).hint(hint))
}

/// Whether it is the item of a menu that is not open: programs bring such items up to date when they open the menu.
pub(super) fn is_in_closed_menu(node: &Node) -> bool {
    node.role.ends_with("menu item") && !node.states.has(State::Showing)
}

/// The state of what is switched on and off, or opened and closed, in a word.
pub(super) fn toggle_state(states: States) -> &'static str {
    if states.has(State::Indeterminate) {
        "mixed"
    } else if states.has(State::Checked) {
        "checked"
    } else if states.has(State::Pressed) {
        "pressed"
    } else if states.has(State::Expanded) {
        "expanded"
    } else if states.has(State::Expandable) {
        "collapsed"
    } else {
        "unchecked"
    }
}
