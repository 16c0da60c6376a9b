//! What a GPU adds to the work of an app, and why paying for that is enough.
//!
//! A frame pays for all of it out of its `etpf`: [`Config::conservative`](crate::Config::conservative) has the changes
//! of contexts in the length of each group, and [`Config::per_group`](crate::Config::per_group) and
//! [`Config::per_frame`](crate::Config::per_frame) are the delays. So the offline test
//! ([`analysis::contracts`](crate::analysis::contracts)) adds nothing but a *lead* to the longest group.
//!
//! * **Delays.** The GPU may stand still, though a group waits, from the end of the last group in
//!   flight until the scheduler heard of it and dispatched the next (the *turnaround*). Why was
//!   that next group X, the first by due date, not in flight already?
//!   1. X was not there: it is the first of its frame, or the first after a gap. `per_frame` pays.
//!   2. X would have made promises to come late. The blocking of X has the turnaround in it
//!      (the lead), so X may begin that long before the GPU runs empty, and the GPU does not. If
//!      groups end earlier than predicted, what is lost is less than what they left over.
//!   3. X could make what is in flight and due earlier late, if it were to end first
//!      ([`Gpu::TimeShared`](crate::Gpu::TimeShared) only). Whatever more there is of that frame comes before X, so
//!      its last group is in flight: each frame does this to others once. Its `per_frame` pays.
//!   4. All slots were taken. If by groups of the same frame, they end one after the other, and
//!      `per_group` has what the shortest ones do not cover. If by others: 1 or 3.
//! * **It takes** that groups of one app run in order; that the next group of a frame is there when
//!   the one before is dispatched, except for gaps; that apps without a promise take no slots from
//!   those with one; and that "late anyway" is judged without these charges.
//! * **Turns.** If groups of several contexts are in flight together, they take turns, and each change of contexts
//!   costs a switch. A frame pays for two switches, however many groups it has and however short slices are, since
//!   the scheduler keeps two rules. (a) A group of a protected app enters only if nothing of another protected app
//!   is in flight. (b) No protected app goes before the one that is due first, even if that one is held. Why two
//!   are enough: take all turns in their order; a switch is paid where neighbours are of different apps.
//!   1. One of them is a turn of an app that is not protected. Such a turn ends when its channel is dry or after a
//!      slice, so a group of length c has ⌈c / slice⌉ of them, and pays two switches for each: to it, and
//!      from it to the next context. What follows has that switch on its account once the group is over.
//!   2. Both are turns of protected apps, A and then B. By (a) all of A was over when B was dispatched. Either B
//!      begins a frame, which pays. Or B goes on with one; then by (b) frames that are due earlier displaced
//!      it, and the first of these pays for the way back, as in any analysis of EDF.
//!   3. Both are of the same app: no switch, whether a slice has ended or not.
//!
//!   At a change between protected apps, the GPU also stands still for a turnaround. `per_frame` has one more of
//!   them than in order: one before the frame, one when what it displaced goes on. A group that goes on has the way
//!   back on top of its length, so the lead has it, too. Work of a protected app beyond its promise pays for
//!   both changes whenever it displaces another one, out of slack.

/// Which changes of contexts a group pays for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Charge {
    /// It follows a group of its own app, of the same protected frame.
    Stays,
    /// It is the first one of a protected frame, or comes by a protected server: one change to its app, and one
    /// back to the protected app that it displaces.
    Enters,
    /// Its app is not protected: each of its turns may interrupt others, which is one change to it and one back.
    Beside,
}
