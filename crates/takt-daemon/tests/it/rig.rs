//! The loop of the daemon, one turn after the other, in made-up time.

use std::os::fd::AsFd;

use takt_core::policy::Policy;
use takt_core::{
    AppId, AppParams, Clock, Config, Estimate, Gpu, GroupId, GroupKind, Margins, Priority, Service, Span,
    Stride, Time,
};
use takt_daemon::rt::endpoint::{Endpoint, Fault};
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Note, Order};
use takt_ipc::client::{Receiver, Sender};
use takt_ipc::{Reply, Request, client};
use takt_policies::FrameDeadline;

/// A daemon's loop without threads and sockets.
pub(crate) struct Rig {
    pub(crate) engine: Engine,
    pub(crate) queues: LoopQueues,
    pub(crate) now: Time,
}

/// A client of it.
pub(crate) struct App {
    pub(crate) id: AppId,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
}

impl App {
    pub(crate) fn submit(&mut self, group: u64, us: u64, kind: GroupKind) {
        let estimate = Estimate::new(Span::from_us(us));
        self.sender.send(&Request::Submit { group: GroupId(group), kind, estimate }).expect("room");
    }

    pub(crate) fn complete(&mut self, group: u64, at: Time) {
        let request =
            Request::Complete { group: GroupId(group), finished: at, cost: Span::from_us(1), frames: 0 };
        self.sender.send(&request).expect("room");
    }

    pub(crate) fn replies(&mut self) -> Vec<Reply> {
        std::iter::from_fn(|| self.receiver.next_reply().expect("an honest daemon")).collect()
    }

    pub(crate) fn granted(&mut self) -> Vec<u64> {
        let granted = |reply| match reply {
            Reply::Grant { group, .. } => Some(group.0),
            _ => None,
        };
        self.replies().into_iter().filter_map(granted).collect()
    }
}

impl Rig {
    pub(crate) fn new(mpcg: u32) -> Self {
        Self::with_apps(mpcg, 4)
    }

    pub(crate) fn with_apps(mpcg: u32, apps_max: u32) -> Self {
        Self::under(Box::new(FrameDeadline::new()), mpcg, apps_max)
    }

    pub(crate) fn under(policy: Box<dyn Policy>, mpcg: u32, apps_max: u32) -> Self {
        Self::on(Gpu::TURNS, policy, mpcg, apps_max)
    }

    pub(crate) fn on(gpu: Gpu, policy: Box<dyn Policy>, mpcg: u32, apps_max: u32) -> Self {
        let config = Config { mpcg, margins: Margins::NONE, apps_max, gpu, ..Config::default() };
        let (engine, queues) = Engine::new(config, policy).expect("an engine");
        Self { engine, queues, now: Time::from_us(100_000_000) }
    }

    pub(crate) fn join(&mut self, slot: u32, priority: u32) -> App {
        self.join_reserving(slot, priority, Span::ZERO)
    }

    pub(crate) fn join_reserving(&mut self, slot: u32, priority: u32, etpf: Span) -> App {
        self.join_by(slot, priority, etpf, Clock::default())
    }

    pub(crate) fn join_by(&mut self, slot: u32, priority: u32, etpf: Span, clock: Clock) -> App {
        let id = AppId(slot);
        let (endpoint, ends) = Endpoint::new(id).expect("shared memory");
        let params = AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf,
            clock,
            service: Service::default(),
        };
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = client::ends(&ends.region, ends.doorbell, &beat).expect("mapped");
        let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
        self.queues.orders.push(order).expect("room");
        self.turn();
        App { id, sender, receiver }
    }

    pub(crate) fn turn(&mut self) {
        self.turn_unchecked();
        self.engine.scheduler().check_invariants();
    }

    pub(crate) fn turn_unchecked(&mut self) {
        self.now += Span::from_us(1);
        self.engine.turn(self.now, |_| {});
    }

    /// All that the loop told since the last call.
    pub(crate) fn notes(&mut self) -> Vec<Note> {
        std::iter::from_fn(|| self.queues.notes.pop().ok()).collect()
    }

    /// The client that was evicted, and its fault.
    pub(crate) fn fault(&mut self) -> Option<(AppId, Fault)> {
        self.notes().into_iter().find_map(|note| match note {
            Note::Gone { endpoint, fault } => fault.map(|fault| (endpoint.app, fault)),
            _ => None,
        })
    }
}
