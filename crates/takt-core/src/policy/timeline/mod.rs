//! `timeline`: keep every promise, and give the rest away.
//!
//! * **Contracts.** Frames of a display, or frames by an app's own clock. Each makes *promises*: a span of GPU
//!   time between a release and a due date. *Protected* is the longest prefix of apps, by importance, whose
//!   contracts pass the offline test together ([`Lane::protected`]). Apps with a server are best effort here.
//! * **Rules.** A protected group is bound by the protected promises that are due before its own, and, as
//!   long as estimates can be wrong, by those of more important apps; every other group is bound by all
//!   protected promises, and by what more important apps have. A group that would break a promise that binds
//!   it is held. Of the others, the earliest due goes first, ties to the more important app. Work of a
//!   protected app beyond what its frame was promised is owed nothing, but is bound as its other groups are.
//! * **The GPU.** The policy does not know how it executes. It is told when everything in flight is over, and
//!   which dispatched work one more group can still make late ([`Lane::on_gpu_due`]): the due date of that
//!   work is a promise without a span.
//! * **The rest.** Apps that are not protected keep time free for what they have, down the order of
//!   importance, but only until their own due date has passed; relief against starvation is
//!   [`crate::Tuning::relief_every`]. Where blocking is limited, they keep clear of the releases of apps with
//!   a contract ([`clearance`]).
//! * **Assumptions.** Groups run no longer than their conservative prediction, frames and jobs stay within
//!   what they were promised, and are released as their contract says. Then no protected app misses a
//!   deadline, whatever the others do. That is the aim: `takt prove` tests it, and ADR 0039 says which random
//!   sets still break it.
//! * **Cost.** Linear in apps times the periods looked at, rarely more than [`WINDOW_FIRST`]; no allocation.

mod board;
mod clearance;
mod columns;
mod walk;

use alloc::vec;
use alloc::vec::Vec;

use super::bandwidth::Server;
use super::servers::{Claim, Deadlines, Servers};
use super::{Context, Ended, Policy};
use crate::app::AppId;
use crate::config::Config;
use crate::event::Hold;
use crate::scheduler::{Head, Lane};
use crate::time::{Span, Time};
use board::{Board, FOREVER, Free, Promise, TooNarrow, ns};
use clearance::Clearance;
use walk::Share;

/// Periods to look at first; the window grows only if that does not settle the question.
const WINDOW_FIRST: usize = 4;

/// Frames of a silent app that are given up in one decision. Where more would be, no frame ever fits.
const GIVEN_UP_MAX: u64 = 16;

/// The timeline of promises.
#[derive(Clone, Debug)]
pub struct Timeline {
    board: Board,
    /// When the first group of each lane is due by its frame; as long as a decision lasts.
    dues: Vec<i64>,
    /// Whether that group is part of a promise.
    promised: Vec<bool>,
    sizes: Sizes,
    servers: Servers,
    /// Slots of the servers that pay for what an app has on the GPU, by slot number.
    payers: Vec<Payer>,
    /// Until when the GPU may be busy for the promises of more important apps, by lane.
    limits: Vec<Option<Free>>,
    all_limits: bool,
    /// Lanes whose promises cannot be kept beside those of more important apps.
    shed: Vec<bool>,
    /// Whether such lanes are looked for, because a protected group was held.
    sheds: bool,
    window_first: usize,
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
    due: i64,
    app: AppId,
    room: i64,
}

/// What decides whether a group is part of a promise.
#[derive(Copy, Clone, Default, Debug)]
struct Sizes {
    per_group: Span,
    group_max: Span,
}

/// Who pays for what an app has on the GPU.
#[derive(Copy, Clone, Default, Debug)]
struct Payer {
    slot: Option<usize>,
    /// More than one server does, so that it is not known which of them gets back what was not used.
    several: bool,
}

/// What the first group of a lane may claim.
#[derive(Copy, Clone, Debug)]
struct Standing {
    due: i64,
    /// It is part of what was promised.
    protected: bool,
    /// Where the lane is whose contract that is.
    contract: usize,
    /// It waits for the budget of its server.
    rests: Option<Time>,
}

/// When the GPU is free for a group that is picked now.
#[derive(Copy, Clone)]
struct Ready {
    now: i64,
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
    widest: bool,
    /// What was free for all before, at most.
    at_most: i64,
    /// The earliest due date of a protected lane seen so far.
    first_due: i64,
    /// A due date, and the promises before it that a protected group would have broken.
    broken: Option<(i64, Free)>,
}

