//! Conversion of the server's pixels, and putting pictures together.

use deskhand_core::desktop::Pixels;
use deskhand_core::geometry::Rect;

/// What the fourth byte of the server's pixels means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alpha {
    /// Nothing: the window is opaque (depth 24).
    None,
    /// Coverage, with the colours multiplied by it (depth 32), inside of this rectangle of the picture. What a
    /// window manager draws around it has no meaningful coverage.
    Premultiplied(Rect),
}

/// Turns blue-green-red-alpha, as little-endian servers keep it, into straight red-green-blue-alpha, in place.
pub(super) fn convert(bytes: &mut [u8], width: u32, alpha: Alpha) {
    let Alpha::Premultiplied(inside) = alpha else { return opaque(bytes) };
    let stride = usize::try_from(width).unwrap_or(0) * 4;
    if stride == 0 {
        return;
    }
    // A client that asked for depth 32 and never draws coverage means its window to be opaque.
    let covered = (0..).zip(bytes.chunks_exact(stride)).any(|(y, row): (i64, &[u8])| {
        part(row, y, &inside).is_some_and(|row| row.chunks_exact(4).any(|pixel| pixel[3] != 0))
    });
    if !covered {
        return opaque(bytes);
    }
    for (y, row) in (0..).zip(bytes.chunks_exact_mut(stride)) {
        let Some((left, right)) = columns(row.len(), y, &inside) else {
            opaque(row);
            continue;
        };
        opaque(&mut row[..left]);
        straighten(&mut row[left..right]);
        opaque(&mut row[right..]);
    }
}

/// Byte range of `inside` in row `y`.
fn columns(length: usize, y: i64, inside: &Rect) -> Option<(usize, usize)> {
    if y < i64::from(inside.y) || y >= inside.bottom() {
        return None;
    }
    let left = usize::try_from(inside.x).unwrap_or(0) * 4;
    let right = usize::try_from(inside.right()).unwrap_or(0) * 4;
    let (left, right) = (left.min(length), right.min(length));
    (left < right).then_some((left, right))
}

fn part<'r>(row: &'r [u8], y: i64, inside: &Rect) -> Option<&'r [u8]> {
    let (left, right) = columns(row.len(), y, inside)?;
    row.get(left..right)
}

fn opaque(bytes: &mut [u8]) {
    for pixel in bytes.chunks_exact_mut(4) {
        pixel.swap(0, 2);
        pixel[3] = 255;
    }
}

fn straighten(bytes: &mut [u8]) {
    for pixel in bytes.chunks_exact_mut(4) {
        let alpha = u32::from(pixel[3]);
        let straight = |colour: u8| match alpha {
            0 => 0,
            255 => colour,
            _ => u8::try_from((u32::from(colour) * 255 + alpha / 2) / alpha).unwrap_or(255),
        };
        let [blue, green, red] = [pixel[0], pixel[1], pixel[2]].map(straight);
        pixel[..3].copy_from_slice(&[red, green, blue]);
    }
}

/// One picture and where it lies on the screen.
pub(super) struct Layer {
    pub(super) pixels: Pixels,
    pub(super) frame: Rect,
}

impl Layer {
    /// Whether everything in `area` (screen coordinates) is black.
    pub(super) fn is_black(&self, area: Rect) -> bool {
        let Some(area) = area.intersection(&self.frame) else { return false };
        let (left, top) = (area.x.abs_diff(self.frame.x) as usize, area.y.abs_diff(self.frame.y) as usize);
        let rows = self.pixels.rgba.as_chunks::<4>().0.chunks_exact(self.pixels.width.max(1) as usize);
        let mut rows = rows.skip(top).take(area.height as usize);
        rows.all(|row| row.iter().skip(left).take(area.width as usize).all(|pixel| pixel[..3] == [0, 0, 0]))
    }
}

/// Lays pictures over one another, the first lowest, in a picture of all that they cover. What none covers stays
/// transparent.
pub(super) fn merge(mut layers: Vec<Layer>) -> Option<Layer> {
    if layers.len() < 2 {
        return layers.pop();
    }
    let frame = layers.iter().map(|layer| layer.frame).reduce(|one, other| one.union(&other))?;
    let bytes = usize::try_from(u64::from(frame.width) * u64::from(frame.height) * 4).ok()?;
    let mut rgba = vec![0; bytes];
    for layer in &layers {
        lay(&mut rgba, frame, layer);
    }
    Some(Layer { pixels: Pixels { width: frame.width, height: frame.height, rgba }, frame })
}

