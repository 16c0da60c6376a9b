//! Values of uniforms.

use std::sync::PoisonError;

use takt_predict::glsl::UniformData;

use super::given::vectors;
use crate::client::context::State;
use crate::entry::Ptr;
use crate::shadow::program::Linked;

super::noted! {
    glUniform1f(location: i32, x: f32) => |state| set(state, None, location, UniformData::Floats(&[x]));
    glUniform2f(location: i32, x: f32, y: f32) => |state| set(state, None, location, UniformData::Floats(&[x, y]));
    glUniform3f(location: i32, x: f32, y: f32, z: f32) =>
        |state| set(state, None, location, UniformData::Floats(&[x, y, z]));
    glUniform4f(location: i32, x: f32, y: f32, z: f32, w: f32) =>
        |state| set(state, None, location, UniformData::Floats(&[x, y, z, w]));
    glUniform1fv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Floats(vectors(count, 1, value)));
    glUniform2fv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Floats(vectors(count, 2, value)));
    glUniform3fv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Floats(vectors(count, 3, value)));
    glUniform4fv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Floats(vectors(count, 4, value)));
    glUniform1i(location: i32, x: i32) => |state| set(state, None, location, UniformData::Ints(&[x]));
    glUniform2i(location: i32, x: i32, y: i32) => |state| set(state, None, location, UniformData::Ints(&[x, y]));
    glUniform3i(location: i32, x: i32, y: i32, z: i32) =>
        |state| set(state, None, location, UniformData::Ints(&[x, y, z]));
    glUniform4i(location: i32, x: i32, y: i32, z: i32, w: i32) =>
        |state| set(state, None, location, UniformData::Ints(&[x, y, z, w]));
    glUniform1iv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Ints(vectors(count, 1, value)));
    glUniform2iv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Ints(vectors(count, 2, value)));
    glUniform3iv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Ints(vectors(count, 3, value)));
    glUniform4iv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Ints(vectors(count, 4, value)));
    glUniform1ui(location: i32, x: u32) => |state| set(state, None, location, UniformData::Uints(&[x]));
    glUniform2ui(location: i32, x: u32, y: u32) => |state| set(state, None, location, UniformData::Uints(&[x, y]));
    glUniform3ui(location: i32, x: u32, y: u32, z: u32) =>
        |state| set(state, None, location, UniformData::Uints(&[x, y, z]));
    glUniform4ui(location: i32, x: u32, y: u32, z: u32, w: u32) =>
        |state| set(state, None, location, UniformData::Uints(&[x, y, z, w]));
    glUniform1uiv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Uints(vectors(count, 1, value)));
    glUniform2uiv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Uints(vectors(count, 2, value)));
    glUniform3uiv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Uints(vectors(count, 3, value)));
    glUniform4uiv(location: i32, count: i32, value: Ptr) =>
        |state| set(state, None, location, UniformData::Uints(vectors(count, 4, value)));
    glUniformMatrix2fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [2, 2], vectors(count, 4, value));
    glUniformMatrix3fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [3, 3], vectors(count, 9, value));
    glUniformMatrix4fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [4, 4], vectors(count, 16, value));
    glUniformMatrix2x3fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [2, 3], vectors(count, 6, value));
    glUniformMatrix3x2fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [3, 2], vectors(count, 6, value));
    glUniformMatrix2x4fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [2, 4], vectors(count, 8, value));
    glUniformMatrix4x2fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [4, 2], vectors(count, 8, value));
    glUniformMatrix3x4fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [3, 4], vectors(count, 12, value));
    glUniformMatrix4x3fv(location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, None, location, transpose, [4, 3], vectors(count, 12, value));
    glProgramUniform1f(program: u32, location: i32, x: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x]));
    glProgramUniform2f(program: u32, location: i32, x: f32, y: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y]));
    glProgramUniform3f(program: u32, location: i32, x: f32, y: f32, z: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y, z]));
    glProgramUniform4f(program: u32, location: i32, x: f32, y: f32, z: f32, w: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y, z, w]));
    glProgramUniform1fv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 1, value)));
    glProgramUniform2fv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 2, value)));
    glProgramUniform3fv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 3, value)));
    glProgramUniform4fv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 4, value)));
    glProgramUniform1i(program: u32, location: i32, x: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x]));
    glProgramUniform2i(program: u32, location: i32, x: i32, y: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y]));
    glProgramUniform3i(program: u32, location: i32, x: i32, y: i32, z: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y, z]));
    glProgramUniform4i(program: u32, location: i32, x: i32, y: i32, z: i32, w: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y, z, w]));
    glProgramUniform1iv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 1, value)));
    glProgramUniform2iv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 2, value)));
    glProgramUniform3iv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 3, value)));
    glProgramUniform4iv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 4, value)));
    glProgramUniform1ui(program: u32, location: i32, x: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x]));
    glProgramUniform2ui(program: u32, location: i32, x: u32, y: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y]));
    glProgramUniform3ui(program: u32, location: i32, x: u32, y: u32, z: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y, z]));
    glProgramUniform4ui(program: u32, location: i32, x: u32, y: u32, z: u32, w: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y, z, w]));
    glProgramUniform1uiv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 1, value)));
    glProgramUniform2uiv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 2, value)));
    glProgramUniform3uiv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 3, value)));
    glProgramUniform4uiv(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 4, value)));
    glProgramUniformMatrix2fv(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [2, 2], vectors(count, 4, value));
    glProgramUniformMatrix3fv(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [3, 3], vectors(count, 9, value));
    glProgramUniformMatrix4fv(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [4, 4], vectors(count, 16, value));
    glProgramUniform1fEXT(program: u32, location: i32, x: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x]));
    glProgramUniform2fEXT(program: u32, location: i32, x: f32, y: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y]));
    glProgramUniform3fEXT(program: u32, location: i32, x: f32, y: f32, z: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y, z]));
    glProgramUniform4fEXT(program: u32, location: i32, x: f32, y: f32, z: f32, w: f32) =>
        |state| set(state, Some(program), location, UniformData::Floats(&[x, y, z, w]));
    glProgramUniform1fvEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 1, value)));
    glProgramUniform2fvEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 2, value)));
    glProgramUniform3fvEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 3, value)));
    glProgramUniform4fvEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Floats(vectors(count, 4, value)));
    glProgramUniform1iEXT(program: u32, location: i32, x: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x]));
    glProgramUniform2iEXT(program: u32, location: i32, x: i32, y: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y]));
    glProgramUniform3iEXT(program: u32, location: i32, x: i32, y: i32, z: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y, z]));
    glProgramUniform4iEXT(program: u32, location: i32, x: i32, y: i32, z: i32, w: i32) =>
        |state| set(state, Some(program), location, UniformData::Ints(&[x, y, z, w]));
    glProgramUniform1ivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 1, value)));
    glProgramUniform2ivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 2, value)));
    glProgramUniform3ivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 3, value)));
    glProgramUniform4ivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Ints(vectors(count, 4, value)));
    glProgramUniform1uiEXT(program: u32, location: i32, x: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x]));
    glProgramUniform2uiEXT(program: u32, location: i32, x: u32, y: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y]));
    glProgramUniform3uiEXT(program: u32, location: i32, x: u32, y: u32, z: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y, z]));
    glProgramUniform4uiEXT(program: u32, location: i32, x: u32, y: u32, z: u32, w: u32) =>
        |state| set(state, Some(program), location, UniformData::Uints(&[x, y, z, w]));
    glProgramUniform1uivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 1, value)));
    glProgramUniform2uivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 2, value)));
    glProgramUniform3uivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 3, value)));
    glProgramUniform4uivEXT(program: u32, location: i32, count: i32, value: Ptr) =>
        |state| set(state, Some(program), location, UniformData::Uints(vectors(count, 4, value)));
    glProgramUniformMatrix2fvEXT(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [2, 2], vectors(count, 4, value));
    glProgramUniformMatrix3fvEXT(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [3, 3], vectors(count, 9, value));
    glProgramUniformMatrix4fvEXT(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
        |state| matrix(state, Some(program), location, transpose, [4, 4], vectors(count, 16, value));
}

