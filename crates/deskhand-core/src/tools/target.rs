//! What an action is aimed at: an element of a snapshot, or a point.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::window_state::{MAX_NODES, TREE_BUDGET};
use crate::activity::Acting;
use crate::desktop::{
    Details, DetailsRequest, ElementId, Node, PortError, State, TreeNote, TreeRequest, Window, WindowId,
    WindowKind,
};
use crate::effect::{EFFECT_WAIT, Patience};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};
use crate::session::PictureOf;
use crate::tree::{Query, Snapshot, is_interactive, is_item, is_text_input, quote, spoken};

/// Space of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Space {
    /// Device pixels of the whole desktop.
    Screen,
    /// Device pixels from the corner of the window's visible frame.
    Window,
    /// Pixels of the newest picture of this window (or of the desktop, without `window_id`).
    Image,
}

/// Names an element by what a person sees, instead of by its number.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryArgument {
    /// Role, as outlines spell it.
    role: Option<String>,
    /// The name, or a part of it that begins with a word.
    name: Option<String>,
    /// Part of the text or value.
    value: Option<String>,
    /// Names and texts must be equal as a whole, case included.
    exact: Option<bool>,
}

impl QueryArgument {
    fn query(&self) -> Query {
        Query {
            role: self.role.clone(),
            name: self.name.clone(),
            value: self.value.clone(),
            any: None,
            exact: self.exact.unwrap_or(false),
        }
    }
}

/// The arguments that name a target, as tools share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aim {
    pub(crate) window_id: Option<WindowId>,
    pub(crate) element_index: Option<u32>,
    pub(crate) query: Option<QueryArgument>,
    pub(crate) snapshot_id: Option<String>,
    pub(crate) x: Option<f64>,
    pub(crate) y: Option<f64>,
    pub(crate) space: Option<Space>,
}

impl Aim {
    /// Checks that the arguments name one target, an element or a point.
    pub(crate) fn check(&self) -> Result<()> {
        if self.query.is_some() {
            if self.x.is_some() || self.y.is_some() {
                return Err(Error::argument("query", "give an element or a point, not both"));
            }
            return self.check_element();
        }
        match (self.element_index, self.x, self.y) {
            (Some(_), None, None) => self.check_element(),
            (None, Some(x), Some(y)) => self.check_point(x, y),
            (None, Some(_), None) => Err(Error::argument("y", "missing; a point has `x` and `y`")),
            (None, None, Some(_)) => Err(Error::argument("x", "missing; a point has `x` and `y`")),
            (Some(_), ..) => Err(Error::argument("element_index", "give an element or a point, not both")),
            (None, None, None) => Err(Error::argument(
                "element_index",
                "missing; expected `element_index` or `query` with `window_id`, or `x` and `y`",
            )),
        }
    }

    /// Whether the arguments name an element.
    pub(crate) const fn is_element(&self) -> bool {
        self.element_index.is_some() || self.query.is_some()
    }

    pub(crate) fn check_element(&self) -> Result<()> {
        if let Some(query) = &self.query {
            if self.element_index.is_some() || self.snapshot_id.is_some() {
                return Err(Error::argument("query", "give an element's number or a query, not both"));
            }
            if query.role.is_none() && query.name.is_none() && query.value.is_none() {
                return Err(Error::argument("query", "expected `role`, `name` or `value` in it"));
            }
        } else if self.element_index.is_none() {
            return Err(Error::argument("element_index", "missing; expected `element_index` or `query`"));
        }
        if self.space.is_some() {
            return Err(Error::argument("space", "belongs to a point, not to an element"));
        }
        if self.window_id.is_none() && self.snapshot_id.is_none() {
            return Err(Error::argument(
                "window_id",
                "missing; an `element_index` needs its `window_id` or `snapshot_id`",
            ));
        }
        Ok(())
    }

