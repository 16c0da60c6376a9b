//! GL ES: the functions that measuring calls.
//!
//! A [`Gl`] belongs to the thread on which its context is current, and cannot leave it. Functions
//! that take pointers take slices here, and check that they are long enough.

use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::ptr;

use takt_gl::entry::{Id, Ptr, real};

use super::{load, numbers};
use crate::Problem;

pub(crate) const TEXTURE_2D: u32 = 0x0DE1;
pub(crate) const TEXTURE_CUBE_MAP: u32 = 0x8513;
const TEXTURE0: u32 = 0x84C0;
pub(crate) const BLEND: u32 = 0x0BE2;
pub(crate) const DEPTH_TEST: u32 = 0x0B71;
pub(crate) const COLOR_BUFFER_BIT: u32 = 0x4000;
pub(crate) const DEPTH_BUFFER_BIT: u32 = 0x100;
pub(crate) const STENCIL_BUFFER_BIT: u32 = 0x400;
pub(crate) const TRIANGLES: u32 = 4;
pub(crate) const TRIANGLE_STRIP: u32 = 5;
pub(crate) const MAX_TEXTURE_SIZE: u32 = 0x0D33;
pub(crate) const MAX_SAMPLES: u32 = 0x8D57;
pub(crate) const MAX_VERTEX_ATTRIBS: u32 = 0x8869;
pub(crate) const MAX_VARYING_VECTORS: u32 = 0x8DFC;
pub(crate) const FRAMEBUFFER: u32 = 0x8D40;
const FRAMEBUFFER_COMPLETE: u32 = 0x8CD5;
const RENDERBUFFER: u32 = 0x8D41;
const COLOR_ATTACHMENT0: u32 = 0x8CE0;
const DEPTH_ATTACHMENT: u32 = 0x8D00;
const RGBA8: u32 = 0x8058;
const DEPTH_COMPONENT16: u32 = 0x81A5;
const RENDERER: u32 = 0x1F01;
const VERSION: u32 = 0x1F02;
const EXTENSIONS: u32 = 0x1F03;
const ARRAY_BUFFER: u32 = 0x8892;
const STATIC_DRAW: u32 = 0x88E4;
const FLOAT: u32 = 0x1406;
const UNSIGNED_BYTE: u32 = 0x1401;
const RGBA: u32 = 0x1908;
const COMPILE_STATUS: u32 = 0x8B81;
const LINK_STATUS: u32 = 0x8B82;
const VERTEX_SHADER: u32 = 0x8B31;
const FRAGMENT_SHADER: u32 = 0x8B30;
const TEXTURE_MAG_FILTER: u32 = 0x2800;
const TEXTURE_MIN_FILTER: u32 = 0x2801;
const LINEAR: i32 = 0x2601;
const TEXTURE_WRAP_S: u32 = 0x2802;
const TEXTURE_WRAP_T: u32 = 0x2803;
const REPEAT: i32 = 0x2901;
const CLAMP_TO_EDGE: i32 = 0x812F;
const SRC_ALPHA: u32 = 0x0302;
const ONE_MINUS_SRC_ALPHA: u32 = 0x0303;
const LEQUAL: u32 = 0x0203;
/// `GL_TIME_ELAPSED_EXT`.
const TIME_ELAPSED: u32 = 0x88BF;
/// `GL_QUERY_RESULT_EXT`.
const QUERY_RESULT: u32 = 0x8866;
/// Floats of an attribute at most.
const ATTRIBUTE_FLOATS: u32 = 4;

/// Bytes from one vertex to the next, within a part.
const STRIDE: i32 = 16;

/// GL ES on the thread whose context is current.
#[derive(Debug)]
pub(crate) struct Gl {
    // Keeps it on its thread.
    _thread: PhantomData<*const ()>,
}

