//! How far a content is scrolled: told by its scroll bar, by where its elements are, or by what it looks like.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::overflow::{self, frames};
use super::under::Under;
use crate::desktop::{Details, DetailsRequest, Direction, ElementId, Node, State, Value, Window};
use crate::effect::EFFECT_WAIT;
use crate::engine::Context;
use crate::geometry::{Point, Rect};
use crate::sight::{Motion, Sight};

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
const FIRST_MOVE: Duration = Duration::from_millis(1000);
/// Gliding takes so long at most, and so does a browser at telling the places after it.
const GLIDE: Duration = Duration::from_millis(2500);
/// Places that the picture cannot be held against, because it shows other content now, are waited for so long: browsers
/// tell places late.
const UNSEEN_REST: Duration = Duration::from_millis(500);
/// Scroll bars are so wide at most.
const EDGE: u32 = 20;
/// Browsers round the places of elements, each by itself.
const ROUNDING: i64 = 1;
/// So much of what is seen is the same, line by line, when nothing was scrolled: scroll bars come and fade.
const STILL_SHARE: f64 = 0.85;
/// For scrolling a page, so many of its elements are tried for one that is in no box of the page.
const HANDLES: usize = 4;

/// What scrolls by itself: a list, a page, a box in it.
struct Scroller {
    holder: ElementId,
    /// Elements whose places are watched, with their places in the tree. Those of a page are not in its box that is watched
    /// too; the first of them then is that box.
    anchors: Vec<(u32, ElementId)>,
}

/// What is watched.
pub(super) struct Gauge {
    window: Window,
    direction: Direction,
    under: Option<Under>,
    /// The scroll bar, if there is one that can move.
    pub(super) bar: Option<ElementId>,
    /// What may scroll, innermost first.
    scrollers: Vec<Scroller>,
    /// Whether it is in a page of a browser.
    is_in_page: bool,
}

/// Where a scroller and its content are.
struct Standing {
    frame: Option<Rect>,
    anchors: Vec<Option<Rect>>,
}

/// How it stands at one moment.
pub(super) struct Mark {
    pub(super) bar: Option<Value>,
    standings: Vec<Standing>,
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
    /// Whether places and picture tell the same.
    is_seen: bool,
    /// Which of the scrollers it was.
    scroller: usize,
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
            scrollers: Vec::new(),
            is_in_page: false,
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

    /// What is seen of the content of a scroller, in screen pixels.
    pub(super) fn pane(&self, mark: &Mark, scroller: usize) -> Rect {
        // Without the window manager's decorations, which never scroll.
        let inside = self.window.frame.intersection(&self.window.client).unwrap_or(self.window.frame);
        let around = mark.standings.iter().skip(scroller).filter_map(|standing| standing.frame);
        around.fold(inside, |pane, frame| frame.intersection(&pane).unwrap_or(pane))
    }

    /// Length of what is seen of the content, in pixels: of what has moved, or is likely to.
    pub(super) fn page(&self, mark: &Mark, moved: Option<&Moved>) -> u32 {
        let pane = self.pane(mark, moved.map_or(0, |moved| moved.scroller));
        if self.is_across() { pane.width } else { pane.height }
    }

    /// The same of the outermost that scrolls.
    pub(super) fn whole_page(&self, mark: &Mark) -> u32 {
        let pane = self.pane(mark, self.scrollers.len().saturating_sub(1));
        if self.is_across() { pane.width } else { pane.height }
    }

    /// Whether it is in a page of a browser.
    pub(super) const fn is_in_page(&self) -> bool {
        self.is_in_page
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
        let page = overflow::page(under);
        self.is_in_page = holder.is_none() && page.is_some();
        let scrolls = |place: &&u32| under.tree.nodes.get(**place as usize).is_some_and(is_scrollable);
        let mut places = Vec::new();
        match (holder, page) {
            (None, Some(page)) => {
                let inside: Vec<u32> =
                    under.chain.iter().copied().take_while(|&place| place != page).collect();
                places = overflow::boxes(context, under, &inside, self.is_across()).await;
                places.push(page);
            }
            (holder, _) => {
                let holder = holder.or_else(|| under.chain.iter().rfind(scrolls).copied());
                places.push(holder.unwrap_or(0));
            }
        }
        let mut inner = None;
        for place in places {
            let anchors = Self::anchors(context, under, place, inner).await;
            self.scrollers.push(Scroller { holder: under.id(place), anchors });
            inner = Some(place);
        }
    }

