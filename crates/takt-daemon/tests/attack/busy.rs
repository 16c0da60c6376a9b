//! For how long a thread had no processor because other programs had it.
//!
//! What attackers do is done by this process, so the processor time that it had itself excuses nothing.

use takt_core::{Span, Time};

/// Ticks in which the kernel counts processor time.
const TICK: Span = Span::from_ms(10);
/// Numbers in the first line of `/proc/stat` that are time of programs: user, nice, system, irq, softirq, steal.
const PROGRAMS: [usize; 6] = [1, 2, 3, 6, 7, 8];
/// User and system time, as words behind the name in `/proc/self/stat`.
const OWN: [usize; 2] = [11, 12];

/// From when until when something took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Took {
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// How long the thread that it is about could run, and other programs did.
    pub(crate) own: Span,
}

/// Counters of the kernel; nothing excuses where it does not count.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Busy {
    /// For how long this thread could run and had no processor.
    waited: Span,
    /// Processor time of all programs, and of this one.
    all: Span,
    own: Span,
}

impl Busy {
    /// As of now.
    pub(crate) fn now() -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        Self::of(&read("/proc/thread-self/schedstat"), &read("/proc/stat"), &read("/proc/self/stat"))
    }

    fn of(thread: &str, machine: &str, process: &str) -> Self {
        let number = |text: &str, at: usize| -> u64 {
            text.split_whitespace().nth(at).and_then(|number| number.parse().ok()).unwrap_or_default()
        };
        let ticks = |text: &str, at: &[usize]| TICK.times(at.iter().map(|at| number(text, *at)).sum());
        // The name may contain anything.
        let process = process.rsplit_once(')').map_or("", |(_, rest)| rest);
        let first = machine.lines().next().unwrap_or_default();
        Self {
            waited: Span::from_ns(number(thread, 1)),
            all: ticks(first, &PROGRAMS),
            own: ticks(process, &OWN),
        }
    }

    /// How long this thread has waited since then while other programs ran.
    pub(crate) fn since(&self, before: &Self) -> Span {
        let others =
            (self.all.saturating_sub(before.all)).saturating_sub(self.own.saturating_sub(before.own));
        self.waited.saturating_sub(before.waited).min(others)
    }
}

#[test]
fn only_other_programs_excuse() {
    let of = |waited_ms: u64, all: u64, own: u64| {
        let thread = format!("5 {} 7", waited_ms * 1_000_000);
        let machine = format!("cpu  {all} 0 0 900 900 0 0 0 0 0\ncpu0 1 1 1");
        Busy::of(&thread, &machine, &format!("7 (a) b) S 1 2 3 4 5 6 7 8 9 10 {own} 0 0 0"))
    };
    let before = of(100, 50, 20);
    assert_eq!(of(150, 60, 20).since(&before), Span::from_ms(50), "others had 100 ms");
    assert_eq!(of(150, 60, 30).since(&before), Span::ZERO, "this program had all of that");
    assert_eq!(of(150, 53, 20).since(&before), Span::from_ms(30));
    assert!(Busy::now().all > Span::ZERO, "the kernel counts");
}
