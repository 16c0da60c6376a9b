//! `frame-deadline`: never endanger a more important deadline, else earliest target first.
//!
//! * **Rules.** (A) A group that could make a more important app miss a deadline is not
//!   dispatched. (B) Within A, the earliest target goes first, ties to the more important app.
//!   The GPU idles on purpose when nothing is safe. Where blocking is limited, apps that reserve
//!   nothing keep clear of the releases of those that do (ADR 0018). Where processes have the GPU in
//!   turn, what is late, has nothing reserved and does not fit gives way (ADR 0036), and what is on
//!   the GPU counts until it ends, because what comes later delays it (ADR 0037).
//! * **Assumptions.** Groups run no longer than their conservative prediction; the frames of the
//!   protected apps (the most important ones that pass [`crate::analysis`]) stay within their
//!   `etpf` and arrive at their incipient arrival; the GPU executes in order. Then no protected app
//!   misses a deadline, whatever the others do; `takt prove` tests exactly that. Where processes have
//!   the GPU in turn it is an aim (ADR 0037), and swaps that are said to cost nothing must cost nothing
//!   (ADR 0035).
//! * **Source.** Schnitzer, dissertation 2019, ch. 4 (listing 4.3), with the corrections of
//!   ADR 0004 (conditional clamp) and ADR 0005 (when the GPU is free).
//! * **Cost.** Linear in apps times the periods looked at, which are at most `lcm(strides) + 2`
//!   and rarely more than [`WINDOW_FIRST`]; no allocation.

use super::clearance::Clearance;
use super::profile::{Profile, TooNarrow};
use super::{Context, Policy};
use crate::app::AppId;
use crate::event::Hold;
use crate::limits::LOOKAHEAD_MAX;
use crate::refresh::{Period, lcm};
use crate::scheduler::{Head, Lane};
use crate::time::{Span, Time};

/// Periods to look at first; the window grows only if that does not settle the question.
const WINDOW_FIRST: usize = 8;

/// In two of sixteen periods, time is kept free for groups that are late and do not fit: in two, because
/// who begins in one may end in the next.
const PAUSES_EVERY: u64 = 16;
const PAUSE: u64 = 2;

/// Frame-deadline scheduling with reservations.
#[derive(Clone, Debug)]
pub struct FrameDeadline {
    profile: Profile,
    /// Periods to look at, the current one included: `lcm(strides) + 2`.
    horizon: usize,
    window_first: usize,
    /// When the next reservation of an absent frame lapses, from the start of the current period.
    lapse: i64,
    timeout: Option<Time>,
    /// How long the group that was chosen last could have been.
    room: i64,
}

impl Default for FrameDeadline {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameDeadline {
    /// With no apps yet.
    pub fn new() -> Self {
        Self {
            profile: Profile::new(),
            horizon: 3,
            window_first: WINDOW_FIRST,
            lapse: i64::MAX,
            timeout: None,
            room: 0,
        }
    }

    /// Always looks at the whole horizon: the slow oracle for the windowed look-ahead.
    pub fn with_full_lookahead() -> Self {
        Self { window_first: usize::MAX, ..Self::new() }
    }

