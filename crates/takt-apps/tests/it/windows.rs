//! Apps in windows, of an X server and of a Wayland compositor that show nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::common::{APPS, hash, validated};

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to end.
        if self.0.kill().is_ok() {
            self.0.wait().expect("a process that was ended can be waited for");
        }
    }
}

/// Windows show what unseen surfaces show.
fn compare(platform: &str, variables: &[(&str, &str)]) {
    for (program, arguments) in APPS {
        let unseen = hash(&mut validated(program, arguments, "surfaceless"));
        let shown = hash(validated(program, arguments, platform).envs(variables.iter().copied()));
        assert_eq!(unseen, shown, "{program} on {platform}");
    }
}

#[test]
fn x11() {
    let mut command = Command::new("Xvfb");
    command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
    let server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut server = Server(server.expect("Xvfb starts (Debian: xvfb; make setup installs it)"));
    // It tells its number when it is ready.
    let mut number = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut number).unwrap();
    compare("x11", &[("DISPLAY", &format!(":{}", number.trim()))]);
}

#[test]
fn wayland() {
    let folder = format!("{}/wayland-{}", env!("CARGO_TARGET_TMPDIR"), std::process::id());
    fs::create_dir_all(&folder).unwrap();
    let mut command = Command::new("weston");
    command.args(["--backend=headless-backend.so", "--socket=takt", "--idle-time=0", "--no-config"]);
    command.env("XDG_RUNTIME_DIR", &folder).stdin(Stdio::null());
    let server = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut server = Server(server.expect("weston starts (Debian: weston; make setup installs it)"));
    // It starts its own first client when others may come. The log stays open: it still writes there.
    let mut log = BufReader::new(server.0.stderr.take().unwrap()).lines().map_while(Result::ok);
    let ready = log.any(|line| line.contains("weston-desktop-shell'"));
    assert!(ready, "weston does not start");
    compare("wayland", &[("WAYLAND_DISPLAY", "takt"), ("XDG_RUNTIME_DIR", &folder)]);
    drop(server);
    fs::remove_dir_all(&folder).unwrap();
}
