//! Granted groups: those that are being filled, and the one that was asked for ahead.

use std::collections::{BTreeMap, BTreeSet};

use takt_core::limits::FRAMES_PER_GROUP_MAX;
use takt_core::{GroupId, GroupKind, Span, Time};

use super::{Link, Waiting};
use crate::session::{Grant, UNUSED_BETWEEN};
use takt_ipc::Request;
use takt_os::clock;

/// A group that is being filled.
struct Open {
    since: Time,
    /// When its last frame ended, if nothing came since.
    idle_since: Option<Time>,
    /// Frames that ended inside of it.
    frames: u32,
}

/// A group that was asked for before it is needed.
struct Ahead {
    number: u64,
    estimate: Span,
    /// Since when it is granted.
    granted: Option<Time>,
}

/// What is asked for and granted on a connection.
#[derive(Default)]
pub(super) struct Grants {
    /// Credits that their threads have not taken yet.
    granted: BTreeMap<u64, Span>,
    /// Groups with a grant that are still being filled.
    open: BTreeMap<u64, Open>,
    /// A grant that was asked for before it is needed.
    ahead: Option<Ahead>,
    /// How many groups were asked for, and how many were granted.
    asked: u64,
    answered: u64,
    /// Groups that are not needed any more, and that the daemon will grant all the same.
    unwanted: BTreeSet<u64>,
    /// Frames that ended after their group had been given back: the next group counts them.
    stray_frames: u32,
}

impl Grants {
    /// A group was asked for.
    pub(super) fn asked(&mut self) {
        self.asked += 1;
    }

    /// A grant came; returns whether the group is still needed.
    pub(super) fn hear(&mut self, number: u64, credit: Span) -> bool {
        self.answered += 1;
        if self.unwanted.remove(&number) {
            return false;
        }
        if let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.number == number) {
            ahead.granted = Some(clock::now());
        }
        self.granted.insert(number, credit);
        true
    }

    /// Whether a thread needs a grant that has not come yet.
    pub(super) fn is_waited_for(&self) -> bool {
        let ahead = self.ahead.as_ref().is_some_and(|ahead| ahead.granted.is_none());
        self.asked - self.answered > u64::from(ahead)
    }

    /// Takes the groups that were not used for so long: their numbers, and the frames that ended in them.
    fn take_unused(&mut self, now: Time, unused: Span) -> Vec<(u64, u32)> {
        let lasted = |since: Option<Time>, span: Span| since.is_some_and(|since| now.since(since) >= span);
        let is_late =
            |open: &Open| lasted(Some(open.since), unused) || lasted(open.idle_since, UNUSED_BETWEEN);
        let late = self.open.extract_if(.., |_, open| is_late(open));
        late.map(|(number, open)| (number, open.frames)).collect()
    }

    /// Takes the grant that was asked for ahead if it was not used for too long.
    fn take_unused_ahead(&mut self, now: Time) -> Option<u64> {
        let is_late =
            |ahead: &mut Ahead| ahead.granted.is_some_and(|since| now.since(since) >= UNUSED_BETWEEN);
        let ahead = self.ahead.take_if(is_late)?;
        self.granted.remove(&ahead.number);
        Some(ahead.number)
    }
}

impl Link {
    /// The time granted to a group, if it was, and whether we are the only client; with `fills`, the
    /// group is open from now on.
    pub(crate) fn granted(&mut self, number: u64, life: u64, fills: bool) -> Waiting<(Span, bool)> {
        let alone = self.is_alone();
        let Some(on) = self.of(life) else {
            return Waiting::Over(None);
        };
        let Some(credit) = on.grants.granted.remove(&number) else {
            return Waiting::NotYet;
        };
        if fills {
            let frames = std::mem::take(&mut on.grants.stray_frames);
            on.grants.open.insert(number, Open { since: clock::now(), idle_since: None, frames });
        }
        Waiting::Over(Some((credit, alone)))
    }

    /// Asks for a grant before it is needed, unless that was done already.
    pub(crate) fn ask_ahead(&mut self, estimate: Span) {
        if self.on.as_ref().is_none_or(|on| on.grants.ahead.is_some()) {
            return;
        }
        if let Some((number, _)) = self.submit(GroupKind::Draw, estimate)
            && let Some(on) = &mut self.on
        {
            on.grants.ahead = Some(Ahead { number, estimate, granted: None });
        }
    }

