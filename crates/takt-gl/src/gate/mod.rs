//! Leave to work: what the daemon grants.
//!
//! Where a daemon schedules, no work reaches the driver without leave. A context asks before the
//! first command of each group, works against the time it was granted, and reports the end of the
//! group when its fence was passed. After a swap it sleeps until its next frame may begin.
//!
//! Without a daemon, or if it dies, hangs or does not want us, everything passes at once, one line
//! says so, and now and then we look whether it is back. The whole process is one client: when it
//! waits, all of its contexts do, so none can wait for another that is held.

mod link;

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use takt_core::{GroupKind, Span, Time};

use crate::clock;
use crate::settings::settings;
use link::{Link, Waiting};

/// Leave to hand a group to the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pass {
    number: u64,
    /// Which connection it is of; another one knows nothing of it.
    life: u64,
    /// How much predicted time the group may contain.
    pub credit: Span,
}

#[cfg(test)]
impl Pass {
    /// A pass of no connection.
    pub(crate) fn for_test(credit: Span) -> Self {
        Self { number: 0, life: 0, credit }
    }
}

/// How long to sleep at once, at most: the daemon may die meanwhile.
const NAP: Duration = Duration::from_millis(5);

struct Gate {
    link: Mutex<Link>,
    /// Something came for somebody.
    news: Condvar,
}

static GATE: Gate = Gate { link: Mutex::new(Link::new()), news: Condvar::new() };

impl Gate {
    fn lock(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done` finds what it looks for; none if nobody will ever send it.
    fn wait<T>(&self, mut done: impl FnMut(&mut Link) -> Waiting<T>) -> Option<T> {
        let mut link = self.lock();
        // Replies come at once or much later.
        let mut spin = link.spin();
        loop {
            match done(&mut link) {
                Waiting::Over(found) => return found,
                Waiting::NotYet => {}
            }
            // One thread listens, the others wait for it.
            match link.begin_listening() {
                Some(mut listener) => {
                    drop(link);
                    let heard = listener.listen(NAP, std::mem::take(&mut spin));
                    link = self.lock();
                    link.end_listening(listener, heard);
                    self.news.notify_all();
                }
                None => {
                    let waited = self.news.wait_timeout(link, NAP);
                    link = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }
}

/// Whether anybody is to be asked at all.
pub fn is_wanted() -> bool {
    settings().socket.is_some()
}

/// Makes itself known, before the first work, and finds out how long groups may be.
pub fn greet() {
    let Some(socket) = settings().socket.as_deref() else {
        return;
    };
    GATE.lock().connect(socket);
    let until = clock::now_ns() + GREETING_NS;
    let heard = |link: &mut Link| match link.is_limited() || clock::now_ns() > until {
        true => Waiting::Over(Some(())),
        false => Waiting::NotYet,
    };
    // Without a limit it is one without.
    let _silent = GATE.wait(heard);
}

/// How long the daemon may take to say how long groups may be.
const GREETING_NS: u64 = 100_000_000;

/// Asks for leave for a group predicted to take `estimate`, and waits for it. None where nobody
/// schedules.
pub fn ask(kind: GroupKind, estimate: Span) -> Option<Pass> {
    let socket = settings().socket.as_deref()?;
    let (number, life) = GATE.lock().submit(socket, kind, estimate)?;
    let granted = GATE.wait(|link| link.granted(number, life))?;
    Some(Pass { number, life, credit: estimate.max(granted) })
}

/// The group of a pass is over.
pub fn complete(pass: Pass, finished_ns: u64, cost_ns: u64) {
    GATE.lock().complete(pass.number, pass.life, Time::from_ns(finished_ns), Span::from_ns(cost_ns));
}

/// After a swap: sleeps until the next frame may begin.
pub fn pace(swap: Pass) {
    let Some(at) = GATE.wait(|link| link.released(swap.life)) else {
        return;
    };
    let now = Time::from_ns(clock::now_ns());
    // No display waits longer for a frame; and if the daemon has gone mad, we have not.
    let sleep = at.since(now).min(PACE_MAX);
    if sleep > Span::ZERO {
        std::thread::sleep(Duration::from_nanos(sleep.as_ns()));
    }
}

/// Longest sleep between two frames: the longest stride of the core at 60 Hz.
const PACE_MAX: Span = Span::from_ms(4_000);

/// The longest group that is to be formed.
pub fn slice() -> Span {
    GATE.lock().slice()
}
