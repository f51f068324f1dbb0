//! `get_desktop_state` and `get_screen_size`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cursor::Nothing;
use super::screenshot::{self, View};
use super::{Reply, Spec, Surface, Tool, windows};
use crate::call::Image;
use crate::desktop::{Display, Window};
use crate::engine::Context;
use crate::error::{Code, Result};
use crate::geometry::Point;
use crate::picture::PictureInfo;
use crate::queue::StepKind;
use crate::settings::CaptureMode;

/// Looks at the desktop.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Display to show; the primary one if not given.
    display: Option<u32>,
}

/// The desktop at a glance.
#[derive(Clone, Debug, Serialize)]
pub(super) struct State {
    windows: Vec<Window>,
    pointer: Point,
    display: Display,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture: Option<PictureInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    picture_error: Option<Code>,
    #[serde(skip)]
    line: String,
    #[serde(skip)]
    image: Option<Image>,
}

impl Reply for State {
    fn text(&self) -> String {
        let mut text = format!("pointer at {},{}; {}\n", self.pointer.x, self.pointer.y, self.line);
        let lines: Vec<_> = self.windows.iter().rev().map(windows::line).collect();
        text += &format!("{} windows, front first:\n{}", lines.len(), lines.join("\n"));
        text
    }

    fn take_images(&mut self) -> Vec<Image> {
        self.image.take().into_iter().collect()
    }
}

pub(super) struct GetDesktopState;

impl Tool for GetDesktopState {
    const SPEC: Spec = Spec {
        name: "get_desktop_state",
        description: "See the desktop: a picture of a display, the windows and the pointer. Start here when you do not know what \
                      is open.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: "{}",
    };
    type Arguments = Arguments;
    type Reply = State;

    async fn run(arguments: Arguments, context: Context) -> Result<State> {
        let desktop = context.desktop();
        context
            .read(async {
                let (windows, pointer, displays) = tokio::try_join!(
                    desktop.windows.list(),
                    desktop.pointer.position(),
                    desktop.screen.displays()
                )?;
                let display = Display::choose(&displays, arguments.display)?.clone();
                let mut state = State {
                    windows,
                    pointer,
                    display,
                    picture: None,
                    picture_error: None,
                    line: "no picture was asked for".to_owned(),
                    image: None,
                };
                if context.settings().capture_mode == CaptureMode::Ax {
                    return Ok(state);
                }
                let view = View::Screen(state.display.frame);
                let sizing = screenshot::sizing(&context, None);
                match screenshot::take(&context, &view, sizing, None, Vec::new()).await {
                    Ok(picture) => {
                        state.line = picture.describe();
                        state.picture = Some(picture.info);
                        state.image = Some(picture.image);
                    }
                    Err(error) => {
                        state.line = format!("no picture: {}", error.message);
                        state.picture_error = Some(error.code);
                    }
                }
                Ok(state)
            })
            .await
    }
}

/// The displays.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Displays {
    displays: Vec<Display>,
}

impl Reply for Displays {
    fn text(&self) -> String {
        let line = |display: &Display| {
            let primary = if display.primary { ", primary" } else { "" };
            format!(
                "display {} {}: {}, scale {}{primary}",
                display.display, display.name, display.frame, display.scale
            )
        };
        self.displays.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(super) struct GetScreenSize;

impl Tool for GetScreenSize {
    const SPEC: Spec = Spec {
        name: "get_screen_size",
        description: "The displays with their frames in screen pixels and their scale.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = Displays;

    async fn run(_: Nothing, context: Context) -> Result<Displays> {
        let displays = context.read(async { Ok(context.desktop().screen.displays().await?) }).await?;
        Ok(Displays { displays })
    }
}
