//! Rates of known programs.

use super::features::{ProgramFeatures, Submodel, texture_row};
use super::{ShaderModels, StageFeatures};
use crate::cost::{FragmentState, ProgramId, ShaderContext, ShaderCost, ShaderRates, StageParts};
use crate::table::Table;

/// Trained models and the programs that they were applied to.
///
/// All that depends on a program alone is computed when it is linked. What is left for a draw is
/// the texture model; it allocates nothing.
#[derive(Clone, Debug)]
pub struct MarsShaders {
    models: ShaderModels,
    programs: Table<ProgramId, Option<Known>>,
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct Known {
    vertex: KnownStage,
    /// By depth test and blending.
    fragment: [KnownStage; 4],
}

#[derive(Copy, Clone, PartialEq, Debug)]
struct KnownStage {
    aux_ns: f64,
    commands_ns: f64,
    lookups: f64,
}

impl MarsShaders {
    /// Knows no program yet, and keeps `programs` of them.
    pub fn new(models: ShaderModels, programs: usize) -> Self {
        Self { models, programs: Table::new(programs, &None) }
    }

    /// The models.
    pub fn models(&self) -> &ShaderModels {
        &self.models
    }

    /// Applies the models to a program.
    pub fn insert(&mut self, program: ProgramId, features: &ProgramFeatures) {
        let stage = |aux: Submodel, commands: Submodel, stage: &StageFeatures, state| {
            let part = |submodel| self.models.part_ns(submodel, &features.row(submodel, state).values);
            KnownStage { aux_ns: part(aux), commands_ns: part(commands), lookups: stage.lookups() }
        };
        let state = FragmentState::default();
        let vertex = stage(Submodel::VertexAux, Submodel::VertexCommands, &features.vertex, state);
        let fragment = STATES
            .map(|state| stage(Submodel::FragmentAux, Submodel::FragmentCommands, &features.fragment, state));
        *self.programs.entry(&program).0 = Some(Known { vertex, fragment });
    }

    fn parts(&self, stage: &KnownStage, shader: &ShaderContext<'_>) -> StageParts {
        let texture_ns = if stage.lookups > 0.0 && !shader.textures.is_empty() {
            // Which sampler is looked up how often is not known; each gets its share.
            let cost =
                |texture| self.models.part_ns(Submodel::Texture, &texture_row(stage.lookups, texture).values);
            shader.textures.iter().copied().map(cost).sum::<f64>() / shader.textures.len() as f64
        } else {
            0.0
        };
        StageParts { aux_ns: stage.aux_ns, commands_ns: stage.commands_ns, texture_ns }
    }
}

impl ShaderCost for MarsShaders {
    fn rates(&self, shader: &ShaderContext<'_>) -> Option<ShaderRates> {
        let known = self.programs.peek(&shader.program)?.as_ref()?;
        let fragment = &known.fragment[number(shader.state)];
        let [vertex_ns, fragment_ns] =
            [&known.vertex, fragment].map(|stage| self.parts(stage, shader).rate_ns());
        Some(ShaderRates { vertex_ns, fragment_ns })
    }
}

const STATES: [FragmentState; 4] = [
    FragmentState { depth: false, blend: false },
    FragmentState { depth: true, blend: false },
    FragmentState { depth: false, blend: true },
    FragmentState { depth: true, blend: true },
];

/// Place of a state in [`STATES`].
fn number(state: FragmentState) -> usize {
    usize::from(state.depth) + 2 * usize::from(state.blend)
}
