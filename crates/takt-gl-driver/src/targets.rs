//! Targets of any format and number of samples, of GL ES 3.0 and 3.1.

use takt_gl_api::entry::{Id, real};

use crate::library::{Missing, load};
use crate::{length, numbers};

/// A driver whose targets have formats and samples.
#[derive(Clone, Copy, Debug)]
pub struct Targets(());

numbers! { Targets needs NEEDED { glBlitFramebuffer, glGetFloatv, glGetUniformLocation, glReadPixels }
    line_width = glLineWidth(width: f32);
    stencil_func = glStencilFunc(function: u32, reference: i32, mask: u32);
    stencil_op = glStencilOp(fail: u32, depth_fail: u32, pass: u32);
    texture_storage = glTexStorage2D(target: u32, levels: i32, format: u32, width: i32, height: i32);
    renderbuffer_samples =
        glRenderbufferStorageMultisample(target: u32, samples: i32, format: u32, width: i32, height: i32);
    set_int = glUniform1i(location: i32, value: i32);
}

/// How pixels are read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PixelLayout {
    /// `GL_RGBA` and the like.
    pub format: u32,
    /// `GL_UNSIGNED_BYTE` and the like.
    pub kind: u32,
    /// Bytes of a pixel, a multiple of four.
    pub bytes: usize,
}

impl Targets {
    /// Finds the functions; a context of GL ES 3.0 must be current on this thread.
    ///
    /// # Errors
    ///
    /// If one is missing.
    pub fn load() -> Result<Self, Missing> {
        load(NEEDED)?;
        Ok(Self(()))
    }

    /// Gives the texture bound to a target samples of a format; false if the driver has no such textures.
    pub fn texture_samples(&self, target: u32, samples: u32, format: u32, [width, height]: [u32; 2]) -> bool {
        if !Id::glTexStorage2DMultisample.is_there() {
            return false;
        }
        let [samples, width, height] = [samples, width, height].map(u32::cast_signed);
        // SAFETY: plain numbers, which GL checks.
        unsafe { real::glTexStorage2DMultisample(target, samples, format, width, height, 1) };
        true
    }

    /// The location of a uniform; -1 if there is none.
    pub fn uniform(&self, program: u32, name: &str) -> i32 {
        let name = crate::gl::c_name(name);
        // SAFETY: the name ends with a zero byte.
        unsafe { real::glGetUniformLocation(program, name.as_ptr().cast_mut().cast()) }
    }

    /// Copies from the framebuffer that is read to the one that is drawn to: corners of the source, then of the
    /// destination.
    pub fn blit(&self, from: [i32; 4], to: [i32; 4], mask: u32, filter: u32) {
        let ([a, b, c, d], [e, f, g, h]) = (from, to);
        // SAFETY: plain numbers, which GL checks.
        unsafe { real::glBlitFramebuffer(a, b, c, d, e, f, g, h, mask, filter) };
    }

    /// The end of a limit that is a range of two numbers.
    pub fn range_end(&self, what: u32) -> f32 {
        // Some limits have several values; none that is asked for here has more than four.
        let mut value = [0.0_f32; 4];
        // SAFETY: there is room for what is written.
        unsafe { real::glGetFloatv(what, value.as_mut_ptr().cast()) };
        value[1]
    }

    /// The first pixels of the framebuffer that is read.
    pub fn read(&self, [width, height]: [u32; 2], layout: PixelLayout) -> Vec<u8> {
        assert_eq!(layout.bytes % 4, 0, "rows need no padding");
        let mut pixels = vec![0_u8; width as usize * height as usize * layout.bytes];
        let (width, height) = (length(width as usize), length(height as usize));
        let PixelLayout { format, kind, .. } = layout;
        // SAFETY: there is room for all pixels of the layout, as its bytes say; GL refuses layouts that are none.
        unsafe { real::glReadPixels(0, 0, width, height, format, kind, pixels.as_mut_ptr().cast()) };
        pixels
    }
}
