//! The clock that everybody shares.

pub use takt_ipc::clock::now;
