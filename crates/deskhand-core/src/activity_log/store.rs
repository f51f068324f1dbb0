//! The files of the log: lines, older lines, frames, and never more than the bounds.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Bounds, Line};
use crate::output_folder::{
    OutputFolder, UNFINISHED, private_file, private_folder, remove_if_there, write_whole,
};
use crate::recording::trajectory::Driver;

/// Says what the folder is.
const ABOUT: &str = "activity-log.json";
/// What [`ABOUT`] calls it.
const FORMAT: &str = "deskhand-activity-log";
/// Version of what is in it.
const VERSION: u32 = 1;
/// The newest lines.
const LINES: &str = "activity.jsonl";
/// The folder of the frames.
const FRAMES: &str = "frames";
/// A line is much shorter: it has names of arguments of one tool, a label and an id.
const LONGEST_LINE: u64 = 64 * 1024;

#[derive(Debug, Serialize, Deserialize)]
struct About {
    format: String,
    version: u32,
    /// The program that began it.
    driver: Driver,
}

/// A folder that nobody else writes into.
#[derive(Debug)]
pub(super) struct Store {
    folder: OutputFolder,
    bounds: Bounds,
    /// Number and size of each frame, the oldest first.
    frames: VecDeque<(u64, u64)>,
    frames_bytes: u64,
    /// The number of the next line.
    next: u64,
}

impl Store {
    /// Makes the folder, for this user alone, or takes one that is empty or holds a log.
    ///
    /// # Errors
    /// Why it cannot be used. Nothing of others is overwritten.
    pub(super) fn open(path: &Path, driver: Driver, bounds: Bounds) -> Result<Self, String> {
        let folder = OutputFolder::open(path)?;
        let is_new = folder.made || folder.is_empty().map_err(|error| error.to_string())?;
        if !is_new {
            check(path)?;
        }
        let mut store = Self { folder, bounds, frames: VecDeque::new(), frames_bytes: 0, next: 1 };
        match store.begin(is_new.then_some(driver)) {
            Ok(true) => Ok(store),
            Ok(false) => Err("it belongs to another user".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Takes the folder into use. `driver`: of a new log. Whether the folder is ours.
    fn begin(&mut self, driver: Option<Driver>) -> io::Result<bool> {
        if !self.folder.probe()? {
            return Ok(false);
        }
        self.folder.make_private()?;
        let frames = self.path(FRAMES);
        if let Some(driver) = driver {
            let about = About { format: FORMAT.to_owned(), version: VERSION, driver };
            write_whole(&self.folder.path, ABOUT, &serde_json::to_vec_pretty(&about)?)?;
        }
        match fs::symlink_metadata(&frames) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(other_than_expected(FRAMES)),
            Err(error) if error.kind() == ErrorKind::NotFound => private_folder(&frames, false)?,
            Err(error) => return Err(error),
        }
        self.find_frames()?;
        self.find_lines()?;
        self.make_room(0)?;
        // A reader that follows the file finds it.
        private_file().append(true).create(true).open(self.path(LINES))?;
        Ok(true)
    }

    /// Finds the frames that are there, and removes what was not finished.
    fn find_frames(&mut self) -> io::Result<()> {
        let mut frames = Vec::new();
        for entry in fs::read_dir(self.path(FRAMES))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') && name.ends_with(UNFINISHED) {
                fs::remove_file(entry.path())?;
            } else if let Some(number) = frame_number(&name) {
                frames.push((number, entry.metadata()?.len()));
            }
        }
        frames.sort_unstable();
        self.frames_bytes = frames.iter().map(|(_, size)| size).sum();
        self.next = frames.last().map_or(1, |(number, _)| number + 1);
        self.frames = frames.into();
        Ok(())
    }

    /// Finds the number of the last line, and removes what there is no room for.
    fn find_lines(&mut self) -> io::Result<()> {
        let mut age = 0;
        while age == 0 || self.lines(age).exists() {
            if age >= self.bounds.files.max(1) {
                remove_if_there(&self.lines(age))?;
            } else if let Some(last) = last_line(&self.lines(age))? {
                let number = serde_json::from_slice::<Line>(&last).map_or(0, |line| line.line);
                self.next = self.next.max(number + 1);
            }
            age += 1;
        }
        Ok(())
    }

