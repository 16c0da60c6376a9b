//! Shadows of buffer objects: what vertices are made of.
//!
//! The predictor looks at vertices before the GPU does, and GL ES cannot be asked for them. So
//! the contents of vertex, index and uniform buffers are kept a second time, within
//! bounds: [`BUFFER_BYTES_MAX`] per buffer and [`SHADOW_BYTES_MAX`] per process. Beyond that only
//! sizes are kept, and predictions of draws from such buffers make do without positions. The same
//! holds for what is written through mappings, because reading a mapping that was made for writing
//! is not allowed, and for buffers that shaders write to.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use takt_predict::fragments::BufferId;

/// Larger buffers are not kept.
pub const BUFFER_BYTES_MAX: usize = 64 << 20;

/// No more is kept of all buffers together.
pub const SHADOW_BYTES_MAX: usize = 256 << 20;

static SHADOW_BYTES: AtomicUsize = AtomicUsize::new(0);

/// A buffer object.
#[derive(Debug)]
pub struct Buffer {
    id: u64,
    contents: Mutex<Contents>,
}

/// What is in a buffer.
#[derive(Debug, Default)]
pub struct Contents {
    /// Its size.
    pub size: usize,
    generation: u64,
    bytes: Option<KeptBytes>,
    /// Whether shaders write to it.
    given_up: bool,
    /// Whether it is mapped; then GL refuses whatever reads it.
    mapped: bool,
    /// How many bytes of the mapping may have been written when it ends.
    written: usize,
}

impl Buffer {
    /// An empty buffer.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), contents: Mutex::default() }
    }

    /// Its contents; other threads wait.
    pub fn lock(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its number, which no other buffer has.
    pub fn number(&self) -> u64 {
        self.id
    }

    /// Names its contents.
    pub fn id(&self, contents: &Contents) -> BufferId {
        BufferId { buffer: self.id, generation: contents.generation }
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Contents {
    /// `glBufferData`: all contents are new; without data they are undefined.
    pub fn replace(&mut self, size: usize, data: Option<&[u8]>, keep: bool) {
        self.size = size;
        self.generation += 1;
        (self.bytes, self.mapped, self.written) = (None, false, 0);
        if keep && !self.given_up && size <= BUFFER_BYTES_MAX {
            self.bytes = KeptBytes::new(size, data);
        }
    }

    /// `glBufferSubData`: some contents are new.
    pub fn write(&mut self, offset: usize, data: &[u8]) {
        self.generation += 1;
        let target = self.bytes.as_mut().and_then(|shadow| {
            let end = offset.checked_add(data.len())?;
            shadow.0.get_mut(offset..end)
        });
        if let Some(target) = target {
            target.copy_from_slice(data);
        }
    }

    /// Something was written that cannot be known.
    pub fn forget(&mut self) {
        self.generation += 1;
        self.bytes = None;
    }

    /// Shaders may write to it from now on, whenever they run.
    pub fn give_up(&mut self) {
        self.given_up = true;
        self.forget();
    }

    /// It is mapped from now on, and when that ends so many bytes may have been written.
    pub fn map(&mut self, written: usize) {
        (self.mapped, self.written) = (true, written);
    }

    /// It is mapped no more; how many bytes may have been written. All of them, if it was not seen to be mapped:
    /// desktop GL has further names for that.
    pub fn unmap(&mut self) -> usize {
        let seen = std::mem::take(&mut self.mapped);
        let written = std::mem::take(&mut self.written);
        if seen { written } else { self.size }
    }

    /// What is known, for commands that read it.
    pub fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_ref().filter(|_| !self.mapped).map(|shadow| shadow.0.as_slice())
    }
}

/// Bytes that are counted.
#[derive(Debug)]
struct KeptBytes(Vec<u8>);

impl KeptBytes {
    fn new(size: usize, data: Option<&[u8]>) -> Option<Self> {
        let before = SHADOW_BYTES.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > SHADOW_BYTES_MAX {
            SHADOW_BYTES.fetch_sub(size, Ordering::Relaxed);
            return None;
        }
        let bytes = data.map_or_else(|| vec![0; size], <[u8]>::to_vec);
        Some(Self(bytes))
    }
}

impl Drop for KeptBytes {
    fn drop(&mut self) {
        SHADOW_BYTES.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_written_where_they_belong() {
        let buffer = Buffer::new();
        let mut contents = buffer.lock();
        contents.replace(4, Some(&[1, 2, 3, 4]), true);
        let before = buffer.id(&contents);
        contents.write(1, &[9, 9]);
        assert_eq!(contents.bytes(), Some(&[1, 9, 9, 4][..]));
        assert_ne!(buffer.id(&contents), before);
        contents.write(3, &[7, 7]);
        contents.write(usize::MAX, &[7]);
        assert_eq!(contents.bytes(), Some(&[1, 9, 9, 4][..]), "an error in GL changes nothing");
    }

    #[test]
    fn nothing_is_known_of_a_buffer_that_is_mapped() {
        let mut contents = Contents::default();
        contents.replace(2, Some(&[1, 2]), true);
        contents.map(2);
        assert_eq!(contents.bytes(), None);
        contents.map(1);
        assert_eq!([contents.unmap(), contents.unmap()], [1, 2], "who maps it unseen may write all of it");
        assert_eq!(contents.bytes(), Some(&[1, 2][..]));
        contents.map(2);
        contents.replace(1, Some(&[3]), true);
        assert_eq!(contents.bytes(), Some(&[3][..]), "new contents end a mapping");
    }

    #[test]
    fn large_contents_are_not_kept_but_their_size_is() {
        let mut contents = Contents::default();
        contents.replace(BUFFER_BYTES_MAX + 1, None, true);
        assert_eq!((contents.size, contents.bytes()), (BUFFER_BYTES_MAX + 1, None));
    }

    #[test]
    fn all_buffers_together_are_bounded() {
        let mut all = Vec::new();
        for _ in 0..SHADOW_BYTES_MAX / BUFFER_BYTES_MAX + 1 {
            let mut contents = Contents::default();
            contents.replace(BUFFER_BYTES_MAX, None, true);
            all.push(contents);
        }
        assert!(all.iter().any(|contents| contents.bytes().is_none()));
        drop(all);
        let mut contents = Contents::default();
        contents.replace(BUFFER_BYTES_MAX, None, true);
        assert!(contents.bytes().is_some(), "what is freed can be used again");
    }
}
