//! `screenshot`, and how every tool takes a picture.

use std::io::Write;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::region::Region;
use super::target::Space;
use super::{Reply, Spec, Surface, Tool};
use crate::call::Image;
use crate::desktop::{CaptureTarget, Display, PortError, Window, WindowId};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Rect;
use crate::picture::{self, Make, Mark, Picture, PictureInfo, Sizing};
use crate::queue::StepKind;
use crate::session::PictureOf;
use crate::settings::{IMAGE_DIMENSION, ImageFormat};

/// What a picture is of.
#[derive(Clone, Debug)]
pub(super) enum View {
    /// A window with its popups, or a part of it.
    Window { window: Box<Window>, part: Option<Rect> },
    /// A part of the desktop.
    Screen(Rect),
}

impl View {
    pub(super) fn of(window: &Window) -> Self {
        Self::Window { window: Box::new(window.clone()), part: None }
    }
}

/// The size of pictures unless something else is asked for.
pub(super) fn sizing(context: &Context, limit: Option<u32>) -> Sizing {
    Sizing::Within(limit.unwrap_or(context.settings().max_image_dimension))
}

/// Takes a picture within the step that runs.
pub(super) async fn take(
    context: &Context,
    view: &View,
    sizing: Sizing,
    format: Option<ImageFormat>,
    marks: Vec<Mark>,
) -> Result<Picture> {
    let (target, part, of, frame) = match view {
        View::Window { window, part } => {
            (CaptureTarget::Window(window.id), *part, PictureOf::Window(window.id), Some(window.frame))
        }
        View::Screen(area) => (CaptureTarget::Region(*area), None, PictureOf::Desktop, None),
    };
    let capture = context.capture(target).await?;
    let make = Make { sizing, format: format.unwrap_or(context.settings().image_format), part, marks };
    // Scaling and encoding take tens of milliseconds of processor time: other calls go on meanwhile.
    let picture = tokio::task::spawn_blocking(move || picture::make(capture, &make)).await;
    let mut picture =
        picture.map_err(|_| Error::new(Code::CaptureFailed, "the picture could not be encoded"))??;
    picture.info.picture_id = context.session().remember_picture(of, picture.frame, frame);
    Ok(picture)
}

/// The part of the desktop or of a window that the arguments of a tool name.
///
/// # Errors
/// `capture_busy` before anything else: where no picture can be taken, what it would have shown is of no use.
pub(super) async fn view(
    context: &Context,
    window_id: Option<WindowId>,
    display: Option<u32>,
    region: Option<Region>,
    space: Option<Space>,
) -> Result<View> {
    // Side by side: a display server that does not answer must be noticed by both in the same time.
    let (ready, view) =
        tokio::join!(context.desktop().screen.ready(), find_view(context, window_id, display, region, space));
    match ready {
        Err(busy @ PortError::CaptureBusy) => Err(busy.into()),
        _ => view,
    }
}

async fn find_view(
    context: &Context,
    window_id: Option<WindowId>,
    display: Option<u32>,
    region: Option<Region>,
    space: Option<Space>,
) -> Result<View> {
    if let Some(id) = window_id {
        let window = context.window(id).await?;
        let part = match region {
            Some(region) => Some(region.to_screen(context, Some(&window), space)?),
            None => None,
        };
        return Ok(View::Window { window: Box::new(window), part });
    }
    let displays = context.desktop().screen.displays().await?;
    let Some(region) = region else { return Ok(View::Screen(Display::choose(&displays, display)?.frame)) };
    let area = region.to_screen(context, None, space)?;
    let frames = match display {
        Some(_) => vec![Display::choose(&displays, display)?.frame],
        None => displays.iter().map(|display| display.frame).collect(),
    };
    // A region may reach from one display to the next; what lies on none is left out.
    let shown = frames.iter().filter_map(|frame| frame.intersection(&area));
    shown.reduce(|one, other| one.union(&other)).map(View::Screen).ok_or_else(|| {
        let names: Vec<_> = frames.iter().map(ToString::to_string).collect();
        Error::argument("region", format!("{area} is on no display; there are: {}", names.join("; ")))
    })
}

/// Checks the arguments that [`view`] takes.
pub(super) fn check_view(
    window_id: Option<WindowId>,
    display: Option<u32>,
    region: Option<Region>,
    space: Option<Space>,
) -> Result<()> {
    if window_id.is_some() && display.is_some() {
        return Err(Error::argument("display", "give a window or a display, not both"));
    }
    match region {
        Some(region) => region.check(),
        None if space.is_some() => Err(Error::argument("space", "belongs to a `region`")),
        None => Ok(()),
    }
}

/// Takes a picture.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window to show alone, without what covers it.
    window_id: Option<WindowId>,
    /// Display to show, from get_screen_size; the primary one if nothing is given.
    display: Option<u32>,
    /// A part of it.
    region: Option<Region>,
    /// Space of the region; `window` with a window_id, else `screen`.
    space: Option<Space>,
    /// Encoding.
    format: Option<ImageFormat>,
    /// Long side in pixels.
    #[schemars(range(min = 64, max = 8192))]
    max_image_dimension: Option<u32>,
    /// Absolute path of a new file for the picture, instead of answering it.
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

impl Shot {
    /// The answer, with the picture in it or in a file of its own.
    ///
    /// # Errors
    /// `file_error` if the file exists or cannot be written.
    pub(super) fn of(picture: Picture, file: Option<PathBuf>) -> Result<Self> {
        let line = picture.describe();
        let Picture { image, info, .. } = picture;
        let image = match &file {
            Some(file) => {
                write(file, &image.bytes)?;
                None
            }
            None => Some(image),
        };
        Ok(Self { picture: info, file, line, image })
    }
}

/// Checks a file that a picture is to be written to.
fn check_file(file: Option<&PathBuf>) -> Result<()> {
    match file {
        Some(file) if !file.is_absolute() => Err(Error::argument("out_file", "expected an absolute path")),
        _ => Ok(()),
    }
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
        description: "Take a picture of a window (also a covered one), a display or a `region` of them. Nothing is raised or moved. The \
                      answer gives the exact factor between picture and screen; points of it go back as `space` \"image\".",
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
        check_view(arguments.window_id, arguments.display, arguments.region, arguments.space)?;
        check_file(arguments.out_file.as_ref())
    }

    async fn run(arguments: Arguments, context: Context) -> Result<Shot> {
        let Arguments { window_id, display, region, space, .. } = arguments;
        let sizing = sizing(&context, arguments.max_image_dimension);
        let picture = context
            .read(async {
                let view = view(&context, window_id, display, region, space).await?;
                take(&context, &view, sizing, arguments.format, Vec::new()).await
            })
            .await?;
        Shot::of(picture, arguments.out_file)
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
