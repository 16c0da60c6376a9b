//! What drivers of tests answer where a program could not go on otherwise.

pub(crate) unsafe extern "C" fn nothing() -> usize {
    0
}

pub(crate) unsafe extern "C" fn one() -> usize {
    1
}

/// `EGL_SUCCESS`.
pub(crate) unsafe extern "C" fn success() -> usize {
    0x3000
}

/// `EGL_OPENGL_ES_API`.
pub(crate) unsafe extern "C" fn es() -> usize {
    0x30A0
}
