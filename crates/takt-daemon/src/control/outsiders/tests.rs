use super::*;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Long enough for any machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A file that stands for the GPU, removed at the end.
struct Device(PathBuf);

impl Device {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("takt-gpu-{name}-{}", std::process::id()));
        fs::write(&path, "").expect("written");
        Self(path)
    }

    fn settings(&self) -> OutsiderSettings {
        let pattern = self.0.to_string_lossy().into_owned();
        OutsiderSettings { devices: vec![pattern], unseen: Unseen::Ignore, ..OutsiderSettings::default() }
    }

    /// A process that has it open, until its input ends.
    fn user(&self) -> Child {
        self.opened_by(Command::new("cat"))
    }

    fn opened_by(&self, mut command: Command) -> Child {
        let file = File::open(&self.0).expect("it is there");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(file).spawn().expect("cat is there")
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        fs::remove_file(&self.0).expect("it was there");
    }
}

fn until<T>(mut done: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = done() {
            return found;
        }
        assert!(Instant::now() < until, "it did not happen in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_process_that_opens_the_gpu_is_named_until_it_is_gone() {
    let device = Device::new("named");
    let watch = OutsiderWatch::start(device.settings()).expect("a thread");
    let news = || watch.news.recv_timeout(PATIENCE).expect("it looks").found;
    assert!(news().is_empty(), "none has it open yet");
    let mut user = device.user();
    let found = news();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].pid, found[0].name.as_str()), (user.id(), "cat"));
    assert_eq!(found[0].device, device.0.to_string_lossy());
    drop(user.stdin.take());
    user.wait().expect("it ended");
    assert!(news().is_empty(), "it is gone");
}

#[test]
fn processes_that_may_are_no_outsiders() {
    let device = Device::new("beside");
    let mut user = device.user();
    let found = |beside: &str| {
        let settings = OutsiderSettings { beside: vec![beside.to_owned()], ..device.settings() };
        Look::new(settings).scan().found
    };
    // It is another program until it has begun.
    until(|| (found("none").first()?.name == "cat").then_some(()));
    assert_eq!(found("cat"), []);
    drop(user.stdin.take());
    user.wait().expect("it ended");
}

#[test]
#[expect(clippy::print_stderr, reason = "says what was skipped")]
fn a_name_that_a_process_gives_itself_is_no_permission() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can be several users");
        return;
    }
    let (stranger, device) = (64_010, Device::new("impostor"));
    let mut command = Command::new("cat");
    command.uid(stranger);
    let mut user = device.opened_by(command);
    let found = |users: &[u32]| {
        let (beside, users) = (vec!["cat".to_owned()], users.iter().copied().collect());
        Look::new(OutsiderSettings { beside, users, ..device.settings() }).scan().found
    };
    until(|| (found(&[]).first()?.name == "cat").then_some(()));
    assert_eq!(found(&[])[0].uid, stranger);
    assert_eq!(found(&[stranger]), [], "a listed user");
    drop(user.stdin.take());
    user.wait().expect("it ended");
}

#[test]
fn another_path_or_a_thread_with_files_of_its_own_hides_no_device() {
    let device = Device::new("hidden");
    let look = Look::new(device.settings());
    let open = || look.open_device(std::process::id(), &look.devices()).expect("our own");
    assert_eq!(open(), None);
    let alias = device.0.with_extension("alias");
    fs::hard_link(&device.0, &alias).expect("linked");
    let by_alias = File::open(&alias).expect("there");
    assert_eq!(open().as_ref(), Some(&device.0), "as in a container, or after a mount");
    drop(by_alias);
    fs::remove_file(alias).expect("removed");
    assert_eq!(open(), None);
    let (tell, told) = sync_channel(1);
    let (go_on, wait) = sync_channel::<()>(1);
    let path = device.0.clone();
    let apart = std::thread::Builder::new().name("apart".to_owned()).spawn(move || {
        #[expect(deprecated, reason = "this thread opens and closes files of its own alone from here on")]
        rustix::thread::unshare(rustix::thread::UnshareFlags::FILES).expect("all may");
        let _open = File::open(path).expect("there");
        tell.send(()).expect("the test listens");
        wait.recv().expect("the test says so");
    });
    told.recv().expect("it has it open");
    assert_eq!(open().as_ref(), Some(&device.0));
    go_on.send(()).expect("it waits");
    apart.expect("a thread").join().expect("no panic");
}

