//! Arguments of all commands. The doc comments are the manual.

mod audit;
mod cockpit;
mod live;
mod offline;
mod programs;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use audit::{AuditCommand, ScanArgs, ShowArgs, VerifyArgs};
pub(crate) use cockpit::{CockpitArgs, CockpitCommand, CockpitListArgs, ShotArgs};
pub(crate) use live::{DomainsArgs, ReplayArgs, TopArgs, TraceArgs, WebArgs};
pub(crate) use offline::{
    Analysis, AnalyzeArgs, CheckArgs, PoliciesArgs, ProveArgs, ProveGpu, ScenarioArgs, SimArgs, SweepArgs,
    WINDOW_S, Window,
};
pub(crate) use programs::{
    DoctorArgs, ListArgs, RunArgs, ScheduleArgs, ServeArgs, SetArgs, SocketArgs, WhyArgs,
};

/// Real-time GPU scheduling: simulate it, check it, prove it.
///
/// Several apps share one GPU that cannot be preempted. Takt grants their command groups by priority
/// and by frame deadlines aligned to the refresh of the display: important apps meet every deadline,
/// and the others keep the GPU busy.
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
    /// Run a program of GL ES, GL or CUDA under Takt, unchanged.
    Run(RunArgs),
    /// Start the daemon that schedules programs, in the foreground.
    Serve(ServeArgs),
    /// List the scheduled apps, their terms and their frame rates.
    List(ListArgs),
    /// List the domains of the daemon: who may ask for what, what they use, and which one is yours.
    Domains(DomainsArgs),
    /// See and change what a cockpit shows: its displays, windows and programs.
    #[command(subcommand)]
    Cockpit(CockpitCommand),
    /// Watch the daemon live: which app runs when, which meets its deadlines, and which waits.
    Top(TopArgs),
    /// Serve a page for browsers that shows what the daemon does, and steers it.
    Web(WebArgs),
    /// Change what a running app gets.
    Set(SetArgs),
    /// Explain late frames: one sentence for each deadline missed in the last 30 s (exit 1: none).
    Why(WhyArgs),
    /// Capture what the daemon does, for the Perfetto UI or as a log.
    Trace(TraceArgs),
    /// Replay the log of a daemon and compare: the core must decide the same (exit 1: it does not).
    Replay(ReplayArgs),
    /// Check, show or scan what the daemon recorded of its decisions.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// Check what Takt will hook and how, and what prevents it (exit 1 if something does).
    Doctor(DoctorArgs),
    /// Measure the constants of this GPU, for predictions (seconds).
    Profile(crate::profile::ProfileArgs),
    /// Learn what shaders cost on this GPU, for predictions (minutes; resumes).
    Train(crate::train::TrainArgs),
    /// Simulate a scenario and print which app met which deadlines.
    Sim(SimArgs),
    /// Simulate scenarios under every policy and compare the outcomes.
    Policies(PoliciesArgs),
    /// Test before deployment whether the deadlines of a scenario can be guaranteed (exit 1: they cannot).
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
    /// Report how good predictions were, from files with predicted and measured times.
    Report(ReportArgs),
    /// Turn the groups of an app in a run into a recording that scenarios can play (printed as CSV).
    Record {
        /// File that `takt sim --trace FILE.csv` wrote.
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
        /// What the schema describes.
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
        Schema::Sweep => of_type::<crate::sweep::SweepOutcome>(),
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
    /// Time from a request to the grant of a daemon (20 000 requests at most).
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
}
