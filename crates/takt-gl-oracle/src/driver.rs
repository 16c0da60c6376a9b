//! A context of the system's GL ES driver, and vertex shaders run in it.

use takt_gl_api::{egl, gl};
use takt_gl_driver::{Array, Egl, Feedback, Gl, Missing};

/// Why there is no driver to ask.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unavailable {
    /// A library or a function is missing.
    #[error(transparent)]
    Missing(#[from] Missing),
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
    feedback: Feedback,
    display: usize,
    context: usize,
}

const CONFIG: [i32; 5] = [egl::RENDERABLE_TYPE, egl::OPENGL_ES3_BIT, egl::SURFACE_TYPE, 0, egl::NONE];
const CONTEXT: [i32; 5] = [egl::CONTEXT_MAJOR_VERSION, 3, egl::CONTEXT_MINOR_VERSION, 0, egl::NONE];

impl Driver {
    /// Loads the driver and makes a context.
    ///
    /// # Errors
    ///
    /// Says what is missing, if it cannot be had.
    pub fn new() -> Result<Self, Unavailable> {
        let egl = Egl::load()?;
        let failed = |step| Unavailable::Egl { step, error: egl.error() };
        let display = egl.platform_display(egl::PLATFORM_SURFACELESS_MESA, std::ptr::null());
        if display == 0 {
            return Err(failed("find a display without surfaces"));
        }
        if !egl.initialise(display) {
            return Err(failed("start"));
        }
        if egl.bind_api(egl::OPENGL_ES_API) == 0 {
            return Err(failed("bind GL ES"));
        }
        let configs = egl.configs(display, &CONFIG);
        let config = *configs.first().ok_or_else(|| failed("offer a configuration"))?;
        let context = egl.new_context(display, config, 0, &CONTEXT);
        if context == 0 || egl.make_current(display, 0, 0, context) == 0 {
            return Err(failed("make a context"));
        }
        let (gl, feedback) = (Gl::load()?, Feedback::load()?);
        // Drawing needs a complete target, even if nothing is rasterised.
        let (framebuffer, renderbuffer) = (gl.new_framebuffer(), gl.new_renderbuffer());
        gl.bind_framebuffer(gl::FRAMEBUFFER, framebuffer);
        gl.bind_renderbuffer(gl::RENDERBUFFER, renderbuffer);
        gl.renderbuffer_storage(gl::RENDERBUFFER, gl::RGBA8, 4, 4);
        gl.attach_renderbuffer(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, gl::RENDERBUFFER, renderbuffer);
        gl.enable(gl::RASTERIZER_DISCARD);
        Ok(Self { egl, gl, feedback, display, context })
    }

    /// Name and version of the driver.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}, {}", self.gl.renderer(), self.gl.version())
    }

    /// `gl_Position` of each vertex.
    ///
    /// # Errors
    ///
    /// If the driver does not accept the shader, or reports an error.
    pub fn positions(&self, run: &Run) -> Result<Vec<[f32; 4]>, RunError> {
        let gl = &self.gl;
        // A program needs a fragment shader of the same language version.
        let fragment = if run.shader.trim_start().starts_with("#version 300") {
            "#version 300 es\nvoid main() {}\n"
        } else {
            "void main() {}\n"
        };
        let program = self.feedback.program(gl, &run.shader, fragment, "gl_Position");
        let program = program.map_err(RunError::Refused)?;
        gl.use_program(program);
        for Uniform { name, shape: (columns, rows), value } in &run.uniforms {
            let (location, columns, rows) =
                (gl.uniform(program, name), usize::from(*columns), usize::from(*rows));
            match value {
                Value::Floats(data) if columns > 1 => gl.set_matrices(location, columns, data),
                Value::Floats(data) => gl.set_floats(location, rows, data),
                Value::Ints(data) => gl.set_ints(location, rows, data),
            }
        }
        let result = self.draw(program, run);
        gl.delete_program(program);
        result
    }

    fn draw(&self, program: u32, run: &Run) -> Result<Vec<[f32; 4]>, RunError> {
        let attributes = run.attributes.iter().filter_map(|attribute| {
            let location = self.gl.attribute(program, &attribute.name)? + attribute.column;
            Some(Array { location, floats: attribute.components.into(), data: &attribute.data })
        });
        let arrays: Vec<Array<'_>> = attributes.collect();
        let recorded = self.feedback.run(&self.gl, run.vertices, &arrays);
        match (recorded, self.gl.error()) {
            (Some(positions), 0) => Ok(positions),
            (_, error) => Err(RunError::Gl(error)),
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The display stays: other threads may use it, and EGL keeps one per process.
        self.egl.make_current(self.display, 0, 0, 0);
        self.egl.destroy_context(self.display, self.context);
    }
}
