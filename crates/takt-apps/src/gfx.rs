//! Programs and textures, made in one step each.

use anyhow::anyhow;

use crate::paint::Canvas;
use crate::sys::gl::{
    CLAMP_TO_EDGE, FRAGMENT_SHADER, Gl, LINEAR, LINEAR_MIPMAP_LINEAR, MAX_TEXTURE_SIZE, REPEAT, TEXTURE_2D,
    TEXTURE_MAG_FILTER, TEXTURE_MIN_FILTER, TEXTURE_WRAP_S, TEXTURE_WRAP_T, VERTEX_SHADER,
};

/// Compiles and links a program; attributes get the places 0, 1, … in this order.
pub(crate) fn program(gl: &Gl, vertex: &str, fragment: &str, attributes: &[&str]) -> anyhow::Result<u32> {
    let compile = |kind, name, source| {
        gl.compile(kind, source).map_err(|log| anyhow!("the driver refuses a {name} shader: {log}"))
    };
    let vertex = compile(VERTEX_SHADER, "vertex", vertex)?;
    let fragment = compile(FRAGMENT_SHADER, "fragment", fragment)?;
    gl.link([vertex, fragment], attributes).map_err(|log| anyhow!("the driver cannot link a program: {log}"))
}

/// What a texture shows beyond its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beyond {
    /// Its edge.
    Edge,
    /// Itself again.
    Repeat,
}

/// Uploads a canvas with all its smaller versions.
pub(crate) fn texture(gl: &Gl, canvas: &Canvas, beyond: Beyond) -> u32 {
    let texture = gl.new_texture();
    gl.bind_texture(TEXTURE_2D, texture);
    gl.upload(canvas.size(), &canvas.bytes());
    let wrap = if beyond == Beyond::Repeat { REPEAT } else { CLAMP_TO_EDGE };
    gl.texture_parameter(TEXTURE_2D, TEXTURE_WRAP_S, wrap);
    gl.texture_parameter(TEXTURE_2D, TEXTURE_WRAP_T, wrap);
    gl.texture_parameter(TEXTURE_2D, TEXTURE_MAG_FILTER, LINEAR);
    gl.texture_parameter(TEXTURE_2D, TEXTURE_MIN_FILTER, LINEAR_MIPMAP_LINEAR);
    gl.generate_mipmap(TEXTURE_2D);
    texture
}

/// The largest texture of the driver, at most `wanted`.
pub(crate) fn texture_length(gl: &Gl, wanted: u32) -> u32 {
    wanted.clamp(1, u32::try_from(gl.integer(MAX_TEXTURE_SIZE)).unwrap_or(2048).max(64))
}
