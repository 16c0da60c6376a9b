//! Single values changed from outside, as in `--set scheduler.mpcg=3`.
//!
//! The key is a dotted path: `duration_s`, `display.refresh_hz`, `app.quake3.prediction.scale`
//! (apps go by name), `app.*.unpaced` (all of them), `gpu.clock.0.speed` (by index). An override
//! edits the parsed tree, never the text, so errors elsewhere keep their lines.

use std::fmt;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::diagnostic::nearest;
use super::reader::Value;

/// A value to put in place of what the file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Override {
    /// Dotted path of the key.
    pub key: String,
    /// A TOML value; anything that is not one counts as a string.
    pub value: String,
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// The text is not of the form `key=value`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("\"{0}\" is not of the form key=value, such as scheduler.mpcg=3")]
pub struct NotAnOverride(String);

impl FromStr for Override {
    type Err = NotAnOverride;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(NotAnOverride(text.to_owned())),
        }
    }
}

/// Most segments of a key; the longest that exists has fewer.
const SEGMENTS_MAX: usize = 16;

/// Why a key leads nowhere, and what to do.
pub(super) type Astray = (String, String);

/// Puts the value of `set` into the tree; its spans begin at address `base`.
pub(super) fn apply<'i>(root: &mut Value<'i>, set: &'i Override, base: usize) -> Result<(), Astray> {
    let segments: Vec<&str> = set.key.split('.').collect();
    if segments.len() > SEGMENTS_MAX || segments.iter().any(|segment| segment.is_empty()) {
        let problem = format!("\"{}\" is not a dotted path", set.key);
        return Err((problem, "write a key such as scheduler.mpcg".to_owned()));
    }
    let mut value = DeValue::parse(&set.value).unwrap_or_else(|_not_toml| {
        Spanned::new(0..set.value.len(), DeValue::String(DeString::Borrowed(&set.value)))
    });
    shift(&mut value, base);
    put(root, &segments, &value)
}

fn put<'i>(node: &mut Value<'i>, path: &[&'i str], value: &Value<'i>) -> Result<(), Astray> {
    let Some((segment, rest)) = path.split_first() else {
        *node = value.clone();
        return Ok(());
    };
    match node.get_mut() {
        DeValue::Table(table) => {
            let key = Spanned::new(value.span(), DeString::Borrowed(*segment));
            if !table.contains_key(*segment) {
                let empty = DeValue::Table(DeTable::new());
                table.insert(key, Spanned::new(value.span(), empty));
            }
            match table.get_mut(*segment) {
                Some(next) => put(next, rest, value),
                None => Ok(()),
            }
        }
        DeValue::Array(array) => {
            let chosen = choose(array, segment)?;
            for (_, element) in array.iter_mut().enumerate().filter(|(index, _)| chosen.contains(index)) {
                put(element, rest, value)?;
            }
            Ok(())
        }
        other => Err((
            format!("{segment}: a {} has no keys", other.type_str()),
            "end the key one segment earlier".to_owned(),
        )),
    }
}

/// The elements of an array that a segment means: all, by name, or by index.
fn choose(array: &[Value<'_>], segment: &str) -> Result<Vec<usize>, Astray> {
    if segment == "*" {
        return Ok((0..array.len()).collect());
    }
    let names: Vec<(usize, &str)> = array
        .iter()
        .enumerate()
        .filter_map(|(index, element)| {
            let table = element.get_ref().as_table()?;
            Some((index, table.get("name")?.get_ref().as_str()?))
        })
        .collect();
    if let Some((index, _)) = names.iter().find(|(_, name)| *name == segment) {
        return Ok(vec![*index]);
    }
    if let Some(index) = segment.parse().ok().filter(|index| *index < array.len()) {
        return Ok(vec![index]);
    }
    let remedy = match nearest(segment, names.iter().map(|(_, name)| *name)) {
        Some(like) => format!("did you mean {like}?"),
        None if names.is_empty() => format!("use an index below {}, or *", array.len()),
        None => {
            let names: Vec<&str> = names.iter().take(20).map(|(_, name)| *name).collect();
            format!("use *, or one of {}", names.join(", "))
        }
    };
    Err((format!("{segment}: there is no such element"), remedy))
}

/// Moves the spans of a value to where its text lies among the sources.
fn shift(value: &mut Value<'_>, base: usize) {
    let span = value.span();
    let moved = match std::mem::replace(value.get_mut(), DeValue::Boolean(false)) {
        DeValue::Array(mut array) => {
            array.iter_mut().for_each(|element| shift(element, base));
            DeValue::Array(array)
        }
        DeValue::Table(table) => {
            let entries = table.into_iter().map(|(key, mut element)| {
                shift(&mut element, base);
                let span = key.span();
                let moved = span.start + base..span.end + base;
                (Spanned::new(moved, key.into_inner()), element)
            });
            DeValue::Table(entries.collect())
        }
        leaf => leaf,
    };
    *value = Spanned::new(span.start + base..span.end + base, moved);
}
