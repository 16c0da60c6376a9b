//! `takt profile`: the constants of a GPU, by measuring.

mod exactness;
mod programs;
mod sharing;
pub(crate) mod unknown;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Serialize;
use takt_calibrate::profile::{Calibration, Constant, measure};
use takt_calibrate::store::{self, Shelf};
use takt_calibrate::{Bench, Place};
use takt_predict::profile::Profile;
use takt_predict::programs::ProgramRates;

use crate::Answer;
use crate::output;
use crate::table::Table;
use exactness::CaseFound;
use programs::ProgramFound;
use sharing::SharingFound;

/// Measures what work costs on a GPU by itself: submitting a command group, a draw call, clearing,
/// depth test and blending, samples, showing a frame, moving bytes. Then, with a second process,
/// how the GPU shares itself between processes. At last, whether cut draws show what whole ones do
/// (the self-test). Takes seconds; nothing else should use the GPU (or
/// the CPU, if that renders) meanwhile.
///
/// The constants are kept per GPU and driver, and `takt run` finds them there:
///
///   takt profile                 # measure and keep
///   takt profile --show          # what is kept, and how well it fits
///   takt train                   # then: what shaders cost
///   takt run --verbose --compare out.csv -- PROGRAM
///
/// `takt run --compare` also notes the sources of shaders that it sees. They are measured one by
/// one at the end of `takt profile`, or alone:
///
///   takt profile --programs
///
/// docs/profile.md says how each constant is measured.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct ProfileArgs {
    #[command(flatten)]
    pub(crate) common: CalibrateArgs,
    /// Fewer repetitions and sizes: rougher constants, sooner.
    #[arg(long)]
    quick: bool,
    /// Measure only programs that `takt run --compare` has seen on this GPU.
    #[arg(long, conflicts_with = "output")]
    programs: bool,
    /// Only find out which ways of cutting draws are exact with this driver.
    #[arg(long, conflicts_with_all = ["quick", "programs", "output"])]
    self_test: bool,
    /// Measure quickly each GPU that has no kept results, and no other; the daemon does so when it starts.
    #[arg(long, conflicts_with_all = ["quick", "programs", "output", "self_test"])]
    new: bool,
    /// Measure nothing; list the kept results of each GPU.
    #[arg(long, conflicts_with_all = ["quick", "programs", "output", "self_test", "new"])]
    show: bool,
    /// Write the profile to a file (for `takt run --profile FILE`) and keep nothing.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Be the second process that sharing is measured with, with draws of so many loops.
    #[arg(long, hide = true, value_name = "LOOPS", value_parser = clap::value_parser!(u32).range(1..=1 << 16))]
    peer: Option<u32>,
}

/// What `takt profile` and `takt train` have in common.
#[derive(clap::Args, Debug)]
pub(crate) struct CalibrateArgs {
    /// Which GPU: auto (the first that works), surfaceless, or device:N.
    #[arg(long, value_name = "GPU", default_value = "auto")]
    pub(crate) device: Place,
    /// Where results are kept [default: takt/gpus in $XDG_DATA_HOME, else $STATE_DIRECTORY/gpus, else takt/gpus in
    /// ~/.local/share].
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Write the results as JSON; - is standard output, without the table.
    #[arg(long, value_name = "F")]
    pub(crate) json: Option<PathBuf>,
}

impl CalibrateArgs {
    /// The folder to keep results in.
    pub(crate) fn store(&self) -> anyhow::Result<PathBuf> {
        let store = self.store.clone().or_else(store::home);
        store.context("neither XDG_DATA_HOME nor HOME is set: say with --store where to keep results")
    }

    /// Opens the GPU and says which it is.
    pub(crate) fn open(&self) -> anyhow::Result<Bench> {
        let bench = Bench::open(self.device).context("cannot measure")?;
        self.print(&format!(
            "GPU      {}\ndriver   {}\nopened   {}\ntimes    by {}\n",
            bench.gpu(),
            bench.driver(),
            bench.place(),
            bench.source()
        ))?;
        Ok(bench)
    }

    /// Says something, unless JSON replaces it.
    pub(crate) fn print(&self, text: &str) -> anyhow::Result<()> {
        if output::is_stdout(self.json.as_deref()) { Ok(()) } else { output::print(text) }
    }
}

/// What `takt profile` found.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct ProfileFindings {
    /// `GL_RENDERER`.
    gpu: String,
    /// `GL_VERSION`.
    driver: String,
    /// What measured.
    source: String,
    /// Where the profile is kept.
    path: String,
    /// The constants; null if only programs were measured.
    constants: Vec<ConstantFound>,
    /// Experiments that failed, with the reason; their constants have defaults.
    failed: Vec<String>,
    /// How processes share the GPU; none if that was not measured.
    sharing: Option<SharingFound>,
    /// How many values differ where draws are cut, in each state.
    exactness: Vec<CaseFound>,
    /// Programs that were seen, measured one by one.
    programs: Vec<ProgramFound>,
}

