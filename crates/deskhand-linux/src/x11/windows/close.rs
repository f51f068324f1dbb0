//! Asks a window's application to close it.

use deskhand_core::desktop::{PortError, WindowId};
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ClientMessageEvent, ConnectionExt as _, EventMask, Time, Window as XWindow,
};

use super::listing::Listing;
use crate::x11::connection::{Link, Trouble, unless_refused};

/// Protocols that one window may name; a longer list is nonsense.
const MAX_PROTOCOLS: u32 = 64;

/// Sends `WM_DELETE_WINDOW`, as a window manager does when its close button is pressed. `false`: the window does not take
/// it.
///
/// # Errors
/// `WindowGone`.
pub(in crate::x11) fn ask(link: &Link, listing: &Listing, id: WindowId) -> Result<bool, Trouble> {
    let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
    let window = XWindow::try_from(listed.window.id.0).map_err(|_| PortError::UnknownWindow(id))?;
    let atoms = &link.atoms;
    let protocols =
        link.x.get_property(false, window, atoms.WM_PROTOCOLS, AtomEnum::ATOM, 0, MAX_PROTOCOLS)?;
    let Some(protocols) = unless_refused(protocols.reply())? else {
        return Err(PortError::WindowGone(id).into());
    };
    let takes_it =
        protocols.value32().is_some_and(|mut named| named.any(|atom: Atom| atom == atoms.WM_DELETE_WINDOW));
    if takes_it {
        let data = [atoms.WM_DELETE_WINDOW, Time::CURRENT_TIME.into(), 0, 0, 0];
        let message = ClientMessageEvent::new(32, window, atoms.WM_PROTOCOLS, data);
        link.x.send_event(false, window, EventMask::NO_EVENT, message)?;
        link.sync()?;
    }
    Ok(takes_it)
}
