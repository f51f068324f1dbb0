//! What an action is aimed at: an element of a snapshot, or a point.

use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::reading::{Family, Reading};
use super::window_state::{MAX_NODES, TREE_BUDGET};
use crate::activity::Acting;
use crate::desktop::{
    Desktop, Details, DetailsRequest, Display, ElementId, Hit, Node, PortError, State, Tree, TreeNote,
    TreeRequest, Window, WindowId, WindowKind,
};
use crate::effect::{EFFECT_WAIT, Patience};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::{PictureFrame, Point};
use crate::session::{PictureOf, Shown};
use crate::tree::{
    Query, Snapshot, hidden_pages, is_interactive, is_item, is_text_input, nearest, quote, spoken,
};

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
    /// For the element with that role and that name.
    pub(super) fn exactly(role: &str, name: &str) -> Self {
        Self { role: Some(role.to_owned()), name: Some(name.to_owned()), value: None, exact: Some(true) }
    }

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
    /// The picture that a point in image space was read off, if not the newest.
    pub(crate) picture_id: Option<String>,
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
        if self.picture_id.is_some() {
            return Err(Error::argument("picture_id", "belongs to a point, not to an element"));
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
        if self.picture_id.is_some() && self.space.is_some_and(|space| space != Space::Image) {
            return Err(Error::argument("picture_id", "belongs to a point in space \"image\""));
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
    /// Its place in the snapshot.
    pub(crate) place: u32,
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

    /// What callers call it by.
    pub(crate) fn index(&self) -> u32 {
        self.snapshot.index(self.place)
    }

    /// For messages: `[12] button "Save"`.
    pub(crate) fn describe(&self) -> String {
        let (index, node) = (self.index(), &self.node);
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
        let mut place = nodes.get(self.place as usize).and_then(|node| node.parent);
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
        let parent = nodes.get(self.place as usize)?.parent?;
        let before = nodes[..self.place as usize].iter().filter(|node| node.parent == Some(parent)).count();
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
    let place = place_of(context, &snapshot, "element_index", index)?;
    let known = &snapshot.nodes[place as usize];
    let shown_by = snapshot.window_of(place).id;
    let window = match context.window(shown_by).await {
        // A menu that has closed took its items with it.
        Err(error)
            if shown_by != snapshot.window.id
                && matches!(error.code, Code::UnknownWindow | Code::WindowGone) =>
        {
            return Err(PortError::ElementGone.into());
        }
        window => window?,
    };
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
    if let Some(turn) = context.turn() {
        turn.at_element(&snapshot, place);
    }
    Ok(Element { snapshot, place, window, node, acting })
}

/// The place of the element that `field` calls by its index.
///
/// # Errors
/// `element_gone` if an earlier snapshot of the window had it, `invalid_argument` if none did.
pub(crate) fn place_of(context: &Context, snapshot: &Snapshot, field: &str, index: u32) -> Result<u32> {
    if let Some(place) = snapshot.place(index) {
        return Ok(place);
    }
    if context.session().had_index(snapshot.window.id, index) {
        return Err(PortError::ElementGone.into());
    }
    let last = snapshot.indices.iter().max().copied().unwrap_or_default();
    Err(Error::argument(
        field,
        format!("snapshot {} has no element {index}; the last is {last}", snapshot.id),
    ))
}

/// Characters of a text that a query looks through.
pub(super) const QUERY_TEXT: usize = 4000;
/// Elements that nearly match and are listed where none does.
const NEAR: usize = 5;
/// Candidates of an ambiguous query that are listed.
const CANDIDATES: usize = 12;

/// Finds the one element of a window that `query` names, in a reading of its own.
async fn queried(context: &Context, window: WindowId, query: &Query) -> Result<Element> {
    let family = Family::of(context, window).await?;
    let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: QUERY_TEXT };
    let reading = Reading::take(context, family, &request).await?;
    let tree = &reading.tree;
    let places: Vec<u32> =
        (0u32..).zip(&tree.nodes).filter(|(_, node)| !query.excludes(node)).map(|(place, _)| place).collect();
    let mut details = vec![None; places.len()];
    if query.needs_details() {
        let request = DetailsRequest { text_limit: QUERY_TEXT, frames: false, actions: false };
        details = reading.details(context, &places, request).await?;
    }
    let matching = places.iter().zip(&details);
    let mut found: Vec<u32> = matching
        .filter(|(place, details)| query.matches(&tree.nodes[**place as usize], details.as_ref()))
        .map(|(place, _)| *place)
        .collect();
    let is_shown = |place: &u32| tree.nodes[*place as usize].states.has(State::Showing);
    // A page of another tab is not what a person means, whatever its elements say of themselves.
    let behind = hidden_pages(&tree.nodes);
    found.retain(|place| !behind.contains(place));
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
    let found = if found.len() > 1 { in_shown_bars(context, &reading, found).await? } else { found };
    let elements = tree.nodes.len();
    let Reading { window, tree, parts } = reading;
    let Tree { nodes, notes, .. } = tree;
    let indices = context.session().indices(window.id, &nodes);
    let snapshot = context.session().keep(|id| {
        let window = window.clone();
        Snapshot { id, window, nodes, indices, parts, seen: None }
    });
    let element = |place: u32| {
        let node = snapshot.nodes[place as usize].clone();
        let acting = Some(Arc::new(context.activity().acting(&node.id.owner)));
        let window = snapshot.window_of(place).clone();
        Element { snapshot: Arc::clone(&snapshot), place, window, node, acting }
    };
    match found.as_slice() {
        [only] => {
            if let Some(turn) = context.turn() {
                turn.at_window(&snapshot.window);
                turn.at_element(&snapshot, *only);
            }
            Ok(element(*only))
        }
        [] if elements == 0 => {
            if context.stop().is_cancelled() {
                return Err(context.not_delivered());
            }
            if let Some(app) = notes.iter().find_map(|note| match note {
                TreeNote::NotResponding { app } => Some(app),
                _ => None,
            }) {
                let message = format!(
                    "{} does not answer, so nothing can be found in it; nothing was done",
                    quote(app, 40)
                );
                return Err(Error::new(Code::AppNotResponding, message));
            }
            let why = notes.iter().find_map(|note| match note {
                TreeNote::NoTree(why) | TreeNote::Other(why) => Some(why.clone()),
                _ => None,
            });
            let why = why.unwrap_or_else(|| "it has no elements".to_owned());
            Err(Error::new(
                Code::ElementNotFound,
                format!("window {} has no tree to look in: {why}", window.id),
            ))
        }
        [] => {
            let near = nearest(query, &snapshot.nodes, NEAR);
            let names: Vec<_> = near.iter().map(|&place| element(place).describe()).collect();
            let near_ones =
                if names.is_empty() { String::new() } else { format!("; near: {}", names.join(", ")) };
            let message = format!(
                "none of the {elements} elements of window {} matches; nothing was done{near_ones}",
                window.id
            );
            Err(Error::new(Code::ElementNotFound, message))
        }
        several => {
            let names: Vec<_> =
                several.iter().take(CANDIDATES).map(|&place| element(place).describe()).collect();
            let more = several.len().saturating_sub(CANDIDATES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let message = format!(
                "several elements of snapshot {} match, nothing was done: {}{more}",
                snapshot.id,
                names.join(", ")
            );
            let indices: Vec<u32> = several.iter().map(|&place| snapshot.index(place)).collect();
            let details = serde_json::json!({"snapshot_id": snapshot.id, "candidates": indices});
            Err(Error::new(Code::Ambiguous, message).with_details(details))
        }
    }
}

/// Leaves out of `found` what belongs to a menu bar that lies nowhere, if some belongs to one that does not: LibreOffice
/// publishes its menus twice, as its own and as the toolkit's, and shows one of them.
async fn in_shown_bars(context: &Context, reading: &Reading, found: Vec<u32>) -> Result<Vec<u32>> {
    let nodes = &reading.tree.nodes;
    let bar = |place: u32| {
        let line = std::iter::successors(Some(place), |at| nodes[*at as usize].parent);
        line.into_iter().find(|at| nodes[*at as usize].role == "menu bar")
    };
    let bars: Vec<Option<u32>> = found.iter().map(|place| bar(*place)).collect();
    let mut asked: Vec<u32> = bars.iter().flatten().copied().collect();
    asked.sort_unstable();
    asked.dedup();
    if asked.len() < 2 {
        return Ok(found);
    }
    let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
    let details = reading.details(context, &asked, request).await?;
    let lies = |details: &Option<Details>| {
        details.as_ref().and_then(|details| details.frame).is_some_and(|frame| !frame.is_empty())
    };
    let nowhere: Vec<u32> =
        asked.iter().zip(&details).filter(|(_, details)| !lies(details)).map(|(bar, _)| *bar).collect();
    let is_kept = |bar: &Option<u32>| bar.is_none_or(|bar| !nowhere.contains(&bar));
    let kept: Vec<u32> =
        found.iter().zip(&bars).filter(|(_, bar)| is_kept(bar)).map(|(place, _)| *place).collect();
    Ok(if kept.is_empty() { found } else { kept })
}

/// A point of the screen, and the window that it was meant for.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) window: Option<Window>,
    pub(crate) at: Point,
    /// Whether a popup of the window lies there.
    pub(crate) in_popup: bool,
    /// Whether the window has the focus already, and nothing lies over it.
    pub(crate) in_front: bool,
}

/// Converts the point that `aim` names to the screen.
pub(crate) async fn place(context: &Context, aim: &Aim) -> Result<Place> {
    find_place(context, aim, false).await.map(|(place, _)| place)
}

/// The same for a point that is going to be pressed, with what a press there would reach if that could be asked at once: a
/// point of the screen is where it is.
pub(crate) async fn place_to_press(context: &Context, aim: &Aim) -> Result<(Place, Option<Hit>)> {
    find_place(context, aim, true).await
}

async fn find_place(context: &Context, aim: &Aim, to_press: bool) -> Result<(Place, Option<Hit>)> {
    let (Some(x), Some(y)) = (aim.x, aim.y) else { return Err(Error::argument("x", "missing")) };
    let picture = match &aim.picture_id {
        Some(id) => Some(context.session().picture(id)?),
        None => None,
    };
    let id = aim.window_id.or_else(|| picture.as_ref().and_then(|picture| picture.window_id()));
    let space = match (aim.space, &picture) {
        (Some(space), _) => space,
        (None, Some(_)) => Space::Image,
        (None, None) if id.is_some() => Space::Window,
        (None, None) => Space::Screen,
    };
    let Desktop { windows, screen, .. } = context.desktop();
    let look = async {
        if to_press && space == Space::Screen {
            let mut hit = windows.hit_test(Point::from_screen(x, y)).await?;
            return Ok((std::mem::take(&mut hit.windows), Some(hit)));
        }
        Ok((if id.is_some() { windows.list().await? } else { Vec::new() }, None))
    };
    let ((windows, hit), displays) = tokio::try_join!(look, screen.displays())?;
    let window = id.map(|id| context.window_among(&windows, id).cloned()).transpose()?;
    let at = match space {
        Space::Screen => Point::from_screen(x, y),
        Space::Window => {
            window.as_ref().map(|window| window.frame).unwrap_or_default().window_to_screen(x, y)
        }
        Space::Image => {
            let picture = match picture {
                Some(picture) => picture,
                None => newest_picture(context, window.as_ref())?,
            };
            from_picture(&picture, window.as_ref(), x, y)?
        }
    };
    on_desktop(&displays, at)?;
    let in_popup = window.as_ref().is_some_and(|window| has_popup_at(&windows, window, at));
    if let Some(window) = window.as_ref().filter(|window| !window.frame.contains(at) && !in_popup) {
        let message = format!("the point is outside of window {}, which is {}", window.id, window.frame);
        return Err(Error::argument("x", message));
    }
    let in_front = window.as_ref().is_some_and(|window| is_in_front(&windows, window));
    if let Some(turn) = context.turn() {
        window.iter().for_each(|window| turn.at_window(window));
        turn.at_point(at);
    }
    Ok((Place { window, at, in_popup, in_front }, hit.map(|hit| Hit { windows, ..hit })))
}

/// The picture that a point without a `picture_id` was read off.
fn newest_picture(context: &Context, window: Option<&Window>) -> Result<Arc<Shown>> {
    let of = window.map_or(PictureOf::Desktop, |window| PictureOf::Window(window.id));
    if let (PictureOf::Desktop, Some(newest)) = (of, context.session().newest_picture())
        && let Some(id) = newest.window_id()
    {
        let message =
            format!("missing; the newest picture shows window {id}, so a point of it needs that `window_id`");
        return Err(Error::argument("window_id", message));
    }
    context.session().picture_of(of).ok_or_else(|| {
        Error::argument("space", "this session was given no picture of it yet, so image points mean nothing")
    })
}

fn from_picture(picture: &Shown, window: Option<&Window>, x: f64, y: f64) -> Result<Point> {
    if picture.window_id().is_some_and(|shown| Some(shown) != window.map(|window| window.id)) {
        let message = format!("picture {} shows {}, not this window", picture.id, picture.of);
        return Err(Error::argument("picture_id", message));
    }
    let at = picture.frame.to_screen(x, y).ok_or_else(|| {
        let PictureFrame { width, height, .. } = picture.frame;
        Error::argument(
            "x",
            format!("the point is outside of picture {}, which is {width}x{height}", picture.id),
        )
    })?;
    // The window may have moved since the picture was taken; the picture moves with it.
    let (right, down) = picture.moved(window)?;
    Ok(Point::new(at.x.saturating_add(right), at.y.saturating_add(down)))
}

/// Whether a popup of `window`, one of `windows`, lies at `at`.
fn has_popup_at(windows: &[Window], window: &Window, at: Point) -> bool {
    let mut popups = windows.iter().filter(|popup| popup.kind == WindowKind::Popup && belongs(popup, window));
    popups.any(|popup| popup.frame.contains(at))
}

/// Whether `window`, one of `windows`, has the focus and nothing but its own popups lies over it.
fn is_in_front(windows: &[Window], window: &Window) -> bool {
    let covers = |other: &&Window| {
        let its_popup = other.kind == WindowKind::Popup && belongs(other, window);
        other.z > window.z
            && !other.minimized
            && !its_popup
            && other.frame.intersection(&window.frame).is_some()
    };
    window.focused && !window.minimized && !windows.iter().any(|other| covers(&other))
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

fn on_desktop(displays: &[Display], at: Point) -> Result<()> {
    if displays.iter().any(|display| display.frame.contains(at)) {
        return Ok(());
    }
    let frames: Vec<_> = displays.iter().map(|display| display.frame.to_string()).collect();
    Err(Error::argument("x", format!("{},{} is on no display; there are: {}", at.x, at.y, frames.join("; "))))
}

/// What of a window may lie at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The window itself.
    Window,
    /// The window, or a popup of it.
    Popup,
    /// An open menu or list of it, wherever that is drawn.
    Menu,
}

impl Reach {
    /// For what an element stands in.
    pub(crate) fn of(element: &Element) -> Self {
        if element.is_in_popup() { Self::Menu } else { Self::Window }
    }
}

fn pointer_is_held() -> Error {
    let message = "some program holds the pointer (an open menu, a drag, a screen lock), so a press would not reach the \
                   window; nothing was done; an open menu closes with press_key Escape";
    Error::new(Code::Occluded, message)
}

/// A menu that closes lets go of the pointer a moment later.
const LETTING_GO: Duration = Duration::from_millis(200);
/// Nothing tells that the pointer is let go: it is looked at so often.
const HELD_LOOK: Duration = Duration::from_millis(20);

/// Makes sure that no program holds the pointer, as one does that shows a menu.
///
/// # Errors
/// `occluded`.
pub(super) async fn require_free_pointer(context: &Context, window: &Window) -> Result<()> {
    let begun = Instant::now();
    while context.desktop().windows.hit_test(window.frame.center()).await?.grabbed {
        if begun.elapsed() >= LETTING_GO {
            return Err(pointer_is_held());
        }
        context.pause(HELD_LOOK).await?;
    }
    Ok(())
}

/// Makes sure that a press at `at` reaches `window` (or, for an element of a menu, the menu's own window).
pub(crate) async fn require_uncovered(
    context: &Context,
    window: &Window,
    at: Point,
    reach: Reach,
) -> Result<()> {
    require_reached(&context.desktop().windows.hit_test(at).await?, window, at, reach)
}

/// Makes sure that `hit`, which was found out about `at`, is `window` or belongs to it.
pub(crate) fn require_reached(hit: &Hit, window: &Window, at: Point, reach: Reach) -> Result<()> {
    let in_own_popup =
        |top: &Window| reach != Reach::Window && top.kind == WindowKind::Popup && belongs(top, window);
    // An application that shows a menu holds the pointer itself: a press in that menu reaches it. Swing draws menus into
    // the window.
    let in_menu = |top: &Window| in_own_popup(top) || reach == Reach::Menu && top.id == window.id;
    if hit.grabbed && !hit.window.as_ref().is_some_and(in_menu) {
        return Err(pointer_is_held());
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
    let message = format!("at {},{} lies {name}, not window {}; nothing was done", at.x, at.y, window.id);
    Err(Error::new(Code::Occluded, message).with_details(serde_json::json!({"cover": details})))
}
