//! Whether a window may have what a device does.

use crate::config::{Hands, Input, Rule};
use crate::windows::Motion;

/// Why it may not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shut {
    /// The key of the configuration that decided.
    pub rule: &'static str,
    /// In words.
    pub reason: &'static str,
}

/// Whether a window of that rule may have what a device does.
pub fn may(input: &Input, rule: &Rule, motion: Motion) -> Result<(), Shut> {
    let shut = |rule, reason| Err(Shut { rule, reason });
    if !hears(input, rule.domain) {
        return shut("domains", "the device is not for its domain");
    }
    let moving = motion == Motion::Moving;
    if moving && input.hands == Hands::Both {
        return shut("hands", "the vehicle moves, and the device takes both hands off the wheel");
    }
    if !rule.input.contains(&input.kind) {
        return shut("input", "the window has no input of this kind");
    }
    if moving && !rule.input_while_moving.contains(&input.kind) {
        return shut("input_while_moving", "the vehicle moves, and the window has no such input then");
    }
    Ok(())
}

/// Whether a domain hears a device at all.
pub(super) fn hears(input: &Input, domain: usize) -> bool {
    input.domains.as_ref().is_none_or(|domains| domains.contains(&domain))
}
