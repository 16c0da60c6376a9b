//! The shared object that programs load: `libEGL_takt.so`.
//!
//! Everything is in `takt-gl`; here are only the exported names. As a vendor of libglvnd one of
//! them is used, `__egl_Main`; preloaded, all others. `libtakt-cuda` looks for one more.

#![allow(non_snake_case, reason = "drivers are called libEGL_NAME.so")]

use std::ffi::c_char;

use takt_gl::session::{Targeted, set_frame_target};
use takt_gl::vendor::egl::{self, EglImports, Exports};
use takt_gl::{guard, preload};
use takt_gl_api::entry::{Id, Ptr};

/// Where libglvnd enters.
///
/// # Safety
///
/// Only libglvnd calls this, with the arguments its interface demands.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __egl_Main(
    version: u32,
    exports: *const Exports,
    vendor: Ptr,
    imports: *mut EglImports,
) -> u32 {
    // SAFETY: handed on as they came.
    guard::shielded(|| unsafe { egl::main(version, exports, vendor, imports) }).unwrap_or(0)
}

/// What `libtakt-cuda` calls for `glSetFrameTarget`; how it ended is a [`Targeted`].
#[unsafe(no_mangle)]
extern "C" fn takt_gl_set_frame_target(fps: u32, budget_us: u32) -> i32 {
    guard::shielded(|| set_frame_target(fps, budget_us)).unwrap_or(Targeted::Unscheduled) as i32
}

macro_rules! export {
    ($( $api:ident $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ; )*) => {
        /// Entry points for programs that find them by linking.
        #[allow(non_snake_case, reason = "names of the registry")]
        #[allow(clippy::too_many_arguments, reason = "signatures of the registry")]
        #[allow(clippy::missing_safety_doc, reason = "what each of them demands is said by Khronos")]
        mod exports {
            use super::{Id, Ptr, preload};
            use takt_gl_api::entry::kind;
            $( one! { $api $name ( $($arg : $ty),* ) $(-> $ret)? } )*
        }
    };
}

/// An export. Programs that are hooked by preloading use EGL and GL ES.
macro_rules! one {
    (egl $($rest:tt)*) => { exported! { $($rest)* } };
    (gles $($rest:tt)*) => { exported! { $($rest)* } };
    ($other:ident $($rest:tt)*) => {};
}

macro_rules! exported {
    ($name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ) => {
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            if const { preload::replaces_error(stringify!($name)) } {
                takt_gl::quiet::forget();
            }
            // SAFETY: the target has the signature of its name.
            let call: kind::$name = unsafe { std::mem::transmute(preload::target(Id::$name)) };
            // SAFETY: as the program called it.
            unsafe { call($($arg),*) }
        }
    };
}

takt_gl_api::for_each_entry_point!(export);

/// Entry points for programs that find them at run time.
///
/// glibc's own must see the program's return address where `RTLD_NEXT` is asked for, so it is
/// jumped to, not called.
///
/// # Safety
///
/// As glibc's.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: Ptr, name: *const c_char) -> Ptr {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {look_up}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "call {libc_dlsym}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        "2: ret",
        look_up = sym preload::look_up,
        libc_dlsym = sym libc_dlsym,
    )
}

/// The same for 64-bit ARM.
///
/// # Safety
///
/// As glibc's.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlsym(handle: Ptr, name: *const c_char) -> Ptr {
    std::arch::naked_asm!(
        "stp x0, x1, [sp, #-32]!",
        "str x30, [sp, #16]",
        "bl {look_up}",
        "cbnz x0, 2f",
        "bl {libc_dlsym}",
        "mov x16, x0",
        "ldr x30, [sp, #16]",
        "ldp x0, x1, [sp], #32",
        "br x16",
        "2: ldr x30, [sp, #16]",
        "add sp, sp, #32",
        "ret",
        look_up = sym preload::look_up,
        libc_dlsym = sym libc_dlsym,
    )
}

extern "C" fn libc_dlsym() -> Ptr {
    preload::libc_dlsym()
}
