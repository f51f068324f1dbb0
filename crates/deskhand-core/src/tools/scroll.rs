//! `scroll`: by the scroll bar or the toolkit where they do it, else with the wheel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::click::raise;
use super::gauge::{Gauge, Mark, Moved};
use super::pointing::point_at;
use super::target::{self, Aim, Element, QueryArgument, Reach, Space};
use super::under::Under;
use super::{Spec, Surface, Tool};
use crate::desktop::{Direction, Modifier, PortError, Value, Wheel, Window, WindowId};
use crate::effect::{Delivery, Effect, EffectReport, Route};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Point;
use crate::queue::StepKind;

/// Lines or pages, if not given.
const DEFAULT_AMOUNT: u32 = 3;
/// Largest amount: a page of a hundred thousand pixels.
const MAX_AMOUNT: u32 = 100_000;
/// Most notches of the wheel in one call: half a minute of turning.
const MAX_NOTCHES: u32 = 1000;
/// What a notch of the wheel moves where that could not be measured: three lines of text.
const NOTCH_PIXELS: f64 = 54.0;
/// No program moves less: what was measured is the begin of a glide.
const LEAST_NOTCH_PIXELS: f64 = 15.0;
/// Of a page this part is scrolled, so that the last lines are still seen.
const PAGE_SHARE: f64 = 0.9;
/// A scroll bar is first moved by this part of its range, to measure what its numbers mean.
const PROBE_SHARE: f64 = 0.002;

/// Unit of the amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum By {
    /// A notch of the wheel, about three lines of text.
    #[default]
    Line,
    /// What is seen at a time.
    Page,
    /// A pixel, as near as the route allows.
    Pixel,
}

/// Scrolls.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window; without element and point, its middle is scrolled.
    window_id: Option<WindowId>,
    /// Element to scroll at. As in click.
    element_index: Option<u32>,
    /// As in click.
    query: Option<QueryArgument>,
    /// As in click.
    snapshot_id: Option<String>,
    /// Point, instead of an element.
    x: Option<f64>,
    /// As in click.
    y: Option<f64>,
    /// As in click.
    space: Option<Space>,
    /// As in click.
    picture_id: Option<String>,
    /// What comes into view.
    direction: Direction,
    /// How much; 3 if not given (1 page).
    #[schemars(range(min = 1, max = 100_000))]
    amount: Option<u32>,
    /// Unit: `line` (a notch of the wheel, about three lines; default), `page`, or `pixel`.
    by: Option<By>,
    /// Keys held meanwhile.
    modifiers: Option<Vec<Modifier>>,
    /// `background` by accessibility; `foreground` by the wheel; `auto` takes the first that works.
    delivery: Option<Delivery>,
    /// As in click.
    restore: Option<bool>,
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

    fn is_whole_window(&self) -> bool {
        !self.aim().is_element() && self.x.is_none() && self.y.is_none()
    }

    fn amount(&self) -> u32 {
        self.amount.unwrap_or(if self.by == Some(By::Page) { 1 } else { DEFAULT_AMOUNT })
    }

    fn needs_pointer(&self) -> bool {
        self.modifiers.as_ref().is_some_and(|modifiers| !modifiers.is_empty())
    }

    /// How far, in pixels of the content, of which `page` are seen.
    fn pixels(&self, page: u32) -> f64 {
        let amount = f64::from(self.amount());
        match self.by.unwrap_or_default() {
            By::Line => amount * NOTCH_PIXELS,
            By::Page => amount * PAGE_SHARE * f64::from(page),
            By::Pixel => amount,
        }
    }

    fn is_forwards(&self) -> bool {
        matches!(self.direction, Direction::Down | Direction::Right)
    }
}

/// What is scrolled.
struct Aimed {
    window: Window,
    element: Option<Element>,
    at: Point,
}

async fn aim(context: &Context, arguments: &Arguments) -> Result<Aimed> {
    let aim = arguments.aim();
    if aim.is_element() {
        let element = target::element(context, &aim).await?;
        let frame = element.details(context, 0, false).await?.frame;
        let at = frame.unwrap_or(element.window.frame).center();
        return Ok(Aimed { window: element.window.clone(), element: Some(element), at });
    }
    let (window, at) = if arguments.is_whole_window() {
        let id = arguments.window_id.ok_or_else(|| Error::argument("window_id", "missing"))?;
        let window = context.window(id).await?;
        let at = window.frame.center();
        (Some(window), at)
    } else {
        let target::Place { window, at, .. } = target::place(context, &aim).await?;
        (window, at)
    };
    let window = match window {
        Some(window) => window,
        None => {
            let hit = context.desktop().windows.hit_test(at).await?;
            hit.window.ok_or_else(|| Error::argument("x", "there is no window at that point"))?
        }
    };
    Ok(Aimed { window, element: None, at })
}

