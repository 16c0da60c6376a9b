//! A context of the system's GL ES driver, and vertex shaders run in it.

use libloading::Library;

use crate::ffi::{Egl, Gl, load};

/// Why there is no driver to ask.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// EGL could not be loaded.
    #[error("no EGL library: {0}")]
    Library(String),
    /// A function is missing.
    #[error("no function {0}")]
    Symbol(String),
    /// EGL refused a step.
    #[error("EGL cannot {step} (error {error:#x})")]
    Egl {
        /// What it was asked for.
        step: &'static str,
        /// What `eglGetError` says.
        error: i32,
    },
}

/// Why the driver gave no positions.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RunError {
    /// The driver does not accept the shader.
    #[error("the driver refuses the shader: {0}")]
    Refused(String),
    /// GL reports an error.
    #[error("GL error {0:#x}")]
    Gl(u32),
}

/// Values of an attribute for all vertices.
#[derive(Clone, PartialEq, Debug)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Column of a matrix, 0 otherwise.
    pub column: u32,
    /// Floats per vertex.
    pub components: u8,
    /// All of them.
    pub data: Vec<f32>,
}

/// A value of a uniform.
#[derive(Clone, PartialEq, Debug)]
pub struct Uniform {
    /// Its name.
    pub name: String,
    /// Columns and rows of one element; a vector has one column.
    pub shape: (u8, u8),
    /// Its value.
    pub value: Value,
}

/// Data of a uniform.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// For floats, vectors and square matrices.
    Floats(Vec<f32>),
    /// For integers and truth values.
    Ints(Vec<i32>),
}

/// A vertex shader and what it is run with.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// Source of the vertex shader.
    pub shader: String,
    /// Its attributes; those that the driver has dropped are ignored.
    pub attributes: Vec<Attribute>,
    /// Its uniforms; those that the driver has dropped are ignored.
    pub uniforms: Vec<Uniform>,
    /// How many vertices to run.
    pub vertices: usize,
}

/// A GL ES 3.0 context without a display, current on the thread that made it.
pub struct Driver {
    egl: Egl,
    pub(crate) gl: Gl,
    display: usize,
    context: usize,
    // Last, so that it outlives what calls into it; it also keeps the type on its thread.
    _library: Library,
    _thread: std::marker::PhantomData<*const ()>,
}

const PLATFORM_SURFACELESS: u32 = 0x31DD;
const OPENGL_ES_API: u32 = 0x30A0;
/// Renderable by ES 3, any surface.
const CONFIG: [i32; 5] = [0x3040, 0x0040, 0x3033, 0, 0x3038];
/// Version 3.0.
const CONTEXT: [i32; 5] = [0x3098, 3, 0x30FB, 0, 0x3038];
const VERTEX_SHADER: u32 = 0x8B31;
const FRAGMENT_SHADER: u32 = 0x8B30;
pub(crate) const ARRAY_BUFFER: u32 = 0x8892;
const FEEDBACK_BUFFER: u32 = 0x8C8E;
pub(crate) const RASTERIZER_DISCARD: u32 = 0x8C89;
pub(crate) const FRAMEBUFFER: u32 = 0x8D40;
pub(crate) const RENDERBUFFER: u32 = 0x8D41;
pub(crate) const COLOR_ATTACHMENT0: u32 = 0x8CE0;
pub(crate) const RGBA8: u32 = 0x8058;
const POINTS: u32 = 0;
const RENDERER: u32 = 0x1F01;
const VERSION: u32 = 0x1F02;

impl Driver {
    /// Loads the driver and makes a context.
    ///
    /// # Errors
    ///
    /// Says what is missing, if it cannot be had.
    pub fn new() -> Result<Self, Unavailable> {
        let (library, egl, gl) = load()?;
        let failed = |step| Unavailable::Egl { step, error: egl.error() };
        let display = egl.platform_display(PLATFORM_SURFACELESS);
        if display == 0 {
            return Err(failed("find a display without surfaces"));
        }
        if !egl.initialise(display) {
            return Err(failed("start"));
        }
        if egl.bind_api(OPENGL_ES_API) == 0 {
            return Err(failed("bind GL ES"));
        }
        let config = egl.first_config(display, &CONFIG).ok_or_else(|| failed("offer a configuration"))?;
        let context = egl.new_context(display, config, &CONTEXT);
        if context == 0 || egl.make_current(display, 0, 0, context) == 0 {
            return Err(failed("make a context"));
        }
        // Drawing needs a complete target, even if nothing is rasterised.
        let (framebuffer, renderbuffer) = (gl.new_framebuffer(), gl.new_renderbuffer());
        gl.bind_framebuffer(FRAMEBUFFER, framebuffer);
        gl.bind_renderbuffer(RENDERBUFFER, renderbuffer);
        gl.renderbuffer_storage(RENDERBUFFER, RGBA8, 4, 4);
        gl.attach_renderbuffer(FRAMEBUFFER, COLOR_ATTACHMENT0, RENDERBUFFER, renderbuffer);
        gl.enable(RASTERIZER_DISCARD);
        let thread = std::marker::PhantomData;
        Ok(Self { egl, gl, display, context, _library: library, _thread: thread })
    }

