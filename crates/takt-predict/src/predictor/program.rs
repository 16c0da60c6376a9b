//! A linked program, as far as predictions need it.

use std::cell::Cell;
use std::hash::Hasher as _;
use std::ops::Range;

use crate::cost::ProgramId;
use crate::fragments::AffinePosition;
use crate::glsl::{
    BlockMember, GlslError, MemberLayout, Options, PositionSlice, Sampler, Shader, SliceAttribute, Stage,
    UniformData, UniformValues, analyse,
};
use crate::shaders::ProgramFeatures;
use crate::table::Mixer;

/// A program with the values of its uniforms.
///
/// Sources are whatever an app says. There is always a program; [`problem`](Self::problem) tells
/// what could not be read of it, and predictions then make do with less.
#[derive(Clone, Debug)]
pub struct Program {
    id: ProgramId,
    vertex: Option<Shader>,
    samplers: Vec<Sampler>,
    features: Option<ProgramFeatures>,
    problem: Option<ProgramProblem>,
    uniforms: UniformValues,
    /// Words that positions depend on.
    watched: Vec<Range<u32>>,
    /// Uniforms in blocks that positions depend on, whose values lie in buffers.
    in_blocks: Vec<usize>,
    /// Those of them whose values are not known.
    missing: Vec<usize>,
    /// A hash of these words, until one of them changes.
    position_hash: Cell<Option<u64>>,
    /// The matrix that belongs to such a hash.
    pub(super) matrix: Cell<Option<(u64, AffinePosition)>>,
}

/// What could not be read of a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{stage:?} shader: {source}")]
pub struct ProgramProblem {
    /// Which shader.
    pub stage: Stage,
    /// Why.
    pub source: GlslError,
}

/// A uniform of a program's vertex shader.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct UniformSlot(usize);

impl Program {
    /// Reads a program. Extensions are those that the driver offers, as for [`Options`].
    pub fn new(vertex: &str, fragment: &str, extensions: &[&str]) -> Self {
        let id = ProgramId::of(vertex, fragment);
        let read = |source, stage| {
            analyse(source, &Options { stage, extensions }).map_err(|source| ProgramProblem { stage, source })
        };
        let (vertex, fragment) = (read(vertex, Stage::Vertex), read(fragment, Stage::Fragment));
        let problem = [&vertex, &fragment].into_iter().find_map(|shader| shader.as_ref().err().cloned());
        let (vertex, fragment) = (vertex.ok(), fragment.ok());
        let features = vertex.as_ref().zip(fragment.as_ref()).map(|(a, b)| ProgramFeatures::of(a, b));
        let both = vertex.iter().chain(&fragment);
        let samplers = both.flat_map(|shader| shader.interface.samplers.iter().cloned()).collect();
        let uniforms =
            vertex.as_ref().map(|shader| UniformValues::new(&shader.interface)).unwrap_or_default();
        let watched = slice_of(vertex.as_ref()).map(PositionSlice::uniform_words).unwrap_or_default();
        let in_blocks = in_blocks(vertex.as_ref(), &watched);
        let missing = in_blocks.clone();
        let (position_hash, matrix) = (Cell::new(None), Cell::new(None));
        Self {
            id,
            vertex,
            samplers,
            features,
            problem,
            uniforms,
            watched,
            in_blocks,
            missing,
            position_hash,
            matrix,
        }
    }

    /// Equal for equal sources.
    pub fn id(&self) -> ProgramId {
        self.id
    }

    /// What could not be read, if anything.
    pub fn problem(&self) -> Option<&ProgramProblem> {
        self.problem.as_ref()
    }

    /// Features of both shaders, if both could be read.
    pub fn features(&self) -> Option<&ProgramFeatures> {
        self.features.as_ref()
    }

    /// The attributes that draws must hand over, in this order: those that positions depend on.
    pub fn attributes(&self) -> &[SliceAttribute] {
        slice_of(self.vertex.as_ref()).map_or(&[], PositionSlice::attributes)
    }

    /// Samplers of both shaders.
    pub fn samplers(&self) -> &[Sampler] {
        &self.samplers
    }

