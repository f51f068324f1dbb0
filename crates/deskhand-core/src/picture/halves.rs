//! Pictures worked on in two halves at the same time: whoever asked for one waits for it.

use std::thread;

use fast_image_resize as resize;

use super::Fault;
use crate::desktop::Pixels;

/// Pixels below which the work is done before a second thread has begun.
const SMALL: usize = 256 * 256;
/// JPEG quality at which text stays readable.
const JPEG_QUALITY: u8 = 85;
/// Pixels of the side of a unit of JPEG with colours of half the resolution, which is what this quality has.
const UNIT: usize = 16;

type Result<T> = std::result::Result<T, Fault>;

/// Runs both, side by side.
fn both<T: Send>(
    upper: impl FnOnce() -> Result<T>,
    lower: impl FnOnce() -> Result<T> + Send,
) -> Result<(T, T)> {
    thread::scope(|scope| {
        let lower = thread::Builder::new().name("picture".to_owned()).spawn_scoped(scope, lower)?;
        let upper = upper();
        let lower = lower.join().map_err(|_| "the work on the lower half broke down")?;
        Ok((upper?, lower?))
    })
}

/// Scales by a convolution over all covered pixels: thin strokes of text survive, which sampling would lose.
///
/// # Errors
/// For pixels that do not fit their size.
pub(crate) fn scale(pixels: &Pixels, width: u32, height: u32) -> Result<Pixels> {
    let row = width as usize * 4;
    let upper = height / 2;
    if row * height as usize <= SMALL * 4 || upper == 0 {
        let rgba = scale_rows(pixels, width, height, 0, height)?;
        return Ok(Pixels { width, height, rgba });
    }
    // A row depends on the source rows around it, so each half is made with some rows of the other.
    let reach = f64::from(height) / f64::from(pixels.height.max(1));
    let more = reach.max(1.0).ceil() as u32 + 1;
    let (above, below) = (upper.saturating_sub(more), (upper + more).min(height));
    let (mut rgba, lower) = both(
        || scale_rows(pixels, width, height, 0, below),
        || scale_rows(pixels, width, height, above, height),
    )?;
    rgba.truncate(upper as usize * row);
    rgba.extend_from_slice(lower.get((upper - above) as usize * row..).unwrap_or_default());
    Ok(Pixels { width, height, rgba })
}

/// The rows from `first` to `end` of the picture, as it is with that size.
fn scale_rows(pixels: &Pixels, width: u32, height: u32, first: u32, end: u32) -> Result<Vec<u8>> {
    // Typed, or the code for every kind of pixel comes along: megabytes.
    type Source<'a> = resize::images::TypedImageRef<'a, resize::pixels::U8x4>;
    type Target<'a> = resize::images::TypedImage<'a, resize::pixels::U8x4>;
    let source = Source::from_buffer(pixels.width, pixels.height, &pixels.rgba)?;
    let rows = end - first;
    let row = width as usize * 4;
    // With room for the rest.
    let mut rgba = Vec::with_capacity(row * height as usize);
    rgba.resize(row * rows as usize, 0);
    let mut target = Target::from_buffer(width, rows, &mut rgba)?;
    let step = f64::from(pixels.height) / f64::from(height);
    let top = f64::from(first) * step;
    let down = if end == height { f64::from(pixels.height) - top } else { f64::from(rows) * step };
    let options = resize::ResizeOptions::new()
        .resize_alg(resize::ResizeAlg::Convolution(resize::FilterType::Bilinear))
        .crop(0.0, top, f64::from(pixels.width), down)
        .use_alpha(false);
    resize::Resizer::new().resize_typed(&source, &mut target, &options)?;
    Ok(rgba)
}

/// Encodes as JPEG.
///
/// # Errors
/// For pixels that do not fit their size, and sizes that JPEG does not have.
pub(super) fn jpeg(pixels: &Pixels) -> Result<Vec<u8>> {
    let (width, height) = (pixels.width as usize, pixels.height as usize);
    let upper = (height / 2).next_multiple_of(UNIT);
    let interval = u16::try_from(width.div_ceil(UNIT) * upper / UNIT).ok();
    match interval {
        Some(interval) if width * height > SMALL && upper < height => {
            let (above, below) = pixels.rgba.split_at_checked(upper * width * 4).ok_or("too few pixels")?;
            let (mut jpeg, below) = both(
                || strip(above, width, upper, Some(interval)),
                || strip(below, width, height - upper, Some(interval)),
            )?;
            join(&mut jpeg, &below, height)?;
            Ok(jpeg)
        }
        _ => strip(&pixels.rgba, width, height, None),
    }
}

