//! Choosing an entry of a combo box: through its selection where that tells the application, else in its opened list.

use std::time::Duration;

use super::click;
use super::target::{self, Aim, Element, QueryArgument};
use crate::desktop::{Chord, Key, PortError, State};
use crate::effect::{Delivery, EFFECT_WAIT, Effect, EffectReport, Patience, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::tree::{is_item, quote};

/// How long a list may take to open, or to close and show the choice.
const OPENS: Duration = Duration::from_secs(1);
/// What the entries of an opened list are called, in the order in which they are looked for.
const ENTRY_ROLES: [&str; 6] =
    ["list item", "menu item", "radio menu item", "check menu item", "table cell", "label"];

/// What proves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Proof {
    /// The combo box shows it: what is selected in its list need not be chosen yet.
    Shown,
    /// It is selected in the list, or shown.
    Selected,
}

/// Chooses the entry of a combo box that is called `wanted`. `None` if it has no such entry and takes any text.
pub(super) async fn entry(
    context: &Context,
    delivery: Delivery,
    element: &Element,
    wanted: &str,
) -> Result<Option<EffectReport>> {
    let nodes = &element.snapshot.nodes;
    let entries: Vec<u32> = below(element).filter(|&place| !nodes[place as usize].name.is_empty()).collect();
    let selected = entries.iter().find(|&&place| nodes[place as usize].states.has(State::Selected));
    let shown = shown_choice(context, element).await?;
    let proof = match entries.iter().any(|&place| nodes[place as usize].name == shown) {
        true => Proof::Shown,
        false => Proof::Selected,
    };
    let before = match selected {
        Some(&place) if proof == Proof::Selected => nodes[place as usize].name.clone(),
        _ => shown,
    };
    let Some(&entry) = entries.iter().find(|&&place| nodes[place as usize].name == wanted) else {
        if element.node.interfaces.editable_text {
            return Ok(None);
        }
        // What a closed list tells is the choice that it shows, or nothing.
        let tells_entries = entries.iter().any(|&place| is_item(&nodes[place as usize].role));
        if !tells_entries && delivery != Delivery::Background {
            return in_opened_list(context, element, None, &before, wanted).await.map(Some);
        }
        let names: Vec<_> =
            entries.iter().take(20).map(|&place| quote(&nodes[place as usize].name, 60)).collect();
        let known =
            if names.is_empty() { "it tells none before it is opened".to_owned() } else { names.join(", ") };
        return Err(Error::argument(
            "value",
            format!("{} has no such entry; there are: {known}", element.describe()),
        ));
    };
    let entry = Element {
        snapshot: element.snapshot.clone(),
        place: entry,
        window: element.window.clone(),
        node: context.desktop().accessibility.probe(&nodes[entry as usize].id).await?,
        acting: element.acting.clone(),
    };
    let report = choose(context, element, &entry, proof, &before, wanted).await?;
    if report.effect == Effect::SuspectedNoop && delivery != Delivery::Background {
        return in_opened_list(context, element, Some(&entry), &before, wanted).await.map(Some);
    }
    Ok(Some(report))
}