numbers! { Gl needs NEEDED {
        glGetString, glGetIntegerv, glShaderSource, glGetShaderiv, glGetShaderInfoLog, glGetProgramiv,
        glGetProgramInfoLog, glBindAttribLocation, glGenTextures, glDeleteTextures,
        glGenBuffers, glDeleteBuffers, glBufferData, glVertexAttribPointer, glTexImage2D,
        glGenFramebuffers, glDeleteFramebuffers, glGenRenderbuffers, glDeleteRenderbuffers, glReadPixels,
        glCopyTexSubImage2D, glDrawArrays, glActiveTexture, glGetActiveAttrib, glGetActiveUniform,
        glGetAttribLocation, glGetUniformLocation, glVertexAttrib4f, glUniform1fv, glUniform2fv,
        glUniform3fv, glUniform4fv, glUniform1iv, glUniform2iv, glUniform3iv, glUniform4iv,
        glUniformMatrix2fv, glUniformMatrix3fv, glUniformMatrix4fv,
    }
    create_shader = glCreateShader(kind: u32) -> u32;
    compile_shader = glCompileShader(shader: u32);
    delete_shader = glDeleteShader(shader: u32);
    create_program = glCreateProgram() -> u32;
    attach_shader = glAttachShader(program: u32, shader: u32);
    link_program = glLinkProgram(program: u32);
    use_program = glUseProgram(program: u32);
    delete_program = glDeleteProgram(program: u32);
    enable = glEnable(what: u32);
    disable = glDisable(what: u32);
    blend_func = glBlendFunc(source: u32, destination: u32);
    depth_func = glDepthFunc(function: u32);
    clear = glClear(mask: u32);
    viewport = glViewport(x: i32, y: i32, width: i32, height: i32);
    bind_texture = glBindTexture(target: u32, texture: u32);
    texture_parameter = glTexParameteri(target: u32, name: u32, value: i32);
    generate_mipmap = glGenerateMipmap(target: u32);
    enable_attribute = glEnableVertexAttribArray(index: u32);
    disable_attribute = glDisableVertexAttribArray(index: u32);
    bind_buffer = glBindBuffer(target: u32, buffer: u32);
    bind_framebuffer = glBindFramebuffer(target: u32, framebuffer: u32);
    framebuffer_status = glCheckFramebufferStatus(target: u32) -> u32;
    attach_texture =
        glFramebufferTexture2D(target: u32, attachment: u32, what: u32, texture: u32, level: i32);
    attach_renderbuffer =
        glFramebufferRenderbuffer(target: u32, attachment: u32, what: u32, renderbuffer: u32);
    bind_renderbuffer = glBindRenderbuffer(target: u32, renderbuffer: u32);
    renderbuffer_storage = glRenderbufferStorage(target: u32, format: u32, width: i32, height: i32);
    finish = glFinish();
    flush = glFlush();
    error = glGetError() -> u32;
}

/// Objects of one kind are made and deleted alike.
macro_rules! objects {
    ($($new:ident, $delete:ident = $generate:ident, $remove:ident;)*) => {
        impl Gl {
            $(pub(crate) fn $new(&self) -> u32 {
                let mut name = 0_u32;
                // SAFETY: one number is written.
                unsafe { real::$generate(1, (&raw mut name).cast()) };
                name
            }

            pub(crate) fn $delete(&self, mut name: u32) {
                // SAFETY: one number is read.
                unsafe { real::$remove(1, (&raw mut name).cast()) };
            })*
        }
    };
}

objects! {
    new_texture, delete_texture = glGenTextures, glDeleteTextures;
    new_buffer, delete_buffer = glGenBuffers, glDeleteBuffers;
    new_framebuffer, delete_framebuffer = glGenFramebuffers, glDeleteFramebuffers;
    new_renderbuffer, delete_renderbuffer = glGenRenderbuffers, glDeleteRenderbuffers;
}

fn length(count: usize) -> i32 {
    i32::try_from(count).expect("GL counts in 31 bits")
}

impl Gl {
    /// Finds the functions; a context must be current on this thread and stay so while they are used.
    pub(crate) fn load() -> Result<Self, Problem> {
        load(NEEDED)?;
        Ok(Self { _thread: PhantomData })
    }

    pub(crate) fn renderer(&self) -> String {
        self.string(RENDERER)
    }

    pub(crate) fn version(&self) -> String {
        self.string(VERSION)
    }

