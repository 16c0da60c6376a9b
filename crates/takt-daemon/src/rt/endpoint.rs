//! What the scheduling loop keeps of a client.
//!
//! A client numbers its groups itself, one after the other; the core wants numbers that are unique
//! among all clients. So the slot is put in front, which also makes it impossible to speak of
//! somebody else's group.

use std::os::fd::OwnedFd;

use takt_core::belief::{Belief, Revision};
use takt_core::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use takt_core::{AppId, Cost, Estimate, Event, GroupId, GroupKind, Hold, Span, Time};
use takt_ipc::region::{Region, Replies, Requests};
use takt_ipc::ring::{Corrupt, Full, Reader, Writer};
use takt_ipc::wake::Doorbell;
use takt_ipc::{Malformed, Reply, Request, Standing};

use crate::rt::wakeup::Ear;

/// Bits of a client's own group numbers.
const GROUP_BITS: u32 = 40;

/// Requests taken from one client per turn: one that floods the ring does not stop the others.
pub const REQUESTS_PER_TURN: usize = 2 * QUEUE_MAX;

/// Rings without a request that a client may cause per [`WINDOW`]; an honest one causes as many as it
/// sends requests.
const NOISE_MAX: u32 = 20_000;
/// Over which noise is counted.
const WINDOW: Span = Span::from_ms(1_000);

/// The daemon's end of a client.
#[derive(Debug)]
pub struct Seat {
    /// Its slot.
    pub app: AppId,
    region: Region,
    requests: Reader<Requests>,
    replies: Writer<Replies>,
    doorbell: Doorbell,
    /// Who hears it.
    ear: Option<Ear>,
    /// The number that its next group must have at least.
    next: u64,
    /// How far its estimates are believed.
    belief: Belief,
    /// How long its groups may be.
    pub max_slice: Span,
    /// What it was told about that.
    limit: Option<Span>,
    /// How it stands, and what it was told about that.
    pub standing: Standing,
    stands: Standing,
    /// Whether the core has judged the contract that it has now.
    judged: bool,
    /// Groups that were granted and are not finished.
    granted: [Option<GroupId>; IN_FLIGHT_MAX],
    /// Swaps that were granted because they show nothing, and are not finished: the core knows nothing of them.
    idle_swaps: [Option<GroupId>; IN_FLIGHT_MAX],
    /// It was told something and sleeps perhaps.
    told: bool,
    /// How often it rang without reason, give or take, in the current [`WINDOW`].
    noise: u32,
    window_ends: Time,
}

/// Why a client is not scheduled any more. The client is at fault, and it alone suffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Its ring contradicts itself.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// It sent something that is no request.
    #[error("it sent something that is no request: {0}")]
    Malformed(#[from] Malformed),
    /// It numbers its groups in no order.
    #[error("its group {0} comes out of order")]
    Order(u64),
    /// It finished a group that it was never granted.
    #[error("it finished group {0}, which was not granted")]
    NotGranted(u64),
    /// It submits more than may wait, or ends more frames.
    #[error("it submits more groups, or ends more frames, than may wait")]
    TooMany,
    /// It does not read what it is told.
    #[error("it does not read what it is told")]
    Deaf,
    /// It rings and has nothing to say.
    #[error("it wakes the daemon all the time and has nothing to say")]
    Noisy,
    /// It did not say that a group ended, for too long.
    #[error("it did not report the end of group {0} in time")]
    Stuck(u64),
}

/// The descriptors that a client needs for its end.
#[derive(Debug)]
pub struct Ends {
    /// Of the region.
    pub region: OwnedFd,
    /// Of the doorbell.
    pub doorbell: OwnedFd,
}

impl Seat {
    /// Makes the shared memory for a client at that slot.
    pub fn new(app: AppId) -> std::io::Result<(Self, Ends)> {
        let (region, fd) = Region::create()?;
        let doorbell = Doorbell::new()?;
        let ends = Ends { region: fd, doorbell: rustix::io::dup(&doorbell)? };
        let (requests, replies) = region.daemon_ends();
        let seat = Self {
            app,
            region,
            requests,
            replies,
            doorbell,
            ear: None,
            next: 0,
            belief: Belief::default(),
            max_slice: Span::FOREVER,
            limit: None,
            standing: Standing::default(),
            stands: Standing::default(),
            judged: false,
            granted: [None; IN_FLIGHT_MAX],
            idle_swaps: [None; IN_FLIGHT_MAX],
            told: false,
            noise: 0,
            window_ends: Time::ZERO,
        };
        Ok((seat, ends))
    }

    /// It was told when it was welcomed how it stands.
    pub fn welcomed(&mut self, standing: Standing) {
        (self.standing, self.stands) = (standing, standing);
    }

    /// It has other parameters. It reserves so much per frame, so no group is believed to take longer than
    /// what is left of that.
    pub fn change(&mut self, etpf: Span) {
        self.belief.reserve(etpf);
        self.judged = false;
    }

    /// Whether its contract is covered, as the core says; says whether anybody has to be told.
    pub fn judge(&mut self, protected: bool) -> bool {
        let other = std::mem::replace(&mut self.standing.protected, protected) != protected;
        !std::mem::replace(&mut self.judged, true) || other
    }

    /// Whether the client has sent something that was not taken yet.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// The client rang: whoever does so all the time for nothing keeps the loop from its work.
    pub fn rang(&mut self, now: Time) -> Result<(), Fault> {
        if now >= self.window_ends {
            (self.noise, self.window_ends) = (0, now + WINDOW);
        }
        self.noise += 1;
        if self.noise > NOISE_MAX { Err(Fault::Noisy) } else { Ok(()) }
    }