    /// Some elements below `place`, and `inner`, but nothing that it holds.
    async fn anchors(
        context: &Context,
        under: &Under,
        place: u32,
        inner: Option<u32>,
    ) -> Vec<(u32, ElementId)> {
        let is_inner =
            |at: u32| inner.is_some_and(|inner| at == inner || under.above(at).any(|above| above == inner));
        let candidates: Vec<u32> =
            under.below(place).filter(|&at| is_anchor(under, at) && !is_inner(at)).collect();
        let step = candidates.len().div_ceil(ANCHORS).max(1);
        let last = candidates.last().copied();
        let sample = inner.into_iter().chain(candidates.into_iter().step_by(step));
        let mut places: Vec<u32> = sample.collect();
        places.extend(last.filter(|last| !places.contains(last)));
        let asked: Vec<ElementId> = places.iter().map(|&at| under.id(at)).collect();
        let placed = frames(context, under, &asked).await;
        let found = places.into_iter().zip(asked).zip(placed);
        found.filter(|(_, frame)| frame.is_some()).map(|(anchor, _)| anchor).collect()
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
        let mut mark = Mark { bar: None, standings: Vec::new(), sight: None };
        if let Some(under) = &self.under {
            if let Some(bar) = &self.bar {
                let request = DetailsRequest { text_limit: 0, frames: false, actions: false };
                let details = under.details(context, std::slice::from_ref(bar), request).await;
                mark.bar = details.into_iter().next().flatten().and_then(|details| details.value);
            }
            let anchors =
                |scroller: &Scroller| scroller.anchors.iter().map(|(_, id)| id.clone()).collect::<Vec<_>>();
            let asked = self
                .scrollers
                .iter()
                .flat_map(|scroller| std::iter::once(scroller.holder.clone()).chain(anchors(scroller)));
            let asked: Vec<ElementId> = asked.collect();
            let mut told = frames(context, under, &asked).await.into_iter();
            for scroller in &self.scrollers {
                let frame = told.next().flatten();
                let anchors = told.by_ref().take(scroller.anchors.len()).collect();
                mark.standings.push(Standing { frame, anchors });
            }
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

    /// An element of the content, and where it is, for scrolling it to another place. With `whole`, what is to be scrolled
    /// is the page, whichever of its boxes is at the point. `None`: there is none, or it would move something else too.
    pub(super) async fn handle(
        &self,
        context: &Context,
        mark: &Mark,
        whole: bool,
    ) -> Option<(ElementId, Rect)> {
        // Browsers bring an element to a place by scrolling all that holds it, each by what they see fit.
        if self.is_in_page && self.scrollers.len() > 1 && !whole {
            return None;
        }
        let (scroller, standing) = self.scrollers.iter().zip(&mark.standings).next_back()?;
        let pane = self.pane(mark, self.scrollers.len() - 1);
        let placed = scroller.anchors.iter().zip(&standing.anchors);
        let placed: Vec<_> =
            placed.filter_map(|((at, id), frame)| Some((*at, id.clone(), (*frame)?))).collect();
        let seen = placed.iter().filter(|(_, _, frame)| frame.intersection(&pane).is_some());
        if !self.is_in_page {
            let found = seen.clone().next().or_else(|| placed.get(placed.len() / 2));
            return found.map(|(_, id, frame)| (id.clone(), *frame));
        }
        let under = self.under.as_ref()?;
        let is_holder = |at: u32| under.id(at) == scroller.holder;
        for (at, id, frame) in seen.chain(placed.get(placed.len() / 2)).take(HANDLES) {
            let inside: Vec<u32> = under.above(*at).take_while(|&above| !is_holder(above)).collect();
            if overflow::boxes(context, under, &inside, self.is_across()).await.is_empty() {
                return Some((id.clone(), *frame));
            }
        }
        None
    }

    /// How much further the content of what has moved goes, in pixels, if it is a box in a page.
    pub(super) fn left(&self, now: &Mark, moved: &Moved) -> Option<i64> {
        if moved.scroller + 1 >= self.scrollers.len() {
            return None;
        }
        let (standing, pane) = (now.standings.get(moved.scroller)?, self.pane(now, moved.scroller));
        let content = standing.anchors.iter().flatten();
        let left = content.map(|frame| match self.direction {
            Direction::Down => frame.bottom() - pane.bottom(),
            Direction::Up => i64::from(pane.y) - i64::from(frame.y),
            Direction::Right => frame.right() - pane.right(),
            Direction::Left => i64::from(pane.x) - i64::from(frame.x),
        });
        left.max().map(|left| left.max(0))
    }

    /// How far it has moved from `before` to `now`. `None`: not at all, as far as can be told.
    pub(super) fn moved(&self, before: &Mark, now: &Mark) -> Option<Moved> {
        let ways = self.ways(before, now);
        let moving = ways.iter().position(|way| way.is_some_and(|way| way.pixels != 0));
        let told = moving.and_then(|place| ways[place]);
        let scroller = moving.unwrap_or(0);
        let motion = self.motion(before, now, 0);
        // Places that tell that nothing moved are not believed of widgets, which may draw their content themselves.
        let is_placed = self.is_in_page && ways.first().is_some_and(Option::is_some);
        let shown = motion.as_ref().and_then(Motion::distance);
        let pixels = told.filter(Way::is_certain).map(|way| way.pixels);
        let pixels = pixels.or_else(|| shown.filter(|&pixels| pixels != 0 && told.is_none() && !is_placed));
        let is_seen = told.is_none_or(|way| way.agreed == Some(true));
        let moved = |pixels, after| Moved { pixels, before: None, after, certain: true, is_seen, scroller };
        if let (Some(old), Some(new)) = (before.bar, now.bar)
            && old.current != new.current
        {
            let end = if new.current >= new.maximum { " (the end)" } else { "" };
            let after = format!("scroll bar at {} of {}{end}", number(new.current), number(new.maximum));
            return Some(Moved { before: Some(number(old.current)), ..moved(pixels, after) });
        }
        if let Some(pixels) = pixels {
            return Some(moved(Some(pixels), told_of(pixels, &ways, scroller)));
        }
        // Elements and picture agree that what changed stood still: a scroll bar that appears, a light at the edge.
        if told.is_none() && ways.iter().any(Option::is_some) && motion.as_ref().is_some_and(is_still) {
            return None;
        }
        // Another page, or a blinking cursor: who knows.
        let (old, new) = (before.sight.as_ref()?, now.sight.as_ref()?);
        let changed = old.changed(new, &self.pane(before, scroller))?;
        let after = format!("{changed} pixels changed");
        (changed > 0).then(|| Moved { certain: false, ..moved(None, after) })
    }

    /// The two looks at the content of a scroller, laid over each other.
    fn motion(&self, before: &Mark, now: &Mark, scroller: usize) -> Option<Motion> {
        let (old, new) = (before.sight.as_ref()?, now.sight.as_ref()?);
        old.motion(new, &self.content(before, scroller), self.direction)
    }

    /// The pane without its edges, where scroll bars move against the content, appear and fade.
    fn content(&self, mark: &Mark, scroller: usize) -> Rect {
        let pane = self.pane(mark, scroller);
        let length = if self.is_across() { pane.height } else { pane.width };
        if length < 8 * EDGE {
            return pane;
        }
        if self.is_across() {
            Rect { y: pane.y.saturating_add_unsigned(EDGE), height: length - 2 * EDGE, ..pane }
        } else {
            Rect { x: pane.x.saturating_add_unsigned(EDGE), width: length - 2 * EDGE, ..pane }
        }
    }

    /// How far each scroller's content has moved in it. `None` for one of which no elements are placed.
    fn ways(&self, before: &Mark, now: &Mark) -> Vec<Option<Way>> {
        let mut ways: Vec<Option<Way>> = vec![None; before.standings.len()];
        let mut carried = 0;
        // The outermost comes first: the others move with it.
        for (place, (old, new)) in before.standings.iter().zip(&now.standings).enumerate().rev() {
            // The picture does not tell what a box does that moves with its page.
            let motion = if carried == 0 { self.motion(before, now, place) } else { None };
            let votes = votes(old, new, self.direction);
            ways[place] = Way::of(votes.into_iter().map(|way| way - carried), motion.as_ref());
            carried += ways[place].map_or(0, |way| way.pixels);
        }
        ways
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
                (Some(seen), Some(now)) => {
                    let motion = seen.motion(now, &self.content(before, 0), self.direction);
                    motion.as_ref().is_none_or(is_still)
                }
                _ => true,
            };
            if moved != last || !is_still {
                still_since = Instant::now();
            }
            // What has changed, but does not fit yet, is told soon.
            let patience = if moved.is_some() { GLIDE.max(first_move) } else { first_move };
            let is_unseen = before.sight.is_some() && moved.as_ref().is_some_and(|moved| !moved.is_seen);
            // What a scroll bar was set to, it has.
            let rest = match (now.bar, is_unseen) {
                (Some(_), _) => LOOK,
                (None, true) => UNSEEN_REST,
                (None, false) => REST,
            };
            let rests = is_certain && moved == last && still_since.elapsed() >= rest;
            let is_late = begun.elapsed() >= patience || context.pause(LOOK).await.is_err();
            if rests || (is_late && (now.bar.is_some() || !is_certain)) {
                return (now, moved);
            }
            if is_late {
                // How far it goes is not known before it stands still.
                let after = "it still moves".to_owned();
                return (now, moved.map(|moved| Moved { pixels: None, after, certain: false, ..moved }));
            }
            last = moved;
            seen = now.sight;
        }
    }
}

