//! The reservation profile: how much GPU time more important apps need in the coming periods,
//! and therefore when the GPU must be free for them.
//!
//! `own[i]` is work that arrives in period `i` and is due at its end (stride 1); `early[i]` is
//! work due at the end of `i` that may already arrive one period before (stride ≥ 2). The thesis
//! calls them `res` and `res2`.
//!
//! The profile is read backwards from the last period, pushing all work as late as it can go. The
//! walk keeps one number, the *debt*: by how much the work of the periods seen so far sticks out
//! to the left of the period it has reached (`accounted − span` in the thesis).
//!
//! ## How far to look
//!
//! The pattern of deadlines repeats after `lcm(strides)` periods, which explodes for odd rates.
//! But the debt that leaves period `i` is never more than `early[i]`, whatever lies beyond, and
//! a period with some slack swallows it. So the profile is first filled for a few periods only
//! and walked twice, once from the largest debt that can come in and once from none at all. The
//! walk is monotone: if both give the same answer, nothing beyond the window can change it. If
//! they differ, the window is too narrow and the caller widens it.

use alloc::vec;
use alloc::vec::Vec;

use takt_core::limits::LOOKAHEAD_MAX;
use takt_core::refresh::{Period, Refresh};
use takt_core::scheduler::Lane;
use takt_core::time::{Span, Time};

/// All times are signed nanoseconds here; see [`takt_core::time::Span::FOREVER`] for why sums fit.
const FOREVER: i64 = 1 << 60;

#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const COLUMNS: usize = LOOKAHEAD_MAX as usize + 1;

/// Reservations of the apps visited so far.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    refresh: Option<Refresh>,
    current: Period,
    /// Periods of the whole horizon, `lcm + 2`.
    horizon: usize,
    /// Starts of the horizon's periods relative to the current one, and the horizon's end.
    starts: Vec<i64>,
    /// Periods that are filled in, at most `horizon`.
    window: usize,
    own: Vec<i64>,
    early: Vec<i64>,
    empty: bool,
    debt: Option<i64>,
}

/// The window does not reach far enough to tell.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct TooNarrow;

impl Profile {
    pub(crate) fn new() -> Self {
        Self {
            refresh: None,
            current: Period(0),
            horizon: 0,
            starts: vec![0; COLUMNS + 1],
            window: 0,
            own: vec![0; COLUMNS],
            early: vec![0; COLUMNS],
            empty: true,
            debt: None,
        }
    }

    /// Forgets all reservations and looks at `window` of `horizon` periods from `current` on.
    pub(crate) fn clear(&mut self, refresh: &Refresh, current: Period, horizon: usize, window: usize) {
        if (self.refresh, self.current, self.horizon) != (Some(*refresh), current, horizon) {
            self.move_to(refresh, current, horizon);
        }
        self.window = window.min(horizon);
        let columns = self.columns();
        self.own[..columns].fill(0);
        self.early[..columns].fill(0);
        self.empty = true;
        self.debt = None;
    }

    fn move_to(&mut self, refresh: &Refresh, current: Period, horizon: usize) {
        self.refresh = Some(*refresh);
        self.current = current;
        self.horizon = horizon;
        let origin = refresh.start(current);
        for (offset, start) in (0..).zip(&mut self.starts[..=horizon]) {
            *start = refresh.start(current + offset).since(origin).as_signed_ns();
        }
    }

    /// Columns in use: the window and, if the horizon goes on, one period beyond it, whose
    /// `early` bounds the debt that comes in.
    fn columns(&self) -> usize {
        self.horizon.min(self.window + 1)
    }

    /// Where a period is; the current one for those before it.
    fn column(&self, period: Period) -> usize {
        usize::try_from(period.0.saturating_sub(self.current.0)).unwrap_or(usize::MAX)
    }

    /// The period that `offset_ns` after the start of the current period falls in, at most the
    /// last one of the horizon.
    pub(crate) fn period_at(&self, offset_ns: i64) -> Period {
        // Nearly always the current period or the next one.
        let mut ahead = 0;
        while ahead < 2 && ahead + 1 < self.horizon && self.starts[ahead + 1] <= offset_ns {
            ahead += 1;
        }
        if ahead == 2 {
            ahead = self.starts[..self.horizon].partition_point(|start| *start <= offset_ns) - 1;
        }
        self.current + ahead as u64
    }

