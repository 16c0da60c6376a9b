//! One draw call, and how its vertices make primitives.

use super::attribute::{Attribute, Elements};

/// The primitive mode of a draw.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// `GL_POINTS`.
    Points,
    /// `GL_LINES`.
    Lines,
    /// `GL_LINE_STRIP`.
    LineStrip,
    /// `GL_LINE_LOOP`.
    LineLoop,
    /// `GL_TRIANGLES`.
    Triangles,
    /// `GL_TRIANGLE_STRIP`.
    TriangleStrip,
    /// `GL_TRIANGLE_FAN`.
    TriangleFan,
}

/// What primitives are made of.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// One vertex.
    Point,
    /// Two vertices.
    Line,
    /// Three vertices.
    Triangle,
}

impl Mode {
    /// What the mode's primitives are made of.
    pub fn shape(self) -> Shape {
        match self {
            Self::Points => Shape::Point,
            Self::Lines | Self::LineStrip | Self::LineLoop => Shape::Line,
            Self::Triangles | Self::TriangleStrip | Self::TriangleFan => Shape::Triangle,
        }
    }

    /// Primitives that this many vertices make.
    pub fn primitives(self, vertices: u32) -> u32 {
        match self {
            Self::Points => vertices,
            Self::Lines => vertices / 2,
            Self::LineStrip => vertices.saturating_sub(1),
            Self::LineLoop if vertices < 2 => 0,
            Self::LineLoop => vertices,
            Self::Triangles => vertices / 3,
            Self::TriangleStrip | Self::TriangleFan => vertices.saturating_sub(2),
        }
    }

    /// The elements of the `n`-th primitive of a draw, with the winding that GL gives it.
    /// Places that the shape does not have repeat the first.
    pub fn corners(self, n: u32, vertices: u32) -> [u32; 3] {
        let n = n.min(self.primitives(vertices).saturating_sub(1));
        match self {
            Self::Points => [n, n, n],
            Self::Lines => [2 * n, 2 * n + 1, 2 * n],
            Self::LineStrip => [n, n + 1, n],
            Self::LineLoop => [n, if n + 1 < vertices { n + 1 } else { 0 }, n],
            Self::Triangles => [3 * n, 3 * n + 1, 3 * n + 2],
            Self::TriangleStrip if n % 2 == 1 => [n + 1, n, n + 2],
            Self::TriangleStrip => [n, n + 1, n + 2],
            Self::TriangleFan => [0, n + 1, n + 2],
        }
    }
}

/// Names the contents of a buffer: its number, and how often it was written.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct BufferId {
    /// Which buffer, unique over contexts.
    pub buffer: u64,
    /// Counts up with each change of its contents.
    pub generation: u64,
}

/// The vertices of a draw by name, so that what was learnt about them can be kept.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct RangeKey {
    /// Buffer of the positions.
    pub positions: BufferId,
    /// Offset, stride, components and format of the positions, in any unique form.
    pub layout: u64,
    /// Buffer of the indices, if there are any.
    pub indices: Option<BufferId>,
    /// First vertex, or offset of the first index.
    pub first: u64,
    /// Number of elements.
    pub count: u32,
    /// Primitive mode.
    pub mode: Mode,
}

/// One draw call.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Draw<'a> {
    /// How vertices make primitives.
    pub mode: Mode,
    /// Which vertices.
    pub elements: Elements<'a>,
    /// How many.
    pub count: u32,
    /// How often, each time with other instance attributes.
    pub instances: u32,
    /// Where positions come from.
    pub positions: Attribute<'a>,
    /// Their name, if they lie in buffers; client memory has none.
    pub key: Option<RangeKey>,
}

impl Draw<'_> {
    /// Vertices that the GPU works on.
    pub fn vertices(&self) -> u64 {
        u64::from(self.count) * u64::from(self.instances)
    }

    /// Primitives of one instance.
    pub fn primitives(&self) -> u32 {
        self.mode.primitives(self.count)
    }

    /// Elements that have a vertex in memory. However many are drawn, there is no more to read.
    pub(super) fn in_memory(&self) -> u32 {
        let there = self.elements.in_memory(self.positions.vertices());
        u32::try_from(there).unwrap_or(u32::MAX).min(self.count)
    }

    /// The `n`-th vertex. An element without an index is a vertex at the origin.
    pub fn vertex(&self, n: u32) -> Vertex {
        let index = self.elements.index(n).unwrap_or(u32::MAX);
        Vertex { index, position: self.positions.vertex(index) }
    }

    /// The vertices of the `n`-th primitive.
    pub(super) fn primitive(&self, n: u32) -> [Vertex; 3] {
        self.mode.corners(n, self.count).map(|corner| self.vertex(corner))
    }
}

/// A vertex as a position slice sees it.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Vertex {
    /// Its number, by which further attributes can be found.
    pub index: u32,
    /// Its position attribute.
    pub position: [f32; 4],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_make_the_primitives_of_gl() {
        let list = |mode: Mode, vertices| -> Vec<[u32; 3]> {
            (0..mode.primitives(vertices)).map(|n| mode.corners(n, vertices)).collect()
        };
        assert_eq!(list(Mode::Triangles, 7), [[0, 1, 2], [3, 4, 5]]);
        assert_eq!(list(Mode::TriangleStrip, 5), [[0, 1, 2], [2, 1, 3], [2, 3, 4]]);
        assert_eq!(list(Mode::TriangleFan, 5), [[0, 1, 2], [0, 2, 3], [0, 3, 4]]);
        assert_eq!(list(Mode::Lines, 5), [[0, 1, 0], [2, 3, 2]]);
        assert_eq!(list(Mode::LineStrip, 3), [[0, 1, 0], [1, 2, 1]]);
        assert_eq!(list(Mode::LineLoop, 3), [[0, 1, 0], [1, 2, 1], [2, 0, 2]]);
        assert_eq!(list(Mode::LineLoop, 1), [[0; 3]; 0]);
        assert_eq!(list(Mode::Points, 2), [[0; 3], [1; 3]]);
    }

    #[test]
    fn few_vertices_make_nothing() {
        for mode in [Mode::Triangles, Mode::TriangleStrip, Mode::TriangleFan] {
            assert_eq!(mode.primitives(2), 0);
        }
        assert_eq!(Mode::LineStrip.primitives(0), 0);
    }
}
