//! Meshes to try estimators on: glmark2's, where they are installed, and one made here.

use std::fs;
use std::path::{Path, PathBuf};

/// A list of triangles, three vertices each, as glmark2 draws them.
pub(crate) struct Mesh {
    pub(crate) vertices: Vec<[f32; 3]>,
}

impl Mesh {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.vertices.iter().flatten().flat_map(|value| value.to_ne_bytes()).collect()
    }

    /// Lowest and highest corner.
    pub(crate) fn extent(&self) -> [[f32; 3]; 2] {
        let pick = |pick: fn(f32, f32) -> f32| {
            let join = |a: [f32; 3], b: &[f32; 3]| std::array::from_fn(|axis| pick(a[axis], b[axis]));
            self.vertices.iter().fold(self.vertices[0], join)
        };
        [pick(f32::min), pick(f32::max)]
    }

    fn from_faces(points: &[[f32; 3]], faces: impl IntoIterator<Item = [usize; 3]>) -> Self {
        Self { vertices: faces.into_iter().flatten().map(|corner| points[corner]).collect() }
    }
}

/// Where Debian's glmark2-data puts its models; none if the package is missing.
pub(crate) fn folder() -> Option<PathBuf> {
    let folder = Path::new("/usr/share/glmark2/models");
    folder.is_dir().then(|| folder.to_owned())
}

/// Reads a model by the ending of its name.
pub(crate) fn load(path: &Path) -> Mesh {
    if path.extension().is_some_and(|ending| ending == "obj") {
        read_obj(&fs::read_to_string(path).unwrap())
    } else {
        let mut mesh = Mesh { vertices: Vec::new() };
        let mut points = Vec::new();
        read_3ds(&fs::read(path).unwrap(), &mut points, &mut mesh);
        mesh
    }
}

fn read_obj(text: &str) -> Mesh {
    let (mut points, mut faces) = (Vec::new(), Vec::new());
    for line in text.lines() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("v") => {
                let mut next = || words.next().unwrap().parse().unwrap();
                points.push([next(), next(), next()]);
            }
            Some("f") => {
                let corner = |word: &str| word.split('/').next().unwrap().parse::<usize>().unwrap() - 1;
                let corners: Vec<usize> = words.map(corner).collect();
                faces.extend(corners[1..].windows(2).map(|pair| [corners[0], pair[0], pair[1]]));
            }
            _ => {}
        }
    }
    Mesh::from_faces(&points, faces)
}

/// Walks the chunks of a 3D Studio file: a number, a length, and contents that may be chunks.
fn read_3ds(bytes: &[u8], points: &mut Vec<[f32; 3]>, mesh: &mut Mesh) {
    let short = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let float = |bytes: &[u8], at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut rest = bytes;
    while rest.len() >= 6 {
        let length = u32::from_le_bytes(rest[2..6].try_into().unwrap());
        let (chunk, after) = rest.split_at(usize::try_from(length).unwrap());
        let body = &chunk[6..];
        match short(chunk, 0) {
            0x4d4d | 0x3d3d | 0x4100 => read_3ds(body, points, mesh),
            0x4000 => {
                let name = body.iter().position(|&byte| byte == 0).unwrap();
                read_3ds(&body[name + 1..], points, mesh);
            }
            0x4110 => {
                let point = |n: usize| std::array::from_fn(|axis| float(body, 2 + 12 * n + 4 * axis));
                *points = (0..usize::from(short(body, 0))).map(point).collect();
            }
            0x4120 => {
                let face =
                    |n: usize| std::array::from_fn(|corner| usize::from(short(body, 2 + 8 * n + 2 * corner)));
                let faces = (0..usize::from(short(body, 0))).map(face);
                mesh.vertices.extend(Mesh::from_faces(points, faces).vertices);
            }
            _ => {}
        }
        rest = after;
    }
}

/// A seated figure of about 100 000 triangles: knees, belly, shoulders and head turned on a
/// lathe, with folds. Stands in for the buddha of glmark2, which Debian does not ship.
pub(crate) fn figure() -> Mesh {
    const RINGS: usize = 320;
    const SECTORS: usize = 160;
    let points: Vec<[f32; 3]> = (0..=RINGS)
        .flat_map(|ring| (0..SECTORS).map(move |sector| figure_point(ring, RINGS, sector, SECTORS)))
        .collect();
    let quads = (0..RINGS).flat_map(|ring| (0..SECTORS).map(move |sector| (ring, sector)));
    let faces = quads.flat_map(|(ring, sector)| {
        let at = |ring: usize, sector: usize| ring * SECTORS + sector % SECTORS;
        let (a, b) = (at(ring, sector), at(ring, sector + 1));
        let (c, d) = (at(ring + 1, sector + 1), at(ring + 1, sector));
        [[a, c, b], [a, d, c]]
    });
    Mesh::from_faces(&points, faces)
}

fn figure_point(ring: usize, rings: usize, sector: usize, sectors: usize) -> [f32; 3] {
    let height = ring as f64 / rings as f64;
    let angle = std::f64::consts::TAU * sector as f64 / sectors as f64;
    let bulge =
        |at: f64, width: f64, size: f64| size * (1.0 - ((height - at) / width).powi(2)).max(0.0).sqrt();
    let body = bulge(0.12, 0.13, 0.75).max(bulge(0.38, 0.26, 0.45)).max(bulge(0.62, 0.16, 0.5));
    let radius = body.max(bulge(0.86, 0.14, 0.24)).max(0.002);
    let folds = 1.0 + 0.05 * (9.0 * angle + 30.0 * height).sin() + 0.3 * (angle * 2.0).cos() * (1.0 - height);
    let radius = radius * folds;
    #[expect(clippy::cast_possible_truncation, reason = "vertices have single precision")]
    let point = [radius * angle.cos(), 1.8 * height - 0.9, radius * angle.sin()].map(|value| value as f32);
    point
}
