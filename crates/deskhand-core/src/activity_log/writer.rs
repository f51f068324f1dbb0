//! Writes the log, on a thread of its own: a call never waits for an encoder or a disk.

use std::io;

use super::store::Store;
use super::{Entry, Frame, Progress, SharedProgress, lock};
use crate::backlog::Waiting;
use crate::desktop::Capture;
use crate::output_folder::is_full;
use crate::picture::{self, Make, Sizing};
use crate::settings::ImageFormat;

/// Long side of a frame in pixels: what happened can be seen, and most text can be read.
const MAX_SIDE: u32 = 1280;

/// Writes what comes, until no more does.
pub(super) struct Writer {
    store: Store,
    progress: SharedProgress,
    /// How many of the dropped lines the log tells of.
    told: u64,
}

impl Writer {
    pub(super) fn new(store: Store, progress: SharedProgress) -> Self {
        Self { store, progress, told: 0 }
    }

    pub(super) fn run(mut self, entries: &Waiting<Entry>) {
        entries.each(|entry| self.write(entry));
    }

    fn write(&mut self, Entry { mut line, frame }: Entry) {
        line.line = self.store.next();
        match frame {
            Frame::None => {}
            Frame::Missing(why) => line.frame_missing = Some(why.to_owned()),
            Frame::Taken(capture) => match self.write_frame(capture) {
                Ok(name) => line.frame = Some(name),
                Err(why) => line.frame_missing = Some(why.to_owned()),
            },
        }
        let dropped = lock(&self.progress).lines_dropped;
        line.lines_dropped = dropped - self.told;
        let written = serde_json::to_vec(&line).map_err(io::Error::other).and_then(|mut text| {
            text.push(b'\n');
            self.store.append(&text)
        });
        if written.is_ok() {
            self.told = dropped;
        } else {
            self.store.take_back_frame();
        }
        let mut progress = lock(&self.progress);
        match &written {
            Ok(()) => {
                progress.lines += 1;
                progress.frames += u64::from(line.frame.is_some());
            }
            Err(_) => progress.lines_dropped += 1,
        }
        let Progress { lines_trouble, .. } = &mut *progress;
        note(lines_trouble, written.err(), "lines", line.lines_dropped);
    }

    /// The name of the frame's file; or why there is none.
    fn write_frame(&mut self, capture: Capture) -> Result<String, &'static str> {
        let make = Make {
            sizing: Sizing::Within(MAX_SIDE),
            format: ImageFormat::Jpeg,
            part: None,
            marks: Vec::new(),
        };
        let picture = picture::make(capture, &make).map_err(|error| error.code.name())?;
        let written = self.store.write_frame(&picture.image.bytes);
        let outcome = match &written {
            Ok(name) => name.clone().ok_or("limit_exceeded"),
            Err(error) => Err(word(error)),
        };
        note(&mut lock(&self.progress).frames_trouble, written.err(), "frames", 0);
        outcome
    }
}

/// Why something was not written, in a word.
fn word(error: &io::Error) -> &'static str {
    if is_full(error) { "disk_full" } else { "write_failed" }
}

/// Notes how writing went, and tells when that changes.
fn note(trouble: &mut Option<String>, error: Option<io::Error>, what: &str, lines_dropped: u64) {
    match error {
        Some(error) => {
            if trouble.is_none() {
                tracing::warn!(%error, "the activity log stops: {what} cannot be written; it goes on when they can");
            }
            *trouble = Some(error.to_string());
        }
        None if trouble.is_some() => {
            tracing::warn!(lines_dropped, "the activity log goes on: {what} can be written again");
            *trouble = None;
        }
        None => {}
    }
}
