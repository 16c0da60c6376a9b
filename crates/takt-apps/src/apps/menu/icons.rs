//! Draws the icons on the cards.

use std::f32::consts::{FRAC_PI_4, PI, TAU};

use crate::font::{self, Style};
use crate::paint::{Canvas, faint, mix, rgb};
use crate::shape::{Point, Shape, polar};

/// An entry of the menu.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    pub(super) colour: u32,
    shape: fn() -> Vec<Shape>,
}

/// All entries, from left to right.
pub(super) const ENTRIES: [Entry; 7] = [
    Entry { name: "NAVIGATION", colour: 0x3D_A5_FF, shape: navigation },
    Entry { name: "MEDIA", colour: 0xF0_5D_8E, shape: media },
    Entry { name: "PHONE", colour: 0x4A_D6_8A, shape: phone },
    Entry { name: "CLIMATE", colour: 0x5C_D0_E6, shape: climate },
    Entry { name: "VEHICLE", colour: 0xFF_A2_3D, shape: vehicle },
    Entry { name: "WEATHER", colour: 0xFF_D1_4A, shape: weather },
    Entry { name: "SETTINGS", colour: 0xA9_8B_FF, shape: settings },
];

/// White, to be tinted.
pub(super) fn icon(entry: &Entry) -> Canvas {
    let mut canvas = Canvas::new(256, 256, 1.0);
    for shape in (entry.shape)() {
        canvas.fill(&shape, [1.0; 4]);
    }
    canvas
}

pub(super) fn word(name: &str) -> Canvas {
    let mut canvas = Canvas::new(320, 54, 1.0);
    font::centred(&mut canvas, name, [0.0; 2], Style { height: 1.1, weight: 0.17, colour: [1.0; 4] });
    canvas
}

pub(super) fn card() -> Canvas {
    let mut canvas = Canvas::new(256, 298, 1.0);
    let half: Point = [0.84, 0.98];
    canvas.shade(&Shape::panel([0.0; 2], half, 0.16), |[x, y]| {
        let edge = mix(rgb(0x3A_46_55), rgb(0x1A_20_29), 0.5 - y * 0.5);
        mix(edge, rgb(0xFF_FF_FF), (y + x * 0.2 - 0.75).max(0.0) * 0.1)
    });
    canvas.shade(&Shape::panel([0.0; 2], [half[0] - 0.015, half[1] - 0.015], 0.145), |[x, y]| {
        mix(rgb(0x10_15_1C), rgb(0x25_2E_3A), 0.5 + y * 0.45 + x * 0.1)
    });
    canvas
}

/// The light behind the entry in the middle.
pub(super) fn light() -> Canvas {
    let mut canvas = Canvas::new(128, 128, 1.0);
    canvas.glow(&Shape::panel([0.0; 2], [0.42, 0.48], 0.2), 0.5, faint([1.0; 4], 0.8));
    canvas
}

pub(super) fn backdrop() -> Canvas {
    let mut canvas = Canvas::new(512, 192, 1.0);
    canvas.shade(&Shape::panel([0.0; 2], [3.0, 2.0], 0.0), |[x, y]| {
        let glow = 1.0 - (x * x * 0.12 + (y - 0.1) * (y - 0.1) * 0.5).min(1.0);
        mix(rgb(0x05_07_0A), rgb(0x1A_26_35), glow * glow)
    });
    canvas
}

fn navigation() -> Vec<Shape> {
    let arrow = Shape::polygon(&[[0.0, 0.85], [0.62, -0.75], [0.0, -0.38], [-0.62, -0.75]]);
    vec![arrow]
}

fn media() -> Vec<Shape> {
    let head = |x: f32, y: f32| Shape::disc([x, y], 0.24);
    let stems = Shape::line(&[[-0.22, -0.55], [-0.22, 0.55], [0.62, 0.75], [0.62, -0.35]], 0.13);
    let beam = Shape::polygon(&[[-0.28, 0.62], [-0.28, 0.30], [0.68, 0.52], [0.68, 0.82]]);
    vec![stems.and(beam).and(head(-0.4, -0.58)).and(head(0.44, -0.38))]
}