/// What was done, to be told.
struct Scrolled {
    route: Route,
    window: WindowId,
    point: Option<Point>,
    moved: Option<Moved>,
    bar: Option<Value>,
    forwards: bool,
}

async fn deliver(context: &Context, arguments: &Arguments) -> Result<Scrolled> {
    let aimed = aim(context, arguments).await?;
    let under = match &aimed.element {
        Some(element) => Under::element(context, element).await,
        None => Under::at(context, &aimed.window, aimed.at).await,
    };
    let delivery = arguments.delivery.unwrap_or_default();
    let gauge = Gauge::new(context, &aimed.window, under, aimed.at, arguments.direction).await;
    if delivery != Delivery::Foreground
        && !arguments.needs_pointer()
        && let Some(scrolled) = in_background(context, arguments, &aimed, &gauge).await?
    {
        return Ok(scrolled);
    }
    if delivery == Delivery::Background {
        let message =
            "this cannot be scrolled through accessibility; nothing was done; use delivery \"foreground\"";
        return Err(Error::new(Code::NotSupported, message));
    }
    with_wheel(context, arguments, aimed, gauge).await
}

/// Scrolls through accessibility. `None`: nothing there does it.
async fn in_background(
    context: &Context,
    arguments: &Arguments,
    aimed: &Aimed,
    gauge: &Gauge,
) -> Result<Option<Scrolled>> {
    let before = gauge.mark(context, false).await;
    let scrolled = |route, moved, bar| Scrolled {
        route,
        window: aimed.window.id,
        point: None,
        moved,
        bar,
        forwards: arguments.is_forwards(),
    };
    if let (Some(bar), Some(value)) = (&gauge.bar, before.bar) {
        if !gauge.obeys() {
            return Ok(None);
        }
        if is_at_end(value, arguments.is_forwards()) {
            return Ok(Some(scrolled(Route::AxValue, None, Some(value))));
        }
        return Ok(match by_bar(context, arguments, gauge, &before, (bar, value)).await? {
            Some((now, moved)) => Some(scrolled(Route::AxValue, Some(moved), now.bar)),
            None => None,
        });
    }
    let handle = gauge.handle(context, &before, arguments.is_whole_window()).await;
    let Some((anchor, frame)) = handle else { return Ok(None) };
    let way = arguments.pixels(gauge.whole_page(&before)).round() as i32;
    let to = match arguments.direction {
        Direction::Down => Point::new(frame.x, frame.y.saturating_sub(way)),
        Direction::Up => Point::new(frame.x, frame.y.saturating_add(way)),
        Direction::Right => Point::new(frame.x.saturating_sub(way), frame.y),
        Direction::Left => Point::new(frame.x.saturating_add(way), frame.y),
    };
    match context.desktop().accessibility.scroll_to_point(&anchor, to).await {
        Ok(true) => {}
        Ok(false) | Err(PortError::NotSupported(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let (_, moved) = gauge.settle(context, &before).await;
    // Where nothing moves, the wheel may still do it, if it is allowed.
    let is_last = arguments.delivery == Some(Delivery::Background);
    Ok((is_last || moved.is_some()).then(|| scrolled(Route::AxScroll, moved, None)))
}

fn is_at_end(value: Value, forwards: bool) -> bool {
    if forwards { value.current >= value.maximum } else { value.current <= value.minimum }
}

/// Sets a scroll bar's value. `None`: it did not take it.
async fn by_bar(
    context: &Context,
    arguments: &Arguments,
    gauge: &Gauge,
    before: &Mark,
    (bar, value): (&crate::desktop::ElementId, Value),
) -> Result<Option<(Mark, Moved)>> {
    let sign = if arguments.is_forwards() { 1.0 } else { -1.0 };
    let set = async |way: f64| -> Result<Option<(Mark, Moved)>> {
        let wanted = (value.current + sign * way).clamp(value.minimum, value.maximum);
        match context.desktop().accessibility.set_number(bar, wanted).await {
            Ok(_) | Err(PortError::NotSupported(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let (now, moved) = gauge.settle(context, before).await;
        Ok(moved.map(|moved| (now, moved)))
    };
    // Some count pixels, some rows.
    let probe = ((value.maximum - value.minimum) * PROBE_SHARE).ceil().max(1.0);
    let Some((_, probed)) = set(probe).await? else { return Ok(None) };
    let unit = probed.pixels.filter(|&pixels| pixels > 0).map_or(1.0, |pixels| probe / pixels as f64);
    let way = (arguments.pixels(gauge.page(before, None)) * unit).round().max(1.0);
    set(way).await
}

/// Turns the wheel over it.
async fn with_wheel(
    context: &Context,
    arguments: &Arguments,
    aimed: Aimed,
    gauge: Gauge,
) -> Result<Scrolled> {
    let Aimed { window, element, at } = aimed;
    let in_popup = element.as_ref().is_some_and(Element::is_in_popup) || !window.frame.contains(at);
    raise(context, &window, in_popup).await?;
    let at = match &element {
        Some(element) => point_at(context, element).await?,
        None => {
            target::require_uncovered(context, &window, at, Reach::Popup).await?;
            context.desktop().pointer.move_to(at).await?;
            at
        }
    };
    let before = gauge.mark(context, true).await;
    let turn = async |notches: u32| -> Result<()> {
        let modifiers = arguments.modifiers.clone().unwrap_or_default();
        let apart = gauge.is_in_page();
        let wheel = Wheel { at, direction: arguments.direction, notches, modifiers, apart };
        let delivered = context.desktop().pointer.turn_wheel(&wheel, context.stop()).await?;
        context.delivered(delivered, "notches")
    };
    let by_line = arguments.by.unwrap_or_default() == By::Line;
    let first = if by_line { arguments.amount().min(MAX_NOTCHES) } else { 1 };
    turn(first).await?;
    let (mut now, mut moved) = gauge.settle(context, &before).await;
    if !by_line && let Some(first) = &moved {
        // What a notch moves is up to the program: the first one tells.
        let measured = first.pixels.filter(|&pixels| pixels > 0);
        let notch = measured.map_or(NOTCH_PIXELS, |pixels| (pixels as f64).max(LEAST_NOTCH_PIXELS));
        let wanted = (arguments.pixels(gauge.page(&before, moved.as_ref())) / notch).round() as u32;
        // What a box has no more content for, a browser would turn its page by.
        let left = gauge.left(&now, first).map_or(MAX_NOTCHES, |left| (left as f64 / notch).ceil() as u32);
        let more = wanted.saturating_sub(1).min(left).min(MAX_NOTCHES);
        if more > 0 {
            turn(more).await?;
            (now, moved) = gauge.settle(context, &before).await;
        }
    }
    Ok(Scrolled {
        route: Route::Pointer,
        window: window.id,
        point: Some(at),
        moved,
        bar: now.bar,
        forwards: arguments.is_forwards(),
    })
}

fn judge(scrolled: Scrolled) -> EffectReport {
    let Scrolled { route, window, point, moved, bar, forwards } = scrolled;
    let report = |effect| EffectReport::new(effect, route).in_window(Some(window)).at(point);
    match moved {
        Some(Moved { before, after, pixels: Some(pixels), .. }) if pixels < 0 => {
            let report = EffectReport { before, ..report(Effect::Unverifiable).to(after) };
            report.hint("it moved the other way; look at the window")
        }
        Some(Moved { before, after, certain, .. }) => {
            let effect = if certain { Effect::Confirmed } else { Effect::Unverifiable };
            let report = EffectReport { before, ..report(effect).to(after) };
            if certain {
                report
            } else {
                report.hint("whether it was scrolled cannot be told; look at the window")
            }
        }
        None => {
            let Some(value) = bar.filter(|value| is_at_end(*value, forwards)) else {
                // A browser on a busy machine may show it later than anybody waits.
                let hint = "nothing moved so far: it is at its end that way, does not scroll, or is slow";
                return report(Effect::Unverifiable).hint(hint);
            };
            let end = if forwards { "end" } else { "beginning" };
            let (current, maximum) = (value.current, value.maximum);
            let place = format!("it is at its {end} already (scroll bar at {current} of {maximum})");
            report(Effect::SuspectedNoop).hint(place)
        }
    }
}

pub(super) struct Scroll;

impl Tool for Scroll {
    const SPEC: Spec = Spec {
        name: "scroll",
        description: "Scroll at an element, at a point, or in the middle of a window. Answers how far it moved, and says when \
                      it is at the end.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "direction": "down", "amount": 1, "by": "page"}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        crate::settings::within("amount", arguments.amount, &(1..=MAX_AMOUNT))?;
        if arguments.delivery == Some(Delivery::Background) && arguments.needs_pointer() {
            return Err(Error::new(
                Code::NotSupported,
                "`modifiers` need the wheel; use delivery \"foreground\"",
            ));
        }
        if !arguments.is_whole_window() {
            return arguments.aim().check();
        }
        if arguments.window_id.is_none() {
            return Err(Error::argument("window_id", "missing; expected a window, an element or a point"));
        }
        Ok(())
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        let restore = arguments.restore.unwrap_or(false);
        let judged = |scrolled| std::future::ready(Ok(judge(scrolled)));
        context.operate(restore, deliver(&context, &arguments), judged).await
    }
}
