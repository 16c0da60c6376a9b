//! Servers of windows, without screens.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use super::daemon::await_that;
use super::products;

/// A server of our own, which ends with the test.
pub(crate) struct Server {
    process: Child,
    /// How programs find it.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _gone = self.process.kill();
        let _gone = self.process.wait();
    }
}

impl Server {
    /// An X server.
    pub(crate) fn x11() -> Self {
        // Without the last word it starts anew when the last program has left, and the next one may come too early.
        let mut process = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-noreset"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb starts; packages.txt lists it");
        let mut number = String::new();
        let output = process.stdout.take().expect("its output");
        BufReader::new(output).read_line(&mut number).expect("Xvfb says its number");
        Self { process, variables: vec![("DISPLAY", format!(":{}", number.trim()))] }
    }

    /// A Wayland compositor.
    pub(crate) fn wayland(name: &str) -> Self {
        let folder = products().join(format!("wayland-{name}"));
        // What an earlier run left behind looks like a server that is ready.
        let _none = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("our own folder");
        let path = folder.display().to_string();
        let process = Command::new("weston")
            .args([
                "--backend=headless-backend.so",
                "--use-pixman",
                "--socket=takt",
                "--idle-time=0",
                "--no-config",
            ])
            .env("XDG_RUNTIME_DIR", &path)
            .env_remove("WAYLAND_DISPLAY")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("weston starts; packages.txt lists it");
        let server = Self {
            process,
            variables: vec![("XDG_RUNTIME_DIR", path), ("WAYLAND_DISPLAY", "takt".to_owned())],
        };
        let socket = folder.join("takt");
        await_that("weston listens", || UnixStream::connect(&socket).is_ok());
        server
    }
}
