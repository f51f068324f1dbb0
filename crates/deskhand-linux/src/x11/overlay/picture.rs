//! What a cursor looks like: an arrow with its label.

use deskhand_core::desktop::Colour;

use super::canvas::{Area, Canvas, Picture, cover, polygon, rounded};
use super::font::{self, Spot};

/// Corners of the arrow, of a height of 1; its point is the place that it shows.
const ARROW: [Spot; 4] = [(0.02, 0.02), (0.31, 0.95), (0.44, 0.55), (0.84, 0.42)];
/// How round the corners are, for a height of 1.
const ROUND: f32 = 0.035;
/// Width of the white rim, for a height of 1.
const RIM: f32 = 0.07;
/// Height of the label's capitals, for a height of the arrow of 1.
const CAPITAL: f32 = 0.36;
/// The smallest capitals that can be read, in logical pixels.
const SMALLEST: f32 = 8.0;
/// Width of a letter's strokes, for capitals of a height of 1.
const STROKE: f32 = 0.165;
/// Where the label is, for a height of the arrow of 1.
const LABEL: Spot = (0.62, 0.82);
/// Radius of the ring of a press, for a height of the arrow of 1.
const RING: f32 = 0.5;
/// How far a shadow reaches, for a height of the arrow of 1.
const SHADOW: f32 = 0.16;

/// Where the label stands, seen from the point that is shown. It turns aside where the screen ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Side {
    pub(super) left: bool,
    pub(super) above: bool,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Drawing<'a> {
    pub(super) label: &'a str,
    pub(super) colour: Colour,
    /// Height of the arrow in device pixels.
    pub(super) height: f32,
    /// Device pixels for each logical one.
    pub(super) scale: f32,
    pub(super) side: Side,
    /// Whether it presses.
    pub(super) pressed: bool,
    /// Whether it may let what is below shine through.
    pub(super) translucent: bool,
}

