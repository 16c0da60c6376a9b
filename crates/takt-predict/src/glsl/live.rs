//! Which instructions matter for given results: the backward slice.

use std::collections::BTreeMap;

use super::code::{Code, Id};
use super::op::Op;

/// The instructions that results depend on.
#[derive(Clone, Debug)]
pub(super) struct Live {
    pub(super) instrs: Vec<bool>,
    /// How many live instructions read each one.
    pub(super) uses: Vec<u32>,
    pub(super) loops: Vec<bool>,
}

/// Calls `visit` with each scalar that an instruction reads.
pub(super) fn operands(code: &Code, id: Id, mut visit: impl FnMut(Id)) {
    let instr = code.instr(id);
    for operand in [instr.a, instr.b, instr.c].into_iter().take(instr.op.operands()) {
        if instr.op != Op::Opaque {
            visit(operand);
        }
    }
    if instr.op == Op::Texture {
        code.lists.get(instr.a as usize).into_iter().flatten().for_each(|operand| visit(*operand));
    }
}

/// Walks back from the results.
pub(super) fn live(code: &Code, results: &[Id]) -> Live {
    let mut phis: BTreeMap<Id, (usize, usize)> = BTreeMap::new();
    for (number, info) in code.loops.iter().enumerate() {
        phis.extend(info.carried.iter().enumerate().map(|(index, carried)| (carried.phi, (number, index))));
    }
    let mut live = Live {
        instrs: vec![false; code.len()],
        uses: vec![0; code.len()],
        loops: vec![false; code.loops.len()],
    };
    let mut pending: Vec<Id> = results.to_vec();
    while let Some(id) = pending.pop() {
        live.uses[id as usize] += 1;
        if std::mem::replace(&mut live.instrs[id as usize], true) {
            continue;
        }
        operands(code, id, |operand| pending.push(operand));
        if let Some((number, index)) = phis.get(&id).copied() {
            let info = &code.loops[number];
            pending.extend([info.carried[index].first, info.carried[index].next]);
            // A carried value is as good as the knowledge of when to stop.
            if !std::mem::replace(&mut live.loops[number], true) {
                pending.extend(info.active.iter().map(|active| active.phi));
            }
        }
    }
    live
}
