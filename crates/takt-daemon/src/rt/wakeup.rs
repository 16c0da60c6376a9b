//! Where the scheduling loop hears doorbells.
//!
//! A client keeps its end of its doorbell for as long as it likes, also when it was let go and
//! somebody else has its slot. So a doorbell is not heard any more from the moment its seat leaves
//! the loop: nobody is woken by it, and nobody else is blamed for it.

use std::io::Result;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::time::Timespec;
use takt_core::Span;

/// Most doorbells that are heard at once; the rest is heard next.
const HEARD_MAX: usize = 16;

/// Hears doorbells.
#[derive(Clone, Debug)]
pub struct Ear(Arc<OwnedFd>);

impl Ear {
    /// Hears nothing so far.
    pub fn new() -> Result<Self> {
        Ok(Self(Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?)))
    }

    /// Wakes up whenever `doorbell` rings again; it need not be silenced.
    pub fn listen(&self, doorbell: impl AsFd, whose: u64) -> Result<()> {
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        Ok(epoll::add(&*self.0, doorbell, epoll::EventData::new_u64(whose), flags)?)
    }

    /// Does not hear `doorbell` any more, not even if it has rung already.
    pub fn forget(&self, doorbell: impl AsFd) -> Result<()> {
        Ok(epoll::delete(&*self.0, doorbell)?)
    }

    /// Sleeps until something rings, for `span` at most; whose doorbells did. Interrupted or not: it
    /// is the caller's to look at everything.
    pub fn wait(&self, span: Span) -> impl Iterator<Item = u64> {
        let silence = epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut heard = [silence; HEARD_MAX];
        let rang = epoll::wait(&*self.0, &mut heard, Some(&timespec(span))).unwrap_or_default();
        heard.into_iter().take(rang).map(|event| event.data.u64())
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
    use crate::rt::endpoint::Seat;
    use crate::rt::engine::{Engine, Order};
    use takt_core::{AppId, AppParams, Config, Priority, Service, Stride, Time};
    use takt_ipc::wake::Doorbell;

    #[test]
    fn whoever_has_left_rings_in_vain() {
        let policy = takt_policies::by_name("fifo").expect("there");
        let (mut engine, mut office) = Engine::new(Config::default(), policy).expect("an engine");
        let ear = Ear::new().expect("an ear");
        let (seat, ends) = Seat::new(AppId(3)).expect("shared memory");
        let params = AppParams {
            priority: Priority(1),
            stride: Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: Service::default(),
        };
        let doorbell = Doorbell::from_fd(ends.doorbell);
        let heard = || ear.wait(Span::ZERO).collect::<Vec<u64>>();
        let join = Order::Join { seat: Box::new(seat), params, max_slice: Span::FOREVER };
        office.orders.push(join).expect("room");
        engine.turn(Time::from_us(1), |seat| seat.heard_by(&ear));
        doorbell.ring();
        assert_eq!(heard(), [3]);
        doorbell.ring();
        office.orders.push(Order::Leave { app: AppId(3) }).expect("room");
        engine.turn(Time::from_us(2), |_| {});
        assert!(heard().is_empty(), "it rang before");
        doorbell.ring();
        assert!(heard().is_empty(), "it has its end still");
    }
}
