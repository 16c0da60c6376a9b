//! Threads that show when the machine itself stood still.
//!
//! One for each processor, as urgent as the scheduling loop. Where one of them woke up late, the machine was
//! stopped or busy with other real-time work, and that time says nothing about the daemon.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use takt_core::{Span, Time};
use takt_daemon::rt::realtime;
use takt_os::clock;

/// How long each sleeps.
const NAP: Duration = Duration::from_millis(1);
/// Waking up so late is a standstill.
const LATE: Span = Span::from_ms(3);
/// Most standstills that are remembered.
const SEEN_MAX: usize = 100_000;

/// The threads; they end with this.
pub(crate) struct Canaries {
    over: Arc<AtomicBool>,
    seen: Arc<Mutex<Vec<(Time, Time)>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Canaries {
    pub(crate) fn start() -> Self {
        let (over, seen) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |processor| {
            let (over, seen) = (Arc::clone(&over), Arc::clone(&seen));
            let canary = std::thread::Builder::new().name("canary".to_owned());
            canary.spawn(move || watch(processor, &over, &seen)).expect("a thread")
        };
        let threads = (0..processors).map(start).collect();
        Self { over, seen, threads }
    }

    /// For how long in between the machine stood still.
    pub(crate) fn stood_still(&self, from: Time, until: Time) -> Span {
        let mut seen = self.seen.lock().expect("no panic").clone();
        seen.sort();
        let (mut total, mut counted) = (Span::ZERO, from);
        for (began, ended) in seen {
            // What several of them saw at once counts once.
            let (began, ended) = (began.max(counted), ended.min(until));
            total += ended.since(began);
            counted = counted.max(ended);
        }
        total
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

fn watch(processor: usize, over: &AtomicBool, seen: &Mutex<Vec<(Time, Time)>>) {
    let mut only = CpuSet::new();
    only.set(processor);
    // Where either is denied, it notices less.
    sched_setaffinity(None, &only).unwrap_or_default();
    realtime::real_time().unwrap_or_default();
    while !over.load(Ordering::Relaxed) {
        let began = clock::now();
        std::thread::sleep(NAP);
        let ended = clock::now();
        if ended.since(began) > LATE {
            let mut seen = seen.lock().expect("no panic");
            if seen.len() < SEEN_MAX {
                seen.push((began, ended));
            }
        }
    }
}

#[test]
fn standstills_count_once_and_only_in_between() {
    let ms = Time::from_ms;
    let seen = vec![(ms(200), ms(220)), (ms(100), ms(150)), (ms(120), ms(160)), (ms(130), ms(140))];
    let canaries = Canaries { over: Arc::default(), seen: Arc::new(Mutex::new(seen)), threads: Vec::new() };
    assert_eq!(canaries.stood_still(ms(0), ms(300)), Span::from_ms(80));
    assert_eq!(canaries.stood_still(ms(110), ms(210)), Span::from_ms(60));
    assert_eq!(canaries.stood_still(ms(160), ms(200)), Span::ZERO);
}
