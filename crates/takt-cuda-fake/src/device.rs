//! Devices.

use takt_cuda_api::{Ptr, result};

use crate::world::begin;
use crate::{Answer, code, put, setting, witness};

/// Compute capability of what it pretends to be.
const CAPABILITY: (i32, i32) = (9, 0);
const NAME: &[u8] = b"Takt fake GPU\0";
const MEMORY: usize = 16 << 30;

/// Attributes that programs ask for.
const MULTIPROCESSORS: u32 = 16;
const CAPABILITY_MAJOR: u32 = 75;
const CAPABILITY_MINOR: u32 = 76;
const MEMORY_POOLS: u32 = 115;

fn devices() -> i32 {
    i32::try_from(setting("TAKT_FAKE_DEVICES", 1)).unwrap_or(1)
}

fn known(device: i32) -> Answer {
    if (0..devices()).contains(&device) { Ok(()) } else { Err(result::INVALID_DEVICE) }
}

/// Before `cuInit` as well.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuDriverGetVersion(driverVersion: Ptr) -> i32 {
    let version = i32::try_from(setting("TAKT_FAKE_VERSION", 13_000)).unwrap_or(13_000);
    // SAFETY: up to the caller.
    code(unsafe { put(driverVersion, version) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(Flags: u32) -> i32 {
    code(match (Flags, devices()) {
        (0, 0) => Err(result::NO_DEVICE),
        (0, _) => {
            begin();
            witness::begin();
            Ok(())
        }
        _ => Err(result::INVALID_VALUE),
    })
}

api! {
    fn cuDeviceGetCount(count: Ptr) { put(count, devices()) }

    fn cuDeviceGet(device: Ptr, ordinal: i32) {
        known(ordinal)?;
        put(device, ordinal)
    }

    fn cuDeviceGetName(name: Ptr, len: i32, dev: i32) {
        known(dev)?;
        let room = usize::try_from(len).map_err(|_negative| result::INVALID_VALUE)?;
        std::ptr::copy_nonoverlapping(NAME.as_ptr(), name.cast(), NAME.len().min(room));
        Ok(())
    }

    fn cuDeviceGetUuid_v2(uuid: Ptr, dev: i32) {
        known(dev)?;
        put(uuid, [u8::try_from(dev).unwrap_or(0) + 1; 16])
    }

    fn cuDeviceTotalMem_v2(bytes: Ptr, dev: i32) {
        known(dev)?;
        put(bytes, MEMORY)
    }

    fn cuDeviceGetAttribute(pi: Ptr, attrib: u32, dev: i32) {
        known(dev)?;
        put(pi, match attrib {
            MULTIPROCESSORS => 132,
            CAPABILITY_MAJOR => CAPABILITY.0,
            CAPABILITY_MINOR => CAPABILITY.1,
            MEMORY_POOLS => 1,
            _ => 1024,
        })
    }

    fn cuDeviceComputeCapability(major: Ptr, minor: Ptr, dev: i32) {
        known(dev)?;
        put(major, CAPABILITY.0)?;
        put(minor, CAPABILITY.1)
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(error: u32, pStr: Ptr) -> i32 {
    let name = if error == 0 { c"CUDA_SUCCESS" } else { c"CUDA_ERROR_OF_FAKE_DRIVER" };
    // SAFETY: up to the caller.
    code(unsafe { put(pStr, name.as_ptr()) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorString(error: u32, pStr: Ptr) -> i32 {
    // SAFETY: up to the caller.
    unsafe { cuGetErrorName(error, pStr) }
}
