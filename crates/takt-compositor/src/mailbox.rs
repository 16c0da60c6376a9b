//! A bounded queue into a thread, with a descriptor that the thread can wait for.
//!
//! Senders never wait: a thread that does not take its messages is told apart by a full queue.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::event::{EventfdFlags, eventfd};

/// The way into a thread.
#[derive(Debug)]
pub struct Sender<T> {
    queue: SyncSender<T>,
    bell: Arc<OwnedFd>,
}

/// The messages of a thread.
#[derive(Debug)]
pub struct Mailbox<T> {
    queue: Receiver<T>,
    bell: Arc<OwnedFd>,
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsent {
    /// The queue is full.
    #[error("the queue is full")]
    Full,
    /// The thread has ended.
    #[error("the thread has ended")]
    Gone,
}

/// A queue of `bound` messages.
pub fn mailbox<T>(bound: usize) -> std::io::Result<(Sender<T>, Mailbox<T>)> {
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = sync_channel(bound);
    Ok((Sender { queue: sender, bell: Arc::clone(&bell) }, Mailbox { queue: receiver, bell }))
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), bell: Arc::clone(&self.bell) }
    }
}

impl<T> Sender<T> {
    /// Puts a message into the queue.
    pub fn send(&self, message: T) -> Result<(), Unsent> {
        self.offer(message).map_err(|(unsent, _)| unsent)
    }

    /// The same, and the message comes back if there is no room.
    pub fn offer(&self, message: T) -> Result<(), (Unsent, T)> {
        self.queue.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) => (Unsent::Full, message),
            TrySendError::Disconnected(message) => (Unsent::Gone, message),
        })?;
        // It fails only if it was rung very often and never heard, and then it rings still.
        rustix::io::write(&self.bell, &1u64.to_ne_bytes()).unwrap_or_default();
        Ok(())
    }
}

impl<T> Mailbox<T> {
    /// The next message.
    pub fn take(&self) -> Option<T> {
        self.queue.try_recv().ok()
    }

    /// The bell was heard: it rings again for later messages. Call it before the last [`Self::take`].
    pub fn heard(&self) {
        // Nothing to read means that it did not ring.
        rustix::io::read(&self.bell, &mut [0u8; 8]).unwrap_or_default();
    }
}

impl<T> AsFd for Mailbox<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn rings(mailbox: &Mailbox<u32>) -> bool {
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(mailbox, PollFlags::IN)], Some(&now)) == Ok(1)
    }

    #[test]
    fn messages_ring_until_they_are_heard() {
        let (sender, mailbox) = mailbox(2).expect("made");
        assert!(!rings(&mailbox));
        assert_eq!((sender.send(1), sender.clone().send(2)), (Ok(()), Ok(())));
        assert_eq!(sender.send(3), Err(Unsent::Full));
        assert!(rings(&mailbox));
        mailbox.heard();
        assert_eq!((mailbox.take(), mailbox.take(), mailbox.take()), (Some(1), Some(2), None));
        assert!(!rings(&mailbox));
        drop(mailbox);
        assert_eq!(sender.send(4), Err(Unsent::Gone));
    }
}
