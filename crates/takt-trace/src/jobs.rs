//! Jobs that an app's own clock releases: when each should be done, and when it is.

use hdrhistogram::Histogram;
use takt_core::{GroupKind, Span, Time};

use crate::lives::Life;
use crate::metrics::micros;
use crate::record::JobsMeta;
use crate::summary::{JobsSummary, PD_FFT_BIN, PD_FFT_BINS, Quantiles};

/// The jobs of one app.
#[derive(Debug)]
pub(crate) struct Jobs {
    meta: JobsMeta,
    /// Only jobs released from then on count.
    from: Time,
    /// Jobs end in order: all before this one have ended.
    next: u64,
    /// When the app left, if it did.
    left: Option<Time>,
    count: u64,
    late: u64,
    response: Histogram<u64>,
    histogram: Vec<u64>,
}

impl Jobs {
    pub(crate) fn new(meta: JobsMeta, from: Time) -> Self {
        Self {
            meta,
            from,
            next: 0,
            left: None,
            count: 0,
            late: 0,
            response: Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits are allowed")),
            histogram: vec![0; PD_FFT_BINS],
        }
    }

    fn release(&self, job: u64) -> Time {
        self.meta.first + self.meta.period.times(job)
    }

    /// How many jobs are released before `at`.
    fn released_before(&self, at: Time) -> u64 {
        at.since(self.meta.first).as_ns().div_ceil(self.meta.period.as_ns().max(1))
    }

    /// A group of the app ended; the last one of a job ends the job.
    pub(crate) fn ended(&mut self, life: &Life) {
        let (GroupKind::Swap, Some(finished)) = (life.kind, life.finished) else {
            return;
        };
        self.done(life.frame, finished);
    }

    /// The job with that number is over.
    pub(crate) fn done(&mut self, job: u64, finished: Time) {
        self.next = job + 1;
        let release = self.release(job);
        if release < self.from {
            return;
        }
        let response = finished.since(release);
        self.count += 1;
        self.late += u64::from(response > self.meta.deadline);
        // The histogram grows as needed; only a value beyond u64 could fail.
        self.response.record(response.as_ns()).unwrap_or_default();
        self.histogram[bin(response, self.meta.deadline)] += 1;
    }

    pub(crate) fn left(&mut self, at: Time) {
        self.left.get_or_insert(at);
    }

    /// The figures of a run that ended at `end`.
    pub(crate) fn finish(self, end: Time) -> JobsSummary {
        // What is not done yet counts if its deadline has passed.
        let end = self.left.unwrap_or(end).min(end);
        let due = self.released_before(end - self.meta.deadline + Span::from_ns(1));
        let due = due.min(self.released_before(self.meta.until));
        let overdue = due.saturating_sub(self.next.max(self.released_before(self.from)));
        let quantile = |q: f64| self.response.value_at_quantile(q) as f64 / 1000.0;
        JobsSummary {
            period_us: micros(self.meta.period),
            deadline_us: micros(self.meta.deadline),
            count: self.count + overdue,
            late: self.late + overdue,
            response_us: Quantiles {
                p50: quantile(0.5),
                p99: quantile(0.99),
                max: self.response.max() as f64 / 1000.0,
            },
            histogram: self.histogram,
        }
    }
}

/// The bin of a response within a histogram of shares of the time it may take.
pub(crate) fn bin(response: Span, whole: Span) -> usize {
    let share = response.as_ns() as f64 / whole.as_ns().max(1) as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; not negative")]
    let bin = (share / PD_FFT_BIN) as usize;
    bin.min(PD_FFT_BINS - 1)
}

#[cfg(test)]
mod tests {
    use takt_core::{AppId, Estimate, GroupId};

    use super::*;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn job(frame: u64, kind: GroupKind, finished_us: u64) -> Life {
        Life {
            finished: Some(us(finished_us)),
            ..Life::new(AppId(0), GroupId(0), kind, frame, Estimate::default(), Time::ZERO)
        }
    }

    fn meta(until: Time) -> JobsMeta {
        JobsMeta { first: us(1000), period: Span::from_us(100), deadline: Span::from_us(80), until }
    }

    #[test]
    fn responses_count_from_the_release() {
        let mut jobs = Jobs::new(meta(Time::NEVER), us(1100));
        jobs.ended(&job(0, GroupKind::Swap, 1090));
        jobs.ended(&job(1, GroupKind::Draw, 1190));
        jobs.ended(&job(1, GroupKind::Swap, 1180));
        jobs.ended(&job(2, GroupKind::Swap, 1281));
        let summary = jobs.finish(us(1300));
        assert_eq!((summary.count, summary.late), (2, 1), "the first one lies in the warm-up");
        assert!((summary.response_us.max - 81.0).abs() < 0.1);
        assert_eq!((summary.histogram[20], summary.histogram.iter().sum::<u64>()), (2, 2));
    }

    #[test]
    fn unfinished_jobs_are_late_when_their_deadline_has_passed() {
        let late = |until, left: Option<Time>| {
            let mut jobs = Jobs::new(meta(until), Time::ZERO);
            jobs.ended(&job(0, GroupKind::Swap, 1010));
            left.into_iter().for_each(|at| jobs.left(at));
            let summary = jobs.finish(us(1380));
            (summary.count, summary.late)
        };
        assert_eq!(late(Time::NEVER, None), (4, 3));
        assert_eq!(late(us(1200), None), (2, 1));
        assert_eq!(late(Time::NEVER, Some(us(1300))), (3, 2));
    }
}
