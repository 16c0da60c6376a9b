//! Runs a position slice over vertices.

use super::affine::AffineRow;
use super::code::UniformRow;
use super::limits::{EVALUATION_STEPS_MAX, LANES};
use super::op::{Op, apply};
use super::slice::{LoopSteps, Outcome, PositionSlice, SliceStep};
use super::values::{AttributeArray, AttributeData, UniformValues};

/// What positions are computed from.
#[derive(Clone, Copy, Debug)]
pub struct VertexInputs<'a> {
    /// The program's uniforms.
    pub uniforms: &'a UniformValues,
    /// One array per entry of [`PositionSlice::attributes`], in that order.
    pub attributes: &'a [AttributeArray<'a>],
    /// `gl_VertexID` of each vertex.
    pub ids: VertexIds<'a>,
    /// `gl_InstanceID` of all of them.
    pub instance: u32,
}

/// Numbers of vertices, as `gl_VertexID` gives them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VertexIds<'a> {
    /// One after the other.
    From(u32),
    /// One for each vertex; vertices beyond the end have the number 0.
    Each(&'a [u32]),
}

impl VertexIds<'_> {
    fn of(self, vertex: usize) -> u32 {
        match self {
            Self::From(first) => first.wrapping_add(u32::try_from(vertex).unwrap_or(0)),
            Self::Each(ids) => ids.get(vertex).copied().unwrap_or(0),
        }
    }
}

/// Memory for evaluation, to be used again: once it has grown to fit, no call allocates.
#[derive(Clone, Default, Debug)]
pub struct Scratch {
    words: Vec<u32>,
    registers: Vec<[u32; LANES]>,
}

/// Operations that evaluations may still take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget(u32);

impl Default for Budget {
    fn default() -> Self {
        Self(EVALUATION_STEPS_MAX)
    }
}

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), EvaluateError> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        self.0 = self.0.checked_sub(steps).ok_or(EvaluateError::TooLong)?;
        Ok(())
    }
}

/// Why positions were not computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvaluateError {
    /// Another number of attributes than [`PositionSlice::attributes`] lists.
    #[error("wrong number of attributes")]
    Attributes,
    /// An attribute's array ends before the last vertex.
    #[error("attribute {0} has too few vertices")]
    ShortArray(usize),
    /// The uniforms are those of another shader.
    #[error("wrong uniforms")]
    Uniforms,
    /// It would take more than [`EVALUATION_STEPS_MAX`] operations: a loop runs too long, or the
    /// shader is too large for so many vertices.
    #[error("the evaluation takes too long")]
    TooLong,
}

impl PositionSlice {
    /// Computes `gl_Position` of as many vertices as `positions` has room for.
    ///
    /// # Errors
    ///
    /// If the inputs do not fit the shader, or it would take too long.
    pub fn evaluate(
        &self,
        draw: &VertexInputs<'_>,
        scratch: &mut Scratch,
        positions: &mut [[f32; 4]],
    ) -> Result<(), EvaluateError> {
        self.evaluate_within(&mut Budget::default(), draw, scratch, positions)
    }

    /// The same for one of several calls that may take so long together.
    pub(crate) fn evaluate_within(
        &self,
        budget: &mut Budget,
        draw: &VertexInputs<'_>,
        scratch: &mut Scratch,
        positions: &mut [[f32; 4]],
    ) -> Result<(), EvaluateError> {
        if draw.attributes.len() != self.attributes.len() {
            return Err(EvaluateError::Attributes);
        }
        if let Some(short) = draw.attributes.iter().position(|array| !array.covers(positions.len())) {
            return Err(EvaluateError::ShortArray(short));
        }
        self.check_uniforms(draw.uniforms)?;
        budget.spend(self.prologue.len())?;
        self.run_prologue(draw.uniforms, draw.instance, scratch);
        match self.result {
            Outcome::Factors(rows) => {
                transform(&columns(&rows, scratch), draw.attributes.first(), positions);
                Ok(())
            }
            Outcome::Registers(result) => self.run_main(budget, draw, scratch, result, positions),
        }
    }

