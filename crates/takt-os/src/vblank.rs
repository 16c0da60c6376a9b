//! What a display tells: when it began a new picture, from the kernel's graphics devices.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use takt_core::Time;

/// What the kernel reads and writes: `union drm_wait_vblank`, for 64 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct WaitVblank {
    kind: u32,
    sequence: u32,
    /// Asked: nothing. Answered: seconds.
    seconds: i64,
    microseconds: i64,
}

const _: () = assert!(size_of::<WaitVblank>() == 24);

/// `DRM_IOCTL_WAIT_VBLANK`.
const WAIT_VBLANK: Opcode = opcode::read_write::<WaitVblank>(b'd', 0x3a);
/// So many refreshes from now.
const RELATIVE: u32 = 1;

/// A display device; its first display is the one that is asked.
#[derive(Debug)]
pub struct Display {
    device: File,
}

impl Display {
    /// The device at that path, if it tells.
    pub fn open(path: &Path) -> Result<Self> {
        let device = Self { device: File::open(path)? };
        device.wait().map_err(|error| {
            Error::new(error.kind(), format!("it does not tell when displays refresh: {error}"))
        })?;
        Ok(device)
    }

    /// Waits for the next refresh; when it was, by the monotonic clock.
    pub fn wait(&self) -> Result<Time> {
        let mut vblank = WaitVblank { kind: RELATIVE, sequence: 1, seconds: 0, microseconds: 0 };
        // SAFETY: the number and the structure are those of the kernel's interface.
        let call = unsafe { Updater::<WAIT_VBLANK, WaitVblank>::new(&mut vblank) };
        // SAFETY: it changes nothing but the structure.
        unsafe { ioctl(&self.device, call) }?;
        let ns =
            |value: i64, factor: u64| u64::try_from(value).ok().and_then(|value| value.checked_mul(factor));
        let seconds = ns(vblank.seconds, 1_000_000_000);
        let time = seconds.zip(ns(vblank.microseconds, 1_000)).and_then(|(s, us)| s.checked_add(us));
        time.map(Time::from_ns).ok_or_else(|| Error::new(ErrorKind::InvalidData, "its clock is no clock"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_display_says_so() {
        let missing = Display::open(Path::new("/dev/dri/card99")).expect_err("missing");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        let other = Display::open(Path::new("/dev/null")).expect_err("no display");
        assert!(other.to_string().starts_with("it does not tell when displays refresh"), "{other}");
    }
}
