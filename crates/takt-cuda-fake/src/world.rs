//! Everything that has a handle, under one lock.

use std::collections::{BTreeMap, HashMap};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

use takt_cuda_api::{Ptr, result, stream};

use crate::capture::Capture;
use crate::context::Context;
use crate::event::Event;
use crate::graph::{Exec, Graph};
use crate::memory::Memory;
use crate::module::{Function, Module};
use crate::queue::Queue;

/// All handles.
pub(crate) struct World {
    pub(crate) contexts: Table<Context>,
    pub(crate) streams: Table<Queue>,
    pub(crate) events: Table<Event>,
    pub(crate) modules: Table<Module>,
    pub(crate) functions: Table<Function>,
    pub(crate) graphs: Table<Graph>,
    pub(crate) execs: Table<Exec>,
    /// Captures under way, by number.
    pub(crate) captures: BTreeMap<u64, Capture>,
    /// Numbers that are given once.
    tickets: u64,
    /// Memory that the driver knows: by where it begins.
    pub(crate) memory: BTreeMap<u64, Memory>,
    /// Default streams of threads, by context.
    pub(crate) of_threads: HashMap<(u64, usize), usize>,
    /// The primary contexts of devices, with how often they are retained.
    pub(crate) primary: HashMap<i32, (usize, u32)>,
}

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| {
    Mutex::new(World {
        contexts: Table::new(0x1),
        streams: Table::new(0x2),
        events: Table::new(0x3),
        modules: Table::new(0x4),
        functions: Table::new(0x5),
        graphs: Table::new(0x6),
        execs: Table::new(0x7),
        captures: BTreeMap::new(),
        tickets: 0,
        memory: BTreeMap::new(),
        of_threads: HashMap::new(),
        primary: HashMap::new(),
    })
});

impl World {
    /// A number that no other thing has.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }
}

/// Something was executed, or there is something to execute.
pub(crate) static CHANGED: Condvar = Condvar::new();

/// The process that called `cuInit`.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Takes the lock.
pub(crate) fn world() -> MutexGuard<'static, World> {
    WORLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a change.
pub(crate) fn wait(world: MutexGuard<'static, World>) -> MutexGuard<'static, World> {
    CHANGED.wait(world).unwrap_or_else(PoisonError::into_inner)
}

/// `cuInit` was called.
pub(crate) fn begin() {
    PROCESS.store(process::id(), Ordering::Relaxed);
}

/// Whether `cuInit` was called in this process: a copy of it has none of its threads.
pub(crate) fn alive() -> crate::Answer {
    match PROCESS.load(Ordering::Relaxed) {
        begun if begun == process::id() => Ok(()),
        _ => Err(result::NOT_INITIALIZED),
    }
}

/// Which default stream a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Home {
    Legacy,
    Thread,
}

impl Home {
    /// The default stream that a handle means; none if it is a stream of its own.
    pub(crate) fn of(self, handle: usize) -> Option<Self> {
        match handle {
            stream::DEFAULT => Some(self),
            stream::LEGACY => Some(Self::Legacy),
            stream::PER_THREAD => Some(Self::Thread),
            _ => None,
        }
    }
}

/// Things by handle. A handle that was released is given out again at once, as drivers do.
pub(crate) struct Table<T> {
    kind: usize,
    free: Vec<usize>,
    made: usize,
    things: HashMap<usize, T>,
}

impl<T> Table<T> {
    fn new(kind: usize) -> Self {
        Self { kind, free: Vec::new(), made: 0, things: HashMap::new() }
    }

    pub(crate) fn add(&mut self, thing: T) -> usize {
        let handle = self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            (self.kind << 40) + self.made * 64
        });
        self.things.insert(handle, thing);
        handle
    }

    pub(crate) fn get(&mut self, handle: usize) -> Result<&mut T, i32> {
        self.things.get_mut(&handle).ok_or(result::INVALID_HANDLE)
    }

    pub(crate) fn remove(&mut self, handle: usize) -> Result<T, i32> {
        let thing = self.things.remove(&handle).ok_or(result::INVALID_HANDLE)?;
        self.free.push(handle);
        Ok(thing)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &T)> {
        self.things.iter().map(|(handle, thing)| (*handle, thing))
    }
}

/// A handle as programs have it.
pub(crate) fn pointer(handle: usize) -> Ptr {
    std::ptr::without_provenance_mut(handle)
}
