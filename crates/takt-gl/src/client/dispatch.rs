//! Dispatches of compute shaders on their way to the driver: whole, or in pieces.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use takt_core::Span;
use takt_predict::cost::ProgramId;
use takt_predict::predictor::DispatchCall;

use super::context::State;
use super::current::flush;
use super::group::End;
use crate::entry::real;
use crate::session::session;
use crate::shadow::compute::Compute;
use crate::shadow::program::Program;
use crate::slice::{self, CutPlan, DispatchCircumstances, Grid, Groups, Reason, Signature, Slicer, Variant};
use crate::{gl, guard, measure};

/// A dispatch that is handed over in pieces.
#[derive(Debug)]
pub struct CutDispatch {
    /// Its pieces.
    pub slicer: Slicer<Grid>,
    /// What does them.
    pub parts: Parts,
}

/// How a part of a dispatch is handed over: by another program, which does the same.
#[derive(Debug)]
pub struct Parts {
    program: Arc<Mutex<Program>>,
    /// The program's own object, and ours.
    names: [u32; 2],
    base: i32,
    group_size: [u32; 3],
    all: [u32; 3],
}

impl Parts {
    /// Hands a part over. The program's own object is in use afterwards.
    pub fn dispatch(&self, part: &Groups) {
        let [own, ours] = self.names;
        let [x, y, z] = part.count;
        let mut invocation = part.first;
        invocation.iter_mut().zip(self.group_size).for_each(|(at, size)| *at = at.wrapping_mul(size));
        let base = [part.first, invocation, self.all];
        // SAFETY: the program is linked and does not go away before all parts are handed over; the uniform
        // has room for what is set.
        unsafe { real::glProgramUniform3uiv(ours, self.base, 3, base.as_ptr().cast_mut().cast()) };
        // SAFETY: as above; no transform feedback is recording.
        unsafe { real::glUseProgram(ours) };
        // SAFETY: fewer workgroups than the program's own call had.
        unsafe { real::glDispatchCompute(x, y, z) };
        // SAFETY: the program's own choice, which is linked and does not go away either.
        unsafe { real::glUseProgram(own) };
    }

    /// All parts are handed over. Even if Takt is switched off by now, a program that was deleted
    /// meanwhile goes.
    pub fn end(&self) {
        let left = guard::attempted(|| {
            let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
            program.cut_ends().then(|| program.part_names())
        });
        let Some(parts) = left.flatten() else { return };
        for name in parts.into_iter().chain([self.names[0]]) {
            // SAFETY: the program has deleted it, or it is ours.
            unsafe { real::glDeleteProgram(name) };
        }
    }
}

impl State {
    /// A dispatch is about to be made, of so many workgroups as are known: hands over what is too much
    /// already, notes the dispatch, and asks for a grant or says how to cut it.
    pub fn about_to_dispatch(&mut self, groups: Option<[u32; 3]>) -> Option<Box<CutDispatch>> {
        self.make_room();
        let variant = self.dispatched_variant();
        // What GL refuses takes no time, however much it says.
        let groups =
            groups.map(|groups| if variant.is_some() && is_refused(groups) { [0; 3] } else { groups });
        if self.stream.gathering.coasts() {
            if variant.is_some_and(|variant| self.was_measured(variant)) {
                self.builder.dispatch();
                self.ask();
                self.begins();
                return None;
            }
            self.make_way();
        }
        let slice = self.stream.slice(session());
        let cuts = slice < Span::FOREVER;
        // What it takes is hardly known before it was measured; so that is done apart from all else.
        let fresh = cuts && !variant.is_some_and(|variant| self.was_measured(variant));
        if fresh && self.submit(End::Limit) {
            flush();
        }
        let before = (cuts && !self.builder.is_empty()).then(|| self.pending());
        self.dispatch(groups, variant);
        let cut =
            variant.filter(|_| cuts).and_then(|variant| self.cut_dispatch(groups, variant, slice, before));
        if cut.is_none() {
            self.measure_apart = fresh;
            self.ask();
            self.begins();
        }
        cut.map(Box::new)
    }

