//! Built-in functions.

use super::{Lowerer, Value};
use crate::glsl::ast::ExprId;
use crate::glsl::code::Id;
use crate::glsl::error::{ErrorKind, GlslError, Result};
use crate::glsl::op::Op;
use crate::glsl::types::{Scalar, Type};

/// Functions of one float per component.
const MAPPED: &[(&str, Op)] = &[
    ("sin", Op::FSin),
    ("cos", Op::FCos),
    ("tan", Op::FTan),
    ("asin", Op::FAsin),
    ("acos", Op::FAcos),
    ("sinh", Op::FSinh),
    ("cosh", Op::FCosh),
    ("tanh", Op::FTanh),
    ("asinh", Op::FAsinh),
    ("acosh", Op::FAcosh),
    ("atanh", Op::FAtanh),
    ("exp", Op::FExp),
    ("log", Op::FLog),
    ("exp2", Op::FExp2),
    ("log2", Op::FLog2),
    ("sqrt", Op::FSqrt),
    ("inversesqrt", Op::FInverseSqrt),
    ("floor", Op::FFloor),
    ("ceil", Op::FCeil),
    ("trunc", Op::FTrunc),
    ("round", Op::FRoundEven),
    ("roundEven", Op::FRoundEven),
    ("fract", Op::FFract),
    ("dFdx", Op::Derivative),
    ("dFdy", Op::Derivative),
    ("fwidth", Op::Derivative),
];

/// Comparisons of vectors: operations on floats, signed and unsigned integers; swapped; negated.
const COMPARISONS: &[(&str, [Op; 3], bool, bool)] = &[
    ("lessThan", [Op::FLess, Op::ILess, Op::ULess], false, false),
    ("lessThanEqual", [Op::FLessEqual, Op::ILessEqual, Op::ULessEqual], false, false),
    ("greaterThan", [Op::FLess, Op::ILess, Op::ULess], true, false),
    ("greaterThanEqual", [Op::FLessEqual, Op::ILessEqual, Op::ULessEqual], true, false),
    ("equal", [Op::FEqual, Op::BEqual, Op::BEqual], false, false),
    ("notEqual", [Op::FEqual, Op::BEqual, Op::BEqual], false, true),
];