/// Whether nothing was scrolled, whatever else changed.
fn is_still(motion: &Motion) -> bool {
    motion.share(0).is_none_or(|share| share >= STILL_SHARE)
}

/// How far a scroller's content has moved in it, as most of its elements tell.
#[derive(Clone, Copy, Debug)]
struct Way {
    pixels: i64,
    /// Whether the picture tells the same. `None`: it does not tell.
    agreed: Option<bool>,
}

impl Way {
    /// Of what elements tell, the most frequent first.
    fn of(told: impl Iterator<Item = i64> + Clone, motion: Option<&Motion>) -> Option<Self> {
        let most = told.clone().next()?;
        let share = |pixels: i64| motion.and_then(|motion| motion.share(pixels));
        // What stands still on a page may outnumber what is scrolled: the picture decides. Browsers round places.
        let near = told.filter(|&way| way != 0).flat_map(|way| way - ROUNDING..=way + ROUNDING);
        let shown = near.filter(|&way| way != 0).filter_map(|way| Some((way, share(way)?)));
        let best = shown.max_by(|(_, one), (_, other)| one.total_cmp(other));
        let is_agreed = |pixels: i64| motion.and_then(|motion| motion.agrees(pixels));
        let best = best.filter(|&(way, shown)| {
            is_agreed(way) == Some(true) && share(0).is_none_or(|still| shown > still)
        });
        let pixels = best.map_or(most, |(way, _)| way);
        Some(Self { pixels, agreed: is_agreed(pixels) })
    }

