//! A job that draws random task sets and counts those that pass a test.
//!
//! The n-th set of a seed is drawn from its own stream of random numbers, the same at every point, so
//! points that differ in the test alone judge the very same sets, and differences between them
//! are not a matter of luck.

use takt_analysis::edf::Verdict;
use takt_analysis::method::Method;
use takt_analysis::task::Overheads;

use super::table::{Cell, Column, Kind};
use crate::rng::Rng;
use crate::scenario::{Override, study_file};
use crate::task_sets::TaskSets;

/// A study file whose `[sets]` and `[test]` axes change.
#[derive(Clone, Debug)]
pub struct Schedulability {
    pub(crate) file_name: String,
    pub(crate) text: String,
}

/// Which sets to draw, and what to ask of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Question {
    pub(crate) count: u64,
    pub(crate) sets: TaskSets,
    pub(crate) test: Test,
}

/// A test on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Test {
    pub(crate) method: Method,
    pub(crate) overheads: Overheads,
}

pub(super) fn columns() -> Vec<Column> {
    let column = |name: &str| Column { name: name.to_owned(), kind: Kind::Number };
    ["sets", "schedulable", "undecided", "ratio"].map(column).to_vec()
}

impl Schedulability {
    pub(super) fn run(&self, sets: &[Override], seed: u64) -> Result<Vec<Cell>, String> {
        let question = study_file::question(&self.file_name, &self.text, sets)
            .map_err(|found| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
        question.ask(seed)
    }
}

impl Question {
    fn ask(&self, seed: u64) -> Result<Vec<Cell>, String> {
        let (mut schedulable, mut undecided) = (0i64, 0i64);
        for index in 0..self.count {
            let set = self.sets.draw(&mut Rng::new(seed, index));
            let set = set.ok_or("no set with such shares was found; raise sets.share_max")?;
            match self.test.method.verdict(&set, self.test.overheads) {
                Ok(Verdict::Schedulable) => schedulable += 1,
                // Times beyond the range of the analysis are far beyond any deadline.
                Ok(Verdict::Unschedulable(_)) | Err(_) => {}
                Ok(Verdict::Undecided(_)) => undecided += 1,
            }
        }
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let ratio = schedulable as f64 / count as f64;
        Ok(vec![Cell::Int(count), Cell::Int(schedulable), Cell::Int(undecided), Cell::Float(ratio)])
    }
}
