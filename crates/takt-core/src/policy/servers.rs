//! The bandwidth servers of all apps, and which of them pays for a group.
//!
//! * **Sources.** A server serves the app that it belongs to and all apps that share it
//!   ([`Reservation::Shared`]): one contract, several queues. It is idle while none of them has work.
//! * **Inheritance.** While a consumer waits, the apps that produce for it, directly or through others, have its
//!   deadline if that is earlier than their own, go before it, and run on its budget. So a chain of apps never
//!   takes more than the servers in it were promised.
//! * **Source.** Lipari, Lamastra, Abeni 2004 (who pays while a deadline is inherited).

use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use super::bandwidth::Server;
use crate::scheduler::Lane;
use crate::service::{Reservation, Reserve};
use crate::time::{Span, Time};

/// All servers, by slot number.
#[derive(Clone, Default, Debug)]
pub struct Servers {
    slots: Vec<Slot>,
    any: bool,
    /// Some apps share a server or produce for another app.
    several: bool,
    deadlines: Deadlines,
}

/// When the budgets of servers are due.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Deadlines {
    /// As each reserve says.
    #[default]
    AsReserved,
    /// A period after work came, whatever a reserve says: a server that has an earlier one may demand its budget
    /// more often than its share pays for.
    AtPeriods,
}

#[derive(Copy, Clone, Default, Debug)]
struct Slot {
    server: Option<Server>,
    lane: Option<usize>,
    /// Slot of the server that serves it.
    served_by: Option<usize>,
    /// Groups of all that it serves, waiting or in flight.
    busy: u32,
    /// Other apps share it.
    shared: bool,
    /// Other apps produce for its app, or for one of those that share it.
    fed: bool,
}

/// What lets a lane run. The smallest goes first.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Claim {
    /// A server's deadline: its own, or one of a consumer down the chain.
    Deadline {
        /// The deadline.
        at: Time,
        /// Slot of the server that pays.
        payer: usize,
        /// How many hops away the consumer is.
        hops: Reverse<usize>,
        /// Slot of the app.
        slot: usize,
        /// Since when both the group and that consumer wait.
        since: Time,
    },
    /// Nothing but its priority.
    BestEffort {
        /// Index of its lane.
        lane: usize,
    },
    /// Nothing yet: its server rests.
    Rests {
        /// When it goes on.
        until: Time,
    },
}

impl Claim {
    /// Whether it is worth a preemption; an equal deadline of another server is not.
    pub fn preempts(self, running: Self) -> bool {
        match (self, running) {
            (
                Self::Deadline { at, payer, .. },
                Self::Deadline { at: running_at, payer: running_payer, .. },
            ) if payer != running_payer => at < running_at,
            _ => self < running,
        }
    }

    /// Slot of the server that pays.
    pub fn payer(self) -> Option<usize> {
        match self {
            Self::Deadline { payer, .. } => Some(payer),
            Self::BestEffort { .. } | Self::Rests { .. } => None,
        }
    }
}

impl Servers {
    /// Takes all memory.
    pub fn prepare(&mut self, apps: usize, deadlines: Deadlines) {
        self.slots = vec![Slot::default(); apps];
        self.deadlines = deadlines;
    }

    /// Whether any app has a server.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// The server of the app in that slot.
    pub fn get(&self, slot: usize) -> Option<&Server> {
        self.slots.get(slot)?.server.as_ref()
    }

    /// The same, to be charged.
    pub fn get_mut(&mut self, slot: usize) -> Option<&mut Server> {
        self.slots.get_mut(slot)?.server.as_mut()
    }

