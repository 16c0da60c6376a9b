//! A round instrument: two textured squares, a face and a needle.
//!
//! It draws as instruments of early digital clusters do: two programs, no buffers, and the needle's
//! corners turned on the CPU, so that no matrix tells where it goes. The needle's square has half
//! the side of the face, thus a quarter of its fragments. The needle lies on its diagonal, which is
//! long enough to reach the scale while all corners stay inside the face at every angle.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, PI, SQRT_2};
use takt_gl_api::gl::{BLEND, COLOR_BUFFER_BIT, ONE, ONE_MINUS_SRC_ALPHA, TEXTURE_2D};
use takt_gl_driver::Gl;

use crate::font::{self, Style};
use crate::gfx::{self, Beyond};
use crate::paint::{Canvas, Colour, faint, mix, rgb};
use crate::run::{App, Frame};
use crate::shape::{Point, Shape, length, minus, plus, polar, times, turn};

/// What is on a face.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Face {
    /// Value at the end of the scale.
    pub(crate) full: f32,
    /// Between numbers.
    pub(crate) major: f32,
    /// Between ticks.
    pub(crate) minor: f32,
    /// Numbers are values divided by this.
    pub(crate) divisor: f32,
    /// From here the scale is red.
    pub(crate) red_from: f32,
    /// Below the middle.
    pub(crate) unit: &'static str,
    /// Above the unit.
    pub(crate) caption: &'static str,
    /// Colour of light.
    pub(crate) accent: u32,
    /// Value at a time.
    pub(crate) value: fn(f64) -> f64,
}

const VERTEX: &str = "\
attribute vec2 position;
attribute vec2 corner;
varying vec2 at;
void main() {
    at = corner;
    gl_Position = vec4(position, 0.0, 1.0);
}
";

const FACE: &str = "\
precision mediump float;
uniform sampler2D picture;
varying vec2 at;
void main() {
    gl_FragColor = vec4(texture2D(picture, at).rgb, 1.0);
}
";

/// The needle is a little brighter in the middle of its length.
const NEEDLE: &str = "\
precision mediump float;
uniform sampler2D picture;
varying vec2 at;
void main() {
    float along = at.x * at.y;
    gl_FragColor = texture2D(picture, at) * (1.0 - 0.25 * along * along);
}
";

/// Where the scale begins and ends, counter-clockwise from the right.
const FIRST_ANGLE: f32 = PI * 1.25;
const LAST_ANGLE: f32 = -PI * 0.25;
/// The needle's axis on its square, whose sides go from -1 to 1.
const AXIS: Point = [-0.4, -0.4];
/// Sides of the needle's square as a share of the face's.
const NEEDLE_SHARE: f32 = 0.5;

/// A dial.
pub(crate) struct Dial {
    face: Face,
    programs: [u32; 2],
    textures: [u32; 2],
    texture_length: u32,
}

impl Dial {
    /// Paints the face and the needle; a texture of 0 pixels means one that suits the size.
    pub(crate) fn new(gl: &Gl, face: Face, size: (u32, u32), texture: u32) -> anyhow::Result<Self> {
        // Twice the size on screen: GL's own smaller version then has the right one.
        let wanted = if texture == 0 { size.0.min(size.1) * 2 } else { texture };
        let length = gfx::texture_length(gl, wanted);
        let needle_length = (length / 2).max(1);
        let programs = [
            gfx::program(gl, VERTEX, FACE, &["position", "corner"])?,
            gfx::program(gl, VERTEX, NEEDLE, &["position", "corner"])?,
        ];
        let textures = [
            gfx::texture(gl, &paint_face(&face, length), Beyond::Edge),
            gfx::texture(gl, &paint_needle(needle_length), Beyond::Edge),
        ];
        Ok(Self { face, programs, textures, texture_length: length })
    }
}

/// Corners of a square as two triangles in a strip.
const CORNERS: [Point; 4] = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];
/// The same on a texture.
const TEXELS: [f32; 8] = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0];

