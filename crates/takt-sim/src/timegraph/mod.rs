//! Specification files of TimeGraph (`/etc/timegraph.spec`), and scenarios made from them.
//!
//! A line `name:sched:resv:prio:C:T` says how an application is to be scheduled: `sched` is `PRT`
//! or `HT`, `resv` is `PE`, `AE`, `Shared`, `Background` or `-`, `prio` a number (the higher wins)
//! or `*`, and `C` of every `T` microseconds is the GPU time set aside. `docs/timegraph.md` tells
//! people what becomes of each field.
//!
//! [`parse`] reads such a file, [`parse_limit`] the admission limit that TimeGraph keeps beside
//! it, and [`to_toml`] writes the scenario. Nothing here opens a file or panics.

mod skeleton;
mod spec;
#[cfg(test)]
mod tests;

use takt_core::Span;
use takt_core::service::Turns;

pub use skeleton::to_toml;
pub use spec::{parse, parse_limit, text};

/// Bytes that a specification or a limit file may have.
pub const SPEC_BYTES_MAX: usize = 1 << 20;

/// What a specification says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spec {
    /// The applications, in order.
    pub entries: Vec<Entry>,
}

/// A line of a specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Where it is written, from 1.
    pub line: u32,
    /// The line itself, without comment and surrounding space.
    pub text: String,
    /// The application.
    pub name: String,
    /// `PRT` is [`Turns::Single`], `HT` is [`Turns::Following`].
    pub turns: Turns,
    /// Where its GPU time comes from.
    pub reservation: SpecReservation,
    /// Its static priority; `None` is `*`, automatic.
    pub priority: Option<i32>,
}

/// The fields `resv`, `C` and `T`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpecReservation {
    /// `-`: neither promised nor capped.
    Unlimited,
    /// `PE`.
    Posterior(Terms),
    /// `AE`.
    Apriori(Terms),
    /// `Shared`: the reserve of all such applications together. The first one says how large it is.
    Shared(Option<Terms>),
    /// `Background`.
    Background,
}

/// So much of every so often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// `C`.
    pub capacity: Span,
    /// `T`.
    pub period: Span,
}
