//! Any sequence of calls, sensible or not, against a driver that does nothing.
//!
//! What programs call is none of our choosing, so hooks must survive everything. This driver
//! answers every call with zero, except where a program could not go on. Memory that calls point to
//! is real, as GL demands; sizes, names, enums and orders are random.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::OnceLock;

use proptest::prelude::*;
use takt_gl::entry::{self, Ptr, kind};
use takt_gl::{gl, guard, settings};

mod answers;
use answers::{es, nothing, one, success};

/// Every program is linked and has three uniforms.
unsafe extern "C" fn program_state(_program: u32, what: u32, value: *mut i32) {
    // SAFETY: callers hand over room for a number.
    unsafe { value.write(if what == gl::LINK_STATUS { 1 } else { 3 }) };
}

/// Locations are as good as random.
unsafe extern "C" fn location(_program: u32, name: *const c_char) -> i32 {
    // SAFETY: callers hand over a string.
    let length = unsafe { CStr::from_ptr(name) }.to_bytes().len();
    i32::try_from(length).unwrap_or(-1)
}

/// A driver of GL ES 3, which offers nothing.
unsafe extern "C" fn string(what: u32) -> *const c_char {
    let text = if what == gl::VERSION { c"OpenGL ES 3.2" } else { c"" };
    text.as_ptr()
}

/// Limits, among others of buffers.
unsafe extern "C" fn limit(_what: u32, value: *mut i32) {
    // SAFETY: callers hand over room for a number.
    unsafe { value.write(8) };
}

/// All uniforms are the block's one, wherever it lies.
unsafe extern "C" fn uniform(
    _program: u32,
    at: u32,
    _room: i32,
    bytes: *mut i32,
    _: Ptr,
    _: Ptr,
    name: *mut u8,
) {
    let text = if at == 0 { "moved" } else { "Block.moved" };
    // SAFETY: callers hand over room for a number and for longer names.
    unsafe { bytes.write(i32::try_from(text.len()).unwrap_or(0)) };
    // SAFETY: as above.
    unsafe { name.copy_from(text.as_ptr(), text.len()) };
}

unsafe extern "C" fn place(_program: u32, _count: i32, _uniforms: Ptr, what: u32, value: *mut i32) {
    // SAFETY: callers hand over room for a number.
    unsafe { value.write(i32::try_from(what % 97).unwrap_or(0)) };
}

unsafe extern "C" fn find(name: *const c_char) -> Ptr {
    // SAFETY: callers hand over a string.
    match unsafe { CStr::from_ptr(name) }.to_bytes() {
        b"eglMakeCurrent" | b"eglSwapBuffers" | b"eglDestroyContext" | b"eglCreateContext" => one as Ptr,
        b"glCreateProgram" | b"glCreateShader" | b"eglCreatePbufferSurface" => one as Ptr,
        b"eglGetError" => success as Ptr,
        b"eglQueryAPI" => es as Ptr,
        b"glGetString" => string as Ptr,
        b"glGetIntegerv" => limit as Ptr,
        b"glGetActiveUniform" => uniform as Ptr,
        b"glGetActiveUniformsiv" => place as Ptr,
        b"glGetProgramiv" => program_state as Ptr,
        b"glGetUniformLocation" | b"glGetAttribLocation" => location as Ptr,
        _ => nothing as Ptr,
    }
}

/// What a program gets for a name.
fn hook(name: &str) -> Ptr {
    static READY: OnceLock<()> = OnceLock::new();
    READY.get_or_init(|| {
        // SAFETY: no other thread of this process reads or writes variables yet.
        unsafe { std::env::set_var(settings::MEASURE, "/dev/null") };
        // SAFETY: as above.
        unsafe { std::env::set_var(settings::MODE, "all") };
        entry::set_finder(find);
    });
    let name = CString::new(name).expect("a name");
    // SAFETY: a string.
    let real = unsafe { find(name.as_ptr()) };
    let hook = entry::offer(&name, real);
    assert_ne!(hook, real, "{name:?} is not hooked");
    hook
}

