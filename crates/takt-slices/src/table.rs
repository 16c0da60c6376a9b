//! How layers reach the preloaded library.
//!
//! Takt's layers are loaded into a process one by one, and the library with `ioctl` apart from them, once. They find it
//! by a name that it exports: the address of a table of functions.

use std::ffi::CStr;

use crate::own::Report;

/// The exported name; another layout of [`Table`] gets another one.
pub const NAME: &CStr = c"takt_slices_1";

/// What the preloaded library offers.
#[repr(C)]
#[derive(Debug)]
pub struct Table {
    /// [`Own::epoch`](crate::Own::epoch).
    pub epoch: extern "C" fn() -> u32,
    /// [`Own::set`](crate::Own::set).
    pub set: extern "C" fn(u64) -> Report,
    /// [`Own::read`](crate::Own::read).
    pub read: extern "C" fn() -> Report,
    /// [`Own::restore`](crate::Own::restore).
    pub restore: extern "C" fn() -> Report,
}

/// The slices of this process.
#[derive(Clone, Copy, Debug)]
pub struct Slices(&'static Table);

impl Slices {
    /// Those that the preloaded library keeps; none if it is not there.
    pub fn find() -> Option<Self> {
        // SAFETY: the name ends with a zero byte.
        let table = unsafe { libc::dlsym(libc::RTLD_DEFAULT, NAME.as_ptr()) }.cast::<Table>();
        // SAFETY: only our library exports this name, for a table of this layout that is never unloaded.
        unsafe { table.as_ref() }.map(Self)
    }

    /// Those behind a table.
    pub const fn behind(table: &'static Table) -> Self {
        Self(table)
    }

    /// Changes whenever slices may have to be set again.
    #[inline]
    pub fn epoch(&self) -> u32 {
        (self.0.epoch)()
    }

    /// Gives all groups that slice, and asks the driver whether they have it.
    pub fn set(&self, us: u64) -> Report {
        (self.0.set)(us)
    }

    /// Reads all slices.
    pub fn read(&self) -> Report {
        (self.0.read)()
    }

    /// Gives all groups the slices that they had before ours.
    pub fn restore(&self) -> Report {
        (self.0.restore)()
    }
}
