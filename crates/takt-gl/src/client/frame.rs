//! The end of a frame.
//!
//! A paced program asks for a grant to swap, because the daemon releases its next frame when it gives
//! that; then a swap is a group of its own, as it is where each group is measured. Otherwise the swap
//! belongs to the group of the frame's last draws, and the group goes on if more frames fit into it
//! ([`takt_client::gather`]).

use takt_client::Grant;
use takt_client::gather::FrameCost;
use takt_client::pace_finder::Hold;
use takt_core::Span;

use super::context::State;
use super::current::flush;
use super::group::End;
use super::meter::SwapEnd;
use super::rhythm::FrameEnd;
use crate::measure::Witnessed;
use crate::session::session;
use crate::settings::settings;
use crate::{clock, measure};

/// How a frame is about to end.
#[derive(Clone, Copy, Debug)]
pub enum Swapping {
    /// The swap is a group of its own.
    Apart {
        /// Its grant, and whether the program waits after it.
        end: Option<FrameEnd>,
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

impl State {
    /// `eglSwapBuffers` is about to be called: there is a grant afterwards, if a daemon schedules. With
    /// `idle`, it gives the GPU nothing to do.
    pub fn before_swap(&mut self, idle: bool) -> Swapping {
        if !session().is_wanted() {
            return self.before_swap_apart(idle, Hold::No);
        }
        let waits = self.shadow.surface.as_ref().is_some_and(|surface| surface.waits());
        let hold = self.swaps(waits);
        if gathers() { self.before_swap_within() } else { self.before_swap_apart(idle, hold) }
    }

    /// Drawing goes elsewhere: true if the group goes on all the same, because all of it is known.
    pub(super) fn goes_on_elsewhere(&mut self, now_ns: u64) -> bool {
        let gathering = &self.stream.gathering;
        if gathering.coasts() {
            return true;
        }
        let room = self.stream.has_grant() && gathering.shares() && gathering.has_time(now_ns);
        if !room || self.builder.is_empty() || self.follow.is_news() || !gathers() {
            return false;
        }
        // The models predict what is drawn to one target.
        let predicted = self.predict_group(End::Target);
        let first = predicted.as_ref().and_then(|(_, predicted)| predicted.predictions.first());
        let likely = first.map_or(Span::ZERO, |(prediction, _)| prediction.value.span());
        self.stream.contains(likely);
        self.stream.gathering.end_part(now_ns, likely);
        true
    }

    fn before_swap_apart(&mut self, idle: bool, hold: Hold) -> Swapping {
        self.submit(End::BeforeSwap);
        self.stream.gathering.stop_coasting();
        self.about_to_swap();
        let grant = self.ask_to_swap(idle);
        if !idle {
            self.meter.swap_begins();
        }
        Swapping::Apart { end: grant.map(|grant| FrameEnd { grant, hold }), idle }
    }

    /// Asks for a grant to swap; none if unscheduled. An idle swap takes no time of the GPU.
    fn ask_to_swap(&mut self, idle: bool) -> Option<Grant> {
        if !session().is_wanted() || measure::is_early() {
            return None;
        }
        // An estimate of zero says that there is nothing to show, so a shown swap asks for more.
        let estimate = if idle { Span::ZERO } else { self.predicted_swap().most.max(Span::from_ns(1)) };
        self.stream.ask_to_show(measure::watched(), estimate)
    }

    fn before_swap_within(&mut self) -> Swapping {
        self.about_to_swap();
        self.stream.check(session());
        self.renew_grant();
        let coasts = self.stream.gathering.coasts();
        let mut cost = if coasts { self.stream.gathering.frame_cost() } else { self.predicted_swap() };
        // What the draws take at most is within the credit already.
        if !coasts
            && self.stream.credit().is_some_and(|credit| cost.likely > credit)
            && self.submit(End::BeforeSwap)
        {
            cost = self.predicted_swap();
        }
        self.stream.command = "";
        let ends = self.stream.plan(measure::watched(), cost, self.follow.is_news());
        self.begins();
        let ran_ns = (ends && self.shadow.software()).then(measure::own_ns);
        Swapping::Within { ends, cost, ran_ns }
    }

    /// What the current group is likely to cost with a swap, and at most.
    fn predicted_swap(&self) -> FrameCost {
        self.forecast.swap(self.shadow.predicted_target())
    }

    /// `eglSwapBuffers` is over, which began at that time.
    pub fn swapped(&mut self, swapping: Swapping, began_ns: u64) {
        match swapping {
            Swapping::Apart { idle, .. } => {
                let shown = self.meter.showing.take().and_then(Witnessed::shown);
                let complete = shown.is_some();
                self.meter.swap_end = shown.map(SwapEnd::Seen).or_else(|| idle.then_some(SwapEnd::Before));
                self.submit_since(End::Swap, began_ns);
                if !complete {
                    flush();
                }
            }
            Swapping::Within { ends, cost, ran_ns } => self.swapped_within(began_ns, ends, cost, ran_ns),
        }
        self.shadow.look_at_surface();
    }

    /// `eglSwapBuffers` failed.
    pub fn not_swapped(&mut self) {
        self.meter.showing.take().and_then(Witnessed::shown);
    }

    fn swapped_within(&mut self, began_ns: u64, ends: bool, cost: FrameCost, ran_ns: Option<u64>) {
        let now_ns = clock::now_ns();
        self.stream.frame_ended(session(), began_ns, now_ns, cost);
        if !ends && self.stream.has_grant() {
            // The models begin the next frame; of this one they will hear nothing.
            self.predict_group(End::Swap);
            self.builder.end_frame();
            let slice = self.stream.slice(session());
            self.stream.gathering.begin_frame(slice);
            return;
        }
        let mut at_ns = began_ns;
        if let Some(ran_ns) = ran_ns {
            // What this thread did is counted as its time in calls; what is waited for is not.
            let worked_ns = measure::own_ns().saturating_sub(ran_ns).min(now_ns.saturating_sub(began_ns));
            self.builder.spent(worked_ns);
            at_ns += worked_ns;
        }
        self.stream.gathering.end_with_frame(now_ns);
        self.submit_since(End::Swap, at_ns);
        let slice = self.stream.slice(session());
        self.stream.gathering.begin_frame(slice);
        flush();
    }
}

/// Whether frames may share groups.
fn gathers() -> bool {
    session().is_wanted() && settings().measure.is_none() && session().is_free_running()
}
