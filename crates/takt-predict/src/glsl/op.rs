//! Operations on single scalars.
//!
//! Every vector operation is taken apart, so dead components fall away and swizzles cost nothing.
//! A scalar is 32 bits: a float, an integer, or a truth value that is all ones or all zeros, so
//! that logic and selection are plain bit operations.

/// What an instruction does. The letter in front says what its operands are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Op {
    // Leaves.
    Const,
    Attribute,
    Uniform,
    Input,
    VertexIndex,
    InstanceIndex,
    Phi,
    // Structure.
    LoopBegin,
    LoopEnd,
    Branch,
    // Access.
    UniformAt,
    Texture,
    Component,
    /// A value that the analysis does not compute.
    Opaque,
    Derivative,
    // Floats.
    FAdd,
    FSub,
    FMul,
    FDiv,
    FNeg,
    FAbs,
    FSign,
    FFloor,
    FCeil,
    FTrunc,
    FRoundEven,
    FFract,
    FMod,
    FMin,
    FMax,
    FSqrt,
    FInverseSqrt,
    FExp,
    FLog,
    FExp2,
    FLog2,
    FPow,
    FSin,
    FCos,
    FTan,
    FAsin,
    FAcos,
    FAtan,
    FAtan2,
    FSinh,
    FCosh,
    FTanh,
    FAsinh,
    FAcosh,
    FAtanh,
    FIsNan,
    FIsInf,
    FLess,
    FLessEqual,
    FEqual,
    // Integers; those with I are signed, with U unsigned, with B either.
    BAdd,
    BSub,
    BMul,
    IDiv,
    UDiv,
    IRem,
    URem,
    BNeg,
    IAbs,
    ISign,
    IMin,
    IMax,
    UMin,
    UMax,
    BShl,
    IShr,
    UShr,
    BAnd,
    BOr,
    BXor,
    BNot,
    ILess,
    ILessEqual,
    ULess,
    ULessEqual,
    BEqual,
    // Conversions and choice.
    FToInt,
    FToUint,
    IToFloat,
    UToFloat,
    Select,
}

/// What an operation costs in a shader core, in kinds of [`Kind`](super::Kind).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cost {
    Free,
    Alu(u8),
    /// Uses of the special-function unit, and ordinary ones around them.
    Special(u8, u8),
    Compare,
    Select,
    Convert,
    Texture,
}

impl Op {
    /// How many of an instruction's numbers are values of other instructions.
    pub(super) const fn operands(self) -> usize {
        match self {
            Self::Const
            | Self::Attribute
            | Self::Uniform
            | Self::Input
            | Self::VertexIndex
            | Self::InstanceIndex
            | Self::Phi
            | Self::LoopBegin
            | Self::LoopEnd
            | Self::Texture => 0,
            Self::Branch | Self::UniformAt | Self::Component | Self::Derivative => 1,
            Self::Select => 3,
            op if op.is_unary() => 1,
            _ => 2,
        }
    }

    const fn is_unary(self) -> bool {
        matches!(
            self,
            Self::FNeg
                | Self::FAbs
                | Self::FSign
                | Self::FFloor
                | Self::FCeil
                | Self::FTrunc
                | Self::FRoundEven
                | Self::FFract
                | Self::FSqrt
                | Self::FInverseSqrt
                | Self::FExp
                | Self::FLog
                | Self::FExp2
                | Self::FLog2
                | Self::FSin
                | Self::FCos
                | Self::FTan
                | Self::FAsin
                | Self::FAcos
                | Self::FAtan
                | Self::FSinh
                | Self::FCosh
                | Self::FTanh
                | Self::FAsinh
                | Self::FAcosh
                | Self::FAtanh
                | Self::FIsNan
                | Self::FIsInf
                | Self::BNeg
                | Self::IAbs
                | Self::ISign
                | Self::BNot
                | Self::FToInt
                | Self::FToUint
                | Self::IToFloat
                | Self::UToFloat
        )
    }

    /// Whether the order of two operands does not matter.
    pub(super) const fn commutes(self) -> bool {
        matches!(
            self,
            Self::FAdd
                | Self::FMul
                | Self::FEqual
                | Self::BAdd
                | Self::BMul
                | Self::BAnd
                | Self::BOr
                | Self::BXor
                | Self::BEqual
        )
    }

    /// Whether [`apply`] computes it.
    pub(super) const fn is_computed(self) -> bool {
        !matches!(
            self,
            Self::Const
                | Self::Attribute
                | Self::Uniform
                | Self::Input
                | Self::VertexIndex
                | Self::InstanceIndex
                | Self::Phi
                | Self::LoopBegin
                | Self::LoopEnd
                | Self::Branch
                | Self::UniformAt
                | Self::Texture
                | Self::Component
                | Self::Opaque
                | Self::Derivative
        )
    }

