//! Which desktop, and the engine on it. The one place that reads the environment.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use deskhand_core::call::Call;
use deskhand_core::desktop::Check;
use deskhand_core::driver::{Profile, ToolListing};
use deskhand_core::{Code, Driver, Error, Outcome, SessionId};
use deskhand_linux::environment::{EnvironmentSource, SessionEnvironment};
use deskhand_linux::private::{PrivateOptions, PrivateSource};

/// The version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The engine on a desktop, and what has to be ended with it.
pub(crate) struct Wiring {
    pub(crate) driver: Arc<dyn Driver>,
    private: Option<Arc<PrivateSource>>,
}

impl Wiring {
    /// Puts the parts together. Opens no display and no bus and starts nothing: the first call that needs the desktop
    /// does.
    pub(crate) fn new(private: Option<PrivateOptions>) -> io::Result<Self> {
        let program = program()?;
        let private = private.map(|options| Arc::new(PrivateSource::new(options, program.clone())));
        let source: Arc<dyn EnvironmentSource> = match &private {
            Some(private) => Arc::clone(private) as _,
            None => Arc::new(Arc::new(SessionEnvironment::from_variables(std::env::vars_os().collect()))),
        };
        let driver = engine(source, program);
        Ok(Self { driver, private })
    }

    /// Ends the private desktop, if there is one, and waits for that a bounded time.
    pub(crate) async fn shutdown(self) {
        drop(self.driver);
        if let Some(private) = self.private {
            private.shutdown().await;
        }
    }
}

/// The path of this program, to execute it as one of its helpers.
pub(crate) fn program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// A session id that no other process has.
pub(crate) fn mint_session() -> SessionId {
    let started = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    SessionId::new(&format!("mcp-{}-{:x}", std::process::id(), started.as_nanos()))
}

impl Wiring {
    /// What works on the desktop.
    pub(crate) async fn checks(&self) -> Vec<Check> {
        Vec::new()
    }
}

fn engine(_source: Arc<dyn EnvironmentSource>, _program: PathBuf) -> Arc<dyn Driver> {
    Arc::new(NoTools)
}

/// Stands where the engine will.
struct NoTools;

impl Driver for NoTools {
    fn tools(&self, profile: Profile) -> Later<'_, Result<Vec<ToolListing>, Error>> {
        Box::pin(async move { Ok(deskhand_core::tools::listing(profile)) })
    }

    fn submit(&self, call: Call) -> Later<'static, Outcome> {
        Box::pin(async move {
            Err(Error::new(Code::DesktopUnavailable, format!("{} is not wired yet", call.tool)))
        })
    }

    fn end_session(&self, _session: SessionId) -> Later<'_, ()> {
        Box::pin(async {})
    }
}

type Later<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;
