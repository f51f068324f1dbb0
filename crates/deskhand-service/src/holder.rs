//! Who holds the locks of a desktop: the record in its lock files.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::build::Build;
use crate::desktop::DesktopNames;
use crate::process;

/// How long a service lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lifetime {
    /// Until it is told to end.
    Persistent,
    /// Until its last client has left and everything of it is cleaned up.
    Managed,
}

impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Persistent => "persistent",
            Self::Managed => "managed",
        })
    }
}

/// As what a process owns a desktop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// For all who connect.
    Service {
        /// Where it listens, or is about to.
        socket: PathBuf,
        /// How long it lives.
        lifetime: Lifetime,
    },
    /// For one client, over its standard input and output. Nobody else can use the desktop meanwhile.
    InProcess,
}

/// A process that owns a desktop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id, in its own pid namespace.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did: tells it from a later process with the same id.
    pub started: u64,
    /// Its pid namespace.
    pub namespace: String,
    /// Its build.
    pub build: Build,
    /// The desktop.
    pub desktop: DesktopNames,
    /// As what it owns it.
    pub role: Role,
}

/// What is to be seen of a holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It runs, or waits for something.
    Running,
    /// It was stopped (state T) by a signal or a debugger, and does nothing until it is continued.
    Stopped,
    /// It has ended, or is about to have.
    Gone,
    /// It lives in another pid namespace (a container), where its state cannot be seen.
    Unknown,
}

impl Holder {
    /// This process, as a holder.
    pub(crate) fn own(build: Build, desktop: DesktopNames, role: Role) -> Self {
        let pid = std::process::id();
        let started = process::stat(pid).map_or(0, |stat| stat.started);
        Self { pid, started, namespace: process::namespace(), build, desktop, role }
    }

    /// The socket of a service; `None` for an in-process owner.
    pub fn socket(&self) -> Option<&Path> {
        match &self.role {
            Role::Service { socket, .. } => Some(socket),
            Role::InProcess => None,
        }
    }

    /// What its process does right now.
    pub fn condition(&self) -> Condition {
        if self.namespace != process::namespace() {
            return Condition::Unknown;
        }
        match process::stat(self.pid) {
            Some(stat) if stat.started != self.started => Condition::Gone,
            Some(stat) => match stat.state {
                'T' | 't' => Condition::Stopped,
                'Z' | 'X' => Condition::Gone,
                _ => Condition::Running,
            },
            None => Condition::Gone,
        }
    }

    /// Whether its process is stopped (state T).
    pub fn is_stopped(&self) -> bool {
        self.condition() == Condition::Stopped
    }
}

/// Who it is, for messages: role, desktop, pid, build, socket, and that it is stopped if it is.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Service { .. } => write!(f, "the service of desktop {}", self.desktop)?,
            Role::InProcess => write!(f, "a deskhand process that owns desktop {} itself", self.desktop)?,
        }
        write!(f, " (pid {}, {}", self.pid, self.build.describe())?;
        if let Some(socket) = self.socket() {
            write!(f, ", socket {}", socket.display())?;
        }
        match self.condition() {
            Condition::Stopped => {
                write!(f, "; it is stopped (state T): `kill -CONT {}` continues it)", self.pid)
            }
            _ => write!(f, ")"),
        }
    }
}