    fn check_point(&self, x: f64, y: f64) -> Result<()> {
        for (name, value) in [("x", x), ("y", y)] {
            if !value.is_finite() || value.abs() > f64::from(i32::MAX / 2) {
                return Err(Error::argument(name, format!("{value} is no coordinate")));
            }
        }
        if self.snapshot_id.is_some() {
            return Err(Error::argument("snapshot_id", "belongs to an `element_index`, not to a point"));
        }
        if self.space == Some(Space::Window) && self.window_id.is_none() {
            return Err(Error::argument("window_id", "missing; points in window space need it"));
        }
        Ok(())
    }
}

/// An element that exists now.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) index: u32,
    pub(crate) window: Window,
    /// As it is now.
    pub(crate) node: Node,
    /// What changes in its application from now on is our doing.
    pub(crate) acting: Option<Arc<Acting>>,
}

impl Element {
    pub(crate) fn id(&self) -> &ElementId {
        &self.node.id
    }

    pub(crate) fn role(&self) -> &str {
        &self.node.role
    }

    /// For messages: `[12] button "Save"`.
    pub(crate) fn describe(&self) -> String {
        let Self { index, node, .. } = self;
        if node.name.is_empty() {
            format!("[{index}] {}", spoken(&node.role))
        } else {
            format!("[{index}] {} {}", spoken(&node.role), quote(&node.name, 60))
        }
    }

