//! Letters as strokes, for the labels of cursors: the driver brings no font, and asks the desktop for none.
//!
//! A letter stands on a grid: capitals reach from row 0 to the base line at row 14, small letters begin at row 4, descenders
//! end at row 18. Its strokes are written as pairs of base 36 digits, column and row: `l` joins points by lines, `c` bends
//! from the first to the last towards those between, `o` is the ellipse in a box.

/// The row of the base line.
pub(super) const BASE: f32 = 14.0;
/// Columns between two letters.
const GAP: f32 = 5.0;
/// Columns of a blank.
const BLANK: f32 = 3.0;
/// Lines that an arc of a curve is drawn as.
const STEPS: u8 = 6;
/// Lines that an ellipse is drawn as.
const ROUND: u8 = 24;
/// Rows between a small letter's mark and a capital's.
const RAISED: f32 = 5.0;

/// A point of the grid.
pub(super) type Spot = (f32, f32);

/// What a letter is that is not among [`LETTERS`].
const UNKNOWN: &str = "l03737e0e03";

const LETTERS: &[(char, &str)] = &[
    ('a', "o048e l848e"),
    ('b', "l000e o048e"),
    ('c', "c8674040e7e8c"),
    ('d', "o048e l808e"),
    ('e', "l0989 c8984040e7e8c"),
    ('f', "c603034 l343e l0464"),
    ('g', "o048e l848e c8e8i3i1h"),
    ('h', "l000e c08047479 l797e"),
    ('i', "l040e l0101"),
    ('ı', "l040e"),
    ('j', "l343f c3f3i0i l3131"),
    ('k', "l000e l740a l377e"),
    ('l', "l000e"),
    ('m', "l040e c08045459 l595e c5854a4a9 la9ae"),
    ('n', "l040e c08047479 l797e"),
    ('o', "o048e"),
    ('p', "l040i o048e"),
    ('q', "l848i o048e"),
    ('r', "l040e c08044455"),
    ('s', "c76640409797e1e0c"),
    ('t', "l313b c3b3e6e l0464"),
    ('u', "l040a c0a0e7e7a l747e"),
    ('v', "l044e84"),
    ('w', "l043e659ec4"),
    ('x', "l047e l740e"),
    ('y', "l044e l843i"),
    ('z', "l04740e7e"),
    ('ß', "l030e c0300606737 c37878e2e"),
    ('A', "l0e50ae l2989"),
    ('B', "l000e l0040 c40808747 l0757 c57979e5e l5e0e"),
    ('C', "c9380000e8e9b"),
    ('D', "l000e l0030 c30a0ae3e l3e0e"),
    ('E', "l80000e8e l0777"),
    ('F', "l80000e l0777"),
    ('G', "c9380000e9e98 l9858"),
    ('H', "l000e l909e l0797"),
    ('I', "l000e"),
    ('J', "l606a c6a6e0e0a"),
    ('K', "l000e l8008 l359e"),
    ('L', "l000e8e"),
    ('M', "l0e0059a0ae"),
    ('N', "l0e009e90"),
    ('O', "o00ae"),
    ('P', "l000e l0040 c40909848 l4808"),
    ('Q', "o00ae l6aaf"),
    ('R', "l000e l0040 c40909848 l4808 l589e"),
    ('S', "c83700007878e1e0b"),
    ('T', "l00a0 l505e"),
    ('U', "l0009 c090e9e99 l9990"),
    ('V', "l005ea0"),
    ('W', "l003e629ec0"),
    ('X', "l009e l900e"),
    ('Y', "l0057a0 l575e"),
    ('Z', "l00900e9e"),
    ('0', "o008e"),
    ('1', "l03404e"),
    ('2', "c0400808466 l660e8e"),
    ('3', "c0210707737 c37878e1e0c"),
    ('4', "l6e600a8a"),
    ('5', "l701006 c0615858e1e0c"),
    ('6', "o058e c702009"),
    ('7', "l00803e"),
    ('8', "o1077 o078e"),
    ('9', "o0089 c858e1e"),
    ('.', "l0e0e"),
    (',', "l1e0h"),
    (':', "l0606 l0e0e"),
    (';', "l1616 l1e0h"),
    ('!', "l0009 l0e0e"),
    ('?', "c0300707548 l484a l4e4e"),
    ('…', "l0e0e l4e4e l8e8e"),
    ('·', "l0808"),
    ('-', "l0959"),
    ('–', "l0989"),
    ('—', "l09c9"),
    ('_', "l0g8g"),
    ('+', "l0989 l4d45"),
    ('=', "l0787 l0b8b"),
    ('*', "l3137 l0266 l6206"),
    ('/', "l600g"),
    ('\\', "l006g"),
    ('|', "l000i"),
    ('(', "c30060c3i"),
    (')', "c00363c0i"),
    ('[', "l30000i3i"),
    (']', "l00303i0i"),
    ('{', "l402027092b2i4i"),
    ('}', "l002027492b2i0i"),
    ('<', "l74097e"),
    ('>', "l04790e"),
    ('\'', "l0003"),
    ('’', "l1003"),
    ('"', "l0003 l4043"),
    ('`', "l0022"),
    ('^', "l044084"),
    ('~', "c0a17478b8b9b98"),
    ('#', "l302e l706e l0494 l0a9a"),
    ('%', "o0045 l900e o69ae"),
    ('&', "c9e14106064070e6e98"),
    ('@', "o00ee o449a c949a9cdcd7"),
    ('$', "c83700007878e1e0b l404e"),
];

