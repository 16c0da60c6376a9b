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

/// What a process uses; `servers` are the sockets of clients with the addresses of their servers.
pub(super) fn of(process: u32, servers: &HashMap<u32, String>) -> Uses {
    let folder = PathBuf::from(format!("/proc/{process}"));
    if is_seen(&folder) {
        return Uses { seen: true, ..Uses::default() };
    }
    // A compositor may have its own name in its clients' environments, or hand them a connection.
    let environment = environment(process);
    let compositor = value(&environment, "WAYLAND_DISPLAY");
    let mut window = value(&environment, "WAYLAND_SOCKET").map(|_| WindowSystem::Wayland);
    let mut device = false;
    for file in fs::read_dir(folder.join("fd")).into_iter().flatten().flatten() {
        let Ok(target) = fs::read_link(file.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        window = window.or_else(|| server(servers.get(&socket(&target)?)?, compositor.as_deref()));
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

/// The sockets of those who are connected to a server, with its address.
pub(super) fn servers() -> HashMap<u32, String> {
    let peers = takt_os::peers::peers().unwrap_or_default();
    peers.into_iter().map(|peer| (peer.socket, peer.server)).collect()
}

/// What is shown by a server at that address, to a process that finds its compositor by that name.
fn server(address: &str, compositor: Option<&str>) -> Option<WindowSystem> {
    if address.contains(".X11-unix/X") {
        return Some(WindowSystem::X11);
    }
    // Compositors number their sockets; others are named by the variable that leads programs there.
    let file = Path::new(address).file_name()?;
    let is_it = file.to_str()?.starts_with("wayland-")
        || compositor.is_some_and(|name| Path::new(name).file_name() == Some(file));
    is_it.then_some(WindowSystem::Wayland)
}

/// What a process was started with, as far as that may be read.
pub(super) fn environment(process: u32) -> Vec<u8> {
    fs::read(format!("/proc/{process}/environ")).unwrap_or_default()
}

/// The value of a variable, unless it is empty.
pub(super) fn value(environment: &[u8], name: &str) -> Option<String> {
    let of_name = |variable: &[u8]| {
        let value = variable.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
    };
    environment.split(|byte| *byte == 0).find_map(of_name)
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
    fn servers_of_windows_are_known_by_their_addresses() {
        assert_eq!(server("/tmp/.X11-unix/X7", None), Some(WindowSystem::X11));
        assert_eq!(server("@/tmp/.X11-unix/X0", None), Some(WindowSystem::X11));
        assert_eq!(server("/run/user/1000/wayland-1", None), Some(WindowSystem::Wayland));
        assert_eq!(server("/run/user/1000/bus", Some("wayland-0")), None);
        let named = Some(WindowSystem::Wayland);
        assert_eq!(server("/run/user/1000/cluster", Some("cluster")), named);
        assert_eq!(server("/run/cluster", Some("/run/cluster")), named, "names may be paths");
        assert_eq!(socket("socket:[123]"), Some(123));
        assert_eq!(socket("pipe:[123]"), None);
    }

    #[test]
    fn variables_are_found_by_their_whole_names() {
        let environment = b"A_B=1\0B=\0A=x=y\0";
        assert_eq!(value(environment, "A").as_deref(), Some("x=y"));
        assert_eq!(value(environment, "B"), None, "it is empty");
        assert_eq!(value(environment, "_B"), None);
        assert!(!of(std::process::id(), &HashMap::new()).seen);
    }
}
