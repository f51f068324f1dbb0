//! `invoke_menu`: an item of a menu by its path, in the background where the toolkit allows it, else by opening each level.

mod evidence;
mod levels;
mod opening;

use schemars::JsonSchema;
use serde::Deserialize;

use self::evidence::Watch;
use self::levels::Levels;
use self::opening::{Opened, Opening};
use super::reading::{Family, Reading};
use super::window_state::{MAX_NODES, TREE_BUDGET};
use super::{Spec, Surface, Tool, click};
use crate::desktop::{Node, PortError, TreeRequest, WindowId};
use crate::effect::{Delivery, Effect, EffectReport, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::quote;

/// Levels of one path; deeper menus are a mistake.
const MAX_LEVELS: usize = 8;

/// Chooses an item of a menu.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window of the menu.
    window_id: Option<WindowId>,
    /// Names from the menu bar or the button to the item: `["File", "Save As…"]`.
    path: Vec<String>,
    /// As in click.
    delivery: Option<Delivery>,
}

/// What was chosen, with what is needed to judge it.
struct Chosen {
    item: Node,
    route: Route,
    watch: Watch,
    /// What is open, or was until the item was chosen.
    opened: Option<Opened>,
}

async fn read(context: &Context, window: WindowId) -> Result<Reading> {
    let family = Family::of(context, window).await?;
    let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: 0 };
    let reading = Reading::take(context, family, &request).await?;
    if reading.tree.nodes.is_empty() {
        let message =
            "the window tells no menus; use press_key (alt and a letter, F10), or click in a picture";
        return Err(Error::new(Code::NotSupported, message));
    }
    Ok(reading)
}

async fn choose(context: &Context, arguments: &Arguments, window: WindowId) -> Result<Chosen> {
    let reading = read(context, window).await?;
    let delivery = arguments.delivery.unwrap_or_default();
    if delivery != Delivery::Foreground {
        if let Some(chosen) = in_background(context, &reading, &arguments.path, delivery).await? {
            return Ok(chosen);
        }
        if delivery == Delivery::Background {
            let message = "the application shows its menu's items only while the menu is open; nothing was done; use \
                           delivery \"foreground\"";
            return Err(Error::new(Code::NotSupported, message));
        }
    }
    click::focus_window(context, &reading.window).await?;
    let mut opening = Opening::new(context, reading);
    match opening.choose(&arguments.path).await {
        Ok((item, route, watch)) => Ok(Chosen { item, route, watch, opened: Some(opening.opened()) }),
        Err(error) => {
            opening.opened().close(context).await;
            Err(error)
        }
    }
}

/// The item as its menu tells it that is opened once more, and closed again.
async fn look_again(context: &Context, path: &[String], window: WindowId) -> Result<Option<Node>> {
    let mut opening = Opening::new(context, read(context, window).await?);
    let found = opening.find(path).await;
    opening.opened().close(context).await;
    match found {
        Ok(item) => Ok(Some(item)),
        // The item may have taken itself away, or the menu: then nothing is known.
        Err(error) if error.code == Code::Cancelled => Err(error),
        Err(_) => Ok(None),
    }
}

/// Chooses an item of a menu that is not open. `None`: the tree does not show it, or its action does nothing.
async fn in_background(
    context: &Context,
    reading: &Reading,
    path: &[String],
    delivery: Delivery,
) -> Result<Option<Chosen>> {
    let nodes = &reading.tree.nodes;
    let levels = Levels::of(nodes);
    let places = match levels.resolve(path) {
        Ok(places) => places,
        Err(unknown) if delivery == Delivery::Background => {
            return unknown.map_or(Ok(None), Err);
        }
        Err(_) => return Ok(None),
    };
    let Some(&place) = places.last() else { return Ok(None) };
    let known = &nodes[place as usize];
    if !levels.inside(place).is_empty() {
        return Err(leads_to_a_menu(&levels, path, place));
    }
    let accessibility = &context.desktop().accessibility;
    let item = match accessibility.probe(&known.id).await {
        Ok(item) => item,
        Err(PortError::ElementGone | PortError::NotSupported(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    // Programs decide what is enabled when a menu opens.
    let disabled = places.iter().map(|&place| &nodes[place as usize]).find(|node| levels::is_disabled(node));
    if let Some(disabled) = disabled {
        return match delivery {
            Delivery::Background => {
                let name = quote(&disabled.name, 60);
                let message = format!(
                    "menu item {name} is disabled, as far as its closed menu tells; nothing was done; delivery \
                     \"foreground\" opens it"
                );
                Err(Error::new(Code::NotSupported, message))
            }
            _ => Ok(None),
        };
    }
    if !item.interfaces.action {
        return Ok(None);
    }
    let watch = Watch::start(context, &reading.window, levels.apart_from_menus(), &item).await;
    match accessibility.do_action(&item.id, 0).await {
        Ok(true) => Ok(Some(Chosen { item, route: Route::AxAction, watch, opened: None })),
        Ok(false) | Err(PortError::NotSupported(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn leads_to_a_menu(levels: &Levels<'_>, path: &[String], place: u32) -> Error {
    let mut beyond = path.to_vec();
    beyond.push(String::new());
    let listed = levels.unknown(&beyond, path.len(), &levels.inside(place));
    let last = quote(path.last().map_or("", String::as_str), 60);
    let there = listed.message.split_once("there is: ").map_or("", |(_, there)| there).to_owned();
    Error::argument("path", format!("{last} opens a menu; nothing was done; it has: {there}"))
        .with_details(listed.details.unwrap_or_default())
}

pub(super) struct InvokeMenu;

impl Tool for InvokeMenu {
    const SPEC: Spec = Spec {
        name: "invoke_menu",
        description: "Choose an item of a menu bar, or of a button's menu, by its path of names; in the background where that \
                      works. A wrong name answers what is there.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "path": ["File", "Save As…"]}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        if arguments.window_id.is_none() {
            return Err(Error::argument("window_id", "missing; the window of the menu"));
        }
        if !(1..=MAX_LEVELS).contains(&arguments.path.len()) {
            return Err(Error::argument("path", format!("expected 1 to {MAX_LEVELS} names")));
        }
        if arguments.path.iter().any(|name| name.trim().is_empty()) {
            return Err(Error::argument("path", "has an empty name"));
        }
        Ok(())
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        let Some(window) = arguments.window_id else { return Err(Error::argument("window_id", "missing")) };
        let Chosen { item, route, watch, opened } = context.act(choose(&context, &arguments, window)).await?;
        let report = watch.judge(&context, window, &item, route).await?;
        let Some(opened) = opened.filter(|_| report.effect != Effect::Confirmed) else { return Ok(report) };
        context.act(opened.require_closed(&context, &item)).await?;
        if !evidence::is_checkable(&item) {
            return Ok(report);
        }
        // Office programs bring an item's check mark up to date when its menu opens, and not before.
        let again = context.act(look_again(&context, &arguments.path, window)).await?;
        Ok(again.map_or(report.clone(), |now| evidence::reopened(report, &item, &now)))
    }
}
