//! The scenes of the thesis's table 3.6 that can be had, and two more models.

use std::path::Path;
use std::rc::Rc;

use takt_predict::fragments::raster::{DepthTest, Raster};
use takt_predict::fragments::{
    Attribute, BufferId, Cull, Draw, Elements, Format, MatrixPosition, Mode, PositionSource as _, RangeKey,
    RasterState, Vertex,
};

use crate::camera;
use crate::gears::{Gear, Sizes};
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

    /// Exact fragments of each draw group of a frame.
    pub(crate) fn count(&self, groups: &[Group], depth: DepthTest) -> Vec<f64> {
        let mut raster = Raster::new(&self.state, depth);
        let count = |group: &Group| {
            group.triangles().iter().map(|triangle| raster.triangle(triangle)).sum::<u64>() as f64
        };
        groups.iter().map(count).collect()
    }
}

/// A draw group of one scene.
pub(crate) struct Group {
    pub(crate) position: MatrixPosition,
    bytes: Rc<[u8]>,
    components: u8,
    mode: Mode,
    /// The buffer it is drawn from; none for client memory.
    buffer: Option<u64>,
    /// First vertex and number of vertices of each draw.
    draws: Rc<[(u32, u32)]>,
}

impl Group {
    /// A group of one draw of everything.
    fn whole(
        position: MatrixPosition,
        bytes: Rc<[u8]>,
        components: u8,
        mode: Mode,
        buffer: Option<u64>,
    ) -> Self {
        let count = u32::try_from(bytes.len() / 4 / usize::from(components)).unwrap();
        Self { position, bytes, components, mode, buffer, draws: Rc::new([(0, count)]) }
    }

    pub(crate) fn draws(&self) -> impl Iterator<Item = Draw<'_>> {
        let (format, mode) = (Format::F32, self.mode);
        let positions =
            Attribute { bytes: &self.bytes, offset: 0, stride: 0, components: self.components, format };
        self.draws.iter().map(move |&(first, count)| {
            let key = self.buffer.map(|buffer| RangeKey {
                positions: BufferId { buffer, generation: 1 },
                layout: 0,
                indices: None,
                first: u64::from(first),
                count,
                mode,
            });
            Draw { mode, elements: Elements::Arrays { first }, count, instances: 1, positions, key }
        })
    }

    /// All triangles in clip coordinates.
    pub(crate) fn triangles(&self) -> Vec<[[f32; 4]; 3]> {
        let mut triangles = Vec::new();
        for draw in self.draws() {
            let vertices: Vec<Vertex> = (0..draw.count).map(|n| draw.vertex(n)).collect();
            let mut clip = vec![[0.0; 4]; vertices.len()];
            self.position.positions(0, &vertices, &mut clip);
            let triangle =
                |n| draw.mode.corners(n, draw.count).map(|corner| clip[usize::try_from(corner).unwrap()]);
            triangles.extend((0..draw.primitives()).map(triangle));
        }
        triangles
    }

    pub(crate) fn vertices(&self) -> u64 {
        self.draws().map(|draw| draw.vertices()).sum()
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
        gears(),
    ]
}

type Camera = fn(&Mesh, f64, f64) -> MatrixPosition;

/// A model as glmark2 shows it: in a buffer, back faces culled, with a depth test.
fn model(name: &'static str, mesh: Mesh, camera: Camera) -> Frames {
    let bytes: Rc<[u8]> = mesh.bytes().into();
    let state = RasterState { cull: Cull::Back, ..RasterState::new(800, 600) };
    let groups = move |degrees| {
        let position = camera(&mesh, 800.0 / 600.0, degrees);
        vec![Group::whole(position, bytes.clone(), 3, Mode::Triangles, Some(1))]
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
            Group::whole(IDENTITY, bytes.collect(), 2, Mode::TriangleStrip, None)
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

/// es2gears: three gears in 280 draws from buffers, back faces culled, with a depth test.
fn gears() -> Frames {
    let parts = [
        (Sizes { inner: 1.0, outer: 4.0, width: 1.0, teeth: 20, depth: 0.7 }, [-3.0, -2.0, 0.0], 1.0, 0.0),
        (Sizes { inner: 0.5, outer: 2.0, width: 2.0, teeth: 10, depth: 0.7 }, [3.1, -2.0, 0.0], -2.0, -9.0),
        (Sizes { inner: 1.3, outer: 2.0, width: 0.5, teeth: 10, depth: 0.7 }, [-3.1, 4.2, 0.0], -2.0, -25.0),
    ];
    let gears = parts.map(|(sizes, ..)| {
        let Gear { points, strips } = Gear::new(sizes);
        let bytes: Rc<[u8]> = points.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect();
        (bytes, Rc::<[(u32, u32)]>::from(strips))
    });
    let groups = move |degrees: f64| {
        let mut groups = Vec::new();
        for (number, ((bytes, strips), (_, place, speed, phase))) in (1..).zip(gears.iter().zip(&parts)) {
            let position = camera::gear(*place, speed * degrees + phase);
            let (bytes, draws, buffer) = (Rc::clone(bytes), Rc::clone(strips), Some(number));
            groups.push(Group { position, bytes, components: 3, mode: Mode::TriangleStrip, buffer, draws });
        }
        groups
    };
    let state = RasterState { cull: Cull::Back, ..RasterState::new(300, 300) };
    Frames { name: "es2gears", state, depth: DepthTest::LessOrEqual, groups: Box::new(groups) }
}

const IDENTITY: MatrixPosition =
    MatrixPosition([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]);
