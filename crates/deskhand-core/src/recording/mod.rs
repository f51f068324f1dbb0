//! Recordings: what sessions leave behind of what they did.
//!
//! A recording belongs to the session that started it, or to the operator, whose recording holds every session's turns. A
//! call that acts is a turn of all that apply: its pictures are taken beside it, and a thread of the recording's
//! own encodes and writes them, so that neither an encoder nor a disk is ever waited for by a call.

mod afterlook;
mod folder;
pub(crate) mod looks;
pub mod render;
pub(crate) mod replay;
pub mod report;
mod secrecy;
pub mod trajectory;
mod turn;
pub mod video;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

pub(crate) use self::afterlook::Afterlooks;
use self::folder::Folder;
use self::trajectory::{FORMAT, Part, Reason, Trajectory, VERSION};
pub(crate) use self::turn::Turn;
use self::video::Filming;
pub(crate) use self::video::VideoRequest;
use self::writer::{Room, Writer};
use crate::consent::gate::Watch;
use crate::desktop::Display;
use crate::engine::Shared;
use crate::error::{Code, Error, Result};
use crate::session::Session;
use crate::timestamp::rfc3339;

/// How long nothing may be called before a recording ends.
pub const IDLE_END: Duration = Duration::from_secs(300);
/// How much a recording may write, unless it is told otherwise.
pub const MAX_BYTES: u64 = 2 * 1024 * 1024 * 1024;
/// The end of a recording waits so long for calls under way and the pictures from after them; later ones are left out.
const TURNS_END: Duration = Duration::from_millis(2500);
/// It waits so long for what is to be written.
const WRITER_END: Duration = Duration::from_secs(3);
/// Recordings that are remembered after their end, for whoever asks what became of them.
const MAX_REMEMBERED: usize = 8;

/// What to record, and how much of it.
#[derive(Clone, Debug)]
pub(crate) struct RecordingRequest {
    pub(crate) folder: PathBuf,
    pub(crate) video: Option<VideoRequest>,
    pub(crate) max_duration: Option<Duration>,
    pub(crate) max_bytes: u64,
}

/// Checks what can be checked of an output folder without looking.
///
/// # Errors
/// `invalid_argument`.
pub(crate) fn check_folder(folder: &Path) -> Result<()> {
    folder::check(folder)
}

/// The recordings of one owner: a session, or the operator.
#[derive(Debug, Default)]
pub struct Recordings {
    list: Mutex<Vec<Arc<Recording>>>,
    running: watch::Sender<usize>,
    /// Held while one is being started.
    starting: tokio::sync::Mutex<()>,
}

impl Recordings {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Recording>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many run; tells when that changes.
    pub fn running(&self) -> watch::Receiver<usize> {
        self.running.subscribe()
    }

    /// Whether one runs.
    pub fn any(&self) -> bool {
        *self.running.borrow() > 0
    }

    fn add(&self, recording: &Arc<Recording>) {
        let mut list = self.list();
        while list.len() >= MAX_REMEMBERED {
            list.remove(0);
        }
        list.push(Arc::clone(recording));
        self.running.send_modify(|running| *running += 1);
    }

    /// Those that run, each with what makes its end wait for a turn.
    pub(crate) fn join(&self) -> Vec<(Arc<Recording>, TaskTrackerToken)> {
        if !self.any() {
            return Vec::new();
        }
        let list = self.list();
        list.iter().filter_map(|recording| Some((Arc::clone(recording), recording.join()?))).collect()
    }

    /// What can be said about them, the newest last.
    pub(crate) fn states(&self) -> Vec<RecordingState> {
        self.list().iter().map(|recording| recording.state()).collect()
    }

    /// Stops those that run, and waits until they are complete. What can be said about them then.
    pub(crate) async fn stop(&self, reason: Reason) -> Vec<RecordingState> {
        let running: Vec<_> = self.list().iter().filter(|each| each.is_running()).cloned().collect();
        for recording in &running {
            recording.stop(reason);
        }
        for recording in &running {
            recording.ended.cancelled().await;
        }
        running.iter().map(|recording| recording.state()).collect()
    }
}

/// Whose recording it is.
#[derive(Clone, Debug)]
pub(crate) enum Owner {
    Session(Weak<Session>),
    Operator(Weak<Shared>),
}

impl Owner {
    /// When it will have been idle for `time`, at the earliest; `None` if the owner is gone.
    fn idle_end(&self, time: Duration) -> Option<Instant> {
        match self {
            Self::Session(session) => Some(session.upgrade()?.idle_end(time)),
            Self::Operator(shared) => Some(shared.upgrade()?.sessions.idle_end(time)),
        }
    }
}

/// One recording.
#[derive(Debug)]
pub(crate) struct Recording {
    folder: PathBuf,
    started: Instant,
    started_at: String,
    /// How long it took, and when it ended, once it has.
    end: OnceLock<(Duration, String)>,
    writer: Writer,
    video: Option<Filming>,
    turns: TaskTracker,
    reason: Mutex<Option<Reason>>,
    /// Cancelled when it is asked to end.
    stopping: CancellationToken,
    /// Cancelled when its end is complete.
    ended: CancellationToken,
}

