//! Time per vertex and per fragment of a program, by either of two models.
//!
//! `profiled` measures each program once, where nothing else runs; here is the arithmetic that
//! turns these measurements into rates. `mars` predicts the parts of a rate from features of
//! the source, in [`shaders`](crate::shaders); here is how parts make a rate.

use std::hash::Hasher as _;

use crate::profile::Profile;
use crate::table::{Mixer, Table};

/// Names a program: a hash of its sources, equal for equal programs.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct ProgramId(
    /// The hash.
    pub u64,
);

impl ProgramId {
    /// The name of what these sources make. Files have it, so it must not change.
    pub fn of(vertex: &str, fragment: &str) -> Self {
        let mut hasher = Mixer(0);
        for source in [vertex, fragment] {
            for chunk in source.as_bytes().chunks(8) {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                hasher.write_u64(u64::from_le_bytes(word));
            }
            hasher.write_u64(source.len() as u64);
        }
        Self(hasher.finish())
    }
}

impl ProgramId {
    /// The name of what the source of a compute shader makes.
    pub fn of_compute(source: &str) -> Self {
        Self::of(source, "compute")
    }
}

/// Time per instance of each stage, in nanoseconds.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct ShaderRates {
    /// Per vertex.
    pub vertex_ns: f64,
    /// Per fragment.
    pub fragment_ns: f64,
}

/// What happens to fragments after shading.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct FragmentState {
    /// Whether the depth test is enabled.
    pub depth: bool,
    /// Whether blending is enabled.
    pub blend: bool,
}

/// Size of a texture that is bound where the program looks something up.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct TextureSize {
    /// Width in texels.
    pub width: u32,
    /// Height in texels.
    pub height: u32,
}

/// What the cost of a program depends on.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ShaderContext<'a> {
    /// Which program.
    pub program: ProgramId,
    /// What happens after it.
    pub state: FragmentState,
    /// Its textures, in the order of its samplers.
    pub textures: &'a [TextureSize],
}

/// Knows what programs cost.
pub trait ShaderCost {
    /// Rates of a program; none if it is unknown to this model.
    fn rates(&self, shader: &ShaderContext<'_>) -> Option<ShaderRates>;
}

/// The parts that a rate is made of, in nanoseconds per instance.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct StageParts {
    /// Fetching inputs, assembling primitives; interpolating, testing and blending.
    pub aux_ns: f64,
    /// Executing the shader.
    pub commands_ns: f64,
    /// Waiting for textures.
    pub texture_ns: f64,
}

impl StageParts {
    /// Fetching and executing overlap, so the longer one counts.
    pub fn rate_ns(&self) -> f64 {
        self.aux_ns.max(self.commands_ns + self.texture_ns)
    }
}

/// What a profiling run of one stage measured, over all its groups.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ProfilingRun {
    /// Time of all groups together.
    pub total_ns: f64,
    /// Command groups that were executed; drivers may cut one in two.
    pub groups: u64,
    /// Draw calls.
    pub draws: u64,
    /// Triangles of all draws together.
    pub triangles: u64,
}

impl ProfilingRun {
    /// Time without what is not the shader's.
    fn shader_ns(&self, profile: &Profile) -> f64 {
        self.total_ns - self.groups as f64 * profile.flush_ns - self.draws as f64 * profile.draw_ns
    }
}

impl ShaderRates {
    /// Rates from a run of triangles without fragments, and from one of triangles that each
    /// cover half a target of `target_pixels` (thesis, equations 3.10 and 3.11; there the draws'
    /// share of the second one is added instead of taken off, by a slip of the sign).
    pub fn profiled(
        vertex: &ProfilingRun,
        fragment: &ProfilingRun,
        target_pixels: u64,
        profile: &Profile,
    ) -> Self {
        let vertices = |run: &ProfilingRun| run.triangles as f64 * 3.0;
        let vertex_ns = rate(vertex.shader_ns(profile), vertices(vertex));
        let rest = fragment.shader_ns(profile) - vertices(fragment) * vertex_ns;
        let fragments = fragment.triangles as f64 * target_pixels as f64 / 2.0;
        Self { vertex_ns, fragment_ns: rate(rest, fragments) }
    }
}

/// Time per instance. Noise can leave less than nothing of a cheap shader.
fn rate(total_ns: f64, instances: f64) -> f64 {
    let rate = total_ns / instances;
    if rate.is_finite() { rate.max(0.0) } else { 0.0 }
}

/// The programs that were profiled.
#[derive(Clone, Debug)]
pub struct ProfiledShaders {
    rates: Table<ProgramId, Option<ShaderRates>>,
    depth_ns: f64,
    blend_ns: f64,
}

impl ProfiledShaders {
    /// Knows no program yet, and keeps `programs` of them.
    pub fn new(profile: &Profile, programs: usize) -> Self {
        let (depth_ns, blend_ns) = (profile.depth_ns, profile.blend_ns);
        Self { rates: Table::new(programs, &None), depth_ns, blend_ns }
    }

    /// Keeps the rates of a program.
    pub fn insert(&mut self, program: ProgramId, rates: ShaderRates) {
        *self.rates.entry(&program).0 = Some(rates);
    }
}

impl ShaderCost for ProfiledShaders {
    fn rates(&self, shader: &ShaderContext<'_>) -> Option<ShaderRates> {
        let rates = (*self.rates.peek(&shader.program)?)?;
        let depth = if shader.state.depth { self.depth_ns } else { 0.0 };
        let blend = if shader.state.blend { self.blend_ns } else { 0.0 };
        Some(ShaderRates { fragment_ns: rates.fragment_ns + depth + blend, ..rates })
    }
}
