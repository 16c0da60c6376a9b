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
//! * **The rest.** Apps that are not protected keep time free for what they have, down the order of
//!   importance, but only until their own due date has passed; relief against starvation is
//!   [`crate::Tuning::relief_every`]. Where blocking is limited, they keep clear of the releases of apps with
//!   a contract ([`clearance`]).
//! * **Assumptions.** Groups run no longer than their conservative prediction, frames and jobs stay within
//!   what they were promised, and are released as their contract says. Then no protected app misses a
//!   deadline, whatever less important apps do. `takt prove` tests that; ADR 0039 has its figures.
//! * **Cost.** Linear in apps times the periods looked at, rarely more than [`WINDOW_FIRST`]; no allocation.

mod accounts;
mod board;
mod clearance;
mod columns;
mod gaps;
mod promises;
mod walk;

use alloc::vec;
use alloc::vec::Vec;

use super::{Context, Ended, Paid, Policy};
use crate::app::AppId;
use crate::config::Config;
use crate::event::Hold;
use crate::scheduler::{Head, Lane, Turn};
use crate::time::{Span, Time};
use accounts::{Accounts, Standing};
use board::{Board, FOREVER, Free, TooNarrow, ns};
use clearance::Clearance;
use gaps::Pausing;
use promises::{Frame, Sizes};

/// Periods to look at first; the window grows only if that does not settle the question.
const WINDOW_FIRST: usize = 4;

/// Decisions after which a window is tried that is half as wide.
const NARROWS_AFTER: u32 = 64;

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
    /// Until when the GPU may be busy for the promises of more important apps, by lane.
    limits: Vec<Option<Free>>,
    all_limits: bool,
    /// Lanes whose promises cannot be kept beside those of more important apps.
    shed: Vec<bool>,
    /// The first of them: less important apps are bound by its promises, and need slack.
    first_shed: usize,
    /// Whether such lanes are looked for, because a protected group was held.
    sheds: bool,
    window_first: usize,
    /// Periods to look at first in the next decision, and how many decisions kept that.
    window: usize,
    kept: u32,
    /// When the next reservation of an absent frame lapses.
    lapse: i64,
    timeout: Option<Time>,
    /// How long the group that was chosen last could have been.
    room: i64,
}

impl Default for Timeline {
    fn default() -> Self {
        Self::new()
    }
}

/// A pass did not settle the question.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Again {
    /// With a wider window.
    Wider,
    /// With the limits of all lanes.
    WithLimits,
    /// With what was found out about promises that cannot be kept.
    Anew,
}

impl From<TooNarrow> for Again {
    fn from(TooNarrow: TooNarrow) -> Self {
        Self::Wider
    }
}

/// The lane to choose, unless one with an earlier due date comes.
#[derive(Copy, Clone)]
struct Best {
    index: usize,
    standing: Standing,
    app: AppId,
    room: i64,
}

/// When the GPU is free for a group that is picked now.
#[derive(Copy, Clone)]
struct Ready {
    now: i64,
    /// When all that was dispatched is over at the latest.
    over: i64,
    conservative: i64,
    optimistic: i64,
    free: i64,
}

/// A pass over the lanes.
struct Pass<'a> {
    context: &'a Context,
    ready: Ready,
    clearance: Clearance,
    best: Option<Best>,
    /// The protected group that is due first, where no other one may go before it.
    first: Option<Best>,
    /// That one waits for a more important app, which may be due later.
    outranked: bool,
    widest: bool,
    /// What was free for all before, at most.
    at_most: i64,
    /// The earliest due date of a protected lane seen so far.
    first_due: i64,
    /// A due date, and the promises before it that a protected group would have broken.
    broken: Option<(i64, Free)>,
    /// A lane whose group waits for more important apps, though it is due first or before them.
    yields: Option<usize>,
    /// A protected group waits for a less important app.
    waits: bool,
}

