//! The activity log: a line for each call of an engine, and a frame of what a call that acted left on the screen.
//!
//! It is for whoever answers for the machine, so it is of the whole engine and no agent can change it. It says what was
//! called and what came of it, and nothing that was typed: names of arguments without their values, codes without
//! messages. A thread of its own encodes and writes; calls hand over and go on. What finds no room, in memory or on the
//! disk, is left out, and the next line says how much that was.

mod line;
mod noted;
mod store;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::line::Line;
pub(crate) use self::noted::Noted;
use self::store::Store;
use self::writer::Writer;
use crate::backlog::{Backlog, Weight, backlog};
use crate::desktop::{Capture, Check, CheckStatus};
use crate::error::{Code, Error, Result};
use crate::recording::trajectory::Driver;

/// The end waits so long for frames that are being taken; the lines of later ones go without.
const FRAMES_END: Duration = Duration::from_millis(500);
/// It waits so long for what is to be written: an MCP process has little time to end, and a disk that hangs more.
const WRITER_END: Duration = Duration::from_secs(1);

/// How much there may be of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of a file of lines. Any editor opens such a file; it holds some 30 000 calls.
    pub file_bytes: u64,
    /// Files of lines, the newest included: weeks of a busy machine.
    pub files: usize,
    /// Frames.
    pub frames: usize,
    /// Bytes of all frames. A thousand of them are about that much.
    pub frames_bytes: u64,
    /// Lines that wait to be written: more than any disk needs that is not stuck.
    pub waiting: usize,
    /// Bytes of pixels that wait to be written: a few pictures of a large display.
    pub waiting_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        const MEGABYTE: u64 = 1024 * 1024;
        Self {
            file_bytes: 8 * MEGABYTE,
            files: 4,
            frames: 1000,
            frames_bytes: 128 * MEGABYTE,
            waiting: 1024,
            waiting_bytes: 64 * 1024 * 1024,
        }
    }
}

/// An activity log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ActivityLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    folder: PathBuf,
    entries: Backlog<Entry>,
    progress: SharedProgress,
    /// Frames that are being taken.
    looks: TaskTracker,
    /// One at a time, so that whoever else wants a picture waits for one at most.
    eye: Semaphore,
    /// Number of the newest of them.
    newest_look: AtomicU64,
    /// Cancelled when they are not waited for any more.
    ending: CancellationToken,
    /// Cancelled when everything is written.
    done: CancellationToken,
}

type SharedProgress = Arc<Mutex<Progress>>;

