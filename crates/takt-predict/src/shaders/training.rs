//! From measured runs of generated programs to the five models.

use super::ShaderModels;
use super::features::{ProgramFeatures, Row, Submodel, texture_row};
use crate::cost::{FragmentState, TextureSize};
use crate::mars::{self, Model, Options, Samples, Summary, TrainError};

/// Measurements of one generated program, per instance, without what is not its own: flush,
/// draws, and for fragments the time of their vertices.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Run {
    /// A vertex shader that does little but hand attributes on.
    VertexAux {
        /// Of the program.
        features: ProgramFeatures,
        /// Per vertex.
        ns: f64,
    },
    /// A vertex shader that computes. Used only if it takes longer than its auxiliary time.
    VertexCommands {
        /// Of the program.
        features: ProgramFeatures,
        /// Per vertex.
        ns: f64,
    },
    /// A fragment shader that does little but read varyings.
    FragmentAux {
        /// Of the program.
        features: ProgramFeatures,
        /// What happens to its fragments.
        state: FragmentState,
        /// Per fragment.
        ns: f64,
    },
    /// A fragment shader that computes, without depth test and blending. Used only if it takes
    /// longer than its auxiliary time.
    FragmentCommands {
        /// Of the program.
        features: ProgramFeatures,
        /// Per fragment.
        ns: f64,
    },
    /// Lookups in a texture.
    Texture {
        /// Lookups of an instance.
        lookups: u32,
        /// The texture.
        size: TextureSize,
        /// Per instance, beyond the same lookups in a texture of one texel.
        ns: f64,
    },
}

/// Runs to train models from.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct TrainingSet {
    tables: [Rows; 5],
    /// Rows of commands' auxiliary submodels, one for each row of commands.
    aux: [Vec<f64>; 5],
}

#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct Rows {
    pub(super) features: Vec<f64>,
    pub(super) responses: Vec<f64>,
}

impl Rows {
    /// Some of the rows, each with so many features.
    pub(super) fn pick(&self, rows: &[usize], width: usize) -> Self {
        let features = rows.iter().flat_map(|row| &self.features[row * width..(row + 1) * width]);
        Self {
            features: features.copied().collect(),
            responses: rows.iter().map(|row| self.responses[*row]).collect(),
        }
    }
}

impl TrainingSet {
    /// Adds a run.
    pub fn push(&mut self, run: &Run) {
        let none = FragmentState::default();
        match run {
            Run::VertexAux { features, ns } => {
                self.add(Submodel::VertexAux, features.row(Submodel::VertexAux, none), *ns)
            }
            Run::FragmentAux { features, state, ns } => {
                self.add(Submodel::FragmentAux, features.row(Submodel::FragmentAux, *state), *ns);
            }
            Run::VertexCommands { features, ns } => {
                self.add_commands(Submodel::VertexCommands, Submodel::VertexAux, features, *ns);
            }
            Run::FragmentCommands { features, ns } => {
                self.add_commands(Submodel::FragmentCommands, Submodel::FragmentAux, features, *ns);
            }
            Run::Texture { lookups, size, ns } => {
                self.add(Submodel::Texture, texture_row(f64::from(*lookups), *size), *ns);
            }
        }
    }

    /// Runs of a submodel so far.
    pub fn rows(&self, submodel: Submodel) -> usize {
        self.tables[submodel as usize].responses.len()
    }

    pub(super) fn table(&self, submodel: Submodel) -> &Rows {
        &self.tables[submodel as usize]
    }

    fn add(&mut self, submodel: Submodel, row: Row, ns: f64) {
        let table = &mut self.tables[submodel as usize];
        table.features.extend(&row.values[..submodel.features().len()]);
        table.responses.push(ns);
    }

    fn add_commands(&mut self, submodel: Submodel, aux: Submodel, features: &ProgramFeatures, ns: f64) {
        let none = FragmentState::default();
        self.add(submodel, features.row(submodel, none), ns);
        self.aux[submodel as usize].extend(&features.row(aux, none).values[..aux.features().len()]);
    }

    /// Leaves out the runs of commands that were hidden behind fetching.
    pub(super) fn visible_commands(&self, submodel: Submodel, aux: Submodel, model: &Model) -> Rows {
        let table = &self.tables[submodel as usize];
        let width = submodel.features().len();
        let aux_rows = self.aux[submodel as usize].chunks_exact(aux.features().len());
        let mut kept = Rows::default();
        for ((row, ns), aux_row) in table.features.chunks_exact(width).zip(&table.responses).zip(aux_rows) {
            if *ns > model.predict(aux_row) * CLEARLY {
                kept.features.extend(row);
                kept.responses.push(*ns);
            }
        }
        kept
    }
}

/// How well one model fits the runs it was made from.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Fit {
    /// Which model.
    pub submodel: Submodel,
    /// Runs that were used.
    pub rows: usize,
    /// Figures of the training.
    pub summary: Summary,
}

/// Why there are no models.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("the {} model: {source}", submodel.name())]
pub struct TrainingError {
    /// Which model could not be made.
    pub submodel: Submodel,
    /// Why.
    pub source: TrainError,
}

/// Trains all models.
///
/// # Errors
///
/// If there are too few runs of a kind, or a time is no usable number.
pub fn train(gpu: &str, driver: &str, runs: &TrainingSet) -> Result<(ShaderModels, [Fit; 5]), TrainingError> {
    let whole = |submodel: Submodel| fit(submodel, runs.table(submodel));
    let vertex_aux = whole(Submodel::VertexAux)?;
    let fragment_aux = whole(Submodel::FragmentAux)?;
    let commands = |submodel, aux, model: &Model| fit(submodel, &runs.visible_commands(submodel, aux, model));
    let vertex_commands = commands(Submodel::VertexCommands, Submodel::VertexAux, &vertex_aux.0)?;
    let fragment_commands = commands(Submodel::FragmentCommands, Submodel::FragmentAux, &fragment_aux.0)?;
    let texture = whole(Submodel::Texture)?;
    let all = [vertex_aux, vertex_commands, fragment_aux, fragment_commands, texture];
    let fits = all.each_ref().map(|(_, fit)| *fit);
    let models = all.map(|(model, _)| model);
    Ok((ShaderModels { gpu: gpu.to_owned(), driver: driver.to_owned(), models }, fits))
}

pub(super) fn fit(submodel: Submodel, rows: &Rows) -> Result<(Model, Fit), TrainingError> {
    let fail = |source| TrainingError { submodel, source };
    let samples = Samples::new(submodel.features().len(), &rows.features, &rows.responses).map_err(fail)?;
    let options = Options {
        degree: 2,
        threshold: THRESHOLD,
        max_terms: Some(TERMS_MAX),
        linear_only: submodel.linear_features().collect(),
        ..Options::default()
    };
    let trained = mars::train(&samples, &options).map_err(fail)?;
    Ok((trained.model, Fit { submodel, rows: samples.rows(), summary: trained.summary }))
}

/// By how much commands must exceed the auxiliary time to say something about themselves.
const CLEARLY: f64 = 1.2;
/// Smallest gain of R² that is worth a step.
const THRESHOLD: f64 = 1e-6;
/// Enough for features that matter, and few enough to be evaluated in a fraction of a microsecond.
const TERMS_MAX: usize = 101;