impl Ready {
    fn new(context: &Context) -> Self {
        Self {
            now: ns(context.now),
            over: ns(context.free_c),
            conservative: ns(context.ready_c),
            optimistic: ns(context.ready_o),
            free: ns(context.free_o),
        }
    }
}

impl<'a> Pass<'a> {
    fn new(context: &'a Context, widest: bool) -> Self {
        Self {
            context,
            ready: Ready::new(context),
            clearance: Clearance::new(context),
            best: None,
            first: None,
            outranked: false,
            widest,
            at_most: FOREVER,
            first_due: FOREVER,
            broken: None,
            yields: None,
            waits: false,
        }
    }

    /// Whether that group is the first by due date, of those seen so far.
    fn is_first(&self, standing: &Standing) -> bool {
        self.first.is_some_and(|first| first.standing.contract == standing.contract)
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
            limits: Vec::new(),
            all_limits: false,
            shed: Vec::new(),
            first_shed: usize::MAX,
            sheds: false,
            window_first: WINDOW_FIRST,
            window: 0,
            kept: 0,
            lapse: FOREVER,
            timeout: None,
            room: 0,
        }
    }

    /// Always looks as far as it can: the slow oracle for the windowed look-ahead.
    pub fn with_full_lookahead() -> Self {
        Self { window_first: usize::MAX, ..Self::new() }
    }

    /// Whether to try a narrower window again.
    fn narrows(&mut self, window: usize) -> bool {
        self.kept = if window == self.window { self.kept + 1 } else { 0 };
        self.kept % NARROWS_AFTER == NARROWS_AFTER - 1
    }

    /// One pass over the lanes, looking at `window` periods with an empty board.
    fn scan(&mut self, context: &Context, lanes: &mut [Lane], window: usize) -> Result<Option<usize>, Again> {
        let mut pass = Pass::new(context, self.board.is_widest(window));
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
            pass.clearance.keep(&lanes[index], context);
        }
        self.room = pass.best.map_or(0, |best| best.room);
        Ok(pass.best.map(|best| best.index))
    }

    /// Puts the promises of a protected lane on the board, below those of more important apps.
    fn enter(&mut self, pass: &mut Pass<'_>, lanes: &[Lane], index: usize) -> Result<(), Again> {
        let lane = &lanes[index];
        // Work beyond a promise must leave room for the next ones of its own app, too.
        let beyond = lane.has_budget() && self.frames[index].is_exceeded;
        if beyond {
            self.promise(lanes, index, pass);
        }
        self.limit(pass, lanes, index)?;
        if !beyond && !self.shed[index] {
            self.promise(lanes, index, pass);
        }
        if self.sheds && !self.shed[index] && !self.is_feasible(pass)? {
            self.shed[index] = true;
            self.first_shed = self.first_shed.min(index);
            return Err(Again::Anew);
        }
        Ok(())
    }

    /// Whether all promises on the board can be kept. What the first group waits for on its way to the GPU is
    /// part of its promise, and over by the time that it is free for it.
    fn is_feasible(&mut self, pass: &Pass<'_>) -> Result<bool, Again> {
        let (ready, early) = (pass.ready.conservative, self.sizes.under_way.as_signed_ns());
        Ok(self.board.is_feasible(ready, early, ns(pass.context.free_c), pass.widest)?)
    }

    /// Notes until when the GPU may be busy for the promises of more important apps, which are on the board by
    /// now; only for lanes that are due before all of those, unless the others turned out to be held.
    fn limit(&mut self, pass: &mut Pass<'_>, lanes: &[Lane], index: usize) -> Result<(), Again> {
        let lane = &lanes[index];
        let first = match lane.head {
            // Others may run on the budget of a server.
            _ if !lane.has_budget() => true,
            None => return Ok(()),
            Some(_) => {
                let due = self.frames[index].due;
                let first = due < pass.first_due;
                pass.first_due = pass.first_due.min(due);
                first
            }
        };
        let beyond = lane.has_budget() && self.frames[index].is_exceeded;
        self.limits[index] = if self.board.is_full() && !beyond {
            // Where the look-ahead is exhausted, protected groups go, and work beyond a promise waits.
            Some(Free { until: FOREVER, owner: None })
        } else if first || self.all_limits {
            Some(self.board.free_for_all(pass.ready.conservative, pass.widest)?)
        } else {
            None
        };
        Ok(())
    }

    /// What the first group of the lane at `index` may claim.
    fn standing(&self, context: &Context, lanes: &[Lane], index: usize, head: &Head) -> Standing {
        let lane = &lanes[index];
        let protected = lane.is_protected_now() && head.conservative <= self.sizes.group_max;
        let framed =
            Standing { due: self.frames[index].due, protected, contract: index, behind: None, rests: None };
        if lane.has_budget() || !self.accounts.servers.any() {
            return self.slighted(framed);
        }
        self.slighted(self.accounts.standing(context, lanes, index, head, framed))
    }

    /// The same where promises cannot be kept that are more important.
    fn slighted(&self, standing: Standing) -> Standing {
        Standing { protected: standing.protected && standing.contract <= self.first_shed, ..standing }
    }

    /// Whether the first group of a lane may go, and whether it goes before those seen so far. Looks at protected
    /// groups only, or at all others; says whether it did.
    fn consider(
        &mut self,
        pass: &mut Pass<'_>,
        lanes: &mut [Lane],
        index: usize,
        protected: bool,
    ) -> Result<bool, Again> {
        let Some(head) = lanes[index].head else {
            return Ok(false);
        };
        if lanes[index].divisible {
            lanes[index].hold = Some(Hold::NoSlot);
            return Ok(false);
        }
        let standing = self.standing(pass.context, lanes, index, &head);
        if standing.protected != protected {
            return Ok(false);
        }
        let lane = &lanes[index];
        let notes = pass.context.config.gpu.excludes() && standing.behind.is_none();
        if notes && self.is_paid(lane, index, &standing) && !self.frames[index].is_late {
            note_first(pass, lane, index, &standing);
        }
        let hold = if head.conservative >= Span::FOREVER {
            Some(Hold::Unbounded)
        } else if let Some(app) = lane.turn.waits_for {
            Some(Hold::Behind { app })
        } else if let Some(until) = standing.rests {
            self.lapse = self.lapse.min(ns(until));
            Some(Hold::NoBudget { until })
        } else if let Some((next, rests)) = standing.behind {
            self.lapse = rests.map_or(self.lapse, |until| self.lapse.min(ns(until)));
            Some(Hold::Behind { app: lanes[next].app })
        } else if let Some(best) = pass.best.filter(|best| best.standing.goes_before(&standing)) {
            // It is behind in any case; whether it would fit does not matter.
            Some(Hold::Behind { app: best.app })
        } else if let Some(app) = pass.clearance.delayed(lane, head.conservative).filter(|_| !protected) {
            self.lapse = self.lapse.min(pass.clearance.lapse());
            Some(Hold::Clears { app })
        } else {
            self.choose_if_it_fits(pass, lanes, index, &head, &standing)?
        };
        lanes[index].hold = hold;
        Ok(true)
    }

    /// No protected app goes before the one that is due first, or both would have to come back. Where promises
    /// cannot be kept, it may have to wait for ever; so it may for a more important app that is due later.
    fn keep_order(&mut self, pass: &mut Pass<'_>, lanes: &mut [Lane]) -> Result<(), Again> {
        if let (Some(first), Some(best), false) = (pass.first, pass.best, pass.outranked)
            && (first.standing.due, first.index) < (best.standing.due, best.index)
            && self.is_feasible(pass)?
        {
            lanes[best.index].hold = Some(Hold::Behind { app: first.app });
            pass.best = None;
        }
        Ok(())
    }

    /// Where one protected group waits for a more important app, and that one for what is due first, neither would
    /// ever go. Promises that meet so closely cannot all be kept: importance decides.
    fn keep_going(&mut self, pass: &Pass<'_>) -> Result<(), Again> {
        let Some(lane) = pass.yields.filter(|lane| pass.best.is_none() && pass.waits && !self.shed[*lane])
        else {
            return Ok(());
        };
        self.sheds = true;
        self.shed[lane] = true;
        self.first_shed = self.first_shed.min(lane);
        Err(Again::Anew)
    }

    /// Prefers the lane at `index` to those seen so far, unless its group would break a promise.
    fn choose_if_it_fits(
        &mut self,
        pass: &mut Pass<'_>,
        lanes: &mut [Lane],
        index: usize,
        head: &Head,
        standing: &Standing,
    ) -> Result<Option<Hold>, Again> {
        let length = self.checked(&lanes[index], index, head, standing).as_signed_ns();
        let free = self.free_for(pass, standing, length)?;
        let room = free.until - pass.ready.conservative - 1;
        let fits = length <= room;
        // Without an owner the window is the limit, and a wider one may show more.
        let wanted = if fits { pass.context.config.tuning.stretch.as_signed_ns() } else { length };
        if free.owner.is_none() && room < wanted && !pass.widest {
            return Err(Again::Wider);
        }
        if !fits {
            return Ok(Some(
                free.owner.map_or(Hold::NoSlot, |owner| Hold::Protects { app: lanes[owner].app }),
            ));
        }
        let lane = &lanes[index];
        let room = room.min(pass.clearance.room(lane));
        pass.best = Some(Best { index, standing: *standing, app: lane.app, room });
        hold_behind(lanes, index);
        Ok(None)
    }

    /// How long the GPU must be free for the first group of a lane. Only what was promised to its own frame has paid
    /// for the GPU that stands still behind it.
    fn checked(&self, lane: &Lane, index: usize, head: &Head, standing: &Standing) -> Span {
        let Turn { checked, disturbs, .. } = lane.turn;
        let unpaid = disturbs > Span::ZERO && !self.is_paid(lane, index, standing);
        head.conservative + checked + if unpaid { disturbs } else { Span::ZERO }
    }

    /// Whether the first group of a lane is part of what was promised to its frame, or comes by a server.
    fn is_paid(&self, lane: &Lane, index: usize, standing: &Standing) -> bool {
        standing.protected && (!lane.has_budget() || !self.frames[index].is_exceeded)
    }

    /// Until when the GPU may be busy with a group of `lane`.
    fn free_for(&mut self, pass: &mut Pass<'_>, standing: &Standing, length: i64) -> Result<Free, Again> {
        let (ready, due) = (pass.ready.conservative, standing.due);
        if standing.protected {
            let end = ready + length;
            if let Some((_, free)) = pass.broken.filter(|(first, free)| *first <= due && free.until <= end) {
                pass.waits |= free.owner.is_some_and(|owner| owner > standing.contract);
                return Ok(free);
            }
            let before = self.board.free_before(ready, due, standing.contract, pass.widest)?;
            if before.until <= end {
                if !self.sheds && !self.is_feasible(pass)? {
                    self.sheds = true;
                    return Err(Again::Anew);
                }
                pass.broken = Some((due, before));
                pass.waits |= before.owner.is_some_and(|owner| owner > standing.contract);
                return Ok(before);
            }
            let above = match self.limits[standing.contract] {
                None if !self.all_limits => return Err(Again::WithLimits),
                limit => limit.unwrap_or(Free { until: FOREVER, owner: None }),
            };
            if above.until <= end {
                pass.outranked |= pass.is_first(standing);
                pass.yields = pass.yields.or(Some(standing.contract));
            }
            return Ok(if above.until < before.until { above } else { before });
        }
        let free = self.board.free_for_all(ready, pass.widest)?;
        pass.at_most = free.until - ready;
        Ok(free)
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
        self.shed = vec![false; config.apps_max as usize];
        self.accounts.prepare(config.apps_max as usize);
    }

    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        self.accounts.servers.apps_changed(now, lanes);
    }

    fn submitted(&mut self, now: Time, lane: &Lane, _was_idle: bool) {
        self.accounts.servers.submitted(now, lane);
    }

    fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Paid> {
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

    /// What should have been shown first goes first, so that no app keeps the place for itself.
    fn choose_divisible(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let waiting = lanes.iter_mut().enumerate().filter(|(_, lane)| lane.divisible && lane.head.is_some());
        let (index, lane) = waiting.min_by_key(|(_, lane)| lane.due_of(lane.due))?;
        let head = lane.head.filter(|head| head.conservative < Span::FOREVER && !lane.clock.is_own());
        if let Some(head) = head {
            lane.target = lane.target.max(lane.period_at(context.ready_o + head.optimistic));
        }
        Some(index)
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let mut window = self.window.max(self.window_first);
        (self.all_limits, self.lapse) = (false, FOREVER);
        if core::mem::take(&mut self.sheds) {
            self.shed.fill(false);
            self.first_shed = usize::MAX;
        }
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
        loop {
            match self.scan(context, lanes, window) {
                Ok(choice) => {
                    let lapse =
                        (self.lapse < FOREVER).then(|| Time::from_ns(self.lapse.max(0).unsigned_abs()));
                    self.timeout = lapse.filter(|_| choice.is_none());
                    // The next decision needs about as much; that changes no answer.
                    self.window = if self.narrows(window) { window / 2 } else { window };
                    return choice;
                }
                // The widest window and all limits answer every question, and a lane is shed once: this ends.
                Err(Again::Anew) => {}
                Err(Again::WithLimits) => self.all_limits = true,
                Err(Again::Wider) => window = window.saturating_mul(2),
            }
            self.board.open(context, window);
        }
    }
}

