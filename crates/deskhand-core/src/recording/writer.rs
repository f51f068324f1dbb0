//! Writes the turns of one recording, on a thread of its own: a call never waits for an encoder or a disk.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use tokio_util::sync::CancellationToken;

use super::folder::Folder;
use super::trajectory::{ACTION, Action, Reason, Shot, Trajectory};
use super::turn::{Finished, Seen};
use crate::backlog::{Backlog, Waiting, backlog};
use crate::output_folder::is_full;
use crate::picture::{self, Make, Sizing};
use crate::settings::ImageFormat;
use crate::timestamp::rfc3339;

/// Turns that wait to be written. An agent takes longer for one than a disk does; more wait only where that is stuck.
const MAX_WAITING: usize = 64;
/// Bytes of pixels that wait to be written: a dozen pictures of a large display.
const MAX_WAITING_BYTES: usize = 128 * 1024 * 1024;
/// Long side of a turn's picture in pixels: what a model is given.
const MAX_SIDE: u32 = 1568;

/// What has been written.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    pub(super) turns: u32,
    pub(super) dropped: u32,
    pub(super) bytes: u64,
    /// Why no more is written.
    pub(super) failure: Option<(Reason, String)>,
}

#[derive(Debug)]
struct Inner {
    progress: Mutex<Progress>,
    /// Cancelled when no more can be written.
    failed: CancellationToken,
    /// Cancelled when everything is written.
    done: CancellationToken,
    /// Why the recording ended.
    end: Mutex<Option<Reason>>,
    room: Arc<Room>,
}

/// How much a recording may write, and how much it has written.
#[derive(Debug)]
pub(super) struct Room {
    /// Bytes at most.
    pub(super) max: u64,
    turns: AtomicU64,
    /// Size of the video's file.
    pub(super) video: AtomicU64,
}

impl Room {
    pub(super) fn new(max: u64) -> Self {
        Self { max, turns: AtomicU64::new(0), video: AtomicU64::new(0) }
    }

    fn used(&self) -> u64 {
        self.turns.load(Ordering::Relaxed).saturating_add(self.video.load(Ordering::Relaxed))
    }

    pub(super) fn is_full(&self) -> bool {
        self.used() > self.max
    }

    /// Looks how large the video's file is.
    pub(super) fn measure_video(&self, file: &Path) {
        if let Ok(found) = std::fs::metadata(file) {
            self.video.store(found.len(), Ordering::Relaxed);
        }
    }
}

/// The way to the thread.
#[derive(Debug)]
pub(super) struct Writer {
    inner: Arc<Inner>,
    turns: Backlog<Arc<Finished>>,
}

impl Writer {
    /// Starts the thread; `trajectory` is on the disk already.
    pub(super) fn start(folder: Folder, trajectory: Trajectory, room: Arc<Room>) -> io::Result<Self> {
        let inner = Arc::new(Inner {
            progress: Mutex::default(),
            failed: CancellationToken::new(),
            done: CancellationToken::new(),
            end: Mutex::default(),
            room,
        });
        let (turns, waiting) = backlog(MAX_WAITING, MAX_WAITING_BYTES);
        let own = Arc::clone(&inner);
        std::thread::Builder::new().name("recording".to_owned()).spawn(move || {
            write_all(&own, &waiting, &folder, trajectory);
            // Whoever waits for the end may record into the folder again.
            drop(folder);
            own.done.cancel();
        })?;
        Ok(Self { inner, turns })
    }

    /// Hands a turn over. One that finds no room is dropped and counted.
    pub(super) fn offer(&self, turn: Arc<Finished>) {
        if self.turns.offer(turn).is_err() {
            lock(&self.inner.progress).dropped += 1;
        }
    }

    pub(super) fn progress(&self) -> Progress {
        lock(&self.inner.progress).clone()
    }

    /// Cancelled when no more can be written.
    pub(super) fn failed(&self) -> &CancellationToken {
        &self.inner.failed
    }

