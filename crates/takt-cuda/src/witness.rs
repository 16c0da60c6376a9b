//! What the vendor's profiling interface (CUPTI) counts, so that `takt doctor` can compare.
//!
//! The driver loads the library that `CUDA_INJECTION64_PATH` names when a program begins with CUDA, and calls its
//! `InitializeInjection`. `takt doctor` names ours, which is there already. CUPTI then tells each call that reaches the
//! driver, whatever way it took: one that passed Takt by as well. Nothing of this happens elsewhere.

use std::env;
use std::ffi::{CStr, CString, c_char, c_void};
use std::mem;
use std::path::PathBuf;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use takt_cuda_api::Ptr;

use crate::settings::settings;
use crate::{ends, hooks};

/// Names of CUPTI's library, the newest first.
const LIBRARIES: [&CStr; 4] = [c"libcupti.so.13", c"libcupti.so.12", c"libcupti.so.11.8", c"libcupti.so"];
/// Where the vendor's toolkit has it, below its folder.
const IN_TOOLKIT: [&str; 2] = ["extras/CUPTI/lib64/libcupti.so", "lib64/libcupti.so"];
/// Where the toolkit is if no variable says so.
const TOOLKIT: &str = "/usr/local/cuda";

/// Calls of the driver's interface, and the moment before such a call.
const DRIVER_API: u32 = 1;
const ENTER: u32 = 0;
const SUCCESS: i32 = 0;

/// What CUPTI says of a call; more follows.
#[repr(C)]
struct Told {
    site: u32,
    name: *const c_char,
}

type Callback = unsafe extern "C" fn(Ptr, u32, u32, *const Told);
type Subscribe = unsafe extern "C" fn(*mut Ptr, Callback, Ptr) -> i32;
type EnableDomain = unsafe extern "C" fn(u32, Ptr, u32) -> i32;

/// Kernels and graphs that were launched.
static LAUNCHED: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static BEGUN: OnceLock<Witness> = OnceLock::new();

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Witness {
    Counts,
    /// CUPTI is not there.
    Missing,
    /// It refused; its answer.
    Refused(i32),
}

/// The driver asks for it when the program begins.
pub fn begin() {
    BEGUN.get_or_init(|| {
        let Some((subscribe, enable)) = find() else {
            return Witness::Missing;
        };
        let mut subscriber: Ptr = ptr::null_mut();
        // SAFETY: there is room for the handle, and the callback has the signature that CUPTI wants.
        let mut told = unsafe { subscribe(&raw mut subscriber, called, ptr::null_mut()) };
        if told == SUCCESS {
            // SAFETY: the handle of above.
            told = unsafe { enable(1, subscriber, DRIVER_API) };
        }
        if told == SUCCESS { Witness::Counts } else { Witness::Refused(told) }
    });
    // A program that passes Takt by starts nothing that would write down how often it did.
    if !hooks::is_inside() && settings().environment.facts.is_some() {
        ends::start();
    }
}

/// Kernels and graphs that reached the driver; none if they were not counted.
pub fn launched() -> Option<[u64; 2]> {
    let counts = BEGUN.get() == Some(&Witness::Counts);
    counts.then(|| [0, 1].map(|at: usize| LAUNCHED[at].load(Ordering::Acquire)))
}

/// Why they were not, where that was asked for.
pub fn excuse() -> Option<String> {
    match BEGUN.get()? {
        Witness::Counts => None,
        Witness::Missing => Some("missing".to_owned()),
        Witness::Refused(answer) => Some(format!("refused-{answer}")),
    }
}

unsafe extern "C" fn called(_data: Ptr, domain: u32, _id: u32, call: *const Told) {
    // SAFETY: CUPTI gives such a structure for calls of this domain.
    let Some(call) = (unsafe { call.as_ref() }).filter(|call| domain == DRIVER_API && call.site == ENTER)
    else {
        return;
    };
    if call.name.is_null() {
        return;
    }
    // SAFETY: a constant that ends with a zero byte.
    if let Some(kind) = kind(unsafe { CStr::from_ptr(call.name) }.to_bytes()) {
        LAUNCHED[kind].fetch_add(1, Ordering::Release);
    }
}

/// Whether a function of that name launches kernels, or a graph.
fn kind(name: &[u8]) -> Option<usize> {
    let name = name.strip_suffix(b"_ptsz").unwrap_or(name);
    match name {
        b"cuLaunchKernel"
        | b"cuLaunchKernelEx"
        | b"cuLaunchCooperativeKernel"
        | b"cuLaunchCooperativeKernelMultiDevice"
        | b"cuLaunch"
        | b"cuLaunchGrid"
        | b"cuLaunchGridAsync" => Some(0),
        b"cuGraphLaunch" => Some(1),
        _ => None,
    }
}

fn find() -> Option<(Subscribe, EnableDomain)> {
    let library = open()?;
    let symbol = |name: &CStr| {
        // SAFETY: a library that is loaded, and a name that ends with a zero byte.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    let (subscribe, enable) = (symbol(c"cuptiSubscribe")?, symbol(c"cuptiEnableDomain")?);
    // SAFETY: the function has that signature in every version of CUPTI.
    let subscribe = unsafe { mem::transmute::<*mut c_void, Subscribe>(subscribe) };
    // SAFETY: as above.
    let enable = unsafe { mem::transmute::<*mut c_void, EnableDomain>(enable) };
    Some((subscribe, enable))
}

fn open() -> Option<Ptr> {
    let load = |name: &CStr| {
        // SAFETY: a name that ends with a zero byte; the library is the vendor's.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        (!library.is_null()).then_some(library)
    };
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let toolkits = named.chain([PathBuf::from(TOOLKIT)]);
    let paths = toolkits.flat_map(|folder| IN_TOOLKIT.map(|below| folder.join(below)));
    let paths = paths.filter_map(|path| CString::new(path.into_os_string().into_encoded_bytes()).ok());
    let found = LIBRARIES.into_iter().find_map(load);
    found.or_else(|| paths.into_iter().find_map(|path| load(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_known_by_their_names() {
        for (name, expected) in [
            ("cuLaunchKernel", Some(0)),
            ("cuLaunchKernelEx_ptsz", Some(0)),
            ("cuGraphLaunch", Some(1)),
            ("cuGraphLaunch_ptsz", Some(1)),
            ("cuLaunchHostFunc", None),
            ("cuMemcpyAsync", None),
        ] {
            assert_eq!(kind(name.as_bytes()), expected, "{name}");
        }
    }

    #[test]
    fn only_calls_that_begin_count() {
        let name = c"cuLaunchGrid".as_ptr();
        let before = LAUNCHED[0].load(Ordering::Relaxed);
        for (domain, site) in [(DRIVER_API, ENTER), (DRIVER_API, 1), (2, ENTER)] {
            // SAFETY: a call as CUPTI tells it.
            unsafe { called(ptr::null_mut(), domain, 0, &Told { site, name }) };
        }
        assert_eq!(LAUNCHED[0].load(Ordering::Relaxed), before + 1);
        assert_eq!(launched(), None, "nothing was asked for");
    }
}
