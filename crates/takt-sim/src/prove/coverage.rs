//! How much load the offline test covers.

use takt_core::service::Reservation;
use takt_core::{AppId, Charge, Config, Estimate, Service, Span};

use super::{Case, mixed};
use crate::model::{AppSpec, Pace, RecordedGroup, Work};

/// How much of the GPU the protected sets of some cases may use, in parts per million of one GPU, summed up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    /// Cases.
    pub cases: u64,
    /// Groups as long as is assumed at most, without what the GPU adds.
    pub work_ppm: u64,
    /// The same where changes of contexts cost nothing, with as many groups in a frame.
    pub in_order_ppm: u64,
    /// Work, and one change of contexts for each frame or job: less is not possible where apps alternate.
    pub one_change_ppm: u64,
}

impl Coverage {
    /// Of one case.
    pub fn of(case: &Case) -> Self {
        let config = &case.scenario.config;
        let mut sum = Self { cases: 1, ..Self::default() };
        for (app, slot) in case.scenario.apps.iter().zip((0..).map(AppId)).take(case.protected) {
            let followers: Vec<&AppSpec> =
                case.scenario.apps.iter().filter(|other| runs_on(other, slot)).collect();
            let (work, turns) = mean_frame(app, &followers, config);
            let ppm = |span: Span| {
                span.as_ns().saturating_mul(1_000_000) / mixed::period(&app.params, config).as_ns().max(1)
            };
            let contexts = 1 + followers.len() as u64;
            sum.work_ppm += ppm(work);
            sum.in_order_ppm += ppm(work + turns);
            sum.one_change_ppm += ppm(work + config.gpu.switch().times(contexts));
        }
        sum
    }

    /// With those of other cases.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cases: self.cases + other.cases,
            work_ppm: self.work_ppm + other.work_ppm,
            in_order_ppm: self.in_order_ppm + other.in_order_ppm,
            one_change_ppm: self.one_change_ppm + other.one_change_ppm,
        }
    }

    /// Mean load, in permille of the GPU.
    pub fn load_permille(&self) -> u64 {
        self.work_ppm / 1000 / self.cases.max(1)
    }

    /// The same relative to what would be covered if the GPU executed in order, in permille.
    pub fn relative_permille(&self) -> u64 {
        self.work_ppm.saturating_mul(1000) / self.in_order_ppm.max(1)
    }

    /// What that would be at most, if the GPU changed contexts once for each frame and never stood still for it.
    pub fn bound_permille(&self) -> u64 {
        self.work_ppm.saturating_mul(1000) / self.one_change_ppm.max(1)
    }
}

/// Whether the work of an app is promised by the contract of the one in that slot.
fn runs_on(app: &AppSpec, slot: AppId) -> bool {
    let Service { reservation, feeds, .. } = app.params.service;
    // What does not fit into a frame of its owner is promised nothing.
    app.pace != Pace::Unpaced && (reservation == Reservation::Shared(slot) || feeds == Some(slot))
}

/// Groups of a frame or job, in the mean of those that an app repeats.
#[derive(Clone, Copy, Default)]
struct Mean {
    work: Span,
    /// What divisible work adds.
    delays: Span,
    /// Thousandths of groups.
    groups: u64,
}

impl Mean {
    fn of(app: &AppSpec, config: &Config) -> Self {
        let Work::Recorded(groups) = &app.work else {
            return Self::default();
        };
        let frames = groups.iter().filter(|group| group.kind.ends_frame()).count().max(1) as u64;
        let length = |group: &RecordedGroup| {
            config.margins.conservative(Estimate::new(group.predicted.unwrap_or(group.cost)))
        };
        // An end of a frame that costs nothing is no group.
        let is_group = |group: &&RecordedGroup| {
            !config.gpu.is_time_shared() || group.cost > Span::ZERO || group.predicted != Some(Span::ZERO)
        };
        let groups: Vec<Span> = groups.iter().filter(is_group).map(length).collect();
        let mean = |sum: Span| Span::from_ns(sum.as_ns() / frames);
        Self {
            work: mean(groups.iter().copied().sum()),
            delays: mean(groups.iter().map(|length| config.delay(*length)).sum()),
            groups: groups.len() as u64 * 1000 / frames,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            work: self.work + other.work,
            delays: self.delays + other.delays,
            groups: self.groups + other.groups,
        }
    }

