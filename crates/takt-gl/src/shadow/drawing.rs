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
    },
    /// Parameters lie in a buffer of the GPU.
    Indirect,
}

/// A draw call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drawing {
    /// `GL_TRIANGLES` and so on.
    pub mode: u32,
    /// Which vertices.
    pub source: VertexSource,
    /// How many.
    pub count: i32,
    /// How often.
    pub instances: i32,
}

impl Drawing {
    /// The first vertex, where vertices are consecutive.
    pub fn first(&self) -> i32 {
        match self.source {
            VertexSource::Arrays { first } => first,
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

    /// Vertices, instances counted; none if GL would refuse.
    pub(crate) fn vertices(&self) -> u64 {
        let number = |value: i32| u64::try_from(value).unwrap_or(0);
        number(self.count) * number(self.instances)
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
