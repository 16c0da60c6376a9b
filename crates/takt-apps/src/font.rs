//! A small font of strokes with round corners, drawn for these apps.
//!
//! A glyph is a list of strokes separated by blanks. A stroke is a list of points on a grid four
//! units wide and six high, two digits each; `!` keeps the corner at the point before it sharp, and
//! a final `z` closes the stroke.

use crate::paint::{Canvas, Colour};
use crate::shape::{Point, Shape, length, minus, plus, times};

/// Strokes of each character, and its width.
const GLYPHS: &[(char, f32, &str)] = &[
    ('0', 4.0, "06464000z"),
    ('1', 2.0, "0526!20"),
    ('2', 4.0, "0506464300!40"),
    ('3', 4.0, "0506464313 1343400001"),
    ('4', 4.0, "3036!02!42"),
    ('5', 4.0, "46!06!04!44400001"),
    ('6', 4.0, "45460600404303"),
    ('7', 4.0, "06!46!4510"),
    ('8', 4.0, "06464303z 03434000z"),
    ('9', 4.0, "01004046060343"),
    ('A', 4.0, "00064640 0242"),
    ('B', 4.0, "00!06!464303 03434000!"),
    ('C', 4.0, "454606004041"),
    ('D', 4.0, "00!06!464000!"),
    ('E', 3.0, "36!06!00!30 0323"),
    ('F', 3.0, "36!06!00 0323"),
    ('G', 4.0, "45460600404323"),
    ('H', 4.0, "0006 4046 0343"),
    ('I', 0.0, "0006"),
    ('J', 3.0, "36300001"),
    ('K', 4.0, "0006 4602 1340"),
    ('L', 3.0, "0600!30"),
    ('M', 4.0, "0006!23!46!40"),
    ('N', 4.0, "0006!40!46"),
    ('O', 4.0, "06464000z"),
    ('P', 4.0, "0006!464202"),
    ('Q', 4.0, "06464000z 2240"),
    ('R', 4.0, "0006!464202 2240"),
    ('S', 4.0, "4546060343400001"),
    ('T', 4.0, "0646 2620"),
    ('U', 4.0, "06004046"),
    ('V', 4.0, "0620!46"),
    ('W', 4.0, "0610!24!30!46"),
    ('X', 4.0, "0046 0640"),
    ('Y', 4.0, "0623!46 2320"),
    ('Z', 4.0, "06!46!00!40"),
    ('.', 0.0, "0000"),
    (',', 0.0, "0100"),
    ('-', 3.0, "0333"),
    ('/', 3.0, "0036"),
    (':', 0.0, "0101 0404"),
    ('+', 4.0, "0343 2125"),
    ('%', 4.0, "0046 0616 3040"),
    ('(', 1.0, "16050110"),
    (')', 1.0, "06151100"),
    ('\'', 0.0, "0605"),
    ('°', 1.5, "06161505z"),
    (' ', 1.0, ""),
];

/// Height of capitals in grid units.
const CAP: f32 = 6.0;
/// Space between characters in grid units.
const GAP: f32 = 1.5;
/// Corners are rounded up to this radius.
const ROUND: f32 = 2.0;
/// Points per rounded corner.
const CORNER_STEPS: usize = 6;

/// How text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Height of capitals, in units of the canvas.
    pub(crate) height: f32,
    /// Width of strokes, as a share of the height.
    pub(crate) weight: f32,
    /// Colour.
    pub(crate) colour: Colour,
}

/// Width of a text in units of the canvas.
pub(crate) fn width(text: &str, style: Style) -> f32 {
    let glyphs = text.chars().map(|character| glyph(character).0 + GAP);
    (glyphs.sum::<f32>() - GAP).max(0.0) * style.height / CAP
}

/// Draws a text around a point. Characters that the font lacks are drawn as blanks.
pub(crate) fn centred(canvas: &mut Canvas, text: &str, middle: Point, style: Style) {
    let corner = [middle[0] - width(text, style) / 2.0, middle[1] - style.height / 2.0];
    write(canvas, text, corner, style);
}

