//! Declarations, of the shader and of the language.

use super::env::{Output, StoredVariable, Symbol};
use super::{Lowerer, Value};
use crate::glsl::ast::{
    ArraySpec, BaseSpec, Block, Declaration, Declarator, ExprId, Function, Qualifiers, Storage, StructSpec,
    TypeSpec,
};
use crate::glsl::code::Id;
use crate::glsl::error::{ErrorKind, GlslError, Result};
use crate::glsl::interface::{self, Leaves};
use crate::glsl::limits::{STRUCT_DEPTH_MAX, VARIABLE_SCALARS_MAX};
use crate::glsl::op::Op;
use crate::glsl::token::Name;
use crate::glsl::types::{Base, Field, Scalar, Struct, Type};

/// Constants of the language, with the least values that ES 3.00 asks of a driver.
const CONSTANTS: &[(&str, u32)] = &[
    ("gl_MaxVertexAttribs", 16),
    ("gl_MaxVertexUniformVectors", 256),
    ("gl_MaxVaryingVectors", 15),
    ("gl_MaxVertexOutputVectors", 16),
    ("gl_MaxFragmentInputVectors", 15),
    ("gl_MaxVertexTextureImageUnits", 16),
    ("gl_MaxCombinedTextureImageUnits", 32),
    ("gl_MaxTextureImageUnits", 16),
    ("gl_MaxFragmentUniformVectors", 224),
    ("gl_MaxDrawBuffers", 4),
    ("gl_MinProgramTexelOffset", (-8_i32).cast_unsigned()),
    ("gl_MaxProgramTexelOffset", 7),
];
/// Elements of `gl_FragData`.
const DRAW_BUFFERS: u32 = 4;