/// What has been written, and what could not be.
#[derive(Debug, Default)]
struct Progress {
    lines: u64,
    lines_dropped: u64,
    frames: u64,
    /// Why lines are not written at the moment.
    lines_trouble: Option<String>,
    /// Why frames are not.
    frames_trouble: Option<String>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What can be said about the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivityLogState {
    /// Where it is.
    pub folder: PathBuf,
    /// Lines that this process has written.
    pub lines: u64,
    /// Lines that it could not write.
    pub lines_dropped: u64,
    /// Frames that it has written.
    pub frames: u64,
    /// Why lines are not written at the moment.
    pub stopped: Option<String>,
    /// Why frames are not.
    pub frames_stopped: Option<String>,
}

/// A line that only has to be written.
#[derive(Debug)]
struct Entry {
    line: Line,
    frame: Frame,
}

/// What is to be seen after a call.
#[derive(Debug)]
enum Frame {
    /// Nothing: it did not act.
    None,
    Missing(&'static str),
    Taken(Capture),
}

impl Weight for Entry {
    fn weight(&self) -> usize {
        match &self.frame {
            Frame::Taken(capture) => capture.pixels.rgba.len(),
            Frame::None | Frame::Missing(_) => 0,
        }
    }
}

impl ActivityLog {
    /// Begins a log in `folder`, or goes on with the one that is there. `version` and `build` are the program's. Waits for the
    /// disk.
    ///
    /// # Errors
    /// `file_error` with the reason: a relative path, a link, something else in it, another one that writes, no permission.
    pub fn open(folder: &Path, version: &str, build: Option<&str>, bounds: Bounds) -> Result<Self> {
        let refuse = |why: &dyn std::fmt::Display| {
            let message = format!("the activity log cannot be written: {}: {why}", folder.display());
            Error::new(Code::FileError, message)
        };
        if !folder.is_absolute() {
            return Err(refuse(&"expected an absolute path"));
        }
        let driver = Driver {
            name: "deskhand".to_owned(),
            version: version.to_owned(),
            build: build.map(str::to_owned),
        };
        let store = Store::open(folder, driver, bounds).map_err(|why| refuse(&why))?;
        let progress = SharedProgress::default();
        let done = CancellationToken::new();
        let (entries, waiting) = backlog(bounds.waiting, bounds.waiting_bytes);
        let writer = Writer::new(store, Arc::clone(&progress));
        let own = done.clone();
        let thread = std::thread::Builder::new().name("activity log".to_owned());
        thread
            .spawn(move || {
                writer.run(&waiting);
                own.cancel();
            })
            .map_err(|error| refuse(&error))?;
        let folder = folder.to_owned();
        Ok(Self(Arc::new(Inner {
            folder,
            entries,
            progress,
            looks: TaskTracker::new(),
            eye: Semaphore::new(1),
            newest_look: AtomicU64::new(0),
            ending: CancellationToken::new(),
            done,
        })))
    }

    /// What can be said about it.
    pub fn state(&self) -> ActivityLogState {
        let progress = lock(&self.0.progress);
        ActivityLogState {
            folder: self.0.folder.clone(),
            lines: progress.lines,
            lines_dropped: progress.lines_dropped,
            frames: progress.frames,
            stopped: progress.lines_trouble.clone(),
            frames_stopped: progress.frames_trouble.clone(),
        }
    }

    /// The same as one line of a report. It does not say where the log is: agents read that.
    pub(crate) fn check(&self) -> Check {
        let ActivityLogState { lines, lines_dropped, stopped, frames_stopped, .. } = self.state();
        let dropped = match lines_dropped {
            0 => String::new(),
            number => format!("; {number} lines are missing"),
        };
        let (status, detail) = match (stopped, frames_stopped) {
            (None, None) => (CheckStatus::Ok, format!("each call is logged; {lines} lines so far{dropped}")),
            (Some(why), _) => {
                (CheckStatus::Degraded, format!("calls are not logged at the moment: {why}{dropped}"))
            }
            (None, Some(why)) => (
                CheckStatus::Degraded,
                format!("calls are logged without pictures at the moment: {why}{dropped}"),
            ),
        };
        let fix = (status != CheckStatus::Ok)
            .then(|| "mend the disk or make room on it; the log goes on by itself".to_owned());
        Check { name: "activity_log".to_owned(), status, detail, fix }
    }

    /// Ends the log: waits a bounded time until what has happened is written.
    pub async fn close(&self) {
        self.0.looks.close();
        if tokio::time::timeout(FRAMES_END, self.0.looks.wait()).await.is_err() {
            self.0.ending.cancel();
            self.0.looks.wait().await;
        }
        self.0.entries.close();
        if tokio::time::timeout(WRITER_END, self.0.done.cancelled()).await.is_err() {
            tracing::warn!("the end of the activity log is not written");
        }
    }

    /// Hands a line over. Where there is no room for its frame, it goes without; one that finds no room itself is dropped and
    /// counted.
    fn offer(&self, entry: Entry) {
        let Err(entry) = self.0.entries.offer(entry) else { return };
        let frame = match entry.frame {
            Frame::Taken(_) => Frame::Missing("slow_disk"),
            other => other,
        };
        if self.0.entries.offer(Entry { frame, ..entry }).is_err() {
            lock(&self.0.progress).lines_dropped += 1;
        }
    }
}
