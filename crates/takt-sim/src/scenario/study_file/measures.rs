//! What to read off each run.

use serde_json::Value;
use takt_core::Span;

use super::super::diagnostic::nearest;
use super::super::reader::Text;
use super::raw::RawSimulate;
use super::{Judge, Scenario};
use crate::study::table::{Column, Kind};
use crate::study::{Measure, Reduce, find, kind, summary_of};

/// As little of a run as shows which figures there are.
const GLIMPSE: Span = Span::from_ms(1);

/// Most keys that an error lists.
const KEYS_LISTED: usize = 20;

impl Judge<'_, '_> {
    pub(super) fn measures(&mut self, raw: &RawSimulate, mut scenario: Scenario) -> Option<Vec<Measure>> {
        scenario.duration = scenario.duration.min(GLIMPSE);
        scenario.warm_up = Span::ZERO;
        let summary = summary_of(&scenario);
        let wanted = raw.measure.as_deref().unwrap_or_default();
        if wanted.is_empty() {
            let remedy = "add measure = [\"gpu.utilisation\", \"min(app.*.met)\"], say";
            self.lower.report.table(&raw.at, "nothing is measured", remedy);
            return None;
        }
        let measures: Vec<Option<Vec<Measure>>> =
            wanted.iter().map(|text| self.measure(text, &summary)).collect();
        Some(measures.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// The columns that one entry stands for.
    fn measure(&mut self, raw: &Text, summary: &Value) -> Option<Vec<Measure>> {
        let text = raw.value.as_deref()?;
        let (reduce, path) = reduction(text).map_or((None, text), |(reduce, path)| (Some(reduce), path));
        let keys: Vec<&str> = path.split('.').collect();
        let found = find(summary, &keys);
        let Some(first) = found.first().filter(|value| !value.is_object() && !value.is_array()) else {
            let (problem, remedy) = astray(summary, &keys);
            self.lower.report.value(&raw.at, problem, remedy);
            return None;
        };
        let kind = kind(first);
        let measure = |name: String, keys: &[&str], kind, reduce| Measure {
            column: Column { name, kind },
            path: keys.iter().map(|key| (*key).to_owned()).collect(),
            reduce,
        };
        match (reduce, keys.iter().position(|key| *key == "*")) {
            (Some(_), _) if kind == Kind::Text => {
                self.lower.report.value(&raw.at, "is made of texts, not numbers", "leave out the function");
                None
            }
            (Some(_), _) => Some(vec![measure(text.to_owned(), &keys, Kind::Number, reduce)]),
            (None, None) => Some(vec![measure(text.to_owned(), &keys, kind, None)]),
            (None, Some(star)) => {
                let elements = find(summary, keys.get(..star)?);
                let names = elements.iter().filter_map(|array| array.as_array()).flatten();
                let names = names.filter_map(|element| element.get("name")?.as_str());
                let one = |name: &str| {
                    let mut keys = keys.clone();
                    keys.splice(star..=star, [name]);
                    measure(keys.join("."), &keys, kind, None)
                };
                Some(names.map(one).collect())
            }
        }
    }
}

/// `min(…)` and its like.
fn reduction(text: &str) -> Option<(Reduce, &str)> {
    let (name, rest) = text.strip_suffix(')')?.split_once('(')?;
    let (_, reduce) = Reduce::ALL.into_iter().find(|(known, _)| *known == name.trim())?;
    Some((reduce, rest.trim()))
}

/// Why there is no such figure, and what there is instead.
fn astray(summary: &Value, keys: &[&str]) -> (String, String) {
    let reached =
        (0..=keys.len()).rev().find(|length| !find(summary, &keys[..*length]).is_empty()).unwrap_or(0);
    let at = find(summary, &keys[..reached]);
    let known: Vec<String> = match at.first() {
        Some(Value::Object(object)) => object.keys().cloned().collect(),
        Some(Value::Array(elements)) => {
            let names =
                elements.iter().filter_map(|element| element.get("name")?.as_str().map(str::to_owned));
            names.chain(["*".to_owned()]).collect()
        }
        _ => Vec::new(),
    };
    let Some(key) = keys.get(reached) else {
        let shown = known.iter().take(KEYS_LISTED).cloned().collect::<Vec<_>>().join(", ");
        return ("is not a single figure".to_owned(), format!("go on with one of {shown}"));
    };
    let remedy = match nearest(key, known.iter().map(String::as_str)) {
        Some(like) => format!("did you mean {like}?"),
        None if known.is_empty() => "end the path one key earlier".to_owned(),
        None => {
            format!("use one of {}", known.iter().take(KEYS_LISTED).cloned().collect::<Vec<_>>().join(", "))
        }
    };
    (format!("there is no figure {key} here"), remedy)
}
