//! `drag`: the real pointer from one place to another with a button held.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::click::raise;
use super::pointing::point_at;
use super::target::{self, Aim, Element, Place, QueryArgument, Reach, Space};
use super::under::{Under, named};
use super::{Spec, Surface, Tool};
use crate::desktop::{
    Button, Delivered, Details, DetailsRequest, Drag, Modifier, Node, Text, Value, Window, WindowId,
    WindowKind,
};
use crate::effect::{
    Delivery, EFFECT_WAIT, Effect, EffectReport, Expectation, Observer, Patience, Route, Target,
};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};
use crate::queue::StepKind;
use crate::sight::Sight;
use crate::tree::{is_text_input, quote};

/// Time that the way takes, if not given: what a person needs.
const DURATION_MS: u64 = 400;
/// Longest way. A slower one is a mistake of units.
const MAX_DURATION_MS: u64 = 20_000;
/// Characters of a text that are read to tell what was selected in it.
const READ_TEXT: usize = 20_000;
/// Elements around the start whose text or value a drag may change.
const HOLDERS: usize = 5;
/// An effect in another window is waited for so many times longer than others: what is dropped goes from one process to
/// another, on request.
const DROP_LOOKS: usize = 3;
/// Around the way, pixels that change are taken for its effect: the height of a line of text.
const MARGIN: i32 = 24;
/// So few changed pixels are a blinking cursor.
const BLINK: usize = 100;

/// One end of a drag: an element, or a point.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    /// Its window, if not that of the call.
    window_id: Option<WindowId>,
    /// Element by number.
    element_index: Option<u32>,
    /// As in click.
    query: Option<QueryArgument>,
    /// Snapshot of the number, if not the newest.
    snapshot_id: Option<String>,
    /// Point, across.
    x: Option<f64>,
    /// Point, down.
    y: Option<f64>,
    /// As in click.
    space: Option<Space>,
    /// As in click.
    picture_id: Option<String>,
}

/// Drags from one place to another.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window of both ends, unless they name their own.
    window_id: Option<WindowId>,
    /// Where the button is pressed: an element or a point. As in click.
    from: End,
    /// Where it is released; as `from`.
    to: End,
    /// Milliseconds that the way takes; 400 if not given.
    #[schemars(range(min = 0, max = 20000))]
    duration_ms: Option<u64>,
    /// Mouse button.
    button: Option<Button>,
    /// Keys held during the drag.
    modifiers: Option<Vec<Modifier>>,
    /// `foreground` or `auto`; a drag needs the pointer.
    delivery: Option<Delivery>,
    /// As in click.
    restore: Option<bool>,
}

impl Arguments {
    fn aim(&self, end: &End) -> Aim {
        Aim {
            window_id: end.window_id.or(self.window_id),
            element_index: end.element_index,
            query: end.query.clone(),
            snapshot_id: end.snapshot_id.clone(),
            x: end.x,
            y: end.y,
            space: end.space,
            picture_id: end.picture_id.clone(),
        }
    }

    fn duration(&self) -> Duration {
        Duration::from_millis(self.duration_ms.unwrap_or(DURATION_MS))
    }
}

/// Says of an error which end it is about.
fn of_end<T>(end: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| Error { message: format!("`{end}`: {}", error.message), ..error })
}

/// What one end names.
enum Aimed {
    Element(Box<Element>),
    Place(Place),
}

impl Aimed {
    async fn find(context: &Context, aim: &Aim) -> Result<Self> {
        if aim.is_element() {
            return Ok(Self::Element(Box::new(target::element(context, aim).await?)));
        }
        target::place(context, aim).await.map(Self::Place)
    }

    fn window(&self) -> Option<&Window> {
        match self {
            Self::Element(element) => Some(&element.window),
            Self::Place(place) => place.window.as_ref(),
        }
    }

    /// Whether it lies in a menu or list that pops up.
    fn in_popup(&self) -> bool {
        match self {
            Self::Element(element) => element.is_in_popup(),
            Self::Place(Place { window, at, .. }) => {
                window.as_ref().is_some_and(|window| !window.frame.contains(*at))
            }
        }
    }

