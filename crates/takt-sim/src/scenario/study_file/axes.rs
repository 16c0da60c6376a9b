//! The axes of a study, and trying their choices.

use super::super::decimal::{Decimal, fixed_point};
use super::raw::{AxisValue, RawAxis, RawRange};
use super::{Axis, Diagnostic, Judge, Override, RawStudy, Spot};
use crate::study::Choice;
use crate::study::table::Cell;

/// An axis, and where its choices are written.
pub(super) struct Tried {
    pub(super) axis: Axis,
    spots: Vec<Spot>,
}

/// Most values of a range.
const RANGE_VALUES_MAX: i128 = 100_000;

impl Judge<'_, '_> {
    pub(super) fn axes(&mut self, raw: &RawStudy) -> Option<Vec<Tried>> {
        let of_scenario = raw.simulate.is_some();
        let axes = raw.axis.as_deref().unwrap_or_default();
        let axes: Vec<Option<Tried>> = axes.iter().map(|axis| self.axis(axis, of_scenario)).collect();
        axes.into_iter().collect()
    }

    fn axis(&mut self, raw: &RawAxis, of_scenario: bool) -> Option<Tried> {
        let (choices, spots) = match (&raw.set, &raw.values, &raw.range, &raw.choice) {
            (Some(key), Some(values), None, None) => from_values(key.value.as_deref()?, values),
            (Some(key), None, Some(range), None) => {
                let values = self.range(range)?;
                from_values(key.value.as_deref()?, &values)
            }
            (None, None, None, Some(_)) => self.named(raw)?,
            _ => {
                let problem = "an axis has a key with values, a key with a range, or choices";
                let remedy = "give set and values, set and range, or [[axis.choice]] tables";
                self.lower.report.table(&raw.at, problem, remedy);
                return None;
            }
        };
        if choices.is_empty() {
            self.lower.report.table(&raw.at, "the axis has no values", "give at least one");
            return None;
        }
        for (choice, spot) in choices.iter().zip(&spots) {
            for set in &choice.sets {
                self.may_set(&set.key, of_scenario, spot)?;
            }
        }
        let end = raw.set.as_ref().and_then(|key| key.value.as_deref()?.rsplit('.').next());
        let name = match (&raw.name, end) {
            (Some(name), _) => self.lower.name(name)?,
            (None, Some(end)) => end.to_owned(),
            (None, None) => {
                self.lower.report.table(&raw.at, "the axis has no name", "add name = …");
                return None;
            }
        };
        let title = raw.title.as_ref().and_then(|title| title.value.clone()).unwrap_or_else(|| name.clone());
        Some(Tried { axis: Axis { name, title, choices }, spots })
    }

    fn named(&mut self, raw: &RawAxis) -> Option<(Vec<Choice>, Vec<Spot>)> {
        let mut choices = Vec::new();
        let mut spots = Vec::new();
        for choice in raw.choice.as_deref().unwrap_or_default() {
            let label = Cell::Text(choice.label.value.clone()?);
            choices.push(Choice { label, sets: self.override_list(choice.set.as_deref())? });
            spots.push(choice.label.at.clone());
        }
        Some((choices, spots))
    }

    /// Exact decimal numbers: `0.1` three times is `0.3`.
    fn range(&mut self, raw: &RawRange) -> Option<Vec<AxisValue>> {
        let parts = [&raw.from, &raw.to, &raw.step].map(|number| match number.value {
            Decimal::Finite { mantissa, exponent } => Some((mantissa, exponent)),
            _ => None,
        });
        let finest = parts.iter().flatten().map(|(_, exponent)| *exponent).min().unwrap_or(0).min(0);
        let scaled = |part: Option<(i128, i32)>| {
            let (mantissa, exponent) = part?;
            mantissa.checked_mul(10_i128.checked_pow(exponent.abs_diff(finest))?)
        };
        let [Some(from), Some(to), Some(step)] = parts.map(scaled) else {
            self.lower.report.value(
                &raw.at,
                "the range needs three finite numbers",
                "give from, to and step",
            );
            return None;
        };
        let count = to.checked_sub(from).filter(|_| step != 0).map(|length| (length / step, length % step));
        match count {
            Some((steps @ 0..RANGE_VALUES_MAX, 0)) => {
                let decimals = finest.unsigned_abs();
                let value = |index: i128| {
                    let text = fixed_point(from + index * step, decimals);
                    let whole = text.parse().map(Cell::Int).ok();
                    let label = whole.or_else(|| text.parse().map(Cell::Float).ok())?;
                    Some(AxisValue { at: raw.at.clone(), text, label })
                };
                (0..=steps).map(value).collect()
            }
            _ => {
                let problem = "no whole number of steps leads from one end to the other";
                let remedy = format!("let step divide to − from, at most {RANGE_VALUES_MAX} times");
                self.lower.report.table(&raw.at, problem, remedy);
                None
            }
        }
    }

