//! Starts the parts of a private desktop and waits until each can be used.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{AtomEnum, ChangeWindowAttributesAux, ConnectionExt, EventMask};
use x11rb::rust_connection::{DefaultStream, RustConnection};

use super::children::{Children, Component};
use super::folder::{self, Cookie, Folder};
use super::needed::{self, Needed};
use super::variables;
use super::wire::{Ready, Setup};

/// Starting takes about 0.2 s; a machine that needs longer than this for it will not be of use.
const START_LIMIT: Duration = Duration::from_secs(15);

/// Two servers that start at the same instant can choose the same display; the loser ends and is started again.
const DISPLAY_ATTEMPTS: usize = 5;

/// Files of the needed programs.
struct Programs {
    display_server: PathBuf,
    window_manager: PathBuf,
    session_bus: PathBuf,
    accessibility: PathBuf,
}

/// Starts everything.
///
/// # Errors
/// Says which part failed, why, and what to do.
pub(super) async fn start(setup: &Setup, folder: &Folder, children: &Children) -> Result<Ready, String> {
    let limit = || format!("it was not ready within {} s", START_LIMIT.as_secs());
    tokio::time::timeout(START_LIMIT, start_all(setup, folder, children)).await.map_err(|_| limit())?
}

async fn start_all(setup: &Setup, folder: &Folder, children: &Children) -> Result<Ready, String> {
    let programs = find_programs()?;
    let cookie = folder::cookie().map_err(|error| format!("no random bytes: {error}"))?;
    prepare(folder, &cookie, &programs).map_err(|error| format!("files of the desktop: {error}"))?;

    // The buses pass the display on to what they start, so the display comes first.
    let display = start_display_server(&programs, setup, folder, children).await?;
    Folder::write(&folder.xauthority(), &folder::xauthority_file(Some(display), &cookie))
        .map_err(|error| format!("the cookie of the display: {error}"))?;
    let environment = variables::compose(std::env::vars_os(), &setup.id, folder, display, setup.keep_home);

    let command = |program: &PathBuf, log: &str| -> Result<Command, String> {
        let mut command = Command::new(program);
        let log = folder.log(log).map_err(|error| format!("a log file: {error}"))?;
        command.env_clear().envs(&environment).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Ok(command)
    };

    let mut window_manager = command(&programs.window_manager, "openbox")?;
    window_manager.arg("--sm-disable").arg("--config-file").arg(folder.window_manager());
    // It keeps a session folder in its home, which is not to appear in one that was kept.
    window_manager.envs(variables::home(folder));
    let window_manager_ready = watch_for_window_manager(display, &cookie)?;
    children
        .component(Component::WindowManager, &mut window_manager, None)
        .map_err(|error| failed(&programs.window_manager, &error))?;

    let session_bus = command(&programs.session_bus, "dbus")?;
    start_session_bus(session_bus, folder, children).await?;
    switch_accessibility_on(folder).await?;
    match window_manager_ready.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("the window manager: {error}")),
        Err(_) => return Err(with_log("the window manager (openbox) did not start", folder, "openbox")),
    }

    Ok(Ready {
        display,
        xauthority: folder.xauthority(),
        session_bus: folder.bus_address(),
        components: children.components(),
        variables: environment.into_iter().collect(),
    })
}

fn find_programs() -> Result<Programs, String> {
    let path = std::env::var_os("PATH");
    let found = needed::ALL.map(|needed| needed.find(path.as_deref()));
    match found {
        [Some(display_server), Some(window_manager), Some(session_bus), Some(accessibility)] => {
            Ok(Programs { display_server, window_manager, session_bus, accessibility })
        }
        found => {
            let missing: Vec<Needed> = needed::ALL
                .into_iter()
                .zip(found)
                .filter(|(_, file)| file.is_none())
                .map(|(each, _)| each)
                .collect();
            Err(needed::missing_message(&missing))
        }
    }
}

/// Writes the configuration of all parts.
fn prepare(folder: &Folder, cookie: &Cookie, programs: &Programs) -> io::Result<()> {
    folder.create()?;
    Folder::write(&folder.server_cookie(), &folder::xauthority_file(None, cookie))?;
    Folder::write(&folder.window_manager(), include_bytes!("openbox.xml"))?;
    let bus = include_str!("bus.xml")
        .replace("ADDRESS", &folder.bus_address())
        .replace("SERVICES", &folder::escape_xml(&folder.services()));
    Folder::write(&folder.bus(), bus.as_bytes())?;
    // The bus starts the accessibility bus when it is first asked for, with accessibility switched on from the
    // beginning. Settings are kept in memory, so that a home that was kept is not written to.
    let service = format!(
        "[D-BUS Service]\nName=org.a11y.Bus\n\
         Exec=/usr/bin/env GSETTINGS_BACKEND=memory {} --launch-immediately --a11y=1\n",
        programs.accessibility.display()
    );
    Folder::write(&folder.services().join("org.a11y.Bus.service"), service.as_bytes())
}