    /// From now on `ear` hears it when it rings; if that cannot be, it is heard at the next beat.
    pub fn heard_by(&mut self, ear: &Ear) {
        self.ear = ear.listen(&self.doorbell, self.app.0.into()).is_ok().then(|| ear.clone());
    }

    /// Nobody hears it any more.
    pub fn unheard(&mut self) {
        if let Some(ear) = self.ear.take() {
            let forgotten = ear.forget(&self.doorbell);
            debug_assert!(forgotten.is_ok(), "it was heard");
        }
    }

    /// The client's next request as an event, checked as far as one can without the core.
    pub fn next_event(&mut self, now: Time) -> Result<Option<Event>, Fault> {
        while let Some(words) = self.requests.pop()? {
            self.noise = self.noise.saturating_sub(1);
            match Request::decode(&words)? {
                Request::Submit { group, kind, estimate } => {
                    return self.submitted(now, group, kind, estimate).map(Some);
                }
                Request::Complete { group, finished, cost, frames } => {
                    let global = self.global(group);
                    if strike(&mut self.idle_swaps, global) {
                        continue;
                    }
                    if !strike(&mut self.granted, global) {
                        return Err(Fault::NotGranted(group.0));
                    }
                    let (finished, cost) = (finished.min(now), Cost::new(cost));
                    self.belief.measured(now, global, cost);
                    return Ok(Some(Event::Complete { group: global, finished, cost, frames }));
                }
            }
        }
        Ok(None)
    }

    /// The client asks for leave. A swap that shows nothing is no group to the core: its frame ends, and
    /// it has leave at once.
    fn submitted(
        &mut self,
        now: Time,
        group: GroupId,
        kind: GroupKind,
        estimate: Estimate,
    ) -> Result<Event, Fault> {
        if group.0 < self.next || group.0 >> GROUP_BITS != 0 {
            return Err(Fault::Order(group.0));
        }
        self.next = group.0 + 1;
        let (app, group) = (self.app, self.global(group));
        if kind == GroupKind::Swap && estimate.span() == Span::ZERO {
            self.belief.end_frame();
            self.inform()?;
            note(&mut self.idle_swaps, group)?;
            self.tell(Reply::Grant { group: local(group), credit: Span::ZERO })?;
            return Ok(Event::EndFrame { app });
        }
        let estimate = self.belief.submitted(now, group, kind, estimate);
        Ok(Event::Submit { app, group, kind, estimate })
    }

    /// Tells the client that a group may run.
    pub fn grant(&mut self, now: Time, group: GroupId, credit: Span) -> Result<(), Fault> {
        self.belief.granted(now, group);
        note(&mut self.granted, group)?;
        self.tell(Reply::Grant { group: local(group), credit })
    }

    /// Tells the client what is new to it: how it stands, and how long its groups may be. One that
    /// sleeps for long is not told everything in between, but what is so when it is granted something.
    pub fn inform(&mut self) -> Result<(), Fault> {
        if self.replies.is_crowded() {
            return Ok(());
        }
        let slice = self.max_slice;
        if self.limit.replace(slice) != Some(slice) {
            self.tell(Reply::Limit { slice })?;
        }
        if std::mem::replace(&mut self.stands, self.standing) != self.standing {
            self.tell(Reply::Standing(self.standing))?;
        }
        Ok(())
    }

    /// Lets the client see whether it is the only one.
    pub fn set_alone(&self, alone: bool) {
        self.region.solitude().set(alone);
    }

    /// Tells the client something; it is woken by [`Self::wake`].
    pub fn tell(&mut self, reply: Reply) -> Result<(), Fault> {
        match self.replies.push(&reply.encode()) {
            Ok(()) => {
                self.told = true;
                Ok(())
            }
            Err(Full::Full) => Err(Fault::Deaf),
            Err(Full::Corrupt(corrupt)) => Err(corrupt.into()),
        }
    }

    /// Wakes the client if it was told something.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.told) {
            self.region.bell().ring();
        }
    }

    /// Takes one granted group off the list, to be finished in the name of a client that cannot.
    pub fn take_granted(&mut self) -> Option<GroupId> {
        self.granted.iter_mut().find_map(Option::take)
    }

    /// Its first waiting group is held back.
    pub fn held(&mut self, reason: Hold) {
        self.belief.held(reason);
    }

    /// A lower estimate for its first waiting group, if one is due. The loop turns often enough
    /// ([`BEAT_MAX`](crate::rt::thread::BEAT_MAX)) to ask in every turn instead of setting a time-out.
    pub fn revised(&mut self, now: Time) -> Option<Event> {
        let Revision { group, estimate } = self.belief.revise(now)?;
        Some(Event::Revise { app: self.app, group, estimate })
    }

    fn global(&self, group: GroupId) -> GroupId {
        GroupId(u64::from(self.app.0) << GROUP_BITS | (group.0 & ((1 << GROUP_BITS) - 1)))
    }
}

/// Puts a group on a list.
fn note(list: &mut [Option<GroupId>], group: GroupId) -> Result<(), Fault> {
    let place = list.iter_mut().find(|place| place.is_none()).ok_or(Fault::TooMany)?;
    *place = Some(group);
    Ok(())
}

/// Strikes a group off a list; says whether it was on it.
fn strike(list: &mut [Option<GroupId>], group: GroupId) -> bool {
    list.iter_mut().find(|place| **place == Some(group)).and_then(Option::take).is_some()
}

/// The number that the client gave a group.
pub fn local(group: GroupId) -> GroupId {
    GroupId(group.0 & ((1 << GROUP_BITS) - 1))
}
