//! `takt prove`: search for a counterexample to the guarantee.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Serialize;
use takt_core::{Span, Stride};
use takt_sim::prove::{Coverage, Execution, Options, Violation, check};
use takt_sim::scenario;

use crate::Answer;
use crate::args::{ProveArgs, ProveGpu};
use crate::output;

/// What was found, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Findings {
    /// Random cases that were tried.
    sets: u64,
    /// Number of the first of them.
    from: u64,
    /// Seed of all cases.
    seed: u64,
    /// Hash over everything that happened in all cases; the same on any number of threads.
    event_hash: String,
    /// Cases in which an app of the protected set missed a deadline.
    violations: u64,
    /// Mean load of the protected sets, in permille of the GPU.
    load_permille: u64,
    /// The same relative to sets with the same groups on a GPU that executes in order, in permille.
    relative_permille: u64,
    /// What that would be with one change of contexts for each frame, and no time lost for it: the most there is.
    bound_permille: u64,
    /// The same figures for each length of a slice, where contexts take turns.
    slices: Vec<SliceFindings>,
    /// The counterexamples, shrunk, as scenario files; at most [`WRITTEN_MAX`].
    files: Vec<PathBuf>,
}

/// What was found with slices of one length.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct SliceFindings {
    /// How long a context keeps the GPU while another one has work.
    slice_us: u64,
    /// Cases.
    sets: u64,
    /// See [`Findings`].
    load_permille: u64,
    /// See [`Findings`].
    relative_permille: u64,
    /// See [`Findings`].
    bound_permille: u64,
}

impl SliceFindings {
    fn new((slice, coverage): (&Span, &Coverage)) -> Self {
        Self {
            slice_us: slice.as_ns() / 1000,
            sets: coverage.cases,
            load_permille: coverage.load_permille(),
            relative_permille: coverage.relative_permille(),
            bound_permille: coverage.bound_permille(),
        }
    }
}

/// Counterexamples that are written out.
const WRITTEN_MAX: usize = 10;
/// Cases a thread takes at a time.
const BATCH: u64 = 64;

pub(crate) fn run(args: &ProveArgs) -> anyhow::Result<Answer> {
    let options = options(args)?;
    let threads = match args.threads {
        Some(threads) => threads as usize,
        None => thread::available_parallelism().map_or(1, usize::from),
    };
    let Found { hash: event_hash, violations, coverage, slices } =
        search(&options, args.from..args.from.saturating_add(args.sets), threads)?;
    let mut files = Vec::new();
    for violation in violations.iter().take(WRITTEN_MAX) {
        let path = args.out.join(format!("{}.toml", violation.case.scenario.name));
        output::file(&path, &scenario::to_toml(&violation.case.scenario))?;
        files.push(path);
    }
    let findings = Findings {
        sets: args.sets,
        from: args.from,
        seed: args.seed,
        event_hash: format!("{event_hash:016x}"),
        violations: violations.len() as u64,
        load_permille: coverage.load_permille(),
        relative_permille: coverage.relative_permille(),
        bound_permille: coverage.bound_permille(),
        slices: slices.iter().map(SliceFindings::new).collect(),
        files,
    };
    output::json(args.json.as_deref(), &findings)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&findings, &violations))?;
    }
    Ok(if violations.is_empty() { Answer::Yes } else { Answer::No })
}

fn options(args: &ProveArgs) -> anyhow::Result<Options> {
    let stride = |periods: &u32| {
        Stride::new(*periods).with_context(|| {
            format!("--strides {periods}: a stride is 1 to {}", takt_core::limits::STRIDE_MAX)
        })
    };
    let strides = args.strides.iter().map(stride).collect::<anyhow::Result<Vec<_>>>()?;
    let cycle = strides.iter().fold(1, |acc, stride| takt_core::refresh::lcm(acc, stride.periods()));
    // The load brings strides of its own, up to 4.
    let cycle = takt_core::refresh::lcm(cycle, 12);
    if cycle + 2 > takt_core::limits::LOOKAHEAD_MAX {
        bail!("--strides: deadlines would repeat only every {cycle} periods; use smaller strides");
    }
    Ok(Options {
        seed: args.seed,
        apps: args.apps,
        strides,
        mpcg: args.mpcg,
        stagger: args.stagger,
        silent: args.silent,
        gpu: if args.in_turn || args.gpu == ProveGpu::TimeShared {
            Execution::TimeShared { switch: Span::from_us(args.switch_us) }
        } else {
            Execution::InOrder
        },
        mixed: args.mixed,
        divisible: args.divisible,
        gaps: true,
        changes: args.changes,
    })
}

