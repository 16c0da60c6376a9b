//! What goes wrong inside ends inside, and what the program depends on goes on.

use takt_client::guard::{attempted, is_switched_off, shielded};

#[test]
fn a_failure_switches_off_but_what_is_needed_is_still_done() {
    assert_eq!(shielded(|| 1), Some(1));
    assert_eq!(attempted(|| -> i32 { panic!("on purpose") }), None);
    assert!(is_switched_off());
    assert_eq!(shielded(|| 2), None);
    assert_eq!(attempted(|| 3), Some(3));
}
