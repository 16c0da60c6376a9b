//! What a program reads, as the driver lists it, and values for it.

use std::ffi::CString;

use takt_gl_api::entry::{Id, Ptr, real};
use takt_gl_api::gl;

use crate::gl::c_name;
use crate::{Gl, length};

/// Room for the name of an input.
const NAME_BYTES: usize = 256;
/// Elements of an array that get values.
const ELEMENTS_MAX: usize = 1024;
/// What every number that is not whole gets.
const HALF: f32 = 0.5;

/// What a uniform or an attribute is made of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// So many floats.
    Floats(u32),
    /// So many whole numbers or truth values.
    Ints(u32),
    /// So many whole numbers without a sign.
    Unsigned(u32),
    /// A square matrix with so many columns.
    Matrix(u32),
    /// A sampler, and the texture unit that it gets.
    Sampler(u32),
    /// Something else, which keeps the driver's value.
    Other,
}

/// Texture unit of flat samplers: samplers of different kinds must not share one.
pub const UNIT_2D: u32 = 0;
/// Texture unit of cube samplers.
pub const UNIT_CUBE: u32 = 1;

fn kind(number: u32) -> Kind {
    match number {
        gl::FLOAT => Kind::Floats(1),
        0x8B50..=0x8B52 => Kind::Floats(number - 0x8B4E),
        gl::INT | gl::BOOL => Kind::Ints(1),
        0x8B53..=0x8B55 => Kind::Ints(number - 0x8B51),
        0x8B57..=0x8B59 => Kind::Ints(number - 0x8B55),
        gl::UNSIGNED_INT => Kind::Unsigned(1),
        0x8DC6..=0x8DC8 => Kind::Unsigned(number - 0x8DC4),
        0x8B5A..=0x8B5C => Kind::Matrix(number - 0x8B58),
        0x8B5E => Kind::Sampler(UNIT_2D),
        gl::SAMPLER_CUBE => Kind::Sampler(UNIT_CUBE),
        // 3D, arrays, shadows, and images of others: units of their own, without a texture.
        0x8B5F => Kind::Sampler(2),
        0x8DC1 => Kind::Sampler(3),
        0x8B62 => Kind::Sampler(4),
        0x8D66 => Kind::Sampler(5),
        0x8DC5 => Kind::Sampler(6),
        0x8DC4 | 0x8DCA..=0x8DD7 => Kind::Sampler(7),
        _ => Kind::Other,
    }
}

/// A uniform or an attribute.
#[derive(Debug)]
struct Input {
    location: i32,
    kind: Kind,
    length: usize,
}

type Ask = unsafe fn(u32, u32, i32, Ptr, Ptr, Ptr, Ptr);
type Locate = unsafe fn(u32, Ptr) -> i32;

fn inputs(program: u32, what: u32, ask: Ask, locate: Locate) -> Vec<Input> {
    let mut count = 0_i32;
    // SAFETY: one number is written.
    unsafe { real::glGetProgramiv(program, what, (&raw mut count).cast()) };
    let input = |at| {
        let mut name = [0_u8; NAME_BYTES];
        let (mut bytes, mut length, mut kind_number) = (0_i32, 0_i32, 0_u32);
        let [bytes_at, length_at]: [Ptr; 2] = [(&raw mut bytes).cast(), (&raw mut length).cast()];
        let (room, kind_at) = (i32::try_from(NAME_BYTES).ok()?, (&raw mut kind_number).cast());
        // SAFETY: GL checks the numbers; everything that is written has the room that is stated.
        unsafe { ask(program, at, room, bytes_at, length_at, kind_at, name.as_mut_ptr().cast()) };
        let name = CString::new(name.get(..usize::try_from(bytes).ok()?)?).ok()?;
        // SAFETY: the name ends with a zero byte.
        let location = unsafe { locate(program, name.as_ptr().cast_mut().cast()) };
        let length = usize::try_from(length).ok()?.clamp(1, ELEMENTS_MAX);
        // What is built in or in a block has no location.
        (location >= 0).then_some(Input { location, kind: kind(kind_number), length })
    };
    (0..u32::try_from(count).unwrap_or(0)).filter_map(input).collect()
}

impl Gl {
    /// Gives plausible values to all that the program in use reads: matrices are the identity,
    /// numbers 0.5 or 1, samplers units for their kind. Returns the attributes that vertices are
    /// to have: their locations, and how many floats each has.
    pub fn set_inputs(&self, program: u32) -> Vec<(u32, u32)> {
        let uniforms =
            inputs(program, gl::ACTIVE_UNIFORMS, real::glGetActiveUniform, real::glGetUniformLocation);
        uniforms.iter().for_each(set_uniform);
        let attributes =
            inputs(program, gl::ACTIVE_ATTRIBUTES, real::glGetActiveAttrib, real::glGetAttribLocation);
        attributes.iter().filter_map(set_attribute).collect()
    }

    /// Where a uniform is; -1, which GL ignores, if the program has none of that name.
    pub fn uniform(&self, program: u32, name: &str) -> i32 {
        // SAFETY: the name ends with a zero byte.
        unsafe { real::glGetUniformLocation(program, c_name(name).as_ptr().cast_mut().cast()) }
    }

