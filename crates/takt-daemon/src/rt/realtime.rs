//! What makes a thread punctual.
//!
//! Each right helps by itself, and none is needed for the daemon to work: without them a busy
//! machine delays grants.

use std::num::NonZeroU64;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::{CpuSet, sched_setaffinity};
use thread_priority::{
    RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue, ThreadSchedulePolicy,
};

use crate::control::cpu_latency::Awake;

/// Real-time priority of the scheduling loop: above ordinary real-time work, below the kernel's.
const PRIORITY: u8 = 60;

/// A right that the system did not grant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Denied {
    /// What was asked for.
    pub what: &'static str,
    /// What the system said, and what helps.
    pub why: String,
}

/// The most urgent of ordinary threads.
const NICEST: i32 = -20;

/// Makes the calling thread a real-time one; otherwise what the system said.
pub fn real_time() -> Result<(), String> {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let priority = ThreadPriorityValue::try_from(PRIORITY).map_err(|error| error.to_string())?;
    let own = thread_priority::thread_native_id();
    thread_priority::set_thread_priority_and_policy(own, ThreadPriority::Crossplatform(priority), fifo)
        .map_err(|error| format!("{error:?}"))
}

/// Claims all rights for the calling thread, which is to run on a processor of its own if one is
/// named, with processors that wake up at once if anybody cares; returns those that were not granted.
pub fn claim(processor: Option<usize>, wake_us: Option<u32>) -> Vec<Denied> {
    let mut denied = Vec::new();
    let mut note = |what, result: Result<(), String>, remedy| {
        if let Err(error) = result {
            denied.push(Denied { what, why: format!("{error}; {remedy}") });
        }
    };
    let priority = real_time();
    if priority.is_err() {
        // Better than nothing; where that is not allowed either, nothing is lost. On Linux, "the
        // calling process" is the calling thread.
        rustix::process::setpriority_process(None, NICEST).unwrap_or_default();
    }
    note("real-time priority", priority, "allow it with CAP_SYS_NICE or a limit on rtprio");
    let memory = mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT);
    note(
        "memory that is never swapped out",
        memory.map_err(|error| error.to_string()),
        "allow it with CAP_IPC_LOCK or a limit on memlock",
    );
    // Sleep ends when it should and not up to 50 µs later.
    let slack = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    note("exact timers", slack.map_err(|error| error.to_string()), "timers may be late by 50 µs");
    if let Some(processor) = processor {
        let mut only = CpuSet::new();
        only.set(processor);
        let pinned = sched_setaffinity(None, &only).map_err(|error| error.to_string());
        note("its own processor", pinned, "name one in `processor` that is there and allowed");
    }
    if wake_us.is_some() {
        note(
            "processors that wake up at once",
            Awake::is_allowed().map_err(|error| error.to_string()),
            "let the daemon write to /dev/cpu_dma_latency",
        );
    }
    denied
}
