//! Figures about the frames of a run, as they are printed.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Times of one frame, in ns of the monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrameTimes {
    /// Number of the frame, from 0.
    pub(crate) frame: u64,
    /// When it should begin.
    pub(crate) release: u64,
    /// When the app began to draw it.
    pub(crate) begin: u64,
    /// When the app had handed it over.
    pub(crate) swap: u64,
    /// When the GPU had finished it.
    pub(crate) end: u64,
    /// When it was due; nothing without a frame rate.
    pub(crate) deadline: Option<u64>,
}

/// Collects times in bounded memory, however long the run.
pub(crate) struct Stats {
    response: Histogram<u64>,
    interval: Histogram<u64>,
    /// Frames that had a deadline.
    due: u64,
    late: u64,
    skipped: u64,
    first_release: Option<u64>,
    last_end: u64,
}

/// An hour; longer times are counted as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Default for Stats {
    fn default() -> Self {
        let histogram = || Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("these bounds are valid");
        Self {
            response: histogram(),
            interval: histogram(),
            due: 0,
            late: 0,
            skipped: 0,
            first_release: None,
            last_end: 0,
        }
    }
}

/// Percentiles in microseconds, exact to 0.1 %.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct Percentiles {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
}

/// The figures of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Summary {
    /// Frames that the GPU finished.
    pub(crate) frames: u64,
    /// From the first release to the last end.
    pub(crate) seconds: f64,
    /// Frames per second of that time.
    pub(crate) fps: f64,
    /// Frames that ended after their deadline.
    pub(crate) late: u64,
    /// Periods without a frame.
    pub(crate) skipped: u64,
    /// Share of periods without a frame in time, in per cent; nothing without a frame rate.
    pub(crate) missed_percent: Option<f64>,
    /// From release to end.
    pub(crate) response_us: Percentiles,
    /// From end to end.
    pub(crate) frame_time_us: Percentiles,
}

impl Stats {
    /// Adds a frame that the GPU has finished.
    pub(crate) fn add(&mut self, times: &FrameTimes) {
        self.response.saturating_record(times.end.saturating_sub(times.release).max(1));
        if self.first_release.is_none() {
            self.first_release = Some(times.release);
        } else {
            self.interval.saturating_record(times.end.saturating_sub(self.last_end).max(1));
        }
        self.last_end = times.end;
        self.due += u64::from(times.deadline.is_some());
        self.late += u64::from(times.deadline.is_some_and(|deadline| times.end > deadline));
    }

    /// Notes periods that passed without a frame.
    pub(crate) const fn skip(&mut self, periods: u64) {
        self.skipped += periods;
    }

    /// The figures so far.
    pub(crate) fn summary(&self) -> Summary {
        let frames = self.response.len();
        let start = self.first_release.unwrap_or(self.last_end);
        let seconds = self.last_end.saturating_sub(start) as f64 / 1e9;
        let periods = self.due + self.skipped;
        let missed = (self.late + self.skipped) as f64;
        Summary {
            frames,
            seconds,
            fps: if seconds > 0.0 { frames as f64 / seconds } else { 0.0 },
            late: self.late,
            skipped: self.skipped,
            missed_percent: (periods > 0).then(|| 100.0 * missed / periods as f64),
            response_us: percentiles(&self.response),
            frame_time_us: percentiles(&self.interval),
        }
    }
}

fn percentiles(histogram: &Histogram<u64>) -> Percentiles {
    let micros = |ns: u64| if histogram.is_empty() { 0.0 } else { ns as f64 / 1e3 };
    Percentiles {
        p50: micros(histogram.value_at_quantile(0.5)),
        p99: micros(histogram.value_at_quantile(0.99)),
        max: micros(histogram.max()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(frame: u64, release: u64, end: u64, deadline: Option<u64>) -> FrameTimes {
        FrameTimes { frame, release, begin: release, swap: end, end, deadline }
    }

    #[test]
    fn counts_late_and_skipped_periods_once() {
        let mut stats = Stats::default();
        stats.add(&frame(0, 0, 4_000_000, Some(10_000_000)));
        stats.add(&frame(1, 10_000_000, 35_000_000, Some(20_000_000)));
        stats.skip(1);
        stats.add(&frame(2, 30_000_000, 40_000_000, Some(40_000_000)));
        let summary = stats.summary();
        assert_eq!((summary.frames, summary.late, summary.skipped), (3, 1, 1));
        assert_eq!(summary.missed_percent, Some(50.0));
        assert_eq!(summary.seconds, 0.04);
        assert!((summary.response_us.max / 25_000.0 - 1.0).abs() < 0.001);
        assert!((summary.frame_time_us.max / 31_000.0 - 1.0).abs() < 0.001);
    }

    #[test]
    fn nothing_is_all_zero() {
        let summary = Stats::default().summary();
        assert_eq!((summary.frames, summary.fps, summary.missed_percent), (0, 0.0, None));
        assert_eq!(summary.response_us.max, 0.0);
    }
}
