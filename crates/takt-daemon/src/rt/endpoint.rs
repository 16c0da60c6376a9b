//! The daemon's end of a client's shared memory.
//!
//! A client numbers its groups itself, one after the other; the core wants numbers that are unique
//! among all clients. So the slot is put in front, and no client can name the group of another.

use std::os::fd::OwnedFd;

use takt_core::belief::{Belief, Revision, Stuck, Uncut};
use takt_core::limits::{IN_FLIGHT_MAX, QUEUE_MAX};
use takt_core::{AppId, Cost, Estimate, Event, GroupId, GroupKind, Hold, Span, Time};
use takt_ipc::region::{Region, Replies, Requests};
use takt_ipc::ring::{Corrupt, Full, Reader, Writer};
use takt_ipc::wake::Doorbell;
use takt_ipc::{Command, Malformed, Reply, Request, Standing};

use super::pause::{Kept, Pause};
use super::wakeup::WakeupSet;

/// Bits of a client's own group numbers.
pub(crate) const GROUP_BITS: u32 = 40;

/// Requests taken from one client per turn: a client that floods its ring does not stop the others.
pub const REQUESTS_PER_TURN: usize = 2 * QUEUE_MAX;

/// Rings without a request that a client may cause per [`WINDOW`]; a correct one rings once per request.
const NOISE_MAX: u32 = 20_000;
/// Over which noise is counted.
const WINDOW: Span = Span::from_ms(1_000);

/// The daemon's end of a client.
#[derive(Debug)]
pub struct Endpoint {
    /// Its slot.
    pub app: AppId,
    region: Region,
    requests: Reader<Requests>,
    replies: Writer<Replies>,
    doorbell: Doorbell,
    /// Where its doorbell is registered.
    wakeups: Option<WakeupSet>,
    /// Lowest number that its next group may have.
    next: u64,
    /// How far its estimates are believed.
    belief: Belief,
    /// Longest group it may form.
    pub max_slice: Span,
    /// The limit that the client was last sent.
    sent_max_slice: Option<Span>,
    /// Its standing.
    pub standing: Standing,
    /// The standing that the client was last sent.
    sent_standing: Standing,
    /// Whether the core has judged its current contract.
    judged: bool,
    /// Groups that were granted and are not finished.
    granted: [Option<GroupId>; IN_FLIGHT_MAX],
    /// Swaps that show nothing: granted without the core, and not finished.
    idle_swaps: [Option<GroupId>; IN_FLIGHT_MAX],
    pub(super) pause: Pause,
    /// How often it was told that its work is stuck, and has not said what that is.
    unnamed: u32,
    /// What it said.
    named: Option<Command>,
    /// A reply was written since the client was last woken.
    replied: bool,
    /// Rings minus requests in the current [`WINDOW`].
    noise: u32,
    window_ends: Time,
}

/// The rule that a client broke, for which it is evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// Its ring contradicts itself.
    #[error(transparent)]
    Corrupt(#[from] Corrupt),
    /// It sent words that are no request.
    #[error("it sent words that are no request: {0}")]
    Malformed(#[from] Malformed),
    /// Its group numbers do not rise.
    #[error("its group {0} is out of order")]
    Order(u64),
    /// It reported the end of a group that was not granted.
    #[error("it finished group {0}, which was not granted")]
    NotGranted(u64),
    /// It named a group that it was not asked for.
    #[error("it named group {0}, and was not asked to")]
    NotAsked(u64),
    /// It submitted more groups or ended more frames than may wait.
    #[error("it submits more groups, or ends more frames, than may wait")]
    TooMany,
    /// Its queue of replies is full.
    #[error("it does not read its replies")]
    Deaf,
    /// It rings without requests.
    #[error("it wakes the daemon all the time without a request")]
    Noisy,
    /// It did not report the end of a group in time.
    #[error("it did not report the end of group {0} in time")]
    Stuck(u64),
}

impl Fault {
    /// Its name in audit records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Corrupt(_) => "ring-corrupt",
            Self::Malformed(_) => "malformed-request",
            Self::Order(_) => "group-order",
            Self::NotGranted(_) => "end-not-granted",
            Self::NotAsked(_) => "name-not-asked",
            Self::TooMany => "too-many-groups",
            Self::Deaf => "replies-unread",
            Self::Noisy => "needless-wakeups",
            Self::Stuck(_) => "end-overdue",
        }
    }
}

/// The descriptors that the client needs for its own end.
#[derive(Debug)]
pub struct ClientFds {
    /// Of the region.
    pub region: OwnedFd,
    /// Of the doorbell.
    pub doorbell: OwnedFd,
}

