//! Pictures for a model: cut, scaled, marked, encoded, and with the exact way back to screen coordinates.

mod halves;
mod marks;

use schemars::JsonSchema;
use serde::Serialize;

use crate::call::Image;
use crate::desktop::{Capture, Pixels};
use crate::error::{Code, Error, Result};
use crate::geometry::{PictureFrame, Rect};
use crate::settings::{IMAGE_DIMENSION, ImageFormat};

pub(crate) use halves::scale;
pub use marks::Mark;

/// How large a picture becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sizing {
    /// As it is, or scaled down until its long side has so many pixels.
    Within(u32),
    /// So many image pixels for one screen pixel.
    Scale(f64),
}

/// How a picture is made of a capture.
#[derive(Clone, Debug)]
pub struct Make {
    /// Its size.
    pub sizing: Sizing,
    /// Its encoding.
    pub format: ImageFormat,
    /// The part of the capture to show, in screen pixels; all of it if not given.
    pub part: Option<Rect>,
    /// Elements to mark with their indices.
    pub marks: Vec<Mark>,
}

/// What an answer says about its picture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PictureInfo {
    /// Names the picture as the one that a point was read off.
    pub picture_id: String,
    /// Width in image pixels.
    pub width: u32,
    /// Height in image pixels.
    pub height: u32,
    /// What it shows, in screen pixels.
    pub frame: Rect,
    /// Screen pixels for one image pixel, horizontally: `screen.x = frame.x + image.x * scale_x`.
    pub scale_x: f64,
    /// Screen pixels for one image pixel, vertically.
    pub scale_y: f64,
    /// Pixels of what covered the window may be left.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stale_pixels: bool,
}

/// A picture, ready to be answered.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The encoded bytes.
    pub image: Image,
    /// The way back to the screen.
    pub frame: PictureFrame,
    /// What the answer says about it.
    pub info: PictureInfo,
}

impl Picture {
    /// One line for the model.
    pub fn describe(&self) -> String {
        let PictureInfo { picture_id, width, height, frame, scale_x, .. } = &self.info;
        let stale = if self.info.stale_pixels { "; stale_pixels: it had not repainted yet" } else { "" };
        if frame.width == *width && frame.height == *height {
            format!(
                "picture {picture_id}: {width}x{height} of the screen from {},{}{stale}",
                frame.x, frame.y
            )
        } else {
            format!(
                "picture {picture_id}: {width}x{height} of the screen from {},{}, scaled: 1 image pixel = {scale_x:.4} \
                 screen pixels; give its points back with space \"image\"{stale}",
                frame.x, frame.y
            )
        }
    }
}

/// The size of a `width` x `height` picture whose long side is at most `limit`.
pub fn fitted(width: u32, height: u32, limit: u32) -> (u32, u32) {
    let long = width.max(height);
    if long <= limit {
        return (width, height);
    }
    let scaled = |side: u32| {
        let exact = f64::from(side) * f64::from(limit) / f64::from(long);
        (exact.round() as u32).clamp(1, limit)
    };
    (scaled(width), scaled(height))
}

/// The size of a `width` x `height` picture with so many image pixels for one of its own.
///
/// # Errors
/// `limit_exceeded` for what is larger than any model takes.
fn magnified(width: u32, height: u32, scale: f64) -> Result<(u32, u32)> {
    let scaled = |side: u32| (f64::from(side) * scale).round().max(1.0) as u32;
    let (wide, high) = (scaled(width), scaled(height));
    let limit = *IMAGE_DIMENSION.end();
    if wide.max(high) > limit {
        let message = format!(
            "{width}x{height} pixels at scale {scale} are {wide}x{high}, more than {limit}; zoom less or show less"
        );
        return Err(Error::new(Code::LimitExceeded, message));
    }
    Ok((wide, high))
}

