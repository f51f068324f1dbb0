//! `click` and its aliases.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::judge::{judge, judge_row, judge_toggle};
use super::pointing::point_at;
use super::target::{self, Aim, Element, Place, QueryArgument, Reach, Space};
use super::{Spec, Surface, Tool};
use crate::desktop::{
    Action, Button, Click, Details, Hit, Interfaces, Modifier, Node, PortError, State, Window, WindowId,
    WindowKind,
};
use crate::effect::{
    Delivery, EFFECT_WAIT, Effect, EffectReport, Expectation, Observer, Patience, Route, Since, Target,
};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Point;
use crate::queue::StepKind;
use crate::tree::{Snapshot, is_interactive, is_item, is_text_input, quote};

/// Time between press and release: what a person needs, and long enough for programs that sample buttons.
const HOLD: Duration = Duration::from_millis(30);
/// Most clicks of a multiple click: three select a paragraph, four everything.
const MAX_COUNT: u32 = 4;

/// Clicks an element or a point.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window of the element or point, from list_windows.
    window_id: Option<WindowId>,
    /// Element, by its number in the newest snapshot of the window.
    element_index: Option<u32>,
    /// Element, by what it is called, instead of its number; refused if several match.
    query: Option<QueryArgument>,
    /// Snapshot that the number is from, if not the newest.
    snapshot_id: Option<String>,
    /// Point, instead of an element.
    x: Option<f64>,
    /// Point, instead of an element.
    y: Option<f64>,
    /// Space of the point; `window` with a window_id, else `screen`. `image`: as read off the newest picture.
    space: Option<Space>,
    /// Picture that the point was read off, if not the newest of the window or desktop.
    picture_id: Option<String>,
    /// Mouse button.
    button: Option<Button>,
    /// 2 for a double click.
    #[schemars(range(min = 1, max = 4))]
    count: Option<u32>,
    /// Keys held during the click.
    modifiers: Option<Vec<Modifier>>,
    /// `background` never raises the window or moves the pointer; `foreground` uses real input; `auto` takes the first that works.
    delivery: Option<Delivery>,
    /// Give focus, stacking order and pointer back afterwards.
    restore: Option<bool>,
    /// It is one click, whatever was clicked just before.
    #[serde(skip)]
    apart: bool,
}

impl Arguments {
    fn aim(&self) -> Aim {
        Aim {
            window_id: self.window_id,
            element_index: self.element_index,
            query: self.query.clone(),
            snapshot_id: self.snapshot_id.clone(),
            x: self.x,
            y: self.y,
            space: self.space,
            picture_id: self.picture_id.clone(),
        }
    }

    /// What only a real pointer can do.
    fn needs_pointer(&self) -> bool {
        self.button.unwrap_or_default() != Button::Left
            || self.count.unwrap_or(1) != 1
            || self.modifiers.as_ref().is_some_and(|modifiers| !modifiers.is_empty())
    }

    fn at(&self, at: Point) -> Click {
        Click {
            at,
            button: self.button.unwrap_or_default(),
            count: self.count.unwrap_or(1),
            modifiers: self.modifiers.clone().unwrap_or_default(),
            hold: HOLD,
            apart: self.apart,
        }
    }
}

/// What was delivered, with what is needed to judge it.
pub(super) struct Done {
    pub(super) route: Route,
    pub(super) point: Option<Point>,
    pub(super) observer: Observer,
    pub(super) element: Option<Element>,
    pub(super) window: Option<Window>,
    pub(super) expectation: Expectation,
}

impl Done {
    /// An element was clicked.
    fn on(element: Element, route: Route, point: Option<Point>, observer: Observer) -> Self {
        // The buttons of a dialogue close it, in their own time.
        let closes = element.window.kind == WindowKind::Dialog && element.role().contains("button");
        let expectation = if closes { Expectation::Certain } else { Expectation::Possible };
        let window = Some(element.window.clone());
        Self { route, point, observer, element: Some(element), window, expectation }
    }
}

async fn deliver(arguments: &Arguments, context: &Context) -> Result<Done> {
    if arguments.aim().is_element() {
        let element = target::element(context, &arguments.aim()).await?;
        click_element(context, arguments, element).await
    } else {
        let since = Since::now(context).await;
        let (place, hit) = target::place_to_press(context, &arguments.aim()).await?;
        click_place(context, arguments, place, hit, since).await
    }
}

