//! How much load the offline test covers.

use takt_core::{Charge, Config, Estimate, Span};

use super::{Case, mixed};
use crate::model::{AppSpec, RecordedGroup, Work};

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
        for app in case.scenario.apps.iter().take(case.protected) {
            let (work, turns) = mean_frame(app, config);
            let ppm = |span: Span| {
                span.as_ns().saturating_mul(1_000_000) / mixed::period(&app.params, config).as_ns().max(1)
            };
            sum.work_ppm += ppm(work);
            sum.in_order_ppm += ppm(work + turns);
            sum.one_change_ppm += ppm(work + config.gpu.switch());
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

/// Work of a frame of `app`, and what turns add to it, in the mean of those that it repeats.
fn mean_frame(app: &AppSpec, config: &Config) -> (Span, Span) {
    let Work::Recorded(groups) = &app.work else {
        return (Span::ZERO, Span::ZERO);
    };
    let frames = groups.iter().filter(|group| group.kind.ends_frame()).count().max(1) as u64;
    let length = |group: &RecordedGroup| {
        config.margins.conservative(Estimate::new(group.predicted.unwrap_or(group.cost)))
    };
    // An end of a frame that costs nothing is no group.
    let is_group = |group: &&RecordedGroup| {
        !config.gpu.is_time_shared() || group.cost > Span::ZERO || group.predicted != Some(Span::ZERO)
    };
    let work: Span = groups.iter().filter(is_group).map(length).sum();
    let delays: Span = groups.iter().filter(is_group).map(|group| config.delay(length(group))).sum();
    let enters = config.gpu.switches(Span::ZERO, Charge::Enters);
    let turns = match mixed::server(&app.params) {
        Some(_) => {
            let each = enters + config.per_arrival().saturating_sub(config.margins.turnaround());
            Span::from_ns(each.times(groups.iter().filter(is_group).count() as u64).as_ns() / frames)
        }
        None => enters + config.per_frame().saturating_sub(config.margins.per_frame(config.mpcg)),
    };
    (Span::from_ns(work.as_ns() / frames), turns + Span::from_ns(delays.as_ns() / frames))
}
