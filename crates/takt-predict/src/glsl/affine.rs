//! Positions that are a matrix times an attribute.
//!
//! A position is affine if every component is a sum of one attribute's components, each times a
//! factor that is the same for all vertices, plus such a constant. Any product of matrices with a
//! position attribute is, however it is written. The factors are expressions over uniforms; they
//! are added to the code, and evaluated once per call instead of once per vertex.

use super::code::{Code, Id};
use super::error::Result;
use super::live::Live;
use super::op::Op;

/// Factors of up to four components, and the constant behind them.
pub(super) type AffineRow = [Id; 5];

/// A value as a sum over the attribute's components.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// The same for all vertices.
    Uniform(Id),
    Affine(AffineRow),
}

/// The factors of a position, if it is affine in the attribute whose words are given.
pub(super) fn factors(
    code: &mut Code,
    live: &Live,
    position: [Id; 4],
    words: std::ops::Range<u32>,
) -> Result<Option<[AffineRow; 4]>> {
    if words.len() > 4 || live.loops.iter().any(|live| *live) {
        return Ok(None);
    }
    let mut forms: Vec<Option<Form>> = vec![None; live.instrs.len()];
    for id in 0..u32::try_from(live.instrs.len()).unwrap_or(0) {
        if live.instrs[id as usize] {
            let Some(form) = form(code, &forms, id, words.start)? else {
                return Ok(None);
            };
            forms[id as usize] = Some(form);
        }
    }
    let mut rows = [[0; 5]; 4];
    for (row, id) in rows.iter_mut().zip(position) {
        let Some(form) = forms[id as usize] else {
            return Ok(None);
        };
        *row = as_row(code, form)?;
    }
    Ok(Some(rows))
}

fn as_row(code: &mut Code, form: Form) -> Result<AffineRow> {
    let zero = code.float(0.0)?;
    Ok(match form {
        Form::Uniform(id) => [zero, zero, zero, zero, id],
        Form::Affine(row) => row,
    })
}

fn form(code: &mut Code, forms: &[Option<Form>], id: Id, first_word: u32) -> Result<Option<Form>> {
    let instr = code.instr(id);
    if instr.op == Op::Attribute {
        let mut row = as_row(code, Form::Uniform(0))?;
        row[4] = row[0];
        row[(instr.a - first_word) as usize] = code.float(1.0)?;
        return Ok(Some(Form::Affine(row)));
    }
    if instr.op == Op::VertexIndex {
        return Ok(None);
    }
    let of = |operand: u32| forms.get(operand as usize).copied().flatten();
    let operands = [instr.a, instr.b, instr.c].map(of);
    let count = instr.op.operands();
    let uniform = operands[..count].iter().all(|form| matches!(form, Some(Form::Uniform(_))));
    if uniform {
        return Ok(Some(Form::Uniform(id)));
    }
    let form = match (instr.op, operands) {
        (Op::FNeg, [Some(Form::Affine(row)), ..]) => Form::Affine(each(row, |id| code.unary(Op::FNeg, id))?),
        (Op::FAdd | Op::FSub, [Some(a), Some(b), _]) => {
            let (a, b) = (as_row(code, a)?, as_row(code, b)?);
            let mut sum = a;
            for (sum, b) in sum.iter_mut().zip(b) {
                *sum = code.binary(instr.op, *sum, b)?;
            }
            Form::Affine(sum)
        }
        (Op::FMul, [Some(Form::Affine(row)), Some(Form::Uniform(factor)), _])
        | (Op::FMul, [Some(Form::Uniform(factor)), Some(Form::Affine(row)), _]) => {
            Form::Affine(each(row, |id| code.binary(Op::FMul, id, factor))?)
        }
        (Op::FDiv, [Some(Form::Affine(row)), Some(Form::Uniform(divisor)), _]) => {
            Form::Affine(each(row, |id| code.binary(Op::FDiv, id, divisor))?)
        }
        (Op::Select, [Some(Form::Uniform(condition)), Some(yes), Some(no)]) => {
            let (yes, no) = (as_row(code, yes)?, as_row(code, no)?);
            let mut chosen = yes;
            for (chosen, no) in chosen.iter_mut().zip(no) {
                *chosen = code.select(condition, *chosen, no)?;
            }
            Form::Affine(chosen)
        }
        _ => return Ok(None),
    };
    Ok(Some(form))
}

fn each(row: AffineRow, mut change: impl FnMut(Id) -> Result<Id>) -> Result<AffineRow> {
    let mut changed = row;
    for id in &mut changed {
        *id = change(*id)?;
    }
    Ok(changed)
}
