//! `bring_to_front` and `set_window_frame`: windows as a whole.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::click::focus_window;
use super::windows::line;
use super::{Reply, Spec, Surface, Tool};
use crate::desktop::{FrameChange, PortError, Window, WindowId, WindowKind, WindowState};
use crate::effect::Effect;
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::queue::StepKind;

/// Window managers and applications take so long at most to begin with a window: on a busy machine they are not asked to
/// hurry. Only a refusal takes all of it.
const BEGIN_BOUND: Duration = Duration::from_secs(2);
/// Time for all that follows; some let windows fly.
const ARRANGE_BOUND: Duration = Duration::from_millis(800);
/// A window manager tells a window's state, its size and its place one after the other: the last of them was told when
/// nothing has changed for so long.
const TOLD: Duration = Duration::from_millis(40);
/// A window that has begun to change counts as placed when nothing has moved for so long.
const STILL: Duration = Duration::from_millis(250);
/// Longest side of a window, in pixels: the display server takes no longer one.
const MAX_SIDE: u32 = 32_767;
/// Furthest place of a window: beyond, the display server's numbers end.
const MAX_PLACE: i32 = 32_767;
/// What is said of a desktop that nobody manages.
const NO_MANAGER: &str = "there is no window manager; the display server was told itself";

/// A window after it was arranged.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Arranged {
    effect: Effect,
    window: Window,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Reply for Arranged {
    fn text(&self) -> String {
        let effect = serde_json::to_value(self.effect).unwrap_or_default();
        let mut text = format!("{}: {}", effect.as_str().unwrap_or_default(), line(&self.window));
        if let Some(hint) = &self.hint {
            text += &format!("; {hint}");
        }
        text
    }
}

/// Hints in one sentence.
fn joined(hints: Vec<String>) -> Option<String> {
    (!hints.is_empty()).then(|| hints.join("; "))
}

/// Brings a window to the front.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FrontArguments {
    /// Window, from list_windows.
    window_id: WindowId,
}

pub(super) struct BringToFront;

impl Tool for BringToFront {
    const SPEC: Spec = Spec {
        name: "bring_to_front",
        description: "Raise a window and give it the keyboard focus; a minimised one is shown. Clicks and keys do this \
                      themselves where they need it.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"window_id": 4194310}"#,
    };
    type Arguments = FrontArguments;
    type Reply = Arranged;

    async fn run(arguments: FrontArguments, context: Context) -> Result<Arranged> {
        context
            .act(async {
                let windows = &context.desktop().windows;
                let window = context.window(arguments.window_id).await?;
                focus_window(&context, &window).await?;
                let list = windows.list().await?;
                let now = find(&list, window.id)?;
                let cover = list.iter().find(|other| {
                    other.z > now.z
                        && !other.minimized
                        && other.parent != Some(now.id)
                        && other.frame.intersection(&now.frame).is_some()
                });
                let mut hints = Vec::new();
                if windows.manager().await?.is_none() {
                    hints.push(NO_MANAGER.to_owned());
                }
                if let Some(cover) = cover {
                    hints.push(format!("window {} still lies over a part of it", cover.id));
                }
                if !now.focused {
                    hints.push("it takes no keyboard focus".to_owned());
                }
                let effect = match (now.focused, cover.is_some()) {
                    // Of a window that takes no focus nothing more is wanted.
                    (_, false) => Effect::Confirmed,
                    (false, true) => Effect::SuspectedNoop,
                    _ => Effect::Unverifiable,
                };
                Ok(Arranged { effect, window: now.clone(), hint: joined(hints) })
            })
            .await
    }
}

fn find(list: &[Window], id: WindowId) -> Result<&Window> {
    list.iter().find(|window| window.id == id).ok_or_else(|| PortError::WindowGone(id).into())
}

/// Places a window.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct FrameArguments {
    /// Window, from list_windows.
    window_id: WindowId,
    /// Left edge of its visible frame, in screen pixels; what is not given stays.
    x: Option<i32>,
    /// Top edge.
    y: Option<i32>,
    /// Width of the frame, decorations included.
    #[schemars(range(min = 1, max = 32767))]
    width: Option<u32>,
    /// Height of the frame.
    #[schemars(range(min = 1, max = 32767))]
    height: Option<u32>,
    /// A frame goes with `normal` alone.
    state: Option<WindowState>,
}

impl FrameArguments {
    const fn change(&self) -> FrameChange {
        let Self { x, y, width, height, .. } = self;
        FrameChange { x: *x, y: *y, width: *width, height: *height }
    }

    fn has_frame(&self) -> bool {
        self.change() != FrameChange::default()
    }
}

/// What the window is to be, as far as it was asked for.
#[derive(Clone, Copy)]
struct Wanted {
    change: FrameChange,
    state: Option<WindowState>,
}

impl Wanted {
    fn has_state(&self, window: &Window) -> bool {
        self.state.is_none_or(|state| state == window.state())
    }

    fn is_met(&self, window: &Window) -> bool {
        self.has_state(window) && self.change.of(window.frame) == window.frame
    }

    /// Whether the frame of `window`, which was `before`, has followed its state. Window managers tell the state first.
    fn has_followed(&self, before: &Window, window: &Window) -> bool {
        let large = |window: &Window| (window.maximized, window.fullscreen);
        window.minimized || large(window) == large(before) || window.frame != before.frame
    }
}

