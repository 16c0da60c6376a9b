//! Kernels by what they are.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::{Mutex, PoisonError};

use takt_cuda_api::types::{DeviceLaunch, LaunchAttribute, LaunchConfig};
use takt_cuda_api::{Ptr, real, result};

use super::entry::{Entry, Need};
use super::table::{Table, mixed};

static TABLE: Table = Table::new();

/// Hashes of code by the handle of its module or library.
static CODE: Mutex<Option<HashMap<usize, u64>>> = Mutex::new(None);

/// Most modules and libraries whose code is kept in mind.
const CODE_MAX: usize = 1 << 14;

/// Bytes of code that are looked at.
const CODE_BYTES_MAX: usize = 4096;

/// Launches after a wait that are told apart by their number.
const ORDINAL_MAX: u32 = 4096;

/// Attributes of a launch that are looked at.
const ATTRIBUTES_MAX: usize = 32;

thread_local! {
    /// Launches of this thread since it last waited.
    static ORDINAL: Cell<u32> = const { Cell::new(0) };
}

/// A launch of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Launch {
    /// What runs: a function or a kernel, by its handle.
    pub function: usize,
    /// Grid, block, shared memory and cluster, in a few words.
    shape: [u64; 4],
}

impl Launch {
    /// With those dimensions.
    #[inline]
    pub fn new(function: usize, grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> Self {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let shape = [
            pair(grid[0], grid[1]),
            pair(grid[2], block[0]),
            pair(block[1], block[2]),
            pair(shared_bytes, 0),
        ];
        Self { function, shape }
    }

    /// As a structure says.
    ///
    /// # Safety
    ///
    /// The structure is one of the API.
    pub unsafe fn said(config: &LaunchConfig, function: usize) -> Self {
        let mut launch = Self::new(function, config.grid, config.block, config.shared_bytes);
        let count = (config.attribute_count as usize).min(ATTRIBUTES_MAX);
        if config.attributes.is_null() {
            return launch;
        }
        // SAFETY: up to the caller: so many follow each other.
        let attributes = unsafe { std::slice::from_raw_parts(config.attributes, count) };
        let cluster = attributes.iter().find(|attribute| attribute.id == LaunchAttribute::CLUSTER_DIMENSION);
        if let Some([x, y, z]) = cluster.and_then(|attribute| attribute.value.first_chunk().copied()) {
            launch.shape[3] |= u64::from(x & 0x3ff) << 32 | u64::from(y & 0x3ff) << 42 | u64::from(z) << 52;
        }
        launch
    }

    /// One of several devices.
    pub fn on_device(launch: &DeviceLaunch) -> Self {
        Self::new(launch.function.addr(), launch.grid, launch.block, launch.shared_bytes)
    }

    /// What it will take, as far as that is known; none if there is no room to keep it in mind.
    #[inline]
    pub fn entry(&self) -> Option<&'static Entry> {
        let [a, b, c, d] = self.shape;
        let key = mixed(&[self.function as u64, TABLE.generation(), a, b, c, d]);
        let found = TABLE.find(key, || self.identity(), Entry::default)?;
        let ordinal = ORDINAL.get();
        ORDINAL.set(ordinal.saturating_add(1));
        if !found.is_spread() || ordinal >= ORDINAL_MAX {
            return Some(found);
        }
        // The same kernel takes different times at different places of a job.
        let placed = mixed(&[key, u64::from(ordinal)]);
        let as_elsewhere = || match found.need() {
            Need::Known(ns) => Entry::guessed(ns),
            Need::Unknown => Entry::default(),
        };
        TABLE.find(placed, || mixed(&[self.identity(), u64::from(ordinal)]), as_elsewhere)
    }

    /// What it is, by something that does not depend on handles, as far as the driver tells.
    fn identity(&self) -> u64 {
        let code = code_of(self.function);
        let name = name_of(self.function);
        let kernel = name.map_or(self.function as u64, |name| hashed(&name));
        let [a, b, c, d] = self.shape;
        mixed(&[kernel, code, a, b, c, d])
    }
}

/// This thread waited for the GPU.
pub fn waited() {
    ORDINAL.set(0);
}

/// Code was loaded, and has that handle.
pub fn loaded(module: usize, hash: u64) {
    let mut code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
    let code = code.get_or_insert_with(HashMap::new);
    if code.len() < CODE_MAX {
        code.insert(module, hash);
    }
}

/// Code is unloaded.
pub fn unloaded(module: usize) {
    let mut code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
    code.as_mut().map(|code| code.remove(&module));
    TABLE.forget_code();
}

