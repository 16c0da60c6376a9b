//! The scenes of the thesis's table 3.6 that can be had, and two more models.

use std::path::Path;
use std::rc::Rc;

use takt_predict::fragments::raster::DepthTest;
use takt_predict::fragments::{
    Attribute, BufferId, Cull, Draw, Elements, Format, MatrixPosition, Mode, RangeKey, RasterState,
};

use crate::camera;
use crate::models::{self, Mesh};

/// A scene that turns.
pub(crate) struct Frames {
    pub(crate) name: &'static str,
    pub(crate) state: RasterState,
    pub(crate) depth: DepthTest,
    groups: Box<dyn Fn(f64) -> Vec<Group>>,
}

impl Frames {
    /// The draw groups of the frame at this angle.
    pub(crate) fn at(&self, degrees: f64) -> Vec<Group> {
        (self.groups)(degrees)
    }
}

/// A draw group of one draw.
pub(crate) struct Group {
    pub(crate) position: MatrixPosition,
    bytes: Rc<[u8]>,
    components: u8,
    mode: Mode,
    in_buffer: bool,
}

impl Group {
    pub(crate) fn draw(&self) -> Draw<'_> {
        let format = Format::F32;
        let positions =
            Attribute { bytes: &self.bytes, offset: 0, stride: 0, components: self.components, format };
        let count = u32::try_from(self.bytes.len() / 4 / usize::from(self.components)).unwrap();
        let key = self.in_buffer.then_some(RangeKey {
            positions: BufferId { buffer: 1, generation: 1 },
            layout: 0,
            indices: None,
            first: 0,
            count,
            mode: self.mode,
        });
        Draw { mode: self.mode, elements: Elements::Arrays { first: 0 }, count, instances: 1, positions, key }
    }
}

pub(crate) fn all(folder: &Path) -> Vec<Frames> {
    let load = |name: &str| models::load(&folder.join(name));
    vec![
        model("build (horse)", load("horse.3ds"), camera::fitted),
        model("shading (cat)", load("cat.3ds"), camera::fitted),
        model("texture (cube)", load("cube.3ds"), camera::fitted_tumbling),
        model("bunny", load("bunny.obj"), camera::fitted),
        model("figure", models::figure(), camera::fitted),
        speedometer(),
    ]
}

type Camera = fn(&Mesh, f64, f64) -> MatrixPosition;

/// A model as glmark2 shows it: in a buffer, back faces culled, with a depth test.
fn model(name: &'static str, mesh: Mesh, camera: Camera) -> Frames {
    let bytes: Rc<[u8]> = mesh.bytes().into();
    let state = RasterState { cull: Cull::Back, ..RasterState::new(800, 600) };
    let groups = move |degrees| {
        let position = camera(&mesh, 800.0 / 600.0, degrees);
        vec![Group { position, bytes: bytes.clone(), components: 3, mode: Mode::Triangles, in_buffer: true }]
    };
    Frames { name, state, depth: DepthTest::LessOrEqual, groups: Box::new(groups) }
}

/// Two pictures: a dial that fills the target and a needle of half its size that the app itself
/// turns, as the thesis's speedometer does.
fn speedometer() -> Frames {
    let groups = |degrees: f64| {
        let quad = |size: f64, degrees: f64| {
            let (sin, cos) = degrees.to_radians().sin_cos();
            let corners = [[-size, -size], [size, -size], [-size, size], [size, size]];
            let turned = corners.map(|[x, y]| [x * cos - y * sin, x * sin + y * cos]);
            #[expect(clippy::cast_possible_truncation, reason = "vertices have single precision")]
            let bytes = turned.iter().flatten().flat_map(|value| (*value as f32).to_ne_bytes());
            Group {
                position: IDENTITY,
                bytes: bytes.collect(),
                components: 2,
                mode: Mode::TriangleStrip,
                in_buffer: false,
            }
        };
        vec![quad(1.0, 0.0), quad(0.5, degrees)]
    };
    Frames {
        name: "speedometer",
        state: RasterState::new(456, 456),
        depth: DepthTest::Disabled,
        groups: Box::new(groups),
    }
}

const IDENTITY: MatrixPosition =
    MatrixPosition([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);
