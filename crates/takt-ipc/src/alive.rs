//! Whether another process can run at all.

use std::path::Path;

/// Whether the process exists and nobody has stopped it, as far as the system tells: where it does
/// not (another name space, no `/proc`), the answer is yes.
pub fn can_run(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.ok().as_deref().and_then(state).is_none_or(|state| !STOPPED.contains(&state))
}

/// States of processes that do nothing until somebody else lets them: stopped by a signal or by a
/// debugger, dead and not yet buried.
const STOPPED: [char; 5] = ['T', 't', 'Z', 'X', 'x'];

/// The state in a line of `/proc/PID/stat`. The name before it may contain anything, brackets too.
fn state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_confuse() {
        assert_eq!(state("1 (a) T (b)) S 1 2"), Some('S'));
        assert_eq!(state("1 (a"), None);
        assert_eq!(state(""), None);
    }

    #[test]
    fn the_stopped_and_the_dead_cannot_run() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("sleep starts");
        let pid = rustix::process::Pid::from_child(&child);
        assert!(can_run(child.id()));
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).expect("stopped");
        while can_run(child.id()) {
            std::thread::yield_now();
        }
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("continued");
        while !can_run(child.id()) {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        while can_run(child.id()) {
            std::thread::yield_now();
        }
        child.wait().expect("buried");
        assert!(can_run(child.id()), "nobody knows");
    }
}
