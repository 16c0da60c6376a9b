use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use takt_audit::verify::{Kept, sorted, verify};
use takt_audit::{Entry, Source, chain::read_line};

use super::dlt::DltOutput;
use super::store::Store;
use super::*;

const SMALL: Limits = Limits { file_bytes: 2_000, files: 3 };

/// A folder that does not exist yet.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("takt-audit-{name}-{}", std::process::id()));
    std::fs::remove_dir_all(&folder).unwrap_or_default();
    folder
}

/// What a check of all files of a chain finds.
fn faults(folder: &Path, chain: &str) -> Vec<String> {
    let files = contents(folder, chain);
    let sources: Vec<Source<'_>> = files.iter().map(|(name, bytes)| Source { name, bytes }).collect();
    let kept: Kept =
        serde_json::from_slice(&std::fs::read(folder.join(format!("{chain}.head"))).expect("a head"))
            .expect("JSON");
    let chains = sorted(&sources);
    assert_eq!(chains.len(), 1);
    verify(&chains[0].1, Some(kept), &[]).findings.iter().map(ToString::to_string).collect()
}

fn contents(folder: &Path, chain: &str) -> Vec<(String, Vec<u8>)> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut files: Vec<PathBuf> = files.filter(|path| name(path).starts_with(&format!("{chain}-"))).collect();
    files.sort();
    files.iter().map(|path| (name(path), std::fs::read(path).expect("bytes"))).collect()
}

fn records(folder: &Path, chain: &str) -> Vec<Record> {
    let files = contents(folder, chain);
    let lines = files.iter().flat_map(|(_, bytes)| bytes.split(|byte| *byte == b'\n'));
    let record = |line: &[u8]| match read_line(line)?.1 {
        Entry::Record(record) => Some(*record),
        Entry::Opening(_) => None,
    };
    lines.filter_map(record).collect()
}

fn joined(user: u32) -> Record {
    Record { subject: Subject { user: Some(user), ..Subject::default() }, ..Record::new(1, Event::Joined) }
}

