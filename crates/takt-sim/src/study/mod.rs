//! Studies: one question asked at every point of a grid.
//!
//! A [`Study`] has axes, each with choices; every combination of choices is a point, and each
//! point is asked as often as the study has repetitions, each time with the next seed. One point
//! with one seed is a *job*. Jobs are numbered, know nothing of each other, and give the same
//! cells on any machine, so they can be spread, interrupted and put together in any way.
//!
//! * [`crate::scenario::study_file`] reads studies from text.
//! * `simulate` and `schedulability` do the work of a job.
//! * [`table`] holds the results.
//! * [`journal`] is how results survive until all are there.

pub mod journal;
mod schedulability;
mod simulate;
pub mod table;

pub use schedulability::Schedulability;
pub(crate) use schedulability::{Question, Test};
pub use simulate::Simulate;
pub(crate) use simulate::{Measure, Reduce, Source, find, kind, summary_of};

use crate::scenario::Override;
use table::{Cell, Column, Kind};

/// Most jobs of a study.
pub const JOBS_MAX: u64 = 1_000_000;

/// A question and the grid on which it is asked.
#[derive(Clone, Debug)]
pub struct Study {
    /// Short name.
    pub name: String,
    /// What it is about, for people.
    pub description: String,
    /// Seed of the first repetition; each further one adds one.
    pub seed: u64,
    /// Runs of each point.
    pub repetitions: u64,
    /// The varied parameters; the last axis varies fastest.
    pub axes: Vec<Axis>,
    /// How results are drawn.
    pub plots: Vec<Plot>,
    /// The question.
    pub work: StudyWork,
    /// Hash over everything that results depend on, program aside.
    pub fingerprint: u64,
}

/// The question at each point.
#[derive(Clone, Debug)]
pub enum StudyWork {
    /// What happens in this scenario?
    Simulate(Simulate),
    /// How many random task sets are schedulable?
    Schedulability(Schedulability),
}

/// Something that is varied.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name of its column.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// What it may be.
    pub choices: Vec<Choice>,
}

/// One choice of an axis.
#[derive(Clone, Debug)]
pub struct Choice {
    /// What stands in the axis's column.
    pub label: Cell,
    /// What it changes.
    pub sets: Vec<Override>,
}

/// A picture of the results: lines of `y` over `x`.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Its title.
    pub title: String,
    /// Axis along which lines run.
    pub x: usize,
    /// Column of what they show.
    pub y: String,
    /// Name of that for people.
    pub y_title: String,
    /// Axis with one line per choice.
    pub series: Option<usize>,
    /// Axis with one panel per choice.
    pub facet: Option<usize>,
    /// Where the vertical axis begins and ends, if not at zero and above the largest value.
    pub y_range: (Option<f64>, Option<f64>),
}

/// Name of the column that tells repetitions apart.
pub const SEED_COLUMN: &str = "seed";

impl Study {
    /// Number of jobs; they are numbered from 0.
    pub fn jobs(&self) -> u64 {
        let points = self.axes.iter().map(|axis| axis.choices.len() as u64).product::<u64>();
        points * self.repetitions
    }

    /// The columns of the results: axes, seed, measures.
    pub fn columns(&self) -> Vec<Column> {
        let axes = self.axes.iter().map(|axis| {
            let text = axis.choices.iter().any(|choice| choice.label.kind() == Kind::Text);
            Column { name: axis.name.clone(), kind: if text { Kind::Text } else { Kind::Number } }
        });
        let seed = Column { name: SEED_COLUMN.to_owned(), kind: Kind::Number };
        axes.chain([seed]).chain(self.measures()).collect()
    }

    /// The columns that a job fills.
    pub fn measures(&self) -> Vec<Column> {
        match &self.work {
            StudyWork::Simulate(simulate) => simulate.columns(),
            StudyWork::Schedulability(_) => schedulability::columns(),
        }
    }

    /// The choice of each axis in a job.
    pub fn choices(&self, job: u64) -> Vec<&Choice> {
        let mut rest = job / self.repetitions;
        let mut chosen: Vec<&Choice> = Vec::with_capacity(self.axes.len());
        for axis in self.axes.iter().rev() {
            let count = axis.choices.len() as u64;
            chosen.extend(axis.choices.get(usize::try_from(rest % count).unwrap_or(0)));
            rest /= count;
        }
        chosen.reverse();
        chosen
    }

    /// The seed of a job.
    pub fn seed_of(&self, job: u64) -> u64 {
        self.seed + job % self.repetitions
    }

