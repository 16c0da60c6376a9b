//! The pictures that are blended over the map: names, places, the car, and the panel of the route.

use super::city::SignKind;
use crate::font::{self, Style};
use crate::gfx::{self, Beyond};
use crate::paint::{Canvas, Colour, faint, rgb};
use crate::shape::Shape;
use takt_gl_driver::Gl;

/// Names of main streets, from south to north.
const NAMES: [&str; 6] =
    ["HARBOUR ROAD", "MARKET STREET", "RIVERSIDE", "LINDEN AVENUE", "OBSERVATORY HILL", "NORTH GATE"];

/// Letters and colours of places.
const PLACES: [(&str, u32); 2] = [("P", 0x2F_7D_E1), ("H", 0xC2_41_4F)];

/// A picture with its size in pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Picture {
    pub(super) texture: u32,
    pub(super) size: [f32; 2],
}

/// All pictures.
pub(super) struct Signs {
    names: Vec<Picture>,
    places: Vec<Picture>,
    car: Picture,
    panel: Picture,
}

impl Signs {
    pub(super) fn new(gl: &Gl) -> Self {
        Self {
            names: NAMES.iter().map(|name| picture(gl, &paint_name(name))).collect(),
            places: PLACES
                .iter()
                .map(|(letter, colour)| picture(gl, &paint_place(letter, rgb(*colour))))
                .collect(),
            car: picture(gl, &paint_car()),
            panel: picture(gl, &paint_panel()),
        }
    }

    pub(super) fn picture(&self, kind: SignKind) -> Picture {
        match kind {
            SignKind::Name(name) => self.names[name % self.names.len()],
            SignKind::Place(place) => self.places[place % self.places.len()],
        }
    }

    pub(super) const fn car(&self) -> u32 {
        self.car.texture
    }

    pub(super) const fn panel(&self) -> Picture {
        self.panel
    }
}

/// Pictures are painted at twice their size on screen.
const FINE: u32 = 2;

fn picture(gl: &Gl, canvas: &Canvas) -> Picture {
    let (width, height) = canvas.size();
    let size = [width, height].map(|length| length as f32 / FINE as f32);
    Picture { texture: gfx::texture(gl, canvas, Beyond::Edge), size }
}

/// A canvas in pixels of the screen, the origin in its middle.
fn canvas(width: u32, height: u32) -> Canvas {
    Canvas::new(width * FINE, height * FINE, height as f32 / 2.0)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "widths of words are small")]
fn paint_name(name: &str) -> Canvas {
    let style = Style { height: 10.0, weight: 0.16, colour: rgb(0xF2_F6_FA) };
    let mut canvas = canvas(font::width(name, style) as u32 + 22, 24);
    let corner = [-font::width(name, style) / 2.0, -style.height / 2.0];
    for stroke in font::strokes(name, corner, style) {
        canvas.glow(&stroke, 5.0, faint(rgb(0x05_08_0C), 0.85));
    }
    font::write(&mut canvas, name, corner, style);
    canvas
}

fn paint_place(letter: &str, colour: Colour) -> Canvas {
    let mut canvas = canvas(30, 40);
    let pin = Shape::disc([0.0, 6.0], 12.0).and(Shape::polygon(&[[-9.0, -2.0], [0.0, -17.0], [9.0, -2.0]]));
    canvas.glow(&pin, 3.0, [0.0, 0.0, 0.0, 0.5]);
    canvas.fill(&pin, rgb(0xF2_F6_FA));
    canvas.fill(&Shape::disc([0.0, 6.0], 10.0), colour);
    let style = Style { height: 10.0, weight: 0.2, colour: rgb(0xFF_FF_FF) };
    font::centred(&mut canvas, letter, [0.0, 6.0], style);
    canvas
}

fn paint_car() -> Canvas {
    let mut canvas = Canvas::new(192, 192, 1.0);
    let arrow = |grow: f32| {
        Shape::polygon(&[
            [0.0, 0.62 + grow * 2.0],
            [0.48 + grow * 1.3, -0.56 - grow],
            [0.0, -0.32 - grow],
            [-0.48 - grow * 1.3, -0.56 - grow],
        ])
    };
    canvas.glow(&Shape::disc([0.0, 0.0], 0.3), 0.65, faint(rgb(0x2F_9B_FF), 0.55));
    canvas.fill(&arrow(0.09), rgb(0xFF_FF_FF));
    canvas.shade(&arrow(0.0), |point| if point[0] < 0.0 { rgb(0x3D_A5_FF) } else { rgb(0x1B_79_D6) });
    canvas
}

fn paint_panel() -> Canvas {
    let mut canvas = canvas(268, 84);
    let panel = || Shape::panel([0.0, 0.0], [130.0, 38.0], 12.0);
    canvas.glow(&panel(), 4.0, [0.0, 0.0, 0.0, 0.5]);
    canvas.fill(&panel(), faint(rgb(0x10_18_22), 0.9));
    // Straight on, then right.
    let blue = rgb(0x3D_A5_FF);
    let way = Shape::line(&[[-104.0, -22.0], [-104.0, 4.0], [-98.0, 10.0], [-82.0, 10.0]], 7.0);
    canvas.fill(&way.and(Shape::polygon(&[[-86.0, -1.0], [-72.0, 10.0], [-86.0, 21.0]])), blue);
    let style = |height, weight, colour| Style { height, weight, colour };
    font::write(&mut canvas, "650 M", [-54.0, 5.0], style(18.0, 0.15, rgb(0xFF_FF_FF)));
    font::write(&mut canvas, "OBSERVATORY HILL", [-54.0, -19.0], style(10.0, 0.14, rgb(0x9F_B2_C6)));
    canvas
}