impl ProfileFindings {
    /// Nothing was found yet.
    fn new(bench: &Bench, path: &Path) -> Self {
        Self {
            gpu: bench.gpu(),
            driver: bench.driver(),
            source: bench.source().to_string(),
            path: path.display().to_string(),
            constants: Vec::new(),
            failed: Vec::new(),
            sharing: None,
            exactness: Vec::new(),
            programs: Vec::new(),
        }
    }
}

/// A constant and how well it fits.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct ConstantFound {
    /// Its key in profile files.
    key: &'static str,
    /// Its value there.
    value: f64,
    /// The line that it comes from; none if it is no slope.
    fit: Option<FitFound>,
    /// What else is to be known about it.
    note: Option<&'static str>,
}

/// How well a line fits.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct FitFound {
    /// Share of the variance that is explained.
    r_squared: f64,
    /// Median of relative errors.
    error_p50: f64,
    /// Their 95th percentile.
    error_p95: f64,
    /// Points that were used.
    points: usize,
    /// Points that were not: size, measured and expected nanoseconds.
    outliers: Vec<[f64; 3]>,
}

impl From<&Constant> for ConstantFound {
    fn from(constant: &Constant) -> Self {
        let fit = constant.quality.as_ref().map(|quality| FitFound {
            r_squared: quality.r_squared,
            error_p50: quality.error_p50,
            error_p95: quality.error_p95,
            points: quality.points,
            outliers: quality.outliers.clone(),
        });
        Self { key: constant.key, value: constant.value, fit, note: constant.note }
    }
}

pub(crate) fn run(args: &ProfileArgs) -> anyhow::Result<Answer> {
    if args.show {
        return show(&args.common.store()?);
    }
    if let Some(loops) = args.peer {
        return sharing::serve(args.common.device, loops);
    }
    if args.new {
        unknown::measure(&args.common.store()?)?;
        return Ok(Answer::Yes);
    }
    let mut bench = args.common.open()?;
    let findings = if args.programs {
        only_programs(args, &mut bench)?
    } else if args.self_test {
        only_exactness(args, &bench)?
    } else {
        all(args, &mut bench)?
    };
    output::json(args.common.json.as_deref(), &findings)?;
    Ok(Answer::Yes)
}

/// Measures the constants and how processes share the GPU, then programs that were seen.
fn all(args: &ProfileArgs, bench: &mut Bench) -> anyhow::Result<ProfileFindings> {
    let calibration = calibrated(args.quick, bench)?;
    let text = calibration.to_text(bench.source());
    let path = match &args.output {
        Some(path) => {
            output::file(path, &text)?;
            path.clone()
        }
        None => keep(&args.common.store()?, bench, text)?,
    };
    let shared = calibration.sharing.as_ref().map(|sharing| format!("sharing  {sharing}\n"));
    let (table, shared) = (table(&calibration), shared.unwrap_or_default());
    args.common.print(&format!("\n{table}\n{shared}kept in {}\n", path.display()))?;
    let mut findings = ProfileFindings::new(bench, &path);
    findings.constants = calibration.constants.iter().map(ConstantFound::from).collect();
    findings.failed = calibration.failed.iter().map(|(name, problem)| format!("{name}: {problem}")).collect();
    findings.sharing = calibration.sharing.as_ref().map(SharingFound::from);
    if args.output.is_none() {
        findings.exactness = tried(args, bench)?;
        findings.programs = measured_programs(args, bench, &calibration.profile)?.unwrap_or_default();
    }
    Ok(findings)
}

/// Measures all but programs, and says what could not be measured.
fn calibrated(quick: bool, bench: &mut Bench) -> anyhow::Result<Calibration> {
    let bar = output::progress(1, "starting");
    let mut calibration = measure(bench, quick, &mut |what, done, all| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
        bar.set_message(what);
    })?;
    bar.set_message("sharing");
    let found = sharing::measure(bench, quick);
    bar.finish_and_clear();
    for (name, problem) in &calibration.failed {
        output::warn(&format!("takt: {name} could not be measured: {problem}; they count as free"));
    }
    if let Err(problem) = &found {
        output::warn(&format!("takt: how processes share the GPU could not be measured: {problem}"));
    }
    calibration.share(found);
    Ok(calibration)
}

/// Only tries all ways of cutting.
fn only_exactness(args: &ProfileArgs, bench: &Bench) -> anyhow::Result<ProfileFindings> {
    let shelf = Shelf::new(&args.common.store()?, &bench.gpu(), &bench.driver());
    let mut findings = ProfileFindings::new(bench, &shelf.exactness_path());
    findings.exactness = tried(args, bench)?;
    Ok(findings)
}

/// Tries all ways of cutting, keeps what was found, and says so.
fn tried(args: &ProfileArgs, bench: &Bench) -> anyhow::Result<Vec<CaseFound>> {
    let found = exactness::run(&args.common.store()?, bench)?;
    args.common.print(&format!("\n{}", exactness::summary(&found)))?;
    Ok(exactness::cases(&found))
}

