//! The way to the driver.

use std::ffi::{c_int, c_ulong, c_void};

/// Which file a descriptor stands for; descriptors are used again for other files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// The file with that inode on that device.
    pub const fn new(device: u64, inode: u64) -> Self {
        Self { device, inode }
    }

    /// Both in one word, to compare.
    pub(crate) const fn word(self) -> u64 {
        // A device file is known by few bits of each.
        self.device.rotate_left(32) ^ self.inode
    }
}

/// What slices are set through.
pub trait Device {
    /// `ioctl` below all that was preloaded.
    ///
    /// # Safety
    ///
    /// As of `ioctl`.
    unsafe fn ioctl(&self, file: c_int, request: c_ulong, argument: *mut c_void) -> c_int;

    /// The file of a descriptor; none if there is none.
    fn file(&self, file: c_int) -> Option<FileId>;

    /// The process that this is.
    fn process(&self) -> u32 {
        std::process::id()
    }
}

/// The type of `ioctl` where the third argument is passed like any other, as on x86-64 and 64-bit ARM.
pub type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;

/// The kernel's driver.
#[derive(Clone, Copy, Debug)]
pub struct Kernel(pub Ioctl);

impl Device for Kernel {
    unsafe fn ioctl(&self, file: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
        // SAFETY: up to the caller.
        unsafe { (self.0)(file, request, argument) }
    }

    fn file(&self, file: c_int) -> Option<FileId> {
        // SAFETY: plain data without invariants.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: any number may be asked for, and the room is ours.
        let found = unsafe { libc::fstat(file, &raw mut stat) } == 0;
        found.then(|| FileId::new(stat.st_rdev ^ stat.st_dev.rotate_left(16), stat.st_ino))
    }
}