/// Corners of the needle's square when it points at an angle; the face reaches from -1 to 1.
fn needle_corners(angle: f32) -> [Point; 4] {
    CORNERS.map(|corner| turn(times(minus(corner, AXIS), NEEDLE_SHARE), angle - FRAC_PI_4))
}

fn angle(face: &Face, value: f32) -> f32 {
    FIRST_ANGLE + (LAST_ANGLE - FIRST_ANGLE) * (value / face.full).clamp(0.0, 1.0)
}

impl App for Dial {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        let (width, height) = frame.size;
        gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
        gl.clear_color(0.0, 0.0, 0.0, 1.0);
        gl.clear(COLOR_BUFFER_BIT);
        // The face stays round in a window that is not square.
        let aspect = frame.aspect();
        let stretch = [1.0 / aspect.max(1.0), aspect.min(1.0)];
        let fit = |corners: [Point; 4]| -> Vec<f32> {
            corners.iter().flat_map(|corner| [corner[0] * stretch[0], corner[1] * stretch[1]]).collect()
        };
        #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
        let value = (self.face.value)(frame.time) as f32;
        gl.disable(BLEND);
        gl.use_program(self.programs[0]);
        gl.bind_texture(TEXTURE_2D, self.textures[0]);
        gfx::draw_square(gl, &fit(CORNERS), &TEXELS);
        gl.enable(BLEND);
        gl.blend_func(ONE, ONE_MINUS_SRC_ALPHA);
        gl.use_program(self.programs[1]);
        gl.bind_texture(TEXTURE_2D, self.textures[1]);
        let needle = needle_corners(angle(&self.face, value));
        gfx::draw_square(gl, &fit(needle), &TEXELS);
    }

    fn facts(&self) -> Vec<(&'static str, serde_json::Value)> {
        vec![("draws", 2.into()), ("texture", self.texture_length.into())]
    }
}

fn paint_face(face: &Face, length: u32) -> Canvas {
    let mut canvas = Canvas::new(length, length, 1.0);
    let accent = rgb(face.accent);
    let middle: Point = [0.0; 2];
    // The cluster's panel, a bezel that shines from above, and the face.
    canvas.shade(&Shape::panel(middle, [1.1; 2], 0.0), |point| {
        mix(rgb(0x14_18_1E), rgb(0x06_07_09), length_of(point))
    });
    canvas.shade(&Shape::disc(middle, 0.985), |point| {
        mix(rgb(0x2A_2F_36), rgb(0xC4_CC_D6), (point[1] * 0.5 + 0.5).powi(3))
    });
    canvas.fill(&Shape::disc(middle, 0.965), rgb(0x08_0A_0D));
    canvas.shade(&Shape::disc(middle, 0.955), |point| {
        mix(rgb(0x1B_22_2C), rgb(0x07_09_0C), length_of(point) * 1.1)
    });
    paint_scale(&mut canvas, face, accent);
    // An inner ring separates the scale from the words.
    let inner = Shape::arc(middle, 0.5, (0.0, 2.0 * PI), 0.006);
    canvas.glow(&Shape::arc(middle, 0.5, (0.0, 2.0 * PI), 0.004), 0.05, faint(accent, 0.25));
    canvas.fill(&inner, faint(accent, 0.6));
    let style = |height, colour| Style { height, weight: 0.15, colour };
    font::centred(&mut canvas, face.unit, [0.0, -0.36], style(0.075, rgb(0x9A_A7_B8)));
    font::centred(&mut canvas, face.caption, [0.0, -0.62], style(0.055, faint(accent, 0.9)));
    canvas
}

fn length_of(point: Point) -> f32 {
    length(point).min(1.0)
}

