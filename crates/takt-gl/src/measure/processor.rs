//! The clock of a renderer on the CPU: the processor time of its threads.
//!
//! What such a renderer does not work, because something else has its processor or because it has
//! not woken up yet, is none of a group's cost. The same holds inside of the program's calls, which
//! take no longer than the program's thread has run meanwhile.

use std::fs;

/// The threads of the renderer; none if it works inside of calls alone.
#[derive(Default, Debug)]
pub(crate) struct RendererThreads {
    clocks: Vec<(libc::clockid_t, u64)>,
    looks: u32,
}

/// How often threads are looked for before it is clear that there are none.
const LOOKS_MAX: u32 = 64;

impl RendererThreads {
    /// How long the busiest thread has worked since this was last asked, if that is known.
    pub(crate) fn worked_ns(&mut self) -> Option<u64> {
        if self.clocks.is_empty() {
            if self.looks < LOOKS_MAX {
                self.looks += 1;
                self.clocks = find();
            }
            return None;
        }
        let worked = self.clocks.iter_mut().map(|(clock, last_ns)| {
            let now_ns = read(*clock);
            now_ns.saturating_sub(std::mem::replace(last_ns, now_ns))
        });
        worked.max()
    }
}

/// How long this thread has run.
pub(crate) fn own_ns() -> u64 {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Mesa names its threads by the renderer.
fn find() -> Vec<(libc::clockid_t, u64)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else {
        return Vec::new();
    };
    let clock = |task: fs::DirEntry| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let thread: i32 = task.file_name().to_str()?.parse().ok()?;
        name.starts_with("llvmpipe-").then(|| (clock_of(thread), read(clock_of(thread))))
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
        let (tell, told) = sync_channel(0);
        let (order, orders) = sync_channel::<()>(0);
        let renderer = std::thread::Builder::new().name("llvmpipe-0".to_owned());
        let renderer = renderer.spawn(move || {
            // SAFETY: takes no arguments.
            let own = clock_of(unsafe { libc::gettid() });
            tell.send(()).unwrap();
            // Works when told to, and says when that was done.
            while orders.recv().is_ok() {
                let until_ns = read(own) + 20_000_000;
                while read(own) < until_ns {}
                tell.send(()).unwrap();
            }
        });
        let renderer = renderer.unwrap();
        told.recv().unwrap();
        let mut threads = RendererThreads::default();
        assert_eq!(threads.worked_ns(), None, "found only now");
        order.send(()).unwrap();
        told.recv().unwrap();
        let worked_ns = threads.worked_ns().unwrap();
        assert!(worked_ns >= 20_000_000, "{worked_ns}");
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!(threads.worked_ns().unwrap() < 20_000_000, "it waits");
        drop(order);
        renderer.join().unwrap();
    }

    #[test]
    fn renderers_without_threads_have_no_such_clock() {
        let mut threads = RendererThreads { clocks: Vec::new(), looks: LOOKS_MAX };
        assert_eq!(threads.worked_ns(), None);
    }
}
