//! The properties of a window that tell a person what it is.

use deskhand_core::desktop::WindowKind;
use x11rb::cookie::Cookie;
use x11rb::protocol::xproto::{Atom, AtomEnum, ConnectionExt as _, GetPropertyReply, Window as XWindow};
use x11rb::rust_connection::RustConnection;

use super::frame::Extents;
use crate::x11::connection::{Atoms, Link, Trouble, unless_refused};

/// So many 32-bit units of a property are read; no title that a person reads is longer than 16 KiB.
const PROPERTY_UNITS: u32 = 4096;

/// `WM_STATE` of a minimised window (ICCCM 4.1.3.1).
const ICONIC_STATE: u32 = 3;

/// What the properties say.
#[derive(Debug, Clone, Default)]
pub(in crate::x11) struct Properties {
    pub(in crate::x11) class: Option<String>,
    pub(in crate::x11) title: String,
    pub(in crate::x11) transient_for: Option<XWindow>,
    pub(in crate::x11) kind: Option<WindowKind>,
    /// A tooltip, notification or drag icon.
    pub(in crate::x11) passing: bool,
    pub(in crate::x11) minimized: bool,
    pub(in crate::x11) maximized: bool,
    pub(in crate::x11) fullscreen: bool,
    pub(in crate::x11) decoration: Option<Extents>,
    pub(in crate::x11) shadow: Option<Extents>,
    said_pid: Option<u32>,
    machine: Option<Vec<u8>>,
}

impl Properties {
    /// The process id that the client gave, if it runs on this machine.
    pub(in crate::x11) fn local_pid(&self, host: &[u8]) -> Option<u32> {
        let here = self.machine.as_deref().is_none_or(|machine| machine == host);
        self.said_pid.filter(|_| here)
    }
}

type Ask<'c> = Cookie<'c, RustConnection, GetPropertyReply>;

/// Requests that have been sent.
pub(in crate::x11) struct PropertyCookies<'c> {
    class: Ask<'c>,
    name: Ask<'c>,
    utf8_name: Ask<'c>,
    pid: Ask<'c>,
    machine: Ask<'c>,
    transient_for: Ask<'c>,
    kind: Ask<'c>,
    net_state: Ask<'c>,
    state: Ask<'c>,
    decoration: Ask<'c>,
    shadow: Ask<'c>,
}

impl<'c> PropertyCookies<'c> {
    /// Sends the requests for `id`.
    pub(in crate::x11) fn ask(link: &'c Link, id: XWindow) -> Result<Self, Trouble> {
        let property = |name: Atom| link.x.get_property(false, id, name, AtomEnum::ANY, 0, PROPERTY_UNITS);
        let atoms = &link.atoms;
        Ok(Self {
            class: property(AtomEnum::WM_CLASS.into())?,
            name: property(AtomEnum::WM_NAME.into())?,
            utf8_name: property(atoms._NET_WM_NAME)?,
            pid: property(atoms._NET_WM_PID)?,
            machine: property(atoms.WM_CLIENT_MACHINE)?,
            transient_for: property(AtomEnum::WM_TRANSIENT_FOR.into())?,
            kind: property(atoms._NET_WM_WINDOW_TYPE)?,
            net_state: property(atoms._NET_WM_STATE)?,
            state: property(atoms.WM_STATE)?,
            decoration: property(atoms._NET_FRAME_EXTENTS)?,
            shadow: property(atoms._GTK_FRAME_EXTENTS)?,
        })
    }

