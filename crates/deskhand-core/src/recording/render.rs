//! A video of a trajectory's pictures: of each turn what was to be seen before and after it, with the place marked at which
//! it acted.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::trajectory::{Action, Shot, Trajectory, read_of_turn};
use super::video::{self, FrameFormat, Timing, VideoEncoder, VideoFile};
use crate::desktop::Pixels;
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};
use crate::picture;

/// What the name of a video ends in.
const EXTENSION: &str = "mp4";
/// Frames a second. More than one, so that a player that is moved along finds a place.
const FPS: u32 = 5;
/// Each picture is shown for a second.
const FRAMES: u32 = FPS;
/// A picture is enlarged so far at most: more shows nothing more.
const MAX_ENLARGED: f64 = 2.0;
/// A picture's file is no larger; see [`picture::decode`].
const MAX_PICTURE_FILE: u64 = 32 * 1024 * 1024;
/// The encoder gets so long to finish its file.
const FINISH: Duration = Duration::from_secs(30);

/// Pixels above and below of a picture of another shape.
const GROUND: [u8; 3] = [24, 27, 32];
/// Where a turn acted.
const SIGNAL: [u8; 3] = [229, 0, 110];
/// Around it, so that it stands out from any ground.
const HALO: [u8; 3] = [255, 255, 255];
/// How far the video is, along its lower edge.
const PROGRESS: [u8; 3] = [84, 150, 255];
/// Rows of that.
const PROGRESS_HEIGHT: u32 = 4;

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rendered {
    /// Turns of which a picture is in it.
    pub turns: u32,
    /// Turns that are left out because they cannot be read.
    pub turns_unreadable: u32,
    /// Pictures in it.
    pub pictures: u32,
    /// Pictures that the turns name and that could not be read.
    pub unreadable: u32,
    /// How long it is.
    pub seconds: u32,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
}

/// Makes `out`, which must not exist, of the trajectory in `folder`. It is complete, or not there.
///
/// # Errors
/// `invalid_argument` for another name than of an MP4 file, `video_unavailable`, `invalid_trajectory` (also for one without
/// pictures), `file_error`.
pub fn render(folder: &Path, out: &Path, encoder: &dyn VideoEncoder) -> Result<Rendered> {
    if !out.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(EXTENSION)) {
        let message = format!(
            "{}: only MP4 is written, so its name has to end in .{EXTENSION}; nothing was written",
            out.display()
        );
        return Err(Error::new(Code::InvalidArgument, message));
    }
    encoder.check().map_err(|why| Error::new(Code::VideoUnavailable, why))?;
    Trajectory::read(folder)?;
    let each = Trajectory::each_turn(folder)?;
    let all = each.len();
    let turns: Vec<Action> = each.into_iter().filter_map(|(_, action)| action.ok()).collect();
    let turns_unreadable = u32::try_from(all - turns.len()).unwrap_or(u32::MAX);
    let Some((width, height)) = canvas_size(&turns) else {
        return Err(Error::new(
            Code::InvalidTrajectory,
            format!("{}: it has no pictures; nothing was written", folder.display()),
        ));
    };
    let failed = |error: io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::new(Code::FileError, format!("{} exists; name a new file", out.display()))
        }
        _ => Error::new(Code::FileError, format!("{}: {error}", out.display())),
    };
    let format = FrameFormat { width, height, timing: Timing::Rate(FPS) };
    let mut file = encoder.begin(out, format).map_err(failed)?;
    let rendered = write(folder, &turns, &mut *file, (width, height));
    let finished = match rendered {
        Ok(rendered) if rendered.pictures == 0 => Err(io::Error::other("no picture of it can be read")),
        Ok(rendered) => file.finish(FINISH).map(|()| Rendered { turns_unreadable, ..rendered }),
        Err(error) => Err(error),
    };
    finished.map_err(|error| {
        // We made it, and what there is of it is not what was asked for.
        let _ = fs::remove_file(out);
        failed(error)
    })
}

/// The size into which every picture is fitted.
fn canvas_size(turns: &[Action]) -> Option<(u32, u32)> {
    let shots = turns.iter().flat_map(|turn| [&turn.before, &turn.after]);
    let sizes = shots.filter_map(|shot| match shot {
        Shot::Taken { width, height, .. } => Some((*width, *height)),
        Shot::Missing { .. } => None,
    });
    let (width, height) = sizes.reduce(|one, other| (one.0.max(other.0), one.1.max(other.1)))?;
    // As large as turns are recorded at most, whatever a record says.
    let (width, height) = picture::fitted(width.max(1), height.max(1), MAX_SIDE);
    Some(video::size(width, height))
}

/// Long side of the video in pixels.
const MAX_SIDE: u32 = 1920;

fn write(
    folder: &Path,
    turns: &[Action],
    file: &mut dyn VideoFile,
    (width, height): (u32, u32),
) -> io::Result<Rendered> {
    let mut rendered =
        Rendered { turns: 0, turns_unreadable: 0, pictures: 0, unreadable: 0, seconds: 0, width, height };
    let steps = turns.len() * 2;
    for (place, turn) in turns.iter().enumerate() {
        let before = rendered.pictures;
        for (step, shot) in [(1, &turn.before), (2, &turn.after)] {
            let Shot::Taken { file: name, frame, .. } = shot else { continue };
            let Some(pixels) = read(folder, turn.turn, name) else {
                rendered.unreadable += 1;
                continue;
            };
            let mut canvas = Canvas::new(width, height);
            let placed = canvas.put(&pixels).map_err(io::Error::other)?;
            canvas.mark(&points_on(&turn.points, frame, &placed));
            canvas.progress((place * 2 + step) as f64 / steps as f64);
            for _ in 0..FRAMES {
                file.write(&canvas.rgb)?;
            }
            rendered.pictures += 1;
            rendered.seconds += FRAMES / FPS;
        }
        rendered.turns += u32::from(rendered.pictures > before);
    }
    Ok(rendered)
}

