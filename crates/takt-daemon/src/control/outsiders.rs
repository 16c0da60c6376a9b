//! Finds processes that have the GPU open, whether the daemon schedules them or not.
//!
//! A thread looks at all processes several times a second: a process that has a device file of the GPU open can
//! give it work at any time. A device is known by its number, since a process can give it another path; and threads may
//! have open files of their own. It neither blocks the scheduling loop nor the control thread, and it costs
//! one look at each open file of each process that the system shows. Who of those it finds is a client is
//! the control thread's to say.
//!
//! The open files tell most: they show a process before it has any work, and on GPUs of every make. Only where the
//! daemon may not look into some processes it asks NVIDIA's driver as well, which names those of all users. That is
//! not done elsewhere, as each question takes locks of the driver. Nor is it in a container, where process numbers
//! of the driver are others.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use takt_nvml::Nvml;
use takt_os::process::{self, Opened};

use super::statement::{Outsider, Outsiders};
use crate::rt::realtime;

/// Time between two looks. A process counts from the second look on that finds it: a client has the GPU
/// open for a moment before it joins.
const PERIOD: Duration = Duration::from_millis(350);
/// Most processes that are kept; more are as good a reason.
const FOUND_MAX: usize = 64;
/// What a process uses that the driver names, and whose open files are hidden.
const NVIDIA: &str = "an NVIDIA GPU";
/// The first user that is a person; those before are accounts of the system.
const PEOPLE: u32 = 1_000;
/// Which word behind the name in `/proc/PID/stat` has the flags, and the one of threads of the kernel.
const FLAGS_AT: usize = 6;
const KERNEL_THREAD: u64 = 0x0020_0000;
/// The namespace of processes that all others are in.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";

/// What to look for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutsiderSettings {
    /// Device files of the GPU; a `*` at the end stands for the rest of a name.
    pub devices: Vec<String>,
    /// Names of processes that may have the GPU open beside Takt. Any process can give itself such a name, so
    /// it counts only for those of accounts of the system and of `users`.
    pub beside: Vec<String>,
    /// Users that the configuration lists.
    pub users: BTreeSet<u32>,
    /// What to make of processes that the daemon cannot see.
    pub unseen: Unseen,
}

/// What to make of processes that the daemon cannot see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// They may use the GPU, so nothing is guaranteed.
    #[default]
    Suspect,
    /// They do not use the GPU; the user says so.
    Ignore,
}

impl Default for OutsiderSettings {
    fn default() -> Self {
        let devices = ["/dev/nvidia*", "/dev/dri/renderD*", "/dev/dri/card*", "/dev/kfd"];
        Self {
            devices: devices.map(str::to_owned).to_vec(),
            // It keeps the driver loaded and gives the GPU no work.
            beside: vec!["nvidia-persistenced".to_owned()],
            users: BTreeSet::new(),
            unseen: Unseen::Suspect,
        }
    }
}

/// Looks for processes that have the GPU open, on a thread of its own.
#[derive(Debug)]
pub(crate) struct OutsiderWatch {
    news: Receiver<Outsiders>,
    /// The thread ends when this is dropped.
    _wanted: SyncSender<()>,
}

