//! The body of the fuzz target `audit`, with random bytes and with what fuzzers found worth keeping.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;

#[allow(unreachable_pub, reason = "the fuzz crate exports it")]
#[path = "../../../fuzz/bodies/audit.rs"]
mod audit;

#[test]
fn the_kept_inputs_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/audit");
    let files = std::fs::read_dir(&folder).expect("the folder of inputs");
    let played = files
        .map(|file| audit::audit(&std::fs::read(file.expect("a file").path()).expect("its bytes")))
        .count();
    assert!(played >= 40, "{} has {played} inputs", folder.display());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn random_bytes_pass(bytes in vec(any::<u8>(), 0..200)) {
        audit::audit(&bytes);
    }
}
