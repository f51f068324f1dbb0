//! The first redirection of a window, after which its covered parts hold old pixels until they are painted.

use std::time::{Duration, Instant};

use deskhand_core::geometry::Rect;
use x11rb::connection::Connection;
use x11rb::protocol::Event;
use x11rb::protocol::composite::{ConnectionExt as _, Redirect};
use x11rb::protocol::damage::{ConnectionExt as _, ReportLevel};
use x11rb::protocol::xproto::{ConnectionExt as _, Window as XWindow};

use crate::x11::connection::{Link, Trouble, unless_refused};
use crate::x11::windows::frame::remainder;

/// An application that has not painted by then is told about as stale; a toolkit's frame takes 16 ms.
const REPAINT_BOUND: Duration = Duration::from_millis(100);

/// The server fills what was covered with the window's background at once; the application's own drawing follows.
/// When nothing was drawn for this time, it is done.
const REPAINT_STILL: Duration = Duration::from_millis(25);

/// How a window stands that has been redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Painted {
    /// Its memory shows what the application drew.
    Yes,
    /// Not yet. This watch reports when the application draws.
    NotYet(u32),
}

/// Redirects `top` into memory of its own, for as long as this connection lives, and waits until `hidden` (screen
/// coordinates; what was covered or off the screen) has been painted. `None` if the window is gone.
///
/// The server copies what the screen showed at the window's place, cover included, fills what was not visible with the
/// window's background if it has one, and asks the application to draw there.
pub(super) fn redirect(
    link: &Link,
    top: XWindow,
    area: Rect,
    hidden: Vec<Rect>,
) -> Result<Option<Painted>, Trouble> {
    if is_redirected(link, top)? {
        let redirected = link.x.composite_redirect_window(top, Redirect::AUTOMATIC)?.check();
        return Ok(unless_refused(redirected)?.map(|()| Painted::Yes));
    }
    let damage = link.x.generate_id()?;
    let watched = link.x.damage_create(damage, top, ReportLevel::RAW_RECTANGLES)?;
    let redirected = link.x.composite_redirect_window(top, Redirect::AUTOMATIC)?;
    // Events carry the number of our last request before them. With another request right behind, those of the
    // server's own filling can be told from those of the application's drawing.
    let own_filling = [watched.sequence_number(), redirected.sequence_number()];
    link.x.no_operation()?;
    let watched = unless_refused(watched.check())?.is_some();
    let redirected = unless_refused(redirected.check())?.is_some();
    if !watched {
        return Ok(None);
    }
    if !redirected {
        link.x.damage_destroy(damage)?;
        return Ok(None);
    }
    let mut painted = Painted::Yes;
    if !hidden.is_empty() && !await_painting(link, damage, own_filling, area, hidden)? {
        let watch = link.x.generate_id()?;
        let created = link.x.damage_create(watch, top, ReportLevel::NON_EMPTY)?;
        if unless_refused(created.check())?.is_some() {
            // A watch begins with all of the window as damaged.
            link.x.damage_subtract(watch, x11rb::NONE, x11rb::NONE)?;
            link.sync()?;
            link.drain()?;
            painted = Painted::NotYet(watch);
        }
    }
    link.x.damage_destroy(damage)?;
    link.sync()?;
    Ok(Some(painted))
}

/// Waits a bounded time until something is drawn in `top`, and then until nothing more is.
pub(super) fn await_drawing(link: &Link, top: XWindow) -> Result<(), Trouble> {
    let damage = link.x.generate_id()?;
    let watched = link.x.damage_create(damage, top, ReportLevel::RAW_RECTANGLES)?.check();
    if unless_refused(watched)?.is_none() {
        return Ok(());
    }
    let begun = Instant::now();
    let mut until = begun + REPAINT_BOUND;
    while Instant::now() < until {
        link.await_events(until - Instant::now());
        while let Some(event) = link.x.poll_for_event()? {
            if matches!(event, Event::DamageNotify(event) if event.damage == damage) {
                until = (begun + REPAINT_BOUND).min(Instant::now() + REPAINT_STILL);
            }
        }
    }
    // The window may have gone meanwhile, and the watch with it.
    unless_refused(link.x.damage_destroy(damage)?.check())?;
    Ok(())
}

/// Whether the window has memory of its own already, as under every compositing window manager: then nothing of it
/// was ever covered.
fn is_redirected(link: &Link, top: XWindow) -> Result<bool, Trouble> {
    let pixmap = link.x.generate_id()?;
    let named = link.x.composite_name_window_pixmap(top, pixmap)?.check();
    let redirected = unless_refused(named)?.is_some();
    if redirected {
        link.x.free_pixmap(pixmap)?;
    }
    Ok(redirected)
}

/// Waits until all of `hidden` has been drawn, the application has drawn something, and nothing more is drawn. False
/// if that was not so in time.
fn await_painting(
    link: &Link,
    damage: u32,
    own_filling: [u64; 2],
    area: Rect,
    mut hidden: Vec<Rect>,
) -> Result<bool, Trouble> {
    // Events carry the lower half of the number.
    let own_filling = own_filling.map(|number| (number & 0xffff) as u16);
    let begun = Instant::now();
    let mut last_drawn = begun;
    let mut by_application = false;
    loop {
        while let Some(event) = link.x.poll_for_event()? {
            if let Event::DamageNotify(event) = event
                && event.damage == damage
            {
                last_drawn = Instant::now();
                by_application |= !own_filling.contains(&event.sequence);
                let drawn = Rect::new(
                    area.x + i32::from(event.area.x),
                    area.y + i32::from(event.area.y),
                    event.area.width.into(),
                    event.area.height.into(),
                );
                hidden = hidden.into_iter().flat_map(|rect| remainder(rect, &[drawn])).collect();
            }
        }
        let done = hidden.is_empty() && by_application;
        let now = Instant::now();
        let bound = begun + REPAINT_BOUND;
        let until = if done { bound.min(last_drawn + REPAINT_STILL) } else { bound };
        if now >= until {
            return Ok(done);
        }
        link.await_events(until - now);
    }
}
