//! The records of the last seconds, and what they mean.
//!
//! Figures, causes and traces are made from them on demand, by the same code that judges simulations.

use std::collections::VecDeque;

use takt_core::{Action, AppId, AppParams, Event, Refresh, Span, Stats, Time};
use takt_trace::summary::Miss;
use takt_trace::{AppMeta, Deduced, Meta, Metrics, Observer, Record, RunFacts, Summary};

use crate::control::members::{Member, Members};

/// For how long records are kept.
pub const KEPT: Span = Span::from_ms(30_000);
/// Most records that are kept.
const RECORDS_MAX: usize = 500_000;

/// The records of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct RecentRecords {
    records: VecDeque<(Time, Record)>,
}

impl RecentRecords {
    /// Adds a record and drops those that are too old.
    pub(crate) fn add(&mut self, at: Time, record: Record) {
        let too_old = at - KEPT;
        while self.records.front().is_some_and(|(then, _)| *then < too_old)
            || self.records.len() >= RECORDS_MAX
        {
            self.records.pop_front();
        }
        self.records.push_back((at, record));
    }

    /// Figures and causes of the last `window` before `now`, of the apps that are scheduled.
    pub(crate) fn summary(&self, now: Time, window: Span, scene: &Scene<'_>) -> Summary {
        self.judge(now, window, scene, |metrics| metrics)
    }

    /// The deadlines that an app missed in the last `window` before `now`, and why.
    pub(crate) fn misses(&self, now: Time, window: Span, scene: &Scene<'_>, app: AppId) -> Vec<Miss> {
        self.judge(now, window, scene, |metrics| metrics.listing_all_of(app)).misses
    }

    fn judge(
        &self,
        now: Time,
        window: Span,
        scene: &Scene<'_>,
        listing: impl FnOnce(Metrics) -> Metrics,
    ) -> Summary {
        let from = now - window.min(KEPT);
        let began = self.records.partition_point(|(at, _)| *at < from);
        let metrics = Metrics::new(scene.meta(), from.since(Time::ZERO));
        let mut metrics = Deduced::new(listing(metrics));
        // The joins of these are not among the records any more.
        let first = self.records.get(began).map_or(now, |(at, _)| *at);
        for member in scene.members.iter().filter(|member| member.since < first) {
            metrics.record(from.max(member.since), &join(member));
        }
        for (at, record) in self.records.range(began..).take_while(|(at, _)| *at <= now) {
            // Frames of the client that had the slot before do not count.
            let own = |app| scene.members.get(app).is_none_or(|member| member.since <= *at);
            if judged(record).is_none_or(own) {
                metrics.record(*at, record);
            }
        }
        let facts = RunFacts { seed: 0, event_hash: 0, stats: scene.stats, end: now };
        let mut summary = metrics.finish().finish(facts);
        // Empty slots between others.
        summary.apps.retain(|app| !app.name.is_empty());
        summary
    }
}

/// What the records do not contain.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) members: &'a Members,
    /// Name of the policy.
    pub(crate) policy: &'a str,
    pub(crate) refresh: Refresh,
    /// The core's counters.
    pub(crate) stats: Stats,
}

impl Scene<'_> {
    /// What the numbers in the records stand for.
    pub(crate) fn meta(&self) -> Meta {
        let slots = self.members.iter().map(|member| member.app.index() + 1).max().unwrap_or(0);
        let vacant =
            AppMeta { name: String::new(), priority: takt_core::Priority(0), fps_mhz: 0, jobs: None };
        let mut apps = vec![vacant; slots];
        for member in self.members.iter() {
            apps[member.app.index()] = meta_of(member);
        }
        Meta { scenario: "live".to_owned(), policy: self.policy.to_owned(), refresh: self.refresh, apps }
    }
}

/// A member as the records describe apps.
pub(crate) fn meta_of(member: &Member) -> AppMeta {
    AppMeta {
        name: member.name.clone(),
        priority: member.params.priority,
        fps_mhz: member.fps_mhz,
        jobs: None,
    }
}

/// The app of the frame or deadline in a record.
fn judged(record: &Record) -> Option<AppId> {
    match record {
        Record::Out(Action::FrameDone(done)) => Some(done.app),
        Record::Out(Action::Missed { app, .. }) => Some(*app),
        _ => None,
    }
}

/// The record of a join, for observers that start in the middle of a run.
pub(crate) fn join(member: &Member) -> Record {
    let params: AppParams = member.params;
    Record::In(Event::Join { app: member.app, params, phase: 0 })
}
