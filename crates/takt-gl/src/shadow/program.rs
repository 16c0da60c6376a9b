//! Programs: what shaders read, and the values of their uniforms.
//!
//! Sources are taken when shaders are compiled and read when a linked program is first used. What
//! the predictor calls attributes, uniforms and samplers has names; GL calls have locations, which
//! the driver is asked for once per link.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use takt_predict::glsl::UniformData;
use takt_predict::predictor::{self, UniformSlot};
use takt_predict::programs::Sources;

use super::block::Blocks;
use super::compute::Compute;
use crate::entry::{Ptr, real};
use crate::gl;
use crate::predict;
use crate::slice::{self, Habits, Variant};

/// Uniforms of a program that are looked at, array elements counted.
pub(super) const UNIFORMS_MAX: usize = 4096;

/// Room for the name of a uniform.
pub(super) const NAME_BYTES: usize = 256;

/// A shader's source.
#[derive(Clone, Default, Debug)]
pub struct Source {
    /// Which stage it is for.
    pub stage: u32,
    /// What `glShaderSource` said last.
    pub text: String,
    /// What was compiled.
    pub compiled: String,
    /// Programs that it is attached to.
    pub programs: u32,
    /// Its name was given up; it goes when no program has it any more.
    pub deleted: bool,
}

/// A program object.
#[derive(Default, Debug)]
pub struct Program {
    /// Names of the attached shaders.
    pub shaders: Vec<u32>,
    link: Link,
    /// A dispatch of it is being cut; then it must not go yet.
    pub(super) cutting: u32,
    /// It goes when it is not being cut any more.
    pub(super) leaves: bool,
}

/// What a program was linked from.
#[derive(Default, Debug)]
pub struct Stages {
    /// Source of its vertex shader.
    pub vertex: Option<String>,
    /// Source of its fragment shader.
    pub fragment: Option<String>,
    /// Source of its compute shader.
    pub compute: Option<String>,
    /// Whether it has other shaders than those of vertices and fragments.
    pub others: bool,
}

#[derive(Default, Debug)]
enum Link {
    /// Not linked, or from something that cannot be read.
    #[default]
    Unknown,
    /// Linked from these, but not yet looked at.
    Pending { vertex: String, fragment: String, others: bool },
    /// The same for a compute shader.
    PendingCompute { source: String },
    /// Looked at.
    Read(Box<Linked>),
    /// The same for a compute shader.
    Compute(Box<Compute>),
}

/// A linked program.
#[derive(Debug)]
pub struct Linked {
    /// As the predictor sees it.
    pub program: predictor::Program,
    /// Location of each of the program's attributes.
    pub attributes: Vec<Option<u32>>,
    /// Samplers with the units they look at, in the program's order.
    pub samplers: Vec<SamplerUnit>,
    /// Blocks of uniforms that positions depend on.
    pub blocks: Blocks,
    /// What its shaders could do.
    pub habits: Habits,
    /// What it was made from, if that is all of it and the predictor wants it.
    pub sources: Option<Sources>,
    slots: BTreeMap<i32, Slot>,
    /// Whole numbers that uniforms hold, by location, samplers left out.
    numbers: BTreeMap<i32, i64>,
    /// Its name together with them, until one changes.
    variant: Option<Variant>,
}

/// Where a sampler looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SamplerUnit {
    /// Texture unit, from 0.
    pub unit: u32,
    /// Binding point there.
    pub target: u32,
}

#[derive(Clone, Copy, Debug)]
enum Slot {
    Uniform {
        slot: UniformSlot,
        /// Components of it that come before.
        start: usize,
        /// Components from here to its end.
        room: usize,
        /// Whether GL cuts what is too long for it, instead of refusing it.
        array: bool,
    },
    Sampler(usize),
}

impl Program {
    /// `glLinkProgram`, with the sources that were compiled; without any, from something else. Programs
    /// for parts of what it was before, which are to be deleted.
    pub fn linked(&mut self, stages: Stages) -> Vec<u32> {
        let Stages { vertex, fragment, compute, others } = stages;
        let parts = self.part_names();
        self.link = match (vertex, fragment, compute) {
            (Some(vertex), Some(fragment), _) => Link::Pending { vertex, fragment, others },
            (None, None, Some(source)) => Link::PendingCompute { source },
            _ => Link::Unknown,
        };
        parts
    }

    /// Names of programs for parts of it, which go with it.
    pub fn part_names(&mut self) -> Vec<u32> {
        self.compute().map(|compute| compute.part_names()).unwrap_or_default()
    }

    /// The linked compute program, if it is one and has been read.
    pub fn compute(&mut self) -> Option<&mut Compute> {
        match &mut self.link {
            Link::Compute(compute) => Some(compute),
            _ => None,
        }
    }

