//! What each hooked call is.
//!
//! A call is told by its entry point and by the words of its arguments. All of this is known when the library is
//! compiled, so that nothing is looked up in a call.

#[cfg(test)]
mod passing;

use takt_cuda_api::Id;

/// What a call is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// It gives the GPU work and returns.
    Work(Work, Target),
    /// It moves so many bytes and returns when they are there; what came before in its stream is over then.
    Moves(Kind, Size),
    /// It waits for work.
    Waits(Whole),
    /// It asks whether work is over.
    Asks,
    /// A stream, which is an argument, waits for an event, and may become part of a capture.
    Joins,
    /// A stream waits for something that the GPU does not do, such as a number that the program writes.
    Halts,
    /// The program is told, in a thread of the driver's, when what came before in the stream of an argument is over.
    Tells(usize),
    /// A stream begins to be captured, or to be executed again.
    Captures(Capture),
    /// Something is destroyed that Takt keeps in mind.
    Ends(Thing),
    /// A graph, by what executes it, does something else from now on.
    Changes,
    /// Code of kernels is loaded, from memory or from a file.
    Loads {
        /// From which argument.
        from: usize,
        /// Whether that is memory.
        memory: bool,
    },
    /// A name is looked up, with its flags in an argument.
    Address,
    /// The program begins with CUDA.
    Begins,
}

/// What the GPU is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    /// A kernel: the function, then three dimensions of the grid and of the block, then shared memory.
    Kernel,
    /// A kernel as a structure says.
    KernelAsSaid,
    /// Kernels on several devices.
    Kernels,
    /// A kernel in one of the old ways: the function, and perhaps two dimensions.
    Grid,
    /// A graph.
    Graph,
    /// Bytes are moved.
    Moved(Kind, Size),
}

/// Between which memories bytes are moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the host to the device.
    Up,
    /// The other way.
    Down,
    /// On the device, or between devices.
    Within,
    /// Set to a value.
    Set,
    /// Not known.
    Any,
}

/// How many bytes; numbers are those of arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// So many.
    Bytes(usize),
    /// So many elements, each of so many bytes.
    Elements(usize, u64),
    /// Width and height, in elements of so many bytes.
    Area(usize, usize, u64),
    /// As a structure for rows says.
    Rows(usize),
    /// As a structure for a box says.
    Box(usize),
    /// One operation with a box.
    BoxOperation(usize),
    /// A list of numbers of bytes, and its length.
    List(usize, usize),
    /// A list of operations with boxes; its length, and where it is.
    Boxes(usize, usize),
    /// A list of decompressions, and its length.
    Decompressions(usize, usize),
    /// Not told.
    Unknown,
}

/// Into which stream work goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// That of an argument.
    Argument(usize),
    /// That which a structure in the first argument names.
    AsSaid,
    /// The default stream.
    Default,
}

/// What is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whole {
    /// A stream or an event.
    Part,
    /// Everything of the context.
    All,
    /// Memory that work may use.
    Memory,
}

/// How captures begin and end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Capture {
    /// One begins.
    Begin,
    /// One ends.
    End,
}

/// What may be destroyed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Thing {
    /// A stream.
    Stream,
    /// A context.
    Context,
    /// The primary context of a device.
    Device,
    /// A module or library with its kernels.
    Code,
    /// A graph that could be launched.
    Graph,
}

/// Whether the default stream of an entry point is that of the thread.
pub const fn is_thread(id: Id) -> bool {
    let name = takt_cuda_api::NAMES[id as usize].as_bytes();
    let [.., mark, p, t, _, _] = name else { return false };
    *mark == b'_' && *p == b'p' && *t == b't'
}

impl Class {
    /// What a call of this entry point is; none if it is not hooked.
    pub const fn of(id: Id) -> Option<Self> {
        let parts = [moved_at_once(id), moved(id), moved_in_lists(id), set(id), launched(id), waited(id)];
        let mut at = 0;
        while at < parts.len() {
            if parts[at].is_some() {
                return parts[at];
            }
            at += 1;
        }
        kept(id)
    }

    const fn moving(kind: Kind, size: Size, target: Target) -> Option<Self> {
        Some(Self::Work(Work::Moved(kind, size), target))
    }
}

