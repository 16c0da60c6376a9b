//! Memory, copies and memsets. Device memory is memory of the process.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use takt_cuda_api::{Ptr, result};

use crate::capture::guarded;
use crate::context::{finish_context, present};
use crate::put;
use crate::queue::{Rows, Work, finish, uncaptured};
use crate::world::{Home, World, world};

const ALIGN: usize = 512;

/// Memory that the driver knows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    bytes: usize,
    kind: Kind,
}

/// What it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Device,
    Host,
    /// The program's own, of which it told the driver.
    Registered,
}

/// What can be asked of an address: what kind of memory is there (`CU_POINTER_ATTRIBUTE_MEMORY_TYPE`).
const MEMORY_TYPE: u32 = 2;
const TYPE_HOST: u32 = 1;
const TYPE_DEVICE: u32 = 2;

fn take(bytes: usize) -> Result<u64, i32> {
    guarded()?;
    allocate(bytes, Kind::Device)
}

fn take_host(bytes: usize) -> Result<u64, i32> {
    guarded()?;
    allocate(bytes, Kind::Host)
}

/// The memory that an address is in.
fn known(world: &World, address: u64) -> Option<Memory> {
    let (start, memory) = world.memory.range(..=address).next_back()?;
    (address - start < memory.bytes as u64).then_some(*memory)
}

fn allocate(bytes: usize, kind: Kind) -> Result<u64, i32> {
    let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_large| result::OUT_OF_MEMORY)?;
    if bytes == 0 {
        return Err(result::INVALID_VALUE);
    }
    // SAFETY: it is not empty.
    let at = unsafe { alloc_zeroed(layout) } as u64;
    if at == 0 {
        return Err(result::OUT_OF_MEMORY);
    }
    world().memory.insert(at, Memory { bytes, kind });
    Ok(at)
}

fn give_back(at: u64) -> crate::Answer {
    let Memory { bytes, kind } = world().memory.remove(&at).ok_or(result::INVALID_VALUE)?;
    if kind == Kind::Registered {
        return Ok(());
    }
    let layout = Layout::from_size_align(bytes, ALIGN).map_err(|_large| result::INVALID_VALUE)?;
    // SAFETY: it was allocated so, and is given back once.
    unsafe { dealloc(at as *mut u8, layout) };
    Ok(())
}

/// A free of memory waits for everything that may use it.
fn free(at: u64) -> crate::Answer {
    if at == 0 {
        return Ok(());
    }
    guarded()?;
    let context = present(&mut world())?;
    finish_context(context)?;
    give_back(at)
}

fn start(home: Home, stream: Ptr, work: Work) -> crate::Answer {
    let mut world = world();
    let stream = world.stream(stream, home)?;
    // Bytes for memory that the driver does not know are there when the call returns.
    let target = if let Work::Copy { to, .. } = &work { Some(*to) } else { None };
    let waits = target.is_some_and(|to| known(&world, to).is_none());
    let captured = world.streams.get(stream)?.capture.is_some();
    world.put(stream, work)?;
    if waits && !captured {
        let last = world.streams.get(stream)?.last(stream);
        finish(world, &[last]);
    }
    Ok(())
}

fn complete(home: Home, work: Work) -> crate::Answer {
    guarded()?;
    let mut world = world();
    let stream = world.stream(std::ptr::null_mut(), home)?;
    uncaptured(&mut world, stream)?;
    world.put(stream, work)?;
    let last = world.streams.get(stream)?.last(stream);
    finish(world, &[last]);
    Ok(())
}

fn copied(to: u64, from: u64, bytes: usize) -> Work {
    Work::Copy { to, from, rows: Rows::one(bytes) }
}

fn filled(to: u64, value: &[u8], rows: Rows) -> Work {
    Work::Set { to, value: value.to_vec(), rows }
}

