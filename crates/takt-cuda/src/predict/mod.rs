//! What launches, copies and graphs will take.
//!
//! Each kind of work has an [`Entry`] that holds what it took before. A kernel is known by its name and the code that
//! it comes from, its grid, block, shared memory and cluster; copies by their direction and size; a graph by its
//! handle. What the code is follows from handles that the driver gives out again after a module was unloaded, so those
//! are only good until then ([`table::Table::forget_code`]).

pub mod entry;
pub mod kernel;
pub mod moved;
pub mod table;
pub mod times;

pub use entry::{Entry, Need, in_proportion};
pub use kernel::Launch;
