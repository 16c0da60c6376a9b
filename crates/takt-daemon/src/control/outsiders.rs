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
mod tests;