/// Copies without a stream.
const fn moved_at_once(id: Id) -> Option<Class> {
    let (kind, size) = match id {
        Id::cuMemcpy | Id::cuMemcpy_ptds => (Kind::Any, Size::Bytes(2)),
        Id::cuMemcpyHtoD_v2 | Id::cuMemcpyHtoD_v2_ptds => (Kind::Up, Size::Bytes(2)),
        Id::cuMemcpyDtoH_v2 | Id::cuMemcpyDtoH_v2_ptds => (Kind::Down, Size::Bytes(2)),
        Id::cuMemcpyHtoA_v2 | Id::cuMemcpyHtoA_v2_ptds => (Kind::Up, Size::Bytes(3)),
        Id::cuMemcpyAtoH_v2 | Id::cuMemcpyAtoH_v2_ptds => (Kind::Down, Size::Bytes(3)),
        Id::cuMemcpy2D_v2
        | Id::cuMemcpy2D_v2_ptds
        | Id::cuMemcpy2DUnaligned_v2
        | Id::cuMemcpy2DUnaligned_v2_ptds => (Kind::Any, Size::Rows(0)),
        Id::cuMemcpy3D_v2 | Id::cuMemcpy3D_v2_ptds => (Kind::Any, Size::Box(0)),
        // These return before they are done.
        Id::cuMemcpyDtoD_v2 | Id::cuMemcpyDtoD_v2_ptds => return within(Size::Bytes(2)),
        Id::cuMemcpyAtoD_v2 | Id::cuMemcpyAtoD_v2_ptds => return within(Size::Bytes(3)),
        Id::cuMemcpyDtoA_v2 | Id::cuMemcpyDtoA_v2_ptds => return within(Size::Bytes(3)),
        Id::cuMemcpyAtoA_v2 | Id::cuMemcpyAtoA_v2_ptds => return within(Size::Bytes(4)),
        Id::cuMemcpyPeer | Id::cuMemcpyPeer_ptds => return within(Size::Bytes(4)),
        Id::cuMemcpy3DPeer | Id::cuMemcpy3DPeer_ptds => return within(Size::Box(0)),
        _ => return None,
    };
    Some(Class::Moves(kind, size))
}

const fn within(size: Size) -> Option<Class> {
    Class::moving(Kind::Within, size, Target::Default)
}

/// Copies into a stream, and prefetches.
const fn moved(id: Id) -> Option<Class> {
    let (kind, size, stream) = match id {
        Id::cuMemcpyAsync | Id::cuMemcpyAsync_ptsz => (Kind::Any, Size::Bytes(2), 3),
        Id::cuMemcpyHtoDAsync_v2 | Id::cuMemcpyHtoDAsync_v2_ptsz => (Kind::Up, Size::Bytes(2), 3),
        Id::cuMemcpyDtoHAsync_v2 | Id::cuMemcpyDtoHAsync_v2_ptsz => (Kind::Down, Size::Bytes(2), 3),
        Id::cuMemcpyDtoDAsync_v2 | Id::cuMemcpyDtoDAsync_v2_ptsz => (Kind::Within, Size::Bytes(2), 3),
        Id::cuMemcpyHtoAAsync_v2 | Id::cuMemcpyHtoAAsync_v2_ptsz => (Kind::Up, Size::Bytes(3), 4),
        Id::cuMemcpyAtoHAsync_v2 | Id::cuMemcpyAtoHAsync_v2_ptsz => (Kind::Down, Size::Bytes(3), 4),
        Id::cuMemcpyWithAttributesAsync | Id::cuMemcpyWithAttributesAsync_ptsz => {
            (Kind::Any, Size::Bytes(2), 4)
        }
        Id::cuMemcpy2DAsync_v2 | Id::cuMemcpy2DAsync_v2_ptsz => (Kind::Any, Size::Rows(0), 1),
        Id::cuMemcpy3DAsync_v2 | Id::cuMemcpy3DAsync_v2_ptsz => (Kind::Any, Size::Box(0), 1),
        Id::cuMemcpy3DWithAttributesAsync | Id::cuMemcpy3DWithAttributesAsync_ptsz => {
            (Kind::Any, Size::BoxOperation(0), 2)
        }
        Id::cuMemcpyPeerAsync | Id::cuMemcpyPeerAsync_ptsz => (Kind::Within, Size::Bytes(4), 5),
        Id::cuMemcpy3DPeerAsync | Id::cuMemcpy3DPeerAsync_ptsz => (Kind::Within, Size::Box(0), 1),
        Id::cuMemPrefetchAsync | Id::cuMemPrefetchAsync_ptsz => (Kind::Any, Size::Bytes(1), 3),
        Id::cuMemPrefetchAsync_v2 | Id::cuMemPrefetchAsync_v2_ptsz => (Kind::Any, Size::Bytes(1), 4),
        Id::cuGraphUpload | Id::cuGraphUpload_ptsz => (Kind::Up, Size::Unknown, 1),
        _ => return None,
    };
    Class::moving(kind, size, Target::Argument(stream))
}

