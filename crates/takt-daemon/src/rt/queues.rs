//! The two bounded queues between the scheduling loop and the rest of the daemon.

use rtrb::{Consumer, Producer, RingBuffer};
use takt_core::belief::Uncut;
use takt_core::policy::Policy;
use takt_core::{Adjustable, AppId, AppParams, DisplayId, Estimate, Refresh, Span, Stats, Time};
use takt_ipc::{Command, Standing};
use takt_trace::Record;

use super::endpoint::{Endpoint, Fault};

/// Orders that may wait for the loop.
const ORDERS_MAX: usize = 256;
/// Notes that may wait to be read. At a million decisions per second, tens of milliseconds.
const NOTES_MAX: usize = 1 << 16;
/// Slots in that queue that records may not fill: they are kept for clients that leave.
pub(super) const NOTES_SPARE: usize = 1 << 12;

/// What the rest of the daemon has the loop do.
#[derive(Debug)]
pub enum Order {
    /// A client takes its slot.
    Join {
        /// The client.
        endpoint: Box<Endpoint>,
        /// The parameters that it was admitted with.
        params: AppParams,
        /// Longest group it may form.
        max_slice: Span,
    },
    /// A client gets other parameters.
    Change {
        /// Which client.
        app: AppId,
        /// All parameters.
        params: AppParams,
    },
    /// A client gets other limits.
    Limit {
        /// Which client.
        app: AppId,
        /// Longest group it may form.
        max_slice: Span,
        /// How it stands, but for what the core and the statements say: whether it is protected, and guaranteed.
        standing: Standing,
        /// What becomes of its work that cannot be cut and fits nowhere.
        uncut: Uncut,
    },
    /// The deadlines of a client are guaranteed now, or not any more.
    Guarantee {
        /// Which client.
        app: AppId,
        /// Whether they are.
        guaranteed: bool,
    },
    /// A client is granted nothing from now on; what waits already is still granted.
    Pause {
        /// Which client.
        app: AppId,
    },
    /// A paused client goes on.
    Resume {
        /// Which client.
        app: AppId,
        /// All parameters.
        params: AppParams,
    },
    /// A client closed its connection or is removed.
    Leave {
        /// Which client.
        app: AppId,
    },
    /// Another policy decides from now on.
    Policy(Box<dyn Policy>),
    /// Another app has the focus.
    Focus(Option<AppId>),
    /// A display refreshes on another grid.
    Refresh {
        /// Which display.
        display: DisplayId,
        /// Its grid.
        grid: Refresh,
    },
    /// Parameters of the core change.
    Adjust(Adjustable),
    /// Where requests follow each other within this time, the loop polls instead of sleeping.
    Spin(Span),
    /// The server of a minimum share, or none any more. It is an app of the core without a client.
    Share {
        /// Its slot, which no client has.
        app: AppId,
        /// All parameters; none if there is no such share any more.
        params: Option<AppParams>,
    },
    /// Report the counters.
    Count,
    /// The loop ends.
    Stop,
}

/// What the loop reports to the rest of the daemon.
#[derive(Debug)]
pub enum Note {
    /// Something happened.
    Record(Time, Record),
    /// A client left the loop. Its memory comes along, to be freed outside of the loop.
    Gone {
        /// The client.
        endpoint: Box<Endpoint>,
        /// The rule that it broke, if it was evicted.
        fault: Option<Fault>,
    },
    /// Whether the contract of a client is covered: after a join, after a change, and when it differs.
    Protected {
        /// Which client.
        app: AppId,
        /// Whether it is covered.
        protected: bool,
    },
    /// Work of a client cannot be cut and has fitted nowhere for long.
    Stuck {
        /// Which client.
        app: AppId,
        /// How long it is predicted to take.
        estimate: Estimate,
    },
    /// What a client said about its work that is stuck.
    Named {
        /// Which client.
        app: AppId,
        /// What it calls.
        command: Command,
    },
    /// A policy that was replaced, to be freed outside of the loop.
    Replaced(Box<dyn Policy>),
    /// The core's counters since the start.
    Counted(Stats),
    /// The loop's own counters since the start.
    Turned(LoopStats),
}

/// The loop's own counters.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LoopStats {
    /// Turns.
    pub turns: u64,
    /// Time spent in them.
    pub busy: Span,
    /// The longest one.
    pub longest: Span,
    /// Notes that were dropped because the queue was full.
    pub dropped: u64,
}

/// The daemon's ends of the queues.
#[derive(Debug)]
pub struct LoopQueues {
    /// Orders to the loop.
    pub orders: Producer<Order>,
    /// Notes from the loop.
    pub notes: Consumer<Note>,
}

impl LoopQueues {
    /// The daemon's ends, and those of the loop.
    pub(super) fn new() -> (Self, Consumer<Order>, Producer<Note>) {
        let (orders, orders_out) = RingBuffer::new(ORDERS_MAX);
        let (notes_in, notes) = RingBuffer::new(NOTES_MAX);
        (Self { orders, notes }, orders_out, notes_in)
    }
}
