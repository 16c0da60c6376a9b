//! Captures: streams that are written down instead of executed.

use std::cell::Cell;

use takt_cuda_api::{Ptr, result};

use crate::context::thread;
use crate::graph::Graph;
use crate::queue::{Work, capture_status};
use crate::world::{Home, World, pointer, world};
use crate::{Answer, put};

/// A capture under way.
#[derive(Debug)]
pub(crate) struct Capture {
    mode: u32,
    thread: u64,
    origin: usize,
    streams: Vec<usize>,
    nodes: Vec<Work>,
    spoilt: bool,
    /// The graph that it goes into, if that was there before.
    into: Option<usize>,
}

/// How strictly calls are forbidden during a capture.
const GLOBAL: u32 = 0;
const RELAXED: u32 = 2;

/// A capture was ended in another stream than the one in which it began.
const UNMATCHED: i32 = 903;

/// Where a capture stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Status {
    None = 0,
    Active = 1,
    Spoilt = 2,
}

thread_local! {
    static MODE: Cell<u32> = const { Cell::new(GLOBAL) };
}

impl World {
    pub(crate) fn status(&self, number: u64) -> Status {
        match self.captures.get(&number) {
            Some(capture) if capture.spoilt => Status::Spoilt,
            Some(_) => Status::Active,
            None => Status::None,
        }
    }

    /// Something forbidden happened.
    pub(crate) fn spoil(&mut self, number: u64) {
        if let Some(capture) = self.captures.get_mut(&number) {
            capture.spoilt = true;
        }
    }

    /// Writes work down.
    pub(crate) fn note(&mut self, number: u64, work: Work) -> Answer {
        let capture = self.captures.get_mut(&number).ok_or(result::ILLEGAL_STATE)?;
        if capture.spoilt {
            return Err(result::STREAM_CAPTURE_INVALIDATED);
        }
        if !matches!(work, Work::Nothing) {
            capture.nodes.push(work);
        }
        Ok(())
    }

    /// A stream becomes part of a capture.
    pub(crate) fn joins(&mut self, stream: usize, number: u64) -> Answer {
        self.captures.get_mut(&number).ok_or(result::ILLEGAL_STATE)?.streams.push(stream);
        self.streams.get(stream)?.capture = Some(number);
        Ok(())
    }

    /// A capture in that context, if there is one.
    pub(crate) fn capture_in(&mut self, context: usize) -> Option<u64> {
        let streams = self.streams.all().filter(|(_, stream)| stream.context == context);
        let mut captured = streams.filter_map(|(_, stream)| stream.capture);
        captured.next()
    }

    /// The legacy default stream waits for all blocking ones, which a capture forbids.
    pub(crate) fn refuse_implicit(&mut self, context: usize) -> Answer {
        let streams = self.streams.all().filter(|(_, stream)| stream.context == context && stream.blocking);
        let captured: Vec<u64> = streams.filter_map(|(_, stream)| stream.capture).collect();
        captured.iter().for_each(|number| self.spoil(*number));
        if captured.is_empty() { Ok(()) } else { Err(result::STREAM_CAPTURE_IMPLICIT) }
    }

    fn begin_capture(&mut self, stream: usize, mode: u32, into: Option<usize>) -> Answer {
        let queue = self.streams.get(stream)?;
        if queue.capture.is_some() || mode > RELAXED {
            return Err(result::ILLEGAL_STATE);
        }
        let number = self.ticket();
        self.streams.get(stream)?.capture = Some(number);
        let (streams, nodes) = (vec![stream], Vec::new());
        let capture = Capture { mode, thread: thread(), origin: stream, streams, nodes, spoilt: false, into };
        self.captures.insert(number, capture);
        Ok(())
    }

    fn end_capture(&mut self, stream: usize) -> Result<usize, i32> {
        let number = self.streams.get(stream)?.capture.ok_or(result::ILLEGAL_STATE)?;
        let capture = self.captures.get(&number).ok_or(result::ILLEGAL_STATE)?;
        if capture.thread != thread() && capture.mode != RELAXED {
            return Err(result::STREAM_CAPTURE_WRONG_THREAD);
        }
        if capture.origin != stream {
            self.spoil(number);
            return Err(UNMATCHED);
        }
        let capture = self.captures.remove(&number).ok_or(result::ILLEGAL_STATE)?;
        for stream in capture.streams {
            if let Ok(queue) = self.streams.get(stream) {
                queue.capture = None;
            }
        }
        if capture.spoilt {
            return Err(result::STREAM_CAPTURE_INVALIDATED);
        }
        match capture.into {
            Some(graph) => self.graphs.get(graph)?.nodes.extend(capture.nodes),
            None => return Ok(self.graphs.add(Graph { nodes: capture.nodes })),
        }
        Ok(capture.into.unwrap_or(0))
    }
}

