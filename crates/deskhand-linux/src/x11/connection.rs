//! A connection to the display server, and how its failures are told.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use deskhand_core::desktop::PortError;
use deskhand_core::geometry::Rect;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::Connection;
use x11rb::errors::{ConnectError, ConnectionError, ReplyError, ReplyOrIdError};
use x11rb::protocol::xproto::{ConnectionExt as _, Window as XWindow};
use x11rb::reexports::x11rb_protocol::parse_display::parse_display;
use x11rb::reexports::x11rb_protocol::xauth::Family;
use x11rb::rust_connection::{DefaultStream, RustConnection};

use super::authority;
use crate::environment::SessionEnvironment;

x11rb::atom_manager! {
    /// The atoms that the adapters use.
    pub(super) Atoms: AtomsCookie {
        UTF8_STRING,
        WM_CHANGE_STATE,
        WM_CLIENT_MACHINE,
        WM_DELETE_WINDOW,
        WM_PROTOCOLS,
        WM_STATE,
        WM_TAKE_FOCUS,
        _GTK_FRAME_EXTENTS,
        _NET_ACTIVE_WINDOW,
        _NET_CLIENT_LIST,
        _NET_CLIENT_LIST_STACKING,
        _NET_CURRENT_DESKTOP,
        _NET_FRAME_EXTENTS,
        _NET_MOVERESIZE_WINDOW,
        _NET_RESTACK_WINDOW,
        _NET_STARTUP_ID,
        _NET_SUPPORTING_WM_CHECK,
        _NET_WM_NAME,
        _NET_WM_PID,
        _NET_WM_PING,
        _NET_WM_STATE,
        _NET_WM_STATE_FULLSCREEN,
        _NET_WM_STATE_HIDDEN,
        _NET_WM_STATE_MAXIMIZED_HORZ,
        _NET_WM_STATE_MAXIMIZED_VERT,
        _NET_WM_WINDOW_OPACITY,
        _NET_WM_WINDOW_TYPE,
        _NET_WM_WINDOW_TYPE_DESKTOP,
        _NET_WM_WINDOW_TYPE_DIALOG,
        _NET_WM_WINDOW_TYPE_DND,
        _NET_WM_WINDOW_TYPE_DOCK,
        _NET_WM_WINDOW_TYPE_NORMAL,
        _NET_WM_WINDOW_TYPE_NOTIFICATION,
        _NET_WM_WINDOW_TYPE_SPLASH,
        _NET_WM_WINDOW_TYPE_TOOLTIP,
        _NET_WM_WINDOW_TYPE_UTILITY,
        _XROOTPMAP_ID,
    }
}

/// A connection with what every request on it needs.
pub(super) struct Link {
    /// The connection.
    pub(super) x: RustConnection,
    /// Root window of the screen that `DISPLAY` names.
    pub(super) root: XWindow,
    /// Atoms.
    pub(super) atoms: Atoms,
}

impl Link {
    /// Connects to the display of `environment`. Blocks; a server that is stopped never answers.
    ///
    /// # Errors
    /// `Unavailable`, with the reason.
    pub(super) fn open(environment: &SessionEnvironment) -> Result<Self, PortError> {
        let (x, screen) = connect(environment)?;
        let root = x.setup().roots.get(screen).map(|screen| screen.root);
        let root = root.ok_or_else(|| unavailable(format!("the display has no screen {screen}")))?;
        let atoms =
            Atoms::new(&x).map_err(Trouble::from).and_then(|cookie| cookie.reply().map_err(Trouble::from));
        let atoms = atoms.map_err(|error| unavailable(format!("it broke off at the start: {error}")))?;
        Ok(Self { x, root, atoms })
    }

    /// The whole desktop as it is now, in screen pixels.
    pub(super) fn root_area(&self) -> Result<Rect, Trouble> {
        let geometry = self.x.get_geometry(self.root)?.reply()?;
        Ok(Rect::new(0, 0, geometry.width.into(), geometry.height.into()))
    }

    /// Waits until the server has carried out all that was sent.
    pub(super) fn sync(&self) -> Result<(), Trouble> {
        self.x.get_input_focus()?.reply()?;
        Ok(())
    }

    /// Waits until events have arrived, but not longer than `time`.
    pub(super) fn await_events(&self, time: Duration) {
        let mut sockets = [PollFd::from_borrowed_fd(self.x.stream().as_fd(), PollFlags::IN)];
        let time = Timespec::try_from(time).unwrap_or(Timespec { tv_sec: 0, tv_nsec: 0 });
        // Broken off by a signal or an error: callers look at the connection and the clock again anyway.
        let _ = poll(&mut sockets, Some(&time));
    }

    /// Throws away the events that have arrived: what the server sends unasked (a changed keymap) must not pile up.
    pub(super) fn drain(&self) -> Result<(), Trouble> {
        while self.x.poll_for_event()?.is_some() {}
        Ok(())
    }
}

