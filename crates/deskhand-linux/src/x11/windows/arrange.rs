//! Places windows: frame, state, stacking. A window manager is asked; without one the server itself is told.

use deskhand_core::desktop::{FrameChange, PortError, WindowId, WindowKind, WindowState};
use deskhand_core::geometry::Rect;
use x11rb::protocol::xproto::{
    AtomEnum, ClientMessageEvent, ConfigureWindowAux, ConnectionExt as _, EventMask, StackMode,
    Window as XWindow,
};

use super::activate::SOURCE_PAGER;
use super::listing::{Listed, Listing};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// `_NET_MOVERESIZE_WINDOW`: the position is that of the client's own area, wherever its decorations are.
const STATIC_GRAVITY: u32 = 10;
/// Flags of `_NET_MOVERESIZE_WINDOW`: which numbers are given, and that a pager asks.
const GIVES_PLACE: u32 = 0b11 << 8;
const GIVES_SIZE: u32 = 0b11 << 10;
const BY_PAGER: u32 = SOURCE_PAGER << 12;
/// `_NET_WM_STATE`: what to do with the states.
const REMOVE: u32 = 0;
const ADD: u32 = 1;
/// `WM_CHANGE_STATE` (ICCCM 4.1.4).
const ICONIC: u32 = 3;
/// `_NET_RESTACK_WINDOW`: directly below the sibling.
const BELOW: u32 = 1;
/// The server takes no larger windows and no places further away.
const LARGEST: u32 = i16::MAX as u32;

fn find(listing: &Listing, id: WindowId) -> Result<(&Listed, XWindow), PortError> {
    let listed = listing.find(id).ok_or(PortError::WindowGone(id))?;
    if matches!(listed.window.kind, WindowKind::Popup) {
        return Err(PortError::NotSupported(format!(
            "window {id} is a popup, which its application places itself"
        )));
    }
    let window = XWindow::try_from(id.0).map_err(|_| PortError::UnknownWindow(id))?;
    Ok((listed, window))
}

fn tell_manager(link: &Link, window: XWindow, name: u32, data: [u32; 5]) -> Result<(), Trouble> {
    let message = ClientMessageEvent::new(32, window, name, data);
    let mask = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
    link.x.send_event(false, link.root, mask, message)?;
    link.sync()
}

/// Asks for another visible frame.
pub(in crate::x11) fn set_frame(
    link: &Link,
    listing: &Listing,
    id: WindowId,
    change: FrameChange,
) -> Result<(), Trouble> {
    let (listed, window) = find(listing, id)?;
    let visible = listed.window.frame;
    let wanted = change.of(visible);
    let moves = (wanted.x, wanted.y) != (visible.x, visible.y);
    let resizes = (wanted.width, wanted.height) != (visible.width, visible.height);
    if !moves && !resizes {
        return Ok(());
    }
    // Decorations around the client's area and shadows within it keep their widths.
    let area =
        shifted(if listing.managed { listed.window.client } else { listed.top_area }, &visible, &wanted);
    if listing.managed {
        let flags = STATIC_GRAVITY
            | BY_PAGER
            | if moves { GIVES_PLACE } else { 0 }
            | if resizes { GIVES_SIZE } else { 0 };
        let data = [flags, area.x.cast_unsigned(), area.y.cast_unsigned(), area.width, area.height];
        return tell_manager(link, window, link.atoms._NET_MOVERESIZE_WINDOW, data);
    }
    // Here the carrier is the window itself; its border counts to the frame and not to its size.
    let border = listed.top_area.width.saturating_sub(listed.window.client.width);
    let size = |length: u32| length.saturating_sub(border).clamp(1, LARGEST);
    let changes =
        ConfigureWindowAux::new().x(area.x).y(area.y).width(size(area.width)).height(size(area.height));
    link.x.configure_window(listed.top, &changes)?.check()?;
    Ok(())
}