fn phone() -> Vec<Shape> {
    // A receiver: an arc with two ends.
    let bow = Shape::arc([0.42, 0.42], 0.92, (PI * 1.02, PI * 1.48), 0.30);
    let earpiece = Shape::line(&[[-0.58, 0.62], [-0.36, 0.40]], 0.42);
    let mouth = Shape::line(&[[0.40, -0.36], [0.62, -0.58]], 0.42);
    let wave = |radius: f32| Shape::arc([0.18, 0.18], radius, (0.15, PI / 2.0 - 0.15), 0.10);
    vec![bow.and(earpiece).and(mouth), wave(0.36), wave(0.62)]
}

fn climate() -> Vec<Shape> {
    // A snow flake.
    let arms = (0..6_u8).map(|arm| {
        let angle = f32::from(arm) * TAU / 6.0 + PI / 6.0;
        let (tip, fork) = (polar(angle, 0.85), polar(angle, 0.48));
        let branch = |turn: f32| {
            let way = polar(angle + turn, 0.30);
            Shape::line(&[fork, [fork[0] + way[0], fork[1] + way[1]]], 0.10)
        };
        Shape::line(&[[0.0, 0.0], tip], 0.11).and(branch(0.85)).and(branch(-0.85))
    });
    arms.reduce(Shape::and).into_iter().collect()
}

fn vehicle() -> Vec<Shape> {
    let body = Shape::panel([0.0, -0.16], [0.92, 0.22], 0.14);
    let cabin = Shape::polygon(&[[-0.62, 0.0], [-0.40, 0.44], [0.30, 0.44], [0.62, 0.0]]);
    let windows = Shape::polygon(&[[-0.44, 0.06], [-0.30, 0.33], [-0.06, 0.33], [-0.06, 0.06]])
        .and(Shape::polygon(&[[0.04, 0.06], [0.04, 0.33], [0.24, 0.33], [0.44, 0.06]]));
    let wheel = |x: f32, radius: f32| Shape::disc([x, -0.36], radius);
    let arches = wheel(-0.50, 0.27).and(wheel(0.50, 0.27));
    let hub = |x: f32| wheel(x, 0.20).without(wheel(x, 0.08));
    vec![body.and(cabin).without(windows).without(arches), hub(-0.50), hub(0.50)]
}

fn weather() -> Vec<Shape> {
    let sun = Shape::disc([0.26, 0.30], 0.30);
    let rays = (0..8_u8).map(|ray| {
        let angle = f32::from(ray) * FRAC_PI_4;
        let at = |radius: f32| {
            let way = polar(angle, radius);
            [0.26 + way[0], 0.30 + way[1]]
        };
        Shape::line(&[at(0.42), at(0.54)], 0.09)
    });
    let puff = |x: f32, y: f32, radius: f32| Shape::disc([x, y], radius);
    let cloud = |grow: f32| {
        puff(-0.42, -0.40, 0.26 + grow)
            .and(puff(-0.10, -0.24, 0.34 + grow))
            .and(puff(0.30, -0.40, 0.26 + grow))
            .and(Shape::panel([-0.06, -0.52], [0.40 + grow, 0.14 + grow], 0.13))
    };
    let sky = rays.fold(sun, Shape::and);
    vec![sky.without(cloud(0.08)), cloud(0.0)]
}

fn settings() -> Vec<Shape> {
    let teeth = (0..8_u8).map(|tooth| {
        let angle = f32::from(tooth) * FRAC_PI_4;
        Shape::line(&[polar(angle, 0.5), polar(angle, 0.74)], 0.26)
    });
    let gear = teeth.fold(Shape::disc([0.0; 2], 0.60), Shape::and);
    vec![gear.without(Shape::disc([0.0; 2], 0.26))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn icons_fit_their_canvas_and_show_something() {
        for entry in &ENTRIES {
            let bytes = icon(entry).bytes();
            let alpha = |x: usize, y: usize| bytes[(y * 256 + x) * 4 + 3];
            let edge =
                (0..256).all(|at| [alpha(at, 0), alpha(at, 255), alpha(0, at), alpha(255, at)] == [0; 4]);
            assert!(edge, "{} is cut off", entry.name);
            let covered = bytes.as_chunks::<4>().0.iter().filter(|pixel| pixel[3] > 128).count();
            assert!(covered > 256 * 256 / 12, "{} is hardly visible", entry.name);
        }
    }
}
