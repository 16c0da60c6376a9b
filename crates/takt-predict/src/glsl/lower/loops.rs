//! Loops: written out where that is possible and short enough, else kept.
//!
//! A kept loop runs its body for all vertices at once. Its first carried value says which of them
//! still run; everything the body changes is chosen by it. Which variables the body changes is
//! found by running it until no new ones turn up.

use std::collections::BTreeMap;

use super::Lowerer;
use super::env::LoopSlots;
use crate::glsl::ast::{ExprId, Loop, StmtId, StmtKind};
use crate::glsl::code::{Carried, Id, LoopInfo};
use crate::glsl::error::{GlslError, Result};
use crate::glsl::limits::{
    TRIPS_ASSUMED, TRIPS_COUNTED_MAX, UNROLL_INSTRUCTIONS_MAX, UNROLL_STEPS_MAX, UNROLL_TRIPS_MAX,
    UNROLL_UNSURE_TRIPS_MAX,
};
use crate::glsl::op::Op;
use crate::glsl::types::Type;

/// How writing out a loop ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unrolled {
    Done,
    /// The condition is not known before the shader runs.
    Unsure,
    /// It would become too long.
    TooLong,
}

impl Lowerer<'_> {
    pub(super) fn loop_statement(&mut self, line: u32, parts: Loop) -> Result<()> {
        self.push_scope();
        let outer_slots = self.slots.len();
        if let Some(start) = parts.start {
            self.statement(start)?;
        }
        let broken = self.flag(line)?;
        let continued = self.flag(line)?;
        let flags = LoopSlots { broken, continued: Some(continued) };
        let dead = self.dead()?;
        let live = self.code.not(dead)?;
        self.push_loop(flags);
        self.branch(line, live, |lowerer| lowerer.any_loop(line, &parts, outer_slots), |_| Ok(()))?;
        self.pop_loop();
        self.pop_scope();
        Ok(())
    }

    fn any_loop(&mut self, line: u32, parts: &Loop, outer_slots: usize) -> Result<()> {
        let code = self.code.mark();
        let start = self.begin();
        let (branches, discards, facts) = (self.branches.len(), self.discards.len(), self.facts);
        let outcome = self.unroll(line, parts, outer_slots)?;
        if outcome == Unrolled::Done {
            self.end();
            return Ok(());
        }
        self.roll_back(start);
        self.branches.truncate(branches);
        self.discards.truncate(discards);
        self.facts = facts;
        let trips = if outcome == Unrolled::TooLong { self.count_trips(line, parts)? } else { None };
        self.roll_back(start);
        self.end();
        self.spend(line, self.code.len() / 16)?;
        self.code.rewind(code);
        match trips {
            Some(_) => self.facts.kept_loop = true,
            None => self.facts.assumed_trips = true,
        }
        self.keep_loop(line, parts, trips.unwrap_or(TRIPS_ASSUMED))
    }

    fn flags(&self, line: u32) -> Result<(u32, u32)> {
        let flags = self.frames.last().and_then(|frame| frame.loops.last());
        let flags = flags.and_then(|flags| Some((flags.broken, flags.continued?)));
        flags.ok_or_else(|| GlslError::syntax(line, "loop outside of a function"))
    }

    /// The value of a loop's condition; it may declare a variable.
    fn loop_condition(&mut self, line: u32, condition: Option<StmtId>) -> Result<Id> {
        let Some(condition) = condition else {
            return self.code.bool(true);
        };
        let tree = self.tree;
        let expression = match &tree.stmt(condition).kind {
            StmtKind::Expr(expression) => *expression,
            StmtKind::Block(inner) => {
                let [declare, read] = inner.as_slice() else {
                    return Err(GlslError::syntax(line, "malformed condition"));
                };
                self.statement(*declare)?;
                match &tree.stmt(*read).kind {
                    StmtKind::Expr(expression) => *expression,
                    _ => return Err(GlslError::syntax(line, "malformed condition")),
                }
            }
            _ => return Err(GlslError::syntax(line, "malformed condition")),
        };
        let value = self.expr(expression)?;
        match value.ids.as_slice() {
            [id] if value.ty == Type::BOOL => Ok(*id),
            _ => Err(GlslError::types(line, format!("condition of type {}", value.ty))),
        }
    }

    fn unroll(&mut self, line: u32, parts: &Loop, outer_slots: usize) -> Result<Unrolled> {
        let (broken, continued) = self.flags(line)?;
        let (code, steps) = (self.code.len(), self.steps);
        let mut unsure = 0;
        for trip in 0..=UNROLL_TRIPS_MAX {
            if !parts.body_first || trip > 0 {
                let dead = self.dead()?;
                let before = self.journal.len();
                let condition = self.loop_condition(line, parts.condition)?;
                let public = |(slot, _): &(u32, Id)| (*slot as usize) < outer_slots;
                if self.code.constant(dead).is_none() && self.journal[before..].iter().any(public) {
                    // Its effects must not reach vertices that have left; a kept loop sees to that.
                    return Ok(Unrolled::Unsure);
                }
                match self.code.constant(condition) {
                    Some(0) => return Ok(Unrolled::Done),
                    Some(_) => {}
                    None => {
                        // Worth writing out only if a counter ends the loop at some point.
                        if unsure == 0 && !self.header_ends(line, parts)? {
                            return Ok(Unrolled::Unsure);
                        }
                        unsure += 1;
                        let marker = self.code.push(Op::Branch, condition, 0, 0)?;
                        self.branches.push(marker);
                        let leaves = self.code.not(condition)?;
                        let left = self.code.binary(Op::BOr, self.read(broken), leaves)?;
                        self.write(broken, left);
                    }
                }
            }
            let dead = self.dead()?;
            match self.code.constant(dead) {
                Some(0) => {}
                Some(_) => return Ok(Unrolled::Done),
                None => self.facts.early_exit = true,
            }
            if unsure > UNROLL_UNSURE_TRIPS_MAX {
                return Ok(Unrolled::Unsure);
            }
            if self.code.len() - code > UNROLL_INSTRUCTIONS_MAX || self.steps - steps > UNROLL_STEPS_MAX {
                break;
            }
            self.push_scope();
            self.guarded(parts.body)?;
            self.pop_scope();
            self.set_flag(continued, false)?;
            self.unrolled_step(line, parts.step, outer_slots)?;
        }
        Ok(if unsure > 0 { Unrolled::Unsure } else { Unrolled::TooLong })
    }

    /// The loop's own counter steps on even where the loop was left: it is out of scope there, and
    /// so it remains a constant.
    fn unrolled_step(&mut self, line: u32, step: Option<ExprId>, outer_slots: usize) -> Result<()> {
        let Some(step) = step else {
            return Ok(());
        };
        let dead = self.dead()?;
        let live = self.code.not(dead)?;
        let start = self.begin();
        self.expr(step)?;
        let private = |(slot, _): &(u32, Id)| *slot as usize >= outer_slots;
        if self.journal[start.0..].iter().all(private) {
            self.end();
            return Ok(());
        }
        self.roll_back(start);
        self.end();
        self.branch(line, live, |lowerer| lowerer.expr(step).map(|_value| ()), |_| Ok(()))
    }

    /// Whether the loop's header alone comes to an end soon, whatever the data.
    fn header_ends(&mut self, line: u32, parts: &Loop) -> Result<bool> {
        let Some(step) = parts.step else {
            return Ok(false);
        };
        let code = self.code.mark();
        let start = self.begin();
        let mut ends = false;
        for _ in 0..UNROLL_UNSURE_TRIPS_MAX {
            self.expr(step)?;
            let condition = self.loop_condition(line, parts.condition)?;
            ends = self.code.constant(condition) == Some(0);
            if ends {
                break;
            }
        }
        self.roll_back(start);
        self.end();
        self.code.rewind(code);
        Ok(ends)
    }

    /// How often a loop runs whose header alone decides it: its counter changes by a constant, so
    /// the end is found by bisection. A body that changes the counter as well would make this
    /// wrong; ES 1.00 forbids it, and the result is flagged as not exact anyway.
    fn count_trips(&mut self, line: u32, parts: &Loop) -> Result<Option<u32>> {
        let Some(step) = parts.step else {
            return Ok(None);
        };
        let start = self.begin();
        let trips = self.bisect_trips(line, parts, step, start.0)?;
        self.roll_back(start);
        self.end();
        Ok(trips)
    }

    fn bisect_trips(&mut self, line: u32, parts: &Loop, step: ExprId, mark: usize) -> Result<Option<u32>> {
        self.expr(step)?;
        let Some((slot, first)) = self.journal.get(mark).copied() else {
            return Ok(None);
        };
        let second = self.read(slot);
        self.expr(step)?;
        let third = self.read(slot);
        if self.journal[mark..].iter().any(|(other, _)| *other != slot) {
            return Ok(None);
        }
        let Some(counter) = Counter::of([first, second, third].map(|id| self.code.constant(id))) else {
            return Ok(None);
        };
        // It has ended at `high`, and runs at everything below `low`.
        let (mut low, mut high) = (0, TRIPS_COUNTED_MAX);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut runs = Some(0);
            if let Some(bits) = counter.at(middle) {
                let value = self.code.bits(bits)?;
                self.write(slot, value);
                let condition = self.loop_condition(line, parts.condition)?;
                runs = self.code.constant(condition);
            }
            match runs {
                None => return Ok(None),
                Some(0) => high = middle,
                Some(_) => low = middle + 1,
            }
        }
        Ok((low < TRIPS_COUNTED_MAX).then_some(low))
    }

    fn keep_loop(&mut self, line: u32, parts: &Loop, trips: u32) -> Result<()> {
        let (broken, _) = self.flags(line)?;
        let mut carried: BTreeMap<u32, Id> = BTreeMap::new();
        loop {
            let code = self.code.mark();
            let start = self.begin();
            let marks = (self.branches.len(), self.discards.len());
            let (outer, number) = (self.path, self.code.loops.len());
            self.code.loops.push(LoopInfo { trips, ..LoopInfo::default() });
            let label = u32::try_from(number).unwrap_or(u32::MAX);
            self.code.push(Op::LoopBegin, label, 0, 0)?;
            let active = self.code.push(Op::Phi, label, 0, 0)?;
            for (slot, phi) in &mut carried {
                *phi = self.code.push(Op::Phi, label, 0, 0)?;
                self.write(*slot, *phi);
            }
            self.set_flag(broken, false)?;
            let next = self.iteration(line, parts, active)?;
            self.path = outer;
            self.code.push(Op::LoopEnd, label, 0, 0)?;
            let changes = self.roll_back(start);
            self.end();
            let known = carried.len();
            for (slot, next) in &changes {
                if self.read(*slot) != *next && *slot != broken {
                    carried.entry(*slot).or_insert(0);
                }
            }
            if carried.len() == known {
                self.code.forget(code);
                return self.close_loop(number, (active, outer, next), &carried, &changes);
            }
            self.spend(line, self.code.len() / 16)?;
            self.code.rewind(code);
            self.branches.truncate(marks.0);
            self.discards.truncate(marks.1);
        }
    }

    /// One iteration of a kept loop; the result says which vertices run another one.
    fn iteration(&mut self, line: u32, parts: &Loop, active: Id) -> Result<Id> {
        let mut go_on = active;
        let out = &mut go_on;
        self.branch(
            line,
            active,
            |lowerer| {
                let runs = if parts.body_first {
                    lowerer.code.bool(true)?
                } else {
                    lowerer.loop_condition(line, parts.condition)?
                };
                let marker = lowerer.code.push(Op::Branch, runs, 0, 0)?;
                lowerer.branches.push(marker);
                lowerer.branch(line, runs, |lowerer| lowerer.kept_body(line, parts), |_| Ok(()))?;
                let dead = lowerer.dead()?;
                let live = lowerer.code.not(dead)?;
                let condition =
                    if parts.body_first { lowerer.loop_condition(line, parts.condition)? } else { runs };
                *out = lowerer.code.binary(Op::BAnd, live, condition)?;
                Ok(())
            },
            |_| Ok(()),
        )?;
        self.code.binary(Op::BAnd, active, go_on)
    }

    fn kept_body(&mut self, line: u32, parts: &Loop) -> Result<()> {
        let (_, continued) = self.flags(line)?;
        self.push_scope();
        self.guarded(parts.body)?;
        self.pop_scope();
        self.set_flag(continued, false)?;
        let Some(step) = parts.step else {
            return Ok(());
        };
        let dead = self.dead()?;
        let live = self.code.not(dead)?;
        self.branch(line, live, |lowerer| lowerer.expr(step).map(|_value| ()), |_| Ok(()))
    }

    fn close_loop(
        &mut self,
        number: usize,
        (phi, first, next): (Id, Id, Id),
        carried: &BTreeMap<u32, Id>,
        changes: &BTreeMap<u32, Id>,
    ) -> Result<()> {
        let mut all = vec![Carried { phi, first, next }];
        for (slot, phi) in carried {
            let first = self.read(*slot);
            let next = changes.get(slot).copied().unwrap_or(first);
            all.push(Carried { phi: *phi, first, next });
        }
        for (slot, phi) in carried {
            self.write(*slot, *phi);
        }
        if let Some(info) = self.code.loops.get_mut(number) {
            info.active = all.first().copied();
            info.carried = all;
        }
        Ok(())
    }
}

