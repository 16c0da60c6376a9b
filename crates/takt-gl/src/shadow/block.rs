//! Uniform blocks: which buffers are bound where, and what programs read from them.
//!
//! Where members lie in a block depends on its layout, which is the driver's own unless it is
//! `std140`. So the driver is asked once per link, with questions that cannot fail: about a linked
//! program, with numbers that the driver gave out before. Values come from the shadows of buffers
//! when a draw needs them, and only where a buffer, its contents or its range has changed.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::Arc;

use takt_predict::fragments::BufferId;
use takt_predict::glsl::MemberLayout;
use takt_predict::predictor::{Program, UniformSlot};

use super::buffer::Buffer;
use super::program::Active;
use crate::entry::{Id, real};
use crate::gl;

/// Binding points that are followed; drivers offer less than a hundred.
const POINTS_MAX: u32 = 1024;

/// Buffers that are bound to points.
#[derive(Default, Debug)]
pub struct Points {
    bound: BTreeMap<u32, Point>,
    limits: Option<Limits>,
}

/// A part of a buffer.
#[derive(Clone, Debug)]
pub struct Point {
    buffer: Arc<Buffer>,
    offset: usize,
    /// None for all there is at the time of a draw.
    size: Option<usize>,
}

/// What the driver refuses.
#[derive(Clone, Copy, Debug)]
struct Limits {
    points: u32,
    alignment: usize,
}

impl Limits {
    /// Asks the current context, which must be one of GL ES 3.
    fn ask() -> Self {
        let number = |what: u32| {
            let mut value = 0_i32;
            // SAFETY: such a context knows these two; there is room for one number.
            unsafe { real::glGetIntegerv(what, (&raw mut value).cast()) };
            u32::try_from(value).unwrap_or(0)
        };
        let points = number(gl::MAX_UNIFORM_BUFFER_BINDINGS).min(POINTS_MAX);
        Self { points, alignment: number(gl::UNIFORM_BUFFER_OFFSET_ALIGNMENT).max(1) as usize }
    }
}

impl Points {
    /// `glBindBufferBase` and `glBindBufferRange` in a context of GL ES 3; without a part, of all of
    /// the buffer. False if GL refuses.
    pub fn bind(&mut self, index: u32, buffer: Option<Arc<Buffer>>, part: Option<(isize, isize)>) -> bool {
        let limits = *self.limits.get_or_insert_with(Limits::ask);
        if index >= limits.points {
            return false;
        }
        let Some(buffer) = buffer else {
            self.bound.remove(&index);
            return true;
        };
        let part =
            part.map(|(offset, size)| Some((usize::try_from(offset).ok()?, usize::try_from(size).ok()?)));
        let (offset, size) = match part {
            None => (0, None),
            Some(Some((offset, size))) if size > 0 && offset % limits.alignment == 0 => (offset, Some(size)),
            Some(_) => return false,
        };
        self.bound.insert(index, Point { buffer, offset, size });
        true
    }

    /// `glDeleteBuffers`.
    pub fn forget(&mut self, buffer: &Arc<Buffer>) {
        self.bound.retain(|_, point| !Arc::ptr_eq(&point.buffer, buffer));
    }
}

/// The blocks of a program that positions depend on.
#[derive(Default, Debug)]
pub struct Blocks(Vec<Block>);

#[derive(Debug)]
struct Block {
    /// Its number.
    index: u32,
    /// Which point it reads from.
    binding: u32,
    members: Vec<(UniformSlot, MemberLayout)>,
    /// What was read last, and from where.
    read: Option<(BufferId, usize, Option<usize>)>,
}

impl Blocks {
    /// Asks the driver about a linked program, whose active uniforms these are. What it does not
    /// tell stays unknown.
    pub(super) fn of(name: u32, program: &Program, active: &[Active]) -> Self {
        let mut blocks: BTreeMap<&str, Block> = BTreeMap::new();
        for (slot, member) in program.block_uniforms() {
            if !QUESTIONS.iter().all(|question| question.is_there()) {
                break;
            }
            let Some(index) = block_index(name, &member.block) else {
                continue;
            };
            let block = blocks.entry(&member.block).or_insert_with(|| {
                let binding = block_binding(name, index);
                Block { index, binding, members: Vec::new(), read: None }
            });
            let found = active.iter().find(|uniform| uniform.base() == member.name);
            if let Some(layout) = found.and_then(|uniform| layout(name, uniform.number)) {
                block.members.push((slot, layout));
            }
        }
        Self(blocks.into_values().collect())
    }

    /// `glUniformBlockBinding`: what the driver made of it.
    pub fn rebind(&mut self, program: u32, index: u32) {
        for block in self.0.iter_mut().filter(|block| block.index == index) {
            block.binding = block_binding(program, index);
        }
    }

    /// Brings a program's uniforms up to date with what is bound.
    pub fn update(&mut self, program: &mut Program, points: &Points) {
        for block in &mut self.0 {
            let point = points.bound.get(&block.binding);
            let contents = point.map(|point| (point, point.buffer.lock()));
            let read = contents.as_ref().and_then(|(point, contents)| {
                contents.bytes()?;
                Some((point.buffer.id(contents), point.offset, point.size))
            });
            if read.is_some() && read == block.read {
                continue;
            }
            block.read = read;
            let bytes = contents.as_ref().and_then(|(point, contents)| {
                let bytes = contents.bytes()?.get(point.offset..)?;
                Some(&bytes[..point.size.map_or(bytes.len(), |size| size.min(bytes.len()))])
            });
            for (slot, layout) in &block.members {
                program.read_uniform(*slot, layout, bytes);
            }
        }
    }
}

