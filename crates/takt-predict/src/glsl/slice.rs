//! The position slice: a program for the CPU that computes `gl_Position`.
//!
//! It has two parts. The prologue runs once per call and computes what is the same for all
//! vertices. The main part works on [`LANES`](super::limits::LANES) vertices side by side. If the
//! position is affine in one attribute, the main part is a single matrix product.

use super::affine::{self, AffineRow};
use super::code::{Code, Id, UniformRow};
use super::interface::Interface;
use super::live::{self, Live};
use super::op::Op;
use super::types::{Base, Scalar};

/// Why positions cannot be computed on the CPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotEvaluable {
    /// It depends on a texture.
    #[error("the position depends on a texture")]
    Texture,
    /// It depends on something that is never written, or that only the driver knows.
    #[error("the position depends on a value that is not known")]
    Unknown,
    /// The program is too large.
    #[error("the program for the position is too large")]
    TooLarge,
}

/// How positions depend on attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SliceShape {
    /// The same for all vertices.
    Constant,
    /// A matrix times one attribute, plus a vector: the corners of a box map to the corners of
    /// what the box maps to.
    Affine {
        /// Its place in [`PositionSlice::attributes`].
        attribute: usize,
    },
    /// Anything else.
    General,
}

/// An attribute that positions depend on; a matrix is one for each of its columns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SliceAttribute {
    /// Its name.
    pub name: String,
    /// AttributeColumn of a matrix or element of an array, 0 otherwise.
    pub column: u32,
    /// Components of the attribute's type.
    pub components: u32,
    /// Whether they are integers.
    pub integer: bool,
}

/// A program that computes positions.
#[derive(Clone, Debug)]
pub struct PositionSlice {
    pub(super) shape: SliceShape,
    pub(super) attributes: Vec<SliceAttribute>,
    /// Runs on single words; entry `n` makes word `n`.
    pub(super) prologue: Vec<SliceStep>,
    /// Words that the main part reads, and the registers they fill.
    pub(super) broadcast: Vec<(u32, u32)>,
    pub(super) main: Vec<SliceStep>,
    pub(super) registers: u32,
    pub(super) rows: Vec<UniformRow>,
    pub(super) loops: Vec<LoopSteps>,
    /// Registers of the result in the main part, or words of the factors.
    pub(super) result: Outcome,
    /// Words of uniforms that there must be.
    pub(super) words_needed: u32,
    uses_instance: bool,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Registers([u32; 4]),
    Factors([AffineRow; 4]),
}

/// An operation of the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SliceStep {
    pub(super) op: Op,
    pub(super) to: u32,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

/// Registers of a kept loop.
#[derive(Clone, Default, Debug)]
pub(super) struct LoopSteps {
    /// Where the loop's body starts in the main part.
    pub(super) body: usize,
    pub(super) carried: Vec<CarriedRegisters>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct CarriedRegisters {
    pub(super) phi: u32,
    pub(super) first: u32,
    pub(super) next: u32,
    pub(super) spare: u32,
}

impl PositionSlice {
    /// How positions depend on attributes.
    #[must_use]
    pub const fn shape(&self) -> SliceShape {
        self.shape
    }

    /// The attributes to hand to [`evaluate`](Self::evaluate), in this order.
    #[must_use]
    pub fn attributes(&self) -> &[SliceAttribute] {
        &self.attributes
    }

    /// Whether positions depend on `gl_InstanceID`.
    #[must_use]
    pub fn uses_instance(&self) -> bool {
        self.uses_instance
    }

    /// Notes what every call needs to know.
    fn summed_up(mut self) -> Self {
        let mut steps = self.prologue.iter().chain(&self.main);
        self.uses_instance = steps.any(|step| step.op == Op::InstanceIndex);
        self.words_needed = self.uniform_words().last().map_or(0, |words| words.end);
        self
    }

