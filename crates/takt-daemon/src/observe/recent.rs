//! The records of the last seconds, and what they mean.
//!
//! Figures, causes and traces are made from them on demand, by the same code that judges simulations. That
//! takes long, so it is done elsewhere, on a snapshot.

use std::collections::VecDeque;
use std::sync::Arc;

use takt_core::{Action, AppId, AppParams, Event, Refresh, Span, Stats, Time};
use takt_trace::summary::Miss;
use takt_trace::{AppMeta, Deduced, Meta, Metrics, Observer, Record, RunFacts, Summary};

use crate::control::members::{Member, Members};

/// For how long records are kept.
pub const KEPT: Span = Span::from_ms(30_000);
/// Records that are dropped, and shared with a [`Snapshot`], at once.
const CHUNK: usize = 1_000;
/// Most chunks that are kept.
const CHUNKS_MAX: usize = 500;

type Chunk = Arc<Vec<(Time, Record)>>;

/// The records of the last seconds.
#[derive(Debug, Default)]
pub(crate) struct RecentRecords {
    full: VecDeque<Chunk>,
    newest: Vec<(Time, Record)>,
}

impl RecentRecords {
    /// Adds a record and drops those that are too old.
    pub(crate) fn add(&mut self, at: Time, record: Record) {
        let too_old = at - KEPT;
        let is_old = |chunk: &Chunk| chunk.last().is_some_and(|(then, _)| *then < too_old);
        while self.full.front().is_some_and(is_old) || self.full.len() >= CHUNKS_MAX {
            self.full.pop_front();
        }
        self.newest.push((at, record));
        if self.newest.len() == CHUNK {
            let chunk = std::mem::replace(&mut self.newest, Vec::with_capacity(CHUNK));
            self.full.push_back(Arc::new(chunk));
        }
    }

    /// All of them, for another thread; full chunks are shared, not copied.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let newest = Arc::new(self.newest.clone());
        Snapshot(self.full.iter().cloned().chain([newest]).collect())
    }
}

/// The records of the last seconds as of some time.
#[derive(Debug)]
pub(crate) struct Snapshot(Vec<Chunk>);

impl Snapshot {
    /// Figures and causes of the last `window` before `now`, of the apps that are scheduled.
    pub(crate) fn summary(&self, now: Time, window: Span, scene: &Scene) -> Summary {
        self.judge(now, window, scene, |metrics| metrics)
    }

    /// The deadlines that an app missed in the last `window` before `now`, and why.
    pub(crate) fn misses(&self, now: Time, window: Span, scene: &Scene, app: AppId) -> Vec<Miss> {
        self.judge(now, window, scene, |metrics| metrics.listing_all_of(app)).misses
    }

    /// The records from that time on.
    fn since(&self, from: Time) -> impl Iterator<Item = &(Time, Record)> {
        let is_before = move |chunk: &&Chunk| chunk.last().is_some_and(|(at, _)| *at < from);
        let chunks = self.0.iter().skip_while(is_before);
        chunks.flat_map(|chunk| chunk.iter()).skip_while(move |(at, _)| *at < from)
    }

    fn judge(
        &self,
        now: Time,
        window: Span,
        scene: &Scene,
        listing: impl FnOnce(Metrics) -> Metrics,
    ) -> Summary {
        let from = now - window.min(KEPT);
        let metrics = Metrics::new(scene.meta(), from.since(Time::ZERO));
        let mut metrics = Deduced::new(listing(metrics));
        // The joins of these are not among the records any more.
        let first = self.since(from).next().map_or(now, |(at, _)| *at);
        for member in scene.members.iter().filter(|member| member.since < first) {
            metrics.record(from.max(member.since), &join(member));
        }
        for (at, record) in self.since(from).take_while(|(at, _)| *at <= now) {
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
pub(crate) struct Scene {
    pub(crate) members: Members,
    /// Name of the policy.
    pub(crate) policy: String,
    pub(crate) refresh: Refresh,
    /// The core's counters.
    pub(crate) stats: Stats,
}

impl Scene {
    /// What the numbers in the records stand for.
    pub(crate) fn meta(&self) -> Meta {
        let slots = self.members.iter().map(|member| member.app.index() + 1).max().unwrap_or(0);
        let vacant =
            AppMeta { name: String::new(), priority: takt_core::Priority(0), fps_mhz: 0, jobs: None };
        let mut apps = vec![vacant; slots];
        for member in self.members.iter() {
            apps[member.app.index()] = meta_of(member);
        }
        Meta { scenario: "live".to_owned(), policy: self.policy.clone(), refresh: self.refresh, apps }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_has_every_record_of_the_last_seconds() {
        let mut recent = RecentRecords::default();
        let ms = Time::from_ms;
        for at in 0..40_000 {
            recent.add(ms(at), Record::Turn);
        }
        let snapshot = recent.snapshot();
        for from in [0, 15_000, 39_998, 50_000] {
            let kept: Vec<Time> = snapshot.since(ms(from)).map(|(at, _)| *at).collect();
            // A chunk is dropped when its last record is too old.
            let first = from.max(40_000 - 30_000 - CHUNK as u64);
            assert_eq!(kept, (first..40_000).map(ms).collect::<Vec<_>>(), "from {from} ms");
        }
        for _ in 0..CHUNK * (CHUNKS_MAX + 2) {
            recent.add(ms(40_000), Record::Turn);
        }
        assert!(recent.full.len() <= CHUNKS_MAX, "however many there are in a second");
    }
}
