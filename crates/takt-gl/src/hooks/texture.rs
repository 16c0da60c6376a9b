//! Textures: which are bound, and how large they are.

use takt_predict::predictor::Work;

use super::given::list;
use crate::entry::Ptr;
use crate::monitor::context::State;
use crate::monitor::texture::{Size, pixel_bytes, storage_bytes};

super::noted! {
    glActiveTexture(unit: u32) => |state| state.active_texture(unit);
    glBindTexture(target: u32, texture: u32) => |state| state.bind_texture(target, texture);
    glDeleteTextures(n: i32, textures: Ptr) => |state| state.delete_textures(list(n, textures));
    glTexImage2D(
        target: u32, level: i32, _inner: i32, width: i32, height: i32, _border: i32, format: u32, kind: u32, data: Ptr
    ) begins => |state| image(state, target, level, &[width, height, 1], pixel_bytes(format, kind), !data.is_null());
    glTexImage3D(
        target: u32, level: i32, _inner: i32, width: i32, height: i32, depth: i32, _border: i32, format: u32, kind: u32,
        data: Ptr
    ) begins =>
        |state| image(state, target, level, &[width, height, depth], pixel_bytes(format, kind), !data.is_null());
    glTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, width: i32, height: i32, format: u32, kind: u32, _data: Ptr
    ) begins => |state| upload(state, &[width, height, 1], pixel_bytes(format, kind));
    glTexSubImage3D(
        _target: u32, _level: i32, _x: i32, _y: i32, _z: i32, width: i32, height: i32, depth: i32, format: u32,
        kind: u32, _data: Ptr
    ) begins =>
        |state| upload(state, &[width, height, depth], pixel_bytes(format, kind));
    glTexStorage2D(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, &[width, height, 1], storage_bytes(format), false);
    glTexStorage2DEXT(target: u32, _levels: i32, format: u32, width: i32, height: i32) =>
        |state| image(state, target, 0, &[width, height, 1], storage_bytes(format), false);
    glTexStorage3D(target: u32, _levels: i32, format: u32, width: i32, height: i32, depth: i32) =>
        |state| image(state, target, 0, &[width, height, depth], storage_bytes(format), false);
    glCompressedTexImage2D(
        target: u32, level: i32, _format: u32, width: i32, height: i32, _border: i32, bytes: i32, data: Ptr
    ) begins => |state| {
        image(state, target, level, &[width, height, 1], 1, false);
        if !data.is_null() {
            state.work(Work::Upload { bytes: u64::try_from(bytes).unwrap_or(0) });
        }
    };
    glCompressedTexSubImage2D(
        _target: u32, _level: i32, _x: i32, _y: i32, _width: i32, _height: i32, _format: u32, bytes: i32, _data: Ptr
    ) begins => |state| state.work(Work::Upload { bytes: u64::try_from(bytes).unwrap_or(0) });
    glCopyTexImage2D(
        target: u32, level: i32, format: u32, _x: i32, _y: i32, width: i32, height: i32, _border: i32
    ) begins => |state| image(state, target, level, &[width, height, 1], storage_bytes(format), true);
    glCopyTexSubImage2D(
        _target: u32, _level: i32, _to_x: i32, _to_y: i32, _x: i32, _y: i32, width: i32, height: i32
    ) begins => |state| state.work(Work::Copy { bytes: volume(&[width, height, 4]) });
    glGenerateMipmap(target: u32) begins => |state| mipmap(state, target);
    glGenerateMipmapOES(target: u32) begins => |state| mipmap(state, target);
}

/// A level was given storage, and perhaps data.
fn image(state: &mut State, target: u32, level: i32, sides: &[i32; 3], texel_bytes: u32, filled: bool) {
    if filled {
        upload(state, sides, texel_bytes);
    }
    if let Some(image) = state.texture(target).filter(|_| level == 0) {
        let [width, height, depth] = sides.map(|side| u32::try_from(side).unwrap_or(0));
        image.resize(Size { width, height, depth, samples: 0, texel_bytes });
    }
}

fn upload(state: &mut State, sides: &[i32; 3], texel_bytes: u32) {
    state.work(Work::Upload { bytes: volume(sides).saturating_mul(u64::from(texel_bytes)) });
}

fn mipmap(state: &mut State, target: u32) {
    let bytes = state.texture(target).map_or(0, |image| image.size().bytes());
    state.work(Work::Mipmap { bytes });
}

fn volume(sides: &[i32; 3]) -> u64 {
    sides.iter().map(|side| u64::try_from(*side).unwrap_or(0)).fold(1, u64::saturating_mul)
}
