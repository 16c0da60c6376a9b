//! The clock of a renderer on the CPU: the processor time of its threads.
//!
//! What such a renderer does not work, because something else has its processor or because it has
//! not woken up yet, is none of a group's cost. The same holds inside of the program's calls, which
//! take no longer than the program's thread has run meanwhile.

use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The threads of the renderer; none if it works inside of calls alone.
#[derive(Debug)]
pub(crate) struct RendererThreads {
    clocks: OnceLock<Vec<libc::clockid_t>>,
    looks: AtomicU32,
}

/// How often threads are looked for before it is clear that there are none.
const LOOKS_MAX: u32 = 64;

impl RendererThreads {
    pub(crate) const fn new() -> Self {
        Self { clocks: OnceLock::new(), looks: AtomicU32::new(0) }
    }

    /// Whether they were found.
    pub(crate) fn is_known(&self) -> bool {
        self.clocks.get().is_some()
    }

    /// How long each has run, if they were found.
    pub(crate) fn reading(&self) -> Option<Reading> {
        let clocks = self.clocks.get()?;
        Some(Reading(clocks.iter().map(|clock| read(*clock)).collect()))
    }

    /// The same, but looks for them first if that is of use.
    pub(crate) fn look(&self) -> Option<Reading> {
        if !self.is_known() && self.looks.fetch_add(1, Ordering::Relaxed) < LOOKS_MAX {
            let found = find();
            if !found.is_empty() {
                // Should another thread look at the same time, both found the same.
                let _both = self.clocks.set(found);
            }
        }
        self.reading()
    }
}

/// How long the renderer's threads had run at some time.
#[derive(Clone, Debug)]
pub(crate) struct Reading(Vec<u64>);

/// What the renderer's threads do from one reading to the next.
#[derive(Default, Debug)]
pub(crate) struct Worked {
    last: Option<Reading>,
}

impl Worked {
    /// How long the busiest thread has worked since the last reading, if there was any.
    pub(crate) fn until(&mut self, reading: Option<Reading>) -> Option<u64> {
        let reading = reading?;
        let Some(Reading(last)) = &mut self.last else {
            self.last = Some(reading);
            return None;
        };
        // Threads that read at about the same time may hand it over in any order.
        let since =
            |(last, now): (&mut u64, u64)| now.saturating_sub(std::mem::replace(last, now.max(*last)));
        last.iter_mut().zip(reading.0).map(since).max()
    }
}

/// How long this thread has run.
pub(crate) fn own_ns() -> u64 {
    takt_os::clock::of_thread().as_ns()
}

/// How long all threads of the process have run.
pub(crate) fn process_ns() -> u64 {
    takt_os::clock::of_process().as_ns()
}

/// Mesa names its threads by the renderer.
fn find() -> Vec<libc::clockid_t> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let clock = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let thread: i32 = task.file_name().to_str()?.parse().ok()?;
        name.starts_with("llvmpipe-").then(|| clock_of(thread))
    };
    tasks.flatten().filter_map(clock).collect()
}

/// The processor clock of a thread, as the kernel numbers them.
fn clock_of(thread: i32) -> libc::clockid_t {
    (!thread << 3) | 6
}

/// Nanoseconds that a thread has run; 0 if it has ended.
fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: there is room for the answer.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_counts_and_waiting_does_not() {
        use std::sync::mpsc::sync_channel;
        use takt_os::process::thread_state;
        let (tell, told) = sync_channel(0);
        let (order, orders) = sync_channel::<()>(0);
        let renderer = std::thread::Builder::new().name("llvmpipe-0".to_owned());
        let renderer = renderer.spawn(move || {
            // SAFETY: takes no arguments.
            let id = unsafe { libc::gettid() };
            let own = clock_of(id);
            tell.send(id).unwrap();
            // Works when told to, and says when that was done.
            while orders.recv().is_ok() {
                let until_ns = read(own) + 20_000_000;
                while read(own) < until_ns {}
                tell.send(id).unwrap();
            }
        });
        let renderer = renderer.unwrap();
        let id = told.recv().unwrap();
        let (threads, mut worked) = (RendererThreads::new(), Worked::default());
        assert!(threads.reading().is_none(), "no look yet");
        assert_eq!(worked.until(threads.look()), None, "found only now");
        order.send(()).unwrap();
        told.recv().unwrap();
        let worked_ns = worked.until(threads.reading()).unwrap();
        assert!(worked_ns >= 20_000_000, "{worked_ns}");
        // Once it sleeps, until it is told to work again, its clock stands still.
        while thread_state(std::process::id(), id.unsigned_abs()).is_none_or(|state| state.runnable) {
            std::thread::yield_now();
        }
        worked.until(threads.look());
        assert_eq!(worked.until(threads.look()), Some(0), "it waits");
        drop(order);
        renderer.join().unwrap();
    }

    #[test]
    fn renderers_without_threads_have_no_such_clock() {
        let threads = RendererThreads { clocks: OnceLock::new(), looks: AtomicU32::new(LOOKS_MAX) };
        assert_eq!(Worked::default().until(threads.look()), None);
    }

    #[test]
    fn the_busiest_thread_counts_and_no_work_counts_twice() {
        let mut worked = Worked::default();
        let mut until = |times: [u64; 2]| worked.until(Some(Reading(times.to_vec())));
        assert_eq!(until([100, 100]), None);
        assert_eq!(until([130, 110]), Some(30));
        assert_eq!(until([120, 110]), Some(0), "an earlier reading that comes later");
        assert_eq!(until([130, 150]), Some(40));
    }
}