/// `area`, moved and resized as `visible` has to be to become `wanted`.
fn shifted(area: Rect, visible: &Rect, wanted: &Rect) -> Rect {
    let place = |at: i32, from: i32, to: i32| at.saturating_add(to).saturating_sub(from);
    let length = |length: u32, from: u32, to: u32| {
        let length = i64::from(length) + i64::from(to) - i64::from(from);
        u32::try_from(length).unwrap_or(1).clamp(1, LARGEST)
    };
    Rect::new(
        place(area.x, visible.x, wanted.x),
        place(area.y, visible.y, wanted.y),
        length(area.width, visible.width, wanted.width),
        length(area.height, visible.height, wanted.height),
    )
}

/// Asks for another state.
pub(in crate::x11) fn set_state(
    link: &Link,
    listing: &Listing,
    id: WindowId,
    state: WindowState,
) -> Result<(), Trouble> {
    let (listed, window) = find(listing, id)?;
    if listed.window.state() == state {
        return Ok(());
    }
    if !listing.managed {
        let message =
            "there is no window manager, so windows are neither minimized, maximized nor fullscreen";
        return Err(PortError::NotSupported(message.to_owned()).into());
    }
    let atoms = &link.atoms;
    if state == WindowState::Minimized {
        return tell_manager(link, window, atoms.WM_CHANGE_STATE, [ICONIC, 0, 0, 0, 0]);
    }
    if listed.window.minimized {
        // ICCCM: an iconic window that maps itself becomes normal.
        link.x.map_window(window)?;
    }
    let ask = |action, first, second| {
        tell_manager(link, window, atoms._NET_WM_STATE, [action, first, second, SOURCE_PAGER, 0])
    };
    let (across, down) = (atoms._NET_WM_STATE_MAXIMIZED_HORZ, atoms._NET_WM_STATE_MAXIMIZED_VERT);
    if state != WindowState::Fullscreen {
        ask(REMOVE, atoms._NET_WM_STATE_FULLSCREEN, 0)?;
    }
    match state {
        WindowState::Fullscreen => ask(ADD, atoms._NET_WM_STATE_FULLSCREEN, 0),
        WindowState::Maximized => ask(ADD, across, down),
        WindowState::Normal | WindowState::Minimized => ask(REMOVE, across, down),
    }
}

/// Asks for a place in the stack.
pub(in crate::x11) fn put_below(
    link: &Link,
    listing: &Listing,
    id: WindowId,
    above: WindowId,
) -> Result<(), Trouble> {
    let (listed, window) = find(listing, id)?;
    let (sibling, sibling_window) = find(listing, above)?;
    if listing.managed {
        let data = [SOURCE_PAGER, sibling_window, BELOW, 0, 0];
        return tell_manager(link, window, link.atoms._NET_RESTACK_WINDOW, data);
    }
    let changes = ConfigureWindowAux::new().sibling(sibling.top).stack_mode(StackMode::BELOW);
    link.x.configure_window(listed.top, &changes)?.check()?;
    Ok(())
}

/// The window manager's name, as it gives it.
pub(in crate::x11) fn manager(link: &Link, listing: &Listing) -> Result<Option<String>, Trouble> {
    if !listing.managed {
        return Ok(None);
    }
    let check = link.atoms._NET_SUPPORTING_WM_CHECK;
    let own = link.x.get_property(false, link.root, check, AtomEnum::WINDOW, 0, 1)?.reply()?;
    let Some(window) = own.value32().and_then(|mut ids| ids.next()) else { return Ok(Some(String::new())) };
    let name = link.x.get_property(false, window, link.atoms._NET_WM_NAME, AtomEnum::ANY, 0, 64)?;
    let name = unless_refused(name.reply())?.map(|reply| reply.value).unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(&name).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decorations_and_shadows_keep_their_widths() {
        let decorated = (Rect::new(101, 120, 400, 300), Rect::new(100, 100, 402, 321));
        let (client, visible) = decorated;
        let moved = shifted(client, &visible, &Rect::new(0, 0, 502, 221));
        assert_eq!(moved, Rect::new(1, 20, 500, 200));
        let with_shadow = Rect::new(74, 77, 452, 352);
        assert_eq!(shifted(with_shadow, &Rect::new(100, 100, 400, 300), &Rect::new(-5, 0, 400, 300)).x, -31);
        assert_eq!(shifted(client, &visible, &Rect::new(0, 0, 1, 1)).width, 1);
    }
}
