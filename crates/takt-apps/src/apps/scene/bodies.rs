//! Bodies made of triangles, by formula.

use std::f32::consts::{PI, TAU};

/// What can be drawn; all fit into a ball of radius 1 or little more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Model {
    Cube,
    Sphere,
    Torus,
    Knot,
}

/// Vertices (position, normal, texel) and indices of triangles.
pub(super) type Body = (Vec<f32>, Vec<u16>);

/// A model with so many segments around it; a cube needs none.
pub(super) fn build(model: Model, detail: u16) -> Body {
    match model {
        Model::Cube => cube(),
        Model::Sphere => sheet(detail, detail.div_ceil(2).max(2), sphere),
        Model::Torus => sheet(detail, detail.div_ceil(2).max(3), torus),
        // A knot is long and thin.
        Model::Knot => sheet(detail.saturating_mul(2).min(1000), detail.div_ceil(4).max(3), knot),
    }
}

type Vector = [f32; 3];

/// A surface over the unit square, as a grid; normals follow from neighbours.
fn sheet(columns: u16, rows: u16, at: fn(f32, f32) -> Vector) -> Body {
    let mut vertices = Vec::new();
    for row in 0..=rows {
        for column in 0..=columns {
            let (u, v) = (f32::from(column) / f32::from(columns), f32::from(row) / f32::from(rows));
            let step = 1e-3;
            let along = minus(at(u + step, v), at(u - step, v));
            // At the poles of a sphere the way around has no length: look a little beside them.
            let beside = v.clamp(2.0 * step, 1.0 - 2.0 * step);
            let up = minus(at(u, beside + step), at(u, beside - step));
            let along =
                if square(along) > 1e-12 { along } else { minus(at(u + step, beside), at(u - step, beside)) };
            let normal = unit(cross(along, up));
            vertices.extend(at(u, v));
            vertices.extend(normal);
            vertices.extend([u * 4.0, v * 2.0]);
        }
    }
    let mut indices = Vec::new();
    let width = columns + 1;
    for row in 0..rows {
        for column in 0..columns {
            let corner = row * width + column;
            let above = corner + width;
            indices.extend([corner, corner + 1, above, above, corner + 1, above + 1]);
        }
    }
    (vertices, indices)
}

fn sphere(u: f32, v: f32) -> Vector {
    let (around, up) = (u * TAU, (v - 0.5) * PI);
    [around.cos() * up.cos(), up.sin(), -around.sin() * up.cos()]
}

fn torus(u: f32, v: f32) -> Vector {
    let (around, tube) = (u * TAU, v * TAU);
    let reach = 0.72 + 0.3 * tube.cos();
    [around.cos() * reach, 0.3 * tube.sin(), -around.sin() * reach]
}

fn knot(u: f32, v: f32) -> Vector {
    let line = |u: f32| {
        let t = u * TAU;
        let reach = 0.58 + 0.27 * (3.0 * t).cos();
        [(2.0 * t).cos() * reach, (2.0 * t).sin() * reach, 0.36 * (3.0 * t).sin()]
    };
    let middle = line(u);
    let forward = unit(minus(line(u + 1e-3), line(u - 1e-3)));
    let side = unit(cross(forward, [0.0, 0.0, 1.0]));
    let up = cross(side, forward);
    let (sin, cos) = (v * TAU).sin_cos();
    std::array::from_fn(|axis| middle[axis] + 0.17 * (cos * side[axis] + sin * up[axis]))
}

fn cube() -> Body {
    let half = 0.7;
    let (mut vertices, mut indices) = (Vec::new(), Vec::new());
    for face in 0..6_u16 {
        let axis = usize::from(face % 3);
        let sign = if face < 3 { 1.0 } else { -1.0 };
        for corner in 0..4_u16 {
            let (u, v) = (f32::from(corner % 2), f32::from(corner / 2));
            let mut place = [0.0; 3];
            place[axis] = sign * half;
            place[(axis + 1) % 3] = (u * 2.0 - 1.0) * half * sign;
            place[(axis + 2) % 3] = (v * 2.0 - 1.0) * half;
            let mut normal = [0.0; 3];
            normal[axis] = sign;
            vertices.extend(place);
            vertices.extend(normal);
            vertices.extend([u, v]);
        }
        let first = face * 4;
        indices.extend([0, 1, 2, 2, 1, 3].map(|index| first + index));
    }
    (vertices, indices)
}

fn minus(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn square(a: Vector) -> f32 {
    a.iter().map(|part| part * part).sum()
}

fn unit(a: Vector) -> Vector {
    let length = square(a).sqrt().max(1e-12);
    a.map(|part| part / length)
}

fn cross(a: Vector, b: Vector) -> Vector {
    std::array::from_fn(|axis| {
        let (next, last) = ((axis + 1) % 3, (axis + 2) % 3);
        a[next] * b[last] - a[last] * b[next]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Triangles must face outwards, or half of the body is culled.
    #[test]
    fn normals_agree_with_the_order_of_corners() {
        for model in [Model::Cube, Model::Sphere, Model::Torus, Model::Knot] {
            let (vertices, indices) = build(model, 48);
            let vertex = |index: u16| {
                let floats = &vertices[usize::from(index) * 8..][..6];
                ([floats[0], floats[1], floats[2]], [floats[3], floats[4], floats[5]])
            };
            for triangle in indices.as_chunks::<3>().0 {
                let [(a, normal), (b, _), (c, _)] = triangle.map(vertex);
                let facing = cross(minus(b, a), minus(c, a));
                if square(facing) > 1e-12 {
                    let agree: f32 = (0..3).map(|axis| facing[axis] * normal[axis]).sum();
                    assert!(agree > 0.0, "{model:?}: {triangle:?}");
                }
                assert!((square(normal) - 1.0).abs() < 1e-3, "{model:?}");
            }
        }
    }

    #[test]
    fn the_finest_models_fit_into_16_bit_indices() {
        for model in [Model::Sphere, Model::Torus, Model::Knot] {
            let (vertices, _) = build(model, 250);
            assert!(vertices.len() / 8 <= 65_536, "{model:?}: {}", vertices.len() / 8);
        }
    }
}
