//! The first start on a GPU: it is measured, and the result kept.
//!
//! The daemon itself loads no driver. Another process of this command does (`takt profile --new`), for
//! [`PATIENCE`] at most, and before the daemon serves, while no program of ours is on the GPU. Where there is no GPU,
//! only the renderer on the CPU is tried with cut draws, beside the daemon.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use takt_calibrate::store;

use crate::output;
use crate::profile::unknown;

/// How long measuring may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Has the GPUs measured of which nothing is kept; why not, if that failed.
pub(super) fn measure() -> Result<(), String> {
    let Some(store) = store::home().filter(|store| !unknown::is_known(store)) else {
        return Ok(());
    };
    let child = start(&store).map_err(|error| format!("the GPU could not be measured: {error}"))?;
    if unknown::has_gpu() {
        output::warn("takt: this GPU is new here; it is measured, which takes 10 s at most");
        return finish(child, PATIENCE);
    }
    let beside = thread::Builder::new().name("takt-self-test".to_owned()).spawn(move || {
        // It has said itself what went wrong.
        let _told = finish(child, PATIENCE);
    });
    beside.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

fn start(store: &Path) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["profile", "--new", "--store"]).arg(store);
    command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()
}

/// Waits for the end of a process, and ends it after that time.
fn finish(mut child: Child, patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => return Err(format!("measuring the GPU failed ({status}); run takt profile")),
            Ok(None) if Instant::now() < until => thread::sleep(LOOK),
            Ok(None) => break,
            Err(error) => return Err(format!("measuring the GPU failed: {error}")),
        }
    }
    // It may have ended by itself in this moment.
    let _gone = child.kill();
    let _reaped = child.wait();
    Err(format!("measuring the GPU took longer than {} s; run takt profile", patience.as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Child {
        Command::new("sh").args(["-c", script]).spawn().expect("a shell starts")
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        assert_eq!(finish(shell("exit 0"), PATIENCE), Ok(()));
        let failed = finish(shell("exit 3"), PATIENCE).expect_err("it failed");
        assert!(failed.contains("exit status: 3"), "{failed}");
        let slow = finish(shell("exec sleep 1000"), Duration::ZERO).expect_err("it does not end");
        assert!(slow.contains("took longer than 0 s"), "{slow}");
    }
}
