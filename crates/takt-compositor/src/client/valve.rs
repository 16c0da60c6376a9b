//! Between a client's socket and the library that speaks Wayland.
//!
//! The library reads as long as there is anything to read, and keeps every descriptor that it is sent. The
//! valve hands over a bounded part at a time, at a bounded rate, and counts descriptors: a client that sends
//! without end waits in its own socket, and one that sends descriptors for nothing is disconnected.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, IoSliceMut, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use takt_core::{Span, Time};

/// Most bytes that are handed over at a time.
const PART: usize = 4096;
/// Most descriptors in one message, as in libwayland.
const DESCRIPTORS: usize = 28;
/// Bytes that a client may send per second in the long run. A client that commits a hundred times per second
/// sends about ten thousand.
const BYTES_PER_SECOND: u64 = 256 * 1024;
/// Bytes that it may send at once.
const BURST: u64 = 1024 * 1024;

/// Both directions of a connection.
#[derive(Debug)]
pub(super) struct Valve {
    client: UnixStream,
    library: UnixStream,
    to_library: Part,
    to_client: Part,
    budget: Budget,
    /// Descriptors that were handed over.
    descriptors: u64,
    /// Whether the client closed its end.
    closed: bool,
}

/// Bytes and descriptors on their way.
#[derive(Debug, Default)]
struct Part {
    bytes: VecDeque<u8>,
    descriptors: Vec<OwnedFd>,
}

/// How much a client may send.
#[derive(Debug)]
struct Budget {
    left: u64,
    at: Time,
}

impl Budget {
    fn refill(&mut self, now: Time) {
        let passed = now.since(self.at).as_ns();
        let more = u128::from(passed) * u128::from(BYTES_PER_SECOND) / 1_000_000_000;
        if more > 0 {
            self.left = self.left.saturating_add(u64::try_from(more).unwrap_or(u64::MAX)).min(BURST);
            self.at = now;
        }
    }
}

impl Valve {
    /// Between a client and the end of a connection that the library has.
    pub(super) fn new(client: UnixStream, library: UnixStream, now: Time) -> Result<Self> {
        client.set_nonblocking(true)?;
        library.set_nonblocking(true)?;
        let (to_library, to_client) = (Part::default(), Part::default());
        let budget = Budget { left: BURST, at: now };
        Ok(Self { client, library, to_library, to_client, budget, descriptors: 0, closed: false })
    }

    /// Descriptors that the library was given.
    pub(super) fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Whether the client is gone and all that it sent was handed over.
    pub(super) fn is_over(&self) -> bool {
        self.closed && self.to_library.is_empty()
    }

    /// Hands a part of what the client sent to the library; says whether there was any.
    pub(super) fn pull(&mut self, now: Time) -> Result<bool> {
        self.budget.refill(now);
        if self.to_library.is_empty() && self.budget.left >= PART as u64 && !self.closed {
            let (bytes, descriptors) = self.to_library.fill(&self.client)?;
            self.closed = bytes == Some(0);
            self.budget.left = self.budget.left.saturating_sub(bytes.unwrap_or_default() as u64);
            self.descriptors += descriptors;
        }
        let some = !self.to_library.is_empty();
        self.to_library.drain(&self.library)?;
        Ok(some)
    }

    /// Whether the client took all that [`Self::push`] found.
    pub(super) fn is_clear(&self) -> bool {
        self.to_client.is_empty()
    }

    /// Hands to the client what the library sent, as far as the client takes it.
    pub(super) fn push(&mut self) -> Result<()> {
        loop {
            if self.to_client.is_empty() && !matches!(self.to_client.fill(&self.library)?.0, Some(1..)) {
                return Ok(());
            }
            self.to_client.drain(&self.client)?;
            if !self.to_client.is_empty() {
                return Ok(());
            }
        }
    }

    /// When there may be something to pull that the budget forbids now.
    pub(super) fn paused_until(&self) -> Option<Time> {
        let missing = (PART as u64).saturating_sub(self.budget.left);
        let wait = Span::from_ns(missing.saturating_mul(1_000_000_000) / BYTES_PER_SECOND);
        (missing > 0).then(|| self.budget.at + wait)
    }

