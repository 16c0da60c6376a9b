//! Statements.
//!
//! `return`, `break` and `continue` set flags. A statement that follows one which may have set a
//! flag runs only where no flag is set; if that is not a constant, as a branch.

use super::env::LoopSlots;
use super::{Lowerer, Value};
use crate::glsl::ast::{Declaration, ExprId, StmtId, StmtKind};
use crate::glsl::code::Id;
use crate::glsl::error::{GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::Type;

impl Lowerer<'_> {
    pub(super) fn statement(&mut self, id: StmtId) -> Result<()> {
        let line = self.tree.stmt(id).line;
        self.spend(line, 1)?;
        self.nested(line, |lowerer| lowerer.statement_inner(id, line))
    }

    fn statement_inner(&mut self, id: StmtId, line: u32) -> Result<()> {
        let tree = self.tree;
        match &tree.stmt(id).kind {
            StmtKind::Empty | StmtKind::Case(_) => Ok(()),
            StmtKind::Block(inner) => {
                self.push_scope();
                for statement in inner {
                    self.guarded(*statement)?;
                }
                self.pop_scope();
                Ok(())
            }
            StmtKind::Declare(declaration) => self.declare_local(declaration),
            StmtKind::Expr(expression) => self.expr(*expression).map(|_value| ()),
            StmtKind::If(condition, then, otherwise) => {
                self.if_statement(line, *condition, *then, *otherwise)
            }
            StmtKind::Loop(parts) => self.loop_statement(line, *parts),
            StmtKind::Switch(selector, inner) => self.switch(line, *selector, inner),
            StmtKind::Return(value) => self.return_statement(line, *value),
            StmtKind::Break => {
                let flags = self.loop_slots(line)?;
                self.set_flag(flags.broken, true)
            }
            StmtKind::Continue => {
                let slot = self.loop_slots(line)?.continued;
                let slot = slot.ok_or_else(|| GlslError::syntax(line, "continue outside of a loop"))?;
                self.set_flag(slot, true)
            }
            StmtKind::Discard => {
                self.discards.push(self.path);
                Ok(())
            }
        }
    }

    fn loop_slots(&self, line: u32) -> Result<LoopSlots> {
        let slots = self.frames.last().and_then(|frame| frame.loops.last().copied());
        slots.ok_or_else(|| GlslError::syntax(line, "break or continue outside of a loop"))
    }

    /// Whether a flag keeps the next statement from running.
    pub(super) fn dead(&mut self) -> Result<Id> {
        let Some(frame) = self.frames.last() else {
            return self.code.bool(false);
        };
        let mut dead = self.slots[frame.returned as usize];
        if let Some(flags) = frame.loops.last().copied() {
            dead = self.code.binary(Op::BOr, dead, self.slots[flags.broken as usize])?;
            if let Some(continued) = flags.continued {
                dead = self.code.binary(Op::BOr, dead, self.slots[continued as usize])?;
            }
        }
        Ok(dead)
    }

    /// Runs a statement where no flag is set.
    pub(super) fn guarded(&mut self, id: StmtId) -> Result<()> {
        let line = self.tree.stmt(id).line;
        let dead = self.dead()?;
        let live = self.code.not(dead)?;
        if self.code.constant(live).is_some() {
            return self.branch(line, live, |lowerer| lowerer.statement(id), |_| Ok(()));
        }
        // Within the branch the flags are known to be down, which keeps later guards out of it.
        self.branch(
            line,
            live,
            |lowerer| {
                let flags: Vec<(u32, Id)> =
                    lowerer.flag_slots().into_iter().map(|slot| (slot, lowerer.read(slot))).collect();
                for (slot, _) in &flags {
                    lowerer.set_flag(*slot, false)?;
                }
                lowerer.statement(id)?;
                for (slot, old) in flags {
                    let both = lowerer.code.binary(Op::BOr, old, lowerer.read(slot))?;
                    lowerer.write(slot, both);
                }
                Ok(())
            },
            |_| Ok(()),
        )
    }

    fn flag_slots(&self) -> Vec<u32> {
        let Some(frame) = self.frames.last() else {
            return Vec::new();
        };
        let flags = frame.loops.last().map(|flags| [Some(flags.broken), flags.continued]);
        let flags = flags.into_iter().flatten().flatten();
        flags.chain([frame.returned]).collect()
    }

    fn declare_local(&mut self, declaration: &Declaration) -> Result<()> {
        let base = self.resolve(declaration.ty)?;
        for declarator in &declaration.variables {
            let ty = self.declarator_type(declaration.line, base, declarator)?;
            self.declare_plain(declaration.line, ty, declarator)?;
        }
        Ok(())
    }

    fn if_statement(
        &mut self,
        line: u32,
        condition: ExprId,
        then: StmtId,
        otherwise: Option<StmtId>,
    ) -> Result<()> {
        let condition = self.condition(line, condition)?;
        if self.code.constant(condition).is_none() {
            let marker = self.code.push(Op::Branch, condition, 0, 0)?;
            self.branches.push(marker);
        }
        self.branch(
            line,
            condition,
            |lowerer| lowerer.scoped(then),
            |lowerer| otherwise.map_or(Ok(()), |otherwise| lowerer.scoped(otherwise)),
        )
    }

    fn scoped(&mut self, id: StmtId) -> Result<()> {
        self.push_scope();
        self.statement(id)?;
        self.pop_scope();
        Ok(())
    }

    fn return_statement(&mut self, line: u32, value: Option<ExprId>) -> Result<()> {
        let value = value.map(|value| self.expr(value)).transpose()?;
        let Some(frame) = self.frames.last() else {
            return Err(GlslError::syntax(line, "return outside of a function"));
        };
        let (returned, slot, returns) = (frame.returned, frame.value, frame.returns);
        let found = value.as_ref().map_or(Type::VOID, |value| value.ty);
        if found != returns {
            return Err(GlslError::types(line, format!("{found} returned, {returns} declared")));
        }
        for (slot, id) in (slot..).zip(value.iter().flat_map(|value| &value.ids)) {
            self.write(slot, *id);
        }
        self.set_flag(returned, true)
    }

    /// A statement of a switch runs if a label before it matched and nothing broke out since.
    fn switch(&mut self, line: u32, selector: ExprId, inner: &[StmtId]) -> Result<()> {
        let selector = self.expr(selector)?;
        if ![Type::INT, Type::UINT].contains(&selector.ty) {
            return Err(GlslError::types(line, format!("switch on {}", selector.ty)));
        }
        let labels = self.labels(line, &selector, inner)?;
        self.push_scope();
        let continued = self.frames.last().and_then(|frame| frame.loops.last()?.continued);
        let broken = self.flag(line)?;
        self.push_loop(LoopSlots { broken, continued });
        let mut on = self.code.bool(false)?;
        let mut labels = labels.into_iter();
        for statement in inner {
            if matches!(self.tree.stmt(*statement).kind, StmtKind::Case(_)) {
                let matched = labels.next().unwrap_or(on);
                on = self.code.binary(Op::BOr, on, matched)?;
                continue;
            }
            self.branch(line, on, |lowerer| lowerer.guarded(*statement), |_| Ok(()))?;
        }
        self.pop_loop();
        self.pop_scope();
        Ok(())
    }

    /// For each label whether it matches; `default` does if no other one does.
    fn labels(&mut self, line: u32, selector: &Value, inner: &[StmtId]) -> Result<Vec<Id>> {
        let tree = self.tree;
        let mut any = self.code.bool(false)?;
        let mut labels = Vec::new();
        for statement in inner {
            let StmtKind::Case(value) = &tree.stmt(*statement).kind else {
                continue;
            };
            let matched = match value {
                None => None,
                Some(value) => {
                    let value = self.expr(*value)?;
                    Some(self.equality(line, selector, &value)?)
                }
            };
            if let Some(matched) = matched {
                any = self.code.binary(Op::BOr, any, matched)?;
                if self.code.constant(matched).is_none() {
                    let marker = self.code.push(Op::Branch, matched, 0, 0)?;
                    self.branches.push(marker);
                }
            }
            labels.push(matched);
        }
        let none = self.code.not(any)?;
        Ok(labels.into_iter().map(|label| label.unwrap_or(none)).collect())
    }

    pub(super) fn push_loop(&mut self, flags: LoopSlots) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops.push(flags);
        }
    }

    pub(super) fn pop_loop(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.loops.pop();
        }
    }
}
