//! The study file, key by key: the one place that says which keys there are.
//!
//! The comments on the fields are the descriptions in the JSON schema, so they speak to people
//! who write studies.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::de::DeValue;

use super::super::diagnostic::Spot;
use super::super::reader::{Flag, Number, OneOrRange, Read, Reader, Text, Value, Whole, section};
use crate::study::table::Cell;

section! {
    /// A study for `takt sweep`: a scenario or random task sets, and what to vary.
    struct RawStudy {
        /// Short name: letters, digits, "-" and "_".
        name: Text,
        /// What the study asks, for people. Default: empty.
        description: Option<Text>,
        /// Seed of the first repetition; each further one adds one. Default: 1.
        seed: Option<Whole>,
        /// How often each point is asked, with a seed of its own each time. Default: 1.
        repetitions: Option<Whole>,
        /// Play a scenario at each point. Give this, or sets and test.
        simulate: Option<RawSimulate>,
        /// Draw random task sets at each point.
        sets: Option<RawSets>,
        /// What to ask of the task sets.
        test: Option<RawTest>,
        /// The varied parameters; every combination is a point. Default: nothing, a single point.
        axis: Option<Vec<RawAxis>>,
        /// How results are drawn. Default: the first measure over the first axis, a line for each
        /// choice of the second and a panel for each choice of the third.
        plot: Option<Vec<RawPlot>>,
    }
}

section! {
    /// Play a scenario at each point.
    struct RawSimulate {
        /// Scenario file, relative to this one.
        scenario: Text,
        /// Changes that hold at every point, such as "duration_s=60". Default: none.
        set: Option<Vec<Text>>,
        /// Figures of `takt sim --json` to write down: "gpu.utilisation", "app.NAME.met",
        /// "app.*.met" (a column for each app), or min(…), max(…), mean(…), sum(…) of the latter.
        measure: Option<Vec<Text>>,
    }
}

section! {
    /// Random task sets. Axes may give what is left out here.
    struct RawSets {
        /// Sets per point and repetition.
        count: Option<Whole>,
        /// Tasks per set.
        tasks: Option<Whole>,
        /// Demanded share of the GPU, drawn by UUniFast.
        utilisation: Option<Number>,
        /// Largest share of one task: bounds the draw. Default: 1.
        share_max: Option<Number>,
        /// Shortest and longest period in microseconds, drawn evenly.
        period_us: Option<OneOrRange<Whole>>,
        /// Shortest deadline as a part of the period; deadlines are drawn evenly from there to the
        /// period. Default: 1, deadlines equal periods.
        deadline_min: Option<Number>,
    }
}

section! {
    /// What to ask of the task sets: an analysis of docs/analysis.md and its machine. Keys that
    /// the analysis does not know are ignored, so that an axis may vary the analysis.
    struct RawTest {
        /// edf, np-edf, lp-edf or runlist.
        analysis: Option<Text>,
        /// Longest piece of work that cannot be preempted (lp-edf), or the timeslice (runlist).
        segment_us: Option<Whole>,
        /// Timeslice of a less important channel (runlist); 0 if there is none. Default:
        /// segment_us.
        lower_segment_us: Option<Whole>,
        /// Cost of one context switch; each job pays for two, on a runlist each timeslice for one.
        /// Default: 0.
        overhead_us: Option<Whole>,
        /// Cost of handing a job over to the GPU. Default: 0.
        submission_us: Option<Whole>,
        /// Let each change of channel cost overhead_us (runlist). Default: false.
        every_switch: Option<Flag>,
        /// Count the work that other tasks can have, instead of taking them for always busy
        /// (runlist). Default: false.
        by_arrivals: Option<Flag>,
    }
}

section! {
    /// Something that is varied: a key with values or a range, or choices that change several
    /// keys at once.
    struct RawAxis {
        /// Name of its column: letters, digits, "-" and "_". Default: the end of the key.
        name: Option<Text>,
        /// Name for people. Default: the name.
        title: Option<Text>,
        /// The key: of the scenario as for `takt sim --set`, or sets.… or test.… of this file.
        set: Option<Text>,
        /// Its values.
        values: Option<Vec<AxisValue>>,
        /// Its values, as numbers at equal distances.
        range: Option<RawRange>,
        /// Named choices, instead of a key with values.
        choice: Option<Vec<RawChoice>>,
    }
}

section! {
    /// Numbers at equal distances; from and to are among them.
    struct RawRange {
        /// The first number.
        from: Number,
        /// The last number.
        to: Number,
        /// The distance.
        step: Number,
    }
}

section! {
    /// One choice of an axis.
    struct RawChoice {
        /// What stands in the axis's column.
        label: Text,
        /// What it changes, such as ["scheduler.policy=fifo", "scheduler.mpcg=1"]. Default:
        /// nothing.
        set: Option<Vec<Text>>,
    }
}

section! {
    /// Lines of one column over an axis. Further axes and repetitions are averaged, and thin lines
    /// show from where to where they reach.
    struct RawPlot {
        /// Default: the name of the study.
        title: Option<Text>,
        /// Axis along which lines run.
        x: Text,
        /// Column that they show.
        y: Text,
        /// Name of the column for people. Default: its name.
        y_title: Option<Text>,
        /// Axis with one line per choice.
        series: Option<Text>,
        /// Axis with one panel per choice.
        facet: Option<Text>,
        /// Where the vertical axis begins. Default: 0, or below the smallest negative value.
        y_min: Option<Number>,
        /// Where the vertical axis ends. Default: above the largest value.
        y_max: Option<Number>,
    }
}

/// A number, a text, or yes or no.
#[derive(Clone, Debug)]
pub(super) struct AxisValue {
    pub(super) at: Spot,
    /// As an override has it.
    pub(super) text: String,
    /// As a column has it.
    pub(super) label: Cell,
}

impl Read for AxisValue {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let at = reader.spot(value);
        let (text, label) = match value.get_ref() {
            DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(whole) => (whole.to_string(), Cell::Int(whole)),
                Err(_) => return reader.wrong_type(value, "an integer of 64 bits"),
            },
            DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
                Ok(number) => (digits.as_str().to_owned(), Cell::Float(number)),
                Err(_) => return reader.wrong_type(value, "a number"),
            },
            DeValue::String(text) => {
                (toml::Value::String(text.to_string()).to_string(), Cell::Text(text.to_string()))
            }
            DeValue::Boolean(flag) => (flag.to_string(), Cell::Text(flag.to_string())),
            _ => return reader.wrong_type(value, "a number, a string, true or false"),
        };
        Some(Self { at, text, label })
    }
}

impl JsonSchema for AxisValue {
    fn schema_name() -> Cow<'static, str> {
        "AxisValue".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string", "boolean"] })
    }
}