    /// What to wait for, on both sides.
    pub(super) fn interest(&self) -> [(BorrowedFd<'_>, PollFlags); 2] {
        let mut client = PollFlags::empty();
        if self.to_library.is_empty() && self.paused_until().is_none() && !self.closed {
            client |= PollFlags::IN;
        }
        if !self.to_client.is_empty() {
            client |= PollFlags::OUT;
        }
        let library = if self.to_client.is_empty() { PollFlags::IN } else { PollFlags::empty() };
        [(self.client.as_fd(), client), (self.library.as_fd(), library)]
    }
}

impl Part {
    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Receives bytes, none if there are none yet, and descriptors.
    fn fill(&mut self, from: &UnixStream) -> Result<(Option<usize>, u64)> {
        let mut bytes = [0u8; PART];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let received = match recvmsg(from, &mut [IoSliceMut::new(&mut bytes)], &mut ancillary, flags) {
            Ok(received) => received.bytes,
            Err(Errno::AGAIN | Errno::INTR) => return Ok((None, 0)),
            Err(Errno::CONNRESET | Errno::PIPE) => 0,
            Err(error) => return Err(error.into()),
        };
        let before = self.descriptors.len();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                self.descriptors.extend(descriptors);
            }
        }
        self.bytes.extend(&bytes[..received]);
        Ok((Some(received), (self.descriptors.len() - before) as u64))
    }

    /// Sends as much as is taken.
    fn drain(&mut self, to: &UnixStream) -> Result<()> {
        while !self.bytes.is_empty() {
            let (first, second) = self.bytes.as_slices();
            let parts = [IoSlice::new(first), IoSlice::new(second)];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let borrowed: Vec<BorrowedFd<'_>> = self.descriptors.iter().map(AsFd::as_fd).collect();
            if !borrowed.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)) {
                return Err(Error::new(ErrorKind::InvalidData, "too many descriptors in one message"));
            }
            match sendmsg(to, &parts, &mut ancillary, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(sent) => {
                    self.bytes.drain(..sent);
                    self.descriptors.clear();
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    fn ms(ms: u64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }

    fn valve() -> (Valve, UnixStream, UnixStream) {
        let (client, ours) = UnixStream::pair().expect("a pair");
        let (library, inner) = UnixStream::pair().expect("a pair");
        library.set_nonblocking(true).expect("set");
        client.set_nonblocking(true).expect("set");
        (Valve::new(ours, inner, ms(0)).expect("a valve"), client, library)
    }

    #[test]
    fn bytes_and_descriptors_pass_in_both_directions() {
        let (mut valve, mut client, mut library) = valve();
        client.write_all(b"request").expect("sent");
        assert!(valve.pull(ms(1)).expect("pulled") && !valve.pull(ms(1)).expect("nothing"));
        let mut got = [0u8; 16];
        assert_eq!(library.read(&mut got).expect("read"), 7);
        library.write_all(b"event").expect("sent");
        valve.push().expect("pushed");
        assert_eq!(client.read(&mut got).expect("read"), 5);
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let file = rustix::fs::memfd_create("sent", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
        let borrowed = [file.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&borrowed)));
        sendmsg(&client, &[IoSlice::new(b"x")], &mut ancillary, SendFlags::empty()).expect("sent");
        assert!(valve.pull(ms(2)).expect("pulled"));
        assert_eq!(valve.descriptors(), 1);
        drop(client);
        assert!(!valve.pull(ms(3)).expect("nothing") && valve.is_over());
    }

    #[test]
    fn a_flood_waits_in_the_socket_of_its_client() {
        let (mut valve, mut client, mut library) = valve();
        let mut handed = 0;
        let mut buffer = [0u8; PART];
        let mut drain = |library: &mut UnixStream| library.read(&mut buffer).unwrap_or_default() as u64;
        for _ in 0..2_000 {
            // Full buffers are what a flood is about.
            client.write(&[0u8; PART]).unwrap_or_default();
            valve.pull(ms(1)).expect("pulled");
            handed += drain(&mut library);
        }
        assert!((BURST - PART as u64..=BURST).contains(&handed), "{handed}");
        let resumed = valve.paused_until().expect("it is paused");
        assert!(resumed > ms(1) && !valve.interest()[0].1.contains(PollFlags::IN));
        assert!(valve.pull(resumed).expect("pulled"));
        assert_eq!(drain(&mut library), PART as u64);
    }
}