    /// The same; reads it if that is still to be done.
    pub fn read_compute(&mut self, name: u32, extensions: &[String]) -> Option<&mut Compute> {
        if let Link::PendingCompute { .. } = self.link {
            self.link = match std::mem::take(&mut self.link) {
                Link::PendingCompute { source } if is_linked(name) => {
                    Link::Compute(Box::new(Compute::new(name, source, extensions)))
                }
                _ => Link::Unknown,
            };
        }
        self.compute()
    }

    /// A dispatch of it begins to be cut.
    pub(crate) fn cut_begins(&mut self) {
        self.cutting += 1;
    }

    /// It was cut: whether the program was deleted meanwhile, and is to go now.
    pub(crate) fn cut_ends(&mut self) -> bool {
        self.cutting = self.cutting.saturating_sub(1);
        self.cutting == 0 && std::mem::take(&mut self.leaves)
    }

    /// `glUniform*`.
    pub fn set_uniform(&mut self, name: u32, extensions: &[String], location: i32, data: UniformData<'_>) {
        if let Some(compute) = self.read_compute(name, extensions) {
            compute.set(location, &data);
        } else if let Some(linked) = self.read(name, extensions) {
            linked.set(location, data);
        }
    }

    /// The linked program, if there is one; reads it if that is still to be done.
    pub fn read(&mut self, name: u32, extensions: &[String]) -> Option<&mut Linked> {
        if let Link::Pending { .. } = self.link {
            self.link = match std::mem::take(&mut self.link) {
                Link::Pending { vertex, fragment, others } if is_linked(name) => {
                    let habits = Habits::of(&[&vertex, &fragment], others);
                    let mut linked = Linked::new(name, &vertex, &fragment, (extensions, habits));
                    if !others && predict::are_sources_wanted() {
                        linked.sources = Some(Sources { vertex, fragment });
                    }
                    Link::Read(Box::new(linked))
                }
                _ => Link::Unknown,
            };
        }
        self.known()
    }

    /// The linked program, if it has been read.
    pub fn known(&mut self) -> Option<&mut Linked> {
        match &mut self.link {
            Link::Read(linked) => Some(linked),
            _ => None,
        }
    }
}

impl Linked {
    fn new(name: u32, vertex: &str, fragment: &str, (extensions, habits): (&[String], Habits)) -> Self {
        let extensions: Vec<&str> = extensions.iter().map(String::as_str).collect();
        let program = predictor::Program::new(vertex, fragment, &extensions);
        let attributes = program
            .attributes()
            .iter()
            .map(|attribute| attribute_location(name, &attribute.name).map(|at| at + attribute.column))
            .collect();
        let units =
            program.samplers().iter().map(|_| SamplerUnit { unit: 0, target: gl::TEXTURE_2D }).collect();
        let (slots, numbers) = (BTreeMap::new(), BTreeMap::new());
        let active = active_uniforms(name);
        let blocks = Blocks::of(name, &program, &active);
        let mut linked = Self {
            program,
            attributes,
            samplers: units,
            blocks,
            habits,
            sources: None,
            slots,
            numbers,
            variant: None,
        };
        for active in &active {
            linked.locate(name, active);
        }
        linked
    }

    /// Notes the locations of a uniform.
    fn locate(&mut self, program: u32, active: &Active) {
        let base = active.base();
        if let Some(target) = sampler_target(active.kind) {
            let at = self.program.samplers().iter().position(|sampler| sampler.name == base);
            if let Some((at, location)) = at.zip(uniform_location(program, base)) {
                self.samplers[at].target = target;
                self.slots.insert(location, Slot::Sampler(at));
            }
            return;
        }
        let Some(slot) = self.program.uniform(base) else {
            return;
        };
        let components = components(active.kind);
        let array = base.len() < active.name.len();
        for element in 0..active.length.min(UNIFORMS_MAX.saturating_sub(self.slots.len())) {
            let found = match element {
                0 => uniform_location(program, base),
                _ => uniform_location(program, &format!("{base}[{element}]")),
            };
            if let Some(location) = found {
                let (start, room) = (element * components, (active.length - element) * components);
                self.slots.insert(location, Slot::Uniform { slot, start, room, array });
            }
        }
    }

    /// Of so many components that a call has for a uniform, those that GL reads, as far as that is
    /// known.
    pub fn taken(&self, location: i32, count: usize) -> usize {
        match self.slots.get(&location) {
            Some(Slot::Uniform { room, array, .. }) if *array || count <= *room => count.min(*room),
            _ => 0,
        }
    }

    /// `glUniform*`.
    pub fn set(&mut self, location: i32, data: UniformData<'_>) {
        let count = match &data {
            UniformData::Floats(values) => values.len(),
            UniformData::Ints(values) => values.len(),
            UniformData::Uints(values) => values.len(),
        };
        let taken = self.taken(location, count) > 0;
        let found = self.slots.get(&location);
        let number = match &data {
            UniformData::Ints([number, ..]) => Some(i64::from(*number)),
            UniformData::Uints([number, ..]) => Some(i64::from(*number)),
            _ => None,
        };
        let room = self.numbers.len() < UNIFORMS_MAX;
        if let Some(number) = number.filter(|_| room && !matches!(found, Some(Slot::Sampler(_))))
            && self.numbers.insert(location, number) != Some(number)
        {
            self.variant = None;
        }
        match (found, data) {
            (Some(Slot::Uniform { slot, start, .. }), data) if taken => {
                self.program.set_uniform(*slot, *start, data);
            }
            (Some(Slot::Sampler(at)), UniformData::Ints([unit, ..])) => {
                self.samplers[*at].unit = u32::try_from(*unit).unwrap_or(0);
            }
            _ => {}
        }
    }

