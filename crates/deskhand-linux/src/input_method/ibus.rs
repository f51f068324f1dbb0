//! IBus, as far as switching its engine goes. Its daemon is a message bus of its own, whose address it leaves in a file.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use zbus::Connection;
use zbus::zvariant::Value;

use crate::environment::SessionEnvironment;

const NAME: &str = "org.freedesktop.IBus";
const OBJECT: &str = "/org/freedesktop/IBus";
const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// A larger file holds no address.
const MAX_FILE: u64 = 64 * 1024;

/// Engine of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Engine(pub(super) String);

impl Engine {
    /// The one that gives keys on as they are, and is in every installation.
    pub(super) fn plain() -> Self {
        Self("xkb:us::eng".to_owned())
    }

    /// Whether it may make other text of keys: those that stand for a keyboard layout do not.
    pub(super) fn composes(&self) -> bool {
        !self.0.starts_with("xkb:")
    }
}

/// A running daemon.
pub(super) struct Daemon {
    pub(super) address: String,
    bus: Connection,
}

impl Daemon {
    /// The daemon of this desktop, if one runs.
    pub(super) async fn find(environment: &SessionEnvironment) -> Option<Self> {
        let said = environment.variables.get(OsStr::new("IBUS_ADDRESS")).and_then(|address| address.to_str());
        let address = match said {
            Some(address) => address.to_owned(),
            None => address(environment)?,
        };
        Self::connect(address).await
    }

    pub(super) async fn connect(address: String) -> Option<Self> {
        let bus = zbus::connection::Builder::address(address.as_str()).ok()?.build().await;
        match bus {
            Ok(bus) => Some(Self { address, bus }),
            Err(error) => {
                tracing::debug!(%error, "no connection to the input method");
                None
            }
        }
    }

    /// The engine in use; `None` if there is none.
    pub(super) async fn engine(&self) -> Option<Engine> {
        let question = (NAME, "GlobalEngine");
        let reply =
            self.bus.call_method(Some(NAME), OBJECT, Some(PROPERTIES), "Get", &question).await.ok()?;
        let body = reply.body();
        engine_of(&body.deserialize::<Value<'_>>().ok()?).map(Engine)
    }

    /// Returns when the engine is in use.
    pub(super) async fn set(&self, engine: &Engine) -> zbus::Result<()> {
        let name = (engine.0.as_str(),);
        self.bus.call_method(Some(NAME), OBJECT, Some(NAME), "SetGlobalEngine", &name).await.map(drop)
    }
}

/// The name in a serialised `IBusEngineDesc`: type name, attachments, name, and so on.
fn engine_of(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Value(inner) => engine_of(inner),
        Value::Structure(fields) => match fields.fields() {
            [Value::Str(kind), _, Value::Str(name), ..] if kind == "IBusEngineDesc" => {
                Some(name.to_string()).filter(|name| !name.contains(['\n', ' ']))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What the daemon of this display has written down. Its files are named after machine, host and display.
fn address(environment: &SessionEnvironment) -> Option<String> {
    let display = environment.display.as_deref()?.rsplit_once(':')?.1;
    let ending = format!("-unix-{}", display.split('.').next().unwrap_or(display));
    let variable = |name: &str| environment.variables.get(OsStr::new(name)).filter(|value| !value.is_empty());
    let home = || environment.home.as_ref().map(|home| home.join(".config"));
    let folder = variable("XDG_CONFIG_HOME").map(PathBuf::from).or_else(home)?.join("ibus").join("bus");
    let files = std::fs::read_dir(folder).ok()?.flatten();
    let of_display = files.filter(|file| file.file_name().to_string_lossy().ends_with(&ending));
    of_display.filter_map(|file| read(&file.path())).find_map(|text| running_address(&text))
}

fn read(file: &Path) -> Option<String> {
    let is_small = std::fs::metadata(file).is_ok_and(|facts| facts.is_file() && facts.len() <= MAX_FILE);
    if is_small { std::fs::read_to_string(file).ok() } else { None }
}

/// The address in the file of a daemon that runs; it leaves the file behind when it is killed.
fn running_address(text: &str) -> Option<String> {
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let pid: u32 = value("IBUS_DAEMON_PID")?.trim().parse().ok()?;
    let runs = Path::new("/proc").join(pid.to_string()).exists();
    value("IBUS_ADDRESS").filter(|_| runs).map(|address| address.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use zbus::zvariant::StructureBuilder;

    use super::*;

    #[test]
    fn the_file_of_a_daemon_that_has_ended_says_nothing() {
        let file =
            |pid: u32| format!("# made by ibus\nIBUS_ADDRESS=unix:path=/a,guid=b\nIBUS_DAEMON_PID={pid}\n");
        assert_eq!(running_address(&file(std::process::id())).as_deref(), Some("unix:path=/a,guid=b"));
        assert_eq!(running_address(&file(u32::MAX)), None);
        assert_eq!(running_address("nonsense"), None);
    }

    #[test]
    fn the_engine_is_named_in_its_description() {
        let description = |name: &'static str| {
            let fields = StructureBuilder::new().add_field("IBusEngineDesc").add_field(0).add_field(name);
            Value::Value(Box::new(fields.build().unwrap().into()))
        };
        let engine = engine_of(&description("libpinyin")).map(Engine);
        assert!(engine.is_some_and(|engine| engine.composes()));
        assert!(!Engine::plain().composes());
        assert_eq!(engine_of(&description("two words")), None);
        assert_eq!(engine_of(&Value::from(1)), None);
    }
}
