//! What happens around `fork`.

/// Functions that the C library calls when this process is copied. They run between threads that may hold any
/// lock, so they must take none.
#[derive(Clone, Copy, Debug)]
pub struct Forks {
    /// Before the copy is made.
    pub before: extern "C" fn(),
    /// After it, in the original.
    pub original: extern "C" fn(),
    /// After it, in the copy, which has one thread.
    pub copy: extern "C" fn(),
}

/// Has them called from now on; false if there is no memory for that.
///
/// They must stay loaded: a library that calls this is never unloaded.
pub fn watch(forks: Forks) -> bool {
    // SAFETY: the functions take no arguments and stay loaded.
    unsafe { libc::pthread_atfork(Some(forks.before), Some(forks.original), Some(forks.copy)) == 0 }
}