impl OutsiderWatch {
    /// Begins to look.
    pub(crate) fn start(settings: OutsiderSettings) -> std::io::Result<Self> {
        let (tell, news) = sync_channel(8);
        let (wanted, asked) = sync_channel(1);
        let mut look = Look::new(settings);
        std::thread::Builder::new().name("takt-outsiders".to_owned()).spawn(move || {
            realtime::ordinary();
            let (mut before, mut told) = (BTreeSet::new(), None);
            loop {
                let scan = look.scan();
                let found = confirmed(&mut before, scan);
                // A control thread that is slow hears of it with a later look.
                if told.as_ref() != Some(&found) && tell.try_send(found.clone()).is_ok() {
                    told = Some(found);
                }
                if asked.recv_timeout(PERIOD) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        })?;
        Ok(Self { news, _wanted: wanted })
    }

    /// What it found last, if that is new.
    pub(crate) fn news(&self) -> Option<Outsiders> {
        let mut newest = None;
        loop {
            match self.news.try_recv() {
                Ok(news) => newest = Some(news),
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => return newest,
            }
        }
    }
}

/// Those that were found in the look before as well.
fn confirmed(before: &mut BTreeSet<u32>, mut scan: Outsiders) -> Outsiders {
    let pids: BTreeSet<u32> = scan.found.iter().map(|one| one.pid).collect();
    let before = std::mem::replace(before, pids);
    scan.found.retain(|one| before.contains(&one.pid));
    scan
}

/// How to look.
struct Look {
    settings: OutsiderSettings,
    /// Where processes are.
    proc: PathBuf,
    driver: Driver,
}

/// A device file of the GPU.
struct Device {
    path: PathBuf,
    is: Opened,
}

/// NVIDIA's list of processes.
enum Driver {
    /// It was not needed yet.
    Unasked,
    Loaded(Nvml),
    /// There is none.
    Missing,
}

impl Driver {
    /// Processes that it names.
    fn processes(&mut self) -> BTreeSet<u32> {
        if matches!(self, Self::Unasked) {
            *self = Nvml::load(Path::new(takt_nvml::LIBRARY)).map_or(Self::Missing, Self::Loaded);
        }
        match self {
            Self::Loaded(nvml) => nvml.processes(),
            Self::Unasked | Self::Missing => BTreeSet::new(),
        }
    }
}

impl Look {
    fn new(settings: OutsiderSettings) -> Self {
        Self { settings, proc: PathBuf::from("/proc"), driver: Driver::Unasked }
    }

    fn scan(&mut self) -> Outsiders {
        let devices = self.devices();
        if devices.is_empty() {
            // Without a GPU there is none to share.
            return Outsiders::default();
        }
        let (mut found, mut hidden) = (Vec::new(), Vec::new());
        for pid in self.processes() {
            match self.open_device(pid, &devices) {
                Ok(Some(device)) if found.len() < FOUND_MAX => found.extend(self.outsider(pid, device)),
                Err(ErrorKind::PermissionDenied) if self.is_program(pid) => hidden.push(pid),
                // It has none open, or it ended meanwhile.
                Ok(_) | Err(_) => {}
            }
        }
        if !hidden.is_empty() && !self.is_in_container() {
            let named = self.driver.processes();
            found.extend(self.named(&hidden, &named, FOUND_MAX - found.len()));
        }
        found.sort_unstable();
        // Those that the driver does not name may use another GPU.
        Outsiders { found, unseen: self.unseen(hidden.len()) }
    }

    /// The device files that are there.
    fn devices(&self) -> Vec<Device> {
        let known = |path: PathBuf| Some(Device { is: Opened::at(&path)?, path });
        self.paths().into_iter().filter_map(known).collect()
    }

    fn paths(&self) -> Vec<PathBuf> {
        let mut devices = Vec::new();
        for pattern in &self.settings.devices {
            let Some(begin) = pattern.strip_suffix('*') else {
                devices.extend(Some(PathBuf::from(pattern)).filter(|path| path.exists()));
                continue;
            };
            let folder = begin.rfind('/').map_or("", |at| &begin[..=at]);
            let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            devices
                .extend(entries.filter(|path| path.to_string_lossy().starts_with(begin) && !path.is_dir()));
        }
        devices
    }

    fn processes(&self) -> impl Iterator<Item = u32> {
        let own = std::process::id();
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(move |pid| *pid != own)
    }