    /// So much for each group.
    fn for_each(&self, span: Span) -> Span {
        Span::from_ns(span.times(self.groups).as_ns() / 1000)
    }
}

/// Work of a frame of `app` with what `followers` have in it, or of a job of each on its server; and what turns add.
fn mean_frame(app: &AppSpec, followers: &[&AppSpec], config: &Config) -> (Span, Span) {
    let own = Mean::of(app, config);
    let all = followers.iter().fold(own, |sum, follower| sum.plus(Mean::of(follower, config)));
    let enters = config.gpu.switches(Span::ZERO, Charge::Enters);
    let stands_still = config.per_frame().saturating_sub(config.margins.per_frame(config.mpcg));
    let params = app.params.framed();
    let turns = match mixed::server(&params) {
        Some(_) => all.for_each(enters + config.per_arrival().saturating_sub(config.margins.turnaround())),
        // Each group may be the first of its context.
        None if !followers.is_empty() => all.for_each(config.per_source()) + stands_still,
        // So may the first one, and each one after a gap.
        None => (enters + stands_still).times(1 + u64::from(params.service.gaps.count)),
    };
    (all.work, turns + all.delays)
}

#[cfg(test)]
mod tests {
    use takt_core::service::Gaps;
    use takt_core::{AppParams, Clock, Gpu, GroupKind, Margins, Priority, Stride};

    use super::super::draw::{app, draw};
    use super::super::{Execution, Options};
    use super::*;

    const SWITCH: Span = Span::from_us(100);

    /// An app with a frame of two groups of 300 us.
    fn with(service: Service) -> AppSpec {
        let params = AppParams {
            priority: Priority(1),
            stride: Stride::ONE,
            etpf: Span::from_ms(2),
            clock: Clock::default(),
            service,
        };
        let group = |kind| {
            let cost = Span::from_us(300);
            RecordedGroup { delay: Span::ZERO, kind, cost, predicted: Some(cost), make: Span::ZERO }
        };
        let groups = vec![group(GroupKind::Draw), group(GroupKind::Swap)];
        app(String::new(), params, groups, &config())
    }

    fn config() -> Config {
        let gpu = Gpu::TimeShared { slice: Span::from_ms(1), switch: SWITCH };
        let margins = Margins { dispatch_upper: Span::from_us(10), ..Margins::NONE };
        Config { gpu, margins, mpcg: 1, ..Config::default() }
    }

    #[test]
    fn each_gap_and_each_group_of_several_sources_pays_for_changes() {
        let config = config();
        let us = |(work, turns): (Span, Span)| (work.as_us(), turns.as_us());
        let plain = with(Service::default());
        // Two switches, and one more turnaround.
        assert_eq!(us(mean_frame(&plain, &[], &config)), (600, 210));
        let gaps = Gaps { count: 2, length: Span::from_us(50) };
        let gaps = with(Service { gaps, ..Service::default() });
        assert_eq!(us(mean_frame(&gaps, &[], &config)), (600, 3 * 210));
        // Each of four groups has two switches and two turnarounds, the frame a turnaround.
        assert_eq!(us(mean_frame(&plain, &[&plain], &config)), (1200, 4 * 220 + 10));
    }

    #[test]
    fn what_is_drawn_fits_into_what_is_reserved() {
        let gpu = Execution::TimeShared { switch: Span::from_us(160) };
        let options = Options { mixed: true, gpu, ..Options::default() };
        for index in 0..100 {
            let coverage = Coverage::of(&draw(&options, index));
            assert!(coverage.in_order_ppm <= 1_000_000, "case {index}: {coverage:?}");
            assert!(coverage.work_ppm < coverage.in_order_ppm, "case {index}: {coverage:?}");
        }
    }
}
