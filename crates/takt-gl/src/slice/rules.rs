//! When a draw may be cut without a visible difference.
//!
//! Cutting changes how often vertex shaders run, when parts of a draw reach the GPU, and the
//! scissor in between. State that could notice one of these forbids it. This is the whole table;
//! only [`decide`] reads it.

use std::fmt;

use takt_predict::exactness::{Exactness, State, States, Way};

use crate::gl;
use crate::shadow::Counted;

/// Everything about a draw and its context that decides whether it may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Circumstances {
    /// `GL_TRIANGLES` and so on.
    pub mode: u32,
    /// Whether it goes through indices, and which type these have.
    pub indices: Option<u32>,
    /// Vertices, or draws where there are several, and instances, which GL refuses below zero.
    pub count: i32,
    /// See `count`.
    pub instances: i32,
    /// First vertex, which GL refuses below zero.
    pub first: i32,
    /// What its program does; none if that is not known.
    pub program: Option<Habits>,
    /// What is being counted.
    pub counted: Counted,
    /// What vertex shaders compute is being recorded; whether GL records what fits of too many primitives.
    pub feedback: Option<bool>,
    /// It reads from what it draws to.
    pub loops: bool,
    /// Its target gives up its samples when work is handed over.
    pub resolves: bool,
    /// There are several viewports with scissors of their own.
    pub viewports: bool,
    /// An index says where strips begin anew.
    pub restart: bool,
    /// Nothing is rasterised.
    pub discard: bool,
    /// The program listens to the messages of the driver.
    pub debugged: bool,
    /// Samples per pixel of its target.
    pub samples: u32,
    /// State in which a driver may be inexact.
    pub states: States,
}

/// What a program's shaders could do.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Habits {
    /// Write to images, buffers or counters.
    pub writes: bool,
    /// Keep data in the GPU's tile memory, or read the pixel they draw to.
    pub reads_target: bool,
    /// Have stages between vertices and fragments.
    pub other_stages: bool,
    /// Ask for the number of a primitive, or of a draw among several.
    pub counts_primitives: bool,
}

impl Habits {
    /// Reads the sources of a program. A word in a comment counts, too: that forbids too much, never
    /// too little.
    pub fn of(sources: &[&str], other_stages: bool) -> Self {
        let mut habits = Self { other_stages, ..Self::default() };
        for word in sources.iter().flat_map(|source| source.split(|c: char| !c.is_alphanumeric() && c != '_'))
        {
            habits.writes |=
                WRITES.contains(&word) || WRITES_BEGIN.iter().any(|begin| word.starts_with(begin));
            habits.reads_target |= READS_TARGET.iter().any(|part| word.contains(part));
            habits.counts_primitives |= matches!(word, "gl_PrimitiveID" | "gl_PrimitiveIDIn" | "gl_DrawID");
        }
        habits
    }
}

const WRITES: [&str; 2] = ["imageStore", "buffer"];
const WRITES_BEGIN: [&str; 3] = ["atomic", "imageAtomic", "beginInvocationInterlock"];
const READS_TARGET: [&str; 4] =
    ["pixel_local", "gl_LastFrag", "framebuffer_fetch", "fragment_shader_interlock"];

/// How a draw may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ways {
    /// Into ranges of primitives.
    pub ranges: bool,
    /// Into boxes of pixels.
    pub tiles: bool,
}

/// Why a draw may not be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Reason {
    /// GL refuses it, or it draws nothing.
    Invalid,
    /// How many workgroups it has is in a buffer of the GPU.
    Indirect,
    /// Nothing is known about its program.
    Program,
    /// Its shaders write elsewhere than to their target.
    Writes,
    /// Its shaders read what they draw to.
    ReadsTarget,
    /// It has geometry or tessellation shaders.
    Stages,
    /// A query is counting.
    Query,
    /// Transform feedback is recording.
    Feedback,
    /// It reads a texture that it draws to.
    Loop,
    /// Its target resolves samples on the way.
    Resolve,
    /// There are several viewports.
    Viewports,
    /// The program listens to messages, of which there would be more.
    Debugged,
    /// Its workgroups may wait for one another.
    Waits,
    /// No program could be made that does a part of it.
    NoPart,
    /// It has one primitive, or cannot be cut there, and boxes are no option.
    Small,
    /// The driver's self-test found that pieces differ from the whole.
    Inexact,
}

