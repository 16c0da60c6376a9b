//! A navigation map.

mod city;
mod signs;

use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;
use takt_gl_api::gl::{
    BLEND, COLOR_BUFFER_BIT, DEPTH_BUFFER_BIT, DEPTH_TEST, ONE, ONE_MINUS_SRC_ALPHA, TEXTURE_2D,
};
use takt_gl_driver::{Gl, Mesh};

use self::city::{City, Layer, TILES, Tile};
use self::signs::{Picture, Signs};
use crate::gfx::{self, Beyond};
use crate::matrix::{self, Matrix};
use crate::options::{Options, Size};
use crate::paint::{Canvas, faint, mix, rgb};
use crate::run::{self, App, Defaults, Frame};
use crate::shape::{Point, Shape, minus, plus, times};

/// A map that is driven through: some 300 draws per frame, textures, blending, labels
///
/// A made-up city of tiles without end: parks, a river, streets, houses, names and signs. Each layer
/// of each visible tile is a draw of its own, from buffers; names and signs are blended over it from
/// the app's memory.
#[derive(Debug, Parser)]
#[command(name = "takt-map", version)]
struct MapArgs {
    /// Which city; the same number gives the same one
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u32,
    #[command(flatten)]
    options: Options,
}

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let args = MapArgs::parse();
    let defaults = Defaults { name: "map", size: Size(1280, 480), fps: 30.0 };
    run::run(&defaults, &args.options, &|gl, _| Ok(Box::new(Map::new(gl, args.seed)?)))
}

const VERTEX: &str = "\
attribute vec3 position;
attribute vec2 extra;
uniform mat4 matrix;
varying vec2 at;
varying float far;
void main() {
    at = extra;
    gl_Position = matrix * vec4(position, 1.0);
    far = clamp((gl_Position.w - 1.2) * 0.42, 0.0, 1.0);
}
";

/// Parks and water: a texture, drifting for water.
const AREA: &str = "\
precision mediump float;
uniform sampler2D picture;
uniform vec4 colour;
uniform vec2 drift;
varying vec2 at;
varying float far;
void main() {
    vec3 base = colour.rgb * texture2D(picture, at + drift).rgb * 2.0;
    float cover = colour.a * (1.0 - far);
    gl_FragColor = vec4(base * cover, cover);
}
";

/// Streets: `at.x` goes across from -1 to 1, and the edges are soft.
const STREET: &str = "\
precision mediump float;
uniform vec4 colour;
varying vec2 at;
varying float far;
void main() {
    float cover = colour.a * smoothstep(0.0, 0.15, 1.0 - abs(at.x)) * (1.0 - far);
    gl_FragColor = vec4(colour.rgb * cover, cover);
}
";

/// Houses: `at.x` is the light on a face, `at.y` the height of a point.
const HOUSE: &str = "\
precision mediump float;
uniform vec4 colour;
varying vec2 at;
varying float far;
void main() {
    float cover = colour.a * (1.0 - far);
    gl_FragColor = vec4(colour.rgb * at.x * (0.75 + 2.5 * at.y) * cover, cover);
}
";

const PLAIN_VERTEX: &str = "\
attribute vec2 position;
attribute vec2 extra;
varying vec2 at;
void main() {
    at = extra;
    gl_Position = vec4(position, 0.0, 1.0);
}
";

const PLAIN: &str = "\
precision mediump float;
uniform sampler2D picture;
uniform float cover;
varying vec2 at;
void main() {
    gl_FragColor = texture2D(picture, at) * cover;
}
";

/// A program with the uniforms that layers use.
struct Program {
    id: u32,
    matrix: i32,
    colour: i32,
    drift: i32,
    cover: i32,
}

impl Program {
    fn new(gl: &Gl, vertex: &str, fragment: &str) -> anyhow::Result<Self> {
        let id = gfx::program(gl, vertex, fragment, &["position", "extra"])?;
        let uniform = |name| gl.uniform(id, name);
        let (matrix, colour) = (uniform("matrix"), uniform("colour"));
        Ok(Self { id, matrix, colour, drift: uniform("drift"), cover: uniform("cover") })
    }
}

struct Map {
    city: City,
    /// Buffers of each tile, in the order of layers.
    tiles: Vec<Vec<(Layer, Mesh)>>,
    area: Program,
    street: Program,
    house: Program,
    plain: Program,
    grain: u32,
    sky: u32,
    signs: Signs,
    draws: u32,
}

/// Width of the view from bottom to top.
const VIEW_ANGLE: f32 = 0.75;
/// How far the view leans back from straight down.
const TILT: f32 = 1.06;
/// From the eye to the car.
const DISTANCE: f32 = 0.95;
/// Rows of tiles that are drawn ahead and behind, and to both sides.
const AHEAD: std::ops::RangeInclusive<i32> = -1..=4;
const ASIDE: std::ops::RangeInclusive<i32> = -3..=3;

