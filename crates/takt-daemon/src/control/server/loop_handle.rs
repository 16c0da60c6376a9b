//! The control thread's handle of the scheduling loop.

use std::io::{Error, Result};
use std::os::fd::{AsFd, OwnedFd};
use std::thread::JoinHandle;

use rtrb::Consumer;
use takt_core::policy::Policy;
use takt_core::{Config, Span, Stats};
use takt_ipc::beat::Pulse;
use takt_ipc::frame_page::FramePage;
use takt_os::clock;

use super::orders::Orders;
use crate::control::config::Settings;
use crate::control::cpu_latency::CpuLatency;
use crate::rt::engine::Engine;
use crate::rt::queues::{LoopStats, Note, Order};
use crate::rt::realtime::{self, Denied};
use crate::rt::thread::Loop;

/// The running loop; dropping it ends the loop.
#[derive(Debug)]
pub(super) struct LoopHandle {
    pub(super) orders: Orders,
    pub(super) notes: Consumer<Note>,
    /// The page on which clients see that the loop turns.
    pub(super) heart: OwnedFd,
    /// The page on which the loop shows finished frames.
    pub(super) frames: FramePage,
    /// Privileges that the system denied.
    pub(super) denied: Vec<Denied>,
    /// The core's counters as of the last report.
    pub(super) stats: Stats,
    /// The loop's own.
    pub(super) loop_stats: LoopStats,
    thread: Option<JoinHandle<Engine>>,
}

impl LoopHandle {
    /// Starts the loop on a thread of its own.
    pub(super) fn start(core: Config, policy: Box<dyn Policy>, settings: &Settings) -> Result<Self> {
        let (engine, queues) = Engine::new(core, policy)?;
        let heart = engine.heart().as_fd().try_clone_to_owned()?;
        let frames = engine.frames().clone();
        let scheduling = Loop::new(engine, Span::from_us(settings.loop_spin_us.into()))?;
        let orders = Orders::new(queues.orders, scheduling.waker());
        let processor = settings.processor;
        let (report, reported) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::Builder::new().name("takt-scheduler".to_owned()).spawn(move || {
            // It fails only if the server gave up meanwhile.
            report.send(realtime::claim(processor)).unwrap_or_default();
            scheduling.run()
        })?;
        let mut denied = reported.recv().unwrap_or_default();
        if let Some(error) = settings.wake_us.and_then(|_| CpuLatency::is_allowed().err()) {
            let why = format!("{error}; let the daemon write to /dev/cpu_dma_latency");
            denied.push(Denied { what: "processors that wake up at once", why });
        }
        Ok(Self {
            orders,
            notes: queues.notes,
            heart,
            frames,
            denied,
            stats: Stats::default(),
            loop_stats: LoopStats::default(),
            thread: Some(thread),
        })
    }

    /// For how long the loop has not turned.
    pub(super) fn silent_for(&self) -> Result<Span> {
        Ok(Pulse::open(self.heart.as_fd())?.silent_for(clock::now()))
    }

    /// Fails if the loop has ended or takes no orders.
    pub(super) fn check(&self) -> Result<()> {
        if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
            // A panic has printed its message.
            Err(Error::other("the scheduling loop has ended, and nothing is scheduled any more"))
        } else if self.orders.are_stuck() {
            Err(Error::other("the scheduling loop hangs: it takes no orders any more"))
        } else {
            Ok(())
        }
    }

    /// Ends the loop.
    pub(super) fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.orders.give(Order::Stop);
            // A loop that takes no orders would be waited for without end.
            if self.orders.send() || thread.is_finished() {
                // A panic has printed its message.
                drop(thread.join());
            }
        }
    }
}

impl Drop for LoopHandle {
    fn drop(&mut self) {
        self.end();
    }
}
