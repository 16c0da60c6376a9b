//! Streams: what waits in them, and the threads that execute it.

use std::collections::VecDeque;
use std::sync::MutexGuard;
use std::thread;
use std::time::Instant;

use takt_cuda_api::{Ptr, result};

use crate::capture::Status;
use crate::world::{CHANGED, Home, World, wait, world};
use crate::{context, gpu, kernels};

/// A stream.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) context: usize,
    /// Tells it from another one that has its handle later.
    serial: u64,
    /// It orders itself with the legacy default stream.
    pub(crate) blocking: bool,
    pub(crate) priority: i32,
    waiting: VecDeque<(Work, Vec<Place>)>,
    /// How many pieces of work were put in, and how many are over.
    put: u64,
    over: u64,
    /// The capture that it is part of.
    pub(crate) capture: Option<u64>,
    /// Its thread ends when nothing waits.
    ending: bool,
}

/// A place in a stream: everything up to it is over when so many pieces of work are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    stream: usize,
    serial: u64,
    count: u64,
}

/// What a stream executes.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    /// A kernel with its parameters.
    Kernel {
        kernel: kernels::Kernel,
        parameters: Vec<u64>,
        name: String,
    },
    /// Rows of bytes from one place to another.
    Copy {
        to: u64,
        from: u64,
        rows: Rows,
    },
    /// Rows of one value.
    Set {
        to: u64,
        value: Vec<u8>,
        rows: Rows,
    },
    /// A function of the program.
    Host {
        function: usize,
        data: usize,
    },
    /// The same with an older signature.
    Callback {
        function: usize,
        data: usize,
        stream: usize,
    },
    /// An event happens.
    Record {
        event: usize,
        ticket: u64,
    },
    /// A number in memory is waited for, or written.
    Await {
        at: u64,
        value: u64,
        wide: bool,
    },
    Write {
        at: u64,
        value: u64,
        wide: bool,
    },
    /// Work of a graph, one after the other.
    Graph(Vec<Self>),
    Nothing,
}

/// Rows in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows {
    pub(crate) bytes: usize,
    pub(crate) count: usize,
    pub(crate) to_pitch: usize,
    pub(crate) from_pitch: usize,
}

impl Rows {
    pub(crate) fn one(bytes: usize) -> Self {
        Self { bytes, count: 1, to_pitch: bytes, from_pitch: bytes }
    }
}

impl Queue {
    pub(crate) fn is_idle(&self) -> bool {
        self.over >= self.put
    }

    pub(crate) fn last(&self, stream: usize) -> Place {
        Place { stream, serial: self.serial, count: self.put }
    }
}

impl World {
    /// A new stream with its thread.
    pub(crate) fn make_stream(&mut self, context: usize, blocking: bool, priority: i32) -> usize {
        let queue = Queue {
            context,
            serial: self.ticket(),
            blocking,
            priority,
            waiting: VecDeque::new(),
            put: 0,
            over: 0,
            capture: None,
            ending: false,
        };
        let handle = self.streams.add(queue);
        let body = move || execute(handle);
        let started = thread::Builder::new().name("fake-stream".to_owned()).spawn(body);
        started.expect("a test has room for a thread");
        handle
    }

    /// The stream that a handle means in this thread.
    pub(crate) fn stream(&mut self, handle: Ptr, home: Home) -> Result<usize, i32> {
        let handle = handle.addr();
        match home.of(handle) {
            None => self.streams.get(handle).map(|_| handle),
            Some(home) => {
                let context = context::current().ok_or(result::INVALID_CONTEXT)?;
                self.default_stream(context, home)
            }
        }
    }

    fn default_stream(&mut self, context: usize, home: Home) -> Result<usize, i32> {
        let thread = if home == Home::Legacy { 0 } else { context::thread() };
        if let Some(stream) = self.of_threads.get(&(thread, context)) {
            return Ok(*stream);
        }
        self.contexts.get(context)?;
        let stream = self.make_stream(context, home == Home::Thread, 0);
        self.of_threads.insert((thread, context), stream);
        Ok(stream)
    }

    fn is_legacy(&self, stream: usize, context: usize) -> bool {
        self.of_threads.get(&(0, context)) == Some(&stream)
    }

    /// Puts work into a stream; into its graph, if it is being captured.
    pub(crate) fn put(&mut self, stream: usize, work: Work) -> crate::Answer {
        self.put_after(stream, work, Vec::new())
    }

    /// The same for work that waits for other streams.
    pub(crate) fn put_after(&mut self, stream: usize, work: Work, mut after: Vec<Place>) -> crate::Answer {
        let (context, blocking, capture) = {
            let queue = self.streams.get(stream)?;
            (queue.context, queue.blocking, queue.capture)
        };
        if let Some(number) = capture {
            return self.note(number, work);
        }
        let legacy = self.is_legacy(stream, context);
        if legacy {
            self.refuse_implicit(context)?;
            let others = self.streams.all().filter(|(_, other)| other.context == context && other.blocking);
            after.extend(others.map(|(handle, other)| other.last(handle)));
        } else if blocking && let Some(legacy) = self.of_threads.get(&(0, context)).copied() {
            let last = self.streams.get(legacy)?.last(legacy);
            after.push(last);
        }
        let queue = self.streams.get(stream)?;
        queue.waiting.push_back((work, after));
        queue.put += 1;
        CHANGED.notify_all();
        Ok(())
    }

