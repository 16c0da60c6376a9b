//! Entry points by name and version.

use std::ffi::{CStr, CString, c_void};
use std::sync::{LazyLock, Mutex, PoisonError};

use takt_cuda_api::{Ptr, result};

use crate::{code, put, setting};

/// Asks for the names whose default stream is that of the thread.
const PER_THREAD: u64 = 2;

/// Versions since which newer forms of functions are given out; all others have their newest form.
const SINCE: &[(&str, i32)] = &[
    ("cuCtxCreate_v4", 12_050),
    ("cuCtxSynchronize_v2", 13_000),
    ("cuEventElapsedTime_v2", 12_080),
    ("cuGetProcAddress_v2", 12_000),
    ("cuMemPrefetchAsync_v2", 12_020),
    ("cuStreamBeginCapture_v2", 10_010),
    ("cuStreamGetCaptureInfo_v2", 11_030),
];

/// How a lookup went.
const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;

/// This very library, whatever other one has its name.
static SELF: LazyLock<usize> = LazyLock::new(|| {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // An exported function may be that of a library in front of this one.
    // SAFETY: the address of a function of ours, and room for the answer.
    unsafe { libc::dladdr(look_up as *const c_void, &raw mut info) };
    // SAFETY: the path of a library that is loaded.
    unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD) }.addr()
});

fn exported(name: &str) -> Option<Ptr> {
    let name = CString::new(name).ok()?;
    // SAFETY: a library that is loaded, and a name that ends with a zero byte.
    let found = unsafe { libc::dlsym(std::ptr::without_provenance_mut(*SELF), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

fn look_up(name: &str, version: i32, flags: u64) -> Option<Ptr> {
    let since = |name: &str| SINCE.iter().find(|(other, _)| *other == name).map_or(0, |(_, since)| *since);
    let forms = ["_v4", "_v3", "_v2", ""].map(|form| format!("{name}{form}"));
    let ends = if flags & PER_THREAD != 0 { ["_ptsz", "_ptds", ""].as_slice() } else { &[""] };
    let usable = forms.iter().filter(|form| since(form) <= version);
    let found = usable.flat_map(|form| ends.iter().map(move |end| format!("{form}{end}")));
    found.into_iter().find_map(|name| exported(&name)).map(hidden)
}

/// Another address with the same function behind it, if addresses are hidden.
#[cfg(target_arch = "x86_64")]
fn hidden(function: Ptr) -> Ptr {
    const PAGE: usize = 1 << 16;
    const BYTES: usize = 16;
    static USED: Mutex<(usize, usize)> = Mutex::new((0, 0));
    if setting("TAKT_FAKE_HIDDEN", 0) == 0 {
        return function;
    }
    let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
    if used.0 == 0 {
        let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: fresh memory.
        used.0 = unsafe { libc::mmap(std::ptr::null_mut(), PAGE, rights, kind, -1, 0) }.addr();
    }
    if used.1 + BYTES > PAGE {
        return function;
    }
    let at = (used.0 + used.1) as *mut u8;
    used.1 += BYTES;
    // A jump to the address that follows.
    let jump = [0x48, 0xB8].into_iter().chain(function.addr().to_le_bytes()).chain([0xFF, 0xE0]);
    for (index, byte) in jump.enumerate() {
        // SAFETY: within the page.
        unsafe { at.add(index).write(byte) };
    }
    at.cast()
}

#[cfg(not(target_arch = "x86_64"))]
fn hidden(function: Ptr) -> Ptr {
    function
}

unsafe fn address(symbol: Ptr, to: Ptr, version: i32, flags: u64) -> Result<u32, i32> {
    if symbol.is_null() {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: a name that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(symbol.cast()) }.to_string_lossy();
    let found = look_up(&name, version, flags);
    // SAFETY: up to the caller.
    unsafe { put(to, found.unwrap_or(std::ptr::null_mut())) }?;
    Ok(if found.is_some() { FOUND } else { NOT_FOUND })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress_v2(
    symbol: Ptr,
    pfn: Ptr,
    cudaVersion: i32,
    flags: u64,
    symbolStatus: Ptr,
) -> i32 {
    // SAFETY: up to the caller.
    let found = unsafe { address(symbol, pfn, cudaVersion, flags) };
    if let (Ok(status), false) = (found, symbolStatus.is_null()) {
        // SAFETY: up to the caller.
        return code(unsafe { put(symbolStatus, status) });
    }
    code(found.map(drop))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetProcAddress(symbol: Ptr, pfn: Ptr, cudaVersion: i32, flags: u64) -> i32 {
    // SAFETY: up to the caller.
    let found = unsafe { address(symbol, pfn, cudaVersion, flags) };
    code(found.and_then(|status| if status == FOUND { Ok(()) } else { Err(result::NOT_FOUND) }))
}

/// There are none.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetExportTable(ppExportTable: Ptr, pExportTableId: Ptr) -> i32 {
    let _unused = (ppExportTable, pExportTableId);
    result::NOT_FOUND
}
