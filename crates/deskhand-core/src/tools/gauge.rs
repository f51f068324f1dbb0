//! How far a content is scrolled: told by its scroll bar, by where its elements are, or by what it looks like.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::under::Under;
use crate::desktop::{Details, DetailsRequest, Direction, ElementId, Node, State, Value, Window};
use crate::effect::EFFECT_WAIT;
use crate::engine::Context;
use crate::geometry::{Point, Rect};
use crate::sight::Sight;

/// Elements whose places are watched. A few would do; of some toolkits many have no place while they are out of view.
const ANCHORS: usize = 16;
/// Scroll bars of a window that are looked at.
const BARS: usize = 64;
/// A scroll bar lies so deep below what it scrolls: some toolkits put a box around it.
const BAR_DEPTH: usize = 2;
/// Scrolling that glides is looked at so often.
const LOOK: Duration = Duration::from_millis(50);
/// It has come to rest when nothing has moved for so long: browsers tell where their elements are by the way, and late.
const REST: Duration = Duration::from_millis(150);
/// A browser on a busy machine takes so long until it shows the first of it.
const FIRST_MOVE: Duration = Duration::from_millis(800);
/// Gliding takes so long at most.
const GLIDE: Duration = Duration::from_millis(1200);
/// Places further away than any screen are what toolkits say of things that have none.
const FAR: i32 = 1_000_000;

/// What is watched.
pub(super) struct Gauge {
    window: Window,
    direction: Direction,
    under: Option<Under>,
    /// The scroll bar, if there is one that can move.
    pub(super) bar: Option<ElementId>,
    anchors: Vec<ElementId>,
    /// What scrolls, in screen pixels.
    pub(super) pane: Rect,
}

/// How it stands at one moment.
pub(super) struct Mark {
    pub(super) bar: Option<Value>,
    anchors: Vec<Option<Rect>>,
    sight: Option<Sight>,
}

/// How far it has moved from one moment to another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moved {
    /// Pixels of the content, where they are known; positive in the direction of scrolling.
    pub(super) pixels: Option<i64>,
    /// For the answer.
    pub(super) before: Option<String>,
    pub(super) after: String,
    /// Whether it can only have been scrolling.
    pub(super) certain: bool,
}

impl Gauge {
    pub(super) async fn new(
        context: &Context,
        window: &Window,
        under: Option<Under>,
        at: Point,
        direction: Direction,
    ) -> Self {
        let mut gauge = Self {
            window: window.clone(),
            direction,
            under: None,
            bar: None,
            anchors: Vec::new(),
            // Without the window manager's decorations, which never scroll.
            pane: window.frame.intersection(&window.client).unwrap_or(window.frame),
        };
        if let Some(under) = under {
            gauge.find(context, &under, at).await;
            gauge.under = Some(under);
        }
        gauge
    }

    const fn is_across(&self) -> bool {
        matches!(self.direction, Direction::Left | Direction::Right)
    }

    /// Length of what is seen of the content, in pixels.
    pub(super) const fn page(&self) -> u32 {
        if self.is_across() { self.pane.width } else { self.pane.height }
    }

    async fn find(&mut self, context: &Context, under: &Under, at: Point) {
        let mut holder = None;
        for &place in &under.chain {
            if let Some(bar) = self.bar_below(context, under, place).await {
                self.bar = Some(bar);
                holder = Some(place);
                break;
            }
        }
        if holder.is_none()
            && let Some((bar, place)) = self.bar_around(context, under, at).await
        {
            self.bar = Some(bar);
            holder = Some(place);
        }
        let scrolls = |place: &&u32| under.tree.nodes.get(**place as usize).is_some_and(is_scrollable);
        // The outermost of nested documents is what a browser scrolls.
        let holder = holder.or_else(|| under.chain.iter().rfind(scrolls).copied());
        let place = holder.unwrap_or(0);
        let candidates: Vec<u32> = under.below(place).filter(|&at| is_anchor(under, at)).collect();
        let step = candidates.len().div_ceil(ANCHORS).max(1);
        let mut asked = vec![under.id(place)];
        asked.extend(candidates.into_iter().step_by(step).map(|at| under.id(at)));
        let frames = frames(context, under, &asked).await;
        if let Some(frame) =
            frames.first().copied().flatten().and_then(|frame| frame.intersection(&self.window.frame))
        {
            self.pane = frame;
        }
        let placed = asked.into_iter().zip(frames).skip(1).filter(|(_, frame)| frame.is_some());
        self.anchors = placed.map(|(id, _)| id).collect();
    }