/// Measures programs that were seen, with constants that are kept.
fn only_programs(args: &ProfileArgs, bench: &mut Bench) -> anyhow::Result<ProfileFindings> {
    let shelf = Shelf::new(&args.common.store()?, &bench.gpu(), &bench.driver());
    let profile = shelf.profile().context("run takt profile without --programs")?;
    let profile = profile.context("no constants of this GPU are kept; run takt profile first")?;
    let mut findings = ProfileFindings::new(bench, &shelf.profile_path());
    let programs = measured_programs(args, bench, &profile)?;
    findings.programs = programs.with_context(|| {
        format!(
            "no programs of {} were noted in {}; run them with takt run --compare FILE -- PROGRAM first",
            bench.gpu(),
            shelf.programs_path().display()
        )
    })?;
    Ok(findings)
}

/// Measures programs that were seen, and says what they cost; none if none were.
fn measured_programs(
    args: &ProfileArgs,
    bench: &mut Bench,
    profile: &Profile,
) -> anyhow::Result<Option<Vec<ProgramFound>>> {
    let store = args.common.store()?;
    let found = programs::run(&store, bench, profile, args.quick)?;
    if let Some(found) = &found {
        let path = Shelf::new(&store, &bench.gpu(), &bench.driver()).rates_path();
        args.common.print(&format!("\n{}\nkept in {}\n", programs::table(found), path.display()))?;
    }
    Ok(found)
}

/// Keeps the profile of its GPU; says so if the one that it replaces is damaged.
fn keep(store: &Path, bench: &Bench, text: String) -> anyhow::Result<PathBuf> {
    let shelf = Shelf::new(store, &bench.gpu(), &bench.driver());
    if let Err(damaged) = shelf.profile() {
        output::warn(&format!("takt: {damaged}; it is replaced"));
    }
    let path = shelf.profile_path();
    shelf.keep_profile(text).with_context(|| output::cannot_write(&path))?;
    Ok(path)
}

fn table(calibration: &Calibration) -> String {
    let mut table = Table::new("<constant, value, R², p50, p95, points, <");
    for constant in &calibration.constants {
        let mut row = vec![constant.key.to_owned(), number(constant.value)];
        let mut remarks: Vec<String> = constant.note.map(str::to_owned).into_iter().collect();
        match &constant.quality {
            Some(quality) => {
                row.push(format!("{:.4}", quality.r_squared));
                row.extend(
                    [quality.error_p50, quality.error_p95].map(|error| format!("{:.1} %", error * 100.0)),
                );
                row.push(quality.points.to_string());
                remarks.extend(quality.outliers.iter().map(|[size, measured, expected]| {
                    format!("outlier at {size}: {measured:.0} ns, not {expected:.0}")
                }));
            }
            None => row.extend(["", "", "", ""].map(str::to_owned)),
        }
        row.push(remarks.join("; "));
        table.row(row);
    }
    table.render()
}

/// Enough digits for constants of all sizes.
pub(crate) fn number(value: f64) -> String {
    match value {
        0.0 => "0".to_owned(),
        _ if value >= 1e12 => "none".to_owned(),
        _ if value >= 1000.0 => format!("{value:.0}"),
        _ if value >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.5}"),
    }
}

/// Lists what is kept.
fn show(store: &Path) -> anyhow::Result<Answer> {
    let shelves = Shelf::list(store).with_context(|| format!("cannot read {}", store.display()))?;
    if shelves.is_empty() {
        bail!("nothing is kept in {}; run takt profile first", store.display());
    }
    let mut damaged = false;
    for shelf in shelves {
        let mut say = |what: &str, path: PathBuf, found: Result<Option<(String, String)>, store::BadFile>| {
            let line = match found {
                Ok(Some((gpu, driver))) => format!("{what}  {gpu}, {driver}: {}\n", path.display()),
                Ok(None) => return Ok(()),
                Err(error) => {
                    damaged = true;
                    format!("{what}  DAMAGED, {error}; run takt {what} again\n", what = what.trim_end())
                }
            };
            output::print(&line)
        };
        let profile = shelf.profile().map(|found| found.map(|profile| (profile.gpu, profile.driver)));
        say("profile", shelf.profile_path(), profile)?;
        let models = shelf.models().map(|found| found.map(|models| (models.gpu, models.driver)));
        say("train  ", shelf.models_path(), models)?;
        let count = |rates: &ProgramRates| (format!("{} programs", rates.len()), "one by one".to_owned());
        let rates = shelf.rates().map(|found| found.as_ref().map(count));
        say("profile --programs", shelf.rates_path(), rates)?;
        if let Some(found) = shelf.exactness().ok().flatten() {
            let lines: String =
                exactness::summary(&found).lines().map(|line| format!("  {line}\n")).collect();
            output::print(&format!("self-test  {}\n{lines}", shelf.exactness_path().display()))?;
        }
        if let Ok(text) = std::fs::read_to_string(shelf.profile_path()) {
            let remarks: String = text
                .lines()
                .filter(|line| line.starts_with("# "))
                .map(|line| format!("  {line}\n"))
                .collect();
            output::print(&remarks)?;
        }
    }
    Ok(if damaged { Answer::No } else { Answer::Yes })
}
