//! Rectangles of displays and windows, in whole pixels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place, from the upper left corner, written as `720,540`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Point {
    /// To the right.
    pub x: i32,
    /// Downwards.
    pub y: i32,
}

/// Width and height, written as `1440x540`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Size {
    /// To the right.
    pub width: i32,
    /// Downwards.
    pub height: i32,
}

/// A rectangle, written as `720x540+0+0`. One without a width or a height is empty and contains nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Rect {
    /// Its upper left corner.
    pub at: Point,
    /// How large it is.
    pub size: Size,
}

/// Widest and highest display, and so of all that is on it.
pub const SIDE_MAX: i32 = 16_384;

impl Size {
    /// That wide and that high.
    pub const fn new(width: i32, height: i32) -> Self {
        Self { width, height }
    }

    /// Whether it has no pixel.
    pub const fn is_empty(self) -> bool {
        self.width <= 0 || self.height <= 0
    }
}

impl Rect {
    /// The rectangle at `x` and `y` with that size.
    pub const fn new(x: i32, y: i32, width: i32, height: i32) -> Self {
        Self { at: Point { x, y }, size: Size { width, height } }
    }

    /// The rectangle of that size at the origin.
    pub const fn of(size: Size) -> Self {
        Self { at: Point { x: 0, y: 0 }, size }
    }

    /// The first column to the right of it.
    pub const fn right(self) -> i32 {
        self.at.x.saturating_add(self.size.width)
    }

    /// The first row below it.
    pub const fn bottom(self) -> i32 {
        self.at.y.saturating_add(self.size.height)
    }

    /// Whether it has no pixel.
    pub const fn is_empty(self) -> bool {
        self.size.is_empty()
    }

    /// Whether a place is in it.
    pub const fn contains(self, place: Point) -> bool {
        let beside = place.x < self.at.x || place.x >= self.right();
        !self.is_empty() && !beside && place.y >= self.at.y && place.y < self.bottom()
    }

    /// What both have in common; empty if that is nothing.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let (left, top) = (self.at.x.max(other.at.x), self.at.y.max(other.at.y));
        let (right, bottom) = (self.right().min(other.right()), self.bottom().min(other.bottom()));
        if left >= right || top >= bottom {
            return Self::default();
        }
        Self::new(left, top, right - left, bottom - top)
    }

    /// Whether both have a pixel in common.
    pub fn overlaps(self, other: Self) -> bool {
        !self.intersection(other).is_empty()
    }

    /// Whether all of `other` is in it.
    pub fn covers(self, other: Self) -> bool {
        other.is_empty() || self.intersection(other) == other
    }

    /// The smallest rectangle that has both in it.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let (left, top) = (self.at.x.min(other.at.x), self.at.y.min(other.at.y));
        let (right, bottom) = (self.right().max(other.right()), self.bottom().max(other.bottom()));
        Self::new(left, top, right - left, bottom - top)
    }

    /// The same elsewhere.
    #[must_use]
    pub const fn moved(self, x: i32, y: i32) -> Self {
        let (x, y) = (self.at.x.saturating_add(x), self.at.y.saturating_add(y));
        Self { at: Point { x, y }, size: self.size }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.x, self.y)
    }
}

impl FromStr for Point {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse().ok().filter(|at| (0..SIDE_MAX).contains(at));
        let sides = text.split_once(',').and_then(|(x, y)| Some((side(x)?, side(y)?)));
        let (x, y) = sides.ok_or_else(|| format!("{text:?}: use X,Y in pixels, as in 720,540"))?;
        Ok(Self { x, y })
    }
}

impl TryFrom<String> for Point {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Point> for String {
    fn from(place: Point) -> Self {
        place.to_string()
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

impl fmt::Display for Rect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}+{}", self.size, self.at.x, self.at.y)
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
        let sides = text.split_once('x').and_then(|(width, height)| Some((side(width)?, side(height)?)));
        let (width, height) = sides.ok_or_else(|| {
            format!("{text:?}: use WIDTHxHEIGHT in pixels, each 1 to {SIDE_MAX}, as in 720x540")
        })?;
        Ok(Self { width, height })
    }
}

impl FromStr for Rect {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let place = |text: &str| text.parse().ok().filter(|at| (0..SIDE_MAX).contains(at));
        let parts = text.split_once('+').and_then(|(size, at)| {
            let (x, y) = at.split_once('+')?;
            Some((size.parse().ok()?, place(x)?, place(y)?))
        });
        let (size, x, y) =
            parts.ok_or_else(|| format!("{text:?}: use WIDTHxHEIGHT+X+Y in pixels, as in 720x540+0+0"))?;
        Ok(Self { at: Point { x, y }, size })
    }
}

impl TryFrom<String> for Size {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl TryFrom<String> for Rect {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> Self {
        size.to_string()
    }
}

impl From<Rect> for String {
    fn from(rect: Rect) -> Self {
        rect.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_meet_or_do_not() {
        let a = Rect::new(0, 0, 10, 10);
        assert_eq!(a.intersection(Rect::new(5, 5, 10, 10)), Rect::new(5, 5, 5, 5));
        assert!(!a.overlaps(Rect::new(10, 0, 5, 5)), "they touch");
        assert!(a.contains(Point { x: 9, y: 9 }) && !a.contains(Point { x: 10, y: 9 }));
        assert!(a.covers(Rect::new(1, 1, 9, 9)) && !a.covers(Rect::new(1, 1, 10, 9)));
        assert!(a.covers(Rect::default()) && !Rect::default().contains(Point::default()));
        assert_eq!(a.union(Rect::new(20, 5, 1, 1)), Rect::new(0, 0, 21, 10));
        assert_eq!(Rect::default().union(a), a);
        assert_eq!(a.moved(3, -3).to_string(), "10x10+3+-3");
    }

    #[test]
    fn what_is_written_can_be_read() {
        for rect in [Rect::new(0, 0, 1, 1), Rect::new(720, 3, SIDE_MAX, 540)] {
            assert_eq!(rect.to_string().parse(), Ok(rect));
            assert_eq!(rect.size.to_string().parse(), Ok(rect.size));
        }
        for wrong in ["", "1x1", "1x1+0", "1x1+0+-1", "0x1+0+0", "1x1+0+0+0", "1x16385+0+0", "axb+0+0"] {
            assert!(wrong.parse::<Rect>().is_err(), "{wrong}");
        }
        assert!("10".parse::<Size>().is_err() && "10x-1".parse::<Size>().is_err());
    }

    #[test]
    fn huge_rectangles_do_not_overflow() {
        let huge = Rect::new(i32::MAX - 1, i32::MIN, i32::MAX, i32::MAX);
        assert_eq!(huge.right(), i32::MAX);
        assert!(!huge.overlaps(Rect::new(0, 0, 1, 1)));
        assert!(huge.moved(i32::MAX, 0).at.x == i32::MAX);
    }
}
