//! Expressions.

use super::{Lowerer, Value};
use crate::glsl::ast::{BinaryOp, ExprId, ExprKind, Step};
use crate::glsl::code::Id;
use crate::glsl::error::{GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::{Scalar, Type};

impl Lowerer<'_> {
    /// The value of an expression, after its effects.
    pub(super) fn expr(&mut self, id: ExprId) -> Result<Value> {
        let line = self.tree.expr(id).line;
        self.spend(line, 1)?;
        self.nested(line, |lowerer| lowerer.expr_inner(id, line))
    }

    fn expr_inner(&mut self, id: ExprId, line: u32) -> Result<Value> {
        let tree = self.tree;
        match &tree.expr(id).kind {
            ExprKind::Int(bits) => self.literal(Type::INT, *bits),
            ExprKind::Uint(bits) => self.literal(Type::UINT, *bits),
            ExprKind::Float(value) => self.literal(Type::FLOAT, value.to_bits()),
            ExprKind::Bool(value) => self.literal(Type::BOOL, crate::glsl::op::truth(*value)),
            ExprKind::Variable(_) | ExprKind::Field(..) | ExprKind::Index(..) => self.read_path(id),
            ExprKind::Unary(operator, operand) => {
                let operand = self.expr(*operand)?;
                self.unary_operator(line, *operator, operand)
            }
            ExprKind::Binary(..) => self.chain(id),
            ExprKind::Assign(operator, left, right) => self.assign(line, *operator, *left, *right),
            ExprKind::Step(step, operand) => self.step(line, *step, *operand),
            ExprKind::Choice(condition, first, second) => self.choice(line, *condition, *first, *second),
            ExprKind::Call(name, arguments) => self.call(line, *name, arguments),
            ExprKind::Construct(spec, arguments) => {
                let ty = self.resolve(*spec)?;
                let values = self.exprs(arguments)?;
                self.construct(line, ty, values)
            }
            ExprKind::Length(operand) => {
                let value = self.expr(*operand)?;
                let length = value.ty.array.ok_or_else(|| GlslError::types(line, "length of no array"))?;
                self.literal(Type::INT, length)
            }
            ExprKind::Comma(..) => self.commas(id),
        }
    }

    pub(super) fn exprs(&mut self, ids: &[ExprId]) -> Result<Vec<Value>> {
        ids.iter().map(|id| self.expr(*id)).collect()
    }

    pub(super) fn literal(&mut self, ty: Type, bits: u32) -> Result<Value> {
        Ok(Value { ty, ids: vec![self.code.bits(bits)?] })
    }

    /// A truth value.
    pub(super) fn condition(&mut self, line: u32, id: ExprId) -> Result<Id> {
        let value = self.expr(id)?;
        match value.ids.as_slice() {
            [id] if value.ty == Type::BOOL => Ok(*id),
            _ => Err(GlslError::types(line, format!("condition of type {}", value.ty))),
        }
    }

    /// Operators lean to the left, so a long sum is a deep tree; it is walked without recursion.
    fn chain(&mut self, id: ExprId) -> Result<Value> {
        let tree = self.tree;
        let mut pending = Vec::new();
        let mut at = id;
        while let ExprKind::Binary(operator, left, right) = &tree.expr(at).kind {
            pending.push((*operator, *right, tree.expr(at).line));
            at = *left;
        }
        let mut value = self.expr(at)?;
        while let Some((operator, right, line)) = pending.pop() {
            self.spend(line, 1)?;
            value = match operator {
                BinaryOp::And | BinaryOp::Or => self.short_circuit(line, operator, &value, right)?,
                _ => {
                    let right = self.expr(right)?;
                    self.binary_operator(line, operator, &value, &right)?
                }
            };
        }
        Ok(value)
    }

    fn commas(&mut self, id: ExprId) -> Result<Value> {
        let tree = self.tree;
        let mut pending = Vec::new();
        let mut at = id;
        while let ExprKind::Comma(left, right) = &tree.expr(at).kind {
            pending.push(*right);
            at = *left;
        }
        let mut value = self.expr(at)?;
        while let Some(next) = pending.pop() {
            value = self.expr(next)?;
        }
        Ok(value)
    }

    /// `&&` and `||`: the right side may have effects, which then depend on the left.
    fn short_circuit(&mut self, line: u32, operator: BinaryOp, left: &Value, right: ExprId) -> Result<Value> {
        let ([left_id], Type::BOOL) = (left.ids.as_slice(), left.ty) else {
            return Err(GlslError::types(line, format!("logic on {}", left.ty)));
        };
        let runs = if operator == BinaryOp::And { *left_id } else { self.code.not(*left_id)? };
        if self.code.constant(runs) == Some(0) {
            return Ok(left.clone());
        }
        let mut value = *left_id;
        let out = &mut value;
        self.branch(
            line,
            runs,
            |lowerer| {
                *out = lowerer.condition(line, right)?;
                Ok(())
            },
            |_| Ok(()),
        )?;
        let op = if operator == BinaryOp::And { Op::BAnd } else { Op::BOr };
        Ok(Value { ty: Type::BOOL, ids: vec![self.code.binary(op, *left_id, value)?] })
    }

    fn choice(&mut self, line: u32, condition: ExprId, first: ExprId, second: ExprId) -> Result<Value> {
        let condition = self.condition(line, condition)?;
        if let Some(constant) = self.code.constant(condition) {
            return self.expr(if constant == 0 { second } else { first });
        }
        let (mut yes, mut no) = (None, None);
        let (yes_out, no_out) = (&mut yes, &mut no);
        self.branch(
            line,
            condition,
            |lowerer| {
                *yes_out = Some(lowerer.expr(first)?);
                Ok(())
            },
            |lowerer| {
                *no_out = Some(lowerer.expr(second)?);
                Ok(())
            },
        )?;
        match (yes, no) {
            (Some(yes), Some(no)) if yes.ty == no.ty => {
                self.code.begin_group();
                let pairs = yes.ids.iter().zip(&no.ids);
                let ids = pairs.map(|(a, b)| self.code.select(condition, *a, *b)).collect::<Result<_>>()?;
                Ok(Value { ty: yes.ty, ids })
            }
            _ => Err(GlslError::types(line, "sides of `?:` differ in type")),
        }
    }

    fn assign(
        &mut self,
        line: u32,
        operator: Option<BinaryOp>,
        left: ExprId,
        right: ExprId,
    ) -> Result<Value> {
        let value = self.expr(right)?;
        let place = self.place(left)?;
        let value = match operator {
            None => value,
            Some(operator) => {
                let old = self.load(line, &place)?;
                self.binary_operator(line, operator, &old, &value)?
            }
        };
        self.store(line, &place, &value)?;
        Ok(value)
    }

    fn step(&mut self, line: u32, step: Step, operand: ExprId) -> Result<Value> {
        let place = self.place(operand)?;
        let old = self.load(line, &place)?;
        let one = match old.ty.shape() {
            Some((Scalar::Float, ..)) => self.literal(Type::FLOAT, 1.0_f32.to_bits())?,
            Some((Scalar::Int, ..)) => self.literal(Type::INT, 1)?,
            Some((Scalar::Uint, ..)) => self.literal(Type::UINT, 1)?,
            _ => return Err(GlslError::types(line, format!("++ or -- on {}", old.ty))),
        };
        let operator = if step.up { BinaryOp::Add } else { BinaryOp::Sub };
        let new = self.binary_operator(line, operator, &old, &one)?;
        self.store(line, &place, &new)?;
        Ok(if step.prefix { new } else { old })
    }
}
