//! The video of a recording: frames of one display, at the time at which they were seen.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::VideoState;
use super::trajectory::{Reason, VideoRecord};
use super::writer::{Room, failure};
use crate::desktop::{Capture, CaptureRequest, CaptureTarget, Display, Pixels, Stop};
use crate::engine::Shared;
use crate::error::{Code, Error, Result};
use crate::geometry::Rect;
use crate::picture;

/// Frames a second, unless asked for otherwise: what an agent does can be followed.
pub const FPS: u32 = 10;
/// Most frames a second.
pub const MAX_FPS: u32 = 30;
/// Widest video.
const MAX_WIDTH: u32 = 1920;
/// Frames that wait for the encoder; more are dropped.
const MAX_WAITING: usize = 2;
/// A frame that shows nothing new is left out, but not for longer than this: a player needs to know that time passes, and
/// what a crash loses is what came after the last frame.
const STILL: Duration = Duration::from_millis(500);
/// Taking a frame takes so long at most; a desktop that is slower has a video with gaps.
const FRAME_WAIT: Duration = Duration::from_secs(2);
/// The encoder gets so long to finish its file.
const FINISH: Duration = Duration::from_secs(2);

/// Makes video files. A program of its own may do that.
pub trait VideoEncoder: Send + Sync + fmt::Debug {
    /// Whether it can.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    fn check(&self) -> std::result::Result<(), String>;

    /// Begins a new file. The file is playable up to its last whole frame whatever happens.
    ///
    /// # Errors
    /// Those of the system; `AlreadyExists` for a file that is there.
    fn begin(&self, file: &Path, format: FrameFormat) -> io::Result<Box<dyn VideoFile>>;
}

/// What frames are like. Their pixels are 8-bit RGB, rows without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameFormat {
    /// Columns; an even number.
    pub width: u32,
    /// Rows; an even number.
    pub height: u32,
    /// When each is shown.
    pub timing: Timing,
}

/// When frames are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// When they are written.
    Live,
    /// So many a second.
    Rate(u32),
}

/// A video that is being made. Its methods wait for the encoder; dropping it gives the encoder up.
pub trait VideoFile: Send {
    /// Adds a frame.
    ///
    /// # Errors
    /// `StorageFull` for a full disk, and others of the system.
    fn write(&mut self, rgb: &[u8]) -> io::Result<()>;

    /// Completes the file, within a bounded time.
    ///
    /// # Errors
    /// As [`VideoFile::write`].
    fn finish(self: Box<Self>, within: Duration) -> io::Result<()>;

    /// What gives the encoder up from another thread, when it hangs: whoever waits for it fails then.
    ///
    /// # Errors
    /// Those of the system.
    fn giving_up(&self) -> io::Result<GivingUp>;
}

/// Gives an encoder up.
pub type GivingUp = Box<dyn Fn() + Send + Sync>;

/// The encoder of a process that has none.
#[derive(Clone, Copy, Debug)]
pub struct NoEncoder;

impl VideoEncoder for NoEncoder {
    fn check(&self) -> std::result::Result<(), String> {
        Err("this driver has no video encoder".to_owned())
    }

    fn begin(&self, _file: &Path, _format: FrameFormat) -> io::Result<Box<dyn VideoFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// What to film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VideoRequest {
    pub(crate) display: Option<u32>,
    pub(crate) fps: u32,
}

impl VideoRequest {
    /// What is to be filmed, into `file`.
    ///
    /// # Errors
    /// `invalid_argument` for a display that is not there.
    pub(super) fn record(&self, displays: &[Display], file: String) -> Result<VideoRecord> {
        let display = Display::choose(displays, self.display)?;
        let (width, height) = size(display.frame.width, display.frame.height);
        let scope = format!("the whole of display {} ({}), all windows on it", display.display, display.name);
        Ok(VideoRecord { file, scope, frame: display.frame, width, height, fps: self.fps })
    }
}

/// Size of the video of something of this size: even, as its colours are stored for four pixels at a time.
pub(crate) fn size(width: u32, height: u32) -> (u32, u32) {
    let even = |length: u32| (length & !1).max(2);
    if width <= MAX_WIDTH {
        return (even(width), even(height));
    }
    let scaled = f64::from(height) * f64::from(MAX_WIDTH) / f64::from(width);
    (MAX_WIDTH, even(scaled.round() as u32))
}

