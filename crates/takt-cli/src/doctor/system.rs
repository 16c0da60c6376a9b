//! Loader, drivers, devices and rights of this machine.

use std::path::Path;
use std::{fs, thread};

use takt_daemon::control::cpu_latency::CpuLatency;
use takt_daemon::rt::realtime;

use super::Finding;
use crate::domains;
use crate::hook::cuda;
use crate::hook::libraries::{self, Libraries};
use crate::hook::vendors;

/// Whether there is a libEGL, and whether libglvnd provides it.
pub(super) fn loader(libraries: &Libraries) -> Finding {
    match libraries.find(libraries::EGL) {
        Some(path) if libraries::is_glvnd(&path) => {
            Finding::ok("loader", format!("{} of libglvnd", path.display()))
        }
        Some(path) => Finding::note(
            "loader",
            format!("{} is not that of libglvnd: programs are hooked by preloading", path.display()),
        ),
        None if !libraries.has_list() => {
            Finding::note("loader", "ldconfig cannot be asked which libraries there are")
        }
        None => Finding::problem(
            "loader",
            "there is no libEGL.so.1, neither in the system's list nor where LD_LIBRARY_PATH says",
            "install libglvnd (Debian: libegl1 and libgles2), or set LD_LIBRARY_PATH to its folder",
        ),
    }
}

/// The EGL drivers that libglvnd knows.
pub(super) fn drivers(libraries: &Libraries) -> Vec<Finding> {
    let (vendors, problems) = vendors();
    let mut findings = Vec::new();
    for vendor in &vendors {
        let shown = format!("{} ({})", vendor.library, vendor.json.display());
        findings.push(match libraries.find(&vendor.library) {
            Some(_) => Finding::ok("driver", shown),
            None if !libraries.has_list() => Finding::note("driver", shown),
            None => Finding {
                remedy: Some("install the driver, or set LD_LIBRARY_PATH to its folder".to_owned()),
                ..Finding::note("driver", format!("{shown}: there is no such library; libEGL passes over it"))
            },
        });
    }
    let broken = |problem| Finding::problem("driver", problem, "mend or remove this description");
    findings.extend(problems.into_iter().map(broken));
    if vendors.is_empty() {
        let found = "libglvnd knows no EGL driver";
        findings.push(Finding::problem(
            "driver",
            found,
            "install one (Debian: libegl-mesa0, or NVIDIA's libnvidia-egl)",
        ));
    }
    findings
}

/// Whether there is a CUDA driver.
pub(super) fn cuda() -> Finding {
    match cuda::driver() {
        Ok(Some(path)) => Finding::ok("cuda", format!("{} is the driver", path.display())),
        Ok(None) => Finding::note("cuda", "no libcuda.so.1: programs cannot use CUDA here"),
        Err(error) => Finding::note("cuda", format!("{error:#}")),
    }
}

/// Devices that drivers use.
pub(super) fn devices() -> Finding {
    let list = |folder: &str, start: &str| -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> =
            names.filter(|name| name.starts_with(start)).map(|name| format!("{folder}/{name}")).collect();
        names.sort();
        names
    };
    let nodes = [list("/dev/dri", "renderD"), list("/dev", "nvidia")].concat();
    let closed: Vec<&str> =
        nodes.iter().filter(|node| fs::File::open(node).is_err()).map(String::as_str).collect();
    match (nodes.as_slice(), closed.as_slice()) {
        ([], _) => {
            Finding::note("devices", "no GPU: neither /dev/dri/renderD* nor /dev/nvidia*; software renders")
        }
        (nodes, []) => Finding::ok("devices", nodes.join(", ")),
        (_, closed) => Finding::problem(
            "devices",
            format!("{} cannot be opened", closed.join(", ")),
            "add yourself to their groups (sudo usermod -aG render,video $USER) and log in again",
        ),
    }
}

/// Whether threads may have real-time priorities, which the scheduler of frames wants. A thread
/// tries: capabilities and limits do not tell what a container forbids.
pub(super) fn real_time() -> Option<Finding> {
    let tried = thread::Builder::new().spawn(realtime::real_time).ok()?.join().ok()?;
    Some(match tried {
        Ok(()) => Finding::ok("real time", "threads may have real-time priorities"),
        Err(error) => Finding {
            remedy: Some(
                "give CAP_SYS_NICE, or set `rtprio` for your user in /etc/security/limits.conf; \
                 some containers forbid it all the same"
                    .to_owned(),
            ),
            ..Finding::note(
                "real time",
                format!("threads may not have real-time priorities ({error}); only `takt serve` wants them"),
            )
        },
    })
}

/// Which domain programs of this user are of, at the daemon that would schedule them.
pub(super) fn domain(socket: &Path) -> Finding {
    match domains::yours(socket) {
        Ok(yours) => Finding::ok("domain", yours),
        Err(_) => Finding::note("domain", format!("no daemon answers at {}", socket.display())),
    }
}

/// Whether processors can be kept from sleeping deeply, from which they take long to wake up.
pub(super) fn wake_ups() -> Finding {
    match CpuLatency::is_allowed() {
        Ok(()) => Finding::ok("wake-ups", "processors can be kept from sleeping deeply"),
        Err(error) => Finding {
            remedy: Some(
                "let the daemon's user write to /dev/cpu_dma_latency, by a rule of udev as the package \
                 takt has one"
                    .to_owned(),
            ),
            ..Finding::note(
                "wake-ups",
                format!(
                    "/dev/cpu_dma_latency cannot be opened ({error}), so grants may take as long as \
                     processors take to wake up"
                ),
            )
        },
    }
}