fn paint_scale(canvas: &mut Canvas, face: &Face, accent: Colour) {
    let middle: Point = [0.0; 2];
    let (red, white) = (rgb(0xFF_3B_30), rgb(0xEE_F2_F7));
    let band = |from: f32, to: f32| Shape::arc(middle, 0.915, (angle(face, to), angle(face, from)), 0.018);
    canvas.glow(&band(0.0, face.red_from), 0.06, faint(accent, 0.35));
    canvas.fill(&band(0.0, face.red_from), faint(accent, 0.9));
    canvas.glow(&band(face.red_from, face.full), 0.06, faint(red, 0.4));
    canvas.fill(&band(face.red_from, face.full), red);
    let mut step = 0_u16;
    loop {
        let value = f32::from(step) * face.minor;
        if value > face.full + face.minor / 2.0 {
            break;
        }
        let at = angle(face, value);
        let is_major = (value / face.major - (value / face.major).round()).abs() < 1e-3;
        let (inner, width) = if is_major { (0.775, 0.020) } else { (0.835, 0.009) };
        let colour = if value >= face.red_from { red } else { white };
        let colour = if is_major { colour } else { faint(colour, 0.75) };
        canvas.fill(&Shape::line(&[polar(at, inner), polar(at, 0.88)], width), colour);
        if is_major {
            let text = format!("{:.0}", value / face.divisor);
            let style = Style { height: 0.088, weight: 0.16, colour };
            font::centred(canvas, &text, polar(at, 0.635), style);
        }
        step += 1;
    }
}

fn paint_needle(length: u32) -> Canvas {
    let mut canvas = Canvas::new(length, length, 1.0);
    // Lengths below are as on the face, where the square is only half as wide.
    let place =
        |along: f32, across: f32| plus(AXIS, times(turn([along, across], FRAC_PI_4), 1.0 / NEEDLE_SHARE));
    let hub = |radius: f32| Shape::disc(AXIS, radius / NEEDLE_SHARE);
    let blade = || {
        Shape::polygon(&[place(-0.22, 0.022), place(0.82, 0.006), place(0.82, -0.006), place(-0.22, -0.022)])
    };
    canvas.glow(&Shape::line(&[place(0.1, 0.0), place(0.78, 0.0)], 0.01), 0.16, faint(rgb(0xFF_45_2E), 0.45));
    canvas.shade(&blade(), |point| {
        // The two halves of the blade take light differently.
        let side = turn(minus(point, AXIS), -FRAC_PI_4)[1];
        if side > 0.0 { rgb(0xFF_6A_4D) } else { rgb(0xE0_2A_1B) }
    });
    canvas.glow(&hub(0.10), 0.10, [0.0, 0.0, 0.0, 0.6]);
    canvas.shade(&hub(0.115), |point| {
        let from = turn(minus(point, AXIS), FRAC_PI_2);
        mix(rgb(0x16_1A_20), rgb(0x6B_74_80), 0.5 + from[0] * SQRT_2)
    });
    canvas.fill(&hub(0.095), rgb(0x12_15_1A));
    canvas.fill(&hub(0.03), rgb(0x2C_33_3C));
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_needle_stays_inside_and_keeps_its_area() {
        for degree in -45..=225_i16 {
            let corners = needle_corners(f32::from(degree).to_radians());
            let reach = corners.iter().map(|&corner| length(corner)).fold(0.0, f32::max);
            assert!(reach <= 1.0, "a corner leaves the face at {degree}°");
            let [a, b, c, _] = corners;
            let (u, v) = (minus(b, a), minus(c, a));
            assert!(((u[0] * v[1] - u[1] * v[0]) - 1.0).abs() < 1e-5, "a quarter of the face's 2x2");
        }
    }

    #[test]
    fn the_scale_runs_clockwise_from_below_left_to_below_right() {
        let face = Face {
            full: 100.0,
            major: 10.0,
            minor: 5.0,
            divisor: 1.0,
            red_from: 90.0,
            unit: "",
            caption: "",
            accent: 0,
            value: |_| 0.0,
        };
        for (value, wanted) in
            [(0.0, FIRST_ANGLE), (50.0, FRAC_PI_2), (100.0, LAST_ANGLE), (900.0, LAST_ANGLE)]
        {
            assert!((angle(&face, value) - wanted).abs() < 1e-5);
        }
    }
}
