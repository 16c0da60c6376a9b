//! A draw call.

use takt_predict::fragments::Mode;

use crate::entry::Ptr;
use crate::gl;

/// Where the vertices of a draw come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum VertexSource {
    /// Consecutive ones.
    Arrays {
        /// The first of them.
        first: i32,
    },
    /// Through indices.
    Elements {
        /// Their type.
        kind: u32,
        /// Address, or offset in the element buffer.
        pointer: usize,
        /// What is added to each index.
        base: i32,
    },
    /// Only the GPU knows; where it reads that tells the draw from others.
    Unknown {
        /// Offset, or number of an object.
        at: usize,
    },
    /// Several draws in one call.
    Several {
        /// The first of them.
        first: i32,
        /// Vertices of all together, if they are known.
        vertices: Option<i32>,
    },
}

/// A draw call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawing {
    /// `GL_TRIANGLES` and so on.
    pub mode: u32,
    /// Which vertices.
    pub source: VertexSource,
    /// How many vertices, or draws where there are several.
    pub count: i32,
    /// How often.
    pub instances: i32,
    /// Its parameters lie in a buffer of the GPU, whether they are known or not: the call cannot be made for a
    /// range of its vertices.
    pub indirect: bool,
}

impl Drawing {
    /// A draw whose parameters came with the call.
    pub const fn new(mode: u32, source: VertexSource, count: i32, instances: i32) -> Self {
        Self { mode, source, count, instances, indirect: false }
    }

    /// The same with that added to each index.
    #[must_use]
    pub fn from(self, base: i32) -> Self {
        let source = match self.source {
            VertexSource::Elements { kind, pointer, .. } => VertexSource::Elements { kind, pointer, base },
            other => other,
        };
        Self { source, ..self }
    }

    /// The first vertex, where vertices are consecutive, or the first of several draws.
    pub fn first(&self) -> i32 {
        match self.source {
            VertexSource::Arrays { first } | VertexSource::Several { first, .. } => first,
            _ => 0,
        }
    }

    /// What is added to each index.
    pub fn base(&self) -> i32 {
        match self.source {
            VertexSource::Elements { base, .. } => base,
            _ => 0,
        }
    }

    /// Where its indices are.
    pub fn indices(&self) -> Ptr {
        match self.source {
            VertexSource::Elements { pointer, .. } => pointer as Ptr,
            _ => std::ptr::null_mut(),
        }
    }

    /// Whether it is known how many vertices it has.
    pub(crate) fn is_counted(&self) -> bool {
        !matches!(self.source, VertexSource::Unknown { .. } | VertexSource::Several { vertices: None, .. })
    }

    /// Vertices, instances counted; none if GL would refuse, or if only the GPU knows.
    pub(crate) fn vertices(&self) -> u64 {
        let number = |value: i32| u64::try_from(value).unwrap_or(0);
        let count = match self.source {
            VertexSource::Several { vertices, .. } => vertices.unwrap_or(0),
            _ => self.count,
        };
        number(count) * number(self.instances)
    }
}

/// GL's modes; none for those of newer versions.
pub(crate) fn mode(mode: u32) -> Option<Mode> {
    Some(match mode {
        gl::POINTS => Mode::Points,
        gl::LINES => Mode::Lines,
        gl::LINE_STRIP => Mode::LineStrip,
        gl::LINE_LOOP => Mode::LineLoop,
        gl::TRIANGLES => Mode::Triangles,
        gl::TRIANGLE_STRIP => Mode::TriangleStrip,
        gl::TRIANGLE_FAN => Mode::TriangleFan,
        _ => return None,
    })
}
