//! Instructions, and the folding done while they are made.
//!
//! Each instruction makes one scalar and is known by its place. Equal instructions are made once,
//! constants are folded, and identities such as `x * 1` vanish at once. Loops that cannot be
//! written out stay as a pair of markers, with a table of the values they carry along.

use std::collections::BTreeMap;

use super::error::{GlslError, Result};
use super::limits::INSTRUCTIONS_MAX;
use super::op::{Op, apply, truth};

/// The place of an instruction, and so the scalar it makes.
pub(super) type Id = u32;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Instr {
    pub(super) op: Op,
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) c: u32,
}

/// A value that a loop hands from one iteration to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Carried {
    pub(super) phi: Id,
    pub(super) first: Id,
    pub(super) next: Id,
}

/// A loop that is not written out.
#[derive(Clone, Debug, Default)]
pub(super) struct LoopInfo {
    pub(super) carried: Vec<Carried>,
    /// Whether a lane runs on; also one of the carried values.
    pub(super) active: Option<Carried>,
    /// Iterations, or an assumed number of them.
    pub(super) trips: u32,
}

/// A row of uniforms that a computed subscript chooses from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct UniformRow {
    pub(super) first: u32,
    pub(super) stride: u32,
    pub(super) length: u32,
}

/// A lowered shader.
#[derive(Clone, Default, Debug)]
pub(super) struct Code {
    pub(super) instrs: Vec<Instr>,
    /// Which instructions came from one vector operation.
    pub(super) groups: Vec<u32>,
    pub(super) loops: Vec<LoopInfo>,
    pub(super) rows: Vec<UniformRow>,
    /// Operands of texture lookups and of other operations with many.
    pub(super) lists: Vec<Vec<Id>>,
    known: BTreeMap<Instr, Id>,
    group: u32,
}

/// How far code has come, to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    instrs: usize,
    loops: usize,
    rows: usize,
    lists: usize,
}

