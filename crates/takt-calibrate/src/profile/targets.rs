//! What happens to targets: clears, fragments that are tested and blended, samples, swaps.

use takt_predict::cost::FragmentState;

use super::Lab;
use super::pictures::Pictures;
use crate::Problem;
use crate::bench::Bench;
use crate::fit::{self, Point, Quality};
use takt_gl_api::gl::{
    COLOR_BUFFER_BIT, DEPTH_BUFFER_BIT, FRAMEBUFFER, MAX_SAMPLES, STENCIL_BUFFER_BIT, TEXTURE_2D,
};

const CLEARS: [&str; 7] = [
    "clear.pixel_ns.c",
    "clear.pixel_ns.d",
    "clear.pixel_ns.cd",
    "clear.pixel_ns.s",
    "clear.pixel_ns.cs",
    "clear.pixel_ns.ds",
    "clear.pixel_ns.cds",
];

fn pixels(side: u32) -> f64 {
    f64::from(side) * f64::from(side)
}

/// Clears of every set of buffers, on surfaces of several sizes.
pub(super) fn clears(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let mut points: [Vec<Point>; 7] = Default::default();
    for &side in lab.sides() {
        lab.bench.resize(side, side)?;
        for (set, points) in (1_usize..).zip(&mut points) {
            let bits = [COLOR_BUFFER_BIT, DEPTH_BUFFER_BIT, STENCIL_BUFFER_BIT];
            let used = bits.iter().enumerate().filter(|(bit, _)| set & (1 << bit) != 0);
            let mask = used.fold(0, |mask, (_, bit)| mask | bit);
            let sample = lab.bench.time(lab.effort, &mut || lab.bench.gl.clear(mask));
            points.push([pixels(side), sample.ns]);
        }
    }
    for ((set, points), key) in (1_usize..).zip(points).zip(CLEARS) {
        let ([fixed_ns, slope], quality) = fit::line(&points);
        lab.profile.clear.pixel_ns[set] = slope;
        if set == 1 {
            let fast_ns = (fixed_ns - lab.profile.flush_ns).max(0.0);
            lab.profile.clear.fast_ns = fast_ns;
            lab.note("clear.fast_ns", fast_ns, Some(quality.clone()), Some("whatever the size"));
        }
        lab.note(key, slope, Some(quality), None);
    }
    Ok(())
}

/// Colour and depth of a texture of this side, as the driver is asked for them.
const PIXEL_BYTES: f64 = 6.0;

/// Clears of textures that are drawn to.
pub(super) fn off_screen_clears(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let mut points = Vec::new();
    for &side in lab.sides() {
        let target = Offscreen::texture(lab.bench, side)?;
        let mask = COLOR_BUFFER_BIT | DEPTH_BUFFER_BIT;
        let sample = lab.bench.time(lab.effort, &mut || lab.bench.gl.clear(mask));
        points.push([pixels(side) * PIXEL_BYTES, sample.ns]);
        target.delete(lab.bench);
    }
    let ([_, slope], quality) = fit::line(&points);
    lab.profile.clear.byte_ns = slope;
    lab.note("clear.byte_ns", slope, Some(quality), None);
    Ok(())
}

const STATES: [FragmentState; 3] = [
    FragmentState { depth: false, blend: false },
    FragmentState { depth: true, blend: false },
    FragmentState { depth: false, blend: true },
];

/// What fragments cost more with depth test and with blending.
pub(super) fn fragments(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let mut points: [Vec<Point>; 3] = Default::default();
    for &side in lab.sides() {
        lab.bench.resize(side, side)?;
        let gl = &lab.bench.gl;
        gl.clear(COLOR_BUFFER_BIT | DEPTH_BUFFER_BIT);
        pictures.use_plain(gl);
        for (state, points) in STATES.into_iter().zip(&mut points) {
            lab.bench.set_state(state);
            let sample = lab.bench.time(lab.effort, &mut || pictures.fill(gl));
            points.push([pixels(side), sample.ns]);
        }
        lab.bench.set_state(FragmentState::default());
    }
    pictures.delete(&lab.bench.gl);
    let [(plain, _), depth, blend] = points.map(|points| {
        let ([_, slope], quality) = fit::line(&points);
        (slope, quality)
    });
    let more = |(slope, quality): (f64, Quality)| ((slope - plain).max(0.0), quality);
    let ((depth_ns, of_depth), (blend_ns, of_blend)) = (more(depth), more(blend));
    (lab.profile.depth_ns, lab.profile.blend_ns) = (depth_ns, blend_ns);
    lab.note("depth_ns", depth_ns, Some(of_depth), Some("slope above that without the test"));
    lab.note("blend_ns", blend_ns, Some(of_blend), Some("slope above that without blending"));
    Ok(())
}

const SAMPLES: [(u32, &str); 4] = [(2, "msaa.2"), (4, "msaa.4"), (8, "msaa.8"), (16, "msaa.16")];

