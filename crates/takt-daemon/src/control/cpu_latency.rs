//! Keeps processors from sleeping deeply while somebody's frames depend on them.
//!
//! A processor that has nothing to do sleeps, and takes tens of microseconds to come back, longer on
//! a virtual machine: often most of the time from asking for leave to having it. The kernel heeds
//! whoever holds its quality-of-service file open, for as long as it is open, so nothing is left
//! behind when the daemon dies.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};

/// Wants how many microseconds waking up may take, as a native 32-bit number.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// What the kernel was asked for.
#[derive(Debug, Default)]
pub struct Awake {
    held: Option<(u32, File)>,
}

impl Awake {
    /// Whether the system would heed it.
    pub fn is_allowed() -> Result<()> {
        open().map(drop)
    }

    /// Lets processors sleep no deeper than they can wake up from within so many microseconds; as
    /// they like, if nobody cares.
    pub fn keep_within(&mut self, wanted_us: Option<u32>) -> Result<()> {
        if self.within() == wanted_us {
            return Ok(());
        }
        self.held = None;
        if let Some(us) = wanted_us {
            let mut device = open()?;
            device.write_all(&us.to_ne_bytes())?;
            self.held = Some((us, device));
        }
        Ok(())
    }

    /// What holds now.
    pub fn within(&self) -> Option<u32> {
        self.held.as_ref().map(|(us, _)| *us)
    }
}

fn open() -> Result<File> {
    OpenOptions::new().write(true).open(DEVICE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_asked_for_last() {
        let mut awake = Awake::default();
        if let Err(error) = Awake::is_allowed() {
            assert_eq!(awake.keep_within(Some(5)).expect_err("closed to us").kind(), error.kind());
            assert_eq!(awake.within(), None);
            return;
        }
        for wanted in [Some(100_000), Some(50_000), None, Some(100_000)] {
            awake.keep_within(wanted).expect("allowed");
            assert_eq!(awake.within(), wanted);
        }
    }
}
