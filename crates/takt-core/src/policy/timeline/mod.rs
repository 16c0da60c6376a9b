//! `timeline`: keep every promise, and give the rest away.
//!
//! * **Contracts.** Frames of a display, frames by an app's own clock, or a bandwidth server. Each makes
//!   *promises*: a span of GPU time between a release and a due date. *Protected* is the longest prefix of apps,
//!   by importance, whose contracts pass the offline test together ([`Lane::protected`]).
//! * **Rules.** A protected group is bound by the protected promises that are due before its own, and, as
//!   long as estimates can be wrong, by those of more important apps; every other group is bound by all
//!   protected promises, and by what more important apps have. A group that would break a promise that binds
//!   it is held. Of the others, the earliest due goes first, ties to the more important app.
//! * **Beyond a promise.** Work of a protected app beyond what its frame was promised is owed nothing, and leaves
//!   room for the next promise of its app. A promise that cannot be kept beside those of more important apps
//!   binds none of their groups: an app used more than it was promised, and importance decides who suffers.
//! * **Servers.** A group goes by the deadline of the budget that covers it ([`accounts`]).
//! * **Sources.** Frames that several apps share come in one lane, as if one app had submitted everything (ADR 0045).
//! * **The GPU.** The policy does not know how it executes. It is told when everything in flight is over, and
//!   which dispatched work one more group can still make late ([`Lane::on_gpu_due`]): the due date of that
//!   work is a promise without a span.
//! * **Divisible work** of apps without a contract needs no slack: every other group is charged for what such work
//!   can delay it. One group of it is in flight at a time (ADR 0042).
//! * **Turns.** Where a change of contexts costs something, late apps that are promised nothing take turns ([`rest`]).
//! * **The rest.** Apps that are not protected keep time free for what they have, down the order of
//!   importance, but only until their own due date has passed; relief against starvation is
//!   [`crate::Tuning::relief_every`]. Where blocking is limited, they keep clear of the releases of apps with
//!   a contract ([`clearance`]).
//! * **Assumptions.** Groups run no longer than their conservative prediction, frames and jobs stay within
//!   what they were promised, and are released as their contract says. Then no protected app misses a
//!   deadline, whatever less important apps do. `takt prove` tests that; ADR 0039 has its figures.
//! * **Cost.** Linear in apps times the periods looked at, rarely more than [`lookahead::FIRST`]; no allocation.

mod accounts;
mod board;
mod clearance;
mod columns;
mod gaps;
mod lookahead;
mod order;
mod pass;
mod promises;
mod rest;
mod rule;
mod shed;
mod walk;

use alloc::vec;
use alloc::vec::Vec;

use super::{Context, Ended, Paid, Policy};
use crate::config::Config;
use crate::scheduler::Lane;
use crate::time::{Span, Time};
use accounts::Accounts;
use board::{Board, FOREVER, Free};
use gaps::Pausing;
use lookahead::Lookahead;
use order::{gives_way, tell_winner};
use pass::{Again, Pass, Ready};
use promises::{Frame, Sizes};
use rest::Rest;
use shed::Shed;

/// The timeline of promises.
#[derive(Clone, Debug)]
pub struct Timeline {
    board: Board,
    /// By lane; as long as a decision lasts.
    frames: Vec<Frame>,
    /// Whether that group is part of a promise.
    promised: Vec<bool>,
    sizes: Sizes,
    accounts: Accounts,
    rest: Rest,
    /// Until when the GPU may be busy for the promises of more important apps, by lane.
    limits: Vec<Option<Free>>,
    all_limits: bool,
    shed: Shed,
    lookahead: Lookahead,
    /// When the next reservation of an absent frame lapses.
    lapse: i64,
    timeout: Option<Time>,
    /// How long the group that was chosen last could have been.
    room: i64,
    /// When the app in each slot had divisible work dispatched last.
    turns: Vec<Time>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

impl Timeline {
    /// With no apps yet.
    pub fn new() -> Self {
        Self {
            board: Board::new(),
            frames: Vec::new(),
            promised: Vec::new(),
            sizes: Sizes::default(),
            accounts: Accounts::default(),
            rest: Rest::default(),
            limits: Vec::new(),
            all_limits: false,
            shed: Shed::default(),
            lookahead: Lookahead::default(),
            lapse: FOREVER,
            timeout: None,
            room: 0,
            turns: Vec::new(),
        }
    }

    /// Always looks as far as it can: the slow oracle for the windowed look-ahead.
    pub fn with_full_lookahead() -> Self {
        Self { lookahead: Lookahead::full(), ..Self::new() }
    }

