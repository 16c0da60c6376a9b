//! A process's own time slices on NVIDIA GPUs.
//!
//! The GPU gives its contexts turns. A context is a *channel group* of the driver, and how long its turn may last is
//! its time slice. The driver lets the process that owns a group read and set that slice, without privileges. A long
//! slice for an app with a contract and a short one for best effort make the first wait less for the second.
//!
//! The driver has no list of groups to ask for, so a preloaded library (`takt-slices-hook`) looks at the calls by which
//! the driver's own libraries make and free them ([`Own::saw`]). Layers of Takt in the same process, of GL or CUDA,
//! reach that library by [`Slices::find`], and keep what the daemon wants with a [`Keeper`].
//!
//! * [`abi`]: the driver's calls, byte by byte.
//! * [`groups`]: the channel groups of this process.
//! * [`device`]: the way to the driver, which tests replace by a scripted one.
//! * [`own`]: sets, reads and restores the slices of all groups.
//! * [`table`]: how layers reach the preloaded library.
//! * [`keeper`]: sets slices again where the driver made new groups or set its own.
//!
//! Without an NVIDIA device no group is ever seen, and all of this does nothing. Nothing depends on it for correctness:
//! a slice that cannot be set, or does not read back, is reported as such, and the process goes on.

#![deny(unsafe_op_in_unsafe_fn)]

pub mod abi;
pub mod device;
pub mod groups;
pub mod keeper;
pub mod own;
pub mod table;

pub use keeper::Keeper;
pub use own::{Own, Report};
pub use table::Slices;

/// Longest slice that is ever set, in microseconds: a GPU that serves a screen stands still for no longer.
pub const SLICE_US_MAX: u64 = 100_000;

/// What a process is to the GPU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It has a contract: its turn should not end before its frame does.
    Contract,
    /// It has none: its turn should end soon after other work arrives.
    BestEffort,
}

impl Role {
    /// The slice of that role, in microseconds.
    pub const fn slice_us(self) -> u64 {
        match self {
            Self::Contract => 20_000,
            Self::BestEffort => 300,
        }
    }
}
