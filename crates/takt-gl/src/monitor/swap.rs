//! The end of a frame.
//!
//! A program that is told when its frames may begin asks for leave to swap, because it is released
//! when that is given; then a swap is a group of its own, as it is where each group is measured.
//! Otherwise the swap belongs to the group of the frame's last draws, and the group goes on if more
//! frames fit into it ([`gather`](super::gather)).

use takt_core::Span;

use super::context::State;
use super::current::flush;
use super::gather::FrameCost;
use crate::gate::{self, Pass};
use crate::group::End;
use crate::measure::Witnessed;
use crate::settings::settings;
use crate::{clock, measure};

/// How a frame is about to end.
#[derive(Clone, Copy, Debug)]
pub enum Swapping {
    /// The swap is a group of its own.
    Apart {
        /// Its leave.
        pass: Option<Pass>,
        /// It gives the GPU nothing to do.
        idle: bool,
    },
    /// The swap is part of a group.
    Within {
        /// The group ends with it.
        ends: bool,
        /// What the frame is predicted to take.
        cost: FrameCost,
        /// How long this thread had run, if that is of use.
        ran_ns: Option<u64>,
    },
}

/// What is known of the end of a swap's group.
#[derive(Clone, Copy, Debug)]
pub(super) enum SwapEnd {
    /// It was over by then, with everything before it.
    Seen(u64),
    /// It is over when everything before it is.
    Before,
}

impl State {
    /// Whether a swap of that surface has no effect. What a renderer on the CPU does in that call is its
    /// own affair, and of other surfaces than the one that is drawn to nothing is known.
    pub fn swap_does_nothing(&self, handle: usize) -> bool {
        let surface = self.surface.as_ref();
        !self.software() && surface.is_some_and(|surface| surface.handle == handle && !surface.shows)
    }

    /// `eglSwapBuffers` is about to be called: leave is there afterwards, if anybody gives any. With
    /// `idle`, it gives the GPU nothing to do.
    pub fn before_swap(&mut self, idle: bool) -> Swapping {
        if gathers() { self.before_swap_within() } else { self.before_swap_apart(idle) }
    }

    /// Drawing goes elsewhere: true if the group goes on all the same, because all of it is known.
    pub(super) fn goes_on_elsewhere(&mut self, now_ns: u64) -> bool {
        if self.leave.gathering.coasts() {
            return true;
        }
        let leave = &self.leave;
        let room = leave.has_pass() && leave.gathering.shares() && leave.gathering.has_time(now_ns);
        if !room || self.builder.is_empty() || self.follow.is_news() || !gathers() {
            return false;
        }
        // The models predict what is drawn to one target.
        let predicted = self.predict_group(End::Target);
        let first = predicted.as_ref().and_then(|(_, predicted)| predicted.predictions.first());
        let likely = first.map_or(Span::ZERO, |(prediction, _)| prediction.value.span());
        self.leave.contains(likely);
        self.leave.gathering.end_part(now_ns, likely);
        true
    }

    fn before_swap_apart(&mut self, idle: bool) -> Swapping {
        self.submit(End::BeforeSwap);
        self.leave.gathering.stop_coasting();
        self.about_to_swap();
        let pass = self.ask_to_swap(idle);
        if !idle {
            self.swap_begins();
        }
        Swapping::Apart { pass, idle }
    }

    fn before_swap_within(&mut self) -> Swapping {
        self.about_to_swap();
        self.leave.check();
        let coasts = self.leave.gathering.coasts();
        let mut cost = if coasts { self.leave.gathering.frame_cost() } else { self.predicted_swap() };
        // What the draws take at most is within the credit already.
        if !coasts
            && self.leave.credit().is_some_and(|credit| cost.likely > credit)
            && self.submit(End::BeforeSwap)
        {
            cost = self.predicted_swap();
        }
        self.ask_for(cost.most);
        let credit = self.leave.credit().unwrap_or(Span::ZERO);
        let news = self.follow.is_news();
        let plan = self.leave.gathering.plan(clock::now_ns(), cost, credit, news);
        if plan.ask_ahead {
            let frame = self.leave.frame() + cost.most;
            gate::ask_ahead(self.leave.gathering.wanted_ahead().max(frame).min(gate::slice()));
        }
        self.begins();
        let ran_ns = (plan.ends && self.software()).then(measure::own_ns);
        Swapping::Within { ends: plan.ends, cost, ran_ns }
    }

    /// `eglSwapBuffers` is over, which began at that time.
    pub fn swapped(&mut self, swapping: Swapping, began_ns: u64) {
        match swapping {
            Swapping::Apart { idle, .. } => {
                let shown = self.showing.take().and_then(Witnessed::shown);
                let complete = shown.is_some();
                self.swap_end = shown.map(SwapEnd::Seen).or_else(|| idle.then_some(SwapEnd::Before));
                self.submit_since(End::Swap, began_ns);
                if !complete {
                    flush();
                }
            }
            Swapping::Within { ends, cost, ran_ns } => self.swapped_within(began_ns, ends, cost, ran_ns),
        }
        self.look_at_surface();
    }

    /// `eglSwapBuffers` failed.
    pub fn not_swapped(&mut self) {
        self.showing.take().and_then(Witnessed::shown);
    }

    fn swapped_within(&mut self, began_ns: u64, ends: bool, cost: FrameCost, ran_ns: Option<u64>) {
        let now_ns = clock::now_ns();
        self.leave.contains(cost.most);
        let whole = self.leave.frame();
        self.leave.end_frame();
        self.unasked.end_frame();
        self.leave.gathering.end_frame(began_ns, now_ns, cost, whole);
        if let Some(pass) = self.leave.pass() {
            gate::end_frame(pass);
        }
        if !ends && self.leave.has_pass() {
            // The models begin the next frame; of this one they will hear nothing.
            self.predict_group(End::Swap);
            self.builder.end_frame();
            self.leave.gathering.begin_frame(gate::slice());
            return;
        }
        let mut at_ns = began_ns;
        if let Some(ran_ns) = ran_ns {
            // What this thread did is counted as its time in calls; what is waited for is not.
            let worked_ns = measure::own_ns().saturating_sub(ran_ns).min(now_ns.saturating_sub(began_ns));
            self.builder.spent(worked_ns);
            at_ns += worked_ns;
        }
        self.leave.gathering.end_with_frame(now_ns);
        self.submit_since(End::Swap, at_ns);
        self.leave.gathering.begin_frame(gate::slice());
        flush();
    }
}

/// Whether frames may share groups.
fn gathers() -> bool {
    gate::is_wanted() && settings().measure.is_none() && gate::is_free_running()
}
