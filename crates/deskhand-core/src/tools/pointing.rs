//! Puts the pointer on an element: brings it into view, follows it until it stands still, and makes sure that nothing
//! covers it.

use std::time::Duration;

use tokio::time::Instant;

use super::cover;
use super::target::{self, Element, Reach};
use crate::desktop::Details;
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Point;

/// How often an element that moves away is followed.
const CHASES: usize = 4;
/// Scrolling an element into view takes so long at most: browsers glide, and tell its place from another process.
const GLIDE: Duration = Duration::from_millis(1200);
/// While it glides, it is looked at so often: toolkits do not tell all that move.
const LOOK: Duration = Duration::from_millis(50);

/// The point to press of an element, where the pointer is then. One that is scrolled away is brought into view first.
///
/// # Errors
/// `not_supported` for one that is not on the screen and does not come there, `occluded` for one that is covered by another
/// window or within its page.
pub(super) async fn point_at(context: &Context, element: &Element) -> Result<Point> {
    let mut at = pointed_at(context, element).await?;
    if cover::over(context, element, at).await?.is_none() {
        return Ok(at);
    }
    // What is scrolled out of a box of its page has a place beside that box.
    let _ = context.desktop().accessibility.scroll_into_view(element.id()).await;
    let begun = Instant::now();
    loop {
        context.pause(LOOK).await?;
        let now = pointed_at(context, element).await?;
        match cover::over(context, element, now).await? {
            None if now == at => return Ok(now),
            Some(cover) if now == at && begun.elapsed() >= cover::LATENESS => {
                return Err(cover::occluded(context, element, at, &cover).await);
            }
            _ => at = now,
        }
    }
}

/// Puts the pointer on an element of a window that no other covers.
async fn pointed_at(context: &Context, element: &Element) -> Result<Point> {
    let details = in_view(context, element).await?;
    let mut at = element.press_point(&details)?;
    // LibreOffice knows where its window is only once the pointer has moved over it, and other programs move things that
    // are pointed at: what was told of the frame before is not trusted.
    for _ in 0..CHASES {
        if !target::is_on_display(context, at).await? {
            let message = format!(
                "{} lies beyond every display; nothing was done; move the window",
                element.describe()
            );
            return Err(Error::new(Code::NotSupported, message));
        }
        target::require_uncovered(context, &element.window, at, Reach::of(element)).await?;
        context.desktop().pointer.move_to(at).await?;
        let now = element.press_point(&element.details(context, 0, false).await?)?;
        if now == at {
            if let Some(turn) = context.turn() {
                turn.at_point(at);
            }
            return Ok(at);
        }
        at = now;
    }
    let message = format!("{} keeps moving; nothing was done", element.describe());
    Err(Error::new(Code::NotSupported, message))
}

/// Details of the element, scrolled into view if it is out of it and its toolkit can: when it is there and stands still.
async fn in_view(context: &Context, element: &Element) -> Result<Details> {
    let details = element.details(context, 0, false).await?;
    let accessibility = &context.desktop().accessibility;
    if element.press_point(&details).is_ok()
        || !accessibility.scroll_into_view(element.id()).await.unwrap_or(false)
    {
        return Ok(details);
    }
    let begun = Instant::now();
    let mut last = None;
    loop {
        let details = element.details(context, 0, false).await?;
        let now = element.press_point(&details).ok();
        if (now.is_some() && now == last) || begun.elapsed() >= GLIDE {
            return Ok(details);
        }
        last = now;
        context.pause(LOOK).await?;
    }
}