/// Several copies at once.
const fn moved_in_lists(id: Id) -> Option<Class> {
    let (size, stream) = match id {
        Id::cuMemcpyBatchAsync | Id::cuMemcpyBatchAsync_ptsz => (Size::List(2, 3), 8),
        Id::cuMemcpyBatchAsync_v2 | Id::cuMemcpyBatchAsync_v2_ptsz => (Size::List(2, 3), 7),
        Id::cuMemcpy3DBatchAsync | Id::cuMemcpy3DBatchAsync_ptsz => (Size::Boxes(0, 1), 4),
        Id::cuMemcpy3DBatchAsync_v2 | Id::cuMemcpy3DBatchAsync_v2_ptsz => (Size::Boxes(0, 1), 3),
        Id::cuMemPrefetchBatchAsync
        | Id::cuMemPrefetchBatchAsync_ptsz
        | Id::cuMemDiscardAndPrefetchBatchAsync
        | Id::cuMemDiscardAndPrefetchBatchAsync_ptsz => (Size::List(1, 2), 7),
        Id::cuMemBatchDecompressAsync | Id::cuMemBatchDecompressAsync_ptsz => (Size::Decompressions(0, 1), 4),
        _ => return None,
    };
    Class::moving(Kind::Any, size, Target::Argument(stream))
}

/// Memsets. Those without a stream return before they are done, too.
const fn set(id: Id) -> Option<Class> {
    let (size, target) = match id {
        Id::cuMemsetD8_v2 | Id::cuMemsetD8_v2_ptds => (Size::Elements(2, 1), Target::Default),
        Id::cuMemsetD16_v2 | Id::cuMemsetD16_v2_ptds => (Size::Elements(2, 2), Target::Default),
        Id::cuMemsetD32_v2 | Id::cuMemsetD32_v2_ptds => (Size::Elements(2, 4), Target::Default),
        Id::cuMemsetD2D8_v2 | Id::cuMemsetD2D8_v2_ptds => (Size::Area(3, 4, 1), Target::Default),
        Id::cuMemsetD2D16_v2 | Id::cuMemsetD2D16_v2_ptds => (Size::Area(3, 4, 2), Target::Default),
        Id::cuMemsetD2D32_v2 | Id::cuMemsetD2D32_v2_ptds => (Size::Area(3, 4, 4), Target::Default),
        Id::cuMemsetD8Async | Id::cuMemsetD8Async_ptsz => (Size::Elements(2, 1), Target::Argument(3)),
        Id::cuMemsetD16Async | Id::cuMemsetD16Async_ptsz => (Size::Elements(2, 2), Target::Argument(3)),
        Id::cuMemsetD32Async | Id::cuMemsetD32Async_ptsz => (Size::Elements(2, 4), Target::Argument(3)),
        Id::cuMemsetD2D8Async | Id::cuMemsetD2D8Async_ptsz => (Size::Area(3, 4, 1), Target::Argument(5)),
        Id::cuMemsetD2D16Async | Id::cuMemsetD2D16Async_ptsz => (Size::Area(3, 4, 2), Target::Argument(5)),
        Id::cuMemsetD2D32Async | Id::cuMemsetD2D32Async_ptsz => (Size::Area(3, 4, 4), Target::Argument(5)),
        _ => return None,
    };
    Class::moving(Kind::Set, size, target)
}

