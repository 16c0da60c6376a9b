//! One turn of the scheduling loop.
//!
//! A turn takes the clients' requests, lets the core decide and sends the replies. It takes the time
//! as an argument, and neither allocates nor locks nor waits. Records and clients that leave go out
//! through a bounded queue; records that do not fit are counted, and memory is freed outside.

use rtrb::{Consumer, Producer, PushError};
use takt_core::belief::Stuck;
use takt_core::contract::has_contract;
use takt_core::policy::Policy;
use takt_core::{
    Action, AppId, AppParams, Clock, Config, Cost, Event, GroupId, LostBy, Refusal, Scheduler, Span, Time,
};
use takt_ipc::Reply;
use takt_ipc::beat::Heart;
use takt_ipc::frame_page::FramePage;
use takt_trace::Record;

use super::endpoint::{Endpoint, Fault, REQUESTS_PER_TURN, local};
use super::queues::{LoopQueues, LoopStats, NOTES_SPARE, Note, Order};

/// A turn that is later than this shows that the thread was stopped.
const STOPPED: Span = Span::from_ms(100);

/// Requests of clients without a protected contract that a turn takes, of all together. Grants are written when all
/// requests of a turn are taken, so those of protected clients wait for no more than that, however many apps there are.
const OTHERS_PER_TURN: usize = 2 * REQUESTS_PER_TURN;

/// A frame by an app's own clock may begin this part of a period early.
const EARLY_PARTS: u32 = 4;

/// The scheduling loop, one turn at a time.
#[derive(Debug)]
pub struct Engine {
    scheduler: Scheduler,
    endpoints: Vec<Option<Box<Endpoint>>>,
    heart: Heart,
    frames: FramePage,
    orders: Consumer<Order>,
    notes: Producer<Note>,
    stats: LoopStats,
    /// Records dropped since the last one that fitted.
    gap: u64,
    /// The slot with which taking requests of clients without a protected contract begins.
    next_other: usize,
    /// How long the loop polls before it sleeps, if an order changed that.
    spin: Option<Span>,
    /// The latest time of the next turn, as the core asked for it.
    next_turn: Option<Time>,
    /// A client joined, left or changed, so the coverage of contracts may differ.
    coverage_may_differ: bool,
    stopped: bool,
}

impl Engine {
    /// A loop without clients, and the other ends of its queues.
    pub fn new(config: Config, policy: Box<dyn Policy>) -> std::io::Result<(Self, LoopQueues)> {
        let scheduler = Scheduler::new(config, policy);
        let (queues, orders, notes) = LoopQueues::new();
        let endpoints = (0..scheduler.config().apps_max).map(|_| None).collect();
        let engine = Self {
            scheduler,
            endpoints,
            heart: Heart::new()?,
            frames: FramePage::new()?,
            orders,
            notes,
            stats: LoopStats::default(),
            gap: 0,
            next_other: 0,
            spin: None,
            next_turn: None,
            coverage_may_differ: false,
            stopped: false,
        };
        Ok((engine, queues))
    }

    /// The page on which clients see that the loop turns.
    pub fn heart(&self) -> &Heart {
        &self.heart
    }

    /// The page on which readers see finished frames.
    pub fn frames(&self) -> &FramePage {
        &self.frames
    }

    /// The client at a slot.
    pub fn endpoint(&self, app: AppId) -> Option<&Endpoint> {
        self.endpoints.get(app.index())?.as_deref()
    }

    /// The core.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Notes dropped because the queue was full.
    pub fn dropped(&self) -> u64 {
        self.stats.dropped
    }

    /// The last turn took that long.
    pub fn took(&mut self, span: Span) {
        self.stats.busy += span;
        self.stats.longest = self.stats.longest.max(span);
    }

    /// How long to poll before sleeping, once after an order changed it.
    pub fn take_spin(&mut self) -> Option<Span> {
        self.spin.take()
    }

    /// Whether an order ended the loop.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether an order or a request waits that no turn has taken yet.
    pub fn has_work(&self) -> bool {
        !self.orders.is_empty() || self.endpoints.iter().flatten().any(|endpoint| endpoint.has_requests())
    }

