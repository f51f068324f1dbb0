//! The folder of a recording: whether it may be used, and files that appear whole.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::trajectory::{self, TRAJECTORY, Trajectory};
use crate::error::{Code, Error, Result};
use crate::output_folder::{
    OutputFolder, UNFINISHED, private_folder, remove_if_there, write_new, write_whole,
};

/// A folder that nobody else records into.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// What is there already, if it is added to.
    pub(super) earlier: Option<Trajectory>,
    /// The number of the next turn.
    pub(super) next_turn: u32,
    output: OutputFolder,
}

/// Checks what can be checked of a path without looking.
///
/// # Errors
/// `invalid_argument`.
pub(super) fn check(path: &Path) -> Result<()> {
    let refuse = |why: &str| Err(Error::argument("output_dir", why));
    if !path.is_absolute() {
        return refuse("expected an absolute path");
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse("has `..` in it; write the path out");
    }
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return refuse("has a zero byte in it");
    }
    Ok(())
}

impl Folder {
    /// Makes the folder, for this user alone, or takes one that is empty or holds a trajectory.
    ///
    /// # Errors
    /// `file_error` with the reason; nothing is overwritten.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let refuse = |why: &dyn std::fmt::Display| {
            Error::new(Code::FileError, format!("{}: {why}; nothing was recorded", path.display()))
        };
        if let Some(outer) = recording_around(path) {
            let why = format!("it lies in the recording {}; name a folder outside of it", outer.display());
            return Err(refuse(&why));
        }
        let output = OutputFolder::open(path).map_err(|why| refuse(&why))?;
        let mut folder = Self { path: path.to_owned(), earlier: None, next_turn: 1, output };
        if !folder.output.made && !folder.output.is_empty().map_err(|error| refuse(&error))? {
            if !fs::symlink_metadata(path.join(TRAJECTORY)).is_ok_and(|found| found.is_file()) {
                return Err(refuse(&"it exists and is not empty; name a new folder"));
            }
            let earlier = Trajectory::read(path).map_err(|error| refuse(&error.message))?;
            folder.next_turn = turns(path)?.into_iter().max().map_or(1, |last| last + 1);
            folder.earlier = Some(earlier);
        }
        // Whether anything can be written is known before a recording is said to have begun.
        folder.output.probe().map_err(|error| refuse(&error))?;
        Ok(folder)
    }

    /// Takes back what was made of a recording that did not begin.
    pub(super) fn abandon(self) {
        let taken_back = match &self.earlier {
            Some(earlier) => self.write_trajectory(earlier),
            None => remove_if_there(&self.path.join(TRAJECTORY)).map(|()| {
                // One that was there before and is not empty stays.
                let _ = fs::remove_dir(&self.path);
            }),
        };
        if let Err(error) = taken_back {
            tracing::warn!(%error, "the beginning of a recording could not be taken back");
        }
    }

    /// Replaces `trajectory.json`: a reader sees the old one or the new one.
    pub(super) fn write_trajectory(&self, trajectory: &Trajectory) -> io::Result<()> {
        let text = serde_json::to_vec_pretty(trajectory)?;
        write_whole(&self.path, TRAJECTORY, &text)
    }

    /// Writes the folder of a turn: whole, or not at all. Its size in bytes.
    pub(super) fn write_turn(&self, turn: u32, files: &[(&str, &[u8])]) -> io::Result<u64> {
        let name = trajectory::turn_folder(turn);
        let unfinished = self.path.join(format!(".{name}{UNFINISHED}"));
        // Left by a driver that was killed.
        if unfinished.exists() {
            fs::remove_dir_all(&unfinished)?;
        }
        let written = private_folder(&unfinished, false).and_then(|()| {
            files.iter().try_for_each(|(name, bytes)| write_new(&unfinished.join(name), bytes))?;
            fs::rename(&unfinished, self.path.join(name))
        });
        if let Err(error) = written {
            // What is left of it is no turn, and on a full disk takes room.
            let _ = fs::remove_dir_all(&unfinished);
            return Err(error);
        }
        Ok(files.iter().map(|(_, bytes)| bytes.len() as u64).sum())
    }

    /// The name of a file that is not there yet: `video.mp4`, `video-2.mp4` and so on.
    pub(super) fn free_name(&self, stem: &str, extension: &str) -> String {
        let names = (1u32..).map(|number| match number {
            1 => format!("{stem}.{extension}"),
            _ => format!("{stem}-{number}.{extension}"),
        });
        names.into_iter().find(|name| !self.path.join(name).exists()).unwrap_or_default()
    }
}

/// The recording in whose folder this one would lie: whoever reads or removes that would have both. Also where links lead to.
fn recording_around(path: &Path) -> Option<PathBuf> {
    let there = path.ancestors().skip(1).find_map(|above| above.canonicalize().ok());
    let written = path.ancestors().skip(1);
    let led_to = there.iter().flat_map(|there| there.ancestors());
    written.chain(led_to).find(|above| above.join(TRAJECTORY).is_file()).map(Path::to_owned)
}

/// The numbers of the turns in a folder.
pub(super) fn turns(path: &Path) -> Result<Vec<u32>> {
    let read = fs::read_dir(path)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>());
    let names = read.map_err(|error| Error::new(Code::FileError, format!("{}: {error}", path.display())))?;
    Ok(names.iter().filter_map(|name| trajectory::turn_number(name.to_str()?)).collect())
}
