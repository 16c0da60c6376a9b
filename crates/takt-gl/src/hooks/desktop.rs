//! Commands that only desktop GL has.
//!
//! There are two thousand of them, and what matters of one is the same for all of its kind: [`EFFECTS`] says
//! what that is, by name. The table of entry points makes a hook for each command that the list names; all
//! others pass. Draws among them are never cut, and take what their like took.
//!
//! While a primitive is begun or a display list compiled, nothing is added to the program's calls
//! ([`crate::shadow::legacy`]).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::client::context::State;
use crate::client::current;
use crate::client::group::End;
use crate::entry::{Id, NAMES, Ptr};
use crate::hooks::submit;
use crate::session::session;
use crate::{clock, gl};

/// What a command does, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// Passes.
    Nothing,
    /// Gives the GPU work of unknown extent.
    Work,
    /// Gives the GPU work, and changes state unseen.
    Lists,
    /// Begins a primitive, which is work.
    Begin,
    /// Ends it.
    End,
    /// Begins to compile a display list.
    NewList,
    /// Ends that.
    EndList,
    /// Waits for what the GPU did.
    Read,
    /// Waits for that, and has the GPU hand something over.
    ReadBack,
    /// Changes state that the shadow follows, past the shadow.
    Unseen,
}

/// What commands do, by name; a name that ends in a star stands for all that begin so. The first that fits
/// counts.
const EFFECTS: &[(&str, Effect)] = &[
    // Exceptions: values for later, and names of variables.
    ("glBindAttribLocationARB", Effect::Nothing),
    ("glBindFragData*", Effect::Nothing),
    // Primitives and lists.
    ("glBegin", Effect::Begin),
    ("glEnd", Effect::End),
    ("glNewList", Effect::NewList),
    ("glEndList", Effect::EndList),
    ("glCallList*", Effect::Lists),
    ("glCallCommandListNV", Effect::Lists),
    ("glDrawCommandsStates*", Effect::Lists),
    // Draws, fills, and what the GPU does to pixels.
    ("glAccum*", Effect::Work),
    ("glAsyncCopy*", Effect::Work),
    ("glBitmap*", Effect::Work),
    ("glBlit*", Effect::Work),
    ("glClearBuffer*", Effect::Work),
    ("glClearNamed*", Effect::Work),
    ("glClearTex*", Effect::Work),
    ("glCopy*", Effect::Work),
    ("glDispatch*", Effect::Work),
    ("glDrawArrays*", Effect::Work),
    ("glDrawCommands*", Effect::Work),
    ("glDrawElement*", Effect::Work),
    ("glDrawMeshArrays*", Effect::Work),
    ("glDrawPixels", Effect::Work),
    ("glDrawRange*", Effect::Work),
    ("glDrawTexture*", Effect::Work),
    ("glDrawTransform*", Effect::Work),
    ("glEvalMesh*", Effect::Work),
    ("glExecuteProgramNV", Effect::Work),
    ("glGenerate*", Effect::Work),
    ("glLGPUCopy*", Effect::Work),
    ("glMultiDraw*", Effect::Work),
    ("glMultiModeDraw*", Effect::Work),
    ("glMulticastBlit*", Effect::Work),
    ("glMulticastCopy*", Effect::Work),
    ("glNamedCopyBuffer*", Effect::Work),
    ("glPresentFrame*", Effect::Work),
    ("glRect*", Effect::Work),
    ("glVideoCaptureNV", Effect::Work),
    // Uploads.
    ("glBufferData*", Effect::Work),
    ("glBufferStorage*", Effect::Work),
    ("glBufferSubData*", Effect::Work),
    ("glCompressedMultiTex*", Effect::Work),
    ("glCompressedTex*", Effect::Work),
    ("glFlushMapped*", Effect::Work),
    ("glLGPUNamedBufferSubData*", Effect::Work),
    ("glMultiTexImage*", Effect::Work),
    ("glMultiTexSubImage*", Effect::Work),
    ("glMulticastBufferSubData*", Effect::Work),
    ("glNamedBufferData*", Effect::Work),
    ("glNamedBufferStorage*", Effect::Work),
    ("glNamedBufferSubData*", Effect::Work),
    ("glTexImage*", Effect::Work),
    ("glTexSubImage*", Effect::Work),
    ("glTextureImage*", Effect::Work),
    ("glTextureSubImage*", Effect::Work),
    ("glUnmap*", Effect::Work),
    ("glUpdateObjectBufferATI", Effect::Work),
    // What waits for the GPU.
    ("glClientWait*", Effect::Read),
    ("glFinish*", Effect::Read),
    ("glGetBufferSubData*", Effect::ReadBack),
    ("glGetCompressedTex*", Effect::ReadBack),
    ("glGetConvolutionFilter*", Effect::ReadBack),
    ("glGetCompressedMultiTex*", Effect::ReadBack),
    ("glGetHistogram*", Effect::ReadBack),
    ("glGetMinmax*", Effect::ReadBack),
    ("glGetMultiTexImage*", Effect::ReadBack),
    ("glGetNamedBufferSubData*", Effect::ReadBack),
    ("glGetOcclusionQuery*", Effect::Read),
    ("glGetQueryBufferObject*", Effect::Read),
    ("glGetQueryObject*", Effect::Read),
    ("glGetSeparableFilter*", Effect::ReadBack),
    ("glGetTexImage", Effect::ReadBack),
    ("glGetTextureImage*", Effect::ReadBack),
    ("glGetTextureSubImage", Effect::ReadBack),
    ("glGetnCompressedTex*", Effect::ReadBack),
    ("glGetnTexImage*", Effect::ReadBack),
    ("glMapBuffer*", Effect::Read),
    ("glMapNamedBuffer*", Effect::Read),
    ("glMapObjectBuffer*", Effect::Read),
    ("glMapTexture2D*", Effect::Read),
    ("glReadnPixels*", Effect::ReadBack),
    // State that the shadow follows by other names, and state that says how pixels are made.
    ("glAlphaFunc*", Effect::Unseen),
    ("glAttachObjectARB", Effect::Unseen),
    ("glBeginConditional*", Effect::Unseen),
    ("glBeginOcclusion*", Effect::Unseen),
    ("glBeginQuery*", Effect::Unseen),
    ("glBeginTransformFeedback*", Effect::Unseen),
    ("glBind*", Effect::Unseen),
    ("glClip*", Effect::Unseen),
    ("glCompileShader*", Effect::Unseen),
    ("glConservativeRaster*", Effect::Unseen),
    ("glCreate*", Effect::Unseen),
    ("glDebugMessageCallback*", Effect::Unseen),
    ("glDeleteObjectARB", Effect::Unseen),
    ("glDepthRange*", Effect::Unseen),
    ("glDisable*", Effect::Unseen),
    ("glDrawBuffer", Effect::Unseen),
    ("glDrawBuffers*", Effect::Unseen),
    ("glEnable*", Effect::Unseen),
    ("glFrameTerminator*", Effect::Unseen),
    ("glFramebuffer*", Effect::Unseen),
    ("glLineStipple", Effect::Unseen),
    ("glLinkProgramARB", Effect::Unseen),
    ("glNamedFramebuffer*", Effect::Unseen),
    ("glNamedRenderbuffer*", Effect::Unseen),
    ("glPolygonMode", Effect::Unseen),
    ("glPopAttrib", Effect::Unseen),
    ("glPopClientAttrib", Effect::Unseen),
    ("glPrimitive*", Effect::Unseen),
    ("glRenderMode", Effect::Unseen),
    ("glRenderbuffer*", Effect::Unseen),
    ("glScissor*", Effect::Unseen),
    ("glSpecializeShader*", Effect::Unseen),
    ("glStateCapture*", Effect::Unseen),
    ("glTextureBuffer*", Effect::Unseen),
    ("glTextureStorage*", Effect::Unseen),
    ("glTextureView*", Effect::Unseen),
    ("glUseProgramObjectARB", Effect::Unseen),
    ("glUseShaderProgramEXT", Effect::Unseen),
    ("glVertexArray*", Effect::Unseen),
    ("glViewport*", Effect::Unseen),
];

