//! How results are drawn.

use super::super::decimal::Decimal;
use super::super::reader::{Number, Text};
use super::raw::RawPlot;
use super::{Judge, RawStudy, Study};
use crate::study::Plot;
use crate::study::table::Kind;

impl Judge<'_, '_> {
    pub(super) fn plots(&mut self, raw: &RawStudy, study: &Study) -> Option<Vec<Plot>> {
        match raw.plot.as_deref() {
            None => Some(natural(study).into_iter().collect()),
            Some(plots) => {
                let plots: Vec<Option<Plot>> = plots.iter().map(|plot| self.plot(plot, study)).collect();
                plots.into_iter().collect()
            }
        }
    }

    fn plot(&mut self, raw: &RawPlot, study: &Study) -> Option<Plot> {
        let x = self.axis_of(&raw.x, study);
        let series = raw.series.as_ref().map(|name| self.axis_of(name, study));
        let facet = raw.facet.as_ref().map(|name| self.axis_of(name, study));
        let numbers: Vec<String> = numbers(study);
        let y =
            self.one_of(&raw.y, &numbers, "column of numbers").and_then(|index| numbers.get(index).cloned());
        let text = |text: Option<&Text>, or: &str| {
            text.and_then(|text| text.value.clone()).unwrap_or_else(|| or.to_owned())
        };
        let y = y?;
        Some(Plot {
            title: text(raw.title.as_ref(), &study.name),
            x: x?,
            y_title: text(raw.y_title.as_ref(), &y),
            y,
            series: series.map_or(Some(None), |axis| axis.map(Some))?,
            facet: facet.map_or(Some(None), |axis| axis.map(Some))?,
            y_range: (self.bound(raw.y_min.as_ref())?, self.bound(raw.y_max.as_ref())?),
        })
    }

    fn bound(&mut self, raw: Option<&Number>) -> Option<Option<f64>> {
        let Some(number) = raw else {
            return Some(None);
        };
        if let Decimal::Finite { mantissa, exponent } = number.value
            && let Ok(value) = format!("{mantissa}e{exponent}").parse::<f64>()
        {
            return Some(Some(value));
        }
        self.lower.report.value(&number.at, "is no end of an axis", "use a finite number");
        None
    }

    fn axis_of(&mut self, name: &Text, study: &Study) -> Option<usize> {
        let names: Vec<String> = study.axes.iter().map(|axis| axis.name.clone()).collect();
        self.one_of(name, &names, "axis")
    }

    fn one_of(&mut self, name: &Text, known: &[String], what: &str) -> Option<usize> {
        if known.is_empty() {
            let problem = format_args!("there is no such {what}");
            self.lower.report.value(&name.at, problem, format!("add an {what} first"));
            return None;
        }
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        self.lower.one_of(name, &known, what)
    }
}

/// Columns that can be drawn.
fn numbers(study: &Study) -> Vec<String> {
    let columns = study.measures();
    columns.into_iter().filter(|column| column.kind != Kind::Text).map(|column| column.name).collect()
}

/// What to draw if nothing is said.
fn natural(study: &Study) -> Option<Plot> {
    // Of task sets, it is the ratio that counts.
    let numbers = numbers(study);
    let y = numbers.iter().find(|name| *name == "ratio").or_else(|| numbers.first())?.clone();
    let axis = |index: usize| (index < study.axes.len()).then_some(index);
    Some(Plot {
        title: study.name.clone(),
        x: axis(0)?,
        y_title: y.clone(),
        y,
        series: axis(1),
        facet: axis(2),
        y_range: (None, None),
    })
}