    /// A decision begins: what each lane has for its next frame does not change until it is taken.
    fn begin(&mut self, context: &Context, lanes: &mut [Lane], window: usize) {
        (self.all_limits, self.lapse) = (false, FOREVER);
        self.shed.open();
        self.board.open(context, window);
        let ready = Ready::new(context);
        self.sizes = Sizes::of(&context.config);
        for (index, lane) in lanes.iter_mut().enumerate() {
            let pause = Pausing::of(lane, &ready, &self.sizes);
            let due = self.aim(lane, &ready, &pause);
            self.lapse = self.lapse.min(pause.lapses);
            self.frames[index] = Frame::new(lane, due, self.sizes, &ready, pause);
        }
        self.accounts.line_up(context, lanes);
        self.rest.open(context, lanes);
    }

    /// One pass over the lanes, with an empty board.
    fn scan(&mut self, context: &Context, lanes: &mut [Lane]) -> Result<Option<usize>, Again> {
        let mut pass = Pass::new(context);
        for index in (0..lanes.len()).filter(|index| lanes[*index].protected) {
            self.enter(&mut pass, lanes, index)?;
        }
        for index in 0..lanes.len() {
            self.promised[index] = (lanes[index].protected || self.accounts.servers.any())
                && self.consider(&mut pass, lanes, index, true)?;
        }
        self.keep_order(&mut pass, lanes)?;
        self.keep_going(&pass)?;
        // Behind the last group that is promised nothing, no app is left to keep time free from.
        let last = (0..lanes.len()).rfind(|index| !self.promised[*index] && lanes[*index].head.is_some());
        for index in 0..last.map_or(0, |last| last + 1) {
            if !self.promised[index] {
                self.consider(&mut pass, lanes, index, false)?;
            }
            if !gives_way(&lanes[index], &pass) {
                self.keep_free(lanes, index, &pass);
            }
            let bounded = pass.clearance.is_bounded();
            let came = bounded.then(|| self.accounts.came(context, lanes, index)).flatten();
            pass.clearance.keep(&lanes[index], context, came);
        }
        tell_winner(&pass, lanes);
        self.room = pass.best.map_or(0, |best| best.room);
        Ok(pass.best.map(|best| best.index))
    }
}

impl Policy for Timeline {
    fn name(&self) -> &'static str {
        "timeline"
    }

    fn prepare(&mut self, config: &Config) {
        self.board.prepare(config.apps_max as usize);
        self.frames = vec![Frame::default(); config.apps_max as usize];
        self.promised = vec![false; config.apps_max as usize];
        self.limits = vec![None; config.apps_max as usize];
        self.shed.prepare(config.apps_max as usize);
        self.accounts.prepare(config.apps_max as usize);
        self.turns = vec![Time::ZERO; config.apps_max as usize];
    }

    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        self.accounts.servers.apps_changed(now, lanes);
    }

    fn submitted(&mut self, now: Time, lane: &Lane, _was_idle: bool) {
        self.accounts.servers.submitted(now, lane);
    }

    fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Paid> {
        if lanes[index].divisible {
            self.turns[lanes[index].app.index()] = context.now;
        }
        self.rest.dispatched(&lanes[index], context);
        self.accounts.dispatched(context, lanes, index)
    }

    fn ended(&mut self, _now: Time, ended: &Ended, lane: &Lane) {
        self.accounts.ended(ended, lane);
    }

    fn chooses_freely(&self) -> bool {
        true
    }

    fn keeps_apart(&self) -> bool {
        true
    }

    fn room(&self) -> Span {
        Span::from_ns(self.room.max(0).unsigned_abs())
    }

    fn timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn shares_frames(&self) -> bool {
        true
    }

    fn divides(&self) -> bool {
        true
    }

    /// What should have been shown first goes first; what is late, if it has waited longer than others since its turn.
    /// So no app keeps the place for itself, even if its frame never ends.
    fn choose_divisible(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let waiting = lanes.iter_mut().enumerate().filter(|(_, lane)| lane.divisible && lane.head.is_some());
        let key = |(_, lane): &(usize, &mut Lane)| lane.due_of(lane.due).max(self.turns[lane.app.index()]);
        let (index, lane) = waiting.min_by_key(key)?;
        let head = lane.head.filter(|head| head.conservative < Span::FOREVER && !lane.clock.is_own());
        if let Some(head) = head {
            lane.target = lane.target.max(lane.period_at(context.ready_o + head.optimistic));
        }
        Some(index)
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let mut window = self.lookahead.first();
        self.begin(context, lanes, window);
        loop {
            match self.scan(context, lanes) {
                Ok(choice) => {
                    let lapse =
                        (self.lapse < FOREVER).then(|| Time::from_ns(self.lapse.max(0).unsigned_abs()));
                    self.timeout = lapse.filter(|_| choice.is_none());
                    self.lookahead.settled(window);
                    return choice;
                }
                // The widest window and all limits answer every question, and a lane is shed once: this ends.
                Err(Again::Shedding) => {}
                Err(Again::WithLimits) => self.all_limits = true,
                Err(Again::Wider) => window = window.saturating_mul(2),
            }
            self.board.open(context, window);
        }
    }
}