impl Endpoint {
    /// Makes the shared memory for a client at that slot.
    pub fn new(app: AppId) -> std::io::Result<(Self, ClientFds)> {
        let (region, fd) = Region::create()?;
        let doorbell = Doorbell::new()?;
        let ends = ClientFds { region: fd, doorbell: rustix::io::dup(&doorbell)? };
        let (requests, replies) = region.daemon_ends();
        let endpoint = Self {
            app,
            region,
            requests,
            replies,
            doorbell,
            wakeups: None,
            next: 0,
            belief: Belief::default(),
            max_slice: Span::FOREVER,
            sent_max_slice: None,
            standing: Standing::default(),
            sent_standing: Standing::default(),
            judged: false,
            granted: [None; IN_FLIGHT_MAX],
            idle_swaps: [None; IN_FLIGHT_MAX],
            pause: Pause::default(),
            unnamed: 0,
            named: None,
            replied: false,
            noise: 0,
            window_ends: Time::ZERO,
        };
        Ok((endpoint, ends))
    }

    /// The welcome message has told the client its standing.
    pub fn welcomed(&mut self, standing: Standing) {
        (self.standing, self.sent_standing) = (standing, standing);
    }

    /// It has other parameters: it reserves `etpf` per frame, so no estimate is believed beyond the rest
    /// of that.
    pub fn change(&mut self, etpf: Span) {
        self.belief.reserve(etpf);
        self.judged = false;
    }

    /// Takes the core's verdict whether its contract is covered; returns whether that is to be reported.
    pub fn judge(&mut self, protected: bool) -> bool {
        let differs = std::mem::replace(&mut self.standing.protected, protected) != protected;
        !std::mem::replace(&mut self.judged, true) || differs
    }