    /// The scroll bar of this direction close below `place`, if it can move.
    async fn bar_below(&self, context: &Context, under: &Under, place: u32) -> Option<ElementId> {
        let depth = |at: u32| under.above(at).take_while(|above| *above != place).count() + 1;
        let bars: Vec<u32> = under
            .below(place)
            .filter(|&at| under.tree.nodes[at as usize].role == "scroll bar" && depth(at) <= BAR_DEPTH)
            .collect();
        self.moving(context, under, &bars).await.into_iter().next().map(|at| under.id(at))
    }

    /// The scroll bar of the smallest thing around `at` that has one, and that thing's place: what lies at a point is not
    /// always told to the innermost.
    async fn bar_around(&self, context: &Context, under: &Under, at: Point) -> Option<(ElementId, u32)> {
        let places = (0u32..).zip(&under.tree.nodes);
        let bars = places.filter(|(_, node)| node.role == "scroll bar" && node.states.has(State::Showing));
        let bars: Vec<u32> = bars.map(|(place, _)| place).take(BARS).collect();
        let mut holders = Vec::new();
        for bar in self.moving(context, under, &bars).await {
            holders.extend(under.above(bar).take(BAR_DEPTH).map(|holder| (bar, holder)));
        }
        let ids: Vec<ElementId> = holders.iter().map(|(_, holder)| under.id(*holder)).collect();
        let around = holders.into_iter().zip(frames(context, under, &ids).await);
        let around =
            around.filter_map(|(found, frame)| Some((found, frame.filter(|frame| frame.contains(at))?)));
        let area = |frame: &Rect| u64::from(frame.width) * u64::from(frame.height);
        around.min_by_key(|(_, frame)| area(frame)).map(|((bar, holder), _)| (under.id(bar), holder))
    }

    /// Those of `bars` that can move in this direction.
    async fn moving(&self, context: &Context, under: &Under, bars: &[u32]) -> Vec<u32> {
        if bars.is_empty() {
            return Vec::new();
        }
        let ids: Vec<ElementId> = bars.iter().map(|&bar| under.id(bar)).collect();
        let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
        let details = under.details(context, &ids, request).await;
        let fits = |details: &Details| {
            let moves = details.value.is_some_and(|value| value.maximum > value.minimum);
            let frame = details.frame.filter(|frame| !frame.is_empty());
            moves && frame.is_none_or(|frame| (frame.width > frame.height) == self.is_across())
        };
        let found = bars.iter().zip(details).filter(|(_, found)| found.as_ref().is_some_and(fits));
        found.map(|(bar, _)| *bar).collect()
    }

    /// Looks how it stands. With `sight`, also at the picture.
    pub(super) async fn mark(&self, context: &Context, sight: bool) -> Mark {
        let mut mark = Mark { bar: None, anchors: Vec::new(), sight: None };
        if let Some(under) = &self.under {
            if let Some(bar) = &self.bar {
                let request = DetailsRequest { text_limit: 0, frames: false, actions: false };
                let details = under.details(context, std::slice::from_ref(bar), request).await;
                mark.bar = details.into_iter().next().flatten().and_then(|details| details.value);
            }
            mark.anchors = frames(context, under, &self.anchors).await;
        }
        if sight {
            mark.sight = Sight::of(context, self.window.id).await;
        }
        mark
    }

    /// Whether setting the scroll bar's value does what it should. LibreOffice goes back to the beginning instead.
    pub(super) fn obeys(&self) -> bool {
        let is_sheet = |node: &Node| node.role == "document spreadsheet";
        !self.under.as_ref().is_some_and(|under| under.tree.nodes.iter().any(is_sheet))
    }

    /// An element of the content, and where it is, for scrolling it to another place.
    pub(super) fn anchor(&self, mark: &Mark) -> Option<(ElementId, Rect)> {
        let placed = self.anchors.iter().zip(&mark.anchors);
        let placed: Vec<_> = placed.filter_map(|(id, frame)| Some((id.clone(), (*frame)?))).collect();
        let in_view = |(_, frame): &&(ElementId, Rect)| frame.intersection(&self.pane).is_some();
        placed.iter().find(in_view).or_else(|| placed.get(placed.len() / 2)).cloned()
    }

