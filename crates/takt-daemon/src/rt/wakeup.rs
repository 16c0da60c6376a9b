//! What ends the wait of the scheduling loop: the doorbells of clients and of the daemon.
//!
//! A client keeps its end of its doorbell for as long as it likes, even after it was evicted and
//! another client has its slot. So a doorbell leaves the set together with its endpoint: it neither
//! wakes the loop any more nor counts against the next client at that slot.

use std::io::Result;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::time::Timespec;
use takt_core::Span;

/// Most doorbells that one wait returns; the next one returns the rest.
const EVENTS_MAX: usize = 16;

/// The doorbells that wake the loop.
#[derive(Clone, Debug)]
pub struct WakeupSet(Arc<OwnedFd>);

impl WakeupSet {
    /// No doorbells yet.
    pub fn new() -> Result<Self> {
        Ok(Self(Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?)))
    }

    /// From now on `doorbell` ends a wait each time it rings; `key` names it.
    pub fn add(&self, doorbell: impl AsFd, key: u64) -> Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::add(&*self.0, doorbell, epoll::EventData::new_u64(key), flags)?)
    }

    /// Removes `doorbell`, even if it has rung already.
    pub fn remove(&self, doorbell: impl AsFd) -> Result<()> {
        Ok(epoll::delete(&*self.0, doorbell)?)
    }

    /// Sleeps until a doorbell rings, for `span` at most; returns the keys of those that did. A signal
    /// ends the wait as well, so the caller looks for work in any case.
    pub fn wait(&self, span: Span) -> impl Iterator<Item = u64> {
        let none = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [none; EVENTS_MAX];
        let rang = epoll::wait(&*self.0, &mut events, Some(&timespec(span))).unwrap_or_default();
        events.into_iter().take(rang).map(|event| event.data.u64())
    }
}

fn timespec(span: Span) -> Timespec {
    let ns = span.as_ns();
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::endpoint::Endpoint;
    use crate::rt::engine::Engine;
    use crate::rt::queues::Order;
    use takt_core::{AppId, AppParams, Config, Priority, Service, Stride, Time};
    use takt_ipc::wake::Doorbell;

    #[test]
    fn a_client_that_left_wakes_no_loop() {
        let policy = takt_policies::by_name("fifo").expect("there");
        let (mut engine, mut queues) = Engine::new(Config::default(), policy).expect("an engine");
        let wakeups = WakeupSet::new().expect("a set");
        let (endpoint, ends) = Endpoint::new(AppId(3)).expect("shared memory");
        let params = AppParams {
            priority: Priority(1),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let doorbell = Doorbell::from_fd(ends.doorbell);
        let rang = || wakeups.wait(Span::ZERO).collect::<Vec<u64>>();
        let join = Order::Join { endpoint: Box::new(endpoint), params, max_slice: Span::FOREVER };
        queues.orders.push(join).expect("room");
        engine.turn(Time::from_us(1), |endpoint| endpoint.register(&wakeups));
        doorbell.ring();
        assert_eq!(rang(), [3]);
        doorbell.ring();
        queues.orders.push(Order::Leave { app: AppId(3) }).expect("room");
        engine.turn(Time::from_us(2), |_| {});
        assert!(rang().is_empty(), "it rang before");
        doorbell.ring();
        assert!(rang().is_empty(), "it has its end still");
    }
}