impl Ready {
    fn new(context: &Context) -> Self {
        Self {
            now: ns(context.now),
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
            widest,
            at_most: FOREVER,
            first_due: FOREVER,
            broken: None,
        }
    }
}

impl Timeline {
    /// With no apps yet.
    pub fn new() -> Self {
        Self {
            board: Board::new(),
            dues: Vec::new(),
            promised: Vec::new(),
            sizes: Sizes::default(),
            servers: Servers::default(),
            payers: Vec::new(),
            limits: Vec::new(),
            all_limits: false,
            shed: Vec::new(),
            sheds: false,
            window_first: WINDOW_FIRST,
            lapse: FOREVER,
            timeout: None,
            room: 0,
        }
    }

    /// Always looks as far as it can: the slow oracle for the windowed look-ahead.
    pub fn with_full_lookahead() -> Self {
        Self { window_first: usize::MAX, ..Self::new() }
    }

    /// One pass over the lanes, looking at `window` periods.
    fn scan(&mut self, context: &Context, lanes: &mut [Lane], window: usize) -> Result<Option<usize>, Again> {
        self.board.open(context, window);
        let mut pass = Pass::new(context, self.board.is_widest(window));
        for index in (0..lanes.len()).filter(|index| lanes[*index].protected) {
            self.enter(&mut pass, lanes, index)?;
        }
        for index in 0..lanes.len() {
            self.promised[index] = (lanes[index].protected || self.servers.any())
                && self.consider(&mut pass, lanes, index, true)?;
        }
        for index in 0..lanes.len() {
            if !self.promised[index] {
                self.consider(&mut pass, lanes, index, false)?;
            }
            if !gives_way(&lanes[index], &pass) {
                self.keep_free(&lanes[index], index, &pass);
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
        let sizes = self.sizes;
        let outside = |head: Head| !is_within_ledger(lane, &head, sizes);
        let beyond = lane.has_budget() && lane.head.is_some_and(outside);
        if beyond {
            self.promise(lane, index, pass);
        }
        self.limit(pass, lanes, index)?;
        if !beyond && !self.shed[index] {
            self.promise(lane, index, pass);
        }
        if self.sheds && !self.shed[index] && !self.is_feasible(pass)? {
            self.shed[index] = true;
            return Err(Again::Anew);
        }
        Ok(())
    }

    /// Whether all promises on the board can be kept. What the first group waits for on its way to the GPU is
    /// part of its promise, and over by the time that it is free for it.
    fn is_feasible(&mut self, pass: &Pass<'_>) -> Result<bool, Again> {
        let ready = pass.ready.conservative;
        let free = self.board.free_for_all(ready, pass.widest)?;
        Ok(free.until >= ready - self.sizes.per_group.as_signed_ns())
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
                let due = self.dues[index];
                let first = due < pass.first_due;
                pass.first_due = pass.first_due.min(due);
                first
            }
        };
        self.limits[index] = if self.board.is_full() {
            // Where the look-ahead is exhausted, protected groups go.
            Some(Free { until: FOREVER, owner: None })
        } else if first || self.all_limits {
            Some(self.board.free_for_all(pass.ready.conservative, pass.widest)?)
        } else {
            None
        };
        Ok(())
    }

    /// Moves the target of a frame on that cannot meet it any more.
    fn aim(&mut self, lane: &mut Lane, ready: &Ready) {
        if lane.clock.is_own() {
            return;
        }
        let Some(head) = lane.head else {
            return self.give_up_hopeless_frames(lane, ready);
        };
        let earliest = ready.optimistic + head.optimistic.as_signed_ns();
        lane.target = lane.target.max(self.board.period_at(lane, earliest));
    }

    /// Moves the target of an app that has not submitted its frame on by whole strides, as long as not even an
    /// immediate start could finish in time what is reserved for it.
    ///
    /// Without this the reservation of a silent app would follow the present and take time in every period,
    /// although the app is entitled to it in every stride only.
    fn give_up_hopeless_frames(&mut self, lane: &mut Lane, ready: &Ready) {
        let rest = owed(lane, self.sizes);
        let frames = (0..GIVEN_UP_MAX).map(|frame| lane.target + frame * lane.stride.periods());
        let hopeful = frames.into_iter().find(|target| self.board.due_of(lane, *target) >= ready.free + rest);
        lane.target = hopeful.unwrap_or(lane.target);
        lane.target = lane.target.max(self.board.period_at(lane, ready.optimistic));
        if rest > 0 {
            self.lapse = self.lapse.min(self.board.due_of(lane, lane.target) - rest + 1);
        }
    }