/// How long a key that springs back takes, at most.
const SPRING: Duration = Duration::from_millis(300);

/// The keys of some calculators are toggle buttons that spring back. One that was clicked a moment ago is waited for: a
/// click before that would only release it. What stays is a toggle, and is clicked as it is.
async fn spring_back(context: &Context, element: Element) -> Result<Element> {
    let is_down = |states: crate::desktop::States| states.has(State::Checked) || states.has(State::Pressed);
    if element.role() != "toggle button"
        || !is_down(element.node.states)
        || !context.activity().was_aimed_at(element.id())
    {
        return Ok(element);
    }
    let mut patience = Patience::start(context, SPRING).await?;
    loop {
        let node = context.desktop().accessibility.probe(element.id()).await?;
        if !is_down(node.states) {
            let states = node.states;
            return Ok(Element { node: Node { states, ..element.node }, ..element });
        }
        if !patience.another_look(context).await {
            return Ok(element);
        }
    }
}

async fn click_element(context: &Context, arguments: &Arguments, element: Element) -> Result<Done> {
    element.require_enabled(context).await?;
    let element = spring_back(context, element).await?;
    let delivery = arguments.delivery.unwrap_or_default();
    if delivery != Delivery::Foreground && !arguments.needs_pointer() {
        let mut observer = observe(context, &element).await;
        if let Some(route) = without_pointer(context, &element, delivery).await? {
            return Ok(Done::on(element, route, None, observer));
        }
        if delivery == Delivery::Background {
            // An answer of false proves as little as one of true.
            if observer.evidence(context, Some(&element.snapshot), Expectation::Possible).await.is_some() {
                return Ok(Done::on(element, Route::AxAction, None, observer));
            }
            return Err(no_background(&format!("{} offers no action for a click", element.describe())));
        }
    } else if delivery == Delivery::Background {
        return Err(no_background("other buttons, multiple clicks and modifiers need the pointer"));
    }
    press_element(context, arguments, element).await
}

fn no_background(why: &str) -> Error {
    Error::new(Code::NotSupported, format!("{why}; nothing was clicked; use delivery \"foreground\""))
}

async fn observe(context: &Context, element: &Element) -> Observer {
    let target = Target {
        owner: Some(&element.id().owner),
        element: Some(element.id()),
        window: Some(&element.window),
        wants_focus: only_focuses(element.role()),
    };
    Observer::start(context, target).await
}

/// Clicks through the accessibility interfaces, where a click means something there. `None`: it does not.
async fn without_pointer(context: &Context, element: &Element, delivery: Delivery) -> Result<Option<Route>> {
    let accessibility = &context.desktop().accessibility;
    let done = |claim: Result<bool, PortError>, route| match claim {
        Ok(true) => Ok(Some(route)),
        Ok(false) | Err(PortError::NotSupported(_)) => Ok(None),
        Err(error) => Err(Error::from(error)),
    };
    if is_text_input(element.role()) {
        // The action of an entry is to submit it; a click only puts the caret there.
        return match done(accessibility.focus(element.id()).await, Route::AxFocus)? {
            Some(route) if takes_focus(context, element).await? => Ok(Some(route)),
            _ => Ok(None),
        };
    }
    // Qt and Swing mark the entry of a combo box's list and leave the list open: nothing is chosen.
    let only_marks = is_choice(element);
    if only_marks {
        return Ok(None);
    }
    let Interfaces { action, .. } = element.node.interfaces;
    if action {
        let details = element.details(context, 0, true).await?;
        if let Some(index) = click_action(element.role(), &details) {
            return done(accessibility.do_action(element.id(), index).await, Route::AxAction);
        }
    }
    // LibreOffice selects the cell and leaves its cursor where it was: what is typed then goes elsewhere.
    let moves_no_cursor = element.is_in("document spreadsheet") && delivery != Delivery::Background;
    if (is_item(element.role()) || element.role() == "page tab") && !moves_no_cursor {
        let selected = done(accessibility.select(element.id()).await, Route::AxSelection)?;
        // An answer of "true" proves nothing.
        return Ok(match selected {
            Some(route) if accessibility.probe(element.id()).await?.states.has(State::Selected) => {
                Some(route)
            }
            _ => None,
        });
    }
    Ok(None)
}