/// What can be said about a recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RecordingState {
    pub(crate) output_dir: PathBuf,
    pub(crate) running: bool,
    pub(crate) started: String,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<String>,
    /// How long it took, or takes already.
    pub(crate) duration_ms: u64,
    /// Turns that are written.
    pub(crate) turns: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) turns_dropped: u32,
    pub(crate) bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) video: Option<VideoState>,
    /// Why it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    /// More about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

/// What can be said about its video.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct VideoState {
    pub(crate) file: String,
    /// Frames that are written.
    pub(crate) frames: u64,
    pub(crate) frames_dropped: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Recording {
    fn is_running(&self) -> bool {
        !self.ended.is_cancelled()
    }

    /// Makes its end wait for a turn; `None` once it ends.
    fn join(&self) -> Option<TaskTrackerToken> {
        (!self.stopping.is_cancelled()).then(|| self.turns.token())
    }

    fn offer(&self, turn: Arc<turn::Finished>) {
        self.writer.offer(turn);
    }

    /// Asks it to end. The first reason counts.
    pub(crate) fn stop(&self, reason: Reason) {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.stopping.cancel();
    }

    pub(crate) fn state(&self) -> RecordingState {
        let progress = self.writer.progress();
        let reason = *self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        let message = progress.failure.map(|(_, why)| why).or_else(|| self.video.as_ref()?.failure());
        let end = self.end.get();
        let duration = end.map_or_else(|| self.started.elapsed(), |(duration, _)| *duration);
        RecordingState {
            output_dir: self.folder.clone(),
            running: self.is_running(),
            started: self.started_at.clone(),
            ended: end.map(|(_, at)| at.clone()),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            turns: progress.turns,
            turns_dropped: progress.dropped,
            bytes: progress.bytes + self.video.as_ref().map_or(0, Filming::bytes),
            video: self.video.as_ref().map(Filming::state),
            reason,
            message,
        }
    }
}

/// Begins a recording.
///
/// # Errors
/// `file_error`, `recording_active`, `video_unavailable`, `consent_watch_unavailable`, and those of the desktop.
pub(crate) async fn start(
    shared: &Arc<Shared>,
    session: &Arc<Session>,
    request: RecordingRequest,
) -> Result<RecordingState> {
    let (recordings, owner) = match session.anonymous {
        true => (&shared.recordings, Owner::Operator(Arc::downgrade(shared))),
        false => (&session.recordings, Owner::Session(Arc::downgrade(session))),
    };
    let displays = shared.desktop.screen.displays().await?;
    if request.video.is_some() {
        shared.host.video.check().map_err(|why| Error::new(Code::VideoUnavailable, why))?;
    }
    let watch = shared.gate.watch(crate::tools::Surface::Screen)?;
    let watched = Watched { owner: owner.clone(), watch, max_duration: request.max_duration };
    // One after the other, so that an owner never has two that run.
    let _starting = recordings.starting.lock().await;
    if let Some(running) = recordings.list().iter().find(|each| each.is_running()) {
        let message =
            format!("{} is being recorded into already; stop_recording ends that", running.folder.display());
        return Err(Error::new(Code::RecordingActive, message));
    }
    // A disk may be slow: nobody else waits for it.
    let (own, title) = (Arc::clone(shared), session.title());
    let begun = tokio::task::spawn_blocking(move || begin(&own, title, &request, &displays)).await;
    let recording = begun.map_err(|error| Error::new(Code::InternalError, error.to_string()))??;
    let recording = Arc::new(recording);
    recordings.add(&recording);
    if session.ended.is_cancelled() {
        recording.stop(Reason::SessionEnd);
    }
    let state = recording.state();
    tokio::spawn(live(Arc::downgrade(shared), owner, recording, watched));
    Ok(state)
}

/// Makes the folder, writes the beginning, and starts what writes the rest. Waits for the disk, within a Tokio runtime.
fn begin(
    shared: &Arc<Shared>,
    session: Option<String>,
    request: &RecordingRequest,
    displays: &[Display],
) -> Result<Recording> {
    let folder = Folder::open(&request.folder)?;
    let started_at = rfc3339(SystemTime::now());
    let room = Arc::new(Room::new(request.max_bytes));
    let beginning = || {
        let record = request
            .video
            .map(|video| video.record(displays, folder.free_name("video", "mp4")))
            .transpose()?;
        let part = Part {
            started: started_at.clone(),
            ended: None,
            reason: None,
            first_turn: folder.next_turn,
            turns: 0,
            turns_dropped: 0,
            video: record.clone(),
        };
        let trajectory = trajectory_with(part, folder.earlier.clone(), shared, session, displays);
        folder.write_trajectory(&trajectory).map_err(|error| not_recorded(&folder.path, &error))?;
        let video = record
            .map(|record| Filming::start(shared, &record, &folder.path, Arc::clone(&room)))
            .transpose()?;
        Ok((trajectory, video))
    };
    let (trajectory, video) = match beginning() {
        Ok(begun) => begun,
        Err(error) => {
            folder.abandon();
            return Err(error);
        }
    };
    let path = folder.path.clone();
    let writer = Writer::start(folder, trajectory, room).map_err(|error| not_recorded(&path, &error))?;
    Ok(Recording {
        folder: path,
        started: Instant::now(),
        started_at,
        end: OnceLock::new(),
        writer,
        video,
        turns: TaskTracker::new(),
        reason: Mutex::default(),
        stopping: CancellationToken::new(),
        ended: CancellationToken::new(),
    })
}

