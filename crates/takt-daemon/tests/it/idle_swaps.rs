//! Swaps that show nothing, against one turn of the loop after the other, in made-up time.

use std::os::fd::AsFd;

use takt_core::limits::{FRAME_ENDS_MAX, IN_FLIGHT_MAX};
use takt_core::policy::Timeline;
use takt_core::{
    Action, AppId, AppParams, Clock, Config, Estimate, Event, Gpu, GroupId, GroupKind, Margins, Priority,
    Service, Span, Stride, Time,
};
use takt_daemon::rt::endpoint::{Endpoint, Fault};
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Note, Order};
use takt_ipc::client::{Receiver, Sender};
use takt_ipc::{Reply, Request, client};
use takt_trace::Record;

struct Rig {
    engine: Engine,
    queues: LoopQueues,
    now: Time,
}

struct App {
    sender: Sender,
    receiver: Receiver,
}

impl App {
    fn submit(&mut self, group: u64, kind: GroupKind, us: u64) {
        let estimate = Estimate::new(Span::from_us(us));
        self.sender.send(&Request::Submit { group: GroupId(group), kind, estimate }).expect("room");
    }

    fn complete(&mut self, group: u64, finished: Time) {
        let (group, cost) = (GroupId(group), Span::ZERO);
        self.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).expect("room");
    }

    fn granted(&mut self) -> Vec<u64> {
        let replies = std::iter::from_fn(|| self.receiver.next_reply().expect("an honest daemon"));
        let granted = |reply| match reply {
            Reply::Grant { group, .. } => Some(group.0),
            _ => None,
        };
        replies.filter_map(granted).collect()
    }
}

impl Rig {
    fn new(gpu: Gpu) -> Self {
        let config = Config { mpcg: 1, margins: Margins::NONE, apps_max: 4, gpu, ..Config::default() };
        let (engine, queues) = Engine::new(config, Box::new(Timeline::new())).expect("an engine");
        Self { engine, queues, now: Time::from_us(100_000_000) }
    }

    fn join(&mut self, slot: u32) -> App {
        let (endpoint, ends) = Endpoint::new(AppId(slot)).expect("shared memory");
        let params = AppParams {
            priority: Priority(slot),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: Clock::default(),
            service: Service::default(),
        };
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = client::ends(&ends.region, ends.doorbell, &beat).expect("mapped");
        let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
        self.queues.orders.push(order).expect("room");
        self.turn();
        App { sender, receiver }
    }

    /// A turn; all that was told in it.
    fn turn(&mut self) -> Vec<Note> {
        self.now += Span::from_us(1);
        self.engine.turn(self.now, |_| {});
        self.engine.scheduler().check_invariants();
        std::iter::from_fn(|| self.queues.notes.pop().ok()).collect()
    }
}

fn has(notes: &[Note], wanted: impl Fn(&Record) -> bool) -> bool {
    notes.iter().any(|note| matches!(note, Note::Record(_, record) if wanted(record)))
}

fn fault(notes: &[Note]) -> Option<Fault> {
    notes.iter().find_map(|note| match note {
        Note::Gone { fault, .. } => *fault,
        _ => None,
    })
}

#[test]
fn a_swap_that_shows_nothing_is_granted_at_once_and_is_no_group() {
    for gpu in [Gpu::InOrder, Gpu::TURNS] {
        let mut rig = Rig::new(gpu);
        let (mut other, mut app) = (rig.join(0), rig.join(1));
        app.submit(0, GroupKind::Draw, 100);
        rig.turn();
        app.complete(0, rig.now);
        other.submit(0, GroupKind::Draw, 100);
        rig.turn();
        assert_eq!((app.granted(), other.granted()), (vec![0], vec![0]), "the other has the only slot");
        app.submit(1, GroupKind::Swap, 0);
        app.submit(2, GroupKind::Swap, 1);
        let notes = rig.turn();
        assert_eq!(app.granted(), [1], "{gpu:?}: one that takes time waits");
        assert!(has(&notes, |record| matches!(record, Record::In(Event::EndFrame { app: AppId(1) }))));
        assert!(has(&notes, |record| matches!(record, Record::Out(Action::FrameDone(done)) if done.met)));
        // That it is over is of no interest, but said once.
        app.complete(1, rig.now);
        let notes = rig.turn();
        assert!(!has(&notes, |record| matches!(record, Record::In(Event::Complete { .. }))));
        assert_eq!(fault(&notes), None);
        app.complete(1, rig.now);
        assert_eq!(fault(&rig.turn()), Some(Fault::NotGranted(1)));
    }
}

#[test]
fn a_client_that_ends_frames_without_end_is_evicted() {
    let mut rig = Rig::new(Gpu::TURNS);
    let (mut app, others) = (rig.join(0), rig.join(1));
    (0..=FRAME_ENDS_MAX as u64).for_each(|group| app.submit(group, GroupKind::Swap, 0));
    assert_eq!(fault(&rig.turn()), Some(Fault::TooMany), "too many at once");
    // One that never says that its swaps are over.
    let mut app = rig.join(0);
    let faults: Vec<_> = (0..=IN_FLIGHT_MAX as u64)
        .map(|group| {
            app.submit(group, GroupKind::Swap, 0);
            fault(&rig.turn())
        })
        .collect();
    let (last, before) = faults.split_last().expect("some turns");
    assert!(before.iter().all(Option::is_none));
    assert_eq!(*last, Some(Fault::TooMany));
    assert!(rig.engine.endpoint(AppId(1)).is_some(), "others stay");
    drop(others);
}
