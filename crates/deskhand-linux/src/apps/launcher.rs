//! Starting programs: as children of this process, or through the supervisor of a private desktop.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use deskhand_core::desktop::PortError;

use crate::process;

/// Exit codes are kept of so many programs; older ones are forgotten.
const MAX_EXITS: usize = 256;

/// A program, with everything that decides how it runs.
#[derive(Clone, Debug)]
pub struct ProgramStart {
    /// Its file.
    pub path: PathBuf,
    /// Arguments, without its own name.
    pub args: Vec<OsString>,
    /// Complete environment.
    pub variables: BTreeMap<OsString, OsString>,
    /// Working folder; `None`: that of the starting process.
    pub folder: Option<PathBuf>,
}

/// Starts programs and remembers how they ended.
#[async_trait]
pub trait Launcher: Send + Sync {
    /// Starts a program detached from us, without standard streams, in a process group of its own.
    ///
    /// # Errors
    /// `LaunchFailed`; `DesktopLost` and `Unavailable` on a private desktop.
    async fn start(&self, program: ProgramStart) -> Result<u32, PortError>;

    /// Exit code (or 128 plus the signal) of a started program that has ended.
    async fn exited(&self, pid: u32) -> Option<i32>;

    /// Processes that make up the desktop and must not be ended.
    async fn components(&self) -> Vec<u32>;
}

/// How programs ended, of the last [`MAX_EXITS`].
#[derive(Debug, Default)]
pub(crate) struct Exits(Mutex<VecDeque<(u32, i32)>>);

impl Exits {
    pub(crate) fn add(&self, pid: u32, code: i32) {
        let mut exits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        exits.push_front((pid, code));
        exits.truncate(MAX_EXITS);
    }

    pub(crate) fn get(&self, pid: u32) -> Option<i32> {
        let exits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        exits.iter().find(|(each, _)| *each == pid).map(|(_, code)| *code)
    }

    /// A new process has this number now.
    pub(crate) fn forget(&self, pid: u32) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|(each, _)| *each != pid);
    }
}

/// Starts programs as children of this process. They stay when it ends.
#[derive(Debug, Default)]
pub struct LocalLauncher {
    exits: Arc<Exits>,
}

#[async_trait]
impl Launcher for LocalLauncher {
    async fn start(&self, program: ProgramStart) -> Result<u32, PortError> {
        process::keep_descriptors_to_ourselves();
        let mut command = std::process::Command::new(&program.path);
        command.args(&program.args).env_clear().envs(&program.variables);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        // A session of its own, and so a process group: it does not end with our terminal.
        let detach = || rustix::process::setsid().map(drop).map_err(io::Error::from);
        // SAFETY: one plain system call, no allocation.
        unsafe { command.pre_exec(detach) };
        // No death signal: that would follow the runtime's thread that happens to run this.
        let mut child = tokio::process::Command::from(command)
            .spawn()
            .map_err(|error| PortError::LaunchFailed(start_error(&program, &error)))?;
        let pid = child.id().ok_or_else(|| PortError::LaunchFailed("it ended at once".to_owned()))?;
        self.exits.forget(pid);
        let exits = Arc::clone(&self.exits);
        tokio::spawn(async move {
            if let Ok(status) = child.wait().await {
                exits.add(pid, process::exit_code(status));
            }
        });
        Ok(pid)
    }

    async fn exited(&self, pid: u32) -> Option<i32> {
        self.exits.get(pid)
    }

    async fn components(&self) -> Vec<u32> {
        Vec::new()
    }
}

/// Why a program was not started, in words.
pub(crate) fn start_error(program: &ProgramStart, error: &io::Error) -> String {
    let path = program.path.display();
    match &program.folder {
        Some(folder) if error.kind() == io::ErrorKind::NotFound && !folder.is_dir() => {
            format!("{path} was not started: the working folder {} does not exist", folder.display())
        }
        _ => format!("{path} was not started: {error}"),
    }
}
