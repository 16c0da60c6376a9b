//! The thread that looks for ends, closes groups that are not used any more, and looks for the daemon.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

use takt_client::copies;
use takt_cuda_api::{real, result};
use takt_os::signals::without_signals;

use crate::{client, facts, guard};

/// Shortest and longest time between two looks while groups are under way.
const NAP_MIN: Duration = Duration::from_micros(30);
const NAP_MAX: Duration = Duration::from_millis(1);
/// How often to look after clients whose groups are open.
const TEND: Duration = Duration::from_micros(500);
/// The same while a program that has waited may go on with its group, and keeps others from theirs.
const KEPT: Duration = Duration::from_micros(200);
/// How often to look for a daemon that is away, and to write facts.
const SELDOM: Duration = Duration::from_millis(200);

/// What the relaxed mode is called, in which calls of this thread harm no capture.
const RELAXED: u32 = 2;

/// The thread sleeps until it is woken.
static ASLEEP: AtomicBool = AtomicBool::new(false);
static LOCK: Mutex<()> = Mutex::new(());
static WAKE: Condvar = Condvar::new();

/// Starts the thread, once.
pub fn start() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let body = || {
            guard::shielded(run);
        };
        let started = without_signals(|| thread::Builder::new().name("takt-cuda".to_owned()).spawn(body));
        if let Err(error) = started {
            guard::switch_off(&format!("cannot start a thread: {error}"));
        }
    });
}

/// There is something to look for.
#[inline]
pub fn wake() {
    if ASLEEP.load(Ordering::Acquire) {
        drop(LOCK.lock().unwrap_or_else(PoisonError::into_inner));
        WAKE.notify_one();
    }
}

fn run() {
    // Naps are short; by default the kernel makes them half as long again.
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
    let mut relaxed = false;
    loop {
        relaxed = relaxed || copies::inside_driver(relax);
        let more = copies::inside_driver(super::look);
        let open = copies::inside_driver(|| client::tend_all(!relaxed));
        facts::write_now_and_then();
        let until = super::until_next_ns().map(Duration::from_nanos);
        match (more, open) {
            (true, _) => nap(until.unwrap_or(NAP_MIN).clamp(NAP_MIN, NAP_MAX)),
            (false, true) => nap(if client::is_kept() { KEPT } else { TEND }),
            (false, false) => sleep(),
        }
    }
}

/// Calls of this thread spoil no capture from now on; false if the driver does not say so yet.
fn relax() -> bool {
    let mut mode = RELAXED;
    // SAFETY: there is room for the number.
    (unsafe { real::cuThreadExchangeStreamCaptureMode((&raw mut mode).cast()) }) == result::SUCCESS
}

fn nap(time: Duration) {
    thread::sleep(time);
}

fn sleep() {
    let held = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    ASLEEP.store(true, Ordering::Release);
    // What came before it was marked asleep did not wake it.
    if super::until_next_ns().is_none() && !client::is_any_open() {
        drop(WAKE.wait_timeout(held, SELDOM));
    }
    ASLEEP.store(false, Ordering::Release);
}
