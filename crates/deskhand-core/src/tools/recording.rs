//! The tools that record.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool};
use crate::call::SessionId;
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::recording::trajectory::{Reason, counted};
use crate::recording::video::{FPS, MAX_FPS};
use crate::recording::{self, MAX_BYTES, RecordingRequest, RecordingState, VideoRequest};

/// Longest recording: a day.
const MAX_DURATION_S: u64 = 24 * 3600;
/// Smallest bound on bytes: a handful of turns.
const MIN_BYTES: u64 = 1024 * 1024;
/// Largest: what a disk of today has.
const MAX_MAX_BYTES: u64 = 1 << 40;

/// Begins a recording.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartArguments {
    /// Absolute path of a new folder, or of a recording to add to.
    output_dir: PathBuf,
    /// Film the display too.
    record_video: Option<bool>,
    /// Display to film.
    display: Option<u32>,
    /// Most frames a second.
    #[schemars(range(min = 1, max = 30))]
    fps: Option<u32>,
    /// It ends then.
    #[schemars(range(min = 1, max = 86400))]
    max_duration_s: Option<u64>,
    /// It ends then; 2 GiB if not given.
    #[schemars(range(min = 1_048_576, max = 1_099_511_627_776u64))]
    max_bytes: Option<u64>,
}

/// What is being recorded, and what was.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Recorded {
    recordings: Vec<RecordingState>,
    /// Of a stop that finds nothing running: what ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<RecordingState>,
}

impl Recorded {
    fn of(recordings: Vec<RecordingState>) -> Self {
        Self { recordings, last: None }
    }

    /// What was stopped; if nothing, what had ended before.
    fn stopped(recordings: Vec<RecordingState>, before: impl IntoIterator<Item = RecordingState>) -> Self {
        let last = match recordings.is_empty() {
            true => before.into_iter().filter(|state| !state.running).max_by(|a, b| a.ended.cmp(&b.ended)),
            false => None,
        };
        Self { recordings, last }
    }
}

fn line(state: &RecordingState) -> String {
    let folder = state.output_dir.display();
    let turns = counted(state.turns as usize, "turn");
    let video = match &state.video {
        Some(video) => format!(", video {} with {} frames", video.file, video.frames),
        None => String::new(),
    };
    let dropped = match state.turns_dropped {
        0 => String::new(),
        dropped => format!(", {} dropped: the disk is too slow", counted(dropped as usize, "turn")),
    };
    let what = format!("{turns}{video}{dropped}, {} bytes", state.bytes);
    let more = state.message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default();
    match (state.running, state.reason) {
        (true, None) => format!("recording into {folder} for {} s: {what}", state.duration_ms / 1000),
        (true, Some(reason)) => format!("recording into {folder} ends ({reason}): {what}{more}"),
        (false, Some(reason)) => format!("recorded into {folder}: {what}; ended: {reason}{more}"),
        (false, None) => format!("recorded into {folder}: {what}"),
    }
}

impl Reply for Recorded {
    fn text(&self) -> String {
        if self.recordings.is_empty() {
            let nothing = "nothing is being recorded".to_owned();
            return match &self.last {
                None => nothing,
                Some(last) => {
                    let when = last.ended.as_deref().unwrap_or("before");
                    format!("{nothing}; the last one ended at {when}: {}", line(last))
                }
            };
        }
        self.recordings.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(super) struct StartRecording;

impl Tool for StartRecording {
    const SPEC: Spec = Spec {
        name: "start_recording",
        description: "Record this session's acting calls into a folder, with pictures from before and after. Ends with \
                      stop_recording, the session, or 5 idle minutes. Password fields stay secret.",
        surface: Surface::Screen,
        queue: None,
        destructive: false,
        idempotent: false,
        listed: true,
        example: r#"{"output_dir": "/home/ada/recordings/1"}"#,
    };
    type Arguments = StartArguments;
    type Reply = Recorded;

    fn check(arguments: &StartArguments) -> Result<()> {
        recording::check_folder(&arguments.output_dir)?;
        let StartArguments { fps, max_duration_s, max_bytes, display, .. } = arguments;
        crate::settings::within("fps", *fps, &(1..=MAX_FPS))?;
        crate::settings::within("max_duration_s", *max_duration_s, &(1..=MAX_DURATION_S))?;
        crate::settings::within("max_bytes", *max_bytes, &(MIN_BYTES..=MAX_MAX_BYTES))?;
        if arguments.record_video != Some(true) {
            for (name, given) in [("fps", fps.is_some()), ("display", display.is_some())] {
                if given {
                    return Err(Error::argument(name, "belongs to a video; give `record_video` too"));
                }
            }
        }
        Ok(())
    }

    async fn run(arguments: StartArguments, context: Context) -> Result<Recorded> {
        let StartArguments { output_dir, record_video, display, fps, max_duration_s, max_bytes } = arguments;
        let video = (record_video == Some(true)).then(|| VideoRequest { display, fps: fps.unwrap_or(FPS) });
        let request = RecordingRequest {
            folder: output_dir,
            video,
            max_duration: max_duration_s.map(Duration::from_secs),
            max_bytes: max_bytes.unwrap_or(MAX_BYTES),
        };
        let state = recording::start(context.shared(), context.own_session(), request).await?;
        Ok(Recorded::of(vec![state]))
    }
}

/// Which recordings to stop.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StopArguments {
    /// Whose, for the operator.
    session: Option<String>,
}

pub(super) struct StopRecording;

impl Tool for StopRecording {
    const SPEC: Spec = Spec {
        name: "stop_recording",
        description: "Stop this session's recording. Its files are complete then. If none runs, tells how the last one ended.",
        idempotent: true,
        example: "{}",
        ..StartRecording::SPEC
    };
    type Arguments = StopArguments;
    type Reply = Recorded;

