//! Inputs, outputs and uniforms of a shader.

use super::block::BlockMember;
use super::error::{GlslError, Result};
use super::limits::UNIFORMS_MAX;
use super::types::{Base, Struct, Texture, Type};

/// Which part of the pipeline a shader is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Runs once per vertex.
    Vertex,
    /// Runs once per fragment.
    Fragment,
}

/// An attribute, a varying or a fragment output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Scalars of its kind before it.
    pub first: u32,
    /// How many scalars it has.
    pub scalars: u32,
    /// From `layout(location = n)`.
    pub location: Option<u32>,
    /// Whether the shader's results depend on it, or it is written.
    pub active: bool,
}

/// A uniform as GL names it: members of structures are uniforms of their own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Uniform {
    /// For example `lights[1].colour`; an array of numbers has no subscript.
    pub name: String,
    /// Its type, an array included.
    pub ty: Type,
    /// Its first word in [`UniformValues`](super::UniformValues).
    pub first: u32,
    /// How many words it has.
    pub words: u32,
    /// What it is in a uniform block, if it is in one.
    pub block: Option<BlockMember>,
    /// Whether the shader's results depend on it.
    pub active: bool,
}

/// A sampler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sampler {
    /// Its name.
    pub name: String,
    /// What it reads from.
    pub texture: Texture,
    /// Number of elements, 1 if it is no array.
    pub length: u32,
}

/// Everything a shader declares towards the outside.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Interface {
    /// Attributes of a vertex shader, varyings that a fragment shader reads.
    pub inputs: Vec<Variable>,
    /// Varyings that a vertex shader writes, outputs of an ES 3.00 fragment shader.
    pub outputs: Vec<Variable>,
    /// Uniforms that are not samplers.
    pub uniforms: Vec<Uniform>,
    /// Samplers.
    pub samplers: Vec<Sampler>,
    /// Words of all uniforms.
    pub uniform_words: u32,
}

/// How many variables have one, two, three and four components.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sizes(pub [u32; 4]);

impl Sizes {
    /// Counts active variables. A matrix is as many vectors as it has columns, an array as many
    /// as it has elements: that is how they occupy locations.
    #[must_use]
    pub fn of(variables: &[Variable]) -> Self {
        let mut sizes = [0_u32; 4];
        for variable in variables.iter().filter(|variable| variable.active) {
            if let Base::Number { rows, .. } = variable.ty.base {
                sizes[usize::from(rows.clamp(1, 4)) - 1] += variable.scalars / u32::from(rows.max(1));
            }
        }
        Self(sizes)
    }

    /// All variables.
    #[must_use]
    pub fn count(self) -> u32 {
        self.0.iter().sum()
    }

    /// Components of all variables.
    #[must_use]
    pub fn floats(self) -> u32 {
        self.0.iter().zip(1..).map(|(count, size)| count * size).sum()
    }
}

/// Where leaves of a uniform go.
pub(super) struct Leaves<'a> {
    pub(super) structs: &'a [Struct],
    /// A block by its name in the source and by its name in GL.
    pub(super) block: Option<(&'a str, &'a str)>,
    pub(super) interface: &'a mut Interface,
}

impl Leaves<'_> {
    /// Adds the leaves of a uniform whose first word is given. Nesting is bounded by the parser,
    /// the number of leaves by the number of scalars a variable may have.
    pub(super) fn add(&mut self, name: &str, ty: Type, first: u32) -> Result<()> {
        if self.interface.uniforms.len() + self.interface.samplers.len() >= UNIFORMS_MAX {
            return Err(GlslError::limit(0, "UNIFORMS_MAX"));
        }
        match ty.base {
            Base::Void => {}
            Base::Sampler { texture, .. } => {
                let length = ty.array.unwrap_or(1);
                self.interface.samplers.push(Sampler { name: name.to_owned(), texture, length });
            }
            Base::Number { columns, rows, .. } => self.interface.uniforms.push(Uniform {
                name: name.to_owned(),
                ty,
                first,
                words: u32::from(columns) * u32::from(rows) * ty.array.unwrap_or(1),
                block: self.block.map(|block| member(block, name)),
                active: false,
            }),
            Base::Struct(number) => {
                let Some(found) = self.structs.get(usize::from(number)) else {
                    return Ok(());
                };
                for element in 0..ty.array.unwrap_or(1) {
                    let prefix = match ty.array {
                        Some(_) => format!("{name}[{element}]."),
                        None => format!("{name}."),
                    };
                    for field in &found.fields {
                        let first = first + element * found.scalars + field.offset;
                        self.add(&format!("{prefix}{}", field.name), field.ty, first)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// GL leaves out which element of an array of blocks a member is of.
fn member((declared, block): (&str, &str), name: &str) -> BlockMember {
    let inside = name.strip_prefix(block).filter(|inside| inside.starts_with('.'));
    let name = inside.map_or_else(|| name.to_owned(), |inside| format!("{declared}{inside}"));
    BlockMember { block: block.to_owned(), name }
}
