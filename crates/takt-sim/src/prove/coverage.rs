//! How much load the offline test covers.

use takt_core::{Config, Estimate, Span};

use super::{Case, mixed};
use crate::model::{AppSpec, Work};

/// How much of the GPU the protected sets of some cases may use, in parts per million of one GPU, summed up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    /// Cases.
    pub cases: u64,
    /// Groups as long as is assumed at most, without what the GPU adds.
    pub work_ppm: u64,
    /// The same where changes of contexts cost nothing, with as many groups in a frame.
    pub in_order_ppm: u64,
}

impl Coverage {
    /// Of one case.
    pub fn of(case: &Case) -> Self {
        let config = &case.scenario.config;
        let mut sum = Self { cases: 1, ..Self::default() };
        for app in case.scenario.apps.iter().take(case.protected) {
            let (work, switches) = mean_frame(app, config);
            let ppm = |span: Span| {
                span.as_ns().saturating_mul(1_000_000) / mixed::period(&app.params, config).as_ns().max(1)
            };
            sum.work_ppm += ppm(work);
            sum.in_order_ppm += ppm(work + switches);
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
}

/// Work and switches of a frame of `app`, in the mean of those that it repeats.
fn mean_frame(app: &AppSpec, config: &Config) -> (Span, Span) {
    let Work::Recorded(groups) = &app.work else {
        return (Span::ZERO, Span::ZERO);
    };
    let frames = groups.iter().filter(|group| group.kind.ends_frame()).count().max(1) as u64;
    let (mut work, mut switches) = (Span::ZERO, Span::ZERO);
    for group in groups.iter() {
        let length = config.margins.conservative(Estimate::new(group.predicted.unwrap_or(group.cost)));
        work += length;
        switches += config.added(length);
    }
    (Span::from_ns(work.as_ns() / frames), Span::from_ns(switches.as_ns() / frames))
}
