//! The functions of EGL and GL ES that the oracle calls, found at run time.
//!
//! Everything unsafe is here. Functions that take plain numbers become safe methods by a macro;
//! those that take pointers are wrapped one by one, with slices in place of pointers.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;

use libloading::Library;

use crate::driver::Unavailable;

type GetProcAddress = unsafe extern "C" fn(*const c_char) -> *const c_void;

/// A table of function pointers, with a safe method for each function that takes only numbers.
macro_rules! table {
    ($(#[$doc:meta])* $table:ident {
        safe { $($safe:ident = $safe_symbol:literal ($($arg:ident: $ty:ty),*) -> $ret:ty;)* }
        raw { $($raw:ident = $raw_symbol:literal ($($raw_ty:ty),*) -> $raw_ret:ty;)* }
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $table {
            $($safe: unsafe extern "C" fn($($ty),*) -> $ret,)*
            $($raw: unsafe extern "C" fn($($raw_ty),*) -> $raw_ret,)*
        }

        impl $table {
            /// Looks all functions up.
            fn find(find: &dyn Fn(&CStr) -> *const c_void) -> Result<Self, Unavailable> {
                Ok(Self {
                    $($safe: {
                        let found = non_null($safe_symbol, find($safe_symbol))?;
                        // SAFETY: the symbol is the function of that name, whose signature the
                        // Khronos registry fixes; `found` is not null.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($ty),*) -> $ret>(found)
                        }
                    },)*
                    $($raw: {
                        let found = non_null($raw_symbol, find($raw_symbol))?;
                        // SAFETY: as above.
                        unsafe {
                            std::mem::transmute::<*const c_void, unsafe extern "C" fn($($raw_ty),*) -> $raw_ret>(found)
                        }
                    },)*
                })
            }

            $(pub(crate) fn $safe(&self, $($arg: $ty),*) -> $ret {
                // SAFETY: the function takes numbers only and checks them itself; the `Driver` that
                // owns this table keeps the library loaded and its context current.
                unsafe { (self.$safe)($($arg),*) }
            })*
        }
    };
}

table! {
    /// EGL; displays, configurations and contexts are handles that EGL itself checks.
    Egl {
        safe {
            bind_api = c"eglBindAPI" (api: u32) -> u32;
            error = c"eglGetError" () -> i32;
            destroy_context = c"eglDestroyContext" (display: usize, context: usize) -> u32;
            make_current = c"eglMakeCurrent" (display: usize, draw: usize, read: usize, context: usize) -> u32;
        }
        raw {
            get_platform_display = c"eglGetPlatformDisplay" (u32, *const c_void, *const isize) -> usize;
            initialize = c"eglInitialize" (usize, *mut i32, *mut i32) -> u32;
            choose_config = c"eglChooseConfig" (usize, *const i32, *mut usize, i32, *mut i32) -> u32;
            create_context = c"eglCreateContext" (usize, usize, usize, *const i32) -> usize;
        }
    }
}

