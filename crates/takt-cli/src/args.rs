//! What can be typed. The doc comments are the manual.

mod live;
mod programs;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use takt_sim::scenario::Override;
use takt_sim::study::Shard;

pub(crate) use live::{ReplayArgs, TopArgs, TraceArgs};
pub(crate) use programs::{
    DoctorArgs, ListArgs, RunArgs, ScheduleArgs, ServeArgs, SetArgs, SocketArgs, WhyArgs,
};

/// Real-time GPU scheduling: simulate it, check it, prove it.
///
/// Several apps share one GPU that cannot be preempted. Takt lets their command groups through by
/// priority and by frame deadlines aligned to the display's refresh, so that important apps meet
/// every deadline and the rest keep the GPU busy.
///
/// Start with `takt demo`.
#[derive(Parser, Debug)]
#[command(name = "takt", version = crate::version::build(), max_term_width = 100)]
#[command(after_help = "Exit codes: 0 yes or done, 1 the answer is no, 2 bad input.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run a GL ES program with Takt underneath.
    Run(RunArgs),
    /// Schedule GL ES programs: the daemon, in the foreground.
    Serve(ServeArgs),
    /// Who is scheduled, on which terms, and how it goes.
    List(ListArgs),
    /// Watch the daemon: who runs when, who meets its deadlines, and who waits for whom.
    Top(TopArgs),
    /// Change what a running app gets.
    Set(SetArgs),
    /// Why was a frame late? One sentence for each missed deadline of the last 30 s (exit 1: none).
    Why(WhyArgs),
    /// Capture what the daemon does, for the Perfetto UI or as a log.
    Trace(TraceArgs),
    /// Play a daemon's log again: does the core do the very same? (exit 1: no)
    Replay(ReplayArgs),
    /// Tell what will be hooked and how, and what stands in the way (exit 1 if something does).
    Doctor(DoctorArgs),
    /// Measure the constants of this GPU, for predictions (seconds).
    Profile(crate::profile::ProfileArgs),
    /// Learn what shaders cost on this GPU, for predictions (minutes; resumes).
    Train(crate::train::TrainArgs),
    /// Simulate a scenario and tell who met which deadlines.
    Sim(SimArgs),
    /// Play scenarios under every policy and put the outcomes side by side.
    Policies(PoliciesArgs),
    /// Tell before deployment whether reserved times can be guaranteed (exit 0 yes, 1 no, or to nobody).
    Check(CheckArgs),
    /// Bound the response times of recurring tasks: set,verdict,R0,R1,... for each set of a file.
    Analyze(AnalyzeArgs),
    /// Search for a counterexample to the guarantee (exit 1 if one is found).
    Prove(ProveArgs),
    /// Vary parameters of a scenario or of random task sets: every combination, in parallel.
    ///
    /// Results go to results.csv, plot-N.svg and index.html of the output folder.
    /// They depend on the study alone: not on the number of threads, not on interruptions (run the
    /// same command again to go on), and not on how a study was spread over machines:
    ///
    ///   takt sweep FILE --out OUT --shard 1/4    # … and 2/4, 3/4, 4/4, anywhere
    ///   takt sweep FILE --out OUT --merge        # or --merge FOLDER… if they are apart
    #[command(verbatim_doc_comment)]
    Sweep(SweepArgs),
    /// Measure the scheduler and the simulator themselves.
    Bench(BenchArgs),
    /// Show in a minute what Takt does: the same apps with and without it.
    Demo(crate::demo::DemoArgs),
    /// Tell how good predictions were, from files with predicted and measured times.
    Report(ReportArgs),
    /// Make a recording to replay in scenarios from what an app did in a run (printed as CSV).
    Record {
        /// What `takt sim --trace FILE.csv` wrote.
        file: PathBuf,
        /// Which app.
        #[arg(long)]
        app: String,
    },
    /// Make a scenario from the configuration of another scheduler.
    #[command(subcommand)]
    Import(ImportFrom),
    /// Print a JSON schema.
    Schema {
        /// Of what.
        of: Schema,
    },
    /// Print a completion script for your shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages, one for each command.
    Man {
        /// Where they go.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

/// Whose configuration to read.
#[derive(Subcommand, Debug)]
pub(crate) enum ImportFrom {
    /// A specification of TimeGraph: lines of name:sched:resv:prio:C:T (see docs/timegraph.md).
    ///
    /// The scenario has the same apps, priorities and reserves, and for each app a placeholder of a
    /// workload to be replaced by what it really does.
    Timegraph(TimegraphArgs),
}

#[derive(ClapArgs, Debug)]
pub(crate) struct TimegraphArgs {
    /// The specification (/etc/timegraph.spec).
    #[arg(value_name = "SPEC")]
    pub(crate) file: PathBuf,
    /// How much of the GPU all reserves together may take: percent, or the file that says so
    /// (/etc/timegraph.ac). A reserve that does not fit runs in the background.
    #[arg(long, value_name = "PERCENT|FILE")]
    pub(crate) limit: Option<String>,
    /// Where the scenario goes; without it, to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// What there are schemas of.
#[derive(ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Schema {
    /// Scenario files.
    Scenario,
    /// Study files.
    Study,
    /// The output of `takt sim --json`.
    Sim,
    /// The output of `takt policies --json`.
    Policies,
    /// The output of `takt check --json`.
    Check,
    /// The output of `takt analyze --json`.
    Analyze,
    /// The output of `takt prove --json`.
    Prove,
    /// The output of `takt sweep --json`.
    Sweep,
    /// The output of `takt top --json`.
    Top,
    /// The output of `takt replay --json`.
    Replay,
    /// The output of `takt bench --json`.
    Bench,
    /// The output of `takt report --json`.
    Report,
    /// The output of `takt doctor --json`.
    Doctor,
    /// The output of `takt profile --json`.
    Profile,
    /// The output of `takt train --json`.
    Train,
}

/// The schema as text.
pub(crate) fn schema(of: Schema) -> String {
    fn of_type<T: schemars::JsonSchema>() -> String {
        serde_json::to_string_pretty(&schemars::schema_for!(T)).unwrap_or_default()
    }
    let text = match of {
        Schema::Scenario => takt_sim::scenario::json_schema(),
        Schema::Study => takt_sim::scenario::study_file::json_schema(),
        Schema::Sim => of_type::<takt_trace::Summary>(),
        Schema::Policies => of_type::<Vec<crate::policies::Figures>>(),
        Schema::Check => of_type::<crate::check::Verdict>(),
        Schema::Analyze => of_type::<crate::analyze::Answers>(),
        Schema::Prove => of_type::<crate::prove::Findings>(),
        Schema::Sweep => of_type::<crate::sweep::Outcome>(),
        Schema::Top => of_type::<crate::top::Picture>(),
        Schema::Replay => of_type::<crate::replay::Outcome>(),
        Schema::Bench => of_type::<Vec<crate::bench::Measurement>>(),
        Schema::Report => of_type::<Vec<crate::report::FileFigures>>(),
        Schema::Doctor => of_type::<Vec<crate::doctor::Finding>>(),
        Schema::Profile => of_type::<crate::profile::ProfileFindings>(),
        Schema::Train => of_type::<crate::train::TrainFindings>(),
    };
    text.trim_end().to_owned() + "\n"
}

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
    pub(crate) scenario: ScenarioArgs,
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
    /// Let one app of each set fall silent at some time. That is outside of what is guaranteed: it
    /// shows how well the others are off.
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
    /// Compute nothing: put the parts together whose journals are in these folders. Default: in
    /// --out.
    #[arg(long, value_name = "DIR", num_args = 0..)]
    pub(crate) merge: Option<Vec<PathBuf>>,
    /// Only tell what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the results as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct BenchArgs {
    /// What to measure; everything if not given.
    pub(crate) name: Option<BenchName>,
    /// Decisions to take per number of apps (`decision` only).
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) iterations: u64,
    /// Numbers of apps, separated by commas (`decision` only).
    #[arg(long, value_delimiter = ',', default_values_t = [1, 5, 20, 100, 1000])]
    pub(crate) apps: Vec<u32>,
    /// Only take the decisions, exactly --iterations per number of apps, and measure nothing: for
    /// tools that count instructions from outside (`decision` only).
    #[arg(long)]
    pub(crate) bare: bool,
    /// Write the measurements as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BenchName {
    /// Cost of one scheduling decision.
    Decision,
    /// Speed of the simulator.
    Sim,
    /// Cost of predictions.
    Predict,
    /// From asking a daemon for leave to having it (20 000 times at most).
    Grant,
    /// One turn of the daemon's loop, with 1 and with 17 busy apps.
    Turn,
    /// Cost of the analyses per task set; built with `--features opponents`, next to another tool.
    Analysis,
}

#[derive(ClapArgs, Debug)]
pub(crate) struct ReportArgs {
    /// Compare files (CSV; see docs/compare.md). What `takt sim --trace FILE.csv` writes is one.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Split the figures.
    #[arg(long, default_value = "app")]
    pub(crate) by: SplitBy,
    /// Write a page with plots for each file to DIR.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the cumulative errors of each file to DIR, as SVG.
    #[arg(long, value_name = "DIR")]
    pub(crate) plots: Option<PathBuf>,
    /// Write the figures as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

/// How figures are split.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SplitBy {
    /// By app.
    App,
    /// By kind of command group.
    Kind,
    /// Not at all.
    None,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

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