/// The part of a capture that shows `part` of the screen.
fn cut(capture: Capture, part: &Rect) -> Result<Capture> {
    let Capture { pixels, frame, stale } = capture;
    let Some(kept) = frame.intersection(part) else {
        return Err(Error::argument(
            "region",
            format!("{part} lies outside of what is shown, which is {frame}"),
        ));
    };
    let offset = |start: i32, whole: i32| usize::try_from(i64::from(start) - i64::from(whole)).unwrap_or(0);
    let (left, top) = (offset(kept.x, frame.x) * 4, offset(kept.y, frame.y));
    let (stride, row) = (pixels.width as usize * 4, kept.width as usize * 4);
    let mut rgba = Vec::with_capacity(row * kept.height as usize);
    for line in pixels.rgba.chunks_exact(stride.max(1)).skip(top).take(kept.height as usize) {
        rgba.extend_from_slice(line.get(left..left + row).unwrap_or_default());
    }
    let pixels = Pixels { width: kept.width, height: kept.height, rgba };
    Ok(Capture { pixels, frame: kept, stale })
}

/// Cuts, scales, marks and encodes. Takes tens of milliseconds for a whole display: run it off the reactor.
///
/// # Errors
/// `capture_failed` for pixels that do not fit their size, `invalid_argument` for a part outside of the capture,
/// `limit_exceeded` for a scale that makes it too large.
pub fn make(capture: Capture, make: &Make) -> Result<Picture> {
    let fault = |why: &dyn std::fmt::Display| {
        Error::new(Code::CaptureFailed, format!("the picture is unusable: {why}"))
    };
    let capture = match &make.part {
        Some(part) => cut(capture, part)?,
        None => capture,
    };
    let Capture { pixels, frame: screen, stale } = capture;
    if pixels.width == 0 || pixels.height == 0 {
        return Err(fault(&"it has no pixels"));
    }
    let (width, height) = match make.sizing {
        Sizing::Within(limit) => fitted(pixels.width, pixels.height, limit),
        Sizing::Scale(scale) => magnified(pixels.width, pixels.height, scale)?,
    };
    let mut pixels = if (width, height) == (pixels.width, pixels.height) {
        pixels
    } else {
        scale(&pixels, width, height).map_err(|error| fault(&error))?
    };
    let frame = PictureFrame { screen, width, height };
    marks::draw(&mut pixels, &frame, &make.marks);
    let (mime, bytes) = match make.format {
        ImageFormat::Png => ("image/png", png(&pixels)),
        ImageFormat::Jpeg => ("image/jpeg", halves::jpeg(&pixels)),
        ImageFormat::Webp => ("image/webp", webp(&pixels)),
    };
    let image = Image { mime, bytes: bytes.map_err(|error| fault(&error))? };
    let (scale_x, scale_y) = frame.scale();
    let picture_id = String::new();
    let info =
        PictureInfo { picture_id, width, height, frame: screen, scale_x, scale_y, stale_pixels: stale };
    Ok(Picture { image, frame, info })
}

/// Why pixels cannot be made into others.
pub(crate) type Fault = Box<dyn std::error::Error + Send + Sync>;

fn opaque(pixels: &Pixels) -> bool {
    pixels.rgba.as_chunks::<4>().0.iter().all(|pixel| pixel[3] == u8::MAX)
}

fn rgb(pixels: &Pixels) -> Vec<u8> {
    let mut rgb = Vec::with_capacity(pixels.rgba.len() / 4 * 3);
    for pixel in pixels.rgba.as_chunks::<4>().0 {
        rgb.extend_from_slice(&pixel[..3]);
    }
    rgb
}

fn png(pixels: &Pixels) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width, pixels.height);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    if opaque(pixels) {
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&rgb(pixels))?;
    } else {
        encoder.set_color(png::ColorType::Rgba);
        encoder.write_header()?.write_image_data(&pixels.rgba)?;
    }
    Ok(bytes)
}

/// The pixels of a PNG file that may come from anywhere.
pub(crate) fn decode(png: &[u8]) -> Result<Pixels, Fault> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::normalize_to_color8() | png::Transformations::ALPHA);
    let mut reader = decoder.read_info()?;
    let (width, height) = (reader.info().width, reader.info().height);
    let limit = *IMAGE_DIMENSION.end();
    if width.max(height) > limit {
        return Err(format!("{width}x{height} pixels are more than {limit}").into());
    }
    let mut bytes = vec![0; reader.output_buffer_size().ok_or("it is too large")?];
    let frame = reader.next_frame(&mut bytes)?;
    bytes.truncate(frame.buffer_size());
    let rgba = match frame.color_type {
        png::ColorType::Rgba => bytes,
        png::ColorType::GrayscaleAlpha => {
            bytes.as_chunks::<2>().0.iter().flat_map(|&[grey, alpha]| [grey, grey, grey, alpha]).collect()
        }
        other => return Err(format!("its colours are {other:?}").into()),
    };
    Ok(Pixels { width, height, rgba })
}

