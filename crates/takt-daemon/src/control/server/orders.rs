//! Orders on their way to the scheduling loop.
//!
//! The queue to the loop is short, and each turn of the loop empties it. Orders that do not fit wait
//! here: a lost order would leave the list and the core at odds for good, and a welcomed app without
//! the grant that it waits for.

use std::collections::VecDeque;

use rtrb::{Producer, PushError};

use crate::rt::queues::Order;
use crate::rt::thread::Waker;

/// Orders that may wait. All apps together give fewer than this in a second, whatever they do.
const WAITING_MAX: usize = 4096;

/// Orders to the loop.
#[derive(Debug)]
pub(super) struct Orders {
    queue: Producer<Order>,
    waiting: VecDeque<Order>,
    waker: Waker,
}

impl Orders {
    pub(super) fn new(queue: Producer<Order>, waker: Waker) -> Self {
        Self { queue, waiting: VecDeque::new(), waker }
    }

    /// Gives the loop an order, after all those before.
    pub(super) fn give(&mut self, order: Order) {
        self.waiting.push_back(order);
        self.send();
    }

    /// Sends waiting orders as far as there is room; returns whether none waits any more.
    pub(super) fn send(&mut self) -> bool {
        let before = self.waiting.len();
        while let Some(order) = self.waiting.pop_front() {
            if let Err(PushError::Full(order)) = self.queue.push(order) {
                self.waiting.push_front(order);
                break;
            }
        }
        if self.waiting.len() < before {
            self.waker.wake();
        }
        self.waiting.is_empty()
    }

    /// Asks for the counters, which come with the loop's next beat, unless another order is on its way.
    pub(super) fn count(&mut self) {
        if self.waiting.is_empty() && self.queue.slots() == self.queue.buffer().capacity() {
            let pushed = self.queue.push(Order::Count);
            debug_assert!(pushed.is_ok(), "it is empty");
        }
    }

    /// Whether so many wait that the loop cannot be alive.
    pub(super) fn are_stuck(&self) -> bool {
        self.waiting.len() > WAITING_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt::engine::Engine;
    use crate::rt::thread::Loop;
    use takt_core::{AppId, Config, Span};

    #[test]
    fn orders_wait_and_arrive_in_order() {
        let policy = takt_policies::by_name("fifo").expect("there");
        let (engine, _) = Engine::new(Config::default(), policy).expect("an engine");
        let waker = Loop::new(engine, Span::ZERO).expect("a loop").waker();
        let (queue, mut taken) = rtrb::RingBuffer::new(4);
        let mut orders = Orders::new(queue, waker);
        (0..20).for_each(|_| orders.count());
        assert_eq!(taken.slots(), 1, "one question is enough");
        let mut counted = 0;
        (0..30).for_each(|app| orders.give(Order::Leave { app: AppId(app) }));
        let mut apps = Vec::new();
        while let Ok(order) = taken.pop() {
            orders.send();
            apps.extend(match order {
                Order::Leave { app } => Some(app.0),
                Order::Count => {
                    counted += 1;
                    None
                }
                other => panic!("{other:?}"),
            });
        }
        assert_eq!((apps, counted), ((0..30).collect::<Vec<u32>>(), 1));
        assert!(!orders.are_stuck());
        (0..5000).for_each(|app| orders.give(Order::Leave { app: AppId(app) }));
        assert!(orders.are_stuck());
    }
}