    /// The number of the next line.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Adds a line, in one piece; it has the number [`Store::next`].
    ///
    /// # Errors
    /// Those of the system. Nothing is left of a line that was not written whole.
    pub(super) fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let size = line.len() as u64;
        // Opened each time, so that a file that somebody has taken away is made again.
        let open = || private_file().append(true).create(true).open(self.path(LINES));
        let mut file = open()?;
        let mut before = file.metadata()?.len();
        if before > 0 && before + size > self.bounds.file_bytes {
            self.rotate()?;
            file = open()?;
            before = file.metadata()?.len();
        }
        if let Err(error) = file.write_all(line) {
            // A part of it that found room would spoil the next one.
            let _ = file.set_len(before);
            return Err(error);
        }
        self.next += 1;
        Ok(())
    }

    /// Makes the newest lines older, and forgets the oldest.
    fn rotate(&self) -> io::Result<()> {
        let oldest = self.bounds.files.max(1) - 1;
        remove_if_there(&self.lines(oldest))?;
        for age in (0..oldest).rev() {
            match fs::rename(self.lines(age), self.lines(age + 1)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the frame of the next line: its file's name. `None`: it is larger than all frames may be.
    ///
    /// # Errors
    /// Those of the system; nothing is left of the frame then.
    pub(super) fn write_frame(&mut self, jpeg: &[u8]) -> io::Result<Option<String>> {
        let size = jpeg.len() as u64;
        if self.bounds.frames == 0 || size > self.bounds.frames_bytes {
            return Ok(None);
        }
        self.make_room(size)?;
        let name = frame_name(self.next);
        write_whole(&self.path(FRAMES), &name, jpeg)?;
        self.frames.push_back((self.next, size));
        self.frames_bytes += size;
        Ok(Some(format!("{FRAMES}/{name}")))
    }

    /// Removes the frame of the next line, which could not be written.
    pub(super) fn take_back_frame(&mut self) {
        if self.frames.back().is_some_and(|(number, _)| *number == self.next) {
            self.frames_bytes -= self.frames.pop_back().map_or(0, |(_, size)| size);
            if let Err(error) = remove_if_there(&self.path(FRAMES).join(frame_name(self.next))) {
                tracing::debug!(%error, "a frame without a line stays");
            }
        }
    }

    /// Removes the oldest frames, until there is room for one of this size; if that is 0, until the bounds hold.
    fn make_room(&mut self, size: u64) -> io::Result<()> {
        let more = usize::from(size > 0);
        while let Some(&(number, old)) = self.frames.front() {
            if self.frames.len() + more <= self.bounds.frames
                && self.frames_bytes + size <= self.bounds.frames_bytes
            {
                break;
            }
            remove_if_there(&self.path(FRAMES).join(frame_name(number)))?;
            self.frames.pop_front();
            self.frames_bytes -= old;
        }
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path.join(name)
    }

    /// The file of lines that is so many files old.
    fn lines(&self, age: usize) -> PathBuf {
        match age {
            0 => self.path(LINES),
            age => self.path(&format!("activity.{age}.jsonl")),
        }
    }
}

/// Checks that a folder that is not empty holds a log.
fn check(folder: &Path) -> Result<(), String> {
    let text = match fs::read(folder.join(ABOUT)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err("it is not empty and holds no activity log; name a new folder".to_owned());
        }
        Err(error) => return Err(format!("{ABOUT}: {error}")),
    };
    let about: About = serde_json::from_slice(&text).map_err(|error| format!("{ABOUT}: {error}"))?;
    match (about.format.as_str(), about.version) {
        (FORMAT, VERSION) => Ok(()),
        (FORMAT, version) => {
            Err(format!("it holds an activity log of version {version}, and this is version {VERSION}"))
        }
        _ => Err(format!("its {ABOUT} is not that of an activity log; name a new folder")),
    }
}

fn other_than_expected(name: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{name} in it is not what it should be"))
}

/// The last line of a file. What follows it was not finished by a process that was killed, and is cut off.
fn last_line(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Err(other_than_expected(&name())),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut file = private_file().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    let from = length.saturating_sub(2 * LONGEST_LINE);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    (&mut file).take(2 * LONGEST_LINE).read_to_end(&mut tail)?;
    let whole = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    if whole == 0 && from > 0 {
        return Err(other_than_expected(&name()));
    }
    if whole < tail.len() {
        file.set_len(from + whole as u64)?;
    }
    let lines = tail[..whole].strip_suffix(b"\n");
    Ok(lines.and_then(|lines| lines.rsplit(|byte| *byte == b'\n').next()).map(<[u8]>::to_vec))
}

fn frame_name(number: u64) -> String {
    format!("{number:07}.jpg")
}

fn frame_number(name: &str) -> Option<u64> {
    name.strip_suffix(".jpg")?.parse().ok()
}