    fn may_set(&mut self, key: &str, of_scenario: bool, at: &Spot) -> Option<()> {
        let (problem, remedy) = match of_scenario {
            true if key == "seed" => (
                "repetitions have the seeds",
                "leave this out, and give seed and repetitions at the top level",
            ),
            false if !key.starts_with("sets.") && !key.starts_with("test.") => (
                "an axis of this study can change [sets] and [test] only",
                "write a key such as sets.utilisation or test.overhead_us",
            ),
            _ => return Some(()),
        };
        self.lower.report.table(at, format_args!("{key}: {problem}"), remedy);
        None
    }

    /// Tries each choice of each axis beside the first choices of the others; returns what comes
    /// of all first choices.
    pub(super) fn try_all<T>(
        &mut self,
        axes: &[Tried],
        attempt: impl Fn(&[Override]) -> Result<T, Vec<Diagnostic>>,
    ) -> Option<T> {
        let point = |at: usize, choice: usize| -> Vec<Override> {
            let chosen = axes
                .iter()
                .enumerate()
                .filter_map(|(axis, tried)| tried.axis.choices.get(if axis == at { choice } else { 0 }));
            chosen.flat_map(|choice| &choice.sets).cloned().collect()
        };
        for (at, tried) in axes.iter().enumerate() {
            for (index, spot) in tried.spots.iter().enumerate() {
                if let Err(found) = attempt(&point(at, index)) {
                    let culprit = |diagnostic: &Diagnostic| culprit(axes, diagnostic).unwrap_or(spot);
                    for diagnostic in &found {
                        self.not_possible(culprit(diagnostic), diagnostic);
                    }
                    return None;
                }
            }
        }
        match attempt(&point(axes.len(), 0)) {
            Ok(first) => Some(first),
            Err(found) => {
                for diagnostic in &found {
                    self.not_possible(&Spot::default(), diagnostic);
                }
                None
            }
        }
    }

    fn not_possible(&mut self, at: &Spot, found: &Diagnostic) {
        // What is found in this very file needs no second place.
        let message = match found.file == self.file.name {
            true => {
                let place = (found.file.as_str(), found.line, found.column);
                return self.lower.report.elsewhere(place, found.message.clone(), found.remedy.clone());
            }
            false => format!("{}: {}", found.file, found.message),
        };
        self.lower.report.address(at.span.start, message, found.remedy.clone());
    }
}

fn from_values(key: &str, values: &[AxisValue]) -> (Vec<Choice>, Vec<Spot>) {
    let choice = |value: &AxisValue| {
        let set = Override { key: key.to_owned(), value: value.text.clone() };
        Choice { label: value.label.clone(), sets: vec![set] }
    };
    (values.iter().map(choice).collect(), values.iter().map(|value| value.at.clone()).collect())
}

/// Where the override is written that an error is about.
fn culprit<'t>(axes: &'t [Tried], found: &Diagnostic) -> Option<&'t Spot> {
    let choices = axes.iter().flat_map(|tried| tried.axis.choices.iter().zip(&tried.spots));
    let names = |choice: &Choice| choice.sets.iter().any(|set| found.file == format!("--set {set}"));
    choices.into_iter().find(|(choice, _)| names(choice)).map(|(_, spot)| spot)
}