/// Notes a protected group that waits, if it is due before those seen so far.
fn note_first(pass: &mut Pass<'_>, lane: &Lane, index: usize, standing: &Standing) {
    let counts = lane.is_kept_apart() && standing.rests.is_none();
    if counts && !pass.first.is_some_and(|first| first.standing.goes_before(standing)) {
        pass.first = Some(Best { index, standing: *standing, app: lane.app, room: 0 });
        pass.outranked = false;
    }
}

/// Whether no time is kept free for the group that waits: it is divisible work; or it does not fit, and its deadline
/// is over, so that holding others back has no use; or its length is unknown, so that it never goes.
///
/// In some periods time is kept free all the same, for all such groups at once: or one that would fit if
/// others paused might never do so.
fn gives_way(lane: &Lane, pass: &Pass<'_>) -> bool {
    if lane.divisible {
        return true;
    }
    let Some(head) = lane.head.filter(|_| !lane.has_budget()) else {
        return false;
    };
    let tuning = &pass.context.config.tuning;
    let held = matches!(lane.hold, Some(Hold::Protects { .. } | Hold::Clears { .. }));
    let too_long = held || head.conservative.as_signed_ns() >= pass.at_most;
    let late = pass.context.now >= lane.due_of(lane.due);
    let relief =
        pass.context.current.0 % u64::from(tuning.relief_every.max(1)) < u64::from(tuning.relief_periods);
    head.conservative >= Span::FOREVER || too_long && late && !relief
}

/// The lane at `index` was preferred to those that would have fitted, too, or wait for what it does now.
fn hold_behind(lanes: &mut [Lane], index: usize) {
    let app = lanes[index].app;
    let waits = |lane: &&mut Lane| match lane.hold {
        Some(Hold::Protects { app: protected }) => protected == app,
        Some(Hold::Behind { .. }) | None => true,
        Some(_) => false,
    };
    for lane in lanes.iter_mut().filter(waits) {
        lane.hold = lane.head.map(|_| Hold::Behind { app });
    }
}
