//! The work of one context or queue of the program, as the daemon sees it.
//!
//! A stream asks for a grant before the first command of each group, fills the group up to its credit,
//! and lets short frames share groups ([`Gathering`]). The API layer says what commands are predicted to
//! take, and when frames end.

use takt_core::{GroupKind, Span};
use takt_os::clock;

use crate::gather::{FrameCost, Gathering};
use crate::session::{Grant, Session, Watch};

/// See the module.
#[derive(Default, Debug)]
pub struct Stream {
    grant: Option<Grant>,
    watch: Watch,
    /// A frame ended inside of the current group, and the session must hear that the group goes on.
    idle: bool,
    /// What this frame has contained so far by prediction, and all of the one before. Not what was
    /// granted: grants may be longer, and each frame would ask for what the one before had too much.
    frame: Span,
    frame_before: Span,
    /// Frames that go into one group.
    pub gathering: Gathering,
    /// Copies that need no grant.
    pub ungranted: Ungranted,
    /// The command for which a grant is asked next.
    pub command: &'static str,
}

impl Stream {
    /// Whether the current group has a grant.
    #[inline]
    pub fn has_grant(&self) -> bool {
        self.grant.is_some()
    }

    /// The grant of the current group.
    #[inline]
    pub fn grant(&self) -> Option<&Grant> {
        self.grant.as_ref()
    }

    /// What the current group may contain beyond the frames that have ended inside of it.
    #[inline]
    pub fn credit(&self) -> Option<Span> {
        self.grant.map(|grant| grant.credit.saturating_sub(self.gathering.contained()))
    }

    /// So much more of the frame is in groups.
    pub fn contains(&mut self, predicted: Span) {
        self.frame += predicted;
    }

    /// The longest group that is to be formed. Takes no lock.
    #[inline]
    pub fn slice(&self, session: &Session) -> Span {
        session.slice_by(&self.watch)
    }

    /// Forgets a grant that was taken back, and looks whether other clients are there. Takes no lock
    /// unless something happened to a grant.
    #[inline]
    pub fn check(&mut self, session: &Session) {
        if self.idle || !session.is_unchanged(&self.watch) {
            let held = session.look(self.grant.as_ref(), &mut self.watch);
            self.grant.take_if(|_| !held);
            self.idle = false;
        }
        self.gathering.set_alone(session.is_alone_by(&self.watch));
    }

    /// A group that was filled slowly is about to be handed over: gives its grant back if that came so long ago that
    /// the daemon does not count on the group any more. The only client keeps others from nothing.
    pub fn expire(&mut self, session: &Session) {
        let now = clock::now();
        let late = |grant: &mut Grant| self.gathering.age(now.as_ns()) > late_after(grant.credit);
        if self.gathering.is_alone() {
            return;
        }
        if let Some(grant) = self.grant.take_if(late) {
            session.complete(grant, now, Span::ZERO);
        }
    }

    /// Whether the current group is longer than it may be now, or of unknown length, because another
    /// client has come.
    #[inline]
    pub fn must_yield(&self) -> bool {
        let long = self.gathering.coasts() || self.grant.is_some_and(|grant| grant.alone);
        long && !self.gathering.is_alone()
    }

    /// Whether the current group contains as much as it was granted, if `pending` is what it contains
    /// since its last frame.
    #[inline]
    pub fn is_full(&self, pending: impl FnOnce() -> Span) -> bool {
        let known = !self.gathering.coasts();
        known && self.credit().is_some_and(|credit| pending() >= credit)
    }

    /// Asks for a grant for a group that begins with `need`, unless there is one, and waits for it.
    pub fn ask(&mut self, session: &Session, need: Span) {
        if self.grant.is_some() {
            return;
        }
        session.begin_frame();
        self.check(session);
        self.gathering.asks(clock::now().as_ns(), need);
        let most = longest(need, self.slice(session));
        let rest = self.frame_before.saturating_sub(self.frame);
        let estimate = rest.max(self.gathering.wanted()).min(most);
        let grant = session.ask_to_fill_for(self.command, need, need.max(estimate));
        self.granted(grant);
    }

    /// Asks for a grant for exactly so much, unless there is one: the credit; none if unscheduled.
    pub fn ask_exactly(&mut self, session: &Session, estimate: Span) -> Option<Span> {
        if self.grant.is_none() {
            session.begin_frame();
            let grant = session.ask_to_fill_for(self.command, estimate, estimate);
            self.granted(grant);
        }
        self.grant.map(|grant| grant.credit)
    }

    /// Asks for a grant to show a frame that is a group of its own; none if unscheduled.
    pub fn ask_to_show(&mut self, session: &Session, estimate: Span) -> Option<Grant> {
        let grant = session.ask(GroupKind::Swap, estimate);
        self.end_frame();
        self.granted(grant);
        grant
    }

    /// A frame is about to end inside of a group, for which there is a grant afterwards: whether the
    /// group ends with it. With `news`, it contains something that must be measured.
    pub fn plan(&mut self, session: &Session, cost: FrameCost, news: bool) -> bool {
        self.ask(session, cost.most);
        let credit = self.credit().unwrap_or(Span::ZERO);
        let plan = self.gathering.plan(clock::now().as_ns(), cost, credit, news);
        if plan.ask_ahead {
            let frame = self.frame + cost.most;
            session.ask_ahead(self.gathering.wanted_ahead().max(frame).min(self.slice(session)));
        }
        plan.ends
    }

