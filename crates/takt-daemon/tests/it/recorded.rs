//! What the audit of a daemon says about clients, as it happens.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use takt_core::GroupKind;
use takt_daemon::observe::journal::Journal;
use takt_ipc::Request;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;

use crate::support::{BEARS, Daemon, PATIENCE, await_reply, complete, granted, hello, submit};

/// How often an app draws a frame: often enough to be seen, within any machine's reach.
const FRAME: Duration = Duration::from_millis(500);

/// A daemon with an audit, in a folder that is removed at the end.
struct Audited {
    daemon: Daemon,
    folder: PathBuf,
}

impl Audited {
    fn start(name: &str, settings: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("takt-recorded-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).unwrap_or_default();
        let text = format!("{BEARS}{settings}\n[audit]\nfolder = '{}'\n", folder.display());
        // The audit begins with the journal, here one that writes nothing.
        let daemon = Daemon::prepared(name, &text, |server| server.with_journal(Journal::default()));
        Self { daemon, folder }
    }

    /// Waits for a record.
    fn record(&self, what: &str, mut wanted: impl FnMut(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = self.records().into_iter().find(&mut wanted) {
                return found;
            }
            assert!(Instant::now() < until, "no record of {what}: {:?}", self.records());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn records(&self) -> Vec<Value> {
        let Ok(files) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = files.map(|file| file.expect("a file").path());
        let lines = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
        let texts = lines.map(|path| std::fs::read_to_string(path).unwrap_or_default());
        // The last line may not be complete yet.
        let read = |text: String| {
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>()
        };
        texts.flat_map(read).collect()
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

fn draw(app: &mut Joined, group: u64) {
    submit(app, group, GroupKind::Swap);
    assert_eq!(await_reply(app, granted), group);
    complete(app, group);
}

fn is(event: &'static str) -> impl Fn(&Value) -> bool {
    move |record| record["event"] == event
}

#[test]
fn a_guarantee_that_an_outsider_takes_is_recorded_and_raises_an_alarm() {
    let device = std::env::temp_dir().join(format!("takt-recorded-gpu-{}", std::process::id()));
    std::fs::write(&device, "").expect("written");
    let gpu = format!("[gpu]\ndevices = ['{}']\nunseen = 'ignore'\nslice_us = 1000", device.display());
    let audited = Audited::start("outsider", &gpu);
    let two_s = Some(2_000_000_000);
    let asked = Hello { period_ns: two_s, etpf_ns: Some(5_000_000), ..hello("dial", 9) };
    let mut dial = join(&audited.daemon.path, &asked, PATIENCE).expect("joined");
    draw(&mut dial, 0);
    let returned = audited.record("a guarantee", is("returned"));
    assert_eq!((&returned["app"], &returned["protected"]), (&"dial".into(), &true.into()), "{returned}");
    let file = File::open(&device).expect("it is there");
    let mut outsider = Command::new("cat");
    let mut outsider =
        outsider.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file).spawn().expect("cat is there");
    let withdrawn = audited.record("its end", is("withdrawn"));
    assert_eq!((&withdrawn["rule"], &withdrawn["app"]), (&"outsiders".into(), &"dial".into()), "{withdrawn}");
    audited.record("the alarm", |record| record["rule"] == "guarantee-withdrawn");
    drop(outsider.stdin.take());
    outsider.wait().expect("it ended");
    // It draws nothing meanwhile, and that is no other reason.
    let (mut group, mut drawn) = (0, Instant::now());
    audited.record("the guarantee again", |record| {
        if drawn.elapsed() > FRAME {
            (group, drawn) = (group + 1, Instant::now());
            draw(&mut dial, group);
        }
        record["event"] == "returned" && record["at_us"].as_u64() > withdrawn["at_us"].as_u64()
    });
    let times = audited.records().iter().filter(|record| is("withdrawn")(record)).count();
    assert_eq!(times, 1, "an app that draws nothing keeps its guarantee");
    std::fs::remove_file(device).expect("it was there");
}

#[test]
fn what_supervision_notices_is_recorded_and_raises_an_alarm() {
    let supervised = "[[app]]\nname = 'dial'\nfps = 60\nsilence_ms_max = 100";
    let audited = Audited::start("supervision", supervised);
    let mut dial = audited.daemon.join("dial", 5);
    draw(&mut dial, 0);
    let silent = audited.record("an app that stopped", is("silent"));
    assert_eq!((&silent["app"], &silent["listed"]), (&"dial".into(), &true.into()), "{silent}");
    audited.record("the alarm", |record| record["rule"] == "supervised-silent");
    draw(&mut dial, 1);
    let back = audited.record("its return", is("back"));
    assert!(back["reason"].as_str().is_some_and(|reason| reason.starts_with("no frame for ")), "{back}");
}

#[test]
fn an_eviction_is_recorded_with_the_rule_that_was_broken() {
    let audited = Audited::start("eviction", "");
    let mut liar = audited.daemon.join("liar", 5);
    let complete = Request::Complete {
        group: takt_core::GroupId(7),
        finished: takt_os::clock::now(),
        cost: takt_core::Span::from_us(1),
        frames: 0,
    };
    liar.sender.send(&complete).expect("room");
    let record = audited.record("the eviction", is("quarantined"));
    assert_eq!((&record["rule"], &record["app"]), (&"end-not-granted".into(), &"liar".into()), "{record}");
}

#[test]
#[expect(clippy::print_stdout, reason = "what was skipped")]
fn a_greedy_app_is_recorded_with_what_it_asked_for_and_got() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: only root can be several users");
        return;
    }
    let audited = Audited::start("greedy", "");
    let by_all = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    std::fs::set_permissions(&audited.daemon.path, by_all).expect("our own socket");
    let asked = Hello { fps_mhz: Some(60_000), etpf_ns: Some(16_000_000), ..hello("greedy", u32::MAX) };
    // The daemon locks the memory of its process, which another user may not lock.
    rustix::mm::munlockall().expect("that is always allowed");
    let path = audited.daemon.path.clone();
    let ask = move || {
        rustix::thread::set_thread_uid(rustix::process::Uid::from_raw(41_000)).expect("root may be any user");
        join(&path, &asked, PATIENCE).expect("best effort")
    };
    let greedy = std::thread::scope(|scope| scope.spawn(ask).join().expect("no panic"));
    assert!(!greedy.welcome.standing.protected, "{:?}", greedy.welcome);
    let record = audited.record("the app", is("joined"));
    let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
    assert!(text("asked").contains("4294967295"), "{record}");
    assert_eq!((text("decision").as_str(), text("rule").as_str()), ("limited", "priority-max"), "{record}");
    assert_eq!((text("domain").as_str(), &record["user"]), ("unlisted", &41_000.into()), "{record}");
    assert!(record["exe"].is_string() && record["pid"].is_u64() && !text("reason").is_empty(), "{record}");
}
