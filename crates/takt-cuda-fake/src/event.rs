//! Events.

use std::time::Instant;

use takt_cuda_api::{Ptr, result};

use crate::capture::guarded;
use crate::context::present;
use crate::put;
use crate::queue::{Place, Work, finish};
use crate::world::{World, pointer, world};

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) context: usize,
    timed: bool,
    /// Where it was recorded last.
    place: Vec<Place>,
    /// The number of that recording, and of the last one that happened.
    recorded: u64,
    happened: u64,
    at: Option<Instant>,
    /// The capture that it was recorded in.
    captured: Option<u64>,
}

const DISABLE_TIMING: u32 = 2;

/// An event of a capture was used outside of it.
const CAPTURED_EVENT: i32 = 907;

impl Event {
    /// That recording happened.
    pub(crate) fn happened(&mut self, ticket: u64, at: Instant) {
        if ticket >= self.happened {
            (self.happened, self.at) = (ticket, Some(at));
        }
    }

    fn is_over(&self) -> bool {
        self.happened >= self.recorded
    }

    fn outside(&self) -> crate::Answer {
        if self.captured.is_some() { Err(CAPTURED_EVENT) } else { Ok(()) }
    }
}

impl World {
    /// Records an event in a stream.
    pub(crate) fn record(&mut self, event: usize, stream: usize) -> crate::Answer {
        let context = self.streams.get(stream)?.context;
        if self.events.get(event)?.context != context {
            return Err(result::INVALID_HANDLE);
        }
        let (ticket, capture) = (self.ticket(), self.streams.get(stream)?.capture);
        self.put(stream, if capture.is_some() { Work::Nothing } else { Work::Record { event, ticket } })?;
        let last = self.streams.get(stream)?.last(stream);
        let event = self.events.get(event)?;
        event.captured = capture;
        if capture.is_none() {
            (event.place, event.recorded) = (vec![last], ticket);
        }
        Ok(())
    }

    /// A stream waits for an event; for one of a capture, it becomes part of that.
    pub(crate) fn wait_for(&mut self, stream: usize, event: usize) -> crate::Answer {
        let event = self.events.get(event)?;
        let (place, captured) = (event.place.clone(), event.captured);
        match (captured, self.streams.get(stream)?.capture) {
            (Some(number), None) => self.joins(stream, number),
            (Some(_), Some(_)) | (None, Some(_)) => self.put(stream, Work::Nothing),
            (None, None) => self.put_after(stream, Work::Nothing, place),
        }
    }
}

api! {
    fn cuEventCreate(phEvent: Ptr, Flags: u32) {
        let mut world = world();
        let context = present(&mut world)?;
        let timed = Flags & DISABLE_TIMING == 0;
        let (place, at) = (Vec::new(), None);
        let event = Event { context, timed, place, recorded: 0, happened: 0, at, captured: None };
        let handle = world.events.add(event);
        put(phEvent, pointer(handle))
    }

    fn cuEventDestroy_v2(hEvent: Ptr) { world().events.remove(hEvent.addr()).map(drop) }

    fn cuEventQuery(hEvent: Ptr) {
        guarded()?;
        let mut world = world();
        let event = world.events.get(hEvent.addr())?;
        event.outside()?;
        if event.is_over() { Ok(()) } else { Err(result::NOT_READY) }
    }

    fn cuEventSynchronize(hEvent: Ptr) {
        guarded()?;
        let mut world = world();
        let event = world.events.get(hEvent.addr())?;
        event.outside()?;
        let place = event.place.clone();
        finish(world, &place);
        Ok(())
    }

    fn cuEventElapsedTime(pMilliseconds: Ptr, hStart: Ptr, hEnd: Ptr) { elapsed(pMilliseconds, hStart, hEnd) }

    fn cuEventElapsedTime_v2(pMilliseconds: Ptr, hStart: Ptr, hEnd: Ptr) { elapsed(pMilliseconds, hStart, hEnd) }

    fn cuCtxRecordEvent(hCtx: Ptr, hEvent: Ptr) {
        let mut world = world();
        let context = if hCtx.is_null() { present(&mut world)? } else { hCtx.addr() };
        if world.capture_in(context).is_some() {
            return Err(result::STREAM_CAPTURE_UNSUPPORTED);
        }
        let of_context = world.streams.all().filter(|(_, stream)| stream.context == context);
        let all: Vec<Place> = of_context.map(|(handle, stream)| stream.last(handle)).collect();
        let helper = world.make_stream(context, false, 0);
        let ticket = world.ticket();
        world.put_after(helper, Work::Record { event: hEvent.addr(), ticket }, all.clone())?;
        let event = world.events.get(hEvent.addr())?;
        (event.place, event.recorded, event.captured) = (all, ticket, None);
        world.end_stream(helper)
    }
}

unsafe fn elapsed(to: Ptr, start: Ptr, end: Ptr) -> crate::Answer {
    let mut world = world();
    let mut time = |handle: Ptr| {
        let event = world.events.get(handle.addr())?;
        event.outside()?;
        match event.at {
            Some(at) if event.timed && event.is_over() => Ok(at),
            _ if event.timed && event.recorded > 0 => Err(result::NOT_READY),
            _ => Err(result::INVALID_HANDLE),
        }
    };
    let (start, end) = (time(start)?, time(end)?);
    let after = end.saturating_duration_since(start).as_secs_f32();
    let before = start.saturating_duration_since(end).as_secs_f32();
    // SAFETY: up to the caller.
    unsafe { put(to, (after - before) * 1000.0) }
}

twins! {
    fn cuEventRecord, cuEventRecord_ptsz(home, hEvent: Ptr, hStream: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        world.record(hEvent.addr(), stream)
    }

    fn cuEventRecordWithFlags, cuEventRecordWithFlags_ptsz(home, hEvent: Ptr, hStream: Ptr, flags: u32) {
        let _unused = flags;
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        world.record(hEvent.addr(), stream)
    }

    fn cuStreamWaitEvent, cuStreamWaitEvent_ptsz(home, hStream: Ptr, hEvent: Ptr, Flags: u32) {
        let _unused = Flags;
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        world.wait_for(stream, hEvent.addr())
    }
}
