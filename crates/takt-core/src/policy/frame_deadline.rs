//! `frame-deadline`: never endanger a more important deadline, else earliest target first.
//!
//! * **Rules.** (A) A group that could make a more important app miss a deadline is not
//!   dispatched. (B) Within A, the earliest target goes first, ties to the more important app.
//!   The GPU idles on purpose when nothing is safe.
//! * **Assumptions.** Groups run no longer than their conservative prediction; the frames of the
//!   protected apps (the most important ones that pass [`crate::analysis`]) stay within their
//!   `etpf` and arrive at their incipient arrival. Then no protected app misses a deadline,
//!   whatever the others do; `takt prove` tests exactly that.
//! * **Source.** Schnitzer, dissertation 2019, ch. 4 (listing 4.3), with the corrections of
//!   ADR 0004 (conditional clamp) and ADR 0005 (when the GPU is free).
//! * **Cost.** Linear in apps times the periods looked at, which are at most `lcm(strides) + 2`
//!   and rarely more than [`WINDOW_FIRST`]; no allocation.

use super::profile::{Profile, TooNarrow};
use super::{Context, Policy};
use crate::app::AppId;
use crate::event::Hold;
use crate::limits::LOOKAHEAD_MAX;
use crate::refresh::{Period, lcm};
use crate::scheduler::Lane;
use crate::time::Span;

/// Periods to look at first; the window grows only if that does not settle the question.
const WINDOW_FIRST: usize = 8;

/// Frame-deadline scheduling with reservations.
#[derive(Clone, Debug)]
pub struct FrameDeadline {
    profile: Profile,
    /// Periods to look at, the current one included: `lcm(strides) + 2`.
    horizon: usize,
    window_first: usize,
}

impl Default for FrameDeadline {
    fn default() -> Self {
        Self::new()
    }
}

impl FrameDeadline {
    /// With no apps yet.
    pub fn new() -> Self {
        Self { profile: Profile::new(), horizon: 3, window_first: WINDOW_FIRST }
    }

    /// Always looks at the whole horizon: the slow oracle for the windowed look-ahead.
    pub fn with_full_lookahead() -> Self {
        Self { window_first: usize::MAX, ..Self::new() }
    }

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
        let ready_period = profile.period_at(ready_o);
        let mut best: Option<usize> = None;
        let mut nearest: Option<(Period, AppId)> = None;

        for index in 0..lanes.len() {
            let lane = &mut lanes[index];
            lane.target = lane.target.max(ready_period);
            if let Some(head) = lane.head {
                let earliest = profile.period_at(ready_o + head.optimistic.as_signed_ns());
                lane.target = lane.target.max(earliest);
                let available = profile.available()? - ready_c;
                if head.conservative.as_signed_ns() <= available {
                    best = Some(prefer(lanes, best, index));
                } else if available < 0 {
                    hold_rest(lanes, index);
                    break;
                } else {
                    lane.hold = Some(hold_for(head.conservative, nearest));
                }
            }
            let lane = &lanes[index];
            profile.reserve(lane);
            if lane.reserves() && nearest.is_none_or(|(target, _)| lane.target < target) {
                nearest = Some((lane.target, lane.app));
            }
        }
        Ok(best)
    }
}

impl Policy for FrameDeadline {
    fn name(&self) -> &'static str {
        "frame-deadline"
    }

    fn apps_changed(&mut self, lanes: &[Lane]) {
        let lcm = lanes.iter().fold(1, |acc, lane| lcm(acc, lane.stride.periods()));
        self.horizon = (lcm + 2).min(LOOKAHEAD_MAX) as usize;
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let mut window = self.window_first.min(self.horizon);
        loop {
            match self.scan(context, lanes, window) {
                Ok(choice) => return choice,
                // At the full horizon the answer is exact, so this ends.
                Err(TooNarrow) => window = (window * 2).min(self.horizon),
            }
        }
    }
}

/// The better one of two lanes that both fit: earlier target, else more important (rule B).
/// The other one waits behind it.
fn prefer(lanes: &mut [Lane], best: Option<usize>, index: usize) -> usize {
    let Some(old) = best else {
        return index;
    };
    let winner = if lanes[index].target < lanes[old].target { index } else { old };
    let app = lanes[winner].app;
    lanes[index].hold = Some(Hold::Behind { app });
    if winner == index {
        for lane in &mut lanes[..index] {
            if lane.head.is_some() && !matches!(lane.hold, Some(Hold::Protects { .. } | Hold::Unbounded)) {
                lane.hold = Some(Hold::Behind { app });
            }
        }
    }
    winner
}

fn hold_for(conservative: Span, nearest: Option<(Period, AppId)>) -> Hold {
    match nearest {
        Some((_, app)) if conservative < Span::FOREVER => Hold::Protects { app },
        _ => Hold::Unbounded,
    }
}

/// Nothing is left for `lanes[index]` and everybody below it.
fn hold_rest(lanes: &mut [Lane], index: usize) {
    let app = lanes[index.saturating_sub(1)].app;
    for lane in lanes[index..].iter_mut().filter(|lane| lane.head.is_some()) {
        lane.hold = Some(Hold::Exhausted { app });
    }
}
