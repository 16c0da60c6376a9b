//! Limits how deeply processors sleep while frames depend on them.
//!
//! An idle processor sleeps, and takes tens of microseconds to wake up, longer on a virtual machine:
//! often most of the time from a request to its grant. The kernel keeps the limit for as long as its
//! quality-of-service file is open, so the limit ends with the daemon.

use std::fs::{File, OpenOptions};
use std::io::{Result, Write};

/// Takes the longest time to wake up in microseconds, as a native 32-bit number.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// The limit that the kernel was asked for.
#[derive(Debug, Default)]
pub struct CpuLatency {
    held: Option<(u32, File)>,
}

impl CpuLatency {
    /// Whether the system allows a limit.
    pub fn is_allowed() -> Result<()> {
        open().map(drop)
    }

    /// Limits the time to wake up to so many microseconds, or removes the limit.
    pub fn limit_to(&mut self, wanted_us: Option<u32>) -> Result<()> {
        if self.limit() == wanted_us {
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

    /// The current limit.
    pub fn limit(&self) -> Option<u32> {
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
    fn the_last_limit_holds() {
        let mut latency = CpuLatency::default();
        if let Err(error) = CpuLatency::is_allowed() {
            assert_eq!(latency.limit_to(Some(5)).expect_err("closed to us").kind(), error.kind());
            assert_eq!(latency.limit(), None);
            return;
        }
        for wanted in [Some(100_000), Some(50_000), None, Some(100_000)] {
            latency.limit_to(wanted).expect("allowed");
            assert_eq!(latency.limit(), wanted);
        }
    }
}
