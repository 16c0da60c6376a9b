//! What happens under a GL ES program.
//!
//! `takt-hook` turns this library into the shared object that programs load. Calls arrive at
//! [`entry`]: most go straight to the driver, those in [`hooks`] are looked at on the way.
//!
//! Nothing here may disturb the program. Whatever goes wrong inside, the call still reaches the
//! driver and its answer the program ([`guard`]).

pub mod entry;
pub mod guard;
pub mod hooks;
pub mod preload;
pub mod vendor;
