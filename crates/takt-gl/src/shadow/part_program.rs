//! A second program for the workgroups of a compute program, which begins where it is told.
//!
//! It is made from the same source, changed by [`with_base`], and is an object of its own: the program never
//! learns its name, and what GL says about the program's own object stays what it was. Values of uniforms
//! and bindings of blocks are taken over from the program's object before it is used, and only if they have
//! changed. Bindings of images, of atomic counters and of blocks in memory are part of the source, so they
//! are the same.

use std::ffi::CString;

use takt_predict::glsl::with_base;

use super::program::{Active, NAME_BYTES, UNIFORMS_MAX, active_uniforms, is_linked, uniform_location};
use crate::entry::{Id, Ptr, real};
use crate::gl;

/// See the module.
#[derive(Debug)]
pub struct PartProgram {
    /// Its name.
    pub name: u32,
    /// Where its base is set; below zero if it needs none.
    pub base: i32,
    /// Values in the program's object are others by now.
    pub is_stale: bool,
    uniforms: Vec<Mirror>,
    /// Blocks of uniforms: their numbers here and there.
    blocks: Vec<(u32, u32)>,
}

/// A uniform in both objects.
#[derive(Clone, Copy, Debug)]
struct Mirror {
    from: i32,
    to: i32,
    shape: Shape,
}

/// How a uniform is read and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    Floats(u8),
    Ints(u8),
    Uints(u8),
    /// Columns and rows.
    Matrix(u8, u8),
}

impl PartProgram {
    /// Makes one for a linked program; none if that cannot be done exactly: where blocks may be laid out
    /// otherwise, and where uniforms may hold handles.
    pub(super) fn make(program: u32, source: &str) -> Option<Self> {
        if !NEEDED.iter().all(|needed| needed.is_there())
            || has_word(source, "packed")
            || source.contains("bindless")
        {
            return None;
        }
        let based = with_base(source).ok()?;
        let name = linked(&based.source)?;
        let part = Self::of(program, name, &based.uniform);
        if part.is_none() {
            // SAFETY: only this function knows it.
            unsafe { real::glDeleteProgram(name) };
        }
        part
    }

    /// Finds everything of the program's object in this one.
    fn of(program: u32, name: u32, base: &str) -> Option<Self> {
        let count = number_of(program, gl::ACTIVE_UNIFORMS);
        let longest = number_of(program, gl::ACTIVE_UNIFORM_MAX_LENGTH);
        if count > UNIFORMS_MAX || longest > NAME_BYTES {
            return None;
        }
        let mut uniforms = Vec::new();
        for active in active_uniforms(program) {
            mirror(program, name, &active, &mut uniforms)?;
        }
        let blocks = (0..u32::try_from(number_of(program, gl::ACTIVE_UNIFORM_BLOCKS)).unwrap_or(0))
            .map(|from| Some((from, block_of(program, name, from)?)))
            .collect::<Option<_>>()?;
        let base = uniform_location(name, base).unwrap_or(-1);
        Some(Self { name, base, is_stale: true, uniforms, blocks })
    }

    /// Takes over what has changed in the program's object.
    pub(super) fn follow(&mut self, program: u32) {
        if !std::mem::take(&mut self.is_stale) {
            return;
        }
        self.uniforms.iter().for_each(|uniform| uniform.copy(program, self.name));
        for (from, to) in &self.blocks {
            let mut binding = 0_i32;
            // SAFETY: the program has a block of this number; there is room for one number.
            unsafe {
                real::glGetActiveUniformBlockiv(
                    program,
                    *from,
                    gl::UNIFORM_BLOCK_BINDING,
                    (&raw mut binding).cast(),
                );
            };
            // SAFETY: this program has a block of that number.
            unsafe { real::glUniformBlockBinding(self.name, *to, u32::try_from(binding).unwrap_or(0)) };
        }
    }
}

/// Functions that this needs; a driver with compute shaders has them.
const NEEDED: [Id; 6] = [
    Id::glDispatchCompute,
    Id::glProgramUniform3uiv,
    Id::glProgramUniformMatrix4x3fv,
    Id::glGetUniformuiv,
    Id::glGetActiveUniformBlockName,
    Id::glGetUniformBlockIndex,
];

fn has_word(source: &str, wanted: &str) -> bool {
    source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == wanted)
}

