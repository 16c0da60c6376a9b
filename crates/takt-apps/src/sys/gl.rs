//! GL ES 2.0: the functions that the apps call.
//!
//! A [`Gl`] belongs to the thread on which its context is current, and cannot leave it. Functions
//! that take pointers take slices here, and check that they are long enough.

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::sync::OnceLock;

use libloading::Library;

use super::egl::Egl;
use super::{Missing, address, functions, open};

functions! {
    /// GL ES 2.0.
    Table {
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
            blend_func = c"glBlendFunc" (source: u32, destination: u32) -> ();
            clear_color = c"glClearColor" (r: f32, g: f32, b: f32, a: f32) -> ();
            clear = c"glClear" (mask: u32) -> ();
            viewport = c"glViewport" (x: i32, y: i32, width: i32, height: i32) -> ();
            bind_texture = c"glBindTexture" (target: u32, texture: u32) -> ();
            texture_parameter = c"glTexParameteri" (target: u32, name: u32, value: i32) -> ();
            generate_mipmap = c"glGenerateMipmap" (target: u32) -> ();
            pixel_store = c"glPixelStorei" (name: u32, value: i32) -> ();
            enable_attribute = c"glEnableVertexAttribArray" (index: u32) -> ();
            disable_attribute = c"glDisableVertexAttribArray" (index: u32) -> ();
            bind_buffer = c"glBindBuffer" (target: u32, buffer: u32) -> ();
            set_float = c"glUniform1f" (location: i32, value: f32) -> ();
            set_vec2 = c"glUniform2f" (location: i32, x: f32, y: f32) -> ();
            set_vec3 = c"glUniform3f" (location: i32, x: f32, y: f32, z: f32) -> ();
            set_vec4 = c"glUniform4f" (location: i32, x: f32, y: f32, z: f32, w: f32) -> ();
            finish = c"glFinish" () -> ();
            flush = c"glFlush" () -> ();
            error = c"glGetError" () -> u32;
        }
        raw {
            get_string = c"glGetString" (u32) -> *const c_char;
            get_integer = c"glGetIntegerv" (u32, *mut i32) -> ();
            shader_source = c"glShaderSource" (u32, i32, *const *const c_char, *const i32) -> ();
            get_shader = c"glGetShaderiv" (u32, u32, *mut i32) -> ();
            shader_log = c"glGetShaderInfoLog" (u32, i32, *mut i32, *mut c_char) -> ();
            get_program = c"glGetProgramiv" (u32, u32, *mut i32) -> ();
            program_log = c"glGetProgramInfoLog" (u32, i32, *mut i32, *mut c_char) -> ();
            bind_attribute = c"glBindAttribLocation" (u32, u32, *const c_char) -> ();
            uniform_location = c"glGetUniformLocation" (u32, *const c_char) -> i32;
            set_matrix = c"glUniformMatrix4fv" (i32, i32, u8, *const f32) -> ();
            gen_textures = c"glGenTextures" (i32, *mut u32) -> ();
            gen_buffers = c"glGenBuffers" (i32, *mut u32) -> ();
            buffer_data = c"glBufferData" (u32, isize, *const c_void, u32) -> ();
            attribute_pointer = c"glVertexAttribPointer" (u32, i32, u32, u8, i32, *const c_void) -> ();
            texture_image =
                c"glTexImage2D" (u32, i32, i32, i32, i32, i32, u32, u32, *const c_void) -> ();
            draw_arrays = c"glDrawArrays" (u32, i32, i32) -> ();
            draw_elements = c"glDrawElements" (u32, i32, u32, *const c_void) -> ();
            read_pixels = c"glReadPixels" (i32, i32, i32, i32, u32, u32, *mut c_void) -> ();
        }
    }
}

