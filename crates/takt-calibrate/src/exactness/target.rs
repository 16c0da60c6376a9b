//! What is drawn to: a surface, a texture or a render buffer, of some format and number of samples; and its values,
//! read back sample by sample where the driver lets shaders do that.

use takt_gl_api::gl;
use takt_gl_driver::{Gl, PixelLayout, Targets};
use takt_predict::exactness::State;

/// Width and height of all targets: no multiples of what boxes are aligned to.
pub(super) const SIZE: [u32; 2] = [100, 84];

/// Colours of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Format {
    /// As the self-test calls it.
    pub(super) state: State,
    /// As GL calls it.
    pub(super) internal: u32,
    layout: PixelLayout,
    /// What shaders write: `vec4`, `uvec4`.
    pub(super) vector: &'static str,
}

const fn format(state: State, internal: u32, kind: u32, bytes: usize) -> Format {
    Format { state, internal, layout: PixelLayout { format: gl::RGBA, kind, bytes }, vector: "vec4" }
}

/// One format for each state, the plain one first.
pub(super) const FORMATS: [Format; 5] = [
    format(State::Normalised, gl::RGBA8, gl::UNSIGNED_BYTE, 4),
    format(State::Srgb, gl::SRGB8_ALPHA8, gl::UNSIGNED_BYTE, 4),
    format(State::Packed, gl::RGB565, gl::UNSIGNED_BYTE, 4),
    format(State::Float, gl::RGBA16F, gl::FLOAT, 16),
    Format {
        state: State::Integer,
        internal: gl::RGBA8UI,
        layout: PixelLayout { format: gl::RGBA_INTEGER, kind: gl::UNSIGNED_INT, bytes: 16 },
        vector: "uvec4",
    },
];

/// What holds the pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Surface,
    Texture,
    Renderbuffer,
}

/// A target that is drawn to.
#[derive(Debug)]
pub(super) struct Target<'a> {
    gl: &'a Gl,
    targets: Targets,
    kind: Kind,
    format: Format,
    samples: u32,
    framebuffer: u32,
    object: u32,
    planes: u32,
    /// Where single samples are read, and by which program.
    plain: Option<Plain>,
}

#[derive(Debug)]
struct Plain {
    framebuffer: u32,
    texture: u32,
    /// Copies a sample there; 0 if samples can only be resolved.
    program: u32,
}

impl<'a> Target<'a> {
    /// A target, if the driver has such ones. `samples` is 1 without any.
    pub(super) fn new(
        gl: &'a Gl,
        targets: Targets,
        kind: Kind,
        format: Format,
        samples: u32,
    ) -> Option<Self> {
        let mut target =
            Self { gl, targets, kind, format, samples, framebuffer: 0, object: 0, planes: 0, plain: None };
        if kind != Kind::Surface {
            target.make()?;
        }
        target.bind();
        Some(target)
    }

    fn make(&mut self) -> Option<()> {
        let Self { gl, targets, samples, .. } = *self;
        let ([width, height], internal) = (SIZE.map(u32::cast_signed), self.format.internal);
        self.framebuffer = gl.new_framebuffer();
        gl.bind_framebuffer(gl::FRAMEBUFFER, self.framebuffer);
        let made = match self.kind {
            Kind::Texture => self.make_texture(),
            _ => {
                self.object = gl.new_renderbuffer();
                gl.bind_renderbuffer(gl::RENDERBUFFER, self.object);
                let count = if samples > 1 { samples.cast_signed() } else { 0 };
                targets.renderbuffer_samples(gl::RENDERBUFFER, count, internal, width, height);
                gl.attach_renderbuffer(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, gl::RENDERBUFFER, self.object);
                true
            }
        };
        self.add_planes();
        let complete = made && gl.framebuffer_status(gl::FRAMEBUFFER) == gl::FRAMEBUFFER_COMPLETE;
        if samples > 1 && complete {
            self.plain = self.make_plain();
        }
        let usable = complete && gl.error() == 0 && (samples == 1 || self.plain.is_some());
        usable.then_some(())
    }

    fn make_texture(&mut self) -> bool {
        let (gl, internal) = (self.gl, self.format.internal);
        let target = if self.samples > 1 { gl::TEXTURE_2D_MULTISAMPLE } else { gl::TEXTURE_2D };
        self.object = gl.new_texture();
        gl.bind_texture(target, self.object);
        let made = match self.samples {
            1 => {
                let [width, height] = SIZE.map(u32::cast_signed);
                self.targets.texture_storage(target, 1, internal, width, height);
                true
            }
            samples => self.targets.texture_samples(target, samples, internal, SIZE),
        };
        gl.attach_texture(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, target, self.object, 0);
        made
    }

