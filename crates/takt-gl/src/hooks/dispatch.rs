//! Dispatches of compute shaders.

use super::pieces::in_pieces;
use crate::client::context::State;
use crate::client::current;
use crate::entry::real;
use crate::gl;

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glDispatchCompute(x: u32, y: u32, z: u32) {
    // SAFETY: the program's own call.
    dispatch("glDispatchCompute", |_state| Some([x, y, z]), || unsafe { real::glDispatchCompute(x, y, z) });
}

#[expect(non_snake_case, reason = "names of the registry")]
unsafe extern "C" fn glDispatchComputeIndirect(indirect: isize) {
    // SAFETY: the program's own call.
    dispatch(
        "glDispatchComputeIndirect",
        |state| counts(state, indirect),
        || unsafe { real::glDispatchComputeIndirect(indirect) },
    );
}

super::offered!(glDispatchCompute glDispatchComputeIndirect);

/// Dispatches with `call`, at once or in pieces.
#[inline]
fn dispatch(name: &'static str, groups: impl FnOnce(&mut State) -> Option<[u32; 3]>, call: impl FnOnce()) {
    let cut = current::with(|state| {
        state.builder.call(name);
        let groups = groups(state);
        (state.shadow.software(), state.about_to_dispatch(groups))
    });
    let (software, cut) = cut.unwrap_or_default();
    let Some(cut) = cut else {
        return if software { current::dispatched(call) } else { current::timed(call) };
    };
    let parts = cut.parts;
    in_pieces(cut.slicer, |part| match software {
        true => current::dispatched(|| parts.dispatch(part)),
        false => current::timed(|| parts.dispatch(part)),
    });
    parts.end();
}

/// Workgroups of an indirect dispatch, if what is in its buffer is known.
fn counts(state: &mut State, indirect: isize) -> Option<[u32; 3]> {
    let start = usize::try_from(indirect).ok().filter(|start| start.is_multiple_of(size_of::<u32>()))?;
    let buffer = state.shadow.buffer(gl::DISPATCH_INDIRECT_BUFFER)?;
    let contents = buffer.lock();
    let words = contents.bytes()?.get(start..)?.as_chunks().0.first_chunk::<3>()?;
    Some(words.map(u32::from_ne_bytes))
}
