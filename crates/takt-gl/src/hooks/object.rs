//! Buffers, framebuffers and render buffers.

use std::sync::Arc;

use takt_predict::exactness::State as Kind;
use takt_predict::predictor::Work;

use super::given::{bytes, list};
use super::submit;
use super::texture::Storage;
use crate::client::context::State;
use crate::client::current;
use crate::client::group::End;
use crate::entry::{Ptr, real};
use crate::gl;
use crate::shadow::texture::Image;

super::noted! {
    glBindBuffer(target: u32, buffer: u32) => |state| state.shadow.bind_buffer(target, buffer);
    glBindBufferBase(target: u32, index: u32, buffer: u32) =>
        |state| state.shadow.bind_buffer_part(target, index, buffer, None);
    glBindBufferRange(target: u32, index: u32, buffer: u32, offset: isize, size: isize) =>
        |state| state.shadow.bind_buffer_part(target, index, buffer, Some((offset, size)));
    glDeleteBuffers(n: i32, buffers: Ptr) => |state| state.shadow.delete_buffers(list(n, buffers));
    glBufferData(target: u32, size: isize, data: Ptr, usage: u32)
        copies |state| filled(state, target, size, data).filter(|_| is_usage(usage)) => |state| {
            // What GL refuses it has not read either.
            if is_usage(usage) {
                fill(state, target, size, data);
            }
        };
    glBufferStorageEXT(target: u32, size: isize, data: Ptr, _flags: u32)
        copies |state| filled(state, target, size, data) => |state| fill(state, target, size, data);
    glBufferSubData(target: u32, offset: isize, size: isize, data: Ptr)
        copies |state| filled(state, target, size, data) => |state| part(state, target, offset, size, data);
    glCopyBufferSubData(read: u32, write: u32, from: isize, to: isize, size: isize)
        copies |state| copied(size) => |state| copy(state, [read, write], [from, to, size]);
    glCopyBufferSubDataNV(read: u32, write: u32, from: isize, to: isize, size: isize)
        copies |state| copied(size) => |state| copy(state, [read, write], [from, to, size]);
    glTexBuffer(_target: u32, _format: u32, buffer: u32) =>
        |state| state.shadow.use_as_texture(buffer);
    glTexBufferEXT(_target: u32, _format: u32, buffer: u32) =>
        |state| state.shadow.use_as_texture(buffer);
    glTexBufferOES(_target: u32, _format: u32, buffer: u32) =>
        |state| state.shadow.use_as_texture(buffer);
    glTexBufferRange(_target: u32, _format: u32, buffer: u32, _offset: isize, _size: isize) =>
        |state| state.shadow.use_as_texture(buffer);
    glTexBufferRangeEXT(_target: u32, _format: u32, buffer: u32, _offset: isize, _size: isize) =>
        |state| state.shadow.use_as_texture(buffer);
    glTexBufferRangeOES(_target: u32, _format: u32, buffer: u32, _offset: isize, _size: isize) =>
        |state| state.shadow.use_as_texture(buffer);
    glFlushMappedBufferRange(_target: u32, _offset: isize, length: isize)
        copies |state| flushed(length) => |_state| ();
    glFlushMappedBufferRangeEXT(_target: u32, _offset: isize, length: isize)
        copies |state| flushed(length) => |_state| ();
    glBindRenderbuffer(_target: u32, name: u32) =>
        |state| state.shadow.bound.renderbuffer = bind_renderbuffer(state, name);
    glBindRenderbufferOES(_target: u32, name: u32) =>
        |state| state.shadow.bound.renderbuffer = bind_renderbuffer(state, name);
    glRenderbufferStorage(_target: u32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format), [width, height]);
    glRenderbufferStorageOES(_target: u32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format), [width, height]);
    glRenderbufferStorageMultisample(_target: u32, samples: i32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format).sampled(samples), [width, height]);
    glRenderbufferStorageMultisampleEXT(_target: u32, samples: i32, format: u32, width: i32, height: i32) => |state| {
        state.shadow.observers.implicit_resolve();
        storage(state, Storage::of(format).sampled(samples), [width, height]);
    };
    glRenderbufferStorageMultisampleIMG(_target: u32, samples: i32, format: u32, width: i32, height: i32) => |state| {
        state.shadow.observers.implicit_resolve();
        storage(state, Storage::of(format).sampled(samples), [width, height]);
    };
    glRenderbufferStorageMultisampleANGLE(_target: u32, samples: i32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format).sampled(samples), [width, height]);
    glRenderbufferStorageMultisampleAPPLE(_target: u32, samples: i32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format).sampled(samples), [width, height]);
    glRenderbufferStorageMultisampleNV(_target: u32, samples: i32, format: u32, width: i32, height: i32) =>
        |state| storage(state, Storage::of(format).sampled(samples), [width, height]);
    glEGLImageTargetRenderbufferStorageOES(_target: u32, _image: Ptr) => |state| adopted(state);
    glDeleteRenderbuffers(n: i32, names: Ptr) => |state| delete_renderbuffers(state, list(n, names));
    glDeleteRenderbuffersOES(n: i32, names: Ptr) => |state| delete_renderbuffers(state, list(n, names));
    glDeleteFramebuffers(n: i32, names: Ptr) => |state| state.shadow.framebuffers.delete(list(n, names));
    glDeleteFramebuffersOES(n: i32, names: Ptr) => |state| state.shadow.framebuffers.delete(list(n, names));
    glFramebufferTexture2D(target: u32, point: u32, _face: u32, texture: u32, _level: i32) =>
        |state| attach_texture(state, target, point, texture);
    glFramebufferTexture2DOES(target: u32, point: u32, _face: u32, texture: u32, _level: i32) =>
        |state| attach_texture(state, target, point, texture);
    glFramebufferTexture3DOES(target: u32, point: u32, _face: u32, texture: u32, _level: i32, _layer: i32) =>
        |state| attach_texture(state, target, point, texture);
    glFramebufferTexture2DDownsampleIMG(
        target: u32, point: u32, _face: u32, _texture: u32, _level: i32, _x: i32, _y: i32
    ) => |state| attach_downsampled(state, target, point);
    glFramebufferTextureLayerDownsampleIMG(
        target: u32, point: u32, _texture: u32, _level: i32, _layer: i32, _x: i32, _y: i32
    ) => |state| attach_downsampled(state, target, point);
    glFramebufferTexture2DMultisampleEXT(target: u32, point: u32, _face: u32, texture: u32, _level: i32, _n: i32) =>
        |state| {
            state.shadow.observers.implicit_resolve();
            attach_texture(state, target, point, texture);
        };
    glFramebufferTexture2DMultisampleIMG(target: u32, point: u32, _face: u32, texture: u32, _level: i32, _n: i32) =>
        |state| {
            state.shadow.observers.implicit_resolve();
            attach_texture(state, target, point, texture);
        };
    glFramebufferTexture(target: u32, point: u32, _texture: u32, _level: i32) =>
        |state| attach_unknown(state, target, point);
    glFramebufferTextureEXT(target: u32, point: u32, _texture: u32, _level: i32) =>
        |state| attach_unknown(state, target, point);
    glFramebufferTextureOES(target: u32, point: u32, _texture: u32, _level: i32) =>
        |state| attach_unknown(state, target, point);
    glFramebufferTextureMultiviewOVR(target: u32, point: u32, _texture: u32, _level: i32, _first: i32, _n: i32) =>
        |state| attach_unknown(state, target, point);
    glFramebufferTextureMultisampleMultiviewOVR(
        target: u32, point: u32, _texture: u32, _level: i32, _samples: i32, _first: i32, _n: i32
    ) => |state| attach_unknown(state, target, point);
    glFramebufferTextureLayer(target: u32, point: u32, texture: u32, _level: i32, _layer: i32) =>
        |state| attach_texture(state, target, point, texture);
    glFramebufferRenderbuffer(target: u32, point: u32, _kind: u32, name: u32) => |state| {
        let image = state.shadow.shared.lock().renderbuffers.get(name).cloned();
        state.shadow.framebuffers.attach(target, point, image);
    };
    glFramebufferRenderbufferOES(target: u32, point: u32, _kind: u32, name: u32) => |state| {
        let image = state.shadow.shared.lock().renderbuffers.get(name).cloned();
        state.shadow.framebuffers.attach(target, point, image);
    };
}