    /// Refuses an element that a person could not use either. One that is about to be enabled is waited for: a dialogue's
    /// button follows its field.
    pub(crate) async fn require_enabled(&self, context: &Context) -> Result<()> {
        let refused = match refuse_disabled(self, &self.node) {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        let mut patience = Patience::start(context, EFFECT_WAIT).await?;
        while patience.another_look(context).await {
            let now = context.desktop().accessibility.probe(self.id()).await?;
            if refuse_disabled(self, &now).is_ok() {
                return Ok(());
            }
        }
        Err(refused)
    }

    /// Its details, read now. `None` if it does not answer.
    pub(crate) async fn details(
        &self,
        context: &Context,
        text_limit: usize,
        actions: bool,
    ) -> Result<Details> {
        let ids = [self.id().clone()];
        let accessibility = &context.desktop().accessibility;
        let request = DetailsRequest { text_limit, frames: true, actions };
        let details = accessibility.details(&self.window, &ids, request, context.stop()).await?;
        details.into_iter().next().flatten().ok_or_else(|| {
            if context.stop().is_cancelled() {
                context.not_delivered()
            } else {
                PortError::ElementGone.into()
            }
        })
    }

    /// The part of the element that lies in its window, and the point to press: its middle.
    pub(crate) fn press_point(&self, details: &Details) -> Result<Point> {
        let hidden = || {
            let message = format!(
                "{} is not on the screen, so it cannot be clicked with the pointer; scroll it into view or use delivery \
                 \"background\"",
                self.describe()
            );
            Error::new(Code::NotSupported, message)
        };
        let frame = details.frame.filter(|frame| !frame.is_empty()).ok_or_else(hidden)?;
        // Menus and combo box lists are windows of their own, outside of the window's frame.
        let visible = if self.is_in_popup() {
            frame
        } else {
            frame.intersection(&self.window.frame).ok_or_else(hidden)?
        };
        Ok(visible.center())
    }

    /// Whether the element lives in a menu or list that pops up.
    pub(crate) fn is_in_popup(&self) -> bool {
        ["menu", "popup menu", "combo box", "tool tip"].iter().any(|role| self.is_in(role))
    }

    /// Whether something around the element has this role.
    pub(crate) fn is_in(&self, role: &str) -> bool {
        let nodes = &self.snapshot.nodes;
        let mut place = nodes.get(self.index as usize).and_then(|node| node.parent);
        while let Some(parent) = place {
            let node = &nodes[parent as usize];
            if node.role == role {
                return true;
            }
            place = node.parent;
        }
        false
    }

    /// Place among its siblings, as the snapshot had them, and its parent.
    pub(crate) fn in_parent(&self) -> Option<(ElementId, u32)> {
        let nodes = &self.snapshot.nodes;
        let parent = nodes.get(self.index as usize)?.parent?;
        let before = nodes[..self.index as usize].iter().filter(|node| node.parent == Some(parent)).count();
        Some((nodes[parent as usize].id.clone(), u32::try_from(before).ok()?))
    }
}

fn refuse_disabled(element: &Element, now: &Node) -> Result<()> {
    let usable = now.states.has(State::Enabled) || now.states.has(State::Sensitive);
    let read_only = now.states.has(State::ReadOnly) && is_text_input(&now.role);
    if usable || read_only || !is_interactive(&now.role) {
        return Ok(());
    }
    Err(Error::new(Code::NotSupported, format!("{} is disabled; nothing was done", element.describe())))
}

/// Finds the element that `aim` names, and makes sure that it still is the one that the snapshot showed.
pub(crate) async fn element(context: &Context, aim: &Aim) -> Result<Element> {
    if let (Some(query), Some(window)) = (&aim.query, aim.window_id) {
        return queried(context, window, &query.query()).await;
    }
    let index = aim.element_index.ok_or_else(|| Error::argument("element_index", "missing"))?;
    let snapshot = match (&aim.snapshot_id, aim.window_id) {
        (Some(id), window) => {
            let snapshot = context.session().snapshot(id)?;
            if window.is_some_and(|window| window != snapshot.window.id) {
                let message = format!("is of window {}, not of this one", snapshot.window.id);
                return Err(Error::argument("snapshot_id", message));
            }
            snapshot
        }
        (None, Some(window)) => context.session().newest_snapshot(window)?,
        (None, None) => return Err(Error::argument("window_id", "missing")),
    };
    let Some(known) = snapshot.nodes.get(index as usize) else {
        let message =
            format!("snapshot {} has elements 0 to {}", snapshot.id, snapshot.nodes.len().saturating_sub(1));
        return Err(Error::argument("element_index", message));
    };
    let window = context.window(snapshot.window.id).await?;
    let node = context.desktop().accessibility.probe(&known.id).await?;
    let is_another = node.role != known.role || (is_item(&known.role) && node.name != known.name);
    if is_another {
        let message = format!(
            "[{index}] was {} {} and is {} {} now; nothing was done; take a new snapshot",
            spoken(&known.role),
            quote(&known.name, 60),
            spoken(&node.role),
            quote(&node.name, 60)
        );
        return Err(Error::new(Code::StaleSnapshot, message));
    }
    let acting = Some(Arc::new(context.activity().acting(&node.id.owner)));
    Ok(Element { snapshot, index, window, node, acting })
}

/// Characters of a text that a query looks through.
pub(super) const QUERY_TEXT: usize = 4000;
/// Candidates of an ambiguous query that are listed.
const CANDIDATES: usize = 12;

/// Finds the one element of a window that `query` names, in a reading of its own.
async fn queried(context: &Context, window: WindowId, query: &Query) -> Result<Element> {
    let window = context.window(window).await?;
    let accessibility = &context.desktop().accessibility;
    let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: QUERY_TEXT };
    let tree = accessibility.tree(&window, &request, context.stop()).await?;
    let places: Vec<u32> =
        (0u32..).zip(&tree.nodes).filter(|(_, node)| !query.excludes(node)).map(|(place, _)| place).collect();
    let mut details = vec![None; places.len()];
    if query.needs_details() {
        let ids: Vec<_> = places.iter().map(|&place| tree.nodes[place as usize].id.clone()).collect();
        let request = DetailsRequest { text_limit: QUERY_TEXT, frames: false, actions: false };
        details = accessibility.details(&window, &ids, request, context.stop()).await?;
    }
    let matching = places.iter().zip(&details);
    let mut found: Vec<u32> = matching
        .filter(|(place, details)| query.matches(&tree.nodes[**place as usize], details.as_ref()))
        .map(|(place, _)| *place)
        .collect();
    let is_shown = |place: &u32| tree.nodes[*place as usize].states.has(State::Showing);
    let is_named = |place: &u32| query.names(&tree.nodes[*place as usize]);
    // What a person sees comes before what closed menus and other tabs hold, and a whole name before a part of one.
    if found.iter().any(is_shown) {
        found.retain(is_shown);
    }
    if found.iter().any(is_named) {
        found.retain(is_named);
    }
    // The label in a button is the button.
    let is_in_a_match = |mut place: u32| {
        while let Some(parent) = tree.nodes[place as usize].parent {
            if found.contains(&parent) && is_interactive(&tree.nodes[parent as usize].role) {
                return true;
            }
            place = parent;
        }
        false
    };
    let stands_alone =
        |place: &u32| is_interactive(&tree.nodes[*place as usize].role) || !is_in_a_match(*place);
    let found: Vec<u32> = found.iter().copied().filter(stands_alone).collect();
    let elements = tree.nodes.len();
    let snapshot =
        context.session().keep(|id| Snapshot { id, window: window.clone(), nodes: tree.nodes, seen: false });
    let element = |index: u32| {
        let node = snapshot.nodes[index as usize].clone();
        let acting = Some(Arc::new(context.activity().acting(&node.id.owner)));
        Element { snapshot: Arc::clone(&snapshot), index, window: window.clone(), node, acting }
    };
    match found.as_slice() {
        [only] => Ok(element(*only)),
        [] if elements == 0 => {
            let why = tree.notes.iter().find_map(|note| match note {
                TreeNote::NoTree(why) | TreeNote::Other(why) => Some(why.clone()),
                TreeNote::NotResponding { app } => Some(format!("{} does not answer", quote(app, 40))),
                _ => None,
            });
            let why = why.unwrap_or_else(|| "it has no elements".to_owned());
            Err(Error::new(
                Code::ElementNotFound,
                format!("window {} has no tree to look in: {why}", window.id),
            ))
        }
        [] => {
            let message =
                format!("none of the {elements} elements of window {} matches; nothing was done", window.id);
            Err(Error::new(Code::ElementNotFound, message))
        }
        several => {
            let names: Vec<_> =
                several.iter().take(CANDIDATES).map(|&index| element(index).describe()).collect();
            let more = several.len().saturating_sub(CANDIDATES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!(
                "several elements of snapshot {} match, nothing was done: {}{more}",
                snapshot.id,
                names.join(", ")
            );
            let details = serde_json::json!({"snapshot_id": snapshot.id, "candidates": several});
            Err(Error::new(Code::Ambiguous, message).with_details(details))
        }
    }
}

/// A point of the screen, and the window that it was meant for.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) window: Option<Window>,
    pub(crate) at: Point,
}

