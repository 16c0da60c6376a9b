//! Parameters of a scheduler.

use crate::charge::Charge;
use crate::clock::DisplayId;
use crate::gpu::{Divisible, Gpu};
use crate::limits::{APPS_MAX, DISPLAYS_MAX, IN_FLIGHT_MAX};
use crate::refresh::Refresh;
use crate::service::{Enforcement, Gaps, Reserve};
use crate::time::{Estimate, Span};

/// How far to distrust a prediction, and how long the path to the GPU takes.
///
/// The defaults are those of the thesis's embedded board; fast hosts want far smaller ones.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Margins {
    /// Added to a prediction before scaling it up, subtracted before scaling it down.
    pub fixed: Span,
    /// Conservative scale in permille (1050 = 5 % more).
    pub upper_permille: u32,
    /// Optimistic scale in permille (900 = 10 % less).
    pub lower_permille: u32,
    /// Upper bound on the delay from a decision to the group being in the GPU's queue.
    pub dispatch_upper: Span,
    /// Lower bound on the same delay.
    pub dispatch_lower: Span,
    /// Upper bound on the delay from the end of a group to the scheduler hearing of it.
    pub completion_upper: Span,
    /// Shortest execution time of any group (`et_min`).
    pub group_min: Span,
}

impl Default for Margins {
    fn default() -> Self {
        Self {
            fixed: Span::from_us(100),
            upper_permille: 1050,
            lower_permille: 900,
            dispatch_upper: Span::from_us(150),
            dispatch_lower: Span::from_us(50),
            completion_upper: Span::ZERO,
            group_min: Span::from_us(30),
        }
    }
}

impl Margins {
    /// Trusts predictions and dispatches instantly: for tests on round numbers.
    pub const NONE: Self = Self {
        fixed: Span::ZERO,
        upper_permille: 1000,
        lower_permille: 1000,
        dispatch_upper: Span::ZERO,
        dispatch_lower: Span::ZERO,
        completion_upper: Span::ZERO,
        group_min: Span::ZERO,
    };

    /// `predC`: the time a group is assumed not to exceed. No group is shorter than `group_min`.
    pub fn conservative(&self, estimate: Estimate) -> Span {
        (estimate.span() + self.fixed).scaled(self.upper_permille, 1000).max(self.group_min)
    }

    /// The longest prediction of a group that is assumed not to exceed `conservative`.
    pub fn predicted_within(&self, conservative: Span) -> Span {
        if conservative >= Span::FOREVER {
            return Span::FOREVER;
        }
        // Without a factor there is nothing to take out again.
        let factor = if self.upper_permille == 0 { 1000 } else { self.upper_permille };
        conservative.scaled(1000, factor).saturating_sub(self.fixed)
    }

    /// `predO`: the time a group is assumed to need at least.
    pub fn optimistic(&self, estimate: Estimate) -> Span {
        estimate.span().saturating_sub(self.fixed).scaled(self.lower_permille, 1000)
    }

    /// Time to reserve beyond `predC` for each enqueued group (`et_delayed(et) − et`): when
    /// `mpcg` groups of minimal length are in flight, the GPU may drain before the next arrives.
    pub fn per_group(&self, mpcg: u32) -> Span {
        self.turnaround().saturating_sub(self.group_min.times(u64::from(mpcg.saturating_sub(1))))
    }

    /// Time to reserve once per frame: the first group after an idle GPU waits the whole
    /// dispatch delay, of which [`Margins::per_group`] covers only a part.
    pub fn per_frame(&self, mpcg: u32) -> Span {
        self.turnaround().saturating_sub(self.per_group(mpcg))
    }

    /// Longest time from the end of a group to the arrival of the next one that waited for its slot.
    pub fn turnaround(&self) -> Span {
        self.completion_upper + self.dispatch_upper
    }
}

