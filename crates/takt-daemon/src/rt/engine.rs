//! One turn of the scheduling loop.
//!
//! A turn takes what is known to have happened, lets the core decide and tells clients the result.
//! It neither allocates nor locks nor waits; what the outside is to know leaves through a bounded
//! queue, and what does not fit there is counted. Clients that are let go leave through the same
//! queue, so that their memory is given back elsewhere.

use rtrb::{Consumer, Producer, PushError, RingBuffer};
use takt_core::policy::Policy;
use takt_core::{
    Action, Adjustable, AppId, AppParams, Config, Cost, DisplayId, Event, LostBy, Refresh, Refusal,
    Scheduler, Span, Stats, Time,
};
use takt_ipc::Reply;
use takt_ipc::beat::Heart;
use takt_trace::Record;

use crate::rt::endpoint::{Fault, REQUESTS_PER_TURN, Seat, local};

/// Orders that may wait for the loop.
const ORDERS_MAX: usize = 256;
/// Notes that may wait to be read. At a million decisions per second, tens of milliseconds.
const NOTES_MAX: usize = 1 << 16;
/// Places in that queue that are kept for clients that are let go.
const NOTES_SPARE: usize = 1 << 12;

/// What the loop is told to do by the rest of the daemon.
#[derive(Debug)]
pub enum Order {
    /// A client takes its seat.
    Join {
        /// The client.
        seat: Box<Seat>,
        /// What it was admitted with.
        params: AppParams,
        /// Longest group it may form.
        max_slice: Span,
    },
    /// A client gets other parameters.
    Change {
        /// Who.
        app: AppId,
        /// All of them.
        params: AppParams,
    },
    /// A client gets another limit for its groups.
    Limit {
        /// Who.
        app: AppId,
        /// Longest group it may form.
        max_slice: Span,
    },
    /// A client waits for its release after a swap from now on, or does not any more.
    Pace {
        /// Who.
        app: AppId,
        /// Whether it waits.
        paced: bool,
    },
    /// A client is gone or has to go.
    Leave {
        /// Who.
        app: AppId,
    },
    /// Another policy decides from now on.
    Policy(Box<dyn Policy>),
    /// The focus is elsewhere.
    Focus(Option<AppId>),
    /// A display refreshes on another grid.
    Refresh {
        /// Which one.
        display: DisplayId,
        /// When.
        grid: Refresh,
    },
    /// Parameters of the core change.
    Adjust(Adjustable),
    /// Where requests follow each other that soon, the loop stays awake for the next one.
    Spin(Span),
    /// Tell the core's counters.
    Count,
    /// The loop ends.
    Stop,
}

/// What the loop tells the rest of the daemon.
#[derive(Debug)]
pub enum Note {
    /// Something happened.
    Record(Time, Record),
    /// A client left the loop; its memory goes with this.
    Gone {
        /// The client.
        seat: Box<Seat>,
        /// What it did wrong, if anything.
        fault: Option<Fault>,
    },
    /// Whether the contract of a client is covered: after it came or changed, and whenever that is another.
    Protected {
        /// Who.
        app: AppId,
        /// Whether it is.
        protected: bool,
    },
    /// A policy that was replaced.
    Replaced(Box<dyn Policy>),
    /// The core's counters since the start.
    Counted(Stats),
    /// What the loop itself did since the start.
    Turned(Turns),
}

/// What the loop itself did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Turns {
    /// Turns.
    pub count: u64,
    /// Time spent in them.
    pub busy: Span,
    /// The longest one.
    pub longest: Span,
    /// Notes that nobody read in time.
    pub untold: u64,
}

/// The daemon's end of the loop.
#[derive(Debug)]
pub struct Office {
    /// Orders to the loop.
    pub orders: Producer<Order>,
    /// Notes from the loop.
    pub notes: Consumer<Note>,
}

/// A turn that is later than this tells that the loop stood still.
const STOOD_STILL: Span = Span::from_ms(100);

