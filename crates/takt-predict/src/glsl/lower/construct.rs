//! Constructors and conversions.

use super::{Lowerer, Value};
use crate::glsl::code::Id;
use crate::glsl::error::{GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::{Base, Scalar, Type};

impl Lowerer<'_> {
    pub(super) fn construct(&mut self, line: u32, ty: Type, values: Vec<Value>) -> Result<Value> {
        self.spend(line, values.iter().map(|value| value.ids.len()).sum())?;
        if ty.array.is_some() {
            return self.construct_array(line, ty, values);
        }
        match ty.base {
            Base::Struct(number) => self.construct_struct(line, number, values),
            Base::Number { scalar, columns, rows } if columns > 1 => {
                self.construct_matrix(line, scalar, (columns, rows), &values)
            }
            Base::Number { scalar, rows, .. } => self.construct_vector(line, scalar, rows, &values),
            Base::Void | Base::Sampler { .. } => {
                Err(GlslError::types(line, format!("{ty} has no constructor")))
            }
        }
    }

    fn construct_array(&mut self, line: u32, ty: Type, values: Vec<Value>) -> Result<Value> {
        let count = u32::try_from(values.len()).unwrap_or(u32::MAX);
        let element = Type::of(ty.base);
        let length = ty.array.filter(|length| *length > 0).unwrap_or(count);
        if count != length || count == 0 || values.iter().any(|value| value.ty != element) {
            return Err(GlslError::types(line, format!("wrong elements for {ty}")));
        }
        let ty = Type { array: Some(length), ..ty };
        self.size(line, ty)?;
        Ok(Value { ty, ids: values.into_iter().flat_map(|value| value.ids).collect() })
    }

    fn construct_struct(&mut self, line: u32, number: u16, values: Vec<Value>) -> Result<Value> {
        let found = &self.structs[usize::from(number)];
        let fits = found.fields.len() == values.len()
            && found.fields.iter().zip(&values).all(|(field, value)| field.ty == value.ty);
        if !fits {
            return Err(GlslError::types(line, format!("wrong members for `{}`", found.name)));
        }
        let ids = values.into_iter().flat_map(|value| value.ids).collect();
        Ok(Value { ty: Type::of(Base::Struct(number)), ids })
    }

    fn construct_vector(&mut self, line: u32, scalar: Scalar, rows: u8, values: &[Value]) -> Result<Value> {
        let ty = Type::vector(scalar, rows);
        let mut ids = self.components(line, scalar, values)?;
        let rows = usize::from(rows);
        if let ([single], [value]) = (ids.as_slice(), values)
            && value.ids.len() == 1
        {
            return Ok(Value { ty, ids: vec![*single; rows] });
        }
        if ids.len() < rows {
            return Err(GlslError::types(line, format!("too few components for {ty}")));
        }
        ids.truncate(rows);
        Ok(Value { ty, ids })
    }

    fn construct_matrix(
        &mut self,
        line: u32,
        scalar: Scalar,
        (columns, rows): (u8, u8),
        values: &[Value],
    ) -> Result<Value> {
        let ty = Type::matrix(columns, rows);
        let mut ids = self.components(line, scalar, values)?;
        let [zero, one] = [self.code.float(0.0)?, self.code.float(1.0)?];
        let cells = (0..columns).flat_map(|column| (0..rows).map(move |row| (column, row)));
        if let [value] = values {
            let source = value.ty.shape().filter(|(_, columns, _)| *columns > 1);
            if let Some((_, from_columns, from_rows)) = source {
                let cell = |(column, row): (u8, u8)| match (column < from_columns, row < from_rows) {
                    (true, true) => ids[usize::from(column * from_rows + row)],
                    _ if column == row => one,
                    _ => zero,
                };
                return Ok(Value { ty, ids: cells.map(cell).collect() });
            }
            if let [single] = ids.as_slice() {
                let cell = |(column, row)| if column == row { *single } else { zero };
                return Ok(Value { ty, ids: cells.map(cell).collect() });
            }
        }
        let wanted = usize::from(columns) * usize::from(rows);
        if ids.len() < wanted {
            return Err(GlslError::types(line, format!("too few components for {ty}")));
        }
        ids.truncate(wanted);
        Ok(Value { ty, ids })
    }

    /// All components of all values, converted.
    fn components(&mut self, line: u32, scalar: Scalar, values: &[Value]) -> Result<Vec<Id>> {
        let mut ids = Vec::new();
        for value in values {
            let Some((from, ..)) = value.ty.shape() else {
                return Err(GlslError::types(line, format!("component of type {}", value.ty)));
            };
            self.code.begin_group();
            for id in &value.ids {
                ids.push(self.convert(from, scalar, *id)?);
            }
        }
        Ok(ids)
    }

    fn convert(&mut self, from: Scalar, to: Scalar, id: Id) -> Result<Id> {
        use Scalar as S;
        let zero = self.code.bits(0)?;
        match (from, to) {
            (S::Float, S::Int) => self.code.unary(Op::FToInt, id),
            (S::Float, S::Uint) => self.code.unary(Op::FToUint, id),
            (S::Int, S::Float) => self.code.unary(Op::IToFloat, id),
            (S::Uint, S::Float) => self.code.unary(Op::UToFloat, id),
            (S::Bool, S::Float) => {
                let one = self.code.float(1.0)?;
                self.code.select(id, one, zero)
            }
            (S::Bool, S::Int | S::Uint) => {
                let one = self.code.bits(1)?;
                self.code.select(id, one, zero)
            }
            (S::Float, S::Bool) => {
                let equal = self.code.binary(Op::FEqual, id, zero)?;
                self.code.not(equal)
            }
            (S::Int | S::Uint, S::Bool) => {
                let equal = self.code.binary(Op::BEqual, id, zero)?;
                self.code.not(equal)
            }
            (S::Float, S::Float) | (S::Bool, S::Bool) | (S::Int | S::Uint, S::Int | S::Uint) => Ok(id),
        }
    }
}
