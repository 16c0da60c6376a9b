//! Records of input that no window gets, at a bounded rate: a finger that knocks, or a device that is broken,
//! does not fill the log.

use takt_core::{Span, Time};

use super::Shut;
use crate::windows::{Kind, Note, WindowId, Windows};

/// The same refusal is told once in so long, with how often it was.
const EVERY: Span = Span::from_ms(1_000);
/// Most refusals that are told apart; of more, the oldest is told anew.
const KNOWN_MAX: usize = 64;

/// What is the same.
type Same = (usize, Option<WindowId>, &'static str);

/// Refusals that were told.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    same: Same,
    told: Time,
    since: u64,
}

impl Refusals {
    /// Tells a refusal, unless the same was told just before.
    pub(super) fn put(
        &mut self,
        windows: &mut Windows,
        (device, window, shut): (usize, Option<WindowId>, Shut),
        (asked, now): (String, Time),
    ) {
        let same = (device, window, shut.rule);
        let known = self.known.iter_mut().find(|known| known.same == same);
        let since = match known {
            Some(known) if now.since(known.told) < EVERY => {
                known.since += 1;
                return;
            }
            Some(known) => {
                known.told = now;
                std::mem::take(&mut known.since)
            }
            None => {
                if self.known.len() >= KNOWN_MAX {
                    self.known.remove(0);
                }
                self.known.push(Known { same, told: now, since: 0 });
                0
            }
        };
        let more = if since > 0 { format!(", and {since} times before") } else { String::new() };
        let (reason, rule) = (format!("{}{more}", shut.reason), shut.rule.to_owned());
        let allowed = Some(false);
        windows.record_about(window, Note { allowed, asked, reason, rule, ..Note::about(Kind::Input) });
    }
}
