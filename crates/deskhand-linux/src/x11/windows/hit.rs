//! What a press at a point would reach.

use deskhand_core::desktop::{Hit, WindowKind};
use deskhand_core::geometry::Point;
use x11rb::protocol::xproto::{ConnectionExt as _, EventMask, GrabMode, GrabStatus, Time, Window as XWindow};

use super::listing::{self, Listing};
use crate::x11::connection::{Link, Trouble, unless_refused};

/// Windows may be nested so deep in one another; a deeper tree is looked at down to here.
const MAX_DEPTH: usize = 64;

/// Looks at `point`. Descends from the root, which respects the shapes of windows and of their input.
pub(in crate::x11) fn test(link: &Link, listing: &Listing, point: Point) -> Result<Hit, Trouble> {
    let windows = listing.windows.iter().map(|listed| listed.window.clone()).collect();
    let (Ok(x), Ok(y)) = (i16::try_from(point.x), i16::try_from(point.y)) else {
        return Ok(Hit { window: None, grabbed: false, windows });
    };
    let top = link.x.translate_coordinates(link.root, link.root, x, y)?.reply()?.child;
    let window = match listing.carried_by(top) {
        Some(listed) => Some(listed.clone()),
        None if top == x11rb::NONE => None,
        None => listing::read_other(link, top)?,
    };
    // A client that shows a menu holds the pointer: a press in the menu reaches it, one elsewhere in the client's windows
    // only closes the menu.
    let own_popup = window.as_ref().is_some_and(|hit| hit.window.kind == WindowKind::Popup);
    let grabbed = !own_popup && is_grabbed(link)?;
    Ok(Hit { window: window.map(|listed| listed.window), grabbed, windows })
}

/// Whether another client holds the pointer.
///
/// The protocol tells nobody who holds it, so this tries to take it. Taken on the very window that the pointer is
/// in, a grab causes no enter and leave events, so no client sees that it came and went.
fn is_grabbed(link: &Link) -> Result<bool, Trouble> {
    let window = window_under_pointer(link)?;
    let (asynchronous, now) = (GrabMode::ASYNC, Time::CURRENT_TIME);
    let none = EventMask::NO_EVENT;
    let grab =
        link.x.grab_pointer(true, window, none, asynchronous, asynchronous, x11rb::NONE, x11rb::NONE, now)?;
    link.x.ungrab_pointer(now)?;
    let status = unless_refused(grab.reply())?.map(|reply| reply.status);
    Ok(matches!(status, Some(GrabStatus::ALREADY_GRABBED | GrabStatus::FROZEN)))
}

fn window_under_pointer(link: &Link) -> Result<XWindow, Trouble> {
    let mut window = link.root;
    for _ in 0..MAX_DEPTH {
        match unless_refused(link.x.query_pointer(window)?.reply())? {
            Some(pointer) if pointer.child != x11rb::NONE => window = pointer.child,
            _ => break,
        }
    }
    Ok(window)
}