/// An entry in the list of a combo box, other than those that are menu items and act as such.
fn is_choice(element: &Element) -> bool {
    let is_entry = !element.role().ends_with("menu item");
    is_entry && !is_interactive(element.role()) && (element.is_in("combo box") || element.is_in("popup menu"))
        || element.role() == "list item" && element.is_in("combo box")
}

async fn has_focus(context: &Context, element: &Element) -> Result<bool> {
    Ok(context.desktop().accessibility.probe(element.id()).await?.states.has(State::Focused))
}

/// Waits until the element says that it has the focus: browsers move it in another process.
async fn takes_focus(context: &Context, element: &Element) -> Result<bool> {
    let mut patience = Patience::start(context, EFFECT_WAIT).await?;
    loop {
        if has_focus(context, element).await? {
            return Ok(true);
        }
        if !patience.another_look(context).await {
            return has_focus(context, element).await;
        }
    }
}

/// The action that a click stands for.
fn click_action(role: &str, details: &Details) -> Option<u32> {
    let named = |wanted: &[&str]| {
        details
            .actions
            .iter()
            .find(|action| wanted.contains(&plain(action).as_str()))
            .map(|action| action.index)
    };
    let ordinary = named(&["click", "press", "jump", "toggle", "check", "uncheck", "select", "switch"]);
    // Rows of lists have actions for editing and opening; a click selects them.
    if is_item(role) && !role.ends_with("menu item") && ordinary.is_none() {
        return None;
    }
    let activating = || named(&["activate", "open"]);
    // GTK's buttons for colours can also be selected, which a click on them does not do.
    let ordinary = match role {
        "button" => named(&["click", "press", "jump", "toggle", "switch"]).or_else(activating).or(ordinary),
        _ => ordinary,
    };
    ordinary
        .or_else(activating)
        // Chromium's only action has no name, Firefox' only separators.
        .or_else(|| named(&[""]))
        .or_else(|| (details.actions.len() == 1 && role.contains("button")).then(|| details.actions[0].index))
}

fn plain(action: &Action) -> String {
    action.name.trim_matches(|c: char| c == ';' || c.is_whitespace()).to_ascii_lowercase()
}

/// Clicks an element with the real pointer.
async fn press_element(context: &Context, arguments: &Arguments, element: Element) -> Result<Done> {
    raise(context, &element.window, element.is_in_popup()).await?;
    let at = point_at(context, &element).await?;
    let observer = observe(context, &element).await;
    let delivered = context.desktop().pointer.click(&arguments.at(at), context.stop()).await?;
    context.delivered(delivered, "clicks")?;
    Ok(Done::on(element, Route::Pointer, Some(at), observer))
}

/// Raises a window that keys are meant for, and gives it the focus.
pub(super) async fn focus_window(context: &Context, window: &Window) -> Result<()> {
    if window.kind == WindowKind::Popup {
        return Ok(());
    }
    let windows = &context.desktop().windows;
    let error = match windows.activate(window.id).await {
        Ok(()) => return Ok(()),
        Err(error) => error,
    };
    if let PortError::NotSupported(why) = &error {
        let list = windows.list().await?;
        let is_dialog = |other: &&Window| other.parent == Some(window.id) && other.kind == WindowKind::Dialog;
        if let Some(dialog) = list.iter().find(is_dialog) {
            let message =
                format!("{why}: its dialogue, {}, is open and takes the input; use that", name_of(dialog));
            return Err(Error::new(Code::NotSupported, message));
        }
    }
    Err(error.into())
}

