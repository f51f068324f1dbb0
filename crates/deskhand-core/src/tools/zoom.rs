//! `zoom`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::region::Region;
use super::screenshot::{self, Shot};
use super::target::Space;
use super::{Spec, Surface, Tool};
use crate::desktop::WindowId;
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::picture::Sizing;
use crate::queue::StepKind;

/// Scales that make sense: less shows nothing any more, more shows nothing more.
const SCALE: std::ops::RangeInclusive<f64> = 0.05..=16.0;

/// Shows a part closely.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window to look at.
    window_id: Option<WindowId>,
    /// Instead: display.
    display: Option<u32>,
    /// What to show.
    region: Region,
    /// Space of the region; `window` with a window_id, else `screen`.
    space: Option<Space>,
    /// Image pixels for one screen pixel; 1 if not given.
    #[schemars(range(min = 0.05, max = 16))]
    scale: Option<f64>,
}

pub(super) struct Zoom;

impl Tool for Zoom {
    const SPEC: Spec = Spec {
        name: "zoom",
        description: "screenshot of a part at full resolution or magnified, to read what a scaled picture blurs.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"window_id": 4194310, "region": {"x": 0, "y": 40, "width": 300, "height": 200}, "scale": 2}"#,
    };
    type Arguments = Arguments;
    type Reply = Shot;

    fn check(arguments: &Arguments) -> Result<()> {
        let Arguments { window_id, display, region, space, .. } = *arguments;
        screenshot::check_view(window_id, display, Some(region), space)?;
        if let Some(scale) = arguments.scale
            && !SCALE.contains(&scale)
        {
            let (least, most) = (SCALE.start(), SCALE.end());
            return Err(Error::argument(
                "scale",
                format!("{scale} is out of range; expected {least} to {most}"),
            ));
        }
        Ok(())
    }

    async fn run(arguments: Arguments, context: Context) -> Result<Shot> {
        let Arguments { window_id, display, region, space, .. } = arguments;
        let sizing = Sizing::Scale(arguments.scale.unwrap_or(1.0));
        let picture = context
            .read(async {
                let view = screenshot::view(&context, window_id, display, Some(region), space).await?;
                screenshot::take(&context, &view, sizing, None, Vec::new()).await
            })
            .await?;
        Shot::of(picture, None)
    }
}
