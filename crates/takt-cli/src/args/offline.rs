//! Arguments of the commands that need no daemon and no GPU: they simulate, analyse and prove.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, ValueEnum};
use takt_sim::scenario::Override;
use takt_sim::study::Shard;

/// Which world to look at.
#[derive(ClapArgs, Clone, Debug)]
pub(crate) struct ScenarioArgs {
    /// Scenario file (TOML; see docs/scenarios.md).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Change a value of the scenario, e.g. scheduler.mpcg=3, duration_s=10,
    /// app.quake3.prediction.scale=2 or app.*.etpf_us=0. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<Override>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SimArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Scheduling policy instead of the scenario's.
    #[arg(long, value_parser = PossibleValuesParser::new(takt_policies::NAMES))]
    pub(crate) policy: Option<String>,
    /// Seed of every random choice instead of the scenario's.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Write the figures as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
    /// Write everything that happened: *.csv one row per command group, *.jsonl one line per
    /// event, *.perfetto-trace for the Perfetto UI.
    #[arg(long, value_name = "F")]
    pub(crate) trace: Option<PathBuf>,
    /// Write a page with plots, timing diagram and causes of misses to DIR/index.html.
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    /// Seconds of the run that the timing diagram shows: START or START:LENGTH. Default: around
    /// the first missed deadline of the most important app that missed one.
    #[arg(long, value_name = "S[:S]", requires = "report")]
    pub(crate) window: Option<Window>,
    /// Missed deadlines to explain below the table: the first of each app, then the second, …
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) misses: usize,
    /// Exit with 1 unless the run has this event hash: pins a run in a test.
    #[arg(long, value_name = "HASH")]
    pub(crate) expect_hash: Option<String>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct PoliciesArgs {
    /// Scenario files (TOML; see docs/scenarios.md).
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Policies to play them under, separated by commas; all if not given (docs/policies.md).
    #[arg(long = "policy", value_name = "NAME", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(takt_policies::NAMES))]
    pub(crate) policies: Vec<String>,
    /// Change a value of every scenario, as in `takt sim`. May be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) sets: Vec<Override>,
    /// Threads; the figures do not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Print the table as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Draw when frames finish between release and deadline (SVG): a column for each policy, a row
    /// for each app. For a single scenario.
    #[arg(long, value_name = "F.svg")]
    pub(crate) histograms: Option<PathBuf>,
    /// Write the figures as JSON, with those of each app; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// A part of a run, in seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Window {
    pub(crate) start_s: f64,
    pub(crate) length_s: f64,
}

/// Seconds that the timing diagram shows if nothing else is said.
pub(crate) const WINDOW_S: f64 = 1.0;

impl std::str::FromStr for Window {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (start, length) = text.split_once(':').map_or((text, None), |(a, b)| (a, Some(b)));
        let number = |text: &str| match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() && (0.0..1e9).contains(&value) => Ok(value),
            _ => Err(format!("'{text}' is no number of seconds; write e.g. 12.5 or 12.5:0.5")),
        };
        Ok(Self { start_s: number(start)?, length_s: length.map_or(Ok(WINDOW_S), number)? })
    }
}

#[derive(ClapArgs, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) scenario: Option<ScenarioArgs>,
    /// Check a configuration of the daemon instead of a scenario: its values, the rights of its domains,
    /// whether the contracts of its apps hold together, and the executables that it lists.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ScenarioArgs", "gpu"])]
    pub(crate) config: Option<PathBuf>,
    /// The configuration must be sealed by this key, as for `takt serve --sealed-by`.
    #[arg(long, value_name = "KEY", requires = "config")]
    pub(crate) sealed_by: Option<PathBuf>,
    /// Which GPU: in-order, time-shared (turns and switches as in the scenario, or those given in
    /// microseconds), or machine (as `takt profile` has measured it) [default: the scenario's].
    #[arg(long, value_name = "in-order|time-shared[:SLICE_US,SWITCH_US]|machine")]
    pub(crate) gpu: Option<crate::check::GpuChoice>,
    /// Write the verdict as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct AnalyzeArgs {
    /// Which analysis; docs/analysis.md says what each assumes.
    pub(crate) analysis: Analysis,
    /// Task sets: rows of set,task,C,D,T in whole microseconds, with or without a header.
    #[arg(long, value_name = "FILE.csv")]
    pub(crate) sets: PathBuf,
    /// Longest piece of work that cannot be preempted (lp-edf), or the timeslice (runlist).
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(required_if_eq_any([("analysis", "lp-edf"), ("analysis", "runlist")]))]
    pub(crate) segment: Option<u64>,
    /// Cost of one context switch; each job pays for two, on a runlist each timeslice for one.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) overhead: u64,
    /// Cost of handing a job over to the GPU.
    #[arg(long, value_name = "US", default_value_t = 0)]
    pub(crate) submission: u64,
    /// Timeslice of less important channels (runlist only); 0: there are none. Default: --segment.
    #[arg(long, value_name = "US")]
    pub(crate) lower_segment: Option<u64>,
    /// Let each change of channel cost --overhead (runlist only).
    #[arg(long)]
    pub(crate) every_switch: bool,
    /// Count the work that other tasks can have, instead of taking them for always busy: tighter
    /// bounds (runlist only).
    #[arg(long)]
    pub(crate) by_arrivals: bool,
    /// Refresh period of the display (frames only). Default: the shortest period of each set.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) refresh: Option<u64>,
    /// Write the answers as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// The analyses.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Analysis {
    /// Earliest deadline first, preemption anywhere.
    Edf,
    /// Earliest deadline first without preemption.
    NpEdf,
    /// Earliest deadline first, preemption between segments.
    LpEdf,
    /// The runlist of NVIDIA's host: response times at the highest level.
    Runlist,
    /// Frames with deadlines at refreshes, as `takt check` tests them.
    Frames,
}