#[test]
fn files_are_bounded_and_the_chain_goes_on_across_them() {
    let folder = folder("rotation");
    for start in 0..4 {
        let mut store = Store::open(&folder, "main", SMALL, start).expect("a store");
        for _ in 0..20 {
            store.append(&joined(1)).expect("room on the disk");
        }
        store.keep_head().expect("a head");
        store.sync().expect("a disk");
        drop(store);
        assert!(faults(&folder, "main").is_empty(), "{:?}", faults(&folder, "main"));
    }
    let files = contents(&folder, "main");
    assert_eq!(files.len(), SMALL.files);
    assert!(files.iter().all(|(_, bytes)| bytes.len() as u64 <= SMALL.file_bytes));
    std::fs::remove_file(folder.join(&files[0].0)).expect("removed");
    assert!(faults(&folder, "main")[0].contains("are missing at the beginning"));
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// Lines of a store with three records, then `change` of its file, then one more record.
fn continued(name: &str, change: impl FnOnce(&Path)) -> (Vec<String>, PathBuf) {
    let folder = folder(name);
    let limits = Limits { file_bytes: 1 << 20, files: 9 };
    let mut store = Store::open(&folder, "main", limits, 0).expect("a store");
    (0..3).for_each(|_| drop(store.append(&joined(1)).expect("room")));
    store.keep_head().expect("a head");
    drop(store);
    change(&folder.join("main-00000001.jsonl"));
    let mut store = Store::open(&folder, "main", limits, 0).expect("a store");
    store.append(&joined(2)).expect("room");
    store.keep_head().expect("a head");
    (faults(&folder, "main"), folder)
}

fn cut(path: &Path, by: usize) {
    let bytes = std::fs::read(path).expect("bytes");
    std::fs::write(path, &bytes[..bytes.len() - by]).expect("written");
}

#[test]
fn a_restart_continues_the_chain_and_explains_nothing_away() {
    let (faults, folder) = continued("same", |_| {});
    assert!(faults.is_empty() && contents(&folder, "main").len() == 1, "{faults:?}");
    // The machine stopped while a line was written.
    let (faults, folder) = continued("torn", |path| {
        let mut file = OpenOptions::new().append(true).open(path).expect("a file");
        file.write_all(b"{\"seq\":4,\"ti").expect("written");
    });
    assert!(faults.is_empty() && contents(&folder, "main").len() == 2, "{faults:?}");
    let (faults, folder) = continued("cut", |path| {
        let bytes = std::fs::read(path).expect("bytes");
        let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines");
        cut(path, bytes.len() - last - 1);
    });
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(faults[0].contains("records 3 to 3 are missing before this line"), "{faults:?}");
    let second = String::from_utf8(contents(&folder, "main")[1].1.clone()).expect("text");
    assert!(second.contains("\"found\":") && second.contains("are missing at the end"), "{second}");
    let (faults, _) = continued("gone", |path| std::fs::remove_file(path).expect("removed"));
    assert!(faults[0].contains("records 0 to 3 are missing at the beginning"), "{faults:?}");
    let (faults, _) = continued("empty", |path| {
        File::create(path.with_file_name("main-00000002.jsonl")).expect("a file");
    });
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn two_daemons_do_not_write_one_chain() {
    let folder = folder("locked");
    let _store = Store::open(&folder, "main", SMALL, 0).expect("a store");
    let error = Store::open(&folder, "main", SMALL, 0).expect_err("locked").to_string();
    assert!(error.ends_with("main.head: another daemon writes this audit"), "{error}");
}

fn settings(folder: &Path) -> AuditSettings {
    let limits = Limits { file_bytes: 1 << 20, files: 4 };
    AuditSettings { folder: Some(folder.to_owned()), limits, dlt: None, rules: Vec::new() }
}

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(Instant::now() < until, "it did not happen in time");
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_written_is_told_counted_and_recorded_later() {
    let folder = folder("unwritable");
    std::fs::write(&folder, "no folder").expect("written");
    let mut audit = Audit::start(&settings(&folder)).expect("a thread");
    audit.tell(joined(1), Rank::Own);
    let failed = |audit: &mut Audit| {
        audit.tick();
        audit.news().into_iter().find(|news| matches!(news, News::Failed(_)))
    };
    wait_for(|| failed(&mut audit));
    assert!(!audit.counts().works && audit.counts().lost == 1);
    std::fs::remove_file(&folder).expect("removed");
    wait_for(|| {
        audit.tell(joined(2), Rank::Own);
        audit.tick();
        audit.news().contains(&News::Works).then_some(())
    });
    assert!(audit.counts().works);
    let lost = audit.counts().lost;
    audit.close();
    let written = records(&folder, "main");
    assert_eq!(
        (written[0].event, written[0].times),
        (Event::Lost, lost),
        "the first says how many are missing"
    );
    assert!(faults(&folder, "main").is_empty());
    assert!(matches!(audit.news()[..], [News::Head(ChainId::Main, _)]));
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// A file system of 64 KiB in a folder, which takes root.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(name: &str) -> Option<Self> {
        let place = folder(name);
        std::fs::create_dir_all(&place).expect("made");
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "takt-test"]).arg(&place);
        let mounted = mount.status().is_ok_and(|status| status.success());
        mounted.then_some(Self(place))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = std::process::Command::new("umount").arg("--lazy").arg(&self.0).status();
        assert!(unmounted.is_ok_and(|status| status.success()) || std::thread::panicking());
        std::fs::remove_dir(&self.0).unwrap_or_default();
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was skipped")]
fn a_full_disk_costs_records_that_are_counted_and_no_chain() {
    let Some(disk) = SmallDisk::mount("full").filter(|_| rustix::process::geteuid().is_root()) else {
        eprintln!("SKIPPED: no file system can be mounted here");
        return;
    };
    let (folder, filler) = (disk.0.join("audit"), disk.0.join("filler"));
    std::fs::write(&filler, [b'x'; 32 << 10]).expect("room");
    let mut audit = Audit::start(&settings(&folder)).expect("a thread");
    let mut users = 0..;
    let mut until = |audit: &mut Audit, wanted: fn(&News) -> bool| {
        wait_for(|| {
            audit.tell(joined(users.next().expect("without end")), Rank::Own);
            audit.tick();
            audit.news().iter().any(wanted).then_some(())
        });
    };
    until(&mut audit, |news| matches!(news, News::Failed(reason) if reason.contains("No space left")));
    std::fs::remove_file(&filler).expect("removed");
    until(&mut audit, |news| *news == News::Works);
    let lost = audit.counts().lost;
    audit.close();
    assert!(faults(&folder, "main").is_empty(), "{:?}", faults(&folder, "main"));
    let told = records(&folder, "main").into_iter().filter(|record| record.event == Event::Lost);
    assert!(lost > 0);
    assert_eq!(told.map(|record| record.times).sum::<u64>(), lost, "each that is missing is counted");
}

#[test]
fn unlisted_users_fill_neither_the_queue_nor_the_files_of_others() {
    let folder = folder("flood");
    let mut audit = Audit::start(&settings(&folder)).expect("a thread");
    let second = Duration::from_secs(1);
    for user in 0..5_000 {
        audit.tell_at(second * user, joined(user), Rank::Other);
        if user % 100 == 0 {
            audit.tell_at(second * user, joined(7), Rank::Listed);
        }
    }
    audit.close();
    assert_eq!(records(&folder, "main").len(), 50, "none of the listed ones is lost");
    let written: u64 = records(&folder, "unlisted").iter().map(|record| record.times).sum();
    assert_eq!(written, 5_000 - audit.dropped[1], "each is written or counted");
    assert!(faults(&folder, "main").is_empty() && faults(&folder, "unlisted").is_empty());
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn every_kind_of_request_is_folded() {
    use Event::{Adjusted, Changed, Denied, Joined, Left, OverCapacity, Policy, Quarantined, Refused, Set};
    for event in [Joined, Refused, OverCapacity, Changed, Left, Quarantined, Denied, Set, Policy, Adjusted] {
        let mut audit = Audit::default();
        let subject = Subject { user: Some(9), ..Subject::default() };
        let record = Record { subject, ..Record::new(0, event) };
        (0..1_000).for_each(|_| audit.tell_at(Duration::from_secs(5), record.clone(), Rank::Other));
        assert_eq!(audit.counts().records, 16, "{event:?}");
    }
}

#[test]
fn floods_are_folded_and_still_raise_alarms() {
    let rules = crate::control::config::Settings::default().audit.rules;
    let mut audit = Audit { engine: Engine::new(rules), ..Audit::default() };
    let refused = || {
        let subject = Subject { user: Some(9), ..Subject::default() };
        Record { subject, ..Record::new(0, Event::Refused) }
    };
    (0..10_000).for_each(|_| audit.tell_at(Duration::from_secs(5), refused(), Rank::Other));
    assert_eq!(audit.counts().records, 16);
    audit.begin(Duration::from_secs(6));
    let news = audit.news();
    let [News::Alarm(alarm)] = &news[..] else { panic!("{news:?}") };
    assert_eq!(
        (alarm.rule.as_str(), alarm.text().as_str()),
        ("refused-often", "user 9: 9984 refused within 10 s")
    );
    assert_eq!(audit.counts().alarms["refused-often"].1, 1);
    assert_eq!(audit.counts().records, 18, "the rest in one, and the alarm");
}

#[test]
fn a_daemon_that_reads_dlt_gets_each_record() {
    let path = folder("dlt");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
    let settings = AuditSettings { folder: None, dlt: Some(path.clone()), ..settings(Path::new("/")) };
    let mut audit = Audit::start(&settings).expect("a thread");
    audit.tell(joined(1), Rank::Own);
    let (mut peer, _) = listener.accept().expect("it connects");
    audit.close();
    drop(audit);
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut peer, &mut bytes).expect("bytes");
    let text = String::from_utf8_lossy(&bytes);
    assert_eq!(text.matches("DUH\u{1}").count(), 3, "application, context, one message");
    assert!(text.contains("\"event\":\"joined\",\"user\":1"), "{text}");
    std::fs::remove_file(path).expect("removed");
}

/// In a folder where all may write, another user may have been first.
#[test]
fn a_folder_or_a_file_of_others_is_no_place_for_an_audit() {
    use std::os::unix::fs::PermissionsExt;
    let place = folder("planted");
    let (real, planted) = (place.join("real"), place.join("planted"));
    std::fs::create_dir_all(&planted).expect("made");
    let refused = |folder: &Path| {
        let opened = Store::open(folder, "main", settings(folder).limits, 1);
        opened.expect_err("it is no place").to_string()
    };
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o777)).expect("our own");
    assert!(refused(&planted).contains("may be written by all users"), "{}", refused(&planted));
    std::fs::set_permissions(&planted, PermissionsExt::from_mode(0o700)).expect("our own");
    // A pipe is not waited for.
    let by_user = rustix::fs::Mode::from_raw_mode(0o600);
    for name in ["main.head", "main-00000001.jsonl"] {
        let pipe = planted.join(name);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, by_user, 0).expect("made");
        assert!(refused(&planted).contains(name), "{}", refused(&planted));
        std::fs::remove_file(pipe).expect("removed");
    }
    std::fs::create_dir(&real).expect("made");
    if std::os::unix::fs::chown(&planted, Some(65_534), None).is_ok() {
        assert!(refused(&planted).contains("belongs to user 65534"), "{}", refused(&planted));
        // A link of another user leads to wherever that user likes.
        let link = place.join("link");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        std::os::unix::fs::lchown(&link, Some(65_534), None).expect("root may");
        assert!(refused(&link).contains("belongs to user 65534"), "{}", refused(&link));
    }
    Store::open(&real, "main", settings(&real).limits, 1).expect("our own");
    std::fs::remove_dir_all(place).expect("removed");
}