/// Compiles and links a compute shader.
fn linked(source: &str) -> Option<u32> {
    // SAFETY: a context is current that knows compute shaders.
    let shader = unsafe { real::glCreateShader(gl::COMPUTE_SHADER) };
    // SAFETY: a context is current.
    let program = unsafe { real::glCreateProgram() };
    let (text, bytes) = (source.as_ptr(), i32::try_from(source.len()).unwrap_or(0));
    let (text, bytes): (Ptr, Ptr) =
        ((&raw const text).cast_mut().cast(), (&raw const bytes).cast_mut().cast());
    // Where a name is 0, the driver is out of memory, and nothing but an error comes of these calls.
    // SAFETY: one string with its length, which GL copies.
    unsafe { real::glShaderSource(shader, 1, text, bytes) };
    // SAFETY: a shader of ours, or 0.
    unsafe { real::glCompileShader(shader) };
    // SAFETY: as above, and a program of ours.
    unsafe { real::glAttachShader(program, shader) };
    // SAFETY: as above.
    unsafe { real::glLinkProgram(program) };
    // SAFETY: as above; it goes with the program.
    unsafe { real::glDeleteShader(shader) };
    if program != 0 && is_linked(program) {
        return Some(program);
    }
    // SAFETY: only this function knows it.
    unsafe { real::glDeleteProgram(program) };
    None
}

fn number_of(program: u32, what: u32) -> usize {
    let mut number = 0_i32;
    // SAFETY: the program is linked; there is room for one number.
    unsafe { real::glGetProgramiv(program, what, (&raw mut number).cast()) };
    usize::try_from(number).unwrap_or(0)
}

/// The block of that number in another program that has the same.
fn block_of(program: u32, other: u32, number: u32) -> Option<u32> {
    let mut name = [0_u8; NAME_BYTES];
    let (room, mut bytes) = (i32::try_from(NAME_BYTES).unwrap_or(0), 0_i32);
    // SAFETY: the number is below that of the program's blocks; there is as much room as is said.
    unsafe {
        real::glGetActiveUniformBlockName(
            program,
            number,
            room,
            (&raw mut bytes).cast(),
            name.as_mut_ptr().cast(),
        );
    };
    let name = CString::new(name.get(..usize::try_from(bytes).ok()?)?).ok()?;
    // SAFETY: the program is linked, the name ends with a zero byte.
    let index = unsafe { real::glGetUniformBlockIndex(other, name.as_ptr().cast_mut().cast()) };
    (index != gl::INVALID_INDEX).then_some(index)
}

/// Notes where the elements of a uniform are in both programs; none if it is of a type that is not known.
fn mirror(program: u32, part: u32, active: &Active, mirrors: &mut Vec<Mirror>) -> Option<()> {
    // What has no location lies in a block, or is a counter, whose binding is part of the source. So are
    // those of images, which no call can change.
    let base = active.base();
    if uniform_location(program, base).is_none() || (IMAGE_FIRST..=IMAGE_LAST).contains(&active.kind) {
        return Some(());
    }
    let shape = shape(active.kind)?;
    for element in 0..active.length {
        let name = if element == 0 { base.to_owned() } else { format!("{base}[{element}]") };
        let places = uniform_location(program, &name).zip(uniform_location(part, &name));
        mirrors.extend(places.map(|(from, to)| Mirror { from, to, shape }));
    }
    (mirrors.len() <= UNIFORMS_MAX).then_some(())
}

const IMAGE_FIRST: u32 = gl::IMAGE_2D;
const IMAGE_LAST: u32 = gl::UNSIGNED_INT_IMAGE_CUBE_MAP_ARRAY + 2;

/// Whether a uniform of this type is a sampler.
pub(super) fn is_sampler(kind: u32) -> bool {
    matches!(
        kind,
        0x8B5D..=0x8B64 | 0x8D66 | 0x8DC0..=0x8DC5 | 0x8DC9..=0x8DD8 | 0x900C..=0x900F | 0x9108..=0x910D | 0x8BE7
    )
}

