//! What fuzzers drive. `make test` runs the same bodies with random bytes, as ordinary tests:
//! `crates/takt-daemon/tests/it/fuzzed.rs`, `crates/takt-audit/tests/fuzzed.rs`.
//!
//! ```sh
//! make fuzz                      # every target for a minute
//! make fuzz MINUTES=60           # for an hour each
//! scripts/fuzz.sh 10 ring        # one target for ten minutes
//! scripts/fuzz.sh --keep ring    # puts inputs of its corpus that reach more into fuzz/seeds
//! ```

#[path = "bodies/audit.rs"]
pub mod audit;
#[path = "bodies/config.rs"]
pub mod config;
#[path = "bodies/control.rs"]
pub mod control;
#[path = "bodies/message.rs"]
pub mod message;
#[path = "bodies/ring.rs"]
pub mod ring;