pub(crate) const VERTEX_SHADER: u32 = 0x8B31;
pub(crate) const FRAGMENT_SHADER: u32 = 0x8B30;
pub(crate) const TEXTURE_2D: u32 = 0x0DE1;
pub(crate) const TEXTURE_MAG_FILTER: u32 = 0x2800;
pub(crate) const TEXTURE_MIN_FILTER: u32 = 0x2801;
pub(crate) const TEXTURE_WRAP_S: u32 = 0x2802;
pub(crate) const TEXTURE_WRAP_T: u32 = 0x2803;
pub(crate) const LINEAR: i32 = 0x2601;
pub(crate) const LINEAR_MIPMAP_LINEAR: i32 = 0x2703;
pub(crate) const REPEAT: i32 = 0x2901;
pub(crate) const CLAMP_TO_EDGE: i32 = 0x812F;
pub(crate) const BLEND: u32 = 0x0BE2;
pub(crate) const DEPTH_TEST: u32 = 0x0B71;
pub(crate) const CULL_FACE: u32 = 0x0B44;
pub(crate) const ONE: u32 = 1;
pub(crate) const ONE_MINUS_SRC_ALPHA: u32 = 0x0303;
pub(crate) const COLOR_BUFFER_BIT: u32 = 0x4000;
pub(crate) const DEPTH_BUFFER_BIT: u32 = 0x100;
pub(crate) const TRIANGLES: u32 = 4;
pub(crate) const TRIANGLE_STRIP: u32 = 5;
pub(crate) const RENDERER: u32 = 0x1F01;
pub(crate) const VERSION: u32 = 0x1F02;
pub(crate) const MAX_TEXTURE_SIZE: u32 = 0x0D33;
const ARRAY_BUFFER: u32 = 0x8892;
const ELEMENT_ARRAY_BUFFER: u32 = 0x8893;
const STATIC_DRAW: u32 = 0x88E4;
const FLOAT: u32 = 0x1406;
const UNSIGNED_BYTE: u32 = 0x1401;
const UNSIGNED_SHORT: u32 = 0x1403;
const RGBA: u32 = 0x1908;
const PACK_ALIGNMENT: u32 = 0x0D05;
const COMPILE_STATUS: u32 = 0x8B81;
const LINK_STATUS: u32 = 0x8B82;
const INFO_LOG_LENGTH: u32 = 0x8B84;

/// GL ES on the thread whose context is current.
pub(crate) struct Gl {
    table: Table,
    // Keeps it on its thread.
    _thread: PhantomData<*const ()>,
}

/// Vertices in a buffer of the GPU, with one or more attributes of floats side by side.
pub(crate) struct Mesh {
    vertices: u32,
    indices: u32,
    /// Floats of each attribute; their sum is one vertex.
    layout: Vec<i32>,
    vertex_count: usize,
    index_count: usize,
}

impl Mesh {
    /// How many indices it has.
    pub(crate) const fn index_count(&self) -> usize {
        self.index_count
    }
}

impl std::ops::Deref for Gl {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

fn library() -> Result<&'static Library, Missing> {
    static LIBRARY: OnceLock<Result<&'static Library, Missing>> = OnceLock::new();
    LIBRARY.get_or_init(|| open("libGLESv2.so.2", "libgles2")).clone()
}

fn length(count: usize) -> i32 {
    i32::try_from(count).expect("GL counts in 31 bits")
}

impl Gl {
    /// Finds the functions; a context must be current on this thread and stay so while they are used.
    pub(crate) fn load(egl: &Egl) -> Result<Self, Missing> {
        let library = library()?;
        let find = |name: &CStr| {
            let found = address(library, name);
            if found.is_null() { egl.function(name) } else { found }
        };
        Ok(Self { table: Table::find(&find)?, _thread: PhantomData })
    }

    pub(crate) fn string(&self, what: u32) -> String {
        // SAFETY: GL checks the number.
        let text = unsafe { (self.table.get_string)(what) };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the string is the driver's, ends with a zero byte, and lives as long as the context.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    pub(crate) fn integer(&self, what: u32) -> i32 {
        // Some limits have several values; none that is asked for here has more than four.
        let mut value = [0; 4];
        // SAFETY: there is room for what is written.
        unsafe { (self.table.get_integer)(what, value.as_mut_ptr()) };
        value[0]
    }

    /// Compiles a shader; the driver's message if it refuses.
    pub(crate) fn compile(&self, kind: u32, source: &str) -> Result<u32, String> {
        let shader = self.create_shader(kind);
        let (text, size) = (source.as_ptr().cast::<c_char>(), length(source.len()));
        // SAFETY: one string with its length, which GL copies.
        unsafe { (self.table.shader_source)(shader, 1, &raw const text, &raw const size) };
        self.compile_shader(shader);
        let ask = |what| {
            let mut value = 0;
            // SAFETY: one number is written.
            unsafe { (self.table.get_shader)(shader, what, &raw mut value) };
            value
        };
        if ask(COMPILE_STATUS) != 0 {
            return Ok(shader);
        }
        let mut log = vec![0_u8; usize::try_from(ask(INFO_LOG_LENGTH)).unwrap_or(0)];
        // SAFETY: the log has room for as many bytes as are passed.
        unsafe {
            (self.table.shader_log)(shader, length(log.len()), std::ptr::null_mut(), log.as_mut_ptr().cast());
        }
        self.delete_shader(shader);
        Err(message(&log))
    }

