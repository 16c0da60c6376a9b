//! `takt analyze`: what can be promised to recurring tasks?

use std::fmt::Write;

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Serialize;
use takt_analysis::edf::{Excess, Limit, Verdict};
use takt_analysis::method::Method;
use takt_analysis::task::{Overheads, Task};
use takt_core::analysis::frames::{self, Demand};
use takt_core::limits::LOOKAHEAD_MAX;
use takt_core::{Span, Stride};

use crate::Answer;
use crate::args::{Analysis, AnalyzeArgs};
use crate::load;
use crate::output;
use crate::task_file::{self, TaskSet};

/// The answers, as `--json` prints them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Answers {
    /// Which analysis.
    analysis: Analysis,
    /// How many sets were analysed.
    sets: usize,
    /// How many of them are schedulable.
    schedulable: usize,
    /// Each set, in the order of the file.
    answers: Vec<SetAnswer>,
}

/// What holds for one set.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct SetAnswer {
    /// Number of the set in the file.
    set: u64,
    /// Whether every deadline is promised.
    schedulable: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Bound on the response time of each task; null where there is none.
    bounds_us: Vec<Option<u64>>,
}

/// Largest file of task sets that is read.
const FILE_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn run(args: &AnalyzeArgs) -> anyhow::Result<Answer> {
    refuse_unused(args)?;
    let name = args.sets.display().to_string();
    let text = load::read(&args.sets, FILE_BYTES_MAX).with_context(|| format!("cannot read {name}"))?;
    let sets = match task_file::parse(&name, &text) {
        Ok(sets) => sets,
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            bail!("{}", lines.join("\nerror: "))
        }
    };
    let answer = |set: &TaskSet| {
        analyze(args, set).with_context(|| format!("{name}:{}:1: set {}", set.line, set.number))
    };
    let answers: Vec<SetAnswer> = sets.iter().map(answer).collect::<anyhow::Result<_>>()?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&table(&answers))?;
    }
    let schedulable = answers.iter().filter(|answer| answer.schedulable).count();
    let answers = Answers { analysis: args.analysis, sets: answers.len(), schedulable, answers };
    output::json(args.json.as_deref(), &answers)?;
    Ok(Answer::Yes)
}

/// An option that the analysis does not know of is a misunderstanding, not a default.
fn refuse_unused(args: &AnalyzeArgs) -> anyhow::Result<()> {
    let runlist = args.analysis == Analysis::Runlist;
    let options = [
        ("--segment", args.segment.is_some(), runlist || args.analysis == Analysis::LpEdf),
        ("--lower-segment", args.lower_segment.is_some(), runlist),
        ("--every-switch", args.every_switch, runlist),
        ("--by-arrivals", args.by_arrivals, runlist),
        ("--refresh", args.refresh.is_some(), args.analysis == Analysis::Frames),
    ];
    let unused = options.into_iter().find(|(_, given, used)| *given && !used);
    match unused {
        Some((option, ..)) => {
            bail!("{option} has no meaning for this analysis; takt analyze --help says for which it has")
        }
        None => Ok(()),
    }
}

/// `set,verdict,R0,R1,…`; a dash where there is no bound.
fn table(answers: &[SetAnswer]) -> String {
    let mut out = String::new();
    for answer in answers {
        // Writing to a string cannot fail.
        let _ok = write!(out, "{},{}", answer.set, u8::from(answer.schedulable));
        for bound in &answer.bounds_us {
            let _ok = match bound {
                Some(bound) => write!(out, ",{bound}"),
                None => write!(out, ",-"),
            };
        }
        out.push('\n');
    }
    out
}

fn analyze(args: &AnalyzeArgs, set: &TaskSet) -> anyhow::Result<SetAnswer> {
    let overheads = Overheads { switch: args.overhead, submission: args.submission };
    let segment = args.segment.unwrap_or(1);
    let method = match args.analysis {
        Analysis::Edf => Method::Edf,
        Analysis::NpEdf => Method::NpEdf,
        Analysis::LpEdf => Method::LpEdf { segment },
        Analysis::Runlist => Method::Runlist {
            slice: segment,
            lower_slice: args.lower_segment.unwrap_or(segment),
            every_switch: args.every_switch,
            by_arrivals: args.by_arrivals,
        },
        Analysis::Frames => {
            return by_frames(set, &overheads.inflate(&set.tasks).context(TOO_LARGE)?, args.refresh);
        }
    };
    let answer = method.answer(&set.tasks, overheads).context(TOO_LARGE)?;
    let bounds_us = match answer.bounds {
        Some(bounds) => bounds.into_iter().map(Some).collect(),
        None => vec![None; set.tasks.len()],
    };
    let verdict = answer.verdict;
    Ok(SetAnswer {
        set: set.number,
        schedulable: verdict.is_schedulable(),
        reason: reason(verdict),
        bounds_us,
    })
}

const TOO_LARGE: &str = "--overhead and --submission are too large";

fn reason(verdict: Verdict) -> Option<String> {
    Some(match verdict {
        Verdict::Schedulable => return None,
        Verdict::Unschedulable(Excess::Utilisation) => "the tasks demand more than the whole GPU".to_owned(),
        Verdict::Unschedulable(Excess::Interval(length)) => {
            format!("deadlines within {length} us can be missed")
        }
        Verdict::Unschedulable(Excess::Bound) => "a bound is above the deadline or the period".to_owned(),
        Verdict::Undecided(Limit::Tasks) => "undecided: too many tasks".to_owned(),
        Verdict::Undecided(Limit::Steps) => "undecided: the analysis takes too many steps".to_owned(),
        Verdict::Undecided(Limit::Horizon) => "undecided: the GPU is busy for too long".to_owned(),
    })
}

