//! Operators on vectors and matrices, taken apart into scalars.

use super::{Lowerer, Value};
use crate::glsl::ast::{BinaryOp, UnaryOp};
use crate::glsl::code::Id;
use crate::glsl::error::{GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::{Scalar, Type};

impl Lowerer<'_> {
    pub(super) fn unary_operator(&mut self, line: u32, operator: UnaryOp, operand: Value) -> Result<Value> {
        let bad = |ty: Type| Err(GlslError::types(line, format!("{operator:?} on {ty}")));
        let Some((scalar, ..)) = operand.ty.shape() else {
            return bad(operand.ty);
        };
        let op = match (operator, scalar) {
            (UnaryOp::Plus, Scalar::Float | Scalar::Int | Scalar::Uint) => return Ok(operand),
            (UnaryOp::Minus, Scalar::Float) => Op::FNeg,
            (UnaryOp::Minus, Scalar::Int | Scalar::Uint) => Op::BNeg,
            (UnaryOp::Not, Scalar::Bool) | (UnaryOp::BitNot, Scalar::Int | Scalar::Uint) => Op::BNot,
            _ => return bad(operand.ty),
        };
        self.map(op, &operand)
    }

    /// The same operation on each component.
    pub(super) fn map(&mut self, op: Op, operand: &Value) -> Result<Value> {
        self.code.begin_group();
        let ids = operand.ids.iter().map(|id| self.code.unary(op, *id)).collect::<Result<_>>()?;
        Ok(Value { ty: operand.ty, ids })
    }

    /// The same operation on pairs of components; a scalar pairs with each.
    pub(super) fn zip(&mut self, line: u32, op: Op, left: &Value, right: &Value) -> Result<Value> {
        let ty = if left.ids.len() >= right.ids.len() { left.ty } else { right.ty };
        self.zip_as(line, op, left, right, ty)
    }

    pub(super) fn zip_as(
        &mut self,
        line: u32,
        op: Op,
        left: &Value,
        right: &Value,
        ty: Type,
    ) -> Result<Value> {
        let count = left.ids.len().max(right.ids.len());
        let fits = |value: &Value| value.ids.len() == count || value.ids.len() == 1;
        if !fits(left) || !fits(right) {
            return Err(GlslError::types(line, format!("{} with {}", left.ty, right.ty)));
        }
        self.code.begin_group();
        let pick = |value: &Value, at: usize| value.ids[if value.ids.len() == 1 { 0 } else { at }];
        let ids = (0..count).map(|at| self.code.binary(op, pick(left, at), pick(right, at)));
        let ids = ids.collect::<Result<_>>()?;
        Ok(Value { ty, ids })
    }

    pub(super) fn binary_operator(
        &mut self,
        line: u32,
        operator: BinaryOp,
        left: &Value,
        right: &Value,
    ) -> Result<Value> {
        if matches!(operator, BinaryOp::Equal | BinaryOp::NotEqual) {
            let equal = self.equality(line, left, right)?;
            let id = if operator == BinaryOp::Equal { equal } else { self.code.not(equal)? };
            return Ok(Value { ty: Type::BOOL, ids: vec![id] });
        }
        let mismatch = || GlslError::types(line, format!("{operator:?} of {} and {}", left.ty, right.ty));
        let (Some((scalar, columns, rows)), Some((other, other_columns, other_rows))) =
            (left.ty.shape(), right.ty.shape())
        else {
            return Err(mismatch());
        };
        let shifts = matches!(operator, BinaryOp::Shl | BinaryOp::Shr);
        if scalar != other && !shifts {
            return Err(mismatch());
        }
        if operator == BinaryOp::Mul && (columns > 1 || other_columns > 1) {
            let scales = (columns == 1 && rows == 1) || (other_columns == 1 && other_rows == 1);
            if !scales {
                return self.matrix_product(line, left, right);
            }
        }
        let scalar_side = left.ids.len() == 1 || right.ids.len() == 1;
        if left.ty != right.ty && !scalar_side && !shifts {
            return Err(mismatch());
        }
        let (op, swapped) = binary_op(operator, scalar).ok_or_else(mismatch)?;
        let compares = matches!(
            operator,
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual
        );
        if compares && (left.ids.len() != 1 || right.ids.len() != 1) {
            return Err(mismatch());
        }
        let (left, right) = if swapped { (right, left) } else { (left, right) };
        let mut value = self.zip(line, op, left, right)?;
        if compares {
            value.ty = Type::BOOL;
        } else if shifts {
            value.ty = left.ty;
        }
        Ok(value)
    }

    /// Whether two values of any type are equal.
    pub(super) fn equality(&mut self, line: u32, left: &Value, right: &Value) -> Result<Id> {
        if left.ty != right.ty || left.ids.len() != right.ids.len() {
            return Err(GlslError::types(line, format!("{} compared with {}", left.ty, right.ty)));
        }
        // Members of structures are compared as floats; integers small enough compare equal so.
        let op = match left.ty.shape() {
            Some((Scalar::Float, ..)) | None => Op::FEqual,
            Some(_) => Op::BEqual,
        };
        let mut all = self.code.bool(true)?;
        self.code.begin_group();
        for (a, b) in left.ids.iter().zip(&right.ids) {
            let equal = self.code.binary(op, *a, *b)?;
            all = self.code.binary(Op::BAnd, all, equal)?;
        }
        Ok(all)
    }

    /// Products that involve a matrix and no scalar. A vector on the left is a row, and one on
    /// the right a column.
    pub(super) fn matrix_product(&mut self, line: u32, left: &Value, right: &Value) -> Result<Value> {
        let mismatch = || GlslError::types(line, format!("product of {} and {}", left.ty, right.ty));
        let (Some((Scalar::Float, columns, rows)), Some((Scalar::Float, right_columns, right_rows))) =
            (left.ty.shape(), right.ty.shape())
        else {
            return Err(mismatch());
        };
        let row_vector = columns == 1;
        let (inner, result_rows) = if row_vector { (rows, 1) } else { (columns, rows) };
        if inner != right_rows {
            return Err(mismatch());
        }
        let left_at = |k: u8, r: u8| {
            let place = if row_vector { k } else { k * rows + r };
            left.ids[usize::from(place)]
        };
        let mut ids = Vec::with_capacity(usize::from(right_columns) * usize::from(result_rows));
        for column in 0..right_columns {
            let mut sums: Vec<Option<Id>> = vec![None; usize::from(result_rows)];
            for k in 0..inner {
                self.code.begin_group();
                let factor = right.ids[usize::from(column * right_rows + k)];
                for (sum, r) in sums.iter_mut().zip(0_u8..) {
                    let product = self.code.binary(Op::FMul, left_at(k, r), factor)?;
                    *sum = Some(match *sum {
                        None => product,
                        Some(sum) => self.code.binary(Op::FAdd, sum, product)?,
                    });
                }
            }
            ids.extend(sums.into_iter().flatten());
        }
        let ty = match (row_vector, right_columns) {
            (true, _) => Type::vector(Scalar::Float, right_columns),
            (false, 1) => Type::vector(Scalar::Float, rows),
            (false, _) => Type::matrix(right_columns, rows),
        };
        Ok(Value { ty, ids })
    }
}