/// Functions that only drivers of GL ES 3 have.
const QUESTIONS: [Id; 3] =
    [Id::glGetUniformBlockIndex, Id::glGetActiveUniformBlockiv, Id::glGetActiveUniformsiv];

fn block_index(program: u32, name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the program is linked, the name ends with a zero byte.
    let index = unsafe { real::glGetUniformBlockIndex(program, name.as_ptr().cast_mut().cast()) };
    (index != gl::INVALID_INDEX).then_some(index)
}

fn block_binding(program: u32, index: u32) -> u32 {
    let mut binding = 0_i32;
    // SAFETY: the program has a block of this number; there is room for one number.
    unsafe {
        real::glGetActiveUniformBlockiv(program, index, gl::UNIFORM_BLOCK_BINDING, (&raw mut binding).cast());
    };
    u32::try_from(binding).unwrap_or(0)
}

/// Where the uniform of that number lies; none if it is in no block.
fn layout(program: u32, uniform: u32) -> Option<MemberLayout> {
    let ask = |what: u32| {
        let (mut number, mut value) = (uniform, 0_i32);
        // SAFETY: the number is that of an active uniform; there is room for one answer.
        unsafe {
            real::glGetActiveUniformsiv(program, 1, (&raw mut number).cast(), what, (&raw mut value).cast());
        };
        value
    };
    let stride = |what: u32| usize::try_from(ask(what)).unwrap_or(0);
    Some(MemberLayout {
        offset: usize::try_from(ask(gl::UNIFORM_OFFSET)).ok()?,
        array_stride: stride(gl::UNIFORM_ARRAY_STRIDE),
        matrix_stride: stride(gl::UNIFORM_MATRIX_STRIDE),
        row_major: ask(gl::UNIFORM_IS_ROW_MAJOR) != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERTEX: &str = "#version 300 es
        uniform Place { vec4 shift; } place; in vec4 at; void main() { gl_Position = at + place.shift; }";
    const FRAGMENT: &str = "#version 300 es
        out mediump vec4 colour; void main() { colour = vec4(1); }";

    fn points() -> Points {
        Points { limits: Some(Limits { points: 4, alignment: 16 }), ..Points::default() }
    }

    fn filled(words: &[f32]) -> Arc<Buffer> {
        let buffer = Arc::new(Buffer::new());
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        buffer.lock().replace(bytes.len(), Some(&bytes), true);
        buffer
    }

    #[test]
    fn what_gl_refuses_changes_nothing() {
        let (mut points, buffer) = (points(), filled(&[0.0; 8]));
        assert!(points.bind(3, Some(buffer.clone()), Some((16, 16))));
        for (index, part) in
            [(4, None), (u32::MAX, None), (3, Some((8, 8))), (3, Some((0, 0))), (3, Some((-16, 8)))]
        {
            assert!(!points.bind(index, Some(buffer.clone()), part), "{index} {part:?}");
        }
        assert_eq!(points.bound.len(), 1);
        assert_eq!(points.bound[&3].offset, 16);
        assert!(points.bind(3, None, None));
        assert!(points.bound.is_empty());
        assert!(points.bind(0, Some(buffer.clone()), None));
        points.forget(&buffer);
        assert!(points.bound.is_empty());
    }

    #[test]
    fn a_program_follows_what_is_bound() {
        let mut program = Program::new(VERTEX, FRAGMENT, &[]);
        assert_eq!(program.problem(), None);
        let unknown = program.position_hash();
        let member = (program.block_uniforms().next().unwrap().0, MemberLayout::default());
        let mut blocks = Blocks(vec![Block { index: 0, binding: 2, members: vec![member], read: None }]);
        let mut points = points();
        let mut hash = |program: &mut Program, points: &Points| {
            blocks.update(program, points);
            program.position_hash()
        };
        assert_eq!(hash(&mut program, &points), unknown, "nothing is bound");
        let buffer = filled(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        points.bind(1, Some(buffer.clone()), None);
        assert_eq!(hash(&mut program, &points), unknown, "somewhere else");
        points.bind(2, Some(buffer.clone()), None);
        let first = hash(&mut program, &points);
        assert_ne!(first, unknown);
        points.bind(2, Some(buffer.clone()), Some((16, 16)));
        let second = hash(&mut program, &points);
        assert!(second != first && second != unknown, "the second half");
        let halves: Vec<u8> = buffer.lock().bytes().unwrap()[..16].to_vec();
        buffer.lock().write(16, &halves);
        assert_eq!(hash(&mut program, &points), first, "the same values again");
        points.bind(2, Some(buffer.clone()), Some((16, 8)));
        assert_ne!(hash(&mut program, &points), first, "too small a part");
        points.bind(2, Some(buffer.clone()), Some((0, 64)));
        assert_eq!(hash(&mut program, &points), first, "as much as there is");
        buffer.lock().forget();
        let gone = hash(&mut program, &points);
        assert!(gone != first && gone != second, "a mapping was written to");
    }
}