    /// No more turns come. [`Writer::done`] tells when all are written.
    pub(super) fn close(&self, reason: Reason) {
        *lock(&self.inner.end) = Some(reason);
        self.turns.close();
    }

    pub(super) fn done(&self) -> &CancellationToken {
        &self.inner.done
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.inner.end).get_or_insert(Reason::DriverEnd);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write_all(inner: &Inner, turns: &Waiting<Arc<Finished>>, folder: &Folder, mut trajectory: Trajectory) {
    let mut next = folder.next_turn;
    turns.each(|turn| {
        if inner.failed.is_cancelled() {
            return;
        }
        match write(inner, &turn, folder, next) {
            Ok(bytes) => {
                next += 1;
                let mut progress = lock(&inner.progress);
                progress.turns += 1;
                progress.bytes += bytes;
            }
            Err((reason, why)) => {
                tracing::warn!(?reason, why, "a recording stops");
                lock(&inner.progress).failure = Some((reason, why));
                inner.failed.cancel();
            }
        }
    });
    if let Some(part) = trajectory.parts.last_mut() {
        let progress = lock(&inner.progress);
        part.turns = progress.turns;
        part.turns_dropped = progress.dropped;
        part.ended = Some(rfc3339(SystemTime::now()));
        part.reason = *lock(&inner.end);
    }
    if let Err(error) = folder.write_trajectory(&trajectory) {
        tracing::warn!(%error, "the end of a recording could not be noted");
        let mut progress = lock(&inner.progress);
        if progress.failure.is_none() {
            progress.failure = Some(failure(&error));
        }
    }
}

/// Encodes a turn and writes it. Its size.
fn write(inner: &Inner, turn: &Finished, folder: &Folder, number: u32) -> Result<u64, (Reason, String)> {
    let mut action = turn.action.clone();
    action.turn = number;
    let mut files: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut shot = |name: &'static str, seen: &Seen| match encode(seen) {
        Ok((bytes, shot)) => {
            files.push((name, bytes));
            shot(name)
        }
        Err(missing) => Shot::Missing { missing },
    };
    action.before = shot("before.png", &turn.before);
    action.after = shot("after.png", &turn.after);
    if let Some(tree) = &turn.tree {
        files.push(("tree.txt", tree.text().into_bytes()));
    }
    files.push((ACTION, text_of(&action)?));
    let size: u64 = files.iter().map(|(_, bytes)| bytes.len() as u64).sum();
    let Room { max, turns, .. } = &*inner.room;
    if inner.room.used().saturating_add(size) > *max {
        return Err((Reason::MaxBytes, format!("another turn is more than max_bytes {max}")));
    }
    let files: Vec<_> = files.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let written = folder.write_turn(number, &files).map_err(|error| failure(&error))?;
    turns.fetch_add(written, Ordering::Relaxed);
    Ok(written)
}

fn text_of(action: &Action) -> Result<Vec<u8>, (Reason, String)> {
    serde_json::to_vec_pretty(action).map_err(|error| (Reason::WriteFailed, error.to_string()))
}

pub(super) fn failure(error: &io::Error) -> (Reason, String) {
    let reason = if is_full(error) { Reason::DiskFull } else { Reason::WriteFailed };
    (reason, error.to_string())
}

/// The picture, and what is said of it once it has a name; or why there is none.
fn encode(seen: &Seen) -> Result<(Vec<u8>, impl FnOnce(&str) -> Shot + use<>), String> {
    let capture = seen.as_ref().map_err(String::clone)?;
    let make =
        Make { sizing: Sizing::Within(MAX_SIDE), format: ImageFormat::Png, part: None, marks: Vec::new() };
    let picture = picture::make(capture.clone(), &make).map_err(|error| error.message)?;
    let info = picture.info;
    let shot = move |file: &str| Shot::Taken {
        file: file.to_owned(),
        frame: info.frame,
        width: info.width,
        height: info.height,
    };
    Ok((picture.image.bytes, shot))
}