    /// Moves the target of an app that has not submitted its frame on by whole strides, as long as
    /// not even an immediate start could finish the reserved work in time.
    ///
    /// Without this the reservation of a silent app would follow the present and take time in
    /// every period, although the app is entitled to it in every stride only.
    /// Says when the next one becomes hopeless.
    pub(crate) fn give_up_hopeless_frames(&self, lane: &mut Lane, free_o: i64) -> Option<i64> {
        // The reservation includes the dispatch delay.
        let rest = lane.front.remaining(lane.etpf).as_signed_ns();
        // The end of a target that has passed counts as the start of the current period.
        let end = |target: Period| match target.0.checked_sub(self.current.0) {
            None => Some(0),
            Some(ahead) => {
                let next = usize::try_from(ahead + 1).unwrap_or(usize::MAX);
                self.starts[..=self.horizon].get(next).copied()
            }
        };
        while end(lane.target).is_some_and(|end| end < free_o + rest) {
            lane.target = lane.target + lane.stride.periods();
        }
        end(lane.target).filter(|_| rest > 0).map(|end| end - rest + 1)
    }

    /// Adds what `lane` needs for its current frame and for the frames after it.
    pub(crate) fn reserve(&mut self, lane: &Lane) {
        let columns = self.columns();
        let rest = lane.front.remaining(lane.etpf).as_signed_ns();
        let etpf = lane.etpf.as_signed_ns();
        if rest == 0 && etpf == 0 {
            return;
        }
        self.empty = false;
        self.debt = None;
        let first = self.column(lane.target);
        if first >= columns {
            return;
        }
        let stride = lane.stride.get() as usize;
        let work = if stride == 1 { &mut self.own } else { &mut self.early };
        work[first] = (work[first] + rest).min(FOREVER);
        if etpf > 0 {
            for later in work[first + stride..columns.max(first + stride)].iter_mut().step_by(stride) {
                *later = (*later + etpf).min(FOREVER);
            }
        }
    }

    /// How long the GPU may be busy, counted from the start of the current period, without
    /// making any reservation late. Negative if it is too late already.
    pub(crate) fn available(&mut self) -> Result<i64, TooNarrow> {
        if let Some(debt) = self.debt {
            return Ok(-debt);
        }
        let debt = self.walk_all()?;
        self.debt = Some(debt);
        Ok(-debt)
    }

    fn walk_all(&self) -> Result<i64, TooNarrow> {
        if self.empty {
            // No more important app needs anything: there is no end to the time available.
            return Ok(-FOREVER);
        }
        if self.window == self.horizon {
            return Ok(self.walk(0));
        }
        let most = self.walk(self.early[self.window]);
        let least = self.walk(-FOREVER);
        if most == least { Ok(most) } else { Err(TooNarrow) }
    }

    /// The debt at the start of the current period, if `debt` comes in from beyond the window.
    fn walk(&self, mut debt: i64) -> i64 {
        for i in (0..self.window).rev() {
            let (own, early) = (self.own[i], self.early[i]);
            if own + early > 0 {
                // Work due at the end of i is done by then: time left over later cannot help it.
                debt = debt.max(0);
            }
            debt -= self.starts[i + 1] - self.starts[i];
            debt += own;
            // Nothing accounted so far arrives before i: what does not fit into i and later is
            // overbooked, and no decision now can repair that.
            debt = debt.min(0);
            debt += early;
        }
        debt
    }

    /// The instant `offset_ns` after the start of the current period, unless it is beyond all time.
    pub(crate) fn instant(&self, offset_ns: i64) -> Option<Time> {
        let offset = u64::try_from(offset_ns).ok().filter(|_| offset_ns < FOREVER)?;
        Some(self.refresh?.start(self.current) + Span::from_ns(offset))
    }

    /// `time` relative to the start of the current period.
    pub(crate) fn offset(&self, time: Time) -> i64 {
        let origin = self.refresh.map_or(0, |refresh| refresh.start(self.current).as_ns());
        time.as_ns().cast_signed() - origin.cast_signed()
    }
}
