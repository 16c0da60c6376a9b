//! Programs and textures, made in one step each.

use anyhow::anyhow;
use takt_gl_api::gl::{
    CLAMP_TO_EDGE, LINEAR, LINEAR_MIPMAP_LINEAR, MAX_TEXTURE_SIZE, REPEAT, TEXTURE_2D, TEXTURE_MAG_FILTER,
    TEXTURE_MIN_FILTER, TEXTURE_WRAP_S, TEXTURE_WRAP_T, TRIANGLE_STRIP,
};
use takt_gl_driver::{Array, Gl};

use crate::paint::Canvas;

/// Compiles and links a program; attributes get the locations 0, 1, … in this order.
pub(crate) fn program(gl: &Gl, vertex: &str, fragment: &str, attributes: &[&str]) -> anyhow::Result<u32> {
    let program = gl.program(vertex, fragment, attributes);
    program.map_err(|words| anyhow!("the driver refuses a program: {words}"))
}

/// Draws a square from the app's own memory: positions and texels of four corners.
pub(crate) fn draw_square(gl: &Gl, positions: &[f32], texels: &[f32]) {
    let arrays = [(0, positions), (1, texels)].map(|(location, data)| Array { location, floats: 2, data });
    gl.draw_arrays(TRIANGLE_STRIP, 4, &arrays);
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
    let (width, height) = canvas.size();
    gl.upload(width, height, Some(&canvas.bytes()));
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
    wanted.clamp(1, gl.integer(MAX_TEXTURE_SIZE).max(64))
}