    fn string(&self, what: u32) -> String {
        // SAFETY: GL checks the number.
        let text = unsafe { real::glGetString(what) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the string is the driver's, ends with a zero byte, and lives as long as the context.
        unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned()
    }

    /// A limit of the driver.
    pub(crate) fn integer(&self, what: u32) -> u32 {
        // Some limits have several values; none that is asked for here has more than four.
        let mut value = [0_i32; 4];
        // SAFETY: there is room for what is written.
        unsafe { real::glGetIntegerv(what, value.as_mut_ptr().cast()) };
        u32::try_from(value[0]).unwrap_or(0)
    }

    /// Compiles and links a program, with attributes at 0, 1, …; the driver's words if it refuses.
    pub(crate) fn program(&self, vertex: &str, fragment: &str, attributes: &[&str]) -> Result<u32, String> {
        let vertex = self.compile(VERTEX_SHADER, vertex)?;
        let fragment = self.compile(FRAGMENT_SHADER, fragment)?;
        let program = self.create_program();
        for shader in [vertex, fragment] {
            self.attach_shader(program, shader);
            self.delete_shader(shader);
        }
        for (index, name) in (0..).zip(attributes) {
            let name = CString::new(*name).expect("names have no zero byte");
            // SAFETY: the name ends with a zero byte.
            unsafe { real::glBindAttribLocation(program, index, name.as_ptr().cast_mut().cast()) };
        }
        self.link_program(program);
        let mut linked = 0_i32;
        // SAFETY: one number is written.
        unsafe { real::glGetProgramiv(program, LINK_STATUS, (&raw mut linked).cast()) };
        if linked != 0 {
            return Ok(program);
        }
        let mut log = [0_u8; LOG_BYTES];
        // SAFETY: the log has room for as many bytes as are passed.
        unsafe {
            real::glGetProgramInfoLog(program, length(LOG_BYTES), ptr::null_mut(), log.as_mut_ptr().cast());
        }
        self.delete_program(program);
        Err(message(&log))
    }

    fn compile(&self, kind: u32, source: &str) -> Result<u32, String> {
        let shader = self.create_shader(kind);
        let (mut text, mut size) = (source.as_ptr().cast::<c_char>(), length(source.len()));
        // SAFETY: one string with its length, which GL copies.
        unsafe { real::glShaderSource(shader, 1, (&raw mut text).cast(), (&raw mut size).cast()) };
        self.compile_shader(shader);
        let mut compiled = 0_i32;
        // SAFETY: one number is written.
        unsafe { real::glGetShaderiv(shader, COMPILE_STATUS, (&raw mut compiled).cast()) };
        if compiled != 0 {
            return Ok(shader);
        }
        let mut log = [0_u8; LOG_BYTES];
        // SAFETY: the log has room for as many bytes as are passed.
        unsafe {
            real::glGetShaderInfoLog(shader, length(LOG_BYTES), ptr::null_mut(), log.as_mut_ptr().cast());
        }
        self.delete_shader(shader);
        Err(message(&log))
    }

    /// Gives the bound texture a size and, if there are any, pixels of four bytes.
    pub(crate) fn upload(&self, width: u32, height: u32, pixels: Option<&[u8]>) {
        self.upload_to(TEXTURE_2D, width, height, pixels);
    }

    /// The same for an image of a texture, such as a face of a cube.
    pub(crate) fn upload_to(&self, image: u32, width: u32, height: u32, pixels: Option<&[u8]>) {
        let bytes = width as usize * height as usize * 4;
        assert!(pixels.is_none_or(|pixels| pixels.len() >= bytes), "four bytes per pixel");
        let data = pixels.map_or(ptr::null(), <[u8]>::as_ptr).cast_mut().cast();
        let (width, height) = (length(width as usize), length(height as usize));
        let format = RGBA.cast_signed();
        // SAFETY: as many bytes as GL reads, by the assertion, or none; rows of four-byte pixels
        // need no padding.
        unsafe {
            real::glTexImage2D(image, 0, format, width, height, 0, RGBA, UNSIGNED_BYTE, data);
        }
    }

    /// Copies a square of the current target to the bound texture.
    pub(crate) fn copy_to_texture(&self, side: u32) {
        let side = side.cast_signed();
        // SAFETY: plain numbers, which GL checks.
        unsafe { real::glCopyTexSubImage2D(TEXTURE_2D, 0, 0, 0, 0, 0, side, side) };
    }

    /// How the bound texture is looked up: linearly, without smaller versions.
    pub(crate) fn linear_lookup(&self, repeat: bool) {
        self.linear_lookup_in(TEXTURE_2D, repeat);
    }

    /// The same for the texture at a target.
    pub(crate) fn linear_lookup_in(&self, target: u32, repeat: bool) {
        self.texture_parameter(target, TEXTURE_MIN_FILTER, LINEAR);
        self.texture_parameter(target, TEXTURE_MAG_FILTER, LINEAR);
        let wrap = if repeat { REPEAT } else { CLAMP_TO_EDGE };
        self.texture_parameter(target, TEXTURE_WRAP_S, wrap);
        self.texture_parameter(target, TEXTURE_WRAP_T, wrap);
    }

    /// Textures are bound to this unit from now on.
    pub(crate) fn use_unit(&self, unit: u32) {
        // SAFETY: a plain number, which GL checks.
        unsafe { real::glActiveTexture(TEXTURE0 + unit) };
    }

    /// Fills the bound array buffer.
    pub(crate) fn fill_buffer(&self, buffer: u32, data: &[f32]) {
        self.bind_buffer(ARRAY_BUFFER, buffer);
        let bytes = isize::try_from(size_of_val(data)).expect("sizes of slices fit");
        // SAFETY: `data` has so many bytes, which GL copies.
        unsafe { real::glBufferData(ARRAY_BUFFER, bytes, data.as_ptr().cast_mut().cast(), STATIC_DRAW) };
    }

    /// Draws `count` vertices from a buffer; attribute number n has `layout[n]` floats.
    pub(crate) fn draw(&self, mode: u32, count: u32, buffer: &Vertices, layout: &[u32]) {
        self.draw_from(mode, count, buffer, (0_u32..).zip(layout.iter().copied()));
    }

    /// The same for attributes at these locations, with so many floats.
    pub(crate) fn draw_at(&self, mode: u32, count: u32, buffer: &Vertices, inputs: &[(u32, u32)]) {
        self.draw_from(mode, count, buffer, inputs.iter().copied());
    }

    /// The n-th attribute begins at the n-th of equal parts of the buffer, each with room for four
    /// floats per vertex.
    fn draw_from(
        &self,
        mode: u32,
        count: u32,
        buffer: &Vertices,
        inputs: impl Iterator<Item = (u32, u32)> + Clone,
    ) {
        assert!(count <= buffer.capacity && inputs.clone().count() <= buffer.attributes, "a larger buffer");
        self.bind_buffer(ARRAY_BUFFER, buffer.name);
        for (part, (location, floats)) in inputs.clone().enumerate() {
            assert!((1..=ATTRIBUTE_FLOATS).contains(&floats), "one to four floats");
            let at: Ptr = ptr::without_provenance_mut(part * buffer.part_bytes());
            // SAFETY: an offset into the bound buffer, which holds enough by the assertions.
            unsafe { real::glVertexAttribPointer(location, floats.cast_signed(), FLOAT, 0, STRIDE, at) };
            self.enable_attribute(location);
        }
        // SAFETY: all vertices are in the bound buffer.
        unsafe { real::glDrawArrays(mode, 0, count.cast_signed()) };
        inputs.for_each(|(location, _)| self.disable_attribute(location));
    }

    /// The first pixels of the current target.
    pub(crate) fn read_pixels(&self, width: u32, height: u32, pixels: &mut [u8]) {
        assert!(pixels.len() >= width as usize * height as usize * 4, "four bytes per pixel");
        let (width, height) = (length(width as usize), length(height as usize));
        // SAFETY: there is room for four bytes per pixel.
        unsafe {
            real::glReadPixels(0, 0, width, height, RGBA, UNSIGNED_BYTE, pixels.as_mut_ptr().cast());
        }
    }

    /// Usual functions of blending and depth test.
    pub(crate) fn usual_functions(&self) {
        self.blend_func(SRC_ALPHA, ONE_MINUS_SRC_ALPHA);
        self.depth_func(LEQUAL);
    }

    /// Attaches a texture to the bound framebuffer; whether that is complete.
    pub(crate) fn render_to_texture(&self, texture: u32) -> bool {
        self.attach_texture(FRAMEBUFFER, COLOR_ATTACHMENT0, TEXTURE_2D, texture, 0);
        self.framebuffer_status(FRAMEBUFFER) == FRAMEBUFFER_COMPLETE
    }

    /// Gives a renderbuffer storage for depth, and attaches it to the bound framebuffer.
    pub(crate) fn add_depth(&self, renderbuffer: u32, width: u32, height: u32) -> bool {
        self.bind_renderbuffer(RENDERBUFFER, renderbuffer);
        let (width, height) = (width.cast_signed(), height.cast_signed());
        self.renderbuffer_storage(RENDERBUFFER, DEPTH_COMPONENT16, width, height);
        self.attach_renderbuffer(FRAMEBUFFER, DEPTH_ATTACHMENT, RENDERBUFFER, renderbuffer);
        self.framebuffer_status(FRAMEBUFFER) == FRAMEBUFFER_COMPLETE
    }

    /// Gives a renderbuffer storage with samples, and attaches it to the bound framebuffer; false if
    /// the driver cannot.
    pub(crate) fn render_to_samples(&self, renderbuffer: u32, samples: u32, width: u32, height: u32) -> bool {
        if !Id::glRenderbufferStorageMultisample.is_there() {
            return false;
        }
        self.bind_renderbuffer(RENDERBUFFER, renderbuffer);
        let [samples, width, height] = [samples, width, height].map(u32::cast_signed);
        // SAFETY: plain numbers, which GL checks.
        unsafe { real::glRenderbufferStorageMultisample(RENDERBUFFER, samples, RGBA8, width, height) };
        self.attach_renderbuffer(FRAMEBUFFER, COLOR_ATTACHMENT0, RENDERBUFFER, renderbuffer);
        let complete = self.framebuffer_status(FRAMEBUFFER) == FRAMEBUFFER_COMPLETE;
        self.error() == 0 && complete
    }
}

/// Longest words of a driver that are kept.
const LOG_BYTES: usize = 4096;

fn message(log: &[u8]) -> String {
    let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).trim().to_owned()
}

