//! Where the desktop is: the display and buses to connect to, and the environment that launched programs get.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use deskhand_core::desktop::PortError;

use crate::apps::Launcher;

/// How to reach one desktop. Plain data, gathered once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEnvironment {
    /// X display, as `DISPLAY` spells it.
    pub display: Option<String>,
    /// File with the display's cookie, as `XAUTHORITY` names it; `None`: `~/.Xauthority`.
    pub xauthority: Option<PathBuf>,
    /// Address of the session bus. `org.a11y.Bus` is asked there for the accessibility bus.
    pub session_bus: Option<String>,
    /// Home folder of the programs on this desktop.
    pub home: Option<PathBuf>,
    /// Whether the desktop was started by us and so is nobody else's.
    pub private: bool,
    /// The complete environment that a program launched on this desktop gets.
    pub variables: BTreeMap<OsString, OsString>,
}

/// Gives the [`SessionEnvironment`], starting the private desktop at the first question if that is what was asked
/// for. All adapters of a desktop share one source.
#[async_trait]
pub trait EnvironmentSource: Send + Sync {
    /// The environment. Every caller gets the same answer; a failure is tried again at the next call.
    ///
    /// # Errors
    /// `Unavailable`, with what to do about it.
    async fn get(&self) -> Result<Arc<SessionEnvironment>, PortError>;

    /// Who starts programs on this desktop; `None`: this process itself, as children that stay when it ends.
    fn launcher(&self) -> Option<Arc<dyn Launcher>> {
        None
    }
}

impl SessionEnvironment {
    /// The desktop that the variables of a process name.
    pub fn from_variables(variables: BTreeMap<OsString, OsString>) -> Self {
        let text = |name: &str| {
            variables
                .get(&OsString::from(name))
                .and_then(|v| v.to_str())
                .filter(|v| !v.is_empty())
                .map(str::to_owned)
        };
        Self {
            display: text("DISPLAY"),
            xauthority: text("XAUTHORITY").map(PathBuf::from),
            session_bus: text("DBUS_SESSION_BUS_ADDRESS"),
            home: text("HOME").map(PathBuf::from),
            private: false,
            variables,
        }
    }
}

/// An environment that is known already.
#[async_trait]
impl EnvironmentSource for Arc<SessionEnvironment> {
    async fn get(&self) -> Result<Arc<SessionEnvironment>, PortError> {
        Ok(Arc::clone(self))
    }
}
