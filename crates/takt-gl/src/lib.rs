//! What happens under a GL ES program.
//!
//! `takt-hook` turns this library into the shared object that programs load. Calls arrive at
//! [`entry`]: most go straight to the driver, those in [`hooks`] are looked at on the way. The
//! [`monitor`] keeps shadows of the state that work depends on, [`group`] forms command groups, and
//! [`measure`] tells how long they took; [`predict`] says so before. Where a daemon schedules,
//! [`gate`] lets work through, and [`mod@slice`] cuts draws that are too long.
//!
//! Nothing here may disturb the program. Whatever goes wrong inside, the call still reaches the
//! driver and its answer the program ([`guard`]).

mod backlog;
mod clock;
pub mod entry;
mod frames;
pub mod gate;
pub mod group;
pub mod guard;
pub mod heap;
pub mod hooks;
pub mod measure;
pub mod monitor;
mod offscreen;
pub mod predict;
pub mod preload;
pub mod quiet;
pub mod settings;
pub mod slice;
pub mod vendor;

pub use takt_gl_api::{egl, gl};