fn shape(kind: u32) -> Option<Shape> {
    Some(match kind {
        gl::FLOAT => Shape::Floats(1),
        gl::FLOAT_VEC2 => Shape::Floats(2),
        gl::FLOAT_VEC3 => Shape::Floats(3),
        gl::FLOAT_VEC4 => Shape::Floats(4),
        gl::INT | gl::BOOL => Shape::Ints(1),
        gl::INT_VEC2 | gl::BOOL_VEC2 => Shape::Ints(2),
        gl::INT_VEC3 | gl::BOOL_VEC3 => Shape::Ints(3),
        gl::INT_VEC4 | gl::BOOL_VEC4 => Shape::Ints(4),
        gl::UNSIGNED_INT => Shape::Uints(1),
        gl::UNSIGNED_INT_VEC2 => Shape::Uints(2),
        gl::UNSIGNED_INT_VEC3 => Shape::Uints(3),
        gl::UNSIGNED_INT_VEC4 => Shape::Uints(4),
        gl::FLOAT_MAT2 => Shape::Matrix(2, 2),
        gl::FLOAT_MAT3 => Shape::Matrix(3, 3),
        gl::FLOAT_MAT4 => Shape::Matrix(4, 4),
        gl::FLOAT_MAT2x3 => Shape::Matrix(2, 3),
        gl::FLOAT_MAT2x4 => Shape::Matrix(2, 4),
        gl::FLOAT_MAT3x2 => Shape::Matrix(3, 2),
        gl::FLOAT_MAT3x4 => Shape::Matrix(3, 4),
        gl::FLOAT_MAT4x2 => Shape::Matrix(4, 2),
        gl::FLOAT_MAT4x3 => Shape::Matrix(4, 3),
        _ if is_sampler(kind) => Shape::Ints(1),
        _ => return None,
    })
}

impl Mirror {
    fn copy(&self, program: u32, part: u32) {
        let mut values = [0_u32; 16];
        let at: Ptr = values.as_mut_ptr().cast();
        let Self { from, to, shape } = *self;
        // SAFETY: a location of this uniform; there is room for the largest matrix.
        unsafe { shape.getter()(program, from, at) };
        match shape {
            // SAFETY: a location of the same uniform, set as the type that it was read as.
            Shape::Matrix(columns, rows) => unsafe { matrix_setter(columns, rows)(part, to, 1, 0, at) },
            // SAFETY: as above.
            _ => unsafe { shape.setter()(part, to, 1, at) },
        }
    }
}

type Getter = unsafe fn(u32, i32, Ptr);
type Setter = unsafe fn(u32, i32, i32, Ptr);
type MatrixSetter = unsafe fn(u32, i32, i32, u8, Ptr);

impl Shape {
    fn getter(self) -> Getter {
        match self {
            Self::Floats(_) | Self::Matrix(..) => real::glGetUniformfv,
            Self::Ints(_) => real::glGetUniformiv,
            Self::Uints(_) => real::glGetUniformuiv,
        }
    }

    /// How vectors are set.
    fn setter(self) -> Setter {
        match self {
            Self::Floats(1) => real::glProgramUniform1fv,
            Self::Floats(2) => real::glProgramUniform2fv,
            Self::Floats(3) => real::glProgramUniform3fv,
            Self::Floats(_) | Self::Matrix(..) => real::glProgramUniform4fv,
            Self::Ints(1) => real::glProgramUniform1iv,
            Self::Ints(2) => real::glProgramUniform2iv,
            Self::Ints(3) => real::glProgramUniform3iv,
            Self::Ints(_) => real::glProgramUniform4iv,
            Self::Uints(1) => real::glProgramUniform1uiv,
            Self::Uints(2) => real::glProgramUniform2uiv,
            Self::Uints(3) => real::glProgramUniform3uiv,
            Self::Uints(_) => real::glProgramUniform4uiv,
        }
    }
}

fn matrix_setter(columns: u8, rows: u8) -> MatrixSetter {
    match (columns, rows) {
        (2, 2) => real::glProgramUniformMatrix2fv,
        (3, 3) => real::glProgramUniformMatrix3fv,
        (2, 3) => real::glProgramUniformMatrix2x3fv,
        (2, 4) => real::glProgramUniformMatrix2x4fv,
        (3, 2) => real::glProgramUniformMatrix3x2fv,
        (3, 4) => real::glProgramUniformMatrix3x4fv,
        (4, 2) => real::glProgramUniformMatrix4x2fv,
        (4, 3) => real::glProgramUniformMatrix4x3fv,
        _ => real::glProgramUniformMatrix4fv,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_are_not_known_are_told() {
        assert_eq!(shape(gl::FLOAT_MAT3x4), Some(Shape::Matrix(3, 4)));
        assert_eq!(shape(gl::SAMPLER_2D), Some(Shape::Ints(1)));
        assert_eq!(shape(gl::BOOL_VEC3), Some(Shape::Ints(3)));
        assert_eq!([0, 0x140E, gl::IMAGE_2D].map(shape), [None; 3], "not even 64-bit ones");
        assert!(has_word("layout(packed) uniform", "packed") && !has_word("unpacked", "packed"));
    }
}
