//! What happens under a program that draws with GL ES or GL.
//!
//! `takt-hook` turns this library into the shared object that programs load. Calls arrive at
//! [`entry`]: most go straight to the driver, those in [`hooks`] are looked at on the way.
//!
//! A draw walks one way: its hook notes it in the [`shadow`] of GL state, the [`client`] forms command
//! groups and asks the [`session`] for a grant, the driver gets the call, and [`measure`] tells how long
//! the group took. [`predict`] says so before, and [`mod@slice`] cuts draws that are too long.
//!
//! Nothing here may disturb the program. If something goes wrong inside, the call still reaches the
//! driver and its answer the program ([`guard`]).

pub mod client;
mod clock;
pub mod entry;
mod frames;
mod glx_context;
pub mod heap;
pub mod hooks;
pub mod measure;
mod offscreen;
pub mod predict;
pub mod preload;
pub mod quiet;
pub mod session;
pub mod settings;
pub mod shadow;
pub mod slice;
mod system;
pub mod vendor;
mod x11;

pub use takt_client::guard;
pub use takt_gl_api::{egl, gl, glx};
