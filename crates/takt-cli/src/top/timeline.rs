//! What the GPU did a moment ago.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::Serialize;
use takt_core::{Action, AppId, Span, Time};
use takt_trace::{AppMeta, GpuRecord, Observer, Record, why_held};

/// For how long it is remembered.
const KEPT: Span = Span::from_ms(3_000);

/// Collects what the timeline shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    now: Time,
    names: BTreeMap<AppId, String>,
    runs: VecDeque<(AppId, Time, Time)>,
    misses: VecDeque<(AppId, Time)>,
    vsyncs: VecDeque<Time>,
    holds: BTreeMap<AppId, String>,
    lost: u64,
}

/// The timeline of the last milliseconds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Timeline {
    /// Its length.
    pub(crate) span_ms: f64,
    /// When refresh periods began, in milliseconds since its beginning.
    pub(crate) vsyncs_ms: Vec<f64>,
    /// One for each app, by slot.
    pub(crate) lanes: BTreeMap<u32, Lane>,
    /// Records that were lost on the way here, since this tool began to watch.
    pub(crate) lost: u64,
}

/// What one app did.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Lane {
    /// Begin and end of each run on the GPU, in milliseconds since the beginning.
    pub(crate) runs_ms: Vec<(f64, f64)>,
    /// Deadlines that were missed.
    pub(crate) misses_ms: Vec<f64>,
    /// Why its first waiting group was held back the last time, if it was.
    pub(crate) held: Option<String>,
}

impl Recent {
    /// What happened in the last `span`.
    pub(crate) fn timeline(&self, span: Span) -> Timeline {
        let from = self.now - span;
        let ms = |at: Time| at.max(from).since(from).as_ns() as f64 / 1e6;
        let mut lanes: BTreeMap<u32, Lane> = BTreeMap::new();
        for (app, began, ended) in self.runs.iter().filter(|(_, _, ended)| *ended > from) {
            lanes.entry(app.0).or_default().runs_ms.push((ms(*began), ms(*ended)));
        }
        for (app, at) in self.misses.iter().filter(|(_, at)| *at > from) {
            lanes.entry(app.0).or_default().misses_ms.push(ms(*at));
        }
        for (app, why) in &self.holds {
            lanes.entry(app.0).or_default().held = Some(why.clone());
        }
        Timeline {
            span_ms: span.as_ns() as f64 / 1e6,
            vsyncs_ms: self.vsyncs.iter().filter(|at| **at > from).map(|at| ms(*at)).collect(),
            lanes,
            lost: self.lost,
        }
    }

    fn forget(&mut self) {
        let old = self.now - KEPT;
        while self.runs.pop_front_if(|(_, _, ended)| *ended < old).is_some() {}
        while self.misses.pop_front_if(|(_, at)| *at < old).is_some() {}
        while self.vsyncs.pop_front_if(|at| *at < old).is_some() {}
    }
}

impl Observer for Recent {
    fn record(&mut self, at: Time, record: &Record) {
        self.now = self.now.max(at);
        match *record {
            Record::Gpu(GpuRecord::Finished { app, started, .. }) => self.runs.push_back((app, started, at)),
            Record::Out(Action::Missed { app, deadline, .. }) => self.misses.push_back((app, deadline)),
            Record::Out(Action::Hold { app, reason }) => {
                let name = |app| self.names.get(&app).cloned().unwrap_or_default();
                self.holds.insert(app, why_held(reason, name));
            }
            Record::Vsync(_) => self.vsyncs.push_back(at),
            Record::Out(Action::Left { app, .. }) => {
                self.holds.remove(&app);
            }
            Record::Gap { records } => self.lost += records,
            _ => {}
        }
        self.forget();
    }

    fn meet(&mut self, _at: Time, app: AppId, meta: &AppMeta) {
        self.names.insert(app, meta.name.clone());
        self.runs.retain(|(who, _, _)| *who != app);
        self.misses.retain(|(who, _)| *who != app);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_core::{GroupId, Hold, Period, Priority};

    #[test]
    fn what_is_over_is_forgotten_and_slots_change_hands() {
        let (app, group) = (AppId(1), GroupId(7));
        let mut recent = Recent::default();
        let meta = |name: &str| AppMeta { name: name.into(), priority: Priority(1), fps_mhz: 0, jobs: None };
        let ms = Time::from_ms;
        recent.meet(ms(0), app, &meta("dial"));
        let finished = |started| Record::Gpu(GpuRecord::Finished { app, group, started });
        recent.record(ms(10), &finished(ms(8)));
        recent.record(ms(90), &Record::Vsync(Period(5)));
        recent.record(ms(95), &Record::Out(Action::Hold { app, reason: Hold::Behind { app } }));
        recent.record(ms(108), &finished(ms(101)));
        let timeline = recent.timeline(Span::from_ms(20));
        assert_eq!(timeline.vsyncs_ms, [2.0]);
        let lane = &timeline.lanes[&1];
        assert_eq!(lane.runs_ms, [(13.0, 20.0)]);
        assert_eq!(lane.held.as_deref(), Some("behind dial"));
        assert_eq!(recent.timeline(Span::from_ms(100)).lanes[&1].runs_ms, [(0.0, 2.0), (93.0, 100.0)]);
        recent.meet(ms(110), app, &meta("menu"));
        assert!(recent.timeline(Span::from_ms(100)).lanes[&1].runs_ms.is_empty());
        recent.record(ms(5_000), &Record::Turn);
        assert!(recent.vsyncs.is_empty());
    }
}
