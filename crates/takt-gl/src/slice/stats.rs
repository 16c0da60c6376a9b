//! What slicing did, for `takt run --verbose`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::rules::Reason;

static DRAWS: AtomicU64 = AtomicU64::new(0);
static PIECES: AtomicU64 = AtomicU64::new(0);
static PREDICTED_NS: AtomicU64 = AtomicU64::new(0);
static MEASURED_NS: AtomicU64 = AtomicU64::new(0);
static OVER: AtomicU64 = AtomicU64::new(0);
static REFUSED: [AtomicU64; Reason::ALL.len()] = [const { AtomicU64::new(0) }; Reason::ALL.len()];

/// A draw is being cut.
pub(super) fn cut() {
    DRAWS.fetch_add(1, Relaxed);
}

/// A piece was drawn that is predicted to take so long.
pub(super) fn piece(predicted_ns: u64) {
    PIECES.fetch_add(1, Relaxed);
    PREDICTED_NS.fetch_max(predicted_ns, Relaxed);
}

/// A piece took so long, where `slice_ns` was allowed.
pub(super) fn measured(cost_ns: u64, slice_ns: u64) {
    MEASURED_NS.fetch_max(cost_ns, Relaxed);
    if cost_ns > slice_ns {
        OVER.fetch_add(1, Relaxed);
    }
}

/// A long draw could not be cut.
pub fn refused(reason: Reason) {
    REFUSED[reason as usize].fetch_add(1, Relaxed);
}

/// All of it in a line; none if no draw was long.
pub fn line() -> Option<String> {
    let (draws, pieces) = (DRAWS.load(Relaxed), PIECES.load(Relaxed));
    let refused: Vec<(Reason, u64)> = Reason::ALL
        .into_iter()
        .map(|reason| (reason, REFUSED[reason as usize].load(Relaxed)))
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
        ms(&PREDICTED_NS),
        ms(&MEASURED_NS),
        OVER.load(Relaxed),
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