    /// Where an attribute is, if the program has one of that name.
    pub fn attribute(&self, program: u32, name: &str) -> Option<u32> {
        // SAFETY: the name ends with a zero byte.
        let location = unsafe { real::glGetAttribLocation(program, c_name(name).as_ptr().cast_mut().cast()) };
        u32::try_from(location).ok()
    }

    /// Sets a uniform, or an array, of one to four floats per element.
    pub fn set_floats(&self, location: i32, floats: usize, data: &[f32]) {
        let count = length(data.len() / floats);
        // SAFETY: GL reads `count` elements of so many floats.
        unsafe { SET_FLOATS[floats - 1](location, count, data.as_ptr().cast_mut().cast()) };
    }

    /// Sets a uniform, or an array, of one to four whole numbers or truth values per element.
    pub fn set_ints(&self, location: i32, ints: usize, data: &[i32]) {
        let count = length(data.len() / ints);
        // SAFETY: GL reads `count` elements of so many numbers.
        unsafe { SET_INTS[ints - 1](location, count, data.as_ptr().cast_mut().cast()) };
    }

    /// Sets a uniform, or an array, of square matrices, column by column.
    pub fn set_matrices(&self, location: i32, columns: usize, data: &[f32]) {
        let count = length(data.len() / (columns * columns));
        // SAFETY: GL reads `count` matrices of so many columns.
        unsafe { SET_MATRIX[columns - 2](location, count, 0, data.as_ptr().cast_mut().cast()) };
    }
}

type Set = unsafe fn(i32, i32, Ptr);
type SetMatrix = unsafe fn(i32, i32, u8, Ptr);

const SET_FLOATS: [Set; 4] = [real::glUniform1fv, real::glUniform2fv, real::glUniform3fv, real::glUniform4fv];
const SET_INTS: [Set; 4] = [real::glUniform1iv, real::glUniform2iv, real::glUniform3iv, real::glUniform4iv];
const SET_UNSIGNED: [Set; 4] =
    [real::glUniform1uiv, real::glUniform2uiv, real::glUniform3uiv, real::glUniform4uiv];
const SET_MATRIX: [SetMatrix; 3] =
    [real::glUniformMatrix2fv, real::glUniformMatrix3fv, real::glUniformMatrix4fv];

fn set_uniform(uniform: &Input) {
    let Input { location, kind, length } = *uniform;
    let count = i32::try_from(length).unwrap_or(1);
    let fill = |set: Set, value: u32| {
        let mut values = [value; 4].repeat(length);
        // SAFETY: four numbers of 32 bits per element, as many as any of these functions reads.
        unsafe { set(location, count, values.as_mut_ptr().cast()) };
    };
    match kind {
        Kind::Floats(size) => fill(SET_FLOATS[size as usize - 1], HALF.to_bits()),
        Kind::Ints(size) => fill(SET_INTS[size as usize - 1], 1),
        // Only drivers that have the functions have such uniforms.
        Kind::Unsigned(size) if Id::glUniform4uiv.is_there() => fill(SET_UNSIGNED[size as usize - 1], 1),
        Kind::Sampler(unit) => fill(real::glUniform1iv, unit),
        Kind::Matrix(columns) => {
            let mut values = identity(columns).repeat(length);
            // SAFETY: as many numbers per element as the function for so many columns reads.
            unsafe { SET_MATRIX[columns as usize - 2](location, count, 0, values.as_mut_ptr().cast()) };
        }
        Kind::Unsigned(_) | Kind::Other => {}
    }
}

/// A square matrix, column by column.
fn identity(columns: u32) -> Vec<f32> {
    let cell = |at| if at % (columns + 1) == 0 { 1.0 } else { 0.0 };
    (0..columns * columns).map(cell).collect()
}

/// The attribute if vertices are to have it; others get one value for all vertices.
fn set_attribute(attribute: &Input) -> Option<(u32, u32)> {
    let first = u32::try_from(attribute.location).ok()?;
    match attribute.kind {
        Kind::Floats(floats) => return Some((first, floats)),
        Kind::Matrix(columns) => {
            for column in 0..columns {
                let [x, y, z, w] = [0, 1, 2, 3].map(|row| if row == column { 1.0 } else { 0.0 });
                // SAFETY: plain numbers, which GL checks.
                unsafe { real::glVertexAttrib4f(first + column, x, y, z, w) };
            }
        }
        Kind::Ints(_) | Kind::Unsigned(_) if Id::glVertexAttribI4i.is_there() => {
            // SAFETY: plain numbers, which GL checks.
            unsafe { real::glVertexAttribI4i(first, 1, 1, 1, 1) };
        }
        _ => {}
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_their_sizes() {
        let numbers = [0x1406, 0x8B50, 0x8B52, 0x8B56, 0x8B54, 0x8B59, 0x8DC6, 0x8B5A, 0x8B5C, 0x8B5E, 0];
        let kinds = [
            Kind::Floats(1),
            Kind::Floats(2),
            Kind::Floats(4),
            Kind::Ints(1),
            Kind::Ints(3),
            Kind::Ints(4),
            Kind::Unsigned(2),
            Kind::Matrix(2),
            Kind::Matrix(4),
            Kind::Sampler(UNIT_2D),
            Kind::Other,
        ];
        assert_eq!(numbers.map(kind), kinds);
        assert_eq!(identity(2), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(identity(4).iter().sum::<f32>(), 4.0);
    }
}
