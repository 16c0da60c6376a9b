//! A client scribbles over the memory that it shares with the daemon. The daemon stays sane, and an
//! honest client beside it is served.

use std::os::fd::{AsFd, OwnedFd};

use takt_core::{
    AppId, AppParams, Config, Estimate, Gpu, GroupId, GroupKind, Priority, Service, Span, Stride, Time,
};
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Order};
use takt_ipc::client::{Receiver, Sender, ends};
use takt_ipc::{Command, Reply, Request};
use takt_policies::FrameDeadline;

const HOSTILE: AppId = AppId(0);
const HONEST: AppId = AppId(1);
/// Bytes of one step: what to do, where, and two numbers.
const STEP: usize = 11;

struct World {
    engine: Engine,
    queues: LoopQueues,
    now: Time,
}

struct Client {
    region: OwnedFd,
    sender: Sender,
    receiver: Receiver,
}

/// Plays steps, and looks whether the honest client is granted a group in the end.
pub fn ring(bytes: &[u8]) {
    let config = Config { mpcg: 2, apps_max: 2, gpu: Gpu::TURNS, ..Config::default() };
    let (engine, queues) = Engine::new(config, Box::new(FrameDeadline::new())).expect("an engine");
    let mut world = World { engine, queues, now: Time::from_us(1_000_000_000) };
    let mut hostile = world.join(HOSTILE, 9);
    let mut honest = world.join(HONEST, 1);
    for step in bytes.chunks_exact(STEP) {
        world.play(&mut hostile, step);
        world.turn();
        if world.engine.endpoint(HOSTILE).is_none() {
            hostile = world.join(HOSTILE, 9);
        }
    }
    world.serve(&mut honest);
}

impl World {
    fn join(&mut self, app: AppId, priority: u32) -> Client {
        let (endpoint, fds) = Endpoint::new(app).expect("shared memory");
        let params = AppParams {
            priority: Priority(priority),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = ends(&fds.region, fds.doorbell, &beat).expect("mapped");
        let order = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) };
        self.queues.orders.push(order).expect("room");
        self.turn();
        Client { region: fds.region, sender, receiver }
    }

    fn turn(&mut self) {
        self.now += Span::from_us(1);
        self.engine.turn(self.now, |_| {});
        self.engine.scheduler().check_invariants();
        while self.queues.notes.pop().is_ok() {}
    }

    fn play(&mut self, hostile: &mut Client, step: &[u8]) {
        let (head, tail) = step.split_at(3);
        let small = u64::from(head[1]);
        let offset = u64::from(u16::from_le_bytes([head[1], head[2]]));
        let value = tail.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        match head[0] % 7 {
            // Anything anywhere; what lies beyond the end is refused by the system.
            0 => drop(rustix::io::pwrite(&hostile.region, &value.to_le_bytes(), offset)),
            // Positions are what hurts most.
            1 => drop(rustix::io::pwrite(&hostile.region, &small.to_le_bytes(), offset % 2 * 64)),
            2 | 3 => {
                let kinds = [GroupKind::Draw, GroupKind::Swap, GroupKind::Sync, GroupKind::Exit];
                let kind = kinds[usize::from(head[2]) % kinds.len()];
                let estimate = Estimate::new(Span::from_ns(value % (1 << 42)));
                let _room = hostile.sender.send(&Request::Submit { group: GroupId(small), kind, estimate });
            }
            4 => {
                let (finished, cost) = (Time::from_ns(value), Span::from_ns(offset));
                let (group, frames) = (GroupId(small), u32::from(head[2]));
                let _room = hostile.sender.send(&Request::Complete { group, finished, cost, frames });
            }
            5 => {
                let command = Command::new(&value.to_string());
                let _room = hostile.sender.send(&Request::Names { group: GroupId(small), command });
            }
            _ => self.now += Span::from_us(offset),
        }
    }

    /// The other may hold the GPU until the watchdog barks, and be in the way again and again if it
    /// is more important; but not for ever.
    fn serve(&mut self, honest: &mut Client) {
        let submit =
            Request::Submit { group: GroupId(0), kind: GroupKind::Draw, estimate: Estimate::default() };
        honest.sender.send(&submit).expect("room");
        for _ in 0..10_000 {
            self.turn();
            while let Some(reply) = honest.receiver.next_reply().expect("an honest daemon") {
                if matches!(reply, Reply::Grant { .. }) {
                    return;
                }
            }
            self.now += Span::from_ms(100);
        }
        panic!("the honest client is never served");
    }
}
