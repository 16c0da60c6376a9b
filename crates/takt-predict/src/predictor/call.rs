//! What the caller says about commands.

use std::hash::{Hash as _, Hasher as _};

use super::Program;
use crate::cost::{Buffers, Capabilities, ProgramId, Target, TextureSize};
use crate::fragments::{
    Attribute, BufferId, Draw, Elements, Format, Input, Mode, RangeKey, RasterState, position_input,
};
use crate::table::Mixer;

/// State that a draw is subject to.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct DrawState<'a> {
    /// Viewport, scissor, culling.
    pub raster: RasterState,
    /// The framebuffer that is drawn to, by any number that tells it from others.
    pub target: u64,
    /// Depth test, blending, samples per pixel.
    pub capabilities: Capabilities,
    /// Sizes of the textures bound to the program's samplers.
    pub textures: &'a [TextureSize],
}

/// One draw call.
#[derive(Copy, Clone, Debug)]
pub struct DrawCall<'a> {
    /// The program in use.
    pub program: &'a Program,
    /// How vertices make primitives.
    pub mode: Mode,
    /// Which vertices.
    pub elements: Elements<'a>,
    /// Where the indices lie: buffer, and offset of the first. None for client memory.
    pub index_buffer: Option<(BufferId, u64)>,
    /// How many vertices.
    pub count: u32,
    /// How many instances; 1 if there is no talk of instances.
    pub instances: u32,
    /// One for each of [`Program::attributes`], in that order.
    pub inputs: &'a [Input<'a>],
    /// State.
    pub state: &'a DrawState<'a>,
    /// Fragments, where the caller knows them: for experiments that judge shader models alone.
    pub fragments: Option<f64>,
}

impl<'a> DrawCall<'a> {
    /// The call as estimators see it.
    pub(super) fn draw(&self) -> Draw<'a> {
        let main = position_input(self.inputs);
        let input = main.and_then(|at| self.inputs.get(at).zip(self.program.attributes().get(at)));
        let (positions, buffer) = match input {
            Some((Input::Array { attribute, buffer, .. }, slice)) => {
                // Components that the shader does not read are none.
                let read = u8::try_from(slice.components).unwrap_or(4);
                (Attribute { components: attribute.components.min(read), ..tight(*attribute) }, *buffer)
            }
            _ => (NOTHING, None),
        };
        let key = buffer.and_then(|buffer| self.range(buffer, &positions));
        let Self { mode, elements, count, instances, .. } = *self;
        Draw { mode, elements, count, instances, positions, key }
    }

    /// The name of the vertices, if all of them have one.
    fn range(&self, positions: BufferId, attribute: &Attribute<'_>) -> Option<RangeKey> {
        let (indices, first) = match (self.elements, self.index_buffer) {
            (Elements::Arrays { first }, _) => (None, u64::from(first)),
            (Elements::Indexed { .. }, Some((buffer, offset))) => (Some(buffer), offset),
            (Elements::Indexed { .. }, None) => return None,
        };
        let mut layout = Mixer(0);
        (attribute.offset, attribute.stride, attribute.components, attribute.format).hash(&mut layout);
        if let Elements::Indexed { format, .. } = self.elements {
            format.hash(&mut layout);
        }
        let (count, mode) = (self.count, self.mode);
        Some(RangeKey { positions, layout: layout.finish(), indices, first, count, mode })
    }
}

/// An attribute whose stride does not depend on its components.
fn tight(attribute: Attribute<'_>) -> Attribute<'_> {
    let size = attribute.format.vertex_size(attribute.components);
    let stride = if attribute.stride == 0 { size } else { attribute.stride };
    Attribute { stride, ..attribute }
}

const NOTHING: Attribute<'_> =
    Attribute { bytes: &[], offset: 0, stride: 0, components: 3, format: Format::F32 };

/// A dispatch of a compute shader.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct DispatchCall {
    /// The program in use.
    pub program: ProgramId,
    /// Tells uniforms that its length depends on from others.
    pub uniforms: u64,
    /// Workgroups; none if only the GPU knows.
    pub groups: Option<[u32; 3]>,
    /// Invocations of each of them.
    pub group_size: u32,
    /// What an invocation does, roughly ([`crate::glsl::effort`]).
    pub operations: f64,
}

impl DispatchCall {
    /// All invocations.
    pub fn invocations(&self) -> f64 {
        let groups =
            self.groups.unwrap_or(GROUPS_ASSUMED).iter().map(|side| f64::from(*side)).product::<f64>();
        groups * f64::from(self.group_size)
    }

    /// What tells it from others, behind the draws before it in the same group.
    pub(super) fn scene(&self, before: u64) -> u64 {
        let mut mixer = Mixer(before);
        (self.program, self.uniforms, self.groups).hash(&mut mixer);
        mixer.finish()
    }
}

/// Workgroups of a dispatch of which only the GPU knows how many it has.
const GROUPS_ASSUMED: [u32; 3] = [1024, 1, 1];

/// Commands other than draws and dispatches.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// `glClear`.
    Clear {
        /// Which buffers.
        buffers: Buffers,
        /// Of what.
        target: Target,
    },
    /// A target was switched away from, so that what was drawn must be written.
    Resolve(Target),
    /// A target with contents was attached.
    Load {
        /// Their size.
        bytes: u64,
    },
    /// `glTexImage2D` with data, `glTexSubImage2D`.
    Upload {
        /// Size of the data.
        bytes: u64,
    },
    /// `glGenerateMipmap`.
    Mipmap {
        /// Size of the largest level.
        bytes: u64,
    },
    /// `glCopyTexImage2D`, `glCopyTexSubImage2D`.
    Copy {
        /// Size of the copied area.
        bytes: u64,
    },
    /// `glBlitFramebuffer`, which may stretch, filter and resolve.
    Blit {
        /// Size of the area that is written.
        bytes: u64,
    },
    /// `glReadPixels`.
    Read {
        /// Size of the area.
        bytes: u64,
    },
    /// `glBufferData` with data, `glBufferSubData`.
    Buffer {
        /// Size of the data.
        bytes: u64,
    },
}

impl Work {
    /// Bytes that are moved; none for clears and resolves.
    pub fn bytes(&self) -> u64 {
        match *self {
            Self::Load { bytes }
            | Self::Upload { bytes }
            | Self::Mipmap { bytes }
            | Self::Copy { bytes }
            | Self::Blit { bytes }
            | Self::Read { bytes }
            | Self::Buffer { bytes } => bytes,
            Self::Clear { .. } | Self::Resolve(_) => 0,
        }
    }

    /// A bit for each kind: what the kinds take has little to do with one another.
    pub(super) fn kind(&self) -> u64 {
        match self {
            Self::Clear { .. } => 1,
            Self::Resolve(_) => 1 << 1,
            Self::Load { .. } => 1 << 2,
            Self::Upload { .. } => 1 << 3,
            Self::Mipmap { .. } => 1 << 4,
            Self::Copy { .. } => 1 << 5,
            Self::Blit { .. } => 1 << 6,
            Self::Read { .. } => 1 << 7,
            Self::Buffer { .. } => 1 << 8,
        }
    }
}

/// How a group ends.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Submission {
    /// `glFlush`, or something that implies it.
    Flush,
    /// `glFinish`.
    Finish,
    /// `eglSwapBuffers`; submit what is pending before by [`Flush`](Self::Flush).
    Swap(Target),
}