/// A JPEG of its own of some rows, that would begin anew after each `interval` units.
fn strip(rgba: &[u8], width: usize, height: usize, interval: Option<u16>) -> Result<Vec<u8>> {
    let side =
        |length: usize| u16::try_from(length).map_err(|_| format!("{length} pixels are too long for a JPEG"));
    let mut bytes = Vec::new();
    let mut encoder = jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_2_2);
    encoder.set_restart_interval(interval.unwrap_or(0));
    encoder.encode(rgba, side(width)?, side(height)?, jpeg_encoder::ColorType::Rgba)?;
    Ok(bytes)
}

const FRAME: u8 = 0xc0;
const SCAN: u8 = 0xda;
const FIRST_RESTART: u8 = 0xd0;
const END: [u8; 2] = [0xff, 0xd9];

/// Puts the JPEG `lower` under `upper`, which ends where it would begin anew and so knows nothing of what comes after.
fn join(upper: &mut Vec<u8>, lower: &[u8], height: usize) -> Result<()> {
    let broken = "the encoder gave no JPEG";
    let scan = scan_of(lower).and_then(|start| lower.get(start..)).ok_or(broken)?;
    // Length of the segment and bits of a sample come before the height.
    let place = segments(upper).find(|(kind, _)| *kind == FRAME).map(|(_, start)| start + 3).ok_or(broken)?;
    let height = u16::try_from(height).map_err(|_| format!("{height} pixels are too long for a JPEG"))?;
    upper.get_mut(place..place + 2).ok_or(broken)?.copy_from_slice(&height.to_be_bytes());
    if !upper.ends_with(&END) {
        return Err(broken.into());
    }
    upper.truncate(upper.len() - END.len());
    upper.extend_from_slice(&[0xff, FIRST_RESTART]);
    upper.extend_from_slice(scan);
    Ok(())
}

/// The segments before the picture itself: kind, and where their length stands.
fn segments(jpeg: &[u8]) -> impl Iterator<Item = (u8, usize)> {
    let mut at = 2;
    std::iter::from_fn(move || {
        let head = jpeg.get(at..at + 4)?;
        let (kind, start) = (head[1], at + 2);
        at = start + usize::from(u16::from_be_bytes([head[2], head[3]]));
        (head[0] == 0xff).then_some((kind, start))
    })
}

/// Where the bits of the picture begin.
fn scan_of(jpeg: &[u8]) -> Option<usize> {
    let (_, start) = segments(jpeg).find(|(kind, _)| *kind == SCAN)?;
    let length = jpeg.get(start..start + 2)?;
    Some(start + usize::from(u16::from_be_bytes([length[0], length[1]])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture with edges and slopes everywhere.
    fn picture(width: u32, height: u32) -> Pixels {
        let pixel = |x: u32, y: u32| {
            let [red, green, ..] = (x * 7 + y * 3).to_le_bytes();
            [red, green.wrapping_mul(90), if (x / 5 + y / 3).is_multiple_of(2) { 255 } else { 20 }, 255]
        };
        let rgba = (0..height).flat_map(|y| (0..width).flat_map(move |x| pixel(x, y))).collect();
        Pixels { width, height, rgba }
    }

    #[test]
    fn two_strips_are_the_jpeg_that_one_encoder_makes() {
        for (width, height) in [(400, 300), (1000, 333), (333, 1001)] {
            let pixels = picture(width, height);
            let (width, height) = (width as usize, height as usize);
            let upper = (height / 2).next_multiple_of(UNIT);
            let interval = u16::try_from(width.div_ceil(UNIT) * upper / UNIT).unwrap();
            let whole = strip(&pixels.rgba, width, height, Some(interval)).unwrap();
            assert!(jpeg(&pixels).unwrap() == whole, "{width}x{height}");
        }
    }

    #[test]
    fn a_small_jpeg_is_made_at_once() {
        let pixels = picture(40, 30);
        assert_eq!(jpeg(&pixels).unwrap(), strip(&pixels.rgba, 40, 30, None).unwrap());
    }

    #[test]
    fn scaled_halves_meet_without_a_seam() {
        for (width, height) in [(900, 701), (3000, 2000), (560, 350)] {
            let pixels = picture(1120, 700);
            let halves = scale(&pixels, width, height).unwrap().rgba;
            let whole = scale_rows(&pixels, width, height, 0, height).unwrap();
            assert_eq!(halves.len(), whole.len());
            let most = halves.iter().zip(&whole).map(|(one, other)| one.abs_diff(*other)).max();
            assert!(most <= Some(1), "{width}x{height}: {most:?}");
        }
    }
}