table! {
    /// GL ES 3.0.
    Gl {
        safe {
            create_shader = c"glCreateShader" (kind: u32) -> u32;
            compile_shader = c"glCompileShader" (shader: u32) -> ();
            delete_shader = c"glDeleteShader" (shader: u32) -> ();
            create_program = c"glCreateProgram" () -> u32;
            attach_shader = c"glAttachShader" (program: u32, shader: u32) -> ();
            link_program = c"glLinkProgram" (program: u32) -> ();
            use_program = c"glUseProgram" (program: u32) -> ();
            delete_program = c"glDeleteProgram" (program: u32) -> ();
            enable = c"glEnable" (what: u32) -> ();
            disable = c"glDisable" (what: u32) -> ();
            viewport = c"glViewport" (x: i32, y: i32, w: i32, h: i32) -> ();
            scissor = c"glScissor" (x: i32, y: i32, w: i32, h: i32) -> ();
            blend = c"glBlendFunc" (source: u32, target: u32) -> ();
            depth = c"glDepthFunc" (test: u32) -> ();
            clear = c"glClear" (buffers: u32) -> ();
            enable_attribute = c"glEnableVertexAttribArray" (index: u32) -> ();
            disable_attribute = c"glDisableVertexAttribArray" (index: u32) -> ();
            bind_buffer = c"glBindBuffer" (target: u32, buffer: u32) -> ();
            bind_buffer_base = c"glBindBufferBase" (target: u32, index: u32, buffer: u32) -> ();
            begin_feedback = c"glBeginTransformFeedback" (mode: u32) -> ();
            end_feedback = c"glEndTransformFeedback" () -> ();
            draw_arrays = c"glDrawArrays" (mode: u32, first: i32, count: i32) -> ();
            bind_framebuffer = c"glBindFramebuffer" (target: u32, framebuffer: u32) -> ();
            bind_renderbuffer = c"glBindRenderbuffer" (target: u32, renderbuffer: u32) -> ();
            renderbuffer_storage = c"glRenderbufferStorage" (target: u32, format: u32, w: i32, h: i32) -> ();
            attach_renderbuffer = c"glFramebufferRenderbuffer" (at: u32, point: u32, kind: u32, it: u32) -> ();
            finish = c"glFinish" () -> ();
            error = c"glGetError" () -> u32;
        }
        raw {
            get_string = c"glGetString" (u32) -> *const c_char;
            shader_source = c"glShaderSource" (u32, i32, *const *const c_char, *const i32) -> ();
            get_shader = c"glGetShaderiv" (u32, u32, *mut i32) -> ();
            shader_log = c"glGetShaderInfoLog" (u32, i32, *mut i32, *mut c_char) -> ();
            get_program = c"glGetProgramiv" (u32, u32, *mut i32) -> ();
            program_log = c"glGetProgramInfoLog" (u32, i32, *mut i32, *mut c_char) -> ();
            feedback_varyings = c"glTransformFeedbackVaryings" (u32, i32, *const *const c_char, u32) -> ();
            attribute_location = c"glGetAttribLocation" (u32, *const c_char) -> i32;
            uniform_location = c"glGetUniformLocation" (u32, *const c_char) -> i32;
            gen_framebuffers = c"glGenFramebuffers" (i32, *mut u32) -> ();
            gen_renderbuffers = c"glGenRenderbuffers" (i32, *mut u32) -> ();
            delete_renderbuffers = c"glDeleteRenderbuffers" (i32, *const u32) -> ();
            delete_framebuffers = c"glDeleteFramebuffers" (i32, *const u32) -> ();
            read_pixels = c"glReadPixels" (i32, i32, i32, i32, u32, u32, *mut c_void) -> ();
            gen_buffers = c"glGenBuffers" (i32, *mut u32) -> ();
            delete_buffers = c"glDeleteBuffers" (i32, *const u32) -> ();
            buffer_data = c"glBufferData" (u32, isize, *const c_void, u32) -> ();
            map_buffer = c"glMapBufferRange" (u32, isize, isize, u32) -> *const c_void;
            unmap_buffer = c"glUnmapBuffer" (u32) -> u8;
            attribute_pointer = c"glVertexAttribPointer" (u32, i32, u32, u8, i32, usize) -> ();
            uniform_f1 = c"glUniform1fv" (i32, i32, *const f32) -> ();
            uniform_f2 = c"glUniform2fv" (i32, i32, *const f32) -> ();
            uniform_f3 = c"glUniform3fv" (i32, i32, *const f32) -> ();
            uniform_f4 = c"glUniform4fv" (i32, i32, *const f32) -> ();
            uniform_i1 = c"glUniform1iv" (i32, i32, *const i32) -> ();
            uniform_i2 = c"glUniform2iv" (i32, i32, *const i32) -> ();
            uniform_i3 = c"glUniform3iv" (i32, i32, *const i32) -> ();
            uniform_i4 = c"glUniform4iv" (i32, i32, *const i32) -> ();
            uniform_m2 = c"glUniformMatrix2fv" (i32, i32, u8, *const f32) -> ();
            uniform_m3 = c"glUniformMatrix3fv" (i32, i32, u8, *const f32) -> ();
            uniform_m4 = c"glUniformMatrix4fv" (i32, i32, u8, *const f32) -> ();
        }
    }
}

fn non_null(symbol: &CStr, found: *const c_void) -> Result<*const c_void, Unavailable> {
    if found.is_null() { Err(Unavailable::Symbol(symbol.to_string_lossy().into_owned())) } else { Ok(found) }
}

/// Loads the library and finds all functions.
pub(crate) fn load() -> Result<(Library, Egl, Gl), Unavailable> {
    // SAFETY: loading runs the initialisers of the system's EGL library, which is what every GL
    // program does at start.
    let library =
        unsafe { Library::new("libEGL.so.1") }.map_err(|error| Unavailable::Library(error.to_string()))?;
    // SAFETY: `eglGetProcAddress` has this signature in every version of EGL.
    let symbol = unsafe { library.get::<GetProcAddress>(c"eglGetProcAddress") };
    let proc_address: GetProcAddress = *symbol.map_err(|error| Unavailable::Symbol(error.to_string()))?;
    let find = move |name: &CStr| {
        // SAFETY: the name ends with a zero byte; the library is loaded.
        unsafe { proc_address(name.as_ptr()) }
    };
    let egl = Egl::find(&find)?;
    let gl = Gl::find(&find)?;
    Ok((library, egl, gl))
}