fn unavailable(why: String) -> PortError {
    PortError::Unavailable { what: "the X display", why }
}

fn connect(environment: &SessionEnvironment) -> Result<(RustConnection, usize), PortError> {
    let Some(name) = environment.display.as_deref() else {
        return Err(unavailable(
            "DISPLAY is not set; start deskhand inside the desktop session, or with --private".to_owned(),
        ));
    };
    let display = parse_display(Some(name))
        .map_err(|_| unavailable(format!("DISPLAY is {name:?}, which is not the name of a display")))?;
    let cookie_file = environment
        .xauthority
        .clone()
        .or_else(|| environment.home.as_ref().map(|home| home.join(".Xauthority")));
    let mut failure = None;
    for address in display.connect_instruction() {
        let (stream, (family, host)) = match DefaultStream::connect(&address) {
            Ok(connected) => connected,
            Err(error) => {
                // The first address is the one that the person meant; the others are old habits of the library.
                failure.get_or_insert_with(|| format!("{name} cannot be opened ({error}); is it running?"));
                continue;
            }
        };
        let cookie = cookie_file
            .as_ref()
            .and_then(|file| std::fs::read(file).ok())
            .and_then(|file| authority::cookie(&file, family_number(family), &host, display.display));
        let (protocol, data) = match cookie {
            Some(cookie) => (authority::COOKIE_PROTOCOL.to_vec(), cookie),
            None => (Vec::new(), Vec::new()),
        };
        let had_cookie = !data.is_empty();
        let screen = usize::from(display.screen);
        match RustConnection::connect_to_stream_with_auth_info(stream, screen, protocol, data) {
            Ok(connection) => return Ok((connection, screen)),
            Err(error) => {
                failure = Some(refusal(name, &error, had_cookie, cookie_file.as_ref()));
                break;
            }
        }
    }
    Err(unavailable(failure.unwrap_or_else(|| format!("{name} names no address"))))
}

/// The library keeps the number of a family of the cookie file to itself.
fn family_number(family: Family) -> u16 {
    [(Family::INTERNET, 0), (Family::INTERNET6, 6), (Family::WILD, 65535)]
        .into_iter()
        .find_map(|(known, number)| (known == family).then_some(number))
        .unwrap_or(authority::FAMILY_LOCAL)
}

fn refusal(name: &str, error: &ConnectError, had_cookie: bool, file: Option<&PathBuf>) -> String {
    let reason = match error {
        ConnectError::SetupFailed(failed) => String::from_utf8_lossy(&failed.reason).trim_end().to_owned(),
        ConnectError::SetupAuthenticate(failed) => {
            String::from_utf8_lossy(&failed.reason).trim_end().to_owned()
        }
        other => other.to_string(),
    };
    let file = file.map_or_else(|| "no cookie file".to_owned(), |file| file.display().to_string());
    if had_cookie {
        format!(
            "{name} refused us ({reason}); the cookie in {file} is not its cookie: set XAUTHORITY to the right file"
        )
    } else {
        format!(
            "{name} refused us ({reason}); {file} holds no cookie for it: set XAUTHORITY to the file that does"
        )
    }
}

/// Why a request failed, before it is told to the engine.
#[derive(Debug, thiserror::Error)]
pub(super) enum Trouble {
    /// The server has ended, or broke the connection.
    #[error("the display server has ended")]
    Lost,
    /// The server refused a request; which it was is in the text.
    #[error("the display server refused a request: {0}")]
    Refused(String),
    /// What was to be done is told as it is.
    #[error(transparent)]
    Port(#[from] PortError),
}

impl From<ConnectionError> for Trouble {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::UnsupportedExtension => Self::Refused("an extension is missing".to_owned()),
            ConnectionError::MaximumRequestLengthExceeded => {
                Self::Refused("a request is too long".to_owned())
            }
            _ => Self::Lost,
        }
    }
}

impl From<ReplyError> for Trouble {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::ConnectionError(error) => error.into(),
            ReplyError::X11Error(error) => Self::Refused(format!(
                "{:?} for {} (value {:#x})",
                error.error_kind,
                error.request_name.unwrap_or("an unknown request"),
                error.bad_value
            )),
        }
    }
}

impl From<ReplyOrIdError> for Trouble {
    fn from(error: ReplyOrIdError) -> Self {
        match error {
            ReplyOrIdError::IdsExhausted => Self::Refused("no more resource ids".to_owned()),
            ReplyOrIdError::ConnectionError(error) => error.into(),
            ReplyOrIdError::X11Error(error) => ReplyError::X11Error(error).into(),
        }
    }
}

impl From<Trouble> for PortError {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost => Self::DesktopLost,
            Trouble::Refused(why) => Self::Internal(why),
            Trouble::Port(error) => error,
        }
    }
}

/// Leaves out what the server refused (the object is gone), and keeps what ends everything.
pub(super) fn unless_refused<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, Trouble> {
    match reply {
        Ok(value) => Ok(Some(value)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error.into()),
    }
}