/// A copy of rows, as programs describe it (`CUDA_MEMCPY2D`).
unsafe fn rows(described: Ptr) -> Result<Work, i32> {
    const HOST: u32 = 1;
    const ARRAY: u32 = 3;
    // SAFETY: a structure of sixteen words.
    let words = unsafe { &*described.cast::<[usize; 16]>() };
    #[expect(clippy::cast_possible_truncation, reason = "a number of 32 bits and its padding")]
    let side = |at: usize| match words[at + 2] as u32 {
        ARRAY => Err(result::NOT_SUPPORTED),
        HOST => Ok((words[at + 3] + words[at] + words[at + 1] * words[at + 6]) as u64),
        _ => Ok((words[at + 4] + words[at] + words[at + 1] * words[at + 6]) as u64),
    };
    let (from, to) = (side(0)?, side(7)?);
    let rows = Rows { bytes: words[14], count: words[15], to_pitch: words[13], from_pitch: words[6] };
    Ok(Work::Copy { to, from, rows })
}

api! {
    fn cuMemAlloc_v2(dptr: Ptr, bytesize: usize) { put(dptr, take(bytesize)?) }
    fn cuMemAllocManaged(dptr: Ptr, bytesize: usize, flags: u32) {
        let _unused = flags;
        put(dptr, take(bytesize)?)
    }
    fn cuMemAllocPitch_v2(dptr: Ptr, pPitch: Ptr, WidthInBytes: usize, Height: usize, ElementSizeBytes: u32) {
        let _unused = ElementSizeBytes;
        let pitch = WidthInBytes.next_multiple_of(ALIGN);
        put(pPitch, pitch)?;
        put(dptr, take(pitch * Height)?)
    }
    fn cuMemFree_v2(dptr: u64) { free(dptr) }
    fn cuMemAllocHost_v2(pp: Ptr, bytesize: usize) { put(pp, take_host(bytesize)?) }
    fn cuMemHostAlloc(pp: Ptr, bytesize: usize, Flags: u32) {
        let _unused = Flags;
        put(pp, take_host(bytesize)?)
    }
    fn cuMemHostRegister_v2(p: Ptr, bytesize: usize, Flags: u32) {
        let _unused = Flags;
        let memory = Memory { bytes: bytesize, kind: Kind::Registered };
        world().memory.insert(p.addr() as u64, memory);
        Ok(())
    }
    fn cuMemHostUnregister(p: Ptr) { free(p.addr() as u64) }
    fn cuPointerGetAttribute(data: Ptr, attribute: u32, ptr: u64) {
        let kind = known(&world(), ptr).ok_or(result::INVALID_VALUE)?.kind;
        if attribute != MEMORY_TYPE {
            return Err(result::NOT_SUPPORTED);
        }
        put(data, if kind == Kind::Device { TYPE_DEVICE } else { TYPE_HOST })
    }
    fn cuMemFreeHost(p: Ptr) { free(p.addr() as u64) }
    fn cuMemHostGetDevicePointer_v2(pdptr: Ptr, p: Ptr, Flags: u32) {
        let _unused = Flags;
        put(pdptr, p.addr() as u64)
    }
    fn cuMemGetInfo_v2(free: Ptr, total: Ptr) {
        put(free, 8_usize << 30)?;
        put(total, 16_usize << 30)
    }
}

/// Copies of two places, synchronous and not.
macro_rules! copies {
    ($( $name:ident, $twin:ident, $async:ident, $async_twin:ident ( $to:ty, $from:ty ); )*) => {
        $(
            twins! {
                fn $name, $twin(home, to: $to, from: $from, bytes: usize) {
                    complete(home, copied(to as u64, from as u64, bytes))
                }
                fn $async, $async_twin(home, to: $to, from: $from, bytes: usize, hStream: Ptr) {
                    start(home, hStream, copied(to as u64, from as u64, bytes))
                }
            }
        )*
    };
}

copies! {
    cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz(u64, Ptr);
    cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz(Ptr, u64);
    cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz(u64, u64);
    cuMemcpy, cuMemcpy_ptds, cuMemcpyAsync, cuMemcpyAsync_ptsz(u64, u64);
}

