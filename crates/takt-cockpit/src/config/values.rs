//! Single values: names, sizes, times.

use takt_config::{Mistake, mistake};
use takt_core::Span;

use crate::geometry::{Rect, SIDE_MAX, Size};

/// Longest name of a section.
const NAME_MAX: usize = 32;
/// Longest time in a configuration.
const MS_MAX: f64 = 60_000.0;

/// Names are parts of paths and of records.
pub(super) fn name(text: &str) -> Result<(), Mistake> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    if !text.is_empty() && text.len() <= NAME_MAX && text.chars().all(fits) {
        return Ok(());
    }
    let remedy = format!("use letters, digits, - and _, {NAME_MAX} at most");
    Err(mistake("name", format!("{text:?}"), remedy))
}

/// `1440x540`.
pub(super) fn size(key: &str, text: &str) -> Result<Size, Mistake> {
    let parsed = text
        .split_once('x')
        .and_then(|(width, height)| Some(Size { width: width.parse().ok()?, height: height.parse().ok()? }));
    let fits = |size: &Size| (1..=SIDE_MAX).contains(&size.width) && (1..=SIDE_MAX).contains(&size.height);
    parsed.filter(fits).ok_or_else(|| {
        mistake(key, format!("{text:?}"), format!("use WIDTHxHEIGHT in pixels, each 1 to {SIDE_MAX}"))
    })
}

/// `720x540+0+0`.
pub(super) fn area(text: &str, within: Size) -> Result<Rect, Mistake> {
    let mut parts = text.split('+');
    let (sizes, x, y) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let number = |part: Option<&str>| part.and_then(|part| part.parse::<i32>().ok()).filter(|at| *at >= 0);
    let (Some(x), Some(y), None) = (number(x), number(y), parts.next()) else {
        return Err(mistake("area", format!("{text:?}"), "use WIDTHxHEIGHT+X+Y in pixels"));
    };
    let size = size("area", sizes)?;
    let area = Rect::new(x, y, size.width, size.height);
    if Rect::of(within).covers(area) {
        return Ok(area);
    }
    Err(mistake("area", format!("{text:?}"), format!("its output has {within}: keep the area inside")))
}

/// Milliseconds within a range.
pub(super) fn ms(key: &str, value: f64, least: f64) -> Result<Span, Mistake> {
    if (least..=MS_MAX).contains(&value) {
        return Ok(Span::from_ns(rounded(value * 1e6)));
    }
    Err(mistake(key, value, format!("use {least} to {MS_MAX} ms")))
}

/// A rate in millihertz.
pub(super) fn rate(key: &str, hz: f64) -> Result<u32, Mistake> {
    if (1.0..=1000.0).contains(&hz) {
        return Ok(u32::try_from(rounded(hz * 1000.0)).unwrap_or(u32::MAX));
    }
    Err(mistake(key, hz, "use 1 to 1000"))
}

/// A number that was found to be in range.
fn rounded(value: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let whole = value.round() as u64;
    whole
}

/// A number from 1 to `most`.
pub(super) fn count(key: &str, value: usize, most: usize) -> Result<usize, Mistake> {
    if (1..=most).contains(&value) { Ok(value) } else { Err(mistake(key, value, format!("use 1 to {most}"))) }
}

/// The index of the section that a key names.
pub(super) fn index<T>(
    key: &str,
    name: &str,
    known: &[T],
    name_of: impl Fn(&T) -> &str,
) -> Result<usize, Mistake> {
    known.iter().position(|section| name_of(section) == name).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(name_of).collect();
        let remedy = match names.is_empty() {
            true => format!("add a section [[{key}]] of that name"),
            false => format!("use one of {}", names.join(", ")),
        };
        mistake(key, name, remedy)
    })
}
