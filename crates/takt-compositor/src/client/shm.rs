//! Shared memory of clients: `wl_shm`.
//!
//! Pixels are read from the file that a client shares, and never mapped: a file that the client cuts off or
//! that answers slowly costs an error or the time of its own thread. How many files and buffers a client may
//! have, and how large they are, is bounded.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::FileType;
use smithay::backend::allocator::Fourcc;
use smithay::reexports::wayland_server::backend::ClientId;
use smithay::reexports::wayland_server::protocol::wl_buffer::{self, WlBuffer};
use smithay::reexports::wayland_server::protocol::wl_shm::{self, WlShm};
use smithay::reexports::wayland_server::protocol::wl_shm_pool::{self, WlShmPool};
use smithay::reexports::wayland_server::{
    Client, DataInit, Dispatch, DisplayHandle, GlobalDispatch, New, Resource, WEnum,
};
use takt_cockpit::geometry::{SIDE_MAX, Size};

use super::state::State;

/// Most files of a client at once.
const POOLS_MAX: usize = 64;
/// Most buffers of a client at once.
const BUFFERS_MAX: usize = 256;
/// Bytes of a pixel in all formats that are offered.
const PIXEL: u64 = 4;

/// How many of them a client has.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Files, which are also descriptors that were used.
    pub(super) pools: usize,
    /// Files that there ever were.
    pub(super) pools_ever: u64,
    /// Buffers.
    pub(super) buffers: usize,
}

/// A file that a client shares.
#[derive(Debug)]
pub(super) struct Pool {
    file: OwnedFd,
    size: AtomicU64,
}

/// A part of such a file, as a picture.
#[derive(Debug)]
pub(super) struct ShmBuffer {
    pool: Arc<Pool>,
    offset: u64,
    stride: u64,
    pub(super) size: Size,
    pub(super) format: Fourcc,
}

/// Formats that are offered.
const FORMATS: [(wl_shm::Format, Fourcc); 4] = [
    (wl_shm::Format::Argb8888, Fourcc::Argb8888),
    (wl_shm::Format::Xrgb8888, Fourcc::Xrgb8888),
    (wl_shm::Format::Abgr8888, Fourcc::Abgr8888),
    (wl_shm::Format::Xbgr8888, Fourcc::Xbgr8888),
];

impl ShmBuffer {
    /// Bytes of its pixels without gaps.
    pub(super) fn bytes(&self) -> u64 {
        PIXEL * u64::from(self.size.width.unsigned_abs()) * u64::from(self.size.height.unsigned_abs())
    }

    /// Reads its pixels, row after row without gaps.
    pub(super) fn read(&self, into: &mut Vec<u8>) -> std::io::Result<()> {
        let index = |number: u64| usize::try_from(number).map_err(std::io::Error::other);
        let row = index(PIXEL * u64::from(self.size.width.unsigned_abs()))?;
        let (stride, rows) = (index(self.stride)?, index(u64::from(self.size.height.unsigned_abs()))?);
        // The last row may end with the file.
        into.resize(stride * (rows - 1) + row, 0);
        read_all(&self.pool.file, into, self.offset)?;
        if stride > row {
            for number in 1..rows {
                into.copy_within(number * stride..number * stride + row, number * row);
            }
            into.truncate(rows * row);
        }
        Ok(())
    }
}

fn read_all(file: &OwnedFd, mut into: &mut [u8], mut at: u64) -> std::io::Result<()> {
    while !into.is_empty() {
        let read = rustix::io::pread(file, &mut *into, at)?;
        if read == 0 {
            return Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "the file is shorter than said",
            ));
        }
        at += read as u64;
        into = &mut into[read..];
    }
    Ok(())
}

impl GlobalDispatch<WlShm, ()> for State {
    fn bind(
        _state: &mut Self,
        _display: &DisplayHandle,
        _client: &Client,
        resource: New<WlShm>,
        _data: &(),
        init: &mut DataInit<'_, Self>,
    ) {
        let shm = init.init(resource, ());
        for (format, _) in FORMATS {
            shm.format(format);
        }
    }
}

impl Dispatch<WlShm, ()> for State {
    fn request(
        state: &mut Self,
        _client: &Client,
        shm: &WlShm,
        request: wl_shm::Request,
        _data: &(),
        _display: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        let wl_shm::Request::CreatePool { id, fd, size } = request else {
            return;
        };
        let counts = &mut state.shm;
        counts.pools_ever += 1;
        counts.pools += 1;
        let pools = counts.pools;
        let is_file = rustix::fs::fstat(&fd)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        let bytes = u64::try_from(size).unwrap_or_default();
        init.init(id, Arc::new(Pool { file: fd, size: AtomicU64::new(bytes) }));
        if size <= 0 {
            shm.post_error(wl_shm::Error::InvalidStride, format!("a pool of {size} bytes"));
        } else if !is_file {
            shm.post_error(wl_shm::Error::InvalidFd, "no file that can be read");
        } else if pools > POOLS_MAX {
            state.offend("pools-max", &format!("more than {POOLS_MAX} pools of shared memory"));
        }
    }
}