/// Memsets of elements of one size, in a row and in rows, synchronous and not.
macro_rules! memsets {
    ($( $name:ident, $twin:ident, $async:ident, $async_twin:ident,
        $rows:ident, $rows_twin:ident, $rows_async:ident, $rows_async_twin:ident ( $kind:ty ); )*) => {
        $(
            twins! {
                fn $name, $twin(home, to: u64, value: $kind, count: usize) {
                    complete(home, filled(to, &value.to_le_bytes(), Rows::one(count * size_of::<$kind>())))
                }
                fn $async, $async_twin(home, to: u64, value: $kind, count: usize, hStream: Ptr) {
                    let rows = Rows::one(count * size_of::<$kind>());
                    start(home, hStream, filled(to, &value.to_le_bytes(), rows))
                }
                fn $rows, $rows_twin(home, to: u64, pitch: usize, value: $kind, width: usize, height: usize) {
                    let bytes = width * size_of::<$kind>();
                    let rows = Rows { bytes, count: height, to_pitch: pitch, from_pitch: 0 };
                    complete(home, filled(to, &value.to_le_bytes(), rows))
                }
                fn $rows_async, $rows_async_twin(
                    home, to: u64, pitch: usize, value: $kind, width: usize, height: usize, hStream: Ptr
                ) {
                    let bytes = width * size_of::<$kind>();
                    let rows = Rows { bytes, count: height, to_pitch: pitch, from_pitch: 0 };
                    start(home, hStream, filled(to, &value.to_le_bytes(), rows))
                }
            }
        )*
    };
}

memsets! {
    cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuMemsetD8Async, cuMemsetD8Async_ptsz,
    cuMemsetD2D8_v2, cuMemsetD2D8_v2_ptds, cuMemsetD2D8Async, cuMemsetD2D8Async_ptsz(u8);
    cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuMemsetD16Async, cuMemsetD16Async_ptsz,
    cuMemsetD2D16_v2, cuMemsetD2D16_v2_ptds, cuMemsetD2D16Async, cuMemsetD2D16Async_ptsz(u16);
    cuMemsetD32_v2, cuMemsetD32_v2_ptds, cuMemsetD32Async, cuMemsetD32Async_ptsz,
    cuMemsetD2D32_v2, cuMemsetD2D32_v2_ptds, cuMemsetD2D32Async, cuMemsetD2D32Async_ptsz(u32);
}

twins! {
    fn cuMemcpy2D_v2, cuMemcpy2D_v2_ptds(home, pCopy: Ptr) { complete(home, rows(pCopy)?) }

    fn cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned_v2_ptds(home, pCopy: Ptr) { complete(home, rows(pCopy)?) }

    fn cuMemcpy2DAsync_v2, cuMemcpy2DAsync_v2_ptsz(home, pCopy: Ptr, hStream: Ptr) {
        start(home, hStream, rows(pCopy)?)
    }

    fn cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync_v2_ptsz(
        home, dsts: Ptr, srcs: Ptr, sizes: Ptr, count: usize, attrs: Ptr, attrsIdxs: Ptr, numAttrs: usize,
        hStream: Ptr
    ) {
        let _unused = (attrs, attrsIdxs, numAttrs);
        for index in 0..count {
            let [to, from] = [dsts, srcs].map(|list| *list.cast::<u64>().add(index));
            start(home, hStream, copied(to, from, *sizes.cast::<usize>().add(index)))?;
        }
        Ok(())
    }

    fn cuMemPrefetchAsync, cuMemPrefetchAsync_ptsz(
        home, devPtr: u64, count: usize, dstDevice: i32, hStream: Ptr
    ) {
        let _unused = (devPtr, count, dstDevice);
        start(home, hStream, Work::Nothing)
    }

    fn cuMemPrefetchAsync_v2, cuMemPrefetchAsync_v2_ptsz(
        home, devPtr: u64, count: usize, location: u64, flags: u32, hStream: Ptr
    ) {
        let _unused = (devPtr, count, location, flags);
        start(home, hStream, Work::Nothing)
    }

    fn cuMemAllocAsync, cuMemAllocAsync_ptsz(home, dptr: Ptr, bytesize: usize, hStream: Ptr) {
        let at = allocate(bytesize, Kind::Device)?;
        start(home, hStream, Work::Nothing)?;
        put(dptr, at)
    }

    fn cuMemFreeAsync, cuMemFreeAsync_ptsz(home, dptr: u64, hStream: Ptr) {
        // Kept until the process ends: what waits in streams may still use it.
        let _unused = dptr;
        start(home, hStream, Work::Nothing)
    }
}