/// Marks over (or under) letters, eight columns wide for their letter's middle.
const MARKS: &[(char, &str)] = &[
    ('g', "l2042"),
    ('a', "l6042"),
    ('c', "l224062"),
    ('t', "c22304151"),
    ('d', "l2121 l6161"),
    ('r', "o3052"),
    ('v', "l204260"),
    (',', "l4f3i"),
];

/// Letters with marks: the letter, what carries the mark, and the mark.
const MARKED: &str = "àag áaa âac ãat äad åar çc, èeg éea êec ëed ìıg íıa îıc ïıd ñnt òog óoa ôoc õot öod ùug úua ûuc üud \
                      ýya ÿyd čcv ďdv ěev ňnv řrv šsv ťtv žzv ćca ńna śsa źza şs, ůur ÀAg ÁAa ÂAc ÃAt ÄAd ÅAr ÇC, ÈEg ÉEa \
                      ÊEc ËEd ÌIg ÍIa ÎIc ÏId ÑNt ÒOg ÓOa ÔOc ÕOt ÖOd ÙUg ÚUa ÛUc ÜUd ÝYa ČCv ŘRv ŠSv ŽZv ŚSa ŹZa";

/// Lines of a text that begins in column 0, and how many columns it takes.
pub(super) fn lines(text: &str) -> (Vec<[Spot; 2]>, f32) {
    let mut lines = Vec::new();
    let mut column = 0.0;
    for letter in text.chars() {
        if letter == ' ' {
            column += BLANK + GAP;
            continue;
        }
        let own = of_letter(letter);
        let width = own.iter().flatten().fold(0.0_f32, |width, spot| width.max(spot.0));
        lines.extend(own.into_iter().map(|line| line.map(|(x, y)| (x + column, y))));
        column += width + GAP;
    }
    (lines, (column - GAP).max(0.0))
}

fn of_letter(letter: char) -> Vec<[Spot; 2]> {
    let plain = |letter| LETTERS.iter().find(|(known, _)| *known == letter).map(|(_, strokes)| *strokes);
    if let Some(strokes) = plain(letter) {
        return drawn(strokes);
    }
    let marked = MARKED.split(' ').find(|marked| marked.starts_with(letter));
    let mut parts = marked.into_iter().flat_map(|marked| marked.chars().skip(1));
    let (Some(base), Some(mark)) =
        (parts.next().and_then(|base| plain(base).map(|strokes| (base, strokes))), parts.next())
    else {
        return drawn(UNKNOWN);
    };
    let mut lines = drawn(base.1);
    let width = lines.iter().flatten().fold(0.0_f32, |width, spot| width.max(spot.0));
    let mark = MARKS.iter().find(|(known, _)| *known == mark).map_or("", |(_, strokes)| strokes);
    let up = if base.0.is_uppercase() && !mark.starts_with("l4f") { RAISED } else { 0.0 };
    // A narrow letter's mark hangs over on both sides: the letter moves.
    let shift = (4.0 - width / 2.0).clamp(0.0, 2.0);
    for spot in lines.iter_mut().flatten() {
        spot.0 += shift;
    }
    let middle = width / 2.0 + shift - 4.0;
    lines.extend(drawn(mark).into_iter().map(|line| line.map(|(x, y)| (x + middle, y - up))));
    lines
}

