//! Which desktop, and the engine on it. The one place that reads the environment.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::activity_log::{ActivityLog, Bounds};
use deskhand_core::consent::ConsentSource;
use deskhand_core::desktop::{Check, Clipboard, Health};
use deskhand_core::limits::Limits;
use deskhand_core::settings::Overrides;
use deskhand_core::{Engine, Error, Host, SessionId};
#[cfg(not(feature = "host-consent"))]
use deskhand_linux::consent::Records;
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::private::{PrivateOptions, PrivateSource};
use deskhand_linux::video::Ffmpeg;
use deskhand_linux::x11::claim::ClaimedSource;
#[cfg(feature = "host-consent")]
use deskhand_service::consent::{HostConsent, HostRule, HostToken};
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
    activity_log: Option<ActivityLog>,
    /// Cancelled when the display that is owned has ended.
    lost: CancellationToken,
}

/// What the command line says of the engine.
#[derive(Default)]
pub(crate) struct Setup {
    /// It is on a desktop of its own.
    pub(crate) private: Option<PrivateOptions>,
    pub(crate) limits: Limits,
    /// Whether it shows a preview, whatever the settings say.
    pub(crate) preview: Option<bool>,
    pub(crate) activity_log: Option<ActivityLog>,
}

impl Wiring {
    /// Puts the parts together. Opens no display and no bus and starts nothing: the first call that needs the desktop
    /// does. `owner` is who owns the desktop in this process, if somebody does: the display is claimed in that name.
    pub(crate) fn new(private: Option<PrivateOptions>, owner: Option<&Holder>) -> io::Result<Self> {
        Self::with(Setup { private, ..Setup::default() }, owner, Arc::new(consent()))
    }

    /// The same, with a source of consent of its own.
    pub(crate) fn with(
        setup: Setup,
        owner: Option<&Holder>,
        consent: Arc<dyn ConsentSource>,
    ) -> io::Result<Self> {
        let Setup { private, limits, preview, activity_log } = setup;
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
        let recording_idle = seconds("DESKHAND_RECORDING_IDLE_TTL_SECS")?;
        // Nobody sits at a private desktop unless somebody looks in.
        let agent_cursor = private.is_some().then_some(false);
        let host = Host {
            settings_file: settings_file(),
            defaults: Overrides { agent_cursor, ..Overrides::default() },
            build: owner.map(|owner| owner.build.digest.clone()),
            recording_idle,
            preview,
            activity_log: activity_log.clone(),
            video: Arc::new(video_encoder()),
            version: VERSION.to_owned(),
            session_idle,
            limits,
            consent,
            ..Host::default()
        };
        let engine = Engine::new(desktop, host);
        Ok(Self { engine, health, clipboard, private, activity_log, lost })
    }

    /// What works on the desktop.
    pub(crate) async fn checks(&self) -> Vec<Check> {
        self.health.checks().await
    }

    /// Cancelled when the desktop has gone away.
    pub(crate) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Has the activity log written to its end, hands the clipboard to whoever keeps it, and ends the private desktop, if
    /// there is one; waits for each a bounded time.
    pub(crate) async fn shutdown(self) {
        drop(self.engine);
        if let Some(log) = self.activity_log {
            log.close().await;
        }
        self.clipboard.hand_over().await;
        if let Some(private) = self.private {
            private.shutdown().await;
        }
    }
}

/// Names the folder of the activity log of whoever owns a desktop. A service that is launched inherits it.
const ACTIVITY_DIR: &str = "DESKHAND_ACTIVITY_DIR";

/// Opens the activity log in `folder`, as the command line has it, or in that of the environment, if either asks for one.
/// `owner` is who will own the desktop.
///
/// # Errors
/// As [`ActivityLog::open`].
pub(crate) fn activity_log(
    folder: Option<&Path>,
    owner: Option<&Holder>,
) -> Result<Option<ActivityLog>, Error> {
    let folder = match folder {
        Some(folder) => {
            std::path::absolute(folder).map_err(|error| Error::argument("activity-dir", error))?
        }
        None => match std::env::var_os(ACTIVITY_DIR) {
            Some(folder) if !folder.is_empty() => folder.into(),
            _ => return Ok(None),
        },
    };
    let build = owner.map(|owner| owner.build.digest.as_str());
    ActivityLog::open(&folder, VERSION, build, Bounds::default()).map(Some)
}

/// The body of the process that puts the keyboard, the pointer and the input method right when this one has died.
pub(crate) fn guard() -> ExitCode {
    let environment = SessionEnvironment::from_variables(std::env::vars_os().collect());
    deskhand_linux::x11::guard::run(&environment, &mut deskhand_linux::input_method::undo)
}

/// What makes videos: the one of the search path.
pub(crate) fn video_encoder() -> Ffmpeg {
    Ffmpeg::in_path(std::env::var_os("PATH").as_deref())
}

/// Where consent comes from: what a person or a host has written down.
#[cfg(not(feature = "host-consent"))]
pub(crate) type Consent = Records;

/// Where consent comes from: a verified host application, and nothing else.
#[cfg(feature = "host-consent")]
pub(crate) type Consent = HostConsent;

/// Where consent comes from.
#[cfg(not(feature = "host-consent"))]
pub(crate) fn consent() -> Consent {
    Records::from_variables(&std::env::vars_os().collect())
}

/// Where consent comes from in a process that has no socket for a host: nothing is granted.
#[cfg(feature = "host-consent")]
pub(crate) fn consent() -> Consent {
    HostConsent::nobody()
}

/// Where consent comes from in a service: the host that has the token, which is read from the inherited descriptor `token`.
#[cfg(feature = "host-consent")]
pub(crate) fn host_consent(token: Option<i32>) -> io::Result<Consent> {
    let read = |number| crate::lifecycle::inherited(number).and_then(HostToken::read);
    let token = token.map(read).transpose()?;
    let digest = HOST_DIGEST.map(str::to_owned);
    let paths = HOST_PATHS.iter().map(PathBuf::from).collect();
    Ok(HostConsent::new(token, HostRule { digest, paths }))
}

/// BLAKE3 of the executable that may be the host, if the build was given one.
#[cfg(feature = "host-consent")]
const HOST_DIGEST: Option<&str> = option_env!("DESKHAND_CONSENT_HOST_DIGEST");

#[cfg(feature = "host-consent")]
const _: () = if let Some(digest) = HOST_DIGEST {
    assert!(
        digest.len() == 64,
        "DESKHAND_CONSENT_HOST_DIGEST must be the 64 hexadecimal digits of a BLAKE3 digest"
    );
};

/// Where the joining program's package puts its host application: an assumption, as the shapes of its records are.
#[cfg(feature = "host-consent")]
const HOST_PATHS: &[&str] =
    &["/usr/lib/acpmux/acpmux-host", "/usr/libexec/acpmux-host", "/opt/acpmux/acpmux-host"];

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