    /// How far it has moved from `before` to `now`. `None`: not at all, as far as can be told.
    pub(super) fn moved(&self, before: &Mark, now: &Mark) -> Option<Moved> {
        // Where both tell, the picture is right: browsers are late to say where their elements are.
        let shown = match (&before.sight, &now.sight) {
            (Some(old), Some(new)) => old.scrolled(new, &self.pane, self.direction),
            _ => None,
        };
        let pixels = shown.filter(|&pixels| pixels != 0).or_else(|| self.shift(before, now));
        if let (Some(old), Some(new)) = (before.bar, now.bar)
            && old.current != new.current
        {
            let end = if new.current >= new.maximum { " (the end)" } else { "" };
            return Some(Moved {
                pixels,
                before: Some(number(old.current)),
                after: format!("scroll bar at {} of {}{end}", number(new.current), number(new.maximum)),
                certain: true,
            });
        }
        if let Some(pixels) = pixels.filter(|&pixels| pixels != 0) {
            let after = format!("content moved by {pixels} pixels");
            return Some(Moved { pixels: Some(pixels), before: None, after, certain: true });
        }
        // Elements and picture agree that what changed stood still: a scroll bar that appears, a light at the edge.
        if pixels == Some(0) && shown == Some(0) && !self.anchors.is_empty() {
            return None;
        }
        // Another page, or a blinking cursor: who knows.
        let (old, new) = (before.sight.as_ref()?, now.sight.as_ref()?);
        let changed = old.changed(new, &self.pane)?;
        let after = format!("{changed} pixels changed");
        (changed > 0).then_some(Moved { pixels: None, before: None, after, certain: false })
    }

    /// The distance that most elements have moved.
    fn shift(&self, before: &Mark, now: &Mark) -> Option<i64> {
        let mut votes: HashMap<i64, usize> = HashMap::new();
        for (old, new) in before.anchors.iter().zip(&now.anchors) {
            let (Some(old), Some(new)) = (old, new) else { continue };
            let way = match self.direction {
                Direction::Down => i64::from(old.y) - i64::from(new.y),
                Direction::Up => i64::from(new.y) - i64::from(old.y),
                Direction::Right => i64::from(old.x) - i64::from(new.x),
                Direction::Left => i64::from(new.x) - i64::from(old.x),
            };
            *votes.entry(way).or_default() += 1;
        }
        votes.into_iter().max_by_key(|(way, votes)| (*votes, way.abs())).map(|(way, _)| way)
    }

    /// Waits until it has moved and come to rest; `None` when it has not moved for a bounded time.
    pub(super) async fn settle(&self, context: &Context, before: &Mark) -> (Mark, Option<Moved>) {
        let begun = Instant::now();
        let mut last: Option<Moved> = None;
        let mut still_since = begun;
        let mut seen: Option<Sight> = None;
        // A scroll bar moves with the first of it.
        let first_move = if before.bar.is_some() { EFFECT_WAIT } else { FIRST_MOVE };
        loop {
            // A bar tells all. Else pictures tell when a glide has ended.
            let now = self.mark(context, before.bar.is_none() && before.sight.is_some()).await;
            let moved = self.moved(before, &now);
            let is_certain = moved.as_ref().is_some_and(|moved| moved.certain);
            let is_still = match (&seen, &now.sight) {
                (Some(before), Some(now)) => before.changed(now, &self.pane) == Some(0),
                _ => true,
            };
            if moved != last || !is_still {
                still_since = Instant::now();
            }
            let patience = if is_certain { GLIDE } else { first_move };
            // What a scroll bar was set to, it has.
            let rest = if now.bar.is_some() { LOOK } else { REST };
            let rests = is_certain && moved == last && still_since.elapsed() >= rest;
            if rests || begun.elapsed() >= patience || context.pause(LOOK).await.is_err() {
                return (now, moved);
            }
            last = moved;
            seen = now.sight;
        }
    }
}

fn number(value: f64) -> String {
    let rounded = (value * 100.0).round() / 100.0;
    rounded.to_string()
}

/// Roles of what scrolls without telling a scroll bar.
fn is_scrollable(node: &Node) -> bool {
    node.role.starts_with("document")
        || matches!(
            node.role.as_str(),
            "scroll pane" | "viewport" | "list" | "list box" | "table" | "tree" | "tree table" | "terminal"
        )
}

/// Whether the place of an element moves with the content: it holds no others, and is no part of a scroll bar.
fn is_anchor(under: &Under, at: u32) -> bool {
    let nodes = &under.tree.nodes;
    let holds_none = nodes.get(at as usize + 1).is_none_or(|next| next.parent != Some(at));
    let parent = nodes[at as usize].parent.map(|parent| nodes[parent as usize].role.as_str());
    holds_none && nodes[at as usize].role != "scroll bar" && parent != Some("scroll bar")
}

/// Frames of elements; `None` for those that have none.
async fn frames(context: &Context, under: &Under, ids: &[ElementId]) -> Vec<Option<Rect>> {
    if ids.is_empty() {
        return Vec::new();
    }
    let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
    let is_near = |frame: &Rect| !frame.is_empty() && frame.x.abs() < FAR && frame.y.abs() < FAR;
    let details = under.details(context, ids, request).await;
    details.into_iter().map(|found| found.and_then(|found| found.frame).filter(is_near)).collect()
}
