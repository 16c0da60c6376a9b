//! Counters that only grow, for tools that look now and then and want to know what happened between.

use std::collections::BTreeMap;

use takt_core::{Action, AppId, Span, Time};

use crate::blocking::Blocking;
use crate::lives::{Life, Lives};
use crate::record::{AppMeta, Observer, Record};
use crate::roster::Roster;

/// Most names that are told apart; what comes later is counted together.
pub const NAMES_MAX: usize = 256;
/// The name of those that are counted together.
pub const OTHERS: &str = "(others)";
/// Upper bounds of buckets, in microseconds.
pub const BUCKETS_US: [u64; 12] =
    [10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

/// Counts, by the names of apps, whenever they were there.
#[derive(Clone, Debug)]
pub struct Totals {
    lives: Lives,
    roster: Roster,
    blocking: Blocking,
    slots: BTreeMap<AppId, String>,
    apps: BTreeMap<String, AppTotals>,
    gaps: u64,
}

/// What apps of one name did.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppTotals {
    /// Frames finished.
    pub frames: u64,
    /// Those in time.
    pub met: u64,
    /// Deadlines missed.
    pub missed: u64,
    /// Command groups executed.
    pub groups: u64,
    /// Time on the GPU.
    pub gpu: Span,
    /// How long groups were ready and waited for less important work.
    pub blocking: Buckets,
    /// From the release of a frame to its end.
    pub response: Buckets,
    /// By how much predictions were wrong, either way.
    pub error: Buckets,
}

/// How often which length occurred.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Buckets {
    /// Lengths up to each bound of [`BUCKETS_US`], not counting those of the bucket before.
    pub counts: [u64; BUCKETS_US.len()],
    /// All of them, those beyond the last bound included.
    pub count: u64,
    /// Their sum.
    pub sum: Span,
}

impl Buckets {
    fn add(&mut self, span: Span) {
        self.count += 1;
        self.sum += span;
        if let Some(bucket) = BUCKETS_US.iter().position(|us| span <= Span::from_us(*us)) {
            self.counts[bucket] += 1;
        }
    }
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            lives: Lives::new(),
            roster: Roster::default(),
            blocking: Blocking::new(Time::ZERO),
            slots: BTreeMap::new(),
            apps: BTreeMap::new(),
            gaps: 0,
        }
    }
}

impl Totals {
    /// By name.
    pub fn apps(&self) -> impl Iterator<Item = (&str, &AppTotals)> {
        self.apps.iter().map(|(name, totals)| (name.as_str(), totals))
    }

    /// Records that are missing, and with them what they would have counted.
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    fn app(&mut self, app: AppId) -> &mut AppTotals {
        let name = self.slots.get(&app).map_or(OTHERS, String::as_str);
        let known = self.apps.len() < NAMES_MAX || self.apps.contains_key(name);
        self.apps.entry(if known { name } else { OTHERS }.to_owned()).or_default()
    }

    fn ended(&mut self, life: &Life) {
        let totals = self.app(life.app);
        totals.groups += 1;
        let (Some(began), Some(ended)) = (life.last_begun(), life.finished) else {
            return;
        };
        let cost = life.ran + ended.since(began);
        totals.gpu += cost;
        let predicted = life.predicted.span();
        if predicted < Span::FOREVER {
            totals.error.add(predicted.saturating_sub(cost).max(cost.saturating_sub(predicted)));
        }
    }
}

impl Observer for Totals {
    fn record(&mut self, at: Time, record: &Record) {
        let ended = self.lives.see(at, record);
        self.roster.see(at, record);
        if let Some((app, blocked)) = self.blocking.see(at, record, &self.roster) {
            self.app(app).blocking.add(blocked);
        }
        if let Some(life) = ended {
            self.ended(&life);
        }
        match *record {
            Record::Out(Action::FrameDone(done)) => {
                let totals = self.app(done.app);
                totals.frames += 1;
                totals.met += u64::from(done.met);
                totals.response.add(done.finished.since(done.release));
            }
            Record::Out(Action::Missed { app, count, .. }) => self.app(app).missed += count,
            Record::Gap { records } => self.gaps += records,
            _ => {}
        }
    }

    fn meet(&mut self, _at: Time, app: AppId, meta: &AppMeta) {
        self.slots.insert(app, meta.name.clone());
        // So that it is seen before it has done anything.
        self.app(app);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, RunFacts};
    use crate::sample::{Pick, meta, run};
    use takt_core::{Priority, Stats};

    /// They count what the figures of a whole run say.
    #[test]
    fn totals_agree_with_metrics() {
        let (mut totals, mut metrics) = (Totals::default(), Metrics::new(meta("test"), Span::ZERO));
        for (app, meta) in (0..).map(AppId).zip(meta("test").apps) {
            totals.meet(Time::ZERO, app, &meta);
        }
        let records = run(Pick::Important, 60);
        let end = records.last().map_or(Time::ZERO, |(at, _)| *at);
        for (at, record) in &records {
            totals.record(*at, record);
            metrics.record(*at, record);
        }
        let facts = RunFacts { seed: 0, event_hash: 0, stats: Stats::default(), end };
        let summary = metrics.finish(facts);
        for app in &summary.apps {
            let (_, counted) = totals.apps().find(|(name, _)| *name == app.name).expect("counted");
            assert_eq!((counted.frames, counted.missed), (app.frames, app.missed), "{}", app.name);
            assert_eq!(counted.response.count, app.frames);
            let longest = counted.blocking.counts.iter().rposition(|count| *count > 0).unwrap_or(0);
            assert!(app.blocking_us.max <= BUCKETS_US[longest] as f64, "{}: {counted:?}", app.name);
            assert!(counted.gpu > Span::ZERO && counted.groups == counted.error.count);
        }
    }

    #[test]
    fn many_names_are_counted_together() {
        let mut totals = Totals::default();
        for number in 0..1_000u32 {
            let name = format!("app {number}");
            let meta = AppMeta { name, priority: Priority(1), fps_mhz: 0, jobs: None };
            totals.meet(Time::ZERO, AppId(number % 7), &meta);
        }
        assert_eq!(totals.apps().count(), NAMES_MAX + 1);
        assert!(totals.apps().any(|(name, _)| name == OTHERS));
    }
}