/// The scalar operation, and whether its operands change places.
fn binary_op(operator: BinaryOp, scalar: Scalar) -> Option<(Op, bool)> {
    use BinaryOp as B;
    use Scalar as S;
    Some(match (operator, scalar) {
        (B::Add, S::Float) => (Op::FAdd, false),
        (B::Sub, S::Float) => (Op::FSub, false),
        (B::Mul, S::Float) => (Op::FMul, false),
        (B::Div, S::Float) => (Op::FDiv, false),
        (B::Less, S::Float) => (Op::FLess, false),
        (B::Greater, S::Float) => (Op::FLess, true),
        (B::LessEqual, S::Float) => (Op::FLessEqual, false),
        (B::GreaterEqual, S::Float) => (Op::FLessEqual, true),
        (B::Add, S::Int | S::Uint) => (Op::BAdd, false),
        (B::Sub, S::Int | S::Uint) => (Op::BSub, false),
        (B::Mul, S::Int | S::Uint) => (Op::BMul, false),
        (B::Div, S::Int) => (Op::IDiv, false),
        (B::Div, S::Uint) => (Op::UDiv, false),
        (B::Rem, S::Int) => (Op::IRem, false),
        (B::Rem, S::Uint) => (Op::URem, false),
        (B::Less, S::Int) => (Op::ILess, false),
        (B::Greater, S::Int) => (Op::ILess, true),
        (B::LessEqual, S::Int) => (Op::ILessEqual, false),
        (B::GreaterEqual, S::Int) => (Op::ILessEqual, true),
        (B::Less, S::Uint) => (Op::ULess, false),
        (B::Greater, S::Uint) => (Op::ULess, true),
        (B::LessEqual, S::Uint) => (Op::ULessEqual, false),
        (B::GreaterEqual, S::Uint) => (Op::ULessEqual, true),
        (B::Shl, S::Int | S::Uint) => (Op::BShl, false),
        (B::Shr, S::Int) => (Op::IShr, false),
        (B::Shr, S::Uint) => (Op::UShr, false),
        (B::BitAnd, S::Int | S::Uint) => (Op::BAnd, false),
        (B::BitOr, S::Int | S::Uint) => (Op::BOr, false),
        (B::BitXor, S::Int | S::Uint) | (B::Xor, S::Bool) => (Op::BXor, false),
        _ => return None,
    })
}
