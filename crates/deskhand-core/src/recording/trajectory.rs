//! What a recording leaves in its folder. `docs/recording.md` tells it to whoever reads one with other programs.

use std::io::{self, ErrorKind};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::folder;
use crate::desktop::{Display, WindowId};
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};
use crate::plain_file;
use crate::tools::in_words_of_json;

/// What `trajectory.json` says that it is.
pub const FORMAT: &str = "deskhand-trajectory";
/// Version of the format: another one is not read.
pub const VERSION: u32 = 1;
/// Name of the file that tells of the whole.
pub const TRAJECTORY: &str = "trajectory.json";
/// Name of the file that tells of one turn.
pub const ACTION: &str = "action.json";
/// A file that says more than this is none of ours. The largest text of a call has 100,000 characters.
const MAX_FILE: u64 = 4 * 1024 * 1024;
/// Turns that are read of a recording: an hour of an agent at work.
pub(super) const MAX_TURNS: usize = 10_000;
/// What they may say together, in bytes: they are all held at once.
const MAX_SAID: u64 = 256 * 1024 * 1024;

/// `trajectory.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trajectory {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Who recorded.
    pub driver: Driver,
    /// Whose turns these are, for people; `None`: those of all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The displays at the beginning.
    pub displays: Vec<DisplayRecord>,
    /// The recordings in this folder, one after the other.
    pub parts: Vec<Part>,
}

/// The program that recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Which build of it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
}

/// A display as it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DisplayRecord {
    /// Its number.
    pub display: u32,
    /// Its name.
    pub name: String,
    /// Where it lay, in screen pixels.
    pub frame: Rect,
    /// Device pixels for one logical pixel.
    pub scale: f64,
}

impl From<&Display> for DisplayRecord {
    fn from(Display { display, name, frame, scale, .. }: &Display) -> Self {
        Self { display: *display, name: name.clone(), frame: *frame, scale: *scale }
    }
}

/// One recording, from its start to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// When it began (RFC 3339).
    pub started: String,
    /// When it ended; `None`: it goes on, or whoever recorded was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Number of its first turn.
    pub first_turn: u32,
    /// How many turns it has.
    pub turns: u32,
    /// Turns that were not written, because the disk was too slow.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns_dropped: u32,
    /// Its video.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub video: Option<VideoRecord>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A video.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoRecord {
    /// Its file, in the folder.
    pub file: String,
    /// What it shows, in words: everything that is on that display, whoever's window it is.
    pub scope: String,
    /// The part of the screen that it shows.
    pub frame: Rect,
    /// Its width in pixels.
    pub width: u32,
    /// Its height in pixels.
    pub height: u32,
    /// At most so many frames a second; one that shows nothing new is left out.
    pub fps: u32,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its session stopped it.
    Stopped,
    /// The operator stopped it.
    OperatorStop,
    /// Its session ended.
    SessionEnd,
    /// Nothing was called for so long.
    Idle,
    /// It took as long as it was to take.
    MaxDuration,
    /// It wrote as much as it was to write.
    MaxBytes,
    /// The disk is full.
    DiskFull,
    /// Its files could not be written.
    WriteFailed,
    /// The encoder of its video failed.
    VideoFailed,
    /// The screen may no longer be seen.
    ConsentRevoked,
    /// The desktop went away.
    DesktopLost,
    /// The driver ended.
    DriverEnd,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Stopped => "stopped",
            Self::OperatorStop => "stopped by the operator",
            Self::SessionEnd => "its session ended",
            Self::Idle => "nothing was called for too long",
            Self::MaxDuration => "max_duration_s is reached",
            Self::MaxBytes => "max_bytes is reached",
            Self::DiskFull => "the disk is full",
            Self::WriteFailed => "its files could not be written",
            Self::VideoFailed => "the video encoder failed",
            Self::ConsentRevoked => "the screen may no longer be seen",
            Self::DesktopLost => "the desktop went away",
            Self::DriverEnd => "the driver ended",
        })
    }
}

/// `action.json`: one acting call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Action {
    /// Its number in the folder.
    pub turn: u32,
    /// Whose call it was, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The tool.
    pub tool: String,
    /// Its arguments, without what is kept secret.
    pub arguments: Map<String, Value>,
    /// Names of the arguments that are left out: text that went, or may have gone, into a password field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<String>,
    /// When it began (RFC 3339).
    pub started: String,
    /// From its beginning to its answer.
    pub duration_ms: u64,
    /// `confirmed`, `unverifiable` or `suspected_noop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// What it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// How it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// Where it acted, in screen pixels: of a drag the beginning and the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<Point>,
    /// The window that it was aimed at, as it was before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<WindowRecord>,
    /// The elements that its arguments named, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<ElementRecord>,
    /// What was to be seen before it acted.
    pub before: Shot,
    /// What was to be seen when it answered.
    pub after: Shot,
}

/// How a call failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// Its code.
    pub code: String,
    /// What was said.
    pub message: String,
}

/// A window as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Its number then.
    pub window_id: WindowId,
    /// Its application.
    pub app: String,
    /// Its title.
    pub title: String,
    /// Where it lay, in screen pixels.
    pub frame: Rect,
}

/// What an element was, so that it can be found again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElementRecord {
    /// Its number then.
    pub element_index: u32,
    /// Its role.
    pub role: String,
    /// Its name.
    pub name: String,
    /// What it stood in, from the window down; itself last.
    pub path: Vec<Step>,
}

/// One step down a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Role.
    pub role: String,
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Which of its siblings with that role and that name, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub nth: u32,
}

