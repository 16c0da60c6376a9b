//! What moving bytes costs: fixed, per byte, and beyond a knee per byte again.

use takt_predict::profile::Piecewise;

use super::Lab;
use super::pictures::Pictures;
use super::targets::Offscreen;
use crate::Problem;
use crate::bench::Bench;
use crate::fit::{self, Point};
use crate::random;
use takt_gl_api::gl::{FRAMEBUFFER, TEXTURE_2D};
use takt_gl_driver::Gl;

fn bytes(side: u32) -> f64 {
    f64::from(side) * f64::from(side) * 4.0
}

impl Lab<'_> {
    /// A cost in bytes, from times of whole groups with one small draw each.
    fn by_bytes(&mut self, keys: [&'static str; 4], points: &[Point]) -> Piecewise {
        let (mut cost, quality) = fit::knee(points);
        cost.fixed_ns = (cost.fixed_ns - self.profile.flush_ns - self.profile.draw_ns).max(0.0);
        let Piecewise { fixed_ns, below_ns, above_ns, knee_bytes } = cost;
        for (key, value) in keys.into_iter().zip([fixed_ns, below_ns, above_ns, knee_bytes]) {
            self.note(key, value, Some(quality.clone()), None);
        }
        cost
    }

    /// Times of work on a texture of several sizes, each of which `prepare` may fill first.
    fn texture_points(
        &self,
        pictures: &Pictures,
        prepare: &mut dyn FnMut(&Gl, u32),
        work: &mut dyn FnMut(&Gl, u32),
    ) -> Vec<Point> {
        let gl = &self.bench.gl;
        let one = |&side: &u32| {
            let texture = gl.new_texture();
            gl.bind_texture(TEXTURE_2D, texture);
            gl.linear_lookup(false);
            prepare(gl, side);
            let sample = self.bench.time(self.effort, &mut || {
                gl.bind_texture(TEXTURE_2D, texture);
                work(gl, side);
                pictures.touch(gl, texture);
            });
            gl.delete_texture(texture);
            [bytes(side), sample.ns]
        };
        self.sides().iter().map(one).collect()
    }

    fn noise(&self) -> Vec<u8> {
        let side = self.sides().last().copied().unwrap_or(1) as usize;
        random::noise(1, side * side * 4)
    }
}

/// `glTexImage2D` with data.
pub(super) fn uploads(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let noise = lab.noise();
    let points = lab.texture_points(&pictures, &mut |_, _| (), &mut |gl, side| {
        gl.upload(side, side, Some(&noise));
    });
    pictures.delete(&lab.bench.gl);
    let keys = ["upload.fixed_ns", "upload.below_ns", "upload.above_ns", "upload.knee_bytes"];
    lab.profile.memory.upload = lab.by_bytes(keys, &points);
    Ok(())
}

/// `glGenerateMipmap`.
pub(super) fn mipmaps(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let noise = lab.noise();
    let mut fill = |gl: &Gl, side: u32| gl.upload(side, side, Some(&noise));
    let points = lab.texture_points(&pictures, &mut fill, &mut |gl, _| gl.generate_mipmap(TEXTURE_2D));
    pictures.delete(&lab.bench.gl);
    let keys = ["mipmap.fixed_ns", "mipmap.below_ns", "mipmap.above_ns", "mipmap.knee_bytes"];
    lab.profile.memory.mipmap = lab.by_bytes(keys, &points);
    Ok(())
}

/// `glCopyTexSubImage2D`. Copies are from a texture that is drawn to: surfaces have no alpha here,
/// and GL refuses to copy what is not there.
pub(super) fn copies(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let side = lab.sides().last().copied().unwrap_or(1);
    let pictures = Pictures::new(lab.bench)?;
    let noise = lab.noise();
    let source = Offscreen::texture(lab.bench, side)?;
    let mut fill = |gl: &Gl, side: u32| gl.upload(side, side, Some(&noise));
    let copies = lab.texture_points(&pictures, &mut fill, &mut Gl::copy_to_texture);
    source.delete(lab.bench);
    pictures.delete(&lab.bench.gl);
    let keys = ["copy.fixed_ns", "copy.below_ns", "copy.above_ns", "copy.knee_bytes"];
    lab.profile.memory.copy = lab.by_bytes(keys, &copies);
    Ok(())
}

/// `glBufferData`.
pub(super) fn buffers(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let (bench, gl): (&Bench, &Gl) = (lab.bench, &lab.bench.gl);
    pictures.use_plain(gl);
    let buffer = gl.new_buffer();
    let side = lab.sides().last().copied().unwrap_or(1) as usize;
    let data = vec![0.5_f32; side * side];
    let one = |&side: &u32| {
        let part = &data[..side as usize * side as usize];
        let sample = bench.time(lab.effort, &mut || {
            gl.fill_buffer(buffer, part);
            pictures.draw_nothing(gl);
        });
        [bytes(side), sample.ns]
    };
    let points: Vec<Point> = lab.sides().iter().map(one).collect();
    gl.delete_buffer(buffer);
    pictures.delete(gl);
    let keys = ["buffer.fixed_ns", "buffer.below_ns", "buffer.above_ns", "buffer.knee_bytes"];
    lab.profile.memory.buffer = lab.by_bytes(keys, &points);
    Ok(())
}

/// Attaching a target that holds something: GPUs with tiles load it first.
pub(super) fn loads(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let mut points = Vec::new();
    for &side in lab.sides() {
        let target = Offscreen::texture(lab.bench, side)?;
        let (bench, gl) = (&*lab.bench, &lab.bench.gl);
        pictures.use_plain(gl);
        pictures.fill(gl);
        let sample = bench.time(lab.effort, &mut || {
            target.bind(bench);
            gl.viewport(0, 0, 1, 1);
            pictures.fill(gl);
            gl.bind_framebuffer(FRAMEBUFFER, 0);
        });
        points.push([bytes(side), sample.ns]);
        target.delete(lab.bench);
    }
    pictures.delete(&lab.bench.gl);
    let keys = ["load.fixed_ns", "load.below_ns", "load.above_ns", "load.knee_bytes"];
    lab.profile.memory.load = lab.by_bytes(keys, &points);
    Ok(())
}