/// Raises a window, unless that would close what is clicked.
///
/// # Errors
/// `occluded` while some program holds the pointer, and those of the port.
pub(super) async fn raise(context: &Context, window: &Window, in_popup: bool) -> Result<()> {
    if in_popup || window.kind == WindowKind::Popup {
        return Ok(());
    }
    if !window.focused {
        // A press would not reach it: then it is left where it is.
        target::require_free_pointer(context, window).await?;
    }
    match context.desktop().windows.activate(window.id).await {
        // A window that will not take the focus can still be clicked, if it is not covered; the hit test tells.
        Ok(()) | Err(PortError::NotSupported(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Clicks a point. `hit` is what lies there, if that was asked `since`.
async fn click_place(
    context: &Context,
    arguments: &Arguments,
    place: Place,
    hit: Option<Hit>,
    mut since: Since,
) -> Result<Done> {
    let Place { window, at, in_popup, in_front } = place;
    if arguments.delivery == Some(Delivery::Background) {
        return click_place_in_background(context, arguments, window, at).await;
    }
    let hit = match hit.filter(|_| in_front || window.is_none()) {
        None if window.is_none() => Some(context.desktop().windows.hit_test(at).await?),
        hit => hit,
    };
    let ready = async {
        let Some(window) = &window else { return Ok(None) };
        if let Some(hit) = &hit {
            return target::require_reached(hit, window, at, Reach::Popup).map(|()| None);
        }
        if !in_front {
            raise(context, window, in_popup || !window.frame.contains(at)).await?;
        }
        since.again();
        let hit = context.desktop().windows.hit_test(at).await?;
        target::require_reached(&hit, window, at, Reach::Popup)?;
        Ok::<_, Error>(Some(hit.windows))
    };
    let under = window.as_ref().or_else(|| hit.as_ref()?.window.as_ref());
    let owner = async { owner_of(context, under?).await };
    // What lies there is evidence only, so no press waits for it: it is asked first and has until the release to be told.
    let mut element = pin!(async { element_under(context, under?, at).await });
    let mut told = None;
    let (owner, windows) = {
        let mut ready = pin!(async { tokio::join!(owner, ready) });
        loop {
            tokio::select! {
                biased;
                (owner, windows) = &mut ready => break (owner, windows?),
                node = &mut element, if told.is_none() => told = Some(node),
            }
        }
    };
    let target = Target { owner: owner.as_ref(), element: None, window: under, wants_focus: false };
    let windows = windows.or_else(|| hit.as_ref().map(|hit| hit.windows.clone())).unwrap_or_default();
    let mut observer = Observer::start_among(context, target, since.with(windows)).await.of_press();
    let click = arguments.at(at);
    let (delivered, element) = tokio::join!(context.desktop().pointer.click(&click, context.stop()), async {
        match told {
            Some(node) => node,
            None => element.await,
        }
    });
    context.delivered(delivered?, "clicks")?;
    let expectation = element.as_ref().map_or(Expectation::Possible, expected_of);
    if let Some(node) = element {
        let wants_focus = only_focuses(&node.role);
        observer.aim_at(context, node.id, wants_focus);
    }
    let window = under.cloned();
    Ok(Done { route: Route::Pointer, point: Some(at), observer, element: None, window, expectation })
}

/// How long is waited to be told what lies at a point: it is wanted as evidence only.
const UNDER_WAIT: Duration = Duration::from_millis(100);

/// The application of a window, if it is found soon.
async fn owner_of(context: &Context, window: &Window) -> Option<Arc<str>> {
    let asked = context.desktop().accessibility.owner(window);
    tokio::time::timeout(UNDER_WAIT, asked).await.ok()?.ok()?
}

/// The element at a point, if its application tells soon.
pub(super) async fn element_under(context: &Context, window: &Window, at: Point) -> Option<Node> {
    let accessibility = &context.desktop().accessibility;
    let asked = async {
        let id = accessibility.element_at(window, at).await.ok()??;
        accessibility.probe(&id).await.ok()
    };
    tokio::time::timeout(UNDER_WAIT, asked).await.ok()?
}

/// Whether a click on such an element does no more than give it the focus.
fn only_focuses(role: &str) -> bool {
    is_text_input(role) || !is_interactive(role)
}

/// What a click on an element is likely to change.
fn expected_of(node: &Node) -> Expectation {
    let has_focus = node.states.has(State::Focused);
    if !is_interactive(&node.role) || (is_text_input(&node.role) && has_focus) {
        Expectation::Unlikely
    } else {
        Expectation::Possible
    }
}

async fn click_place_in_background(
    context: &Context,
    arguments: &Arguments,
    window: Option<Window>,
    at: Point,
) -> Result<Done> {
    let Some(window) = window else {
        return Err(Error::argument(
            "window_id",
            "missing; a background click needs the window it is meant for",
        ));
    };
    if arguments.needs_pointer() {
        return Err(no_background("other buttons, multiple clicks and modifiers need the pointer"));
    }
    let accessibility = &context.desktop().accessibility;
    let found = accessibility.element_at(&window, at).await?;
    let found = found.ok_or_else(|| no_background("the window tells no element at that point"))?;
    let node = accessibility.probe(&found).await?;
    let snapshot = Snapshot::passing(window.clone(), vec![node.clone()]);
    let element = Element { snapshot: snapshot.into(), place: 0, window: window.clone(), node, acting: None };
    element.require_enabled(context).await?;
    let observer = observe(context, &element).await;
    match without_pointer(context, &element, Delivery::Background).await? {
        Some(route) => Ok(Done {
            route,
            point: Some(at),
            observer,
            element: None,
            window: Some(window),
            expectation: Expectation::Possible,
        }),
        None => Err(no_background("the element at that point offers no action for a click")),
    }
}

pub(super) struct ClickTool;

impl Tool for ClickTool {
    const SPEC: Spec = Spec {
        name: "click",
        description: "Click an element ([n] of a snapshot; preferred) or a point. Elements are clicked through \
                      accessibility first, without taking the focus or the pointer; points with the real pointer after \
                      raising the window and checking that nothing covers it. Answers whether an effect was read back.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "element_index": 12}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        crate::settings::within("count", arguments.count, &(1..=MAX_COUNT))?;
        arguments.aim().check()
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        let restore = arguments.restore.unwrap_or(false);
        let count = arguments.count.unwrap_or(1);
        context.operate(restore, deliver(&arguments, &context), |done| judge(&context, done, count)).await
    }
}

/// Puts the keyboard focus on an element: through accessibility, or by clicking it. The answer says whether it has it now.
pub(super) async fn focus_element(context: &Context, element: &Element) -> Result<bool> {
    raise(context, &element.window, false).await?;
    let accessibility = &context.desktop().accessibility;
    if has_focus(context, element).await? {
        return Ok(true);
    }
    match accessibility.focus(element.id()).await {
        Ok(_) | Err(PortError::NotSupported(_)) => {}
        Err(error) => return Err(error.into()),
    }
    if takes_focus(context, element).await? {
        return Ok(true);
    }
    let at = point_at(context, element).await?;
    let click = Click { at, button: Button::Left, count: 1, modifiers: Vec::new(), hold: HOLD, apart: false };
    let delivered = context.desktop().pointer.click(&click, context.stop()).await?;
    context.delivered(delivered, "clicks")?;
    takes_focus(context, element).await
}

/// Clicks a toggle and says whether its state changed.
pub(super) async fn toggle(context: &Context, delivery: Delivery, element: Element) -> Result<EffectReport> {
    let arguments = Arguments { delivery: Some(delivery), ..Arguments::default() };
    let Done { route, point, mut observer, element, .. } =
        click_element(context, &arguments, element).await?;
    let Some(element) = element else { return Err(PortError::ElementGone.into()) };
    let report =
        EffectReport::new(Effect::Confirmed, route).in_window(Some(element.window.id)).on(&element).at(point);
    judge_toggle(context, &element, &mut observer, report).await
}

/// Clicks an element by the first way that works, and says which it was. Nothing is waited for.
pub(super) async fn press(context: &Context, element: Element) -> Result<Route> {
    Ok(click_element(context, &Arguments::default(), element).await?.route)
}

/// Clicks a row or cell once with the real pointer. The answer says whether it is the one that is selected now.
pub(super) async fn press_row(context: &Context, element: &Element) -> Result<bool> {
    // A cell that is double-clicked is edited, not selected.
    let arguments = Arguments { apart: true, ..Arguments::default() };
    let Done { mut observer, .. } = press_element(context, &arguments, element.clone()).await?;
    let deadline = tokio::time::Instant::now() + ROW_WAIT;
    loop {
        let report = EffectReport::new(Effect::Confirmed, Route::Pointer);
        if judge_row(context, element, &mut observer, report).await?.effect == Effect::Confirmed {
            return Ok(true);
        }
        if tokio::time::Instant::now() >= deadline {
            return Ok(false);
        }
        context.pause(ROW_LOOK).await?;
    }
}

/// How long a table may take to tell which of its cells is selected: an office program that is busy tells it late.
const ROW_WAIT: Duration = Duration::from_secs(2);

/// Between two looks at it.
const ROW_LOOK: Duration = Duration::from_millis(50);

/// A window's name for messages.
pub(super) fn name_of(window: &Window) -> String {
    format!("window {} {}", window.id, quote(&window.title, 60))
}