/// A picture of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, try_from = "ShotFields")]
pub enum Shot {
    /// There is one.
    Taken {
        /// Its file, in the turn's folder.
        file: String,
        /// The part of the screen that it shows, in screen pixels.
        frame: Rect,
        /// Its width in pixels.
        width: u32,
        /// Its height in pixels.
        height: u32,
    },
    /// There is none.
    Missing {
        /// Why.
        missing: String,
    },
}

/// What a [`Shot`] may have: told apart here, so that an error says what is missing.
#[derive(Deserialize)]
struct ShotFields {
    file: Option<String>,
    frame: Option<Rect>,
    width: Option<u32>,
    height: Option<u32>,
    missing: Option<String>,
}

impl TryFrom<ShotFields> for Shot {
    type Error = &'static str;

    fn try_from(fields: ShotFields) -> std::result::Result<Self, Self::Error> {
        match fields {
            ShotFields {
                file: Some(file),
                frame: Some(frame),
                width: Some(width),
                height: Some(height),
                ..
            } => Ok(Self::Taken { file, frame, width, height }),
            ShotFields { file: None, missing: Some(missing), .. } => Ok(Self::Missing { missing }),
            _ => Err("a picture has `file`, `frame`, `width` and `height`, or `missing` with the reason"),
        }
    }
}

/// So many of a thing, in words: "1 turn", "2 turns".
pub fn counted(count: usize, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {thing}{plural}")
}

/// Name of the folder of a turn.
pub fn turn_folder(turn: u32) -> String {
    format!("turn-{turn:05}")
}

/// The number of the turn whose folder has this name.
pub(super) fn turn_number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix("turn-")?;
    (digits.len() >= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

impl Trajectory {
    /// Reads the `trajectory.json` of `folder`.
    ///
    /// # Errors
    /// `invalid_trajectory` if there is none, or it is not one of this version.
    pub fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(TRAJECTORY);
        let text = plain_file::read(&file, MAX_FILE).map_err(|error| invalid(&file, &error))?;
        // What it is comes first: of another version, nothing else need be as we know it.
        let kind: Value = serde_json::from_slice(&text).map_err(|error| invalid(&file, &error))?;
        if kind["format"] != FORMAT {
            return Err(invalid(&file, &"it is no trajectory of deskhand"));
        }
        if kind["version"] != VERSION {
            let version = &kind["version"];
            return Err(invalid(&file, &format!("it has version {version}; only {VERSION} is known here")));
        }
        understand(kind).map_err(|why| invalid(&file, &why))
    }

    /// The turns of `folder`, in order.
    ///
    /// # Errors
    /// `invalid_trajectory` if one of them is not as it should be, `file_error`.
    pub fn turns(folder: &Path) -> Result<Vec<Action>> {
        Self::each_turn(folder)?.into_iter().map(|(_, action)| action).collect()
    }

    /// The same, with those that cannot be read.
    ///
    /// # Errors
    /// `invalid_trajectory` if there are too many, `file_error`.
    pub(super) fn each_turn(folder: &Path) -> Result<Vec<(u32, Result<Action>)>> {
        let mut numbers = folder::turns(folder)?;
        if numbers.len() > MAX_TURNS {
            let why = format!("it has {} turns, more than {MAX_TURNS}", numbers.len());
            return Err(invalid(folder, &why));
        }
        numbers.sort_unstable();
        let mut said = Said::default();
        Ok(numbers.into_iter().map(|number| (number, Action::read(folder, number, &mut said))).collect())
    }
}

/// How much the turns of one recording have said.
#[derive(Debug, Default)]
pub(super) struct Said(u64);

impl Action {
    /// Reads the turn with this number.
    ///
    /// # Errors
    /// `invalid_trajectory`.
    pub(super) fn read(folder: &Path, turn: u32, said: &mut Said) -> Result<Self> {
        let file = folder.join(turn_folder(turn)).join(ACTION);
        let limit = MAX_FILE.min(MAX_SAID.saturating_sub(said.0));
        let text = read_of_turn(folder, turn, ACTION, limit).map_err(|error| invalid(&file, &error))?;
        said.0 += text.len() as u64;
        let value: Value = serde_json::from_slice(&text).map_err(|error| invalid(&file, &error))?;
        let action: Self = understand(value).map_err(|why| invalid(&file, &why))?;
        if action.turn != turn {
            return Err(invalid(&file, &format!("it says that it is turn {}", action.turn)));
        }
        for shot in [&action.before, &action.after] {
            // A name, not a way out of the folder.
            if let Shot::Taken { file: name, .. } = shot
                && (name.is_empty() || name.contains(['/', '\\']) || name.starts_with('.'))
            {
                return Err(invalid(&file, &"a picture of it lies outside of its folder"));
            }
        }
        Ok(action)
    }
}

/// The content of a file of a turn, whose folder must be one itself.
///
/// # Errors
/// As [`plain_file::read`].
pub(super) fn read_of_turn(folder: &Path, turn: u32, name: &str, limit: u64) -> io::Result<Vec<u8>> {
    let of = folder.join(turn_folder(turn));
    if !std::fs::symlink_metadata(&of)?.is_dir() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the turn's folder is a link or no folder"));
    }
    plain_file::read(&of.join(name), limit)
}

/// What a file says, or what of it is not as it should be and where.
fn understand<T: serde::de::DeserializeOwned>(value: Value) -> std::result::Result<T, String> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let why = in_words_of_json(&error.inner().to_string());
        match error.path().to_string().as_str() {
            "." => why,
            path => format!("`{path}`: {why}"),
        }
    })
}

fn invalid(file: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::new(Code::InvalidTrajectory, format!("{}: {why}", file.display()))
}
