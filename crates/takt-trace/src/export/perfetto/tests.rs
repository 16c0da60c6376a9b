//! Reads the trace back and checks what the UI relies on.

use std::collections::{BTreeMap, BTreeSet};

use prost::Message;
use takt_core::event::{LostBy, Refusal};
use takt_core::service::Service;
use takt_core::{AppParams, Clock, Cost, Estimate, GroupKind, Priority, Span, Stride};

use super::*;
use crate::export::proto::{EventType, Trace, TrackDescriptor, TrackEvent};
use crate::sample::{Pick, meta, run};

fn export(records: &[(Time, Record)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut perfetto = Perfetto::new(&mut bytes, &meta("test")).unwrap();
    for (at, record) in records {
        perfetto.record(*at, record);
    }
    perfetto.finish().unwrap();
    bytes
}

/// Tracks by identity, and events sorted by time as a reader sorts them.
struct Read {
    tracks: BTreeMap<u64, TrackDescriptor>,
    events: Vec<(u64, TrackEvent)>,
}

impl Read {
    fn new(bytes: &[u8]) -> Self {
        let mut read = Self { tracks: BTreeMap::new(), events: Vec::new() };
        for packet in Trace::decode(bytes).unwrap().packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            if let Some(track) = packet.track_descriptor {
                assert!(read.tracks.insert(track.uuid(), track).is_none());
            }
            if let Some(event) = packet.track_event {
                assert!(read.tracks.contains_key(&event.track_uuid()));
                read.events.push((packet.timestamp.unwrap(), event));
            }
        }
        read.events.sort_by_key(|(time, _)| *time);
        read
    }

    fn name_of(&self, event: &TrackEvent) -> &str {
        self.tracks[&event.track_uuid()].name()
    }

    /// Every slice of every track, as (track, depth, name), checked for balance.
    fn slices(&self) -> Vec<(&str, usize, &str)> {
        let mut stacks: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        let mut slices = Vec::new();
        for (time, event) in &self.events {
            let stack = stacks.entry(event.track_uuid()).or_default();
            match event.r#type() {
                EventType::SliceBegin => {
                    slices.push((self.name_of(event), stack.len(), event.name()));
                    stack.push(*time);
                }
                EventType::SliceEnd => assert!(stack.pop().unwrap() <= *time),
                _ => {}
            }
        }
        assert!(stacks.values().all(Vec::is_empty), "a slice never ends");
        slices
    }

    fn instants(&self) -> Vec<(&str, &str)> {
        self.events
            .iter()
            .filter(|(_, event)| event.r#type() == EventType::Instant)
            .map(|(_, event)| (self.name_of(event), event.name()))
            .collect()
    }
}

#[test]
fn tracks_are_named_and_ordered_by_importance() {
    let read = Read::new(&export(&run(Pick::Oldest, 12)));
    let root = read.tracks.values().next().unwrap();
    assert_eq!(root.name(), "takt: three made-up apps (test)");
    let mut children: Vec<_> = read
        .tracks
        .values()
        .filter(|track| track.parent_uuid() == root.uuid())
        .map(|track| (track.sibling_order_rank(), track.name()))
        .collect();
    children.sort_unstable();
    let names: Vec<_> = children.into_iter().map(|(_, name)| name).collect();
    assert_eq!(
        names,
        [
            "GPU",
            "decisions",
            "vsync",
            "in flight",
            "GPU busy in the period before",
            "cluster (priority 30)",
            "navi, \"beta\" <b>&co (priority 20)",
            "game (priority 10)",
        ]
    );
}

#[test]
fn slices_balance_and_nest() {
    let records = run(Pick::Important, 12);
    let executed = records
        .iter()
        .filter(|(_, record)| matches!(record, Record::Gpu(GpuRecord::Finished { .. })))
        .count();
    let read = Read::new(&export(&records));
    let slices = read.slices();
    let on = |track, depth| slices.iter().filter(|slice| (slice.0, slice.1) == (track, depth)).count();
    assert!(executed > 50);
    assert_eq!(on("GPU", 0), executed);
    assert_eq!(on("groups", 0), executed);
    assert_eq!(on("groups", 1), 3 * executed);
    assert_eq!(on("vsync", 0), 12);
    assert_eq!(on("frames", 0), 12 + 6 + 12);
    assert!(slices.iter().any(|slice| slice.0 == "GPU" && slice.2 == "cluster"));
}

#[test]
fn flows_lead_from_submission_over_dispatch_to_execution() {
    let read = Read::new(&export(&run(Pick::Oldest, 12)));
    let mut steps: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for (_, event) in &read.events {
        for flow in &event.flow_ids {
            assert!(!ended.contains(flow));
            steps.entry(*flow).or_default().push(read.name_of(event));
        }
        for flow in &event.terminating_flow_ids {
            assert_eq!(steps[flow], ["groups", "decisions"]);
            assert_eq!(read.name_of(event), "GPU");
            assert!(ended.insert(*flow));
        }
    }
    assert_eq!(steps.len(), ended.len());
    assert!(!ended.is_empty());
}