/// A pipe has room for a part of a message.
#[test]
fn a_dlt_daemon_that_is_slow_gets_whole_messages() {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder("slow-dlt");
    let by_user = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, by_user, 0).expect("made");
    let waits_not = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut reader = OpenOptions::new().read(true).custom_flags(waits_not).open(&path).expect("a pipe");
    let mut output = DltOutput::new(path.clone());
    // Longer than what a pipe takes as a whole or not at all.
    let line = "x".repeat(9_000);
    let mut taken = Vec::new();
    for _ in 0..40 {
        (0..10).for_each(|_| output.send(&joined(1), &line));
        let mut some = [0; 5_000];
        let count = reader.read(&mut some).expect("bytes");
        taken.extend_from_slice(&some[..count]);
    }
    assert!(output.lost > 10, "it does not wait");
    drop(output);
    reader.read_to_end(&mut taken).expect("bytes");
    let begins = taken.windows(4).enumerate().filter(|(_, bytes)| *bytes == b"DUH\x01").map(|(at, _)| at);
    let begins: Vec<usize> = begins.skip(2).collect();
    let lengths: Vec<usize> = begins.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(lengths.len() > 20 && lengths.iter().all(|length| *length == lengths[0]), "{lengths:?}");
    std::fs::remove_file(path).expect("removed");
}
