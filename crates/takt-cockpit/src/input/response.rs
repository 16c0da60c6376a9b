//! How soon clients take input, and how soon they show something after it.
//!
//! Any change of the window's picture counts as its answer. A window that has not changed by the time of its
//! rule (`response_ms_max`) is recorded once, until it answers again; so is a client that does not take what it
//! is sent within [`DELIVERY_MAX`].

use takt_core::{Span, Time};

use super::{Delivery, Inputs, Times};
use crate::windows::{Kind, Note, WindowId, Windows};

/// How soon a client must have taken what it is sent.
pub const DELIVERY_MAX: Span = Span::from_ms(250);

/// What is expected of a window.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The oldest delivery that it may not have taken yet.
    sent: Option<Delivery>,
    /// The oldest delivery that it has not answered.
    asked: Option<Asked>,
    told: bool,
    times: Times,
    /// How often it did not answer in time.
    silent: u64,
}

#[derive(Debug)]
struct Asked {
    at: Time,
    due: Option<Time>,
    /// How it looked before.
    look: u64,
}

/// A window is seen on its output.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Seen {
    /// Which one.
    pub window: WindowId,
    /// How it looks, as a number that grows whenever that changes.
    pub look: u64,
    /// Since when.
    pub at: Time,
}

impl Inputs {
    /// A delivery was sent to its client; `look` is how the window looks now.
    pub fn sent(&mut self, windows: &Windows, delivery: &Delivery, look: u64) {
        let max = windows.rule(delivery.window).and_then(|rule| rule.response_max);
        let watch = self.watched.entry(delivery.window).or_default();
        watch.sent.get_or_insert(*delivery);
        if delivery.deed.wants_response() {
            let due = max.map(|max| delivery.at + max);
            watch.asked.get_or_insert(Asked { at: delivery.at, due, look });
        }
    }

    /// A window is seen; it answers if it looks different.
    pub fn seen(&mut self, seen: Seen) {
        let Some(watch) = self.watched.get_mut(&seen.window) else {
            return;
        };
        if let Some(asked) = watch.asked.take_if(|asked| asked.look < seen.look && seen.at >= asked.at) {
            watch.times.add(seen.at.since(asked.at));
            watch.told = false;
        }
    }

    /// How soon a window answered, and how often it did not.
    pub fn times(&self, id: WindowId) -> (Times, u64) {
        self.watched.get(&id).map(|watch| (watch.times.clone(), watch.silent)).unwrap_or_default()
    }

    /// Time passes; `taken` is the number of the last delivery that the client of a window took.
    pub fn pass(&mut self, windows: &mut Windows, now: Time, taken: impl Fn(WindowId) -> u64) {
        for (id, watch) in &mut self.watched {
            watch.sent.take_if(|sent| sent.number <= taken(*id));
            if watch.sent.take_if(|sent| sent.at + DELIVERY_MAX <= now).is_some() {
                watch.tell(windows, *id, ("delivery", "its client does not take it"), DELIVERY_MAX);
            }
            let is_late = |asked: &mut Asked| asked.due.is_some_and(|due| due <= now);
            if let Some(asked) = watch.asked.take_if(is_late) {
                let max = asked.due.map_or(Span::ZERO, |due| due.since(asked.at));
                watch.silent += 1;
                watch.tell(windows, *id, ("response_ms_max", "its picture has not changed"), max);
            }
        }
    }

    /// When [`Self::pass`] has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        let sent = self.watched.values().filter_map(|watch| watch.sent).map(|sent| sent.at + DELIVERY_MAX);
        let asked = self.watched.values().filter_map(|watch| watch.asked.as_ref()?.due);
        sent.chain(asked).min()
    }

    /// Nothing is expected of windows that are not shown or keep their picture; those that are gone are forgotten.
    pub(super) fn forget_unseen(&mut self, windows: &Windows) {
        self.watched.retain(|id, watch| {
            let placed = windows.shown_on(*id).and_then(|output| windows.scene(output).find(*id));
            if placed.is_none_or(|placed| placed.frozen) {
                watch.asked = None;
            }
            windows.client(*id).is_some()
        });
    }
}

impl Watch {
    fn tell(&mut self, windows: &mut Windows, id: WindowId, (rule, what): (&str, &str), max: Span) {
        if std::mem::replace(&mut self.told, true) {
            return;
        }
        let reason = format!("{what} {} ms after input", max.as_ns() / 1_000_000);
        let rule = rule.to_owned();
        windows.record_about(Some(id), Note { reason, rule, ..Note::about(Kind::Response) });
    }
}