impl Reason {
    /// All there are.
    pub const ALL: [Self; 16] = [
        Self::Invalid,
        Self::Indirect,
        Self::Program,
        Self::Writes,
        Self::ReadsTarget,
        Self::Stages,
        Self::Query,
        Self::Feedback,
        Self::Loop,
        Self::Resolve,
        Self::Viewports,
        Self::Debugged,
        Self::Waits,
        Self::NoPart,
        Self::Small,
        Self::Inexact,
    ];
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "nothing to do",
            Self::Indirect => "indirect",
            Self::Program => "unknown program",
            Self::Writes => "shader writes to memory",
            Self::ReadsTarget => "shader reads its target",
            Self::Stages => "geometry or tessellation",
            Self::Query => "query in flight",
            Self::Feedback => "transform feedback",
            Self::Loop => "texture is also the target",
            Self::Resolve => "target resolves implicitly",
            Self::Viewports => "several viewports",
            Self::Debugged => "messages are listened to",
            Self::Waits => "workgroups may wait for one another",
            Self::NoPart => "no program for a part",
            Self::Small => "too small to cut",
            Self::Inexact => "pieces differ on this driver",
        })
    }
}

/// Says how a draw may be cut on a driver with that exactness, or why not.
pub fn decide(draw: &Circumstances, exactness: &Exactness) -> Result<Ways, Reason> {
    let forbidden = [
        (!is_valid(draw), Reason::Invalid),
        (draw.program.is_none(), Reason::Program),
        (draw.program.is_some_and(|program| program.writes), Reason::Writes),
        (draw.program.is_some_and(|program| program.reads_target), Reason::ReadsTarget),
        (draw.program.is_some_and(|program| program.other_stages), Reason::Stages),
        (draw.counted == Counted::Everything, Reason::Query),
        (draw.feedback.is_some_and(|fits| !fits || !is_list(draw)), Reason::Feedback),
        (draw.loops, Reason::Loop),
        (draw.resolves, Reason::Resolve),
        (draw.viewports, Reason::Viewports),
        (draw.debugged, Reason::Debugged),
    ];
    if let Some((_, reason)) = forbidden.iter().find(|(holds, _)| *holds) {
        return Err(*reason);
    }
    let counts = draw.program.is_some_and(|program| program.counts_primitives);
    let restarts = draw.restart && draw.indices.is_some();
    // A box takes all primitives once more, which is counted or recorded.
    let once = draw.counted == Counted::Primitives || draw.feedback.is_some();
    let allowed = Ways { ranges: !counts && !restarts, tiles: !draw.discard && !once };
    let exact = |way: Way| {
        let states = draw.states.with_if(draw.feedback.is_some(), State::Feedback);
        exactness.is_exact(way, draw.samples, states)
    };
    let ways =
        Ways { ranges: allowed.ranges && exact(Way::Ranges), tiles: allowed.tiles && exact(Way::Boxes) };
    let lost = ways != allowed && !ways.ranges && !ways.tiles;
    if lost { Err(Reason::Inexact) } else { Ok(ways) }
}

/// Everything about a dispatch and its context that decides whether it may be cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DispatchCircumstances {
    /// Workgroups; none if only the GPU knows.
    pub groups: Option<[u32; 3]>,
    /// How many there may be.
    pub groups_max: [u32; 3],
    /// Whether its program could be read, and still has its name.
    pub program: bool,
    /// Whether workgroups may wait for one another; what could not be read may do everything.
    pub waits: bool,
    /// What is being counted.
    pub counted: Counted,
    /// Transform feedback is recording, so that no other program may be used.
    pub feedback: bool,
    /// The program listens to the messages of the driver.
    pub debugged: bool,
}