    /// Reads the replies; `None` if the window is gone.
    pub(in crate::x11) fn read(self, atoms: &Atoms) -> Result<Option<Properties>, Trouble> {
        let Some(class) = unless_refused(self.class.reply())? else { return Ok(None) };
        let numbers = |cookie: Ask<'c>| -> Result<Vec<u32>, Trouble> {
            let reply = unless_refused(cookie.reply())?;
            Ok(reply.and_then(|reply| reply.value32().map(Iterator::collect)).unwrap_or_default())
        };
        let bytes = |cookie: Ask<'c>| -> Result<Option<GetPropertyReply>, Trouble> {
            Ok(unless_refused(cookie.reply())?.filter(|reply| reply.format == 8 && !reply.value.is_empty()))
        };
        let name = bytes(self.name)?;
        let utf8_name = bytes(self.utf8_name)?;
        let title = match (utf8_name, name) {
            (Some(name), _) => utf8(&name.value),
            (None, Some(name)) if name.type_ == u32::from(AtomEnum::STRING) => latin1(&name.value),
            (None, Some(name)) => utf8(&name.value),
            (None, None) => String::new(),
        };
        let kinds = numbers(self.kind)?;
        let states = numbers(self.net_state)?;
        let state = numbers(self.state)?;
        Ok(Some(Properties {
            class: class_part(&class.value),
            title,
            transient_for: numbers(self.transient_for)?.first().copied().filter(|&id| id != 0),
            kind: kinds.iter().find_map(|&kind| kind_of(atoms, kind)),
            passing: kinds.iter().any(|&kind| {
                kind == atoms._NET_WM_WINDOW_TYPE_TOOLTIP
                    || kind == atoms._NET_WM_WINDOW_TYPE_NOTIFICATION
                    || kind == atoms._NET_WM_WINDOW_TYPE_DND
            }),
            maximized: states.contains(&atoms._NET_WM_STATE_MAXIMIZED_HORZ)
                && states.contains(&atoms._NET_WM_STATE_MAXIMIZED_VERT),
            fullscreen: states.contains(&atoms._NET_WM_STATE_FULLSCREEN),
            minimized: states.contains(&atoms._NET_WM_STATE_HIDDEN) || state.first() == Some(&ICONIC_STATE),
            decoration: Extents::from_property(&numbers(self.decoration)?),
            shadow: Extents::from_property(&numbers(self.shadow)?),
            said_pid: numbers(self.pid)?.first().copied().filter(|&pid| pid != 0),
            machine: bytes(self.machine)?.map(|reply| reply.value),
        }))
    }
}

fn kind_of(atoms: &Atoms, kind: Atom) -> Option<WindowKind> {
    [
        (atoms._NET_WM_WINDOW_TYPE_NORMAL, WindowKind::Normal),
        (atoms._NET_WM_WINDOW_TYPE_UTILITY, WindowKind::Normal),
        (atoms._NET_WM_WINDOW_TYPE_DIALOG, WindowKind::Dialog),
        (atoms._NET_WM_WINDOW_TYPE_SPLASH, WindowKind::Splash),
        (atoms._NET_WM_WINDOW_TYPE_DOCK, WindowKind::Dock),
        (atoms._NET_WM_WINDOW_TYPE_DESKTOP, WindowKind::Desktop),
    ]
    .into_iter()
    .find_map(|(atom, known)| (atom == kind).then_some(known))
}

/// `WM_CLASS` holds instance and class, each ended by a zero byte; the class is the application's name.
fn class_part(value: &[u8]) -> Option<String> {
    let mut parts = value.split(|&byte| byte == 0);
    let instance = parts.next()?;
    let class = parts.next().filter(|class| !class.is_empty()).unwrap_or(instance);
    let class = utf8(class);
    (!class.is_empty()).then_some(class)
}

fn utf8(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn class_is_the_second_part_and_else_the_first() {
        assert_eq!(class_part(b"mousepad\0Mousepad\0").as_deref(), Some("Mousepad"));
        assert_eq!(class_part(b"tool\0\0").as_deref(), Some("tool"));
        assert_eq!(class_part(b"tool").as_deref(), Some("tool"));
        assert_eq!(class_part(b""), None);
        assert_eq!(class_part(b"\0\0"), None);
    }

    #[test]
    fn a_pid_from_another_machine_is_nobody_here() {
        let mut properties = Properties { said_pid: Some(7), ..Properties::default() };
        assert_eq!(properties.local_pid(b"here"), Some(7));
        properties.machine = Some(b"there".to_vec());
        assert_eq!(properties.local_pid(b"here"), None);
    }
}