impl Map {
    fn new(gl: &Gl, seed: u32) -> anyhow::Result<Self> {
        let city = City::new(seed);
        let upload = |tile: Tile| {
            let mesh = |(layer, mesh): (Layer, city::Triangles)| {
                (layer, Mesh::new(gl, &[3, 2], &mesh.vertices, &mesh.indices))
            };
            tile.layers.into_iter().map(mesh).collect()
        };
        let tiles = (0..TILES * TILES).map(|tile| upload(city.tile(tile % TILES, tile / TILES))).collect();
        Ok(Self {
            tiles,
            area: Program::new(gl, VERTEX, AREA)?,
            street: Program::new(gl, VERTEX, STREET)?,
            house: Program::new(gl, VERTEX, HOUSE)?,
            plain: Program::new(gl, PLAIN_VERTEX, PLAIN)?,
            grain: gfx::texture(gl, &paint_grain(&city), Beyond::Repeat),
            sky: gfx::texture(gl, &paint_sky(), Beyond::Edge),
            signs: Signs::new(gl),
            city,
            draws: 0,
        })
    }

    fn draw_layer(&mut self, gl: &Gl, layer: Layer, view: &Matrix, tile: (i32, i32), time: f32) {
        let program = match layer {
            Layer::Park | Layer::Water => &self.area,
            Layer::House => &self.house,
            _ => &self.street,
        };
        gl.use_program(program.id);
        let [r, g, b, a] = rgb(layer.colour());
        gl.set_vec4(program.colour, r, g, b, a);
        if layer == Layer::Water {
            gl.set_vec2(program.drift, time * 0.11, time * 0.07);
        } else {
            gl.set_vec2(program.drift, 0.0, 0.0);
        }
        for row in AHEAD {
            for column in ASIDE {
                let at = (tile.0 + column, tile.1 + row);
                let round = |place: i32| usize::try_from(place.rem_euclid(TILES)).unwrap_or(0);
                let index = round(at.1) * round(TILES - 1).saturating_add(1) + round(at.0);
                let Some((_, mesh)) = self.tiles[index].iter().find(|(known, _)| *known == layer) else {
                    continue;
                };
                let place = matrix::translation(at.0 as f32, at.1 as f32, 0.0);
                gl.set_matrices(program.matrix, 4, &matrix::product(view, &place));
                gl.draw_mesh(mesh);
                self.draws += 1;
            }
        }
    }

    /// Draws a picture over everything, around a point of the screen.
    fn draw_picture(&mut self, gl: &Gl, texture: u32, corners: &[Point; 4], cover: f32) {
        gl.use_program(self.plain.id);
        gl.bind_texture(TEXTURE_2D, texture);
        gl.set_float(self.plain.cover, cover);
        let positions: Vec<f32> = corners.iter().flatten().copied().collect();
        let texels = [0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0];
        gfx::draw_square(gl, &positions, &texels);
        self.draws += 1;
    }

    /// Names and signs that are near enough, the nearest first, and none over another.
    fn draw_signs(&mut self, gl: &Gl, view: &Matrix, car: Point, frame: &Frame) {
        let pixel = picture_pixel(frame);
        // Nothing may lie below the panel either.
        let mut taken: Vec<(Point, Point)> = vec![self.panel_box(frame)];
        for sign in self.city.signs_near(car) {
            let [x, y, _, w] = matrix::apply(view, [sign.place[0], sign.place[1], sign.height]);
            if !(0.3..3.2).contains(&w) {
                continue;
            }
            let Picture { texture, size } = self.signs.picture(sign.kind);
            let middle = [x / w, y / w];
            let shrink = (1.25 / w).clamp(0.55, 1.1);
            let half = [size[0] * pixel[0] * shrink / 2.0, size[1] * pixel[1] * shrink / 2.0];
            let box_ =
                ([middle[0] - half[0], middle[1] - half[1]], [middle[0] + half[0], middle[1] + half[1]]);
            let apart = |other: &(Point, Point)| {
                (0..2).any(|axis| box_.1[axis] < other.0[axis] || other.1[axis] < box_.0[axis])
            };
            let outside = middle.iter().any(|part| part.abs() > 1.2);
            if outside || !taken.iter().all(apart) {
                continue;
            }
            taken.push(box_);
            let cover = ((3.2 - w) / 0.8).clamp(0.0, 1.0);
            self.draw_picture(gl, texture, &corners(middle, half), cover);
        }
    }

    /// Where the panel is, in the upper left corner.
    fn panel_box(&self, frame: &Frame) -> (Point, Point) {
        let Picture { size, .. } = self.signs.panel();
        let pixel = picture_pixel(frame);
        let margin = 16.0;
        let low = [-1.0 + margin * pixel[0], 1.0 - (margin + size[1]) * pixel[1]];
        (low, plus(low, [size[0] * pixel[0], size[1] * pixel[1]]))
    }

