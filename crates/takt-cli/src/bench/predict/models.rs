//! Shader models of ordinary size, trained on a GPU that is made up.

use takt_predict::cost::{FragmentState, TextureSize};
use takt_predict::glsl::{OpCounts, Sizes};
use takt_predict::shaders::{
    ProgramFeatures, Run, ShaderModels, StageFeatures, TrainingError, TrainingSet, train,
};

/// Runs of each kind.
const RUNS: u64 = 1_000;

/// Trains all five models.
pub(super) fn trained() -> Result<ShaderModels, TrainingError> {
    let mut random = Random(3);
    let mut runs = TrainingSet::default();
    for _ in 0..RUNS {
        let features = ProgramFeatures { vertex: random.stage(), fragment: random.stage() };
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
        let state = FragmentState { depth: random.below(2) == 0, blend: random.below(2) == 0 };
        let blending = f64::from(u8::from(state.blend)) * 1.3;
        runs.push(&Run::VertexAux { features, ns: aux(&features.vertex) * random.noise() });
        runs.push(&Run::FragmentAux {
            features,
            state,
            ns: aux(&features.fragment) * random.noise() + blending,
        });
        runs.push(&Run::VertexCommands { features, ns: commands(&features.vertex) * random.noise() });
        runs.push(&Run::FragmentCommands { features, ns: commands(&features.fragment) * random.noise() });
        let (lookups, side) = (1 + random.below(4), 1 << random.below(12));
        let size = TextureSize { width: side, height: 1 << random.below(12) };
        let log = (f64::from(size.width) * f64::from(size.height)).ln();
        let ns = f64::from(lookups) * (0.1 * log + 0.4 * (log - 10.0).max(0.0)) * random.noise();
        runs.push(&Run::Texture { lookups, size, ns });
    }
    train("made up", "none", &runs).map(|(models, _)| models)
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(end)).unwrap_or(0)
    }

    /// Around 1, by up to two percent.
    fn noise(&mut self) -> f64 {
        0.98 + f64::from(self.below(4001)) / 100_000.0
    }

    fn stage(&mut self) -> StageFeatures {
        let mut sizes = || Sizes(std::array::from_fn(|_| self.below(4)));
        let [inputs, varyings] = [sizes(), sizes()];
        let scalar: [u64; 8] = std::array::from_fn(|_| u64::from(self.below(60)));
        let vector = scalar.map(|count| count / 3 + u64::from(self.below(4)));
        StageFeatures { inputs, varyings, operations: OpCounts { scalar, vector, ..OpCounts::default() } }
    }
}