/// Frames have deadlines at refreshes of the display; the test says yes or no, without bounds.
fn by_frames(set: &TaskSet, tasks: &[Task], refresh: Option<u64>) -> anyhow::Result<SetAnswer> {
    let shortest = tasks.iter().map(Task::period).min().unwrap_or(1);
    let refresh = refresh.unwrap_or(shortest);
    let demand = |(index, task): (usize, &Task)| {
        let strides = u32::try_from(task.period() / refresh).ok().and_then(Stride::new);
        match strides {
            Some(stride) if task.period().is_multiple_of(refresh) && task.deadline() == task.period() => {
                Ok(Demand { stride, etpf: Span::from_us(task.wcet()), phase: 0 })
            }
            _ => bail!(
                "task {index} has T = {} and D = {}; frames need D = T, and T a multiple of the refresh \
                 period {refresh} us, 240 at most: change the task, or give the period with --refresh",
                task.period(),
                task.deadline(),
            ),
        }
    };
    let demands: Vec<Demand> = tasks.iter().enumerate().map(demand).collect::<anyhow::Result<_>>()?;
    let cycle = frames::cycle(&demands);
    let (schedulable, reason) = if cycle > LOOKAHEAD_MAX {
        (false, Some(format!("undecided: deadlines repeat after {cycle} periods only")))
    } else if frames::is_schedulable(Span::from_us(refresh), &demands) {
        (true, None)
    } else {
        (false, Some("the frames do not fit if all first deadlines coincide".to_owned()))
    };
    Ok(SetAnswer { set: set.number, schedulable, reason, bounds_us: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    use crate::args::{Args, Command};

    fn answers(arguments: &str, text: &str) -> String {
        let line = format!("takt analyze {arguments} --sets f.csv");
        let Command::Analyze(args) = Args::try_parse_from(line.split(' ')).unwrap().command else {
            panic!("{line}")
        };
        let sets = task_file::parse("f.csv", text).unwrap();
        match sets.iter().map(|set| analyze(&args, set)).collect::<anyhow::Result<Vec<_>>>() {
            Ok(answers) => table(&answers),
            Err(error) => format!("{error:#}\n"),
        }
    }

    const SETS: &str = "0,0,2,10,20\n0,1,9,40,40\n5,0,8,10,10\n5,1,9,40,40\n";

    #[test]
    fn every_analysis_prints_its_bounds() {
        assert_eq!(answers("edf", SETS), "0,1,2,11\n5,0,-,-\n");
        assert_eq!(answers("np-edf", SETS), "0,1,10,11\n5,0,-,-\n");
        assert_eq!(answers("lp-edf --segment 4", SETS), "0,1,5,11\n5,0,-,-\n");
        assert_eq!(answers("edf --overhead 1 --submission 2", SETS), "0,1,6,19\n5,0,-,-\n");
        assert_eq!(answers("lp-edf --segment 4 --overhead 1", SETS), "0,1,9,15\n5,0,-,-\n");
        assert_eq!(answers("runlist --segment 4", SETS), "0,1,10,27\n5,0,24,33\n");
        assert_eq!(answers("runlist --segment 4 --by-arrivals", SETS), "0,1,10,25\n5,0,24,33\n");
        assert_eq!(answers("runlist --segment 4 --lower-segment 0", SETS), "0,1,6,15\n5,0,16,21\n");
    }

    #[test]
    fn frames_need_a_common_refresh() {
        assert_eq!(answers("frames", "0,0,5,20,20\n0,1,9,40,40\n"), "0,1\n");
        assert_eq!(answers("frames", "0,0,12,20,20\n0,1,19,40,40\n"), "0,0\n");
        assert!(answers("frames", SETS).contains("task 0 has T = 20 and D = 10"));
        assert!(
            answers("frames --refresh 7", "0,0,5,20,20\n").contains("a multiple of the refresh period 7 us")
        );
        let many = "0,0,1,7,7\n0,1,1,77,77\n0,2,1,91,91\n0,3,1,119,119\n";
        assert_eq!(answers("frames", many), "0,0\n");
    }

    #[test]
    fn segments_are_asked_for() {
        for line in ["takt analyze lp-edf --sets f", "takt analyze runlist --sets f"] {
            let error = Args::try_parse_from(line.split(' ')).unwrap_err().to_string();
            assert!(error.contains("--segment"), "{error}");
        }
    }

    #[test]
    fn options_of_other_analyses_are_refused() {
        for line in ["edf --segment 4", "lp-edf --segment 4 --by-arrivals", "runlist --segment 4 --refresh 7"]
        {
            let line = format!("takt analyze {line} --sets f");
            let Command::Analyze(args) = Args::try_parse_from(line.split(' ')).unwrap().command else {
                panic!("another command")
            };
            let error = refuse_unused(&args).unwrap_err().to_string();
            assert!(error.contains("has no meaning"), "{error}");
        }
    }

    #[test]
    fn huge_overheads_are_refused() {
        assert!(answers("edf --overhead 18446744073709551615", SETS).contains("too large"));
    }
}
