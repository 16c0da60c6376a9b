//! The scheduling loop on a thread of its own.

use std::sync::Arc;

use takt_core::{AppId, Span, Time};
use takt_ipc::spin::SpinBudget;
use takt_ipc::wake::Doorbell;
use takt_os::clock;

use crate::rt::engine::Engine;
use crate::rt::wakeup::Ear;

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
    ear: Ear,
    waker: Waker,
    spin: SpinBudget,
}

impl Loop {
    /// Around `engine`. Where requests follow each other within `spin`, it stays awake for as long.
    pub fn new(engine: Engine, spin: Span) -> std::io::Result<Self> {
        let (ear, doorbell) = (Ear::new()?, Doorbell::new()?);
        ear.listen(&doorbell, WAKER)?;
        Ok(Self { engine, ear, waker: Waker(Arc::new(doorbell)), spin: SpinBudget::new(spin) })
    }

    /// What wakes it.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Runs until told to stop.
    pub fn run(mut self) -> Engine {
        self.engine.heart().belongs_here();
        while !self.engine.is_stopped() {
            let ear = &self.ear;
            let began = clock::now();
            let next = self.engine.turn(began, |seat| seat.heard_by(ear));
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

    /// Waits until there is something to do, or until then; says whether there is.
    fn wait(&mut self, mut now: Time, until: Time) -> bool {
        let asleep_from = until.min(now + self.spin.limit());
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
        loop {
            // What was taken while awake has rung, too, and is no reason to turn.
            let rang = self.ear.wait(until.since(now));
            now = clock::now();
            let apps = rang.filter_map(|whose| u32::try_from(whose).ok());
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