/// Hooks that are more than notes.
pub(super) mod special {
    use super::{End, Ptr, Work, current, forget, gl, real, submit};

    macro_rules! binding {
        ($( $name:ident )*) => { $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(target: u32, framebuffer: u32) {
                let switches = current::with(|state| state.shadow.framebuffers.switches(target, framebuffer));
                if switches == Some(true) {
                    submit::flushed(End::Target);
                }
                // SAFETY: the program's own call.
                unsafe { real::$name(target, framebuffer) };
                current::with(|state| state.shadow.framebuffers.bind(target, framebuffer));
            }
        )* };
    }

    binding! { glBindFramebuffer glBindFramebufferOES }

    /// What is written through a mapping cannot be known; see `shadow::buffer`. `length` is what is mapped, or
    /// nothing if that is all.
    fn mapped(target: u32, length: Option<isize>, access: u32) {
        if access & gl::MAP_READ_BIT != 0 {
            current::with(|state| state.submit(End::Read));
        }
        current::with(|state| {
            if access != gl::MAP_READ_BIT {
                forget(state, target);
            }
            if let Some(buffer) = state.shadow.buffer(target) {
                let mut contents = buffer.lock();
                let length = length.map_or(contents.size, |length| usize::try_from(length).unwrap_or(0));
                let later = access & (gl::MAP_FLUSH_EXPLICIT_BIT | gl::MAP_PERSISTENT_BIT_EXT) == 0;
                let written = if later && access & gl::MAP_WRITE_BIT != 0 { length } else { 0 };
                contents.map(written);
            }
        });
    }

    /// The program calls that, if there is something to unmap. What it has written goes to the GPU then, on drivers
    /// that gave it memory of its own for that.
    fn unmapped(name: &'static str, target: u32) {
        current::with(|state| {
            let written = state.shadow.buffer(target).map_or(0, |buffer| buffer.lock().unmap());
            if written > 0 {
                state.builder.call(name);
                state.about_to_copy(Work::Buffer { bytes: written as u64 });
            }
        });
    }

    macro_rules! unmapping {
        ($( $name:ident )*) => { $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(target: u32) -> u8 {
                unmapped(stringify!($name), target);
                // SAFETY: the program's own call.
                unsafe { real::$name(target) }
            }
        )* };
    }

    unmapping! { glUnmapBuffer glUnmapBufferOES }

    macro_rules! mapping {
        ($( $name:ident )*) => { $(
            #[expect(non_snake_case, reason = "names of the registry")]
            unsafe extern "C" fn $name(target: u32, offset: isize, length: isize, access: u32) -> Ptr {
                mapped(target, Some(length), access);
                // SAFETY: the program's own call.
                unsafe { real::$name(target, offset, length, access) }
            }
        )* };
    }

    mapping! { glMapBufferRange glMapBufferRangeEXT }

    #[expect(non_snake_case, reason = "names of the registry")]
    unsafe extern "C" fn glMapBufferOES(target: u32, access: u32) -> Ptr {
        // There is no other way than to write all of it.
        mapped(target, None, gl::MAP_WRITE_BIT);
        // SAFETY: the program's own call.
        unsafe { real::glMapBufferOES(target, access) }
    }

    crate::hooks::offered!(
        glBindFramebuffer glBindFramebufferOES
        glMapBufferRange glMapBufferRangeEXT glMapBufferOES glUnmapBuffer glUnmapBufferOES
    );
}

