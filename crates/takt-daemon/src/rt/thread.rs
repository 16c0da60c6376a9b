//! The scheduling loop on a thread of its own.

use std::sync::Arc;

use takt_core::{AppId, Span, Time};
use takt_ipc::spin::SpinBudget;
use takt_ipc::wake::Doorbell;
use takt_os::clock;

use super::engine::Engine;
use super::wakeup::WakeupSet;

/// The loop turns at least this often, so that clients see it alive.
pub const BEAT_MAX: Span = Span::from_ms(10);

/// Key of the daemon's own doorbell; those of clients have the number of their slot.
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
    wakeups: WakeupSet,
    waker: Waker,
    spin: SpinBudget,
}

impl Loop {
    /// Around `engine`. Where requests follow each other within `spin`, it polls for as long.
    pub fn new(engine: Engine, spin: Span) -> std::io::Result<Self> {
        let (wakeups, doorbell) = (WakeupSet::new()?, Doorbell::new()?);
        wakeups.add(&doorbell, WAKER)?;
        Ok(Self { engine, wakeups, waker: Waker(Arc::new(doorbell)), spin: SpinBudget::new(spin) })
    }

    /// What wakes it.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs until an order stops it.
    pub fn run(mut self) -> Engine {
        self.engine.heart().belongs_here();
        while !self.engine.is_stopped() {
            let wakeups = &self.wakeups;
            let began = clock::now();
            let next = self.engine.turn(began, |endpoint| endpoint.register(wakeups));
            let now = clock::now();
            self.engine.took(now.since(began));
            if let Some(spin) = self.engine.take_spin() {
                self.spin = SpinBudget::new(spin);
            }
            let latest = now + BEAT_MAX;
            if self.wait(now, next.map_or(latest, |next| next.min(latest))) {
                self.spin.waited(clock::now().since(now));
            }
        }
        self.engine
    }

    /// Waits for work, until `until` at the latest; returns whether there is work.
    fn wait(&mut self, mut now: Time, until: Time) -> bool {
        let sleep_from = until.min(now + self.spin.limit());
        loop {
            if self.engine.has_work() {
                return true;
            }
            if now >= sleep_from {
                break;
            }
            std::hint::spin_loop();
            now = clock::now();
        }
        loop {
            // Requests that were taken while polling rang, too; they are no reason to turn again.
            let rang = self.wakeups.wait(until.since(now));
            now = clock::now();
            let apps = rang.filter_map(|key| u32::try_from(key).ok());
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
