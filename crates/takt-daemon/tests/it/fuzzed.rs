//! The bodies of the fuzz targets, with random bytes and with what fuzzers found worth keeping, bounded;
//! `fuzz/` runs them without bounds.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../../fuzz/bodies/config.rs"]
mod config;
#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../../fuzz/bodies/control.rs"]
mod control;
#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../../fuzz/bodies/message.rs"]
mod message;
#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../../fuzz/bodies/ring.rs"]
mod ring;

/// Cases, or many more where there is time.
fn cases(few: u32) -> ProptestConfig {
    let slow = std::env::var_os("TAKT_SLOW_TESTS").is_some();
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if slow { few * 100 } else { few })
    }
}

/// Plays the inputs that are kept for a target.
fn replay(target: &str, least: usize, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let files = std::fs::read_dir(&folder).expect("the folder of inputs");
    let played =
        files.map(|file| body(&std::fs::read(file.expect("a file").path()).expect("its bytes"))).count();
    assert!(played >= least, "{} has {played} inputs", folder.display());
}

#[test]
fn kept_rings_pass() {
    replay("ring", 40, ring::ring);
}

#[test]
fn kept_conversations_pass() {
    replay("control", 10, control::control);
}

#[test]
fn kept_messages_pass() {
    replay("message", 40, message::message);
}

#[test]
fn kept_configurations_pass() {
    replay("config", 40, config::config);
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn configurations(mut text in ".{0,200}", key in 0..8usize) {
        // With a known key it gets further than with random text.
        let keys = [
            "refresh_hz = ", "mpcg = ", "policy = ", "[gpu]\n", "[[app]]\nname = ", "[[domain]]\nname = ",
            "[[display]]\n", "",
        ];
        text.insert_str(0, keys[key]);
        config::config(text.as_bytes());
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn rings(bytes in vec(any::<u8>(), 0..1_500)) {
        ring::ring(&bytes);
    }
}

proptest! {
    #![proptest_config(cases(30))]

    #[test]
    fn conversations(bytes in vec(any::<u8>(), 0..600)) {
        control::control(&bytes);
    }
}

proptest! {
    #![proptest_config(cases(5_000))]

    #[test]
    fn messages(mut bytes in vec(any::<u8>(), 0..100), kind in 0..7u8) {
        // With the right head it gets further than with random bytes.
        let version = takt_ipc::VERSION.to_le_bytes();
        let head = [b't', b'a', b'k', b't', version[0], version[1], kind, 0];
        bytes.splice(0..0, head);
        message::message(&bytes);
    }
}
