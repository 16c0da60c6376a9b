//! What fuzzers drive. `make test` runs the same bodies with random bytes, as ordinary tests:
//! `crates/takt-daemon/tests/fuzzed.rs`.
//!
//! ```sh
//! cargo +nightly fuzz run ring      # or message; needs cargo-fuzz
//! ```

#[path = "bodies/message.rs"]
pub mod message;
#[path = "bodies/ring.rs"]
pub mod ring;