    /// The doorbell of the client at a slot rang; returns whether the client is evicted for that.
    pub fn rang(&mut self, now: Time, app: AppId) -> bool {
        let Some(Err(fault)) = self.endpoint_mut(app).map(|endpoint| endpoint.rang(now)) else {
            return false;
        };
        self.remove(now, app, Some(fault));
        true
    }

    /// Does all there is to do at `now`; returns the latest time of the next turn. `joined` is called
    /// with each client that takes its slot, to register its doorbell.
    pub fn turn(&mut self, now: Time, mut joined: impl FnMut(&mut Endpoint)) -> Option<Time> {
        self.heart.beat(now);
        self.stats.turns += 1;
        self.catch_up(now);
        // Every call of the core is recorded, so that a replay can repeat it.
        self.note(now, Record::Turn);
        self.drive(now, |core| core.handle_timeout(now));
        while let Ok(order) = self.orders.pop() {
            self.obey(now, order, &mut joined);
        }
        self.serve_clients(now);
        while let Some(action) = self.scheduler.poll_action() {
            self.note(now, Record::Out(action));
            self.act(now, action);
        }
        self.report_protection(now);
        for endpoint in self.endpoints.iter_mut().flatten() {
            endpoint.wake();
        }
        // What is overdue, such as the judgement of a frame that began after its deadline, is for the next turn.
        self.next_turn = self.scheduler.poll_timeout().map(|next| next.max(now));
        self.next_turn
    }

    /// Takes requests, those of protected clients first.
    fn serve_clients(&mut self, now: Time) {
        let slots = self.endpoints.len();
        for slot in 0..slots {
            if self.is_protected(slot) {
                self.take_requests(now, slot, REQUESTS_PER_TURN);
                self.look_after(now, slot);
            }
        }
        let (mut rest, first, mut next) = (OTHERS_PER_TURN, self.next_other, None);
        for slot in (0..slots).map(|step| (first + step) % slots) {
            if !self.is_protected(slot) {
                if rest == 0 {
                    next = next.or(Some(slot));
                }
                rest -= self.take_requests(now, slot, rest.min(REQUESTS_PER_TURN));
                self.look_after(now, slot);
            }
        }
        // Those that were not reached come first in the next turn, which follows at once: they have requests.
        self.next_other = next.unwrap_or(first);
    }

    fn is_protected(&self, slot: usize) -> bool {
        self.endpoints[slot].as_ref().is_some_and(|endpoint| endpoint.standing.protected)
    }

    /// Does for a client what is due without a request.
    fn look_after(&mut self, now: Time, slot: usize) {
        let lanes = self.scheduler.lanes();
        let opposed = || lanes.iter().any(|lane| has_contract(&lane.params()));
        let revised = self.endpoints[slot].as_mut().and_then(|endpoint| endpoint.revised(now, opposed));
        if let Some(event) = revised {
            self.tell_core(now, event);
        }
        self.report_stuck(now, slot);
        self.set_aside(now, slot);
    }

    /// If the thread or its machine was stopped, clients reported in time and the loop read late. Those
    /// reports count as of when this turn should have been, or the core would time them out first.
    fn catch_up(&mut self, now: Time) {
        if let Some(planned) = self.next_turn.filter(|planned| now.since(*planned) > STOPPED) {
            for slot in 0..self.endpoints.len() {
                self.take_requests(planned, slot, REQUESTS_PER_TURN);
            }
        }
    }