    /// Takes the grant that was asked for ahead, which may not have come yet; none if it is not enough.
    /// Its number, connection, and what it was asked for.
    pub(crate) fn claim(&mut self, need: Span) -> Option<(u64, u64, Span)> {
        self.listen_once();
        let life = self.life;
        let on = self.on.as_mut()?;
        let ahead = on.grants.ahead.take()?;
        if ahead.estimate >= need {
            return Some((ahead.number, life, ahead.estimate));
        }
        match on.grants.granted.remove(&ahead.number) {
            Some(_) => self.tell_end(ahead.number, life, clock::now(), Span::ZERO, 0),
            None => {
                on.grants.unwanted.insert(ahead.number);
            }
        }
        None
    }

    /// Whether a group is open, and about to be used.
    pub(crate) fn is_open(&mut self, number: u64, life: u64) -> bool {
        let open = self.of(life).and_then(|on| on.grants.open.get_mut(&number));
        open.map(|open| open.idle_since = None).is_some()
    }

    /// A frame ended inside of a group.
    pub(crate) fn end_frame(&mut self, number: u64, life: u64) {
        let Some(on) = self.of(life) else {
            return;
        };
        match on.grants.open.get_mut(&number) {
            Some(open) => {
                open.frames += 1;
                open.idle_since = Some(clock::now());
            }
            None => on.grants.stray_frames = (on.grants.stray_frames + 1).min(FRAMES_PER_GROUP_MAX / 2),
        }
    }

    /// A group gets no more commands; the frames that ended in it, none if it was not open.
    pub(crate) fn close(&mut self, number: u64, life: u64) -> Option<u32> {
        self.of(life)?.grants.open.remove(&number).map(|open| open.frames)
    }

    /// Whether there is a grant that must not go unused for long.
    pub(crate) fn is_hasty(&self) -> bool {
        self.on.as_ref().is_some_and(|on| {
            on.grants.ahead.is_some() || on.grants.open.values().any(|open| open.idle_since.is_some())
        })
    }

    /// Whether something was asked for and not granted yet.
    pub(crate) fn is_awaited(&mut self) -> bool {
        self.listen_once();
        self.on.as_ref().is_some_and(|on| on.grants.asked > on.grants.answered)
    }

    /// Tells the daemon that groups are over that were not used for so long.
    pub(crate) fn give_back(&mut self, now: Time, unused: Span) {
        self.listen_once();
        let life = self.life;
        let Some(on) = &mut self.on else {
            return;
        };
        let mut late = on.grants.take_unused(now, unused);
        if !late.is_empty() {
            self.epoch += 1;
        }
        late.extend(on.grants.take_unused_ahead(now).map(|number| (number, 0)));
        for (number, frames) in late {
            self.tell_end(number, life, now, Span::ZERO, frames);
        }
    }

    /// Takes replies that are there already, unless another thread listens; notices if none will come.
    /// Only if a grant was asked for ahead.
    fn listen_once(&mut self) {
        if self.on.as_ref().is_some_and(|on| on.grants.ahead.is_some())
            && let Some(mut listener) = self.begin_listening()
        {
            let heard = listener.look();
            self.end_listening(listener, heard);
        }
    }

    /// Takes replies that are there already, unless another thread listens.
    pub(crate) fn listen_now(&mut self) {
        if let Some(mut listener) = self.begin_listening() {
            let heard = listener.take();
            self.end_listening(listener, heard);
        }
    }

    /// The group of a grant is over. If it is still to be filled and not open, it was given back, and
    /// its end was told then.
    pub(crate) fn complete(&mut self, grant: Grant, finished: Time, cost: Span) {
        let Grant { number, life, fills, mut frames, .. } = grant;
        if fills {
            match self.close(number, life) {
                Some(ended) => frames += ended,
                None => return,
            }
        }
        self.tell_end(number, life, finished, cost, frames);
    }

    pub(super) fn tell_end(&mut self, number: u64, life: u64, finished: Time, cost: Span, frames: u32) {
        let frames = frames.min(FRAMES_PER_GROUP_MAX);
        let complete = Request::Complete { group: GroupId(number), finished, cost, frames };
        if let Some(on) = self.of(life)
            && on.sender.send(&complete).is_err()
        {
            self.lose("the daemon does not read what it is told");
        }
    }
}
