//! A runtime folder, programs, and the processes that a test starts in it.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use deskhand_service::folder::Folder;
use deskhand_service::holder::Holder;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, kill_process, kill_process_group, pidfd_open, waitpid,
};

use crate::starter::{self, Part};

/// Longer than any test waits.
pub(crate) const PATIENT: u32 = 10_000;

pub(crate) const DESKTOP: &str = ":0";

pub(crate) struct Stage {
    place: tempfile::TempDir,
    pub(crate) folder: Folder,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(&place.path().join("run")).unwrap();
        Self { place, folder }
    }

    /// A build of the program at a path of its own: its content differs from others' by `mark`.
    pub(crate) fn publish(&self, name: &str, mark: &str) -> PathBuf {
        let path = self.place.path().join(name);
        let new = path.with_extension("new");
        std::fs::copy(starter::program(), &new).unwrap();
        std::fs::OpenOptions::new().append(true).open(&new).unwrap().write_all(mark.as_bytes()).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }

    /// Who owns the desktop.
    pub(crate) fn holder(&self) -> Option<Holder> {
        self.folder.holder(&DESKTOP.parse::<deskhand_service::desktop::DesktopName>().unwrap().into())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("x0.sock")
    }

    /// The pid that whoever listens answers with.
    pub(crate) fn asked(&self) -> u32 {
        let mut answer = String::new();
        BufReader::new(UnixStream::connect(self.socket()).unwrap()).read_line(&mut answer).unwrap();
        answer.trim().parse().unwrap()
    }

    /// Asks the service to end, and waits until it has.
    pub(crate) fn end_service(&self) {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.write_all(b"end").unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }

    pub(crate) fn command(&self, program: &Path, part: Part, patience: u32) -> Command {
        let mut command = Command::new(program);
        command.arg(part.name()).arg(self.folder.path()).arg(DESKTOP).arg(patience.to_string());
        command
    }

    /// Starts one that begins at once.
    pub(crate) fn start(&self, part: Part, patience: u32) -> Started {
        Started::new(self.command(&starter::program(), part, patience).stdin(Stdio::null()))
    }

    /// Starts one of another build that begins at once.
    pub(crate) fn start_build(&self, program: &Path, part: Part, patience: u32) -> Started {
        Started::new(self.command(program, part, patience).stdin(Stdio::null()))
    }

    /// Starts several that begin at the same moment: when the gate is dropped.
    pub(crate) fn line_up(&self, program: &Path, part: Part, count: usize) -> (Vec<Started>, PipeWriter) {
        let (reader, gate) = std::io::pipe().unwrap();
        let wait = |reader: &PipeReader| Stdio::from(reader.try_clone().unwrap());
        let start = |_| Started::new(self.command(program, part, PATIENT).stdin(wait(&reader)));
        ((0..count).map(start).collect(), gate)
    }
}

/// Everything that names the folder is ended, launched services and those that only tried to become one: a service's end is
/// the beginning of the next one as long as somebody tries.
impl Drop for Stage {
    fn drop(&mut self) {
        let folder = self.folder.path().as_os_str().as_encoded_bytes();
        loop {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let of_ours = |pid: &u32| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == folder))
            };
            let left: Vec<u32> = pids.filter(of_ours).collect();
            if left.is_empty() {
                return;
            }
            left.into_iter().for_each(kill_and_wait);
        }
    }
}

fn typed(pid: u32) -> Pid {
    Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

/// Kills a process, ours or not, and waits until it has ended.
pub(crate) fn kill_and_wait(pid: u32) {
    let Ok(end) = pidfd_open(typed(pid), PidfdFlags::empty()) else { return };
    let _ = kill_process(typed(pid), Signal::KILL);
    let mut ended = [rustix::event::PollFd::new(&end, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut ended, None).unwrap();
}

/// A process that a test has started, in a process group of its own. It is killed when this is dropped.
pub(crate) struct Started {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Started {
    pub(crate) fn new(command: &mut Command) -> Self {
        let mut child = command.process_group(0).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next thing that it says, whatever it is; `None` at its end.
    pub(crate) fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        (self.lines.read_line(&mut line).unwrap() > 0).then(|| line.trim_end().to_owned())
    }

    /// What came of it: `None` if it ended without having said.
    pub(crate) fn outcome(&mut self) -> Option<String> {
        std::iter::from_fn(|| self.next()).find(|line| !line.starts_with("trying"))
    }

    /// Its outcome has to be `what` with a pid, which is returned.
    #[track_caller]
    pub(crate) fn expect(&mut self, what: &str) -> u32 {
        let outcome = self.outcome().expect("it ended without a word");
        let pid = outcome.strip_prefix(what).and_then(|rest| rest.trim().parse().ok());
        pid.unwrap_or_else(|| panic!("{what} expected, not: {outcome}"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(typed(self.pid()), signal).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }

    /// Kills its whole process group.
    pub(crate) fn kill_group(&mut self) {
        kill_process_group(typed(self.pid()), Signal::KILL).unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it and waits until it is.
    pub(crate) fn stop(&self) {
        self.signal(Signal::STOP);
        let (_, status) = waitpid(Some(typed(self.pid())), WaitOptions::UNTRACED).unwrap().unwrap();
        assert!(status.stopped());
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.kill();
    }
}
