//! The guard: a process of its own that puts right what we pressed or changed when we end in the middle of it, killed
//! without a chance to do it ourselves.
//!
//! It is the same binary, started at the first input. It is told over its standard input of each press and change
//! *before* that is sent, and of each release. The end of that input is the end of us, and its turn.

mod owed;
mod process;

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(super) use owed::{HeldKey, Notice, Pressed};
pub use process::run;

use crate::environment::SessionEnvironment;

/// Name of the hidden subcommand that is the guard.
pub const SUBCOMMAND: &str = "guard";

/// The guard answers in a millisecond. One that does not must not hold up the input; it is told all the same.
const ANSWER_BOUND: Duration = Duration::from_millis(500);

/// Our end of the guard, which all parts of the program that change something share. Cheap to clone.
#[derive(Clone)]
pub struct Guard(Arc<Mutex<State>>);

struct State {
    program: PathBuf,
    /// Once the display is known.
    environment: Option<Arc<SessionEnvironment>>,
    running: Option<Running>,
    client: Option<u32>,
    /// Things to undo that have been announced, for a guard that has to be started again.
    undo: Vec<(String, String)>,
}

struct Running {
    child: Child,
    input: ChildStdin,
    answers: ChildStdout,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard {
    /// A guard that has not been started. `program` is our own executable.
    pub(super) fn new(program: PathBuf) -> Self {
        let state = State { program, environment: None, running: None, client: None, undo: Vec::new() };
        Self(Arc::new(Mutex::new(state)))
    }

    /// Announces something that another part of the program is about to change, to be undone under `name` with
    /// `argument` if we do not live to do it. Neither may hold a line end; `name` no space.
    pub fn announce(&self, environment: &Arc<SessionEnvironment>, name: &str, argument: &str) {
        let mut state = self.lock();
        state.environment.get_or_insert_with(|| Arc::clone(environment));
        state.tell(&Notice::Undo(name.to_owned(), argument.to_owned()));
        state.undo.push((name.to_owned(), argument.to_owned()));
    }

    /// Takes an announcement back: it has been undone.
    pub fn settle(&self, name: &str) {
        let mut state = self.lock();
        state.undo.retain(|(other, _)| other != name);
        state.tell(&Notice::Undone(name.to_owned()));
    }

    /// Starts the guard for the connection with this resource base, if it does not run yet.
    pub(super) fn attach(&self, environment: &Arc<SessionEnvironment>, client: u32) {
        let mut state = self.lock();
        state.environment = Some(Arc::clone(environment));
        state.client = Some(client);
        state.tell(&Notice::Client(client));
    }

    /// Tells the guard.
    pub(super) fn tell(&self, notice: &Notice) {
        self.lock().tell(notice);
    }

    /// Tells the guard of a key that somebody holds, and waits until it listens.
    pub(super) fn neutralising(&self, held: HeldKey) {
        let mut state = self.lock();
        state.tell(&Notice::Neutralising(held));
        if let Some(running) = &mut state.running {
            running.await_answer();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, notice: &Notice) {
        let line = notice.line();
        if let Some(running) = &mut self.running
            && running.input.write_all(line.as_bytes()).is_ok()
        {
            return;
        }
        // Not started yet, or ended by somebody: input without a guard is a risk, but no input at all is worse.
        self.running = None;
        let Some(environment) = &self.environment else { return };
        match start(&self.program, environment) {
            Ok(mut running) => {
                let mut lines: String =
                    self.client.map(|base| Notice::Client(base).line()).into_iter().collect();
                for (name, argument) in &self.undo {
                    lines.push_str(&Notice::Undo(name.clone(), argument.clone()).line());
                }
                lines.push_str(&line);
                if running.input.write_all(lines.as_bytes()).is_ok() {
                    self.running = Some(running);
                }
            }
            Err(error) => tracing::warn!(%error, "the guard cannot be started"),
        }
    }
}

impl Running {
    fn await_answer(&mut self) {
        let mut ready = [PollFd::new(&self.answers, PollFlags::IN)];
        let bound = Timespec::try_from(ANSWER_BOUND).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        match poll(&mut ready, Some(&bound)) {
            Ok(count) if count > 0 => {
                let _ = self.answers.read(&mut [0]);
            }
            _ => tracing::warn!("the guard does not answer"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends at the end of its input, which is a field and so is closed after this; a zombie is left to the
        // next wait or to our own end.
        let _ = self.child.try_wait();
    }
}

/// Starts the process, which makes itself a session of its own, out of reach of the terminal. Nothing of ours is
/// inherited but the pipes.
fn start(program: &Path, environment: &SessionEnvironment) -> std::io::Result<Running> {
    let mut command = Command::new(program);
    command.arg0("deskhand").arg(SUBCOMMAND).env_clear().current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    for (name, value) in [
        ("DISPLAY", environment.display.as_ref().map(std::ffi::OsString::from)),
        ("XAUTHORITY", environment.xauthority.clone().map(Into::into)),
        ("HOME", environment.home.clone().map(Into::into)),
        ("DBUS_SESSION_BUS_ADDRESS", environment.session_bus.as_ref().map(std::ffi::OsString::from)),
    ] {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut child = command.spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(answers)) => Ok(Running { child, input, answers }),
        _ => Err(std::io::Error::other("a child without its pipes")),
    }
}
