//! Types of GLSL ES.

use std::fmt;

use super::limits::VARIABLE_SCALARS_MAX;

/// What a component is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scalar {
    /// `float`
    Float,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `bool`
    Bool,
}

/// The shape of a texture that a sampler reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Texture {
    /// `sampler2D` and its integer relatives
    D2,
    /// `sampler3D`
    D3,
    /// `samplerCube`
    Cube,
    /// `sampler2DArray`
    D2Array,
    /// `samplerExternalOES`
    External,
}

/// A type without an array around it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// `void`
    Void,
    /// A scalar, vector or matrix; vectors have one column.
    Number {
        /// What a component is.
        scalar: Scalar,
        /// Columns of a matrix, else 1.
        columns: u8,
        /// Components of a column.
        rows: u8,
    },
    /// A sampler.
    Sampler {
        /// What it reads from.
        texture: Texture,
        /// What a lookup yields.
        scalar: Scalar,
        /// Whether a lookup compares with a reference depth.
        shadow: bool,
    },
    /// A structure, by its number in the shader.
    Struct(u16),
}

/// A type of the shader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Type {
    /// The type of one element.
    pub base: Base,
    /// Number of elements; `None` for what is no array.
    pub array: Option<u32>,
}

impl Base {
    pub(super) const fn vector(scalar: Scalar, rows: u8) -> Self {
        Self::Number { scalar, columns: 1, rows }
    }
}

impl Type {
    pub(super) const VOID: Self = Self { base: Base::Void, array: None };
    pub(super) const FLOAT: Self = Self::vector(Scalar::Float, 1);
    pub(super) const INT: Self = Self::vector(Scalar::Int, 1);
    pub(super) const UINT: Self = Self::vector(Scalar::Uint, 1);
    pub(super) const BOOL: Self = Self::vector(Scalar::Bool, 1);

    pub(super) const fn of(base: Base) -> Self {
        Self { base, array: None }
    }

    pub(super) const fn vector(scalar: Scalar, rows: u8) -> Self {
        Self::of(Base::vector(scalar, rows))
    }

    pub(super) const fn matrix(columns: u8, rows: u8) -> Self {
        Self::of(Base::Number { scalar: Scalar::Float, columns, rows })
    }

    /// Component type, columns and rows, if it is a number and no array.
    pub(super) const fn shape(self) -> Option<(Scalar, u8, u8)> {
        match (self.base, self.array) {
            (Base::Number { scalar, columns, rows }, None) => Some((scalar, columns, rows)),
            _ => None,
        }
    }

    /// The built-in type of that name.
    pub(super) fn named(name: &str) -> Option<Base> {
        let number = |scalar, columns, rows| Base::Number { scalar, columns, rows };
        let sampler = |texture, scalar, shadow| Base::Sampler { texture, scalar, shadow };
        Some(match name {
            "void" => Base::Void,
            "float" => number(Scalar::Float, 1, 1),
            "int" => number(Scalar::Int, 1, 1),
            "uint" => number(Scalar::Uint, 1, 1),
            "bool" => number(Scalar::Bool, 1, 1),
            "sampler2D" => sampler(Texture::D2, Scalar::Float, false),
            "sampler3D" => sampler(Texture::D3, Scalar::Float, false),
            "samplerCube" => sampler(Texture::Cube, Scalar::Float, false),
            "sampler2DArray" => sampler(Texture::D2Array, Scalar::Float, false),
            "samplerExternalOES" => sampler(Texture::External, Scalar::Float, false),
            "sampler2DShadow" => sampler(Texture::D2, Scalar::Float, true),
            "samplerCubeShadow" => sampler(Texture::Cube, Scalar::Float, true),
            "sampler2DArrayShadow" => sampler(Texture::D2Array, Scalar::Float, true),
            "isampler2D" => sampler(Texture::D2, Scalar::Int, false),
            "isampler3D" => sampler(Texture::D3, Scalar::Int, false),
            "isamplerCube" => sampler(Texture::Cube, Scalar::Int, false),
            "isampler2DArray" => sampler(Texture::D2Array, Scalar::Int, false),
            "usampler2D" => sampler(Texture::D2, Scalar::Uint, false),
            "usampler3D" => sampler(Texture::D3, Scalar::Uint, false),
            "usamplerCube" => sampler(Texture::Cube, Scalar::Uint, false),
            "usampler2DArray" => sampler(Texture::D2Array, Scalar::Uint, false),
            _ => return Self::named_shape(name),
        })
    }