/// Parameters of a [`crate::Scheduler`], fixed for its life except the refresh grid and what is
/// [`Adjustable`].
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// The refresh grid of the first display.
    pub refresh: Refresh,
    /// The refresh grids of the other displays.
    pub more_displays: [Refresh; DISPLAYS_MAX - 1],
    /// Most groups dispatched and incomplete at once, `1..=`[`IN_FLIGHT_MAX`]; where they end in any
    /// order, an app with reserved time may have one more, and groups that are late do not count.
    pub mpcg: u32,
    /// Margins on predictions and delays.
    pub margins: Margins,
    /// Slots for apps, `1..=`[`APPS_MAX`]. All memory is taken at construction.
    pub apps_max: u32,
    /// A group is given up this long after its conservative end: its completion was lost. Where groups end in any
    /// order, that end moves on with each one that others reach before it, but no further than until it is late and
    /// has had time for its prediction once more beside each of `mpcg` others.
    pub completion_timeout: Span,
    /// What the GPU can do with groups that were dispatched.
    pub gpu: Gpu,
    /// Divisible work of apps without a contract may be on the GPU beside all other work, which is charged for
    /// it; without this, such work is treated as any other (`timeline`).
    pub divisible: Option<Divisible>,
    /// Apps ask for one group at a time and go on when it was dispatched, as live programs do; so no
    /// more of a batch ever waits than one group (`hpf`).
    pub singly: bool,
    /// Parameters of single policies, and of what the scheduler does whatever the policy.
    pub tuning: Tuning,
}

/// Parameters of single policies, each of which looks at its own, and of the scheduler itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Tuning {
    /// Time between two decisions of a policy that is driven by ticks (`germ`).
    pub tick: Span,
    /// How much of the GPU reserves may take together, in permille (`timegraph`).
    pub admission_permille: u32,
    /// The reserve of apps without a specification (`timegraph`).
    pub background: Reserve,
    /// Timeslice of apps that name none (`runlist`).
    pub timeslice: Span,
    /// How long apps that reserve nothing may delay the work of a more important app that does;
    /// [`Span::FOREVER`] for as long as no deadline is in danger (`timeline`).
    pub blocking: Span,
    /// To how much a group of draws of an app that reserves nothing may be stretched, if it asks for
    /// less and as much would be granted at that moment; zero for no more than it asks for
    /// (`timeline`).
    pub stretch: Span,
    /// Longest command group of a protected app, by its conservative prediction and without what the GPU adds: longer
    /// ones need slack as any other work does. The shorter it is, the more apps with different clocks are covered
    /// together (`timeline`).
    pub group_max: Span,
    /// Relief against starvation: of so many periods of the first display, apps without a contract keep time
    /// free in the first [`Tuning::relief_periods`] for groups that are late and do not fit (`timeline`).
    pub relief_every: u32,
    /// In how many of those periods; two, because a group that begins in one may end in the next.
    pub relief_periods: u32,
    /// An app with a clock of its own that begins no frame for so many of its periods is suspended: no time
    /// is kept free for it, and its first frame on return is not protected (`timeline`).
    pub suspend_after: u32,
    /// Where a change of contexts costs something: how long a late app that is promised nothing goes on before another
    /// such app follows; zero for no turns (`timeline`).
    pub rest_turn: Span,
    /// How many frames of an app that submits none are given up in one decision at most, because not even an
    /// immediate start could finish them. Where more would be, no frame ever fits, and the decision after a silence
    /// must not take longer than others (`timeline`).
    pub given_up_max: u32,
    /// Where groups end in any order, one is late, and keeps no slot any more, this long after it should have been
    /// over, and [`Tuning::late_permille`] of its prediction: enough for a delay that predictions know nothing of.
    pub late_after: Span,
    /// So many parts in a thousand of its conservative prediction must a group have taken beyond that to be late:
    /// with 1000 of them it took twice as long as predicted.
    pub late_permille: u32,
    /// A group of unknown length counts as this long where an end is needed: when it is late, and, with
    /// [`Config::completion_timeout`] on top, when it is given up.
    pub unknown_runs_max: Span,
    /// An app that joins while groups run starts behind them, but after this time all the same: they may be
    /// of unknown length.
    pub join_delay_max: Span,
    /// With a bound on [`Tuning::blocking`], the GPU is kept clear for a frame that is released and has not begun
    /// for one of so many parts of its period, and no longer: half a millisecond at 60 Hz (`timeline`).
    pub clear_parts: u32,
    /// With [`Tuning::stretch`], no group is longer than it asks to be while a frame of a more important app was
    /// released less than one of so many parts of its period ago and has not begun: some 4 ms at 60 Hz, by when
    /// threads that are woken late mostly come (`timeline`).
    pub unstretched_parts: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            tick: Span::from_ms(1),
            admission_permille: 1000,
            background: Reserve {
                budget: Span::from_ms(5),
                period: Span::from_ms(25),
                deadline: Span::from_ms(25),
                enforcement: Enforcement::Posterior,
            },
            timeslice: Span::from_ms(1),
            blocking: Span::FOREVER,
            stretch: Span::ZERO,
            group_max: Span::FOREVER,
            relief_every: 16,
            relief_periods: 2,
            suspend_after: 4,
            rest_turn: Span::from_ms(20),
            given_up_max: 16,
            late_after: Span::from_ms(2),
            late_permille: 1000,
            unknown_runs_max: Span::from_ms(10_000),
            join_delay_max: Span::from_ms(1_000),
            clear_parts: 32,
            unstretched_parts: 4,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            refresh: Refresh::HZ_60,
            more_displays: [Refresh::HZ_60; DISPLAYS_MAX - 1],
            mpcg: 5,
            margins: Margins::default(),
            apps_max: 64,
            completion_timeout: Span::from_ms(500),
            gpu: Gpu::InOrder,
            divisible: None,
            singly: false,
            tuning: Tuning::default(),
        }
    }
}

