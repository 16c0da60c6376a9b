//! What `takt doctor` wants to know: which calls were seen, of which driver.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use takt_os::clock;

use crate::settings::settings;
use crate::{driver, entry, witness};

/// Kernels, graphs, and copies or memsets that were seen.
static SEEN: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Count {
    /// A kernel was launched.
    Kernel,
    /// A graph was launched.
    Graph,
    /// Bytes were moved.
    Moved,
}

/// Counts a call, if that is wanted.
#[inline]
pub fn count(what: Count) {
    if is_wanted() {
        SEEN[what as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether facts are wanted.
#[inline]
fn is_wanted() -> bool {
    settings().environment.facts.is_some()
}

/// Time between two writings.
const BETWEEN_NS: u64 = 200_000_000;

/// When it was written last, and how many calls had been seen by then.
static WRITTEN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

fn seen() -> [u64; 3] {
    [0, 1, 2].map(|at: usize| SEEN[at].load(Ordering::Relaxed))
}

/// Writes what is known by now, if more is known than the last time and that is a while ago.
pub fn write_now_and_then() {
    let [at_ns, calls] = &WRITTEN;
    let (now_ns, all) = (clock::now().as_ns(), seen().iter().sum::<u64>());
    let is_due = now_ns.saturating_sub(at_ns.load(Ordering::Relaxed)) >= BETWEEN_NS;
    if is_wanted() && is_due && (at_ns.load(Ordering::Relaxed) == 0 || calls.load(Ordering::Relaxed) != all) {
        at_ns.store(now_ns, Ordering::Relaxed);
        calls.store(all, Ordering::Relaxed);
        write();
    }
}

/// The program ends: writes what was seen since the last time. Does nothing where nothing was written before.
pub fn write_last() {
    if WRITTEN[0].load(Ordering::Relaxed) != 0 {
        write();
    }
}

/// Writes what is known by now.
fn write() {
    let Some(path) = settings().environment.facts.as_ref().filter(|_| driver::is_there()) else {
        return;
    };
    // Calls are counted here before they reach the driver, so what the witness has seen by now was seen.
    let launched = witness::launched();
    let [kernels, graphs, moved] = seen();
    let mut text = String::new();
    let version = driver::version().unwrap_or(0);
    // Writing to a string does not fail.
    let _written = write!(
        text,
        "cuda.version={version}\ncuda.kernels={kernels}\ncuda.graphs={graphs}\ncuda.moved={moved}\n\
         cuda.unknown={}\n",
        entry::unknown()
    );
    if let Some([kernels, graphs]) = launched {
        let _written = write!(text, "cuda.cupti_kernels={kernels}\ncuda.cupti_graphs={graphs}\n");
    }
    if let Some(excuse) = witness::excuse() {
        let _written = writeln!(text, "cuda.cupti={excuse}");
    }
    let beside = path.with_extension(format!("cuda-{}", std::process::id()));
    // A doctor that is gone needs no facts.
    let _kept = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path.with_extension("cuda")));
}