#[test]
fn threads_of_the_kernel_are_no_programs() {
    let root = proc_with("kernel", FIRST_NAMESPACE, &[1, 2]);
    let stat = |flags: u64| format!("2 (a) b) S 0 0 0 0 -1 {flags} 0 0 0");
    fs::write(root.join("2/stat"), stat(KERNEL_THREAD | 0x40)).expect("written");
    let look = Look { proc: root.clone(), ..Look::new(OutsiderSettings::default()) };
    let is_program = |pid| look.is_program(pid);
    assert!(is_program(1) && !is_program(2) && !is_program(3), "one that ended is none");
    fs::write(root.join("2/stat"), stat(0x40)).expect("written");
    assert!(is_program(2));
    fs::remove_dir_all(root).expect("it was there");
    assert!(Look::new(OutsiderSettings::default()).is_program(std::process::id()));
}

/// A made-up list of processes: number, what its folder of open files is, and its flags.
fn proc_with(name: &str, namespace: &str, others: &[u32]) -> PathBuf {
    let root = std::env::temp_dir().join(format!("takt-proc-{name}-{}", std::process::id()));
    fs::create_dir_all(root.join("self/ns")).expect("made");
    std::os::unix::fs::symlink(namespace, root.join("self/ns/pid")).expect("made");
    for pid in others {
        fs::create_dir_all(root.join(pid.to_string()).join("fd")).expect("made");
        fs::write(root.join(pid.to_string()).join("stat"), "1 (x) S 0 0 0 0 -1 64 0").expect("made");
    }
    root
}

#[test]
fn what_cannot_be_seen_is_a_reason() {
    let device = Device::new("unseen");
    let unseen = |name: &str, namespace: &str, others: &[u32], unseen: Unseen| {
        let proc = proc_with(name, namespace, others);
        let settings = OutsiderSettings { unseen, ..device.settings() };
        let found = Look { proc: proc.clone(), ..Look::new(settings) }.scan().unseen;
        fs::remove_dir_all(proc).expect("it was there");
        found.unwrap_or_default()
    };
    let container = unseen("container", "pid:[1]", &[1], Unseen::Suspect);
    assert!(container.contains("in a container") && container.contains("gpu.unseen"), "{container}");
    let hiding = unseen("hiding", FIRST_NAMESPACE, &[], Unseen::Suspect);
    assert!(hiding.contains("hides processes"), "{hiding}");
    assert_eq!(unseen("open", FIRST_NAMESPACE, &[1], Unseen::Suspect), "");
    assert_eq!(unseen("ignored", "pid:[1]", &[1], Unseen::Ignore), "");
    let denied = Look::new(OutsiderSettings { unseen: Unseen::Suspect, ..device.settings() });
    assert!(denied.unseen(3).is_some(), "hidden ones, or a container");
}

/// Its list of open files may not be read, and its driver's list names it.
#[test]
fn the_driver_names_processes_that_may_not_be_looked_into() {
    let device = Device::new("driver");
    let root = proc_with("driver", FIRST_NAMESPACE, &[1, 4_000_001, 4_000_002]);
    for (pid, name) in [(1, "init"), (4_000_001, "a\ngame"), (4_000_002, "shell")] {
        fs::write(root.join(pid.to_string()).join("comm"), name).expect("written");
    }
    let named = BTreeSet::from([4_000_001, 4_000_003]);
    let settings = OutsiderSettings { unseen: Unseen::Suspect, ..device.settings() };
    let look = Look { proc: root.clone(), ..Look::new(settings) };
    let found = look.named(&[4_000_001, 4_000_002], &named, FOUND_MAX);
    fs::remove_dir_all(root).expect("it was there");
    let found: Vec<_> = found.iter().map(|one| (one.pid, one.name.as_str(), one.device.as_str())).collect();
    assert_eq!(found, [(4_000_001, "a\\u{a}game", NVIDIA)], "one line, whatever its name");
}

#[test]
fn without_a_gpu_there_is_nothing_to_look_for() {
    let settings =
        OutsiderSettings { devices: vec!["/nowhere/gpu*".to_owned()], ..OutsiderSettings::default() };
    assert_eq!(Look::new(settings).scan(), Outsiders::default());
}

#[test]
fn a_moment_is_too_short() {
    let one = Outsider { pid: 7, uid: 0, name: "x".to_owned(), device: "y".to_owned() };
    let scan = |found: &[Outsider]| Outsiders { found: found.to_vec(), unseen: None };
    let mut before = BTreeSet::new();
    let mut look = |found: &[Outsider]| confirmed(&mut before, scan(found)).found.len();
    let one = [one];
    assert_eq!([look(&one), look(&one), look(&[]), look(&one)], [0, 1, 0, 0]);
}
