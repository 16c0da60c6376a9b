//! The bodies of the fuzz targets, with random bytes and bounded; `fuzz/` runs them without bounds.

use proptest::collection::vec;
use proptest::prelude::*;

#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../fuzz/bodies/message.rs"]
mod message;
#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../fuzz/bodies/ring.rs"]
mod ring;

/// Cases, or many more where there is time.
fn cases(few: u32) -> ProptestConfig {
    let slow = std::env::var_os("TAKT_SLOW_TESTS").is_some();
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(if slow { few * 100 } else { few })
    }
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn rings(bytes in vec(any::<u8>(), 0..1_500)) {
        ring::ring(&bytes);
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