macro_rules! call {
    ($name:ident($($arg:expr),*)) => {{
        // SAFETY: a hook has the signature of its name.
        let function: kind::$name = unsafe { std::mem::transmute(hook(stringify!($name))) };
        // SAFETY: pointers among the arguments lead to as much memory as GL demands, or are null.
        unsafe { function($($arg),*) }
    }};
}

#[derive(Clone, Debug)]
enum Call {
    Create { share: bool },
    Current { context: usize },
    Destroy,
    Swap,
    Flush,
    Buffer { target: u32, name: u32, bytes: u16, data: bool },
    Part { target: u32, offset: isize, bytes: u8 },
    Point { index: u32, name: u32, offset: isize, bytes: isize, block: u32 },
    Delete { name: u32 },
    Array { index: u32, components: i32, kind: u32, stride: i32, pointer: usize },
    Enable { index: u32 },
    Program { name: u32, source: usize },
    Uniform { location: i32, values: [f32; 16], count: i32 },
    Texture { target: u32, name: u32, sides: [i32; 2] },
    Framebuffer { target: u32, name: u32, texture: u32 },
    Raster { capability: u32, rect: [i32; 4] },
    Draw { mode: u32, first: i32, count: i32, instances: i32 },
    Elements { mode: u32, count: i32, kind: u32, pointer: usize },
    Clear { mask: u32 },
    Compute { name: u32, source: usize },
    Dispatch { groups: [u32; 3], indirect: isize },
}

fn target() -> impl Strategy<Value = u32> {
    let known = [
        gl::ARRAY_BUFFER,
        gl::ELEMENT_ARRAY_BUFFER,
        gl::UNIFORM_BUFFER,
        gl::FRAMEBUFFER,
        gl::TEXTURE_2D,
        gl::DISPATCH_INDIRECT_BUFFER,
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()), 1 => any::<u32>()]
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![4 => 0..40_i32, 1 => Just(i32::MAX), 1 => Just(i32::MIN), 1 => any::<i32>()]
}

fn kinds() -> impl Strategy<Value = u32> {
    prop_oneof![gl::BYTE..=gl::FIXED, any::<u32>()]
}

fn address() -> impl Strategy<Value = usize> {
    prop_oneof![0..64_usize, any::<usize>()]
}

fn place_in_buffer() -> impl Strategy<Value = isize> {
    prop_oneof![4 => (0..100_isize).prop_map(|number| number * 8), 1 => any::<isize>()]
}

fn objects() -> impl Strategy<Value = Call> {
    let name = || 0..5_u32;
    prop_oneof![
        (target(), name(), any::<u16>(), any::<bool>())
            .prop_map(|(target, name, bytes, data)| Call::Buffer { target, name, bytes, data }),
        (target(), any::<isize>(), any::<u8>()).prop_map(|(target, offset, bytes)| Call::Part {
            target,
            offset,
            bytes
        }),
        (0..10_u32, name(), place_in_buffer(), place_in_buffer(), 0..3_u32).prop_map(
            |(index, name, offset, bytes, block)| Call::Point { index, name, offset, bytes, block }
        ),
        name().prop_map(|name| Call::Delete { name }),
        (0..40_u32, number(), kinds(), number(), address()).prop_map(
            |(index, components, kind, stride, pointer)| Call::Array {
                index,
                components,
                kind,
                stride,
                pointer
            }
        ),
        (0..40_u32).prop_map(|index| Call::Enable { index }),
        (name(), 0..SOURCES.len()).prop_map(|(name, source)| Call::Program { name, source }),
        (number(), any::<[f32; 16]>(), 0..2_i32).prop_map(|(location, values, count)| Call::Uniform {
            location,
            values,
            count
        }),
        (target(), name(), [number(), number()]).prop_map(|(target, name, sides)| Call::Texture {
            target,
            name,
            sides
        }),
        (target(), name(), name()).prop_map(|(target, name, texture)| Call::Framebuffer {
            target,
            name,
            texture
        }),
    ]
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        8 => objects(),
        1 => any::<bool>().prop_map(|share| Call::Create { share }),
        1 => (0..3_usize).prop_map(|context| Call::Current { context }),
        1 => prop::sample::select(vec![Call::Destroy, Call::Swap, Call::Flush]),
        1 => (any::<u32>(), [number(), number(), number(), number()])
            .prop_map(|(capability, rect)| Call::Raster { capability, rect }),
        2 => (0..9_u32, number(), number(), number())
            .prop_map(|(mode, first, count, instances)| Call::Draw { mode, first, count, instances }),
        2 => (0..9_u32, number(), kinds(), address())
            .prop_map(|(mode, count, kind, pointer)| Call::Elements { mode, count, kind, pointer }),
        1 => any::<u32>().prop_map(|mask| Call::Clear { mask }),
        1 => (0..5_u32, 0..COMPUTE.len()).prop_map(|(name, source)| Call::Compute { name, source }),
        2 => (any::<[u32; 3]>(), place_in_buffer())
            .prop_map(|(groups, indirect)| Call::Dispatch { groups, indirect }),
    ]
}