/// A call that may be unsafe during a capture: it is refused, and the captures that forbid it are spoilt.
pub(crate) fn guarded() -> Answer {
    let mut world = world();
    let (mode, own) = (MODE.get(), thread());
    let forbids = |capture: &Capture| match mode {
        GLOBAL => capture.mode == GLOBAL || (capture.thread == own && capture.mode != RELAXED),
        RELAXED => false,
        _ => capture.thread == own && capture.mode != RELAXED,
    };
    let mut refused = false;
    for capture in world.captures.values_mut().filter(|capture| forbids(capture)) {
        (capture.spoilt, refused) = (true, true);
    }
    if refused { Err(result::STREAM_CAPTURE_UNSUPPORTED) } else { Ok(()) }
}

api! {
    fn cuThreadExchangeStreamCaptureMode(mode: Ptr) {
        let wanted = mode.cast::<u32>().read();
        if wanted > RELAXED {
            return Err(result::INVALID_VALUE);
        }
        put(mode, MODE.replace(wanted))
    }
}

/// The stream that is to be captured: the legacy default stream cannot be.
fn capturable(world: &mut World, stream: Ptr, home: Home) -> Result<usize, i32> {
    if home.of(stream.addr()) == Some(Home::Legacy) {
        return Err(result::STREAM_CAPTURE_UNSUPPORTED);
    }
    world.stream(stream, home)
}

twins! {
    fn cuStreamBeginCapture, cuStreamBeginCapture_ptsz(home, hStream: Ptr) {
        let mut world = world();
        let stream = capturable(&mut world, hStream, home)?;
        world.begin_capture(stream, GLOBAL, None)
    }

    fn cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz(home, hStream: Ptr, mode: u32) {
        let mut world = world();
        let stream = capturable(&mut world, hStream, home)?;
        world.begin_capture(stream, mode, None)
    }

    fn cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz(
        home, hStream: Ptr, hGraph: Ptr, dependencies: Ptr, dependencyData: Ptr, numDependencies: usize, mode: u32
    ) {
        let _unused = (dependencies, dependencyData, numDependencies);
        let mut world = world();
        let stream = capturable(&mut world, hStream, home)?;
        world.graphs.get(hGraph.addr())?;
        world.begin_capture(stream, mode, Some(hGraph.addr()))
    }

    fn cuStreamEndCapture, cuStreamEndCapture_ptsz(home, hStream: Ptr, phGraph: Ptr) {
        put(phGraph, pointer(0))?;
        let mut world = world();
        let stream = capturable(&mut world, hStream, home)?;
        let graph = world.end_capture(stream)?;
        put(phGraph, pointer(graph))
    }

    fn cuStreamIsCapturing, cuStreamIsCapturing_ptsz(home, hStream: Ptr, captureStatus: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        if home.of(hStream.addr()) == Some(Home::Legacy) {
            let context = world.streams.get(stream)?.context;
            let implicit = |(_, other): (usize, &crate::queue::Queue)| {
                other.context == context && other.blocking && other.capture.is_some()
            };
            if world.streams.all().any(implicit) {
                return Err(result::STREAM_CAPTURE_IMPLICIT);
            }
        }
        put(captureStatus, capture_status(&mut world, stream)?.0)
    }

    fn cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz(
        home, hStream: Ptr, captureStatus_out: Ptr, id_out: Ptr
    ) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        let (status, number) = capture_status(&mut world, stream)?;
        put(captureStatus_out, status)?;
        if id_out.is_null() { Ok(()) } else { put(id_out, number) }
    }

    fn cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz(
        home, hStream: Ptr, captureStatus_out: Ptr, id_out: Ptr, graph_out: Ptr, dependencies_out: Ptr,
        numDependencies_out: Ptr
    ) {
        let _unused = (graph_out, dependencies_out, numDependencies_out);
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        let (status, number) = capture_status(&mut world, stream)?;
        put(captureStatus_out, status)?;
        if id_out.is_null() { Ok(()) } else { put(id_out, number) }
    }
}
