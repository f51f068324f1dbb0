//! Recordings: what sessions leave behind of what they did.
//!
//! A recording belongs to the session that started it, or to the operator, whose recording holds every session's turns. A
//! call that acts is a turn of all that apply: its pictures are taken beside it, and a thread of the recording's
//! own encodes and writes them, so that neither an encoder nor a disk is ever waited for by a call.

mod folder;
pub mod render;
pub(crate) mod replay;
pub mod report;
mod secrecy;
pub mod trajectory;
mod turn;
pub mod video;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

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
        RecordingState {
            output_dir: self.folder.clone(),
            running: self.is_running(),
            started: self.started_at.clone(),
            duration_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
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
    if let Some(video) = &request.video {
        shared.host.video.check().map_err(|why| Error::new(Code::VideoUnavailable, why))?;
        video.display(&displays)?;
    }
    let watch = shared.gate.watch(crate::tools::Surface::Screen)?;
    let path = request.folder.clone();
    let opened = tokio::task::spawn_blocking(move || Folder::open(&path)).await;
    let folder = opened.map_err(|error| Error::new(Code::InternalError, error.to_string()))??;
    let (recording, watched) = {
        // The list is locked until the recording is in it, so that an owner never has two that run.
        let mut list = recordings.list();
        if session.ended.is_cancelled() {
            folder.abandon();
            return Err(Error::new(Code::SessionEnded, "this session has ended; nothing was recorded"));
        }
        if let Some(running) = list.iter().find(|each| each.is_running()) {
            let message = format!(
                "{} is being recorded into already; stop_recording ends that",
                running.folder.display()
            );
            folder.abandon();
            return Err(Error::new(Code::RecordingActive, message));
        }
        let recording = Arc::new(begin(shared, session, &request, folder, &displays)?);
        while list.len() >= MAX_REMEMBERED {
            list.remove(0);
        }
        list.push(Arc::clone(&recording));
        recordings.running.send_modify(|running| *running += 1);
        (recording, Watched { owner: owner.clone(), watch, request })
    };
    let state = recording.state();
    tokio::spawn(live(Arc::downgrade(shared), owner, recording, watched));
    Ok(state)
}

/// Writes the beginning, and starts what writes the rest.
fn begin(
    shared: &Arc<Shared>,
    session: &Session,
    request: &RecordingRequest,
    folder: Folder,
    displays: &[Display],
) -> Result<Recording> {
    let started_at = rfc3339(SystemTime::now());
    let first_turn = folder.next_turn;
    let path = folder.path.clone();
    let fail = |error: std::io::Error| {
        Error::new(Code::FileError, format!("{}: {error}; nothing was recorded", path.display()))
    };
    let video = match &request.video {
        Some(video) => Some(video.plan(displays, folder.free_name("video", "mp4"))?),
        None => None,
    };
    let part = Part {
        started: started_at.clone(),
        ended: None,
        reason: None,
        first_turn,
        turns: 0,
        turns_dropped: 0,
        video: video.as_ref().map(|plan| plan.record.clone()),
    };
    let host = &shared.host;
    let mut trajectory = folder.earlier.clone().unwrap_or_else(|| Trajectory {
        format: FORMAT.to_owned(),
        version: VERSION,
        driver: trajectory::Driver {
            name: "deskhand".to_owned(),
            version: host.version.clone(),
            build: host.build.clone(),
        },
        session: session.title(),
        displays: displays.iter().map(Into::into).collect(),
        parts: Vec::new(),
    });
    trajectory.parts.push(part);
    if let Err(error) = folder.write_trajectory(&trajectory) {
        let error = fail(error);
        folder.abandon();
        return Err(error);
    }
    let room = Arc::new(Room::new(request.max_bytes));
    let video = match video {
        Some(plan) => Some(Filming::start(shared, plan, &path, Arc::clone(&room))?),
        None => None,
    };
    let writer = Writer::start(folder, trajectory, room).map_err(fail)?;
    Ok(Recording {
        folder: path,
        started: Instant::now(),
        started_at,
        writer,
        video,
        turns: TaskTracker::new(),
        reason: Mutex::default(),
        stopping: CancellationToken::new(),
        ended: CancellationToken::new(),
    })
}

/// What a recording ends by, besides being asked to.
struct Watched {
    owner: Owner,
    watch: Watch,
    request: RecordingRequest,
}

/// The life of a recording: waits for a reason to end it, and ends it.
async fn live(shared: Weak<Shared>, owner: Owner, recording: Arc<Recording>, watched: Watched) {
    if let Some(reason) = watched.reason(&shared, &recording).await {
        recording.stop(reason);
    }
    let reason = recording.reason.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(Reason::Stopped);
    tracing::debug!(folder = %recording.folder.display(), %reason, "a recording ends");
    if reason == Reason::ConsentRevoked {
        // Pictures that were taken before it are whole; none is taken any more.
        if let Some(video) = &recording.video {
            video.stop_looking();
        }
    }
    recording.turns.close();
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
            match self.request.max_duration {
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
