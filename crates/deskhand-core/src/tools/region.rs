//! A part of a window or of a display, in the space that its caller thinks in.

use schemars::JsonSchema;
use serde::Deserialize;

use super::target::Space;
use crate::desktop::Window;
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::geometry::Rect;
use crate::session::PictureOf;

/// A rectangle in the space that is said beside it.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Region {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Region {
    pub(super) fn check(&self) -> Result<()> {
        let far = f64::from(i32::MAX / 4);
        for (name, value) in [("x", self.x), ("y", self.y), ("width", self.width), ("height", self.height)] {
            if !value.is_finite() || value.abs() > far {
                return Err(Error::argument(
                    "region",
                    format!("`{name}` is {value}, which is no coordinate"),
                ));
            }
        }
        if self.width <= 0.0 || self.height <= 0.0 {
            return Err(Error::argument("region", "its `width` and `height` must be greater than 0"));
        }
        Ok(())
    }

    /// The screen pixels that it covers; parts of pixels count as whole ones.
    fn on_screen(&self, left: i32, top: i32) -> Rect {
        let x = (f64::from(left) + self.x).floor() as i32;
        let y = (f64::from(top) + self.y).floor() as i32;
        let span = |start: i32, end: f64| (end.ceil() - f64::from(start)).max(1.0) as u32;
        let width = span(x, f64::from(left) + self.x + self.width);
        let height = span(y, f64::from(top) + self.y + self.height);
        Rect { x, y, width, height }
    }

    /// Where it is on the screen. Without a `space` it counts from the window's corner, or else from the desktop's.
    pub(super) fn to_screen(
        self,
        context: &Context,
        window: Option<&Window>,
        space: Option<Space>,
    ) -> Result<Rect> {
        let default = if window.is_some() { Space::Window } else { Space::Screen };
        match (space.unwrap_or(default), window) {
            (Space::Screen, _) => Ok(self.on_screen(0, 0)),
            (Space::Window, Some(window)) => Ok(self.on_screen(window.frame.x, window.frame.y)),
            (Space::Window, None) => {
                Err(Error::argument("window_id", "missing; a region in window space needs it"))
            }
            (Space::Image, _) => self.read_off(context, window),
        }
    }

    /// As read off the newest picture of the window or of the desktop.
    fn read_off(self, context: &Context, window: Option<&Window>) -> Result<Rect> {
        let of = window.map_or(PictureOf::Desktop, |window| PictureOf::Window(window.id));
        let picture = context.session().picture_of(of).ok_or_else(|| {
            Error::argument(
                "space",
                "this session was given no picture of it yet, so image regions mean nothing",
            )
        })?;
        let area =
            picture.frame.area_to_screen(self.x, self.y, self.width, self.height).ok_or_else(|| {
                let (width, height) = (picture.frame.width, picture.frame.height);
                Error::argument(
                    "region",
                    format!("lies outside of picture {}, which is {width}x{height}", picture.id),
                )
            })?;
        let (right, down) = picture.moved(window)?;
        Ok(Rect { x: area.x.saturating_add(right), y: area.y.saturating_add(down), ..area })
    }
}
