//! Programs that are started by a message to a name on the session bus (`DBusActivatable`), by the interface
//! `org.freedesktop.Application` of the Desktop Entry Specification.

use std::collections::HashMap;
use std::time::Duration;

use deskhand_core::desktop::{LaunchRequest, Launched, PortError};
use zbus::Connection;
use zbus::zvariant::Value;

use super::catalog::{Catalog, Found};
use super::entry::Entry;
use crate::environment::SessionEnvironment;

/// How long a program may take to start and answer; the bus itself waits for 25 s.
const ANSWER: Duration = Duration::from_secs(10);

/// What programs of today and of yesterday call the id of their start in a message that starts them.
const PLATFORM_DATA: [&str; 2] = ["activation-token", "desktop-startup-id"];

/// The entry that `request` means, if it has no command and can only be started through the bus.
pub(super) fn only_by_bus<'a>(request: &LaunchRequest, catalog: &'a Catalog) -> Option<&'a Entry> {
    let wanted = request.app.trim();
    let found = match catalog.named(wanted) {
        Found::None => catalog.like(wanted),
        found => found,
    };
    match found {
        Found::One(entry) if entry.exec.is_empty() && entry.bus_activatable => Some(entry),
        _ => None,
    }
}

/// Starts the program of `entry`, or asks the one that runs for a window.
///
/// # Errors
/// `Unavailable` without a session bus, `LaunchFailed`.
pub(super) async fn activate(
    entry: &Entry,
    request: &LaunchRequest,
    session: &SessionEnvironment,
    startup_id: Option<String>,
) -> Result<Launched, PortError> {
    let failed = |why: String| PortError::LaunchFailed(format!("{} was not started: {why}", entry.name));
    if !request.args.is_empty() || !request.env.is_empty() {
        return Err(failed("it is started through the session bus, which passes files only".to_owned()));
    }
    let Some(address) = &session.session_bus else {
        let why = "DBUS_SESSION_BUS_ADDRESS is not set, and it is started through that bus".to_owned();
        return Err(PortError::Unavailable { what: "session bus", why });
    };
    let asked = async {
        let bus = zbus::connection::Builder::address(address.as_str())?.build().await?;
        send(&bus, entry, &request.files, startup_id.as_deref()).await?;
        let body = (entry.id.as_str(),);
        let dbus = "org.freedesktop.DBus";
        let reply = bus.call_method(Some(dbus), "/", Some(dbus), "GetConnectionUnixProcessID", &body).await?;
        reply.body().deserialize::<u32>()
    };
    match tokio::time::timeout(ANSWER, asked).await {
        Ok(Ok(pid)) => Ok(Launched { pid, name: entry.name.clone(), startup_id }),
        Ok(Err(error)) => Err(failed(error.to_string())),
        Err(_) => Err(failed(format!("it does not answer within {} s", ANSWER.as_secs()))),
    }
}

async fn send(
    bus: &Connection,
    entry: &Entry,
    files: &[String],
    startup_id: Option<&str>,
) -> zbus::Result<()> {
    let interface = Some("org.freedesktop.Application");
    let (name, path) = (Some(entry.id.as_str()), object_path(&entry.id));
    let platform: HashMap<&str, Value<'_>> =
        startup_id.into_iter().flat_map(|id| PLATFORM_DATA.map(|key| (key, Value::from(id)))).collect();
    if files.is_empty() {
        bus.call_method(name, path, interface, "Activate", &(platform,)).await?;
    } else {
        let urls: Vec<String> = files.iter().map(|file| url(file)).collect();
        bus.call_method(name, path, interface, "Open", &(urls, platform)).await?;
    }
    Ok(())
}

/// Where the program of that name has its object.
fn object_path(id: &str) -> String {
    format!("/{}", id.replace('.', "/").replace('-', "_"))
}

/// A file as a URL.
fn url(file: &str) -> String {
    if file.contains("://") {
        return file.to_owned();
    }
    let mut url = String::from("file://");
    for byte in file.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => url.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files_are_spelled_as_the_bus_wants_them() {
        assert_eq!(object_path("org.gnome.gedit-plus"), "/org/gnome/gedit_plus");
        assert_eq!(url("/a b/ü"), "file:///a%20b/%C3%BC");
        assert_eq!(url("https://x/"), "https://x/");
    }
}
