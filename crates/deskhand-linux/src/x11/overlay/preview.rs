//! The window of the preview, in a corner of the screen.

use std::sync::Arc;

use deskhand_core::desktop::PreviewFrame;
use deskhand_core::geometry::{Point, Rect};
use x11rb::connection::Connection;
use x11rb::protocol::xproto::{ConfigureWindowAux, ConnectionExt as _, Pixmap, StackMode, Window as XWindow};

use super::canvas::Picture;
use super::card;
use super::own::{Own, Sprite};
use super::pane::{Pane, Panes};
use crate::x11::connection::{Link, Trouble};

/// Between the preview and the edges of the screen, in logical pixels: panels are about as high.
const MARGIN: f64 = 40.0;
/// So far around it an agent may act without making it go to another corner, in logical pixels.
const ROOM: f64 = 24.0;

/// A corner of a display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Corner {
    right: bool,
    bottom: bool,
}

/// Corners in the order in which they are taken: where desktops show things of their own comes last.
const CORNERS: [Corner; 4] = [
    Corner { right: true, bottom: true },
    Corner { right: false, bottom: true },
    Corner { right: true, bottom: false },
    Corner { right: false, bottom: false },
];

/// The window.
pub(super) struct Preview {
    window: XWindow,
    pixmap: Pixmap,
    area: Rect,
    corner: Corner,
    translucent: bool,
    caption: String,
}

impl Preview {
    /// Shows `frame`, in the window that there is or in a new one.
    pub(super) fn show(
        old: Option<Self>,
        (link, own, panes): (&Link, &Own, &Panes),
        frame: &PreviewFrame,
    ) -> Result<Self, Trouble> {
        let translucent = panes.are_translucent(link)?;
        let picture = card::draw(frame);
        let size = (picture.pixels.width, picture.pixels.height);
        let corner = choose(frame, size, old.as_ref().map(|old| old.corner));
        let area = place(frame.display, size, corner, (MARGIN * frame.scale).round() as i32);
        let caption = frame.caption.clone();
        let same = old.as_ref().filter(|old| {
            (old.translucent, old.area.width, old.area.height) == (translucent, size.0, size.1)
        });
        let new = match same {
            Some(&Self { window, pixmap, .. }) => Self { window, pixmap, area, corner, translucent, caption },
            None => {
                let pixmap = panes.upload(link, &picture, translucent)?;
                Self { window: link.x.generate_id()?, pixmap, area, corner, translucent, caption }
            }
        };
        let pixels = Arc::new(picture.pixels.clone());
        own.place(new.window, Sprite { area, pixels, is_cursor: false });
        match old {
            Some(old) if old.window == new.window => new.change(link, panes, &old, &picture)?,
            old => {
                let pane = Pane {
                    window: new.window,
                    area,
                    pixmap: new.pixmap,
                    class: b"agent-preview\0deskhand\0",
                    name: "agent preview",
                };
                panes.open(link, &pane, &picture, translucent)?;
                // The new one is there before the old one goes.
                old.map_or(Ok(()), |old| old.close(link, own))?;
            }
        }
        Ok(new)
    }

    fn change(&self, link: &Link, panes: &Panes, old: &Self, picture: &Picture) -> Result<(), Trouble> {
        panes.paint(link, self.pixmap, picture, self.translucent)?;
        link.x.clear_area(false, self.window, 0, 0, 0, 0)?;
        if old.area != self.area {
            let place = ConfigureWindowAux::new().x(self.area.x).y(self.area.y).stack_mode(StackMode::ABOVE);
            link.x.configure_window(self.window, &place)?;
        }
        Ok(())
    }

    /// The window, and where it is on the screen.
    pub(super) fn place(&self) -> (XWindow, Rect) {
        (self.window, self.area)
    }

    /// Whether this frame tells of something else than the last one.
    pub(super) fn is_news(&self, frame: &PreviewFrame) -> bool {
        self.caption != frame.caption
    }

    /// Takes the window away.
    pub(super) fn close(self, link: &Link, own: &Own) -> Result<(), Trouble> {
        link.x.destroy_window(self.window)?;
        link.x.free_pixmap(self.pixmap)?;
        own.take(self.window);
        Ok(())
    }
}

