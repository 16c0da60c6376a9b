//! Why calls pass that Takt does not stand in front of.
//!
//! Each entry point of the table is of a [`Class`] or has a reason here, so that none of a new version of the API
//! passes unnoticed: a call that gives the GPU work, or waits for it, belongs into the list of `cargo xtask cuda`.
//!
//! The driver also exports names that the table lacks, and those pass as well: calls for GL, EGL and VDPAU, for
//! checkpoints, and those of CUDA 3.1 and before, whose pointers have 32 bits.

use takt_cuda_api::IDS;

use super::Class;

/// A reason, and the calls that have it: names without versions and without the mark of the thread's default stream.
const PASSING: &[(&str, &str)] = &[
    (
        "It asks for something that is known at once; so does all that has `Get` in its name.",
        "cuDeviceCanAccessPeer cuDeviceComputeCapability cuDeviceTotalMem cuEventElapsedTime cuFuncIsLoaded \
         cuGraphDebugDotPrint cuGraphNodeFindInClone cuLibraryEnumerateKernels cuLogicalEndpointQuery \
         cuModuleEnumerateFunctions cuOccupancyAvailableDynamicSMemPerBlock \
         cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags \
         cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialBlockSize cuOccupancyMaxPotentialBlockSizeWithFlags \
         cuOccupancyMaxPotentialClusterSize cuStreamIsCapturing",
    ),
    (
        "It orders work of streams. Others may wait for it, and it takes the GPU next to no time.",
        "cuCtxRecordEvent cuCtxWaitEvent cuEventCreate cuEventDestroy cuEventRecord cuEventRecordWithFlags \
         cuGreenCtxRecordEvent cuGreenCtxWaitEvent cuMemAllocAsync cuMemAllocFromPoolAsync cuMemDiscardBatchAsync \
         cuMemFreeAsync cuMemMapArrayAsync cuSignalExternalSemaphoresAsync cuStreamAttachMemAsync \
         cuStreamCopyAttributes cuStreamCreate cuStreamCreateWithPriority cuStreamSetAttribute \
         cuStreamUpdateCaptureDependencies cuStreamWriteValue32 cuStreamWriteValue64",
    ),
    (
        "It makes or changes a graph, which is work when it is launched.",
        "cuGraphAddBatchMemOpNode cuGraphAddChildGraphNode cuGraphAddDependencies cuGraphAddEmptyNode \
         cuGraphAddEventRecordNode cuGraphAddEventWaitNode cuGraphAddExternalSemaphoresSignalNode \
         cuGraphAddExternalSemaphoresWaitNode cuGraphAddHostNode cuGraphAddKernelNode cuGraphAddMemAllocNode \
         cuGraphAddMemFreeNode cuGraphAddMemcpyNode cuGraphAddMemsetNode cuGraphAddNode \
         cuGraphBatchMemOpNodeSetParams cuGraphClone cuGraphConditionalHandleCreate cuGraphCreate cuGraphDestroy \
         cuGraphDestroyNode cuGraphEventRecordNodeSetEvent cuGraphEventWaitNodeSetEvent \
         cuGraphExecEventRecordNodeSetEvent cuGraphExecEventWaitNodeSetEvent \
         cuGraphExecExternalSemaphoresSignalNodeSetParams cuGraphExecExternalSemaphoresWaitNodeSetParams \
         cuGraphExecHostNodeSetParams cuGraphExternalSemaphoresSignalNodeSetParams \
         cuGraphExternalSemaphoresWaitNodeSetParams cuGraphHostNodeSetParams cuGraphInstantiate \
         cuGraphInstantiateWithFlags cuGraphInstantiateWithParams cuGraphKernelNodeCopyAttributes \
         cuGraphKernelNodeSetAttribute cuGraphKernelNodeSetParams cuGraphMemcpyNodeSetParams \
         cuGraphMemsetNodeSetParams cuGraphNodeSetParams cuGraphReleaseUserObject cuGraphRemoveDependencies \
         cuGraphRetainUserObject",
    ),
    (
        "It makes or shares memory, or says something of it; pages that are touched later move then.",
        "cuArray3DCreate cuArrayCreate cuDestroyExternalSemaphore cuDeviceSetGraphMemAttribute cuDeviceSetMemPool \
         cuFlushGPUDirectRDMAWrites cuGraphicsResourceSetMapFlags cuGraphicsUnregisterResource \
         cuImportExternalMemory cuImportExternalSemaphore cuIpcOpenEventHandle cuIpcOpenMemHandle \
         cuLogicalEndpointAddDevice cuLogicalEndpointBindAddr cuLogicalEndpointBindMem cuLogicalEndpointCreate \
         cuLogicalEndpointDestroy cuLogicalEndpointExport cuLogicalEndpointIdRelease cuLogicalEndpointIdReserve \
         cuLogicalEndpointImport cuMemAddressFree cuMemAddressReserve cuMemAdvise cuMemAlloc cuMemAllocHost \
         cuMemAllocManaged cuMemAllocPitch cuMemCreate cuMemExportToShareableHandle cuMemHostAlloc \
         cuMemHostRegister cuMemImportFromShareableHandle cuMemMap cuMemPoolCreate cuMemPoolExportPointer \
         cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle cuMemPoolImportPointer \
         cuMemPoolSetAccess cuMemPoolSetAttribute cuMemRetainAllocationHandle cuMemSetAccess cuMemSetMemPool \
         cuMipmappedArrayCreate cuMulticastAddDevice cuMulticastBindAddr cuMulticastBindMem cuMulticastCreate \
         cuPointerSetAttribute",
    ),
    (
        "It may wait for work, rarely. The group that it waits for ends by itself after a millisecond.",
        "cuCtxResetPersistingL2Cache cuCtxSetLimit cuDestroyExternalMemory cuDeviceGraphMemTrim cuFuncLoad \
         cuIpcCloseMemHandle cuLogicalEndpointUnbind cuMemPoolDestroy cuMemPoolTrimTo cuMemRelease cuMemUnmap \
         cuMulticastUnbind cuProfilerStop",
    ),
    (
        "It makes contexts or streams, or changes how they are used.",
        "cuCtxAttach cuCtxCreate cuCtxDisablePeerAccess cuCtxEnablePeerAccess cuCtxFromGreenCtx cuCtxPopCurrent \
         cuCtxPushCurrent cuCtxSetCacheConfig cuCtxSetCurrent cuCtxSetFlags cuCtxSetSharedMemConfig \
         cuDevResourceGenerateDesc cuDevSmResourceSplit cuDevSmResourceSplitByCount cuDevicePrimaryCtxRetain \
         cuDevicePrimaryCtxSetFlags cuGreenCtxCreate cuGreenCtxStreamCreate cuThreadExchangeStreamCaptureMode",
    ),
    (
        "It describes a kernel, its arguments or a texture before the launch.",
        "cuFuncSetAttribute cuFuncSetBlockShape cuFuncSetCacheConfig cuFuncSetSharedMemConfig cuFuncSetSharedSize \
         cuKernelSetAttribute cuKernelSetCacheConfig cuParamSetSize cuParamSetTexRef cuParamSetf cuParamSeti \
         cuParamSetv cuSurfObjectCreate cuSurfObjectDestroy cuSurfRefSetArray cuTensorMapEncodeIm2col \
         cuTensorMapEncodeIm2colWide cuTensorMapEncodeTiled cuTensorMapReplaceAddress cuTexObjectCreate \
         cuTexObjectDestroy cuTexRefCreate cuTexRefDestroy cuTexRefSetAddress cuTexRefSetAddress2D \
         cuTexRefSetAddressMode cuTexRefSetArray cuTexRefSetBorderColor cuTexRefSetFilterMode cuTexRefSetFlags \
         cuTexRefSetFormat cuTexRefSetMaxAnisotropy cuTexRefSetMipmapFilterMode cuTexRefSetMipmapLevelBias \
         cuTexRefSetMipmapLevelClamp cuTexRefSetMipmappedArray",
    ),
    (
        "It makes code, on a processor.",
        "cuLinkAddData cuLinkAddFile cuLinkComplete cuLinkCreate cuLinkDestroy",
    ),
    (
        "It is for debuggers, profilers and logs.",
        "cuCoredumpDeregisterCompleteCallback cuCoredumpDeregisterStartCallback cuCoredumpRegisterCompleteCallback \
         cuCoredumpRegisterStartCallback cuCoredumpSetAttribute cuCoredumpSetAttributeGlobal \
         cuDeviceRegisterAsyncNotification cuDeviceUnregisterAsyncNotification cuLogsCurrent cuLogsDumpToFile \
         cuLogsDumpToMemory cuLogsRegisterCallback cuLogsUnregisterCallback cuProfilerInitialize cuProfilerStart \
         cuUserObjectCreate cuUserObjectRelease cuUserObjectRetain",
    ),
];