/// The lines of a letter's strokes.
fn drawn(strokes: &str) -> Vec<[Spot; 2]> {
    let mut lines = Vec::new();
    for stroke in strokes.split(' ') {
        let numbers: Vec<f32> =
            stroke.chars().skip(1).filter_map(|digit| digit.to_digit(36)).map(|digit| digit as f32).collect();
        let spots: Vec<Spot> = numbers.as_chunks::<2>().0.iter().map(|[x, y]| (*x, *y)).collect();
        let spots = match (stroke.chars().next(), spots.as_slice()) {
            (Some('o'), &[from, to]) => ellipse(from, to),
            (Some('c'), spots) => curve(spots),
            _ => spots,
        };
        lines.extend(spots.windows(2).map(|line| [line[0], line[1]]));
    }
    lines
}

fn ellipse((left, top): Spot, (right, bottom): Spot) -> Vec<Spot> {
    let (x, y) = ((left + right) / 2.0, (top + bottom) / 2.0);
    let at = |step: u8| {
        let angle = f32::from(step) / f32::from(ROUND) * std::f32::consts::TAU;
        (x + (right - left) / 2.0 * angle.cos(), y + (bottom - top) / 2.0 * angle.sin())
    };
    (0..=ROUND).map(at).collect()
}

/// A quadratic B-spline that begins and ends at the first and the last spot.
fn curve(spots: &[Spot]) -> Vec<Spot> {
    let [first, bends @ .., last] = spots else { return spots.to_vec() };
    let mut drawn = vec![*first];
    let mut from = *first;
    for (place, bend) in bends.iter().enumerate() {
        let to =
            bends.get(place + 1).map_or(*last, |next| ((bend.0 + next.0) / 2.0, (bend.1 + next.1) / 2.0));
        drawn.extend((1..=STEPS).map(|step| {
            let t = f32::from(step) / f32::from(STEPS);
            let mix =
                |a: f32, b: f32, c: f32| (1.0 - t) * (1.0 - t) * a + 2.0 * (1.0 - t) * t * b + t * t * c;
            (mix(from.0, bend.0, to.0), mix(from.1, bend.1, to.1))
        }));
        from = to;
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_drawn_on_its_grid() {
        let marked: Vec<char> = MARKED.split(' ').filter_map(|marked| marked.chars().next()).collect();
        let all: Vec<char> =
            (' '..='~').chain(LETTERS.iter().map(|(letter, _)| *letter)).chain(marked).collect();
        for letter in all {
            let (lines, width) = lines(&letter.to_string());
            assert_eq!(lines.is_empty(), letter == ' ', "{letter}");
            assert!(letter == '□' || lines != of_letter('□'), "{letter} is unknown");
            for (x, y) in lines.into_iter().flatten() {
                assert!((0.0..=width).contains(&x) || letter.is_alphabetic(), "{letter}: {x}");
                assert!((-5.0..=18.0).contains(&y), "{letter}: {y}");
            }
        }
    }

    #[test]
    fn a_text_is_as_wide_as_its_letters_and_the_gaps_between() {
        assert!((lines("").1 - 0.0).abs() < f32::EPSILON);
        assert!((lines("LL").1 - (8.0 + GAP + 8.0)).abs() < 0.01);
        assert!((lines("L L").1 - (8.0 + GAP + BLANK + GAP + 8.0)).abs() < 0.01);
    }
}