    /// Depth and stencil.
    fn add_planes(&mut self) {
        let [width, height] = SIZE.map(u32::cast_signed);
        self.planes = self.gl.new_renderbuffer();
        self.gl.bind_renderbuffer(gl::RENDERBUFFER, self.planes);
        let count = if self.samples > 1 { self.samples.cast_signed() } else { 0 };
        self.targets.renderbuffer_samples(gl::RENDERBUFFER, count, gl::DEPTH24_STENCIL8, width, height);
        self.gl.attach_renderbuffer(
            gl::FRAMEBUFFER,
            gl::DEPTH_STENCIL_ATTACHMENT,
            gl::RENDERBUFFER,
            self.planes,
        );
    }

    /// A target without samples of the same format, to read from.
    fn make_plain(&self) -> Option<Plain> {
        let (gl, [width, height]) = (self.gl, SIZE.map(u32::cast_signed));
        let (framebuffer, texture) = (gl.new_framebuffer(), gl.new_texture());
        gl.bind_framebuffer(gl::FRAMEBUFFER, framebuffer);
        gl.bind_texture(gl::TEXTURE_2D, texture);
        self.targets.texture_storage(gl::TEXTURE_2D, 1, self.format.internal, width, height);
        let complete = gl.render_to_texture(texture);
        let program = match self.kind {
            Kind::Texture => self.sample_program()?,
            _ => 0,
        };
        complete.then_some(Plain { framebuffer, texture, program })
    }

    /// Shows one sample of each pixel.
    fn sample_program(&self) -> Option<u32> {
        let vector = self.format.vector;
        let sampler = if vector == "uvec4" { "usampler2DMS" } else { "sampler2DMS" };
        let fragment = format!(
            "#version 310 es\nprecision highp float; precision highp {sampler}; uniform {sampler} image; \
             uniform int number; out highp {vector} colour; \
             void main() {{ colour = texelFetch(image, ivec2(gl_FragCoord.xy), number); }}"
        );
        let vertex = "#version 310 es\nvoid main() { \
            gl_Position = vec4(vec2(gl_VertexID & 1, gl_VertexID >> 1) * 4.0 - 1.0, 0.0, 1.0); }";
        self.gl.program(vertex, &fragment, &[]).ok()
    }

    /// What follows is drawn here.
    pub(super) fn bind(&self) {
        self.gl.bind_framebuffer(gl::FRAMEBUFFER, self.framebuffer);
        let [width, height] = SIZE.map(u32::cast_signed);
        self.gl.viewport(0, 0, width, height);
    }

    /// What is copied comes from here.
    pub(super) fn bind_to_read(&self) {
        self.gl.bind_framebuffer(gl::READ_FRAMEBUFFER, self.framebuffer);
    }

    /// All values, and bytes of each. No capability is enabled.
    pub(super) fn read(&self) -> (Vec<u8>, usize) {
        let bytes = self.format.layout.bytes;
        let Some(plain) = &self.plain else {
            return (self.targets.read(SIZE, self.format.layout), bytes);
        };
        let mut all = Vec::new();
        let rounds = if plain.program == 0 { 1 } else { self.samples };
        for sample in 0..rounds {
            self.show(plain, sample);
            self.gl.bind_framebuffer(gl::FRAMEBUFFER, plain.framebuffer);
            all.extend(self.targets.read(SIZE, self.format.layout));
        }
        self.bind();
        (all, bytes)
    }

    /// Brings a sample, or all of them resolved, to where they can be read.
    fn show(&self, plain: &Plain, sample: u32) {
        let gl = self.gl;
        if plain.program == 0 {
            let whole = [0, 0, SIZE[0].cast_signed(), SIZE[1].cast_signed()];
            gl.bind_framebuffer(gl::READ_FRAMEBUFFER, self.framebuffer);
            gl.bind_framebuffer(gl::DRAW_FRAMEBUFFER, plain.framebuffer);
            self.targets.blit(whole, whole, gl::COLOR_BUFFER_BIT, gl::NEAREST);
            return;
        }
        gl.bind_framebuffer(gl::FRAMEBUFFER, plain.framebuffer);
        gl.bind_texture(gl::TEXTURE_2D_MULTISAMPLE, self.object);
        gl.use_program(plain.program);
        let number = self.targets.uniform(plain.program, "number");
        self.targets.set_int(number, sample.cast_signed());
        gl.draw_arrays(gl::TRIANGLES, 3, &[]);
    }
}

impl Drop for Target<'_> {
    fn drop(&mut self) {
        let gl = self.gl;
        // What the driver refused is no reason to stop.
        let _refused = gl.error();
        gl.bind_framebuffer(gl::FRAMEBUFFER, 0);
        if let Some(plain) = &self.plain {
            gl.delete_framebuffer(plain.framebuffer);
            gl.delete_texture(plain.texture);
            gl.delete_program(plain.program);
        }
        if self.kind != Kind::Surface {
            gl.delete_framebuffer(self.framebuffer);
            gl.delete_renderbuffer(self.planes);
            match self.kind {
                Kind::Texture => gl.delete_texture(self.object),
                _ => gl.delete_renderbuffer(self.object),
            }
        }
    }
}
