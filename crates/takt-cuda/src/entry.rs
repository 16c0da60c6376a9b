//! Which addresses programs get for names.
//!
//! Programs that ask `cuGetProcAddress` get what the driver answers, unless that is a function that Takt stands in
//! front of. Which one it is follows from its address, so versions and names that are not known need no table.

use std::collections::HashMap;
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use takt_cuda_api::{Id, Ptr};

/// Our function for each hooked entry point.
static OURS: OnceLock<&'static [(Id, usize)]> = OnceLock::new();

/// Answers of the driver that are no function of a known name, although a hooked one was asked for.
static UNKNOWN: AtomicU32 = AtomicU32::new(0);

/// The flag by which programs ask for the default stream of the thread.
const PER_THREAD: u64 = 2;

/// The library's own functions are these.
pub fn begin(ours: &'static [(Id, usize)]) {
    // Once for each process; another one would be the same.
    let _again = OURS.set(ours);
}

/// How many answers were not understood.
pub fn unknown() -> u32 {
    UNKNOWN.load(Ordering::Relaxed)
}

/// What a program gets that asked for `name` with `flags` and was answered `given`.
pub fn address(name: &CStr, given: Ptr, flags: u64) -> Ptr {
    // A driver that looks names up by the loader may find this library, which stands in front of it.
    if ours().iter().any(|(_, ours)| *ours == given.addr()) {
        return given;
    }
    let by_address = ours_by_address().get(&given.addr()).copied();
    let ours = by_address.or_else(|| {
        let wanted = only_form(name.to_str().unwrap_or_default(), flags & PER_THREAD != 0);
        if wanted.is_none() && is_family(name) {
            UNKNOWN.fetch_add(1, Ordering::Relaxed);
        }
        wanted
    });
    ours.map_or(given, std::ptr::without_provenance_mut)
}

fn ours() -> &'static [(Id, usize)] {
    OURS.get().copied().unwrap_or_default()
}

/// Our functions by the addresses of the driver's.
fn ours_by_address() -> &'static HashMap<usize, usize> {
    static MAP: OnceLock<HashMap<usize, usize>> = OnceLock::new();
    MAP.get_or_init(|| {
        let pairs = ours().iter().map(|(id, ours)| (id.function().addr(), *ours));
        pairs.filter(|(real, _)| *real != 0).collect()
    })
}

/// For a driver that gives other addresses than the loader: our function, if the name has one form only, so that no
/// version can mean another one.
fn only_form(name: &str, per_thread: bool) -> Option<usize> {
    let forms = || ours().iter().filter(|(id, _)| family(id.name()) == name);
    let is_thread = |id: Id| id.name().ends_with("_ptsz") || id.name().ends_with("_ptds");
    let has_twin = forms().any(|(id, _)| is_thread(*id));
    let mut wanted = forms().filter(|(id, _)| is_thread(*id) == (per_thread && has_twin));
    let only = wanted.next()?;
    wanted.next().is_none().then_some(only.1)
}

/// Whether some form of that name is hooked.
fn is_family(name: &CStr) -> bool {
    ours().iter().any(|(id, _)| family(id.name()).as_bytes() == name.to_bytes())
}

/// A name without its version and without the mark of the thread's default stream.
fn family(name: &str) -> &str {
    let name = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    match name.rsplit_once("_v") {
        Some((family, version)) if version.parse::<u32>().is_ok() => family,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_addresses_are_understood_where_a_name_has_one_form() {
        begin(&[
            (Id::cuLaunchKernel, 1),
            (Id::cuLaunchKernel_ptsz, 2),
            (Id::cuMemcpyHtoD_v2, 3),
            (Id::cuMemcpyHtoD_v2_ptds, 4),
            (Id::cuStreamBeginCapture, 5),
            (Id::cuStreamBeginCapture_v2, 6),
            (Id::cuEventQuery, 7),
        ]);
        let given: Ptr = std::ptr::without_provenance_mut(99);
        let get = |name: &CStr, flags| address(name, given, flags).addr();
        assert_eq!([get(c"cuLaunchKernel", 0), get(c"cuLaunchKernel", PER_THREAD)], [1, 2]);
        assert_eq!([get(c"cuMemcpyHtoD", 0), get(c"cuMemcpyHtoD", PER_THREAD)], [3, 4]);
        assert_eq!([get(c"cuEventQuery", 0), get(c"cuEventQuery", PER_THREAD)], [7, 7]);
        assert_eq!([get(c"cuOther", 0), unknown() as usize], [99, 0]);
        assert_eq!([get(c"cuStreamBeginCapture", 0), unknown() as usize], [99, 1], "it may be either");
        let given: Ptr = std::ptr::without_provenance_mut(6);
        let begins = address(c"cuStreamBeginCapture", given, 0).addr();
        assert_eq!([begins, unknown() as usize], [6, 1], "it is ours already");
    }
}