/// Converts the point that `aim` names to the screen.
pub(crate) async fn place(context: &Context, aim: &Aim) -> Result<Place> {
    let (Some(x), Some(y)) = (aim.x, aim.y) else { return Err(Error::argument("x", "missing")) };
    let window = match aim.window_id {
        Some(id) => Some(context.window(id).await?),
        None => None,
    };
    let space = aim.space.unwrap_or(if window.is_some() { Space::Window } else { Space::Screen });
    let at = match space {
        Space::Screen => Point::from_screen(x, y),
        Space::Window => {
            window.as_ref().map(|window| window.frame).unwrap_or_default().window_to_screen(x, y)
        }
        Space::Image => from_picture(context, window.as_ref(), x, y)?,
    };
    on_desktop(context, at).await?;
    if let Some(window) = &window
        && !window.frame.contains(at)
        && !within_popup(context, window, at).await?
    {
        let message = format!("the point is outside of window {}, which is {}", window.id, window.frame);
        return Err(Error::argument("x", message));
    }
    Ok(Place { window, at })
}

fn from_picture(context: &Context, window: Option<&Window>, x: f64, y: f64) -> Result<Point> {
    let of = window.map_or(PictureOf::Desktop, |window| PictureOf::Window(window.id));
    if let (PictureOf::Desktop, Some(PictureOf::Window(id))) = (of, context.session().newest_picture()) {
        let message =
            format!("missing; the newest picture shows window {id}, so a point of it needs that `window_id`");
        return Err(Error::argument("window_id", message));
    }
    let picture = context.session().picture(of).ok_or_else(|| {
        Error::argument("space", "this session was given no picture of it yet, so image points mean nothing")
    })?;
    let mut at = picture.to_screen(x, y).ok_or_else(|| {
        Error::argument(
            "x",
            format!("the point is outside of the picture, which is {}x{}", picture.width, picture.height),
        )
    })?;
    // The window may have moved since the picture was taken; the picture moves with it, unless popups widened it.
    if let (Some(window), Rect { width, height, .. }) = (window, picture.screen)
        && (window.frame.width, window.frame.height) == (width, height)
    {
        at.x += window.frame.x - picture.screen.x;
        at.y += window.frame.y - picture.screen.y;
    }
    Ok(at)
}