    /// Adds what `lane` owes to the board: its frame, those to come, and what it has on the GPU.
    fn promise(&mut self, lane: &Lane, owner: usize, pass: &Pass<'_>) {
        if let Some(due) = lane.on_gpu_due.filter(|_| lane.has_budget() || lane.protected) {
            self.board.promise_end(ns(due), owner);
        }
        let (rest, etpf) = (owed(lane, self.sizes), lane.etpf.as_signed_ns());
        if lane.protected && !lane.has_budget() {
            self.promise_server(lane, owner, pass);
        } else if lane.clock.is_own() {
            self.promise_own_clock(lane, owner, rest, pass);
        } else if rest > 0 || etpf > 0 {
            self.board.promise_frames(lane, owner, rest, etpf);
        }
    }

    /// What is left of the budget of a server by its deadline, and its share of the GPU from there on: then
    /// whatever comes, whenever it comes, is promised no more than that.
    fn promise_server(&mut self, lane: &Lane, owner: usize, pass: &Pass<'_>) {
        let slot = lane.app.index();
        let Some(server) = self.servers.get(slot) else {
            return;
        };
        let (due, span) = server.promise(pass.context.now, self.servers.is_busy(slot));
        let reserve = server.reserve();
        let (budget, period) = (reserve.budget.as_signed_ns(), reserve.period.as_signed_ns());
        let share = Share::of(budget, period);
        let (due, span) = (ns(due), span.as_signed_ns());
        let first = Promise { release: i64::MIN, due, span, owner, absent: false, share };
        self.board.promise_share(first, budget);
    }

    /// What the first group of the lane at `index` may claim.
    fn standing(&self, context: &Context, lanes: &[Lane], index: usize, head: &Head) -> Standing {
        let lane = &lanes[index];
        let framed = Standing {
            due: self.dues[index],
            protected: lane.is_protected_now() && head.conservative <= self.sizes.group_max,
            contract: index,
            rests: None,
        };
        if !self.servers.any() || lane.has_budget() {
            return framed;
        }
        let need = charge(head, &context.config);
        match self.servers.claim(context.now, lanes, index, need) {
            Claim::Rests { until } => Standing { rests: Some(until), ..framed },
            Claim::BestEffort { .. } => framed,
            Claim::Deadline { at, payer, .. } => {
                let contract = self.servers.lane(payer).unwrap_or(index);
                let covers = |server: &Server| need <= server.reserve().budget;
                let protected = lanes[contract].protected
                    && self.servers.get(payer).is_some_and(covers)
                    && head.conservative <= self.sizes.group_max;
                Standing { due: ns(at), protected, contract, rests: None }
            }
        }
    }

    /// Keeps time free for what a lane has beyond its promises, from those that are less important.
    fn keep_free(&mut self, lane: &Lane, owner: usize, pass: &Pass<'_>) {
        if !lane.protected || self.shed[owner] {
            return self.promise(lane, owner, pass);
        }
        if !lane.has_budget() || lane.front.enqueued <= lane.etpf {
            return;
        }
        let beyond = lane.front.remaining(lane.etpf).as_signed_ns() - owed(lane, self.sizes);
        if beyond > 0 && !lane.clock.is_own() {
            self.board.promise_frames(lane, owner, beyond, 0);
        }
    }