    fn obey(&mut self, now: Time, order: Order, joined: &mut impl FnMut(&mut Endpoint)) {
        match order {
            Order::Join { mut endpoint, params, max_slice } => {
                endpoint.max_slice = max_slice;
                self.join(now, endpoint, params, joined);
            }
            Order::Change { app, params } => {
                let endpoint = self.endpoint_mut(app);
                let is_away = endpoint.is_some_and(|endpoint| {
                    endpoint.change(params.etpf);
                    endpoint.pause.is_away()
                });
                // The core hears of it when the client goes on.
                if !is_away {
                    self.tell_core(now, Event::Change { app, params });
                }
            }
            Order::Pause { app } => {
                if let Some(endpoint) = self.endpoint_mut(app) {
                    endpoint.pause.begin();
                }
            }
            Order::Resume { app, params } => {
                if self.endpoint_mut(app).is_some_and(|endpoint| endpoint.pause.end()) {
                    self.tell_core(now, Event::Join { app, params, phase: 0 });
                }
            }
            Order::Limit { app, max_slice, standing, uncut } => {
                if let Some(endpoint) = self.endpoint_mut(app) {
                    endpoint.limit(max_slice, standing);
                    endpoint.set_uncut(uncut);
                }
                self.inform(now, app);
            }
            Order::Guarantee { app, guaranteed } => {
                if let Some(endpoint) = self.endpoint_mut(app) {
                    endpoint.standing.guaranteed = guaranteed;
                }
                self.inform(now, app);
            }
            Order::Leave { app } => self.remove(now, app, None),
            Order::Share { app, params } => self.share(now, app, params),
            Order::Focus(app) => self.tell_core(now, Event::Focus { app }),
            Order::Refresh { display, grid } => {
                self.tell_core(now, Event::Refresh { display, refresh: grid });
            }
            Order::Adjust(adjustable) => self.tell_core(now, Event::Adjust(adjustable)),
            Order::Spin(spin) => self.spin = Some(spin),
            Order::Policy(policy) => {
                self.note(now, Record::Policy(policy.name()));
                let before = self.scheduler.replace_policy(policy);
                self.hand_over(Note::Replaced(before));
            }
            Order::Count => {
                self.hand_over(Note::Counted(self.scheduler.stats()));
                self.hand_over(Note::Turned(self.stats));
            }
            Order::Stop => self.stopped = true,
        }
    }

    /// The server of a minimum share begins, changes or ends.
    fn share(&mut self, now: Time, app: AppId, params: Option<AppParams>) {
        let is_there = self.scheduler.lanes().iter().any(|lane| lane.app == app);
        match params {
            Some(params) if is_there => self.tell_core(now, Event::Change { app, params }),
            Some(params) => self.tell_core(now, Event::Join { app, params, phase: 0 }),
            None if is_there => self.tell_core(now, Event::Leave { app }),
            None => {}
        }
    }

    /// An app comes, unless its slot is taken or nothing is scheduled any more.
    fn join(
        &mut self,
        now: Time,
        mut endpoint: Box<Endpoint>,
        params: AppParams,
        joined: &mut impl FnMut(&mut Endpoint),
    ) {
        let app = endpoint.app;
        let broken = self.scheduler.broken().is_some();
        let vacant = self.endpoints.get_mut(app.index()).filter(|slot| slot.is_none() && !broken);
        let Some(slot) = vacant else {
            return self.hand_over(Note::Gone { endpoint, fault: None });
        };
        joined(&mut endpoint);
        slot.insert(endpoint).change(params.etpf);
        self.publish_alone();
        self.inform(now, app);
        self.tell_core(now, Event::Join { app, params, phase: 0 });
    }

    /// Takes so many of a client's requests; returns how many it took.
    fn take_requests(&mut self, now: Time, slot: usize, most: usize) -> usize {
        for taken in 0..most {
            let Some(endpoint) = &mut self.endpoints[slot] else {
                return taken;
            };
            match endpoint.next_event(now) {
                Ok(Some(event)) => self.tell_core(now, event),
                Ok(None) => return taken,
                Err(fault) => {
                    let app = endpoint.app;
                    self.remove(now, app, Some(fault));
                    return taken;
                }
            }
        }
        most
    }

    /// Takes a paused client out of the core as soon as nothing of it is there any more.
    fn set_aside(&mut self, now: Time, slot: usize) {
        let Some(endpoint) = &mut self.endpoints[slot] else {
            return;
        };
        let (app, pause) = (endpoint.app, &endpoint.pause);
        if !pause.is_on() || pause.is_away() || endpoint.has_granted() {
            return;
        }
        let lane = self.scheduler.lanes().iter().find(|lane| lane.app == app);
        if lane.is_some_and(|lane| lane.head.is_none()) {
            endpoint.pause.leave_core();
            self.tell_core(now, Event::Leave { app });
        }
    }