/// The scheduling loop, one turn at a time.
#[derive(Debug)]
pub struct Engine {
    scheduler: Scheduler,
    seats: Vec<Option<Box<Seat>>>,
    heart: Heart,
    orders: Consumer<Order>,
    notes: Producer<Note>,
    turns: Turns,
    /// Records missing since the last one that was told.
    gap: u64,
    /// How long it is to stay awake from now on.
    spin: Option<Span>,
    /// When it wanted its next turn at the latest.
    due: Option<Time>,
    /// Contracts may be covered now that were not, or the other way round.
    judges: bool,
    stopped: bool,
}

impl Engine {
    /// A loop without clients, and the other ends of its queues.
    pub fn new(config: Config, policy: Box<dyn Policy>) -> std::io::Result<(Self, Office)> {
        let scheduler = Scheduler::new(config, policy);
        let (orders, orders_out) = RingBuffer::new(ORDERS_MAX);
        let (notes_in, notes) = RingBuffer::new(NOTES_MAX);
        let seats = (0..scheduler.config().apps_max).map(|_| None).collect();
        let engine = Self {
            scheduler,
            seats,
            heart: Heart::new()?,
            orders: orders_out,
            notes: notes_in,
            turns: Turns::default(),
            gap: 0,
            spin: None,
            due: None,
            judges: false,
            stopped: false,
        };
        Ok((engine, Office { orders, notes }))
    }

    /// The page on which clients see that the loop turns.
    pub fn heart(&self) -> &Heart {
        &self.heart
    }

    /// The client at a slot.
    pub fn seat(&self, app: AppId) -> Option<&Seat> {
        self.seats.get(app.index())?.as_deref()
    }

    /// The core.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Notes that nobody read in time.
    pub fn untold(&self) -> u64 {
        self.turns.untold
    }

    /// The last turn took that long.
    pub fn took(&mut self, span: Span) {
        self.turns.busy += span;
        self.turns.longest = self.turns.longest.max(span);
    }

    /// How long the loop was told to stay awake, once after it was told.
    pub fn take_spin(&mut self) -> Option<Span> {
        self.spin.take()
    }

    /// Whether the loop was told to end.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether somebody has asked for something that no turn has seen yet.
    pub fn has_work(&self) -> bool {
        !self.orders.is_empty() || self.seats.iter().flatten().any(|seat| seat.has_requests())
    }

    /// The doorbell of the client at a slot rang; says whether it is let go for that.
    pub fn rang(&mut self, now: Time, app: AppId) -> bool {
        let Some(Err(fault)) = self.seat_mut(app).map(|seat| seat.rang(now)) else {
            return false;
        };
        self.dismiss(now, app, Some(fault));
        true
    }

    /// Does all there is to do at `now`; returns when to come back at the latest. `joined` is
    /// called with each client that takes its seat, to listen to its doorbell.
    pub fn turn(&mut self, now: Time, mut joined: impl FnMut(&mut Seat)) -> Option<Time> {
        self.heart.beat(now);
        self.turns.count += 1;
        self.catch_up(now);
        // What the core is asked, and when, is told in full, so that it can be asked again.
        self.note(now, Record::Turn);
        self.drive(now, |core| core.handle_timeout(now));
        while let Ok(order) = self.orders.pop() {
            self.obey(now, order, &mut joined);
        }
        for slot in 0..self.seats.len() {
            self.listen(now, slot);
            let revised = self.seats[slot].as_mut().and_then(|seat| seat.revised(now));
            if let Some(event) = revised {
                self.tell_core(now, event);
            }
        }
        while let Some(action) = self.scheduler.poll_action() {
            self.note(now, Record::Out(action));
            self.act(now, action);
        }
        self.tell_who_is_protected(now);
        for seat in self.seats.iter_mut().flatten() {
            seat.wake();
        }
        self.due = self.scheduler.poll_timeout();
        self.due
    }

    /// Where the loop stood still, because it was stopped or its machine was, clients have reported in time
    /// what nobody read. That counts as of when this turn was due, or the core would give it up first.
    fn catch_up(&mut self, now: Time) {
        if let Some(due) = self.due.filter(|due| now.since(*due) > STOOD_STILL) {
            (0..self.seats.len()).for_each(|slot| self.listen(due, slot));
        }
    }