/// Sets a uniform of a program; without one, of the program in use.
fn set(state: &State, program: Option<u32>, location: i32, data: UniformData<'_>) {
    with_program(state, program, location, |linked| linked.set(location, data));
}

/// Has a look at a program for a call about a uniform of it.
fn with_program(state: &State, program: Option<u32>, location: i32, look: impl FnOnce(&mut Linked)) {
    let found = match program {
        None => state.shadow.program.clone(),
        Some(name) => state.shadow.shared.lock().programs.get(name).cloned().map(|program| (name, program)),
    };
    if let Some((name, program)) = found.filter(|_| location >= 0) {
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(linked) = program.read(name, state.shadow.extensions()) {
            look(linked);
        }
    }
}

/// The same for matrices, which may come by rows.
fn matrix(
    state: &State,
    program: Option<u32>,
    location: i32,
    transpose: u8,
    [columns, rows]: [usize; 2],
    data: &[f32],
) {
    if transpose == 0 {
        return set(state, program, location, UniformData::Floats(data));
    }
    let by_columns = |matrix: &[f32]| -> Vec<f32> {
        (0..columns * rows).map(|at| matrix[at % rows * columns + at / rows]).collect()
    };
    with_program(state, program, location, |linked| {
        // What GL does not take it has not read either, and it need not be there.
        let taken = &data[..linked.taken(location, data.len())];
        let turned: Vec<f32> = taken.chunks_exact(columns * rows).flat_map(by_columns).collect();
        linked.set(location, UniformData::Floats(&turned));
    });
}