async fn choose(
    context: &Context,
    combo: &Element,
    entry: &Element,
    proof: Proof,
    before: &str,
    wanted: &str,
) -> Result<EffectReport> {
    let accessibility = &context.desktop().accessibility;
    let report = |effect, route| {
        EffectReport::new(effect, route).in_window(Some(combo.window.id)).from(quote(before, 60))
    };
    let (parent, child) = entry.in_parent().ok_or_else(|| Error::from(PortError::ElementGone))?;
    // The combo box itself counts its entries where it has a selection; else the list in it does, or its entries can be
    // clicked. Choosing the same entry in another way changes nothing more, so each is tried until one shows. To select in a
    // menu is no choice: GTK 3 then takes the menu for open, and drags and clicks go there.
    let in_menu = entry.role().ends_with("menu item");
    let ways = if in_menu { [Some(combo.id()), None] } else { [Some(combo.id()), Some(&parent)] };
    for container in ways {
        let route = if container.is_some() { Route::AxSelection } else { Route::AxAction };
        let claim = match container {
            Some(container) => accessibility.select_child(container, child).await,
            None => click_entry(context, entry).await,
        };
        match claim {
            Ok(true) if container == Some(combo.id()) && tells_selected(context, combo, child).await => {
                return Ok(report(Effect::Confirmed, route).to(quote(wanted, 60)));
            }
            Ok(true) if is_chosen(context, combo, entry, proof, wanted, EFFECT_WAIT).await? => {
                return Ok(report(Effect::Confirmed, route).to(quote(wanted, 60)));
            }
            Ok(_) | Err(PortError::NotSupported(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let after = shown_choice(context, combo).await?;
    let hint = "the choice did not show; click the combo box and choose";
    Ok(report(Effect::SuspectedNoop, Route::AxSelection).to(quote(&after, 60)).hint(hint))
}

/// Whether the combo box has its selection there by now.
async fn tells_selected(context: &Context, combo: &Element, child: u32) -> bool {
    context.desktop().accessibility.is_selected(combo.id(), child).await.unwrap_or(false)
}

/// Opens the list, as a person does, and clicks the entry in it. Closes it again if that fails. `closed` is the entry as the
/// closed list tells it.
async fn in_opened_list(
    context: &Context,
    combo: &Element,
    closed: Option<&Element>,
    before: &str,
    wanted: &str,
) -> Result<EffectReport> {
    click::press(context, combo.clone()).await?;
    let clicked = match opened_entry(context, combo, wanted).await {
        Ok(Some(entry)) => click::press(context, entry.clone()).await.map(|route| (entry, route)),
        Ok(None) => Err(Error::argument(
            "value",
            format!("{} was opened and shows no entry {}", combo.describe(), quote(wanted, 60)),
        )),
        Err(error) => Err(error),
    };
    let (entry, route) = match clicked {
        Ok(clicked) => clicked,
        Err(error) => {
            // Only while the list is open: where it has closed, Escape would close the dialogue that it stands in.
            let escape = Chord { modifiers: Vec::new(), key: Some(Key("Escape".to_owned())) };
            let keyboard = &context.desktop().keyboard;
            let closed = keyboard.press(&escape, 1, Duration::from_millis(10), context.stop()).await;
            if let Err(error) = closed {
                tracing::debug!(%error, "the list stays open");
            }
            return Err(error); // the first one says what went wrong
        }
    };
    let report =
        |effect| EffectReport::new(effect, route).in_window(Some(combo.window.id)).from(quote(before, 60));
    // Firefox shows the opened list in objects that close with it.
    let entry = closed.unwrap_or(&entry);
    if is_chosen(context, combo, entry, Proof::Selected, wanted, OPENS).await? {
        return Ok(report(Effect::Confirmed).to(quote(wanted, 60)));
    }
    let after = shown_choice(context, combo).await?;
    let hint = "the entry was clicked and the choice does not show; look at the window";
    Ok(report(Effect::Unverifiable).to(quote(&after, 60)).hint(hint))
}

/// Waits for the entry to show.
async fn opened_entry(context: &Context, combo: &Element, wanted: &str) -> Result<Option<Element>> {
    let mut patience = Patience::start(context, OPENS).await?;
    let mut last = false;
    loop {
        for role in ENTRY_ROLES {
            let query = QueryArgument::exactly(role, wanted);
            let aim = Aim { window_id: Some(combo.window.id), query: Some(query), ..Aim::default() };
            match target::element(context, &aim).await {
                Ok(entry) if is_shown(combo, &entry) => return Ok(Some(entry)),
                Ok(_) => {}
                Err(Error { code: Code::ElementNotFound | Code::Ambiguous, .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if last {
            return Ok(None);
        }
        last = !patience.another_look(context).await;
    }
}

/// Whether the entry is on the screen: it says so, or was not there before the list was opened.
fn is_shown(combo: &Element, entry: &Element) -> bool {
    entry.snapshot.nodes[entry.place as usize].states.has(State::Showing)
        || !combo.snapshot.nodes.iter().any(|node| node.id == *entry.id())
}

/// Waits until the entry is the chosen one.
async fn is_chosen(
    context: &Context,
    combo: &Element,
    entry: &Element,
    proof: Proof,
    wanted: &str,
    wait: Duration,
) -> Result<bool> {
    let accessibility = &context.desktop().accessibility;
    let mut patience = Patience::start(context, wait).await?;
    let mut last = false;
    loop {
        let selected = proof == Proof::Selected
            && accessibility.probe(entry.id()).await.is_ok_and(|node| node.states.has(State::Selected));
        if selected || shown_choice(context, combo).await? == wanted {
            return Ok(true);
        }
        if last {
            return Ok(false);
        }
        last = !patience.another_look(context).await;
    }
}

async fn click_entry(context: &Context, entry: &Element) -> Result<bool, PortError> {
    let details =
        entry.details(context, 0, true).await.map_err(|error| PortError::NotSupported(error.message))?;
    match details.actions.first() {
        Some(action) => context.desktop().accessibility.do_action(entry.id(), action.index).await,
        None => Ok(false),
    }
}

/// What a combo box shows as chosen: its text, the label in it, or its name where that follows the choice.
async fn shown_choice(context: &Context, combo: &Element) -> Result<String> {
    let details = combo.details(context, 400, false).await?;
    let text = details.text.map(|text| text.content).unwrap_or_default();
    if !text.trim().is_empty() {
        return Ok(text);
    }
    let accessibility = &context.desktop().accessibility;
    let nodes = &combo.snapshot.nodes;
    if let Some(label) = below(combo).map(|place| &nodes[place as usize]).find(|node| node.role == "label")
        && let Ok(label) = accessibility.probe(&label.id).await
    {
        return Ok(label.name);
    }
    Ok(accessibility.probe(combo.id()).await?.name)
}

/// The places of all elements below `element`, which follow it.
fn below(element: &Element) -> impl Iterator<Item = u32> {
    let nodes = &element.snapshot.nodes;
    let top = element.place;
    let last = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
    (top + 1..last).take_while(move |&place| {
        let mut parents =
            std::iter::successors(nodes[place as usize].parent, |&parent| nodes[parent as usize].parent);
        parents.any(|parent| parent == top)
    })
}
