//! Which desktop, and the engine on it. The one place that reads the environment.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::desktop::{Check, Clipboard, Health};
use deskhand_core::limits::Limits;
use deskhand_core::{Engine, Host, SessionId};
use deskhand_linux::consent::Records;
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::private::{PrivateOptions, PrivateSource};
use deskhand_linux::x11::claim::ClaimedSource;
use deskhand_service::holder::Holder;
use tokio_util::sync::CancellationToken;

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The engine on a desktop, and what has to be ended with it.
pub(crate) struct Wiring {
    pub(crate) engine: Engine,
    health: Arc<dyn Health>,
    clipboard: Arc<dyn Clipboard>,
    private: Option<Arc<PrivateSource>>,
    /// Cancelled when the display that is owned has ended.
    lost: CancellationToken,
}

impl Wiring {
    /// Puts the parts together. Opens no display and no bus and starts nothing: the first call that needs the desktop
    /// does. `owner` is who owns the desktop in this process, if somebody does: the display is claimed in that name.
    pub(crate) fn new(private: Option<PrivateOptions>, owner: Option<&Holder>) -> io::Result<Self> {
        Self::with_limits(private, owner, Limits::default())
    }

    /// The same, with bounds of its own.
    pub(crate) fn with_limits(
        private: Option<PrivateOptions>,
        owner: Option<&Holder>,
        limits: Limits,
    ) -> io::Result<Self> {
        let program = program();
        let private = private.map(|options| Arc::new(PrivateSource::new(options, program.clone())));
        let source: Arc<dyn EnvironmentSource> = match &private {
            Some(private) => Arc::clone(private) as _,
            None => Arc::new(Arc::new(SessionEnvironment::from_variables(std::env::vars_os().collect()))),
        };
        let mut lost = CancellationToken::new();
        let source = match owner {
            Some(owner) => {
                let claimed = ClaimedSource::new(source, owner.to_string());
                lost = claimed.lost();
                Arc::new(claimed) as _
            }
            None => source,
        };
        let desktop = deskhand_linux::desktop(source, program);
        let health = Arc::clone(&desktop.health);
        let clipboard = Arc::clone(&desktop.clipboard);
        let session_idle = seconds("DESKHAND_SESSION_IDLE_TTL_SECS")?;
        let host = Host {
            settings_file: settings_file(),
            version: VERSION.to_owned(),
            session_idle,
            limits,
            consent: Arc::new(consent()),
            ..Host::default()
        };
        let engine = Engine::new(desktop, host);
        Ok(Self { engine, health, clipboard, private, lost })
    }

    /// What works on the desktop.
    pub(crate) async fn checks(&self) -> Vec<Check> {
        self.health.checks().await
    }

    /// Cancelled when the desktop has gone away.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Hands the clipboard to whoever keeps it, ends the private desktop, if there is one, and waits for both a bounded
    /// time.
    pub(crate) async fn shutdown(self) {
        drop(self.engine);
        self.clipboard.hand_over().await;
        if let Some(private) = self.private {
            private.shutdown().await;
        }
    }
}

/// The body of the process that puts the keyboard, the pointer and the input method right when this one has died.
pub(crate) fn guard() -> ExitCode {
    let environment = SessionEnvironment::from_variables(std::env::vars_os().collect());
    deskhand_linux::x11::guard::run(&environment, &mut deskhand_linux::input_method::undo)
}

/// Where consent comes from.
pub(crate) fn consent() -> Records {
    Records::from_variables(&std::env::vars_os().collect())
}

/// This program, to execute it as one of its helpers: the file that runs, whatever has become of its path since. A helper
/// of another build would not understand us.
pub(crate) fn program() -> PathBuf {
    deskhand_service::build::RUNNING.into()
}

/// A session id that no other process has.
pub(crate) fn mint_session() -> SessionId {
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    SessionId::new(&format!("mcp-{}-{:x}", std::process::id(), started.as_nanos()))
}

/// A time of at least a second out of the environment.
fn seconds(name: &str) -> io::Result<Option<Duration>> {
    let Some(value) = std::env::var_os(name) else { return Ok(None) };
    match value.to_str().and_then(|value| value.trim().parse::<u64>().ok()) {
        Some(seconds @ 1..=MAX_SECONDS) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{name} is {}; expected whole seconds from 1 to {MAX_SECONDS}", value.display()),
        )),
    }
}

/// A year: longer than any session, and far from where sums of times overflow.
const MAX_SECONDS: u64 = 365 * 24 * 3600;

/// `$XDG_CONFIG_HOME/deskhand/config.json`, or the same below `~/.config`.
pub(crate) fn settings_file() -> Option<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let configuration = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")))?;
    Some(configuration.join("deskhand").join("config.json"))
}