impl Lowerer<'_> {
    pub(super) fn declare_built_ins(&mut self) -> Result<()> {
        for (name, value) in CONSTANTS {
            if let Some(name) = self.names.find(name) {
                let ids = vec![self.code.bits(*value)?];
                self.declare(0, name, &Value { ty: Type::INT, ids })?;
            }
        }
        let vec4 = Type::vector(Scalar::Float, 4);
        if self.is_vertex() {
            self.outputs.position = self.built_in_output("gl_Position", vec4)?;
            self.built_in_output("gl_PointSize", Type::FLOAT)?;
            self.built_in_input("gl_VertexID", Type::INT, Op::VertexIndex)?;
            self.built_in_input("gl_InstanceID", Type::INT, Op::InstanceIndex)?;
        } else {
            self.built_in_output("gl_FragColor", vec4)?;
            self.built_in_output("gl_FragData", Type { array: Some(DRAW_BUFFERS), ..vec4 })?;
            self.built_in_output("gl_FragDepth", Type::FLOAT)?;
            self.built_in_output("gl_FragDepthEXT", Type::FLOAT)?;
            self.built_in_input("gl_FragCoord", vec4, Op::Opaque)?;
            self.built_in_input("gl_FrontFacing", Type::BOOL, Op::Opaque)?;
            self.built_in_input("gl_PointCoord", Type::vector(Scalar::Float, 2), Op::Opaque)?;
        }
        self.declare_depth_range()
    }

    fn built_in_output(&mut self, name: &str, ty: Type) -> Result<Option<Output>> {
        let Some(name) = self.names.find(name) else {
            return Ok(None);
        };
        self.output(0, name, ty, None).map(Some)
    }

    /// A result; until it is written it holds an instruction of its own.
    fn output(&mut self, line: u32, name: Name, ty: Type, variable: Option<usize>) -> Result<Output> {
        let scalars = self.size(line, ty)?;
        let unwritten = self.code.push(Op::Opaque, 0, 0, 0)?;
        let slot = self.allocate(line, scalars, unwritten)?;
        self.bind(name, Symbol::Variable(StoredVariable { ty, slot, uniform: None }));
        let output = Output { slot, scalars, unwritten, variable };
        self.outputs.variables.push(output);
        Ok(output)
    }

    fn built_in_input(&mut self, name: &str, ty: Type, op: Op) -> Result<()> {
        let Some(name) = self.names.find(name) else {
            return Ok(());
        };
        let mut ids = Vec::new();
        for _ in 0..self.size(0, ty)? {
            ids.push(if op == Op::Opaque { self.code.push(op, 0, 0, 0)? } else { self.code.leaf(op, 0)? });
        }
        self.declare(0, name, &Value { ty, ids }).map(|_slot| ())
    }

    fn declare_depth_range(&mut self) -> Result<()> {
        let Some(name) = self.names.find("gl_DepthRange") else {
            return Ok(());
        };
        let field = |name: &str, offset| Field { name: name.to_owned(), ty: Type::FLOAT, offset };
        let fields = vec![field("near", 0), field("far", 1), field("diff", 2)];
        let number = self.add_struct(0, "gl_DepthRangeParameters".to_owned(), fields)?;
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(self.code.push(Op::Opaque, 0, 0, 0)?);
        }
        self.declare(0, name, &Value { ty: Type::of(Base::Struct(number)), ids }).map(|_slot| ())
    }

    /// Looks at a function's types once, so that structures named there are known.
    pub(super) fn resolve_signature(&mut self, function: &Function) -> Result<()> {
        self.resolve(function.returns)?;
        function.parameters.iter().try_for_each(|parameter| self.resolve(parameter.ty).map(|_ty| ()))
    }

    /// The type that is written; `Some(0)` elements if the size is to come from a value.
    pub(super) fn resolve(&mut self, spec: TypeSpec) -> Result<Type> {
        let base = match spec.base {
            BaseSpec::BuiltIn(base) => base,
            BaseSpec::Named(name) => match self.find(name) {
                Some(Symbol::Struct(number)) => Base::Struct(number),
                _ => {
                    let name = self.text(name).to_owned();
                    return Err(GlslError::new(spec.line, ErrorKind::UnknownName(name)));
                }
            },
            BaseSpec::Inline(number) => self.define_struct(number)?,
        };
        let array = self.array_length(spec.line, spec.array)?;
        let ty = Type { base, array };
        self.size(spec.line, ty)?;
        Ok(ty)
    }

    fn array_length(&mut self, line: u32, array: ArraySpec) -> Result<Option<u32>> {
        match array {
            ArraySpec::None => Ok(None),
            ArraySpec::Unsized => Ok(Some(0)),
            ArraySpec::Sized(size) => {
                let value = self.expr(size)?;
                let length = match value.ids.as_slice() {
                    [id] => self.code.constant(*id),
                    _ => None,
                };
                match length {
                    Some(length @ 1..=VARIABLE_SCALARS_MAX) => Ok(Some(length)),
                    Some(0) | None => Err(GlslError::types(line, "array size is no positive constant")),
                    Some(_) => Err(GlslError::limit(line, "VARIABLE_SCALARS_MAX")),
                }
            }
        }
    }

    fn define_struct(&mut self, number: u32) -> Result<Base> {
        let tree = self.tree;
        let spec: &StructSpec = &tree.structs[number as usize];
        let fields = self.fields(spec.line, &spec.fields)?;
        let text = spec.name.map_or("", |name| self.text(name)).to_owned();
        let known = self.add_struct(spec.line, text, fields)?;
        if let Some(name) = spec.name {
            self.bind(name, Symbol::Struct(known));
        }
        Ok(Base::Struct(known))
    }

    fn fields(&mut self, line: u32, specs: &[(Name, TypeSpec)]) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        let mut offset = 0_u32;
        for (name, spec) in specs {
            let ty = self.resolve(*spec)?;
            fields.push(Field { name: self.text(*name).to_owned(), ty, offset });
            offset = offset.saturating_add(self.size(line, ty)?);
        }
        Ok(fields)
    }

    fn add_struct(&mut self, line: u32, name: String, fields: Vec<Field>) -> Result<u16> {
        let mut total = 0_u32;
        let mut depth = 0;
        for field in &fields {
            total = total.saturating_add(self.size(line, field.ty)?);
            if let Base::Struct(inner) = field.ty.base {
                depth = depth.max(self.structs[usize::from(inner)].depth);
            }
        }
        if total == 0 {
            return Err(GlslError::syntax(line, "structure without members"));
        }
        if depth >= STRUCT_DEPTH_MAX {
            return Err(GlslError::limit(line, "STRUCT_DEPTH_MAX"));
        }
        let number = u16::try_from(self.structs.len());
        let number = number.map_err(|_full| GlslError::limit(line, "STRUCT_DEPTH_MAX"))?;
        self.structs.push(Struct { name, fields, scalars: total, depth: depth + 1 });
        self.size(line, Type::of(Base::Struct(number)))?;
        Ok(number)
    }

    pub(super) fn declare_global(&mut self, declaration: &Declaration) -> Result<()> {
        let base = self.resolve(declaration.ty)?;
        for declarator in &declaration.variables {
            let ty = self.declarator_type(declaration.line, base, declarator)?;
            self.declare_one(declaration.line, declaration.qualifiers, ty, declarator)?;
        }
        Ok(())
    }

    pub(super) fn declarator_type(&mut self, line: u32, base: Type, declarator: &Declarator) -> Result<Type> {
        let array = self.array_length(line, declarator.array)?;
        let ty = Type { array: array.or(base.array), ..base };
        self.size(line, ty)?;
        Ok(ty)
    }

    fn declare_one(
        &mut self,
        line: u32,
        qualifiers: Qualifiers,
        ty: Type,
        declarator: &Declarator,
    ) -> Result<()> {
        let vertex = self.is_vertex();
        match qualifiers.storage {
            Storage::Uniform => self.declare_uniform(line, declarator.name, ty),
            Storage::Attribute => self.declare_input(line, declarator.name, ty, qualifiers.location),
            Storage::In | Storage::Varying if !vertex || qualifiers.storage == Storage::In => {
                self.declare_input(line, declarator.name, ty, qualifiers.location)
            }
            Storage::Varying | Storage::Out => {
                let location = self.location(qualifiers.location)?;
                let index = self.interface.outputs.len();
                let first = self.interface.outputs.last().map_or(0, |last| last.first + last.scalars);
                let output = self.output(line, declarator.name, ty, Some(index))?;
                let name = self.text(declarator.name).to_owned();
                let scalars = output.scalars;
                let variable = interface::Variable { name, ty, first, scalars, location, active: false };
                self.interface.outputs.push(variable);
                Ok(())
            }
            _ => self.declare_plain(line, ty, declarator),
        }
    }

    fn location(&mut self, value: Option<ExprId>) -> Result<Option<u32>> {
        let Some(value) = value else {
            return Ok(None);
        };
        let value = self.expr(value)?;
        Ok(value.ids.first().and_then(|id| self.code.constant(*id)))
    }

    fn declare_input(&mut self, line: u32, name: Name, ty: Type, location: Option<ExprId>) -> Result<()> {
        let location = self.location(location)?;
        let scalars = self.size(line, ty)?;
        let first = self.interface.inputs.last().map_or(0, |last| last.first + last.scalars);
        let op = if self.is_vertex() { Op::Attribute } else { Op::Input };
        let ids = (first..first + scalars).map(|word| self.code.leaf(op, word)).collect::<Result<_>>()?;
        self.declare(line, name, &Value { ty, ids })?;
        let name = self.text(name).to_owned();
        let variable = interface::Variable { name, ty, first, scalars, location, active: false };
        self.interface.inputs.push(variable);
        Ok(())
    }

    fn declare_uniform(&mut self, line: u32, name: Name, ty: Type) -> Result<()> {
        let text = self.text(name).to_owned();
        let (first, ids) = self.uniform_words(line, ty)?;
        let slot = self.declare(line, name, &Value { ty, ids })?;
        self.bind(name, Symbol::Variable(StoredVariable { ty, slot, uniform: Some(first) }));
        Leaves { structs: &self.structs, block: None, interface: &mut self.interface }.add(&text, ty, first)
    }

    fn uniform_words(&mut self, line: u32, ty: Type) -> Result<(u32, Vec<Id>)> {
        let scalars = self.size(line, ty)?;
        let first = self.interface.uniform_words;
        // The scalars of all variables are bounded, and these are among them.
        self.interface.uniform_words += scalars;
        let words = first..first + scalars;
        Ok((first, words.map(|word| self.code.leaf(Op::Uniform, word)).collect::<Result<_>>()?))
    }

    pub(super) fn declare_block(&mut self, block: &Block) -> Result<()> {
        let block_name = self.text(block.name).to_owned();
        let fields = self.fields(block.line, &block.fields)?;
        let structure = self.add_struct(block.line, block_name.clone(), fields.clone())?;
        let array = match block.instance {
            Some((_, array)) => self.array_length(block.line, array)?,
            None => None,
        };
        let ty = Type { base: Base::Struct(structure), array };
        let (first, ids) = self.uniform_words(block.line, ty)?;
        let instance = block.instance.map(|(name, _)| name);
        let one = Type { array: None, ..ty };
        for element in 0..array.unwrap_or(1) {
            let name = if array.is_some() { format!("{block_name}[{element}]") } else { block_name.clone() };
            let block = Some((block_name.as_str(), name.as_str()));
            let mut leaves = Leaves { structs: &self.structs, block, interface: &mut self.interface };
            if instance.is_some() {
                let scalars = self.structs.get(usize::from(structure)).map_or(0, |found| found.scalars);
                leaves.add(&name, one, first + element * scalars)?;
                continue;
            }
            for field in &fields {
                leaves.add(&field.name, field.ty, first + field.offset)?;
            }
        }
        if let Some(instance) = instance {
            let slot = self.declare(block.line, instance, &Value { ty, ids })?;
            self.bind(instance, Symbol::Variable(StoredVariable { ty, slot, uniform: Some(first) }));
            return Ok(());
        }
        for ((name, _), field) in block.fields.iter().zip(&fields) {
            let start = field.offset as usize;
            let end = start + self.size(block.line, field.ty)? as usize;
            let slot =
                self.declare(block.line, *name, &Value { ty: field.ty, ids: ids[start..end].to_vec() })?;
            let uniform = Some(first + field.offset);
            self.bind(*name, Symbol::Variable(StoredVariable { ty: field.ty, slot, uniform }));
        }
        Ok(())
    }

    /// A variable of a function, a constant, or a global that is neither input nor output.
    pub(super) fn declare_plain(&mut self, line: u32, ty: Type, declarator: &Declarator) -> Result<()> {
        let Some(value) = declarator.value else {
            let zero = self.code.bits(0)?;
            let scalars = self.size(line, ty)? as usize;
            self.spend(line, scalars)?;
            return self.declare(line, declarator.name, &Value { ty, ids: vec![zero; scalars] }).map(|_| ());
        };
        let value = self.expr(value)?;
        let sized = Type { array: if ty.array == Some(0) { value.ty.array } else { ty.array }, ..ty };
        if value.ty != sized {
            return Err(GlslError::types(line, format!("{sized} initialised with {}", value.ty)));
        }
        self.declare(line, declarator.name, &value).map(|_slot| ())
    }
}