    /// What it costs. The weights of composed functions are those of their usual expansion.
    pub(super) const fn cost(self) -> Cost {
        match self {
            Self::Const
            | Self::Attribute
            | Self::Uniform
            | Self::Input
            | Self::VertexIndex
            | Self::InstanceIndex
            | Self::Phi
            | Self::LoopBegin
            | Self::LoopEnd
            | Self::Branch
            | Self::Component
            // Sign changes are modifiers of the operation that reads them.
            | Self::FNeg
            | Self::FAbs => Cost::Free,
            Self::Texture => Cost::Texture,
            Self::FSign | Self::ISign | Self::FMod | Self::Derivative | Self::IAbs => Cost::Alu(2),
            Self::IDiv | Self::UDiv | Self::IRem | Self::URem => Cost::Special(1, 8),
            Self::FDiv | Self::FExp | Self::FLog => Cost::Special(1, 1),
            Self::FSqrt | Self::FInverseSqrt | Self::FExp2 | Self::FLog2 | Self::FSin | Self::FCos => {
                Cost::Special(1, 0)
            }
            Self::FPow => Cost::Special(2, 1),
            Self::FTan => Cost::Special(3, 1),
            Self::FAsin | Self::FAcos => Cost::Special(1, 6),
            Self::FAtan | Self::FAtan2 => Cost::Special(1, 10),
            Self::FSinh | Self::FCosh => Cost::Special(2, 3),
            Self::FTanh => Cost::Special(3, 4),
            Self::FAsinh | Self::FAcosh | Self::FAtanh => Cost::Special(2, 4),
            Self::FIsNan
            | Self::FIsInf
            | Self::FLess
            | Self::FLessEqual
            | Self::FEqual
            | Self::ILess
            | Self::ILessEqual
            | Self::ULess
            | Self::ULessEqual
            | Self::BEqual => Cost::Compare,
            Self::Select => Cost::Select,
            Self::FToInt | Self::FToUint | Self::IToFloat | Self::UToFloat => Cost::Convert,
            _ => Cost::Alu(1),
        }
    }
}

/// The bits of a truth value.
#[inline(always)]
pub(super) const fn truth(value: bool) -> u32 {
    if value { u32::MAX } else { 0 }
}

/// Computes one scalar; operations that [`Op::is_computed`] excludes give 0.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "GLSL's conversions saturate too"
)]
#[expect(clippy::float_cmp, reason = "this is the shader's own comparison")]
#[inline(always)]
pub(super) fn apply(op: Op, a: u32, b: u32, c: u32) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    let f = f32::to_bits;
    match op {
        Op::FAdd => f(x + y),
        Op::FSub => f(x - y),
        Op::FMul => f(x * y),
        Op::FDiv => f(x / y),
        Op::FNeg => a ^ (1 << 31),
        Op::FAbs => a & !(1 << 31),
        Op::FSign => f(f32::from(i8::from(x > 0.0) - i8::from(x < 0.0))),
        Op::FFloor => f(x.floor()),
        Op::FCeil => f(x.ceil()),
        Op::FTrunc => f(x.trunc()),
        Op::FRoundEven => f(x.round_ties_even()),
        Op::FFract => f(x - x.floor()),
        Op::FMod => f(x - y * (x / y).floor()),
        Op::FMin => f(if y < x { y } else { x }),
        Op::FMax => f(if x < y { y } else { x }),
        Op::FSqrt => f(x.sqrt()),
        Op::FInverseSqrt => f(1.0 / x.sqrt()),
        Op::FExp => f(x.exp()),
        Op::FLog => f(x.ln()),
        Op::FExp2 => f(x.exp2()),
        Op::FLog2 => f(x.log2()),
        Op::FPow => f(x.powf(y)),
        Op::FSin => f(x.sin()),
        Op::FCos => f(x.cos()),
        Op::FTan => f(x.tan()),
        Op::FAsin => f(x.asin()),
        Op::FAcos => f(x.acos()),
        Op::FAtan => f(x.atan()),
        Op::FAtan2 => f(x.atan2(y)),
        Op::FSinh => f(x.sinh()),
        Op::FCosh => f(x.cosh()),
        Op::FTanh => f(x.tanh()),
        Op::FAsinh => f(x.asinh()),
        Op::FAcosh => f(x.acosh()),
        Op::FAtanh => f(x.atanh()),
        Op::FIsNan => truth(x.is_nan()),
        Op::FIsInf => truth(x.is_infinite()),
        Op::FLess => truth(x < y),
        Op::FLessEqual => truth(x <= y),
        Op::FEqual => truth(x == y),
        Op::FToInt => (x as i32).cast_unsigned(),
        Op::FToUint => x as u32,
        _ => apply_to_bits(op, a, b, c),
    }
}

/// The same for operations on whole numbers and bits.
#[inline(always)]
fn apply_to_bits(op: Op, a: u32, b: u32, c: u32) -> u32 {
    let (i, j) = (a.cast_signed(), b.cast_signed());
    match op {
        Op::BAdd => a.wrapping_add(b),
        Op::BSub => a.wrapping_sub(b),
        Op::BMul => a.wrapping_mul(b),
        Op::IDiv => i.checked_div(j).unwrap_or(-1).cast_unsigned(),
        Op::UDiv => a.checked_div(b).unwrap_or(u32::MAX),
        Op::IRem => i.checked_rem(j).unwrap_or(-1).cast_unsigned(),
        Op::URem => a.checked_rem(b).unwrap_or(u32::MAX),
        Op::BNeg => a.wrapping_neg(),
        Op::IAbs => i.wrapping_abs().cast_unsigned(),
        Op::ISign => i.signum().cast_unsigned(),
        Op::IMin => i.min(j).cast_unsigned(),
        Op::IMax => i.max(j).cast_unsigned(),
        Op::UMin => a.min(b),
        Op::UMax => a.max(b),
        Op::BShl => a.wrapping_shl(b),
        Op::IShr => i.wrapping_shr(b).cast_unsigned(),
        Op::UShr => a.wrapping_shr(b),
        Op::BAnd => a & b,
        Op::BOr => a | b,
        Op::BXor => a ^ b,
        Op::BNot => !a,
        Op::ILess => truth(i < j),
        Op::ILessEqual => truth(i <= j),
        Op::ULess => truth(a < b),
        Op::ULessEqual => truth(a <= b),
        Op::BEqual => truth(a == b),
        Op::IToFloat => (i as f32).to_bits(),
        Op::UToFloat => (a as f32).to_bits(),
        Op::Select => (a & b) | (!a & c),
        _ => 0,
    }
}
