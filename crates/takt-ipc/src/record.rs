//! What the rings carry.
//!
//! A record is eight words. The first is the kind; the meaning of the others follows from that, and
//! what a kind does not use is zero. Decoding checks every field, so what comes out is sensible in
//! itself; whether it fits what happened before is the receiver's to judge.

use takt_core::limits::FRAMES_PER_GROUP_MAX;
use takt_core::{Estimate, GroupId, GroupKind, Span, Time};

use crate::command::Command;

/// Words of a record: one cache line.
pub const RECORD_WORDS: usize = 8;

/// A record as it lies in the ring.
pub type Words = [u64; RECORD_WORDS];

/// Longest time that may be asked for or claimed: an hour.
pub const SPAN_MAX: Span = Span::from_ms(3_600_000);

/// From a client to the daemon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Request {
    /// The client has a command group and asks for a grant to hand it to the driver.
    Submit {
        /// Counts up from one group to the next.
        group: GroupId,
        /// What it is to its frame.
        kind: GroupKind,
        /// How long it is predicted to run.
        estimate: Estimate,
    },
    /// The GPU finished a group.
    Complete {
        /// Which one.
        group: GroupId,
        /// When, by the monotonic clock.
        finished: Time,
        /// How long it ran, as measured.
        cost: Span,
        /// Frames that ended inside of it, besides the one that its kind ends.
        frames: u32,
    },
    /// The command for which a group was asked that has waited for long: the answer to [`Reply::Stuck`].
    Names {
        /// Which group.
        group: GroupId,
        /// What the program calls.
        command: Command,
    },
}

/// From the daemon to a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The group may be handed to the driver.
    Grant {
        /// Which one.
        group: GroupId,
        /// How much predicted time it may contain.
        credit: Span,
    },
    /// The next frame may start at that time, by the monotonic clock.
    Release {
        /// Not before.
        at: Time,
    },
    /// What a single group may be at most, from now on; unbounded if groups are not to be sliced.
    Limit {
        /// Longest predicted time.
        slice: Span,
    },
    /// The client is not scheduled any more: it runs on without asking.
    Farewell,
    /// How the client stands from now on.
    Standing(Standing),
    /// A group has waited for two seconds, because it cannot be cut and fits nowhere.
    Stuck {
        /// Which one.
        group: GroupId,
        /// How long it is predicted to run.
        estimate: Estimate,
    },
}

/// What the daemon does for a client; others come and go, and it changes with them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    /// Whether it is to wait for its release after a swap.
    pub paced: bool,
    /// Whether it waits for itself, by a clock of its own: it is held back before the first command of a frame
    /// that would come too soon, and never after a swap.
    pub own: bool,
    /// Whether it has a contract, covered or not.
    pub contract: bool,
    /// Whether its contract is covered beside those of more important apps.
    pub protected: bool,
    /// Whether its deadlines are guaranteed: it is protected, and all else holds that this takes.
    pub guaranteed: bool,
}

/// Why words are no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// No such kind of record.
    #[error("{0} is no kind of record")]
    Kind(u64),
    /// No such kind of group.
    #[error("{0} is no kind of command group")]
    GroupKind(u64),
    /// A time longer than anything sensible.
    #[error("{0} ns is longer than any command group")]
    Span(u64),
    /// A time beyond any clock.
    #[error("{0} ns is beyond any clock")]
    Time(u64),
    /// More frames than fit into a group.
    #[error("{0} frames are more than end in one command group")]
    Frames(u64),
    /// No name of a command.
    #[error("words that name no command")]
    Command,
    /// No way to stand.
    #[error("{0} says nothing about how an app stands")]
    Standing(u64),
    /// Words that the kind does not use are not zero.
    #[error("words beyond the record are not zero")]
    Excess,
}

const SUBMIT: u64 = 1;
const COMPLETE: u64 = 2;
const NAMES: u64 = 3;
const GRANT: u64 = 1;
const RELEASE: u64 = 2;
const LIMIT: u64 = 3;
const FAREWELL: u64 = 4;
const STANDING: u64 = 5;
const STUCK: u64 = 6;

/// Bits of a standing.
const PACED: u64 = 1;
const PROTECTED: u64 = 2;
const GUARANTEED: u64 = 4;
const OWN: u64 = 8;
const CONTRACT: u64 = 16;

