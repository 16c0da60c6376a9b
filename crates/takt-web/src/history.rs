//! Percentiles of minutes and hours.
//!
//! Percentiles of short spans do not add up to those of long ones, so there are two rows of samples: short ones for the
//! last minutes, and long ones, which the daemon computes itself, for the last hours. Both are bounded in length and in
//! the names of apps that they tell apart.

use std::collections::{BTreeMap, VecDeque};

use crate::api::{AppHistory, HistoryAnswer, Mark, Now};

/// Length of a short sample, in seconds.
pub const FINE_S: u32 = 2;
/// Length of a long sample, which is all that the daemon remembers.
pub const COARSE_S: u32 = 30;
/// Short samples: 15 minutes.
const FINE_MAX: usize = 450;
/// Long samples: 12 hours.
const COARSE_MAX: usize = 1440;
/// Most apps of a sample; others are left out.
const APPS_MAX: usize = 256;
/// Most marks.
const MARKS_MAX: usize = 200;
/// Longest text of a mark, in characters.
const MARK_CHARS_MAX: usize = 200;

/// All samples.
#[derive(Debug, Default)]
pub struct History {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
    marks: VecDeque<Mark>,
}

/// Figures of one span of time.
#[derive(Clone, Debug)]
struct Sample {
    at_ms: u64,
    gpu: f32,
    apps: Vec<(String, Figures)>,
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    fps: f32,
    met: Option<f32>,
    p50_us: f32,
    p99_us: f32,
    gpu: f32,
}

/// Which samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// Short ones.
    Fine,
    /// Long ones.
    Coarse,
}

impl History {
    /// Adds a sample.
    pub fn add(&mut self, row: Row, now: &Now) {
        let apps = now.apps.iter().take(APPS_MAX).map(|app| {
            let figures = Figures {
                fps: narrow(app.fps),
                met: app.met.map(narrow),
                p50_us: narrow(app.response_us.p50),
                p99_us: narrow(app.response_us.p99),
                gpu: narrow(app.gpu),
            };
            (app.name.clone(), figures)
        });
        let sample = Sample { at_ms: now.at_ms, gpu: narrow(now.gpu), apps: apps.collect() };
        let (samples, most) = match row {
            Row::Fine => (&mut self.fine, FINE_MAX),
            Row::Coarse => (&mut self.coarse, COARSE_MAX),
        };
        if samples.len() == most {
            samples.pop_front();
        }
        samples.push_back(sample);
    }

    /// Something changed.
    pub fn mark(&mut self, at_ms: u64, text: &str) {
        if self.marks.len() == MARKS_MAX {
            self.marks.pop_front();
        }
        self.marks.push_back(Mark { at_ms, text: text.chars().take(MARK_CHARS_MAX).collect() });
    }

    /// The last `span_s` seconds: short samples if they reach back so far.
    pub fn answer(&self, now_ms: u64, span_s: u64) -> HistoryAnswer {
        let fine = span_s <= u64::from(FINE_S) * FINE_MAX as u64;
        let (samples, sample_s) = if fine { (&self.fine, FINE_S) } else { (&self.coarse, COARSE_S) };
        let from = now_ms.saturating_sub(span_s.saturating_mul(1000));
        let kept: Vec<&Sample> = samples.iter().filter(|sample| sample.at_ms >= from).collect();
        let mut apps: BTreeMap<&str, AppHistory> = BTreeMap::new();
        for (at, sample) in kept.iter().enumerate() {
            for (name, figures) in &sample.apps {
                if apps.len() == APPS_MAX && !apps.contains_key(name.as_str()) {
                    continue;
                }
                let new = || AppHistory::empty(name, kept.len());
                apps.entry(name.as_str()).or_insert_with(new).put(at, *figures);
            }
        }
        HistoryAnswer {
            sample_s,
            at_ms: kept.iter().map(|sample| sample.at_ms).collect(),
            gpu: kept.iter().map(|sample| f64::from(sample.gpu)).collect(),
            apps: apps.into_values().collect(),
            marks: self.marks.iter().filter(|mark| mark.at_ms >= from).cloned().collect(),
        }
    }
}

impl AppHistory {
    fn empty(name: &str, samples: usize) -> Self {
        let none = || vec![None; samples];
        Self { name: name.to_owned(), fps: none(), met: none(), p50_us: none(), p99_us: none(), gpu: none() }
    }

    /// Of two apps of one name, the more important one counts, which comes first.
    fn put(&mut self, at: usize, figures: Figures) {
        if self.fps[at].is_some() {
            return;
        }
        self.fps[at] = Some(f64::from(figures.fps));
        self.met[at] = figures.met.map(f64::from);
        self.p50_us[at] = Some(f64::from(figures.p50_us));
        self.p99_us[at] = Some(f64::from(figures.p99_us));
        self.gpu[at] = Some(f64::from(figures.gpu));
    }
}

/// Seven digits are more than any figure has.
#[expect(clippy::cast_possible_truncation, reason = "figures are small, and rounding is wanted")]
fn narrow(figure: f64) -> f32 {
    figure as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::AppNow;

    fn now(at_ms: u64, names: &[&str]) -> Now {
        let app =
            |name: &&str| AppNow { name: (*name).to_owned(), fps: 60.0, met: Some(0.5), ..AppNow::default() };
        Now { at_ms, gpu: 0.25, apps: names.iter().map(app).collect(), ..Now::default() }
    }

    #[test]
    fn columns_are_as_long_as_the_times_and_apps_come_and_go() {
        let mut history = History::default();
        history.add(Row::Fine, &now(1_000, &["dial"]));
        history.add(Row::Fine, &now(3_000, &["dial", "map", "map"]));
        history.add(Row::Fine, &now(5_000, &["map"]));
        history.mark(2_000, "dial: priority 80 to 9");
        let answer = history.answer(5_000, 60);
        assert_eq!(answer.at_ms, [1_000, 3_000, 5_000]);
        let fps: Vec<_> = answer.apps.iter().map(|app| (app.name.as_str(), app.fps.clone())).collect();
        let there = Some(60.0);
        assert_eq!(fps, [("dial", vec![there, there, None]), ("map", vec![None, there, there])]);
        assert_eq!(answer.marks.len(), 1);
        let late = history.answer(5_000, 2);
        assert_eq!((late.at_ms, late.marks.len()), (vec![3_000, 5_000], 0));
    }

    #[test]
    fn it_never_grows_beyond_its_bounds() {
        let mut history = History::default();
        let names: Vec<String> = (0..APPS_MAX + 9).map(|number| format!("app{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        for at in 0..COARSE_MAX as u64 + 10 {
            history.add(Row::Fine, &now(at, &[]));
            history.add(Row::Coarse, &now(at, &names));
            history.mark(at, &"x".repeat(10_000));
        }
        assert_eq!((history.fine.len(), history.coarse.len()), (FINE_MAX, COARSE_MAX));
        assert_eq!((history.marks.len(), history.marks[0].text.len()), (MARKS_MAX, MARK_CHARS_MAX));
        assert_eq!(history.answer(0, u64::MAX).apps.len(), APPS_MAX);
    }
}