    async fn run(arguments: StopArguments, context: Context) -> Result<Recorded> {
        let own = context.own_session();
        if !own.anonymous {
            if arguments.session.as_deref().is_some_and(|named| *named != *own.lane) {
                let message = "is for the operator; a session stops its own recording alone";
                return Err(Error::argument("session", message));
            }
            let stopped = own.recordings.stop(Reason::Stopped).await;
            return Ok(Recorded::stopped(stopped, own.recordings.states()));
        }
        if let Some(named) = &arguments.session {
            let Some(session) = context.sessions().get(&SessionId::new(named)) else {
                return Err(Error::new(
                    Code::UnknownHandle,
                    "there is no such session; list_sessions has them",
                ));
            };
            let stopped = session.recordings.stop(Reason::OperatorStop).await;
            return Ok(Recorded::stopped(stopped, session.recordings.states()));
        }
        let sessions = context.sessions().all();
        let ends = sessions.iter().map(|session| session.recordings.stop(Reason::OperatorStop));
        let (mut recordings, others) = tokio::join!(
            context.shared().recordings.stop(Reason::OperatorStop),
            futures_util::future::join_all(ends)
        );
        recordings.extend(others.into_iter().flatten());
        let mut before = context.shared().recordings.states();
        before.extend(sessions.iter().flat_map(|session| session.recordings.states()));
        Ok(Recorded::stopped(recordings, before))
    }
}

pub(super) struct GetRecordingState;

impl Tool for GetRecordingState {
    const SPEC: Spec = Spec {
        name: "get_recording_state",
        description: "What this session records, and what became of its last recordings.",
        surface: Surface::None,
        idempotent: true,
        listed: false,
        example: "{}",
        ..StartRecording::SPEC
    };
    type Arguments = Nothing;
    type Reply = Recorded;

    async fn run(_: Nothing, context: Context) -> Result<Recorded> {
        let own = context.own_session();
        if !own.anonymous {
            return Ok(Recorded::of(own.recordings.states()));
        }
        let mut recordings = context.shared().recordings.states();
        for session in context.sessions().all() {
            recordings.extend(session.recordings.states());
        }
        Ok(Recorded::of(recordings))
    }
}

/// Whether videos can be made.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Encoder {
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Reply for Encoder {
    fn text(&self) -> String {
        self.message.clone().unwrap_or_else(|| "ffmpeg is there; videos can be recorded".to_owned())
    }
}

pub(super) struct InstallFfmpeg;

impl Tool for InstallFfmpeg {
    const SPEC: Spec = Spec {
        name: "install_ffmpeg",
        description: "Whether ffmpeg is there, which videos need, and the command that installs it. Installs nothing itself.",
        surface: Surface::Control,
        idempotent: true,
        listed: false,
        example: "{}",
        ..StartRecording::SPEC
    };
    type Arguments = Nothing;
    type Reply = Encoder;

    async fn run(_: Nothing, context: Context) -> Result<Encoder> {
        let message = context.host().video.check().err();
        Ok(Encoder { available: message.is_none(), message })
    }
}
