//! A job that plays a scenario and reads figures off its summary.

use std::collections::BTreeMap;

use serde_json::Value;

use super::table::{Cell, Column, Kind};
use crate::model::Scenario;
use crate::scenario::{self, Override};
use crate::world;

/// A scenario and what to look at.
#[derive(Clone, Debug)]
pub struct Simulate {
    pub(crate) source: Source,
    /// Changes that hold at every point.
    pub(crate) sets: Vec<Override>,
    pub(crate) measures: Vec<Measure>,
}

/// The texts a scenario is made of.
#[derive(Clone, Default, Debug)]
pub(crate) struct Source {
    pub(crate) file_name: String,
    pub(crate) text: String,
    /// By their paths as the scenario has them.
    pub(crate) recordings: BTreeMap<String, String>,
}

/// A figure of `takt sim --json`, or one number made of several of them.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Measure {
    pub(crate) column: Column,
    /// Keys that lead to it; `*` stands for every app.
    pub(crate) path: Vec<String>,
    pub(crate) reduce: Option<Reduce>,
}

/// How several numbers become one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Reduce {
    Min,
    Max,
    Mean,
    Sum,
}

impl Reduce {
    pub(crate) const ALL: [(&'static str, Self); 4] =
        [("min", Self::Min), ("max", Self::Max), ("mean", Self::Mean), ("sum", Self::Sum)];

    fn of(self, cells: &[Cell]) -> Cell {
        let numbers: Vec<f64> = cells.iter().filter_map(Cell::number).collect();
        if numbers.is_empty() {
            return Cell::Null;
        }
        // From left to right, so that rounding is the same everywhere.
        let sum = || numbers.iter().fold(0.0, |sum, number| sum + number);
        Cell::Float(match self {
            Self::Min => numbers.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Max => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::Mean => sum() / numbers.len() as f64,
            Self::Sum => sum(),
        })
    }
}

impl Source {
    /// The scenario after some changes.
    pub(crate) fn scenario(&self, sets: &[Override]) -> Result<Scenario, Vec<scenario::Diagnostic>> {
        let resolve = |path: &str| {
            let text = self.recordings.get(path).cloned();
            text.ok_or_else(|| "it was not read when the study began".to_owned())
        };
        scenario::parse(&self.file_name, &self.text, sets, &resolve)
    }
}

impl Simulate {
    pub(super) fn columns(&self) -> Vec<Column> {
        self.measures.iter().map(|measure| measure.column.clone()).collect()
    }

    pub(super) fn run(&self, sets: &[Override], seed: u64) -> Result<Vec<Cell>, String> {
        let sets: Vec<Override> = self.sets.iter().chain(sets).cloned().collect();
        let mut scenario = self
            .source
            .scenario(&sets)
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        scenario.seed = seed;
        let summary = summary_of(&scenario);
        Ok(self.measures.iter().map(|measure| measure.read(&summary)).collect())
    }
}

/// Plays the scenario; the summary as `takt sim --json` prints it.
pub(crate) fn summary_of(scenario: &Scenario) -> Value {
    // A summary is made of numbers, texts and lists, all of which JSON has.
    serde_json::to_value(world::summarize(scenario)).unwrap_or(Value::Null)
}

impl Measure {
    /// The figure in `summary`.
    fn read(&self, summary: &Value) -> Cell {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let found = find(summary, &path);
        match self.reduce {
            Some(reduce) => reduce.of(&found.into_iter().map(cell).collect::<Vec<_>>()),
            None => found.first().map_or(Cell::Null, |value| cell(value)),
        }
    }
}

/// All values that a path leads to.
pub(crate) fn find<'v>(value: &'v Value, path: &[&str]) -> Vec<&'v Value> {
    let Some((key, rest)) = path.split_first() else {
        return vec![value];
    };
    let next: Vec<&Value> = match value {
        Value::Object(object) => {
            // Scenarios call it app, summaries apps.
            let key = if *key == "app" && object.contains_key("apps") { "apps" } else { key };
            object.get(key).into_iter().collect()
        }
        Value::Array(elements) if *key == "*" => elements.iter().collect(),
        Value::Array(elements) => {
            let named = elements.iter().find(|element| element.get("name").is_some_and(|name| name == key));
            let index = || elements.get(key.parse::<usize>().ok()?);
            named.or_else(index).into_iter().collect()
        }
        _ => Vec::new(),
    };
    next.into_iter().flat_map(|value| find(value, rest)).collect()
}

/// A scalar as a cell.
fn cell(value: &Value) -> Cell {
    match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Cell::Int(whole),
            None => number.as_f64().map_or(Cell::Null, Cell::Float),
        },
        Value::String(text) => Cell::Text(text.clone()),
        _ => Cell::Null,
    }
}

/// The kind of a scalar.
pub(crate) fn kind(value: &Value) -> Kind {
    cell(value).kind()
}
