//! Reports the state of the daemon to the service manager.
//!
//! The manager names a socket in the environment and takes datagrams of `NAME=VALUE` lines there.
//! Without a manager nothing is sent.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use takt_core::Time;

/// The service manager.
#[derive(Debug, Default)]
pub struct Manager {
    to: Option<(UnixDatagram, SocketAddr)>,
    /// How often it expects a sign of life.
    every: Option<Duration>,
    told: Option<Instant>,
}

impl Manager {
    /// The one that the environment of this process names.
    pub fn from_env() -> Self {
        let for_us =
            std::env::var("WATCHDOG_PID").map_or(true, |pid| pid.trim() == std::process::id().to_string());
        let limit_us = std::env::var("WATCHDOG_USEC").ok().and_then(|text| text.trim().parse().ok());
        let limit = limit_us.filter(|us: &u64| *us > 0 && for_us).map(Duration::from_micros);
        Self::new(std::env::var_os("NOTIFY_SOCKET").as_deref(), limit)
    }

    /// At that address: a path, or a name after `@`. It takes the daemon for hung after a silence of
    /// `limit`.
    pub fn new(address: Option<&std::ffi::OsStr>, limit: Option<Duration>) -> Self {
        let address = address.and_then(|address| match address.as_bytes() {
            [] => None,
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
            path => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(path)).ok(),
        });
        let socket = || {
            let socket = UnixDatagram::unbound().ok()?;
            // The daemon does not wait for a manager that does not read.
            socket.set_nonblocking(true).ok()?;
            Some(socket)
        };
        let to = address.and_then(|address| Some((socket()?, address)));
        // Twice as often as needed, as is customary.
        Self { every: limit.map(|limit| limit / 2).filter(|_| to.is_some()), to, told: None }
    }

    /// The daemon serves.
    pub fn ready(&self, status: &str) {
        self.tell(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// It reads its configuration; [`Self::ready`] says when it has.
    pub fn reloading(&self, now: Time) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}", now.as_ns() / 1000));
    }

    /// The daemon ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    /// To be called often; sends a sign of life if it is time and `is_well` returns true.
    pub fn pulse(&mut self, is_well: impl FnOnce() -> bool) {
        let is_time = |every: Duration| self.told.is_none_or(|told| told.elapsed() >= every);
        if self.every.is_some_and(is_time) && is_well() {
            self.told = Some(Instant::now());
            self.tell("WATCHDOG=1");
        }
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.to {
            // The manager notices a missing message by its own time-out.
            socket.send_to_addr(text.as_bytes(), address).unwrap_or_default();
        }
    }
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 256];
        let length = socket.recv(&mut bytes).expect("told");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn a_manager_learns_the_state() {
        let name = format!("@takt-notify-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).expect("a name");
        let manager_end = UnixDatagram::bind_addr(&address).expect("bound");
        let mut manager = Manager::new(Some(name.as_ref()), Some(Duration::from_secs(3600)));
        manager.ready("two\nlines");
        assert_eq!(heard(&manager_end), "READY=1\nSTATUS=two lines");
        manager.pulse(|| false);
        manager.pulse(|| true);
        manager.pulse(|| panic!("it is not time yet"));
        assert_eq!(heard(&manager_end), "WATCHDOG=1", "not while something is wrong, and once");
        manager.reloading(Time::from_us(42));
        assert_eq!(heard(&manager_end), "RELOADING=1\nMONOTONIC_USEC=42");
        manager.stopping();
        assert_eq!(heard(&manager_end), "STOPPING=1");
    }

    #[test]
    fn a_manager_that_does_not_read_blocks_nothing() {
        let name = format!("@takt-notify-deaf-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name.as_bytes()[1..]).expect("a name");
        let _deaf = UnixDatagram::bind_addr(&address).expect("bound");
        let manager = Manager::new(Some(name.as_ref()), None);
        for _ in 0..100_000 {
            manager.ready("serving");
        }
    }

    #[test]
    fn without_a_manager_nothing_is_sent() {
        let mut manager = Manager::new(None, Some(Duration::from_nanos(1)));
        manager.ready("");
        manager.pulse(|| panic!("there is no manager"));
    }
}
