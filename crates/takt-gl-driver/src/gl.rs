//! GL ES: the functions that measuring, apps and tests call.
//!
//! A [`Gl`] belongs to the thread on which its context is current, and cannot leave it. Functions
//! that take pointers take slices here, and check that they are long enough.

use std::ffi::{CStr, CString, c_char};
use std::marker::PhantomData;
use std::ptr;

use takt_gl_api::entry::{Id, Ptr, real};
use takt_gl_api::gl;

use crate::library::{Missing, load};
use crate::{length, numbers};

/// GL ES on the thread whose context is current.
#[derive(Debug)]
pub struct Gl {
    // Keeps it on its thread.
    _thread: PhantomData<*const ()>,
}

numbers! { Gl needs NEEDED {
        glGetString, glGetIntegerv, glShaderSource, glGetShaderiv, glGetShaderInfoLog, glGetProgramiv,
        glGetProgramInfoLog, glBindAttribLocation, glGenTextures, glDeleteTextures,
        glGenBuffers, glDeleteBuffers, glBufferData, glVertexAttribPointer, glTexImage2D,
        glGenFramebuffers, glDeleteFramebuffers, glGenRenderbuffers, glDeleteRenderbuffers, glReadPixels,
        glCopyTexSubImage2D, glDrawArrays, glDrawElements, glActiveTexture, glGetActiveAttrib, glGetActiveUniform,
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
    clear_color = glClearColor(red: f32, green: f32, blue: f32, alpha: f32);
    viewport = glViewport(x: i32, y: i32, width: i32, height: i32);
    scissor = glScissor(x: i32, y: i32, width: i32, height: i32);
    bind_texture = glBindTexture(target: u32, texture: u32);
    texture_parameter = glTexParameteri(target: u32, name: u32, value: u32);
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
    set_float = glUniform1f(location: i32, value: f32);
    set_vec2 = glUniform2f(location: i32, x: f32, y: f32);
    set_vec3 = glUniform3f(location: i32, x: f32, y: f32, z: f32);
    set_vec4 = glUniform4f(location: i32, x: f32, y: f32, z: f32, w: f32);
    finish = glFinish();
    flush = glFlush();
    error = glGetError() -> u32;
}

/// Objects of one kind are made and deleted alike.
macro_rules! objects {
    ($($new:ident, $delete:ident = $generate:ident, $remove:ident;)*) => {
        impl Gl {
            $(/// A new object.
            pub fn $new(&self) -> u32 {
                let mut name = 0_u32;
                // SAFETY: one number is written.
                unsafe { real::$generate(1, (&raw mut name).cast()) };
                name
            }

            /// Deletes an object.
            pub fn $delete(&self, mut name: u32) {
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

impl Gl {
    /// Finds the functions; a context must be current on this thread and stay so while they are used.
    pub fn load() -> Result<Self, Missing> {
        load(NEEDED)?;
        Ok(Self { _thread: PhantomData })
    }

    /// `GL_RENDERER`.
    pub fn renderer(&self) -> String {
        self.string(gl::RENDERER)
    }

    /// `GL_VERSION`.
    pub fn version(&self) -> String {
        self.string(gl::VERSION)
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
    pub fn integer(&self, what: u32) -> u32 {
        // Some limits have several values; none that is asked for here has more than four.
        let mut value = [0_i32; 4];
        // SAFETY: there is room for what is written.
        unsafe { real::glGetIntegerv(what, value.as_mut_ptr().cast()) };
        u32::try_from(value[0]).unwrap_or(0)
    }

    /// Compiles and links a program, with attributes at 0, 1, …; the driver's words if it refuses.
    pub fn program(&self, vertex: &str, fragment: &str, attributes: &[&str]) -> Result<u32, String> {
        self.link(vertex, fragment, |program| {
            for (index, name) in (0..).zip(attributes) {
                let name = c_name(name);
                // SAFETY: the name ends with a zero byte.
                unsafe { real::glBindAttribLocation(program, index, name.as_ptr().cast_mut().cast()) };
            }
        })
    }

    /// Compiles a program, prepares it, and links it.
    pub(crate) fn link(
        &self,
        vertex: &str,
        fragment: &str,
        prepare: impl FnOnce(u32),
    ) -> Result<u32, String> {
        self.link_stages(&[(gl::VERTEX_SHADER, vertex), (gl::FRAGMENT_SHADER, fragment)], prepare)
    }

    /// The same with sources of any stages.
    pub(crate) fn link_stages(
        &self,
        stages: &[(u32, &str)],
        prepare: impl FnOnce(u32),
    ) -> Result<u32, String> {
        let shaders: Vec<u32> =
            stages.iter().map(|(kind, source)| self.compile(*kind, source)).collect::<Result<_, _>>()?;
        let program = self.create_program();
        for shader in shaders {
            self.attach_shader(program, shader);
            self.delete_shader(shader);
        }
        prepare(program);
        self.link_program(program);
        let calls: Verdict = (real::glGetProgramiv, real::glGetProgramInfoLog);
        verdict(program, gl::LINK_STATUS, calls).inspect_err(|_| self.delete_program(program))
    }

    fn compile(&self, kind: u32, source: &str) -> Result<u32, String> {
        let shader = self.create_shader(kind);
        let (mut text, mut size) = (source.as_ptr().cast::<c_char>(), length(source.len()));
        // SAFETY: one string with its length, which GL copies.
        unsafe { real::glShaderSource(shader, 1, (&raw mut text).cast(), (&raw mut size).cast()) };
        self.compile_shader(shader);
        let calls: Verdict = (real::glGetShaderiv, real::glGetShaderInfoLog);
        verdict(shader, gl::COMPILE_STATUS, calls).inspect_err(|_| self.delete_shader(shader))
    }

    /// Gives the bound texture a size and, if there are any, pixels of four bytes.
    pub fn upload(&self, width: u32, height: u32, pixels: Option<&[u8]>) {
        self.upload_to(gl::TEXTURE_2D, width, height, pixels);
    }

    /// The same for an image of a texture, such as a face of a cube.
    pub fn upload_to(&self, image: u32, width: u32, height: u32, pixels: Option<&[u8]>) {
        let bytes = width as usize * height as usize * 4;
        assert!(pixels.is_none_or(|pixels| pixels.len() >= bytes), "four bytes per pixel");
        let data = pixels.map_or(ptr::null(), <[u8]>::as_ptr).cast_mut().cast();
        let (width, height) = (length(width as usize), length(height as usize));
        let format = gl::RGBA.cast_signed();
        // SAFETY: as many bytes as GL reads, by the assertion, or none; rows of four-byte pixels
        // need no padding.
        unsafe {
            real::glTexImage2D(image, 0, format, width, height, 0, gl::RGBA, gl::UNSIGNED_BYTE, data);
        }
    }

    /// Copies a square of the current target to the bound texture.
    pub fn copy_to_texture(&self, side: u32) {
        let side = side.cast_signed();
        // SAFETY: plain numbers, which GL checks.
        unsafe { real::glCopyTexSubImage2D(gl::TEXTURE_2D, 0, 0, 0, 0, 0, side, side) };
    }

    /// How the bound texture is looked up: linearly, without smaller versions.
    pub fn linear_lookup(&self, repeat: bool) {
        self.linear_lookup_in(gl::TEXTURE_2D, repeat);
    }

    /// The same for the texture at a target.
    pub fn linear_lookup_in(&self, target: u32, repeat: bool) {
        self.texture_parameter(target, gl::TEXTURE_MIN_FILTER, gl::LINEAR);
        self.texture_parameter(target, gl::TEXTURE_MAG_FILTER, gl::LINEAR);
        let wrap = if repeat { gl::REPEAT } else { gl::CLAMP_TO_EDGE };
        self.texture_parameter(target, gl::TEXTURE_WRAP_S, wrap);
        self.texture_parameter(target, gl::TEXTURE_WRAP_T, wrap);
    }

    /// Textures are bound to this unit from now on.
    pub fn use_unit(&self, unit: u32) {
        // SAFETY: a plain number, which GL checks.
        unsafe { real::glActiveTexture(gl::TEXTURE0 + unit) };
    }

    /// Binds an array buffer and fills it.
    pub fn fill_buffer(&self, buffer: u32, data: &[f32]) {
        self.fill(gl::ARRAY_BUFFER, buffer, data);
    }

    /// Binds a buffer to a target and fills it; GL takes elements of any size.
    pub(crate) fn fill<T: Copy>(&self, target: u32, buffer: u32, data: &[T]) {
        self.bind_buffer(target, buffer);
        let bytes = isize::try_from(size_of_val(data)).expect("sizes of slices fit");
        // SAFETY: `data` has so many bytes, which GL copies.
        unsafe { real::glBufferData(target, bytes, data.as_ptr().cast_mut().cast(), gl::STATIC_DRAW) };
    }

    /// The first pixels of the current target.
    pub fn read_pixels(&self, width: u32, height: u32, pixels: &mut [u8]) {
        assert!(pixels.len() >= width as usize * height as usize * 4, "four bytes per pixel");
        let (width, height) = (length(width as usize), length(height as usize));
        // SAFETY: there is room for four bytes per pixel.
        unsafe {
            real::glReadPixels(0, 0, width, height, gl::RGBA, gl::UNSIGNED_BYTE, pixels.as_mut_ptr().cast());
        }
    }

    /// Usual functions of blending and depth test.
    pub fn usual_functions(&self) {
        self.blend_func(gl::SRC_ALPHA, gl::ONE_MINUS_SRC_ALPHA);
        self.depth_func(gl::LEQUAL);
    }

    /// Attaches a texture to the bound framebuffer; whether that is complete.
    pub fn render_to_texture(&self, texture: u32) -> bool {
        self.attach_texture(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, gl::TEXTURE_2D, texture, 0);
        self.framebuffer_status(gl::FRAMEBUFFER) == gl::FRAMEBUFFER_COMPLETE
    }

    /// Gives a renderbuffer storage for depth, and attaches it to the bound framebuffer.
    pub fn add_depth(&self, renderbuffer: u32, width: u32, height: u32) -> bool {
        self.bind_renderbuffer(gl::RENDERBUFFER, renderbuffer);
        let (width, height) = (width.cast_signed(), height.cast_signed());
        self.renderbuffer_storage(gl::RENDERBUFFER, gl::DEPTH_COMPONENT16, width, height);
        self.attach_renderbuffer(gl::FRAMEBUFFER, gl::DEPTH_ATTACHMENT, gl::RENDERBUFFER, renderbuffer);
        self.framebuffer_status(gl::FRAMEBUFFER) == gl::FRAMEBUFFER_COMPLETE
    }

    /// Gives a renderbuffer storage with samples, and attaches it to the bound framebuffer; false if
    /// the driver cannot.
    pub fn render_to_samples(&self, renderbuffer: u32, samples: u32, width: u32, height: u32) -> bool {
        if !Id::glRenderbufferStorageMultisample.is_there() {
            return false;
        }
        self.bind_renderbuffer(gl::RENDERBUFFER, renderbuffer);
        let [samples, width, height] = [samples, width, height].map(u32::cast_signed);
        // SAFETY: plain numbers, which GL checks.
        unsafe {
            real::glRenderbufferStorageMultisample(gl::RENDERBUFFER, samples, gl::RGBA8, width, height)
        };
        self.attach_renderbuffer(gl::FRAMEBUFFER, gl::COLOR_ATTACHMENT0, gl::RENDERBUFFER, renderbuffer);
        let complete = self.framebuffer_status(gl::FRAMEBUFFER) == gl::FRAMEBUFFER_COMPLETE;
        self.error() == 0 && complete
    }
}

/// Longest words of a driver that are kept.
const LOG_BYTES: usize = 4096;

/// A name as C has it.
pub(crate) fn c_name(name: &str) -> CString {
    CString::new(name).expect("names have no zero byte")
}

/// How to ask for a number of an object, and for the driver's words on it.
type Verdict = (unsafe fn(u32, u32, Ptr), unsafe fn(u32, i32, Ptr, Ptr));

/// The object if it has this status, otherwise the driver's words.
fn verdict(object: u32, status: u32, (get, log): Verdict) -> Result<u32, String> {
    let mut good = 0_i32;
    // SAFETY: one number is written.
    unsafe { get(object, status, (&raw mut good).cast()) };
    if good != 0 {
        return Ok(object);
    }
    let mut words = [0_u8; LOG_BYTES];
    // SAFETY: there is room for as many bytes as are passed.
    unsafe { log(object, length(LOG_BYTES), ptr::null_mut(), words.as_mut_ptr().cast()) };
    let end = words.iter().position(|&byte| byte == 0).unwrap_or(LOG_BYTES);
    Err(String::from_utf8_lossy(&words[..end]).trim().to_owned())
}

/// `GL_EXT_disjoint_timer_query`.
#[derive(Debug)]
pub struct Timer {
    query: u32,
}

impl Timer {
    /// A timer, if the driver has any.
    pub fn new(gl: &Gl) -> Option<Self> {
        let calls =
            [Id::glGenQueriesEXT, Id::glBeginQueryEXT, Id::glEndQueryEXT, Id::glGetQueryObjectui64vEXT];
        let offered = gl.string(gl::EXTENSIONS).split(' ').any(|name| name == "GL_EXT_disjoint_timer_query");
        if !offered || !calls.into_iter().all(Id::is_there) {
            return None;
        }
        let mut query = 0_u32;
        // SAFETY: one number is written.
        unsafe { real::glGenQueriesEXT(1, (&raw mut query).cast()) };
        Some(Self { query })
    }

    /// Nanoseconds that the GPU spends on what `work` calls.
    pub fn measure(&self, work: &mut dyn FnMut()) -> u64 {
        // SAFETY: GL checks both numbers.
        unsafe { real::glBeginQueryEXT(gl::TIME_ELAPSED_EXT, self.query) };
        work();
        // SAFETY: GL checks the number.
        unsafe { real::glEndQueryEXT(gl::TIME_ELAPSED_EXT) };
        let mut elapsed_ns = 0_u64;
        // SAFETY: one number of 64 bits is written; the call waits for it.
        unsafe {
            real::glGetQueryObjectui64vEXT(self.query, gl::QUERY_RESULT_EXT, (&raw mut elapsed_ns).cast())
        };
        elapsed_ns
    }
}

/// Time stamps that the GPU takes between commands, without a wait.
#[derive(Debug)]
pub struct Stamps {
    spare: Vec<u32>,
}

/// A stamp that the GPU takes, or has taken.
#[derive(Debug)]
pub struct Stamp(u32);

impl Stamps {
    /// Stamps, if the driver has any.
    pub fn new(gl: &Gl) -> Option<Self> {
        let calls = [Id::glGenQueriesEXT, Id::glQueryCounterEXT, Id::glGetQueryObjectui64vEXT];
        let offered = gl.string(gl::EXTENSIONS).split(' ').any(|name| name == "GL_EXT_disjoint_timer_query");
        (offered && calls.into_iter().all(Id::is_there)).then_some(Self { spare: Vec::new() })
    }

    /// Has the GPU take one behind all commands so far.
    pub fn put(&mut self) -> Stamp {
        let query = self.spare.pop().unwrap_or_else(|| {
            let mut query = 0_u32;
            // SAFETY: one number is written.
            unsafe { real::glGenQueriesEXT(1, (&raw mut query).cast()) };
            query
        });
        // SAFETY: GL checks the number.
        unsafe { real::glQueryCounterEXT(query, gl::TIMESTAMP_EXT) };
        Stamp(query)
    }

    /// Nanoseconds of the GPU's clock; waits for them.
    pub fn read(&mut self, stamp: Stamp) -> u64 {
        let mut at_ns = 0_u64;
        // SAFETY: one number of 64 bits is written; the call waits for it.
        unsafe { real::glGetQueryObjectui64vEXT(stamp.0, gl::QUERY_RESULT_EXT, (&raw mut at_ns).cast()) };
        self.spare.push(stamp.0);
        at_ns
    }
}
