//! A desktop of our own: Xvfb, window manager, buses, and the supervisor that ends them all.
//!
//! Three processes have a part in it. The *owner* (this process) holds a [`PrivateSource`], or is [`run()`]. It
//! executes the *supervisor* (`deskhand supervise`, whose body is [`supervise`]) with one end of a socket as its
//! standard input. The supervisor starts the components and every program of the desktop, and ends all of them when
//! the socket closes, however the owner ended.
//!
//! What a binary has to wire:
//! ```text
//! main, before anything else, when the first argument is `supervise` (hidden):
//!     return deskhand_linux::private::supervise();              // on the main thread, no runtime yet
//! mcp --private [WxH] [--keep-home]:
//!     let source = Arc::new(PrivateSource::new(PrivateOptions { size, keep_home }, program));
//!     let desktop = deskhand_linux::desktop(source.clone(), program);
//!     … at the end: source.shutdown().await;                    // bounded
//! desktop run [--size WxH] [--keep-home] -- COMMAND…:
//!     match private::run(options, program, command).await {      // inside of a runtime with signals enabled
//!         Ok(code) => ExitCode::from(code),
//!         Err(error) => { eprintln!("deskhand: {error}"); ExitCode::from(private::exit_code(&error)) }
//!     }
//! ```
//! `program` is the path of the deskhand binary itself.

mod children;
mod components;
mod folder;
pub(crate) mod needed;
mod owner;
mod run;
mod supervisor;
pub(crate) mod variables;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use deskhand_core::desktop::PortError;
use tokio::sync::Mutex;

// For the names of new records.
#[cfg(not(feature = "host-consent"))]
pub(crate) use self::folder::random;
use self::owner::{Life, Owner, Streams};
pub use self::run::run;
pub use self::supervisor::supervise;
use crate::apps::{Launcher, ProgramStart};
use crate::environment::{EnvironmentSource, SessionEnvironment};

/// Size of a private desktop in pixels. Parses from and prints as `1920x1080`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { width: 1920, height: 1080 }
    }
}

impl std::fmt::Display for Size {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The text is no size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no size: expected WIDTHxHEIGHT in pixels, each from 1 to 32767, such as 1920x1080")]
pub struct InvalidSize(String);

impl std::str::FromStr for Size {
    type Err = InvalidSize;

    fn from_str(text: &str) -> Result<Self, InvalidSize> {
        // The protocol's coordinates are signed 16-bit numbers.
        let side = |part: &str| {
            let plain = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            part.parse::<u16>().ok().filter(|side| plain && (1..=32767).contains(side))
        };
        let invalid = || InvalidSize(text.to_owned());
        let (width, height) = text.split_once(['x', 'X']).ok_or_else(invalid)?;
        Ok(Self { width: side(width).ok_or_else(invalid)?, height: side(height).ok_or_else(invalid)? })
    }
}

/// What a private desktop is to be like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrivateOptions {
    /// Its size.
    pub size: Size,
    /// Programs see the user's own home and XDG folders instead of empty ones. A browser or office program may then
    /// hand over to an instance that runs on the user's desktop.
    pub keep_home: bool,
}

/// A private desktop that is started by the first [`EnvironmentSource::get`] and ends with this value.
#[derive(Debug)]
pub struct PrivateSource {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: PrivateOptions,
    program: PathBuf,
    /// Held while the desktop starts, so that it is started once.
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Idle,
    Running(Arc<Owner>, Arc<SessionEnvironment>),
    ShutDown,
}

impl PrivateSource {
    /// A desktop that has not been started. `program` is the deskhand binary, executed as supervisor. No I/O.
    pub fn new(options: PrivateOptions, program: PathBuf) -> Self {
        Self { inner: Arc::new(Inner { options, program, state: Mutex::new(State::Idle) }) }
    }

    /// Ends the desktop with everything that runs on it and waits for that, a bounded time. Afterwards
    /// [`EnvironmentSource::get`] fails. Dropping the source ends the desktop too, without waiting.
    pub async fn shutdown(&self) {
        let before = std::mem::replace(&mut *self.inner.state.lock().await, State::ShutDown);
        if let State::Running(owner, _) = before {
            owner.end().await;
        }
    }
}

impl Drop for PrivateSource {
    fn drop(&mut self) {
        // Launchers may still hold the inner part; without this the desktop would last as long as they do.
        if let Ok(mut state) = self.inner.state.try_lock() {
            *state = State::ShutDown;
        }
    }
}

#[async_trait]
impl EnvironmentSource for PrivateSource {
    async fn get(&self) -> Result<Arc<SessionEnvironment>, PortError> {
        Ok(self.inner.running().await?.1)
    }

    fn launcher(&self) -> Option<Arc<dyn Launcher>> {
        Some(Arc::clone(&self.inner) as Arc<dyn Launcher>)
    }
}

impl Inner {
    /// The desktop, started if it has not been.
    ///
    /// # Errors
    /// `Unavailable`; `DesktopLost` once it has ended: everything that was known of it is void.
    async fn running(&self) -> Result<(Arc<Owner>, Arc<SessionEnvironment>), PortError> {
        let mut state = self.state.lock().await;
        match &*state {
            State::Running(owner, environment) if owner.life() == Life::Up => {
                Ok((Arc::clone(owner), Arc::clone(environment)))
            }
            State::Running(..) | State::ShutDown => Err(PortError::DesktopLost),
            State::Idle => {
                let owner = Arc::new(Owner::start(self.options, &self.program, Streams::None).await?);
                let environment = Arc::new(SessionEnvironment {
                    xauthority: Some(owner.ready.xauthority.clone()),
                    private: true,
                    ..SessionEnvironment::from_variables(owner.ready.variables())
                });
                *state = State::Running(Arc::clone(&owner), Arc::clone(&environment));
                Ok((owner, environment))
            }
        }
    }

    /// The desktop, if it was started.
    async fn started(&self) -> Option<Arc<Owner>> {
        match &*self.state.lock().await {
            State::Running(owner, _) => Some(Arc::clone(owner)),
            State::Idle | State::ShutDown => None,
        }
    }
}

#[async_trait]
impl Launcher for Inner {
    async fn start(&self, program: ProgramStart) -> Result<u32, PortError> {
        let (owner, _) = self.running().await?;
        let name = program.path.display().to_string();
        let program = wire::Program {
            path: program.path,
            args: program.args,
            variables: Some(program.variables.into_iter().collect()),
            folder: program.folder,
            standard_streams: false,
        };
        let started = owner.start_program(program).await?;
        started.map_err(|why| PortError::LaunchFailed(format!("{name} was not started: {why}")))
    }

    async fn exited(&self, pid: u32) -> Option<i32> {
        self.started().await?.exit(pid)
    }

    async fn components(&self) -> Vec<u32> {
        let Some(owner) = self.started().await else { return Vec::new() };
        let mut components = owner.ready.components.clone();
        components.push(owner.supervisor);
        components
    }
}

/// The exit code for an error of [`run()`]: 127 like a shell's if the command could not be started, else 1.
pub fn exit_code(error: &PortError) -> u8 {
    match error {
        PortError::LaunchFailed(_) => 127,
        _ => 1,
    }
}