    /// Frames by the app's own clock: the next one is released now at the earliest. So is what waits behind
    /// work that was not promised: it is unknown when that goes.
    fn promise_own_clock(&mut self, lane: &Lane, owner: usize, rest: i64, pass: &Pass<'_>) {
        let (now, etpf) = (pass.ready.now, lane.etpf.as_signed_ns());
        let config = &pass.context.config;
        let period = lane.grid.period_span().as_signed_ns();
        let begun = lane.front.enqueued > Span::ZERO;
        let planned = ns(lane.release_of(lane.target));
        if lane.head.is_none() {
            let suspended = planned.saturating_add(period.saturating_mul(config.tuning.suspend_after.into()));
            if now > suspended {
                return;
            }
            self.lapse = self.lapse.min(suspended + 1);
        }
        let sizes = self.sizes;
        let beyond = |head: Head| !lane.is_protected_now() || !is_within_ledger(lane, &head, sizes);
        let (mut release, mut span) = match lane.head {
            Some(head) if lane.protected && beyond(head) => ((planned + period).max(now), etpf),
            _ if begun => (planned, rest),
            _ => (planned.max(now), rest),
        };
        let deadline = period - lane.tail.as_signed_ns();
        // What the first group waits for on its way to the GPU is over by the time that it is free for it.
        let charged = sizes.per_group.as_signed_ns();
        while release < self.board.end() && !self.board.is_full() {
            let due = release + deadline;
            // What is late even without another group binds none.
            if span > 0 && (release >= now || due >= pass.ready.free + span - charged) {
                let absent = begun && lane.head.is_none() && release == planned;
                self.board.promise(Promise { release, due, span, owner, absent, share: Share::default() });
            }
            // A frame that has not begun begins now at the earliest.
            (release, span) = ((release + period).max(now), etpf);
        }
        self.board.goes_on();
    }

    /// Whether the first group of a lane may go, and whether it goes before those seen so far.
    /// Looks at protected groups only, or at all others; says whether it did.
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
        let standing = self.standing(pass.context, lanes, index, &head);
        if standing.protected != protected {
            return Ok(false);
        }
        let (lane, due) = (&lanes[index], standing.due);
        let length = head.conservative.as_signed_ns();
        let hold = if head.conservative >= Span::FOREVER {
            Some(Hold::Unbounded)
        } else if let Some(until) = standing.rests {
            self.lapse = self.lapse.min(ns(until));
            Some(Hold::NoBudget { until })
        } else if let Some(best) = pass.best.filter(|best| best.due <= due) {
            // It is behind in any case; whether it would fit does not matter.
            Some(Hold::Behind { app: best.app })
        } else if let Some(app) = pass.clearance.delayed(lane, head.conservative).filter(|_| !protected) {
            self.lapse = self.lapse.min(pass.clearance.lapse());
            Some(Hold::Clears { app })
        } else {
            let free = self.free_for(pass, &standing, &head)?;
            let room = free.until - pass.ready.conservative - 1;
            let fits = length <= room;
            // Without an owner the window is the limit, and a wider one may show more.
            let wanted = if fits { pass.context.config.tuning.stretch.as_signed_ns() } else { length };
            if free.owner.is_none() && room < wanted && !pass.widest {
                return Err(Again::Wider);
            }
            if fits {
                let room = room.min(pass.clearance.room(lane));
                pass.best = Some(Best { index, due, app: lane.app, room });
                hold_behind(lanes, index);
                None
            } else {
                Some(free.owner.map_or(Hold::NoSlot, |owner| Hold::Protects { app: lanes[owner].app }))
            }
        };
        lanes[index].hold = hold;
        Ok(true)
    }

    /// Until when the GPU may be busy with a group of `lane`.
    fn free_for(&mut self, pass: &mut Pass<'_>, standing: &Standing, head: &Head) -> Result<Free, Again> {
        let (ready, due) = (pass.ready.conservative, standing.due);
        if standing.protected {
            let end = ready + head.conservative.as_signed_ns();
            if let Some((_, free)) = pass.broken.filter(|(first, free)| *first <= due && free.until <= end) {
                return Ok(free);
            }
            let before = match self.board.free_before(ready, due, standing.contract) {
                Err(TooNarrow) if pass.widest => Free { until: FOREVER, owner: None },
                other => other?,
            };
            if before.until <= end {
                if !self.sheds && !self.is_feasible(pass)? {
                    self.sheds = true;
                    return Err(Again::Anew);
                }
                pass.broken = Some((due, before));
                return Ok(before);
            }
            if due > self.board.end() && !pass.widest {
                return Err(Again::Wider);
            }
            let above = self.limits[standing.contract].ok_or(Again::WithLimits)?;
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
        self.dues = vec![0; config.apps_max as usize];
        self.promised = vec![false; config.apps_max as usize];
        self.limits = vec![None; config.apps_max as usize];
        self.shed = vec![false; config.apps_max as usize];
        self.servers.prepare(config.apps_max as usize, Deadlines::AtPeriods);
        self.payers = vec![Payer::default(); config.apps_max as usize];
    }

    fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        self.servers.apps_changed(now, lanes);
    }

    fn submitted(&mut self, now: Time, lane: &Lane, _was_idle: bool) {
        self.servers.submitted(now, lane);
    }

    fn dispatched(&mut self, context: &Context, lanes: &[Lane], index: usize) -> Option<Time> {
        let lane = &lanes[index];
        let head = lane.head.filter(|_| self.servers.any() && !lane.has_budget())?;
        let need = charge(&head, &context.config);
        let (slot, due) = match self.servers.claim(context.now, lanes, index, need) {
            Claim::Deadline { at, payer, .. } => (Some(payer), Some(at)),
            _ => (None, None),
        };
        let payer = &mut self.payers[lane.app.index()];
        let alone = lane.in_flight == 0;
        *payer = Payer { slot, several: !alone && (payer.several || payer.slot != slot) };
        if let Some(server) = slot.and_then(|slot| self.servers.get_mut(slot)) {
            server.dispatch(need);
        }
        due
    }

    fn ended(&mut self, _now: Time, ended: &Ended, lane: &Lane) {
        self.servers.ended(lane);
        let payer = self.payers[lane.app.index()];
        if let Some(server) =
            payer.slot.filter(|_| !payer.several).and_then(|slot| self.servers.get_mut(slot))
        {
            server.refund(ended.believed.saturating_sub(ended.occupied));
        }
    }

    fn chooses_freely(&self) -> bool {
        true
    }

    fn room(&self) -> Span {
        Span::from_ns(self.room.max(0).unsigned_abs())
    }

    fn timeout(&self) -> Option<Time> {
        self.timeout
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let mut window = self.window_first;
        (self.all_limits, self.lapse) = (false, FOREVER);
        if core::mem::take(&mut self.sheds) {
            self.shed.fill(false);
        }
        self.board.open(context, window);
        let ready = Ready::new(context);
        self.sizes =
            Sizes { per_group: context.config.per_group(), group_max: context.config.tuning.group_max };
        for (index, lane) in lanes.iter_mut().enumerate() {
            self.aim(lane, &ready);
            self.dues[index] = self.board.due_of(lane, lane.target);
        }
        loop {
            match self.scan(context, lanes, window) {
                Ok(choice) => {
                    let lapse =
                        (self.lapse < FOREVER).then(|| Time::from_ns(self.lapse.max(0).unsigned_abs()));
                    self.timeout = lapse.filter(|_| choice.is_none());
                    return choice;
                }
                // The widest window and all limits answer every question, and a lane is shed once: this ends.
                Err(Again::Anew) => {}
                Err(Again::WithLimits) => self.all_limits = true,
                Err(Again::Wider) => window = window.saturating_mul(2),
            }
        }
    }
}

