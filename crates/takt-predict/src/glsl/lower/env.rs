//! Variables: names, scopes, slots, and the joining of branches.

use std::collections::{BTreeMap, BTreeSet};

use super::{Lowerer, Value};
use crate::glsl::code::Id;
use crate::glsl::error::{ErrorKind, GlslError, Result};
use crate::glsl::limits::SCALARS_MAX;
use crate::glsl::token::Name;
use crate::glsl::types::{Type, scalars};

/// What a name means.
#[derive(Clone, Copy, Debug)]
pub(super) enum Symbol {
    Variable(StoredVariable),
    Struct(u16),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct StoredVariable {
    pub(super) ty: Type,
    pub(super) slot: u32,
    /// Holds uniforms in order, so a computed subscript can go to their table.
    pub(super) uniform: Option<u32>,
}

#[derive(Clone, Default, Debug)]
pub(super) struct Scope {
    pub(super) names: BTreeMap<Name, Symbol>,
    /// Slots in use when it was opened.
    slots: usize,
}

/// A function being run.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Its number in the tree's items tells overloads apart.
    pub(super) identity: usize,
    /// Scopes below belong to callers.
    pub(super) scopes: usize,
    pub(super) returned: u32,
    pub(super) value: u32,
    pub(super) returns: Type,
    pub(super) loops: Vec<LoopSlots>,
}

/// Flags of a loop or switch being run.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoopSlots {
    pub(super) broken: u32,
    /// None in a switch outside of any loop.
    pub(super) continued: Option<u32>,
}

/// A result of the shader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    pub(super) slot: u32,
    pub(super) scalars: u32,
    pub(super) unwritten: Id,
    /// Its place among the interface's outputs.
    pub(super) variable: Option<usize>,
}

#[derive(Clone, Default, Debug)]
pub(super) struct Outputs {
    pub(super) variables: Vec<Output>,
    pub(super) position: Option<Output>,
}

/// What a branch changed.
pub(super) type Changes = BTreeMap<u32, Id>;

impl Lowerer<'_> {
    pub(super) fn push_scope(&mut self) {
        self.scopes.push(Scope { names: BTreeMap::new(), slots: self.slots.len() });
    }

    pub(super) fn pop_scope(&mut self) {
        if let Some(scope) = self.scopes.pop() {
            self.slots.truncate(scope.slots);
        }
    }

    pub(super) fn find(&self, name: Name) -> Option<Symbol> {
        let base = self.frames.last().map_or(0, |frame| frame.scopes);
        let locals = self.scopes.get(base..).unwrap_or(&[]).iter().rev();
        locals.chain(self.scopes.first()).find_map(|scope| scope.names.get(&name).copied())
    }

    pub(super) fn variable(&self, line: u32, name: Name) -> Result<StoredVariable> {
        match self.find(name) {
            Some(Symbol::Variable(variable)) => Ok(variable),
            _ => Err(GlslError::new(line, ErrorKind::UnknownName(self.text(name).to_owned()))),
        }
    }

    pub(super) fn bind(&mut self, name: Name, symbol: Symbol) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.names.insert(name, symbol);
        }
    }

    pub(super) fn size(&self, line: u32, ty: Type) -> Result<u32> {
        scalars(ty, &self.structs).ok_or_else(|| GlslError::limit(line, "VARIABLE_SCALARS_MAX"))
    }

    /// Makes room for scalars that all hold `value`.
    pub(super) fn allocate(&mut self, line: u32, count: u32, value: Id) -> Result<u32> {
        let slot = self.slots.len();
        let end = slot + count as usize;
        if end > SCALARS_MAX {
            return Err(GlslError::limit(line, "SCALARS_MAX"));
        }
        self.spend(line, count as usize)?;
        self.slots.resize(end, value);
        Ok(u32::try_from(slot).unwrap_or(u32::MAX))
    }

    /// A new flag that is false.
    pub(super) fn flag(&mut self, line: u32) -> Result<u32> {
        let no = self.code.bool(false)?;
        self.allocate(line, 1, no)
    }

    pub(super) fn read(&self, slot: u32) -> Id {
        self.slots[slot as usize]
    }

    pub(super) fn write(&mut self, slot: u32, id: Id) {
        let old = std::mem::replace(&mut self.slots[slot as usize], id);
        if self.open > 0 && old != id {
            self.journal.push((slot, old));
        }
    }

    pub(super) fn set_flag(&mut self, slot: u32, value: bool) -> Result<()> {
        let id = self.code.bool(value)?;
        self.write(slot, id);
        Ok(())
    }

    /// Declares a variable with a value.
    pub(super) fn declare(&mut self, line: u32, name: Name, value: &Value) -> Result<u32> {
        let zero = self.code.bits(0)?;
        let count = u32::try_from(value.ids.len()).unwrap_or(u32::MAX);
        let slot = self.allocate(line, count, zero)?;
        for (at, id) in (slot..).zip(&value.ids) {
            self.slots[at as usize] = *id;
        }
        self.bind(name, Symbol::Variable(StoredVariable { ty: value.ty, slot, uniform: None }));
        Ok(slot)
    }

    /// Starts recording what is overwritten.
    pub(super) fn begin(&mut self) -> (usize, usize) {
        self.open += 1;
        (self.journal.len(), self.slots.len())
    }

    /// Ends recording; what was overwritten stays so.
    pub(super) fn end(&mut self) {
        self.open -= 1;
        if self.open == 0 {
            self.journal.clear();
        }
    }

    /// Puts everything back as it was at [`begin`](Self::begin), and says what had changed.
    /// Variables made since then are not looked at: they are out of scope.
    pub(super) fn roll_back(&mut self, (mark, slots): (usize, usize)) -> Changes {
        let mut changes = Changes::new();
        while self.journal.len() > mark {
            let Some((slot, old)) = self.journal.pop() else { break };
            if (slot as usize) < slots {
                changes.entry(slot).or_insert(self.slots[slot as usize]);
                self.slots[slot as usize] = old;
            }
        }
        changes
    }

    /// Runs one of two sides; if the condition is not a constant, both, and joins their effects.
    pub(super) fn branch(
        &mut self,
        line: u32,
        condition: Id,
        then: impl FnOnce(&mut Self) -> Result<()>,
        otherwise: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match self.code.constant(condition) {
            Some(0) => return otherwise(self),
            Some(_) => return then(self),
            None => {}
        }
        let outer = self.path;
        let start = self.begin();
        self.path = self.code.binary(crate::glsl::op::Op::BAnd, outer, condition)?;
        then(self)?;
        let yes = self.roll_back(start);
        let inverse = self.code.not(condition)?;
        self.path = self.code.binary(crate::glsl::op::Op::BAnd, outer, inverse)?;
        otherwise(self)?;
        let no = self.roll_back(start);
        self.path = outer;
        self.end();
        self.spend(line, yes.len() + no.len())?;
        let slots: BTreeSet<u32> = yes.keys().chain(no.keys()).copied().collect();
        self.code.begin_group();
        for slot in slots {
            let old = self.read(slot);
            let (a, b) = (yes.get(&slot).copied().unwrap_or(old), no.get(&slot).copied().unwrap_or(old));
            let joined = self.code.select(condition, a, b)?;
            self.write(slot, joined);
        }
        Ok(())
    }
}
