//! The question about random task sets, after the changes of a point.

use takt_analysis::method::Method;
use takt_analysis::task::{Overheads, Ticks};
use takt_core::limits::APPS_MAX;

use super::super::decimal::{Quantity, fixed_point};
use super::super::reader::{Number, OneOrRange, Text, Whole};
use super::raw::{RawSets, RawTest};
use super::{
    Diagnostic, Lower, Override, RawStudy, Read, Reader, Recordings, Report, Sources, Spot, WHOLE, overrides,
    tree,
};
use crate::study::{Question, Test};
use crate::task_sets::{TaskSets, WHOLE_PPB};

/// Most sets of a point.
const SETS_MAX: i128 = 100_000_000;
/// Longest time of a task set: a minute, in microseconds.
const TIME_US_MAX: (i128, &str) = (60_000_000, "a minute");

const COUNT: Quantity = Quantity::new(" sets", 0, 1, (SETS_MAX, "SETS_MAX"));
const TASKS: Quantity = Quantity::new(" tasks", 0, 1, (APPS_MAX as i128, "APPS_MAX"));
const UTILISATION: Quantity = Quantity::new("", 9, 1, (100 * WHOLE_PPB as i128, "100 GPUs"));
const SHARE: Quantity = Quantity::new("", 9, 1, (WHOLE_PPB as i128, "the whole GPU"));
const PERIOD: Quantity = Quantity::new(" us", 0, 1, TIME_US_MAX);
const DEADLINE: Quantity = Quantity::new("", 3, 0, (1000, "the period"));
const COST: Quantity = Quantity::new(" us", 0, 0, TIME_US_MAX);
const SEGMENT: Quantity = Quantity::new(" us", 0, 1, TIME_US_MAX);

const ANALYSES: [&str; 4] = ["edf", "np-edf", "lp-edf", "runlist"];

/// What the study in `text` asks after `changes`.
pub(crate) fn question(
    file_name: &str,
    text: &str,
    changes: &[Override],
) -> Result<Question, Vec<Diagnostic>> {
    let mut sources = Sources::default();
    sources.add(file_name.to_owned(), text, 0);
    let bases: Vec<usize> = changes
        .iter()
        .map(|set| sources.add(format!("--set {set}"), &set.value, set.key.len() + 1))
        .collect();
    let mut tree = tree(WHOLE, text, &sources)?;
    let mut report = Report::about(WHOLE, &sources);
    for (set, base) in changes.iter().zip(bases) {
        if let Err((problem, remedy)) = overrides::apply(&mut tree, set, base) {
            report.address(base, problem, remedy);
        }
    }
    let raw = RawStudy::read(&mut Reader::new(&mut report), &tree);
    let no_recordings = |_: &str| Err(String::new());
    let mut asker = Asker(Lower { report: &mut report, recordings: Recordings::new(&no_recordings) });
    let question = raw.and_then(|raw| asker.question(raw.sets.as_ref()?, raw.test.as_ref()?));
    match question {
        Some(question) if report.is_empty() => Ok(question),
        _ => Err(report.finish()),
    }
}

struct Asker<'r, 'a>(Lower<'r, 'a>);

impl Asker<'_, '_> {
    fn question(&mut self, sets: &RawSets, test: &RawTest) -> Option<Question> {
        let count = self.needed((&sets.at, "count"), sets.count.as_ref(), &COUNT);
        let drawn = self.sets(sets);
        let test = self.test(test);
        Some(Question { count: count?, sets: drawn?, test: test? })
    }

    fn sets(&mut self, raw: &RawSets) -> Option<TaskSets> {
        let tasks = self.needed((&raw.at, "tasks"), raw.tasks.as_ref(), &TASKS);
        let utilisation = self.given((&raw.at, "utilisation"), raw.utilisation.as_ref());
        let utilisation = utilisation.and_then(|number| self.0.number(number, &UTILISATION));
        let share_max = self.0.number_or(raw.share_max.as_ref(), &SHARE, Some(WHOLE_PPB));
        let period = self.given((&raw.at, "period_us"), raw.period_us.as_ref());
        let period = period.and_then(|range| self.period(range));
        let deadline = self.0.number_or(raw.deadline_min.as_ref(), &DEADLINE, Some(1000));
        let (tasks, utilisation_ppb, share_ppb_max) = (tasks?, utilisation?, share_max?);
        let most = u128::from(share_ppb_max) * tasks as u128;
        if u128::from(utilisation_ppb) > most {
            let at = raw.utilisation.as_ref().map_or(&raw.at, |number| &number.at);
            let most = fixed_point(i128::try_from(most).unwrap_or(i128::MAX), 9);
            let problem = format_args!("{tasks} tasks within share_max can demand {most} at most");
            self.0.report.value(at, problem, "demand less, or raise share_max or tasks");
            return None;
        }
        let deadline_permille_min = deadline?;
        Some(TaskSets { tasks, utilisation_ppb, share_ppb_max, period: period?, deadline_permille_min })
    }

    fn period(&mut self, raw: &OneOrRange<Whole>) -> Option<(Ticks, Ticks)> {
        self.0.bounds(&raw.at, (&raw.lo.0, &raw.hi.0), &PERIOD)
    }

    fn test(&mut self, raw: &RawTest) -> Option<Test> {
        let analysis = self.given((&raw.at, "analysis"), raw.analysis.as_ref());
        let switch = self.0.whole_or(raw.overhead_us.as_ref(), &COST, 0);
        let submission = self.0.whole_or(raw.submission_us.as_ref(), &COST, 0);
        let method = analysis.and_then(|analysis| self.method(analysis, raw));
        let overheads = Overheads { switch: switch?, submission: submission? };
        Some(Test { method: method?, overheads })
    }

    fn method(&mut self, analysis: &Text, raw: &RawTest) -> Option<Method> {
        match *ANALYSES.get(self.0.one_of(analysis, &ANALYSES, "analysis")?)? {
            "edf" => Some(Method::Edf),
            "np-edf" => Some(Method::NpEdf),
            "lp-edf" => Some(Method::LpEdf { segment: self.segment(raw)? }),
            _ => {
                let slice = self.segment(raw)?;
                let lower_slice = self.0.whole_or(raw.lower_segment_us.as_ref(), &COST, slice)?;
                let every_switch = raw.every_switch.as_ref().is_some_and(|flag| flag.value);
                let by_arrivals = raw.by_arrivals.as_ref().is_some_and(|flag| flag.value);
                Some(Method::Runlist { slice, lower_slice, every_switch, by_arrivals })
            }
        }
    }

    fn segment(&mut self, raw: &RawTest) -> Option<Ticks> {
        self.needed((&raw.at, "segment_us"), raw.segment_us.as_ref(), &SEGMENT)
    }

    fn needed<T: TryFrom<i128>>(
        &mut self,
        place: (&Spot, &str),
        whole: Option<&Whole>,
        quantity: &Quantity,
    ) -> Option<T> {
        let Whole(number): &Whole = self.given(place, whole)?;
        let number: &Number = number;
        self.0.number(number, quantity)
    }

    /// A key that the file or an axis must give.
    fn given<'v, T>(&mut self, (at, key): (&Spot, &str), value: Option<&'v T>) -> Option<&'v T> {
        if value.is_none() {
            let remedy = format!("add {key} = …, or an axis over {}.{key}", at.path);
            self.0.report.table(at, format_args!("the key {key} is missing"), remedy);
        }
        value
    }
}
