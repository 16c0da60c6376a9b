//! Sets, reads and restores the slices of all groups of this process.

use std::ffi::{c_int, c_ulong, c_void};

use crate::SLICE_US_MAX;
use crate::abi::{self, CONTROL_REQUEST, Control, GET_TIMESLICE, OK, SET_TIMESLICE, Seen, UNREACHED};
use crate::device::Device;
use crate::groups::{Group, Groups, Made};

/// What came of a call over all groups.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// How many groups there are.
    pub groups: u32,
    /// How many have the slice that was wanted, as the driver says when it is asked; all that could be read, if none
    /// was wanted.
    pub kept: u32,
    /// The driver's answer where it refused, the last one; 0 if it never did, [`UNREACHED`] if it was not reached.
    pub status: u32,
    /// To a multiple of eight bytes.
    pub padding: u32,
    /// The shortest slice that was read, in microseconds; 0 if there is none.
    pub shortest_us: u64,
    /// The longest.
    pub longest_us: u64,
}

impl Report {
    /// Whether there are groups, and each of them has what was wanted.
    pub const fn is_kept(&self) -> bool {
        self.groups > 0 && self.kept == self.groups
    }

    fn read(&mut self, us: u64) {
        self.shortest_us = if self.shortest_us == 0 { us } else { self.shortest_us.min(us) };
        self.longest_us = self.longest_us.max(us);
    }
}

/// The groups of this process, and the way to their driver.
#[derive(Debug)]
pub struct Own<D> {
    device: D,
    groups: Groups,
}

impl<D: Device> Own<D> {
    /// No groups yet.
    pub const fn new(device: D) -> Self {
        Self { device, groups: Groups::new() }
    }

    /// Changes whenever slices may have to be set again.
    #[inline]
    pub fn epoch(&self) -> u32 {
        self.groups.epoch()
    }

    /// A call of the process returned without an error.
    ///
    /// # Safety
    ///
    /// As of [`abi::seen`].
    pub unsafe fn saw(&self, descriptor: c_int, request: c_ulong, argument: *const c_void) {
        // SAFETY: up to the caller.
        let Some(seen) = (unsafe { abi::seen(request, argument) }) else {
            return;
        };
        let process = self.device.process();
        match seen {
            Seen::Made { client, parent, object } => {
                if let Some(file) = self.device.file(descriptor) {
                    // A list that is full leaves the driver's slice as it is.
                    let _noted = self.groups.note(process, client, object, Made { parent, descriptor, file });
                }
            }
            Seen::Freed { client, object } => self.groups.forget(process, client, object),
            Seen::Sliced { client, object } => self.groups.driver_set(process, client, object),
        }
    }

    /// Gives all groups that slice, and asks the driver whether they have it. Groups that have it already are left
    /// alone, because a change may force them off the GPU.
    pub fn set(&self, us: u64) -> Report {
        let us = us.clamp(1, SLICE_US_MAX);
        self.over_all(|group| {
            let had = self.slice(group)?;
            if had == us {
                return Ok((us, true));
            }
            self.control(group, SET_TIMESLICE, us)?;
            self.groups.keep_original(group, had);
            let has = self.slice(group)?;
            Ok((has, has == us))
        })
    }

    /// Reads all slices.
    pub fn read(&self) -> Report {
        self.over_all(|group| self.slice(group).map(|us| (us, true)))
    }

    /// Gives all groups the slices that they had before ours.
    pub fn restore(&self) -> Report {
        self.over_all(|group| {
            if let Some(original) = self.groups.take_original(group) {
                self.control(group, SET_TIMESLICE, original)?;
            }
            self.slice(group).map(|us| (us, true))
        })
    }

    /// What `each` says of every group: its slice, and whether that is the one that was wanted.
    fn over_all(&self, each: impl Fn(&Group) -> Result<(u64, bool), u32>) -> Report {
        let mut report = Report::default();
        for group in self.groups.iter(self.device.process()) {
            report.groups += 1;
            match each(&group) {
                Ok((us, kept)) => {
                    report.read(us);
                    report.kept += u32::from(kept);
                }
                Err(status) => report.status = status,
            }
        }
        report
    }

    fn slice(&self, group: &Group) -> Result<u64, u32> {
        self.control(group, GET_TIMESLICE, 0)
    }

    /// Sends a control whose parameter is one number; the number afterwards, or why not.
    fn control(&self, group: &Group, command: u32, number: u64) -> Result<u64, u32> {
        // The descriptor may have been closed and stand for another file.
        if self.device.file(group.descriptor).map(crate::device::FileId::word) != Some(group.file) {
            return Err(UNREACHED);
        }
        let mut number = number;
        let mut control = Control {
            client: group.client,
            object: group.object,
            command,
            flags: 0,
            params: &raw mut number as u64,
            size: 8,
            status: UNREACHED,
        };
        // SAFETY: the request has the size of what it points to, which points to one number, as the driver expects.
        let returned = unsafe {
            self.device.ioctl(group.descriptor, CONTROL_REQUEST, (&raw mut control).cast::<c_void>())
        };
        match (returned, control.status) {
            (0.., OK) => Ok(number),
            (0.., status) => Err(status),
            _ => Err(UNREACHED),
        }
    }
}

#[cfg(test)]
mod tests;
