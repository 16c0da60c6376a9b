//! `takt train`: models of what shaders cost on a GPU, from generated ones.

use anyhow::Context;
use schemars::JsonSchema;
use serde::Serialize;
use takt_calibrate::Bench;
use takt_calibrate::store::Shelf;
use takt_calibrate::train::{Begun, Checkpoint, Plan, measure};
use takt_predict::shaders::{Fit, Validation, cross_validate, train};

use crate::Answer;
use crate::output;
use crate::profile::CalibrateArgs;
use crate::table::Table;

/// Makes models that tell from a shader's source what it costs on this GPU: measures generated
/// shaders, fits five regression splines, and says by cross-validation how good they are for
/// shaders they have not seen. Takes minutes; nothing else should use the GPU meanwhile.
///
/// Interrupt it as you like: the same command goes on where it stopped.
///
///   takt train --quick           # a minute: rough models
///   takt train                   # some minutes: good models
///
/// The models are kept per GPU and driver, and `takt run` finds them there; docs/profile.md says
/// how shaders are generated and measured.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct TrainArgs {
    #[command(flatten)]
    common: CalibrateArgs,
    /// Fewer and smaller draws of fewer shaders: rougher models, sooner.
    #[arg(long)]
    quick: bool,
    /// Only as many shaders as make any models at all: for tests.
    #[arg(long, hide = true, conflicts_with = "quick")]
    tiny: bool,
    /// Seed of the shaders.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Forget what an interrupted training has measured.
    #[arg(long)]
    fresh: bool,
}

/// What `takt train` made.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct TrainFindings {
    /// `GL_RENDERER`.
    gpu: String,
    /// `GL_VERSION`.
    driver: String,
    /// What measured.
    source: String,
    /// Where the models are kept.
    path: String,
    /// Shaders that were measured.
    shaders: usize,
    /// Shaders that the driver refused.
    refused: usize,
    /// How good the models are.
    models: Vec<ModelFound>,
}

/// How good a model is.
#[derive(Serialize, JsonSchema, Debug)]
pub(crate) struct ModelFound {
    /// Its name.
    model: &'static str,
    /// Runs that it was made from.
    runs: usize,
    /// Terms before pruning.
    terms_found: usize,
    /// Share of the variance of these runs that it explains.
    r_squared: f64,
    /// The same for runs that it was not made from, by cross-validation.
    cross_r_squared: f64,
    /// Mean of the measured times, in nanoseconds per vertex or fragment.
    mean_ns: f64,
    /// Mean error of unseen runs, in the same.
    cross_error_ns: f64,
    /// Median of relative errors of unseen runs.
    cross_error_p50: f64,
    /// Their 95th percentile.
    cross_error_p95: f64,
}

impl From<(&Fit, &Validation)> for ModelFound {
    fn from((fit, validation): (&Fit, &Validation)) -> Self {
        Self {
            model: fit.submodel.name(),
            runs: fit.rows,
            terms_found: fit.summary.terms_found,
            r_squared: fit.summary.r_squared,
            cross_r_squared: validation.r_squared,
            mean_ns: validation.scale_ns,
            cross_error_ns: validation.mean_ns,
            cross_error_p50: validation.error_p50,
            cross_error_p95: validation.error_p95,
        }
    }
}

/// Parts of cross-validation.
const FOLDS: usize = 5;

pub(crate) fn run(args: &TrainArgs) -> anyhow::Result<Answer> {
    let store = args.common.store()?;
    let mut bench = args.common.open()?;
    let (gpu, driver) = (bench.gpu(), bench.driver());
    let shelf = Shelf::new(&store, &gpu, &driver);
    if let Err(damaged) = shelf.models() {
        output::warn(&format!("takt: {damaged}; it is replaced"));
    }
    let plan = plan(args);
    let mut checkpoint = begin(args, &shelf, &bench, &plan)?;
    let bar = output::progress(plan.jobs() as u64, "measuring shaders");
    let runs = measure(&mut bench, &plan, &mut checkpoint, &mut |done| bar.set_position(done as u64))?;
    bar.set_message("fitting models");
    let (models, fits) = train(&gpu, &driver, &runs)?;
    bar.set_message("cross-validating");
    let validation = cross_validate(&runs, FOLDS)?;
    bar.finish_and_clear();
    let path = shelf.models_path();
    shelf.keep_models(&models).with_context(|| output::cannot_write(&path))?;
    // Kept as evidence; a training that comes later begins anew.
    let (part, done) = (shelf.unfinished_path(), shelf.finished_path());
    std::fs::rename(&part, &done).with_context(|| output::cannot_write(&done))?;
    let findings = TrainFindings {
        gpu,
        driver,
        source: bench.source().to_string(),
        path: path.display().to_string(),
        shaders: plan.jobs() - checkpoint.refused(),
        refused: checkpoint.refused(),
        models: fits.iter().zip(&validation).map(ModelFound::from).collect(),
    };
    output::json(args.common.json.as_deref(), &findings)?;
    if !output::is_stdout(args.common.json.as_deref()) {
        output::print(&format!("\n{}\nkept in {}\n", table(&findings), path.display()))?;
    }
    Ok(Answer::Yes)
}

fn plan(args: &TrainArgs) -> Plan {
    match (args.tiny, args.quick) {
        (true, _) => Plan::tiny(args.seed),
        (_, true) => Plan::quick(args.seed),
        _ => Plan::thorough(args.seed),
    }
}

/// Opens earlier measurements, and says whether they are used.
fn begin(args: &TrainArgs, shelf: &Shelf, bench: &Bench, plan: &Plan) -> anyhow::Result<Checkpoint> {
    let path = shelf.unfinished_path();
    if args.fresh && path.exists() {
        std::fs::remove_file(&path).with_context(|| output::cannot_write(&path))?;
    }
    let opened = Checkpoint::open(&path, &bench.gpu(), &bench.driver(), plan);
    let (checkpoint, begun) = opened.with_context(|| output::cannot_write(&path))?;
    let all = plan.jobs();
    match begun {
        Begun::New => {}
        Begun::Resumed { jobs } => {
            output::warn(&format!("takt: going on after {jobs} of {all} shaders ({})", path.display()));
        }
        Begun::Anew(reason) => {
            output::warn(&format!("takt: {}: {reason}; all shaders are measured anew", path.display()));
        }
        Begun::Damaged { line, jobs } => output::warn(&format!(
            "takt: {}: line {line} is damaged; going on after the {jobs} of {all} shaders before it",
            path.display()
        )),
    }
    Ok(checkpoint)
}

fn table(findings: &TrainFindings) -> String {
    let mut table = Table::new("<model, runs, R², mean ns, | unseen: R², error ns, p50 error, p95 error");
    for model in &findings.models {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        table.row(vec![
            model.model.to_owned(),
            model.runs.to_string(),
            format!("{:.4}", model.r_squared),
            format!("{:.3}", model.mean_ns),
            format!("{:.4}", model.cross_r_squared),
            format!("{:.3}", model.cross_error_ns),
            percent(model.cross_error_p50),
            percent(model.cross_error_p95),
        ]);
    }
    let refused = match findings.refused {
        0 => String::new(),
        refused => format!(", {refused} more were refused by the driver"),
    };
    format!("{}\n{} shaders were measured{refused}\n", table.render(), findings.shaders)
}
