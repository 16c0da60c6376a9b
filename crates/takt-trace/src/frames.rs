//! Frames of a program as it saw them itself, judged from outside.
//!
//! Programs write when each frame was released, begun, finished and due, with a scheduler
//! underneath or without one; so what they write can be compared where a scheduler's own records
//! cannot. Times are nanoseconds of one clock.

use schemars::JsonSchema;
use serde::Serialize;

use crate::summary::Quantiles;

/// A frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Its number.
    pub number: u64,
    /// When it should have begun.
    pub release: u64,
    /// When it began.
    pub begin: u64,
    /// When the GPU had finished it.
    pub end: u64,
}

impl Frame {
    /// From its beginning to its end.
    pub fn response(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// The columns of a frame log.
pub const HEADER: &str = "frame,release_ns,begin_ns,swap_ns,end_ns,deadline_ns";

/// Reads a frame log. The last line may be cut off: its writer may have been stopped.
pub fn parse(text: &str) -> Result<Vec<Frame>, String> {
    let mut lines = text.lines();
    if lines.next().is_none_or(|line| line.trim_end() != HEADER) {
        return Err(format!("line 1: a frame log begins with {HEADER}"));
    }
    let whole = text.ends_with('\n');
    let mut frames = Vec::new();
    let mut lines = lines.enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        match frame(line) {
            Some(frame) => frames.push(frame),
            None if !whole && lines.peek().is_none() => {}
            None => return Err(format!("line {}: '{line}' is no frame", index + 2)),
        }
    }
    Ok(frames)
}

fn frame(line: &str) -> Option<Frame> {
    let fields: Vec<&str> = line.split(',').collect();
    let [number, release, begin, _, end, deadline] = fields[..] else { return None };
    let ns = |text: &str| text.parse::<u64>().ok();
    // When it was due by the program's own clock is nothing to judge it by, but must be a time.
    if !deadline.is_empty() {
        ns(deadline)?;
    }
    Some(Frame { number: ns(number)?, release: ns(release)?, begin: ns(begin)?, end: ns(end)? })
}

/// The judged time: from when, until when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From then on.
    pub from: u64,
    /// Until then.
    pub until: u64,
}

impl Window {
    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        self.until.saturating_sub(self.from) as f64 / 1e9
    }

    /// Whether something ends in the window.
    fn has(&self, at: u64) -> bool {
        self.from < at && at <= self.until
    }
}

/// What became of a program's frames in a window.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct FrameFigures {
    /// Frames per second that were finished.
    pub fps: f64,
    /// Frames that were finished.
    pub frames: u64,
    /// Frames that were due, one per period.
    pub due: u64,
    /// Frames that were finished when they were due.
    pub met: u64,
    /// Share of the frames that were due (0..1); null without a frame rate.
    pub met_share: Option<f64>,
    /// From beginning to end.
    pub response_us: Quantiles,
}

/// A deadline that passed without its frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MissedAt {
    /// When it was.
    pub deadline: u64,
    /// Number of the frame that was late, or that was still in the way.
    pub frame: u64,
}

/// Judges the frames of a program that was to have `fps` frames per second; 0 stands for as many
/// as it gets.
///
/// A frame counts from when the program began to draw it, and is late if it takes longer than a
/// period. Periods in which no frame began are missed as well, so nothing is gained by beginning
/// late. Whether the program's own clock lets frames begin or a swap that waits makes no difference;
/// judged by a clock of another phase, frames would be late that are early by their own.
pub fn judge(frames: &[Frame], fps: f64, window: Window) -> (FrameFigures, Vec<MissedAt>) {
    let done = frames.iter().filter(|frame| window.has(frame.end));
    let mut responses: Vec<u64> = done.map(Frame::response).collect();
    responses.sort_unstable();
    let inside = window.from..window.until;
    let begun: Vec<&Frame> = frames.iter().filter(|frame| inside.contains(&frame.begin)).collect();
    let (mut met, mut missed) = (0, Vec::new());
    if fps > 0.0 && !frames.is_empty() {
        let period = 1e9 / fps;
        let late = begun.iter().filter(|frame| frame.response() as f64 > period);
        missed.extend(late.map(|late| missed_at(late.begin as f64 + period, late.number)));
        met = (begun.len() - missed.len()) as u64;
        missed.extend(skipped(&begun, window, period));
        missed.sort_unstable_by_key(|missed| missed.deadline);
    }
    let due = met + missed.len() as u64;
    let figures = FrameFigures {
        fps: responses.len() as f64 / window.seconds().max(1e-9),
        frames: responses.len() as u64,
        due,
        met,
        met_share: (due > 0).then(|| met as f64 / due as f64),
        response_us: Quantiles {
            p50: quantile_us(&responses, 50),
            p99: quantile_us(&responses, 99),
            max: quantile_us(&responses, 100),
        },
    };
    (figures, missed)
}

/// How many periods frames may fall behind their rate before one counts as left out. A frame that
/// was late on a display of twice the rate moves those after it by half a period.
const BEHIND_MAX: f64 = 0.75;