/// What is still owed to the front frame of a lane. A protected frame is owed what it was promised and no
/// more, and nothing from the first group on that is beyond it: that one needs slack.
fn owed(lane: &Lane, sizes: Sizes) -> i64 {
    let reserved = lane.front.reserved(lane.etpf);
    let owed = match lane.head {
        Some(head) if lane.protected && !is_within_ledger(lane, &head, sizes) => Span::ZERO,
        _ if lane.protected => reserved.min(lane.etpf).saturating_sub(lane.front.dispatched),
        _ => reserved.saturating_sub(lane.front.dispatched),
    };
    owed.as_signed_ns()
}

/// What a group takes of the budget of a server: each may find the GPU idle, and wait for its way there.
fn charge(head: &Head, config: &Config) -> Span {
    head.conservative + config.margins.turnaround()
}

/// Whether the first group of a lane is part of what its frame was promised.
fn is_within_ledger(lane: &Lane, head: &Head, sizes: Sizes) -> bool {
    let fits = lane.front.dispatched + head.conservative + sizes.per_group <= lane.etpf;
    fits && head.conservative <= sizes.group_max
}

/// Whether no time is kept free for the group that waits: it does not fit, and its deadline is over, so that
/// holding others back has no use; or its length is unknown, so that it never goes.
///
/// In some periods time is kept free all the same, for all such groups at once: or one that would fit if
/// others paused might never do so.
fn gives_way(lane: &Lane, pass: &Pass<'_>) -> bool {
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