    /// The columns of the matrix, and the vector behind them, if the position is
    /// [`SliceShape::Affine`](super::SliceShape::Affine): for many calls with the same uniforms.
    ///
    /// # Errors
    ///
    /// If the uniforms are those of another shader.
    pub fn matrix(
        &self,
        uniforms: &UniformValues,
        scratch: &mut Scratch,
    ) -> Result<Option<[[f32; 4]; 5]>, EvaluateError> {
        let Outcome::Factors(rows) = self.result else { return Ok(None) };
        self.check_uniforms(uniforms)?;
        self.run_prologue(uniforms, 0, scratch);
        Ok(Some(columns(&rows, scratch)))
    }

    fn check_uniforms(&self, uniforms: &UniformValues) -> Result<(), EvaluateError> {
        if self.words_needed as usize <= uniforms.words.len() { Ok(()) } else { Err(EvaluateError::Uniforms) }
    }

    fn run_prologue(&self, uniforms: &UniformValues, instance: u32, scratch: &mut Scratch) {
        scratch.words.clear();
        let uniforms = &uniforms.words;
        for step in &self.prologue {
            let word = |number: u32| scratch.words.get(number as usize).copied().unwrap_or(0);
            let value = match step.op {
                Op::Const => step.a,
                Op::Uniform => uniforms[step.a as usize],
                Op::InstanceIndex => instance,
                Op::UniformAt => choose_uniform(&self.rows[step.b as usize], uniforms, word(step.a)),
                op => apply(op, word(step.a), word(step.b), word(step.c)),
            };
            scratch.words.push(value);
        }
    }

    fn run_main(
        &self,
        budget: &mut Budget,
        draw: &VertexInputs<'_>,
        scratch: &mut Scratch,
        result: [u32; 4],
        positions: &mut [[f32; 4]],
    ) -> Result<(), EvaluateError> {
        let wanted = self.registers as usize;
        if scratch.registers.len() < wanted {
            scratch.registers.resize(wanted, [0; LANES]);
        }
        for (word, register) in &self.broadcast {
            scratch.registers[*register as usize] = [scratch.words[*word as usize]; LANES];
        }
        for (block, positions) in positions.chunks_mut(LANES).enumerate() {
            let lanes = VertexBlock { draw, first: block * LANES, vertices: positions.len() };
            self.run_block(&lanes, &mut scratch.registers, budget)?;
            for (component, register) in result.iter().enumerate() {
                let values = &scratch.registers[*register as usize];
                for (position, value) in positions.iter_mut().zip(values) {
                    position[component] = f32::from_bits(*value);
                }
            }
        }
        Ok(())
    }

    fn run_block(
        &self,
        block: &VertexBlock<'_>,
        registers: &mut [[u32; LANES]],
        budget: &mut Budget,
    ) -> Result<(), EvaluateError> {
        let mut at = 0;
        while let Some(step) = self.main.get(at) {
            at += 1;
            budget.spend(1)?;
            match step.op {
                Op::LoopBegin => {
                    for carried in &self.loops[step.a as usize].carried {
                        registers[carried.spare as usize] = registers[carried.first as usize];
                    }
                    advance(&self.loops[step.a as usize], registers);
                }
                Op::LoopEnd => {
                    let info = &self.loops[step.a as usize];
                    for carried in &info.carried {
                        registers[carried.spare as usize] = registers[carried.next as usize];
                    }
                    if advance(info, registers) {
                        at = info.body;
                    }
                }
                _ => self.run_step(step, block, registers),
            }
        }
        Ok(())
    }

    fn run_step(&self, step: &SliceStep, block: &VertexBlock<'_>, registers: &mut [[u32; LANES]]) {
        let to = step.to as usize;
        match step.op {
            Op::Attribute => {
                let mut lanes = [0; LANES];
                let array = &block.draw.attributes[step.a as usize];
                array.gather(block.first, block.vertices, step.b as usize, &mut lanes);
                registers[to] = lanes;
            }
            Op::VertexIndex => {
                for (vertex, value) in (block.first..).zip(&mut registers[to]) {
                    *value = block.draw.ids.of(vertex);
                }
            }
            Op::UniformAt => {
                let index = registers[step.a as usize];
                let row = &self.rows[step.b as usize];
                for (value, index) in registers[to].iter_mut().zip(index) {
                    *value = choose_uniform(row, &block.draw.uniforms.words, index);
                }
            }
            _ => compute(step, registers),
        }
    }
}

/// Vertices that are computed side by side.
struct VertexBlock<'a> {
    draw: &'a VertexInputs<'a>,
    first: usize,
    vertices: usize,
}

