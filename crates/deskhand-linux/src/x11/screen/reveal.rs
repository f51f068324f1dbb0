//! The first redirection of a window, after which its covered parts hold old pixels until they are painted.

use std::time::{Duration, Instant};

use deskhand_core::geometry::Rect;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::composite::{ConnectionExt as _, Redirect};
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::Window as XWindow;

use crate::x11::connection::{Link, Trouble, unless_refused};
use crate::x11::windows::frame::remainder;

/// An application that has not painted by then is told about as stale; a toolkit's frame takes 16 ms.
const REPAINT_BOUND: Duration = Duration::from_millis(100);

/// The server fills what was covered with the window's background at once; the application's own drawing follows.
/// When nothing was drawn for this time, it is done.
const REPAINT_STILL: Duration = Duration::from_millis(25);

/// Redirects `top` into memory of its own, for as long as this connection lives, and waits until `hidden` (screen
/// coordinates; what was covered or off the screen) has been painted. Returns whether it has; `None` if the window
/// is gone.
///
/// The server copies what the screen showed at the window's place, cover included, and sends the application
/// exposures for what was not visible.
pub(super) fn redirect(
    link: &Link,
    top: XWindow,
    area: Rect,
    mut hidden: Vec<Rect>,
) -> Result<Option<bool>, Trouble> {
    let damage = link.x.generate_id()?;
    let watched = link.x.damage_create(damage, top, ReportLevel::RAW_RECTANGLES)?;
    let redirected = link.x.composite_redirect_window(top, Redirect::AUTOMATIC)?;
    let watched = unless_refused(watched.check())?.is_some();
    let redirected = unless_refused(redirected.check())?.is_some();
    if !redirected {
        if watched {
            link.x.damage_destroy(damage)?;
        }
        return Ok(None);
    }
    if !watched {
        return Ok(Some(hidden.is_empty()));
    }
    if !hidden.is_empty() {
        hidden = await_painting(link, damage, area, hidden)?;
    }
    link.x.damage_destroy(damage)?;
    link.drain()?;
    Ok(Some(hidden.is_empty()))
}

/// Waits until `hidden` has been drawn and nothing more is; returns what has not been drawn in time.
fn await_painting(link: &Link, damage: u32, area: Rect, mut hidden: Vec<Rect>) -> Result<Vec<Rect>, Trouble> {
    let begun = Instant::now();
    let mut last_drawn = begun;
    loop {
        while let Some(event) = link.x.poll_for_event()? {
            if let Event::DamageNotify(event) = event
                && event.damage == damage
            {
                last_drawn = Instant::now();
                let drawn = Rect::new(
                    area.x + i32::from(event.area.x),
                    area.y + i32::from(event.area.y),
                    event.area.width.into(),
                    event.area.height.into(),
                );
                hidden = hidden.into_iter().flat_map(|rect| remainder(rect, &[drawn])).collect();
            }
        }
        let now = Instant::now();
        let bound = begun + REPAINT_BOUND;
        let until = if hidden.is_empty() { bound.min(last_drawn + REPAINT_STILL) } else { bound };
        if now >= until {
            return Ok(hidden);
        }
        link.await_events(until - now);
    }
}
