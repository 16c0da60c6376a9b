//! Graphs: work that is launched as one.

use takt_cuda_api::{Ptr, result};

use crate::launch::{self, Shape};
use crate::queue::Work;
use crate::world::{pointer, world};
use crate::{put, witness};

/// A graph; its nodes are executed one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    pub(crate) nodes: Vec<Work>,
}

/// A graph that can be launched.
#[derive(Debug)]
pub(crate) struct Exec {
    nodes: Vec<Work>,
}

/// What a node launches (`CUDA_KERNEL_NODE_PARAMS_v2`).
#[repr(C)]
struct KernelNode {
    function: Ptr,
    grid: [u32; 3],
    block: [u32; 3],
    shared: u32,
    parameters: Ptr,
    extra: Ptr,
    kernel: Ptr,
    context: Ptr,
}

/// Handles of nodes are multiples of it, from the first one on.
const NODE: usize = 64;

unsafe fn kernel(parameters: Ptr) -> Result<Work, i32> {
    // SAFETY: up to the caller.
    let node = unsafe { &*parameters.cast::<KernelNode>() };
    let function = if node.function.is_null() { node.kernel } else { node.function };
    let shape = Shape { grid: node.grid, block: node.block };
    // SAFETY: up to the caller.
    unsafe { launch::prepared(function, shape, node.parameters, node.extra) }
}

fn instantiate(graph: Ptr) -> Result<Ptr, i32> {
    let mut world = world();
    let nodes = world.graphs.get(graph.addr())?.nodes.clone();
    Ok(pointer(world.execs.add(Exec { nodes })))
}

api! {
    fn cuGraphCreate(phGraph: Ptr, flags: u32) {
        let _unused = flags;
        put(phGraph, pointer(world().graphs.add(Graph { nodes: Vec::new() })))
    }

    fn cuGraphDestroy(hGraph: Ptr) { world().graphs.remove(hGraph.addr()).map(drop) }

    fn cuGraphClone(phGraphClone: Ptr, originalGraph: Ptr) {
        let mut world = world();
        let graph = world.graphs.get(originalGraph.addr())?.clone();
        put(phGraphClone, pointer(world.graphs.add(graph)))
    }

    fn cuGraphGetNodes(hGraph: Ptr, nodes: Ptr, numNodes: Ptr) {
        let _unused = nodes;
        let count = world().graphs.get(hGraph.addr())?.nodes.len();
        put(numNodes, count)
    }

    fn cuGraphAddKernelNode_v2(
        phGraphNode: Ptr, hGraph: Ptr, dependencies: Ptr, numDependencies: usize, nodeParams: Ptr
    ) {
        let _unused = (dependencies, numDependencies);
        let work = kernel(nodeParams)?;
        let mut world = world();
        let nodes = &mut world.graphs.get(hGraph.addr())?.nodes;
        nodes.push(work);
        put(phGraphNode, pointer(nodes.len() * NODE))
    }

    fn cuGraphInstantiateWithFlags(phGraphExec: Ptr, hGraph: Ptr, flags: u64) {
        let _unused = flags;
        put(phGraphExec, instantiate(hGraph)?)
    }

    fn cuGraphInstantiate_v2(phGraphExec: Ptr, hGraph: Ptr, phErrorNode: Ptr, logBuffer: Ptr, bufferSize: usize) {
        let _unused = (phErrorNode, logBuffer, bufferSize);
        put(phGraphExec, instantiate(hGraph)?)
    }

    fn cuGraphExecUpdate_v2(hGraphExec: Ptr, hGraph: Ptr, resultInfo: Ptr) {
        let _unused = resultInfo;
        let mut world = world();
        let nodes = world.graphs.get(hGraph.addr())?.nodes.clone();
        let exec = world.execs.get(hGraphExec.addr())?;
        if exec.nodes.len() != nodes.len() {
            return Err(UPDATE_FAILED);
        }
        exec.nodes = nodes;
        Ok(())
    }

    fn cuGraphExecKernelNodeSetParams_v2(hGraphExec: Ptr, hNode: Ptr, nodeParams: Ptr) {
        let work = kernel(nodeParams)?;
        let mut world = world();
        let exec = world.execs.get(hGraphExec.addr())?;
        *exec.nodes.get_mut((hNode.addr() / NODE).wrapping_sub(1)).ok_or(result::INVALID_HANDLE)? = work;
        Ok(())
    }

    fn cuGraphExecDestroy(hGraphExec: Ptr) { world().execs.remove(hGraphExec.addr()).map(drop) }
}

/// A graph of another shape cannot replace one that was instantiated.
const UPDATE_FAILED: i32 = 910;

twins! {
    fn cuGraphInstantiateWithParams, cuGraphInstantiateWithParams_ptsz(
        home, phGraphExec: Ptr, hGraph: Ptr, instantiateParams: Ptr
    ) {
        let _unused = (home, instantiateParams);
        put(phGraphExec, instantiate(hGraph)?)
    }

    fn cuGraphLaunch, cuGraphLaunch_ptsz(home, hGraphExec: Ptr, hStream: Ptr) {
        witness::tell(c"cuGraphLaunch");
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        if world.streams.get(stream)?.capture.is_some() {
            return Err(result::STREAM_CAPTURE_UNSUPPORTED);
        }
        let nodes = world.execs.get(hGraphExec.addr())?.nodes.clone();
        world.put(stream, Work::Graph(nodes))
    }

    fn cuGraphUpload, cuGraphUpload_ptsz(home, hGraphExec: Ptr, hStream: Ptr) {
        let mut world = world();
        let stream = world.stream(hStream, home)?;
        world.execs.get(hGraphExec.addr())?;
        world.put(stream, Work::Nothing)
    }
}