#[test]
fn misses_and_holds_are_marked() {
    let read = Read::new(&export(&run(Pick::Oldest, 12)));
    let instants = read.instants();
    let missed = |(track, name): &&(&str, &str)| {
        *track == "cluster (priority 30)" && name.starts_with("missed deadline: frame ")
    };
    assert!(instants.iter().find(missed).is_some());
    assert!(instants.contains(&("decisions", "hold game: behind cluster")));
    assert!(instants.contains(&("decisions", "dispatch cluster")));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let records = run(Pick::Oldest, 30);
    assert_eq!(export(&records), export(&records));
}

#[test]
fn counters_follow_the_run() {
    let read = Read::new(&export(&run(Pick::Oldest, 12)));
    let values = |name: &str| -> Vec<f64> {
        read.events
            .iter()
            .filter(|(_, event)| read.name_of(event) == name)
            .map(|(_, event)| event.double_counter_value() + event.counter_value() as f64)
            .collect()
    };
    let in_flight = values("in flight");
    assert!(in_flight.iter().all(|n| (0.0..=1.0).contains(n)));
    assert_eq!(in_flight.last(), Some(&0.0));
    let busy = values("GPU busy in the period before");
    assert_eq!(busy.len(), 11);
    assert!(busy.iter().all(|share| (50.0..=100.0).contains(share)));
}

fn submit(app: u32, group: u64) -> Record {
    Record::In(Event::Submit {
        app: AppId(app),
        group: GroupId(group),
        kind: GroupKind::Draw,
        estimate: Estimate::UNBOUNDED,
    })
}

fn dispatch(app: u32, group: u64) -> Record {
    Record::Out(Action::Dispatch {
        app: AppId(app),
        group: GroupId(group),
        target: Period(1),
        start: Time::ZERO,
        reserved: Span::from_us(5),
    })
}

/// Things that go wrong: each must leave balanced slices behind.
#[test]
fn broken_stories_still_balance() {
    let (app, group) = (AppId(7), GroupId(1));
    let complete = Record::In(Event::Complete {
        group: GroupId(2),
        finished: Time::from_us(50),
        cost: Cost::new(Span::from_us(90)),
        frames: 0,
    });
    let story = [
        (1, Record::Vsync(Period(0))),
        (2, submit(7, 1)),
        (3, submit(7, 1)),
        (4, submit(7, 2)),
        (5, submit(7, 3)),
        (5, Record::Out(Action::Refused { app, group: Some(GroupId(3)), reason: Refusal::QueueFull })),
        (6, dispatch(7, 1)),
        (7, Record::Gpu(GpuRecord::Started { app, group })),
        (8, dispatch(7, 2)),
        (9, Record::Out(Action::Lost { app, group, by: LostBy::Timeout })),
        (60, complete),
        (61, submit(7, 4)),
        (62, Record::Out(Action::Left { app, dropped: 1 })),
        (63, Record::Gpu(GpuRecord::Stalled { until: Time::from_us(80) })),
        (64, Record::Gpu(GpuRecord::Clock { permille: 500 })),
        (90, submit(7, 5)),
    ]
    .map(|(us, record)| (Time::from_us(us), record));
    let read = Read::new(&export(&story));
    let slices = read.slices();
    assert!(slices.contains(&("GPU state", 0, "stalled")));
    assert_eq!(slices.iter().filter(|slice| slice.0 == "GPU").count(), 2);
    assert!(read.instants().contains(&("decisions", "refused app7: queue is full")));
}

/// An app whose work the GPU interrupts has a track of its own, since a frame may begin and end meanwhile.
#[test]
fn interrupted_work_is_drawn_on_an_engine_of_its_own() {
    let joins = |app, divisible| {
        let service = Service { divisible, ..Service::default() };
        let (priority, stride, etpf, clock) = (Priority(1), Stride::ONE, Span::ZERO, Clock::default());
        let params = AppParams { priority, stride, etpf, clock, service };
        Record::In(Event::Join { app: AppId(app), params, phase: 0 })
    };
    let completes = |group, finished, cost| {
        Record::In(Event::Complete {
            group: GroupId(group),
            finished: Time::from_us(finished),
            cost: Cost::new(Span::from_us(cost)),
            frames: 0,
        })
    };
    let story = [
        (0, Record::Vsync(Period(0))),
        (0, joins(1, true)),
        (0, joins(2, false)),
        (1, submit(1, 1)),
        (1, dispatch(1, 1)),
        (20, submit(2, 2)),
        (20, dispatch(2, 2)),
        (31, completes(2, 30, 10)),
        (101, completes(1, 100, 99)),
        (200, Record::Vsync(Period(1))),
    ]
    .map(|(us, record)| (Time::from_us(us), record));
    let read = Read::new(&export(&story));
    let times = |track: &str| -> Vec<u64> {
        let on = read.events.iter().filter(|(_, event)| read.name_of(event) == track);
        on.map(|(ns, _)| ns / 1000).collect()
    };
    assert_eq!((times("GPU compute"), times("GPU")), (vec![1, 100], vec![20, 30]));
    assert!(read.slices().iter().any(|slice| slice.0 == "GPU compute" && slice.1 == 0));
    let gauges = read.events.iter().filter(|(_, event)| event.double_counter_value > Some(100.0));
    assert_eq!(gauges.count(), 0);
}
