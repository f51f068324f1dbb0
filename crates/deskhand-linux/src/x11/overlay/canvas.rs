//! Pictures that are drawn point by point, from distances to shapes.

use deskhand_core::desktop::Pixels;
use deskhand_core::geometry::{Point, Rect};

use super::font::Spot;

/// A picture of something that is shown.
pub(super) struct Picture {
    pub(super) pixels: Pixels,
    /// The pixel of the picture that lies on the point that it is drawn for; it may lie outside.
    pub(super) hot: Point,
}

/// A box by its corners.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub(super) from: Spot,
    pub(super) to: Spot,
}

/// The share of a pixel that a shape covers whose edge is so far from its middle; inside is negative.
pub(super) fn cover(distance: f32) -> f32 {
    (0.5 - distance).clamp(0.0, 1.0)
}

fn to_line(at: Spot, [from, to]: [Spot; 2]) -> f32 {
    let (along, off) = ((to.0 - from.0, to.1 - from.1), (at.0 - from.0, at.1 - from.1));
    let length = along.0 * along.0 + along.1 * along.1;
    let share =
        if length > 0.0 { ((off.0 * along.0 + off.1 * along.1) / length).clamp(0.0, 1.0) } else { 0.0 };
    (off.0 - along.0 * share).hypot(off.1 - along.1 * share)
}

/// How far a point is from the edge of a polygon; inside is negative.
pub(super) fn polygon(at: Spot, corners: &[Spot]) -> f32 {
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

/// The same for a box with round corners.
pub(super) fn rounded(at: Spot, area: &Area, radius: f32) -> f32 {
    let half = ((area.to.0 - area.from.0) / 2.0, (area.to.1 - area.from.1) / 2.0);
    let off = (
        (at.0 - area.from.0 - half.0).abs() - half.0 + radius,
        (at.1 - area.from.1 - half.1).abs() - half.1 + radius,
    );
    off.0.max(0.0).hypot(off.1.max(0.0)) + off.0.max(off.1).min(0.0) - radius
}

/// Points with premultiplied colours.
pub(super) struct Canvas {
    left: i32,
    top: i32,
    width: usize,
    points: Vec<[f32; 4]>,
}

impl Canvas {
    /// Points of an area and of so many more around it.
    pub(super) fn new(area: &Area, spare: f32) -> Self {
        let (left, top) = ((area.from.0 - spare).floor(), (area.from.1 - spare).floor());
        let width = ((area.to.0 + spare).ceil() - left) as usize;
        let height = ((area.to.1 + spare).ceil() - top) as usize;
        Self { left: left as i32, top: top as i32, width, points: vec![[0.0; 4]; width * height] }
    }

    /// Lays a colour over everything, as thick as `alpha` says of each point.
    pub(super) fn paint(&mut self, colour: [f32; 3], alpha: impl Fn(Spot) -> f32) {
        let (left, top, width) = (self.left, self.top, self.width);
        for (place, point) in self.points.iter_mut().enumerate() {
            let at =
                ((left + (place % width) as i32) as f32 + 0.5, (top + (place / width) as i32) as f32 + 0.5);
            lay(point, colour, alpha(at));
        }
    }

    /// Lays a picture over everything, its first point at `from`, as thick as `alpha` says of each point.
    pub(super) fn picture(&mut self, pixels: &Pixels, from: Spot, alpha: impl Fn(Spot) -> f32) {
        let (left, top) = (from.0 as i32 - self.left, from.1 as i32 - self.top);
        let columns = (pixels.width as usize).max(1);
        for (y, row) in pixels.rgba.as_chunks::<4>().0.chunks_exact(columns).enumerate() {
            for (x, &[red, green, blue, _]) in row.iter().enumerate() {
                let (x, y) = (left + x as i32, top + y as i32);
                let place = y as usize * self.width + x as usize;
                let is_inside = x >= 0 && y >= 0 && (x as usize) < self.width;
                if let Some(point) = self.points.get_mut(place).filter(|_| is_inside) {
                    let at = ((self.left + x) as f32 + 0.5, (self.top + y) as f32 + 0.5);
                    lay(point, [red, green, blue].map(|part| f32::from(part) / 255.0), alpha(at));
                }
            }
        }
    }

    /// Draws lines with round ends. Each point is painted once, however many lines meet there.
    pub(super) fn strokes(&mut self, colour: [f32; 3], lines: &[[Spot; 2]], thick: f32) {
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

    /// What was drawn.
    pub(super) fn finish(self) -> Picture {
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
