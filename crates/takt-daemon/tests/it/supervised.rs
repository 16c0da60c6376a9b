//! Listed apps that stop drawing, in real time.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use takt_core::GroupKind;
use takt_daemon::control::config::Settings;
use takt_ipc::client::Joined;

use crate::support::{Daemon, PATIENCE, await_reply, await_turn, complete, granted, submit};

const SUPERVISED: &str =
    "[[app]]\nname = 'dial'\nfps = 60\nsilence_ms_max = 100\n[[app]]\nname = 'map'\nfps = 60";

fn draw(app: &mut Joined, group: u64) {
    submit(app, group, GroupKind::Swap);
    assert_eq!(await_reply(app, granted), group);
    complete(app, group);
}

#[test]
fn an_app_that_stops_drawing_is_named_until_it_draws_again() {
    let daemon = Daemon::start("supervised", SUPERVISED);
    let silent = |names: serde_json::Value| {
        daemon.await_answer(r#"{"ask": "daemon"}"#, |answer| answer["is"]["silent"] == names);
    };
    silent(serde_json::json!([]));
    let mut dial = daemon.join("dial", 5);
    let mut map = daemon.join("map", 4);
    draw(&mut dial, 0);
    draw(&mut map, 0);
    // Both stop; only one of them is supervised.
    silent(serde_json::json!(["dial"]));
    draw(&mut dial, 1);
    silent(serde_json::json!([]));
    silent(serde_json::json!(["dial"]));
    // One that is gone does not draw either.
    drop(dial);
    draw(&mut daemon.join("dial", 5), 0);
    silent(serde_json::json!([]));
    silent(serde_json::json!(["dial"]));
}

/// Whether the app was granted that group; it was not, if a later turn has not done so.
fn is_granted(app: &mut Joined, group: u64) -> bool {
    await_turn(app);
    let replies = std::iter::from_fn(|| app.receiver.next_reply().expect("an honest daemon"));
    replies.filter_map(granted).any(|found| found == group)
}

#[test]
fn apps_that_matter_less_stand_still_until_a_supervised_one_draws_again() {
    let uid = rustix::process::geteuid().as_raw();
    let daemon = Daemon::start(
        "degraded",
        &format!(
            "[[domain]]\nname = 'all'\nuser = {uid}\nlevel = 'best-effort'\nchange = true\nsee = true\n\
             [[app]]\nname = 'dial'\ndomain = 'all'\nsilence_ms_max = 100\non_silence = 'degrade'\n"
        ),
    );
    let degraded = |wanted: serde_json::Value| {
        daemon.await_answer(r#"{"ask": "daemon"}"#, |answer| answer["is"]["degraded"] == wanted);
    };
    let (mut map, mut game) = (daemon.join("map", 4), daemon.join("game", 3));
    draw(&mut map, 0);
    let mut dial = daemon.join("dial", 5);
    draw(&mut dial, 0);
    degraded("dial".into());
    let apps = r#"{"ask": "apps"}"#;
    daemon.await_answer(apps, |answer| {
        let aside = |at: usize| answer["is"][at]["set_aside"] == true;
        [aside(0), aside(1), aside(2)] == [false, true, true]
    });
    submit(&mut map, 1, GroupKind::Swap);
    submit(&mut game, 0, GroupKind::Swap);
    assert!(!is_granted(&mut map, 1));
    // One that comes now waits as well.
    let mut late = daemon.join("late", 9);
    daemon.await_answer(apps, |answer| answer["is"][0]["set_aside"] == true);
    submit(&mut late, 0, GroupKind::Swap);
    assert!(!is_granted(&mut late, 0));
    // Those who run the machine can let one go on.
    let resumed = daemon.ask(r#"{"ask": "resume", "app": "game"}"#);
    assert_eq!(resumed["answer"], "apps", "{resumed}");
    assert_eq!(await_reply(&mut game, granted), 0);
    complete(&mut game, 0);
    // One that a tool pauses stays paused when the others go on.
    daemon.ask(r#"{"ask": "pause", "app": "late"}"#);
    draw(&mut dial, 1);
    assert_eq!(await_reply(&mut map, granted), 1);
    complete(&mut map, 1);
    assert!(!is_granted(&mut late, 0));
    daemon.ask(r#"{"ask": "resume", "app": "late"}"#);
    assert_eq!(await_reply(&mut late, granted), 0);
    complete(&mut late, 0);
    // The next time holds for all again, until the file says otherwise.
    degraded("dial".into());
    daemon.await_answer(apps, |answer| answer["is"][3]["set_aside"] == true);
    daemon.with(|server| server.apply(Settings::parse(crate::support::BEARS).expect("settings")));
    degraded(serde_json::Value::Null);
    submit(&mut game, 1, GroupKind::Swap);
    assert_eq!(await_reply(&mut game, granted), 1);
    complete(&mut game, 1);
}

/// A program in the place of systemctl, which writes what it is told into a file beside it.
struct Program(PathBuf);

impl Program {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-{name}-{}", std::process::id()));
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
        Self(path)
    }

    fn told(&self) -> PathBuf {
        self.0.with_extension("told")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("it was there");
        std::fs::remove_file(self.told()).unwrap_or_default();
    }
}

#[test]
fn the_unit_of_an_app_that_stops_is_restarted() {
    let systemctl = Program::new("systemctl", "#!/bin/sh\necho \"$@\" >> \"$0.told\"\n");
    let daemon = Daemon::start(
        "restarted",
        &format!(
            "systemctl = '{}'\n[[app]]\nname = 'dial'\nsilence_ms_max = 100\non_silence = 'restart'\n\
             restart_unit = 'cluster.service'",
            systemctl.0.display()
        ),
    );
    let told = |times: usize| {
        let until = Instant::now() + PATIENCE;
        loop {
            let told = std::fs::read_to_string(systemctl.told()).unwrap_or_default();
            if told == "--no-ask-password --no-block restart -- cluster.service\n".repeat(times) {
                return;
            }
            assert!(Instant::now() < until, "{told:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let mut dial = daemon.join("dial", 5);
    draw(&mut dial, 0);
    told(1);
    // It hangs again.
    draw(&mut dial, 1);
    told(2);
    // One that crashes is restarted as well.
    draw(&mut dial, 2);
    drop(dial);
    told(3);
}

#[test]
fn supervision_that_makes_no_sense_is_a_mistake() {
    for (keys, remedy) in [
        ("on_silence = 'tell'", "add silence_ms_max"),
        ("silence_ms_max = 5", "use 100 or more"),
        ("silence_ms_max = 500\non_silence = 'restart'", "has no unit to restart"),
        ("silence_ms_max = 500\non_silence = 'restart-and-degrade'", "add restart_unit"),
        ("silence_ms_max = 500\nrestart_unit = 'a.service'", "nothing restarts it"),
        ("restart_unit = 'a.service'", "add silence_ms_max"),
    ] {
        let text = format!("[[app]]\nname = 'dial'\n{keys}");
        let mistake = Settings::parse(&text).expect_err("refused").to_string();
        assert!(mistake.contains(remedy) && mistake.contains("dial"), "{mistake}");
    }
}
