//! What the daemon states of live apps: "guaranteed" only while everything holds that it takes.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use takt_core::GroupKind;
use takt_daemon::control::statement::GpuModel;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;

use crate::support::{Daemon, PATIENCE, await_reply, complete, granted, hello, submit};

const APPS: &str = r#"{"ask": "apps"}"#;
/// How often an app draws a frame: often enough to be seen, within any machine's reach.
const FRAME: Duration = Duration::from_millis(500);

/// A file that stands for the GPU, removed at the end.
struct Device(PathBuf);

impl Device {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-stated-{name}-{}", std::process::id()));
        std::fs::write(&path, "").expect("written");
        Self(path)
    }

    /// A daemon that looks at this device.
    fn daemon(&self, name: &str, gpu: &str) -> Daemon {
        let device = self.0.display();
        Daemon::start(name, &format!("[gpu]\ndevices = ['{device}']\nunseen = 'ignore'\n{gpu}"))
    }

    /// A process that has it open, until its input ends.
    fn user(&self) -> Child {
        let file = File::open(&self.0).expect("it is there");
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file).spawn().expect("cat is there")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("it was there");
    }
}

/// An app whose frames are due after two seconds by its own clock.
struct App {
    joined: Joined,
    groups: u64,
    drawn: Option<Instant>,
}

impl App {
    fn join(daemon: &Daemon, hello: Hello) -> Self {
        let two_s = Some(2_000_000_000);
        let hello = Hello { period_ns: two_s, etpf_ns: Some(5_000_000), ..hello };
        let joined = join(&daemon.path, &hello, PATIENCE).expect("joined");
        Self { joined, groups: 0, drawn: None }
    }

    /// Draws a frame now and then until the daemon says `wanted` of the app.
    fn until(&mut self, daemon: &Daemon, wanted: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if self.drawn.is_none_or(|drawn| drawn.elapsed() > FRAME) {
                submit(&mut self.joined, self.groups, GroupKind::Swap);
                assert_eq!(await_reply(&mut self.joined, granted), self.groups);
                complete(&mut self.joined, self.groups);
                (self.groups, self.drawn) = (self.groups + 1, Some(Instant::now()));
            }
            let app = daemon.ask(APPS)["is"][0].take();
            if wanted(&app) {
                return app;
            }
            assert!(Instant::now() < until, "{app}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn until_guaranteed(&mut self, daemon: &Daemon) {
        let app = self.until(daemon, |app| app["guaranteed"] == true);
        assert_eq!((&app["reason"], &app["protected"]), (&Value::Null, &true.into()));
        assert_eq!(app["admission"], "protected: its deadlines are guaranteed");
    }
}

fn has_reason(reason: &'static str) -> impl Fn(&Value) -> bool {
    move |app| app["reason"] == reason && app["guaranteed"] == false && app["protected"] == true
}

#[test]
fn a_program_outside_of_takt_withdraws_the_guarantee_until_it_is_gone() {
    let device = Device::new("outside");
    let daemon = device.daemon("outside", "slice_us = 1000");
    let mut app = App::join(&daemon, hello("dial", 9));
    assert!(!app.joined.welcome.standing.guaranteed, "no frame of it was seen");
    assert!(app.joined.welcome.admission.contains("none of its frames"), "{:?}", app.joined.welcome);
    app.until_guaranteed(&daemon);
    let mut user = device.user();
    let said = app.until(&daemon, has_reason("outsiders"));
    let named = format!("protected, not guaranteed: cat (process {}) has the GPU open", user.id());
    assert!(said["admission"].as_str().is_some_and(|said| said.starts_with(&named)), "{said}");
    let known = daemon.ask(r#"{"ask": "daemon"}"#);
    assert_eq!(known["is"]["outsiders"][0]["pid"], user.id(), "{known}");
    drop(user.stdin.take());
    user.wait().expect("it ended");
    app.until_guaranteed(&daemon);
}

#[test]
fn nothing_is_guaranteed_on_a_gpu_that_was_not_measured() {
    let device = Device::new("model");
    let daemon = device.daemon("model", "");
    let mut app = App::join(&daemon, Hello { gpu: Some("h200-1".to_owned()), ..hello("dial", 9) });
    app.until(&daemon, has_reason("gpu-unmeasured"));
    daemon.with(|server| server.set_gpu_model(GpuModel::Measuring));
    app.until(&daemon, |app| app["admission"].as_str().is_some_and(|said| said.contains("being measured")));
    daemon.with(|server| server.set_gpu_model(GpuModel::Measured(vec!["other-2".to_owned()])));
    app.until(&daemon, |app| app["admission"].as_str().is_some_and(|said| said.contains("(h200-1)")));
    daemon.with(|server| server.set_gpu_model(GpuModel::Measured(vec!["h200-1".to_owned()])));
    app.until_guaranteed(&daemon);
}

#[test]
fn nothing_is_guaranteed_where_the_cpu_draws_nor_where_nothing_is_drawn() {
    let device = Device::new("cpu");
    let daemon = device.daemon("cpu", "slice_us = 1000");
    let mut app = App::join(&daemon, Hello { on_cpu: true, ..hello("camera", 9) });
    app.until(&daemon, has_reason("cpu-renderer"));
    drop(app);
    daemon.await_answer(APPS, |apps| apps["is"].as_array().is_some_and(Vec::is_empty));
    let _silent = App::join(&daemon, hello("silent", 9));
    let apps = daemon.await_answer(APPS, |apps| apps["is"][0]["protected"] == true);
    assert_eq!(
        (&apps["is"][0]["guaranteed"], &apps["is"][0]["reason"]),
        (&false.into(), &"no-frames".into())
    );
}

#[test]
fn an_app_that_may_run_uncut_work_withdraws_the_guarantee_before_it_runs() {
    let device = Device::new("uncut");
    let daemon = device.daemon("uncut", "slice_us = 1000\n[[app]]\nname = 'game'\nuncut = 'run'");
    let mut app = App::join(&daemon, hello("dial", 50));
    app.until_guaranteed(&daemon);
    let game = daemon.join("game", 1);
    // It has not asked for anything yet.
    let said = app.until(&daemon, has_reason("uncut"));
    assert!(said["admission"].as_str().is_some_and(|said| said.contains("game may run work")), "{said}");
    drop(game);
    app.until_guaranteed(&daemon);
}
