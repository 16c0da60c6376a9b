//! Clients of several users, as the kernel tells them apart.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use takt_core::GroupKind;
use takt_daemon::control::config::Settings;
use takt_daemon::control::seal::{self, Provenance};
use takt_daemon::observe::exporter::Address;
use takt_ipc::client::{NotScheduled, join};
use takt_ipc::message::Hello;

use crate::support::{Daemon, PATIENCE, await_reply, complete, granted, hello, submit};
use crate::users::{as_user, daemon, join_as};

/// A user that no system has.
const STRANGER: u32 = 64_001;
/// Another one, which configurations of these tests list.
const CLUSTER: u32 = 64_002;

fn greedy(name: &str) -> Hello {
    Hello { etpf_ns: Some(16_000_000), fps_mhz: Some(60_000), ..hello(name, u32::MAX) }
}

/// The app of that name in the daemon's list.
fn app(daemon: &Daemon, name: &str) -> serde_json::Value {
    let apps = daemon.ask(r#"{"ask": "apps"}"#);
    let all = apps["is"].as_array().expect("a list");
    all.iter().find(|app| app["name"] == name).unwrap_or_else(|| panic!("{name} in {apps}")).clone()
}

#[test]
fn an_unlisted_user_that_asks_for_the_whole_gpu_is_best_effort() {
    let Some(daemon) = daemon("greedy", "") else { return };
    let other = join_as(&daemon, STRANGER, &greedy("greedy")).expect("scheduled");
    assert!(!other.welcome.standing.protected, "{}", other.welcome.admission);
    assert!(
        other.welcome.admission.contains("domain unlisted, rule etpf-max"),
        "{}",
        other.welcome.admission
    );
    let own = daemon.join("own", 0);
    let (other_is, own_is) = (app(&daemon, "greedy"), app(&daemon, "own"));
    assert_eq!((&other_is["domain"], &other_is["etpf_ms"]), (&"unlisted".into(), &0.0.into()), "{other_is}");
    assert_eq!(own_is["domain"], "own");
    assert!(own_is["core_priority"].as_u64() > other_is["core_priority"].as_u64(), "{own_is} {other_is}");
    drop((own, other));
}

#[test]
fn the_name_of_a_listed_app_is_no_right() {
    let listed = "admission = 'refuse'\n[[domain]]\nname = 'cluster'\nuser = 64002\nlevel = 'safety-critical'\n\
        [[app]]\nname = 'dial'\ndomain = 'cluster'\npriority = 80\nfps = 60\netpf_ms = 9";
    let Some(daemon) = daemon("impostor", listed) else { return };
    let impostor = join_as(&daemon, STRANGER, &greedy("dial")).expect("best effort");
    let welcome = &impostor.welcome;
    assert!(
        !welcome.standing.protected && welcome.admission.contains("name-of-another-domain"),
        "{welcome:?}"
    );
    assert_eq!(app(&daemon, "dial")["domain"], "unlisted");
    // Neither can root take what is kept for the dial.
    let refused = join(&daemon.path, &Hello { etpf_ns: Some(9_000_000), ..greedy("own") }, PATIENCE);
    assert!(refused.is_err_and(|error| error.to_string().contains("kept for dial")));
    let dial = join_as(&daemon, CLUSTER, &hello("dial", 1)).expect("listed");
    assert!(dial.welcome.standing.protected, "{}", dial.welcome.admission);
    let first = &daemon.ask(r#"{"ask": "apps"}"#)["is"][0];
    assert_eq!((&first["domain"], &first["priority"]), (&"cluster".into(), &80.into()), "{first}");
}

#[test]
fn an_impostor_that_comes_first_captures_no_order_for_a_listed_app() {
    let listed = "[[domain]]\nname = 'cluster'\nuser = 64002\n[[app]]\nname = 'dial'\ndomain = 'cluster'";
    let Some(daemon) = daemon("captured", listed) else { return };
    let impostor = join_as(&daemon, STRANGER, &hello("dial", 5)).expect("best effort");
    let dial = join_as(&daemon, CLUSTER, &hello("dial", 5)).expect("listed");
    let state = || {
        let apps = daemon.ask(r#"{"ask": "apps"}"#);
        [0, 1].map(|at| {
            let app = &apps["is"][at];
            (app["domain"].as_str().unwrap_or_default().to_owned(), app["paused"] == true)
        })
    };
    let both = |dial, impostor| [("cluster".to_owned(), dial), ("unlisted".to_owned(), impostor)];
    daemon.ask(r#"{"ask": "pause", "app": "dial"}"#);
    assert_eq!(state(), both(true, false));
    daemon.ask(r#"{"ask": "resume", "app": "dial"}"#);
    daemon.ask(r#"{"ask": "pause", "app": "dial@64001"}"#);
    assert_eq!(state(), both(false, true));
    // The impostor's user means its own app, and may not touch the other one.
    let resumed = ask_as(&daemon, STRANGER, r#"{"ask": "resume", "app": "dial"}"#);
    assert_eq!((resumed["answer"].as_str(), state()), (Some("apps"), both(false, false)), "{resumed}");
    let refused = ask_as(&daemon, STRANGER, r#"{"ask": "evict", "app": "dial@64002"}"#);
    assert!(refused["is"].as_str().is_some_and(|reason| reason.contains("rule change")), "{refused}");
    // Where neither is listed, the tool hears how to name each.
    let others =
        [STRANGER, CLUSTER + 9].map(|user| join_as(&daemon, user, &hello("game", 1)).expect("joined"));
    let refused = daemon.ask(r#"{"ask": "evict", "app": "game"}"#);
    let reason = refused["is"].as_str().unwrap_or_default();
    assert!(reason.contains("user 64001") && reason.contains("pid:PROCESS or NAME@USER"), "{refused}");
    assert_eq!(daemon.ask(r#"{"ask": "evict", "app": "game@64011"}"#)["answer"], "apps");
    drop((impostor, dial, others));
}

#[test]
fn counters_of_a_listed_app_have_nothing_of_an_impostor() {
    let listed = "[[domain]]\nname = 'cluster'\nuser = 64002\n[[app]]\nname = 'dial'\ndomain = 'cluster'";
    let Some(daemon) = daemon("counted", listed) else { return };
    let address = daemon.with(|server| {
        server.serve_metrics("127.0.0.1:0".parse().expect("an address")).expect("a port");
        server.metrics_address().cloned()
    });
    let Some(Address::Loopback(address)) = address else { panic!("it listens at a port") };
    let mut impostor = join_as(&daemon, STRANGER, &hello("dial", 5)).expect("best effort");
    let mut dial = join_as(&daemon, CLUSTER, &hello("dial", 5)).expect("listed");
    for (app, groups) in [(&mut impostor, 5), (&mut dial, 2)] {
        for group in 0..groups {
            submit(app, group, GroupKind::Draw);
            assert_eq!(await_reply(app, granted), group);
            complete(app, group);
        }
    }
    let counted = |domain: &str, listed: bool, groups: u32| {
        let line =
            format!("takt_groups_total{{app=\"dial\",domain=\"{domain}\",listed=\"{listed}\"}} {groups}\n");
        let until = Instant::now() + PATIENCE;
        loop {
            let mut server = TcpStream::connect(address).expect("it answers");
            server.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("sent");
            let mut page = String::new();
            server.read_to_string(&mut page).expect("a page");
            if page.contains(&line) {
                return;
            }
            assert!(Instant::now() < until, "{line}{page}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    counted("cluster", true, 2);
    counted("unlisted", false, 5);
    // Another file lists the other one.
    daemon.with(|server| {
        let text = "[[domain]]\nname = 'cluster'\nuser = 64001\n[[app]]\nname = 'dial'\ndomain = 'cluster'";
        server.apply(Settings::parse(&format!("{}{text}", crate::support::BEARS)).expect("settings"));
    });
    submit(&mut impostor, 5, GroupKind::Draw);
    assert_eq!(await_reply(&mut impostor, granted), 5);
    complete(&mut impostor, 5);
    counted("cluster", true, 3);
    drop((impostor, dial));
}

#[test]
fn groups_are_those_of_the_kernel() {
    let Some(daemon) = daemon("groups", "[[domain]]\nname = 'players'\ngroup = 64003") else { return };
    let player = join_as(&daemon, STRANGER, &hello("player", 5)).expect("scheduled");
    assert_eq!(app(&daemon, "player")["domain"], "players");
    drop(player);
}

/// Where a process of this program joins, when it is to.
const JOIN_AT: &str = "TAKT_TEST_JOIN_AT";

/// In a process that a test started: joins until its input ends. Says whether this is such a process.
fn joins_as_told() -> bool {
    let Some(path) = std::env::var_os(JOIN_AT) else { return false };
    let _joined = join(Path::new(&path), &hello("player", 5), PATIENCE).expect("joined");
    std::io::stdin().read_to_end(&mut Vec::new()).expect("the test ends it");
    true
}

/// Has another process join that `begin` starts, which executes what follows; returns what the daemon says of it.
fn joined_by(daemon: &Daemon, begin: &[&str], test: &str) -> serde_json::Value {
    let this = std::env::current_exe().expect("this test");
    let mut child = Command::new(begin[0]);
    child.args(&begin[1..]).arg(this).args(["--exact", test]).env(JOIN_AT, &daemon.path);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it is there");
    let apps = |wanted: usize| {
        let is_so = |apps: &serde_json::Value| apps["is"].as_array().is_some_and(|all| all.len() == wanted);
        daemon.await_answer(r#"{"ask": "apps"}"#, is_so)
    };
    let joined = apps(1)["is"][0].clone();
    drop(child.stdin.take());
    assert!(child.wait().expect("ended").success());
    apps(0);
    joined
}

/// A control group, removed at the end.
struct ControlGroup {
    folder: PathBuf,
    path: String,
}

impl ControlGroup {
    /// In the hierarchy that systemd manages, where this user may make one.
    fn make() -> Option<Self> {
        let root = ["", "systemd", "unified"].map(|name| Path::new("/sys/fs/cgroup").join(name));
        let root = root.into_iter().find(|root| root.join("cgroup.procs").exists())?;
        let path = format!("/takt-test-{}", std::process::id());
        let folder = root.join(&path[1..]);
        std::fs::create_dir(&folder).ok().map(|()| Self { folder, path })
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.folder).unwrap_or_default();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was skipped")]
fn control_groups_are_those_of_the_kernel() {
    if joins_as_told() {
        return;
    }
    let Some(group) = ControlGroup::make() else {
        eprintln!("SKIPPED: no control group can be made here");
        return;
    };
    let listed = format!("[[domain]]\nname = 'players'\ncgroup = '{}'", group.path);
    let Some(daemon) = daemon("cgroup", &listed) else { return };
    let test = "rights::control_groups_are_those_of_the_kernel";
    // It enters the group before it is this program, so that it connects from there.
    let enter = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", group.folder.display());
    assert_eq!(joined_by(&daemon, &["sh", "-c", &enter], test)["domain"], "players");
    assert_eq!(joined_by(&daemon, &["env"], test)["domain"], "own");
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was skipped")]
fn root_of_a_user_namespace_is_its_user() {
    if joins_as_told() {
        return;
    }
    let Some(daemon) = daemon("namespace", "") else { return };
    let begin = ["setpriv", "--reuid=64001", "--regid=64001", "--clear-groups", "unshare", "--map-root-user"];
    let possible = Command::new(begin[0]).args(&begin[1..]).arg("true").stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: no user namespace can be made here");
        return;
    }
    let joined = joined_by(&daemon, &begin, "rights::root_of_a_user_namespace_is_its_user");
    assert_eq!((&joined["domain"], &joined["uid"]), (&"unlisted".into(), &STRANGER.into()), "{joined}");
}

#[test]
fn other_users_change_nothing() {
    let Some(daemon) = daemon("changes", "") else { return };
    let own = daemon.join("own", 7);
    for ask in [
        r#"{"ask": "set", "app": "own", "priority": 1}"#,
        r#"{"ask": "pause", "app": "own"}"#,
        r#"{"ask": "resume", "app": "own"}"#,
        r#"{"ask": "evict", "app": "own"}"#,
        r#"{"ask": "stop"}"#,
    ] {
        let answer = as_user(STRANGER, || crate::support::ask(&daemon.path, ask));
        assert_eq!(answer["answer"], "refused", "{answer}");
        let reason = answer["is"].as_str().unwrap_or_default();
        assert!(reason.contains("domain unlisted") && reason.contains("rule change"), "{reason}");
    }
    assert_eq!(app(&daemon, "own")["priority"], 7);
    assert_eq!(app(&daemon, "own")["paused"], false);
    let preview = r#"{"ask": "preview", "order": {"ask": "pause", "app": "own"}}"#;
    let previewed = ask_as(&daemon, STRANGER, preview);
    let refused = previewed["is"]["refused"].as_str().unwrap_or_default();
    assert!(refused.contains("rule change") && !previewed.to_string().contains("own\""), "{previewed}");
    drop(own);
}

#[test]
fn a_user_steers_its_own_app_and_no_other_lets_it_back() {
    let Some(daemon) = daemon("steers", "") else { return };
    let mine = join_as(&daemon, STRANGER, &hello("mine", 5)).expect("scheduled");
    let paused = ask_as(&daemon, STRANGER, r#"{"ask": "pause", "app": "mine"}"#);
    assert_eq!(paused["is"][0]["paused"], true, "{paused}");
    let evicted = ask_as(&daemon, STRANGER, r#"{"ask": "evict", "app": "mine", "for_s": 600}"#);
    assert_eq!(evicted["answer"], "apps", "{evicted}");
    daemon.await_answer(r#"{"ask": "apps"}"#, |answer| answer["is"] == serde_json::json!([]));
    let again = join_as(&daemon, STRANGER, &hello("mine", 5)).map(|_| ()).expect_err("evicted");
    assert!(again.to_string().contains("a tool evicted it"), "{again}");
    let readmit = r#"{"ask": "readmit", "app": "mine"}"#;
    assert_eq!(ask_as(&daemon, CLUSTER, readmit)["answer"], "refused", "another user");
    assert_eq!(ask_as(&daemon, STRANGER, readmit)["answer"], "apps");
    drop((mine, join_as(&daemon, STRANGER, &hello("mine", 5)).expect("it is back")));
}

fn ask_as(daemon: &Daemon, user: u32, ask: &str) -> serde_json::Value {
    as_user(user, || crate::support::ask(&daemon.path, ask))
}

/// The names in a list of apps.
fn names(answer: &serde_json::Value) -> Vec<&str> {
    let apps = answer["is"]["apps"].as_array().or_else(|| answer["is"].as_array());
    apps.expect("a list").iter().filter_map(|app| app["name"].as_str()).collect()
}

#[test]
fn other_users_see_their_own_apps() {
    let listed = "[[domain]]\nname = 'cluster'\nuser = 64002";
    let Some(daemon) = daemon("seen", listed) else { return };
    let _own = daemon.join("own", 7);
    let _other = join_as(&daemon, STRANGER, &hello("other", 3)).expect("scheduled");
    let (apps, summary) = (r#"{"ask": "apps"}"#, r#"{"ask": "summary", "window_s": 1}"#);
    for ask in [apps, summary] {
        assert_eq!(names(&ask_as(&daemon, STRANGER, ask)), ["other"]);
        assert_eq!(names(&ask_as(&daemon, CLUSTER, ask)), ["own", "other"], "a standard domain sees all");
        assert_eq!(names(&ask_as(&daemon, STRANGER, ask)), ["other"], "nor from an answer to others");
    }
    let why = r#"{"ask": "why", "app": "own", "frame": null}"#;
    assert_eq!(ask_as(&daemon, STRANGER, why)["is"], "no app own; takt list shows them");
    assert_eq!(ask_as(&daemon, CLUSTER, why)["answer"], "misses");
    let watch = ask_as(&daemon, STRANGER, r#"{"ask": "watch"}"#);
    assert!(watch["is"].as_str().is_some_and(|reason| reason.contains("(rule see)")), "{watch}");
}

#[test]
fn a_user_changes_its_own_app_within_its_rights() {
    let Some(daemon) = daemon("set-own", "") else { return };
    let _other = join_as(&daemon, STRANGER, &hello("other", 3)).expect("scheduled");
    let set =
        |terms: &str| ask_as(&daemon, STRANGER, &format!(r#"{{"ask": "set", "app": "other", {terms}}}"#));
    assert_eq!(set(r#""priority": 5"#)["is"][0]["priority"], 5);
    let refused = set(r#""etpf_ms": 5"#);
    assert!(refused["is"].as_str().is_some_and(|reason| reason.contains("rule etpf-max")), "{refused}");
    let root = daemon.ask(r#"{"ask": "set", "app": "other", "etpf_ms": 5}"#);
    assert_eq!(root["is"][0]["etpf_ms"], 5.0, "{root}");
}

#[test]
fn tools_learn_the_domain_that_they_are_of() {
    let listed = "[[domain]]\nname = 'cluster'\nuser = 64002\netpf_ms_max = 4.0\n\
        [[app]]\nname = 'dial'\ndomain = 'cluster'\nfps = 60\netpf_ms = 3.0";
    let Some(daemon) = daemon("domains", listed) else { return };
    let _dial = join_as(&daemon, CLUSTER, &hello("dial", 3)).expect("scheduled");
    let ask = r#"{"ask": "domains"}"#;
    let all = &daemon.ask(ask)["is"];
    assert_eq!(all["yours"], "own");
    let cluster = &all["domains"][0];
    assert_eq!((&cluster["name"], &cluster["who"]), (&"cluster".into(), &"user 64002".into()), "{cluster}");
    assert_eq!((&cluster["etpf_ms"], &cluster["etpf_ms_max"]), (&3.0.into(), &4.0.into()), "{cluster}");
    assert_eq!((&cluster["apps"], &cluster["listed"][0]), (&1.into(), &"dial".into()), "{cluster}");
    let own = &ask_as(&daemon, STRANGER, ask)["is"];
    assert_eq!(own["yours"], "unlisted");
    assert_eq!(own["domains"].as_array().map(Vec::len), Some(1), "{own}");
}

#[test]
fn displays_and_frames_of_others_need_a_right() {
    let listed = "[[domain]]\nname = 'compositor'\nuser = 64002\nset_vsync = true";
    let Some(daemon) = daemon("vsync", listed) else { return };
    let display = r#"{"ask": "display", "name": "cluster", "refresh_mhz": 60000, "vsync_ns": 0}"#;
    let refused = ask_as(&daemon, STRANGER, display);
    assert!(refused["is"].as_str().is_some_and(|reason| reason.contains("rule set-vsync")), "{refused}");
    let refused = ask_as(&daemon, STRANGER, r#"{"ask": "frames"}"#);
    assert!(refused["is"].as_str().is_some_and(|reason| reason.contains("rule see")), "{refused}");
    assert_eq!(ask_as(&daemon, CLUSTER, display)["answer"], "done");
    assert_eq!(ask_as(&daemon, CLUSTER, r#"{"ask": "frames"}"#)["answer"], "done");
}

/// What the daemon says about its configuration.
fn policy(daemon: &Daemon) -> serde_json::Value {
    daemon.ask(r#"{"ask": "domains"}"#)["is"].clone()
}

#[test]
fn another_configuration_waits_for_the_state_of_the_vehicle() {
    let listed = "effective = 'state:parked'\n[[domain]]\nname = 'gateway'\nuser = 64002\nset_state = true";
    let Some(daemon) = daemon("parked", listed) else { return };
    let offer = |name: &'static str| {
        daemon.with(move |server| {
            let text = format!("{}[[domain]]\nname = '{name}'\nuser = 7", crate::support::BEARS);
            let (file, sha256) = (name.into(), seal::sha256(text.as_bytes()));
            let provenance = Provenance { file, sha256, sealed: false };
            server.renew_from(Settings::parse(&text).expect("fine"), provenance);
        });
    };
    let first = |policy: &serde_json::Value| policy["domains"][0]["name"].as_str().map(str::to_owned);
    let state = |user, name: &str| ask_as(&daemon, user, &format!(r#"{{"ask": "state", "name": "{name}"}}"#));
    offer("driven");
    assert_eq!(first(&policy(&daemon)).as_deref(), Some("gateway"), "not while the state is unknown");
    let refused = state(STRANGER, "parked");
    assert!(refused["is"].as_str().is_some_and(|reason| reason.contains("rule set-state")), "{refused}");
    assert_eq!(state(CLUSTER, "moving")["answer"], "done");
    offer("second");
    let waiting = policy(&daemon);
    assert_eq!(first(&waiting).as_deref(), Some("gateway"));
    assert!(waiting["policy"]["waiting_sha256"].is_string(), "{waiting}");
    assert_eq!(state(CLUSTER, "parked")["answer"], "done");
    let parked = policy(&daemon);
    assert_eq!(first(&parked).as_deref(), Some("second"), "the last one");
    assert_eq!((&parked["policy"]["state"], &parked["policy"]["file"]), (&"parked".into(), &"second".into()));
    offer("third");
    assert_eq!(first(&policy(&daemon)).as_deref(), Some("third"), "that one is for any state");
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was skipped")]
fn an_executable_with_other_contents_has_no_rights() {
    let this = std::env::current_exe().expect("this test");
    if let Err(exposed) = takt_os::files::only_roots(&this) {
        eprintln!("SKIPPED: {exposed}");
        return;
    }
    let hash = seal::sha256(&std::fs::read(&this).expect("this test"));
    let listed = |hash: &str| {
        let path = this.display();
        format!(
            "[[domain]]\nname = 'cluster'\nuser = 0\nexecutable = '{path}'\n[[app]]\nname = 'dial'\n\
             domain = 'cluster'\nexecutable = '{path}'\nsha256 = '{hash}'\nfps = 60\netpf_ms = 3.0"
        )
    };
    let joined = |daemon: &Daemon| loop {
        match join(&daemon.path, &hello("dial", 1), PATIENCE) {
            Ok(joined) => return joined,
            // The file is being read.
            Err(NotScheduled::NotNow { again, .. }) => std::thread::sleep(again),
            Err(other) => panic!("{other}"),
        }
    };
    let Some(right) = daemon("hash", &listed(&hash)) else { return };
    let dial = joined(&right);
    assert_eq!(app(&right, "dial")["rule"], "listed-app", "{}", dial.welcome.admission);
    let Some(wrong) = daemon("other-hash", &listed(&"00".repeat(32))) else { return };
    let dial = joined(&wrong);
    assert!(dial.welcome.admission.contains("rule executable-hash"), "{}", dial.welcome.admission);
    let (domain, etpf_ms) = (app(&wrong, "dial")["domain"].clone(), app(&wrong, "dial")["etpf_ms"].clone());
    assert_eq!((domain, etpf_ms), ("unlisted".into(), 0.0.into()));
}