    /// Whether nothing speaks against it.
    fn is_certain(&self) -> bool {
        self.agreed != Some(false)
    }
}

/// The distances that elements have moved, what most of them did first.
fn votes(before: &Standing, now: &Standing, direction: Direction) -> Vec<i64> {
    let mut votes: HashMap<i64, usize> = HashMap::new();
    for (old, new) in before.anchors.iter().zip(&now.anchors) {
        let (Some(old), Some(new)) = (old, new) else { continue };
        let way = match direction {
            Direction::Down => i64::from(old.y) - i64::from(new.y),
            Direction::Up => i64::from(new.y) - i64::from(old.y),
            Direction::Right => i64::from(old.x) - i64::from(new.x),
            Direction::Left => i64::from(new.x) - i64::from(old.x),
        };
        *votes.entry(way).or_default() += 1;
    }
    let mut votes: Vec<(i64, usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(way, votes)| std::cmp::Reverse((*votes, way.abs())));
    votes.into_iter().map(|(way, _)| way).collect()
}

/// What has moved how far, for the answer.
fn told_of(pixels: i64, ways: &[Option<Way>], scroller: usize) -> String {
    let what = if scroller == 0 { "content" } else { "what is around it" };
    let mut told = format!("{what} moved by {pixels} pixels");
    for way in ways.iter().skip(scroller + 1).flatten().filter(|way| way.pixels != 0) {
        told += &format!(", what is around it by {}", way.pixels);
    }
    told
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
