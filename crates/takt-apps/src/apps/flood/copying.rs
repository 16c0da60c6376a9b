//! Floods of copies: uploads, blits, and mipmaps.

use anyhow::Context as _;
use takt_gl_api::gl::{DRAW_FRAMEBUFFER, FRAMEBUFFER, READ_FRAMEBUFFER, TEXTURE_2D};
use takt_gl_driver::{Blit, Gl};

use super::Load;
use crate::gfx;

/// Length of each side of the copied square.
const SIDE: u32 = 1024;

/// Which copy is made again and again.
#[derive(Clone, Copy, Debug)]
enum Copy {
    Upload,
    Blit(Blit, [u32; 2]),
    Mipmap,
}

/// As many copies as it takes.
pub(super) struct Copies {
    copy: Copy,
    texture: u32,
    side: u32,
    pixels: Vec<u8>,
    count: u32,
}

impl Copies {
    /// Uploads of a texture.
    pub(super) fn uploads(gl: &Gl) -> Self {
        Self::new(gl, Copy::Upload)
    }

    /// Mipmaps of a texture.
    pub(super) fn mipmaps(gl: &Gl) -> Self {
        Self::new(gl, Copy::Mipmap)
    }

    /// Copies from one texture to another.
    pub(super) fn blits(gl: &Gl) -> anyhow::Result<Self> {
        let blit = Blit::load().context("copies between framebuffers need GL ES 3.0")?;
        let (from, to) = (gl.new_framebuffer(), gl.new_framebuffer());
        let copies = Self::new(gl, Copy::Blit(blit, [from, to]));
        let other = gl.new_texture();
        gl.bind_texture(TEXTURE_2D, other);
        gl.upload(copies.side, copies.side, None);
        for (target, texture) in [(from, copies.texture), (to, other)] {
            gl.bind_framebuffer(FRAMEBUFFER, target);
            anyhow::ensure!(gl.render_to_texture(texture), "the driver cannot draw to a texture");
        }
        gl.bind_framebuffer(FRAMEBUFFER, 0);
        Ok(copies)
    }

    fn new(gl: &Gl, copy: Copy) -> Self {
        let (side, texture) = (gfx::texture_length(gl, SIDE), gl.new_texture());
        let pixels: Vec<u8> = (0..=250).cycle().take(side as usize * side as usize * 4).collect();
        gl.bind_texture(TEXTURE_2D, texture);
        gl.upload(side, side, Some(&pixels));
        Self { copy, texture, side, pixels, count: 1 }
    }
}

impl Load for Copies {
    fn prepare(&mut self, _gl: &Gl, loops: u32) -> anyhow::Result<()> {
        self.count = loops;
        Ok(())
    }

    fn once(&self, gl: &Gl, _time: f32) {
        gl.bind_texture(TEXTURE_2D, self.texture);
        if let Copy::Blit(_, [from, to]) = self.copy {
            gl.bind_framebuffer(READ_FRAMEBUFFER, from);
            gl.bind_framebuffer(DRAW_FRAMEBUFFER, to);
        }
        for _ in 0..self.count {
            match &self.copy {
                Copy::Upload => gl.upload(self.side, self.side, Some(&self.pixels)),
                Copy::Blit(blit, _) => blit.square(self.side),
                Copy::Mipmap => gl.generate_mipmap(TEXTURE_2D),
            }
        }
        if let Copy::Blit(..) = self.copy {
            gl.bind_framebuffer(FRAMEBUFFER, 0);
        }
    }
}