/// The periods of the window in which no frame began, each by its end.
fn skipped(begun: &[&Frame], window: Window, period: f64) -> Vec<MissedAt> {
    let mut skipped = Vec::new();
    // The first and the last frame may lie anywhere in their periods.
    let mut behind = BEHIND_MAX - 1.0;
    let (mut expected, mut in_the_way) = (window.from as f64, 0);
    let until = (window.until as f64 + (2.0 * BEHIND_MAX - 1.0) * period, u64::MAX);
    let begins = begun.iter().map(|frame| (frame.begin as f64, frame.number));
    for (begin, number) in begins.chain([until]) {
        behind += (begin - expected) / period;
        while behind > BEHIND_MAX {
            skipped.push(missed_at(begin - (behind - BEHIND_MAX).floor() * period, in_the_way));
            behind -= 1.0;
        }
        behind = behind.max(0.0);
        (expected, in_the_way) = (begin + period, number);
    }
    skipped
}

fn missed_at(deadline: f64, frame: u64) -> MissedAt {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time of the run")]
    let deadline = deadline as u64;
    MissedAt { deadline, frame }
}

/// The smallest value that so many per cent of the sorted ones do not exceed.
fn quantile_us(sorted: &[u64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map_or(0.0, |ns| *ns as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(number: u64, period: u64, took_ms: u64) -> Frame {
        let release = 1_000 * MS + period * 10 * MS;
        Frame { number, release, begin: release, end: release + took_ms * MS }
    }

    #[test]
    fn late_and_skipped_periods_are_missed_once() {
        // Frame 1 takes two and a half periods; the app goes on with period 4.
        let frames = [at(0, 0, 4), at(1, 1, 25), at(2, 4, 10), at(3, 5, 3)];
        let window = Window { from: 999 * MS, until: 1_059 * MS };
        let (figures, missed) = judge(&frames, 100.0, window);
        assert_eq!((figures.frames, figures.due, figures.met), (4, 6, 3));
        assert_eq!(figures.met_share, Some(0.5));
        let late: Vec<_> = missed.iter().map(|miss| ((miss.deadline / MS) - 1_000, miss.frame)).collect();
        assert_eq!(late, [(20, 1), (30, 1), (40, 1)]);
        assert_eq!(figures.response_us.max, 25_000.0);
        assert!((figures.fps - 4.0 / 0.06).abs() < 1e-6);
    }

    #[test]
    fn a_late_frame_may_move_those_after_it() {
        // By half a period, as on a display of twice the rate; twice that is a frame left out.
        let moved = |number: u64, period: u64, by_ms: u64| {
            let frame = at(number, period, 4);
            Frame { begin: frame.begin + by_ms * MS, end: frame.end + by_ms * MS, ..frame }
        };
        let window = Window { from: 999 * MS, until: 1_099 * MS };
        let mut frames: Vec<Frame> = (0..10).map(|n| moved(n, n, if n < 3 { 0 } else { 5 })).collect();
        frames[2].end = frames[2].begin + 12 * MS;
        let (figures, missed) = judge(&frames, 100.0, window);
        assert_eq!((figures.due, figures.met, missed.len()), (10, 9, 1));
        let frames: Vec<Frame> = (0..9).map(|n| moved(n, n, n / 3 * 5)).collect();
        let (figures, missed) = judge(&frames, 100.0, window);
        assert_eq!((figures.due, figures.met, missed.len()), (10, 9, 1));
    }

    #[test]
    fn a_program_that_stopped_misses_the_rest() {
        let window = Window { from: 999 * MS, until: 1_099 * MS };
        let (figures, missed) = judge(&[at(0, 0, 1), at(1, 1, 1)], 100.0, window);
        assert_eq!((figures.due, figures.met, missed.len()), (10, 2, 8));
        let (late_starter, _) = judge(&[at(0, 8, 1), at(1, 9, 1)], 100.0, window);
        assert_eq!((late_starter.due, late_starter.met), (10, 2));
        let (elsewhere, _) = judge(&[at(0, 50, 1)], 100.0, window);
        assert_eq!((elsewhere.due, elsewhere.met), (10, 0));
    }

    #[test]
    fn without_a_rate_nothing_is_due() {
        let (figures, missed) = judge(&[at(0, 0, 30)], 0.0, Window { from: 1_000 * MS, until: 2_000 * MS });
        assert_eq!((figures.frames, figures.met_share, missed.len()), (1, None, 0));
        assert_eq!(judge(&[], 60.0, Window { from: 0, until: 9 }).0.due, 0);
    }

    #[test]
    fn logs_are_read_and_mistakes_named() {
        let text = format!("{HEADER}\n0,5,6,7,8,\n1,10,11,12,13,20\n2,1");
        let frames = parse(&text).unwrap();
        assert_eq!(frames.len(), 2, "the last line was cut off");
        assert_eq!(frames[0], Frame { number: 0, release: 5, begin: 6, end: 8 });
        assert_eq!(frames[1].end, 13);
        assert!(parse("frame\n").unwrap_err().starts_with("line 1: "));
        let bad = format!("{HEADER}\n0,5,6,7,8,x\n1,10,11,12,13,20\n");
        assert_eq!(parse(&bad), Err("line 2: '0,5,6,7,8,x' is no frame".to_owned()));
    }
}
