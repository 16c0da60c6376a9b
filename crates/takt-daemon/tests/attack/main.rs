//! The attack suite: everything that other users of a machine were found to try.
//!
//! The daemon is set up as for apps that matter: with domains, supervision, a minimum share and an audit. In
//! each attack a protected app draws at 60 frames per second over the real rings, an app of another domain
//! keeps the GPU busy with its share, and a listed app joins again and again. The first must lose no deadline,
//! the second must have its share, the third must always get in within 100 ms, and the control thread must
//! look at its connections at least every 50 ms. In the end the audit must be intact and have all that was
//! about them. Only time is excused, and printed, for which the machine itself stood still, or for which the app that
//! joins could run and other programs did; what the suite does itself excuses nothing. `make test` plays a bounded
//! part of each, `make test-long` (`TAKT_SLOW_TESTS`) all of it. Each attack prints its figures:
//!
//! ```sh
//! TAKT_SLOW_TESTS=1 cargo test -p takt-daemon --test attack -- --nocapture --test-threads 1
//! ```
//!
//! Attackers are users of their own, which takes root; without, they are the daemon's user, and attacks that
//! differ by user are skipped.

mod arena;
mod busy;
mod canary;
mod claims;
mod clients;
mod crowds;
mod descriptors;
mod evidence;
mod impostors;
mod messages;
mod player;
mod records;
mod setting;
#[path = "../support/mod.rs"]
mod support;
mod together;
mod tools;
mod turnover;
mod victim;