    async fn raise(&self, context: &Context) -> Result<()> {
        match self.window() {
            Some(window) => raise(context, window, self.in_popup()).await,
            None => Ok(()),
        }
    }

    /// The point, which is made sure to be on the screen and uncovered.
    async fn point(&self, context: &Context) -> Result<Point> {
        match self {
            Self::Element(element) => {
                element.require_enabled(context).await?;
                point_at(context, element).await
            }
            Self::Place(Place { window, at, .. }) => {
                if let Some(window) = window {
                    target::require_uncovered(context, window, *at, Reach::Popup).await?;
                }
                Ok(*at)
            }
        }
    }
}

/// One end as it was before the drag.
struct Watched {
    window: Window,
    /// What lies there; `None` if the window has no tree.
    under: Option<Under>,
    observer: Observer,
    sight: Option<Sight>,
}

impl Watched {
    async fn start(context: &Context, aimed: &Aimed, at: Point) -> Result<Option<Self>> {
        let window = match aimed.window() {
            // Where it is by now: raising may have moved it.
            Some(window) => Some(context.window(window.id).await?),
            None => context.desktop().windows.hit_test(at).await?.window,
        };
        let Some(window) = window else { return Ok(None) };
        let under = Under::at(context, &window, at).await;
        let owner = under.as_ref().and_then(|under| under.tree.nodes.first()).map(|node| &node.id.owner);
        let target = Target { owner, element: None, window: Some(&window), wants_focus: false };
        let observer = Observer::start(context, target).await;
        let content = under.as_ref().map(Under::content).unwrap_or_default();
        let observer = observer.of_drag(content);
        let sight = Sight::of(context, window.id).await;
        Ok(Some(Self { window, under, observer, sight }))
    }
}

/// What was dragged, with what is needed to judge it.
struct Dragged {
    from: Option<Watched>,
    /// `None` also if it is the window of `from`.
    to: Option<Watched>,
    held: Option<Held>,
    way: Rect,
    end: Point,
    window: Option<WindowId>,
}

/// Texts and values around the start of a drag.
struct Held {
    under: Under,
    elements: Vec<Node>,
    before: Vec<(Option<Text>, Option<Value>)>,
}

impl Held {
    /// `None` if nothing there has a text or value.
    async fn read(context: &Context, under: &Under) -> Option<Self> {
        let holds = |node: &&Node| node.interfaces.text || node.interfaces.value;
        let elements: Vec<Node> = under.nodes().take(HOLDERS).filter(holds).cloned().collect();
        if elements.is_empty() {
            return None;
        }
        let mut held = Self { under: under.clone(), elements, before: Vec::new() };
        held.before = held.now(context).await;
        Some(held)
    }

    async fn now(&self, context: &Context) -> Vec<(Option<Text>, Option<Value>)> {
        let ids: Vec<_> = self.elements.iter().map(|node| node.id.clone()).collect();
        let request = DetailsRequest { text_limit: READ_TEXT, frames: false, actions: false };
        let details = self.under.details(context, &ids, request).await;
        let parts =
            |details: Option<Details>| details.map_or((None, None), |details| (details.text, details.value));
        details.into_iter().map(parts).collect()
    }

    /// Whether a drag that starts here has to show in it.
    fn shows_drags(&self) -> bool {
        self.elements.iter().any(|node| node.interfaces.value || is_text_input(&node.role))
    }

    /// What of them is another now, in words.
    async fn change(&self, context: &Context) -> Option<(String, String)> {
        let now = self.now(context).await;
        let pairs = self.before.iter().zip(&now);
        for (node, (before, after)) in self.elements.iter().zip(pairs) {
            if let ((Some(before), _), (Some(after), _)) = (before, after)
                && before.selections != after.selections
            {
                let what = named(node);
                return Some((selected(before), format!("{} in {what}", selected(after))));
            }
            if let ((_, Some(before)), (_, Some(after))) = (before, after)
                && before.current != after.current
            {
                return Some((before.current.to_string(), format!("{} of {}", after.current, named(node))));
            }
        }
        None
    }

