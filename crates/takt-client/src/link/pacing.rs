//! Tells the daemon what the client finds out, without waiting for it: what decides when the program begins its frames,
//! and which time slices it has.

use std::time::Duration;

use takt_core::{Span, Time};

use super::{Link, On};
use takt_ipc::message::{Hello, Message, Pacing, TimeSlices};
use takt_os::clock;

/// Time between two tellings.
const BETWEEN: Span = Span::from_ms(500);

/// What a daemon was told on this connection.
pub(super) struct Telling {
    told: Told,
    /// It has not answered yet.
    awaited: bool,
    next: Time,
}

/// What the client finds out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Told {
    pacing: Option<Pacing>,
    slices: Option<TimeSlices>,
}

impl Told {
    fn of(hello: &Hello) -> Self {
        Self { pacing: hello.pacing, slices: hello.slices }
    }
}

impl Telling {
    /// It heard that when the program joined.
    pub(super) fn new(hello: &Hello) -> Self {
        let told = Told::of(hello);
        Self { told, awaited: false, next: Time::ZERO }
    }
}

impl Link {
    /// That decides when the program begins its frames.
    pub(crate) fn is_paced_by(&mut self, pacing: Pacing) {
        self.hello.pacing = Some(pacing);
        self.keep_told();
    }

    /// The program's contexts have those time slices.
    pub(crate) fn has_slices(&mut self, slices: TimeSlices) {
        self.hello.slices = Some(slices);
        self.keep_told();
    }

    /// Whether there is something to tell, or an answer to come.
    pub(crate) fn is_untold(&self) -> bool {
        let wanted = Told::of(&self.hello);
        self.on.as_ref().is_some_and(|on| on.telling.awaited || on.telling.told != wanted)
    }

    /// Tells the daemon if it is time, and takes its answer if that is there.
    pub(crate) fn keep_told(&mut self) {
        let wanted = Told::of(&self.hello);
        let name = &self.hello.name;
        let Some(on) = &mut self.on else { return };
        if !on.hear_answer(Duration::ZERO) {
            return;
        }
        let now = clock::now();
        if on.telling.told == wanted || now < on.telling.next {
            return;
        }
        // What it does not name stays as it is.
        let Told { pacing, slices } = wanted;
        let hello = Hello { name: name.clone(), pacing, slices, ..Hello::default() };
        let sent = on.connection.send(&Message::Hello(hello), &[]).is_ok();
        (on.telling.told, on.telling.awaited, on.telling.next) = (wanted, sent, now + BETWEEN);
    }
}

impl On {
    /// Waits for the answer to what was told, if one is to come, for `patience` at most; returns whether none is
    /// to come any more.
    pub(super) fn hear_answer(&mut self, patience: Duration) -> bool {
        // A connection that is closed is noticed where replies are listened for.
        if self.telling.awaited && self.connection.wait(patience).unwrap_or(true) {
            self.telling.awaited = false;
            let received = self.connection.receive().ok().flatten();
            if let Some(Message::Welcome(welcome)) = received.map(|received| received.message) {
                // The ring tells how we stand, and may have told more since.
                self.welcome.admission = welcome.admission;
            }
        }
        !self.telling.awaited
    }
}
