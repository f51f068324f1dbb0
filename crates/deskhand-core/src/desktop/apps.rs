use std::collections::BTreeMap;
use std::path::PathBuf;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;

use super::PortError;

/// A program that is running and that a person would name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunningApp {
    /// Name a person knows it by.
    pub name: String,
    /// Its desktop entry, if one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub desktop_id: Option<String>,
    /// Its processes that own windows, lowest first.
    pub pids: Vec<u32>,
}

/// A program that could be launched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InstalledApp {
    /// Name a person knows it by, in their language.
    pub name: String,
    /// Name of its desktop entry without `.desktop`.
    pub desktop_id: String,
}

/// What to start.
#[derive(Clone, Debug, Default)]
pub struct LaunchRequest {
    /// A name, a desktop id, or a command.
    pub app: String,
    /// Arguments after those of the desktop entry.
    pub args: Vec<String>,
    /// Files or URLs to open.
    pub files: Vec<String>,
    /// Added to the environment of the program.
    pub env: BTreeMap<String, String>,
    /// Working folder; the home folder if not given.
    pub folder: Option<PathBuf>,
}

/// A program that was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Launched {
    /// Process that was started. Its windows may belong to a child of it, or to an instance that ran before.
    pub pid: u32,
    /// Name of the application.
    pub name: String,
    /// What its windows are known by, if it was given such an id; see [`Windows::startup_id`](super::Windows::startup_id).
    #[serde(skip)]
    pub startup_id: Option<String>,
}

/// How an application ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It ended when it was asked to.
    Exited,
    /// It had to be killed.
    Killed,
    /// It was asked and still runs: it may be showing a question.
    StillRunning,
}

/// Applications of the user.
#[async_trait]
pub trait Apps: Send + Sync {
    /// Running programs that own a window, by name.
    ///
    /// # Errors
    /// `Unavailable`, `DesktopLost`.
    async fn running(&self) -> Result<Vec<RunningApp>, PortError>;

    /// Programs that can be launched, by name.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn installed(&self) -> Result<Vec<InstalledApp>, PortError>;

    /// Starts a program, detached from us, and returns at once. A program that fails within its first moments is
    /// reported by [`Apps::exited`].
    ///
    /// # Errors
    /// `LaunchFailed`, `AppGone` when nothing has that name, `Unavailable`.
    async fn launch(&self, request: &LaunchRequest) -> Result<Launched, PortError>;

    /// Whether a launched process has ended already: its exit code, or 128 plus the signal. `None` while it runs, or if
    /// it was not launched by us.
    async fn exited(&self, pid: u32) -> Option<i32>;

    /// Whether `pid` is `ancestor` or was started by it, directly or through others.
    async fn descends_from(&self, pid: u32, ancestor: u32) -> bool;

    /// Ends a process of this user: asks first (`SIGTERM`), waits a bounded time; with `force` kills what remains.
    ///
    /// # Errors
    /// `AppGone`, `NotSupported` for processes that must not be ended (our own, another user's).
    async fn end(&self, pid: u32, force: bool) -> Result<Ended, PortError>;
}