    async fn wait_for_change(&self, context: &Context) -> Option<(String, String)> {
        let Ok(mut patience) = Patience::start(context, EFFECT_WAIT).await else {
            return self.change(context).await;
        };
        loop {
            if let Some(change) = self.change(context).await {
                return Some(change);
            }
            if !patience.another_look(context).await {
                return self.change(context).await;
            }
        }
    }
}

/// The selection of a text: `selected 4–9 "quick"`.
fn selected(text: &Text) -> String {
    let ranges = text.selections.iter().filter(|(start, end)| end > start);
    let ranges: Vec<String> = ranges
        .map(|&(start, end)| {
            let part: String = text.content.chars().skip(start).take(end - start).collect();
            format!("{start}–{end} {}", quote(&part, 80))
        })
        .collect();
    if ranges.is_empty() { "nothing selected".to_owned() } else { format!("selected {}", ranges.join(", ")) }
}

async fn deliver(arguments: &Arguments, context: &Context) -> Result<Dragged> {
    let from = of_end("from", Aimed::find(context, &arguments.aim(&arguments.from)).await)?;
    let to = of_end("to", Aimed::find(context, &arguments.aim(&arguments.to)).await)?;
    // The start last: pressing there would raise its window over the other anyway.
    if to.window().map(|window| window.id) != from.window().map(|window| window.id) {
        to.raise(context).await?;
    }
    from.raise(context).await?;
    let end = of_end("to", to.point(context).await)?;
    let start = of_end("from", from.point(context).await)?;
    if start == end {
        return Err(Error::argument("to", format!("is where `from` is ({},{})", start.x, start.y)));
    }
    context.desktop().pointer.move_to(start).await?;
    let watched_from = Watched::start(context, &from, start).await?;
    let watched_to = Watched::start(context, &to, end).await?;
    let same = matches!((&watched_from, &watched_to), (Some(a), Some(b)) if a.window.id == b.window.id);
    let held = match watched_from.as_ref().and_then(|watched| watched.under.as_ref()) {
        Some(under) => Held::read(context, under).await,
        None => None,
    };
    let drag = Drag {
        from: start,
        to: end,
        button: arguments.button.unwrap_or_default(),
        modifiers: arguments.modifiers.clone().unwrap_or_default(),
        duration: arguments.duration(),
    };
    let Delivered { done, total } = context.desktop().pointer.drag(&drag, context.stop()).await?;
    if done < total {
        let message = "stopped on its way; the button was released where the drag began";
        let details = serde_json::json!({"delivery": "partial", "done": done, "total": total});
        return Err(Error::new(Code::Cancelled, message).with_details(details));
    }
    let window = watched_to.as_ref().or(watched_from.as_ref()).map(|watched| watched.window.id);
    Ok(Dragged {
        from: watched_from,
        to: if same { None } else { watched_to },
        held,
        way: around(start, end),
        end,
        window,
    })
}

/// The rectangle around a way.
fn around(start: Point, end: Point) -> Rect {
    let corner = |point: Point| Rect::new(point.x - MARGIN, point.y - MARGIN, 0, 0);
    let opposite = |point: Point| Rect::new(point.x + MARGIN, point.y + MARGIN, 0, 0);
    corner(start).union(&opposite(start)).union(&corner(end)).union(&opposite(end))
}