    /// Words of uniforms that positions depend on, as ranges within
    /// [`UniformValues`](super::UniformValues), in order.
    #[must_use]
    pub fn uniform_words(&self) -> Vec<std::ops::Range<u32>> {
        let read = self.prologue.iter().chain(&self.main).filter_map(|step| match step.op {
            Op::Uniform => Some(step.a..step.a + 1),
            Op::UniformAt => {
                let row = self.rows[step.b as usize];
                Some(row.first..row.first + row.stride * (row.length - 1) + 1)
            }
            _ => None,
        });
        super::ordered(read.collect())
    }

    /// Operations that run once per call, and once per vertex.
    #[must_use]
    pub fn steps(&self) -> (usize, usize) {
        (self.prologue.len(), self.main.len())
    }
}

/// Words of an attribute that make up one array of the caller.
struct AttributeColumn {
    words: std::ops::Range<u32>,
}

/// Makes the program for live code.
pub(super) fn compile(
    mut code: Code,
    live: &Live,
    position: [Id; 4],
    interface: &Interface,
) -> Result<PositionSlice, NotEvaluable> {
    refuse_unknown(&code, live)?;
    let (attributes, columns) = columns(&code, live, interface);
    if let [AttributeColumn { words }] = columns.as_slice() {
        let mark = code.mark();
        let factors = affine::factors(&mut code, live, position, words.clone());
        if let Some(rows) = factors.map_err(|_limit| NotEvaluable::TooLarge)? {
            return Ok(affine_slice(&code, rows, attributes));
        }
        code.rewind(mark);
    }
    let varying = varying(&code, live);
    let mut compiler = Compiler {
        code: &code,
        live,
        words: vec![u32::MAX; code.len()],
        registers: vec![u32::MAX; code.len()],
        last_use: last_uses(&code, live, position),
        free: Vec::new(),
        slice: PositionSlice {
            shape: if columns.is_empty() { SliceShape::Constant } else { SliceShape::General },
            attributes,
            prologue: Vec::new(),
            broadcast: Vec::new(),
            main: Vec::new(),
            registers: 0,
            rows: code.rows.clone(),
            loops: vec![LoopSteps::default(); code.loops.len()],
            result: Outcome::Registers([0; 4]),
            words_needed: 0,
            uses_instance: false,
        },
    };
    compiler.prologue(|id| live.instrs[id as usize] && !varying[id as usize]);
    compiler.main(&varying, &columns);
    compiler.slice.result = Outcome::Registers(position.map(|id| compiler.register(id)));
    Ok(compiler.slice.summed_up())
}

fn refuse_unknown(code: &Code, live: &Live) -> Result<(), NotEvaluable> {
    let mut unknown = false;
    for (instr, _) in code.instrs.iter().zip(&live.instrs).filter(|(_, live)| **live) {
        match instr.op {
            Op::Texture | Op::Component => return Err(NotEvaluable::Texture),
            Op::Opaque | Op::Derivative | Op::Input => unknown = true,
            _ => {}
        }
    }
    if unknown { Err(NotEvaluable::Unknown) } else { Ok(()) }
}

fn columns(code: &Code, live: &Live, interface: &Interface) -> (Vec<SliceAttribute>, Vec<AttributeColumn>) {
    let mut used: Vec<u32> = Vec::new();
    for (instr, _) in code.instrs.iter().zip(&live.instrs).filter(|(_, live)| **live) {
        if instr.op == Op::Attribute {
            used.push(instr.a);
        }
    }
    used.sort_unstable();
    let (mut attributes, mut columns) = (Vec::new(), Vec::new());
    for variable in &interface.inputs {
        let Base::Number { scalar, rows, .. } = variable.ty.base else {
            continue;
        };
        let (integer, rows) = (scalar != Scalar::Float, u32::from(rows));
        for column in 0..variable.scalars / rows {
            let first = variable.first + column * rows;
            let at = used.partition_point(|word| *word < first);
            if used.get(at).is_some_and(|word| *word < first + rows) {
                let name = variable.name.clone();
                attributes.push(SliceAttribute { name, column, components: rows, integer });
                columns.push(AttributeColumn { words: first..first + rows });
            }
        }
    }
    (attributes, columns)
}

fn affine_slice(code: &Code, rows: [AffineRow; 4], attributes: Vec<SliceAttribute>) -> PositionSlice {
    let wanted: Vec<Id> = rows.iter().flatten().copied().collect();
    let live = live::live(code, &wanted);
    let mut compiler = Compiler {
        code,
        live: &live,
        words: vec![u32::MAX; code.len()],
        registers: Vec::new(),
        last_use: Vec::new(),
        free: Vec::new(),
        slice: PositionSlice {
            shape: SliceShape::Affine { attribute: 0 },
            attributes,
            prologue: Vec::new(),
            broadcast: Vec::new(),
            main: Vec::new(),
            registers: 0,
            rows: code.rows.clone(),
            loops: Vec::new(),
            result: Outcome::Factors(rows),
            words_needed: 0,
            uses_instance: false,
        },
    };
    compiler.prologue(|id| live.instrs[id as usize]);
    let words = &compiler.words;
    let rows = rows.map(|row| row.map(|id| words[id as usize]));
    compiler.slice.result = Outcome::Factors(rows);
    compiler.slice.summed_up()
}

/// Which live instructions differ between vertices; all within kept loops count as such.
fn varying(code: &Code, live: &Live) -> Vec<bool> {
    let mut varying = vec![false; code.len()];
    let mut depth = 0_usize;
    for (id, instr) in (0_u32..).zip(&code.instrs) {
        match instr.op {
            Op::LoopBegin => depth += 1,
            Op::LoopEnd => depth -= 1,
            _ => {}
        }
        let mut differs = depth > 0 || matches!(instr.op, Op::Attribute | Op::VertexIndex | Op::Phi);
        live::operands(code, id, |operand| differs |= varying[operand as usize]);
        // Constants in a loop are still constants.
        varying[id as usize] =
            live.instrs[id as usize] && differs && !matches!(instr.op, Op::Const | Op::Uniform);
    }
    varying
}

/// For each instruction the last one that reads it. What a loop reads lives to the loop's end,
/// and so do the loop's own carried values.
fn last_uses(code: &Code, live: &Live, position: [Id; 4]) -> Vec<u32> {
    let end_of_code = u32::try_from(code.len()).unwrap_or(u32::MAX);
    let mut last = vec![0_u32; code.len()];
    // Innermost loops last; the end of the outermost one that starts after the value decides.
    let mut ends: std::collections::BTreeMap<u32, u32> = std::collections::BTreeMap::new();
    let mut open = Vec::new();
    for (id, instr) in (0_u32..).zip(&code.instrs) {
        match instr.op {
            Op::LoopBegin => open.push(id),
            Op::LoopEnd => ends.extend(open.pop().map(|begin| (begin, id))),
            _ => {}
        }
    }
    let mut enclosing: Vec<(u32, u32)> = Vec::new();
    for (id, _) in (0_u32..).zip(&code.instrs) {
        if code.instr(id).op == Op::LoopBegin
            && let Some(end) = ends.get(&id)
        {
            enclosing.push((id, *end));
        }
        enclosing.retain(|(_, end)| *end >= id);
        if live.instrs[id as usize] {
            live::operands(code, id, |operand| {
                let outer = enclosing.iter().find(|(begin, _)| *begin > operand);
                let until = outer.map_or(id, |(_, end)| *end);
                last[operand as usize] = last[operand as usize].max(until);
            });
        }
    }
    for (info, _) in code.loops.iter().zip(&live.loops).filter(|(_, live)| **live) {
        for carried in &info.carried {
            // Simple and safe: these stay for good.
            for id in [carried.phi, carried.first, carried.next] {
                last[id as usize] = end_of_code;
            }
        }
    }
    for id in position {
        last[id as usize] = end_of_code;
    }
    last
}

struct Compiler<'a> {
    code: &'a Code,
    live: &'a Live,
    /// The prologue's word of each instruction.
    words: Vec<u32>,
    /// The main part's register of each instruction.
    registers: Vec<u32>,
    last_use: Vec<u32>,
    free: Vec<u32>,
    slice: PositionSlice,
}

