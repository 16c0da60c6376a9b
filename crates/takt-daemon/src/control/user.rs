//! Whose client or tool it is, and how well that user is known.

/// How well a user is known; each rank has room of its own, which users of a lower one cannot fill.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rank {
    /// The daemon's own user, and the superuser.
    Own,
    /// Of an app that the configuration lists.
    Listed,
    /// All others.
    Other,
}

/// A user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) rank: Rank,
}