    /// One pass over the lanes, most important first, looking at `window` periods.
    fn scan(
        &mut self,
        context: &Context,
        lanes: &mut [Lane],
        window: usize,
    ) -> Result<Option<usize>, TooNarrow> {
        let profile = &mut self.profile;
        profile.clear(&context.config.refresh, context.current, self.horizon, window);
        let ready_c = profile.offset(context.ready_c);
        let ready_o = profile.offset(context.ready_o);
        let free_o = profile.offset(context.free_o);
        let ready_period = profile.period_at(ready_o);
        self.lapse = i64::MAX;
        let mut clearance = Clearance::new(context, profile);
        let mut best: Option<Best> = None;
        let mut nearest: Option<(Period, AppId)> = None;
        let in_turn = context.config.gpu.is_time_shared();
        // Reservations only grow in this loop, so what was available is an upper bound of what is.
        let mut at_most = i64::MAX;
        let owed = if in_turn { Owed::among(lanes, context, profile) } else { Owed::default() };

        for index in 0..lanes.len() {
            let lane = &mut lanes[index];
            let mut waits = false;
            if lane.head.is_none()
                && let Some(lapse) = profile.give_up_hopeless_frames(lane, free_o)
            {
                self.lapse = self.lapse.min(lapse);
            }
            lane.target = lane.target.max(ready_period);
            if let Some(head) = lane.head {
                let earliest = profile.period_at(ready_o + head.optimistic.as_signed_ns());
                lane.target = lane.target.max(earliest);
                if head.conservative >= Span::FOREVER {
                    lane.hold = Some(Hold::Unbounded);
                } else if let Some(best) = best.filter(|best| best.target <= lane.target) {
                    // Rule B has decided already; whether it would fit does not matter.
                    lane.hold = Some(Hold::Behind { app: best.app });
                } else if let Some(app) = clearance.delayed(lane, head.conservative) {
                    lane.hold = Some(Hold::Clears { app });
                    self.lapse = self.lapse.min(clearance.lapse());
                } else if let Some(end) = owed.other_than(lane.app)
                    && end.is_broken_by(lane, ready_c, head)
                {
                    // In order it would be behind that work, too.
                    lane.hold = Some(Hold::Behind { app: end.app });
                    waits = true;
                } else if head.conservative.as_signed_ns() >= at_most {
                    lane.hold = nearest.map(|(_, app)| Hold::Protects { app });
                } else {
                    let available = profile.available()? - ready_c;
                    at_most = available;
                    if head.conservative.as_signed_ns() < available {
                        let room = (available - 1).min(clearance.room(lane)).min(owed.room(lane, ready_c));
                        best = Some(Best { index, target: lane.target, app: lane.app, room });
                        lane.hold = None;
                        hold_behind(&mut lanes[..=index]);
                    } else if available < 0 {
                        hold_rest(lanes, index);
                        break;
                    } else {
                        // Something is reserved, or everything would fit.
                        lane.hold = nearest.map(|(_, app)| Hold::Protects { app });
                    }
                }
            }
            let lane = &lanes[index];
            if in_turn && gives_way(lane, context, at_most) {
                continue;
            }
            clearance.keep(lane, context, profile);
            profile.reserve(lane);
            if in_turn && lane.has_budget() {
                keep_in_turn(lane, context, waits, profile);
            }
            if lane.reserves() && nearest.is_none_or(|(target, _)| lane.target < target) {
                nearest = Some((lane.target, lane.app));
            }
        }
        self.room = best.map_or(0, |best| best.room);
        Ok(best.map(|best| best.index))
    }
}

/// The lane to choose, unless one with an earlier target comes.
#[derive(Copy, Clone)]
struct Best {
    index: usize,
    target: Period,
    app: AppId,
    /// How long its group could be.
    room: i64,
}

impl Policy for FrameDeadline {
    fn name(&self) -> &'static str {
        "frame-deadline"
    }

    fn apps_changed(&mut self, _now: Time, lanes: &[Lane]) {
        let lcm = lanes.iter().fold(1, |acc, lane| lcm(acc, lane.stride.periods()));
        self.horizon = (lcm + 2).min(LOOKAHEAD_MAX) as usize;
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
        let mut window = self.window_first.min(self.horizon);
        loop {
            match self.scan(context, lanes, window) {
                Ok(choice) => {
                    self.timeout = self.profile.instant(self.lapse).filter(|_| choice.is_none());
                    return choice;
                }
                // At the full horizon the answer is exact, so this ends.
                Err(TooNarrow) => window = (window * 2).min(self.horizon),
            }
        }
    }
}

/// Work with reserved time that is on a GPU which serves processes in turn: what is due first, and what is
/// due first of other apps.
///
/// Whoever is less important is kept from making it late by the profile. This is about those who are
/// more important and less urgent.
#[derive(Copy, Clone, Default)]
struct Owed([Option<End>; 2]);