/// The corner in which nothing lies below that is acted on. It stays where it is if it can.
fn choose(frame: &PreviewFrame, size: (u32, u32), present: Option<Corner>) -> Corner {
    let (margin, room) = ((MARGIN * frame.scale).round() as i32, (ROOM * frame.scale).round() as i32);
    let is_clear = |corner: &Corner| {
        let area = place(frame.display, size, *corner, margin);
        let around = Rect::new(
            area.x.saturating_sub(room),
            area.y.saturating_sub(room),
            area.width.saturating_add(2 * room.unsigned_abs()),
            area.height.saturating_add(2 * room.unsigned_abs()),
        );
        !frame.keep_clear.iter().any(|point: &Point| around.contains(*point))
    };
    let covers = |corner: Corner| {
        let area = place(frame.display, size, corner, margin);
        let common = frame.window.and_then(|window| window.intersection(&area));
        common.map_or(0, |common| u64::from(common.width) * u64::from(common.height))
    };
    let clear: Vec<Corner> = present.into_iter().chain(CORNERS).filter(is_clear).collect();
    // The first of those that cover least; where nothing is clear it stays.
    clear.into_iter().min_by_key(|corner| covers(*corner)).or(present).unwrap_or(CORNERS[0])
}

/// Where something of this size lies in a corner of a display.
fn place(display: Rect, (width, height): (u32, u32), corner: Corner, margin: i32) -> Rect {
    let along = |start: i32, length: u32, own: u32, at_end: bool| {
        let rest = length.saturating_sub(own).cast_signed();
        let margin = margin.min(rest / 2);
        start.saturating_add(if at_end { rest - margin } else { margin })
    };
    let x = along(display.x, display.width, width, corner.right);
    let y = along(display.y, display.height, height, corner.bottom);
    Rect::new(x, y, width, height)
}

#[cfg(test)]
mod tests {
    use deskhand_core::desktop::{Colour, Pixels};

    use super::*;

    fn frame(keep_clear: &[(i32, i32)]) -> PreviewFrame {
        PreviewFrame {
            pixels: Pixels { width: 0, height: 0, rgba: Vec::new() },
            caption: String::new(),
            colour: Colour::new(0),
            display: Rect::new(100, 0, 1000, 800),
            scale: 1.0,
            keep_clear: keep_clear.iter().map(|(x, y)| Point::new(*x, *y)).collect(),
            window: None,
        }
    }

    #[test]
    fn it_lies_in_the_corner_with_a_margin() {
        let display = Rect::new(100, 0, 1000, 800);
        assert_eq!(place(display, (300, 200), CORNERS[0], 40), Rect::new(760, 560, 300, 200));
        assert_eq!(place(display, (300, 200), CORNERS[3], 40), Rect::new(140, 40, 300, 200));
        assert_eq!(place(display, (990, 900), CORNERS[0], 40), Rect::new(105, 0, 990, 900), "less room");
    }

    #[test]
    fn it_covers_the_window_as_little_as_it_can() {
        let at = |x, y| PreviewFrame { window: Some(Rect::new(x, y, 300, 300)), ..frame(&[]) };
        assert_eq!(choose(&at(700, 450), (300, 200), Some(CORNERS[0])), CORNERS[1]);
        assert_eq!(
            choose(&at(400, 200), (300, 200), Some(CORNERS[1])),
            CORNERS[1],
            "it covers nothing and stays"
        );
        let whole = PreviewFrame { window: Some(Rect::new(100, 0, 1000, 800)), ..frame(&[]) };
        assert_eq!(choose(&whole, (300, 200), Some(CORNERS[2])), CORNERS[2], "all are the same");
    }

    #[test]
    fn it_goes_out_of_the_way_and_otherwise_stays() {
        let size = (300, 200);
        assert_eq!(choose(&frame(&[]), size, None), CORNERS[0]);
        let elsewhere = choose(&frame(&[(800, 600)]), size, Some(CORNERS[0]));
        assert_eq!(elsewhere, CORNERS[1]);
        assert_eq!(choose(&frame(&[(500, 100)]), size, Some(elsewhere)), elsewhere, "it does not jump back");
        let everywhere = [(800, 600), (200, 600), (800, 100), (200, 100)];
        assert_eq!(choose(&frame(&everywhere), size, Some(CORNERS[2])), CORNERS[2]);
    }
}
