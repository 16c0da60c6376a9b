//! Shader models of ordinary size, trained on a GPU that is made up.

use takt_predict::cost::{FragmentState, TextureSize};
use takt_predict::glsl::{OpCounts, Sizes};
use takt_predict::shaders::{
    ProgramFeatures, Run, ShaderModels, StageFeatures, TrainingError, TrainingSet, train,
};
use takt_rng::Rng;

/// Runs of each kind.
const RUNS: u64 = 1_000;

/// Trains all five models.
pub(super) fn trained() -> Result<ShaderModels, TrainingError> {
    let rng = &mut Rng::seeded(3);
    let mut runs = TrainingSet::default();
    for _ in 0..RUNS {
        let features = ProgramFeatures { vertex: stage(rng), fragment: stage(rng) };
        let aux = |stage: &StageFeatures| {
            let floats = f64::from(stage.varyings.floats());
            4.0 + 0.4 * floats + 0.9 * (floats - 9.0).max(0.0) + 0.3 * f64::from(stage.inputs.count())
        };
        let commands = |stage: &StageFeatures| {
            let prices = [0.1, 0.14, 0.6, 0.9, 0.12, 0.12, 0.2, 0.5];
            let sum: f64 =
                stage.operations.scalar.iter().zip(prices).map(|(count, ns)| *count as f64 * ns).sum();
            20.0 + sum * (1.0 + 0.02 * f64::from(stage.varyings.floats()))
        };
        let state = FragmentState { depth: rng.below(2) == 0, blend: rng.below(2) == 0 };
        let blending = f64::from(u8::from(state.blend)) * 1.3;
        runs.push(&Run::VertexAux { features, ns: aux(&features.vertex) * noise(rng) });
        runs.push(&Run::FragmentAux { features, state, ns: aux(&features.fragment) * noise(rng) + blending });
        runs.push(&Run::VertexCommands { features, ns: commands(&features.vertex) * noise(rng) });
        runs.push(&Run::FragmentCommands { features, ns: commands(&features.fragment) * noise(rng) });
        let (lookups, side) = (1 + rng.below(4), 1 << rng.below(12));
        let size = TextureSize { width: side, height: 1 << rng.below(12) };
        let log = (f64::from(size.width) * f64::from(size.height)).ln();
        let ns = f64::from(lookups) * (0.1 * log + 0.4 * (log - 10.0).max(0.0)) * noise(rng);
        runs.push(&Run::Texture { lookups, size, ns });
    }
    train("made up", "none", &runs).map(|(models, _)| models)
}

/// Around 1, by up to two percent.
fn noise(rng: &mut Rng) -> f64 {
    0.98 + 0.04 * rng.unit()
}

fn stage(rng: &mut Rng) -> StageFeatures {
    let mut sizes = || Sizes(std::array::from_fn(|_| rng.below(4)));
    let [inputs, varyings] = [sizes(), sizes()];
    let scalar: [u64; 8] = std::array::from_fn(|_| rng.between(0, 59));
    let vector = scalar.map(|count| count / 3 + rng.between(0, 3));
    StageFeatures { inputs, varyings, operations: OpCounts { scalar, vector, ..OpCounts::default() } }
}
