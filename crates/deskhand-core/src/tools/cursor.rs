//! `get_cursor_position` and `move_cursor`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::target::{self, Aim, Space};
use super::{Reply, Spec, Surface, Tool};
use crate::desktop::{Act, WindowId};
use crate::effect::{Effect, EffectReport, Route};
use crate::engine::Context;
use crate::error::Result;
use crate::geometry::Point;
use crate::queue::StepKind;

/// No arguments.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

/// Where the pointer is.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Position {
    x: i32,
    y: i32,
    space: Space,
}

impl Reply for Position {
    fn text(&self) -> String {
        format!("pointer at {},{} (screen pixels)", self.x, self.y)
    }
}

pub(super) struct GetCursorPosition;

impl Tool for GetCursorPosition {
    const SPEC: Spec = Spec {
        name: "get_cursor_position",
        description: "Where the mouse pointer is, in screen pixels.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = Position;

    async fn run(_: Nothing, context: Context) -> Result<Position> {
        let Point { x, y } = context.read(async { Ok(context.desktop().pointer.position().await?) }).await?;
        Ok(Position { x, y, space: Space::Screen })
    }
}

/// Moves the pointer.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveArguments {
    /// Where to, across.
    x: f64,
    /// Where to, down.
    y: f64,
    /// Space of the point; `window` with a window_id, else `screen`.
    space: Option<Space>,
    /// Picture that the point was read off, if not the newest.
    picture_id: Option<String>,
    /// Window that the point is relative to.
    window_id: Option<WindowId>,
}

impl MoveArguments {
    fn aim(&self) -> Aim {
        Aim {
            window_id: self.window_id,
            x: Some(self.x),
            y: Some(self.y),
            space: self.space,
            picture_id: self.picture_id.clone(),
            ..Aim::default()
        }
    }
}

pub(super) struct MoveCursor;

impl Tool for MoveCursor {
    const SPEC: Spec = Spec {
        name: "move_cursor",
        description: "Move the real mouse pointer to a point, to hover over it. Presses nothing.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"x": 400, "y": 300}"#,
    };
    type Arguments = MoveArguments;
    type Reply = EffectReport;

    fn check(arguments: &MoveArguments) -> Result<()> {
        arguments.aim().check()
    }

    async fn run(arguments: MoveArguments, context: Context) -> Result<EffectReport> {
        let pointer = &context.desktop().pointer;
        let (wanted, before, after) = context
            .act(async {
                let place = target::place(&context, &arguments.aim()).await?;
                let before = pointer.position().await?;
                if context.settings().agent_cursor {
                    context.cursors().show(context.session(), Act::Point(place.at));
                }
                pointer.move_to(place.at).await?;
                Ok((place.at, before, pointer.position().await?))
            })
            .await?;
        let effect = if after == wanted { Effect::Confirmed } else { Effect::SuspectedNoop };
        let report = EffectReport::new(effect, Route::Pointer).in_window(arguments.window_id).at(Some(after));
        Ok(report.from(format!("{},{}", before.x, before.y)).to(format!("{},{}", after.x, after.y)))
    }
}