/// A video that is being taken.
#[derive(Debug)]
pub(super) struct Filming {
    file: String,
    counts: Arc<Counts>,
    room: Arc<Room>,
    /// Ends the taking of frames.
    stop: CancellationToken,
    give_up: Hidden<GivingUp>,
}

/// Has nothing to show.
struct Hidden<T>(T);

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

#[derive(Debug, Default)]
struct Counts {
    frames: AtomicU64,
    dropped: AtomicU64,
    failure: Mutex<Option<(Reason, String)>>,
    /// Cancelled when no more can be written.
    failed: CancellationToken,
    /// Cancelled when the file is complete.
    done: CancellationToken,
}

impl Counts {
    fn fail(&self, failure: (Reason, String)) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
        self.failed.cancel();
    }
}

impl Filming {
    /// Begins the file, and takes frames from now on.
    pub(super) fn start(
        shared: &Arc<Shared>,
        record: &VideoRecord,
        folder: &Path,
        room: Arc<Room>,
    ) -> Result<Self> {
        let &VideoRecord { ref file, frame, width, height, fps, .. } = record;
        let path = folder.join(file);
        let format = FrameFormat { width, height, timing: Timing::Live };
        let video = shared.host.video.begin(&path, format);
        let unavailable = |error: io::Error| {
            Error::new(Code::VideoUnavailable, format!("the video could not be begun: {error}"))
        };
        let video = video.map_err(unavailable)?;
        let give_up = Hidden(video.giving_up().map_err(unavailable)?);
        let counts: Arc<Counts> = Arc::default();
        let stop = CancellationToken::new();
        let (frames, waiting) = sync_channel(MAX_WAITING);
        let encoding = Encoding { video, path, format, counts: Arc::clone(&counts), room: Arc::clone(&room) };
        let thread = std::thread::Builder::new().name("video".to_owned());
        thread.spawn(move || encoding.run(&waiting)).map_err(unavailable)?;
        let taking = Taking { shared: Arc::downgrade(shared), frame, frames, counts: Arc::clone(&counts) };
        let until = stop.clone();
        tokio::spawn(async move { until.run_until_cancelled(taking.run(fps)).await });
        Ok(Self { file: file.clone(), counts, room, stop, give_up })
    }

    pub(super) fn state(&self) -> VideoState {
        VideoState {
            file: self.file.clone(),
            frames: self.counts.frames.load(Ordering::Relaxed),
            frames_dropped: self.counts.dropped.load(Ordering::Relaxed),
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.room.video.load(Ordering::Relaxed)
    }

    pub(super) fn failed(&self) -> &CancellationToken {
        &self.counts.failed
    }

    fn failure_of(&self) -> Option<(Reason, String)> {
        self.counts.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure_of().map(|(_, why)| why)
    }

    pub(super) fn failure_reason(&self) -> Reason {
        self.failure_of().map_or(Reason::VideoFailed, |(reason, _)| reason)
    }

    /// Takes no more frames.
    pub(super) fn stop_looking(&self) {
        self.stop.cancel();
    }

    /// Takes no more frames, and waits a bounded time until the file is complete.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        if tokio::time::timeout(FINISH, self.counts.done.cancelled()).await.is_ok() {
            return;
        }
        tracing::warn!("the encoder of a video does not end, and is given up");
        (self.give_up.0)();
        if tokio::time::timeout(FINISH, self.counts.done.cancelled()).await.is_err() {
            tracing::error!("the encoder of a video cannot be ended");
        }
    }
}

/// Takes frames and hands them to the encoder's thread.
struct Taking {
    shared: Weak<Shared>,
    frame: Rect,
    frames: SyncSender<Capture>,
    counts: Arc<Counts>,
}

