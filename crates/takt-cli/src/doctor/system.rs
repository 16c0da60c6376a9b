//! Loader, drivers, devices and rights of this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Finding;
use crate::hook::vendors;

/// Libraries that the loader knows, by name; none if it cannot be asked.
fn known_libraries() -> Option<String> {
    let asked =
        ["ldconfig", "/sbin/ldconfig"].iter().find_map(|name| Command::new(name).arg("-p").output().ok())?;
    asked.status.success().then(|| String::from_utf8_lossy(&asked.stdout).into_owned())
}

fn knows(libraries: &str, name: &str) -> bool {
    libraries.lines().any(|line| line.trim_start().starts_with(&format!("{name} ")))
}

/// Whether there is a libEGL, and whether libglvnd provides it.
pub(super) fn loader() -> Option<Finding> {
    let Some(libraries) = known_libraries() else {
        return Some(Finding::note("loader", "ldconfig cannot be asked which libraries there are"));
    };
    Some(match (knows(&libraries, "libEGL.so.1"), knows(&libraries, "libGLdispatch.so.0")) {
        (false, _) => Finding::problem(
            "loader",
            "there is no libEGL.so.1",
            "install libglvnd (Debian: libegl1 and libgles2)",
        ),
        (true, true) => Finding::ok("loader", "libEGL.so.1 of libglvnd"),
        (true, false) => {
            Finding::note("loader", "libEGL.so.1, but no libglvnd: programs are hooked by preloading")
        }
    })
}

/// The EGL drivers that libglvnd knows.
pub(super) fn drivers() -> Vec<Finding> {
    let (vendors, problems) = vendors();
    let libraries = known_libraries().unwrap_or_default();
    let mut findings = Vec::new();
    for vendor in &vendors {
        let shown = format!("{} ({})", vendor.library, vendor.json.display());
        let there = Path::new(&vendor.library).is_file()
            || knows(&libraries, &vendor.library)
            || libraries.is_empty();
        findings.push(if there {
            Finding::ok("driver", shown)
        } else {
            // The loader also looks where LD_LIBRARY_PATH says.
            Finding::note("driver", format!("{shown}: the loader's list does not have this library"))
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
            "add yourself to the groups render and video",
        ),
    }
}

/// Whether threads may ask for real-time scheduling, which the scheduler of frames wants.
pub(super) fn real_time() -> Option<Finding> {
    const CAP_SYS_NICE: u32 = 23;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let capable = u64::from_str_radix(capabilities.trim(), 16).ok()? >> CAP_SYS_NICE & 1 == 1;
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max realtime priority"));
    let soft = limit.and_then(|rest| rest.split_whitespace().next()).unwrap_or("0");
    Some(match (capable, soft) {
        (true, _) => Finding::ok("real time", "threads may use real-time priorities (CAP_SYS_NICE)"),
        (false, "0") => Finding {
            remedy: Some("set `rtprio` for your user in /etc/security/limits.conf".to_owned()),
            ..Finding::note(
                "real time",
                "threads may not use real-time priorities; only scheduling needs them",
            )
        },
        (false, soft) => {
            Finding::ok("real time", format!("threads may use real-time priorities up to {soft}"))
        }
    })
}
