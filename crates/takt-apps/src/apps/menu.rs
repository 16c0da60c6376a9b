//! The menu of an instrument cluster.

mod icons;

use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;
use takt_gl_api::gl::{
    BLEND, COLOR_BUFFER_BIT, DEPTH_TEST, ONE, ONE_MINUS_SRC_ALPHA, TEXTURE_2D, TRIANGLE_STRIP,
};
use takt_gl_driver::{Gl, Mesh};

use self::icons::ENTRIES;
use super::drive::smooth;
use crate::gfx::{self, Beyond};
use crate::options::{Options, Size};
use crate::run::{self, App, Defaults, Frame};

/// An instrument menu: a row of cards with icons that slides from entry to entry
///
/// Every card is a textured square from a buffer, placed, scaled and tinted by uniforms and blended
/// over the one before; the entry in the middle is lit.
#[derive(Debug, Parser)]
#[command(name = "takt-menu", version)]
struct MenuArgs {
    /// Seconds that an entry stays
    #[arg(long, value_name = "S", default_value_t = 1.5, value_parser = seconds)]
    dwell: f64,
    #[command(flatten)]
    options: Options,
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    number.ok_or_else(|| "a number of seconds from 0.05 to 3600 is wanted".to_owned())
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = MenuArgs::parse();
    let defaults = Defaults { name: "menu", size: Size(800, 300), fps: 60.0 };
    run::run(&defaults, &args.options, &|gl, _| Ok(Box::new(Menu::new(gl, args.dwell)?)))
}

const VERTEX: &str = "\
attribute vec2 position;
uniform vec4 frame;
varying vec2 at;
void main() {
    at = position * 0.5 + 0.5;
    gl_Position = vec4(frame.xy + position * frame.zw, 0.0, 1.0);
}
";

const FRAGMENT: &str = "\
precision mediump float;
uniform sampler2D picture;
uniform vec4 tint;
varying vec2 at;
void main() {
    gl_FragColor = texture2D(picture, at) * tint;
}
";

struct Menu {
    program: u32,
    frame: i32,
    tint: i32,
    square: Mesh,
    backdrop: u32,
    card: u32,
    light: u32,
    /// An icon and a word for each entry.
    entries: Vec<(u32, u32)>,
    dwell: f64,
    draws: u32,
}

impl Menu {
    fn new(gl: &Gl, dwell: f64) -> anyhow::Result<Self> {
        let program = gfx::program(gl, VERTEX, FRAGMENT, &["position"])?;
        let texture = |canvas| gfx::texture(gl, &canvas, Beyond::Edge);
        let square = [-1.0, -1.0, 1.0, -1.0, -1.0, 1.0, 1.0, 1.0];
        Ok(Self {
            program,
            frame: gl.uniform(program, "frame"),
            tint: gl.uniform(program, "tint"),
            square: Mesh::new(gl, &[2], &square, &[]),
            backdrop: texture(icons::backdrop()),
            card: texture(icons::card()),
            light: texture(icons::light()),
            entries: ENTRIES
                .iter()
                .map(|entry| (texture(icons::icon(entry)), texture(icons::word(entry.name))))
                .collect(),
            dwell,
            draws: 0,
        })
    }

    /// Draws a picture: middle and half of its size, and its tint.
    fn picture(&mut self, gl: &Gl, texture: u32, [x, y, w, h]: [f32; 4], [r, g, b, a]: [f32; 4]) {
        gl.bind_texture(TEXTURE_2D, texture);
        gl.set_vec4(self.frame, x, y, w, h);
        // Textures are multiplied by alpha, so tints are, too.
        gl.set_vec4(self.tint, r * a, g * a, b * a, a);
        gl.draw_vertices(TRIANGLE_STRIP, &self.square);
        self.draws += 1;
    }

    fn entry(&mut self, gl: &Gl, entry: usize, from_middle: f32, aspect: f32) {
        let near = 1.0 - from_middle.abs().min(1.0);
        let fade = (1.0 - (from_middle.abs() - 1.2).max(0.0) / 1.6).clamp(0.0, 1.0);
        let height = 0.50 + 0.14 * near;
        // Cards keep their shape in every window, and lie closer the farther out they are.
        let scale = 1.0 / aspect;
        let x = (from_middle * 1.18 - 0.07 * from_middle * from_middle.abs()) * scale;
        let width = height * 0.86 * scale;
        let grey = 0.62 + 0.38 * near;
        let accent = crate::paint::rgb(ENTRIES[entry].colour);
        if near > 0.0 {
            let light = [accent[0], accent[1], accent[2], 0.75 * near];
            self.picture(gl, self.light, [x, 0.06, width * 1.75, height * 1.6], light);
        }
        self.picture(gl, self.card, [x, 0.06, width, height], [grey, grey, grey, fade]);
        let (icon, word) = self.entries[entry];
        let tint = |part: usize| grey * (1.0 - near * 0.55) + accent[part] * near * 0.55 + 0.12 * near;
        let tint = [tint(0).min(1.0), tint(1).min(1.0), tint(2).min(1.0), fade];
        self.picture(gl, icon, [x, 0.06 + height * 0.16, width * 0.52, height * 0.45], tint);
        let white = [0.72 + 0.28 * near, 0.76 + 0.24 * near, 0.82 + 0.18 * near, fade];
        self.picture(gl, word, [x, 0.06 - height * 0.62, width * 0.86, height * 0.125], white);
    }
}

/// Which entry is in the middle, and how far the row has moved on to the next one.
fn position(time: f64, dwell: f64) -> f64 {
    let step = (time / dwell).floor();
    // The row moves in the last part of each entry's time.
    let share = ((time / dwell - step - 0.6) / 0.4).max(0.0);
    (step + smooth(share)).rem_euclid(ENTRIES.len() as f64)
}

impl App for Menu {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        self.draws = 0;
        let (width, height) = frame.size;
        gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
        gl.clear_color(0.0, 0.0, 0.0, 1.0);
        gl.clear(COLOR_BUFFER_BIT);
        gl.disable(DEPTH_TEST);
        gl.enable(BLEND);
        gl.blend_func(ONE, ONE_MINUS_SRC_ALPHA);
        gl.use_program(self.program);
        self.picture(gl, self.backdrop, [0.0, 0.0, 1.0, 1.0], [1.0; 4]);
        #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
        let middle = position(frame.time, self.dwell) as f32;
        let count = ENTRIES.len() as f32;
        // The row is a ring: each entry is shown where it is nearest. The nearest are drawn last.
        let mut row: Vec<(usize, f32)> = (0..ENTRIES.len())
            .map(|entry| (entry, (entry as f32 - middle + count * 1.5).rem_euclid(count) - count / 2.0))
            .collect();
        row.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        for (entry, from_middle) in row {
            self.entry(gl, entry, from_middle, frame.aspect());
        }
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        vec![("draws", self.draws.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_rests_then_moves_on() {
        assert_eq!(position(0.0, 2.0), 0.0);
        assert_eq!(position(1.0, 2.0), 0.0);
        assert_eq!(position(2.0, 2.0), 1.0);
        assert!((position(1.6, 2.0) - 0.5).abs() < 1e-9);
        assert_eq!(position(2.0 * ENTRIES.len() as f64, 2.0), 0.0);
    }
}