    /// Tells a client and the daemon of work that cannot be cut and fits nowhere.
    fn report_stuck(&mut self, now: Time, slot: usize) {
        let found = self.endpoints[slot].as_mut().map(|endpoint| (endpoint.app, endpoint.stuck(now)));
        if let Some((app, Some(Stuck { group, estimate }))) = found {
            self.tell_client(now, app, Reply::Stuck { group: local(group), estimate });
            self.hand_over(Note::Stuck { app, estimate });
        }
        let named = self.endpoints[slot].as_mut().map(|endpoint| (endpoint.app, endpoint.take_named()));
        if let Some((app, Some(command))) = named {
            self.hand_over(Note::Named { app, command });
        }
    }

    /// Carries out a decision of the core.
    fn act(&mut self, now: Time, action: Action) {
        match action {
            Action::Dispatch { app, group, reserved, .. } => self.grant(now, app, group, reserved),
            Action::Release { app, at } => {
                let at = self.own_release(app).map_or(at, |own| own.max(at));
                self.tell_client(now, app, Reply::Release { at });
            }
            Action::Refused { app, reason: Refusal::QueueFull | Refusal::TooManyFrames, .. } => {
                self.remove(now, app, Some(Fault::TooMany));
            }
            Action::Lost { app, group, by: LostBy::Timeout } => {
                self.remove(now, app, Some(Fault::Stuck(local(group).0)));
            }
            // A paused client left the core, and stays here.
            Action::Left { app, .. } => {
                if !self.endpoint_mut(app).is_some_and(|endpoint| endpoint.pause.is_away()) {
                    self.remove(now, app, None);
                }
            }
            Action::Hold { app, reason } => {
                if let Some(endpoint) = self.endpoint_mut(app) {
                    endpoint.held(reason);
                }
            }
            // Every client goes on unscheduled, as if the daemon ended.
            Action::Broken(_) => {
                (0..self.scheduler.config().apps_max).for_each(|slot| self.remove(now, AppId(slot), None));
            }
            Action::Refused { .. }
            | Action::Lost { .. }
            | Action::Preempt { .. }
            | Action::Ranked { .. }
            | Action::Missed { .. } => {}
            Action::FrameDone(done) => self.frames.finished(done.app, done.finished),
        }
    }

    /// The earliest time at which an app with a clock of its own may begin its next frame, so that it keeps
    /// to its rate. If it waits for itself, its timer may come a little early, again and again, without being held.
    fn own_release(&self, app: AppId) -> Option<Time> {
        let lane = self.scheduler.lanes().iter().find(|lane| lane.app == app)?;
        let Clock::Own { period, .. } = lane.clock else {
            return None;
        };
        let waits_itself = self.endpoint(app).is_some_and(|endpoint| endpoint.standing.own);
        let early = if waits_itself { period.scaled(1, EARLY_PARTS) } else { Span::ZERO };
        Some(lane.release_of(lane.target) - early)
    }

    fn grant(&mut self, now: Time, app: AppId, group: GroupId, reserved: Span) {
        // Limits that did not fit into the client's queue before.
        self.inform(now, app);
        // The margin for errors is no credit for more commands.
        let credit = self.scheduler.config().margins.predicted_within(reserved);
        match self.endpoint_mut(app).map(|endpoint| endpoint.grant(now, group, credit)) {
            Some(Ok(())) => {}
            Some(Err(fault)) => self.remove(now, app, Some(fault)),
            // Decided just before its client was removed.
            None => self.complete_for_client(now, group),
        }
    }

    /// Reports the end of a group whose client cannot, so that its slot on the GPU is released.
    fn complete_for_client(&mut self, now: Time, group: GroupId) {
        self.tell_core(now, Event::Complete { group, finished: now, cost: Cost::default(), frames: 0 });
    }

