//! What a cursor looks like: an arrow with its label, drawn point by point from distances to shapes.

use deskhand_core::desktop::{Colour, Pixels};
use deskhand_core::geometry::{Point, Rect};

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

/// A picture of a cursor.
pub(super) struct Picture {
    pub(super) pixels: Pixels,
    /// The pixel of the picture that lies on the point that is shown; it may lie outside.
    pub(super) hot: Point,
}

/// A box by its corners.
#[derive(Clone, Copy)]
struct Area {
    from: Spot,
    to: Spot,
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

/// The share of a pixel that a shape covers whose edge is so far from its middle; inside is negative.
fn cover(distance: f32) -> f32 {
    (0.5 - distance).clamp(0.0, 1.0)
}

fn to_line(at: Spot, [from, to]: [Spot; 2]) -> f32 {
    let (along, off) = ((to.0 - from.0, to.1 - from.1), (at.0 - from.0, at.1 - from.1));
    let length = along.0 * along.0 + along.1 * along.1;
    let share =
        if length > 0.0 { ((off.0 * along.0 + off.1 * along.1) / length).clamp(0.0, 1.0) } else { 0.0 };
    (off.0 - along.0 * share).hypot(off.1 - along.1 * share)
}

fn polygon(at: Spot, corners: &[Spot]) -> f32 {
    let mut nearest = f32::MAX;
    let mut inside = false;
    for (place, &from) in corners.iter().enumerate() {
        let to = corners[(place + 1) % corners.len()];
        nearest = nearest.min(to_line(at, [from, to]));
        let crosses = (from.1 > at.1) != (to.1 > at.1)
            && at.0 < (to.0 - from.0) * (at.1 - from.1) / (to.1 - from.1) + from.0;
        inside ^= crosses;
    }
    if inside { -nearest } else { nearest }
}

fn rounded(at: Spot, area: &Area, radius: f32) -> f32 {
    let half = ((area.to.0 - area.from.0) / 2.0, (area.to.1 - area.from.1) / 2.0);
    let off = (
        (at.0 - area.from.0 - half.0).abs() - half.0 + radius,
        (at.1 - area.from.1 - half.1).abs() - half.1 + radius,
    );
    off.0.max(0.0).hypot(off.1.max(0.0)) + off.0.max(off.1).min(0.0) - radius
}

/// Points with premultiplied colours.
struct Canvas {
    left: i32,
    top: i32,
    width: usize,
    points: Vec<[f32; 4]>,
}

impl Canvas {
    fn new(area: &Area, spare: f32) -> Self {
        let (left, top) = ((area.from.0 - spare).floor(), (area.from.1 - spare).floor());
        let width = ((area.to.0 + spare).ceil() - left) as usize;
        let height = ((area.to.1 + spare).ceil() - top) as usize;
        Self { left: left as i32, top: top as i32, width, points: vec![[0.0; 4]; width * height] }
    }

    /// Lays a colour over everything, as thick as `alpha` says of each point.
    fn paint(&mut self, colour: [f32; 3], alpha: impl Fn(Spot) -> f32) {
        let (left, top, width) = (self.left, self.top, self.width);
        for (place, point) in self.points.iter_mut().enumerate() {
            let at =
                ((left + (place % width) as i32) as f32 + 0.5, (top + (place / width) as i32) as f32 + 0.5);
            lay(point, colour, alpha(at));
        }
    }

    /// Draws lines with round ends. Each point is painted once, however many lines meet there.
    fn strokes(&mut self, colour: [f32; 3], lines: &[[Spot; 2]], thick: f32) {
        let mut alpha = vec![0.0_f32; self.points.len()];
        let height = self.points.len() / self.width;
        for line in lines {
            let range = |a: f32, b: f32, start: i32, length: usize| {
                let from = (a.min(b) - thick - 1.0).floor() as i32 - start;
                let to = (a.max(b) + thick + 1.0).ceil() as i32 - start;
                let limit = |value: i32| usize::try_from(value).unwrap_or(0).min(length);
                limit(from)..limit(to)
            };
            for y in range(line[0].1, line[1].1, self.top, height) {
                for x in range(line[0].0, line[1].0, self.left, self.width) {
                    let at = ((self.left + x as i32) as f32 + 0.5, (self.top + y as i32) as f32 + 0.5);
                    let place = y * self.width + x;
                    alpha[place] = alpha[place].max(cover(to_line(at, *line) - thick));
                }
            }
        }
        for (point, alpha) in self.points.iter_mut().zip(alpha) {
            lay(point, colour, alpha);
        }
    }

    fn finish(self) -> Picture {
        let straight = |[red, green, blue, alpha]: [f32; 4]| {
            let part = |value: f32| if alpha > 0.0 { (value / alpha * 255.0).round() as u8 } else { 0 };
            [part(red), part(green), part(blue), (alpha * 255.0).round() as u8]
        };
        let rgba = self.points.iter().flat_map(|point| straight(*point)).collect();
        let (width, height) = (self.width as u32, (self.points.len() / self.width) as u32);
        Picture { pixels: Pixels { width, height, rgba }, hot: Point::new(-self.left, -self.top) }
    }
}

fn lay(point: &mut [f32; 4], colour: [f32; 3], alpha: f32) {
    if alpha <= 0.0 {
        return;
    }
    for (below, above) in point.iter_mut().zip(colour) {
        *below = *below * (1.0 - alpha) + above * alpha;
    }
    point[3] = point[3] * (1.0 - alpha) + alpha;
}

impl Picture {
    /// Where it lies if it shows `at`.
    pub(super) fn area(&self, at: Point) -> Rect {
        Rect::new(
            at.x.saturating_sub(self.hot.x),
            at.y.saturating_sub(self.hot.y),
            self.pixels.width,
            self.pixels.height,
        )
    }

    /// Bytes as servers of a little-endian display take them, colours multiplied by their coverage.
    pub(super) fn premultiplied(&self) -> Vec<u8> {
        let scaled = |part: u8, alpha: u8| {
            u8::try_from((u32::from(part) * u32::from(alpha) + 127) / 255).unwrap_or(u8::MAX)
        };
        let points = self.pixels.rgba.as_chunks::<4>().0.iter();
        points.flat_map(|&[r, g, b, a]| [scaled(b, a), scaled(g, a), scaled(r, a), a]).collect()
    }

    /// The same for a window that nothing shines through.
    pub(super) fn opaque(&self) -> Vec<u8> {
        self.pixels.rgba.as_chunks::<4>().0.iter().flat_map(|&[r, g, b, _]| [b, g, r, 255]).collect()
    }

    /// The parts of rows that are at least half covered, in pixels of the picture.
    pub(super) fn runs(&self) -> Vec<Rect> {
        let mut runs = Vec::new();
        let width = self.pixels.width.max(1) as usize;
        for (y, row) in (0..).zip(self.pixels.rgba.as_chunks::<4>().0.chunks_exact(width)) {
            let mut begun = None;
            for (x, covered) in (0..).zip(row.iter().map(|point| point[3] >= 128).chain([false])) {
                match begun {
                    None if covered => begun = Some(x),
                    Some(start) if !covered => {
                        runs.push(Rect::new(start, y, (x - start).unsigned_abs(), 1));
                        begun = None;
                    }
                    _ => {}
                }
            }
        }
        runs
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