/// A picture of a turn, if its file holds one.
pub(crate) fn read(folder: &Path, turn: u32, name: &str) -> Option<Pixels> {
    picture::decode(&read_of_turn(folder, turn, name, MAX_PICTURE_FILE).ok()?).ok()
}

/// Where points of the screen lie on a picture that shows `frame` and has been put to `placed`.
fn points_on(points: &[Point], frame: &Rect, placed: &Rect) -> Vec<(f64, f64)> {
    let on = points.iter().filter(|point| frame.contains(**point)).map(|point| {
        let along = |at: i32, start: i32, length: u32| {
            (f64::from(at) + 0.5 - f64::from(start)) / f64::from(length.max(1))
        };
        (
            f64::from(placed.x) + along(point.x, frame.x, frame.width) * f64::from(placed.width),
            f64::from(placed.y) + along(point.y, frame.y, frame.height) * f64::from(placed.height),
        )
    });
    on.collect()
}

/// A frame that is being painted: 8-bit RGB, rows without padding.
struct Canvas {
    width: u32,
    height: u32,
    rgb: Vec<u8>,
}

impl Canvas {
    fn new(width: u32, height: u32) -> Self {
        Self { width, height, rgb: GROUND.repeat(width as usize * height as usize) }
    }

    /// Puts a picture into the middle, as large as it fits. Where it is now.
    fn put(&mut self, pixels: &Pixels) -> std::result::Result<Rect, picture::Fault> {
        let across = f64::from(self.width) / f64::from(pixels.width);
        let down = f64::from(self.height) / f64::from(pixels.height);
        let factor = across.min(down).min(MAX_ENLARGED);
        let fit = |length: u32, room: u32| ((f64::from(length) * factor).round() as u32).clamp(1, room);
        let (wide, high) = (fit(pixels.width, self.width), fit(pixels.height, self.height));
        let scaled = picture::scale(pixels, wide, high)?;
        let (left, top) = ((self.width - wide) / 2, (self.height - high) / 2);
        for (row, line) in (top..).zip(scaled.rgba.chunks_exact(wide as usize * 4)) {
            let start = (row as usize * self.width as usize + left as usize) * 3;
            let target = &mut self.rgb[start..start + wide as usize * 3];
            for (to, from) in target.as_chunks_mut::<3>().0.iter_mut().zip(line.as_chunks::<4>().0) {
                to.copy_from_slice(&from[..3]);
            }
        }
        Ok(Rect::new(left.cast_signed(), top.cast_signed(), wide, high))
    }

    /// A ring around each point, and the way between two.
    fn mark(&mut self, points: &[(f64, f64)]) {
        for (thicker, colour) in [(1.5, HALO), (0.0, SIGNAL)] {
            if let [from, to, ..] = points {
                let (from, to) = (*from, *to);
                self.paint(from, to, 2.0 + thicker, colour, move |x, y| distance_to_line((x, y), from, to));
            }
            for &(at_x, at_y) in points {
                let ring = move |x: f64, y: f64| {
                    let distance = (x - at_x).hypot(y - at_y);
                    (distance - RING).abs().min((distance - DOT).max(0.0))
                };
                self.paint((at_x, at_y), (at_x, at_y), 1.5 + thicker, colour, ring);
            }
        }
    }

    /// Paints what is nearer than `reach` to a shape between two points, with soft edges.
    fn paint(
        &mut self,
        (one_x, one_y): (f64, f64),
        (other_x, other_y): (f64, f64),
        reach: f64,
        colour: [u8; 3],
        distance: impl Fn(f64, f64) -> f64,
    ) {
        let margin = RING + reach + 1.0;
        let span = |one: f64, other: f64, size: u32| {
            let first = (one.min(other) - margin).floor().clamp(0.0, size.into()) as u32;
            first..(one.max(other) + margin).ceil().clamp(0.0, size.into()) as u32
        };
        for y in span(one_y, other_y, self.height) {
            for x in span(one_x, other_x, self.width) {
                let cover = (reach + 0.5 - distance(f64::from(x) + 0.5, f64::from(y) + 0.5)).clamp(0.0, 1.0);
                if cover > 0.0 {
                    let start = (y as usize * self.width as usize + x as usize) * 3;
                    for (to, new) in self.rgb[start..start + 3].iter_mut().zip(colour) {
                        *to = (f64::from(*to) * (1.0 - cover) + f64::from(new) * cover).round() as u8;
                    }
                }
            }
        }
    }

    /// How far it is, from 0 to 1.
    fn progress(&mut self, part: f64) {
        let wide = (f64::from(self.width) * part).round() as usize;
        for row in self.height.saturating_sub(PROGRESS_HEIGHT)..self.height {
            let start = row as usize * self.width as usize * 3;
            for pixel in self.rgb[start..start + wide * 3].as_chunks_mut::<3>().0 {
                *pixel = PROGRESS;
            }
        }
    }
}

/// Radius of a ring in pixels.
const RING: f64 = 14.0;
/// Radius of the dot in its middle, beside the width of strokes.
const DOT: f64 = 1.0;

/// How far a place is from the line between two points.
fn distance_to_line((x, y): (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (wide, high) = (to.0 - from.0, to.1 - from.1);
    let length = wide.mul_add(wide, high * high);
    let along = match length > 0.0 {
        true => (((x - from.0) * wide + (y - from.1) * high) / length).clamp(0.0, 1.0),
        false => 0.0,
    };
    (x - from.0 - along * wide).hypot(y - from.1 - along * high)
}
