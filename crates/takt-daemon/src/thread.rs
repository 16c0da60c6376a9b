//! The scheduling loop on a thread of its own.

use std::os::fd::AsFd;
use std::sync::Arc;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::Timespec;
use takt_core::{AppId, Span, Time};
use takt_ipc::vigil::Vigil;
use takt_ipc::wake::Doorbell;

use crate::clock;
use crate::engine::Engine;

/// The loop turns at least this often, so that clients see it alive.
pub const BEAT_MAX: Span = Span::from_ms(10);

/// Stands for the daemon's own doorbell; those of clients have the number of their slot.
const WAKER: u64 = u64::MAX;

/// Wakes the loop when there are orders for it.
#[derive(Clone, Debug)]
pub struct Waker(Arc<Doorbell>);

impl Waker {
    /// Wakes the loop.
    pub fn wake(&self) {
        self.0.ring();
    }
}

/// The loop, ready to run.
#[derive(Debug)]
pub struct Loop {
    engine: Engine,
    epoll: std::os::fd::OwnedFd,
    waker: Waker,
    vigil: Vigil,
}

impl Loop {
    /// Around `engine`. Where requests follow each other within `spin`, it stays awake for as long.
    pub fn new(engine: Engine, spin: Span) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let waker = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        listen(&epoll, &waker, WAKER)?;
        let waker = Waker(Arc::new(Doorbell::from_fd(waker)));
        Ok(Self { engine, epoll, waker, vigil: Vigil::new(spin) })
    }

    /// What wakes it.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs until told to stop.
    pub fn run(mut self) -> Engine {
        while !self.engine.is_stopped() {
            let epoll = &self.epoll;
            let began = clock::now();
            let next = self.engine.turn(began, |seat| {
                // Without its doorbell a client is heard at the next beat.
                listen(epoll, seat.doorbell(), seat.app.0.into()).unwrap_or_default();
            });
            let now = clock::now();
            self.engine.took(now.since(began));
            if let Some(spin) = self.engine.take_spin() {
                self.vigil = Vigil::new(spin);
            }
            let latest = now + BEAT_MAX;
            if self.wait(now, next.map_or(latest, |next| next.min(latest))) {
                self.vigil.waited(clock::now().since(now));
            }
        }
        self.engine
    }

    /// Waits until there is something to do, or until then; says whether there is.
    fn wait(&mut self, mut now: Time, until: Time) -> bool {
        let asleep_from = until.min(now + self.vigil.patience());
        loop {
            if self.engine.has_work() {
                return true;
            }
            if now >= asleep_from {
                break;
            }
            std::hint::spin_loop();
            now = clock::now();
        }
        let mut ready =
            [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }; 16];
        loop {
            // Interrupted or not: everything is looked at. What was taken while awake has rung, too,
            // and is no reason to turn.
            let sleep = timespec(until.since(now));
            let rang = epoll::wait(&self.epoll, &mut ready, Some(&sleep)).unwrap_or_default();
            now = clock::now();
            let apps = ready[..rang].iter().filter_map(|event| u32::try_from(event.data.u64()).ok());
            let faults = apps.filter(|app| self.engine.rang(now, AppId(*app))).count();
            if faults > 0 || self.engine.has_work() {
                return true;
            }
            if now >= until {
                return false;
            }
        }
    }
}

/// Wakes up whenever `doorbell` rings again; it need not be silenced.
fn listen(epoll: &std::os::fd::OwnedFd, doorbell: impl AsFd, whose: u64) -> std::io::Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
    Ok(epoll::add(epoll, doorbell, epoll::EventData::new_u64(whose), flags)?)
}

fn timespec(span: Span) -> Timespec {
    let ns = span.as_ns();
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or_default(),
    }
}