/// Names of parameters that say how much there is to do.
const EXTENTS: [&str; 12] = [
    "count",
    "depth",
    "drawcount",
    "height",
    "imageSize",
    "instancecount",
    "length",
    "n",
    "primcount",
    "size",
    "size4d",
    "width",
];

/// Whether a name is that of a pattern, which may end in a star.
const fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern) = (name.as_bytes(), pattern.as_bytes());
    let mut at = 0;
    while at < pattern.len() {
        if pattern[at] == b'*' {
            return true;
        }
        if at >= name.len() || name[at] != pattern[at] {
            return false;
        }
        at += 1;
    }
    name.len() == pattern.len()
}

/// What a command does.
const fn effect(name: &str) -> Effect {
    let mut at = 0;
    while at < EFFECTS.len() {
        let (pattern, effect) = EFFECTS[at];
        if fits(name, pattern) {
            return effect;
        }
        at += 1;
    }
    Effect::Nothing
}

/// Whether a parameter says how much there is to do.
const fn is_extent(name: &str) -> bool {
    let mut at = 0;
    while at < EXTENTS.len() {
        if fits(name, EXTENTS[at]) {
            return true;
        }
        at += 1;
    }
    false
}

/// A call, as far as it is looked at.
#[derive(Clone, Copy)]
struct Call {
    id: Id,
    /// Its first two arguments, as far as they are whole numbers.
    first: [u64; 2],
    /// How much there is to do, roughly.
    extent: u64,
}

