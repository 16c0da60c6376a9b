//! Textures: which are bound, and how large they are.

use takt_predict::exactness::{State, States};
use takt_predict::predictor::Work;

use super::given::list;
use crate::client::context::State as Context;
use crate::entry::{Ptr, real};
use crate::gl;
use crate::shadow::texture::{Size, colours, colours_of_pixels, pixel_bytes, storage_bytes};

super::noted! {
    glActiveTexture(unit: u32) => |state| state.shadow.active_texture(unit);
    glBindTexture(target: u32, texture: u32) => |state| state.shadow.bind_texture(target, texture);
    glDeleteTextures(n: i32, textures: Ptr) => |state| state.shadow.delete_textures(list(n, textures));
    glTexImage2D(
        target: u32, level: i32, inner: i32, width: i32, height: i32, _border: i32, format: u32, kind: u32, data: Ptr
    ) copies |state| given(state, &[width, height, 1], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, [width, height, 1], Storage::of_pixels(inner, format, kind));
    glTexImage3D(
        target: u32, level: i32, inner: i32, width: i32, height: i32, depth: i32, _border: i32, format: u32, kind: u32,
        data: Ptr
    ) copies |state| given(state, &[width, height, depth], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, [width, height, depth], Storage::of_pixels(inner, format, kind));
    glTexImage3DOES(
        target: u32, level: i32, inner: u32, width: i32, height: i32, depth: i32, _border: i32, format: u32, kind: u32,
        data: Ptr
    ) copies |state| given(state, &[width, height, depth], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, [width, height, depth], Storage::of_pixels(inner, format, kind));
    glTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, width: i32, height: i32, format: u32, kind: u32, _data: Ptr
    ) copies |state| upload(&[width, height, 1], pixel_bytes(format, kind)) => |_state| ();
    glTexSubImage3D(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, width: i32, height: i32, depth: i32, format: u32,
        kind: u32, _data: Ptr
    ) copies |state| upload(&[width, height, depth], pixel_bytes(format, kind)) => |_state| ();
    glTexSubImage3DOES(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, width: i32, height: i32, depth: i32, format: u32,
        kind: u32, _data: Ptr
    ) copies |state| upload(&[width, height, depth], pixel_bytes(format, kind)) => |_state| ();
    glTexStorage2D(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, [width, height, 1], Storage::of(format));
    glTexStorage2DEXT(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, [width, height, 1], Storage::of(format));
    glTexStorage3D(target: u32, _levels: i32, format: u32, width: i32, height: i32, depth: i32) =>
        |state| image(state, target, 0, [width, height, depth], Storage::of(format));
    glTexStorage3DEXT(target: u32, _levels: i32, format: u32, width: i32, height: i32, depth: i32) =>
        |state| image(state, target, 0, [width, height, depth], Storage::of(format));
    glTexStorage2DMultisample(target: u32, samples: i32, format: u32, width: i32, height: i32, _fixed: u8) =>
        |state| image(state, target, 0, [width, height, 1], Storage::of(format).sampled(samples));
    glTexStorage3DMultisample(
        target: u32, samples: i32, format: u32, width: i32, height: i32, depth: i32, _fixed: u8
    ) => |state| image(state, target, 0, [width, height, depth], Storage::of(format).sampled(samples));
    glTexStorage3DMultisampleOES(
        target: u32, samples: i32, format: u32, width: i32, height: i32, depth: i32, _fixed: u8
    ) => |state| image(state, target, 0, [width, height, depth], Storage::of(format).sampled(samples));
    glEGLImageTargetTexture2DOES(target: u32, _image: Ptr) => |state| adopted(state, target);
    glEGLImageTargetTexStorageEXT(target: u32, _image: Ptr, _attributes: Ptr) => |state| adopted(state, target);
    glCompressedTexImage2D(
        target: u32, level: i32, _format: u32, width: i32, height: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |state| given(state, &[bytes, 1, 1], 1, data) =>
        |state| image(state, target, level, [width, height, 1], Storage::COMPRESSED);
    glCompressedTexImage3D(
        target: u32, level: i32, _format: u32, width: i32, height: i32, depth: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |state| given(state, &[bytes, 1, 1], 1, data) =>
        |state| image(state, target, level, [width, height, depth], Storage::COMPRESSED);
    glCompressedTexImage3DOES(
        target: u32, level: i32, _format: u32, width: i32, height: i32, depth: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |state| given(state, &[bytes, 1, 1], 1, data) =>
        |state| image(state, target, level, [width, height, depth], Storage::COMPRESSED);
    glCompressedTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, _width: i32, _height: i32, _format: u32, bytes: i32, _data: Ptr
    ) copies |state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCompressedTexSubImage3D(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, _width: i32, _height: i32, _depth: i32, _format: u32,
        bytes: i32, _data: Ptr
    ) copies |state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCompressedTexSubImage3DOES(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, _width: i32, _height: i32, _depth: i32, _format: u32,
        bytes: i32, _data: Ptr
    ) copies |state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCopyTexImage2D(
        target: u32, level: i32, format: u32, _x: i32, _y: i32, width: i32, height: i32, _border: i32
    ) copies |state| upload(&[width, height, 1], storage_bytes(format)) =>
        |state| image(state, target, level, [width, height, 1], Storage::of(format));
    glCopyTexSubImage2D(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |state| moved(&[width, height, 1]) => |_state| ();
    glCopyTexSubImage3D(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _to_z: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |state| moved(&[width, height, 1]) => |_state| ();
    glCopyTexSubImage3DOES(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _to_z: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |state| moved(&[width, height, 1]) => |_state| ();
    glGenerateMipmap(target: u32) copies |state| mipmap(state, target) => |_state| ();
    glGenerateMipmapOES(target: u32) copies |state| mipmap(state, target) => |_state| ();
}

/// Copies between images.
pub(super) mod images {
    use super::{Work, moved};

    crate::hooks::noted! {
        glCopyImageSubData(
            _from: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32, _to: u32, _to_target: u32,
            _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32, height: i32, depth: i32
        ) copies |state| moved(&[width, height, depth]) => |_state| ();
        glCopyImageSubDataEXT(
            _from: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32, _to: u32, _to_target: u32,
            _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32, height: i32, depth: i32
        ) copies |state| moved(&[width, height, depth]) => |_state| ();
        glCopyImageSubDataOES(
            _from: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32, _to: u32, _to_target: u32,
            _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32, height: i32, depth: i32
        ) copies |state| moved(&[width, height, depth]) => |_state| ();
        glCopyTextureLevelsAPPLE(_to: u32, from: u32, _level: i32, _levels: i32) copies |state| {
            let bytes = state.shadow.shared.lock().textures.get(from).map_or(0, |image| image.size().bytes());
            Some(Work::Copy { bytes })
        } => |_state| ();
    }
}

/// What texels are made of.
#[derive(Clone, Copy)]
pub(super) struct Storage {
    pub(super) texel_bytes: u32,
    pub(super) samples: u32,
    pub(super) colours: States,
}

impl Storage {
    /// Nothing is drawn to these.
    const COMPRESSED: Self = Self { texel_bytes: 1, samples: 0, colours: States::NONE };

    pub(super) fn of(format: u32) -> Self {
        Self { texel_bytes: storage_bytes(format), samples: 0, colours: colours(format) }
    }

    fn of_pixels(inner: impl TryInto<u32>, format: u32, kind: u32) -> Self {
        let inner = inner.try_into().unwrap_or(0);
        Self { texel_bytes: pixel_bytes(format, kind), samples: 0, colours: colours_of_pixels(inner, kind) }
    }

    pub(super) fn sampled(self, samples: i32) -> Self {
        let samples = u32::try_from(samples).unwrap_or(0);
        Self { texel_bytes: self.texel_bytes.saturating_mul(samples.max(1)), samples, ..self }
    }

    /// Storage of a kind of target.
    pub(super) fn size(self, sides: [i32; 3], kind: State) -> Size {
        let [width, height, depth] = sides.map(|side| u32::try_from(side).unwrap_or(0));
        let Self { texel_bytes, samples, colours } = self;
        Size { width, height, depth, samples, texel_bytes, states: colours.with(kind) }
    }
}

/// A level was given storage.
fn image(state: &Context, target: u32, level: i32, sides: [i32; 3], storage: Storage) {
    if let Some(image) = state.shadow.texture(target).filter(|_| level == 0) {
        image.resize(storage.size(sides, State::Texture));
    }
}

/// The texture got the storage of an image from elsewhere, of which GL knows the size.
fn adopted(state: &Context, target: u32) {
    if let Some(image) = state.shadow.texture(target) {
        image.resize(if state.shadow.tells_levels(target) { asked(target) } else { Size::default() });
    }
}

/// What GL says about the texture that is bound to a target.
fn asked(target: u32) -> Size {
    let ask = |what: u32| {
        let mut value = 0_i32;
        // SAFETY: a context of GL ES 3.1 is current, and the target is one of its; there is room for the number.
        unsafe { real::glGetTexLevelParameteriv(target, 0, what, (&raw mut value).cast()) };
        value
    };
    let storage = Storage::of(ask(gl::TEXTURE_INTERNAL_FORMAT).cast_unsigned());
    storage.size([ask(gl::TEXTURE_WIDTH), ask(gl::TEXTURE_HEIGHT), 1], State::Texture)
}

/// A level is filled, if there is something to fill it with: `data` is a place in memory, or in a buffer if one is
/// bound for that.
fn given(state: &mut Context, sides: &[i32; 3], texel_bytes: u32, data: Ptr) -> Option<Work> {
    let is_filled = !data.is_null() || state.shadow.buffer(gl::PIXEL_UNPACK_BUFFER).is_some();
    upload(sides, texel_bytes).filter(|_| is_filled)
}

fn upload(sides: &[i32; 3], texel_bytes: u32) -> Option<Work> {
    Some(Work::Upload { bytes: volume(sides).saturating_mul(u64::from(texel_bytes)) })
}

/// Four bytes for each texel, roughly.
fn moved(sides: &[i32; 3]) -> Option<Work> {
    Some(Work::Copy { bytes: volume(sides).saturating_mul(4) })
}

fn mipmap(state: &Context, target: u32) -> Option<Work> {
    let bytes = state.shadow.texture(target).map_or(0, |image| image.size().bytes());
    Some(Work::Mipmap { bytes })
}

fn volume(sides: &[i32; 3]) -> u64 {
    sides.iter().map(|side| u64::try_from(*side).unwrap_or(0)).fold(1, u64::saturating_mul)
}
