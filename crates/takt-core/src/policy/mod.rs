//! The rules that pick the next command group.
//!
//! A policy is a pure function of what it is shown: the time, the refresh grid, when the GPU will
//! be free, and the [`Lane`]s of all apps. It changes nothing but the lanes' targets and the
//! reasons for holding groups back; the [`crate::Scheduler`] does all bookkeeping. It never learns
//! whether it runs in the simulator or in the daemon.

mod fifo;
mod frame_deadline;
mod profile;

use alloc::boxed::Box;

pub use fifo::Fifo;
pub use frame_deadline::FrameDeadline;

use crate::config::Config;
use crate::refresh::Period;
use crate::scheduler::Lane;
use crate::time::Time;

/// Decides which app's first waiting group goes to the GPU next.
pub trait Policy: Send + core::fmt::Debug {
    /// The name it is selected by.
    fn name(&self) -> &'static str;

    /// Apps joined, left or changed their parameters.
    fn apps_changed(&mut self, lanes: &[Lane]) {
        let _ = lanes;
    }

    /// When to decide again if nothing happens before, although nothing may run now.
    fn timeout(&self) -> Option<Time> {
        None
    }

    /// Picks a lane with a waiting group, or none if nothing may run now. Every lane with a
    /// waiting group that was not picked gets the reason in [`Lane::hold`].
    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize>;
}

/// What a policy may know besides the lanes.
#[derive(Copy, Clone, Debug)]
pub struct Context {
    /// The time of the decision.
    pub now: Time,
    /// The period it falls in (`current#`).
    pub current: Period,
    /// When the GPU has done all that was dispatched at the earliest, by optimistic prediction.
    pub free_o: Time,
    /// When a group picked now starts at the latest, by conservative prediction (`t_ref_c`).
    pub ready_c: Time,
    /// When a group picked now starts at the earliest, by optimistic prediction (`t_ref_o`).
    pub ready_o: Time,
    /// Parameters of the scheduler.
    pub config: Config,
}

/// Names of all policies, the default first.
pub const NAMES: &[&str] = &["frame-deadline", "fifo"];

/// The policy of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Policy>> {
    match name {
        "frame-deadline" => Some(Box::new(FrameDeadline::new())),
        "fifo" => Some(Box::new(Fifo)),
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