    fn named_shape(name: &str) -> Option<Base> {
        let digit = |byte: u8| (b'2'..=b'4').contains(&byte).then(|| byte - b'0');
        let (scalar, rest) = match name.as_bytes() {
            [b'm', b'a', b't', columns] => {
                let size = digit(*columns)?;
                return Some(Base::Number { scalar: Scalar::Float, columns: size, rows: size });
            }
            [b'm', b'a', b't', columns, b'x', rows] => {
                let (columns, rows) = (digit(*columns)?, digit(*rows)?);
                return Some(Base::Number { scalar: Scalar::Float, columns, rows });
            }
            [b'v', b'e', b'c', rest] => (Scalar::Float, *rest),
            [b'i', b'v', b'e', b'c', rest] => (Scalar::Int, *rest),
            [b'u', b'v', b'e', b'c', rest] => (Scalar::Uint, *rest),
            [b'b', b'v', b'e', b'c', rest] => (Scalar::Bool, *rest),
            _ => return None,
        };
        Some(Base::vector(scalar, digit(rest)?))
    }
}

/// A member of a structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Scalars before it.
    pub offset: u32,
}

/// A structure, or a uniform block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Struct {
    /// Its name; empty if it has none.
    pub name: String,
    /// Its members in order.
    pub fields: Vec<Field>,
    /// Scalars of one value.
    pub scalars: u32,
    /// Levels of structures, itself included.
    pub depth: u32,
}

/// Scalars of a value of that type; `None` above [`VARIABLE_SCALARS_MAX`].
pub(super) fn scalars(ty: Type, structs: &[Struct]) -> Option<u32> {
    let one = match ty.base {
        Base::Void => 0,
        Base::Number { columns, rows, .. } => u32::from(columns) * u32::from(rows),
        Base::Sampler { .. } => 1,
        Base::Struct(number) => structs.get(usize::from(number)).map_or(0, |found| found.scalars),
    };
    one.checked_mul(ty.array.unwrap_or(1)).filter(|scalars| *scalars <= VARIABLE_SCALARS_MAX)
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        self.array.map_or(Ok(()), |length| write!(f, "[{length}]"))
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |scalar: &Scalar| match scalar {
            Scalar::Float => "",
            Scalar::Int => "i",
            Scalar::Uint => "u",
            Scalar::Bool => "b",
        };
        match self {
            Self::Void => write!(f, "void"),
            Self::Number { scalar: Scalar::Float, columns: 1, rows: 1 } => write!(f, "float"),
            Self::Number { scalar: Scalar::Int, columns: 1, rows: 1 } => write!(f, "int"),
            Self::Number { scalar: Scalar::Uint, columns: 1, rows: 1 } => write!(f, "uint"),
            Self::Number { scalar: Scalar::Bool, columns: 1, rows: 1 } => write!(f, "bool"),
            Self::Number { scalar, columns: 1, rows } => write!(f, "{}vec{rows}", prefix(scalar)),
            Self::Number { columns, rows, .. } if columns == rows => write!(f, "mat{columns}"),
            Self::Number { columns, rows, .. } => write!(f, "mat{columns}x{rows}"),
            Self::Sampler { texture, scalar, shadow } => {
                let texture = match texture {
                    Texture::D2 => "2D",
                    Texture::D3 => "3D",
                    Texture::Cube => "Cube",
                    Texture::D2Array => "2DArray",
                    Texture::External => "ExternalOES",
                };
                write!(f, "{}sampler{texture}{}", prefix(scalar), if *shadow { "Shadow" } else { "" })
            }
            Self::Struct(number) => write!(f, "struct#{number}"),
        }
    }
}
