//! What work costs on the GPU at hand, found by doing it.
//!
//! * [`Bench`] opens a GPU without a window and times work on it, by fences or timer queries: which
//!   of them tells the truth is probed first.
//! * [`profile`] measures the constants of a machine: work of several sizes, and lines through it.
//! * [`train`] measures generated shaders, so that models can be trained on them.
//! * [`programs`] measures programs that `takt run` has seen, one by one.
//! * [`sharing`] finds out how two processes share the GPU.
//! * [`store`] keeps all that per GPU and driver, where `takt run` finds them.
//!
//! Nothing here decides what costs depend on: that is `takt-predict`'s part.

#![deny(unsafe_code)]

mod bench;
pub mod exactness;
pub mod fit;
pub mod profile;
pub mod programs;
mod random;
pub mod sharing;
pub mod store;
mod sys;
pub mod train;

pub use bench::{Bench, Place, TimeSource};

/// Why nothing can be measured.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A library or a function is not there.
    #[error(transparent)]
    Missing(#[from] takt_gl_driver::Missing),
    /// EGL refused a step.
    #[error("{place}: EGL cannot {step} (error {error:#x})")]
    Egl {
        /// Which display.
        place: String,
        /// What it was asked for.
        step: &'static str,
        /// What `eglGetError` says.
        error: i32,
    },
    /// There is no such device.
    #[error("there is no device {number}: EGL offers {offered} (counted from 0)")]
    NoDevice {
        /// Which one was asked for.
        number: usize,
        /// How many there are.
        offered: usize,
    },
    /// A driver without fences.
    #[error("{0}: the driver has no EGL_KHR_fence_sync, so nothing can be measured")]
    NoFences(String),
    /// The driver refuses a shader or a target that every driver should take.
    #[error("the driver refuses {what}: {reason}")]
    Refused {
        /// What it refuses.
        what: &'static str,
        /// Its words.
        reason: String,
    },
    /// The second process that sharing is measured with.
    #[error("the second process {0}")]
    Peer(String),
    /// A draw of microseconds did not end.
    #[error("a short draw did not end within {0} s")]
    Stuck(u64),
    /// The measurements allow no conclusion.
    #[error("{0}")]
    Unclear(String),
    /// Something else reported an error.
    #[error("GL reports the error {0:#x} while measuring {1}")]
    Gl(u32, &'static str),
}
