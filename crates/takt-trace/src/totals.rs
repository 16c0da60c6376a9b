//! Counters that only grow, for tools that look now and then and want to know what happened between.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::{Action, AppId, Span, Time};

use crate::blocking::Blocking;
use crate::lives::{Life, Lives};
use crate::record::{AppMeta, Observer, Record};
use crate::roster::Roster;

/// Most names that are told apart.
pub const NAMES_MAX: usize = 256;
/// The name under which those that found no room are counted together.
pub const OTHERS: &str = "(others)";
/// Upper bounds of buckets, in microseconds.
pub const BUCKETS_US: [u64; 12] =
    [10, 50, 100, 250, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000];

/// Counts, by the names of apps, whenever they were there.
///
/// Names are cheap to invent, so room is made for a new one: of the names that no slot has and that are
/// not [kept](Self::keep), the one that did least is counted with [`OTHERS`] from then on.
#[derive(Clone, Debug)]
pub struct Totals {
    lives: Lives,
    roster: Roster,
    blocking: Blocking,
    slots: BTreeMap<AppId, String>,
    apps: BTreeMap<String, AppTotals>,
    kept: BTreeSet<String>,
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

    fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.sum += other.sum;
    }
}

impl AppTotals {
    fn merge(&mut self, other: &Self) {
        self.frames += other.frames;
        self.met += other.met;
        self.missed += other.missed;
        self.groups += other.groups;
        self.gpu += other.gpu;
        self.blocking.merge(&other.blocking);
        self.response.merge(&other.response);
        self.error.merge(&other.error);
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
            kept: BTreeSet::new(),
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

    /// Names whose counters never make room for others, instead of those named before.
    pub fn keep(&mut self, names: impl IntoIterator<Item = String>) {
        self.kept = names.into_iter().collect();
    }

    fn app(&mut self, app: AppId) -> &mut AppTotals {
        let name = self.slots.get(&app).filter(|name| self.apps.contains_key(*name));
        self.apps.entry(name.map_or(OTHERS, String::as_str).to_owned()).or_default()
    }

    /// Makes room for another name, if need be; says whether there is room.
    fn make_room(&mut self) -> bool {
        if self.apps.keys().filter(|name| *name != OTHERS).count() < NAMES_MAX {
            return true;
        }
        let present: BTreeSet<&String> = self.slots.values().collect();
        let may_go = |name: &String| name != OTHERS && !present.contains(name) && !self.kept.contains(name);
        let theirs = self.apps.iter().filter(|(name, _)| may_go(name));
        let least = theirs.min_by_key(|(_, totals)| (totals.groups, totals.frames));
        let Some(name) = least.map(|(name, _)| name.clone()) else {
            return false;
        };
        let totals = self.apps.remove(&name).unwrap_or_default();
        self.apps.entry(OTHERS.to_owned()).or_default().merge(&totals);
        true
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
        if !self.apps.contains_key(&meta.name) && self.make_room() {
            // So that it is seen before it has done anything.
            self.apps.insert(meta.name.clone(), AppTotals::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Metrics, RunFacts};
    use crate::sample::{Pick, meta, run};
    use takt_core::{Period, Priority, Stats};

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

    fn meet(totals: &mut Totals, slot: u32, name: &str) {
        let meta = AppMeta { name: name.to_owned(), priority: Priority(1), fps_mhz: 0, jobs: None };
        totals.meet(Time::ZERO, AppId(slot), &meta);
    }

    fn missed(totals: &mut Totals, slot: u32, count: u64) {
        let missed =
            Action::Missed { app: AppId(slot), frame: 0, period: Period(0), deadline: Time::ZERO, count };
        totals.record(Time::ZERO, &Record::Out(missed));
    }

    fn count(totals: &Totals, name: &str) -> Option<u64> {
        totals.apps().find(|(app, _)| *app == name).map(|(_, totals)| totals.missed)
    }

    #[test]
    fn many_names_are_counted_together() {
        let mut totals = Totals::default();
        for number in 0..1_000u32 {
            meet(&mut totals, number % 7, &format!("app {number}"));
            missed(&mut totals, number % 7, 1);
        }
        assert_eq!(totals.apps().count(), NAMES_MAX + 1);
        assert_eq!(count(&totals, OTHERS), Some(1_000 - NAMES_MAX as u64));
        assert_eq!(totals.apps().map(|(_, totals)| totals.missed).sum::<u64>(), 1_000, "none is lost");
    }

    #[test]
    fn invented_names_hide_no_other_app() {
        let mut totals = Totals::default();
        totals.keep(["dial".to_owned()]);
        meet(&mut totals, 0, "dial");
        missed(&mut totals, 0, 3);
        meet(&mut totals, 1, "map");
        // The dial has left; the map is still there.
        for number in 0..1_000u32 {
            meet(&mut totals, if number % 2 == 0 { 0 } else { 2 }, &format!("invented {number}"));
        }
        missed(&mut totals, 1, 5);
        assert_eq!((count(&totals, "dial"), count(&totals, "map")), (Some(3), Some(5)));
        meet(&mut totals, 0, "camera");
        missed(&mut totals, 0, 7);
        assert_eq!(count(&totals, "camera"), Some(7), "an app that comes later has its own counters");
    }

    /// However many names are kept.
    #[test]
    fn names_without_room_are_counted_together() {
        let mut totals = Totals::default();
        totals.keep((0..NAMES_MAX).map(|number| format!("kept {number}")));
        (0..NAMES_MAX).for_each(|number| meet(&mut totals, 0, &format!("kept {number}")));
        meet(&mut totals, 0, "one more");
        missed(&mut totals, 0, 2);
        assert_eq!(count(&totals, "one more"), None);
        assert_eq!(count(&totals, OTHERS), Some(2));
    }
}