/// Kernels and graphs.
const fn launched(id: Id) -> Option<Class> {
    let (work, target) = match id {
        Id::cuLaunchKernel
        | Id::cuLaunchKernel_ptsz
        | Id::cuLaunchCooperativeKernel
        | Id::cuLaunchCooperativeKernel_ptsz => (Work::Kernel, Target::Argument(8)),
        Id::cuLaunchKernelEx | Id::cuLaunchKernelEx_ptsz => (Work::KernelAsSaid, Target::AsSaid),
        Id::cuLaunchCooperativeKernelMultiDevice => (Work::Kernels, Target::AsSaid),
        Id::cuLaunch | Id::cuLaunchGrid => (Work::Grid, Target::Default),
        Id::cuLaunchGridAsync => (Work::Grid, Target::Argument(3)),
        Id::cuGraphLaunch | Id::cuGraphLaunch_ptsz => (Work::Graph, Target::Argument(1)),
        _ => return None,
    };
    Some(Class::Work(work, target))
}

/// What waits, asks and orders.
const fn waited(id: Id) -> Option<Class> {
    Some(match id {
        Id::cuStreamSynchronize | Id::cuStreamSynchronize_ptsz | Id::cuEventSynchronize => {
            Class::Waits(Whole::Part)
        }
        Id::cuCtxSynchronize | Id::cuCtxSynchronize_v2 => Class::Waits(Whole::All),
        Id::cuMemFree_v2
        | Id::cuMemFreeHost
        | Id::cuMemHostUnregister
        | Id::cuArrayDestroy
        | Id::cuMipmappedArrayDestroy
        | Id::cuGraphicsMapResources
        | Id::cuGraphicsMapResources_ptsz
        | Id::cuGraphicsUnmapResources
        | Id::cuGraphicsUnmapResources_ptsz => Class::Waits(Whole::Memory),
        Id::cuStreamQuery | Id::cuStreamQuery_ptsz | Id::cuEventQuery => Class::Asks,
        Id::cuStreamWaitEvent | Id::cuStreamWaitEvent_ptsz => Class::Joins,
        Id::cuStreamWaitValue32
        | Id::cuStreamWaitValue32_ptsz
        | Id::cuStreamWaitValue32_v2
        | Id::cuStreamWaitValue32_v2_ptsz
        | Id::cuStreamWaitValue64
        | Id::cuStreamWaitValue64_ptsz
        | Id::cuStreamWaitValue64_v2
        | Id::cuStreamWaitValue64_v2_ptsz
        | Id::cuStreamBatchMemOp
        | Id::cuStreamBatchMemOp_ptsz
        | Id::cuStreamBatchMemOp_v2
        | Id::cuStreamBatchMemOp_v2_ptsz
        | Id::cuWaitExternalSemaphoresAsync
        | Id::cuWaitExternalSemaphoresAsync_ptsz => Class::Halts,
        Id::cuLaunchHostFunc
        | Id::cuLaunchHostFunc_ptsz
        | Id::cuLaunchHostFunc_v2
        | Id::cuLaunchHostFunc_v2_ptsz
        | Id::cuStreamAddCallback
        | Id::cuStreamAddCallback_ptsz => Class::Tells(0),
        Id::cuStreamBeginCapture
        | Id::cuStreamBeginCapture_ptsz
        | Id::cuStreamBeginCapture_v2
        | Id::cuStreamBeginCapture_v2_ptsz
        | Id::cuStreamBeginCaptureToGraph
        | Id::cuStreamBeginCaptureToGraph_ptsz
        | Id::cuStreamBeginCaptureToCig
        | Id::cuStreamBeginCaptureToCig_ptsz
        | Id::cuStreamBeginRecaptureToGraph
        | Id::cuStreamBeginRecaptureToGraph_ptsz => Class::Captures(Capture::Begin),
        Id::cuStreamEndCapture
        | Id::cuStreamEndCapture_ptsz
        | Id::cuStreamEndCaptureToCig
        | Id::cuStreamEndCaptureToCig_ptsz => Class::Captures(Capture::End),
        _ => return None,
    })
}

