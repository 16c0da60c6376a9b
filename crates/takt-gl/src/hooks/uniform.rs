//! Values of uniforms.

use std::sync::PoisonError;

use takt_predict::glsl::UniformData;

use super::given::vectors;
use crate::client::context::State;
use crate::entry::Ptr;
use crate::shadow::compute::Compute;
use crate::shadow::program::Program;

/// Calls that set uniforms, by the shape of their values: of the program in use, and of a program that
/// the call names.
macro_rules! uniforms {
    (
        values { $( $kind:ident($ty:ty) $($x:ident)+: $own:ident, $of:ident, $of_ext:ident; )* }
        vectors { $( $data:ident by $size:literal: $all:ident, $all_of:ident, $all_of_ext:ident; )* }
        squares { $( $side:literal: $square:ident, $square_of:ident, $square_of_ext:ident; )* }
        matrices { $( $columns:literal by $rows:literal: $matrix:ident, $matrix_of:ident, $matrix_of_ext:ident; )* }
    ) => {
        super::noted! {
            $(
                $own(location: i32, $($x: $ty),+) =>
                    |state| set(state, None, location, UniformData::$kind(&[$($x),+]));
                $of(program: u32, location: i32, $($x: $ty),+) =>
                    |state| set(state, Some(program), location, UniformData::$kind(&[$($x),+]));
                $of_ext(program: u32, location: i32, $($x: $ty),+) =>
                    |state| set(state, Some(program), location, UniformData::$kind(&[$($x),+]));
            )*
            $(
                $all(location: i32, count: i32, value: Ptr) =>
                    |state| set(state, None, location, UniformData::$data(vectors(count, $size, value)));
                $all_of(program: u32, location: i32, count: i32, value: Ptr) =>
                    |state| set(state, Some(program), location, UniformData::$data(vectors(count, $size, value)));
                $all_of_ext(program: u32, location: i32, count: i32, value: Ptr) =>
                    |state| set(state, Some(program), location, UniformData::$data(vectors(count, $size, value)));
            )*
            $(
                $square(location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, None, location, transpose, [$side; 2], count, value);
                $square_of(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, Some(program), location, transpose, [$side; 2], count, value);
                $square_of_ext(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, Some(program), location, transpose, [$side; 2], count, value);
            )*
            $(
                $matrix(location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, None, location, transpose, [$columns, $rows], count, value);
                $matrix_of(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, Some(program), location, transpose, [$columns, $rows], count, value);
                $matrix_of_ext(program: u32, location: i32, count: i32, transpose: u8, value: Ptr) =>
                    |state| matrix(state, Some(program), location, transpose, [$columns, $rows], count, value);
            )*
        }
    };
}

