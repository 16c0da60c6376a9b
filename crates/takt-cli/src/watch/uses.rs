//! What a process uses of windows and GPUs, as seen from outside: its threads, files and libraries in `/proc`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Threads of Takt in a program that draws or computes under it.
const OURS: [&str; 2] = ["takt-measure", "takt-cuda"];

/// What shows a window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WindowSystem {
    X11,
    Wayland,
}

/// What one process uses.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct Uses {
    /// Takt has seen work of it.
    pub(super) seen: bool,
    /// It is connected to what shows windows.
    pub(super) window: Option<WindowSystem>,
    /// It has a GPU's device open.
    pub(super) device: bool,
    /// Its libraries, by the names of their files.
    pub(super) libraries: MappedLibraries,
}

impl Uses {
    /// Whether a library of Takt is loaded, so that work could be seen.
    pub(super) fn has_takt(&self) -> bool {
        self.libraries.have_any(&["libEGL_takt", "libGLX_takt"])
    }
}

/// Libraries of a process.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(super) struct MappedLibraries(pub(super) Vec<String>);

impl MappedLibraries {
    /// Whether one of them has a name that begins so.
    pub(super) fn has(&self, start: &str) -> bool {
        self.0.iter().any(|name| name.starts_with(start))
    }

    pub(super) fn have_any(&self, starts: &[&str]) -> bool {
        starts.iter().any(|start| self.has(start))
    }

    /// Those that a process has mapped.
    fn of(maps: &str) -> Self {
        let paths = maps.lines().filter_map(|line| line.find('/').and_then(|at| line.get(at..)));
        let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
        let mut names: Vec<String> = paths.filter_map(name).filter(|name| name.contains(".so")).collect();
        names.sort_unstable();
        names.dedup();
        Self(names)
    }
}

/// A process and all that it has started and that still have an ancestor among them, the oldest first.
pub(super) fn family(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok()) {
        if let Some(parent) = parent(process) {
            children.entry(parent).or_default().push(process);
        }
    }
    let (mut family, mut next) = (vec![root], 0);
    while let Some(process) = family.get(next) {
        let of_it = children.remove(process).unwrap_or_default();
        family.extend(of_it.into_iter().filter(|child| *child != root));
        next += 1;
    }
    family
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name may contain anything, brackets too.
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// What a process uses; `servers` are the sockets of clients with what they are connected to.
pub(super) fn of(process: u32, servers: &HashMap<u32, WindowSystem>) -> Uses {
    let folder = PathBuf::from(format!("/proc/{process}"));
    if is_seen(&folder) {
        return Uses { seen: true, ..Uses::default() };
    }
    let (mut window, mut device) = (None, false);
    for file in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
        let Ok(target) = fs::read_link(file.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        window = window.or_else(|| servers.get(&socket(&target)?).copied());
        device |=
            ["/dev/dri/", "/dev/nvidia", "/dev/kfd", "/dev/mali"].iter().any(|gpu| target.starts_with(gpu));
    }
    let maps = fs::read_to_string(folder.join("maps")).unwrap_or_default();
    Uses { seen: false, window, device, libraries: MappedLibraries::of(&maps) }
}

fn is_seen(folder: &Path) -> bool {
    let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten();
    let mut names = threads.filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.any(|name| OURS.contains(&name.trim_end()))
}

fn socket(link: &str) -> Option<u32> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The sockets of those who are connected to a server of windows.
pub(super) fn windows() -> HashMap<u32, WindowSystem> {
    let peers = takt_os::peers::peers().unwrap_or_default();
    peers.iter().filter_map(|peer| Some((peer.socket, server(&peer.server)?))).collect()
}

fn server(address: &str) -> Option<WindowSystem> {
    if address.contains(".X11-unix/X") {
        return Some(WindowSystem::X11);
    }
    // Compositors number their sockets; others are named by the variable that leads programs there.
    let named = std::env::var("WAYLAND_DISPLAY").ok().filter(|name| !name.is_empty());
    let file = Path::new(address).file_name()?.to_str()?;
    let is_it = file.starts_with("wayland-")
        || named.is_some_and(|name| Path::new(&name).file_name().is_some_and(|name| name == file));
    is_it.then_some(WindowSystem::Wayland)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_read_from_maps() {
        let maps = "7f00-7f01 r-xp 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/libvulkan.so.1.3.239\n\
                    7f02-7f03 r--p 00000000 fe:00 1 /usr/lib/x86_64-linux-gnu/libvulkan.so.1.3.239\n\
                    7f04-7f05 rw-p 00000000 00:00 0 [heap]\n\
                    7f06-7f07 r--p 00000000 fe:00 2 /usr/share/icons/a b.cache\n";
        let libraries = MappedLibraries::of(maps);
        assert_eq!(libraries, MappedLibraries(vec!["libvulkan.so.1.3.239".to_owned()]));
        assert!(libraries.has("libvulkan.so") && !libraries.have_any(&["libEGL", "libGL"]));
    }

    #[test]
    fn this_process_is_of_its_own_family() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("it starts");
        let found = family(own);
        assert_eq!(found[0], own);
        assert!(found.contains(&child.id()), "{found:?}");
        child.kill().expect("it runs");
        child.wait().expect("it ends");
        assert!(!of(own, &HashMap::new()).seen);
    }

    #[test]
    fn servers_of_windows_are_known_by_their_addresses() {
        assert_eq!(server("/tmp/.X11-unix/X7"), Some(WindowSystem::X11));
        assert_eq!(server("@/tmp/.X11-unix/X0"), Some(WindowSystem::X11));
        assert_eq!(server("/run/user/1000/wayland-1"), Some(WindowSystem::Wayland));
        assert_eq!(server("/run/user/1000/bus"), None);
        assert_eq!(socket("socket:[123]"), Some(123));
        assert_eq!(socket("pipe:[123]"), None);
    }
}