/// Stands for a span without bound.
const UNBOUNDED: u64 = u64::MAX;

impl Request {
    /// As it lies in the ring.
    pub fn encode(&self) -> Words {
        match *self {
            Self::Submit { group, kind, estimate } => {
                record([SUBMIT, group.0, encode_kind(kind), encode_span(estimate.span())])
            }
            Self::Complete { group, finished, cost, frames } => {
                let mut words = record([COMPLETE, group.0, finished.as_ns(), encode_span(cost)]);
                words[4] = frames.into();
                words
            }
            Self::Names { group, command } => {
                let mut words = record([NAMES, group.0, 0, 0]);
                words[2..6].copy_from_slice(&command.words());
                words
            }
        }
    }

    /// Checks and reads a record.
    pub fn decode(words: &Words) -> Result<Self, Malformed> {
        let [kind, a, b, c, d, e, ..] = *words;
        let (request, used) = match kind {
            SUBMIT => {
                let (kind, estimate) = (decode_kind(b)?, Estimate::new(decode_span(c)?));
                (Self::Submit { group: GroupId(a), kind, estimate }, 3)
            }
            COMPLETE => {
                let (finished, cost, frames) = (decode_time(b)?, decode_span(c)?, decode_frames(d)?);
                (Self::Complete { group: GroupId(a), finished, cost, frames }, 4)
            }
            NAMES => {
                let command = Command::read([b, c, d, e]).ok_or(Malformed::Command)?;
                (Self::Names { group: GroupId(a), command }, 5)
            }
            other => return Err(Malformed::Kind(other)),
        };
        if words[1 + used..].iter().any(|word| *word != 0) { Err(Malformed::Excess) } else { Ok(request) }
    }
}

impl Reply {
    /// As it lies in the ring.
    pub fn encode(&self) -> Words {
        match *self {
            Self::Grant { group, credit } => record([GRANT, group.0, encode_span(credit), 0]),
            Self::Release { at } => record([RELEASE, at.as_ns(), 0, 0]),
            Self::Limit { slice } => record([LIMIT, encode_span(slice), 0, 0]),
            Self::Farewell => record([FAREWELL, 0, 0, 0]),
            Self::Standing(standing) => record([STANDING, encode_standing(standing), 0, 0]),
            Self::Stuck { group, estimate } => record([STUCK, group.0, encode_span(estimate.span()), 0]),
        }
    }

    /// Checks and reads a record.
    pub fn decode(words: &Words) -> Result<Self, Malformed> {
        let [kind, a, b, ..] = *words;
        let (reply, used) = match kind {
            GRANT => (Self::Grant { group: GroupId(a), credit: decode_span(b)? }, 2),
            RELEASE => (Self::Release { at: decode_time(a)? }, 1),
            LIMIT => (Self::Limit { slice: decode_span(a)? }, 1),
            FAREWELL => (Self::Farewell, 0),
            STANDING => (Self::Standing(decode_standing(a)?), 1),
            STUCK => (Self::Stuck { group: GroupId(a), estimate: Estimate::new(decode_span(b)?) }, 2),
            other => return Err(Malformed::Kind(other)),
        };
        if words[1 + used..].iter().any(|word| *word != 0) { Err(Malformed::Excess) } else { Ok(reply) }
    }
}

fn record(used: [u64; 4]) -> Words {
    let mut words = [0; RECORD_WORDS];
    words[..used.len()].copy_from_slice(&used);
    words
}

fn encode_standing(standing: Standing) -> u64 {
    let Standing { paced, own, contract, protected, guaranteed } = standing;
    let bits =
        [(paced, PACED), (protected, PROTECTED), (guaranteed, GUARANTEED), (own, OWN), (contract, CONTRACT)];
    bits.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum()
}

fn decode_standing(bits: u64) -> Result<Standing, Malformed> {
    if bits & !(PACED | PROTECTED | GUARANTEED | OWN | CONTRACT) != 0 {
        return Err(Malformed::Standing(bits));
    }
    let is_set = |bit| bits & bit != 0;
    Ok(Standing {
        paced: is_set(PACED),
        own: is_set(OWN),
        contract: is_set(CONTRACT),
        protected: is_set(PROTECTED),
        guaranteed: is_set(GUARANTEED),
    })
}