/// The part of a picture of `frame` that shows `area`, a part of that.
pub(super) fn cut(pixels: &Pixels, frame: Rect, area: Rect) -> Pixels {
    let stride = usize::try_from(frame.width).unwrap_or(0) * 4;
    let left = usize::try_from(i64::from(area.x) - i64::from(frame.x)).unwrap_or(0) * 4;
    let top = usize::try_from(i64::from(area.y) - i64::from(frame.y)).unwrap_or(0);
    let length = usize::try_from(area.width).unwrap_or(0) * 4;
    let rows = pixels.rgba.chunks_exact(stride.max(1)).skip(top).take(area.height as usize);
    let rgba = rows.flat_map(|row| row.get(left..left + length).unwrap_or_default()).copied().collect();
    Pixels { width: area.width, height: area.height, rgba }
}

/// Lays a picture over one of `frame`, of which it shows a part.
pub(super) fn lay(canvas: &mut [u8], frame: Rect, layer: &Layer) {
    let stride = usize::try_from(layer.frame.width).unwrap_or(0) * 4;
    let canvas_stride = usize::try_from(frame.width).unwrap_or(0) * 4;
    let left = usize::try_from(i64::from(layer.frame.x) - i64::from(frame.x)).unwrap_or(0) * 4;
    let top = usize::try_from(i64::from(layer.frame.y) - i64::from(frame.y)).unwrap_or(0);
    if stride == 0 {
        return;
    }
    for (y, row) in layer.pixels.rgba.chunks_exact(stride).enumerate() {
        let start = (top + y) * canvas_stride + left;
        let Some(below) = canvas.get_mut(start..start + stride) else { return };
        for (below, above) in below.chunks_exact_mut(4).zip(row.chunks_exact(4)) {
            blend(below, above);
        }
    }
}

/// Straight alpha over straight alpha.
fn blend(below: &mut [u8], above: &[u8]) {
    match above[3] {
        255 => below.copy_from_slice(above),
        0 => {}
        alpha => {
            let alpha = u32::from(alpha);
            let rest = u32::from(below[3]) * (255 - alpha) / 255;
            let sum = alpha + rest;
            for (below, &above) in below.iter_mut().zip(&above[..3]) {
                let colour = (u32::from(above) * alpha + u32::from(*below) * rest) / sum;
                *below = u8::try_from(colour).unwrap_or(255);
            }
            below[3] = u8::try_from(sum).unwrap_or(255);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_24_is_opaque_whatever_its_fourth_byte() {
        let mut bytes = vec![1, 2, 3, 0, 4, 5, 6, 77];
        convert(&mut bytes, 2, Alpha::None);
        assert_eq!(bytes, [3, 2, 1, 255, 6, 5, 4, 255]);
    }

    #[test]
    fn depth_32_is_straightened_inside_of_the_client_and_opaque_around_it() {
        let mut bytes = vec![9, 9, 9, 0, 64, 32, 0, 128, 0, 0, 0, 0, 7, 8, 9, 255];
        convert(&mut bytes, 4, Alpha::Premultiplied(Rect::new(1, 0, 3, 1)));
        assert_eq!(bytes, [9, 9, 9, 255, 0, 64, 128, 128, 0, 0, 0, 0, 9, 8, 7, 255]);
    }

    #[test]
    fn a_window_without_any_coverage_is_opaque() {
        let mut bytes = vec![1, 2, 3, 0, 4, 5, 6, 0];
        convert(&mut bytes, 2, Alpha::Premultiplied(Rect::new(0, 0, 2, 1)));
        assert_eq!(bytes, [3, 2, 1, 255, 6, 5, 4, 255]);
    }

    #[test]
    fn popups_lie_over_the_window_and_what_none_covers_is_transparent() {
        let layer = |x, y, colour: [u8; 4]| Layer {
            pixels: Pixels { width: 1, height: 1, rgba: colour.to_vec() },
            frame: Rect::new(x, y, 1, 1),
        };
        let merged = merge(vec![
            layer(0, 0, [10, 10, 10, 255]),
            layer(0, 0, [110, 110, 110, 128]),
            layer(1, 1, [5, 6, 7, 255]),
        ])
        .unwrap();
        assert_eq!(merged.frame, Rect::new(0, 0, 2, 2));
        let expected = [60, 60, 60, 255, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 255];
        assert_eq!(merged.pixels.rgba, expected);
    }
}