    /// The job in words, to find it again.
    pub fn describe(&self, job: u64) -> String {
        let chosen = self.axes.iter().zip(self.choices(job));
        let parts = chosen.map(|(axis, choice)| format!("{} = {}", axis.name, choice.label));
        parts.chain([format!("seed = {}", self.seed_of(job))]).collect::<Vec<_>>().join(", ")
    }

    /// Does a job: the cells of its measures.
    ///
    /// # Errors
    ///
    /// Why the point makes no sense. Each choice was tried when the study was read, but not all
    /// combinations.
    pub fn run(&self, job: u64) -> Result<Vec<Cell>, String> {
        let sets: Vec<Override> =
            self.choices(job).into_iter().flat_map(|choice| &choice.sets).cloned().collect();
        let seed = self.seed_of(job);
        let cells = match &self.work {
            StudyWork::Simulate(simulate) => simulate.run(&sets, seed),
            StudyWork::Schedulability(schedulability) => schedulability.run(&sets, seed),
        };
        cells.map_err(|problem| format!("{}: {problem}", self.describe(job)))
    }

    /// The row of a finished job.
    pub fn row(&self, job: u64, measured: Vec<Cell>) -> Vec<Cell> {
        let mut row: Vec<Cell> = self.choices(job).into_iter().map(|choice| choice.label.clone()).collect();
        row.push(i64::try_from(self.seed_of(job)).map_or(Cell::Null, Cell::Int));
        row.extend(measured);
        row
    }
}

/// A part of a study's jobs: every `of`-th, so that parts are alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shard {
    /// Which part, from 1.
    pub part: u64,
    /// Of how many.
    pub of: u64,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self { part: 1, of: 1 };

    /// Whether the job belongs to this part.
    pub const fn has(self, job: u64) -> bool {
        job % self.of == self.part - 1
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse::<u64>().ok();
        let parts = text.split_once('/').and_then(|(part, of)| Some((number(part)?, number(of)?)));
        match parts {
            Some((part, of)) if 1 <= part && part <= of && of <= JOBS_MAX => Ok(Self { part, of }),
            _ => Err(format!("'{text}' is no part of a whole; write I/N with I from 1 to N, such as 2/8")),
        }
    }
}

/// FNV-1a, the same on every machine.
pub(crate) fn fnv1a(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        // The length keeps the border between parts from moving unseen.
        for byte in (part.len() as u64).to_le_bytes().iter().chain(part.as_bytes()) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study() -> Study {
        let text = "name = \"s\"\nseed = 7\nrepetitions = 2\n[sets]\ncount = 3\ntasks = 2\nutilisation = 0.5\n\
                    period_us = [10, 20]\n[test]\nanalysis = \"edf\"\n\
                    [[axis]]\nset = \"sets.tasks\"\nvalues = [2, 3]\n\
                    [[axis]]\nset = \"test.overhead_us\"\nvalues = [0, 1, 2]\n";
        crate::scenario::study_file::parse("s.toml", text, &|path| Err(path.to_owned())).unwrap()
    }

    #[test]
    fn every_combination_is_a_job_and_the_last_axis_is_the_fastest() {
        let study = study();
        assert_eq!(study.jobs(), 12);
        let words: Vec<String> = (0..12).map(|job| study.describe(job)).collect();
        assert_eq!(words[0], "tasks = 2, overhead_us = 0, seed = 7");
        assert_eq!(words[1], "tasks = 2, overhead_us = 0, seed = 8");
        assert_eq!(words[2], "tasks = 2, overhead_us = 1, seed = 7");
        assert_eq!(words[11], "tasks = 3, overhead_us = 2, seed = 8");
        let distinct: std::collections::BTreeSet<&String> = words.iter().collect();
        assert_eq!(distinct.len(), 12);
    }

    #[test]
    fn shards_are_a_partition() {
        for of in 1..7 {
            for job in 0..50 {
                let holders = (1..=of).filter(|part| Shard { part: *part, of }.has(job)).count();
                assert_eq!(holders, 1);
            }
        }
        assert_eq!("2/8".parse(), Ok(Shard { part: 2, of: 8 }));
        for bad in ["", "2", "0/3", "4/3", "1/0", "a/b", "1/2/3", "-1/2"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn texts_are_told_apart() {
        assert_ne!(fnv1a(&["ab", "c"]), fnv1a(&["a", "bc"]));
        assert_ne!(fnv1a(&["ab"]), fnv1a(&["ba"]));
        // Written down in files, so it must stay.
        assert_eq!(fnv1a(&[]), 0xcbf2_9ce4_8422_2325);
    }
}
