//! The five models in one file.
//!
//! ```text
//! takt-shaders 1
//! gpu llvmpipe (LLVM 15.0.6, 256 bits)
//! driver Mesa 22.3.6
//! model vertex-aux A1 A2 A3 …
//! takt-mars 1
//! variables 12
//! …
//! sum 0123456789abcdef
//! model vertex-commands V1 V2 …
//! …
//! ```
//!
//! Each model names its features, so that a file made for others is found out; what follows is a
//! model as [`mars::encode`](crate::mars::encode) writes it, with its own hash. The file is user
//! input: whatever it holds, reading it ends with models or with the line that is wrong.

use std::fmt::Write as _;

use super::{ShaderModels, Submodel};
use crate::mars;

/// Longest text that is read.
pub const BYTES_MAX: usize = 16 << 20;
/// Longest name of a GPU or driver, in bytes.
const NAME_BYTES_MAX: usize = 256;
const HEADER: &str = "takt-shaders 1";

/// Why bytes are no models.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShaderFileError {
    /// More than [`BYTES_MAX`] bytes.
    #[error("the file is longer than {BYTES_MAX} bytes")]
    TooLong,
    /// Not a text, or not one that begins as it should.
    #[error("line 1: expected \"{HEADER}\"")]
    Header,
    /// A line that does not belong where it is.
    #[error("line {line}: expected \"{expected}\"")]
    Line {
        /// Line, from 1.
        line: usize,
        /// How it should begin.
        expected: &'static str,
    },
    /// A model of other features than this version of Takt counts.
    #[error("line {line}: the {model} model has other features; train it again")]
    Features {
        /// Line, from 1.
        line: usize,
        /// Which model.
        model: &'static str,
    },
    /// One of the models is wrong.
    #[error("the {model} model, which starts after line {line}: {source}")]
    Model {
        /// Line before its first, from 1.
        line: usize,
        /// Which model.
        model: &'static str,
        /// What is wrong with it.
        source: mars::FileError,
    },
}

/// Writes models. What names must not hold, line breaks, is replaced.
#[must_use]
pub fn encode(models: &ShaderModels) -> String {
    let mut text = format!("{HEADER}\ngpu {}\ndriver {}\n", plain(&models.gpu), plain(&models.driver));
    for submodel in Submodel::ALL {
        let features = submodel.features().join(" ");
        writeln!(text, "model {} {features}", submodel.name()).expect("a string grows");
        text += &mars::encode(models.model(submodel));
    }
    text
}

/// Reads models.
///
/// # Errors
///
/// If the bytes are not what [`encode`] writes.
pub fn decode(bytes: &[u8]) -> Result<ShaderModels, ShaderFileError> {
    if bytes.len() > BYTES_MAX {
        return Err(ShaderFileError::TooLong);
    }
    let text = str::from_utf8(bytes).map_err(|_error| ShaderFileError::Header)?;
    let mut lines = Lines { rest: text, line: 0 };
    if lines.next() != Some(HEADER) {
        return Err(ShaderFileError::Header);
    }
    let gpu = plain(lines.field("gpu ")?);
    let driver = plain(lines.field("driver ")?);
    let mut models = Vec::with_capacity(Submodel::ALL.len());
    for submodel in Submodel::ALL {
        let words = lines.field("model ")?;
        let (line, model) = (lines.line, submodel.name());
        let expected = std::iter::once(model).chain(submodel.features().iter().copied());
        if !words.split(' ').eq(expected) {
            return Err(ShaderFileError::Features { line, model });
        }
        let bytes = lines.through("sum ").as_bytes();
        let found = mars::decode(bytes).map_err(|source| ShaderFileError::Model { line, model, source })?;
        if found.variables() != submodel.features().len() {
            return Err(ShaderFileError::Features { line, model });
        }
        models.push(found);
    }
    let end = ShaderFileError::Line { line: lines.line + 1, expected: "the end" };
    match models.try_into() {
        Ok(models) if lines.rest.is_empty() => ShaderModels::new(gpu, driver, models).ok_or(end),
        _ => Err(end),
    }
}

struct Lines<'a> {
    rest: &'a str,
    /// Lines taken so far.
    line: usize,
}

impl<'a> Lines<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.rest.split_once('\n')?;
        (self.rest, self.line) = (rest, self.line + 1);
        Some(first)
    }

    /// What follows the name on the next line.
    fn field(&mut self, expected: &'static str) -> Result<&'a str, ShaderFileError> {
        let value = self.next().and_then(|line| line.strip_prefix(expected));
        value.ok_or(ShaderFileError::Line { line: self.line, expected })
    }

    /// All lines through the next one that begins so, or all that are left.
    fn through(&mut self, last: &str) -> &'a str {
        let all = self.rest;
        while let Some(line) = self.next() {
            if line.starts_with(last) {
                break;
            }
        }
        &all[..all.len() - self.rest.len()]
    }
}

/// A name that fits on a line: drivers can say what they like.
fn plain(name: &str) -> String {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= NAME_BYTES_MAX;
    let letters = name.trim().char_indices().take_while(fits);
    letters.map(|(_, letter)| if letter.is_control() { '_' } else { letter }).collect()
}
