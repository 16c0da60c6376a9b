//! GPUs of which nothing is kept yet: what a daemon needs to know of them is measured at its first start.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use takt_calibrate::store::{self, Shelf};
use takt_calibrate::{Bench, Place};

use crate::hook::libraries::Libraries;
use crate::{hook, output};

/// In a store: the drivers and devices that were looked at.
const SEEN: &str = "seen.txt";
/// Where EGL has more devices than this, the others are left out.
const DEVICES_MAX: usize = 16;

/// Measures what is missing of each GPU that EGL can open, if drivers or devices are new.
pub(super) fn measure(store: &Path) -> anyhow::Result<()> {
    if is_known(store) {
        return Ok(());
    }
    fs::create_dir_all(store).with_context(|| output::cannot_write(store))?;
    let lock = File::create(store.join("measuring.lock")).with_context(|| output::cannot_write(store))?;
    // Another daemon that starts at the same time waits, and then finds that nothing is missing.
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).context("cannot lock the store")?;
    let fingerprint = fingerprint();
    for place in (0..DEVICES_MAX).map(Place::Device) {
        match Bench::open(place) {
            Ok(bench) => one(store, bench)?,
            Err(takt_calibrate::Problem::NoDevice { number: 0, .. }) => {
                Bench::open(Place::Surfaceless).map_or(Ok(()), |bench| one(store, bench))?;
                break;
            }
            Err(takt_calibrate::Problem::NoDevice { .. }) => break,
            Err(problem) => output::warn(&format!("takt: {problem}; this device is left out")),
        }
    }
    store::replace(&store.join(SEEN), |beside| fs::write(beside, &fingerprint))
        .with_context(|| output::cannot_write(&store.join(SEEN)))
}

/// Measures what is missing of one GPU. A renderer on the CPU has no model that a daemon needs.
fn one(store: &Path, mut bench: Bench) -> anyhow::Result<()> {
    let shelf = Shelf::new(store, &bench.gpu(), &bench.driver());
    let is_gpu = !takt_gl::shadow::driver::is_software(&bench.gpu());
    if is_gpu && !shelf.sharing().is_ok_and(|sharing| sharing.is_some()) {
        let calibration = super::calibrated(true, &mut bench)?;
        super::keep(store, &bench, calibration.to_text(bench.source()))?;
        output::warn(&format!("takt: {} was measured", bench.gpu()));
    }
    if !shelf.exactness().is_ok_and(|found| found.is_some()) {
        super::exactness::run(store, &bench)?;
        output::warn(&format!("takt: {} was tried with cut draws", bench.gpu()));
    }
    Ok(())
}

/// Whether the drivers and devices of this machine were looked at already.
pub(crate) fn is_known(store: &Path) -> bool {
    fs::read_to_string(store.join(SEEN)).is_ok_and(|seen| seen == fingerprint())
}

/// Whether the machine has a device of a GPU.
pub(crate) fn has_gpu() -> bool {
    devices().iter().any(|device| device.contains("render") || device.contains("nvidia"))
}

/// What tells this machine's drivers and GPUs from others, without starting any.
fn fingerprint() -> String {
    let mut lines = devices();
    lines.extend(read("/proc/driver/nvidia/version"));
    let libraries = Libraries::all();
    let (vendors, _problems) = hook::vendors();
    for vendor in vendors {
        let file = libraries.find(&vendor.library).unwrap_or_else(|| PathBuf::from(&vendor.library));
        lines.push(format!("{} {}", vendor.library, stamp(&file)));
    }
    lines.extend(
        ["LP_NUM_THREADS", "LIBGL_ALWAYS_SOFTWARE"]
            .map(|name| format!("{name}={}", std::env::var(name).unwrap_or_default())),
    );
    lines.join("\n") + "\n"
}

fn devices() -> Vec<String> {
    let inside = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    let is_nvidia = |path: &String| path.starts_with("/dev/nvidia");
    let mut devices: Vec<String> =
        inside("/dev/dri").into_iter().chain(inside("/dev").into_iter().filter(is_nvidia)).collect();
    devices.sort();
    devices
}

/// The first lines of a file, if it is there.
fn read(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(4096).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Length and age of a file: an update of a driver changes both.
fn stamp(path: &Path) -> String {
    let Ok(file) = fs::metadata(path) else { return "missing".to_owned() };
    let age = file.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    format!("{} {}", file.len(), age.map_or(0, |age| age.as_secs()))
}
