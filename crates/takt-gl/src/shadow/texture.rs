//! Textures and render buffers, of which sizes and kinds of colours matter.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use takt_predict::exactness::{State, States};

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
    /// What it is as a target, and which colours it has.
    pub states: States,
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

/// Which colours a format of storage has; none if it has depth or stencil.
pub fn colours(format: u32) -> States {
    match format {
        gl::RGBA8 | gl::RGB8 | gl::RG8 | gl::R8 | gl::RGB10_A2 | gl::BGRA8_EXT => State::Normalised.into(),
        gl::SRGB8_ALPHA8 | gl::SRGB8 => State::Srgb.into(),
        gl::RGB565 | gl::RGBA4 | gl::RGB5_A1 => State::Packed.into(),
        gl::R16F | gl::RG16F | gl::RGB16F | gl::RGBA16F => State::Float.into(),
        gl::R32F | gl::RG32F | gl::RGB32F | gl::RGBA32F | gl::R11F_G11F_B10F => State::Float.into(),
        // R8I to RGBA32UI.
        0x8231..=0x823C | 0x8D70..=0x8D8F | gl::RGB10_A2UI => State::Integer.into(),
        gl::DEPTH_COMPONENT16 | gl::DEPTH_COMPONENT24 | gl::DEPTH_COMPONENT32F => States::NONE,
        gl::DEPTH24_STENCIL8 | gl::DEPTH32F_STENCIL8 | gl::STENCIL_INDEX8 => States::NONE,
        gl::DEPTH_COMPONENT | gl::DEPTH_STENCIL => States::NONE,
        _ => States::ALL_FORMATS,
    }
}

/// The same for storage that is made from pixels: a format without a size gets that of the pixels.
pub fn colours_of_pixels(format: u32, kind: u32) -> States {
    let sized = !matches!(
        format,
        gl::RGBA | gl::RGB | gl::ALPHA | gl::LUMINANCE | gl::LUMINANCE_ALPHA | gl::BGRA_EXT
    );
    match kind {
        _ if sized => colours(format),
        gl::UNSIGNED_BYTE => State::Normalised.into(),
        gl::FLOAT | gl::HALF_FLOAT | gl::HALF_FLOAT_OES => State::Float.into(),
        gl::UNSIGNED_SHORT_4_4_4_4 | gl::UNSIGNED_SHORT_5_5_5_1 | gl::UNSIGNED_SHORT_5_6_5 => {
            State::Packed.into()
        }
        _ => States::ALL_FORMATS,
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
        let huge = Size {
            width: u32::MAX,
            height: u32::MAX,
            depth: u32::MAX,
            samples: 1,
            texel_bytes: 4,
            states: States::NONE,
        };
        assert_eq!(huge.bytes(), u64::MAX);
    }

    #[test]
    fn formats_have_colours() {
        assert_eq!(colours(gl::RGBA8), State::Normalised.into());
        assert_eq!(colours(gl::RGBA32I), State::Integer.into());
        assert_eq!(colours(gl::R8UI), State::Integer.into());
        assert_eq!(colours(gl::DEPTH24_STENCIL8), States::NONE);
        assert_eq!(colours(0x1234), States::ALL_FORMATS, "it may be any");
        assert_eq!(colours_of_pixels(gl::RGBA, gl::UNSIGNED_SHORT_5_5_5_1), State::Packed.into());
        assert_eq!(colours_of_pixels(gl::RGBA, gl::FLOAT), State::Float.into());
        assert_eq!(colours_of_pixels(gl::SRGB8_ALPHA8, gl::UNSIGNED_BYTE), State::Srgb.into());
    }
}