/// Parameters that may change while a scheduler runs ([`crate::Event::Adjust`]).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Adjustable {
    /// See [`Config::mpcg`].
    pub mpcg: u32,
    /// See [`Config::margins`].
    pub margins: Margins,
    /// See [`Tuning::blocking`].
    pub blocking: Span,
    /// See [`Tuning::stretch`].
    pub stretch: Span,
    /// See [`Config::divisible`].
    pub divisible: Option<Divisible>,
}

impl Config {
    /// The part that may change while a scheduler runs.
    pub fn adjustable(&self) -> Adjustable {
        let Tuning { blocking, stretch, .. } = self.tuning;
        let Self { mpcg, margins, divisible, .. } = *self;
        Adjustable { mpcg, margins, blocking, stretch, divisible }
    }

    /// The same with another such part.
    #[must_use]
    pub fn adjusted(self, adjustable: Adjustable) -> Self {
        let Adjustable { mpcg, margins, blocking, stretch, divisible } = adjustable;
        let tuning = Tuning { blocking, stretch, ..self.tuning };
        Self { mpcg, margins, divisible, tuning, ..self }.clamped()
    }

    /// The refresh grid of a display; the first one's for a number beyond [`DISPLAYS_MAX`].
    pub fn display(&self, display: DisplayId) -> &Refresh {
        match usize::from(display.0).checked_sub(1) {
            Some(index) => self.more_displays.get(index).unwrap_or(&self.refresh),
            None => &self.refresh,
        }
    }

    /// How long a group of that estimate is assumed to keep the GPU at most, with what the GPU adds.
    pub fn conservative(&self, estimate: Estimate, charge: Charge) -> Span {
        let length = self.margins.conservative(estimate);
        length + self.added(length, charge)
    }

    /// How long the longest group that a protected app may have keeps the GPU, if it pays for the way there
    /// ([`Tuning::group_max`]).
    pub fn longest_group(&self) -> Span {
        let length = self.tuning.group_max;
        length + self.added(length, Charge::Enters)
    }

    /// What a group of that estimate takes of the budget of its server.
    pub fn per_job(&self, estimate: Estimate) -> Span {
        self.conservative(estimate, Charge::Enters) + self.per_arrival()
    }

    /// What the GPU adds to a group of that length at most: the switches that it pays for, and the turns of divisible
    /// work.
    pub fn added(&self, length: Span, charge: Charge) -> Span {
        self.gpu.switches(length, charge) + self.delay(length)
    }

    /// What divisible work adds to a group of that length at most.
    pub fn delay(&self, length: Span) -> Span {
        self.divisible.map_or(Span::ZERO, |divisible| divisible.delay(length))
    }

    /// The longest group of an app without a contract that keeps the GPU no longer than `total`, with what the GPU
    /// adds.
    pub fn length_within(&self, total: Span) -> Span {
        if self.divisible.is_none() || total >= Span::FOREVER {
            return self.gpu.without_switches(total);
        }
        let (mut fits, mut too_long) = (0, total.as_ns() + 1);
        while too_long - fits > 1 {
            let length = Span::from_ns(fits + (too_long - fits) / 2);
            let fitting = length + self.added(length, Charge::Beside) <= total;
            *if fitting { &mut fits } else { &mut too_long } = length.as_ns();
        }
        Span::from_ns(fits)
    }

    /// Time to reserve for each group beyond that.
    pub fn per_group(&self) -> Span {
        self.margins.per_group(self.mpcg)
    }

    /// Time to reserve once per frame. Where protected apps have the GPU one at a time, it may stand still before
    /// the frame and again behind it, when what it displaced goes on.
    pub fn per_frame(&self) -> Span {
        self.margins.per_frame(self.mpcg) + self.per_return()
    }

