//! Element indices drawn on a picture, for models that find things by sight and name them by number.
//!
//! Each element gets a dashed outline around it and a tag with its index. A tag has a ground and a rim of its own, so it
//! can be read on anything, and is put where it covers the least of what is worth seeing.

use crate::desktop::Pixels;
use crate::geometry::{PictureFrame, Rect};

/// An element to mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Its index.
    pub index: u32,
    /// Its frame, in screen pixels.
    pub area: Rect,
    /// Whether its text stands in its middle, as a button's does, instead of at its beginning.
    pub centred: bool,
}

/// Pixels of an outline of one colour, before as many white ones: one of both stands out from any background.
const DASH: i32 = 4;

/// Digits, and how they are set.
struct Font {
    wide: i32,
    /// Rows of bits.
    digits: [&'static [u8]; 10],
    /// Pixels between the digits and the end of the ground.
    padding: i32,
}

/// Strokes two pixels wide, which scaling and lossy encoding leave readable.
const BOLD: Font = Font {
    wide: 6,
    digits: [
        &[0b011110, 0b110011, 0b110011, 0b110011, 0b110011, 0b110011, 0b110011, 0b110011, 0b011110],
        &[0b001100, 0b011100, 0b111100, 0b001100, 0b001100, 0b001100, 0b001100, 0b001100, 0b111111],
        &[0b011110, 0b110011, 0b000011, 0b000011, 0b000110, 0b001100, 0b011000, 0b110000, 0b111111],
        &[0b011110, 0b110011, 0b000011, 0b000011, 0b001110, 0b000011, 0b000011, 0b110011, 0b011110],
        &[0b000110, 0b001110, 0b010110, 0b110110, 0b110110, 0b111111, 0b000110, 0b000110, 0b000110],
        &[0b111111, 0b110000, 0b110000, 0b111110, 0b000011, 0b000011, 0b000011, 0b110011, 0b011110],
        &[0b011110, 0b110011, 0b110000, 0b110000, 0b111110, 0b110011, 0b110011, 0b110011, 0b011110],
        &[0b111111, 0b000011, 0b000011, 0b000110, 0b000110, 0b001100, 0b001100, 0b001100, 0b001100],
        &[0b011110, 0b110011, 0b110011, 0b110011, 0b011110, 0b110011, 0b110011, 0b110011, 0b011110],
        &[0b011110, 0b110011, 0b110011, 0b110011, 0b011111, 0b000011, 0b000011, 0b110011, 0b011110],
    ],
    padding: 2,
};

/// For toolbars, where a larger tag would hide the button beside.
const SMALL: Font = Font {
    wide: 5,
    digits: [
        &[0b01110, 0b10001, 0b10001, 0b10001, 0b10001, 0b10001, 0b01110],
        &[0b00100, 0b01100, 0b00100, 0b00100, 0b00100, 0b00100, 0b01110],
        &[0b01110, 0b10001, 0b00001, 0b00110, 0b01000, 0b10000, 0b11111],
        &[0b01110, 0b10001, 0b00001, 0b00110, 0b00001, 0b10001, 0b01110],
        &[0b00010, 0b00110, 0b01010, 0b10010, 0b11111, 0b00010, 0b00010],
        &[0b11111, 0b10000, 0b11110, 0b00001, 0b00001, 0b10001, 0b01110],
        &[0b01110, 0b10000, 0b10000, 0b11110, 0b10001, 0b10001, 0b01110],
        &[0b11111, 0b00001, 0b00010, 0b00010, 0b00100, 0b00100, 0b00100],
        &[0b01110, 0b10001, 0b10001, 0b01110, 0b10001, 0b10001, 0b01110],
        &[0b01110, 0b10001, 0b10001, 0b01111, 0b00001, 0b00001, 0b01110],
    ],
    padding: 1,
};

/// What a small tag costs more than a large one in the same place: it is harder to read.
const SMALL_COST: u64 = 200;

impl Font {
    /// The size of a tag, a rim of one pixel included.
    fn size_of(&self, index: u32) -> (u32, u32) {
        let count = i32::try_from(digits(index).len()).unwrap_or(1);
        let high = i32::try_from(self.digits[0].len()).unwrap_or(1);
        let width = count * (self.wide + 1) - 1 + 2 * self.padding + 2;
        (width.unsigned_abs(), (high + 2 * self.padding + 2).unsigned_abs())
    }
}

/// Dark enough for white digits, and different enough for neighbours to be told apart.
const COLOURS: [[u8; 3]; 6] =
    [[176, 0, 32], [0, 84, 166], [0, 110, 60], [122, 30, 140], [150, 75, 0], [0, 100, 110]];
const WHITE: [u8; 3] = [255, 255, 255];

/// Draws `marks` on the picture that `frame` tells about.
pub(super) fn draw(pixels: &mut Pixels, frame: &PictureFrame, marks: &[Mark]) {
    let placed: Vec<(Mark, Rect)> =
        marks.iter().filter_map(|mark| Some((*mark, frame.from_screen(&mark.area)?))).collect();
    let colour = |place: usize| COLOURS[place % COLOURS.len()];
    for (place, (_, area)) in placed.iter().enumerate() {
        outline(pixels, area, colour(place));
    }
    let mut tags: Vec<Rect> = Vec::new();
    for (place, (mark, area)) in placed.iter().enumerate() {
        let (font, tag) = find_place(mark, area, &placed, &tags, pixels.width, pixels.height);
        tags.push(tag);
        write(pixels, font, &tag, mark.index, colour(place));
    }
}

fn digits(index: u32) -> Vec<u8> {
    index.to_string().bytes().map(|digit| digit - b'0').collect()
}

/// Where a tag covers least, and in which font. Around its element comes before inside of it, and inside of it before on
/// another element, whose number it would seem to be.
fn find_place(
    mark: &Mark,
    area: &Rect,
    placed: &[(Mark, Rect)],
    tags: &[Rect],
    width: u32,
    height: u32,
) -> (&'static Font, Rect) {
    let picture = Rect::new(0, 0, width, height);
    let others: Vec<&(Mark, Rect)> =
        placed.iter().filter(|(other, around)| other != mark && !encloses(around, area)).collect();
    let cost = |tag: &Rect| {
        let outside = overlap(tag, tag) - overlap(tag, &picture);
        let over_tags: u64 = tags.iter().map(|other| overlap(tag, other)).sum();
        let over_others: u64 = others
            .iter()
            .map(|(other, area)| 6 * overlap(tag, area) + 4 * overlap(tag, &content(other, area)))
            .sum();
        let over_own = overlap(tag, area) + 4 * overlap(tag, &content(mark, area));
        outside * 100 + over_tags * 20 + over_others + over_own
    };
    let bold = candidates(area, BOLD.size_of(mark.index)).map(|tag| (cost(&tag), &BOLD, tag));
    let small = candidates(area, SMALL.size_of(mark.index)).map(|tag| (cost(&tag) + SMALL_COST, &SMALL, tag));
    let best = bold.into_iter().chain(small).min_by_key(|(cost, ..)| *cost);
    best.map_or((&BOLD, *area), |(_, font, tag)| (font, tag))
}

/// Where the tag of an element may be, the best first.
fn candidates(area: &Rect, (wide, high): (u32, u32)) -> [Rect; 11] {
    let to_end = |start: i32, length: u32, own: u32| start.saturating_add_unsigned(length) - signed(own);
    let (left, right) = (area.x, to_end(area.x, area.width, wide));
    let (top, bottom) = (area.y, to_end(area.y, area.height, high));
    let middle = area.y + (signed(area.height) - signed(high)) / 2;
    let (above, below) = (area.y - signed(high), area.y.saturating_add_unsigned(area.height));
    let (before, behind) = (area.x - signed(wide), area.x.saturating_add_unsigned(area.width));
    [
        (left, above),
        (right, above),
        (before, middle),
        (behind, middle),
        (left, below),
        (right, below),
        (left, top),
        (right, top),
        (right, bottom),
        (right, middle),
        (left, bottom),
    ]
    .map(|(x, y)| Rect::new(x, y, wide, high))
}

fn signed(length: u32) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// The part of an element where its text or picture is.
fn content(mark: &Mark, area: &Rect) -> Rect {
    let (across, down) = (area.width / 5, area.height / 4);
    let (y, height) = (area.y.saturating_add_unsigned(down), area.height - 2 * down);
    if mark.centred {
        Rect::new(area.x.saturating_add_unsigned(across), y, area.width - 2 * across, height)
    } else {
        Rect::new(area.x, y, area.width - across, height)
    }
}

fn encloses(outer: &Rect, inner: &Rect) -> bool {
    outer.intersection(inner).as_ref() == Some(inner)
}

fn overlap(one: &Rect, other: &Rect) -> u64 {
    one.intersection(other).map_or(0, |both| u64::from(both.width) * u64::from(both.height))
}

fn set(pixels: &mut Pixels, x: i32, y: i32, [red, green, blue]: [u8; 3]) {
    let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else { return };
    if x >= pixels.width as usize || y >= pixels.height as usize {
        return;
    }
    let start = (y * pixels.width as usize + x) * 4;
    if let Some(pixel) = pixels.rgba.get_mut(start..start + 4) {
        pixel.copy_from_slice(&[red, green, blue, 255]);
    }
}

/// A dashed line just outside of `area`, or along the edge of the picture.
fn outline(pixels: &mut Pixels, area: &Rect, colour: [u8; 3]) {
    let (last_x, last_y) = (signed(pixels.width) - 1, signed(pixels.height) - 1);
    let left = (area.x - 1).clamp(0, last_x);
    let top = (area.y - 1).clamp(0, last_y);
    let right = area.x.saturating_add_unsigned(area.width).clamp(0, last_x);
    let bottom = area.y.saturating_add_unsigned(area.height).clamp(0, last_y);
    let shade = |step: i32| if (step / DASH) % 2 == 0 { colour } else { WHITE };
    for x in left..=right {
        set(pixels, x, top, shade(x - left));
        set(pixels, x, bottom, shade(x - left));
    }
    for y in top..=bottom {
        set(pixels, left, y, shade(y - top));
        set(pixels, right, y, shade(y - top));
    }
}

fn write(pixels: &mut Pixels, font: &Font, tag: &Rect, index: u32, colour: [u8; 3]) {
    let (right, bottom) = (tag.x + signed(tag.width) - 1, tag.y + signed(tag.height) - 1);
    for y in tag.y..=bottom {
        for x in tag.x..=right {
            let rim = x == tag.x || x == right || y == tag.y || y == bottom;
            set(pixels, x, y, if rim { WHITE } else { colour });
        }
    }
    let mut left = tag.x + 1 + font.padding;
    for digit in digits(index) {
        for (row, bits) in (0..).zip(font.digits[usize::from(digit % 10)]) {
            for column in 0..font.wide {
                if bits & (1 << (font.wide - 1 - column)) != 0 {
                    set(pixels, left + column, tag.y + 1 + font.padding + row, WHITE);
                }
            }
        }
        left += font.wide + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blank(width: u32, height: u32) -> Pixels {
        Pixels { width, height, rgba: vec![90; (width * height * 4) as usize] }
    }

    fn frame(width: u32, height: u32) -> PictureFrame {
        PictureFrame { screen: Rect::new(0, 0, width, height), width, height }
    }

    fn changed(before: &Pixels, after: &Pixels, area: &Rect) -> usize {
        let inside = |place: usize| {
            let (x, y) = (place % before.width as usize, place / before.width as usize);
            area.contains(crate::geometry::Point::new(x as i32, y as i32))
        };
        let pairs = before.rgba.as_chunks::<4>().0.iter().zip(after.rgba.as_chunks::<4>().0);
        pairs.enumerate().filter(|(place, (one, other))| inside(*place) && one != other).count()
    }

    #[test]
    fn a_lonely_element_is_not_covered_by_its_own_mark() {
        let before = blank(200, 100);
        let mut after = before.clone();
        let area = Rect::new(60, 40, 80, 25);
        draw(&mut after, &frame(200, 100), &[Mark { index: 17, area, centred: true }]);
        assert_eq!(changed(&before, &after, &area), 0);
        assert!(changed(&before, &after, &Rect::new(0, 0, 200, 100)) > 300);
    }

    #[test]
    fn tags_of_a_grid_cover_neither_each_other_nor_the_middle_of_a_button() {
        let before = blank(320, 160);
        let mut after = before.clone();
        let cells = (0..4i32).flat_map(|row| (0..4i32).map(move |column| (row, column)));
        let marks: Vec<Mark> = (100..)
            .zip(cells)
            .map(|(index, (row, column))| {
                let area = Rect::new(column * 80 + 1, row * 40 + 1, 78, 38);
                Mark { index, area, centred: true }
            })
            .collect();
        let placed: Vec<(Mark, Rect)> = marks.iter().map(|mark| (*mark, mark.area)).collect();
        let mut tags: Vec<Rect> = Vec::new();
        for mark in &marks {
            tags.push(find_place(mark, &mark.area, &placed, &tags, 320, 160).1);
        }
        for (place, tag) in tags.iter().enumerate() {
            assert!(tag.intersection(&marks[place].area).is_some(), "it is on its own button: {tags:?}");
            assert!(tags[..place].iter().all(|other| other.intersection(tag).is_none()), "{tags:?}");
        }
        draw(&mut after, &frame(320, 160), &marks);
        for mark in &marks {
            let middle = Rect::new(mark.area.x + 26, mark.area.y + 10, 26, 18);
            assert_eq!(changed(&before, &after, &middle), 0, "{mark:?}");
        }
    }

    #[test]
    fn what_is_not_in_the_picture_is_not_marked_and_edges_are_no_trouble() {
        let before = blank(50, 40);
        let mut after = before.clone();
        draw(&mut after, &frame(50, 40), &[Mark { index: 1, area: Rect::new(60, 0, 5, 5), centred: false }]);
        assert_eq!(before.rgba, after.rgba);
        let whole = Mark { index: u32::MAX, area: Rect::new(-10, -10, 500, 500), centred: false };
        draw(&mut after, &frame(50, 40), &[whole]);
        assert_ne!(before.rgba, after.rgba);
    }
}
