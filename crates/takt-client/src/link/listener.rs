//! Waiting for replies, and for signs that none will come.

use std::sync::Arc;
use std::time::Duration;

use takt_core::{Span, Time};

use super::suspicion::{BETWEEN, Look};
use takt_ipc::Reply;
use takt_ipc::client::{Broken, Receiver};
use takt_ipc::socket::Connection;
use takt_os::clock;
use takt_os::process::{can_run, thread_state};

/// The daemon beats every 10 ms. If it has been silent for longer, and the system says that it
/// cannot run, we go on without it: with the nap of the listening thread, that is one frame at 60 Hz.
const SUSPICIOUS: Span = Span::from_ms(11);

/// A thread that sleeps until there is a reply.
pub(crate) struct Listener {
    pub(super) receiver: Receiver,
    /// The first look at a daemon that is silent.
    pub(super) first: Option<Look>,
    pub(super) connection: Arc<Connection>,
    /// Its process.
    pub(super) daemon: u32,
    /// The connection that it listens to.
    pub(super) life: u64,
    /// How long the daemon may be silent before we go on without it, whatever the system says: it may
    /// be late where a machine is busy.
    pub(super) silence: Span,
}

/// What came of listening.
pub(crate) enum Heard {
    Replies(Vec<Reply>),
    /// The daemon writes nonsense.
    Nonsense(Broken),
    /// The daemon is gone.
    Gone,
    /// The daemon was stopped.
    Stopped,
    /// The daemon does something else, or nothing, and will not answer.
    Hangs,
    /// The daemon has not been alive for too long.
    Silence(Span),
}

impl Listener {
    /// Waits for replies: spins for `spin`, then sleeps for `nap` at most.
    pub(crate) fn listen(&mut self, nap: Duration, spin: Duration) -> Heard {
        if spin.is_zero() || !self.receiver.spin(spin) {
            self.receiver.sleep(nap.min(self.until_next_look()));
        }
        self.look()
    }

    /// Takes the replies that are there; if there are none, finds out why.
    pub(crate) fn look(&mut self) -> Heard {
        match self.take() {
            Heard::Replies(replies) if replies.is_empty() => self.look_around(),
            heard => heard,
        }
    }

    /// Takes the replies that are there, if any.
    pub(crate) fn take(&mut self) -> Heard {
        let mut replies = Vec::new();
        loop {
            match self.receiver.next_reply() {
                Ok(Some(reply)) => replies.push(reply),
                Ok(None) => break,
                Err(broken) => return Heard::Nonsense(broken),
            }
        }
        Heard::Replies(replies)
    }

    /// When to look around at the latest.
    fn until_next_look(&self) -> Duration {
        let silent = self.receiver.pulse().silent_for(clock::now());
        // A moment later it is longer than that.
        let until = SUSPICIOUS.saturating_sub(silent) + Span::from_us(50);
        Duration::from_nanos(if silent > SUSPICIOUS { BETWEEN } else { until }.as_ns())
    }

    /// Why nothing came.
    fn look_around(&mut self) -> Heard {
        let now = clock::now();
        let silent = self.receiver.pulse().silent_for(now);
        if self.connection.is_hung_up() {
            Heard::Gone
        } else if silent <= SUSPICIOUS {
            Heard::Replies(Vec::new())
        } else if !can_run(self.daemon) {
            Heard::Stopped
        } else if self.hangs(now) {
            Heard::Hangs
        } else if silent > self.silence {
            Heard::Silence(silent)
        } else {
            Heard::Replies(Vec::new())
        }
    }

    /// Whether the daemon hangs, by this look and one before.
    fn hangs(&mut self, now: Time) -> bool {
        let pulse = self.receiver.pulse();
        let (beat, thread) = (pulse.last(), pulse.thread());
        let look = Look { at: now, beat, doing: thread.and_then(|thread| thread_state(self.daemon, thread)) };
        let first = *self.first.get_or_insert(look);
        if !look.is_too_early(&first) {
            self.first = Some(look);
        }
        look.hangs(&first)
    }
}