    /// Where the lane of the app in that slot is.
    pub fn lane(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot)?.lane
    }

    /// Whether groups of one app only run on the server in that slot.
    pub(super) fn is_alone(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| !slot.shared && !slot.fed)
    }

    /// Whether groups of several apps may run on one server.
    pub(super) fn several(&self) -> bool {
        self.several
    }

    /// Whether an app that the server in that slot serves has work, waiting or in flight.
    pub(super) fn is_busy(&self, slot: usize) -> bool {
        self.slots.get(slot).is_some_and(|slot| slot.busy > 0)
    }

    /// Apps joined, left or changed their parameters.
    pub fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        for slot in &mut self.slots {
            *slot = Slot { server: slot.server, ..Slot::default() };
        }
        for (index, lane) in lanes.iter().enumerate() {
            self.slots[lane.app.index()].lane = Some(index);
        }
        for lane in lanes {
            let owner = match lane.service.reservation {
                Reservation::Own(_) => lane.app.index(),
                Reservation::Shared(app) if self.is_owner(app.index(), lanes) => app.index(),
                _ => continue,
            };
            self.slots[lane.app.index()].served_by = Some(owner);
            self.slots[owner].busy += lane.waiting + lane.in_flight;
            self.slots[owner].shared |= owner != lane.app.index();
        }
        self.several = self.slots.iter().any(|slot| slot.shared);
        for lane in lanes {
            self.mark_fed(lane, lanes);
            self.renew(now, lane);
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.lane.is_none()) {
            *slot = Slot::default();
        }
        self.any = self.slots.iter().any(|slot| slot.server.is_some());
    }

    /// Marks the servers of all apps that the app of `lane` feeds, directly or through others.
    fn mark_fed(&mut self, lane: &Lane, lanes: &[Lane]) {
        let mut next = lane.service.feeds;
        // Chains have no circles; the bound holds whatever they have.
        for _ in 0..lanes.len() {
            let Some(index) = next.and_then(|app| self.lane(app.index())) else {
                return;
            };
            if let Some(server) = self.served_by(lanes[index].app.index()) {
                (self.slots[server].fed, self.several) = (true, true);
            }
            next = lanes[index].service.feeds;
        }
    }

    fn is_owner(&self, slot: usize, lanes: &[Lane]) -> bool {
        let lane = self.lane(slot).map(|index| &lanes[index]);
        lane.is_some_and(|lane| matches!(lane.service.reservation, Reservation::Own(_)))
    }

    /// Gives the app of `lane` the server that it asks for now; debts stay.
    fn renew(&mut self, now: Time, lane: &Lane) {
        let slot = &mut self.slots[lane.app.index()];
        let reservation = match (lane.service.reservation, self.deadlines) {
            (Reservation::Own(reserve), Deadlines::AtPeriods) => {
                Reservation::Own(Reserve { deadline: reserve.period, ..reserve })
            }
            (reservation, _) => reservation,
        };
        slot.server = match (reservation, slot.server) {
            (Reservation::Own(reserve), Some(mut server)) if server.reserve() != &reserve => {
                server.change(reserve);
                Server::new(reserve).map(|_| server)
            }
            (Reservation::Own(_), Some(server)) => Some(server),
            (Reservation::Own(reserve), None) => {
                let mut server = Server::new(reserve);
                if slot.busy > 0 {
                    server.iter_mut().for_each(|server| server.arrive(now));
                }
                server
            }
            _ => None,
        };
    }

    /// The app of `lane` submitted a group.
    pub fn submitted(&mut self, now: Time, lane: &Lane) {
        let Some(owner) = self.slots[lane.app.index()].served_by else {
            return;
        };
        let slot = &mut self.slots[owner];
        if slot.busy == 0 {
            slot.server.iter_mut().for_each(|server| server.arrive(now));
        }
        slot.busy += 1;
    }

    /// A group of the app of `lane` ended.
    pub fn ended(&mut self, lane: &Lane) {
        if let Some(owner) = self.slots[lane.app.index()].served_by {
            let busy = &mut self.slots[owner].busy;
            *busy = busy.saturating_sub(1);
        }
    }

    /// What the lane at `index` can claim at `now` for a group that needs so much of a budget. A deadline is
    /// `postponed` until the budget that belongs to it covers the group; zero leaves it as it is.
    pub fn claim(&self, now: Time, lanes: &[Lane], index: usize, need: Span) -> Claim {
        let slot = lanes[index].app.index();
        let submitted = |lane: &Lane| lane.head.map_or(Time::ZERO, |head| head.submitted);
        let waits = submitted(&lanes[index]);
        let server = |payer: usize, since: Time| Some(self.ready_for(self.get(payer)?, need, since, now));
        let own = self.served_by(slot).and_then(|owner| server(owner, waits));
        let mut claim = match own.and_then(|server| server.waits_for(need, now)) {
            Some(until) => Claim::Rests { until },
            None => Claim::BestEffort { lane: index },
        };
        let mut next = Some(index);
        // Chains have no circles; the bound holds whatever they have.
        for hops in 0..=lanes.len() {
            let Some(lane) = next.map(|index| &lanes[index]) else {
                break;
            };
            let since = waits.max(submitted(lane));
            let payer = self.served_by(lane.app.index());
            if let Some((payer, server)) = payer.and_then(|payer| Some((payer, server(payer, since)?)))
                && (hops == 0 || lane.head.is_some())
                && server.waits_for(need, now).is_none()
            {
                let at = self.due(&server, need, since);
                if !matches!(claim, Claim::Deadline { at: before, .. } if before <= at) {
                    claim = Claim::Deadline { at, payer, hops: Reverse(hops), slot, since };
                }
            }
            next = lane.service.feeds.and_then(|app| self.lane(app.index()));
        }
        claim
    }

    /// The server whose next budget the first group of the lane at `index` waits for, if it needs so much and has no
    /// claim before: its own, or that of the first consumer down the chain that waits. Its slot, how many hops away
    /// that is, since when both wait, and until when.
    pub(super) fn next_budget(
        &self,
        now: Time,
        lanes: &[Lane],
        index: usize,
        need: Span,
    ) -> Option<(usize, Reverse<usize>, Time, Time)> {
        let waits = lanes[index].head?.submitted;
        let mut next = Some(index);
        for hops in 0..=lanes.len() {
            let lane = &lanes[next?];
            if let (Some(payer), Some(head)) = (self.served_by(lane.app.index()), lane.head) {
                let since = waits.max(head.submitted);
                let until = self.ready_for(self.get(payer)?, need, since, now).waits_for(need, now)?;
                return Some((payer, Reverse(hops), since, until));
            }
            next = lane.service.feeds.and_then(|app| self.lane(app.index()));
        }
        None
    }

    /// A server as it is for a group that needs so much and waits since then.
    fn ready_for(&self, server: &Server, need: Span, since: Time, now: Time) -> Server {
        match self.deadlines {
            Deadlines::AsReserved => *server,
            Deadlines::AtPeriods => server.promising(need, since, now),
        }
    }

    /// By when such a group is due.
    fn due(&self, server: &Server, need: Span, since: Time) -> Time {
        match self.deadlines {
            Deadlines::AsReserved => server.deadline_for(need),
            Deadlines::AtPeriods => server.promised_by(need, since),
        }
    }

    /// Slot of the server that serves the app in that slot.
    fn served_by(&self, slot: usize) -> Option<usize> {
        self.slots.get(slot)?.served_by
    }
}