async fn judge(context: &Context, mut dragged: Dragged) -> Result<EffectReport> {
    let report =
        |effect| EffectReport::new(effect, Route::Pointer).in_window(dragged.window).at(Some(dragged.end));
    let snapshot = |window: &Window| context.session().newest_snapshot(window.id).ok();
    let confirmed = |evidence: String| Ok(report(Effect::Confirmed).to(evidence));
    // Where something was dropped comes first: an effect at the start alone may be that of the press.
    if let Some(to) = &mut dragged.to {
        let snapshot = snapshot(&to.window);
        for _ in 0..DROP_LOOKS {
            let evidence = to.observer.evidence(context, snapshot.as_deref(), Expectation::Certain).await;
            if let Some(evidence) = evidence {
                return confirmed(format!("in window {}: {evidence}", to.window.id));
            }
        }
    }
    if let Some(held) = &dragged.held
        && let Some((before, after)) = held.wait_for_change(context).await
    {
        return Ok(report(Effect::Confirmed).from(before).to(after));
    }
    if let Some(from) = &mut dragged.from {
        if let Some(moved) = moved(context, &from.window).await? {
            return Ok(report(Effect::Confirmed).from(moved.0).to(moved.1));
        }
        let snapshot = snapshot(&from.window);
        let evidence = from.observer.evidence(context, snapshot.as_deref(), Expectation::Possible).await;
        if let Some(evidence) = evidence.filter(|_| dragged.to.is_none()) {
            return confirmed(evidence);
        }
    }
    for watched in dragged.to.iter().chain(dragged.from.as_ref().filter(|_| dragged.to.is_none())) {
        if let Some(under) = &watched.under
            && under.is_rearranged(context).await
        {
            return confirmed(format!(
                "elements of window {} are others, or in other places",
                watched.window.id
            ));
        }
    }
    judge_by_sight(context, &dragged, report(Effect::Unverifiable)).await
}

/// Whether the window itself was dragged, or its edge.
async fn moved(context: &Context, before: &Window) -> Result<Option<(String, String)>> {
    let windows = context.desktop().windows.list().await?;
    let now = windows.iter().find(|window| window.id == before.id);
    let now = now.filter(|window| window.kind != WindowKind::Popup && window.frame != before.frame);
    Ok(now.map(|now| (before.frame.to_string(), format!("window {} is {}", now.id, now.frame))))
}

/// Compares pictures: they are the only evidence of a window without a tree, and tell where nothing happened at all.
async fn judge_by_sight(context: &Context, dragged: &Dragged, report: EffectReport) -> Result<EffectReport> {
    let mut unchanged = true;
    for watched in dragged.from.iter().chain(&dragged.to) {
        let Some(before) = &watched.sight else {
            unchanged = false;
            continue;
        };
        let Some(now) = Sight::of(context, watched.window.id).await else {
            unchanged = false;
            continue;
        };
        let on_the_way = before.changed(&now, &dragged.way).unwrap_or(usize::MAX);
        if on_the_way > BLINK && on_the_way != usize::MAX && watched.under.is_none() {
            let evidence =
                format!("{on_the_way} pixels of window {} changed along the way", watched.window.id);
            return Ok(EffectReport { effect: Effect::Confirmed, ..report }.to(evidence));
        }
        unchanged &= before.changed(&now, &watched.window.frame).is_some_and(|pixels| pixels <= BLINK);
    }
    // What was dropped may have done something that shows nowhere; a text or a slider shows what a drag did to it.
    let shows = dragged.held.as_ref().is_some_and(Held::shows_drags);
    if unchanged && shows && dragged.to.is_none() {
        let hint =
            "nothing changed, on the screen neither; start on what can be dragged, or take longer on the way";
        return Ok(EffectReport { effect: Effect::SuspectedNoop, ..report }.hint(hint));
    }
    Ok(report.hint("no change was told; look at the windows before going on"))
}

pub(super) struct DragTool;

impl Tool for DragTool {
    const SPEC: Spec = Spec {
        name: "drag",
        description: "Drag with the real pointer from an element or point to another, also in another window: drag and drop, \
                      selecting text, sliders, moving windows. Both ends must be uncovered. Answers what changed, with the \
                      range of a selected text.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "from": {"element_index": 12}, "to": {"x": 40, "y": 200}}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        crate::settings::within("duration_ms", arguments.duration_ms, &(0..=MAX_DURATION_MS))?;
        for (name, end) in [("from", &arguments.from), ("to", &arguments.to)] {
            of_end(name, arguments.aim(end).check())?;
        }
        if arguments.delivery == Some(Delivery::Background) {
            let message = "a drag needs the pointer; nothing was done; use set_value for sliders, select_text for text, or \
                           delivery \"foreground\"";
            return Err(Error::new(Code::NotSupported, message));
        }
        Ok(())
    }

    fn takes(arguments: &Arguments) -> Duration {
        arguments.duration()
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        let restore = arguments.restore.unwrap_or(false);
        context.operate(restore, deliver(&arguments, &context), |dragged| judge(&context, dragged)).await
    }
}
