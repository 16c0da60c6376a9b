//! Clients and tools that take the place of others: their names, their addresses, their clean record.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use takt_audit::Event;
use takt_core::{GroupId, Span};
use takt_daemon::observe::exporter::Address;
use takt_ipc::Request;
use takt_ipc::client::{Joined, NotScheduled, join};
use takt_ipc::message::Hello;
use takt_os::clock;

use crate::arena::{Arena, as_user, is_root, say, withstand, withstand_with};
use crate::setting::Setting;
use crate::support::{PATIENCE, ask, hello};

const MALLORY: u32 = 41_000;
/// Where a process of this program breaks rules.
const SOCKET: &str = "TAKT_ATTACK_SOCKET";
/// Processes that do so at once.
const PROCESSES: usize = 4;

/// Joins with the names of listed apps, and with such as stand for slots.
pub(crate) fn pose(arena: &Arena, user: u32) {
    as_user(user, || {
        let names = ["victim", "listed", "0", "1"];
        let (mut held, mut posed): (Vec<Joined>, usize) = (Vec::new(), 0);
        while arena.goes_on() {
            let claim = Hello { fps_mhz: Some(60_000), ..hello(names[posed % names.len()], 90) };
            posed += 1;
            match join(arena.path(), &claim, PATIENCE) {
                Ok(impostor) => {
                    assert!(!impostor.welcome.standing.protected, "{:?}", impostor.welcome);
                    held.push(impostor);
                }
                Err(NotScheduled::NotNow { .. }) => std::thread::sleep(Duration::from_millis(5)),
                Err(other) => panic!("{other}"),
            }
            if held.len() == 20 {
                held.clear();
            }
        }
    });
}

/// Clients with the names of listed apps, before and while those are there.
#[test]
fn impostors() {
    if !is_root() {
        say("impostors: SKIPPED, only root can be several users");
        return;
    }
    let setting = Setting { more: "admission = 'refuse'\n", ..Setting::default() };
    let evidence = withstand_with("impostors", setting, |arena| pose(arena, MALLORY));
    let posed = evidence.unlisted.about(Event::Joined, "victim").expect("it is recorded as what it is");
    assert_eq!((posed.subject.user, posed.subject.listed), (Some(MALLORY), false), "{posed:?}");
    assert_eq!(posed.rule, "name-of-another-domain", "{posed:?}");
}

/// Orders about listed apps, by their names and slots.
fn order_others(arena: &Arena) {
    let orders = [
        r#"{"ask": "set", "app": "victim", "priority": 0, "etpf_ms": 0}"#,
        r#"{"ask": "set", "app": "0", "priority": 0}"#,
        r#"{"ask": "pause", "app": "victim"}"#,
        r#"{"ask": "pause", "app": "0"}"#,
        r#"{"ask": "evict", "app": "listed"}"#,
        r#"{"ask": "evict", "app": "0"}"#,
        r#"{"ask": "preview", "order": {"ask": "evict", "app": "victim"}}"#,
        r#"{"ask": "policy", "name": "fifo"}"#,
        r#"{"ask": "stop"}"#,
    ];
    for order in orders {
        ask(arena.path(), order);
    }
}