/// A hash of code in memory.
///
/// # Safety
///
/// It is PTX text, or an image that is longer than its head says or than what is looked at.
pub unsafe fn hash_of_image(image: Ptr) -> u64 {
    if image.is_null() {
        return 0;
    }
    let first = image.cast::<u8>();
    // SAFETY: every image has so many bytes.
    let magic = unsafe { std::slice::from_raw_parts(first, 4) };
    let length = match magic {
        // Heads of these have 16 bytes, and say how much follows.
        [0x50, 0xED, 0x55, 0xBA] => {
            let size = first.wrapping_add(8).cast::<u64>();
            // SAFETY: the head of a fat binary.
            let size = unsafe { size.read_unaligned() };
            usize::try_from(size).unwrap_or(0).saturating_add(16)
        }
        // A file of the linker: its head alone, whose offsets depend on what follows.
        [0x7F, b'E', b'L', b'F'] => 64,
        // SAFETY: text that ends with a zero byte.
        [b' '..=b'~' | b'\n' | b'\t', ..] => unsafe { text_length(first) },
        // A structure that points to a fat binary.
        _ => 16,
    };
    // SAFETY: there are so many bytes.
    hashed(unsafe { std::slice::from_raw_parts(first, length.min(CODE_BYTES_MAX)) })
}

unsafe fn text_length(text: *const u8) -> usize {
    // SAFETY: up to the caller; it ends within, or that many bytes are there.
    unsafe { libc::strnlen(text.cast::<c_char>(), CODE_BYTES_MAX) }
}

/// A hash of bytes.
pub fn hashed(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |hash, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mixed(&[hash, u64::from_le_bytes(word)])
    })
}

/// The name of a function, or of what is called a kernel since CUDA 12.
fn name_of(function: usize) -> Option<Vec<u8>> {
    let function: Ptr = std::ptr::without_provenance_mut(function);
    let ask = [real::cuFuncGetName as unsafe fn(Ptr, Ptr) -> i32, real::cuKernelGetName];
    ask.into_iter().find_map(|ask| {
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: a handle that the program launches, and room for the name.
        let told = unsafe { ask((&raw mut name).cast(), function) };
        if told != result::SUCCESS || name.is_null() {
            return None;
        }
        // SAFETY: the driver gives a text that ends with a zero byte.
        Some(unsafe { CStr::from_ptr(name) }.to_bytes().to_vec())
    })
}

/// The hash of the code that a function comes from; 0 if it is not known.
fn code_of(function: usize) -> u64 {
    let function: Ptr = std::ptr::without_provenance_mut(function);
    let ask = [real::cuFuncGetModule as unsafe fn(Ptr, Ptr) -> i32, real::cuKernelGetLibrary];
    let module = ask.into_iter().find_map(|ask| {
        let mut module: Ptr = std::ptr::null_mut();
        // SAFETY: a handle that the program launches, and room for the handle.
        let told = unsafe { ask((&raw mut module).cast(), function) };
        (told == result::SUCCESS && !module.is_null()).then(|| module.addr())
    });
    let code = CODE.lock().unwrap_or_else(PoisonError::into_inner);
    let known = code.as_ref().zip(module).and_then(|(code, module)| code.get(&module).copied());
    known.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_told_apart() {
        let launch = Launch::new(0x5000, [1, 2, 3], [4, 5, 6], 7);
        for other in [
            Launch::new(0x5040, [1, 2, 3], [4, 5, 6], 7),
            Launch::new(0x5000, [2, 1, 3], [4, 5, 6], 7),
            Launch::new(0x5000, [1, 2, 3], [4, 6, 5], 7),
            Launch::new(0x5000, [1, 2, 3], [4, 5, 6], 8),
        ] {
            assert_ne!(launch, other);
        }
        let attribute = |id| {
            // SAFETY: a structure of numbers.
            let mut attribute: LaunchAttribute = unsafe { std::mem::zeroed() };
            attribute.id = id;
            attribute.value[..3].copy_from_slice(&[2, 1, 1]);
            attribute
        };
        let said = |attributes: &[LaunchAttribute]| {
            let config = LaunchConfig {
                grid: [1, 2, 3],
                block: [4, 5, 6],
                shared_bytes: 7,
                stream: std::ptr::null_mut(),
                attributes: attributes.as_ptr(),
                attribute_count: u32::try_from(attributes.len()).unwrap(),
            };
            // SAFETY: attributes are there.
            unsafe { Launch::said(&config, 0x5000) }
        };
        assert_eq!(said(&[attribute(1)]), launch);
        assert_ne!(said(&[attribute(1), attribute(LaunchAttribute::CLUSTER_DIMENSION)]), launch);
    }

    #[test]
    fn images_have_hashes_by_what_they_contain() {
        let hash = |text: &CStr| {
            // SAFETY: text that ends with a zero byte.
            unsafe { hash_of_image(text.as_ptr().cast_mut().cast()) }
        };
        assert_eq!(hash(c".version 7.0 a"), hash(c".version 7.0 a"));
        assert_ne!(hash(c".version 7.0 a"), hash(c".version 7.0 b"));
        // SAFETY: nothing is looked at.
        assert_eq!(unsafe { hash_of_image(std::ptr::null_mut()) }, 0);
        let mut fat = vec![0x50, 0xED, 0x55, 0xBA, 1, 0, 16, 0, 8, 0, 0, 0, 0, 0, 0, 0];
        fat.extend(*b"contents");
        // SAFETY: as long as its head says.
        let one = unsafe { hash_of_image(fat.as_mut_ptr().cast()) };
        fat[20] += 1;
        // SAFETY: as above.
        assert_ne!(one, unsafe { hash_of_image(fat.as_mut_ptr().cast()) });
    }
}