impl Lowerer<'_> {
    pub(super) fn built_in(&mut self, line: u32, name: &str, values: &[Value]) -> Result<Value> {
        let unknown = || GlslError::new(line, ErrorKind::UnknownName(format!("{name}()")));
        for value in values {
            if value.ty.shape().is_none() {
                return Err(unknown());
            }
        }
        if let (Some((_, op)), [value]) = (MAPPED.iter().find(|(known, _)| *known == name), values) {
            self.floats(line, name, values)?;
            return self.map(*op, value);
        }
        if let (Some(comparison), [a, b]) = (COMPARISONS.iter().find(|(known, ..)| *known == name), values) {
            return self.compare(line, comparison, a, b);
        }
        let value = match values {
            [a] => self.built_in_1(line, name, a)?,
            [a, b] => self.built_in_2(line, name, a, b)?,
            [a, b, c] => self.built_in_3(line, name, a, b, c)?,
            _ => None,
        };
        value.ok_or_else(unknown)
    }

    fn floats(&self, line: u32, name: &str, values: &[Value]) -> Result<()> {
        let float = |value: &Value| matches!(value.ty.shape(), Some((Scalar::Float, ..)));
        if values.iter().all(float) {
            Ok(())
        } else {
            Err(GlslError::types(line, format!("{name} wants floats")))
        }
    }

    fn compare(
        &mut self,
        line: u32,
        (name, ops, swapped, negated): &(&str, [Op; 3], bool, bool),
        a: &Value,
        b: &Value,
    ) -> Result<Value> {
        let Some((scalar, 1, rows)) = a.ty.shape().filter(|_| a.ty == b.ty) else {
            return Err(GlslError::types(line, format!("{name} of {} and {}", a.ty, b.ty)));
        };
        let op = ops[match scalar {
            Scalar::Float => 0,
            Scalar::Int => 1,
            Scalar::Uint | Scalar::Bool => 2,
        }];
        let (a, b) = if *swapped { (b, a) } else { (a, b) };
        let value = self.zip_as(line, op, a, b, Type::vector(Scalar::Bool, rows))?;
        if *negated { self.map(Op::BNot, &value) } else { Ok(value) }
    }

    fn built_in_1(&mut self, line: u32, name: &str, a: &Value) -> Result<Option<Value>> {
        let (scalar, _, rows) = a.ty.shape().unwrap_or((Scalar::Float, 1, 1));
        let bits = |to: Scalar| Value { ty: Type::vector(to, rows), ids: a.ids.clone() };
        let bools = Type::vector(Scalar::Bool, rows);
        Ok(Some(match (name, scalar) {
            ("radians", Scalar::Float) => self.scaled(line, a, std::f32::consts::PI / 180.0)?,
            ("degrees", Scalar::Float) => self.scaled(line, a, 180.0 / std::f32::consts::PI)?,
            ("atan", Scalar::Float) => self.map(Op::FAtan, a)?,
            // `atanh` is in the table of mapped functions.
            ("abs", Scalar::Float) => self.map(Op::FAbs, a)?,
            ("abs", _) => self.map(Op::IAbs, a)?,
            ("sign", Scalar::Float) => self.map(Op::FSign, a)?,
            ("sign", _) => self.map(Op::ISign, a)?,
            ("isnan", Scalar::Float) => Value { ty: bools, ..self.map(Op::FIsNan, a)? },
            ("isinf", Scalar::Float) => Value { ty: bools, ..self.map(Op::FIsInf, a)? },
            ("not", Scalar::Bool) => self.map(Op::BNot, a)?,
            ("any", Scalar::Bool) => self.reduce(Op::BOr, a, Type::BOOL)?,
            ("all", Scalar::Bool) => self.reduce(Op::BAnd, a, Type::BOOL)?,
            ("length", Scalar::Float) => self.length(line, a)?,
            ("normalize", Scalar::Float) => {
                let square = self.dot(line, a, a)?;
                let inverse = self.map(Op::FInverseSqrt, &square)?;
                self.zip(line, Op::FMul, a, &inverse)?
            }
            ("floatBitsToInt", Scalar::Float) => bits(Scalar::Int),
            ("floatBitsToUint", Scalar::Float) => bits(Scalar::Uint),
            ("intBitsToFloat", Scalar::Int) | ("uintBitsToFloat", Scalar::Uint) => bits(Scalar::Float),
            ("transpose", Scalar::Float) => transpose(a),
            ("determinant", Scalar::Float) => self.determinant(line, a)?,
            ("inverse", Scalar::Float) => self.inverse(line, a)?,
            ("packSnorm2x16" | "packUnorm2x16" | "packHalf2x16", Scalar::Float) => self.opaque(Type::UINT)?,
            ("unpackSnorm2x16" | "unpackUnorm2x16" | "unpackHalf2x16", Scalar::Uint) => {
                self.opaque(Type::vector(Scalar::Float, 2))?
            }
            _ => return Ok(None),
        }))
    }

    fn built_in_2(&mut self, line: u32, name: &str, a: &Value, b: &Value) -> Result<Option<Value>> {
        let scalar = a.ty.shape().map(|(scalar, ..)| scalar);
        let op = match (name, scalar) {
            ("pow", _) => Op::FPow,
            ("atan", _) => Op::FAtan2,
            ("mod", _) => Op::FMod,
            ("min", Some(Scalar::Float)) => Op::FMin,
            ("min", Some(Scalar::Int)) => Op::IMin,
            ("min", _) => Op::UMin,
            ("max", Some(Scalar::Float)) => Op::FMax,
            ("max", Some(Scalar::Int)) => Op::IMax,
            ("max", _) => Op::UMax,
            ("matrixCompMult", _) => Op::FMul,
            _ => return self.geometry(line, name, a, b),
        };
        self.zip(line, op, a, b).map(Some)
    }

    fn geometry(&mut self, line: u32, name: &str, a: &Value, b: &Value) -> Result<Option<Value>> {
        self.floats(line, name, &[a.clone(), b.clone()])?;
        Ok(Some(match name {
            "dot" => self.dot(line, a, b)?,
            "distance" => {
                let between = self.zip(line, Op::FSub, a, b)?;
                self.length(line, &between)?
            }
            "cross" => self.cross(line, a, b)?,
            "reflect" => {
                let along = self.dot(line, b, a)?;
                let twice = self.scaled(line, &along, 2.0)?;
                let change = self.zip(line, Op::FMul, b, &twice)?;
                self.zip(line, Op::FSub, a, &change)?
            }
            "step" => {
                let below = self.zip(line, Op::FLess, b, a)?;
                self.choose_constants(&below, b.ty, 0.0, 1.0)?
            }
            "outerProduct" => self.outer_product(a, b)?,
            _ => return Ok(None),
        }))
    }

    fn built_in_3(
        &mut self,
        line: u32,
        name: &str,
        a: &Value,
        b: &Value,
        c: &Value,
    ) -> Result<Option<Value>> {
        let scalar = a.ty.shape().map(|(scalar, ..)| scalar);
        Ok(Some(match (name, scalar) {
            ("clamp", Some(scalar)) => {
                let (low, high) = match scalar {
                    Scalar::Float => (Op::FMax, Op::FMin),
                    Scalar::Int => (Op::IMax, Op::IMin),
                    Scalar::Uint | Scalar::Bool => (Op::UMax, Op::UMin),
                };
                let above = self.zip(line, low, a, b)?;
                self.zip(line, high, &above, c)?
            }
            ("mix", _) => self.mix(line, a, b, c)?,
            ("smoothstep", _) => self.smoothstep(line, a, b, c)?,
            ("faceforward", _) => {
                let along = self.dot(line, c, b)?;
                let zero = self.literal(Type::FLOAT, 0)?;
                let facing = self.zip(line, Op::FLess, &along, &zero)?;
                let away = self.map(Op::FNeg, a)?;
                self.choose(line, &facing, &away, a)?
            }
            ("refract", _) => self.refract(line, a, b, c)?,
            _ => return Ok(None),
        }))
    }

    fn scaled(&mut self, line: u32, a: &Value, factor: f32) -> Result<Value> {
        let factor = self.literal(Type::FLOAT, factor.to_bits())?;
        self.zip(line, Op::FMul, a, &factor)
    }

    fn reduce(&mut self, op: Op, a: &Value, ty: Type) -> Result<Value> {
        let mut ids = a.ids.iter();
        let mut total = match ids.next() {
            Some(first) => *first,
            None => self.code.bits(0)?,
        };
        self.code.begin_group();
        for id in ids {
            total = self.code.binary(op, total, *id)?;
        }
        Ok(Value { ty, ids: vec![total] })
    }

    fn dot(&mut self, line: u32, a: &Value, b: &Value) -> Result<Value> {
        if a.ty != b.ty {
            return Err(GlslError::types(line, format!("dot of {} and {}", a.ty, b.ty)));
        }
        let products = self.zip(line, Op::FMul, a, b)?;
        self.reduce(Op::FAdd, &products, Type::FLOAT)
    }

    fn length(&mut self, line: u32, a: &Value) -> Result<Value> {
        if a.ids.len() == 1 {
            return self.map(Op::FAbs, a);
        }
        let square = self.dot(line, a, a)?;
        self.map(Op::FSqrt, &square)
    }

    fn cross(&mut self, line: u32, a: &Value, b: &Value) -> Result<Value> {
        let ([a0, a1, a2], [b0, b1, b2]) = (a.ids.as_slice(), b.ids.as_slice()) else {
            return Err(GlslError::types(line, "cross wants vec3"));
        };
        let turn = |x: &Id, y: &Id, z: &Id| Value { ty: a.ty, ids: vec![*x, *y, *z] };
        let left = self.zip(line, Op::FMul, &turn(a1, a2, a0), &turn(b2, b0, b1))?;
        let right = self.zip(line, Op::FMul, &turn(a2, a0, a1), &turn(b1, b2, b0))?;
        self.zip(line, Op::FSub, &left, &right)
    }

    /// Per component `yes` where the condition holds, else `no`; a scalar condition is for all.
    fn choose(&mut self, line: u32, condition: &Value, no: &Value, yes: &Value) -> Result<Value> {
        let fits = condition.ids.len() == 1 || condition.ids.len() == no.ids.len();
        if no.ty != yes.ty || !fits {
            return Err(GlslError::types(line, "choice between different types"));
        }
        self.code.begin_group();
        let mut ids = Vec::new();
        for (at, (no, yes)) in no.ids.iter().zip(&yes.ids).enumerate() {
            let condition = condition.ids[if condition.ids.len() == 1 { 0 } else { at }];
            ids.push(self.code.select(condition, *yes, *no)?);
        }
        Ok(Value { ty: no.ty, ids })
    }

    fn choose_constants(&mut self, condition: &Value, ty: Type, yes: f32, no: f32) -> Result<Value> {
        let (yes, no) = (self.code.float(yes)?, self.code.float(no)?);
        self.code.begin_group();
        let ids = condition.ids.iter().map(|id| self.code.select(*id, yes, no)).collect::<Result<_>>()?;
        Ok(Value { ty, ids })
    }

    fn mix(&mut self, line: u32, a: &Value, b: &Value, share: &Value) -> Result<Value> {
        if matches!(share.ty.shape(), Some((Scalar::Bool, ..))) {
            return self.choose(line, share, a, b);
        }
        let span = self.zip(line, Op::FSub, b, a)?;
        let part = self.zip(line, Op::FMul, &span, share)?;
        self.zip(line, Op::FAdd, &part, a)
    }

    fn smoothstep(&mut self, line: u32, low: &Value, high: &Value, x: &Value) -> Result<Value> {
        let above = self.zip(line, Op::FSub, x, low)?;
        let span = self.zip(line, Op::FSub, high, low)?;
        let share = self.zip(line, Op::FDiv, &above, &span)?;
        let (zero, one) = (self.literal(Type::FLOAT, 0)?, self.literal(Type::FLOAT, 1.0_f32.to_bits())?);
        let share = self.zip(line, Op::FMax, &share, &zero)?;
        let t = self.zip(line, Op::FMin, &share, &one)?;
        let three = self.literal(Type::FLOAT, 3.0_f32.to_bits())?;
        let twice = self.scaled(line, &t, 2.0)?;
        let slope = self.zip(line, Op::FSub, &three, &twice)?;
        let square = self.zip(line, Op::FMul, &t, &t)?;
        self.zip(line, Op::FMul, &square, &slope)
    }

    fn refract(&mut self, line: u32, ray: &Value, normal: &Value, eta: &Value) -> Result<Value> {
        let one = self.literal(Type::FLOAT, 1.0_f32.to_bits())?;
        let zero = self.literal(Type::FLOAT, 0)?;
        let along = self.dot(line, normal, ray)?;
        let square = self.zip(line, Op::FMul, &along, &along)?;
        let across = self.zip(line, Op::FSub, &one, &square)?;
        let eta_square = self.zip(line, Op::FMul, eta, eta)?;
        let bent = self.zip(line, Op::FMul, &eta_square, &across)?;
        let k = self.zip(line, Op::FSub, &one, &bent)?;
        let scaled_ray = self.zip(line, Op::FMul, ray, eta)?;
        let eta_along = self.zip(line, Op::FMul, eta, &along)?;
        let root = self.map(Op::FSqrt, &k)?;
        let depth = self.zip(line, Op::FAdd, &eta_along, &root)?;
        let change = self.zip(line, Op::FMul, normal, &depth)?;
        let result = self.zip(line, Op::FSub, &scaled_ray, &change)?;
        let total = self.zip(line, Op::FLess, &k, &zero)?;
        let none = Value { ty: result.ty, ids: vec![zero.ids[0]; result.ids.len()] };
        self.choose(line, &total, &result, &none)
    }

    fn outer_product(&mut self, a: &Value, b: &Value) -> Result<Value> {
        let mut ids = Vec::new();
        for column in &b.ids {
            self.code.begin_group();
            for row in &a.ids {
                ids.push(self.code.binary(Op::FMul, *row, *column)?);
            }
        }
        let size = |value: &Value| u8::try_from(value.ids.len()).unwrap_or(4);
        Ok(Value { ty: Type::matrix(size(b), size(a)), ids })
    }

    fn determinant(&mut self, line: u32, a: &Value) -> Result<Value> {
        let Some((_, columns @ 2.., rows)) = a.ty.shape().filter(|(_, columns, rows)| columns == rows) else {
            return Err(GlslError::types(line, "determinant wants a square matrix"));
        };
        let all: Vec<u8> = (0..rows).collect();
        let id = self.minor(a, columns, &all, &all)?;
        Ok(Value { ty: Type::FLOAT, ids: vec![id] })
    }

    /// The determinant of the given rows and columns, by the first column; at most 4×4.
    fn minor(&mut self, a: &Value, size: u8, columns: &[u8], rows: &[u8]) -> Result<Id> {
        let cell = |column: u8, row: u8| a.ids[usize::from(column * size + row)];
        let (Some((first, rest)), [_, ..]) = (columns.split_first(), rows) else {
            return self.code.float(1.0);
        };
        let mut total = self.code.float(0.0)?;
        for (index, row) in rows.iter().enumerate() {
            let others: Vec<u8> = rows.iter().filter(|other| *other != row).copied().collect();
            let minor = self.minor(a, size, rest, &others)?;
            let term = self.code.binary(Op::FMul, cell(*first, *row), minor)?;
            let op = if index % 2 == 0 { Op::FAdd } else { Op::FSub };
            total = self.code.binary(op, total, term)?;
        }
        Ok(total)
    }

    fn inverse(&mut self, line: u32, a: &Value) -> Result<Value> {
        let determinant = self.determinant(line, a)?;
        let size = a.ty.shape().map_or(1, |(_, columns, _)| columns);
        let one = self.literal(Type::FLOAT, 1.0_f32.to_bits())?;
        let factor = self.zip(line, Op::FDiv, &one, &determinant)?;
        let without = |skip: u8| -> Vec<u8> { (0..size).filter(|at| *at != skip).collect() };
        let mut ids = Vec::new();
        for column in 0..size {
            self.code.begin_group();
            for row in 0..size {
                // Cofactors, transposed.
                let minor = self.minor(a, size, &without(row), &without(column))?;
                let signed =
                    if (row + column) % 2 == 0 { minor } else { self.code.unary(Op::FNeg, minor)? };
                ids.push(self.code.binary(Op::FMul, signed, factor.ids[0])?);
            }
        }
        Ok(Value { ty: a.ty, ids })
    }

    pub(super) fn modf(&mut self, line: u32, arguments: &[ExprId], values: &[Value]) -> Result<Value> {
        let ([value, _], [_, out]) = (values, arguments) else {
            return Err(GlslError::types(line, "modf wants two arguments"));
        };
        let whole = self.map(Op::FTrunc, value)?;
        let place = self.place(*out)?;
        self.store(line, &place, &whole)?;
        self.zip(line, Op::FSub, value, &whole)
    }
}

fn transpose(a: &Value) -> Value {
    let (_, columns, rows) = a.ty.shape().unwrap_or((Scalar::Float, 1, 1));
    let cell = |column: u8, row: u8| a.ids[usize::from(row * rows + column)];
    let cells = (0..rows).flat_map(|column| (0..columns).map(move |row| (column, row)));
    Value { ty: Type::matrix(rows, columns), ids: cells.map(|(column, row)| cell(column, row)).collect() }
}
