//! Gears like those of es2gears: each tooth is seven triangle strips, each strip a draw.

use std::f64::consts::TAU;

/// Vertices of a gear, and the strips they make: first vertex and number.
pub(crate) struct Gear {
    pub(crate) points: Vec<[f32; 3]>,
    pub(crate) strips: Vec<(u32, u32)>,
}

/// Sizes of a gear.
#[derive(Copy, Clone)]
pub(crate) struct Sizes {
    pub(crate) inner: f64,
    pub(crate) outer: f64,
    pub(crate) width: f64,
    pub(crate) teeth: u32,
    pub(crate) depth: f64,
}

impl Gear {
    pub(crate) fn new(sizes: Sizes) -> Self {
        let mut gear = Self { points: Vec::new(), strips: Vec::new() };
        for tooth in 0..sizes.teeth {
            gear.tooth(sizes, TAU * f64::from(tooth) / f64::from(sizes.teeth));
        }
        gear
    }

    /// A tooth from one angle to the next, in four steps: up, along, down, along.
    fn tooth(&mut self, sizes: Sizes, start: f64) {
        let step = TAU / f64::from(sizes.teeth) / 4.0;
        let [root, tip] = [-0.5, 0.5].map(|part| sizes.outer + part * sizes.depth);
        let at = |radius: f64, steps: f64, side: f64| {
            let angle = start + steps * step;
            [radius * angle.cos(), radius * angle.sin(), side * sizes.width / 2.0]
        };
        let face = |side: f64| {
            let outline = [(tip, 1.0), (tip, 2.0), (root, 0.0), (root, 3.0), (sizes.inner, 0.0)];
            let next = [(root, 4.0), (sizes.inner, 4.0)];
            outline.into_iter().chain(next).map(move |(radius, steps)| at(radius, steps, side))
        };
        self.strip(face(1.0));
        // The first vertex twice turns all triangles round.
        self.strip(face(-1.0).take(1).chain(face(-1.0)));
        let outline = [(root, 0.0), (tip, 1.0), (tip, 2.0), (root, 3.0), (root, 4.0)];
        for pair in outline.windows(2) {
            let [(a, from), (b, to)] = [pair[0], pair[1]];
            self.strip([at(a, from, -1.0), at(b, to, -1.0), at(a, from, 1.0), at(b, to, 1.0)]);
        }
        let hole = |steps: f64, side: f64| at(sizes.inner, steps, side);
        self.strip([hole(4.0, -1.0), hole(0.0, -1.0), hole(4.0, 1.0), hole(0.0, 1.0)]);
    }

    fn strip(&mut self, points: impl IntoIterator<Item = [f64; 3]>) {
        let first = self.points.len();
        #[expect(clippy::cast_possible_truncation, reason = "vertices have single precision")]
        self.points.extend(points.into_iter().map(|point| point.map(|value| value as f32)));
        let number = |count: usize| u32::try_from(count).expect("few vertices");
        self.strips.push((number(first), number(self.points.len() - first)));
    }
}
