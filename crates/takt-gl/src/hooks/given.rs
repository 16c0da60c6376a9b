//! Reads what programs point to.
//!
//! Hooks run after the driver has served the very same call, so what GL demands of pointers
//! holds, or the driver has already read from them in vain. These functions are not marked unsafe,
//! to keep the tables of hooks readable; only hooks may use them, with the arguments of their call.

use std::ffi::CStr;

use crate::entry::Ptr;

/// `count` values; none behind a null pointer or for a count below one.
pub(super) fn list<'a, T>(count: impl TryInto<usize>, values: Ptr) -> &'a [T] {
    match count.try_into() {
        Ok(count @ 1..) if !values.is_null() && values.cast::<T>().is_aligned() => {
            // SAFETY: the driver was given the same pointer and the same count; the slice does not
            // outlive the call.
            unsafe { std::slice::from_raw_parts(values.cast(), count) }
        }
        _ => &[],
    }
}

/// Values of a `glUniform*v` call.
pub(super) fn vectors<'a, T>(count: i32, components: usize, values: Ptr) -> &'a [T] {
    list(usize::try_from(count).map_or(0, |count| count.saturating_mul(components)), values)
}

/// Bytes, if any were given.
pub(super) fn bytes<'a>(size: isize, data: Ptr) -> Option<&'a [u8]> {
    (!data.is_null() && size >= 0).then(|| list(usize::try_from(size).unwrap_or(0), data))
}

/// Attributes of EGL, in pairs, up to their end.
pub(super) fn attributes<'a>(list_at: Ptr) -> &'a [i32] {
    pairs(list_at, crate::egl::NONE)
}

/// The same of GLX.
pub(super) fn glx_attributes<'a>(list_at: Ptr) -> &'a [i32] {
    pairs(list_at, 0)
}

fn pairs<'a>(list_at: Ptr, end: i32) -> &'a [i32] {
    let first = list_at.cast::<i32>();
    if first.is_null() {
        return &[];
    }
    let mut count = 0;
    loop {
        // SAFETY: the list has its end, as EGL and GLX demand, and is not walked beyond it.
        let name = unsafe { first.add(count) };
        // SAFETY: as above; attributes come in pairs.
        if unsafe { name.read_unaligned() } == end {
            break;
        }
        count += 2;
    }
    list(count, list_at)
}

/// A string of `glShaderSource`: with a length, or with a zero byte at its end.
pub(super) fn string<'a>(text: *const u8, length: Option<usize>) -> &'a [u8] {
    match length {
        _ if text.is_null() => &[],
        Some(length) => list(length, text.cast_mut().cast()),
        // SAFETY: without a length it ends with a zero byte.
        None => unsafe { CStr::from_ptr(text.cast()) }.to_bytes(),
    }
}
