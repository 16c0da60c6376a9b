//! A client scribbles over the memory that it shares with the daemon. The daemon stays sane, and an
//! honest client beside it is served.

use std::os::fd::{AsFd, OwnedFd};

use takt_core::belief::Uncut;
use takt_core::service::{Enforcement, Gaps, Reservation, Reserve};
use takt_core::{
    AppId, AppParams, Clock, Config, DisplayId, Estimate, Gpu, GroupId, GroupKind, Priority, Refresh,
    Service, Span, Stride, Time,
};
use takt_daemon::rt::endpoint::Endpoint;
use takt_daemon::rt::engine::Engine;
use takt_daemon::rt::queues::{LoopQueues, Order};
use takt_ipc::client::{Receiver, Sender, ends};
use takt_ipc::{Command, Reply, Request, Standing};

const HOSTILE: AppId = AppId(0);
const HONEST: AppId = AppId(1);
/// Bytes of one step: what to do, where, and two numbers.
const STEP: usize = 11;
/// A step whose first byte is this or more is an order of the daemon about the hostile client, which tools and
/// other terms cause.
const ORDERS_FROM: u8 = 192;
/// The hostile client is more important than the honest one, or less.
const ABOVE: u32 = 9;

struct World {
    engine: Engine,
    queues: LoopQueues,
    now: Time,
    /// What the hostile client is promised.
    promised: AppParams,
}

struct Client {
    region: OwnedFd,
    sender: Sender,
    receiver: Receiver,
}

/// Plays steps, and looks whether the honest client is granted a group in the end. What is left behind the last
/// step chooses the policy and what the hostile client is promised.
pub fn ring(bytes: &[u8]) {
    let steps = bytes.chunks_exact(STEP);
    let mut chosen = steps.remainder().iter().copied();
    let mut choose = || chosen.next().unwrap_or_default();
    // The first one is what inputs without a choice were found with.
    let policies =
        ["frame-deadline", "timeline", "fifo", "edf-cbs", "timegraph", "hpf", "frrs", "germ", "runlist"];
    let name = policies[usize::from(choose()) % policies.len()];
    let mut policy = takt_policies::by_name(name).expect("one of them");
    let config = Config { mpcg: 2, apps_max: 2, gpu: Gpu::TURNS, ..Config::default() };
    policy.prepare(&config);
    let (engine, queues) = Engine::new(config, policy).expect("an engine");
    let promised = promised(choose(), choose());
    let mut world = World { engine, queues, now: Time::from_us(1_000_000_000), promised };
    let mut hostile = world.join(HOSTILE, promised);
    let mut honest = world.join(HONEST, plain(1));
    for step in steps {
        world.play(&mut hostile, step);
        world.turn();
        if world.engine.endpoint(HOSTILE).is_none() {
            hostile = world.join(HOSTILE, world.promised);
        }
    }
    // Others serve groups in their order, or the most important app alone, however long that takes.
    if ["frame-deadline", "timeline"].contains(&name) {
        world.serve(&mut honest, name);
    }
}

/// Without any promise.
fn plain(priority: u32) -> AppParams {
    AppParams {
        priority: Priority(priority),
        stride: Stride::ONE,
        etpf: Span::ZERO,
        clock: Clock::default(),
        service: Service::default(),
    }
}

