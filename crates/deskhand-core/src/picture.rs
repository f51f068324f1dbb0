//! Pictures for a model: scaled, encoded, and with the exact way back to screen coordinates.

use fast_image_resize as resize;
use schemars::JsonSchema;
use serde::Serialize;

use crate::call::Image;
use crate::desktop::{Capture, Pixels};
use crate::error::{Code, Error, Result};
use crate::geometry::{PictureFrame, Rect};
use crate::settings::ImageFormat;

/// JPEG quality at which text stays readable.
const JPEG_QUALITY: u8 = 85;

/// What an answer says about its picture.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PictureInfo {
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
        let PictureInfo { width, height, frame, scale_x, .. } = &self.info;
        let stale = if self.info.stale_pixels { "; stale_pixels: it had not repainted yet" } else { "" };
        if frame.width == *width && frame.height == *height {
            format!("picture {width}x{height} of the screen from {},{}{stale}", frame.x, frame.y)
        } else {
            format!(
                "picture {width}x{height} of the screen from {},{}, scaled: 1 image pixel = {scale_x:.4} screen \
                 pixels; give its points back with space \"image\"{stale}",
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

/// Scales and encodes. Takes tens of milliseconds for a whole display: run it off the reactor.
///
/// # Errors
/// `capture_failed` for pixels that do not fit their size.
pub fn encode(capture: Capture, limit: u32, format: ImageFormat) -> Result<Picture> {
    let Capture { pixels, frame: screen, stale } = capture;
    let fault = |why: &dyn std::fmt::Display| {
        Error::new(Code::CaptureFailed, format!("the picture is unusable: {why}"))
    };
    if pixels.width == 0 || pixels.height == 0 {
        return Err(fault(&"it has no pixels"));
    }
    let (width, height) = fitted(pixels.width, pixels.height, limit);
    let pixels = if (width, height) == (pixels.width, pixels.height) {
        pixels
    } else {
        scale(pixels, width, height).map_err(|error| fault(&error))?
    };
    let image = match format {
        ImageFormat::Png => Image { mime: "image/png", bytes: png(&pixels).map_err(|error| fault(&error))? },
        ImageFormat::Jpeg => {
            Image { mime: "image/jpeg", bytes: jpeg(&pixels).map_err(|error| fault(&error))? }
        }
    };
    let frame = PictureFrame { screen, width, height };
    let (scale_x, scale_y) = frame.scale();
    let info = PictureInfo { width, height, frame: screen, scale_x, scale_y, stale_pixels: stale };
    Ok(Picture { image, frame, info })
}

type Fault = Box<dyn std::error::Error + Send + Sync>;

fn scale(pixels: Pixels, width: u32, height: u32) -> Result<Pixels, Fault> {
    let source = resize::images::Image::from_vec_u8(
        pixels.width,
        pixels.height,
        pixels.rgba,
        resize::PixelType::U8x4,
    )?;
    let mut target = resize::images::Image::new(width, height, resize::PixelType::U8x4);
    // A convolution over all covered pixels: thin strokes of text survive, which sampling would lose.
    let options = resize::ResizeOptions::new()
        .resize_alg(resize::ResizeAlg::Convolution(resize::FilterType::Bilinear))
        .use_alpha(false);
    resize::Resizer::new().resize(&source, &mut target, &options)?;
    Ok(Pixels { width, height, rgba: target.into_vec() })
}

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

fn jpeg(pixels: &Pixels) -> Result<Vec<u8>, Fault> {
    let side =
        |length: u32| u16::try_from(length).map_err(|_| format!("{length} pixels are too long for a JPEG"));
    let mut bytes = Vec::new();
    jpeg_encoder::Encoder::new(&mut bytes, JPEG_QUALITY).encode(
        &pixels.rgba,
        side(pixels.width)?,
        side(pixels.height)?,
        jpeg_encoder::ColorType::Rgba,
    )?;
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

    #[test]
    fn a_picture_decodes_to_what_was_captured() {
        let rgba: Vec<u8> = (0..4 * 4).flat_map(|i| [i * 10, 255 - i, i, 255]).collect();
        let pixels = Pixels { width: 4, height: 4, rgba: rgba.clone() };
        let capture = Capture { pixels, frame: Rect::new(0, 0, 4, 4), stale: false };
        let picture = encode(capture, 64, ImageFormat::Png).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(picture.image.bytes)).read_info().unwrap();
        let mut decoded = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut decoded).unwrap();
        let expected: Vec<u8> =
            rgba.as_chunks::<4>().0.iter().flat_map(|pixel| pixel[..3].to_vec()).collect();
        assert_eq!(decoded, expected);
    }
}