/// Waits until the window is as wanted, or stands still as something else.
async fn settle(context: &Context, before: &Window, wanted: Wanted) -> Result<Window> {
    let windows = &context.desktop().windows;
    let mut changes = windows.changes().await?;
    let begin = Instant::now();
    let mut last = before.clone();
    let mut moved = None;
    loop {
        changes.mark_unchanged();
        let window = find(&windows.list().await?, before.id)?.clone();
        let is_met = wanted.is_met(&window) && wanted.has_followed(before, &window);
        if is_met && (before.state() == window.state() || window.minimized) {
            return Ok(window);
        }
        if window.frame != last.frame || window.state() != last.state() {
            let now = Instant::now();
            moved = Some((moved.map_or(now, |(first, _)| first), now));
        }
        let patience = match moved {
            Some((_, latest)) if is_met => latest + TOLD,
            Some((first, latest)) => (latest + STILL).min(first + ARRANGE_BOUND),
            None => begin + BEGIN_BOUND,
        };
        last = window;
        let changed = tokio::select! {
            changed = tokio::time::timeout_at(patience, changes.changed()) => changed,
            () = context.stop().cancelled() => return Err(context.stopped()),
        };
        match changed {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Err(PortError::DesktopLost.into()),
            Err(_) => return Ok(last),
        }
    }
}

async fn arrange(arguments: &FrameArguments, context: &Context) -> Result<Arranged> {
    let windows = &context.desktop().windows;
    let id = arguments.window_id;
    let before = context.window(id).await?;
    if before.kind == WindowKind::Popup {
        let message = format!("window {id} is a popup, which its application places itself");
        return Err(PortError::NotSupported(message).into());
    }
    let mut hints = Vec::new();
    if windows.manager().await?.is_none() {
        hints.push(NO_MANAGER.to_owned());
    }
    let mut now = before.clone();
    if let Some(state) = arguments.state {
        windows.set_state(id, state).await?;
        now = settle(context, &before, Wanted { change: FrameChange::default(), state: Some(state) }).await?;
    }
    let wanted = Wanted { change: arguments.change(), state: arguments.state };
    if arguments.has_frame() {
        windows.set_frame(id, wanted.change).await?;
        now = settle(context, &now, wanted).await?;
        // What window managers make of a place differs by borders: the second time it is known by how much.
        let FrameChange { x, y, .. } = wanted.change;
        if x.is_some_and(|x| x != now.frame.x) || y.is_some_and(|y| y != now.frame.y) {
            let again = FrameChange {
                x: x.map(|x| x.saturating_mul(2).saturating_sub(now.frame.x)),
                y: y.map(|y| y.saturating_mul(2).saturating_sub(now.frame.y)),
                ..FrameChange::default()
            };
            windows.set_frame(id, again).await?;
            now = settle(context, &now, wanted).await?;
        }
    }
    let asked = wanted.change.of(now.frame);
    if asked != now.frame {
        let changed = now.frame != before.frame;
        hints.push(match now.state() {
            WindowState::Normal if changed => {
                format!("asked for {asked}; the window manager or the application made it {}", now.frame)
            }
            WindowState::Normal => {
                format!("asked for {asked}; the window manager or the application refused")
            }
            state => {
                format!("asked for {asked}; it is {state:?} and keeps its frame: set `state` normal as well")
                    .to_lowercase()
            }
        });
    }
    if !wanted.has_state(&now) {
        hints.push("the window manager or the application refused that state".to_owned());
    }
    let is_as_before = now.frame == before.frame && now.state() == before.state();
    let effect = if wanted.is_met(&now) {
        Effect::Confirmed
    } else if is_as_before {
        Effect::SuspectedNoop
    } else {
        Effect::Unverifiable
    };
    Ok(Arranged { effect, window: now, hint: joined(hints) })
}

pub(super) struct SetWindowFrame;

impl Tool for SetWindowFrame {
    const SPEC: Spec = Spec {
        name: "set_window_frame",
        description: "Move, resize, minimise, maximise or restore a window. Answers the frame and state that it has then.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"window_id": 4194310, "x": 0, "y": 0, "width": 800, "height": 600}"#,
    };
    type Arguments = FrameArguments;
    type Reply = Arranged;

    fn check(arguments: &FrameArguments) -> Result<()> {
        crate::settings::within("width", arguments.width, &(1..=MAX_SIDE))?;
        crate::settings::within("height", arguments.height, &(1..=MAX_SIDE))?;
        for (name, place) in [("x", arguments.x), ("y", arguments.y)] {
            if place.is_some_and(|place| !(-MAX_PLACE..=MAX_PLACE).contains(&place)) {
                return Err(Error::argument(name, format!("expected -{MAX_PLACE} to {MAX_PLACE}")));
            }
        }
        match arguments.state {
            None if !arguments.has_frame() => {
                Err(Error::argument("state", "missing; expected a `state` or some of x, y, width, height"))
            }
            Some(state) if state != WindowState::Normal && arguments.has_frame() => {
                Err(Error::argument("state", "a frame goes with `normal` alone"))
            }
            _ => Ok(()),
        }
    }

    async fn run(arguments: FrameArguments, context: Context) -> Result<Arranged> {
        context.act(arrange(&arguments, &context)).await
    }
}