    fn obey(&mut self, now: Time, order: Order, joined: &mut impl FnMut(&mut Seat)) {
        match order {
            Order::Join { mut seat, params, max_slice } => {
                let app = seat.app;
                let free = self.scheduler.broken().is_some();
                let vacant = self.seats.get_mut(app.index()).filter(|place| place.is_none() && !free);
                let Some(place) = vacant else {
                    return self.let_go(seat, None);
                };
                joined(&mut seat);
                let seat = place.insert(seat);
                seat.change(params.etpf);
                seat.max_slice = max_slice;
                self.tell_who_is_alone();
                self.inform(now, app);
                self.tell_core(now, Event::Join { app, params, phase: 0 });
            }
            Order::Change { app, params } => {
                if let Some(seat) = self.seat_mut(app) {
                    seat.change(params.etpf);
                }
                self.tell_core(now, Event::Change { app, params });
            }
            Order::Limit { app, max_slice } => {
                if let Some(seat) = self.seat_mut(app) {
                    seat.max_slice = max_slice;
                }
                self.inform(now, app);
            }
            Order::Pace { app, paced } => {
                if let Some(seat) = self.seat_mut(app) {
                    seat.standing.paced = paced;
                }
                self.inform(now, app);
            }
            Order::Leave { app } => self.dismiss(now, app, None),
            Order::Focus(app) => self.tell_core(now, Event::Focus { app }),
            Order::Refresh { display, grid } => {
                self.tell_core(now, Event::Refresh { display, refresh: grid });
            }
            Order::Adjust(adjustable) => self.tell_core(now, Event::Adjust(adjustable)),
            Order::Spin(spin) => self.spin = Some(spin),
            Order::Policy(policy) => {
                self.note(now, Record::Policy(policy.name()));
                let before = self.scheduler.replace_policy(policy);
                self.leave_behind(Note::Replaced(before));
            }
            Order::Count => {
                self.leave_behind(Note::Counted(self.scheduler.stats()));
                self.leave_behind(Note::Turned(self.turns));
            }
            Order::Stop => self.stopped = true,
        }
    }

    /// Takes a client's requests.
    fn listen(&mut self, now: Time, slot: usize) {
        for _ in 0..REQUESTS_PER_TURN {
            let Some(seat) = &mut self.seats[slot] else {
                return;
            };
            match seat.next_event(now) {
                Ok(Some(event)) => self.tell_core(now, event),
                Ok(None) => return,
                Err(fault) => {
                    let app = seat.app;
                    return self.dismiss(now, app, Some(fault));
                }
            }
        }
    }

    /// Does what the core decided.
    fn act(&mut self, now: Time, action: Action) {
        match action {
            Action::Dispatch { app, group, reserved, .. } => {
                // What it could not be told before.
                self.inform(now, app);
                // What was added for errors is not for more commands.
                let credit = self.scheduler.config().margins.predicted_within(reserved);
                match self.seat_mut(app).map(|seat| seat.grant(now, group, credit)) {
                    Some(Ok(())) => {}
                    Some(Err(fault)) => self.dismiss(now, app, Some(fault)),
                    // Decided before its owner was let go, a moment ago: the place is free.
                    None => {
                        self.tell_core(
                            now,
                            Event::Complete { group, finished: now, cost: Cost::default(), frames: 0 },
                        );
                    }
                }
            }
            Action::Release { app, at } => self.tell_client(now, app, Reply::Release { at }),
            Action::Refused { app, reason: Refusal::QueueFull | Refusal::TooManyFrames, .. } => {
                self.dismiss(now, app, Some(Fault::TooMany));
            }
            Action::Lost { app, group, by: LostBy::Timeout } => {
                self.dismiss(now, app, Some(Fault::Stuck(local(group).0)));
            }
            Action::Left { app, .. } => self.dismiss(now, app, None),
            Action::Hold { app, reason } => {
                if let Some(seat) = self.seat_mut(app) {
                    seat.held(reason);
                }
            }
            // Every client goes on unscheduled, as if the daemon ended.
            Action::Broken(_) => {
                (0..self.scheduler.config().apps_max).for_each(|slot| self.dismiss(now, AppId(slot), None));
            }
            Action::Refused { .. }
            | Action::Lost { .. }
            | Action::Preempt { .. }
            | Action::Ranked { .. }
            | Action::Missed { .. }
            | Action::FrameDone(_) => {}
        }
    }