    /// Removes a client from the loop and from the core; with a fault, it is evicted.
    fn remove(&mut self, now: Time, app: AppId, fault: Option<Fault>) {
        let Some(mut endpoint) = self.endpoints.get_mut(app.index()).and_then(Option::take) else {
            return;
        };
        endpoint.unregister();
        self.coverage_may_differ = true;
        self.publish_alone();
        while let Some(group) = endpoint.take_granted() {
            self.complete_for_client(now, group);
        }
        if self.scheduler.lanes().iter().any(|lane| lane.app == app) {
            self.tell_core(now, Event::Leave { app });
        }
        // A client with a full queue notices by its own time-outs.
        if endpoint.tell(Reply::Farewell).is_ok() {
            endpoint.wake();
        }
        self.hand_over(Note::Gone { endpoint, fault });
    }

    /// Tells a client its standing and the longest group it may form.
    fn inform(&mut self, now: Time, app: AppId) {
        if let Some(Err(fault)) = self.endpoint_mut(app).map(Endpoint::inform) {
            self.remove(now, app, Some(fault));
        }
    }

    /// Shows clients whether they are alone. A client that is alone forms longer groups, which cost it
    /// less; one that joins waits once for the groups in flight.
    fn publish_alone(&self) {
        let alone = self.endpoints.iter().flatten().nth(1).is_none();
        self.endpoints.iter().flatten().for_each(|endpoint| endpoint.set_alone(alone));
    }

    /// Reports to clients and the daemon which contracts are covered, where that differs from before.
    fn report_protection(&mut self, now: Time) {
        if !std::mem::take(&mut self.coverage_may_differ) {
            return;
        }
        for slot in 0..self.endpoints.len() {
            let Some(app) = self.endpoints[slot].as_ref().map(|endpoint| endpoint.app) else {
                continue;
            };
            let lane = self.scheduler.lanes().iter().find(|lane| lane.app == app);
            let protected = lane.is_some_and(|lane| lane.protected);
            if self.endpoint_mut(app).is_some_and(|endpoint| endpoint.judge(protected)) {
                self.inform(now, app);
                self.hand_over(Note::Protected { app, protected });
            }
        }
    }

    /// Hands over something that must not be freed here. The queue has room for it unless the daemon
    /// has not read for so long that freeing it here is the smaller evil.
    fn hand_over(&mut self, note: Note) {
        if let Err(PushError::Full(note)) = self.notes.push(note) {
            self.stats.dropped += 1;
            drop(note);
        }
    }

    fn tell_client(&mut self, now: Time, app: AppId, reply: Reply) {
        if let Some(Err(fault)) = self.endpoint_mut(app).map(|endpoint| endpoint.tell(reply)) {
            self.remove(now, app, Some(fault));
        }
    }

    fn tell_core(&mut self, now: Time, event: Event) {
        let keeps_coverage = matches!(
            event,
            Event::Submit { .. } | Event::EndFrame { .. } | Event::Complete { .. } | Event::Revise { .. }
        );
        self.coverage_may_differ |= !keeps_coverage;
        self.note(now, Record::In(event));
        self.drive(now, |core| core.handle_event(now, event));
    }

    /// Calls the core, and records the refresh period that began with that.
    fn drive(&mut self, now: Time, call: impl FnOnce(&mut Scheduler)) {
        let before = self.scheduler.current_period();
        call(&mut self.scheduler);
        let period = self.scheduler.current_period();
        if period != before {
            self.note(now, Record::Vsync(period));
        }
    }

    fn note(&mut self, now: Time, record: Record) {
        // One more, for the gap that goes first.
        if self.notes.slots() <= NOTES_SPARE + 1 {
            self.stats.dropped += 1;
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
        let pushed = self.notes.push(Note::Record(now, record));
        debug_assert!(pushed.is_ok(), "there is room");
    }

    fn endpoint_mut(&mut self, app: AppId) -> Option<&mut Endpoint> {
        self.endpoints.get_mut(app.index())?.as_deref_mut()
    }
}
