//! How long work takes, and turns among processes.
//!
//! Work takes time by sleeping, so that many programs fit onto few processors. Processes that name one file in
//! `TAKT_FAKE_GPU` share a GPU as contexts do on a real one: each has a turn of `TAKT_FAKE_SLICE_US`, or until it has
//! nothing left. Tickets in shared memory say whose turn it is; a process that died is passed over.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::setting;

/// Processes that can wait for a turn at the same time.
const WAITING_MAX: usize = 256;

/// How long to sleep before looking again.
const LOOK: Duration = Duration::from_micros(30);

/// Bytes that are copied in a nanosecond.
const BYTES_PER_NS: u64 = 16;

/// A GPU that processes share.
#[repr(C)]
struct Shared {
    next: AtomicU32,
    serving: AtomicU32,
    owners: [AtomicU32; WAITING_MAX],
}

static SHARED: LazyLock<Option<&'static Shared>> = LazyLock::new(open);
static SLICE: LazyLock<Duration> =
    LazyLock::new(|| Duration::from_micros(setting("TAKT_FAKE_SLICE_US", 2_000)));
static ITERATION_NS: LazyLock<u64> = LazyLock::new(|| setting("TAKT_FAKE_ITERATION_NS", 20));
static LOG: LazyLock<Option<Mutex<std::fs::File>>> = LazyLock::new(|| {
    let path = std::env::var_os("TAKT_FAKE_LOG")?;
    Some(Mutex::new(OpenOptions::new().create(true).append(true).open(path).expect("a log can be written")))
});

/// Streams of one process have its turn one after the other.
static OWN: Mutex<()> = Mutex::new(());

fn open() -> Option<&'static Shared> {
    let path = std::env::var_os("TAKT_FAKE_GPU").filter(|path| !path.is_empty())?;
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.expect("the file of the shared GPU opens");
    let size = size_of::<Shared>();
    file.set_len(size as u64).expect("the file of the shared GPU grows");
    // SAFETY: maps a file of ours that has so many bytes.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    assert_ne!(at, libc::MAP_FAILED, "the file of the shared GPU is mapped");
    // SAFETY: any bytes are numbers, and the mapping is never removed.
    Some(unsafe { &*at.cast::<Shared>() })
}

/// Sleeps of this thread are not made longer than asked for.
pub(crate) fn sleep_exactly() {
    // SAFETY: takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
}

/// A moment.
pub(crate) fn nap() {
    thread::sleep(LOOK);
}

/// Work of so many iterations.
pub(crate) fn iterations(count: u64) {
    work(Duration::from_nanos(count.saturating_mul(*ITERATION_NS)), || true);
}

/// Work that takes so long, or ends when `goes_on` says so.
pub(crate) fn work(mut left: Duration, mut goes_on: impl FnMut() -> bool) {
    while left > Duration::ZERO && goes_on() {
        let part = if SHARED.is_some() { left.min(*SLICE) } else { left };
        turn(|| thread::sleep(part));
        left = left.saturating_sub(part);
    }
}

/// A copy of so many bytes.
pub(crate) fn copy(bytes: usize) {
    let ns = bytes as u64 / BYTES_PER_NS;
    if ns > 1_000 {
        thread::sleep(Duration::from_nanos(ns));
    }
}

/// Work was executed.
pub(crate) fn log(name: &str) {
    if let Some(file) = LOG.as_ref() {
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        // A line is written by one call, so that lines of several processes do not mix.
        let line = format!("{} {name}\n", std::process::id());
        file.write_all(line.as_bytes()).expect("a log can be written");
    }
}

fn turn(act: impl FnOnce()) {
    let Some(shared) = *SHARED else {
        return act();
    };
    let _own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    let ticket = shared.next.fetch_add(1, Ordering::SeqCst);
    shared.owner(ticket).store(std::process::id(), Ordering::SeqCst);
    let mut looked = Instant::now();
    loop {
        let serving = shared.serving.load(Ordering::SeqCst);
        if serving == ticket {
            break;
        }
        nap();
        if looked.elapsed() > Duration::from_millis(5) {
            looked = Instant::now();
            shared.pass_over_the_dead(serving);
        }
    }
    act();
    shared.serving.fetch_add(1, Ordering::SeqCst);
}

impl Shared {
    fn owner(&self, ticket: u32) -> &AtomicU32 {
        &self.owners[ticket as usize % WAITING_MAX]
    }

    /// Serves the next one if the one that is served does not live any more.
    fn pass_over_the_dead(&self, serving: u32) {
        let owner = self.owner(serving).load(Ordering::SeqCst);
        let Ok(process) = i32::try_from(owner) else {
            return;
        };
        // SAFETY: asks whether a process is there.
        let is_dead = process != 0 && unsafe { libc::kill(process, 0) } != 0;
        if is_dead {
            let (set, fail) = (Ordering::SeqCst, Ordering::SeqCst);
            // Another one that waits may have done it.
            let _done = self.serving.compare_exchange(serving, serving.wrapping_add(1), set, fail);
        }
    }
}
