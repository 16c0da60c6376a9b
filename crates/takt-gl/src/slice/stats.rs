//! What slicing did, for `takt run --verbose`.
//!
//! The numbers are in a file that `takt run` names, so that it can tell them when a signal has ended the program; in
//! memory of our own where it names none.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::rules::Reason;
use crate::settings;

/// All that is counted.
#[repr(C)]
struct Counters {
    draws: AtomicU64,
    pieces: AtomicU64,
    predicted_ns: AtomicU64,
    measured_ns: AtomicU64,
    over: AtomicU64,
    /// Not zero once the program has told them itself.
    told: AtomicU64,
    refused: [AtomicU64; Reason::ALL.len()],
}

static OWN: Counters = Counters::new();

impl Counters {
    const fn new() -> Self {
        Self {
            draws: AtomicU64::new(0),
            pieces: AtomicU64::new(0),
            predicted_ns: AtomicU64::new(0),
            measured_ns: AtomicU64::new(0),
            over: AtomicU64::new(0),
            told: AtomicU64::new(0),
            refused: [const { AtomicU64::new(0) }; Reason::ALL.len()],
        }
    }

    /// Those that were written to a file; none if they are not all there.
    fn of(bytes: &[u8]) -> Option<Self> {
        let counters = Self::new();
        let words =
            bytes.get(..size_of::<Self>())?.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        let first = [
            &counters.draws,
            &counters.pieces,
            &counters.predicted_ns,
            &counters.measured_ns,
            &counters.over,
            &counters.told,
        ];
        let all = first.into_iter().chain(&counters.refused);
        all.zip(words).for_each(|(counter, word)| counter.store(word, Relaxed));
        Some(counters)
    }
}

/// Those of this process. The first call opens the file: a sandbox that the program enters later may not allow that.
fn counters() -> &'static Counters {
    static SHARED: OnceLock<Option<&'static Counters>> = OnceLock::new();
    SHARED.get_or_init(shared).unwrap_or(&OWN)
}

/// Counts where `takt run` finds it, from now on.
pub(crate) fn prepare() {
    counters();
}

fn shared() -> Option<&'static Counters> {
    let folder = takt_client::environment::path(settings::TALLY)?;
    let path = folder.join(std::process::id().to_string());
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).ok()?;
    let bytes = size_of::<Counters>();
    file.set_len(bytes as u64).ok()?;
    let (access, fd) = (libc::PROT_READ | libc::PROT_WRITE, file.as_raw_fd());
    // SAFETY: a file of that length, which none of us makes shorter, mapped anew.
    let mapped = unsafe { libc::mmap(ptr::null_mut(), bytes, access, libc::MAP_SHARED, fd, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: as long as a set of counters, aligned as a page is, never unmapped, and zeros are counters.
    Some(unsafe { &*mapped.cast::<Counters>() })
}

/// A draw is being cut.
pub(super) fn cut() {
    counters().draws.fetch_add(1, Relaxed);
}

/// A piece was drawn that is predicted to take so long.
pub(super) fn piece(predicted_ns: u64) {
    counters().pieces.fetch_add(1, Relaxed);
    counters().predicted_ns.fetch_max(predicted_ns, Relaxed);
}

/// A piece took so long, where `slice_ns` was allowed.
pub(super) fn measured(cost_ns: u64, slice_ns: u64) {
    counters().measured_ns.fetch_max(cost_ns, Relaxed);
    if cost_ns > slice_ns {
        counters().over.fetch_add(1, Relaxed);
    }
}

/// A long draw could not be cut.
pub fn refused(reason: Reason) {
    counters().refused[reason as usize].fetch_add(1, Relaxed);
}

/// All of it in a line, at the end of the program; none if no draw was long.
pub fn line() -> Option<String> {
    counters().told.store(1, Relaxed);
    counters().line()
}

/// The same of a program that has ended, from its file; none if it has told that itself.
pub fn line_of(bytes: &[u8]) -> Option<String> {
    Counters::of(bytes).filter(|counters| counters.told.load(Relaxed) == 0)?.line()
}

impl Counters {
    fn line(&self) -> Option<String> {
        let (draws, pieces) = (self.draws.load(Relaxed), self.pieces.load(Relaxed));
        let refused: Vec<(Reason, u64)> = Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.refused[reason as usize].load(Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        if draws == 0 && refused.is_empty() {
            return None;
        }
        let ms = |ns: &AtomicU64| ns.load(Relaxed) as f64 / 1e6;
        let mut line = format!(
            "slicing: {draws} draws and dispatches cut into {pieces} pieces, the longest predicted {:.3} ms and \
             measured {:.3} ms, \
             {} measured above the limit",
            ms(&self.predicted_ns),
            ms(&self.measured_ns),
            self.over.load(Relaxed),
        );
        if !refused.is_empty() {
            line += "; not cut:";
            for (at, (reason, count)) in refused.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                // Writing to a string cannot fail.
                let _fine = write!(line, "{comma} {count} ({reason})");
            }
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_leaves_behind_is_told_once() {
        let mut words = vec![0_u64; size_of::<Counters>() / 8];
        let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>();
        assert_eq!(line_of(&bytes(&words)), None, "no draw was long");
        words[..5].copy_from_slice(&[3, 12, 1_500_000, 2_000_000, 1]);
        let said = line_of(&bytes(&words)).expect("long draws");
        assert!(said.starts_with("slicing: 3 draws and dispatches cut into 12 pieces"), "{said}");
        assert!(said.contains("predicted 1.500 ms and measured 2.000 ms, 1 measured above"), "{said}");
        words[5] = 1;
        assert_eq!(line_of(&bytes(&words)), None, "it told that itself");
        assert_eq!(line_of(&[0; 7]), None, "the file is cut off");
    }
}