async fn start_display_server(
    programs: &Programs,
    setup: &Setup,
    folder: &Folder,
    children: &Children,
) -> Result<u32, String> {
    let (width, height) = setup.size;
    for _ in 0..DISPLAY_ATTEMPTS {
        let (number, mut written) = pipe_pair().map_err(|error| format!("a pipe: {error}"))?;
        let mut server = Command::new(&programs.display_server);
        let log = folder.log("xvfb").map_err(|error| format!("a log file: {error}"))?;
        server
            .args(["-displayfd", &number.as_raw_fd().to_string()])
            .args(["-screen", "0", &format!("{width}x{height}x24"), "-dpi", "96"])
            .args(["-nolisten", "tcp", "-noreset", "-auth"])
            .arg(folder.server_cookie())
            .env(variables::MARKER, &setup.id)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        children
            .component(Component::DisplayServer, &mut server, Some(&number))
            .map_err(|error| failed(&programs.display_server, &error))?;
        drop(number);
        let mut text = String::new();
        // The server closes the descriptor after the number, or ends without it.
        let _ = written.read_to_string(&mut text).await;
        if let Ok(display) = text.trim().parse() {
            return Ok(display);
        }
    }
    Err(with_log("the display server (Xvfb) did not start", folder, "xvfb"))
}

async fn start_session_bus(mut bus: Command, folder: &Folder, children: &Children) -> Result<(), String> {
    let (address, mut written) = pipe_pair().map_err(|error| format!("a pipe: {error}"))?;
    let mut config = std::ffi::OsString::from("--config-file=");
    config.push(folder.bus());
    bus.arg(config)
        .args(["--nofork", "--nopidfile", "--nosyslog"])
        .arg(format!("--print-address={}", address.as_raw_fd()));
    children
        .component(Component::SessionBus, &mut bus, Some(&address))
        .map_err(|error| format!("the session bus (dbus-daemon) did not start: {error}"))?;
    drop(address);
    let mut first = [0];
    match written.read(&mut first).await {
        Ok(1) => Ok(()),
        _ => Err(with_log("the session bus (dbus-daemon) did not start", folder, "dbus")),
    }
}

/// Has the session bus start the accessibility bus, and that its registry, so that the first application finds both.
async fn switch_accessibility_on(folder: &Folder) -> Result<(), String> {
    let connect = async {
        let session = zbus::connection::Builder::address(folder.bus_address().as_str())?.build().await?;
        let reply = session
            .call_method(Some("org.a11y.Bus"), "/org/a11y/bus", Some("org.a11y.Bus"), "GetAddress", &())
            .await?;
        let address: String = reply.body().deserialize()?;
        let accessibility = zbus::connection::Builder::address(address.as_str())?.build().await?;
        let bus = zbus::fdo::DBusProxy::new(&accessibility).await?;
        let registry = zbus::names::WellKnownName::from_static_str("org.a11y.atspi.Registry")?;
        bus.start_service_by_name(registry, 0).await?;
        Ok::<_, zbus::Error>(())
    };
    connect
        .await
        .map_err(|error| with_log(&format!("the accessibility bus did not start: {error}"), folder, "dbus"))
}

/// Waits on a thread of its own until a window manager has said on the root window that it is there. Ends with the
/// display server at the latest.
fn watch_for_window_manager(
    display: u32,
    cookie: &Cookie,
) -> Result<tokio::sync::oneshot::Receiver<Result<(), String>>, String> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let cookie = cookie.to_vec();
    let wait = move || {
        let result = window_manager_shows(display, cookie).map_err(|error| error.to_string());
        let _ = sender.send(result);
    };
    std::thread::Builder::new()
        .name("window-manager".to_owned())
        .spawn(wait)
        .map_err(|error| format!("a thread: {error}"))?;
    Ok(receiver)
}

fn window_manager_shows(
    display: u32,
    cookie: Vec<u8>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let socket = UnixStream::connect(format!("/tmp/.X11-unix/X{display}"))?;
    let (stream, _) = DefaultStream::from_unix_stream(socket)?;
    let connection =
        RustConnection::connect_to_stream_with_auth_info(stream, 0, b"MIT-MAGIC-COOKIE-1".to_vec(), cookie)?;
    let root = connection.setup().roots.first().ok_or("no screen")?.root;
    let change = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    connection.change_window_attributes(root, &change)?;
    let property = connection.intern_atom(false, b"_NET_SUPPORTING_WM_CHECK")?.reply()?.atom;
    loop {
        let value = connection.get_property(false, root, property, AtomEnum::WINDOW, 0, 1)?.reply()?;
        if value.value_len > 0 {
            return Ok(());
        }
        connection.wait_for_event()?;
    }
}

/// A pipe: the writing end for a child, the reading end for us.
fn pipe_pair() -> io::Result<(OwnedFd, pipe::Receiver)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((writer, pipe::Receiver::from_owned_fd(reader)?))
}

fn failed(program: &std::path::Path, error: &io::Error) -> String {
    format!("{} could not be executed: {error}", program.display())
}

fn with_log(what: &str, folder: &Folder, log: &str) -> String {
    match folder.log_end(log) {
        end if end.is_empty() => what.to_owned(),
        end => format!("{what}; it said: {end}"),
    }
}