/// Impostors of listed apps, whose tools give orders about those names; a tool of the daemon's user gives
/// orders meanwhile, and means the listed app.
#[test]
fn impostors_that_give_orders() {
    if !is_root() {
        say("impostors that give orders: SKIPPED, only root can be several users");
        return;
    }
    let evidence = withstand("orders", |arena| {
        std::thread::scope(|scope| {
            scope.spawn(|| pose(arena, MALLORY));
            scope.spawn(|| {
                as_user(MALLORY, || {
                    while arena.goes_on() {
                        order_others(arena);
                    }
                });
            });
            let mut priority = 90;
            while arena.goes_on() {
                priority = if priority == 90 { 91 } else { 90 };
                arena.daemon.ask(&format!(r#"{{"ask": "set", "app": "victim", "priority": {priority}}}"#));
                let apps = arena.daemon.ask(r#"{"ask": "apps"}"#);
                let apps = apps["is"].as_array().expect("a list");
                let victim = apps.iter().find(|app| app["name"] == "victim" && app["domain"] == "cluster");
                let victim = victim.expect("it is there");
                assert_eq!((&victim["priority"], &victim["paused"]), (&priority.into(), &false.into()));
            }
        });
        assert_eq!(arena.daemon.ask(r#"{"ask": "daemon"}"#)["is"]["policy"], "timeline");
    });
    assert!(evidence.unlisted.times(Event::Denied, MALLORY) > 0, "what it may not do is recorded");
}

/// What the daemon finds at the address of its metrics, where another user was first.
#[test]
fn files_in_the_place_of_sockets() {
    let folder = std::env::temp_dir().join(format!("takt-attack-place-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let (notes, link) = (folder.join("notes"), folder.join("link"));
    std::fs::write(&notes, "precious").expect("written");
    std::os::unix::fs::symlink(&notes, &link).expect("linked");
    withstand("places", |arena| {
        while arena.goes_on() {
            for place in [&notes, &link] {
                let address = Address::Unix(place.clone());
                let refused =
                    arena.daemon.with(move |server| server.serve_metrics(address)).map(|()| "served");
                let error = refused.expect_err("it is no socket").to_string();
                assert!(error.contains("is no socket; use another path"), "{error}");
            }
        }
    });
    assert_eq!(std::fs::read_to_string(&notes).expect("it is there"), "precious");
    assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
    std::fs::remove_dir_all(folder).expect("it was there");
}

/// Processes of another user, which end with this, and their program.
struct Crowd {
    children: Vec<Child>,
    program: PathBuf,
}

impl Crowd {
    /// Starts processes of this program that break rules; none if that user may not execute it.
    fn start(socket: &Path) -> Option<Self> {
        // A folder that all users can reach; the one of the build may belong to one alone.
        let program = std::env::temp_dir().join(format!("takt-attack-program-{}", std::process::id()));
        std::fs::copy(std::env::current_exe().expect("this program"), &program).expect("copied");
        let mut crowd = Self { children: Vec::new(), program };
        for _ in 0..PROCESSES {
            let mut command = Command::new(&crowd.program);
            command.args(["--exact", "impostors::breaks_rules_in_a_process_of_its_own"]).env(SOCKET, socket);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).uid(MALLORY);
            crowd.children.push(command.spawn().ok()?);
        }
        Some(crowd)
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for child in &mut self.children {
            drop(child.stdin.take());
            child.wait().expect("it ends");
        }
        std::fs::remove_file(&self.program).expect("it was copied");
    }
}

/// Joins, breaks a rule, and comes back, until its input ends; does nothing unless it is run by the others.
#[test]
fn breaks_rules_in_a_process_of_its_own() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let until_the_end = || std::io::stdin().read_to_end(&mut Vec::new());
    let parent =
        std::thread::Builder::new().name("parent".to_owned()).spawn(until_the_end).expect("a thread");
    while !parent.is_finished() {
        if let Ok(mut app) = join(Path::new(&socket), &hello("again", 1), PATIENCE) {
            let (group, finished, cost) = (GroupId(7), clock::now(), Span::from_us(1));
            let _room = app.sender.send(&Request::Complete { group, finished, cost, frames: 0 });
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Processes of one program that were evicted ask again and again, whichever of them broke the rule.
#[test]
fn evicted_programs_that_come_back() {
    if !is_root() {
        say("evicted programs: SKIPPED, only root can be several users");
        return;
    }
    let began = Instant::now();
    let evidence = withstand("evicted", |arena| {
        let Some(crowd) = Crowd::start(arena.path()) else {
            say("evicted: no process of another user can be started here");
            return;
        };
        while arena.goes_on() || !arena.has_recorded("\"rule\":\"quarantine\"") {
            assert!(began.elapsed() < PATIENCE, "none is refused");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(crowd);
    });
    // A pause of a second at first, twice that each time: so many end in this time.
    let most = (began.elapsed().as_secs() + 1).ilog2() + 1 + 1;
    // Those that had joined already when the first was evicted broke a rule as well.
    let most = u64::from(most) + PROCESSES as u64;
    let evictions = evidence.unlisted.times(Event::Quarantined, MALLORY);
    assert!((1..=most).contains(&evictions), "{evictions} evictions");
}
