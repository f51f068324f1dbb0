//! `screenshot`, and how every tool takes a picture.

use std::io::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reply, Spec, Surface, Tool};
use crate::call::Image;
use crate::desktop::{CaptureTarget, Display, WindowId};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::picture::{self, Picture, PictureInfo};
use crate::queue::StepKind;
use crate::session::PictureOf;
use crate::settings::{IMAGE_DIMENSION, ImageFormat};

/// How to make a picture of a capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Framing {
    pub(super) limit: u32,
    pub(super) format: ImageFormat,
}

impl Framing {
    pub(super) fn of(context: &Context, limit: Option<u32>, format: Option<ImageFormat>) -> Self {
        let settings = context.settings();
        Self {
            limit: limit.unwrap_or(settings.max_image_dimension),
            format: format.unwrap_or(settings.image_format),
        }
    }
}

/// Takes a picture within the step that runs.
pub(super) async fn take(context: &Context, target: CaptureTarget, framing: Framing) -> Result<Picture> {
    let capture = context.desktop().screen.capture(target, context.stop()).await?;
    // Scaling and encoding take tens of milliseconds of processor time: other calls go on meanwhile.
    let picture =
        tokio::task::spawn_blocking(move || picture::encode(capture, framing.limit, framing.format))
            .await
            .map_err(|_| Error::new(Code::CaptureFailed, "the picture could not be encoded"))??;
    let of = match target {
        CaptureTarget::Window(window) => PictureOf::Window(window),
        CaptureTarget::Region(_) => PictureOf::Desktop,
    };
    context.session().remember_picture(of, picture.frame);
    Ok(picture)
}

/// The display with number `wanted`, else the primary one.
pub(super) fn choose_display(displays: Vec<Display>, wanted: Option<u32>) -> Result<Display> {
    let count = displays.len();
    let chosen = match wanted {
        Some(number) => displays.into_iter().find(|display| display.display == number),
        None => {
            let primary = displays.iter().position(|display| display.primary).unwrap_or(0);
            displays.into_iter().nth(primary)
        }
    };
    chosen.ok_or_else(|| Error::argument("display", format!("there are {count} displays, numbered from 0")))
}

/// Takes a picture.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window to show alone, without what covers it.
    window_id: Option<WindowId>,
    /// Display to show, from get_screen_size; the primary one if nothing is given.
    display: Option<u32>,
    /// Encoding.
    format: Option<ImageFormat>,
    /// Long side in pixels.
    #[schemars(range(min = 64, max = 8192))]
    max_image_dimension: Option<u32>,
    /// Absolute path of a new file to write the picture to, instead of answering it.
    out_file: Option<PathBuf>,
}

/// A picture and what it shows.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Shot {
    picture: PictureInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    #[serde(skip)]
    line: String,
    #[serde(skip)]
    image: Option<Image>,
}

impl Reply for Shot {
    fn text(&self) -> String {
        match &self.file {
            Some(file) => format!("{}; written to {}", self.line, file.display()),
            None => self.line.clone(),
        }
    }

    fn take_images(&mut self) -> Vec<Image> {
        self.image.take().into_iter().collect()
    }
}

pub(super) struct Screenshot;

impl Tool for Screenshot {
    const SPEC: Spec = Spec {
        name: "screenshot",
        description: "Take a picture of a window (also a covered one) or a display. Nothing is raised or moved. The answer gives \
                      the exact factor between picture and screen; points of the picture go back as `space` \"image\".",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"window_id": 4194310}"#,
    };
    type Arguments = Arguments;
    type Reply = Shot;

    fn check(arguments: &Arguments) -> Result<()> {
        crate::settings::within("max_image_dimension", arguments.max_image_dimension, &IMAGE_DIMENSION)?;
        if arguments.window_id.is_some() && arguments.display.is_some() {
            return Err(Error::argument("display", "give a window or a display, not both"));
        }
        match &arguments.out_file {
            Some(file) if !file.is_absolute() => {
                Err(Error::argument("out_file", "expected an absolute path"))
            }
            _ => Ok(()),
        }
    }

    async fn run(arguments: Arguments, context: Context) -> Result<Shot> {
        let framing = Framing::of(&context, arguments.max_image_dimension, arguments.format);
        let picture = context
            .read(async {
                let target = match arguments.window_id {
                    Some(id) => CaptureTarget::Window(context.window(id).await?.id),
                    None => {
                        let displays = context.desktop().screen.displays().await?;
                        CaptureTarget::Region(choose_display(displays, arguments.display)?.frame)
                    }
                };
                take(&context, target, framing).await
            })
            .await?;
        let line = picture.describe();
        let Picture { image, info, .. } = picture;
        let image = match &arguments.out_file {
            Some(file) => {
                write(file, &image.bytes)?;
                None
            }
            None => Some(image),
        };
        Ok(Shot { picture: info, file: arguments.out_file, line, image })
    }
}

/// Writes a picture or other content to a file of its own: an existing file is left alone.
pub(super) fn write(file: &std::path::Path, bytes: &[u8]) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    // What is on the screen is nobody else's business.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).and_then(|mut out| out.write_all(bytes)).map_err(|error| {
        Error::new(Code::FileError, format!("{} could not be written: {error}", file.display()))
    })
}