/// Vertices on the GPU: one part per attribute, each with four floats per vertex.
#[derive(Debug)]
pub(crate) struct Vertices {
    name: u32,
    capacity: u32,
    attributes: usize,
}

impl Vertices {
    /// A buffer whose every attribute has these floats, four per vertex.
    pub(crate) fn new(gl: &Gl, attributes: usize, data: &[f32]) -> Self {
        let capacity = u32::try_from(data.len() / 4).expect("few vertices");
        let name = gl.new_buffer();
        gl.fill_buffer(name, &data.repeat(attributes));
        Self { name, capacity, attributes }
    }

    pub(crate) fn delete(self, gl: &Gl) {
        gl.delete_buffer(self.name);
    }

    const fn part_bytes(&self) -> usize {
        self.capacity as usize * 4 * size_of::<f32>()
    }
}

/// `GL_EXT_disjoint_timer_query`.
#[derive(Debug)]
pub(crate) struct Timer {
    query: u32,
}

impl Timer {
    /// A timer, if the driver has any.
    pub(crate) fn new(gl: &Gl) -> Option<Self> {
        let calls =
            [Id::glGenQueriesEXT, Id::glBeginQueryEXT, Id::glEndQueryEXT, Id::glGetQueryObjectui64vEXT];
        let offered = gl.string(EXTENSIONS).split(' ').any(|name| name == "GL_EXT_disjoint_timer_query");
        if !offered || !calls.into_iter().all(Id::is_there) {
            return None;
        }
        let mut query = 0_u32;
        // SAFETY: one number is written.
        unsafe { real::glGenQueriesEXT(1, (&raw mut query).cast()) };
        Some(Self { query })
    }

    /// Nanoseconds that the GPU spends on what `work` calls.
    pub(crate) fn measure(&self, work: &mut dyn FnMut()) -> u64 {
        // SAFETY: GL checks both numbers.
        unsafe { real::glBeginQueryEXT(TIME_ELAPSED, self.query) };
        work();
        // SAFETY: GL checks the number.
        unsafe { real::glEndQueryEXT(TIME_ELAPSED) };
        let mut elapsed_ns = 0_u64;
        // SAFETY: one number of 64 bits is written; the call waits for it.
        unsafe { real::glGetQueryObjectui64vEXT(self.query, QUERY_RESULT, (&raw mut elapsed_ns).cast()) };
        elapsed_ns
    }
}