    /// Name and version of the driver.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, {}", self.gl.string(RENDERER), self.gl.string(VERSION))
    }

    /// `gl_Position` of each vertex.
    ///
    /// # Errors
    ///
    /// If the driver does not accept the shader, or reports an error.
    pub fn positions(&self, run: &Run) -> Result<Vec<[f32; 4]>, RunError> {
        let program = self.program(&run.shader)?;
        self.gl.use_program(program);
        for uniform in &run.uniforms {
            if let Some(location) = self.gl.uniform(program, &uniform.name) {
                match &uniform.value {
                    Value::Floats(data) => self.gl.set_floats(location, uniform.shape, data),
                    Value::Ints(data) => self.gl.set_ints(location, uniform.shape.1, data),
                }
            }
        }
        let result = self.draw(program, run);
        self.gl.delete_program(program);
        result
    }

    fn draw(&self, program: u32, run: &Run) -> Result<Vec<[f32; 4]>, RunError> {
        let gl = &self.gl;
        let mut buffers = Vec::new();
        let mut enabled = Vec::new();
        for attribute in &run.attributes {
            let Some(index) = gl.attribute(program, &attribute.name) else {
                continue;
            };
            let index = index + attribute.column;
            assert!(
                attribute.data.len() >= run.vertices * usize::from(attribute.components),
                "data is short"
            );
            buffers.push(gl.new_buffer());
            gl.bind_buffer(ARRAY_BUFFER, buffers[buffers.len() - 1]);
            gl.fill(ARRAY_BUFFER, &attribute.data);
            gl.point_attribute(index, attribute.components);
            gl.enable_attribute(index);
            enabled.push(index);
        }
        let output = gl.new_buffer();
        gl.bind_buffer(FEEDBACK_BUFFER, output);
        gl.fill(FEEDBACK_BUFFER, &vec![0.0; run.vertices * 4]);
        gl.bind_buffer_base(FEEDBACK_BUFFER, 0, output);
        gl.begin_feedback(POINTS);
        gl.draw_arrays(POINTS, 0, i32::try_from(run.vertices).unwrap_or(0));
        gl.end_feedback();
        gl.finish();
        let error = gl.error();
        let floats = gl.copy_out(FEEDBACK_BUFFER, run.vertices * 4);
        enabled.into_iter().for_each(|index| gl.disable_attribute(index));
        buffers.into_iter().chain([output]).for_each(|buffer| gl.delete_buffer(buffer));
        match floats {
            Some(floats) if error == 0 => Ok(floats.as_chunks().0.to_vec()),
            _ => Err(RunError::Gl(error)),
        }
    }

    fn program(&self, vertex: &str) -> Result<u32, RunError> {
        // A program needs a fragment shader of the same language version.
        let fragment = if vertex.trim_start().starts_with("#version 300") {
            "#version 300 es\nvoid main() {}\n"
        } else {
            "void main() {}\n"
        };
        self.link(vertex, fragment)
    }

    pub(crate) fn link(&self, vertex: &str, fragment: &str) -> Result<u32, RunError> {
        let gl = &self.gl;
        let program = gl.create_program();
        for (kind, text) in [(VERTEX_SHADER, vertex), (FRAGMENT_SHADER, fragment)] {
            let shader = gl.create_shader(kind);
            gl.source(shader, text);
            gl.compile_shader(shader);
            gl.verdict(shader, false).map_err(RunError::Refused)?;
            gl.attach_shader(program, shader);
            gl.delete_shader(shader);
        }
        gl.record(program, c"gl_Position");
        gl.link_program(program);
        gl.verdict(program, true).map_err(RunError::Refused)?;
        Ok(program)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The display stays: other threads may use it, and EGL keeps one per process.
        self.egl.make_current(self.display, 0, 0, 0);
        self.egl.destroy_context(self.display, self.context);
    }
}
