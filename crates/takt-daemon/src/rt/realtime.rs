//! The privileges that make a thread punctual.
//!
//! Each one helps by itself, and the daemon works without them; then a busy machine delays grants.

use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_setaffinity};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
};

/// Real-time priority of the scheduling loop: above ordinary real-time work, below the kernel's.
const PRIORITY: u8 = 60;

/// A privilege that the system did not grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// The privilege.
    pub what: &'static str,
    /// The system's error, and the remedy.
    pub why: String,
}

/// The most urgent nice value of an ordinary thread.
const NICEST: i32 = -20;

/// The nice value of a thread that goes before ordinary ones.
const NICE: i32 = -15;

/// Lets the calling thread go before ordinary ones, where the system allows that. Threads that it starts
/// inherit that, so those are to call [`ordinary`].
pub(crate) fn before_ordinary() {
    // On Linux this is about the calling thread alone. Nothing is lost if it is denied.
    rustix::process::setpriority_process(None, NICE).unwrap_or_default();
}

/// Makes the calling thread an ordinary one again.
pub(crate) fn ordinary() {
    // It fails only where the thread was never more than that.
    rustix::process::setpriority_process(None, 0).unwrap_or_default();
}

/// Makes the calling thread a real-time one, or returns the system's error.
pub fn real_time() -> Result<(), String> {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(PRIORITY).map_err(|error| error.to_string())?;
    let own = thread_priority::thread_native_id();
    thread_priority::set_thread_priority_and_policy(own, ThreadPriority::Crossplatform(priority), fifo)
        .map_err(|error| format!("{error:?}"))
}

/// Claims all privileges for the calling thread, and pins it to `processor` if one is named; returns
/// those that the system denied.
pub fn claim(processor: Option<usize>) -> Vec<Denied> {
    let mut denied = Vec::new();
    let mut note = |what, result: Result<(), String>, remedy| {
        if let Err(error) = result {
            denied.push(Denied { what, why: format!("{error}; {remedy}") });
        }
    };
    let priority = real_time();
    if priority.is_err() {
        // The next best; nothing is lost if that is denied as well. On Linux this sets the nice value of
        // the calling thread alone.
        rustix::process::setpriority_process(None, NICEST).unwrap_or_default();
    }
    note("real-time priority", priority, "allow it with CAP_SYS_NICE or a limit on rtprio");
    let memory = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    note(
        "memory that is never swapped out",
        memory.map_err(|error| error.to_string()),
        "allow it with CAP_IPC_LOCK or a limit on memlock",
    );
    // By default Linux may end a sleep up to 50 µs late.
    let slack = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    note("exact timers", slack.map_err(|error| error.to_string()), "timers may be late by 50 µs");
    if let Some(processor) = processor {
        let mut only = CpuSet::new();
        only.set(processor);
        let pinned = sched_setaffinity(None, &only).map_err(|error| error.to_string());
        note("its own processor", pinned, "name one in `processor` that is there and allowed");
    }
    denied
}