    /// Time to reserve for each gap within a frame: the gap itself, and what the first group of a frame costs besides
    /// its length.
    pub fn per_gap(&self, gaps: Gaps) -> Span {
        gaps.length + self.per_frame() + self.gpu.switches(Span::ZERO, Charge::Enters)
    }

    /// Time to reserve for each group of a server: it may find the GPU idle, and wait for its way there.
    pub fn per_arrival(&self) -> Span {
        self.margins.turnaround() + self.per_return()
    }

    /// What each group of a protected frame of several sources pays besides its length: where contexts take turns, as
    /// much as one of a server. They may end together, or one waits until the other is off the GPU; then the GPU stands
    /// still until more of the frame comes.
    pub fn per_source(&self) -> Span {
        let pays = self.gpu.is_time_shared();
        if pays { self.per_arrival() + self.gpu.switches(Span::ZERO, Charge::Enters) } else { Span::ZERO }
    }

    /// How long the GPU may stand still when a protected app goes on that was displaced.
    fn per_return(&self) -> Span {
        if self.gpu.excludes() { self.margins.turnaround() } else { Span::ZERO }
    }

    /// The same with every bound enforced.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "both limits are small constants")]
        let (in_flight_max, apps_max) = (IN_FLIGHT_MAX as u32, APPS_MAX as u32);
        self.mpcg = self.mpcg.clamp(1, in_flight_max);
        self.apps_max = self.apps_max.clamp(1, apps_max);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_margins_added_is_taken_out_again() {
        let margins = Margins::default();
        for us in [0, 1, 37, 900, 16_667, 4_000_000] {
            let estimate = Span::from_us(us);
            let again = margins.predicted_within(margins.conservative(Estimate::new(estimate)));
            assert!(again <= estimate && again + Span::from_ns(1) >= estimate, "{again:?} of {estimate:?}");
        }
        assert_eq!(margins.predicted_within(Span::FOREVER), Span::FOREVER);
        assert_eq!(margins.predicted_within(Span::ZERO), Span::ZERO);
        let none = Margins { upper_permille: 0, ..Margins::NONE };
        assert_eq!(none.predicted_within(Span::from_ms(4)), Span::from_ms(4));
    }

    #[test]
    fn what_the_gpu_adds_is_taken_out_again() {
        let [slice, quantum, own_slice, switch] = [300, 200, 2000, 50].map(Span::from_us);
        let divisible = Some(Divisible { slice, quantum, own_slice, switch });
        let gpu = Gpu::TimeShared { slice: Span::from_us(700), switch };
        let config = Config { gpu, divisible, margins: Margins::NONE, ..Config::default() };
        assert_eq!(
            config.conservative(Estimate::new(own_slice), Charge::Beside),
            Span::from_us(2000 + 3 * 2 * 50 + 600)
        );
        for length in [1, 699_999, 700_000, 2_000_000, 2_000_001, 9_876_543].map(Span::from_ns) {
            let total = config.conservative(Estimate::new(length), Charge::Beside);
            assert_eq!(config.length_within(total), length);
            assert!(config.length_within(total.saturating_sub(Span::from_ns(1))) < length);
        }
        assert_eq!(config.length_within(Span::from_us(600)), Span::ZERO);
        assert_eq!(config.length_within(Span::FOREVER), Span::FOREVER);
        assert_eq!(config.conservative(Estimate::new(Span::FOREVER), Charge::Beside), Span::FOREVER);
    }

    #[test]
    fn margins_follow_the_thesis() {
        let margins = Margins::default();
        let estimate = Estimate::new(Span::from_us(900));
        assert_eq!(margins.conservative(estimate), Span::from_us(1050));
        assert_eq!(margins.optimistic(estimate), Span::from_us(720));
        assert_eq!(margins.optimistic(Estimate::new(Span::from_us(40))), Span::ZERO);
        assert_eq!(margins.per_group(5), Span::from_us(30));
        assert_eq!(margins.per_group(1), Span::from_us(150));
        assert_eq!(margins.per_group(6), Span::ZERO);
        assert_eq!(margins.per_frame(5), Span::from_us(120));
        assert_eq!(margins.per_frame(1), Span::ZERO);
    }

    #[test]
    fn no_group_is_shorter_than_the_minimum() {
        let margins = Margins { fixed: Span::ZERO, ..Margins::default() };
        assert_eq!(margins.conservative(Estimate::default()), Span::from_us(30));
    }
}