/// Lossless: a third of the size of a fast PNG, and no slower than scaling is.
fn webp(pixels: &Pixels) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    let encoder = image_webp::WebPEncoder::new(&mut bytes);
    if opaque(pixels) {
        encoder.encode(&rgb(pixels), pixels.width, pixels.height, image_webp::ColorType::Rgb8)?;
    } else {
        encoder.encode(&pixels.rgba, pixels.width, pixels.height, image_webp::ColorType::Rgba8)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_keep_the_shape_and_the_limit() {
        assert_eq!(fitted(1920, 1080, 1568), (1568, 882));
        assert_eq!(fitted(100, 50, 1568), (100, 50));
        assert_eq!(fitted(1, 100_000, 64), (1, 64));
    }

    fn plain(format: ImageFormat) -> Make {
        Make { sizing: Sizing::Within(64), format, part: None, marks: Vec::new() }
    }

    #[test]
    fn webp_loses_nothing() {
        let rgba: Vec<u8> = (0..=255u8).flat_map(|i| [i, i.wrapping_mul(7), 255 - i, 255 - i % 2]).collect();
        let pixels = Pixels { width: 16, height: 16, rgba: rgba.clone() };
        let capture = Capture { pixels, frame: Rect::new(0, 0, 16, 16), stale: false };
        let picture = make(capture, &plain(ImageFormat::Webp)).unwrap();
        let mut reader = image_webp::WebPDecoder::new(std::io::Cursor::new(picture.image.bytes)).unwrap();
        let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
        reader.read_image(&mut decoded).unwrap();
        assert_eq!(decoded, rgba);
    }

    #[test]
    fn a_part_is_cut_out_at_its_own_resolution_or_magnified() {
        let rgba: Vec<u8> = (0..16u8).flat_map(|i| [i, 0, 0, 255]).collect();
        let capture = || Capture {
            pixels: Pixels { width: 4, height: 4, rgba: rgba.clone() },
            frame: Rect::new(-2, 10, 4, 4),
            stale: false,
        };
        let part = |part: Rect, scale: f64| Make {
            sizing: Sizing::Scale(scale),
            part: Some(part),
            ..plain(ImageFormat::Png)
        };
        let picture = make(capture(), &part(Rect::new(-1, 12, 2, 9), 1.0)).unwrap();
        assert_eq!(picture.frame.screen, Rect::new(-1, 12, 2, 2), "what lies outside is left out");
        assert_eq!((picture.info.width, picture.info.height), (2, 2));
        let picture = make(capture(), &part(Rect::new(-1, 12, 2, 2), 3.0)).unwrap();
        assert_eq!((picture.info.width, picture.info.height), (6, 6));
        assert_eq!(picture.frame.to_screen(5.0, 0.0), Some(crate::geometry::Point::new(0, 12)));
        let outside = make(capture(), &part(Rect::new(5, 5, 2, 2), 1.0)).unwrap_err();
        assert_eq!(outside.code, Code::InvalidArgument);
        let huge = make(capture(), &part(Rect::new(-2, 10, 4, 4), 9000.0)).unwrap_err();
        assert_eq!(huge.code, Code::LimitExceeded);
    }

    #[test]
    fn a_picture_decodes_to_what_was_captured() {
        let rgba: Vec<u8> = (0..4 * 4).flat_map(|i| [i * 10, 255 - i, i, 255]).collect();
        let pixels = Pixels { width: 4, height: 4, rgba: rgba.clone() };
        let capture = Capture { pixels, frame: Rect::new(0, 0, 4, 4), stale: false };
        let picture = make(capture, &plain(ImageFormat::Png)).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(picture.image.bytes)).read_info().unwrap();
        let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut decoded).unwrap();
        let expected: Vec<u8> =
            rgba.as_chunks::<4>().0.iter().flat_map(|pixel| pixel[..3].to_vec()).collect();
        assert_eq!(decoded, expected);
    }
}
