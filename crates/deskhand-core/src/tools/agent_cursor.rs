//! `set_agent_cursor_enabled`, `set_agent_cursor_style`, `set_agent_cursor_motion` and `get_agent_cursor_state`: what people
//! see of the calling session.

use std::ops::RangeInclusive;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool, config};
use crate::agent_cursor::{Look, MAX_LABEL};
use crate::desktop::Colour;
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::settings::{Overrides, within};
use crate::tree::quote;

/// A smaller arrow is not seen, a larger one hides what is worked on.
const SIZE: RangeInclusive<u32> = 12..=96;
/// Slower than this it would lag behind the agent.
const GLIDE_MS: RangeInclusive<u64> = 0..=2000;
/// A longer stay would be that of an agent that has gone.
const LINGER_MS: RangeInclusive<u64> = 100..=60_000;

/// The session's cursor.
#[derive(Clone, Debug, Serialize)]
pub(super) struct CursorState {
    enabled: bool,
    /// On the screen now.
    shown: bool,
    label: String,
    color: String,
    size: u32,
    glide_duration_ms: u64,
    idle_hide_ms: u64,
}

impl CursorState {
    fn of(context: &Context) -> Self {
        let (cursors, session) = (context.cursors(), context.session());
        let cursor = cursors.of(session);
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            enabled: config::effective(context).agent_cursor,
            shown: cursors.is_shown(session),
            label: cursor.label,
            color: cursor.colour.to_string(),
            size: cursor.size,
            glide_duration_ms: millis(cursor.glide),
            idle_hide_ms: millis(cursor.linger),
        }
    }
}

impl Reply for CursorState {
    fn text(&self) -> String {
        let Self { label, color, size, glide_duration_ms, idle_hide_ms, .. } = self;
        format!(
            "agent cursor {}, {}: {} {color}, {size} px, glides for {glide_duration_ms} ms, hides after {idle_hide_ms} ms",
            if self.enabled { "on" } else { "off" },
            if self.shown { "shown" } else { "hidden" },
            quote(label, MAX_LABEL),
        )
    }
}

/// Changes the look of the session's cursor.
fn restyle(context: &Context, change: impl FnOnce(&mut Look)) -> Result<CursorState> {
    let session = context.session();
    if session.anonymous {
        let message = "this call belongs to no session, so it has no cursor to style; name a session";
        return Err(Error::new(Code::NotSupported, message));
    }
    session.change_cursor_look(change);
    Ok(CursorState::of(context))
}

/// Shows or hides.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct EnabledArguments {
    /// Whether people see a cursor where this session acts.
    enabled: bool,
}

pub(super) struct SetEnabled;

impl Tool for SetEnabled {
    const SPEC: Spec = Spec {
        name: "set_agent_cursor_enabled",
        description: "Show people a labelled cursor where this session acts, or none: the setting `agent_cursor`. It is in no \
                      picture that you are given and takes no clicks.",
        surface: Surface::Control,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"enabled": true}"#,
    };
    type Arguments = EnabledArguments;
    type Reply = CursorState;

    async fn run(arguments: EnabledArguments, context: Context) -> Result<CursorState> {
        let set = Overrides { agent_cursor: Some(arguments.enabled), ..Overrides::default() };
        config::change(&context, &set, &[])?;
        Ok(CursorState::of(&context))
    }
}

/// What it looks like; what is not given stays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StyleArguments {
    /// "#RRGGBB".
    color: Option<String>,
    /// What stands beside it; "" for the session's own name.
    label: Option<String>,
    /// Height of the arrow in logical pixels.
    #[schemars(range(min = 12, max = 96))]
    size: Option<u32>,
}

impl StyleArguments {
    fn colour(&self) -> Result<Option<Colour>> {
        let colour = self.color.as_deref().map(str::parse).transpose();
        colour.map_err(|why| Error::argument("color", why))
    }
}

pub(super) struct SetStyle;

impl Tool for SetStyle {
    const SPEC: Spec = Spec {
        name: "set_agent_cursor_style",
        description: "What this session's agent cursor looks like, from its next act on.",
        surface: Surface::Control,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: r##"{"color": "#0b6bd3", "label": "tester"}"##,
    };
    type Arguments = StyleArguments;
    type Reply = CursorState;

    fn check(arguments: &StyleArguments) -> Result<()> {
        arguments.colour()?;
        within("size", arguments.size, &SIZE)
    }

    async fn run(arguments: StyleArguments, context: Context) -> Result<CursorState> {
        let colour = arguments.colour()?;
        restyle(&context, |look| {
            look.colour = colour.or(look.colour);
            look.size = arguments.size.or(look.size);
            if let Some(label) = arguments.label {
                look.label = (!label.trim().is_empty()).then_some(label);
            }
        })
    }
}

/// How it moves; what is not given stays.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MotionArguments {
    /// Longest time to glide to another point; 0: it jumps.
    #[schemars(range(min = 0, max = 2000))]
    glide_duration_ms: Option<u64>,
    /// How long it stays after the last act.
    #[schemars(range(min = 100, max = 60000))]
    idle_hide_ms: Option<u64>,
}

pub(super) struct SetMotion;

impl Tool for SetMotion {
    const SPEC: Spec = Spec {
        name: "set_agent_cursor_motion",
        description: "How this session's agent cursor moves, from its next act on. No answer waits for it.",
        surface: Surface::Control,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"glide_duration_ms": 150}"#,
    };
    type Arguments = MotionArguments;
    type Reply = CursorState;

    fn check(arguments: &MotionArguments) -> Result<()> {
        within("glide_duration_ms", arguments.glide_duration_ms, &GLIDE_MS)?;
        within("idle_hide_ms", arguments.idle_hide_ms, &LINGER_MS)
    }

    async fn run(arguments: MotionArguments, context: Context) -> Result<CursorState> {
        restyle(&context, |look| {
            look.glide = arguments.glide_duration_ms.map(Duration::from_millis).or(look.glide);
            look.linger = arguments.idle_hide_ms.map(Duration::from_millis).or(look.linger);
        })
    }
}

pub(super) struct GetState;

impl Tool for GetState {
    const SPEC: Spec = Spec {
        name: "get_agent_cursor_state",
        description: "This session's agent cursor: whether it is on, whether people see it now, and how it looks and moves.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = CursorState;

    async fn run(_: Nothing, context: Context) -> Result<CursorState> {
        Ok(CursorState::of(&context))
    }
}