const SOURCES: [&str; 6] = [
    "attribute vec4 at; uniform mat4 m; void main() { gl_Position = m * at; }",
    "attribute vec2 at; uniform vec4 u[3]; void main() { gl_Position = vec4(at, 0, 1) + u[2]; }",
    "#version 300 es\nin vec4 at; uniform Block { mat4 moved; }; void main() { gl_Position = moved * at; }",
    "#version 300 es\nin vec4 at; uniform Block { vec4 moved[9]; } blocks[2]; \
     void main() { gl_Position = blocks[1].moved[3] + at + blocks[0].moved[gl_VertexID]; }",
    "void main() { gl_Position = vec4(1); }",
    "this is not GLSL {",
];

const FRAGMENT: &str = "void main() { gl_FragColor = vec4(1); }";

const COMPUTE: [&str; 3] = [
    "#version 310 es\nlayout(local_size_x = 4) in; uniform int n; void main() { for (int i = 0; i < n; i++) {} }",
    "#version 310 es\nvoid main() { uint x = gl_WorkGroupID.x; }",
    "this is not GLSL {",
];

fn play(call: &Call) {
    let mut bytes = vec![7_u8; usize::from(u16::MAX)];
    let memory: Ptr = bytes.as_mut_ptr().cast();
    match call.clone() {
        Call::Create { share } => {
            call!(eglCreateContext(handle(1), handle(1), handle(usize::from(share)), null_mut()));
            call!(eglCreatePbufferSurface(handle(1), handle(1), null_mut()));
        }
        Call::Current { context } => {
            call!(eglMakeCurrent(handle(1), handle(1), handle(1), handle(context)));
        }
        Call::Destroy => {
            call!(eglDestroyContext(handle(1), handle(1)));
        }
        Call::Swap => swap(),
        Call::Flush => call!(glFlush()),
        Call::Buffer { target, name, bytes, data } => {
            call!(glBindBuffer(target, name));
            let data = if data { memory } else { null_mut() };
            call!(glBufferData(target, isize::try_from(bytes).unwrap_or(0), data, gl::STATIC_DRAW));
        }
        Call::Part { target, offset, bytes } => {
            call!(glBufferSubData(target, offset, isize::from(bytes), memory));
        }
        Call::Point { index, name, offset, bytes, block } => bind(index, name, [offset, bytes], block),
        Call::Delete { name } => delete(name),
        Call::Array { index, components, kind, stride, pointer } => {
            call!(glVertexAttribPointer(index, components, kind, 0, stride, handle(pointer)));
        }
        Call::Enable { index } => call!(glEnableVertexAttribArray(index)),
        Call::Program { name, source } => {
            link(name, &[(gl::VERTEX_SHADER, SOURCES[source]), (gl::FRAGMENT_SHADER, FRAGMENT)]);
        }
        Call::Uniform { location, mut values, count } => {
            let list: Ptr = values.as_mut_ptr().cast();
            call!(glUniformMatrix4fv(location, count, 1, list));
            call!(glUniform4fv(location, count * 4, list));
        }
        Call::Texture { target, name, sides } => texture(target, name, sides),
        Call::Framebuffer { target, name, texture } => {
            call!(glBindFramebuffer(target, name));
            call!(glFramebufferTexture2D(target, gl::COLOR_ATTACHMENT0, gl::TEXTURE_2D, texture, 0));
        }
        Call::Raster { capability, rect: [x, y, width, height] } => {
            call!(glEnable(capability));
            call!(glViewport(x, y, width, height));
            call!(glScissor(x, y, width, height));
        }
        Call::Draw { mode, first, count, instances } => {
            call!(glDrawArraysInstanced(mode, first, count, instances))
        }
        Call::Elements { mode, count, kind, pointer } => elements(mode, count, kind, handle(pointer)),
        Call::Clear { mask } => call!(glClear(mask)),
        Call::Compute { name, source } => link(name, &[(gl::COMPUTE_SHADER, COMPUTE[source])]),
        Call::Dispatch { groups: [x, y, z], indirect } => {
            call!(glDispatchCompute(x, y, z));
            call!(glDispatchComputeIndirect(indirect));
        }
    }
}

