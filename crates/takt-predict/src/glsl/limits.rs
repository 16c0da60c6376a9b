//! Bounds of the shader front end.
//!
//! Shader source comes from the apps that are being judged, so nothing in it may decide how much
//! time or memory the analysis takes. Each bound has a name, and reaching it is a
//! [`ErrorKind::Limit`](super::ErrorKind::Limit) that carries this name, or a flag on the result
//! where an upper estimate is still of use.

/// Bytes of source text.
pub const SOURCE_BYTES_MAX: usize = 1 << 20;
/// Tokens of the source text, before macros are replaced.
pub const TOKENS_MAX: usize = 200_000;
/// Tokens that macro replacement may produce or look at, all told.
pub const EXPANSION_MAX: usize = 500_000;
/// Macros replaced within arguments of macros.
pub const MACRO_DEPTH_MAX: usize = 24;
/// `#if` within `#if`, and parentheses within its expression.
pub const CONDITION_DEPTH_MAX: usize = 48;
/// Nesting of expressions and statements in the source.
pub const NESTING_MAX: usize = 96;
/// Nesting of expressions, statements and calls during lowering, where calls add up.
pub const LOWERING_DEPTH_MAX: usize = 192;
/// Bytes of one name, which is what ES 3.00 grants.
pub const NAME_BYTES_MAX: usize = 1_024;
/// Structures within structures.
pub const STRUCT_DEPTH_MAX: u32 = 8;
/// Uniforms after structures are taken apart.
pub const UNIFORMS_MAX: usize = 4_096;
/// Scalars in one variable: 1024 matrices of 4×4.
pub const VARIABLE_SCALARS_MAX: u32 = 16_384;
/// Scalars in all variables together.
pub const SCALARS_MAX: usize = 131_072;
/// Instructions of a lowered shader.
pub const INSTRUCTIONS_MAX: usize = 131_072;
/// Steps of lowering: syntax nodes visited and scalars moved.
pub const STEPS_MAX: u64 = 3_000_000;
/// Iterations of a loop that are written out one after the other.
pub const UNROLL_TRIPS_MAX: u32 = 1_024;
/// The same for a loop whose condition is not a constant in each of them.
pub const UNROLL_UNSURE_TRIPS_MAX: u32 = 128;
/// Instructions that writing out one loop may add; beyond it, the loop is kept as a loop.
pub const UNROLL_INSTRUCTIONS_MAX: usize = 16_384;
/// Steps that writing out one loop may take.
pub const UNROLL_STEPS_MAX: u64 = 150_000;
/// Iterations of a loop that are counted; one that runs longer counts as never ending.
pub const TRIPS_COUNTED_MAX: u32 = 1 << 31;
/// Iterations assumed of a loop whose number of iterations the source does not tell.
pub const TRIPS_ASSUMED: u32 = 1_024;
/// Places that one store with computed subscripts may go to.
pub const PLACES_MAX: usize = 4_096;
/// Operations on [`LANES`] vertices that one call of evaluation may take, over all its loops, and
/// that all calls for one draw may.
pub const EVALUATION_STEPS_MAX: u32 = 1 << 20;
/// Vertices evaluated side by side.
pub const LANES: usize = 64;

const _: () = assert!(UNROLL_INSTRUCTIONS_MAX < INSTRUCTIONS_MAX);
const _: () = assert!(UNROLL_STEPS_MAX < STEPS_MAX);
const _: () = assert!(UNROLL_TRIPS_MAX <= TRIPS_COUNTED_MAX);
const _: () = assert!(VARIABLE_SCALARS_MAX as usize <= SCALARS_MAX);