impl Code {
    pub(super) fn len(&self) -> usize {
        self.instrs.len()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            instrs: self.instrs.len(),
            loops: self.loops.len(),
            rows: self.rows.len(),
            lists: self.lists.len(),
        }
    }

    /// Forgets everything after the mark.
    pub(super) fn rewind(&mut self, mark: Mark) {
        self.instrs.truncate(mark.instrs);
        self.groups.truncate(mark.instrs);
        self.loops.truncate(mark.loops);
        self.rows.truncate(mark.rows);
        self.lists.truncate(mark.lists);
        self.forget(mark);
    }

    /// Keeps what came after the mark from being reused: it may not have run.
    pub(super) fn forget(&mut self, mark: Mark) {
        self.known.retain(|_, id| (*id as usize) < mark.instrs);
    }

    /// Starts a vector operation: what is made up to the next start belongs together.
    pub(super) fn begin_group(&mut self) {
        self.group += 1;
    }

    pub(super) fn instr(&self, id: Id) -> Instr {
        self.instrs[id as usize]
    }

    pub(super) fn constant(&self, id: Id) -> Option<u32> {
        let instr = self.instr(id);
        (instr.op == Op::Const).then_some(instr.a)
    }

    /// Adds an instruction even if there is an equal one.
    pub(super) fn push(&mut self, op: Op, a: u32, b: u32, c: u32) -> Result<Id> {
        if self.instrs.len() >= INSTRUCTIONS_MAX {
            return Err(GlslError::limit(0, "INSTRUCTIONS_MAX"));
        }
        let id = u32::try_from(self.instrs.len()).unwrap_or(u32::MAX);
        self.instrs.push(Instr { op, a, b, c });
        self.groups.push(self.group);
        Ok(id)
    }

    fn reuse(&mut self, op: Op, a: u32, b: u32, c: u32) -> Result<Id> {
        let key = Instr { op, a, b, c };
        if let Some(id) = self.known.get(&key) {
            return Ok(*id);
        }
        let id = self.push(op, a, b, c)?;
        self.known.insert(key, id);
        Ok(id)
    }

    pub(super) fn bits(&mut self, bits: u32) -> Result<Id> {
        self.reuse(Op::Const, bits, 0, 0)
    }

    pub(super) fn float(&mut self, value: f32) -> Result<Id> {
        self.bits(value.to_bits())
    }

    pub(super) fn bool(&mut self, value: bool) -> Result<Id> {
        self.bits(truth(value))
    }

    pub(super) fn leaf(&mut self, op: Op, number: u32) -> Result<Id> {
        self.reuse(op, number, 0, 0)
    }

    pub(super) fn uniform_at(&mut self, index: Id, row: UniformRow) -> Result<Id> {
        let number = self.rows.iter().position(|known| *known == row).unwrap_or_else(|| {
            self.rows.push(row);
            self.rows.len() - 1
        });
        self.reuse(Op::UniformAt, index, u32::try_from(number).unwrap_or(0), 0)
    }

    /// An operation with many operands, such as a texture lookup.
    pub(super) fn listed(&mut self, op: Op, operands: Vec<Id>) -> Result<Id> {
        let list = u32::try_from(self.lists.len()).unwrap_or(u32::MAX);
        self.lists.push(operands);
        self.push(op, list, 0, 0)
    }

    pub(super) fn component(&mut self, texture: Id, component: u32) -> Result<Id> {
        self.reuse(Op::Component, texture, component, 0)
    }

    pub(super) fn unary(&mut self, op: Op, a: Id) -> Result<Id> {
        self.ternary(op, a, 0, 0)
    }

    pub(super) fn binary(&mut self, op: Op, a: Id, b: Id) -> Result<Id> {
        self.ternary(op, a, b, 0)
    }

    pub(super) fn select(&mut self, condition: Id, yes: Id, no: Id) -> Result<Id> {
        self.ternary(Op::Select, condition, yes, no)
    }

    pub(super) fn not(&mut self, a: Id) -> Result<Id> {
        self.unary(Op::BNot, a)
    }

    /// Makes an instruction, or finds the scalar it would make.
    pub(super) fn ternary(&mut self, op: Op, mut a: Id, mut b: Id, c: Id) -> Result<Id> {
        if op == Op::Select
            && let Instr { op: Op::Select, a: inner, b: yes, c: no } = self.instr(b)
            && no == c
        {
            // Branches within branches: one choice by both conditions.
            let both = self.binary(Op::BAnd, a, inner)?;
            return self.ternary(op, both, yes, c);
        }
        let count = op.operands();
        let constant = |slot: usize, id: Id| if slot < count { self.constant(id) } else { Some(0) };
        let known = [constant(0, a), constant(1, b), constant(2, c)];
        if let [Some(x), Some(y), Some(z)] = known
            && op.is_computed()
        {
            return self.bits(apply(op, x, y, z));
        }
        if let Some(id) = self.identity(op, [a, b, c], known)? {
            return Ok(id);
        }
        if op.commutes() && a > b {
            (a, b) = (b, a);
        }
        self.reuse(op, a, b, c)
    }

    /// Identities that hold for every value a shader may rely on.
    fn identity(&mut self, op: Op, [a, b, c]: [Id; 3], known: [Option<u32>; 3]) -> Result<Option<Id>> {
        const ONE: u32 = 1.0_f32.to_bits();
        const MINUS_ZERO: u32 = 1 << 31;
        Ok(match (op, known) {
            (Op::FAdd | Op::BAdd | Op::BOr | Op::BXor, [Some(0), ..]) => Some(b),
            (Op::FAdd | Op::FSub, [_, Some(0 | MINUS_ZERO), _]) => Some(a),
            (Op::FSub, [Some(0), ..]) => Some(self.unary(Op::FNeg, b)?),
            (Op::BAdd | Op::BSub | Op::BOr | Op::BXor | Op::BShl, [_, Some(0), _]) => Some(a),
            (Op::FMul, [Some(ONE), ..]) | (Op::BMul, [Some(1), ..]) => Some(b),
            (Op::FMul | Op::FDiv, [_, Some(ONE), _]) | (Op::BMul, [_, Some(1), _]) => Some(a),
            (Op::FMul, [Some(0 | MINUS_ZERO), ..] | [_, Some(0 | MINUS_ZERO), _]) => Some(self.bits(0)?),
            (Op::BMul | Op::BAnd, [Some(0), ..] | [_, Some(0), _]) => Some(self.bits(0)?),
            (Op::BAnd, [Some(u32::MAX), ..]) => Some(b),
            (Op::BAnd, [_, Some(u32::MAX), _]) => Some(a),
            (Op::BOr, [Some(u32::MAX), ..] | [_, Some(u32::MAX), _]) => Some(self.bits(u32::MAX)?),
            (Op::BAnd | Op::BOr, _) if a == b => Some(a),
            (Op::Select, [Some(u32::MAX), ..]) => Some(b),
            (Op::Select, [Some(0), ..]) => Some(c),
            (Op::Select, [_, Some(u32::MAX), Some(0)]) => Some(a),
            (Op::Select, _) if b == c => Some(b),
            (Op::FNeg | Op::BNot, _) if self.instr(a).op == op => Some(self.instr(a).a),
            (Op::FAbs, _) if self.instr(a).op == Op::FAbs => Some(a),
            _ => None,
        })
    }
}