/// Private tables of functions, which are never touched.
const PRIVATE: &str = "cuGetExportTable";

fn family(name: &str) -> &str {
    let name = name.trim_end_matches("_ptsz").trim_end_matches("_ptds");
    match name.rsplit_once("_v") {
        Some((family, version)) if version.parse::<u32>().is_ok() => family,
        _ => name,
    }
}

/// How many reasons a name has.
fn reasons(family: &str) -> usize {
    let listed =
        PASSING.iter().filter(|(_, names)| names.split_whitespace().any(|name| name == family)).count();
    let asks = family.contains("Get") && family != "cuGetProcAddress";
    listed + usize::from(asks)
}

#[test]
fn every_entry_point_has_a_class_or_one_reason() {
    for id in IDS {
        let passes = Class::of(id).is_none();
        assert_eq!(reasons(family(id.name())) == 1, passes, "{}", id.name());
    }
}

#[test]
fn reasons_are_those_of_names_that_are_there() {
    let is_there = |name: &str| IDS.iter().any(|id| family(id.name()) == name);
    for (reason, names) in PASSING {
        assert!(!reason.is_empty());
        names.split_whitespace().for_each(|name| assert!(is_there(name), "{name}"));
    }
    assert!(is_there(PRIVATE) && reasons(PRIVATE) == 1);
}

