//! What the preview looks like: a window's picture on a card with a line of text below.

use deskhand_core::desktop::{Colour, PreviewFrame};

use super::canvas::{Area, Canvas, Picture, cover, rounded};
use super::font;

/// The card's colour.
const GROUND: [f32; 3] = [0.10, 0.11, 0.13];
/// Width of the rim, which has the agent's colour, in logical pixels.
const RIM: f32 = 2.0;
/// Radius of the corners in logical pixels.
const CORNER: f32 = 8.0;
/// Height of the caption's capitals in logical pixels.
const CAPITAL: f32 = 8.5;
/// Width of a letter's strokes, for capitals of a height of 1.
const STROKE: f32 = 0.14;
/// Height of the caption in logical pixels.
const CAPTION: f32 = 25.0;
/// What is left and right of the caption in logical pixels.
const ASIDE: f32 = 9.0;
/// A card is at least so wide in logical pixels, so that there is room for the caption.
const NARROWEST: f32 = 300.0;

/// Draws the card of a frame.
pub(super) fn draw(frame: &PreviewFrame) -> Picture {
    let scale = frame.scale as f32;
    let rim = (RIM * scale).round().max(1.0);
    let (across, down) = (frame.pixels.width as f32, frame.pixels.height as f32);
    let width = (across + 2.0 * rim).max((NARROWEST * scale).round());
    let height = down + (CAPTION * scale).round() + 2.0 * rim;
    let card = Area { from: (0.0, 0.0), to: (width, height) };
    let mut canvas = Canvas::new(&card, 0.0);
    let Colour { red, green, blue } = frame.colour;
    let own = [red, green, blue].map(|part| f32::from(part) / 255.0);
    let radius = CORNER * scale;
    let inner = Area { from: (rim, rim), to: (width - rim, height - rim) };
    let within = |at| rounded(at, &inner, (radius - rim).max(0.0));
    canvas.paint(own, |at| cover(rounded(at, &card, radius)));
    canvas.paint(GROUND, |at| cover(within(at)));
    let left = ((width - across) / 2.0).floor();
    canvas.picture(&frame.pixels, (left, rim), |at| cover(within(at)));
    let capital = CAPITAL * scale;
    let unit = capital / font::BASE;
    let room = (width - 2.0 * (rim + ASIDE * scale)) / unit;
    let base = (rim + down + (CAPTION * scale - capital) / 2.0).round();
    let place =
        |(column, row): font::Spot| ((rim + ASIDE * scale).round() + column * unit, base + row * unit);
    let text: Vec<_> = fitting(&frame.caption, room).into_iter().map(|line| line.map(place)).collect();
    canvas.strokes([1.0; 3], &text, (STROKE * capital).max(1.1) / 2.0);
    canvas.finish()
}

/// As much of a text as fits into so many columns, as strokes.
fn fitting(text: &str, columns: f32) -> Vec<[font::Spot; 2]> {
    let (lines, width) = font::lines(text);
    if width <= columns {
        return lines;
    }
    let mut kept = text.to_owned();
    while kept.pop().is_some() {
        let (lines, width) = font::lines(&format!("{}…", kept.trim_end()));
        if width <= columns {
            return lines;
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use deskhand_core::desktop::Pixels;
    use deskhand_core::geometry::Rect;

    use super::*;

    fn frame(width: u32, height: u32, caption: &str) -> PreviewFrame {
        let rgba = [200, 10, 10, 255].repeat((width * height) as usize);
        PreviewFrame {
            pixels: Pixels { width, height, rgba },
            caption: caption.to_owned(),
            colour: Colour::new(0x000b_6bd3),
            display: Rect::new(0, 0, 1280, 800),
            scale: 1.0,
            keep_clear: Vec::new(),
            window: None,
        }
    }

    fn at(picture: &Picture, x: u32, y: u32) -> [u8; 4] {
        picture.pixels.rgba.as_chunks::<4>().0[(y * picture.pixels.width + x) as usize]
    }

    #[test]
    fn the_picture_is_on_the_card_and_the_caption_below_it() {
        let picture = draw(&frame(400, 200, "agent 1: click"));
        assert_eq!((picture.pixels.width, picture.pixels.height), (404, 229));
        assert_eq!(at(&picture, 0, 0)[3], 0, "a round corner");
        assert_eq!(at(&picture, 1, 100), [0x0b, 0x6b, 0xd3, 255], "the rim");
        assert_eq!(at(&picture, 20, 20), [200, 10, 10, 255], "the window");
        let row = |y: u32| (10..390).filter(|x| at(&picture, *x, y)[0] > 180).count();
        assert!((205..225).any(|y| row(y) > 10), "letters");
        assert_eq!(draw(&frame(40, 20, "")).pixels.width, 300, "room for a caption");
    }

    #[test]
    fn a_caption_that_is_too_long_is_cut() {
        let long = "the agent of the whole company: perform_secondary_action · application".repeat(3);
        let picture = draw(&frame(300, 20, &long));
        assert_eq!(at(&picture, 298, 36)[..3], [26, 28, 33], "nothing reaches the edge");
        let lines = fitting(&long, 100.0);
        assert!(!lines.is_empty() && lines.iter().flatten().all(|spot| spot.0 <= 100.0));
        assert_eq!(fitting(&long, 1.0).len(), 0);
    }
}