async fn within_popup(context: &Context, window: &Window, at: Point) -> Result<bool> {
    let windows = context.desktop().windows.list().await?;
    Ok(windows
        .iter()
        .any(|popup| popup.kind == WindowKind::Popup && belongs(popup, window) && popup.frame.contains(at)))
}

/// Whether `popup` was opened by `window`'s client.
pub(crate) fn belongs(popup: &Window, window: &Window) -> bool {
    popup.parent == Some(window.id)
        || (popup.parent.is_none() && popup.pid.is_some() && popup.pid == window.pid)
}

/// Whether some display shows the point.
pub(crate) async fn is_on_display(context: &Context, at: Point) -> Result<bool> {
    Ok(context.desktop().screen.displays().await?.iter().any(|display| display.frame.contains(at)))
}

async fn on_desktop(context: &Context, at: Point) -> Result<()> {
    let displays = context.desktop().screen.displays().await?;
    if displays.iter().any(|display| display.frame.contains(at)) {
        return Ok(());
    }
    let frames: Vec<_> = displays.iter().map(|display| display.frame.to_string()).collect();
    Err(Error::argument("x", format!("{},{} is on no display; there are: {}", at.x, at.y, frames.join("; "))))
}

/// Makes sure that a press at `at` reaches `window` (or, for an element of a menu, the menu's own window).
pub(crate) async fn require_uncovered(
    context: &Context,
    window: &Window,
    at: Point,
    popup_allowed: bool,
) -> Result<()> {
    let hit = context.desktop().windows.hit_test(at).await?;
    let in_own_popup = |top: &Window| popup_allowed && top.kind == WindowKind::Popup && belongs(top, window);
    // An application that shows a menu holds the pointer itself: a press in that menu reaches it.
    if hit.grabbed && !hit.window.as_ref().is_some_and(in_own_popup) {
        let message = "some program holds the pointer (an open menu, a drag, a screen lock), so the click would not reach the \
                       window; nothing was clicked; an open menu closes with press_key Escape";
        return Err(Error::new(Code::Occluded, message));
    }
    let (name, details) = match &hit.window {
        Some(top) if top.id == window.id => return Ok(()),
        Some(top) if in_own_popup(top) => return Ok(()),
        Some(top) => (
            format!("window {} {} of {}", top.id, quote(&top.title, 60), quote(&top.app, 40)),
            serde_json::json!({"window_id": top.id, "app": top.app, "pid": top.pid}),
        ),
        None => ("the bare desktop".to_owned(), serde_json::Value::Null),
    };
    let message = format!("at {},{} lies {name}, not window {}; nothing was clicked", at.x, at.y, window.id);
    Err(Error::new(Code::Occluded, message).with_details(serde_json::json!({"cover": details})))
}
