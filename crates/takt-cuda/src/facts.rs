//! What `takt doctor` wants to know: which calls were seen, of which driver.

use std::fmt::Write as _;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::settings::settings;
use crate::{driver, entry};

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

/// Writes what is known by now.
pub fn write() {
    let Some(path) = settings().environment.facts.as_ref().filter(|_| driver::is_there()) else {
        return;
    };
    let [kernels, graphs, moved] = [0, 1, 2].map(|at: usize| SEEN[at].load(Ordering::Relaxed));
    let mut text = String::new();
    let version = driver::version().unwrap_or(0);
    // Writing to a string does not fail.
    let _written = write!(
        text,
        "cuda.version={version}\ncuda.kernels={kernels}\ncuda.graphs={graphs}\ncuda.moved={moved}\n\
         cuda.unknown={}\n",
        entry::unknown()
    );
    let beside = path.with_extension(format!("cuda-{}", std::process::id()));
    // A doctor that is gone needs no facts.
    let _kept = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path.with_extension("cuda")));
}