    /// Names the program together with the whole numbers its uniforms hold.
    pub fn variant(&mut self) -> Variant {
        *self.variant.get_or_insert_with(|| {
            let mut hash = DefaultHasher::new();
            self.numbers.hash(&mut hash);
            slice::variant(self.program.id(), hash.finish())
        })
    }
}

/// A uniform as the driver lists it.
#[derive(Debug)]
pub(super) struct Active {
    /// Its index in the list.
    pub(super) number: u32,
    name: String,
    pub(super) kind: u32,
    pub(super) length: usize,
}

impl Active {
    /// Its name; that of an array without the first element.
    pub(super) fn base(&self) -> &str {
        self.name.strip_suffix("[0]").unwrap_or(&self.name)
    }
}

pub(super) fn is_linked(program: u32) -> bool {
    let mut status = 0_i32;
    // SAFETY: the program exists, as it was just linked or used; there is room for one number.
    unsafe { real::glGetProgramiv(program, gl::LINK_STATUS, (&raw mut status).cast()) };
    status != 0
}

pub(super) fn active_uniforms(program: u32) -> Vec<Active> {
    let mut count = 0_i32;
    // SAFETY: the program is linked; there is room for one number.
    unsafe { real::glGetProgramiv(program, gl::ACTIVE_UNIFORMS, (&raw mut count).cast()) };
    let count = u32::try_from(count).unwrap_or(0);
    (0..count.min(u32::try_from(UNIFORMS_MAX).unwrap_or(0))).map(|at| active_uniform(program, at)).collect()
}

fn active_uniform(program: u32, at: u32) -> Active {
    let mut name = [0_u8; NAME_BYTES];
    let (mut bytes, mut length, mut kind) = (0_i32, 0_i32, 0_u32);
    let room = i32::try_from(NAME_BYTES).unwrap_or(0);
    let (bytes_at, length_at, kind_at): (Ptr, Ptr, Ptr) =
        ((&raw mut bytes).cast(), (&raw mut length).cast(), (&raw mut kind).cast());
    // SAFETY: the number is below the count of a linked program; everything that is written has
    // the room that is stated.
    unsafe {
        real::glGetActiveUniform(program, at, room, bytes_at, length_at, kind_at, name.as_mut_ptr().cast())
    };
    let name = &name[..usize::try_from(bytes).unwrap_or(0).min(NAME_BYTES)];
    let length = usize::try_from(length).unwrap_or(0);
    Active { number: at, name: String::from_utf8_lossy(name).into_owned(), kind, length }
}

pub(super) fn uniform_location(program: u32, name: &str) -> Option<i32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the program is linked, the name ends with a zero byte.
    let location = unsafe { real::glGetUniformLocation(program, name.as_ptr().cast_mut().cast()) };
    (location >= 0).then_some(location)
}

fn attribute_location(program: u32, name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    // SAFETY: the program is linked, the name ends with a zero byte.
    let location = unsafe { real::glGetAttribLocation(program, name.as_ptr().cast_mut().cast()) };
    u32::try_from(location).ok()
}

/// Binding point of a sampler's type; none if it is no sampler.
fn sampler_target(kind: u32) -> Option<u32> {
    Some(match kind {
        0x8B5E | 0x8B62 | 0x8DCA | 0x8DD2 => gl::TEXTURE_2D,
        0x8B5F | 0x8DCB | 0x8DD3 => gl::TEXTURE_3D,
        0x8B60 | 0x8DC5 | 0x8DCC | 0x8DD4 => gl::TEXTURE_CUBE_MAP,
        0x8DC1 | 0x8DC4 | 0x8DCF | 0x8DD7 => gl::TEXTURE_2D_ARRAY,
        0x8D66 => gl::TEXTURE_EXTERNAL_OES,
        _ => return None,
    })
}

/// Components of a uniform's type.
fn components(kind: u32) -> usize {
    match kind {
        0x8B50 | 0x8B53 | 0x8B57 | 0x8DC6 => 2,
        0x8B51 | 0x8B54 | 0x8B58 | 0x8DC7 => 3,
        0x8B52 | 0x8B55 | 0x8B59 | 0x8DC8 | 0x8B5A => 4,
        0x8B5B => 9,
        0x8B5C => 16,
        // 2x3, 2x4, 3x2, 3x4, 4x2, 4x3
        0x8B65 | 0x8B67 => 6,
        0x8B66 | 0x8B69 => 8,
        0x8B68 | 0x8B6A => 12,
        _ => 1,
    }
}
