//! Numbers that tell programs apart, as far as their cost is concerned.

use crate::cost::{FragmentState, TextureSize};
use crate::glsl::{Kind, OpCounts, Shader, Sizes};

/// Most features of a submodel.
pub const FEATURES_MAX: usize = 22;

/// One of the five models.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Submodel {
    /// Fetching attributes and assembling primitives, per vertex.
    VertexAux,
    /// Executing the vertex shader.
    VertexCommands,
    /// Interpolating varyings, depth test and blending, per fragment.
    FragmentAux,
    /// Executing the fragment shader.
    FragmentCommands,
    /// What lookups in a texture cost more than in one of a single texel, in both stages.
    Texture,
}

impl Submodel {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::VertexAux, Self::VertexCommands, Self::FragmentAux, Self::FragmentCommands, Self::Texture];

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::VertexAux => "vertex-aux",
            Self::VertexCommands => "vertex-commands",
            Self::FragmentAux => "fragment-aux",
            Self::FragmentCommands => "fragment-commands",
            Self::Texture => "texture",
        }
    }

    /// Names of its features, in the order of a row.
    pub const fn features(self) -> &'static [&'static str] {
        match self {
            Self::VertexAux => &VERTEX_AUX,
            Self::VertexCommands | Self::FragmentCommands => &COMMANDS,
            Self::FragmentAux => &FRAGMENT_AUX,
            Self::Texture => &TEXTURE,
        }
    }

    /// Features that a cost is linear in: numbers of operations, by all that was measured.
    pub(super) fn linear_features(self) -> std::ops::Range<usize> {
        match self {
            Self::VertexCommands | Self::FragmentCommands => SIZES..COMMANDS.len(),
            Self::VertexAux | Self::FragmentAux | Self::Texture => 0..0,
        }
    }
}

/// Features that describe a set of variables.
const SIZES: usize = 6;
const VERTEX_AUX: [&str; 12] = [
    "A1",
    "A2",
    "A3",
    "A4",
    "attributes",
    "attribute_floats",
    "V1",
    "V2",
    "V3",
    "V4",
    "varyings",
    "varying_floats",
];
const FRAGMENT_AUX: [&str; 8] = ["V1", "V2", "V3", "V4", "varyings", "varying_floats", "depth", "blend"];
#[rustfmt::skip]
const COMMANDS: [&str; 22] = [
    "V1", "V2", "V3", "V4", "varyings", "varying_floats",
    "alu", "mad", "special", "lookup", "compare", "select", "convert", "branch",
    "vector_alu", "vector_mad", "vector_special", "vector_lookup", "vector_compare", "vector_select",
    "vector_convert", "vector_branch",
];
const TEXTURE: [&str; 5] = ["lookups", "log_width", "log_height", "log_texels", "per_texel"];
const _: () = assert!(COMMANDS.len() <= FEATURES_MAX && VERTEX_AUX.len() <= FEATURES_MAX);

/// One stage of a program.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct StageFeatures {
    /// Attributes of a vertex shader, varyings of a fragment shader.
    pub inputs: Sizes,
    /// Varyings: what a vertex shader writes, what a fragment shader reads.
    pub varyings: Sizes,
    /// Operations of one instance.
    pub operations: OpCounts,
}

/// Both stages of a program.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct ProgramFeatures {
    /// The vertex shader.
    pub vertex: StageFeatures,
    /// The fragment shader.
    pub fragment: StageFeatures,
}

impl ProgramFeatures {
    /// Features of two shaders that make a program.
    pub fn of(vertex: &Shader, fragment: &Shader) -> Self {
        let [inputs, varyings] = [vertex.input_sizes(), vertex.output_sizes()];
        let vertex = StageFeatures { inputs, varyings, operations: vertex.counts };
        let varyings = fragment.input_sizes();
        let fragment = StageFeatures { inputs: varyings, varyings, operations: fragment.counts };
        Self { vertex, fragment }
    }

    /// The row of a submodel that does not look at textures.
    pub(super) fn row(&self, submodel: Submodel, state: FragmentState) -> Row {
        let mut row = Row::default();
        match submodel {
            Submodel::VertexAux => {
                row.add_sizes(self.vertex.inputs);
                row.add_sizes(self.vertex.varyings);
            }
            Submodel::VertexCommands => row.add_commands(&self.vertex),
            Submodel::FragmentAux => {
                row.add_sizes(self.fragment.varyings);
                row.add(f64::from(u8::from(state.depth)));
                row.add(f64::from(u8::from(state.blend)));
            }
            Submodel::FragmentCommands => row.add_commands(&self.fragment),
            Submodel::Texture => {}
        }
        row
    }
}

impl StageFeatures {
    /// Texture lookups of one instance.
    pub fn lookups(&self) -> f64 {
        count(self.operations.of(Kind::Texture))
    }
}

/// The row of lookups in a texture of some size.
pub(super) fn texture_row(lookups: f64, texture: TextureSize) -> Row {
    let [width, height] = [texture.width, texture.height].map(|side| f64::from(side.max(1)));
    let mut row = Row::default();
    for feature in [lookups, width.ln(), height.ln(), (width * height).ln(), (width * height).recip()] {
        row.add(feature);
    }
    row
}

/// A row of features, without memory of its own.
#[derive(Copy, Clone, Default, Debug)]
pub(super) struct Row {
    pub(super) values: [f64; FEATURES_MAX],
    len: usize,
}

impl Row {
    fn add(&mut self, value: f64) {
        self.values[self.len] = value;
        self.len += 1;
    }

    fn add_sizes(&mut self, sizes: Sizes) {
        sizes.0.iter().for_each(|count| self.add(f64::from(*count)));
        self.add(f64::from(sizes.count()));
        self.add(f64::from(sizes.floats()));
    }

    fn add_commands(&mut self, stage: &StageFeatures) {
        self.add_sizes(stage.varyings);
        stage.operations.scalar.iter().for_each(|number| self.add(count(*number)));
        stage.operations.vector.iter().for_each(|number| self.add(count(*number)));
    }
}

/// A number of operations. Hostile loops have any number of them; a cost beyond all bounds is
/// told just as well by a number that splines can multiply.
fn count(operations: u64) -> f64 {
    operations.min(OPERATIONS_MAX) as f64
}

const OPERATIONS_MAX: u64 = 1 << 40;
