//! Streams.

use takt_cuda_api::{Ptr, result};

use crate::context::present;
use crate::put;
use crate::queue::{Work, finish, uncaptured};
use crate::world::{Home, pointer, world};

const NON_BLOCKING: u32 = 1;

/// Bits of how a number in memory is waited for.
const WAIT_KIND: u32 = 3;

api! {
    fn cuStreamCreate(phStream: Ptr, Flags: u32) {
        let mut world = world();
        let context = present(&mut world)?;
        put(phStream, pointer(world.make_stream(context, Flags & NON_BLOCKING == 0, 0)))
    }

    fn cuStreamCreateWithPriority(phStream: Ptr, flags: u32, priority: i32) {
        let mut world = world();
        let context = present(&mut world)?;
        put(phStream, pointer(world.make_stream(context, flags & NON_BLOCKING == 0, priority)))
    }

    fn cuStreamDestroy_v2(hStream: Ptr) {
        let mut world = world();
        let stream = hStream.addr();
        if Home::Legacy.of(stream).is_some() {
            return Err(result::INVALID_HANDLE);
        }
        world.end_stream(stream)
    }

    fn cuCtxGetStreamPriorityRange(leastPriority: Ptr, greatestPriority: Ptr) {
        put(leastPriority, 0_i32)?;
        put(greatestPriority, -5_i32)
    }
}

twins! {
    fn cuStreamSynchronize, cuStreamSynchronize_ptsz(home, hStream: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        uncaptured(&mut world, stream)?;
        let mut last = vec![world.streams.get(stream)?.last(stream)];
        if home.of(hStream.addr()) == Some(Home::Legacy) {
            let context = world.streams.get(stream)?.context;
            world.refuse_implicit(context)?;
            let blocking = world.streams.all().filter(|(_, other)| other.context == context && other.blocking);
            last.extend(blocking.map(|(handle, other)| other.last(handle)));
        }
        finish(world, &last);
        Ok(())
    }

    fn cuStreamQuery, cuStreamQuery_ptsz(home, hStream: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        uncaptured(&mut world, stream)?;
        if world.streams.get(stream)?.is_idle() { Ok(()) } else { Err(result::NOT_READY) }
    }

    fn cuStreamGetCtx, cuStreamGetCtx_ptsz(home, hStream: Ptr, pctx: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        put(pctx, pointer(world.streams.get(stream)?.context))
    }

    fn cuStreamGetFlags, cuStreamGetFlags_ptsz(home, hStream: Ptr, flags: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        put(flags, u32::from(!world.streams.get(stream)?.blocking))
    }

    fn cuStreamGetPriority, cuStreamGetPriority_ptsz(home, hStream: Ptr, priority: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        put(priority, world.streams.get(stream)?.priority)
    }

    fn cuStreamWaitValue32_v2, cuStreamWaitValue32_v2_ptsz(
        home, stream: Ptr, addr: u64, value: u32, flags: u32
    ) {
        if flags & WAIT_KIND != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        let mut world = world();
        let stream = world.stream(stream, home)?;
        world.put(stream, Work::Await { at: addr, value: value.into(), wide: false })
    }

    fn cuStreamWriteValue32_v2, cuStreamWriteValue32_v2_ptsz(
        home, stream: Ptr, addr: u64, value: u32, flags: u32
    ) {
        let _unused = flags;
        let mut world = world();
        let stream = world.stream(stream, home)?;
        world.put(stream, Work::Write { at: addr, value: value.into(), wide: false })
    }

    fn cuStreamWaitValue64_v2, cuStreamWaitValue64_v2_ptsz(
        home, stream: Ptr, addr: u64, value: u64, flags: u32
    ) {
        if flags & WAIT_KIND != 0 {
            return Err(result::NOT_SUPPORTED);
        }
        let mut world = world();
        let stream = world.stream(stream, home)?;
        world.put(stream, Work::Await { at: addr, value, wide: true })
    }

    fn cuStreamWriteValue64_v2, cuStreamWriteValue64_v2_ptsz(
        home, stream: Ptr, addr: u64, value: u64, flags: u32
    ) {
        let _unused = flags;
        let mut world = world();
        let stream = world.stream(stream, home)?;
        world.put(stream, Work::Write { at: addr, value, wide: true })
    }
}
