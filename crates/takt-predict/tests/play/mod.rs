//! Apps that are played frame by frame through the front door, on a GPU that is made up.

use std::path::Path;

use takt_core::{Cost, Span};
use takt_predict::adapt::{AdaptionConfig, Disturbance};
use takt_predict::cost::{Capabilities, ShaderRates};
use takt_predict::fragments::{Input, Method, RasterState};
use takt_predict::glsl::UniformData;
use takt_predict::predictor::{DrawCall, DrawState, Measured, Predictor, Program, Settings, Submission};
use takt_predict::profile::Profile;
use takt_rng::Rng;

use crate::scenes::{self, Frames, Group};

/// Frames of a turn.
pub(crate) const FRAMES: u32 = 150;
/// Turns that are played.
pub(crate) const TURNS: u32 = 4;

/// What an app draws in each frame of a turn.
pub(crate) struct App {
    pub(crate) name: &'static str,
    state: RasterState,
    frames: Vec<Vec<(Group, f64)>>,
}

impl App {
    /// The scenes of the thesis that can be had, and one that draws the models of three of them
    /// and two pictures with one program.
    pub(crate) fn all(folder: &Path) -> Vec<Self> {
        let scenes = scenes::all(folder);
        let find = |name: &str| scenes.iter().find(|scene| scene.name.starts_with(name)).unwrap();
        let names = ["build", "shading", "texture", "speedometer", "es2gears"];
        let mut apps: Vec<Self> =
            names.iter().map(|name| find(name)).map(|scene| Self::of(scene.name, &[scene])).collect();
        apps.push(Self::of(
            "one program for all",
            &[find("build"), find("shading"), find("texture"), find("speed")],
        ));
        apps
    }

    /// All that several scenes draw into the target of the first, one after the other, with a
    /// fresh depth buffer each.
    fn of(name: &'static str, scenes: &[&Frames]) -> Self {
        let frame = |number: u32| {
            let degrees = 360.0 / f64::from(FRAMES) * f64::from(number);
            let of = |scene: &&Frames| {
                let groups = scene.at(degrees);
                let fragments = scenes[0].count(&groups, scene.depth);
                groups.into_iter().zip(fragments)
            };
            scenes.iter().flat_map(of).collect()
        };
        Self { name, state: scenes[0].state, frames: (0..FRAMES).map(frame).collect() }
    }
}

/// What is learnt.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Learning {
    Nothing,
    Program,
    Scene,
}

/// Whether groups are disturbed, and whether the predictor is told.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Told {
    Undisturbed,
    Nothing,
    Disturbances,
}

/// What became of a group; times are in nanoseconds.
pub(crate) struct Outcome {
    pub(crate) turn: u32,
    pub(crate) frame: u32,
    pub(crate) measured: f64,
    pub(crate) predicted: f64,
    pub(crate) upper: f64,
    /// It ran right after another app.
    pub(crate) switched: bool,
    /// Its time says nothing.
    pub(crate) odd: bool,
}

pub(crate) struct Played {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) switch_ns: f64,
}

/// What groups really cost. The stages overlap, which no model knows: the shorter one adds a fifth
/// of its time to the longer one. Times scatter by up to two percent.
fn cost_ns(group: &Group, fragments: f64, number: u64) -> f64 {
    let (vertex, fragment) = (group.vertices() as f64 * 8.0, fragments * 2.0);
    let work = vertex.max(fragment) + 0.2 * vertex.min(fragment);
    (FLUSH_NS + group.draws().count() as f64 * DRAW_NS + work) * (1.0 + 0.02 * noise(number))
}

const FLUSH_NS: f64 = 10_000.0;
const DRAW_NS: f64 = 500.0;
/// What the predictor believes about the program: measured at another clock.
const RATES: ShaderRates = ShaderRates { vertex_ns: 3.0, fragment_ns: 3.0 };
/// What a switch adds, give or take a fifth.
const SWITCH_NS: f64 = 120_000.0;
const VERTEX: &str = "attribute vec3 position; uniform mat4 camera; \
    void main() { gl_Position = camera * vec4(position, 1.0); }";
const FRAGMENT: &str = "void main() { gl_FragColor = vec4(1.0); }";

/// Plays all turns of an app.
pub(crate) fn play(app: &App, method: Method, learning: Learning, told: Told) -> Played {
    let adaption = AdaptionConfig { by_scene: learning == Learning::Scene, ..AdaptionConfig::default() };
    let adapt = learning != Learning::Nothing;
    let settings = Settings { fragments: method, adaption, adapt, ..Settings::default() };
    let profile = Profile { flush_ns: FLUSH_NS, draw_ns: DRAW_NS, ..Profile::default() };
    let mut predictor = Predictor::new(settings, profile, None);
    let mut program = Program::new(VERTEX, FRAGMENT, &[]);
    predictor.link(&program);
    predictor.profiled(program.id(), RATES);
    let mut outcomes = Vec::new();
    for (turn, (frame, groups)) in
        (0..TURNS).flat_map(|turn| (0..).zip(&app.frames).map(move |one| (turn, one)))
    {
        for (group, fragments) in groups {
            let number = outcomes.len() as u64;
            let disturbed = told != Told::Undisturbed;
            let (switched, odd) =
                (disturbed && number.is_multiple_of(7), disturbed && number.is_multiple_of(101));
            let mut measured = cost_ns(group, *fragments, number);
            if switched {
                measured += SWITCH_NS * (1.0 + 0.2 * noise(number ^ 0xffff));
            }
            if odd {
                measured *= 20.0;
            }
            let told = |happened: bool, what| {
                if happened && told == Told::Disturbances { what } else { Disturbance::None }
            };
            let switch = told(switched, Disturbance::ContextSwitch);
            set_camera(&mut program, group);
            draw(&mut predictor, &program, app.state, group);
            let (prediction, ticket) = predictor.submit(Submission::Flush, switch);
            let [predicted, upper] =
                [prediction.value, prediction.upper].map(|estimate| estimate.span().as_ns() as f64);
            outcomes.push(Outcome { turn, frame, measured, predicted, upper, switched, odd });
            let disturbance = if odd { told(odd, Disturbance::Unknown) } else { switch };
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a time of ordinary size"
            )]
            let cost = Cost::new(Span::from_ns(measured as u64));
            predictor.learn(&ticket, &Measured { cost, disturbance, fragments: None });
        }
    }
    Played { outcomes, switch_ns: predictor.switch_ns() }
}

fn set_camera(program: &mut Program, group: &Group) {
    let camera = program.uniform("camera").unwrap();
    program.set_uniform(camera, 0, UniformData::Floats(group.position.0.as_flattened()));
}

fn draw(predictor: &mut Predictor, program: &Program, raster: RasterState, group: &Group) {
    let capabilities = Capabilities { depth_test: true, ..Capabilities::default() };
    let state = DrawState { raster, target: 0, capabilities, textures: &[] };
    for draw in group.draws() {
        let buffer = draw.key.map(|key| key.positions);
        predictor.draw(&DrawCall {
            program,
            mode: draw.mode,
            elements: draw.elements,
            index_buffer: None,
            count: draw.count,
            instances: draw.instances,
            inputs: &[Input::Array { attribute: draw.positions, buffer, divisor: 0 }],
            state: &state,
            fragments: None,
        });
    }
}

/// Between −1 and 1, and the same in every run.
fn noise(number: u64) -> f64 {
    2.0 * Rng::from_nth(0, number).unit() - 1.0
}