impl Drawing<'_> {
    fn capital(&self) -> f32 {
        (CAPITAL * self.height).max(SMALLEST * self.scale)
    }

    /// The label's ground, and its text, seen from the point that is shown.
    fn label(&self) -> Option<(Area, Vec<[Spot; 2]>)> {
        let capital = self.capital();
        let unit = capital / font::BASE;
        let (lines, columns) = font::lines(self.label);
        if lines.is_empty() {
            return None;
        }
        let (across, down) = (capital * 0.85, capital * 0.68);
        let (width, height) = (columns * unit + 2.0 * across, capital + 2.0 * down);
        let x = if self.side.left { -width - 0.05 * self.height } else { LABEL.0 * self.height };
        let y = if self.side.above { -height - 0.12 * self.height } else { LABEL.1 * self.height };
        // Whole pixels keep upright strokes sharp.
        let (x, y) = (x.round(), y.round());
        let place = |(column, row): Spot| (x + across + column * unit, y + down + row * unit);
        let text = lines.into_iter().map(|line| line.map(place)).collect();
        Some((Area { from: (x, y), to: (x + width, y + height) }, text))
    }

    /// How large the label is, in device pixels.
    pub(super) fn label_size(&self) -> (f32, f32) {
        self.label().map_or((0.0, 0.0), |(ground, _)| {
            (
                ground.to.0 - ground.from.0 + LABEL.0 * self.height,
                ground.to.1 - ground.from.1 + LABEL.1 * self.height,
            )
        })
    }

    /// Draws it.
    pub(super) fn draw(&self) -> Picture {
        let height = self.height;
        let label = self.label();
        let arrow = ARROW.map(|(x, y)| (x * height, y * height));
        let ring = if self.translucent { RING * height + 2.0 } else { RIM * height + 1.0 };
        let mut area = Area { from: (-ring, -ring), to: (0.9 * height, 1.08 * height) };
        if let Some((ground, _)) = &label {
            area.from = (area.from.0.min(ground.from.0), area.from.1.min(ground.from.1));
            area.to = (area.to.0.max(ground.to.0), area.to.1.max(ground.to.1));
        }
        let spare = if self.translucent { SHADOW * height + 2.0 } else { 2.0 };
        let mut canvas = Canvas::new(&area, spare);
        let Colour { red, green, blue } = self.colour;
        let own = [red, green, blue].map(|part| f32::from(part) / 255.0);
        let white = [1.0; 3];
        let of_arrow = |at: Spot| polygon(at, &arrow) - ROUND * height;
        let of_ground = |ground: &Area, at: Spot| rounded(at, ground, (ground.to.1 - ground.from.1) * 0.32);
        if self.translucent {
            let reach = SHADOW * height;
            let below = |at: Spot| (at.0, at.1 - reach * 0.3);
            let shade = |distance: f32| {
                0.32 * (1.0 - (distance + reach * 0.5) / (1.5 * reach)).clamp(0.0, 1.0).powi(2)
            };
            canvas.paint([0.0; 3], |at| {
                let to_label = label.as_ref().map_or(f32::MAX, |(ground, _)| of_ground(ground, below(at)));
                shade(of_arrow(below(at)).min(to_label))
            });
            if self.pressed {
                canvas.paint(own, |at| {
                    let away = at.0.hypot(at.1);
                    let line = cover((away - RING * height * 0.86).abs() - height * 0.05) * 0.9;
                    line.max(cover(away - RING * height * 0.86) * 0.22)
                });
            }
        }
        canvas.paint(white, |at| cover(of_arrow(at) - RIM * height));
        canvas.paint(own, |at| cover(of_arrow(at)));
        if let Some((ground, text)) = &label {
            canvas.paint(own, |at| cover(of_ground(ground, at)));
            let thick = (STROKE * self.capital()).max(1.1) / 2.0;
            canvas.strokes(white, text, thick);
        }
        canvas.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(label: &str) -> Drawing<'_> {
        Drawing {
            label,
            colour: Colour::new(0x000b_6bd3),
            height: 26.0,
            scale: 1.0,
            side: Side { left: false, above: false },
            pressed: false,
            translucent: true,
        }
    }

    fn at(picture: &Picture, x: i32, y: i32) -> [u8; 4] {
        let place = (picture.hot.y + y) * picture.pixels.width as i32 + picture.hot.x + x;
        picture.pixels.rgba.as_chunks::<4>().0[place as usize]
    }

    #[test]
    fn the_arrow_shows_its_point_and_edges_are_smooth() {
        let picture = drawing("agent 1").draw();
        assert_eq!(at(&picture, 6, 8), [0x0b, 0x6b, 0xd3, 255], "inside of the arrow");
        assert!(at(&picture, -6, -6)[3] < 20, "before its point is nothing but the end of a shadow");
        let alphas: std::collections::HashSet<u8> =
            picture.pixels.rgba.as_chunks::<4>().0.iter().map(|point| point[3]).collect();
        assert!(alphas.len() > 40, "edges and shadows have many steps: {}", alphas.len());
    }

    #[test]
    fn a_press_is_told_by_a_ring() {
        let (plain, pressed) = (drawing("x").draw(), Drawing { pressed: true, ..drawing("x") }.draw());
        assert_eq!(plain.hot, pressed.hot, "so that one can take the other's place");
        assert!(at(&plain, -11, 0)[3] < 60 && at(&pressed, -11, 0)[3] > 150);
    }

    #[test]
    fn the_label_turns_aside() {
        for (left, above) in [(false, false), (true, false), (false, true), (true, true)] {
            let picture = Drawing { side: Side { left, above }, ..drawing("agent 1") }.draw();
            let right = picture.pixels.width as i32 - picture.hot.x;
            assert_eq!(picture.hot.x > right, left, "{left} {above}");
            let below = picture.pixels.height as i32 - picture.hot.y;
            assert!(!above || picture.hot.y > 20 && below < 40, "{left} {above}");
        }
    }

    #[test]
    fn a_shape_has_no_more_than_what_is_drawn() {
        let picture = Drawing { translucent: false, ..drawing("agent 1") }.draw();
        let runs = picture.runs();
        let covered: u32 = runs.iter().map(|run| run.width).sum();
        assert!(runs.iter().all(|run| run.right() <= i64::from(picture.pixels.width)));
        assert!(covered > 300 && covered < picture.pixels.width * picture.pixels.height * 3 / 4, "{covered}");
    }

    #[test]
    fn without_a_label_there_is_an_arrow() {
        let picture = drawing("").draw();
        assert!(picture.pixels.width < 70, "{}", picture.pixels.width);
    }
}
