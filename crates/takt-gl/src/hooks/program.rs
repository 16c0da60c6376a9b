//! Shaders and programs.

use std::sync::PoisonError;

use super::given::{list, string};
use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::guard;
use crate::session::session;
use crate::shadow::program::{Source, Stages};

/// Longer sources are cut; no parser of ours reads more.
const SOURCE_BYTES_MAX: usize = 1 << 20;

super::noted! {
    glShaderSource(shader: u32, count: i32, strings: Ptr, lengths: Ptr) =>
        |state| source(state, shader, list(count, strings), list(count, lengths));
    glCompileShader(shader: u32) => |state| {
        if let Some(source) = state.shadow.shared.lock().shaders.get_mut(&shader) {
            source.compiled.clone_from(&source.text);
        }
    };
    glAttachShader(program: u32, shader: u32) => |state| state.shadow.shared.lock().attach_shader(program, shader);
    glDetachShader(program: u32, shader: u32) => |state| state.shadow.shared.lock().detach_shader(program, shader);
    glDeleteShader(shader: u32) => |state| state.shadow.shared.lock().delete_shader(shader);
    glLinkProgram(program: u32) => |state| forget_parts(state.shadow.link_program(program));
    glUniformBlockBinding(program: u32, index: u32, _binding: u32) => |state| state.shadow.bind_block(program, index);
    glUseProgram(program: u32) => |state| state.shadow.use_program(program);
    glShaderBinary(count: i32, shaders: Ptr, _format: u32, _data: Ptr, _bytes: i32) =>
        |state| compiled_elsewhere(state, list(count, shaders));
}

/// Hooks with results.
pub(super) mod special {
    use super::{Source, current, forget_parts, real, refusal, unlink};
    use crate::entry::Ptr;

    #[expect(non_snake_case, reason = "names of the registry")]
    unsafe extern "C" fn glCreateShader(kind: u32) -> u32 {
        // SAFETY: the program's own call.
        let shader = unsafe { real::glCreateShader(kind) };
        if shader != 0 {
            let source = Source { stage: kind, ..Source::default() };
            current::with(|state| state.shadow.shared.lock().shaders.insert(shader, source));
        }
        shader
    }

    #[expect(non_snake_case, reason = "names of the registry")]
    unsafe extern "C" fn glCreateProgram() -> u32 {
        // SAFETY: the program's own call.
        let program = unsafe { real::glCreateProgram() };
        current::with(|state| {
            let mut shared = state.shadow.shared.lock();
            // A name that is used again is another program.
            shared.delete_program(program);
            shared.programs.bind(program);
        });
        program
    }

    #[expect(non_snake_case, reason = "names of the registry")]
    unsafe extern "C" fn glDeleteProgram(program: u32) {
        let goes = current::with(|state| state.shadow.shared.lock().delete_program(program));
        let (now, parts) = goes.unwrap_or((true, Vec::new()));
        if now {
            // SAFETY: the program's own call.
            unsafe { real::glDeleteProgram(program) };
            forget_parts(parts);
        }
    }

    macro_rules! binaries {
        ($( $name:ident )*) => {
            $(
                #[expect(non_snake_case, reason = "names of the registry")]
                unsafe extern "C" fn $name(program: u32, format: u32, data: Ptr, bytes: i32) {
                    let (data, bytes) = refusal().unwrap_or((data, bytes));
                    // SAFETY: the program's own call, or with bytes of ours that no driver takes for a program.
                    unsafe { real::$name(program, format, data, bytes) };
                    current::with(|state| unlink(state, program));
                }
            )*
        };
    }

    binaries! { glProgramBinary glProgramBinaryOES }

    crate::hooks::offered!(glCreateShader glCreateProgram glDeleteProgram glProgramBinary glProgramBinaryOES);
}

/// Deletes programs of ours that have no use any more.
fn forget_parts(parts: Vec<u32>) {
    for part in parts {
        // SAFETY: a program that only we know; where it is in use, it stays until it is not.
        unsafe { real::glDeleteProgram(part) };
    }
}

/// What shaders are made from is not what `glShaderSource` said.
fn compiled_elsewhere(state: &State, shaders: &[u32]) {
    let mut shared = state.shadow.shared.lock();
    for shader in shaders {
        shared.shaders.entry(*shader).and_modify(|source| source.compiled.clear());
    }
}

/// What is handed to the driver instead of a program's binary: something that it refuses, as it may refuse
/// any binary, for example of another version. The program then goes on from its sources, and only a program
/// with sources can be cut. None where nothing is to be cut.
fn refusal() -> Option<(Ptr, i32)> {
    static NO_BINARY: [u8; 64] = [0; 64];
    let refuses = guard::shielded(|| session().is_wanted()) == Some(true);
    refuses.then(|| (NO_BINARY.as_ptr().cast_mut().cast(), i32::try_from(NO_BINARY.len()).unwrap_or(0)))
}

/// A binary says nothing about its sources.
fn unlink(state: &State, program: u32) {
    let program = state.shadow.shared.lock().programs.get(program).cloned();
    if let Some(program) = program {
        forget_parts(program.lock().unwrap_or_else(PoisonError::into_inner).linked(Stages::default()));
    }
}

/// Strings have lengths, which may be missing or below zero, or zero bytes at their ends.
fn source(state: &State, shader: u32, strings: &[*const u8], lengths: &[i32]) {
    // Of a shader that does not exist the driver reads nothing either.
    let mut shared = state.shadow.shared.lock();
    let Some(source) = shared.shaders.get_mut(&shader) else {
        return;
    };
    let mut text = Vec::new();
    for (at, start) in strings.iter().enumerate() {
        let length = lengths.get(at).and_then(|length| usize::try_from(*length).ok());
        text.extend_from_slice(string(*start, length));
        if text.len() > SOURCE_BYTES_MAX {
            break;
        }
    }
    text.truncate(SOURCE_BYTES_MAX);
    source.text = String::from_utf8_lossy(&text).into_owned();
}
