//! What a context asks of the GPU: groups, frames and pieces of draws, with a grant for each group.
//!
//! A call walks one way: its hook looks at the shadow, forms the group, asks the session, calls the
//! driver, and has the group measured. A context's state belongs to the thread where it is current. It
//! is locked nevertheless, because EGL lets programs move contexts between threads.

mod backlog;
pub mod context;
mod copying;
pub mod current;
mod dispatch;
mod draw;
mod filling;
mod forecast;
mod frame;
pub mod group;
pub mod indirect;
mod meter;
mod pieces;
mod rhythm;
mod trials;

pub use filling::{CutFilling, Filling};
pub use frame::Swapping;
pub use pieces::Noted;