/// An argument as a number.
trait Argument: Copy {
    fn number(self) -> u64;
}

macro_rules! whole {
    ($( $ty:ty )*) => { $(
        impl Argument for $ty {
            fn number(self) -> u64 {
                u64::try_from(self).unwrap_or(0)
            }
        }
    )* };
}

whole! { u8 u16 u32 u64 usize i8 i16 i32 i64 isize }

macro_rules! others {
    ($( $ty:ty )*) => { $(
        impl Argument for $ty {
            fn number(self) -> u64 {
                0
            }
        }
    )* };
}

others! { f32 f64 Ptr }

/// Makes a call that does this.
fn make<T>(effect: Effect, call: Call, real: impl FnOnce() -> T) -> T {
    match effect {
        Effect::Work => work(call, real),
        Effect::Lists => {
            let result = work(call, real);
            lose_track();
            result
        }
        Effect::Begin => {
            current::with(|state| {
                about_to_work(state, call);
                state.shadow.legacy.begin();
            });
            real()
        }
        Effect::End => {
            let result = timed(real);
            current::with_any(|state| state.shadow.legacy.end());
            result
        }
        Effect::NewList => {
            current::with(|state| {
                if call.first[1] == u64::from(gl::COMPILE_AND_EXECUTE) {
                    about_to_work(state, call);
                    state.shadow.legacy.lose_track();
                }
                state.shadow.legacy.compile();
            });
            real()
        }
        Effect::EndList => {
            let result = timed(real);
            current::with_any(|state| state.shadow.legacy.compiled());
            result
        }
        Effect::Read => {
            submit::flushed(End::Read);
            real()
        }
        Effect::ReadBack => read_back(call, real),
        Effect::Unseen => {
            lose_track();
            real()
        }
        Effect::Nothing => real(),
    }
}

fn lose_track() {
    current::with(|state| state.shadow.legacy.lose_track());
}

/// Work for the GPU, with a grant.
fn work<T>(call: Call, real: impl FnOnce() -> T) -> T {
    current::with(|state| about_to_work(state, call));
    timed(real)
}

