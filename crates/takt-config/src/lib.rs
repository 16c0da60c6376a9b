//! A value that a program of Takt cannot use, in a configuration file or in a question of a tool.

#![forbid(unsafe_code)]

use std::fmt;

use toml::de::DeValue;

/// Why a configuration or a request is not accepted.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Mistake {
    /// Not TOML, or not these keys; the text names line and column.
    #[error("{0}")]
    Syntax(String),
    /// A value that makes no sense.
    #[error(transparent)]
    Value(Box<WrongValue>),
}

/// A value that makes no sense.
#[derive(Clone, PartialEq, Debug, Default, thiserror::Error)]
pub struct WrongValue {
    /// Line in its file, counted from 1.
    line: Option<usize>,
    /// The array of tables that it is in, which of its tables, and the name of that one.
    section: Option<(&'static str, usize, String)>,
    key: String,
    value: String,
    remedy: String,
}

impl fmt::Display for WrongValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        if let Some((table, _, name)) = &self.section {
            write!(f, "{table} {name:?}: ")?;
        }
        write!(f, "{} = {}: {}", self.key, self.value, self.remedy)
    }
}

/// `key = value` is wrong; `remedy` says what to do.
pub fn mistake(key: &str, value: impl fmt::Display, remedy: impl Into<String>) -> Mistake {
    let (key, value, remedy) = (key.to_owned(), value.to_string(), remedy.into());
    Mistake::Value(Box::new(WrongValue { key, value, remedy, ..WrongValue::default() }))
}

impl Mistake {
    /// The same, in that table of an array of tables.
    #[must_use]
    pub fn within(mut self, table: &'static str, index: usize, name: &str) -> Self {
        if let Self::Value(wrong) = &mut self {
            wrong.section = Some((table, index, name.to_owned()));
        }
        self
    }

    /// The same with its line in `text`.
    #[must_use]
    pub fn located(mut self, text: &str) -> Self {
        if let Self::Value(wrong) = &mut self {
            wrong.line = wrong.line_in(text);
        }
        self
    }
}

impl WrongValue {
    /// The line of the value, or of its table if the value is a default.
    fn line_in(&self, text: &str) -> Option<usize> {
        let table = toml::de::DeTable::parse(text).ok()?;
        let root = DeValue::Table(table.into_inner());
        let mut at: Option<&toml::Spanned<DeValue<'_>>> = None;
        if let Some((table, index, _)) = &self.section {
            for key in table.split('.') {
                at = Some(at.map_or(&root, |found| found.get_ref()).get(key)?);
            }
            at = Some(at?.get_ref().get(*index)?);
        }
        for key in self.key.split('.') {
            let Some(inner) = at.map_or(&root, |found| found.get_ref()).get(key) else {
                break;
            };
            at = Some(inner);
        }
        Some(1 + text[..at?.span().start].matches('\n').count())
    }
}
