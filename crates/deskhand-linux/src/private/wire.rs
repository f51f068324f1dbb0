//! What the owner and the supervisor say to each other: one JSON value per line over a socket pair.
//!
//! The owner writes a [`Setup`], then [`Order`]s. The supervisor writes [`Report`]s: first [`Report::Ready`] or
//! [`Report::Failed`], and closes the socket when nothing of the desktop is left. When the owner closes its end, for
//! whatever reason, the supervisor ends everything.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The first line. If `standard_streams`, three descriptors come with it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// Value of the variable that marks every process of this desktop.
    pub(super) id: String,
    /// The folder to make, and to remove at the end.
    pub(super) folder: PathBuf,
    /// Columns and rows.
    pub(super) size: (u16, u16),
    /// Whether programs see the user's own home.
    pub(super) keep_home: bool,
    /// Process group of the owner, for the one program that gets the owner's standard streams. The supervisor then stays
    /// in the owner's session, so that this program has the owner's terminal.
    pub(super) process_group: Option<i32>,
}

/// What the owner asks for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Start a program; answered by [`Report::Started`] with the same number.
    Start { number: u64, program: Program },
    /// Send a signal to a started program.
    Signal { pid: u32, signal: i32 },
}

/// A program to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) args: Vec<OsString>,
    /// The complete environment; `None`: that of the desktop.
    pub(super) variables: Option<Vec<(OsString, OsString)>>,
    pub(super) folder: Option<PathBuf>,
    /// Gets the streams that came with [`Setup`] and joins the owner's process group.
    pub(super) standard_streams: bool,
}

/// What the supervisor tells.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Report {
    /// The desktop can be used.
    Ready(Ready),
    /// It cannot be started; the text says why and what to do.
    Failed(String),
    /// A program runs (its process), or why it does not.
    Started { number: u64, result: Result<u32, String> },
    /// A started program has ended: exit code, or 128 plus the signal.
    Exited { pid: u32, code: i32 },
    /// The desktop ends without having been asked to by its owner.
    Lost(String),
}

/// How to reach the desktop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Ready {
    /// Number of the display.
    pub(super) display: u32,
    /// File with its cookie.
    pub(super) xauthority: PathBuf,
    /// Address of the session bus.
    pub(super) session_bus: String,
    /// Processes that make up the desktop.
    pub(super) components: Vec<u32>,
    /// Environment of programs. A list, since names and values need not be UTF-8.
    pub(super) variables: Vec<(OsString, OsString)>,
}

impl Ready {
    /// The environment as a map.
    pub(super) fn variables(&self) -> BTreeMap<OsString, OsString> {
        self.variables.iter().cloned().collect()
    }
}

/// One message as its line.
pub(super) fn line(message: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}