    /// Finds a uniform of the vertex shader, for [`set_uniform`](Self::set_uniform). There is none
    /// for those that only the fragment shader has, and they need not be set.
    pub fn uniform(&self, name: &str) -> Option<UniformSlot> {
        // GL names the first element of an array as well as the array itself.
        let name = name.strip_suffix("[0]").unwrap_or(name);
        let uniforms = &self.vertex.as_ref()?.interface.uniforms;
        uniforms.iter().position(|uniform| uniform.name == name).map(UniformSlot)
    }

    /// Sets a uniform from its component `start` on, as `glUniform*` does.
    pub fn set_uniform(&mut self, slot: UniformSlot, start: usize, data: UniformData<'_>) {
        let uniform = self.vertex.as_ref().and_then(|shader| shader.interface.uniforms.get(slot.0));
        let Some(uniform) = uniform else { return };
        if self.uniforms.set(uniform, start, data).changed {
            let words = uniform.first..uniform.first + uniform.words;
            let matters = |watched: &Range<u32>| watched.start < words.end && words.start < watched.end;
            if self.watched.iter().any(matters) {
                self.position_hash.set(None);
            }
        }
        self.note(slot, true);
    }

    /// Uniforms in blocks that positions depend on; all others need not be read.
    pub fn block_uniforms(&self) -> impl Iterator<Item = (UniformSlot, &BlockMember)> {
        let uniforms = self.vertex.as_ref().map_or(&[][..], |shader| &shader.interface.uniforms);
        let member = |at: &usize| Some((UniformSlot(*at), uniforms.get(*at)?.block.as_ref()?));
        self.in_blocks.iter().filter_map(member)
    }

    /// Takes the value of a uniform from the bytes of its block, as far as they are known. Without
    /// them, positions are not known either.
    pub fn read_uniform(&mut self, slot: UniformSlot, layout: &MemberLayout, bytes: Option<&[u8]>) {
        let uniform = self.vertex.as_ref().and_then(|shader| shader.interface.uniforms.get(slot.0));
        let Some(uniform) = uniform else { return };
        let read = bytes.and_then(|bytes| self.uniforms.read(uniform, layout, bytes));
        if read != Some(false) {
            self.position_hash.set(None);
        }
        self.note(slot, read.is_some());
    }

    /// Notes whether the value of a uniform in a block is known.
    fn note(&mut self, slot: UniformSlot, known: bool) {
        let was_known = !self.missing.contains(&slot.0);
        if known == was_known || !self.in_blocks.contains(&slot.0) {
            return;
        }
        self.position_hash.set(None);
        if known {
            self.missing.retain(|missing| *missing != slot.0);
        } else {
            self.missing.push(slot.0);
        }
    }

    /// What computes positions, if that is known.
    pub(super) fn slice(&self) -> Option<&PositionSlice> {
        slice_of(self.vertex.as_ref()).filter(|_| self.missing.is_empty())
    }

    pub(super) fn uniforms(&self) -> &UniformValues {
        &self.uniforms
    }

    /// Tells the uniforms that positions depend on from all others, those of equal programs
    /// included.
    pub fn position_hash(&self) -> u64 {
        if let Some(hash) = self.position_hash.get() {
            return hash;
        }
        let mut hasher = Mixer(0);
        if !self.missing.is_empty() {
            hasher.write_usize(self.missing.len());
        }
        for range in &self.watched {
            let (pairs, rest) = self.uniforms.words(range).as_chunks::<2>();
            pairs.iter().for_each(|[a, b]| hasher.write_u64(u64::from(*a) << 32 | u64::from(*b)));
            rest.iter().for_each(|word| hasher.write_u32(*word));
        }
        let hash = hasher.finish();
        self.position_hash.set(Some(hash));
        hash
    }
}

fn slice_of(vertex: Option<&Shader>) -> Option<&PositionSlice> {
    vertex?.position.as_ref()?.slice.as_ref().ok()
}

/// Uniforms in blocks that matter.
fn in_blocks(vertex: Option<&Shader>, watched: &[Range<u32>]) -> Vec<usize> {
    let uniforms = vertex.map_or(&[][..], |shader| &shader.interface.uniforms);
    let matters = |first: u32, words: u32| {
        watched.iter().any(|watched| watched.start < first + words && first < watched.end)
    };
    let in_block = uniforms.iter().enumerate().filter(|(_, uniform)| uniform.block.is_some());
    in_block.filter(|(_, uniform)| matters(uniform.first, uniform.words)).map(|(at, _)| at).collect()
}