    /// Binds attributes to 0, 1, … and links; the driver's message if it refuses.
    pub(crate) fn link(&self, shaders: [u32; 2], attributes: &[&str]) -> Result<u32, String> {
        let program = self.create_program();
        for shader in shaders {
            self.attach_shader(program, shader);
            self.delete_shader(shader);
        }
        for (index, name) in (0..).zip(attributes) {
            let name = CString::new(*name).expect("names have no zero byte");
            // SAFETY: the name ends with a zero byte.
            unsafe { (self.table.bind_attribute)(program, index, name.as_ptr()) };
        }
        self.link_program(program);
        let ask = |what| {
            let mut value = 0;
            // SAFETY: one number is written.
            unsafe { (self.table.get_program)(program, what, &raw mut value) };
            value
        };
        if ask(LINK_STATUS) != 0 {
            return Ok(program);
        }
        let mut log = vec![0_u8; usize::try_from(ask(INFO_LOG_LENGTH)).unwrap_or(0)];
        // SAFETY: the log has room for as many bytes as are passed.
        unsafe {
            (self.table.program_log)(
                program,
                length(log.len()),
                std::ptr::null_mut(),
                log.as_mut_ptr().cast(),
            );
        }
        self.delete_program(program);
        Err(message(&log))
    }

    /// Where a uniform is; -1, which GL ignores, if the program has none of that name.
    pub(crate) fn uniform(&self, program: u32, name: &str) -> i32 {
        let name = CString::new(name).expect("names have no zero byte");
        // SAFETY: the name ends with a zero byte.
        unsafe { (self.table.uniform_location)(program, name.as_ptr()) }
    }

    /// Sets a 4×4 matrix, column by column.
    pub(crate) fn set_matrix(&self, location: i32, matrix: &[f32; 16]) {
        // SAFETY: one matrix of 16 floats.
        unsafe { (self.table.set_matrix)(location, 1, 0, matrix.as_ptr()) };
    }

    pub(crate) fn new_texture(&self) -> u32 {
        let mut texture = 0;
        // SAFETY: one number is written.
        unsafe { (self.table.gen_textures)(1, &raw mut texture) };
        texture
    }

    /// Uploads RGBA pixels, four bytes each, to the bound texture.
    pub(crate) fn upload(&self, (width, height): (u32, u32), pixels: &[u8]) {
        let (columns, rows) = (width as usize, height as usize);
        assert_eq!(pixels.len(), columns * rows * 4, "four bytes per pixel");
        let (width, height) = (length(columns), length(rows));
        let (format, data) = (RGBA, pixels.as_ptr().cast());
        // SAFETY: as many bytes as GL reads, by the assertion; rows of four-byte pixels need no padding.
        unsafe {
            (self.table.texture_image)(
                TEXTURE_2D,
                0,
                RGBA as i32,
                width,
                height,
                0,
                format,
                UNSIGNED_BYTE,
                data,
            );
        }
    }

    /// Uploads vertices, whose attributes have `layout` floats each, and indices of triangles.
    pub(crate) fn mesh(&self, layout: &[i32], vertices: &[f32], indices: &[u16]) -> Mesh {
        let floats = usize::try_from(layout.iter().sum::<i32>()).expect("attributes have floats");
        let vertex_count = vertices.len() / floats;
        assert_eq!(vertex_count * floats, vertices.len(), "whole vertices");
        assert!(indices.iter().all(|&index| usize::from(index) < vertex_count), "indices within the mesh");
        let mut buffers = [0; 2];
        // SAFETY: two numbers are written.
        unsafe { (self.table.gen_buffers)(2, buffers.as_mut_ptr()) };
        let fill = |target, buffer, bytes: usize, data: *const c_void| {
            self.bind_buffer(target, buffer);
            let bytes = isize::try_from(bytes).expect("sizes of slices fit");
            // SAFETY: `data` has `bytes` bytes, which GL copies.
            unsafe { (self.table.buffer_data)(target, bytes, data, STATIC_DRAW) };
            self.bind_buffer(target, 0);
        };
        fill(ARRAY_BUFFER, buffers[0], size_of_val(vertices), vertices.as_ptr().cast());
        fill(ELEMENT_ARRAY_BUFFER, buffers[1], size_of_val(indices), indices.as_ptr().cast());
        Mesh {
            vertices: buffers[0],
            indices: buffers[1],
            layout: layout.to_vec(),
            vertex_count,
            index_count: indices.len(),
        }
    }

