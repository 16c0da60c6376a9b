//! What fuzzers drive. `make test` runs the same bodies with random bytes, as ordinary tests:
//! `crates/takt-daemon/tests/fuzzed.rs`, `crates/takt-audit/tests/fuzzed.rs`.
//!
//! ```sh
//! cargo install cargo-fuzz && rustup toolchain install nightly
//! make fuzz                         # every target for a minute; scripts/fuzz.sh 600 for longer
//! cargo +nightly fuzz run ring      # one target until stopped
//! ```

#[path = "bodies/audit.rs"]
pub mod audit;
#[path = "bodies/config.rs"]
pub mod config;
#[path = "bodies/message.rs"]
pub mod message;
#[path = "bodies/ring.rs"]
pub mod ring;