impl Dispatch<WlShmPool, Arc<Pool>> for State {
    fn request(
        state: &mut Self,
        _client: &Client,
        pool: &WlShmPool,
        request: wl_shm_pool::Request,
        data: &Arc<Pool>,
        _display: &DisplayHandle,
        init: &mut DataInit<'_, Self>,
    ) {
        match request {
            wl_shm_pool::Request::CreateBuffer { id, offset, width, height, stride, format } => {
                let asked = Asked { offset, width, height, stride, format };
                let buffer = asked.check(data);
                state.shm.buffers += 1;
                match buffer {
                    Ok(buffer) => drop(init.init(id, buffer)),
                    Err((error, reason)) => {
                        init.init(id, asked.nothing(data));
                        pool.post_error(error, reason);
                    }
                }
                if state.shm.buffers > BUFFERS_MAX {
                    state.offend("buffers-max", &format!("more than {BUFFERS_MAX} buffers"));
                }
            }
            wl_shm_pool::Request::Resize { size } => {
                let bytes = u64::try_from(size).unwrap_or_default();
                if bytes < data.size.load(Ordering::Relaxed) {
                    pool.post_error(wl_shm::Error::InvalidFd, "a pool never becomes smaller");
                } else {
                    data.size.store(bytes, Ordering::Relaxed);
                }
            }
            _ => {}
        }
    }

    fn destroyed(state: &mut Self, _client: ClientId, _pool: &WlShmPool, _data: &Arc<Pool>) {
        state.shm.pools = state.shm.pools.saturating_sub(1);
    }
}

/// What a client asks for.
struct Asked {
    offset: i32,
    width: i32,
    height: i32,
    stride: i32,
    format: WEnum<wl_shm::Format>,
}

impl Asked {
    fn check(&self, pool: &Arc<Pool>) -> Result<ShmBuffer, (wl_shm::Error, String)> {
        let known = |(offered, _): &&(wl_shm::Format, Fourcc)| self.format == WEnum::Value(*offered);
        let Some((_, format)) = FORMATS.iter().find(known) else {
            return Err((wl_shm::Error::InvalidFormat, format!("format {:?} is not offered", self.format)));
        };
        let wrong = |reason: String| Err((wl_shm::Error::InvalidStride, reason));
        let side = |side: i32| u64::try_from(side).ok().filter(|_| (1..=SIDE_MAX).contains(&side));
        let (Some(width), Some(height)) = (side(self.width), side(self.height)) else {
            return wrong(format!("{}x{}: use 1 to {SIDE_MAX} each", self.width, self.height));
        };
        let (Ok(offset), Ok(stride)) = (u64::try_from(self.offset), u64::try_from(self.stride)) else {
            return wrong(format!("offset {} and stride {}", self.offset, self.stride));
        };
        if stride < width * PIXEL {
            return wrong(format!("stride {stride} for {width} pixels"));
        }
        let size = pool.size.load(Ordering::Relaxed);
        if offset + stride * height > size {
            return wrong(format!("{height} rows of {stride} bytes from {offset} on, and {size} bytes"));
        }
        let pool = Arc::clone(pool);
        Ok(ShmBuffer { pool, offset, stride, size: Size::new(self.width, self.height), format: *format })
    }

    /// Stands for a buffer whose client is being disconnected.
    fn nothing(&self, pool: &Arc<Pool>) -> ShmBuffer {
        let pool = Arc::clone(pool);
        ShmBuffer { pool, offset: 0, stride: PIXEL, size: Size::new(1, 1), format: Fourcc::Argb8888 }
    }
}

impl Dispatch<WlBuffer, ShmBuffer> for State {
    fn request(
        _state: &mut Self,
        _client: &Client,
        _buffer: &WlBuffer,
        _request: wl_buffer::Request,
        _data: &ShmBuffer,
        _display: &DisplayHandle,
        _init: &mut DataInit<'_, Self>,
    ) {
    }

    fn destroyed(state: &mut Self, _client: ClientId, _buffer: &WlBuffer, _data: &ShmBuffer) {
        state.shm.buffers = state.shm.buffers.saturating_sub(1);
    }
}
