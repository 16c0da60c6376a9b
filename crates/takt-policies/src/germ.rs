//! `germ`: fair shares by deficit round robin, decided on a tick.
//!
//! * **Rule.** Nothing is decided between ticks: groups that came and completions that happened
//!   are found when the next tick looks for them. Apps take turns; with its turn an app gains a
//!   quantum of GPU time (one tick) and keeps the turn while it has some left and groups to run.
//!   What its groups occupied the GPU is taken off when they end, so an overrun is paid in later
//!   turns; an app that has nothing to run saves nothing up.
//! * **Promises.** Fairness in the long run, to all apps. Priorities play no role, and a GPU
//!   that becomes idle stays so until the next tick.
//! * **Assumptions.** Groups are short against a tick, or the overrun is paid much later; costs are
//!   measured. Predictions play no role.
//! * **Source.** Bautin, Dwarakinath, Chiueh, "Graphic engine resource management", MMCN 2008, as
//!   described in TimeGraph, sections 6.3 and 7: ticks of 1 ms, a register that is polled, costs
//!   known afterwards. The quantum is not given there.
//! * **Cost.** Two passes over the apps; no allocation.

use alloc::vec::Vec;

use takt_core::app::AppId;
use takt_core::config::Config;
use takt_core::event::Hold;
use takt_core::policy::{Context, Ended, Policy};
use takt_core::scheduler::Lane;
use takt_core::time::{Span, Time};

/// Deficit round robin on a tick.
#[derive(Clone, Default, Debug)]
pub struct Germ {
    tick: Span,
    /// By slot.
    shares: Vec<Share>,
    /// Whose turn it is.
    turn: Option<AppId>,
    /// The tick at which to look next, if an app waits for it.
    next: Option<Time>,
    /// The instant of the tick that is being served.
    served: Option<Time>,
}

/// What an app has a right to.
#[derive(Copy, Clone, Default, Debug)]
struct Share {
    /// What it may still use in its turn, in nanoseconds; negative after an overrun.
    deficit: i64,
    attached: bool,
}

impl Germ {
    /// With no apps yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether a decision at `now` is one of a tick, be it a late one.
    fn ticks(&mut self, now: Time) -> bool {
        let due = self.next.is_some_and(|at| at <= now) || now.as_ns().is_multiple_of(self.tick.as_ns());
        if due {
            self.next = None;
            self.served = Some(now);
        }
        self.served == Some(now)
    }

    /// The first tick after `now`.
    fn tick_after(&self, now: Time) -> Time {
        let tick = self.tick.as_ns();
        Time::ZERO + self.tick.times(now.as_ns() / tick + 1)
    }

    /// Gives the turn to the next app that has something to run and something left, in the order
    /// of slots after the one whose turn it was; gives every app a quantum as often as that takes.
    fn next_turn(&mut self, lanes: &[Lane]) -> Option<usize> {
        let quantum = self.tick.as_signed_ns();
        let after = self.turn.map_or(0, |app| app.0 + 1);
        let place = |lane: &Lane| lane.app.0.wrapping_sub(after);
        // An app gains its quantum in each round, so the one that needs the fewest rounds is next.
        let rounds = |lane: &Lane| self.shares[lane.app.index()].deficit.saturating_neg().max(0) / quantum;
        let waiting = lanes.iter().enumerate().filter(|(_, lane)| lane.head.is_some());
        let (index, next) = waiting.min_by_key(|(_, lane)| (rounds(lane), place(lane)))?;
        let full_rounds = rounds(next);
        for lane in lanes.iter().filter(|lane| lane.head.is_some()) {
            let visited_last = place(lane) <= place(next);
            let visits = full_rounds + i64::from(visited_last);
            let deficit = &mut self.shares[lane.app.index()].deficit;
            *deficit = deficit.saturating_add(visits.saturating_mul(quantum));
        }
        self.turn = Some(next.app);
        Some(index)
    }
}

impl Policy for Germ {
    fn name(&self) -> &'static str {
        "germ"
    }

    fn prepare(&mut self, config: &Config) {
        self.tick = config.tuning.tick.max(Span::from_ns(1));
        self.shares = alloc::vec![Share::default(); config.apps_max as usize];
    }

    fn apps_changed(&mut self, _now: Time, lanes: &[Lane]) {
        self.next = None;
        // An app that takes the slot of one that left starts with nothing.
        for share in &mut self.shares {
            share.attached = false;
        }
        for lane in lanes {
            self.shares[lane.app.index()].attached = true;
        }
        for share in self.shares.iter_mut().filter(|share| !share.attached) {
            share.deficit = 0;
        }
    }

    fn submitted(&mut self, _now: Time, lane: &Lane, was_idle: bool) {
        if was_idle {
            let deficit = &mut self.shares[lane.app.index()].deficit;
            *deficit = (*deficit).min(0);
        }
    }

    fn ended(&mut self, _now: Time, ended: &Ended, lane: &Lane) {
        let deficit = &mut self.shares[lane.app.index()].deficit;
        *deficit = deficit.saturating_sub(ended.occupied.as_signed_ns());
    }

    fn timeout(&self) -> Option<Time> {
        self.next
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        if !self.ticks(context.now) {
            let at = self.tick_after(context.now);
            self.next = Some(at);
            for lane in lanes.iter_mut().filter(|lane| lane.head.is_some()) {
                lane.hold = Some(Hold::Tick { at });
            }
            return None;
        }
        let going_on = |lane: &Lane| {
            Some(lane.app) == self.turn && lane.head.is_some() && self.shares[lane.app.index()].deficit > 0
        };
        let choice = lanes.iter().position(going_on).or_else(|| self.next_turn(lanes))?;
        let app = lanes[choice].app;
        for lane in lanes.iter_mut().filter(|lane| lane.head.is_some()) {
            lane.hold = Some(Hold::Behind { app });
        }
        Some(choice)
    }
}
