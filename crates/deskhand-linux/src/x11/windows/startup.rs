//! Start-up notification: the id that a launched program gets, and the windows that carry it.
//!
//! freedesktop.org's Startup Notification Protocol 0.2.

use deskhand_core::desktop::WindowId;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    AtomEnum, ConnectionExt as _, CreateWindowAux, EventMask, PropMode, Window as XWindow, WindowClass,
};

use super::listing::Listing;
use crate::x11::connection::{Link, Trouble, unless_refused};

/// 32-bit units of an id that are read; ours are shorter.
const ID_UNITS: u32 = 256;
/// `WM_HINTS` says a group leader (ICCCM 4.1.2.4), in its ninth field.
const WINDOW_GROUP_HINT: u32 = 1 << 6;
const WINDOW_GROUP_FIELD: usize = 8;

/// An id for the `number`-th start, of `program`. Toolkits and window managers read the time after `_TIME` as the moment of the
/// person's wish, and refuse the focus to what was wished for earlier than the last input.
pub(in crate::x11) fn new_id(link: &Link, program: &str, number: u64) -> Result<String, Trouble> {
    let time = server_time(link)?;
    // The parts are separated by slashes and blanks end a value, so neither may be in a name.
    let plain = |name: &str| -> String {
        name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' }).collect()
    };
    let system = rustix::system::uname();
    let host = plain(&system.nodename().to_string_lossy());
    Ok(format!("deskhand/{}/{}-{number}-{host}_TIME{time}", plain(program), std::process::id()))
}

/// A moment of the server's clock, in milliseconds.
fn server_time(link: &Link) -> Result<u32, Trouble> {
    let window = link.x.generate_id()?;
    let listens = CreateWindowAux::new().event_mask(EventMask::PROPERTY_CHANGE);
    link.x.create_window(0, window, link.root, -1, -1, 1, 1, 0, WindowClass::INPUT_ONLY, 0, &listens)?;
    // Nothing is added, and the server tells when it was.
    let name = link.atoms._NET_STARTUP_ID;
    link.x.change_property(PropMode::APPEND, window, name, AtomEnum::STRING, 8, 0, &[])?;
    // Events that were caused before a reply come before it.
    link.x.destroy_window(window)?;
    link.sync()?;
    let mut time = 0;
    while let Some(event) = link.x.poll_for_event()? {
        if let Event::PropertyNotify(notify) = event
            && notify.window == window
        {
            time = notify.time;
        }
    }
    Ok(time)
}

/// The windows that were opened or shown by the start with this id: they carry it, or else the leader of their group
/// does.
pub(in crate::x11) fn started_as(link: &Link, listing: &Listing, id: &str) -> Result<Vec<WindowId>, Trouble> {
    let name = link.atoms._NET_STARTUP_ID;
    let ask = |window: XWindow| link.x.get_property(false, window, name, AtomEnum::ANY, 0, ID_UNITS);
    let mut own = Vec::with_capacity(listing.windows.len());
    for window in listing.windows.iter().filter_map(|listed| XWindow::try_from(listed.window.id.0).ok()) {
        let hints = link.x.get_property(false, window, AtomEnum::WM_HINTS, AtomEnum::WM_HINTS, 0, 9)?;
        own.push((window, ask(window)?, hints));
    }
    let mut found = Vec::new();
    let mut leaders = Vec::new();
    for (window, said, hints) in own {
        let said = unless_refused(said.reply())?.map(|said| said.value).unwrap_or_default();
        let hints = unless_refused(hints.reply())?;
        if !said.is_empty() {
            found.extend(is_id(&said, id).then_some(window));
            continue;
        }
        let fields: Vec<u32> = hints.iter().filter_map(|hints| hints.value32()).flatten().collect();
        let has_leader = fields.first().is_some_and(|flags| flags & WINDOW_GROUP_HINT != 0);
        if let Some(&leader) =
            fields.get(WINDOW_GROUP_FIELD).filter(|&&leader| has_leader && leader != window)
        {
            leaders.push((window, ask(leader)?));
        }
    }
    for (window, said) in leaders {
        let said = unless_refused(said.reply())?;
        found.extend(said.is_some_and(|said| is_id(&said.value, id)).then_some(window));
    }
    Ok(found.into_iter().map(|window| WindowId(window.into())).collect())
}

/// Some toolkits end the value with a zero byte.
fn is_id(value: &[u8], id: &str) -> bool {
    value.strip_suffix(&[0]).unwrap_or(value) == id.as_bytes()
}
