//! Whether this process has shut itself into a sandbox since it began.
//!
//! A filter of system calls may end a process that opens a socket. Containers have such filters from the beginning, and
//! bear it; so only one that came later counts.

use std::os::unix::fs::MetadataExt;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What the kernel says of this process's filters of system calls.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Filters {
    mode: String,
    count: String,
}

/// Until when a sandbox is to be closed; none if none is expected.
static AWAITED_UNTIL: OnceLock<Option<Instant>> = OnceLock::new();
static FIRST: OnceLock<Option<Filters>> = OnceLock::new();

/// A process that shuts itself into a sandbox once it has its contexts, by the word that Chromium and all that is made
/// of it give it.
const CHROMIUMS: &[u8] = b"--type=gpu-process";
/// How long that may take.
const CLOSES_WITHIN: Duration = Duration::from_secs(10);

/// Notes which filters there are. To be called when a process begins, while it is free to look.
pub fn note() {
    FIRST.get_or_init(Filters::now);
    AWAITED_UNTIL.get_or_init(|| {
        let words = std::fs::read("/proc/self/cmdline").unwrap_or_default();
        let closes = words.windows(CHROMIUMS.len()).any(|word| word == CHROMIUMS);
        closes.then(|| Instant::now() + CLOSES_WITHIN)
    });
}

/// Whether this process is one that shuts itself into a sandbox, be it closed or not: calls that such sandboxes punish
/// are not made.
pub fn is_expected() -> bool {
    AWAITED_UNTIL.get().is_some_and(Option::is_some)
}

/// Whether this process is about to shut itself into a sandbox, which it does before it has a second thread.
pub fn is_awaited() -> bool {
    let until = AWAITED_UNTIL.get().copied().flatten();
    until.is_some_and(|until| Instant::now() < until) && has_one_thread() && !has_closed()
}

/// Whether this process has one thread; false where that cannot be seen.
fn has_one_thread() -> bool {
    // A folder has two links more than folders in it.
    std::fs::metadata("/proc/self/task").is_ok_and(|tasks| tasks.nlink() == 3)
}

/// Whether there are more than were noted; false if none were noted. Where they cannot be seen any more, there are.
pub fn has_closed() -> bool {
    FIRST.get().is_some_and(|first| first.is_some() && *first != Filters::now())
}

impl Filters {
    /// None where the system does not tell.
    fn now() -> Option<Self> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        Self::of(&status)
    }

    /// Kernels before Linux 5.9 do not count.
    fn of(status: &str) -> Option<Self> {
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let mode = value("Seccomp:")?.to_owned();
        Some(Self { mode, count: value("Seccomp_filters:").unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_filter_is_noticed() {
        let of = |text| Filters::of(text).expect("both are there");
        let free = of("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n");
        assert_eq!(free, of("Seccomp:\t0\nSeccomp_filters:\t0\n"));
        assert_ne!(free, of("Seccomp:\t2\nSeccomp_filters:\t1\n"));
        assert_ne!(of("Seccomp:\t2\nSeccomp_filters:\t2\n"), of("Seccomp:\t2\nSeccomp_filters:\t1\n"));
        assert_ne!(of("Seccomp:\t2\n"), of("Seccomp:\t0\n"), "an old kernel");
        assert_eq!(Filters::of("Name:\tx\n"), None);
    }

    #[test]
    fn this_process_has_no_more_than_at_first() {
        assert!(!has_closed());
        note();
        assert!(!has_closed());
        assert!(!is_awaited() && !has_one_thread(), "tests run in threads of their own");
    }
}