/// By how much samples slow fragments down.
pub(super) fn samples(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let pictures = Pictures::new(lab.bench)?;
    let most = lab.bench.gl.integer(MAX_SAMPLES);
    // A driver of 2.0 does not know the limit; that is no error of ours.
    lab.bench.gl.error();
    let (single, _) = fill_rate(lab, &pictures, 0)?.unwrap_or_default();
    let mut factor = 1.0;
    for (at, (count, key)) in SAMPLES.into_iter().enumerate() {
        let measured = if count <= most { fill_rate(lab, &pictures, count)? } else { None };
        let (quality, note) = match measured {
            Some((slope, quality)) if single > 0.0 => {
                factor = f64::max(slope / single, 1.0);
                (Some(quality), None)
            }
            _ => (None, Some("not offered by the driver: as with fewer samples")),
        };
        lab.profile.msaa[at] = factor;
        lab.note(key, factor, quality, note);
    }
    pictures.delete(&lab.bench.gl);
    Ok(())
}

/// Time per pixel of a target with so many samples; none if the driver has no such target.
fn fill_rate(lab: &Lab<'_>, pictures: &Pictures, samples: u32) -> Result<Option<(f64, Quality)>, Problem> {
    let mut points = Vec::new();
    for &side in lab.sides() {
        let target = if samples == 0 {
            Offscreen::texture(lab.bench, side)?
        } else {
            let Some(target) = Offscreen::samples(lab.bench, side, samples) else { return Ok(None) };
            target
        };
        pictures.use_plain(&lab.bench.gl);
        let sample = lab.bench.time(lab.effort, &mut || pictures.fill(&lab.bench.gl));
        points.push([pixels(side), sample.ns]);
        target.delete(lab.bench);
    }
    let ([_, slope], quality) = fit::line(&points);
    Ok(Some((slope, quality)))
}

/// What it costs to show a surface. The surfaces here are off-screen; renderers on CPUs hand
/// pixels of a window over by copying them, so reading them back stands in for that.
pub(super) fn swaps(lab: &mut Lab<'_>) -> Result<(), Problem> {
    let mut points = Vec::new();
    let software = lab.bench.is_software();
    let mut copy = Vec::new();
    for &side in lab.sides() {
        lab.bench.resize(side, side)?;
        let (bench, gl) = (&*lab.bench, &lab.bench.gl);
        copy.resize(side as usize * side as usize * 4, 0);
        let ns = if software {
            // What is read must be ready first, or the drawing would count as well.
            gl.clear(COLOR_BUFFER_BIT);
            gl.finish();
            bench.time(lab.effort, &mut || gl.read_pixels(side, side, &mut copy)).ns
        } else {
            let clear = || gl.clear(COLOR_BUFFER_BIT);
            bench.difference(lab.effort, &mut || clear(), &mut || {
                clear();
                bench.swap();
            })
        };
        points.push([pixels(side), ns.max(0.0)]);
    }
    let ([_, slope], quality) = fit::line(&points);
    lab.profile.swap.pixel_ns = slope;
    let note = if software {
        "a renderer on the CPU: reading pixels back stands in for showing them"
    } else {
        "a surface without a window; showing a window may cost more"
    };
    lab.note("swap.pixel_ns", slope, Some(quality), Some(note));
    Ok(())
}

/// Something off-screen that is drawn to, until it is deleted.
pub(super) struct Offscreen {
    framebuffer: u32,
    texture: u32,
    renderbuffer: u32,
}

impl Offscreen {
    /// A texture with depth.
    pub(super) fn texture(bench: &Bench, side: u32) -> Result<Self, Problem> {
        let gl = &bench.gl;
        let target = Self {
            framebuffer: gl.new_framebuffer(),
            texture: gl.new_texture(),
            renderbuffer: gl.new_renderbuffer(),
        };
        gl.bind_texture(TEXTURE_2D, target.texture);
        gl.upload(side, side, None);
        gl.linear_lookup(false);
        gl.bind_framebuffer(FRAMEBUFFER, target.framebuffer);
        if !gl.render_to_texture(target.texture) || !gl.add_depth(target.renderbuffer, side, side) {
            let reason = format!("it is incomplete ({side}x{side} pixels)");
            return Err(Problem::Refused { what: "a texture as target", reason });
        }
        gl.viewport(0, 0, side.cast_signed(), side.cast_signed());
        Ok(target)
    }

    /// A buffer with samples, if the driver has that.
    fn samples(bench: &Bench, side: u32, samples: u32) -> Option<Self> {
        let gl = &bench.gl;
        let target =
            Self { framebuffer: gl.new_framebuffer(), texture: 0, renderbuffer: gl.new_renderbuffer() };
        gl.bind_framebuffer(FRAMEBUFFER, target.framebuffer);
        if !gl.render_to_samples(target.renderbuffer, samples, side, side) {
            target.delete(bench);
            return None;
        }
        gl.viewport(0, 0, side.cast_signed(), side.cast_signed());
        Some(target)
    }

    /// Draws to this from now on.
    pub(super) fn bind(&self, bench: &Bench) {
        bench.gl.bind_framebuffer(FRAMEBUFFER, self.framebuffer);
    }

    /// Removes it; what follows is drawn on the surface.
    pub(super) fn delete(self, bench: &Bench) {
        let gl = &bench.gl;
        gl.bind_framebuffer(FRAMEBUFFER, 0);
        gl.delete_framebuffer(self.framebuffer);
        gl.delete_texture(self.texture);
        gl.delete_renderbuffer(self.renderbuffer);
    }
}