    /// Work of unknown extent, which `key` tells from other such work: measured times of its like say what it
    /// takes.
    pub fn unknown_work(&mut self, key: u64) {
        self.builder.unknown();
        self.estimate(key);
    }

    /// Has the models estimate a command by nothing but what its like took.
    pub(super) fn estimate(&mut self, key: u64) {
        let mut hash = DefaultHasher::new();
        ("estimated", key).hash(&mut hash);
        self.meets(Variant(hash.finish()));
        let Some(models) = self.forecast.shared().filter(|_| !self.stream.gathering.coasts()) else {
            return;
        };
        let program = ProgramId::of_compute("");
        let (groups, group_size, operations) = (Some([1; 3]), GROUP_SIZE_ASSUMED, OPERATIONS_ASSUMED);
        let call = DispatchCall { program, uniforms: key, groups, group_size, operations };
        models.lock().unwrap_or_else(PoisonError::into_inner).dispatch(&call, self.shadow.software());
    }

    /// The compute program in use, with the whole numbers that its uniforms hold.
    fn dispatched_variant(&self) -> Option<Variant> {
        let (name, program) = self.shadow.program.as_ref()?;
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        program.read_compute(*name, self.shadow.extensions()).map(Compute::variant)
    }

    /// Adds a dispatch to the current group.
    fn dispatch(&mut self, groups: Option<[u32; 3]>, variant: Option<Variant>) {
        self.builder.dispatch();
        let Some(models) = self.forecast.shared() else {
            return;
        };
        let mut call = DispatchCall {
            // Programs that could not be read, and pipelines of them, are told apart by their workgroups.
            program: ProgramId::of_compute(""),
            uniforms: variant.map_or(0, |variant| variant.0),
            groups,
            group_size: GROUP_SIZE_ASSUMED,
            operations: OPERATIONS_ASSUMED,
        };
        if let Some((_, program)) = &self.shadow.program {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(compute) = program.compute() {
                call.program = compute.id;
                call.group_size = compute.invocations();
                call.operations = compute.effort.map_or(OPERATIONS_ASSUMED, |effort| effort.operations);
            }
        }
        let mut models = models.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.forecast.seen.contains(&call.program) {
            models.meet_compute();
            self.forecast.seen.push(call.program);
        }
        models.dispatch(&call, self.shadow.software());
    }

    fn cut_dispatch(
        &mut self,
        groups: Option<[u32; 3]>,
        variant: Variant,
        slice: Span,
        before: Option<Span>,
    ) -> Option<CutDispatch> {
        let predicted = self.pending().saturating_sub(before.unwrap_or(Span::ZERO));
        if !self.was_measured(variant) && !self.follow.programs.contains(&variant) {
            self.follow.programs.push(variant);
        }
        let tried = self.stream.gathering.is_alone() || slice::is_short_program(variant);
        let believed = (tried || self.is_surely_short(groups)) && predicted.as_ns() < slice.as_ns() / 2;
        if believed || !measure::is_possible(self.id.display) {
            return None;
        }
        let refused = |reason: Reason| {
            if predicted > slice {
                slice::refused(reason);
            }
        };
        let groups = slice::decide_dispatch(&self.dispatch_circumstances(groups))
            .inspect_err(|reason| refused(*reason))
            .ok()?;
        let mut hash = DefaultHasher::new();
        (variant.0, groups).hash(&mut hash);
        let known = slice::draw(Signature(hash.finish()));
        if slice::is_short(&known.figures(), slice) {
            self.follow.whole.push(known);
            return None;
        }
        let Some(grid) = Grid::new(groups) else {
            refused(Reason::Small);
            return None;
        };
        let trial = self.trial(&known, predicted, slice)?;
        let Some(parts) = self.parts(groups) else {
            refused(Reason::NoPart);
            return None;
        };
        slice::cut(variant);
        let (least, software) = (self.least_of_dispatch(), self.shadow.software());
        let slicer = Slicer::new(grid, known, CutPlan { slice, predicted, least, software, before, trial });
        Some(CutDispatch { slicer, parts })
    }