fn encode_span(span: Span) -> u64 {
    if span > SPAN_MAX { UNBOUNDED } else { span.as_ns() }
}

fn decode_span(ns: u64) -> Result<Span, Malformed> {
    match ns {
        UNBOUNDED => Ok(Span::FOREVER),
        ns if ns <= SPAN_MAX.as_ns() => Ok(Span::from_ns(ns)),
        ns => Err(Malformed::Span(ns)),
    }
}

fn decode_time(ns: u64) -> Result<Time, Malformed> {
    let time = Time::from_ns(ns);
    if time.as_ns() == ns { Ok(time) } else { Err(Malformed::Time(ns)) }
}

fn decode_frames(word: u64) -> Result<u32, Malformed> {
    match u32::try_from(word) {
        Ok(frames) if frames <= FRAMES_PER_GROUP_MAX => Ok(frames),
        _ => Err(Malformed::Frames(word)),
    }
}

fn encode_kind(kind: GroupKind) -> u64 {
    match kind {
        GroupKind::Draw => 0,
        GroupKind::Swap => 1,
        GroupKind::Sync => 2,
        GroupKind::Exit => 3,
    }
}

fn decode_kind(word: u64) -> Result<GroupKind, Malformed> {
    match word {
        0 => Ok(GroupKind::Draw),
        1 => Ok(GroupKind::Swap),
        2 => Ok(GroupKind::Sync),
        3 => Ok(GroupKind::Exit),
        other => Err(Malformed::GroupKind(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..6, any::<u64>(), Just(u64::MAX), Just(0)]
    }

    proptest! {
        /// Whatever the words are: an error, or a record that is written with the same words.
        #[test]
        fn decoding_is_exact(words in proptest::array::uniform8(word())) {
            if let Ok(request) = Request::decode(&words) {
                prop_assert_eq!(request.encode(), words);
            }
            if let Ok(reply) = Reply::decode(&words) {
                prop_assert_eq!(reply.encode(), words);
            }
        }
    }

    #[test]
    fn long_spans_become_unbounded() {
        let submit = |span| Request::Submit {
            group: GroupId(7),
            kind: GroupKind::Sync,
            estimate: Estimate::new(span),
        };
        let too_long = submit(Span::from_ns(SPAN_MAX.as_ns() + 1));
        assert_eq!(Request::decode(&too_long.encode()), Ok(submit(Span::FOREVER)));
        assert_eq!(Request::decode(&submit(SPAN_MAX).encode()), Ok(submit(SPAN_MAX)));
    }

    #[test]
    fn a_group_can_be_named() {
        let named = Request::Names { group: GroupId(9), command: Command::new("glBlitFramebuffer") };
        assert_eq!(Request::decode(&named.encode()), Ok(named));
    }

    #[test]
    fn each_mistake_has_a_name() {
        let decode = |a, b, c, d, e| Request::decode(&[a, b, c, d, e, 0, 0, 0]);
        assert_eq!(decode(9, 0, 0, 0, 0), Err(Malformed::Kind(9)));
        assert_eq!(decode(SUBMIT, 0, 4, 0, 0), Err(Malformed::GroupKind(4)));
        assert_eq!(decode(SUBMIT, 0, 0, u64::MAX - 1, 0), Err(Malformed::Span(u64::MAX - 1)));
        assert_eq!(decode(COMPLETE, 0, u64::MAX, 0, 0), Err(Malformed::Time(u64::MAX)));
        assert_eq!(decode(SUBMIT, 0, 0, 0, 1), Err(Malformed::Excess));
        assert_eq!(decode(COMPLETE, 0, 0, 0, 33), Err(Malformed::Frames(33)));
        assert_eq!(decode(NAMES, 0, 1 << 60, 0, 0), Err(Malformed::Command));
        assert_eq!(Reply::decode(&[STANDING, 32, 0, 0, 0, 0, 0, 0]), Err(Malformed::Standing(32)));
        assert_eq!(Reply::decode(&[RELEASE, 0, 1, 0, 0, 0, 0, 0]), Err(Malformed::Excess));
    }
}