    /// Whether everything up to that place is over; so it is in a stream that is gone.
    pub(crate) fn is_over(&mut self, place: Place) -> bool {
        let is_over = |queue: &mut Queue| queue.serial != place.serial || queue.over >= place.count;
        self.streams.get(place.stream).map_or(true, is_over)
    }

    /// What the next work of a stream is, if it can be done now; an error when the stream ends.
    fn next(&mut self, stream: usize) -> Result<Option<Work>, i32> {
        let queue = self.streams.get(stream)?;
        let Some((_, after)) = queue.waiting.front() else {
            return if queue.ending { Err(result::SUCCESS) } else { Ok(None) };
        };
        let after = after.clone();
        if !after.iter().all(|place| self.is_over(*place)) {
            return Ok(None);
        }
        Ok(self.streams.get(stream)?.waiting.pop_front().map(|(work, _)| work))
    }

    /// The stream ends when it is empty; its handle is free then.
    pub(crate) fn end_stream(&mut self, stream: usize) -> crate::Answer {
        self.streams.get(stream)?.ending = true;
        self.of_threads.retain(|_, other| *other != stream);
        CHANGED.notify_all();
        Ok(())
    }
}

/// Waits until everything up to these places is over.
pub(crate) fn finish(mut world: MutexGuard<'static, World>, places: &[Place]) {
    while !places.iter().all(|place| world.is_over(*place)) {
        world = wait(world);
    }
}

/// Whether a stream may be waited for or asked: not while it is captured.
pub(crate) fn uncaptured(world: &mut World, stream: usize) -> crate::Answer {
    match world.streams.get(stream)?.capture {
        None => Ok(()),
        Some(number) => {
            world.spoil(number);
            Err(result::STREAM_CAPTURE_UNSUPPORTED)
        }
    }
}

/// The life of a stream's thread.
fn execute(stream: usize) {
    gpu::sleep_exactly();
    let mut held = world();
    loop {
        match held.next(stream) {
            Ok(Some(work)) => {
                drop(held);
                perform(&work);
                held = world();
                if let Ok(queue) = held.streams.get(stream) {
                    queue.over += 1;
                }
                CHANGED.notify_all();
            }
            Ok(None) => held = wait(held),
            Err(_) => {
                // Handles of streams that are gone are free only now, when no work names them any more.
                let _gone = held.streams.remove(stream);
                CHANGED.notify_all();
                return;
            }
        }
    }
}

/// Memory of the program, so many bytes behind an address.
fn at(address: u64, offset: usize) -> *mut u8 {
    (address as *mut u8).wrapping_add(offset)
}

fn perform(work: &Work) {
    match work {
        Work::Kernel { kernel, parameters, name } => {
            gpu::log(name);
            kernels::run(*kernel, parameters);
        }
        Work::Copy { to, from, rows } => {
            gpu::copy(rows.bytes * rows.count);
            for row in 0..rows.count {
                let (to, from) = (at(*to, row * rows.to_pitch), at(*from, row * rows.from_pitch));
                // SAFETY: the program says that both places have so many bytes.
                unsafe { std::ptr::copy(from, to, rows.bytes) };
            }
        }
        Work::Set { to, value, rows } => {
            gpu::copy(rows.bytes * rows.count);
            for row in 0..rows.count {
                for (index, byte) in value.iter().cycle().take(rows.bytes).enumerate() {
                    // SAFETY: the program says that there are so many bytes.
                    unsafe { at(*to, row * rows.to_pitch + index).write(*byte) };
                }
            }
        }
        Work::Host { function, data } => {
            // SAFETY: the program gave a function of this signature.
            let call: unsafe extern "C" fn(usize) = unsafe { std::mem::transmute(*function) };
            // SAFETY: up to the program.
            unsafe { call(*data) };
        }
        Work::Callback { function, data, stream } => {
            // SAFETY: the program gave a function of this signature.
            let call: unsafe extern "C" fn(usize, i32, usize) = unsafe { std::mem::transmute(*function) };
            // SAFETY: up to the program.
            unsafe { call(*stream, result::SUCCESS, *data) };
        }
        Work::Record { event, ticket } => {
            if let Ok(event) = world().events.get(*event) {
                event.happened(*ticket, Instant::now());
            }
        }
        Work::Await { at, value, wide } => {
            while kernels::load(*at, *wide) < *value {
                gpu::nap();
            }
        }
        Work::Write { at, value, wide } => kernels::store(*at, *value, *wide),
        Work::Graph(parts) => parts.iter().for_each(perform),
        Work::Nothing => {}
    }
}

/// Where a stream's capture stands.
pub(crate) fn capture_status(world: &mut World, stream: usize) -> Result<(Status, u64), i32> {
    let capture = world.streams.get(stream)?.capture;
    Ok(capture.map_or((Status::None, 0), |number| (world.status(number), number)))
}
