//! Deduces from completions when the GPU ran which group.
//!
//! In a live run only the ends of command groups are reported, some time after the fact. A
//! completion tells when its group ended and how long it ran, so it ran before that; [`Deduced`]
//! puts the records of the GPU where they belong and passes everything on in the order of time.
//! To do so it holds records back while a group that was dispatched before them is under way.

use std::collections::{BTreeMap, VecDeque};

use takt_core::{Action, AppId, Event, GroupId, Time};

use crate::record::{AppMeta, GpuRecord, Observer, Record};

/// Most records that are held back; then they go on without what the GPU did.
const HELD_MAX: usize = 1 << 16;
/// Ends of groups that are remembered.
const ENDS_MAX: usize = 64;

/// Shows an observer the GPU's records, too.
#[derive(Clone, Debug)]
pub struct Deduced<O> {
    observer: O,
    held: VecDeque<(Time, Held)>,
    /// Groups under way, with their app and when they were dispatched.
    flying: BTreeMap<GroupId, (AppId, Time)>,
    /// When the last groups ended.
    ends: VecDeque<Time>,
}

#[derive(Clone, Debug)]
enum Held {
    Record(Record),
    App(AppId, AppMeta),
}

impl<O: Observer> Deduced<O> {
    /// Shows everything to `observer`, a little later.
    pub fn new(observer: O) -> Self {
        Self { observer, held: VecDeque::new(), flying: BTreeMap::new(), ends: VecDeque::new() }
    }

    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The same, to be changed.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Shows what is still held back.
    pub fn finish(mut self) -> O {
        self.pass_on(None);
        self.observer
    }

    fn see(&mut self, at: Time, record: &Record) {
        match *record {
            Record::Out(Action::Dispatch { app, group, .. }) => {
                self.flying.insert(group, (app, at));
            }
            Record::In(Event::Complete { group, finished, cost, .. }) => {
                if let Some((app, dispatched)) = self.flying.remove(&group) {
                    let finished = finished.min(at).max(dispatched);
                    let started = self.began(dispatched, finished, finished - cost.span());
                    self.insert(started, GpuRecord::Started { app, group });
                    self.insert(finished, GpuRecord::Finished { app, group, started });
                }
            }
            Record::Out(Action::Lost { group, .. }) => {
                self.flying.remove(&group);
            }
            Record::Gap { .. } => self.flying.clear(),
            // The records tell what the GPU did.
            Record::Gpu(_) => self.flying.clear(),
            _ => {}
        }
    }

    /// When a group began that says it began at `told`: not before it was dispatched, nor before
    /// those that ended before it.
    fn began(&mut self, dispatched: Time, finished: Time, told: Time) -> Time {
        let before = self.ends.iter().copied().filter(|end| *end <= finished).max();
        if self.ends.len() == ENDS_MAX {
            self.ends.pop_front();
        }
        self.ends.push_back(finished);
        told.max(dispatched).max(before.unwrap_or(dispatched))
    }

    fn insert(&mut self, at: Time, record: GpuRecord) {
        let place = self.held.partition_point(|(then, _)| *then <= at);
        self.held.insert(place, (at, Held::Record(Record::Gpu(record))));
    }

    fn hold(&mut self, at: Time, held: Held) {
        self.held.push_back((at, held));
        if self.held.len() > HELD_MAX {
            self.flying.clear();
        }
        let open = self.flying.values().map(|(_, dispatched)| *dispatched).min();
        self.pass_on(open);
    }

    /// Shows what happened up to `until`, or all: nothing can be put in before it any more.
    fn pass_on(&mut self, until: Option<Time>) {
        while let Some((at, held)) = self.held.pop_front_if(|(at, _)| until.is_none_or(|until| *at <= until))
        {
            match held {
                Held::Record(record) => self.observer.record(at, &record),
                Held::App(app, meta) => self.observer.meet(at, app, &meta),
            }
        }
    }
}

impl<O: Observer> Observer for Deduced<O> {
    fn record(&mut self, at: Time, record: &Record) {
        self.see(at, record);
        self.hold(at, Held::Record(*record));
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        self.hold(at, Held::App(app, meta.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Log;
    use crate::sample::{Pick, run};
    use takt_core::{Cost, Period, Span};

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn dispatch(app: u32, group: u64) -> Record {
        Record::Out(Action::Dispatch {
            app: AppId(app),
            group: GroupId(group),
            target: Period(0),
            start: Time::ZERO,
            reserved: Span::from_us(12),
        })
    }

    fn complete(group: u64, finished: u64, cost: u64) -> Record {
        let (finished, cost) = (us(finished), Cost::new(Span::from_us(cost)));
        Record::In(Event::Complete { group: GroupId(group), finished, cost, frames: 0 })
    }

    fn deduced(records: &[(Time, Record)]) -> Vec<(Time, Record)> {
        let mut deduced = Deduced::new(Log::new());
        for (at, record) in records {
            deduced.record(*at, record);
        }
        deduced.finish().records
    }

    /// The runs of a sequence of records: group, begin and end.
    fn runs(records: &[(Time, Record)]) -> Vec<(u64, u64, u64)> {
        let run = |(at, record): &(Time, Record)| match record {
            Record::Gpu(GpuRecord::Finished { group, started, .. }) => {
                Some((group.0, started.as_ns() / 1000, at.as_ns() / 1000))
            }
            _ => None,
        };
        records.iter().filter_map(run).collect()
    }

    #[test]
    fn runs_are_put_where_they_were() {
        let records = deduced(&[
            (us(10), dispatch(0, 1)),
            (us(11), dispatch(1, 2)),
            (us(40), Record::Turn),
            (us(50), complete(1, 35, 20)),
            (us(70), complete(2, 60, 40)),
        ]);
        assert!(records.is_sorted_by_key(|(at, _)| *at), "{records:?}");
        assert_eq!(runs(&records), [(1, 15, 35), (2, 35, 60)], "one at a time");
        let started = records.iter().position(|(_, r)| matches!(r, Record::Gpu(GpuRecord::Started { .. })));
        assert_eq!(started, Some(2), "after both dispatches, before the turn");
    }

    #[test]
    fn lies_about_time_stay_between_dispatch_and_completion() {
        let lies = [(us(10), dispatch(0, 1)), (us(20), complete(1, 99, 500))];
        assert_eq!(runs(&deduced(&lies)), [(1, 10, 20)]);
        let early = [(us(10), dispatch(0, 1)), (us(20), complete(1, 3, 1))];
        assert_eq!(runs(&deduced(&early)), [(1, 10, 10)]);
    }

    #[test]
    fn nothing_is_held_for_ever() {
        let gap = [(us(1), dispatch(0, 1)), (us(2), Record::Gap { records: 7 })];
        let mut observer = Deduced::new(Log::new());
        gap.iter().for_each(|(at, record)| observer.record(*at, record));
        assert_eq!(observer.observer().records.len(), 2, "after a gap nothing is waited for");
        let mut stuck = Deduced::new(Log::new());
        stuck.record(us(1), &dispatch(0, 1));
        (0..70_000).for_each(|_| stuck.record(us(2), &Record::Turn));
        assert!(stuck.observer().records.len() > 65_000);
    }

    /// Without its GPU records a simulated run is told the same way, up to the last group.
    #[test]
    fn what_was_left_out_is_found_again() {
        let whole = run(Pick::Important, 20);
        let blind: Vec<_> =
            whole.iter().filter(|(_, record)| !matches!(record, Record::Gpu(_))).copied().collect();
        assert!(blind.len() < whole.len());
        assert_eq!(runs(&deduced(&blind)), runs(&whole));
    }
}
