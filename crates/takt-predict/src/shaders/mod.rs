//! What programs cost, by models that were trained on other programs.
//!
//! Nothing has to run before a new program can be predicted: its sources are read, its features
//! are counted, and five regression splines (thesis, section 3.5.3) turn them into time. Fetching
//! and assembling go on while shader cores compute, so of both the longer one counts:
//!
//! ```text
//! vertex rate   = max(vertex-aux,   vertex-commands   + texture)
//! fragment rate = max(fragment-aux, fragment-commands + texture)
//! ```
//!
//! [`train`] makes [`ShaderModels`] from measured runs of generated programs, [`cross_validate`]
//! tells how good such models are for others, [`encode`] and
//! [`decode`] keep them in a file, and [`MarsShaders`] evaluates them as a
//! [`ShaderCost`](crate::cost::ShaderCost).

mod evaluate;
mod features;
mod file;
mod training;
mod validation;

pub use evaluate::MarsShaders;
pub use features::{FEATURES_MAX, ProgramFeatures, StageFeatures, Submodel};
pub use file::{BYTES_MAX, ShaderFileError, decode, encode};
pub use training::{Fit, Run, TrainingError, TrainingSet, train};
pub use validation::{Validation, cross_validate};

use crate::mars::Model;

/// Models of one GPU with one driver.
#[derive(Clone, PartialEq, Debug)]
pub struct ShaderModels {
    /// `GL_RENDERER`.
    pub gpu: String,
    /// `GL_VERSION`.
    pub driver: String,
    /// In the order of [`Submodel::ALL`]; each has the features of its submodel.
    models: [Model; 5],
}

impl ShaderModels {
    /// Models with the right features; none if one has others.
    pub fn new(gpu: String, driver: String, models: [Model; 5]) -> Option<Self> {
        let fits = |(submodel, model): (Submodel, &Model)| model.variables() == submodel.features().len();
        Submodel::ALL.into_iter().zip(&models).all(fits).then_some(Self { gpu, driver, models })
    }

    /// One of the models.
    pub fn model(&self, submodel: Submodel) -> &Model {
        &self.models[submodel as usize]
    }

    /// Nanoseconds per instance. Splines can dip below zero between the points they were trained
    /// on, and far outside they can be anything; a time is a number from zero up.
    fn part_ns(&self, submodel: Submodel, row: &[f64]) -> f64 {
        let ns = self.model(submodel).predict(&row[..submodel.features().len()]);
        if ns > 0.0 { ns.min(PART_NS_MAX) } else { 0.0 }
    }
}

/// One second per instance: whatever costs more is no shader.
const PART_NS_MAX: f64 = 1e9;
