//! Launches.

use std::ffi::CStr;
use std::sync::LazyLock;
use std::time::Duration;

use takt_cuda_api::types::LaunchConfig;
use takt_cuda_api::{Ptr, result};

use crate::queue::Work;
use crate::world::{Home, world};
use crate::{Answer, setting, witness};

/// How many blocks and threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
}

/// Whether launches do nothing.
static NULL: LazyLock<bool> = LazyLock::new(|| setting("TAKT_FAKE_NULL", 0) != 0);

/// How long the first launch of a kernel takes longer, because it is loaded then.
const LOADING: Duration = Duration::from_micros(200);

/// Marks of a list of parameters in one buffer.
const BUFFER: usize = 1;
const SIZE: usize = 2;

/// A launch as work, with its parameters as they are now.
///
/// # Safety
///
/// Parameters are as the kernel declares them.
pub(crate) unsafe fn prepared(function: Ptr, shape: Shape, parameters: Ptr, extra: Ptr) -> Result<Work, i32> {
    if shape.grid.contains(&0) || shape.block.contains(&0) || shape.block.iter().product::<u32>() > 1024 {
        return Err(result::INVALID_VALUE);
    }
    let mut world = world();
    let function = world.functions.get(function.addr())?;
    let first = !std::mem::replace(&mut function.loaded, true);
    let (kernel, sizes, name) = (function.kernel, function.parameters.clone(), function.name.clone());
    drop(world);
    if first {
        std::thread::sleep(LOADING);
    }
    // SAFETY: up to the caller.
    let values =
        unsafe { if parameters.is_null() { packed(&sizes, extra)? } else { listed(&sizes, parameters) } };
    let name = name.to_string_lossy().into_owned();
    Ok(Work::Kernel { kernel, parameters: values, name })
}

/// Parameters that are pointed to one by one.
unsafe fn listed(sizes: &[usize], parameters: Ptr) -> Vec<u64> {
    let list = parameters.cast::<*const u8>();
    let value = |(index, size): (usize, &usize)| {
        // SAFETY: there is a pointer for each parameter, to a value of its size.
        unsafe { number(*list.add(index), *size) }
    };
    sizes.iter().enumerate().map(value).collect()
}

/// Parameters in one buffer.
unsafe fn packed(sizes: &[usize], extra: Ptr) -> Result<Vec<u64>, i32> {
    if extra.is_null() {
        return if sizes.is_empty() { Ok(Vec::new()) } else { Err(result::INVALID_VALUE) };
    }
    let list = extra.cast::<usize>();
    // SAFETY: a list of marks and values that ends with a zero.
    let (first, second) = unsafe { (*list, *list.add(2)) };
    if (first, second) != (BUFFER, SIZE) {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: as above.
    let buffer = unsafe { *list.add(1) } as *const u8;
    let mut at = 0;
    let value = |size: &usize| {
        at = usize::next_multiple_of(at, *size);
        // SAFETY: parameters follow each other, each at a multiple of its size.
        let value = unsafe { number(buffer.add(at), *size) };
        at += size;
        value
    };
    Ok(sizes.iter().map(value).collect())
}

unsafe fn number(at: *const u8, size: usize) -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: up to the caller.
    unsafe { std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), size.min(8)) };
    u64::from_le_bytes(bytes)
}

unsafe fn launch(
    name: &CStr,
    home: Home,
    function: Ptr,
    shape: Shape,
    stream: Ptr,
    parameters: Ptr,
    extra: Ptr,
) -> Answer {
    witness::tell(name);
    if *NULL {
        return Ok(());
    }
    // SAFETY: up to the caller.
    let work = unsafe { prepared(function, shape, parameters, extra) }?;
    let mut world = world();
    let stream = world.stream(stream, home)?;
    world.put(stream, work)
}

twins! {
    fn cuLaunchKernel, cuLaunchKernel_ptsz(
        home, f: Ptr, gridDimX: u32, gridDimY: u32, gridDimZ: u32, blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: Ptr, kernelParams: Ptr, extra: Ptr
    ) {
        let _unused = sharedMemBytes;
        let shape = Shape { grid: [gridDimX, gridDimY, gridDimZ], block: [blockDimX, blockDimY, blockDimZ] };
        launch(c"cuLaunchKernel", home, f, shape, hStream, kernelParams, extra)
    }

    fn cuLaunchCooperativeKernel, cuLaunchCooperativeKernel_ptsz(
        home, f: Ptr, gridDimX: u32, gridDimY: u32, gridDimZ: u32, blockDimX: u32, blockDimY: u32, blockDimZ: u32,
        sharedMemBytes: u32, hStream: Ptr, kernelParams: Ptr
    ) {
        let _unused = sharedMemBytes;
        let shape = Shape { grid: [gridDimX, gridDimY, gridDimZ], block: [blockDimX, blockDimY, blockDimZ] };
        launch(c"cuLaunchCooperativeKernel", home, f, shape, hStream, kernelParams, std::ptr::null_mut())
    }

    fn cuLaunchKernelEx, cuLaunchKernelEx_ptsz(home, config: Ptr, f: Ptr, kernelParams: Ptr, extra: Ptr) {
        let config = &*config.cast::<LaunchConfig>();
        let shape = Shape { grid: config.grid, block: config.block };
        launch(c"cuLaunchKernelEx", home, f, shape, config.stream, kernelParams, extra)
    }

    fn cuLaunchHostFunc, cuLaunchHostFunc_ptsz(home, hStream: Ptr, fn_: Ptr, userData: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        world.put(stream, Work::Host { function: fn_.addr(), data: userData.addr() })
    }

    fn cuStreamAddCallback, cuStreamAddCallback_ptsz(
        home, hStream: Ptr, callback: Ptr, userData: Ptr, flags: u32
    ) {
        let _unused = flags;
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        let (function, data) = (callback.addr(), userData.addr());
        world.put(stream, Work::Callback { function, data, stream: hStream.addr() })
    }
}