    /// The car: an arrow that lies on the street.
    fn draw_car(&mut self, gl: &Gl, view: &Matrix, car: Point, heading: f32) {
        let arrow = CORNERS.map(|corner| {
            let way = crate::shape::turn([corner[0] * 0.075, corner[1] * 0.075], heading - QUARTER);
            let [x, y, _, w] = matrix::apply(view, [car[0] + way[0], car[1] + way[1], 0.004]);
            [x / w, y / w]
        });
        let texture = self.signs.car();
        self.draw_picture(gl, texture, &arrow, 1.0);
    }
}

const QUARTER: f32 = std::f32::consts::FRAC_PI_2;
const CORNERS: [Point; 4] = [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]];

/// Length of a picture's pixel on the surface, whose sides are 2 long: pictures are made for a surface
/// of the usual height, and shrink or grow with it.
fn picture_pixel(frame: &Frame) -> Point {
    let (width, height) = (frame.size.0 as f32, frame.size.1 as f32);
    let grow = (height / 480.0).clamp(0.25, 4.0);
    [2.0 * grow / width, 2.0 * grow / height]
}

fn corners(middle: Point, half: Point) -> [Point; 4] {
    CORNERS.map(|corner| [middle[0] + corner[0] * half[0], middle[1] + corner[1] * half[1]])
}

impl App for Map {
    fn draw(&mut self, gl: &Gl, frame: &Frame) {
        self.draws = 0;
        #[expect(clippy::cast_possible_truncation, reason = "pictures need no more")]
        let time = frame.time.rem_euclid(36_000.0) as f32;
        let (car, heading) = self.city.car(time);
        let view = [
            matrix::translation(0.0, -0.16, -DISTANCE),
            matrix::rotation([1.0, 0.0, 0.0], -TILT),
            matrix::rotation([0.0, 0.0, 1.0], QUARTER - heading),
            matrix::translation(-car[0], -car[1], 0.0),
        ];
        let lens = matrix::perspective(VIEW_ANGLE, frame.aspect(), 0.05, 20.0);
        let view = view.iter().fold(lens, |all, step| matrix::product(&all, step));

        let (width, height) = frame.size;
        gl.viewport(0, 0, i32::try_from(width).unwrap_or(0), i32::try_from(height).unwrap_or(0));
        gl.clear_color(0.08, 0.11, 0.14, 1.0);
        gl.clear(COLOR_BUFFER_BIT | DEPTH_BUFFER_BIT);
        gl.enable(BLEND);
        gl.blend_func(ONE, ONE_MINUS_SRC_ALPHA);
        gl.disable(DEPTH_TEST);
        gl.bind_texture(TEXTURE_2D, self.grain);
        #[expect(clippy::cast_possible_truncation, reason = "the car does not get that far")]
        let tile = (car[0].floor() as i32, car[1].floor() as i32);
        for layer in Layer::FLAT {
            self.draw_layer(gl, layer, &view, tile, time);
        }
        // The sky hides where the map ends, below the houses.
        let sky = self.sky;
        self.draw_picture(gl, sky, &corners([0.0, 0.75], [1.0, 0.25]), 1.0);
        gl.enable(DEPTH_TEST);
        self.draw_layer(gl, Layer::House, &view, tile, time);
        gl.disable(DEPTH_TEST);
        self.draw_car(gl, &view, car, heading);
        self.draw_signs(gl, &view, car, frame);
        let (low, high) = self.panel_box(frame);
        let half = times(minus(high, low), 0.5);
        let panel = self.signs.panel().texture;
        self.draw_picture(gl, panel, &corners(plus(low, half), half), 1.0);
    }

    fn facts(&self) -> Vec<(&'static str, Value)> {
        vec![("draws", self.draws.into())]
    }
}

/// Grey noise that repeats, for parks and water.
fn paint_grain(city: &City) -> Canvas {
    let mut canvas = Canvas::new(128, 128, 64.0);
    canvas.shade(&Shape::panel([0.0; 2], [70.0; 2], 0.0), |[x, y]| {
        #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
        let cell = |step: i32| ((x as i32 + 64) / step, (y as i32 + 64) / step);
        let noise = |step: i32| city.chance(cell(step).0 * 131 + cell(step).1 * 7919, 9);
        let grey = 0.42 + 0.08 * noise(1) + 0.06 * noise(4) + 0.05 * noise(16);
        [grey, grey, grey, 1.0]
    });
    canvas
}

fn paint_sky() -> Canvas {
    let mut canvas = Canvas::new(8, 128, 1.0);
    canvas.shade(&Shape::panel([0.0; 2], [2.0; 2], 0.0), |point| {
        let up = point[1] * 0.5 + 0.5;
        let glow = mix(rgb(0x1C_2B_3D), rgb(0x0A_10_18), up);
        // Clear at its lower edge, so that no line shows.
        faint(glow, (up * 3.0).min(1.0))
    });
    canvas
}