/// Says whether a dispatch may be cut, and of how many workgroups it is, or why not.
pub fn decide_dispatch(dispatch: &DispatchCircumstances) -> Result<[u32; 3], Reason> {
    let groups = dispatch.groups.ok_or(Reason::Indirect)?;
    let valid = groups.iter().zip(dispatch.groups_max).all(|(side, most)| (1..=most).contains(side));
    let forbidden = [
        (!valid, Reason::Invalid),
        (!dispatch.program, Reason::Program),
        (dispatch.waits, Reason::Waits),
        (dispatch.counted == Counted::Everything, Reason::Query),
        (dispatch.feedback, Reason::Feedback),
        (dispatch.debugged, Reason::Debugged),
    ];
    forbidden.iter().find(|(holds, _)| *holds).map_or(Ok(groups), |(_, reason)| Err(*reason))
}

/// Whether ranges of a draw are recorded as the whole draw is: one behind the other.
fn is_list(draw: &Circumstances) -> bool {
    matches!(draw.mode, gl::POINTS | gl::LINES | gl::TRIANGLES) && draw.instances == 1
}

/// Whether GL takes the call, as far as the call itself tells. For any other mistake, it
/// finds with every piece, and the error that it keeps is the same.
fn is_valid(draw: &Circumstances) -> bool {
    let indices = draw
        .indices
        .is_none_or(|kind| matches!(kind, gl::UNSIGNED_BYTE | gl::UNSIGNED_SHORT | gl::UNSIGNED_INT));
    draw.mode <= gl::TRIANGLE_FAN && draw.count > 0 && draw.instances > 0 && draw.first >= 0 && indices
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Circumstances = Circumstances {
        mode: gl::TRIANGLES,
        indices: None,
        count: 6,
        instances: 1,
        first: 0,
        program: Some(Habits {
            writes: false,
            reads_target: false,
            other_stages: false,
            counts_primitives: false,
        }),
        counted: Counted::Nothing,
        feedback: None,
        loops: false,
        resolves: false,
        viewports: false,
        restart: false,
        discard: false,
        debugged: false,
        samples: 0,
        states: States::NONE,
    };

    fn with(change: impl FnOnce(&mut Circumstances)) -> Result<Ways, Reason> {
        let mut draw = PLAIN;
        change(&mut draw);
        decide(&draw, &Exactness::untried())
    }

    fn habit(change: impl FnOnce(&mut Habits)) -> Result<Ways, Reason> {
        let mut habits = Habits::default();
        change(&mut habits);
        with(|draw| draw.program = Some(habits))
    }

    #[test]
    fn the_table() {
        let both = Ok(Ways { ranges: true, tiles: true });
        assert_eq!(decide(&PLAIN, &Exactness::untried()), both);
        assert_eq!(with(|draw| draw.indices = Some(gl::UNSIGNED_SHORT)), both);
        assert_eq!(with(|draw| draw.restart = true), both, "without indices nothing restarts");
        let tiles = Ok(Ways { ranges: false, tiles: true });
        assert_eq!(with(|draw| (draw.restart, draw.indices) = (true, Some(gl::UNSIGNED_INT))), tiles);
        assert_eq!(habit(|program| program.counts_primitives = true), tiles);
        let ranges = Ok(Ways { ranges: true, tiles: false });
        assert_eq!(with(|draw| draw.discard = true), ranges);
        assert_eq!(with(|draw| draw.states = State::Points.into()), ranges);
        assert_eq!(with(|draw| (draw.states, draw.samples) = (State::Blend.into(), 4)), ranges);
        assert_eq!(with(|draw| (draw.states, draw.samples) = (State::Blend.into(), 3)), Err(Reason::Inexact));

        assert_eq!(habit(|program| program.writes = true), Err(Reason::Writes));
        assert_eq!(habit(|program| program.reads_target = true), Err(Reason::ReadsTarget));
        assert_eq!(habit(|program| program.other_stages = true), Err(Reason::Stages));
        assert_eq!(with(|draw| draw.program = None), Err(Reason::Program));
        assert_eq!(with(|draw| draw.counted = Counted::Primitives), ranges);
        assert_eq!(with(|draw| draw.counted = Counted::Everything), Err(Reason::Query));
        assert_eq!(with(|draw| draw.feedback = Some(true)), ranges);
        assert_eq!(with(|draw| draw.feedback = Some(false)), Err(Reason::Feedback), "too many are refused");
        let changes: [fn(&mut Circumstances); 2] =
            [|draw| draw.mode = gl::TRIANGLE_STRIP, |draw| draw.instances = 2];
        for change in changes {
            let draw = with(|draw| {
                draw.feedback = Some(true);
                change(draw);
            });
            assert_eq!(draw, Err(Reason::Feedback));
        }
        assert_eq!(with(|draw| draw.loops = true), Err(Reason::Loop));
        assert_eq!(with(|draw| draw.resolves = true), Err(Reason::Resolve));
        assert_eq!(with(|draw| draw.viewports = true), Err(Reason::Viewports));
        assert_eq!(with(|draw| draw.debugged = true), Err(Reason::Debugged));
    }

    #[test]
    fn the_table_of_dispatches() {
        const PLAIN: DispatchCircumstances = DispatchCircumstances {
            groups: Some([4, 5, 6]),
            groups_max: [4, 8, 8],
            program: true,
            waits: false,
            counted: Counted::Primitives,
            feedback: false,
            debugged: false,
        };
        assert_eq!(decide_dispatch(&PLAIN), Ok([4, 5, 6]));
        for (dispatch, reason) in [
            (DispatchCircumstances { groups: None, ..PLAIN }, Reason::Indirect),
            (DispatchCircumstances { groups: Some([5, 1, 1]), ..PLAIN }, Reason::Invalid),
            (DispatchCircumstances { groups: Some([4, 0, 1]), ..PLAIN }, Reason::Invalid),
            (DispatchCircumstances { program: false, ..PLAIN }, Reason::Program),
            (DispatchCircumstances { waits: true, ..PLAIN }, Reason::Waits),
            (DispatchCircumstances { counted: Counted::Everything, ..PLAIN }, Reason::Query),
            (DispatchCircumstances { feedback: true, ..PLAIN }, Reason::Feedback),
            (DispatchCircumstances { debugged: true, ..PLAIN }, Reason::Debugged),
        ] {
            assert_eq!(decide_dispatch(&dispatch), Err(reason), "{dispatch:?}");
        }
    }

    #[test]
    fn what_gl_refuses_is_handed_over_as_it_is() {
        for refused in [
            with(|draw| draw.count = -1),
            with(|draw| draw.count = 0),
            with(|draw| draw.instances = 0),
            with(|draw| draw.first = -1),
            with(|draw| draw.mode = 7),
            with(|draw| draw.indices = Some(gl::FLOAT)),
        ] {
            assert_eq!(refused, Err(Reason::Invalid));
        }
    }

    #[test]
    fn shaders_give_away_what_they_do() {
        let of = |source| Habits::of(&["void main() {}", source], false);
        assert_eq!(of("uniform image2D buffers; void main() { ambuffer(); }"), Habits::default());
        assert!(of("layout(std430) buffer Data { int x; };").writes);
        assert!(of("imageStore(i, p, c)").writes && of("imageAtomicAdd(i, p, 1)").writes);
        assert!(of("uniform atomic_uint n;").writes && of("atomicAdd(x, 1)").writes);
        assert!(of("gl_FragColor = gl_LastFragData[0];").reads_target);
        assert!(of("#extension GL_EXT_shader_framebuffer_fetch : enable").reads_target);
        assert!(of("__pixel_localEXT Data { vec4 x; } data;").reads_target);
        assert!(of("int n = gl_PrimitiveID;").counts_primitives && of("gl_DrawID").counts_primitives);
        assert!(Habits::of(&[], true).other_stages);
    }

    #[test]
    fn reasons_have_names_of_their_own() {
        let names: std::collections::BTreeSet<String> = Reason::ALL.iter().map(Reason::to_string).collect();
        assert_eq!(names.len(), Reason::ALL.len());
        assert!(Reason::ALL.iter().enumerate().all(|(at, reason)| *reason as usize == at));
    }
}