    /// Draws the triangles of a mesh with the program in use.
    pub(crate) fn draw_mesh(&self, mesh: &Mesh) {
        self.with_mesh(mesh, || {
            self.bind_buffer(ELEMENT_ARRAY_BUFFER, mesh.indices);
            let count = length(mesh.index_count);
            // SAFETY: all indices are in the bound buffer, and within the vertices, as `mesh` checked.
            unsafe {
                (self.table.draw_elements)(TRIANGLES, count, UNSIGNED_SHORT, std::ptr::null());
            }
            self.bind_buffer(ELEMENT_ARRAY_BUFFER, 0);
        });
    }

    /// Draws the vertices of a mesh in their order, without its indices.
    pub(crate) fn draw_vertices(&self, mode: u32, mesh: &Mesh) {
        // SAFETY: all vertices are in the bound buffer.
        self.with_mesh(mesh, || unsafe { (self.table.draw_arrays)(mode, 0, length(mesh.vertex_count)) });
    }

    fn with_mesh(&self, mesh: &Mesh, draw: impl FnOnce()) {
        self.bind_buffer(ARRAY_BUFFER, mesh.vertices);
        let stride = mesh.layout.iter().sum::<i32>() * 4;
        let mut offset = 0_usize;
        for (index, &floats) in (0..).zip(&mesh.layout) {
            let at = std::ptr::without_provenance(offset);
            // SAFETY: an offset into the bound buffer, whose vertices have this layout.
            unsafe { (self.table.attribute_pointer)(index, floats, FLOAT, 0, stride, at) };
            self.enable_attribute(index);
            offset += usize::try_from(floats).expect("attributes have floats") * 4;
        }
        draw();
        (0..).zip(&mesh.layout).for_each(|(index, _)| self.disable_attribute(index));
        self.bind_buffer(ARRAY_BUFFER, 0);
    }

    /// Draws vertices from the app's own memory; each array holds one attribute of so many floats.
    pub(crate) fn draw_client(&self, mode: u32, count: usize, arrays: &[(i32, &[f32])]) {
        self.bind_buffer(ARRAY_BUFFER, 0);
        for (index, &(floats, data)) in (0..).zip(arrays) {
            let needed = count * usize::try_from(floats).expect("attributes have floats");
            assert!(data.len() >= needed, "an array is too short for {count} vertices");
            // SAFETY: GL keeps the pointer until the array is disabled, below, and the slice
            // outlives this call; it is long enough by the assertion.
            unsafe { (self.table.attribute_pointer)(index, floats, FLOAT, 0, 0, data.as_ptr().cast()) };
            self.enable_attribute(index);
        }
        // SAFETY: GL has read all arrays when the call returns.
        unsafe { (self.table.draw_arrays)(mode, 0, length(count)) };
        (0..).zip(arrays).for_each(|(index, _)| self.disable_attribute(index));
    }

    /// The pixels of the current surface, RGBA, from the bottom row up.
    pub(crate) fn pixels(&self, (width, height): (u32, u32)) -> Vec<u8> {
        let mut pixels = vec![0; width as usize * height as usize * 4];
        self.pixel_store(PACK_ALIGNMENT, 1);
        let (width, height) = (length(width as usize), length(height as usize));
        // SAFETY: there is room for four bytes per pixel.
        unsafe {
            (self.table.read_pixels)(0, 0, width, height, RGBA, UNSIGNED_BYTE, pixels.as_mut_ptr().cast());
        }
        pixels
    }
}

fn message(log: &[u8]) -> String {
    String::from_utf8_lossy(log).trim_end_matches(['\0', '\n']).to_owned()
}
