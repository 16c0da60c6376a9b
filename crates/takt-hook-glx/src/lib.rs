//! The shared object that programs load which use GLX: `libGLX_takt.so`.
//!
//! Everything is in `takt-gl`; here is only the name by which libGLX enters.

#![allow(non_snake_case, reason = "drivers are called libGLX_NAME.so")]

use takt_gl::guard;
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