    /// A client leaves the loop: nothing of it stays behind.
    fn dismiss(&mut self, now: Time, app: AppId, fault: Option<Fault>) {
        let Some(mut seat) = self.seats.get_mut(app.index()).and_then(Option::take) else {
            return;
        };
        seat.unheard();
        self.judges = true;
        self.tell_who_is_alone();
        // Its places on the GPU are free for others at once.
        while let Some(group) = seat.take_granted() {
            self.tell_core(now, Event::Complete { group, finished: now, cost: Cost::default(), frames: 0 });
        }
        if self.scheduler.lanes().iter().any(|lane| lane.app == app) {
            self.tell_core(now, Event::Leave { app });
        }
        // One that does not read will notice by its own means.
        if seat.tell(Reply::Farewell).is_ok() {
            seat.wake();
        }
        self.let_go(seat, fault);
    }

    /// Tells a client how it stands, and how long groups may be.
    fn inform(&mut self, now: Time, app: AppId) {
        if let Some(Err(fault)) = self.seat_mut(app).map(Seat::inform) {
            self.dismiss(now, app, Some(fault));
        }
    }

    /// Lets clients see whether they are alone. Who is alone is in nobody's way: longer groups cost it
    /// less, and somebody who comes waits for what it has handed over, once.
    fn tell_who_is_alone(&self) {
        let alone = self.seats.iter().flatten().nth(1).is_none();
        self.seats.iter().flatten().for_each(|seat| seat.set_alone(alone));
    }

    /// Tells clients and the daemon whose contracts are covered, where that is news to them.
    fn tell_who_is_protected(&mut self, now: Time) {
        if !std::mem::take(&mut self.judges) {
            return;
        }
        for slot in 0..self.seats.len() {
            let Some(app) = self.seats[slot].as_ref().map(|seat| seat.app) else {
                continue;
            };
            let lane = self.scheduler.lanes().iter().find(|lane| lane.app == app);
            let protected = lane.is_some_and(|lane| lane.protected);
            if self.seat_mut(app).is_some_and(|seat| seat.judge(protected)) {
                self.inform(now, app);
                self.leave_behind(Note::Protected { app, protected });
            }
        }
    }

    fn let_go(&mut self, seat: Box<Seat>, fault: Option<Fault>) {
        self.leave_behind(Note::Gone { seat, fault });
    }

    /// Hands something over that must not be freed here. There is room for it unless nobody has
    /// read for so long that freeing it here is the smaller evil.
    fn leave_behind(&mut self, note: Note) {
        if let Err(PushError::Full(note)) = self.notes.push(note) {
            self.turns.untold += 1;
            drop(note);
        }
    }

    fn tell_client(&mut self, now: Time, app: AppId, reply: Reply) {
        if let Some(Err(fault)) = self.seat_mut(app).map(|seat| seat.tell(reply)) {
            self.dismiss(now, app, Some(fault));
        }
    }

    fn tell_core(&mut self, now: Time, event: Event) {
        let same = matches!(
            event,
            Event::Submit { .. } | Event::EndFrame { .. } | Event::Complete { .. } | Event::Revise { .. }
        );
        self.judges |= !same;
        self.note(now, Record::In(event));
        self.drive(now, |core| core.handle_event(now, event));
    }

    /// Time may pass for the core while it is told something.
    fn drive(&mut self, now: Time, tell: impl FnOnce(&mut Scheduler)) {
        let before = self.scheduler.current_period();
        tell(&mut self.scheduler);
        let period = self.scheduler.current_period();
        if period != before {
            self.note(now, Record::Vsync(period));
        }
    }

    fn note(&mut self, now: Time, record: Record) {
        // Also for the gap that is told first.
        if self.notes.slots() <= NOTES_SPARE + 1 {
            self.turns.untold += 1;
            self.gap += 1;
            return;
        }
        let gap = std::mem::take(&mut self.gap);
        if gap > 0 {
            self.push(now, Record::Gap { records: gap });
        }
        self.push(now, record);
    }

    fn push(&mut self, now: Time, record: Record) {
        let told = self.notes.push(Note::Record(now, record));
        debug_assert!(told.is_ok(), "there is room");
    }

    fn seat_mut(&mut self, app: AppId) -> Option<&mut Seat> {
        self.seats.get_mut(app.index())?.as_deref_mut()
    }
}
