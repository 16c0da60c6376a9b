//! Textures: which are bound, and how large they are.

use takt_predict::predictor::Work;

use super::given::list;
use crate::client::context::State;
use crate::entry::Ptr;
use crate::shadow::texture::{Size, pixel_bytes, storage_bytes};

super::noted! {
    glActiveTexture(unit: u32) => |state| state.shadow.active_texture(unit);
    glBindTexture(target: u32, texture: u32) => |state| state.shadow.bind_texture(target, texture);
    glDeleteTextures(n: i32, textures: Ptr) => |state| state.shadow.delete_textures(list(n, textures));
    glTexImage2D(
        target: u32, level: i32, _inner: i32, width: i32, height: i32, _border: i32, format: u32, kind: u32, data: Ptr
    ) copies |_state| given(&[width, height, 1], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, &[width, height, 1], pixel_bytes(format, kind));
    glTexImage3D(
        target: u32, level: i32, _inner: i32, width: i32, height: i32, depth: i32, _border: i32, format: u32, kind: u32,
        data: Ptr
    ) copies |_state| given(&[width, height, depth], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, &[width, height, depth], pixel_bytes(format, kind));
    glTexImage3DOES(
        target: u32, level: i32, _inner: u32, width: i32, height: i32, depth: i32, _border: i32, format: u32, kind: u32,
        data: Ptr
    ) copies |_state| given(&[width, height, depth], pixel_bytes(format, kind), data) =>
        |state| image(state, target, level, &[width, height, depth], pixel_bytes(format, kind));
    glTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, width: i32, height: i32, format: u32, kind: u32, _data: Ptr
    ) copies |_state| upload(&[width, height, 1], pixel_bytes(format, kind)) => |_state| ();
    glTexSubImage3D(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, width: i32, height: i32, depth: i32, format: u32,
        kind: u32, _data: Ptr
    ) copies |_state| upload(&[width, height, depth], pixel_bytes(format, kind)) => |_state| ();
    glTexSubImage3DOES(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, width: i32, height: i32, depth: i32, format: u32,
        kind: u32, _data: Ptr
    ) copies |_state| upload(&[width, height, depth], pixel_bytes(format, kind)) => |_state| ();
    glTexStorage2D(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, &[width, height, 1], storage_bytes(format));
    glTexStorage2DEXT(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, &[width, height, 1], storage_bytes(format));
    glTexStorage3D(target: u32, _levels: i32, format: u32, width: i32, height: i32, depth: i32) =>
        |state| image(state, target, 0, &[width, height, depth], storage_bytes(format));
    glTexStorage3DEXT(target: u32, _levels: i32, format: u32, width: i32, height: i32, depth: i32) =>
        |state| image(state, target, 0, &[width, height, depth], storage_bytes(format));
    glCompressedTexImage2D(
        target: u32, level: i32, _format: u32, width: i32, height: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |_state| given(&[bytes, 1, 1], 1, data) => |state| image(state, target, level, &[width, height, 1], 1);
    glCompressedTexImage3D(
        target: u32, level: i32, _format: u32, width: i32, height: i32, depth: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |_state| given(&[bytes, 1, 1], 1, data) => |state| image(state, target, level, &[width, height, depth], 1);
    glCompressedTexImage3DOES(
        target: u32, level: i32, _format: u32, width: i32, height: i32, depth: i32, _border: i32, bytes: i32, data: Ptr
    ) copies |_state| given(&[bytes, 1, 1], 1, data) => |state| image(state, target, level, &[width, height, depth], 1);
    glCompressedTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, _width: i32, _height: i32, _format: u32, bytes: i32, _data: Ptr
    ) copies |_state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCompressedTexSubImage3D(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, _width: i32, _height: i32, _depth: i32, _format: u32,
        bytes: i32, _data: Ptr
    ) copies |_state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCompressedTexSubImage3DOES(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, _width: i32, _height: i32, _depth: i32, _format: u32,
        bytes: i32, _data: Ptr
    ) copies |_state| upload(&[bytes, 1, 1], 1) => |_state| ();
    glCopyTexImage2D(
        target: u32, level: i32, format: u32, _x: i32, _y: i32, width: i32, height: i32, _border: i32
    ) copies |_state| upload(&[width, height, 1], storage_bytes(format)) =>
        |state| image(state, target, level, &[width, height, 1], storage_bytes(format));
    glCopyTexSubImage2D(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |_state| moved(&[width, height, 1]) => |_state| ();
    glCopyTexSubImage3D(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _to_z: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |_state| moved(&[width, height, 1]) => |_state| ();
    glCopyTexSubImage3DOES(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _to_z: i32, _x: i32, _y: i32, width: i32, height: i32
    ) copies |_state| moved(&[width, height, 1]) => |_state| ();
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
        ) copies |_state| moved(&[width, height, depth]) => |_state| ();
        glCopyImageSubDataEXT(
            _from: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32, _to: u32, _to_target: u32,
            _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32, height: i32, depth: i32
        ) copies |_state| moved(&[width, height, depth]) => |_state| ();
        glCopyImageSubDataOES(
            _from: u32, _from_target: u32, _from_level: i32, _x: i32, _y: i32, _z: i32, _to: u32, _to_target: u32,
            _to_level: i32, _to_x: i32, _to_y: i32, _to_z: i32, width: i32, height: i32, depth: i32
        ) copies |_state| moved(&[width, height, depth]) => |_state| ();
        glCopyTextureLevelsAPPLE(_to: u32, from: u32, _level: i32, _levels: i32) copies |state| {
            let bytes = state.shadow.shared.lock().textures.get(from).map_or(0, |image| image.size().bytes());
            Some(Work::Copy { bytes })
        } => |_state| ();
    }
}

/// A level was given storage.
fn image(state: &State, target: u32, level: i32, sides: &[i32; 3], texel_bytes: u32) {
    if let Some(image) = state.shadow.texture(target).filter(|_| level == 0) {
        let [width, height, depth] = sides.map(|side| u32::try_from(side).unwrap_or(0));
        image.resize(Size { width, height, depth, samples: 0, texel_bytes });
    }
}

/// A level is filled, if there is something to fill it with.
fn given(sides: &[i32; 3], texel_bytes: u32, data: Ptr) -> Option<Work> {
    upload(sides, texel_bytes).filter(|_| !data.is_null())
}

fn upload(sides: &[i32; 3], texel_bytes: u32) -> Option<Work> {
    Some(Work::Upload { bytes: volume(sides).saturating_mul(u64::from(texel_bytes)) })
}

/// Four bytes for each texel, roughly.
fn moved(sides: &[i32; 3]) -> Option<Work> {
    Some(Work::Copy { bytes: volume(sides).saturating_mul(4) })
}

fn mipmap(state: &State, target: u32) -> Option<Work> {
    let bytes = state.shadow.texture(target).map_or(0, |image| image.size().bytes());
    Some(Work::Mipmap { bytes })
}

fn volume(sides: &[i32; 3]) -> u64 {
    sides.iter().map(|side| u64::try_from(*side).unwrap_or(0)).fold(1, u64::saturating_mul)
}
