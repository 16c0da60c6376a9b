//! `frame-deadline`: never endanger a more important deadline, else earliest target first.
//!
//! * **Rules.** (A) A group that could make a more important app miss a deadline is not
//!   dispatched. (B) Within A, the earliest target goes first, ties to the more important app.
//!   The GPU idles on purpose when nothing is safe.
//! * **Assumptions.** Groups run no longer than their conservative prediction; all apps draw for the first
//!   display; the frames of the protected apps (the most important ones that pass
//!   [`takt_core::analysis::frames`]) stay within their `etpf` and arrive at their incipient arrival; the GPU
//!   executes in order. Then no protected app misses a deadline, whatever the others do.
//!   [`takt_core::policy::Timeline`] is the rule for everything else, and equal to this one where these hold.
//! * **Source.** Schnitzer, dissertation 2019, ch. 4 (listing 4.3), with the corrections of
//!   ADR 0004 (conditional clamp) and ADR 0005 (when the GPU is free).
//! * **Cost.** Linear in apps times the periods looked at, which are at most `lcm(strides) + 2`
//!   and rarely more than [`WINDOW_FIRST`]; no allocation.

use crate::profile::{Profile, TooNarrow};
use takt_core::app::AppId;
use takt_core::event::Hold;
use takt_core::limits::LOOKAHEAD_MAX;
use takt_core::policy::{Context, Policy};
use takt_core::refresh::{Period, lcm};
use takt_core::scheduler::Lane;
use takt_core::time::{Span, Time};

/// Periods to look at first; the window grows only if that does not settle the question.
const WINDOW_FIRST: usize = 8;

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
        self.profile.clear(&context.config.refresh, context.current, self.horizon, window);
        self.lapse = i64::MAX;
        let ready = Ready::new(&self.profile, context);
        let mut pass = Pass::default();
        for index in 0..lanes.len() {
            self.aim(&ready, &mut lanes[index]);
            if self.consider(&ready, &mut pass, lanes, index)? == Left::Nothing {
                break;
            }
            let lane = &lanes[index];
            self.profile.reserve(lane);
            if lane.reserves() && pass.nearest.is_none_or(|(target, _)| lane.target < target) {
                pass.nearest = Some((lane.target, lane.app));
            }
        }
        Ok(pass.best.map(|best| best.index))
    }

    /// Moves the target of a frame on that cannot meet it any more.
    fn aim(&mut self, ready: &Ready, lane: &mut Lane) {
        if lane.head.is_none()
            && let Some(lapse) = self.profile.give_up_hopeless_frames(lane, ready.free)
        {
            self.lapse = self.lapse.min(lapse);
        }
        lane.target = lane.target.max(self.profile.period_at(ready.optimistic));
        if let Some(head) = lane.head {
            let earliest = ready.optimistic + head.optimistic.as_signed_ns();
            lane.target = lane.target.max(self.profile.period_at(earliest));
        }
    }

    /// Prefers the first group of a lane to those seen so far, or says what it waits for.
    fn consider(
        &mut self,
        ready: &Ready,
        pass: &mut Pass,
        lanes: &mut [Lane],
        index: usize,
    ) -> Result<Left, TooNarrow> {
        let lane = &mut lanes[index];
        let Some(head) = lane.head else {
            return Ok(Left::Some);
        };
        let protects = pass.nearest.map(|(_, app)| Hold::Protects { app });
        let length = head.conservative.as_signed_ns();
        if head.conservative >= Span::FOREVER {
            lane.hold = Some(Hold::Unbounded);
        } else if let Some(best) = pass.best.filter(|best| best.target <= lane.target) {
            // Rule B has decided already; whether it would fit does not matter.
            lane.hold = Some(Hold::Behind { app: best.app });
        } else if length >= pass.at_most {
            lane.hold = protects;
        } else {
            pass.at_most = self.profile.available()? - ready.conservative;
            if pass.at_most < 0 {
                hold_rest(lanes, index);
                return Ok(Left::Nothing);
            }
            if length < pass.at_most {
                pass.best = Some(Best { index, target: lane.target, app: lane.app });
                lane.hold = None;
                hold_behind(&mut lanes[..=index]);
            } else {
                // Something is reserved, or everything would fit.
                lane.hold = protects;
            }
        }
        Ok(Left::Some)
    }
}

/// When the GPU is free for a group that is picked now, as offsets in the profile.
struct Ready {
    conservative: i64,
    optimistic: i64,
    free: i64,
}

impl Ready {
    fn new(profile: &Profile, context: &Context) -> Self {
        Self {
            conservative: profile.offset(context.ready_c),
            optimistic: profile.offset(context.ready_o),
            free: profile.offset(context.free_o),
        }
    }
}

/// What a pass over the lanes has found out so far.
struct Pass {
    best: Option<Best>,
    /// The earliest target that time is reserved for.
    nearest: Option<(Period, AppId)>,
    /// Reservations only grow in a pass, so what was available is an upper bound of what is.
    at_most: i64,
}

impl Default for Pass {
    fn default() -> Self {
        Self { best: None, nearest: None, at_most: i64::MAX }
    }
}

/// What is left of the GPU's time for less important apps.
#[derive(PartialEq, Eq)]
enum Left {
    Some,
    Nothing,
}

/// The lane to choose, unless one with an earlier target comes.
#[derive(Copy, Clone)]
struct Best {
    index: usize,
    target: Period,
    app: AppId,
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

/// The last of these lanes was preferred to those above it that would have fitted, too.
fn hold_behind(lanes: &mut [Lane]) {
    let Some((last, above)) = lanes.split_last_mut() else {
        return;
    };
    for lane in above.iter_mut().filter(|lane| matches!(lane.hold, Some(Hold::Behind { .. }) | None)) {
        lane.hold = lane.head.map(|_| Hold::Behind { app: last.app });
    }
}

/// Nothing is left for `lanes[index]` and all apps below it.
fn hold_rest(lanes: &mut [Lane], index: usize) {
    let app = lanes[index.saturating_sub(1)].app;
    for lane in lanes[index..].iter_mut().filter(|lane| lane.head.is_some()) {
        lane.hold = Some(Hold::Exhausted { app });
    }
}
