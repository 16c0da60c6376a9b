//! Contexts: one is current in a thread, and its end ends what belongs to it.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use takt_cuda_api::{Ptr, result};

use crate::put;
use crate::queue::{Place, finish};
use crate::world::{World, pointer, world};

/// A context.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) device: i32,
    flags: u32,
}

thread_local! {
    static STACK: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static THREAD: Cell<u64> = const { Cell::new(0) };
}

/// The context of this thread.
pub(crate) fn current() -> Option<usize> {
    STACK.with_borrow(|stack| stack.last().copied().filter(|context| *context != 0))
}

/// The number of this thread, from 1.
pub(crate) fn thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    if THREAD.get() == 0 {
        THREAD.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    }
    THREAD.get()
}

/// The context of this thread, which must have one that is alive.
pub(crate) fn present(world: &mut World) -> Result<usize, i32> {
    let context = current().ok_or(result::INVALID_CONTEXT)?;
    world.contexts.get(context).map(|_| context).map_err(|_gone| result::CONTEXT_IS_DESTROYED)
}

fn push(context: usize) {
    STACK.with_borrow_mut(|stack| stack.push(context));
}

fn replace(context: usize) {
    STACK.with_borrow_mut(|stack| {
        stack.pop();
        if context != 0 {
            stack.push(context);
        }
    });
}

fn create(world: &mut World, flags: u32, device: i32) -> usize {
    world.contexts.add(Context { device, flags })
}

fn destroy(context: usize) -> crate::Answer {
    finish_context(context)?;
    let mut world = world();
    world.contexts.remove(context)?;
    let streams: Vec<usize> = world
        .streams
        .all()
        .filter(|(_, stream)| stream.context == context)
        .map(|(handle, _)| handle)
        .collect();
    streams.into_iter().try_for_each(|stream| world.end_stream(stream))?;
    let of_context =
        |(handle, event): (usize, &crate::event::Event)| (event.context == context).then_some(handle);
    let events: Vec<usize> = world.events.all().filter_map(of_context).collect();
    events.into_iter().try_for_each(|event| world.events.remove(event).map(drop))
}

/// Waits for all streams of a context.
pub(crate) fn finish_context(context: usize) -> crate::Answer {
    let mut world = world();
    if let Some(number) = world.capture_in(context) {
        world.spoil(number);
        return Err(result::STREAM_CAPTURE_UNSUPPORTED);
    }
    world.contexts.get(context).map_err(|_gone| result::INVALID_CONTEXT)?;
    let of_context = world.streams.all().filter(|(_, stream)| stream.context == context);
    let last: Vec<Place> = of_context.map(|(handle, stream)| stream.last(handle)).collect();
    finish(world, &last);
    Ok(())
}

api! {
    fn cuCtxCreate_v2(pctx: Ptr, flags: u32, dev: i32) {
        let context = create(&mut world(), flags, dev);
        push(context);
        put(pctx, pointer(context))
    }

    fn cuCtxCreate_v4(pctx: Ptr, ctxCreateParams: Ptr, flags: u32, dev: i32) {
        let _unused = ctxCreateParams;
        let context = create(&mut world(), flags, dev);
        push(context);
        put(pctx, pointer(context))
    }

    fn cuCtxDestroy_v2(ctx: Ptr) {
        destroy(ctx.addr())?;
        if current() == Some(ctx.addr()) {
            replace(0);
        }
        Ok(())
    }

    fn cuDevicePrimaryCtxRetain(pctx: Ptr, dev: i32) {
        let mut world = world();
        let (context, count) = match world.primary.get(&dev) {
            Some(there) => *there,
            None => (create(&mut world, 0, dev), 0),
        };
        world.primary.insert(dev, (context, count + 1));
        put(pctx, pointer(context))
    }

    fn cuDevicePrimaryCtxRelease_v2(dev: i32) {
        let mut held = world();
        let (context, count) = *held.primary.get(&dev).ok_or(result::INVALID_CONTEXT)?;
        if count > 1 {
            held.primary.insert(dev, (context, count - 1));
            return Ok(());
        }
        held.primary.remove(&dev);
        drop(held);
        destroy(context)
    }

    fn cuDevicePrimaryCtxReset_v2(dev: i32) {
        let primary = world().primary.remove(&dev);
        primary.map_or(Ok(()), |(context, _)| destroy(context))
    }

    fn cuDevicePrimaryCtxGetState(dev: i32, flags: Ptr, active: Ptr) {
        put(flags, 0_u32)?;
        put(active, i32::from(world().primary.contains_key(&dev)))
    }

    fn cuDevicePrimaryCtxSetFlags_v2(dev: i32, flags: u32) {
        let _unused = (dev, flags);
        Ok(())
    }

    fn cuCtxGetCurrent(pctx: Ptr) { put(pctx, pointer(current().unwrap_or(0))) }

    fn cuCtxSetCurrent(ctx: Ptr) {
        if !ctx.is_null() {
            world().contexts.get(ctx.addr()).map_err(|_gone| result::INVALID_CONTEXT)?;
        }
        replace(ctx.addr());
        Ok(())
    }

    fn cuCtxPushCurrent_v2(ctx: Ptr) {
        world().contexts.get(ctx.addr()).map_err(|_gone| result::INVALID_CONTEXT)?;
        push(ctx.addr());
        Ok(())
    }

    fn cuCtxPopCurrent_v2(pctx: Ptr) {
        let context = current().ok_or(result::INVALID_CONTEXT)?;
        STACK.with_borrow_mut(Vec::pop);
        if pctx.is_null() { Ok(()) } else { put(pctx, pointer(context)) }
    }

    fn cuCtxGetDevice(device: Ptr) {
        let mut world = world();
        let context = present(&mut world)?;
        put(device, world.contexts.get(context)?.device)
    }

    fn cuCtxGetFlags(flags: Ptr) {
        let mut world = world();
        let context = present(&mut world)?;
        put(flags, world.contexts.get(context)?.flags)
    }

    fn cuCtxGetApiVersion(ctx: Ptr, version: Ptr) {
        let _unused = ctx;
        put(version, 3020_u32)
    }

    fn cuCtxSynchronize() {
        let context = present(&mut world())?;
        finish_context(context)
    }

    fn cuCtxSynchronize_v2(ctx: Ptr) {
        let context = if ctx.is_null() { present(&mut world())? } else { ctx.addr() };
        finish_context(context)
    }
}