    /// What an invocation of the program in use takes at least, if its source tells how often it loops and each does
    /// the same: then no part of a dispatch takes less.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; saturates")]
    fn least_of_dispatch(&self) -> Span {
        let effort = self.shadow.program.as_ref().and_then(|(_, program)| {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            program
                .compute()
                .and_then(|compute| compute.effort)
                .filter(|effort| effort.sure && effort.straight)
        });
        effort.map_or(Span::ZERO, |effort| Span::from_ns((effort.operations * OPERATION_NS) as u64))
    }

    /// Whether the source of the program in use shows that so many workgroups cannot take long.
    fn is_surely_short(&self, groups: Option<[u32; 3]>) -> bool {
        let (Some((_, program)), Some(groups)) = (&self.shadow.program, groups) else {
            return false;
        };
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        program.compute().is_some_and(|compute| {
            let invocations = groups.iter().map(|side| f64::from(*side)).product::<f64>();
            let operations = compute.effort.filter(|effort| effort.sure).map(|effort| effort.operations);
            let all = operations.map(|each| each.max(1.0) * invocations * f64::from(compute.invocations()));
            all.is_some_and(|all| all < SHORT_OPERATIONS)
        })
    }

    fn dispatch_circumstances(&self, groups: Option<[u32; 3]>) -> DispatchCircumstances {
        let observers = &self.shadow.observers;
        let used = self.shadow.program.as_ref();
        let named = used.is_some_and(|(name, program)| self.shadow.has_program(*name, program));
        let effort = used.and_then(|(_, program)| {
            let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
            program.compute().and_then(|compute| compute.effort)
        });
        DispatchCircumstances {
            groups,
            groups_max: groups_max(),
            program: named && effort.is_some(),
            waits: effort.is_none_or(|effort| effort.waits),
            counted: observers.counted(),
            feedback: observers.feedback,
            debugged: observers.debugged,
        }
    }

    /// What hands parts of the dispatch over; none if there is no program for that.
    fn parts(&self, all: [u32; 3]) -> Option<Parts> {
        let (name, program) = self.shadow.program.clone()?;
        let mut held = program.lock().unwrap_or_else(PoisonError::into_inner);
        let compute = held.compute()?;
        let group_size = compute.group_size;
        let part = compute.part(name, self.id.number)?;
        let (names, base) = ([name, part.name], part.base);
        held.cut_begins();
        drop(held);
        Some(Parts { program, names, base, group_size, all })
    }
}

/// What an invocation does, and how many a workgroup has, where neither can be known.
const OPERATIONS_ASSUMED: f64 = 100.0;
const GROUP_SIZE_ASSUMED: u32 = 64;

/// What an operation of an invocation takes at least, where each waits for the one before: about four cycles of a
/// GPU, of which half is counted because some do not wait.
const OPERATION_NS: f64 = 1.0;

/// Every GPU does this much within a tenth of a millisecond, and renderers on the CPU within one.
const SHORT_OPERATIONS: f64 = 1e6;

/// Whether GL refuses so many workgroups. The context must be current, and know compute shaders.
fn is_refused(groups: [u32; 3]) -> bool {
    let many = groups.iter().any(|side| *side > GROUPS_ANYWHERE);
    many && groups.iter().zip(groups_max()).any(|(side, most)| *side > most)
}

/// Each driver takes so many workgroups to a side.
const GROUPS_ANYWHERE: u32 = 65_535;

/// How many workgroups there may be to each side. The context must be current, and know compute shaders.
fn groups_max() -> [u32; 3] {
    [0, 1, 2].map(|side| {
        let mut most = 0_i32;
        // SAFETY: a limit with three values; there is room for one.
        unsafe { real::glGetIntegeri_v(gl::MAX_COMPUTE_WORK_GROUP_COUNT, side, (&raw mut most).cast()) };
        u32::try_from(most).unwrap_or(0)
    })
}