fn not_recorded(folder: &Path, error: &std::io::Error) -> Error {
    Error::new(Code::FileError, format!("{}: {error}; nothing was recorded", folder.display()))
}

/// The trajectory that `part` belongs to: the one that is added to, or a new one.
fn trajectory_with(
    part: Part,
    earlier: Option<Trajectory>,
    shared: &Shared,
    session: Option<String>,
    displays: &[Display],
) -> Trajectory {
    let mut trajectory = earlier.unwrap_or_else(|| Trajectory {
        format: FORMAT.to_owned(),
        version: VERSION,
        driver: trajectory::Driver {
            name: "deskhand".to_owned(),
            version: shared.host.version.clone(),
            build: shared.host.build.clone(),
        },
        session,
        displays: displays.iter().map(Into::into).collect(),
        parts: Vec::new(),
    });
    trajectory.parts.push(part);
    trajectory
}

/// What a recording ends by, besides being asked to.
struct Watched {
    owner: Owner,
    watch: Watch,
    max_duration: Option<Duration>,
}

/// The life of a recording: waits for a reason to end it, and ends it.
async fn live(shared: Weak<Shared>, owner: Owner, recording: Arc<Recording>, watched: Watched) {
    if let Some(reason) = watched.reason(&shared, &recording).await {
        recording.stop(reason);
    }
    // What is still to be written is no part of it.
    let _ = recording.end.set((recording.started.elapsed(), rfc3339(SystemTime::now())));
    let reason = recording.reason.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(Reason::Stopped);
    tracing::debug!(folder = %recording.folder.display(), %reason, "a recording ends");
    if reason == Reason::ConsentRevoked {
        // Pictures that were taken before it are whole; none is taken any more.
        if let Some(video) = &recording.video {
            video.stop_looking();
        }
    }
    recording.turns.close();
    if let Some(shared) = shared.upgrade() {
        shared.afterlooks.hurry();
    }
    if tokio::time::timeout(TURNS_END, recording.turns.wait()).await.is_err() {
        tracing::debug!("a recording ends while calls go on: they are no turns of it");
    }
    if let Some(video) = &recording.video {
        video.stop().await;
    }
    recording.writer.close(reason);
    if tokio::time::timeout(WRITER_END, recording.writer.done().cancelled()).await.is_err() {
        tracing::warn!("a recording is still being written");
    }
    recording.ended.cancel();
    let done = |recordings: &Recordings| recordings.running.send_modify(|running| *running -= 1);
    match owner {
        Owner::Session(session) => {
            if let Some(session) = session.upgrade() {
                done(&session.recordings);
            }
        }
        Owner::Operator(shared) => {
            if let Some(shared) = shared.upgrade() {
                done(&shared.recordings);
            }
        }
    }
}

impl Watched {
    /// Waits for a reason to end it; `None`: it was asked to.
    async fn reason(&self, shared: &Weak<Shared>, recording: &Recording) -> Option<Reason> {
        let lost = shared.upgrade().map(|shared| shared.desktop_lost.clone()).unwrap_or_default();
        let idle_time = shared.upgrade().and_then(|shared| shared.host.recording_idle).unwrap_or(IDLE_END);
        let filming_failed = async {
            match &recording.video {
                Some(video) => video.failed().cancelled().await,
                None => std::future::pending().await,
            }
        };
        let too_long = async {
            match self.max_duration {
                Some(time) => tokio::time::sleep_until(recording.started + time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = recording.stopping.cancelled() => None,
            () = self.watch.revoked().cancelled() => Some(Reason::ConsentRevoked),
            () = recording.writer.failed().cancelled() => {
                Some(recording.writer.progress().failure.map_or(Reason::WriteFailed, |(reason, _)| reason))
            }
            () = filming_failed => recording.video.as_ref().map(Filming::failure_reason),
            () = lost.cancelled() => Some(Reason::DesktopLost),
            () = too_long => Some(Reason::MaxDuration),
            () = self.idle(recording, idle_time) => Some(Reason::Idle),
        }
    }

    /// Waits until the owner has called nothing for so long.
    async fn idle(&self, recording: &Recording, time: Duration) {
        loop {
            let Some(end) = self.owner.idle_end(time) else { return };
            let end = end.max(recording.started + time);
            if end <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(end).await;
        }
    }
}