/// Whatever is new and sounds like work or a wait is looked at, and not put into a list with the others.
#[test]
fn what_sounds_like_work_is_hooked_or_known_to_be_none() {
    const KNOWN: &[&str] = &[
        "cuGraphAddMemcpyNode",
        "cuGraphAddMemsetNode",
        "cuGraphAddEventWaitNode",
        "cuGraphAddExternalSemaphoresWaitNode",
        "cuMemAllocAsync",
        "cuMemAllocFromPoolAsync",
        "cuMemDiscardBatchAsync",
        "cuMemFreeAsync",
        "cuMemMapArrayAsync",
        "cuSignalExternalSemaphoresAsync",
        "cuStreamAttachMemAsync",
        "cuDeviceRegisterAsyncNotification",
        "cuDeviceUnregisterAsyncNotification",
        "cuCtxWaitEvent",
        "cuGreenCtxWaitEvent",
    ];
    const WORDS: &[&str] = &["Launch", "Memcpy", "Memset", "Async", "Synchronize", "Wait", "Prefetch"];
    let sounds = |name: &str| WORDS.iter().any(|word| name.contains(word));
    for id in IDS.into_iter().filter(|id| Class::of(*id).is_none() && sounds(id.name())) {
        let name = family(id.name());
        let of_node = name.contains("Node") && (name.contains("Get") || name.contains("Set"));
        assert!(KNOWN.contains(&name) || of_node, "{}", id.name());
    }
}