    /// Whether a request waits to be taken.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty() || self.pause.has_kept()
    }

    /// The client rang. A client that rings all the time without requests keeps the loop from its work.
    pub fn rang(&mut self, now: Time) -> Result<(), Fault> {
        if now >= self.window_ends {
            (self.noise, self.window_ends) = (0, now + WINDOW);
        }
        self.noise += 1;
        if self.noise > NOISE_MAX { Err(Fault::Noisy) } else { Ok(()) }
    }

    /// From now on its doorbell wakes the loop; if that fails, its requests wait for the next beat.
    pub fn register(&mut self, wakeups: &WakeupSet) {
        self.wakeups = wakeups.add(&self.doorbell, self.app.0.into()).is_ok().then(|| wakeups.clone());
    }

    /// Its doorbell does not wake the loop any more.
    pub fn unregister(&mut self) {
        if let Some(wakeups) = self.wakeups.take() {
            let removed = wakeups.remove(&self.doorbell);
            debug_assert!(removed.is_ok(), "it was registered");
        }
    }

    /// The client's next request as an event, checked as far as one can without the core.
    pub fn next_event(&mut self, now: Time) -> Result<Option<Event>, Fault> {
        if let Some(Kept { group, kind, estimate }) = self.pause.next_kept() {
            return self.submitted(now, group, kind, estimate).map(Some);
        }
        while let Some(words) = self.requests.pop()? {
            self.noise = self.noise.saturating_sub(1);
            match Request::decode(&words)? {
                Request::Submit { group, kind, estimate } if self.pause.is_on() => {
                    self.pause.keep(Kept { group, kind, estimate })?;
                }
                Request::Submit { group, kind, estimate } => {
                    return self.submitted(now, group, kind, estimate).map(Some);
                }
                Request::Names { group, command } => {
                    // A client that was not asked would have the daemon tell tools without end.
                    self.unnamed = self.unnamed.checked_sub(1).ok_or(Fault::NotAsked(group.0))?;
                    self.named = Some(command);
                }
                Request::Complete { group, finished, cost, frames } => {
                    let global = self.global(group);
                    if remove(&mut self.idle_swaps, global) {
                        continue;
                    }
                    if !remove(&mut self.granted, global) {
                        return Err(Fault::NotGranted(group.0));
                    }
                    let (finished, cost) = (finished.min(now), Cost::new(cost));
                    self.belief.completed(now, global, cost);
                    return Ok(Some(Event::Complete { group: global, finished, cost, frames }));
                }
            }
        }
        Ok(None)
    }

    /// The client submits a group. A swap that shows nothing is no group to the core: it ends the frame and
    /// is granted at once.
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
            insert(&mut self.idle_swaps, group)?;
            self.tell(Reply::Grant { group: local(group), credit: Span::ZERO })?;
            return Ok(Event::EndFrame { app });
        }
        let estimate = self.belief.submitted(now, group, kind, estimate);
        Ok(Event::Submit { app, group, kind, estimate })
    }

    /// Tells the client that a group may run.
    pub fn grant(&mut self, now: Time, group: GroupId, credit: Span) -> Result<(), Fault> {
        self.belief.granted(now, group);
        insert(&mut self.granted, group)?;
        self.tell(Reply::Grant { group: local(group), credit })
    }

    /// Sends the client its standing and its longest group where they differ from what it was last sent.
    /// A client with a crowded queue is sent the newest values with its next grant.
    pub fn inform(&mut self) -> Result<(), Fault> {
        if self.replies.is_crowded() {
            return Ok(());
        }
        let slice = self.max_slice;
        if self.sent_max_slice.replace(slice) != Some(slice) {
            self.tell(Reply::Limit { slice })?;
        }
        if std::mem::replace(&mut self.sent_standing, self.standing) != self.standing {
            self.tell(Reply::Standing(self.standing))?;
        }
        Ok(())
    }

    /// Shows the client whether it is the only one.
    pub fn set_alone(&self, alone: bool) {
        self.region.solitude().set(alone);
    }

    /// Writes a reply; [`Self::wake`] wakes the client.
    pub fn tell(&mut self, reply: Reply) -> Result<(), Fault> {
        match self.replies.push(&reply.encode()) {
            Ok(()) => {
                self.replied = true;
                Ok(())
            }
            Err(Full::Full) => Err(Fault::Deaf),
            Err(Full::Corrupt(corrupt)) => Err(corrupt.into()),
        }
    }

    /// Wakes the client if a reply waits for it.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.replied) {
            self.region.bell().ring();
        }
    }

    /// Whether a group was granted and is not finished.
    pub fn has_granted(&self) -> bool {
        self.granted.iter().any(Option::is_some)
    }

    /// Takes one granted group off the list, to be completed for a client that is removed.
    pub fn take_granted(&mut self) -> Option<GroupId> {
        self.granted.iter_mut().find_map(Option::take)
    }

    /// Its first waiting group is held back.
    pub fn held(&mut self, reason: Hold) {
        self.belief.held(reason);
    }

    /// How long its groups may be, and what it may know of its terms. Whether deadlines hold is told by the core.
    pub fn limit(&mut self, max_slice: Span, standing: Standing) {
        self.max_slice = max_slice;
        let Standing { protected, guaranteed, .. } = self.standing;
        self.standing = Standing { protected, guaranteed, ..standing };
    }

    /// What becomes of its work that cannot be cut and fits nowhere, from now on.
    pub fn set_uncut(&mut self, uncut: Uncut) {
        self.belief.set_uncut(uncut);
    }

    /// Its first waiting group, if it cannot be cut and has fitted nowhere for long; once for each. The client
    /// is to be told, and answers with the name of the command.
    pub fn stuck(&mut self, now: Time) -> Option<Stuck> {
        let stuck = self.belief.stuck(now);
        self.unnamed += u32::from(stuck.is_some());
        stuck
    }

    /// What its group that is stuck is about, once it has said so.
    pub fn take_named(&mut self) -> Option<Command> {
        self.named.take()
    }

    /// A lower estimate for its first waiting group, if it is time for one. The loop turns often enough
    /// ([`BEAT_MAX`](super::thread::BEAT_MAX)) to look in every turn instead of setting a time-out.
    pub fn revised(&mut self, now: Time, opposed: impl FnOnce() -> bool) -> Option<Event> {
        let lower = self.belief.revise(now);
        let Revision { group, estimate } = match lower {
            None if self.belief.is_unbounded() && !opposed() => self.belief.revise_unopposed(),
            lower => lower,
        }?;
        Some(Event::Revise { app: self.app, group, estimate })
    }

    fn global(&self, group: GroupId) -> GroupId {
        GroupId(u64::from(self.app.0) << GROUP_BITS | (group.0 & ((1 << GROUP_BITS) - 1)))
    }
}

/// Puts a group on a list.
fn insert(list: &mut [Option<GroupId>], group: GroupId) -> Result<(), Fault> {
    let entry = list.iter_mut().find(|entry| entry.is_none()).ok_or(Fault::TooMany)?;
    *entry = Some(group);
    Ok(())
}

/// Takes a group off a list; returns whether it was on it.
fn remove(list: &mut [Option<GroupId>], group: GroupId) -> bool {
    list.iter_mut().find(|entry| **entry == Some(group)).and_then(Option::take).is_some()
}

/// The app whose group this is.
pub fn owner(group: GroupId) -> AppId {
    AppId(u32::try_from(group.0 >> GROUP_BITS).unwrap_or(u32::MAX))
}

/// The number that the client gave a group.
pub fn local(group: GroupId) -> GroupId {
    GroupId(group.0 & ((1 << GROUP_BITS) - 1))
}