/// GPUs to play random cases on.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProveGpu {
    /// Executes groups in the order of dispatch.
    InOrder,
    /// Contexts take turns.
    TimeShared,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ProveArgs {
    /// Number of random cases.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) sets: u64,
    /// Number of the first case: repeats one that was reported, or goes on with a search.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,
    /// Seed of all cases.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Number of protected apps: N or LO-HI.
    #[arg(long, value_name = "N[-N]", default_value = "1-8", value_parser = count_range)]
    pub(crate) apps: (u32, u32),
    /// Strides (refresh rate ÷ frame rate) to draw from, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 3, 4])]
    pub(crate) strides: Vec<u32>,
    /// Groups in flight; default: any of 1, 2, 3, 5, 8, 16.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) mpcg: Option<u32>,
    /// Stagger first deadlines, which admits larger sets.
    #[arg(long)]
    pub(crate) stagger: bool,
    /// Let one app of each set stop submitting at some time. The guarantee does not cover this: the search shows
    /// what the other apps lose.
    #[arg(long)]
    pub(crate) silent: bool,
    /// What the GPU does with several groups.
    #[arg(long, value_enum, default_value = "in-order")]
    pub(crate) gpu: ProveGpu,
    /// What a change of contexts costs on a time-shared GPU, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 160, value_parser = clap::value_parser!(u64).range(..=10_000))]
    pub(crate) switch_us: u64,
    /// The same as --gpu time-shared.
    #[arg(long, hide = true)]
    pub(crate) in_turn: bool,
    /// Draw several displays, apps with clocks of their own, and servers.
    #[arg(long)]
    pub(crate) mixed: bool,
    /// Let the GPU interrupt work of some of the less important apps.
    #[arg(long)]
    pub(crate) divisible: bool,
    /// Let sets change while they run: apps of the set leave, sources die, the focus moves, displays change their rate,
    /// and estimates of less important apps are too long.
    #[arg(long)]
    pub(crate) changes: bool,
    /// Threads; the findings do not depend on it.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) threads: Option<u32>,
    /// Where counterexamples are written as scenario files.
    #[arg(long, value_name = "DIR", default_value = "out/prove")]
    pub(crate) out: PathBuf,
    /// Write the findings as JSON; - is standard output.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// Most apps that a case of `takt prove` may protect.
const PROVE_APPS_MAX: u32 = 64;

fn count_range(text: &str) -> Result<(u32, u32), String> {
    let (lo, hi) = text.split_once('-').unwrap_or((text, text));
    let number = |text: &str| text.trim().parse::<u32>().map_err(|error| format!("'{text}': {error}"));
    match (number(lo)?, number(hi)?) {
        (lo, hi) if 1 <= lo && lo <= hi && hi <= PROVE_APPS_MAX => Ok((lo, hi)),
        _ => Err(format!("write a number or a range within 1-{PROVE_APPS_MAX}")),
    }
}

#[derive(ClapArgs, Debug)]
pub(crate) struct SweepArgs {
    /// Study file (TOML; see docs/studies.md).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Where the journal and the results go. Default: out/sweep/NAME.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Threads; the results do not depend on it. Default: one for each core.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Compute only part I of N, for a job runner that spreads the parts over machines.
    #[arg(long, value_name = "I/N", conflicts_with = "merge")]
    pub(crate) shard: Option<Shard>,
    /// Compute nothing: put parts together, from the journals in these folders. Default: in --out.
    #[arg(long, value_name = "DIR", num_args = 0..)]
    pub(crate) merge: Option<Vec<PathBuf>>,
    /// Only tell what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the results as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_and_ranges_are_read_or_refused() {
        assert_eq!("2:0.5".parse(), Ok(Window { start_s: 2.0, length_s: 0.5 }));
        assert_eq!("2".parse(), Ok(Window { start_s: 2.0, length_s: WINDOW_S }));
        for bad in ["", "x", "-1", "nan", "1:inf", "1:2:3"] {
            assert!(bad.parse::<Window>().is_err(), "{bad}");
        }
        assert_eq!(count_range("3"), Ok((3, 3)));
        assert_eq!(count_range("1-8"), Ok((1, 8)));
        for bad in ["", "0", "8-1", "1-99", "a-b"] {
            assert!(count_range(bad).is_err(), "{bad}");
        }
    }
}