/// What was written through a mapping goes to the GPU.
fn flushed(length: isize) -> Option<Work> {
    u64::try_from(length).ok().map(|bytes| Work::Buffer { bytes })
}

/// `GL_STREAM_DRAW` to `GL_DYNAMIC_COPY`: three hints for three purposes.
fn is_usage(usage: u32) -> bool {
    const FIRST: u32 = 0x88E0;
    matches!(usage.wrapping_sub(FIRST), 0..=2 | 4..=6 | 8..=10)
}

fn fill(state: &mut State, target: u32, size: isize, data: Ptr) {
    let (Some(buffer), Ok(length)) = (state.shadow.buffer(target), usize::try_from(size)) else {
        return;
    };
    buffer.lock().replace(length, bytes(size, data), is_kept(target));
}

/// A buffer is filled, if there is one, and something to fill it with.
fn filled(state: &mut State, target: u32, size: isize, data: Ptr) -> Option<Work> {
    let bytes = u64::try_from(size).ok().filter(|_| !data.is_null())?;
    state.shadow.buffer(target).map(|_| Work::Buffer { bytes })
}

fn copied(size: isize) -> Option<Work> {
    u64::try_from(size).ok().map(|bytes| Work::Copy { bytes })
}

/// Whether draws or dispatches may read what is put into buffers at this target, or copy it from there.
fn is_kept(target: u32) -> bool {
    let read = matches!(target, gl::ARRAY_BUFFER | gl::ELEMENT_ARRAY_BUFFER | gl::UNIFORM_BUFFER);
    let parameters = matches!(target, gl::DISPATCH_INDIRECT_BUFFER | gl::DRAW_INDIRECT_BUFFER);
    read || parameters || matches!(target, gl::COPY_READ_BUFFER | gl::COPY_WRITE_BUFFER)
}