/// What changes what is kept in mind.
const fn kept(id: Id) -> Option<Class> {
    Some(match id {
        Id::cuStreamDestroy | Id::cuStreamDestroy_v2 => Class::Ends(Thing::Stream),
        Id::cuCtxDestroy | Id::cuCtxDestroy_v2 | Id::cuCtxDetach | Id::cuGreenCtxDestroy => {
            Class::Ends(Thing::Context)
        }
        Id::cuDevicePrimaryCtxRelease
        | Id::cuDevicePrimaryCtxRelease_v2
        | Id::cuDevicePrimaryCtxReset
        | Id::cuDevicePrimaryCtxReset_v2 => Class::Ends(Thing::Device),
        Id::cuModuleUnload | Id::cuLibraryUnload => Class::Ends(Thing::Code),
        Id::cuGraphExecDestroy => Class::Ends(Thing::Graph),
        Id::cuGraphExecUpdate
        | Id::cuGraphExecUpdate_v2
        | Id::cuGraphExecBatchMemOpNodeSetParams
        | Id::cuGraphExecChildGraphNodeSetParams
        | Id::cuGraphExecKernelNodeSetParams
        | Id::cuGraphExecKernelNodeSetParams_v2
        | Id::cuGraphExecMemcpyNodeSetParams
        | Id::cuGraphExecMemsetNodeSetParams
        | Id::cuGraphExecNodeSetParams
        | Id::cuGraphNodeSetEnabled => Class::Changes,
        Id::cuModuleLoad => Class::Loads { from: 1, memory: false },
        Id::cuLibraryLoadFromFile => Class::Loads { from: 1, memory: false },
        Id::cuModuleLoadData | Id::cuModuleLoadDataEx | Id::cuModuleLoadFatBinary | Id::cuLibraryLoadData => {
            Class::Loads { from: 1, memory: true }
        }
        Id::cuGetProcAddress | Id::cuGetProcAddress_v2 => Class::Address,
        Id::cuInit => Class::Begins,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! hooked {
        ($( $name:ident ( $($arg:ident : $ty:ty),* ) ; )*) => {
            const HOOKED: &[(Id, &[&str])] = &[$((Id::$name, &[$(stringify!($arg)),*])),*];
        };
    }
    takt_cuda_api::for_each_hook!(hooked);

    #[test]
    fn every_hook_is_of_a_class_and_nothing_else_is() {
        for id in takt_cuda_api::IDS {
            let is_hook = HOOKED.iter().any(|(other, _)| *other == id);
            assert_eq!(Class::of(id).is_some(), is_hook, "{}", id.name());
            assert_eq!(is_thread(id), id.name().contains("_pt"), "{}", id.name());
        }
    }

    /// The numbers of arguments are checked by their names, as the vendor's headers have them.
    #[test]
    fn arguments_are_what_they_are_taken_for() {
        for (id, names) in HOOKED {
            let named = |at: usize, ends: &[&str]| {
                let name = names[at].to_lowercase();
                assert!(ends.iter().any(|end| name.contains(end)), "{}: {at} is {name}", id.name());
            };
            let size = match Class::of(*id) {
                Some(Class::Work(work, target)) => {
                    if let Target::Argument(at) = target {
                        named(at, &["stream"]);
                    } else if target == Target::Default {
                        assert!(
                            !names.iter().any(|name| name.to_lowercase().contains("stream")),
                            "{}",
                            id.name()
                        );
                    }
                    match work {
                        Work::Moved(_, size) => size,
                        Work::Kernel => {
                            named(7, &["shared"]);
                            continue;
                        }
                        _ => continue,
                    }
                }
                Some(Class::Moves(_, size)) => size,
                _ => continue,
            };
            match size {
                Size::Bytes(at) => named(at, &["bytecount", "count", "size"]),
                Size::Elements(at, _) => named(at, &["n"]),
                Size::Area(width, height, _) => {
                    named(width, &["width"]);
                    named(height, &["height"]);
                }
                Size::Rows(at) | Size::Box(at) => named(at, &["pcopy"]),
                Size::BoxOperation(at) => named(at, &["op"]),
                Size::List(sizes, count) => {
                    named(sizes, &["sizes"]);
                    named(count, &["count"]);
                }
                Size::Boxes(count, list) => {
                    named(count, &["numops"]);
                    named(list, &["oplist"]);
                }
                Size::Decompressions(list, count) => {
                    named(list, &["params"]);
                    named(count, &["count"]);
                }
                Size::Unknown => {}
            }
        }
    }
}
