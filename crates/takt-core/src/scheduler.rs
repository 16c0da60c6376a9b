//! The machine.

/// The scheduler.
#[derive(Debug)]
pub struct Scheduler;

/// Counters of a scheduler.
#[derive(Debug)]
pub struct Stats;
