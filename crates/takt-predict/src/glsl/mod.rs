//! What can be learned from a shader's source before it runs.
//!
//! [`analyse`] reads GLSL ES 1.00 or 3.00 and gives a [`Shader`]: its interface, its operation
//! counts, and for vertex shaders the [`PositionSlice`], which computes `gl_Position` on the CPU.
//! Of compute shaders, [`effort`] says roughly how much one invocation does, and [`with_base`] makes a
//! shader that does a part of the workgroups.
//! The source is an allegation by an app: whatever it says, the answer is a value, found within
//! the bounds of [`limits`].
//!
//! ```text
//! source ─▶ token ─▶ preprocess ─▶ parser ─▶ lower ─▶ code ─┬▶ live ─▶ count
//!                                                           └▶ live ─▶ slice ─▶ evaluate
//! ```

mod affine;
mod ast;
mod block;
mod code;
mod condition;
mod count;
mod effort;
mod error;
mod evaluate;
mod grid;
mod interface;
pub mod limits;
mod live;
mod lower;
mod op;
mod parser;
mod preprocess;
mod slice;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod values;

pub use block::{BlockMember, MemberLayout};
pub use count::{CountTrust, Kind, OpCounts};
pub use effort::{Effort, effort};
pub use error::{ErrorKind, GlslError};
pub(crate) use evaluate::Budget;
pub use evaluate::{EvaluateError, Scratch, VertexIds, VertexInputs};
pub use grid::{Based, NotBased, with_base};
pub use interface::{Interface, Sampler, Sizes, Stage, Uniform, Variable};
pub use slice::{NotEvaluable, PositionSlice, SliceAttribute, SliceShape};
pub use types::{Base, Field, Scalar, Struct, Texture, Type};
pub use values::{AttributeArray, AttributeData, UniformData, UniformValues, Written};

use code::{Code, Id};
use live::Live;
use op::Op;

/// What an analysis needs to know besides the source.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Which part of the pipeline the shader is for.
    pub stage: Stage,
    /// Macros that stand for 1: the extensions that the driver offers, such as
    /// `GL_OES_standard_derivatives`.
    pub extensions: &'a [&'a str],
}

/// An analysed shader.
#[derive(Clone, Debug)]
pub struct Shader {
    /// Which part of the pipeline it is for.
    pub stage: Stage,
    /// 100 or 300.
    pub version: u32,
    /// What it takes and gives.
    pub interface: Interface,
    /// Operations of one instance.
    pub counts: OpCounts,
    /// What `gl_Position` depends on; none in a fragment shader, or if it is never written.
    pub position: Option<Position>,
}

/// How a vertex shader makes positions.
#[derive(Clone, Debug)]
pub struct Position {
    /// Operations that only the position needs.
    pub counts: OpCounts,
    /// The program that computes it, or why there is none.
    pub slice: Result<PositionSlice, NotEvaluable>,
}

impl Shader {
    /// Inputs by number of components: #A1 to #A4 of a vertex shader, #V1 to #V4 of a fragment shader.
    #[must_use]
    pub fn input_sizes(&self) -> Sizes {
        Sizes::of(&self.interface.inputs)
    }

    /// Outputs by number of components: #V1 to #V4 of a vertex shader.
    #[must_use]
    pub fn output_sizes(&self) -> Sizes {
        Sizes::of(&self.interface.outputs)
    }
}

/// Analyses a shader.
///
/// # Errors
///
/// Says what is wrong with the source, or which bound it reached.
pub fn analyse(source: &str, options: &Options<'_>) -> Result<Shader, GlslError> {
    let unit = preprocess::preprocess(source, options.extensions, preprocess::ANALYSED)?;
    let tree = parser::parse(&unit)?;
    let lowered = lower::lower(&unit, &tree, options.stage)?;
    let mut interface = lowered.interface;
    let whole = live::live(&lowered.code, &lowered.results);
    mark_active(&mut interface, &lowered.code, &whole);
    let counts = count::count(&lowered.code, &whole, &lowered.branches, lowered.facts);
    let position = lowered.position.map(|position| {
        let part = live::live(&lowered.code, &position);
        Position {
            counts: count::count(&lowered.code, &part, &lowered.branches, lowered.facts),
            slice: slice::compile(lowered.code, &part, position, &interface),
        }
    });
    Ok(Shader { stage: options.stage, version: unit.version, counts, interface, position })
}

/// Notes which inputs and uniforms the results depend on.
fn mark_active(interface: &mut Interface, code: &Code, live: &Live) {
    let instrs = code.instrs.iter().zip(&live.instrs).filter(|(_, live)| **live).map(|(instr, _)| instr);
    let (mut inputs, mut words) = (Vec::new(), Vec::new());
    for instr in instrs {
        match instr.op {
            Op::Attribute | Op::Input => inputs.push(instr.a..instr.a + 1),
            Op::Uniform => words.push(instr.a..instr.a + 1),
            Op::UniformAt => {
                let row = code.rows[instr.b as usize];
                words.push(row.first..row.first + row.stride * (row.length - 1) + 1);
            }
            _ => {}
        }
    }
    let inputs = ordered(inputs);
    let words = ordered(words);
    for variable in &mut interface.inputs {
        variable.active = touches(&inputs, variable.first..variable.first + variable.scalars);
    }
    for uniform in &mut interface.uniforms {
        uniform.active = touches(&words, uniform.first..uniform.first + uniform.words);
    }
}

type Ranges = Vec<std::ops::Range<Id>>;

/// Sorted and joined, so that a search can find the one that matters.
fn ordered(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Ranges = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn touches(ranges: &Ranges, wanted: std::ops::Range<Id>) -> bool {
    let at = ranges.partition_point(|range| range.end <= wanted.start);
    ranges.get(at).is_some_and(|range| range.start < wanted.end)
}