impl Compiler<'_> {
    fn prologue(&mut self, wanted: impl Fn(Id) -> bool) {
        for (id, instr) in (0_u32..).zip(&self.code.instrs) {
            if !wanted(id) {
                continue;
            }
            let to = u32::try_from(self.slice.prologue.len()).unwrap_or(u32::MAX);
            let [a, b, c] = self.translate(*instr, |compiler, operand| compiler.words[operand as usize]);
            self.words[id as usize] = to;
            self.slice.prologue.push(SliceStep { op: instr.op, to, a, b, c });
        }
    }

    /// An instruction's numbers, with those that are values replaced.
    fn translate(&mut self, instr: super::code::Instr, place: impl Fn(&mut Self, Id) -> u32) -> [u32; 3] {
        let mut numbers = [instr.a, instr.b, instr.c];
        for number in numbers.iter_mut().take(instr.op.operands()) {
            *number = place(self, *number);
        }
        numbers
    }

    fn new_register(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slice.registers += 1;
            self.slice.registers - 1
        })
    }

    /// The register of a value; one from the prologue gets its own on first use.
    fn register(&mut self, id: Id) -> u32 {
        if self.registers[id as usize] == u32::MAX {
            self.slice.registers += 1;
            let register = self.slice.registers - 1;
            self.registers[id as usize] = register;
            self.slice.broadcast.push((self.words[id as usize], register));
        }
        self.registers[id as usize]
    }

    fn main(&mut self, varying: &[bool], columns: &[AttributeColumn]) {
        // Registers by the instruction after which they are free.
        let mut expiring: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
        for (id, instr) in (0_u32..).zip(&self.code.instrs) {
            match instr.op {
                Op::LoopBegin | Op::LoopEnd if self.live.loops[instr.a as usize] => self.loop_marker(*instr),
                _ if varying[id as usize] && instr.op != Op::Phi => {
                    let [mut a, mut b, c] = self.translate(*instr, Self::register);
                    if instr.op == Op::Attribute {
                        let place = columns.iter().position(|column| column.words.contains(&instr.a));
                        let column = place.unwrap_or(0);
                        a = u32::try_from(column).unwrap_or(0);
                        b = columns.get(column).map_or(0, |column| instr.a - column.words.start);
                    }
                    let to = self.new_register();
                    self.registers[id as usize] = to;
                    self.slice.main.push(SliceStep { op: instr.op, to, a, b, c });
                    expiring.entry(self.last_use[id as usize]).or_default().push(to);
                }
                _ => {}
            }
            while let Some(entry) = expiring.first_entry().filter(|entry| *entry.key() <= id) {
                self.free.extend(entry.remove());
            }
        }
    }

    fn loop_marker(&mut self, instr: super::code::Instr) {
        let number = instr.a as usize;
        let step = SliceStep { op: instr.op, to: 0, a: instr.a, b: 0, c: 0 };
        let (code, live) = (self.code, self.live);
        // The first one says who runs on, and is live whenever the loop is.
        let carried = code.loops[number].carried.iter().filter(|carried| live.instrs[carried.phi as usize]);
        if instr.op == Op::LoopBegin {
            for carried in carried {
                let first = self.register(carried.first);
                self.slice.registers += 2;
                let (phi, spare) = (self.slice.registers - 2, self.slice.registers - 1);
                self.registers[carried.phi as usize] = phi;
                self.slice.loops[number].carried.push(CarriedRegisters { phi, first, next: 0, spare });
            }
            self.slice.main.push(step);
            self.slice.loops[number].body = self.slice.main.len();
        } else {
            for (index, carried) in carried.enumerate() {
                let next = self.register(carried.next);
                self.slice.loops[number].carried[index].next = next;
            }
            self.slice.main.push(step);
        }
    }
}
