//! Programs of compute shaders.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use takt_predict::cost::ProgramId;
use takt_predict::glsl::{Effort, UniformData, effort};

use super::part_program::{PartProgram, is_sampler};
use super::program::{UNIFORMS_MAX, active_uniforms, uniform_location};
use crate::entry::real;
use crate::gl;
use crate::slice::{self, Variant};

/// A linked program of a compute shader.
#[derive(Debug)]
pub struct Compute {
    /// Equal for equal sources.
    pub id: ProgramId,
    /// Invocations of a workgroup, to each side.
    pub group_size: [u32; 3],
    /// What an invocation does, if the source could be read.
    pub effort: Option<Effort>,
    source: String,
    /// Locations of samplers.
    units: BTreeSet<i32>,
    /// Whole numbers that uniforms hold, by location, samplers left out.
    numbers: BTreeMap<i32, i64>,
    /// Its name together with them, until one changes.
    variant: Option<Variant>,
    /// Programs that do parts of its workgroups, by the context that uses them: each sets its own base,
    /// which others must not see. None where none can be made.
    parts: BTreeMap<u64, Option<PartProgram>>,
}

impl Compute {
    /// Looks at a program that was linked from this source.
    pub(super) fn new(name: u32, source: String, extensions: &[String]) -> Self {
        let extensions: Vec<&str> = extensions.iter().map(String::as_str).collect();
        let mut group_size = [1_i32; 3];
        // SAFETY: the program is linked and has a compute shader; there is room for three numbers.
        unsafe {
            real::glGetProgramiv(name, gl::COMPUTE_WORK_GROUP_SIZE, group_size.as_mut_ptr().cast());
        };
        let samplers = active_uniforms(name).into_iter().filter(|active| is_sampler(active.kind));
        Self {
            id: ProgramId::of_compute(&source),
            group_size: group_size.map(|side| u32::try_from(side).unwrap_or(1)),
            effort: effort(&source, &extensions).ok(),
            source,
            units: samplers.filter_map(|active| uniform_location(name, active.base())).collect(),
            numbers: BTreeMap::new(),
            variant: None,
            parts: BTreeMap::new(),
        }
    }

    /// Invocations of a workgroup.
    pub fn invocations(&self) -> u32 {
        self.group_size.iter().product()
    }

    /// `glUniform*`.
    pub fn set(&mut self, location: i32, data: &UniformData<'_>) {
        self.changed();
        let number = match data {
            UniformData::Ints([number, ..]) => i64::from(*number),
            UniformData::Uints([number, ..]) => i64::from(*number),
            _ => return,
        };
        let room = self.numbers.len() < UNIFORMS_MAX && !self.units.contains(&location);
        if room && self.numbers.insert(location, number) != Some(number) {
            self.variant = None;
        }
    }

    /// A uniform or the binding of a block is another one.
    pub fn changed(&mut self) {
        self.parts.values_mut().flatten().for_each(|part| part.is_stale = true);
    }

    /// Names the program together with the whole numbers its uniforms hold.
    pub fn variant(&mut self) -> Variant {
        *self.variant.get_or_insert_with(|| {
            let mut hash = DefaultHasher::new();
            self.numbers.hash(&mut hash);
            slice::variant(self.id, hash.finish())
        })
    }

    /// The program that does a part of the workgroups of this one for a context, with the same uniforms and
    /// bindings; none if there can be none. The context must be current.
    pub fn part(&mut self, name: u32, context: u64) -> Option<&PartProgram> {
        let source = &self.source;
        let part = self.parts.entry(context).or_insert_with(|| PartProgram::make(name, source)).as_mut()?;
        part.follow(name);
        Some(part)
    }

    /// Names of the programs for parts, which go with this one.
    pub fn part_names(&self) -> Vec<u32> {
        self.parts.values().flatten().map(|part| part.name).collect()
    }
}