/// What became of some cases.
#[derive(Default)]
struct Found {
    hash: u64,
    violations: Vec<Violation>,
    coverage: Coverage,
    slices: BTreeMap<Span, Coverage>,
}

impl Found {
    fn add(&mut self, other: Self) {
        // Sums do not care who took which case.
        self.hash = self.hash.wrapping_add(other.hash);
        self.violations.extend(other.violations);
        self.coverage = self.coverage.plus(other.coverage);
        for (slice, coverage) in other.slices {
            let sum = self.slices.entry(slice).or_default();
            *sum = sum.plus(coverage);
        }
    }
}

fn try_case(options: &Options, index: u64) -> Found {
    let checked = check(options, index);
    Found {
        hash: checked.event_hash.wrapping_mul(2 * index + 1),
        violations: checked.violation.into_iter().collect(),
        coverage: checked.coverage,
        slices: checked.slice.map(|slice| (slice, checked.coverage)).into_iter().collect(),
    }
}

/// Tries all cases; the result does not depend on the number of threads.
fn search(options: &Options, cases: Range<u64>, threads: usize) -> anyhow::Result<Found> {
    let bar = output::progress(cases.end - cases.start, "searching counterexamples");
    let next = AtomicU64::new(cases.start);
    let work = || {
        let mut found = Found::default();
        loop {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= cases.end {
                return found;
            }
            let until = cases.end.min(from.saturating_add(BATCH));
            (from..until).for_each(|index| found.add(try_case(options, index)));
            bar.inc(until - from);
        }
    };
    let mut found = Found::default();
    thread::scope(|scope| {
        let spawn =
            |number: usize| thread::Builder::new().name(format!("prove-{number}")).spawn_scoped(scope, work);
        let handles = (0..threads).map(spawn).collect::<Result<Vec<_>, _>>()?;
        for handle in handles {
            match handle.join() {
                Ok(part) => found.add(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        anyhow::Ok(())
    })?;
    bar.finish_and_clear();
    found.violations.sort_by_key(|violation| violation.index);
    Ok(found)
}

fn describe(findings: &Findings, violations: &[Violation]) -> String {
    let permille = |permille: u64| permille as f64 / 1000.0;
    let mut covered = format!(
        "Protected apps take {:.2} of the GPU in the mean, {:.2} of what would be covered in order.\n",
        permille(findings.load_permille),
        permille(findings.relative_permille)
    );
    for slice in &findings.slices {
        covered += &format!(
            "  slices of {} us: {:.2}, {:.2} of it; {:.2} if a change of contexts for each frame were all it costs\n",
            slice.slice_us,
            permille(slice.load_permille),
            permille(slice.relative_permille),
            permille(slice.bound_permille)
        );
    }
    if violations.is_empty() {
        return format!(
            "No violation in {} random schedulable sets under hostile load (seed {}).\n{covered}",
            findings.sets, findings.seed
        );
    }
    let mut text =
        format!("{} violations in {} sets (seed {}):\n", violations.len(), findings.sets, findings.seed);
    for (violation, file) in violations.iter().zip(&findings.files) {
        let apps = &violation.case.scenario.apps;
        let name = apps.get(violation.app.index()).map_or("?", |app| app.name.as_str());
        text += &format!(
            "  case {}: {name} missed the deadline at {:?}; takt sim {}\n",
            violation.index,
            violation.deadline,
            file.display()
        );
        for (at, event) in &violation.case.events {
            text += &format!("    the file does not say that at {at:?} the scheduler is told {event:?}\n");
        }
    }
    text + &covered
}