impl Taking {
    async fn run(self, fps: u32) {
        let mut tick = tokio::time::interval(Duration::from_secs(1) / fps);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            let Some(shared) = self.shared.upgrade() else { return };
            // Right before the pixels are touched, each time.
            if !shared.gate.look().await.sees() {
                continue;
            }
            let stop = Stop::new();
            let _stops = stop.clone().drop_guard();
            let request = CaptureRequest { target: CaptureTarget::Region(self.frame), agent_cursors: true };
            let capture = shared.desktop.screen.capture(request, &stop);
            match tokio::time::timeout(FRAME_WAIT, capture).await {
                Ok(Ok(capture)) => {
                    if self.frames.try_send(capture).is_err() {
                        self.counts.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(Err(error)) => tracing::debug!(%error, "a frame could not be taken"),
                Err(_) => tracing::debug!("a frame was not taken in time"),
            }
        }
    }
}

/// Scales and encodes frames, on a thread of its own.
struct Encoding {
    video: Box<dyn VideoFile>,
    path: PathBuf,
    format: FrameFormat,
    counts: Arc<Counts>,
    room: Arc<Room>,
}

impl Encoding {
    fn run(mut self, frames: &Receiver<Capture>) {
        let counts = Arc::clone(&self.counts);
        let fail = |error: io::Error| {
            counts.fail(match failure(&error) {
                (Reason::WriteFailed, why) => (Reason::VideoFailed, why),
                full => full,
            });
        };
        let encoded = self.encode(frames);
        // Frames that still come find nobody, and are dropped.
        let Self { video, path, room, .. } = self;
        [encoded, video.finish(FINISH)].into_iter().filter_map(io::Result::err).for_each(fail);
        room.measure_video(&path);
        counts.done.cancel();
    }

    fn encode(&mut self, frames: &Receiver<Capture>) -> io::Result<()> {
        let mut last: Option<Pixels> = None;
        let mut rgb = Vec::new();
        let mut written = Instant::now();
        loop {
            let new = match frames.recv_timeout(STILL) {
                Ok(capture) => Some(capture.pixels),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            let is_new = match (&new, &last) {
                (Some(new), Some(last)) => new.rgba != last.rgba,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if is_new && let Some(pixels) = new {
                rgb = frame(&pixels, self.format).map_err(io::Error::other)?;
                last = Some(pixels);
            } else if rgb.is_empty() || written.elapsed() < STILL {
                continue;
            }
            self.video.write(&rgb)?;
            written = Instant::now();
            self.counts.frames.fetch_add(1, Ordering::Relaxed);
            self.room.measure_video(&self.path);
            if self.room.is_full() {
                let message = format!("the video is more than max_bytes {}", self.room.max);
                self.counts.fail((Reason::MaxBytes, message));
                return Ok(());
            }
        }
        // What was to be seen at the end is shown until then.
        if !rgb.is_empty() {
            self.video.write(&rgb)?;
            self.counts.frames.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The pixels of a frame in this format. Another size than before (the display was changed) is scaled to it.
pub(crate) fn frame(pixels: &Pixels, format: FrameFormat) -> std::result::Result<Vec<u8>, picture::Fault> {
    let FrameFormat { width, height, .. } = format;
    let mut rgb = Vec::with_capacity(width as usize * height as usize * 3);
    let mut add = |rgba: &[u8]| {
        for pixel in rgba.as_chunks::<4>().0 {
            rgb.extend_from_slice(&pixel[..3]);
        }
    };
    if pixels.width & !1 == width && pixels.height & !1 == height {
        let (row, stride) = (width as usize * 4, pixels.width as usize * 4);
        for line in pixels.rgba.chunks_exact(stride).take(height as usize) {
            add(&line[..row]);
        }
        return Ok(rgb);
    }
    add(&picture::scale(pixels, width, height)?.rgba);
    Ok(rgb)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn videos_are_even_and_at_most_1920_wide() {
        assert_eq!(size(1920, 1080), (1920, 1080));
        assert_eq!(size(1367, 769), (1366, 768));
        assert_eq!(size(3840, 2160), (1920, 1080));
        assert_eq!(size(5120, 1441), (1920, 540));
        assert_eq!(size(1, 1), (2, 2));
    }

    #[test]
    fn a_frame_is_cut_to_even_or_scaled() {
        let pixels = Pixels { width: 3, height: 2, rgba: (0..24).collect() };
        let format = |width, height| FrameFormat { width, height, timing: Timing::Live };
        assert_eq!(frame(&pixels, format(2, 2)).unwrap(), [0, 1, 2, 4, 5, 6, 12, 13, 14, 16, 17, 18]);
        assert_eq!(frame(&pixels, format(6, 4)).unwrap().len(), 6 * 4 * 3);
    }
}