/// Draws a text to the right of a point, on its base line.
pub(crate) fn write(canvas: &mut Canvas, text: &str, corner: Point, style: Style) {
    let shapes = strokes(text, corner, style);
    shapes.iter().for_each(|shape| canvas.fill(shape, style.colour));
}

/// The strokes of a text.
pub(crate) fn strokes(text: &str, corner: Point, style: Style) -> Vec<Shape> {
    let unit = style.height / CAP;
    let mut at = corner;
    let mut shapes: Vec<Shape> = Vec::new();
    for character in text.chars() {
        let (width, glyph) = glyph(character);
        // One shape per character: strokes that cross must not blend twice.
        let lines = glyph.split(' ').filter(|stroke| !stroke.is_empty()).map(|stroke| {
            let points: Vec<Point> =
                path(stroke).into_iter().map(|point| plus(at, times(point, unit))).collect();
            Shape::line(&points, style.weight * style.height)
        });
        shapes.extend(lines.reduce(Shape::and));
        at[0] += (width + GAP) * unit;
    }
    shapes
}

fn glyph(character: char) -> (f32, &'static str) {
    let upper = character.to_ascii_uppercase();
    GLYPHS.iter().find(|glyph| glyph.0 == upper).map_or((1.0, ""), |glyph| (glyph.1, glyph.2))
}

/// The points of a stroke, with its corners rounded.
fn path(stroke: &str) -> Vec<Point> {
    let mut corners: Vec<(Point, bool)> = Vec::new();
    let (mut x, mut closed) = (None, false);
    for character in stroke.chars() {
        match (character, x) {
            ('!', _) => corners.iter_mut().last().into_iter().for_each(|corner| corner.1 = true),
            ('z', _) => closed = true,
            (digit, None) => x = digit.to_digit(10),
            (digit, Some(column)) => {
                let row = digit.to_digit(10).unwrap_or(0);
                corners.push(([column as f32, row as f32], false));
                x = None;
            }
        }
    }
    let count = corners.len();
    let mut points = Vec::new();
    for (index, &(corner, sharp)) in corners.iter().enumerate() {
        let end = !closed && (index == 0 || index + 1 == count);
        if end || sharp {
            points.push(corner);
        } else {
            let (before, after) = (corners[(index + count - 1) % count].0, corners[(index + 1) % count].0);
            points.extend(rounded(before, corner, after));
        }
    }
    if closed {
        points.extend(points.first().copied());
    }
    points
}

/// A corner as a curve that begins and ends on its sides.
fn rounded(before: Point, corner: Point, after: Point) -> impl Iterator<Item = Point> {
    let towards = |end: Point| {
        let way = minus(end, corner);
        let far = length(way);
        if far > 0.0 { plus(corner, times(way, (far / 2.0).min(ROUND) / far)) } else { corner }
    };
    let (start, end) = (towards(before), towards(after));
    (0..=CORNER_STEPS).map(move |step| {
        let share = step as f32 / CORNER_STEPS as f32;
        let rest = 1.0 - share;
        // A circle's quarter is a little fuller than a parabola; two weights make it one.
        let (a, b, c) = (rest * rest, std::f32::consts::SQRT_2 * share * rest, share * share);
        times(plus(plus(times(start, a), times(corner, b)), times(end, c)), 1.0 / (a + b + c))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_glyph_stays_on_its_grid() {
        for &(character, width, strokes) in GLYPHS {
            for stroke in strokes.split(' ').filter(|stroke| !stroke.is_empty()) {
                let points = path(stroke);
                assert!(!points.is_empty(), "{character}");
                for [x, y] in points {
                    assert!((0.0..=width.max(0.0)).contains(&x), "{character}: x {x}");
                    assert!((0.0..=CAP).contains(&y), "{character}: y {y}");
                }
            }
        }
    }

    #[test]
    fn widths_add_up() {
        let style = Style { height: 6.0, weight: 0.1, colour: [1.0; 4] };
        assert_eq!(width("", style), 0.0);
        assert_eq!(width("00", style), 4.0 + GAP + 4.0);
    }
}
