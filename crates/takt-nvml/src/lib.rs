//! Which processes use NVIDIA GPUs, as the driver's management library (NVML) tells.
//!
//! The library comes with the driver, so it is loaded where it is there. It names processes of other users as well,
//! into which an ordinary user may not look.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_uint, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

/// The name by which the driver installs it.
pub const LIBRARY: &str = "libnvidia-ml.so.1";

/// Most processes of one GPU that are kept.
const PROCESSES_MAX: usize = 256;

const SUCCESS: c_int = 0;
/// There are more processes than asked for; those asked for were written all the same.
const INSUFFICIENT_SIZE: c_int = 7;

/// A GPU, as the library calls it.
type Device = *mut c_void;

/// `nvmlProcessInfo_t`, of which the library fills an array.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ProcessInfo {
    pid: c_uint,
    used_memory: u64,
    gpu_instance: c_uint,
    compute_instance: c_uint,
}

const _: () = assert!(size_of::<ProcessInfo>() == 24);

type ListProcesses = unsafe extern "C" fn(Device, *mut c_uint, *mut ProcessInfo) -> c_int;

/// Functions of the library, by their names there.
macro_rules! functions {
    ($($field:ident: $type:ty = $symbol:literal,)*) => {
        #[derive(Debug)]
        struct Functions {
            $($field: $type,)*
        }

        impl Functions {
            fn of(library: &Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: the type is that of the library's header.
                    let $field = *unsafe { library.get::<$type>($symbol) }?;
                )*
                Ok(Self { $($field,)* })
            }
        }
    };
}

functions! {
    init: unsafe extern "C" fn() -> c_int = b"nvmlInit_v2\0",
    shutdown: unsafe extern "C" fn() -> c_int = b"nvmlShutdown\0",
    count: unsafe extern "C" fn(*mut c_uint) -> c_int = b"nvmlDeviceGetCount_v2\0",
    device: unsafe extern "C" fn(c_uint, *mut Device) -> c_int = b"nvmlDeviceGetHandleByIndex_v2\0",
    compute: ListProcesses = b"nvmlDeviceGetComputeRunningProcesses_v3\0",
    graphics: ListProcesses = b"nvmlDeviceGetGraphicsRunningProcesses_v3\0",
}

/// The library, ready to be asked.
#[derive(Debug)]
pub struct Nvml {
    functions: Functions,
    /// Its functions are valid as long as this is loaded.
    _library: Library,
}

/// The library is not there, or does not work.
#[derive(Debug, thiserror::Error)]
pub enum NvmlError {
    /// It cannot be loaded, or is another library.
    #[error("it cannot be loaded: {0}")]
    Load(#[from] libloading::Error),
    /// It refuses.
    #[error("{call} failed with error {code}")]
    Call {
        /// Its function.
        call: &'static str,
        /// What that returned.
        code: i32,
    },
}

impl Nvml {
    /// Loads the library of that name or path.
    pub fn load(library: &Path) -> Result<Self, NvmlError> {
        // SAFETY: loading the driver's library runs its initialisers, as in every program that uses it.
        let library = unsafe { Library::new(library) }?;
        let functions = Functions::of(&library)?;
        // SAFETY: it takes nothing.
        let code = unsafe { (functions.init)() };
        if code != SUCCESS {
            return Err(NvmlError::Call { call: "nvmlInit_v2", code });
        }
        Ok(Self { functions, _library: library })
    }

    /// Processes that have work or memory on a GPU.
    pub fn processes(&self) -> BTreeSet<u32> {
        let Functions { count, device, compute, graphics, .. } = self.functions;
        let mut gpus = 0;
        // SAFETY: it writes one number.
        if unsafe { count(&raw mut gpus) } != SUCCESS {
            return BTreeSet::new();
        }
        let mut found = BTreeSet::new();
        for index in 0..gpus {
            let mut gpu = ptr::null_mut();
            // SAFETY: it writes one handle.
            if unsafe { device(index, &raw mut gpu) } == SUCCESS {
                found.extend([compute, graphics].into_iter().flat_map(|list| processes(list, gpu)));
            }
        }
        found
    }
}

impl Drop for Nvml {
    fn drop(&mut self) {
        // SAFETY: it was initialised once, and is not used any more.
        unsafe { (self.functions.shutdown)() };
    }
}

/// The processes of one list.
fn processes(list: ListProcesses, gpu: Device) -> Vec<u32> {
    let mut infos = [ProcessInfo::default(); PROCESSES_MAX];
    let mut count = c_uint::try_from(infos.len()).unwrap_or(0);
    // SAFETY: it writes as many entries as it is told that there is room for.
    let code = unsafe { list(gpu, &raw mut count, infos.as_mut_ptr()) };
    let listed = if code == SUCCESS || code == INSUFFICIENT_SIZE { count as usize } else { 0 };
    infos.iter().take(listed).map(|info| info.pid).filter(|pid| *pid > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    /// A library with the same names: two GPUs, of which the second one has more processes than there is room for.
    const STAND_IN: &str = r#"
        struct info { unsigned pid; unsigned long long memory; unsigned gpu, compute; };
        int nvmlInit_v2(void) { return INIT; }
        int nvmlShutdown(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) {
            *device = (void *)(unsigned long)(index + 1);
            return 0;
        }
        int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, struct info *infos) {
            unsigned long first = (unsigned long)device * 1000, room = *count;
            if (first == 1000) { infos[0].pid = 1001; infos[1].pid = 1002; *count = 2; return 0; }
            for (unsigned at = 0; at < room; at++) infos[at].pid = first + at;
            return 7;
        }
        int nvmlDeviceGetGraphicsRunningProcesses_v3(void *device, unsigned *count, struct info *infos) {
            if ((unsigned long)device == 2) return 999;
            infos[0].pid = 1002; infos[1].pid = 77; *count = 2;
            return 0;
        }
    "#;

    /// Loads such a library.
    fn stand_in(name: &str, init: i32) -> Result<Nvml, NvmlError> {
        let folder = std::env::temp_dir().join(format!("takt-nvml-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("made");
        let (source, library) = (folder.join("nvml.c"), folder.join("libnvml.so"));
        fs::write(&source, STAND_IN).expect("written");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", &format!("-DINIT={init}"), "-o"])
            .args([&library, &source])
            .status()
            .expect("a C compiler");
        assert!(compiled.success());
        let loaded = Nvml::load(&library);
        fs::remove_dir_all(folder).expect("it was there");
        loaded
    }

    #[test]
    fn processes_of_all_gpus_and_of_both_lists_are_named_once() {
        let found = stand_in("lists", 0).expect("it loads").processes();
        assert!([77, 1001, 1002].iter().all(|pid| found.contains(pid)), "{found:?}");
        assert_eq!(found.len(), 3 + PROCESSES_MAX, "as many as there is room for");
    }

    #[test]
    fn a_library_that_is_missing_or_refuses_says_so() {
        let refuses = stand_in("refuses", 9).expect_err("there is no driver");
        assert_eq!(refuses.to_string(), "nvmlInit_v2 failed with error 9");
        let missing = Nvml::load(Path::new("/nowhere/libnvidia-ml.so.1")).expect_err("missing");
        assert!(missing.to_string().starts_with("it cannot be loaded"), "{missing}");
    }
}
