//! Videos by `ffmpeg`, a process of its own that is given frames through a pipe. It ends when the pipe does, so none outlives
//! us, and what it has written by then is a whole file: each frame is a fragment of its own, and flushed.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use deskhand_core::recording::video::{FrameFormat, GivingUp, Timing, VideoEncoder, VideoFile};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// What it is called.
const PROGRAM: &str = "ffmpeg";
/// How much less of the processor it gets than what people look at.
const NICENESS: i32 = 10;
/// Bytes of what it says that are kept.
const MAX_WORDS: u64 = 4096;
/// Frames between two that stand alone, from which a player can begin.
const KEY_FRAMES: &str = "50";

/// The `ffmpeg` of the search path, looked for when it is needed: it may be installed meanwhile.
#[derive(Clone, Debug)]
pub struct Ffmpeg {
    folders: Vec<PathBuf>,
}

impl Ffmpeg {
    /// Looks for it in these folders, as `PATH` has them.
    pub fn in_path(path: Option<&std::ffi::OsStr>) -> Self {
        let folders = path.into_iter().flat_map(std::env::split_paths);
        Self { folders: folders.filter(|folder| folder.is_absolute()).collect() }
    }

    fn program(&self) -> Option<PathBuf> {
        self.folders.iter().map(|folder| folder.join(PROGRAM)).find(|file| is_executable(file))
    }
}

fn is_executable(file: &Path) -> bool {
    use rustix::fs::{Access, access};

    file.is_file() && access(file, Access::EXEC_OK).is_ok()
}

impl VideoEncoder for Ffmpeg {
    fn check(&self) -> Result<(), String> {
        match self.program() {
            Some(_) => Ok(()),
            None => Err(
                "ffmpeg is missing; on Debian and Ubuntu: sudo apt install ffmpeg (the package is `ffmpeg`)"
                    .to_owned(),
            ),
        }
    }

    fn begin(&self, file: &Path, format: FrameFormat) -> io::Result<Box<dyn VideoFile>> {
        let program = self.program().ok_or(ErrorKind::NotFound)?;
        // Made by us, so that it is new and nobody else's to read; ffmpeg writes over what it is given.
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        let mut child = command(&program, file, format).spawn().inspect_err(|_| {
            let _ = std::fs::remove_file(file);
        })?;
        let input = child.stdin.take();
        let handle = Pid::from_raw(i32::try_from(child.id()).unwrap_or_default())
            .ok_or(ErrorKind::NotFound)
            .map_err(io::Error::from)
            .and_then(|pid| {
                rustix::process::setpriority_process(Some(pid), NICENESS)?;
                Ok(pidfd_open(pid, PidfdFlags::empty())?)
            });
        match handle {
            Ok(handle) => Ok(Box::new(Encoding { child, input, handle })),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

fn command(program: &Path, file: &Path, FrameFormat { width, height, timing }: FrameFormat) -> Command {
    let mut command = Command::new(program);
    command.args(["-hide_banner", "-loglevel", "error", "-nostdin", "-y"]);
    // Nothing is to be guessed of the input.
    command.args(["-probesize", "32", "-analyzeduration", "0"]);
    command
        .args(["-f", "rawvideo", "-pixel_format", "rgb24", "-video_size"])
        .arg(format!("{width}x{height}"));
    match timing {
        // The rate is only the grain of time then: milliseconds.
        Timing::Live => command.args(["-framerate", "1000", "-use_wallclock_as_timestamps", "1"]),
        Timing::Rate(fps) => command.arg("-framerate").arg(fps.to_string()),
    };
    command.args(["-i", "pipe:0", "-an", "-fps_mode", "vfr"]);
    command.args(["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-crf", "23"]);
    command.args(["-pix_fmt", "yuv420p", "-g", KEY_FRAMES, "-threads", "1"]);
    command.args(["-movflags", "+frag_every_frame+empty_moov+default_base_moof", "-flush_packets", "1"]);
    command.args(["-f", "mp4"]);
    let mut url = std::ffi::OsString::from("file:");
    url.push(file);
    command.arg(url);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl+C at a terminal is for us: we end it by its input, so that its file is complete.
    command.process_group(0);
    command
}

/// A running `ffmpeg`.
struct Encoding {
    child: Child,
    input: Option<ChildStdin>,
    handle: OwnedFd,
}

impl Encoding {
    /// Waits until it has ended.
    fn ends(&self, within: Duration) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: within.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: within.subsec_nanos().into(),
        };
        let mut ends = [PollFd::new(&self.handle, PollFlags::IN)];
        Ok(poll(&mut ends, Some(&timeout))? > 0)
    }

    /// Why it ended, as far as it said.
    fn explain(&mut self, error: io::Error) -> io::Error {
        let mut words = String::new();
        if let Some(said) = self.child.stderr.take() {
            // It has ended or is killed, so this ends too; what it said is not needed to know that it failed.
            let _ = said.take(MAX_WORDS).read_to_string(&mut words);
        }
        let last = words.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
        let kind = match words.contains("No space left on device") {
            true => ErrorKind::StorageFull,
            false => error.kind(),
        };
        match last {
            "" => io::Error::new(kind, format!("ffmpeg: {error}")),
            said => io::Error::new(kind, format!("ffmpeg: {said}")),
        }
    }

    fn end(&mut self, within: Duration) -> io::Result<()> {
        drop(self.input.take());
        if !self.ends(within)? {
            self.child.kill()?;
            self.child.wait()?;
            return Err(self.explain(io::Error::new(ErrorKind::TimedOut, "it did not end in time")));
        }
        let status = self.child.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(self.explain(io::Error::other(status.to_string()))),
        }
    }
}

/// How long one that has closed its input may take to end.
const BROKEN_END: Duration = Duration::from_secs(1);

impl VideoFile for Encoding {
    fn write(&mut self, rgb: &[u8]) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(ErrorKind::BrokenPipe.into()) };
        let Err(error) = input.write_all(rgb) else { return Ok(()) };
        Err(match self.end(BROKEN_END) {
            Err(explained) => explained,
            Ok(()) => error,
        })
    }

    fn finish(mut self: Box<Self>, within: Duration) -> io::Result<()> {
        match self.input {
            Some(_) => self.end(within),
            // It has failed before, which was told then.
            None => Ok(()),
        }
    }

    fn giving_up(&self) -> io::Result<GivingUp> {
        let handle = self.handle.try_clone()?;
        Ok(Box::new(move || {
            // One that has ended meanwhile needs none.
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }))
    }
}

impl Drop for Encoding {
    fn drop(&mut self) {
        // Neither fails for one that has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
