//! Raises a window and gives it the keyboard focus.

use deskhand_core::desktop::{PortError, WindowId, WindowKind};
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, InputFocus, StackMode,
    Time, Window as XWindow,
};

use super::listing::{Listed, Listing};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// The request comes from a pager, which window managers trust as the person's own wish.
pub(super) const SOURCE_PAGER: u32 = 2;

/// `WM_HINTS`: whether the second number says if the window takes the focus.
const INPUT_HINT: u32 = 1;

/// How far a window is from being active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::x11) enum Standing {
    /// Has the focus and nothing lies over it.
    InFront,
    /// Has the focus, and something lies over it.
    Covered,
    /// Has not the focus.
    Behind,
}

/// How the window was when its activation was asked for.
#[derive(Clone, Copy, Debug)]
pub(in crate::x11) struct Asked {
    pub(in crate::x11) before: Standing,
    /// Whether it was off the screen.
    pub(in crate::x11) hidden: bool,
    /// Whether the window takes the keyboard focus at all.
    pub(in crate::x11) takes_focus: bool,
}

/// How `id` stands in `listing`. Of a window that takes no focus none is expected.
///
/// # Errors
/// `WindowGone`.
pub(in crate::x11) fn standing(
    listing: &Listing,
    id: WindowId,
    takes_focus: bool,
) -> Result<Standing, PortError> {
    let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
    if (takes_focus && !listed.window.focused) || !listed.viewable {
        return Ok(Standing::Behind);
    }
    let covered = covers(listing, listed).next().is_some();
    Ok(if covered { Standing::Covered } else { Standing::InFront })
}

/// Windows that lie over `listed` without belonging to it.
pub(in crate::x11) fn covers<'l>(
    listing: &'l Listing,
    listed: &'l Listed,
) -> impl Iterator<Item = &'l Listed> {
    listing.windows.iter().filter(move |other| {
        other.window.z > listed.window.z
            && other.viewable
            && !listing.belongs(other, listed.window.id)
            && other.window.frame.intersection(&listed.window.frame).is_some()
    })
}

/// Asks for the window to be raised and focused, unless it is or must not be. Returns how it stood before.
///
/// # Errors
/// `WindowGone`, and `NotSupported` while a popup of the window is open: raising would close it.
pub(in crate::x11) fn ask(link: &Link, listing: &Listing, id: WindowId) -> Result<Asked, Trouble> {
    let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
    let window = XWindow::try_from(id.0).map_err(|_| PortError::UnknownWindow(id))?;
    let takes_focus = takes_focus(link, window)?;
    let before = standing(listing, id, takes_focus)?;
    let asked = Asked { before, hidden: !listed.viewable, takes_focus };
    if before == Standing::InFront {
        return Ok(asked);
    }
    if let Some(popup) = listing.popups(id).find(|popup| !popup.passing) {
        if before == Standing::Covered {
            return Ok(Asked { before: Standing::InFront, ..asked });
        }
        return Err(PortError::NotSupported(format!(
            "window {id} has a popup open ({}), which activating would close; use or close the popup first",
            popup.window.id
        ))
        .into());
    }
    if listed.window.kind == WindowKind::Popup {
        return Err(
            PortError::NotSupported(format!("window {id} is a popup, which cannot be activated")).into()
        );
    }
    if listing.managed {
        ask_manager(link, listing, window)?;
    } else {
        take(link, listed, window)?;
    }
    Ok(asked)
}

/// Whether the window takes the keyboard focus, by ICCCM 4.1.7: it does unless it says that it does not, and does not take
/// it by itself either.
fn takes_focus(link: &Link, window: XWindow) -> Result<bool, Trouble> {
    let atoms = &link.atoms;
    let hints = link.x.get_property(false, window, AtomEnum::WM_HINTS, AtomEnum::WM_HINTS, 0, 2)?;
    let protocols = link.x.get_property(false, window, atoms.WM_PROTOCOLS, AtomEnum::ATOM, 0, 64)?;
    let hints: Vec<u32> = unless_refused(hints.reply())?
        .and_then(|reply| reply.value32().map(Iterator::collect))
        .unwrap_or_default();
    let takes_it_itself = unless_refused(protocols.reply())?
        .is_some_and(|reply| reply.value32().into_iter().flatten().any(|atom| atom == atoms.WM_TAKE_FOCUS));
    let refuses = matches!(hints[..], [flags, 0] if flags & INPUT_HINT != 0);
    Ok(takes_it_itself || !refuses)
}

fn ask_manager(link: &Link, listing: &Listing, window: XWindow) -> Result<(), Trouble> {
    let focused = listing.windows.iter().find(|listed| listed.window.focused);
    let focused = focused.and_then(|listed| u32::try_from(listed.window.id.0).ok()).unwrap_or(x11rb::NONE);
    let data = [SOURCE_PAGER, Time::CURRENT_TIME.into(), focused, 0, 0];
    let message = ClientMessageEvent::new(32, window, link.atoms._NET_ACTIVE_WINDOW, data);
    let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
    link.x.send_event(false, link.root, mask, message)?;
    link.sync()
}

/// Without a window manager the server itself raises and focuses.
fn take(link: &Link, listed: &Listed, window: XWindow) -> Result<(), Trouble> {
    link.x.map_window(window)?;
    link.x.configure_window(listed.top, &ConfigureWindowAux::new().stack_mode(StackMode::ABOVE))?;
    let focus = link.x.set_input_focus(InputFocus::PARENT, window, Time::CURRENT_TIME)?;
    focus.check()?;
    Ok(())
}
