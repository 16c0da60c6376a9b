//! Models as bytes: a small text that can be read, compared and kept under version control.
//!
//! ```text
//! takt-mars 1
//! variables 2
//! intercept 5
//! term 2 >0@30
//! term -0.25 <0@30 =1@0
//! sum 0123456789abcdef
//! ```
//!
//! A factor is its shape (`>` above the knot, `<` below it, `=` linear), the feature and the knot.
//! Numbers are written with as many digits as it takes to read the same number back. The last
//! line is the FNV-1a hash of all bytes before it: it finds damage, not malice, so everything is
//! checked besides, and no size that the text claims is believed before the text is there.

use std::fmt::Write as _;

use super::model::{Factor, HingeShape, Model, ModelError};
use super::options::DEGREE_MAX;

/// Longest text that is read.
pub const BYTES_MAX: usize = 16 << 20;

/// The first line, which names the format and its version.
const HEADER: &str = "takt-mars 1";

/// Why bytes are not a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// More than [`BYTES_MAX`] bytes.
    #[error("the model is too large")]
    TooLong,
    /// Not a text, or not one that begins as a model does.
    #[error("this is not a model of a known version")]
    Header,
    /// The hash is missing or another one.
    #[error("the model is damaged: its hash does not fit")]
    Damaged,
    /// A line that does not belong where it is.
    #[error("line {line} of the model is not understood")]
    Line {
        /// Line, from 1.
        line: usize,
    },
    /// A line that is well-formed and yet impossible.
    #[error("line {line} of the model: {source}")]
    Model {
        /// Line, from 1.
        line: usize,
        /// What is wrong.
        source: ModelError,
    },
}

/// Writes a model.
#[must_use]
pub fn encode(model: &Model) -> String {
    let mut text = format!("{HEADER}\nvariables {}\nintercept {}\n", model.variables(), model.intercept());
    for (coefficient, factors) in model.terms() {
        // Writing to a string cannot fail.
        write!(text, "term {coefficient}").expect("a string grows");
        for Factor { variable, knot, shape } in factors {
            let shape = match shape {
                HingeShape::Above => '>',
                HingeShape::Below => '<',
                HingeShape::Linear => '=',
            };
            write!(text, " {shape}{variable}@{knot}").expect("a string grows");
        }
        text.push('\n');
    }
    let sum = fnv_1a(text.as_bytes());
    writeln!(text, "sum {sum:016x}").expect("a string grows");
    text
}

/// Reads a model.
///
/// # Errors
///
/// If the bytes are not what [`encode`] writes.
pub fn decode(bytes: &[u8]) -> Result<Model, FileError> {
    if bytes.len() > BYTES_MAX {
        return Err(FileError::TooLong);
    }
    let text = str::from_utf8(bytes).map_err(|_error| FileError::Header)?;
    if text.split('\n').next() != Some(HEADER) {
        return Err(FileError::Header);
    }
    let body = checked_body(text).ok_or(FileError::Damaged)?;
    let mut lines = body.lines().zip(1..).skip(1);
    let variables = field(lines.next(), "variables ", 2)?;
    let intercept = field(lines.next(), "intercept ", 3)?;
    let mut model =
        Model::new(variables, intercept).map_err(|source| FileError::Model { line: 3, source })?;
    for (text, line) in lines {
        let term = text.strip_prefix("term ").and_then(parse_term);
        let (coefficient, factors) = term.ok_or(FileError::Line { line })?;
        model.push(coefficient, &factors).map_err(|source| FileError::Model { line, source })?;
    }
    Ok(model)
}

/// Everything before the hash, if the hash fits.
fn checked_body(text: &str) -> Option<&str> {
    let (body, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let body = &text[..body.len() + 1];
    (sum == format!("sum {:016x}", fnv_1a(body.as_bytes()))).then_some(body)
}

/// The value of a line that begins with `name`.
fn field<T: std::str::FromStr>(
    found: Option<(&str, usize)>,
    name: &str,
    expected_line: usize,
) -> Result<T, FileError> {
    let value = found.and_then(|(text, _)| text.strip_prefix(name)?.parse().ok());
    value.ok_or(FileError::Line { line: expected_line })
}

fn parse_term(text: &str) -> Option<(f64, Vec<Factor>)> {
    let mut words = text.split(' ');
    let coefficient = words.next()?.parse().ok()?;
    // One more than allowed, so that the model can tell that there are too many.
    let factors = words.take(DEGREE_MAX + 1).map(parse_factor).collect::<Option<_>>()?;
    Some((coefficient, factors))
}

fn parse_factor(word: &str) -> Option<Factor> {
    let mut characters = word.chars();
    let shape = match characters.next()? {
        '>' => HingeShape::Above,
        '<' => HingeShape::Below,
        '=' => HingeShape::Linear,
        _ => return None,
    };
    let (variable, knot) = characters.as_str().split_once('@')?;
    Some(Factor { variable: variable.parse().ok()?, knot: knot.parse().ok()?, shape })
}

/// FNV-1a with 64 bits.
pub(crate) fn fnv_1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