/// What is read back is a group of its own, unless it is known to be little.
fn read_back<T>(call: Call, real: impl FnOnce() -> T) -> T {
    submit::flushed(End::Read);
    let began_ns = current::with(|state| {
        state.builder.call(NAMES[call.id as usize]);
        // Many of these commands do not say how much they read.
        let asks = if call.extent > 1 { state.about_to_read(call.extent) } else { asks_to_read(state, call) };
        asks.then(clock::now_ns)
    });
    let result = timed(real);
    if let Some(began_ns) = began_ns.flatten() {
        current::with(|state| state.submit_since(End::Read, began_ns));
    }
    result
}

fn asks_to_read(state: &mut State, call: Call) -> bool {
    let asks = session().is_wanted();
    if asks {
        about_to_work(state, call);
    }
    asks
}

fn timed<T>(real: impl FnOnce() -> T) -> T {
    let mut result = None;
    current::timed(|| result = Some(real()));
    result.expect("it was just made")
}

fn about_to_work(state: &mut State, call: Call) {
    state.builder.call(NAMES[call.id as usize]);
    state.make_room();
    let mut hash = DefaultHasher::new();
    (call.id as u16, call.first[0], call.extent.checked_ilog2(), state.shadow.target().size).hash(&mut hash);
    state.unknown_work(hash.finish());
    state.ask();
    state.begins();
}

macro_rules! hooks {
    ($( $api:ident $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ; )*) => {
        $( hook! { $api $name ( $($arg : $ty),* ) $(-> $ret)? } )*

        pub(in crate::hooks) fn of(id: Id) -> Option<Ptr> {
            match id {
                $(Id::$name => offered!($api $name),)*
            }
        }
    };
}

/// Hooks are those of desktop GL's own commands.
macro_rules! hook {
    (gl $name:ident ( $($arg:ident : $ty:ty),* ) $(-> $ret:ty)? ) => {
        #[allow(non_snake_case, reason = "names of the registry")]
        #[allow(clippy::too_many_arguments, reason = "signatures of the registry")]
        unsafe extern "C" fn $name($($arg: $ty),*) $(-> $ret)? {
            let numbers = [$(Argument::number($arg),)* 0, 0];
            #[allow(unused_mut, reason = "some have no arguments")]
            let mut extent = 1_u64;
            $(if const { is_extent(stringify!($arg)) } {
                extent = extent.saturating_mul(Argument::number($arg).max(1));
            })*
            let call = Call { id: Id::$name, first: [numbers[0], numbers[1]], extent };
            // SAFETY: the program's own call.
            make(const { effect(stringify!($name)) }, call, || unsafe { crate::entry::real::$name($($arg),*) })
        }
    };
    ($other:ident $($rest:tt)*) => {};
}

macro_rules! offered {
    (gl $name:ident) => {
        if const { matches!(effect(stringify!($name)), Effect::Nothing) } {
            None
        } else {
            let hook: crate::entry::kind::$name = $name;
            Some(hook as Ptr)
        }
    };
    ($other:ident $name:ident) => {
        None
    };
}

takt_gl_api::for_each_entry_point!(hooks);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::NAMES;

    #[test]
    fn patterns_name_something_and_the_first_that_fits_counts() {
        for (pattern, _) in EFFECTS {
            assert!(NAMES.iter().any(|name| fits(name, pattern)), "{pattern} names nothing");
        }
        assert_eq!(effect("glBindFragDataLocation"), Effect::Nothing);
        assert_eq!(effect("glBindBufferARB"), Effect::Unseen);
        assert_eq!(effect("glEndList"), Effect::EndList);
        assert_eq!(effect("glVertex3f"), Effect::Nothing);
        assert!(fits("glBegin", "glBegin") && !fits("glBeginQuery", "glBegin") && !fits("gl", "glB*"));
    }

    #[test]
    fn commands_of_others_are_left_to_other_hooks() {
        assert!(of(Id::glDrawArrays).is_none() && of(Id::glXSwapBuffers).is_none());
        assert!(of(Id::glBegin).is_some() && of(Id::glVertex3f).is_none());
    }
}