/// Moves on to the next iteration, if a vertex wants one.
fn advance(info: &LoopSteps, registers: &mut [[u32; LANES]]) -> bool {
    for carried in &info.carried {
        registers[carried.phi as usize] = registers[carried.spare as usize];
    }
    let active = info.carried.first().map(|active| &registers[active.phi as usize]);
    active.is_some_and(|lanes| lanes.iter().any(|lane| *lane != 0))
}

/// A subscript out of bounds is undefined; the nearest element is as good as any.
fn choose_uniform(row: &UniformRow, words: &[u32], index: u32) -> u32 {
    let index = if index.cast_signed() < 0 { 0 } else { index.min(row.length - 1) };
    words.get((row.first + index * row.stride) as usize).copied().unwrap_or(0)
}

/// The factors of an affine position, by columns.
fn columns(rows: &[AffineRow; 4], scratch: &Scratch) -> [[f32; 4]; 5] {
    let value = |word: u32| f32::from_bits(scratch.words[word as usize]);
    std::array::from_fn(|column| rows.map(|row| value(row[column])))
}

/// Positions that are a matrix times an attribute.
fn transform(columns: &[[f32; 4]; 5], array: Option<&AttributeArray<'_>>, positions: &mut [[f32; 4]]) {
    match array {
        Some(AttributeArray { data: AttributeData::Floats(data), stride, components: 3 }) if *stride >= 3 => {
            for (position, vertex) in positions.iter_mut().zip(data.chunks(*stride)) {
                let [x, y, z] = [vertex[0], vertex[1], vertex[2]];
                *position = combine(columns, [x, y, z, 1.0]);
            }
        }
        Some(array) => {
            let mut lanes = [[0_u32; 1]; 4];
            for (vertex, position) in positions.iter_mut().enumerate() {
                for (component, lane) in lanes.iter_mut().enumerate() {
                    array.gather(vertex, 1, component, lane);
                }
                *position = combine(columns, lanes.map(|[bits]| f32::from_bits(bits)));
            }
        }
        None => positions.fill(columns[4]),
    }
}

/// A missing component has the factor 0 in a shader that does not read it, so 1 does no harm there.
#[inline(always)]
fn combine(columns: &[[f32; 4]; 5], vertex: [f32; 4]) -> [f32; 4] {
    let mut position = columns[4];
    for (column, factor) in columns.iter().zip(vertex) {
        for (component, value) in position.iter_mut().zip(column) {
            *component += value * factor;
        }
    }
    position
}

/// Expands to one loop per operation, each of which the compiler can turn into vector code.
macro_rules! compute_ops {
    ($step:ident, $registers:ident, $($op:ident)*) => {
        match $step.op {
            $(Op::$op => lanes($step, $registers, |a, b, c| apply(Op::$op, a, b, c)),)*
            _ => {}
        }
    };
}

fn compute(step: &SliceStep, registers: &mut [[u32; LANES]]) {
    compute_ops!(step, registers,
        FAdd FSub FMul FDiv FNeg FAbs FSign FFloor FCeil FTrunc FRoundEven FFract FMod FMin FMax FSqrt
        FInverseSqrt FExp FLog FExp2 FLog2 FPow FSin FCos FTan FAsin FAcos FAtan FAtan2 FSinh FCosh FTanh
        FAsinh FAcosh FAtanh FIsNan FIsInf FLess FLessEqual FEqual BAdd BSub BMul IDiv UDiv IRem URem BNeg
        IAbs ISign IMin IMax UMin UMax BShl IShr UShr BAnd BOr BXor BNot ILess ILessEqual ULess ULessEqual
        BEqual FToInt FToUint IToFloat UToFloat Select);
}

#[inline(always)]
fn lanes(step: &SliceStep, registers: &mut [[u32; LANES]], operation: impl Fn(u32, u32, u32) -> u32) {
    let operands = step.op.operands();
    let pick = |number: u32, used: bool| &registers[if used { number as usize } else { step.to as usize }];
    let (a, b, c) = (pick(step.a, operands > 0), pick(step.b, operands > 1), pick(step.c, operands > 2));
    let mut result = [0; LANES];
    for lane in 0..LANES {
        result[lane] = operation(a[lane], b[lane], c[lane]);
    }
    registers[step.to as usize] = result;
}
