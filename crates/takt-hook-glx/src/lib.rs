//! The shared object that programs load which use GLX: `libGLX_takt.so`.
//!
//! Everything is in `takt-gl`; here are only the name by which libGLX enters
//! and one that `libtakt-cuda` looks for.

#![allow(non_snake_case, reason = "drivers are called libGLX_NAME.so")]

use takt_gl::guard;
use takt_gl::session::{Targeted, set_frame_target};
use takt_gl::vendor::glx::{self, GlxImports};
use takt_gl_api::entry::Ptr;

/// Where libglvnd enters.
///
/// # Safety
///
/// Only libglvnd calls this, with the arguments its interface demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __glx_Main(
    version: u32,
    exports: Ptr,
    vendor: Ptr,
    imports: *mut GlxImports,
) -> i32 {
    // SAFETY: handed on as they came.
    guard::shielded(|| unsafe { glx::main(version, exports, vendor, imports) }).unwrap_or(0)
}

/// What `libtakt-cuda` calls for `glSetFrameTarget`; how it ended is a [`Targeted`].
#[unsafe(no_mangle)]
extern "C" fn takt_gl_set_frame_target(fps: u32, budget_us: u32) -> i32 {
    guard::shielded(|| set_frame_target(fps, budget_us)).unwrap_or(Targeted::Unscheduled) as i32
}