/// By when all that is in flight must be over.
#[derive(Copy, Clone)]
struct End {
    app: AppId,
    due: Period,
    /// The end of that period, from the start of the current one.
    until: i64,
}

impl Owed {
    fn among(lanes: &[Lane], context: &Context, profile: &Profile) -> Self {
        let end = |lane: &Lane| {
            let due = lane.on_gpu_due.filter(|_| lane.has_budget())?;
            let period = context.config.refresh.period_ending_near(due);
            Some(End { app: lane.app, due: period, until: profile.offset(due) })
        };
        let mut owed = Self::default();
        for end in lanes.iter().filter_map(end) {
            let Self([first, second]) = &mut owed;
            let sooner = |other: &Option<End>| other.is_none_or(|other| end.due < other.due);
            if sooner(first) {
                (*first, *second) = (Some(end), *first);
            } else if sooner(second) {
                *second = Some(end);
            }
        }
        owed
    }

    fn other_than(&self, app: AppId) -> Option<&End> {
        self.0.iter().flatten().find(|end| end.app != app)
    }

    /// How long a group of `lane` may be that begins at `ready`.
    fn room(&self, lane: &Lane, ready: i64) -> i64 {
        self.other_than(lane.app).map_or(i64::MAX, |end| (end.until - ready - 1).max(0))
    }
}

impl End {
    /// Whether a group of `lane` that is less urgent would make it late.
    fn is_broken_by(&self, lane: &Lane, ready: i64, head: Head) -> bool {
        lane.target > self.due && ready + head.conservative.as_signed_ns() >= self.until
    }
}

/// Keeps time free for what `lane` has on a GPU that serves processes in turn, and for coming late if it
/// `waits` for what others have there.
fn keep_in_turn(lane: &Lane, context: &Context, waits: bool, profile: &mut Profile) {
    let (margins, mpcg) = (&context.config.margins, context.config.mpcg);
    profile.keep_end(lane, margins.per_group(mpcg));
    if waits {
        // The GPU may be idle until it comes, which nobody has reserved time for.
        profile.keep(lane.target, margins.per_frame(mpcg));
    }
}

/// Whether no time is kept free for the group that waits, where processes have the GPU in turn: it does
/// not fit into what is `at_most` available, its app has reserved nothing, and its deadline is over, so
/// that keeping others back is of use to nobody; or nobody knows how long it is, so that it never goes.
///
/// In some periods time is kept free all the same, for all such groups at once: or one that would fit if
/// others paused might never do so (ADR 0036).
fn gives_way(lane: &Lane, context: &Context, at_most: i64) -> bool {
    let Some(head) = lane.head.filter(|_| !lane.has_budget()) else {
        return false;
    };
    let held = matches!(lane.hold, Some(Hold::Protects { .. } | Hold::Clears { .. }));
    let too_long = held || head.conservative.as_signed_ns() >= at_most;
    let late = context.current > lane.due;
    let insists = context.current.0 % PAUSES_EVERY < PAUSE;
    let unbounded = head.conservative >= Span::FOREVER;
    unbounded || too_long && late && !insists
}

/// The last of these lanes was preferred to those above it that would have fitted, too.
fn hold_behind(lanes: &mut [Lane]) {
    let Some((last, above)) = lanes.split_last_mut() else {
        return;
    };
    for lane in above.iter_mut().filter(|lane| matches!(lane.hold, Some(Hold::Behind { .. }) | None)) {
        lane.hold = lane.head.map(|_| Hold::Behind { app: last.app });
    }
}

/// Nothing is left for `lanes[index]` and everybody below it.
fn hold_rest(lanes: &mut [Lane], index: usize) {
    let app = lanes[index.saturating_sub(1)].app;
    for lane in lanes[index..].iter_mut().filter(|lane| lane.head.is_some()) {
        lane.hold = Some(Hold::Exhausted { app });
    }
}
