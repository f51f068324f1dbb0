//! A desktop of our own: Xvfb, window manager, buses, and the supervisor that ends them all.
//!
//! Three processes have a part in it. The *owner* (this process) holds a [`PrivateSource`], or is [`run`]. It
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

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use async_trait::async_trait;
use deskhand_core::desktop::PortError;

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
    _options: PrivateOptions,
    _program: PathBuf,
}

impl PrivateSource {
    /// A desktop that has not been started. `program` is the deskhand binary, executed as supervisor. No I/O.
    pub fn new(options: PrivateOptions, program: PathBuf) -> Self {
        Self { _options: options, _program: program }
    }

    /// Ends the desktop with everything that runs on it and waits for that, a bounded time. Afterwards
    /// [`EnvironmentSource::get`] fails. Dropping the source ends the desktop too, without waiting.
    pub async fn shutdown(&self) {}
}

#[async_trait]
impl EnvironmentSource for PrivateSource {
    async fn get(&self) -> Result<Arc<SessionEnvironment>, PortError> {
        Err(PortError::Unavailable { what: "the private desktop", why: "not built yet".to_owned() })
    }
}

/// The body of `deskhand supervise`: call it on the main thread before any other thread or runtime exists.
pub fn supervise() -> ExitCode {
    ExitCode::FAILURE
}

/// Runs `command` on a private desktop with this process's standard streams, passes signals on to it, ends the
/// desktop, and answers the command's exit code (128 plus the signal that ended it).
///
/// # Errors
/// `Unavailable` if the desktop cannot be started, `LaunchFailed` if the command cannot, `DesktopLost`.
pub async fn run(options: PrivateOptions, program: PathBuf, command: Vec<OsString>) -> Result<u8, PortError> {
    let _ = (options, program, command);
    Err(PortError::Unavailable { what: "the private desktop", why: "not built yet".to_owned() })
}

/// The exit code for an error of [`run`]: 127 like a shell's if the command could not be started, else 1.
pub fn exit_code(error: &PortError) -> u8 {
    match error {
        PortError::LaunchFailed(_) => 127,
        _ => 1,
    }
}
