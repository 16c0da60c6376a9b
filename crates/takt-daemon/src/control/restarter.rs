//! Restarts systemd units on a thread of its own: the control thread waits for no other program.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Units that wait to be restarted, and results that wait to be read.
const WAITING_MAX: usize = 16;

/// What became of an order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Restarted {
    pub(crate) unit: String,
    /// Why it was not restarted, if it was not.
    pub(crate) error: Option<String>,
}

/// The thread; it ends with this, after the order that it carries out.
#[derive(Debug)]
pub(crate) struct Restarter {
    units: SyncSender<String>,
    results: Receiver<Restarted>,
}

impl Restarter {
    /// Restarts units with that program, which is `systemctl`.
    pub(crate) fn start(program: impl Into<OsString>) -> std::io::Result<Self> {
        let (units, given) = sync_channel::<String>(WAITING_MAX);
        let (tell, results) = sync_channel(WAITING_MAX);
        let program = program.into();
        std::thread::Builder::new().name("takt-restarter".to_owned()).spawn(move || {
            for unit in given {
                let error = restart(&program, &unit).err();
                // Results that are not read are not kept.
                tell.try_send(Restarted { unit, error }).unwrap_or_default();
            }
        })?;
        Ok(Self { units, results })
    }

    /// Has a unit restarted; returns whether there was room for the order.
    pub(crate) fn order(&self, unit: &str) -> bool {
        self.units.try_send(unit.to_owned()).is_ok()
    }

    /// What became of an earlier order.
    pub(crate) fn result(&self) -> Option<Restarted> {
        self.results.try_recv().ok()
    }
}

fn restart(program: &OsString, unit: &str) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(["--no-ask-password", "--no-block", "restart", "--", unit]);
    let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{}: {}", output.status, said.lines().next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(restarter: &Restarter) -> Restarted {
        loop {
            if let Some(result) = restarter.result() {
                return result;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn units_are_restarted_elsewhere() {
        let restarter = Restarter::start("true").expect("a thread");
        assert!(restarter.order("cluster.service"));
        assert_eq!(result(&restarter), Restarted { unit: "cluster.service".to_owned(), error: None });
        for (program, why) in [("false", "exit status: 1"), ("/nowhere/systemctl", "No such file")] {
            let restarter = Restarter::start(program).expect("a thread");
            assert!(restarter.order("-x"));
            let error = result(&restarter).error.expect("it failed");
            assert!(error.contains(why), "{error}");
        }
    }
}
