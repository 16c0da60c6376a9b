//! Composition as an app of the scheduler: it asks before it draws, and its frames are due at refreshes.

use std::path::PathBuf;
use std::sync::atomic::Ordering;

use takt_client::{Grant, Patience, Session};
use takt_cockpit::config::Output as Settings;
use takt_core::{GroupKind, Span};
use takt_ipc::message::Hello;
use takt_os::clock;

use super::Counters;

/// Compositions that the next one is predicted by.
const RECENT: usize = 16;
/// Shortest prediction.
const LEAST: Span = Span::from_us(100);

/// The contract of an output's composition.
#[derive(Debug)]
pub(super) struct Contract {
    session: Session,
    etpf: Span,
    recent: [Span; RECENT],
    next: usize,
}

impl Contract {
    /// A contract with the daemon at that socket; without one, everything passes.
    pub(super) fn new(daemon: PathBuf, settings: &Settings, on_cpu: bool) -> Self {
        let hello = Hello {
            name: format!("cockpit-{}", settings.name),
            priority: Some(settings.priority),
            fps_mhz: Some(settings.grid.mhz()),
            etpf_ns: Some(settings.etpf.as_ns()),
            display: Some(settings.name.clone()),
            by_display: true,
            on_cpu,
            ..Hello::default()
        };
        let session = Session::new(daemon, hello, |_| {}, Patience::of_environment());
        Self { session, etpf: settings.etpf, recent: [Span::ZERO; RECENT], next: 0 }
    }

    /// Asks for GPU time, and waits for it.
    pub(super) fn begin(&self) -> Option<Grant> {
        let longest = self.recent.iter().copied().max().unwrap_or_default();
        let estimate = if longest == Span::ZERO { self.etpf } else { longest.scaled(11, 10) };
        self.session.ask(GroupKind::Draw, estimate.clamp(LEAST, self.etpf.max(LEAST)))
    }

    /// The GPU has finished, and took that long.
    pub(super) fn end(&mut self, grant: Option<Grant>, cost: Span) {
        self.recent[self.next] = cost;
        self.next = (self.next + 1) % RECENT;
        if let Some(grant) = grant {
            self.session.complete(grant, clock::now(), cost);
        }
    }

    /// The frame is complete. The thread sleeps by the display itself, so it is not paced here.
    pub(super) fn end_frame(&self) {
        if let Some(swap) = self.session.ask(GroupKind::Swap, Span::ZERO) {
            self.session.complete(swap, clock::now(), Span::ZERO);
        }
    }

    /// Says whether the daemon schedules it.
    pub(super) fn tell(&self, counters: &Counters) {
        let welcome = self.session.welcome();
        counters.scheduled.store(welcome.is_some(), Ordering::Relaxed);
        let guaranteed = welcome.is_some_and(|welcome| welcome.standing.guaranteed);
        counters.guaranteed.store(guaranteed, Ordering::Relaxed);
    }
}
