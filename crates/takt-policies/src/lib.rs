//! Scheduling rules by name: Takt's own, and those that it is compared with.
//!
//! Each file holds one rule, with its promises, its assumptions, its source and its cost at its head. A rule
//! implements [`Policy`] and sees the lanes and the context that every policy sees; whether a simulator or the
//! daemon drives it, it cannot tell.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod account;
pub mod channels;
mod edf_cbs;
mod fifo;
mod frame_deadline;
mod frrs;
mod germ;
mod hpf;
mod profile;
mod reserves;
mod runlist;
mod timegraph;

use alloc::boxed::Box;

pub use edf_cbs::{EdfCbs, Exhaustion};
pub use fifo::Fifo;
pub use frame_deadline::FrameDeadline;
pub use frrs::Frrs;
pub use germ::Germ;
pub use hpf::Hpf;
pub use runlist::Runlist;
pub use timegraph::TimeGraph;

use takt_core::policy::{Policy, Timeline};

/// Names of all policies, the default first.
pub const NAMES: &[&str] = &[
    "timeline",
    "frame-deadline",
    "fifo",
    "frrs",
    "hpf",
    "timegraph",
    "germ",
    "runlist",
    "edf-cbs",
    "edf-cbs-hard",
];

/// Whether the policy of that name keeps the contracts that pass the test of [`takt_core::contract`], under the
/// assumptions of `docs/guarantee.md`.
pub fn keeps_contracts(name: &str) -> bool {
    name == "timeline"
}

/// The policy of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Policy>> {
    match name {
        "timeline" => Some(Box::new(Timeline::new())),
        "frame-deadline" => Some(Box::new(FrameDeadline::new())),
        "fifo" => Some(Box::new(Fifo)),
        "frrs" => Some(Box::new(Frrs::default())),
        "hpf" => Some(Box::new(Hpf)),
        "timegraph" => Some(Box::new(TimeGraph::new())),
        "germ" => Some(Box::new(Germ::new())),
        "edf-cbs" => Some(Box::new(EdfCbs::new(Exhaustion::Soft))),
        "edf-cbs-hard" => Some(Box::new(EdfCbs::new(Exhaustion::Hard))),
        "runlist" => Some(Box::new(Runlist::new())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_gives_its_policy() {
        for name in NAMES {
            assert_eq!(by_name(name).map(|policy| policy.name()), Some(*name));
        }
        assert!(by_name("").is_none());
    }
}