/// Parameters as the daemon gives them to clients whose terms make sense.
fn promised(kind: u8, much: u8) -> AppParams {
    let plain = plain(if kind & 8 == 0 { ABOVE } else { 0 });
    // At most half, so that the honest client has room.
    let part = |of: Span| Span::from_ns(of.as_ns() / 512 * u64::from(much));
    let (frame, period) = (Span::from_us(16_667), Span::from_ms(40));
    let gaps = Gaps { count: u32::from(kind >> 4), length: part(Span::from_us(200)) };
    let service = Service { gaps, divisible: kind & 16 != 0, ..plain.service };
    match kind % 8 {
        0 => plain,
        1 => AppParams { etpf: part(frame), ..plain },
        2 => AppParams { etpf: part(frame), service, ..plain },
        3 => {
            let stride = Stride::new(u32::from(kind >> 4) + 1).unwrap_or(Stride::ONE);
            AppParams { etpf: part(frame), stride, ..plain }
        }
        4 => AppParams { etpf: part(period), clock: Clock::Own { period, deadline: period }, ..plain },
        5 => {
            let clock = Clock::Own { period, deadline: Span::from_ms(20) };
            AppParams { etpf: part(Span::from_ms(20)), clock, service, ..plain }
        }
        kind => {
            let enforcement = if kind == 6 { Enforcement::Apriori } else { Enforcement::Posterior };
            let reserve = Reserve { budget: part(period), period, deadline: period, enforcement };
            AppParams { service: Service { reservation: Reservation::Own(reserve), ..service }, ..plain }
        }
    }
}

impl World {
    fn join(&mut self, app: AppId, params: AppParams) -> Client {
        let (endpoint, fds) = Endpoint::new(app).expect("shared memory");
        let beat = self.engine.heart().as_fd().try_clone_to_owned().expect("a descriptor");
        let (sender, receiver) = ends(&fds.region, fds.doorbell, &beat).expect("mapped");
        self.give(Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::from_ms(1) });
        self.turn();
        Client { region: fds.region, sender, receiver }
    }

    fn give(&mut self, order: Order) {
        self.queues.orders.push(order).expect("room");
    }

    fn turn(&mut self) {
        self.turn_unchecked();
        self.engine.scheduler().check_invariants();
    }

    fn turn_unchecked(&mut self) {
        self.now += Span::from_us(1);
        self.engine.turn(self.now, |_| {});
        while self.queues.notes.pop().is_ok() {}
    }

    fn play(&mut self, hostile: &mut Client, step: &[u8]) {
        let (head, tail) = step.split_at(3);
        let small = u64::from(head[1]);
        let offset = u64::from(u16::from_le_bytes([head[1], head[2]]));
        let value = tail.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        if head[0] >= ORDERS_FROM {
            return self.order(head, value);
        }
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

    fn order(&mut self, head: &[u8], value: u64) {
        let (app, kind, much) = (HOSTILE, head[1], head[2]);
        match head[0] % 6 {
            0 => self.give(Order::Pause { app }),
            1 => self.give(Order::Resume { app, params: self.promised }),
            2 => {
                self.promised = promised(kind, much);
                self.give(Order::Change { app, params: self.promised });
            }
            3 => {
                let max_slice = Span::from_ns(value);
                let uncut = if kind & 1 == 0 { Uncut::Wait } else { Uncut::Run };
                let standing = Standing { paced: kind & 2 != 0, own: kind & 4 != 0, ..Standing::default() };
                self.give(Order::Limit { app, max_slice, standing, uncut });
            }
            4 => self.give(Order::Focus((kind & 1 == 0).then_some(app))),
            _ => {
                let origin = Time::from_ns(self.now.as_ns().saturating_sub(value % 1_000_000_000));
                let mhz = 30_000 + u32::from(much) * 400;
                let grid = Refresh::from_mhz(mhz).expect("a rate").with_origin(origin);
                self.give(Order::Refresh { display: DisplayId::default(), grid });
            }
        }
    }

    /// The other may hold the GPU until the watchdog barks, and be in the way again and again if it
    /// is more important; but not for ever.
    fn serve(&mut self, honest: &mut Client, policy: &str) {
        let submit =
            Request::Submit { group: GroupId(0), kind: GroupKind::Draw, estimate: Estimate::default() };
        honest.sender.send(&submit).expect("room");
        for _ in 0..10_000 {
            self.turn_unchecked();
            while let Some(reply) = honest.receiver.next_reply().expect("an honest daemon") {
                if matches!(reply, Reply::Grant { .. }) {
                    return;
                }
            }
            self.now += Span::from_ms(100);
        }
        panic!("the honest client is never served under {policy}, beside {:?}", self.promised);
    }
}