/// A loop's counter: its value at the start and what each iteration adds.
#[derive(Clone, Copy, Debug)]
enum Counter {
    Int(i32, i32),
    Float(f32, f32),
}

impl Counter {
    /// From the values of the first iterations, whose type only their bits tell.
    fn of(values: [Option<u32>; 3]) -> Option<Self> {
        let [Some(a), Some(b), Some(c)] = values else {
            return None;
        };
        let step = b.wrapping_sub(a);
        if step == c.wrapping_sub(b) {
            return (step != 0).then_some(Self::Int(a.cast_signed(), step.cast_signed()));
        }
        let [a, b, c] = [a, b, c].map(f32::from_bits);
        let (step, next) = (b - a, c - b);
        let steady = step.is_normal() && (next - step).abs() <= step.abs() * 1e-3;
        steady.then_some(Self::Float(a, step))
    }

    /// Its value after some iterations; none if it has left the range of its type.
    #[expect(clippy::cast_possible_truncation, reason = "the nearest float is meant")]
    fn at(self, trips: u32) -> Option<u32> {
        match self {
            Self::Int(first, step) => {
                let value = i64::from(first) + i64::from(step) * i64::from(trips);
                i32::try_from(value).ok().map(i32::cast_unsigned)
            }
            Self::Float(first, step) => {
                Some(((f64::from(first) + f64::from(step) * f64::from(trips)) as f32).to_bits())
            }
        }
    }
}