uniforms! {
    values {
        Floats(f32) x: glUniform1f, glProgramUniform1f, glProgramUniform1fEXT;
        Floats(f32) x y: glUniform2f, glProgramUniform2f, glProgramUniform2fEXT;
        Floats(f32) x y z: glUniform3f, glProgramUniform3f, glProgramUniform3fEXT;
        Floats(f32) x y z w: glUniform4f, glProgramUniform4f, glProgramUniform4fEXT;
        Ints(i32) x: glUniform1i, glProgramUniform1i, glProgramUniform1iEXT;
        Ints(i32) x y: glUniform2i, glProgramUniform2i, glProgramUniform2iEXT;
        Ints(i32) x y z: glUniform3i, glProgramUniform3i, glProgramUniform3iEXT;
        Ints(i32) x y z w: glUniform4i, glProgramUniform4i, glProgramUniform4iEXT;
        Uints(u32) x: glUniform1ui, glProgramUniform1ui, glProgramUniform1uiEXT;
        Uints(u32) x y: glUniform2ui, glProgramUniform2ui, glProgramUniform2uiEXT;
        Uints(u32) x y z: glUniform3ui, glProgramUniform3ui, glProgramUniform3uiEXT;
        Uints(u32) x y z w: glUniform4ui, glProgramUniform4ui, glProgramUniform4uiEXT;
    }
    vectors {
        Floats by 1: glUniform1fv, glProgramUniform1fv, glProgramUniform1fvEXT;
        Floats by 2: glUniform2fv, glProgramUniform2fv, glProgramUniform2fvEXT;
        Floats by 3: glUniform3fv, glProgramUniform3fv, glProgramUniform3fvEXT;
        Floats by 4: glUniform4fv, glProgramUniform4fv, glProgramUniform4fvEXT;
        Ints by 1: glUniform1iv, glProgramUniform1iv, glProgramUniform1ivEXT;
        Ints by 2: glUniform2iv, glProgramUniform2iv, glProgramUniform2ivEXT;
        Ints by 3: glUniform3iv, glProgramUniform3iv, glProgramUniform3ivEXT;
        Ints by 4: glUniform4iv, glProgramUniform4iv, glProgramUniform4ivEXT;
        Uints by 1: glUniform1uiv, glProgramUniform1uiv, glProgramUniform1uivEXT;
        Uints by 2: glUniform2uiv, glProgramUniform2uiv, glProgramUniform2uivEXT;
        Uints by 3: glUniform3uiv, glProgramUniform3uiv, glProgramUniform3uivEXT;
        Uints by 4: glUniform4uiv, glProgramUniform4uiv, glProgramUniform4uivEXT;
    }
    squares {
        2: glUniformMatrix2fv, glProgramUniformMatrix2fv, glProgramUniformMatrix2fvEXT;
        3: glUniformMatrix3fv, glProgramUniformMatrix3fv, glProgramUniformMatrix3fvEXT;
        4: glUniformMatrix4fv, glProgramUniformMatrix4fv, glProgramUniformMatrix4fvEXT;
    }
    matrices {
        2 by 3: glUniformMatrix2x3fv, glProgramUniformMatrix2x3fv, glProgramUniformMatrix2x3fvEXT;
        3 by 2: glUniformMatrix3x2fv, glProgramUniformMatrix3x2fv, glProgramUniformMatrix3x2fvEXT;
        2 by 4: glUniformMatrix2x4fv, glProgramUniformMatrix2x4fv, glProgramUniformMatrix2x4fvEXT;
        4 by 2: glUniformMatrix4x2fv, glProgramUniformMatrix4x2fv, glProgramUniformMatrix4x2fvEXT;
        3 by 4: glUniformMatrix3x4fv, glProgramUniformMatrix3x4fv, glProgramUniformMatrix3x4fvEXT;
        4 by 3: glUniformMatrix4x3fv, glProgramUniformMatrix4x3fv, glProgramUniformMatrix4x3fvEXT;
    }
}

/// Sets a uniform of a program; without one, of the program in use.
fn set(state: &State, program: Option<u32>, location: i32, data: UniformData<'_>) {
    with_program(state, program, location, |name, program| {
        program.set_uniform(name, state.shadow.extensions(), location, data);
    });
}

/// Has a look at a program for a call about a uniform of it.
fn with_program(state: &State, program: Option<u32>, location: i32, look: impl FnOnce(u32, &mut Program)) {
    let found = match program {
        None => state.shadow.program.clone(),
        Some(name) => state.shadow.shared.lock().programs.get(name).cloned().map(|program| (name, program)),
    };
    if let Some((name, program)) = found.filter(|_| location >= 0) {
        let mut program = program.lock().unwrap_or_else(PoisonError::into_inner);
        look(name, &mut program);
    }
}

/// The same for matrices, which may come by rows.
fn matrix(
    state: &State,
    program: Option<u32>,
    location: i32,
    transpose: u8,
    [columns, rows]: [usize; 2],
    count: i32,
    value: Ptr,
) {
    let data: &[f32] = vectors(count, columns * rows, value);
    if transpose == 0 {
        return set(state, program, location, UniformData::Floats(data));
    }
    let by_columns = |matrix: &[f32]| -> Vec<f32> {
        (0..columns * rows).map(|at| matrix[at % rows * columns + at / rows]).collect()
    };
    with_program(state, program, location, |name, program| {
        program.compute().into_iter().for_each(Compute::changed);
        let Some(linked) = program.read(name, state.shadow.extensions()) else {
            return;
        };
        // What GL does not take it has not read either, and it need not be there.
        let taken = &data[..linked.taken(location, data.len())];
        let turned: Vec<f32> = taken.chunks_exact(columns * rows).flat_map(by_columns).collect();
        linked.set(location, UniformData::Floats(&turned));
    });
}
