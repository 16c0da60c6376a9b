//! The attack suite: everything that other users of a machine were found to try.
//!
//! In each attack a protected app draws at 60 frames per second over the real rings, and a listed app joins
//! again and again. The first must lose no deadline, the second must always get in within 100 ms, and the
//! control thread must look at its connections at least every 50 ms. Only time for which the machine itself
//! stood still is excused, and printed. `make test` plays a bounded part of each, `make test-long`
//! (`TAKT_SLOW_TESTS`) all of it. Each attack prints its figures:
//!
//! ```sh
//! TAKT_SLOW_TESTS=1 cargo test -p takt-daemon --test attack -- --nocapture --test-threads 1
//! ```
//!
//! Attackers are users of their own, which takes root; without, they are the daemon's user, and attacks that
//! differ by user are skipped.

mod arena;
mod canary;
mod clients;
mod crowds;
mod messages;
#[path = "../support/mod.rs"]
mod support;
mod tools;
mod victim;