    /// The first device that a process has open.
    fn open_device(&self, pid: u32, devices: &[Device]) -> Result<Option<PathBuf>, ErrorKind> {
        let found = open_in(&self.of(pid).join("fd"), devices)?;
        let of_thread = |thread: u32| {
            let folder = self.of(pid).join(format!("task/{thread}/fd"));
            // It may have ended meanwhile.
            open_in(&folder, devices).ok().flatten()
        };
        Ok(found.or_else(|| process::threads_apart(pid).into_iter().find_map(of_thread)))
    }

    /// A process that has the device open, unless it may.
    fn outsider(&self, pid: u32, device: PathBuf) -> Option<Outsider> {
        let uid = fs::metadata(self.of(pid)).ok()?.uid();
        let name = fs::read_to_string(self.of(pid).join("comm")).ok()?.trim_end().to_owned();
        // The kernel keeps so many letters of a name.
        let is_it = |allowed: &String| allowed.chars().take(NAME_LETTERS).eq(name.chars());
        let allowed = self.is_trusted(uid) && self.settings.beside.iter().any(is_it);
        let name = takt_trace::visible::line(&name).into_owned();
        (!allowed).then(|| Outsider { pid, uid, name, device: device.to_string_lossy().into_owned() })
    }

    /// Whether processes of that user are what their names say.
    fn is_trusted(&self, uid: u32) -> bool {
        uid < PEOPLE || uid == rustix::process::geteuid().as_raw() || self.settings.users.contains(&uid)
    }

    /// Those of the hidden processes that the driver names.
    fn named(&self, hidden: &[u32], named: &BTreeSet<u32>, most: usize) -> Vec<Outsider> {
        let using = hidden.iter().filter(|pid| named.contains(pid)).take(most);
        using.filter_map(|pid| self.outsider(*pid, PathBuf::from(NVIDIA))).collect()
    }

    /// Whether this is no thread of the kernel. That is one of the flags behind the name; an empty command
    /// line says nothing, since a process can give itself one.
    fn is_program(&self, pid: u32) -> bool {
        let stat = fs::read_to_string(self.of(pid).join("stat")).unwrap_or_default();
        let flags = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(FLAGS_AT));
        flags.and_then(|flags| flags.parse::<u64>().ok()).is_some_and(|flags| flags & KERNEL_THREAD == 0)
    }

    fn is_in_container(&self) -> bool {
        let namespace = fs::read_link(self.proc.join("self/ns/pid")).unwrap_or_default();
        namespace != Path::new(FIRST_NAMESPACE)
    }

    /// Why there may be others, in one clause.
    fn unseen(&self, hidden: usize) -> Option<String> {
        let why = if self.is_in_container() {
            "the daemon runs in a container and cannot see processes outside of it".to_owned()
        } else if !self.of(1).exists() {
            "the system hides processes of other users from the daemon".to_owned()
        } else if hidden > 0 {
            format!("the daemon may not look into {hidden} processes of other users; CAP_SYS_PTRACE lets it")
        } else {
            return None;
        };
        let suspects = self.settings.unseen == Unseen::Suspect;
        suspects.then(|| format!("{why} (gpu.unseen = \"ignore\" trusts that none uses the GPU)"))
    }

    fn of(&self, pid: u32) -> PathBuf {
        self.proc.join(pid.to_string())
    }
}

/// The first device among the open files in a folder of `/proc`.
fn open_in(folder: &Path, devices: &[Device]) -> Result<Option<PathBuf>, ErrorKind> {
    let files = fs::read_dir(folder).map_err(|error| error.kind())?;
    let mut open = files.flatten().filter_map(|file| Opened::at(&file.path()));
    Ok(open.find_map(|is| devices.iter().find(|device| device.is == is)).map(|device| device.path.clone()))
}

/// Letters of the name of a process that the kernel keeps.
const NAME_LETTERS: usize = 15;

#[cfg(test)]
mod tests {
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
            #[expect(
                deprecated,
                reason = "this thread opens and closes files of its own alone from here on"
            )]
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
        let found: Vec<_> =
            found.iter().map(|one| (one.pid, one.name.as_str(), one.device.as_str())).collect();
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
}
