//! Shadows of GL state, as far as predictions depend on it.
//!
//! A context's own state belongs to the thread where it is current, and is locked nevertheless,
//! because EGL lets programs move it between threads. Objects that contexts share are locked each
//! on its own. Locks are taken in this order: context, share group, program, buffers by number.

mod bindings;
pub mod block;
pub mod buffer;
pub(crate) mod client_memory;
pub mod context;
mod copying;
pub mod current;
mod draw;
pub mod driver;
pub mod framebuffer;
mod gather;
mod inputs;
mod leave;
pub mod pieces;
pub mod program;
pub mod raster;
pub mod share;
pub mod surface;
mod swap;
pub mod texture;
pub mod vertex;

pub use draw::{Drawing, Source};
pub use gather::Gathered;
pub use swap::Swapping;
