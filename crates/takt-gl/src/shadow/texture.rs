//! Textures and render buffers, of which only sizes matter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::gl;

/// Size of something that can be drawn to or looked up in.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Size {
    /// Width in texels.
    pub width: u32,
    /// Height in texels.
    pub height: u32,
    /// Layers or depth; 1 for flat ones.
    pub depth: u32,
    /// Samples per texel.
    pub samples: u32,
    /// Bytes of a texel, as the program asked for it.
    pub texel_bytes: u32,
}

impl Size {
    /// Bytes of the largest level.
    pub fn bytes(self) -> u64 {
        let sides = [self.width, self.height, self.depth.max(1), self.texel_bytes];
        sides.into_iter().map(u64::from).fold(1, u64::saturating_mul)
    }
}

/// A texture or render buffer.
#[derive(Debug)]
pub struct Image {
    /// Tells it from all others.
    pub id: u64,
    size: Mutex<Size>,
}

impl Image {
    /// Without contents.
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self { id: NEXT.fetch_add(1, Ordering::Relaxed), size: Mutex::default() }
    }

    /// Its size.
    pub fn size(&self) -> Size {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It was given storage.
    pub fn resize(&self, size: Size) {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
    }
}

impl Default for Image {
    fn default() -> Self {
        Self::new()
    }
}

/// The binding point that a texture target belongs to: faces of a cube belong to the cube.
pub fn binding(target: u32) -> u32 {
    match target {
        gl::TEXTURE_CUBE_MAP_POSITIVE_X..=gl::TEXTURE_CUBE_MAP_NEGATIVE_Z => gl::TEXTURE_CUBE_MAP,
        target => target,
    }
}

/// Bytes of a texel that is handed over as `format` and `kind`.
pub fn pixel_bytes(format: u32, kind: u32) -> u32 {
    match kind {
        gl::UNSIGNED_SHORT_4_4_4_4 | gl::UNSIGNED_SHORT_5_5_5_1 | gl::UNSIGNED_SHORT_5_6_5 => return 2,
        _ => {}
    }
    let components = match format {
        gl::ALPHA | gl::LUMINANCE | 0x1903 | 0x1902 => 1,
        gl::LUMINANCE_ALPHA | 0x8227 => 2,
        gl::RGB => 3,
        _ => 4,
    };
    let size = match kind {
        gl::FLOAT | gl::INT | gl::UNSIGNED_INT => 4,
        gl::HALF_FLOAT | gl::HALF_FLOAT_OES | gl::SHORT | gl::UNSIGNED_SHORT => 2,
        _ => 1,
    };
    components * size
}

/// Bytes of a texel of storage in a sized format; 4 for those not listed, which most have.
pub fn storage_bytes(format: u32) -> u32 {
    match format {
        // R8, STENCIL_INDEX8
        0x8229 | 0x8D48 => 1,
        // RG8, R16F, RGBA4, RGB5_A1, RGB565, DEPTH_COMPONENT16
        0x822B | 0x822D | 0x8056 | 0x8057 | 0x8D62 | 0x81A5 => 2,
        // RGB8, DEPTH_COMPONENT24
        0x8051 => 3,
        // RGBA16F, RG32F, DEPTH32F_STENCIL8
        0x881A | 0x8230 | 0x8CAD => 8,
        // RGBA32F
        0x8814 => 16,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_bytes() {
        assert_eq!(pixel_bytes(gl::RGB, gl::UNSIGNED_BYTE), 3);
        assert_eq!(pixel_bytes(gl::RGBA, gl::UNSIGNED_SHORT_4_4_4_4), 2);
        assert_eq!(pixel_bytes(gl::RGBA, gl::FLOAT), 16);
        let huge = Size { width: u32::MAX, height: u32::MAX, depth: u32::MAX, samples: 1, texel_bytes: 4 };
        assert_eq!(huge.bytes(), u64::MAX);
    }
}
