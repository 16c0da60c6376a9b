//! Shaders and programs.

use std::sync::PoisonError;

use super::given::{list, string};
use crate::client::context::State;
use crate::client::current;
use crate::entry::{Ptr, real};
use crate::shadow::program::Source;

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
    glLinkProgram(program: u32) => |state| state.shadow.link_program(program);
    glProgramBinary(program: u32, _format: u32, _data: Ptr, _bytes: i32) => |state| unlink(state, program);
    glProgramBinaryOES(program: u32, _format: u32, _data: Ptr, _bytes: i32) => |state| unlink(state, program);
    glUniformBlockBinding(program: u32, index: u32, _binding: u32) => |state| state.shadow.bind_block(program, index);
    glUseProgram(program: u32) => |state| state.shadow.use_program(program);
    glDeleteProgram(program: u32) => |state| state.shadow.shared.lock().delete_program(program);
}

/// Hooks with results.
pub(super) mod special {
    use super::{Source, current, real};

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

    crate::hooks::offered!(glCreateShader glCreateProgram);
}

/// A binary says nothing about its sources.
fn unlink(state: &State, program: u32) {
    let program = state.shadow.shared.lock().programs.get(program).cloned();
    if let Some(program) = program {
        program.lock().unwrap_or_else(PoisonError::into_inner).linked(None, None, false);
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