impl Egl {
    pub(crate) fn platform_display(&self, platform: u32) -> usize {
        // SAFETY: the platform asked for has no native display, so null is the right one.
        unsafe { (self.get_platform_display)(platform, ptr::null(), ptr::null()) }
    }

    pub(crate) fn initialise(&self, display: usize) -> bool {
        // SAFETY: the versions may be left out.
        unsafe { (self.initialize)(display, ptr::null_mut(), ptr::null_mut()) != 0 }
    }

    /// The first configuration with these attributes, which must end with `EGL_NONE`.
    pub(crate) fn first_config(&self, display: usize, attributes: &[i32]) -> Option<usize> {
        let (mut config, mut count) = (0_usize, 0_i32);
        // SAFETY: there is room for the one configuration asked for, and the list has its end.
        let done =
            unsafe { (self.choose_config)(display, attributes.as_ptr(), &raw mut config, 1, &raw mut count) };
        (done != 0 && count > 0).then_some(config)
    }

    pub(crate) fn new_context(&self, display: usize, config: usize, attributes: &[i32]) -> usize {
        // SAFETY: the list has its end; no context is shared.
        unsafe { (self.create_context)(display, config, 0, attributes.as_ptr()) }
    }
}

impl Gl {
    pub(crate) fn string(&self, what: u32) -> String {
        // SAFETY: a context is current.
        let text = unsafe { (self.get_string)(what) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: GL gives a string that ends with a zero byte and lives as long as the context.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    pub(crate) fn source(&self, shader: u32, text: &str) {
        let pointer = text.as_ptr().cast::<c_char>();
        let length = i32::try_from(text.len()).unwrap_or(0);
        // SAFETY: one string with its length; GL copies it before it returns.
        unsafe { (self.shader_source)(shader, 1, &raw const pointer, &raw const length) }
    }

    /// Whether a shader compiled, or a program linked, and the driver's words if not.
    pub(crate) fn verdict(&self, object: u32, program: bool) -> Result<(), String> {
        const COMPILE_STATUS: u32 = 0x8B81;
        const LINK_STATUS: u32 = 0x8B82;
        let (mut status, mut length) = (0_i32, 0_i32);
        let mut text = vec![0_u8; 4096];
        let room = i32::try_from(text.len()).unwrap_or(0);
        let buffer = text.as_mut_ptr().cast::<c_char>();
        let (get, log, what) = if program {
            (self.get_program, self.program_log, LINK_STATUS)
        } else {
            (self.get_shader, self.shader_log, COMPILE_STATUS)
        };
        // SAFETY: `status` has room for the one number that these states have.
        unsafe { get(object, what, &raw mut status) };
        if status != 0 {
            return Ok(());
        }
        // SAFETY: GL writes at most `room` bytes to the buffer.
        unsafe { log(object, room, &raw mut length, buffer) };
        text.truncate(usize::try_from(length).unwrap_or(0));
        Err(String::from_utf8_lossy(&text).into_owned())
    }

    /// Records one varying by transform feedback.
    pub(crate) fn record(&self, program: u32, varying: &CStr) {
        const INTERLEAVED: u32 = 0x8C8C;
        let name = varying.as_ptr();
        // SAFETY: one name that ends with a zero byte; GL copies it.
        unsafe { (self.feedback_varyings)(program, 1, &raw const name, INTERLEAVED) }
    }

    pub(crate) fn attribute(&self, program: u32, name: &str) -> Option<u32> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero byte.
        let location = unsafe { (self.attribute_location)(program, name.as_ptr()) };
        u32::try_from(location).ok()
    }

    pub(crate) fn uniform(&self, program: u32, name: &str) -> Option<i32> {
        let name = CString::new(name).ok()?;
        // SAFETY: the name ends with a zero byte.
        let location = unsafe { (self.uniform_location)(program, name.as_ptr()) };
        (location >= 0).then_some(location)
    }

    pub(crate) fn new_framebuffer(&self) -> u32 {
        let mut framebuffer = 0;
        // SAFETY: room for the one name asked for.
        unsafe { (self.gen_framebuffers)(1, &raw mut framebuffer) };
        framebuffer
    }

    pub(crate) fn new_renderbuffer(&self) -> u32 {
        let mut renderbuffer = 0;
        // SAFETY: room for the one name asked for.
        unsafe { (self.gen_renderbuffers)(1, &raw mut renderbuffer) };
        renderbuffer
    }

    pub(crate) fn new_buffer(&self) -> u32 {
        let mut buffer = 0;
        // SAFETY: room for the one name asked for.
        unsafe { (self.gen_buffers)(1, &raw mut buffer) };
        buffer
    }

    pub(crate) fn delete_buffer(&self, buffer: u32) {
        // SAFETY: one name to read.
        unsafe { (self.delete_buffers)(1, &raw const buffer) }
    }

    /// Fills the bound buffer.
    pub(crate) fn fill(&self, target: u32, data: &[f32]) {
        const STATIC_DRAW: u32 = 0x88E4;
        let bytes = isize::try_from(size_of_val(data)).unwrap_or(0);
        // SAFETY: GL copies that many bytes from a slice that has them.
        unsafe { (self.buffer_data)(target, bytes, data.as_ptr().cast(), STATIC_DRAW) }
    }

    /// Copies the bound buffer's first floats.
    pub(crate) fn copy_out(&self, target: u32, floats: usize) -> Option<Vec<f32>> {
        const MAP_READ: u32 = 1;
        let bytes = isize::try_from(floats * size_of::<f32>()).ok()?;
        // SAFETY: the range lies within the buffer, or GL gives null.
        let mapped = unsafe { (self.map_buffer)(target, 0, bytes, MAP_READ) };
        if mapped.is_null() {
            return None;
        }
        // SAFETY: GL maps `bytes` readable bytes, aligned for any basic type, until they are
        // unmapped below; the slice ends before that.
        let copy = unsafe { std::slice::from_raw_parts(mapped.cast::<f32>(), floats) }.to_vec();
        // SAFETY: the buffer is bound and mapped.
        unsafe { (self.unmap_buffer)(target) };
        Some(copy)
    }

    pub(crate) fn delete_framebuffer(&self, framebuffer: u32) {
        // SAFETY: one name to read.
        unsafe { (self.delete_framebuffers)(1, &raw const framebuffer) }
    }

    pub(crate) fn delete_renderbuffer(&self, renderbuffer: u32) {
        // SAFETY: one name to read.
        unsafe { (self.delete_renderbuffers)(1, &raw const renderbuffer) }
    }

    /// Pixels of the bound framebuffer, four bytes each.
    pub(crate) fn pixels(&self, width: u16, height: u16) -> Vec<[u8; 4]> {
        const RGBA: u32 = 0x1908;
        const UNSIGNED_BYTE: u32 = 0x1401;
        let mut pixels = vec![[0; 4]; usize::from(width) * usize::from(height)];
        let (w, h) = (i32::from(width), i32::from(height));
        // SAFETY: GL writes four bytes for each pixel of the rectangle, and there is room for them;
        // rows of four-byte pixels need no padding.
        unsafe { (self.read_pixels)(0, 0, w, h, RGBA, UNSIGNED_BYTE, pixels.as_mut_ptr().cast()) };
        pixels
    }

    /// Reads tightly packed floats of the bound array buffer as an attribute.
    pub(crate) fn point_attribute(&self, index: u32, components: u8) {
        const FLOAT: u32 = 0x1406;
        // SAFETY: the last argument is an offset into the bound buffer, not a pointer; reads
        // beyond the buffer are the caller's mistake, which the driver of a test checks.
        unsafe { (self.attribute_pointer)(index, i32::from(components), FLOAT, 0, 0, 0) }
    }

    /// Sets a float uniform; `columns` above 1 for a square matrix.
    pub(crate) fn set_floats(&self, location: i32, (columns, rows): (u8, u8), data: &[f32]) {
        let count = i32::try_from(data.len() / (usize::from(columns) * usize::from(rows))).unwrap_or(0);
        let matrix = match columns {
            2 => Some(self.uniform_m2),
            3 => Some(self.uniform_m3),
            4 => Some(self.uniform_m4),
            _ => None,
        };
        if let Some(call) = matrix {
            // SAFETY: GL reads `count` matrices from a slice that has them.
            return unsafe { call(location, count, 0, data.as_ptr()) };
        }
        let call = match rows {
            1 => self.uniform_f1,
            2 => self.uniform_f2,
            3 => self.uniform_f3,
            _ => self.uniform_f4,
        };
        // SAFETY: GL reads `count` vectors from a slice that has them.
        unsafe { call(location, count, data.as_ptr()) }
    }

    /// Sets an integer, truth or sampler uniform.
    pub(crate) fn set_ints(&self, location: i32, rows: u8, data: &[i32]) {
        let count = i32::try_from(data.len() / usize::from(rows)).unwrap_or(0);
        let call = match rows {
            1 => self.uniform_i1,
            2 => self.uniform_i2,
            3 => self.uniform_i3,
            _ => self.uniform_i4,
        };
        // SAFETY: GL reads `count` vectors from a slice that has them.
        unsafe { call(location, count, data.as_ptr()) }
    }
}