    /// A frame ended inside of the current group; its swap began at `began_ns` and ended at `now_ns`.
    pub fn frame_ended(&mut self, session: &Session, began_ns: u64, now_ns: u64, cost: FrameCost) {
        self.contains(cost.most);
        let whole = self.frame;
        self.end_frame();
        self.gathering.end_frame(began_ns, now_ns, cost, whole);
        if let Some(grant) = &self.grant {
            session.end_frame(grant);
            self.idle = true;
        }
    }

    /// The group is handed to the driver; its grant goes with it.
    pub fn end_group(&mut self, session: &Session) -> Option<Grant> {
        self.gathering.end();
        self.idle = false;
        self.grant.take().and_then(|grant| session.hand_over(grant))
    }

    fn granted(&mut self, grant: Option<Grant>) {
        self.grant = grant;
        self.idle = false;
        self.gathering.begin(clock::now().as_ns());
    }

    fn end_frame(&mut self) {
        self.frame_before = std::mem::take(&mut self.frame);
        self.ungranted.end_frame();
    }
}

/// The daemon takes a group for late after twice its length and two milliseconds more
/// ([`takt_core::Tuning::late_after`]): others have its place from then on, and are promised the GPU without it.
fn late_after(credit: Span) -> Span {
    credit.times(2) + Span::from_ms(2)
}

/// How long a group may be that begins with so much: a slice. A first command that is longer than a
/// slice takes what follows within another slice with it, which saves a switch.
fn longest(need: Span, slice: Span) -> Span {
    if need > slice { need + slice } else { slice }
}

/// Copies of a frame that had no grant.
///
/// Copies are frequent and mostly short, and programs stop for long between them to fetch what comes
/// next. A grant for each would be waited for and then held in vain. So a copy asks only where it
/// matters: where the copies of a frame without a grant would come to more than `COPIES_MAX`.
#[derive(Default, Debug)]
pub struct Ungranted {
    /// What those took that are with the driver.
    gone: Span,
    /// Those that came since the last look.
    copies: u32,
    bytes: u64,
}

/// What copies of a frame may take without a grant, by prediction.
const COPIES_MAX: Span = Span::from_us(200);

/// What a read-back of few bytes costs others: hardly more than the change to the program's context and back.
const LITTLE_READ: Span = Span::from_us(20);

/// Copies are looked at together until they are so many, or have so many bytes.
const LOOK_COPIES: u32 = 8;
const LOOK_BYTES: u64 = 64 << 10;

impl Ungranted {
    /// Another copy: whether it is time to look.
    pub fn wants_look(&mut self, bytes: u64) -> bool {
        self.copies += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let look = self.copies >= LOOK_COPIES || self.bytes >= LOOK_BYTES;
        if look {
            (self.copies, self.bytes) = (0, 0);
        }
        look
    }

    /// Whether copies that take so long, in a group of their own, need a grant.
    pub fn is_too_much(&self, pending: Span) -> bool {
        self.gone + pending > COPIES_MAX
    }

    /// A read-back of few bytes, which needs no grant by itself: whether it needs one all the same, after so many of
    /// them and so many other copies in the same frame.
    pub fn reads_little(&mut self) -> bool {
        self.gone += LITTLE_READ;
        self.gone > COPIES_MAX
    }

    /// A group went to the driver without a grant.
    pub fn went(&mut self, predicted: Span) {
        self.gone += predicted;
    }

    fn end_frame(&mut self) {
        self.gone = Span::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_long_command_goes_with_it() {
        let [slice, short, long] = [1_000, 300, 1_600].map(Span::from_us);
        assert_eq!([longest(short, slice), longest(slice, slice)], [slice, slice]);
        assert_eq!(longest(long, slice), Span::from_us(2_600));
        assert_eq!(longest(long, Span::FOREVER), Span::FOREVER);
    }

    #[test]
    fn what_a_frame_asks_for_does_not_grow() {
        let session = Session::absent(|_| {});
        let mut stream = Stream::default();
        for _ in 0..100 {
            // More is granted than was asked for, and the group contains less.
            let asked = stream.frame_before.saturating_sub(stream.frame).max(Span::from_us(10));
            assert!(asked <= Span::from_us(1_500), "{asked:?}");
            let credit = asked + Span::from_us(200);
            let grant = Grant { number: 0, life: 0, fills: false, credit, frames: 0, alone: false };
            stream.granted(Some(grant));
            stream.contains(Span::from_us(1_500));
            assert!(stream.end_group(&session).is_some());
            stream.end_frame();
        }
    }

    #[test]
    fn few_small_copies_are_not_looked_at() {
        let mut copies = Ungranted::default();
        let looks = (0..80).filter(|_| copies.wants_look(100)).count();
        assert_eq!(looks, 10);
        assert!(copies.wants_look(1 << 20), "a large one is");
        assert!(!copies.wants_look(LOOK_BYTES / 2));
        assert!(copies.wants_look(LOOK_BYTES / 2));
        assert!(copies.wants_look(u64::MAX));
    }

    #[test]
    fn what_goes_without_a_grant_is_bounded_in_each_frame() {
        let mut copies = Ungranted::default();
        let group = Span::from_us(60);
        let mut total = Span::ZERO;
        for _ in 0..100 {
            if !copies.is_too_much(group) {
                copies.went(group);
                total += group;
            }
        }
        assert_eq!(total, Span::from_us(180));
        assert!(!copies.reads_little() && copies.reads_little(), "read-backs count as well");
        copies.end_frame();
        assert_eq!((0..100).filter(|_| !copies.reads_little()).count(), 10);
        copies.end_frame();
        assert!(!copies.is_too_much(group), "the next frame has as much");
        assert!(copies.is_too_much(Span::from_us(201)));
    }
}
