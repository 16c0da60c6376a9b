//! Structures of the API, as far as Takt reads them.

use crate::Ptr;

/// A handle of 64 bytes that travels by value.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub struct Handle64(pub [u8; 64]);

/// What an extended launch is to be (`CUlaunchConfig`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchConfig {
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Where it goes.
    pub stream: Ptr,
    /// Further properties.
    pub attributes: *const LaunchAttribute,
    /// How many.
    pub attribute_count: u32,
}

/// A property of a launch (`CUlaunchAttribute`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LaunchAttribute {
    /// Which one.
    pub id: u32,
    pad: u32,
    /// The value, of which only the first words are looked at.
    pub value: [u32; 16],
}

impl LaunchAttribute {
    /// Blocks that run together, in three dimensions.
    pub const CLUSTER_DIMENSION: u32 = 4;
}

/// A launch on one of several devices (`CUDA_LAUNCH_PARAMS`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DeviceLaunch {
    /// What runs.
    pub function: Ptr,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Where it goes.
    pub stream: Ptr,
    parameters: Ptr,
}

/// Where one side of a copy lies (`CUmemorytype`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct MemoryType(pub u32);

impl MemoryType {
    /// In the host's memory.
    pub const HOST: Self = Self(1);
}

/// A copy of rows (`CUDA_MEMCPY2D`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy2D {
    source_place: [usize; 2],
    /// Where it comes from.
    pub source: MemoryType,
    source_rest: [usize; 4],
    target_place: [usize; 2],
    /// Where it goes.
    pub target: MemoryType,
    target_rest: [usize; 4],
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl Copy2D {
    /// Where in the host's memory it goes, if it goes there.
    pub fn target_host(&self) -> usize {
        self.target_rest[0]
    }
}

/// A copy of a box (`CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has the same members in other roles).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Copy3D {
    source_place: [usize; 4],
    /// Where it comes from.
    pub source: MemoryType,
    source_rest: [usize; 6],
    target_place: [usize; 4],
    /// Where it goes.
    pub target: MemoryType,
    target_rest: [usize; 6],
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a layer.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

impl Copy3D {
    /// Where in the host's memory it goes, if it goes there.
    pub fn target_host(&self) -> usize {
        self.target_rest[0]
    }
}

/// One of several copies of boxes (`CUDA_MEMCPY3D_BATCH_OP`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct BatchCopy3D {
    operands: [u64; 10],
    /// Width, height and depth.
    pub extent: [usize; 3],
    order: u32,
    flags: u32,
}

/// One of several decompressions (`CUmemDecompressParams`).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Decompression {
    /// Bytes that are read.
    pub source_bytes: usize,
    /// Bytes that are written.
    pub target_bytes: usize,
    rest: [u64; 6],
}

// As a compiler lays out the vendor's header.
const _: () = {
    use std::mem::offset_of;
    assert!(size_of::<LaunchConfig>() == 56 && offset_of!(LaunchConfig, stream) == 32);
    assert!(size_of::<LaunchAttribute>() == 72 && offset_of!(LaunchAttribute, value) == 8);
    assert!(size_of::<DeviceLaunch>() == 56 && offset_of!(DeviceLaunch, stream) == 40);
    assert!(
        size_of::<Copy2D>() == 128 && offset_of!(Copy2D, target) == 72 && offset_of!(Copy2D, width) == 112
    );
    assert!(
        size_of::<Copy3D>() == 200 && offset_of!(Copy3D, target) == 120 && offset_of!(Copy3D, width) == 176
    );
    assert!(size_of::<BatchCopy3D>() == 112 && offset_of!(BatchCopy3D, extent) == 80);
    assert!(size_of::<Decompression>() == 64);
};