fn part(state: &mut State, target: u32, offset: isize, size: isize, data: Ptr) {
    let (Some(buffer), Ok(offset)) = (state.shadow.buffer(target), usize::try_from(offset)) else {
        return;
    };
    if let Some(data) = bytes(size, data) {
        buffer.lock().write(offset, data);
    }
}

/// What is known of one buffer is then known of the other.
fn copy(state: &mut State, [read, write]: [u32; 2], range: [isize; 3]) {
    let [Ok(from), Ok(to), Ok(size)] = range.map(usize::try_from) else {
        return;
    };
    let part = state.shadow.buffer(read).and_then(|buffer| {
        let contents = buffer.lock();
        contents.bytes()?.get(from..from.checked_add(size)?).map(<[u8]>::to_vec)
    });
    match part {
        Some(part) => state.shadow.buffer(write).iter().for_each(|buffer| buffer.lock().write(to, &part)),
        None => forget(state, write),
    }
}

fn forget(state: &mut State, target: u32) {
    if let Some(buffer) = state.shadow.buffer(target) {
        buffer.lock().forget();
    }
}

fn bind_renderbuffer(state: &State, name: u32) -> Option<Arc<Image>> {
    state.shadow.shared.lock().renderbuffers.bind(name)
}

fn storage(state: &State, storage: Storage, [width, height]: [i32; 2]) {
    if let Some(image) = &state.shadow.bound.renderbuffer {
        image.resize(storage.size([width, height, 1], Kind::Renderbuffer));
    }
}

/// The render buffer got the storage of an image from elsewhere, of which GL knows the size.
fn adopted(state: &State) {
    let ask = |what: u32| {
        let mut value = 0_i32;
        // SAFETY: a context is current; there is room for the number.
        unsafe { real::glGetRenderbufferParameteriv(gl::RENDERBUFFER, what, (&raw mut value).cast()) };
        value
    };
    if state.shadow.bound.renderbuffer.is_some() {
        let format = ask(gl::RENDERBUFFER_INTERNAL_FORMAT).cast_unsigned();
        storage(state, Storage::of(format), [gl::RENDERBUFFER_WIDTH, gl::RENDERBUFFER_HEIGHT].map(ask));
    }
}

/// A texture is attached with fewer pixels than it has.
fn attach_downsampled(state: &mut State, target: u32, point: u32) {
    state.shadow.observers.implicit_resolve();
    attach_unknown(state, target, point);
}

/// Something is attached whose layers or views are drawn to together.
fn attach_unknown(state: &mut State, target: u32, point: u32) {
    state.shadow.framebuffers.attach(target, point, Some(Arc::default()));
}

fn delete_renderbuffers(state: &mut State, names: &[u32]) {
    for name in names {
        let Some(image) = state.shadow.shared.lock().renderbuffers.delete(*name) else {
            continue;
        };
        state.shadow.bound.renderbuffer.take_if(|held| Arc::ptr_eq(held, &image));
        state.shadow.framebuffers.forget(&image);
    }
}

fn attach_texture(state: &mut State, target: u32, point: u32, texture: u32) {
    let image = state.shadow.shared.lock().textures.get(texture).cloned();
    state.shadow.framebuffers.attach(target, point, image);
}