fn texture(target: u32, name: u32, [width, height]: [i32; 2]) {
    call!(glActiveTexture(gl::TEXTURE0 + name));
    call!(glBindTexture(target, name));
    call!(glTexImage2D(target, 0, 0, width, height, 0, gl::RGBA, gl::UNSIGNED_BYTE, null_mut()));
    call!(glGenerateMipmap(target));
    call!(glCopyTexSubImage2D(target, 0, 0, 0, 0, 0, width, height));
    call!(glBindRenderbuffer(gl::RENDERBUFFER, name));
    call!(glRenderbufferStorageMultisample(gl::RENDERBUFFER, width, 0x8814, height, width));
}

fn elements(mode: u32, count: i32, kind: u32, pointer: Ptr) {
    call!(glDrawElements(mode, count, kind, pointer));
    call!(glDrawRangeElementsBaseVertexEXT(mode, 0, 9, count, kind, pointer, count));
    call!(glMultiDrawElementsIndirectEXT(mode, kind, pointer, count, count));
}

fn swap() {
    call!(eglSwapBuffers(handle(1), handle(1)));
    call!(eglPostSubBufferNV(handle(1), handle(1), 0, 0, 1, 1));
    call!(eglSwapBuffersRegionNOK(handle(1), handle(1), 0, null_mut()));
    call!(eglCopyBuffers(handle(1), handle(1), null_mut()));
}

fn delete(name: u32) {
    let mut names = [name, name];
    let list: Ptr = names.as_mut_ptr().cast();
    call!(glDeleteBuffers(2, list));
    call!(glDeleteTextures(1, list));
    call!(glDeleteFramebuffers(1, list));
    call!(glDetachShader(name, name));
    call!(glDeleteShader(name));
    call!(glDeleteProgram(name));
}

fn bind(index: u32, name: u32, [offset, bytes]: [isize; 2], block: u32) {
    call!(glUniformBlockBinding(name, block, index));
    call!(glBindBufferRange(gl::UNIFORM_BUFFER, index, name, offset, bytes));
    if index.is_multiple_of(3) {
        call!(glBindBufferBase(gl::UNIFORM_BUFFER + index, index, name));
    }
}

fn handle(number: usize) -> Ptr {
    std::ptr::without_provenance_mut(number)
}

fn link(name: u32, shaders: &[(u32, &str)]) {
    call!(glCreateProgram());
    for (kind, source) in shaders.iter().copied() {
        let shader = call!(glCreateShader(kind));
        let (mut text, mut length) = (source.as_ptr(), i32::try_from(source.len()).unwrap_or(0));
        call!(glShaderSource(shader, 1, (&raw mut text).cast(), (&raw mut length).cast()));
        call!(glCompileShader(shader));
        call!(glAttachShader(name, shader));
        call!(glLinkProgram(name));
    }
    call!(glUseProgram(name));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_calls_breaks_a_hook(calls in prop::collection::vec(call(), 1..120)) {
        play(&Call::Create { share: false });
        play(&Call::Current { context: 1 });
        for call in &calls {
            play(call);
            prop_assert!(!guard::is_switched_off(), "a hook failed at {call:?}");
        }
    }
}
