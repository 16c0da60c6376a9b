//! Declarations: variables, structures, uniform blocks, functions.

use super::Parser;
use crate::glsl::ast::{
    ArraySpec, BaseSpec, Block, Declaration, Declarator, Function, Item, Parameter, Qualifiers, Storage,
    StructSpec, TypeSpec,
};
use crate::glsl::error::Result;
use crate::glsl::token::{Name, Tok};
use crate::glsl::types::Type;

/// Words that qualify without changing the computation.
const IDLE_QUALIFIERS: &[&str] = &["highp", "mediump", "lowp", "invariant", "centroid", "smooth"];
const QUALIFIERS: &[&str] =
    &["const", "uniform", "attribute", "varying", "in", "out", "inout", "flat", "layout"];

impl Parser<'_> {
    /// Anything at the outermost level.
    pub(super) fn item(&mut self) -> Result<()> {
        if self.take(";") {
            return Ok(());
        }
        if self.is("precision") {
            return self.skip_precision();
        }
        let line = self.line();
        let qualifiers = self.qualifiers()?;
        if self.is(";") || self.redeclares() {
            // `layout(std140) uniform;` and `invariant gl_Position;` change nothing that matters.
            while !self.take(";") {
                self.at += 1;
                if self.tok() == Tok::End {
                    return Err(self.unexpected("`;`"));
                }
            }
            return Ok(());
        }
        if let (Tok::Word(name), Tok::Punct("{")) = (self.tok(), self.peek(1))
            && !self.is("struct")
        {
            self.at += 1;
            return self.uniform_block(name, line);
        }
        let ty = self.type_spec()?;
        if let (Tok::Word(name), Tok::Punct("(")) = (self.tok(), self.peek(1)) {
            self.at += 1;
            return self.function(name, ty, line);
        }
        let declaration = self.variables(qualifiers, ty, line)?;
        self.tree.items.push(Item::Declare(declaration));
        Ok(())
    }

    /// `invariant name, name;` after its first word.
    fn redeclares(&self) -> bool {
        let Tok::Word(name) = self.tok() else {
            return false;
        };
        let is_type = Type::named(self.names.text(name)).is_some() || self.struct_names.contains(&name);
        !is_type && matches!(self.peek(1), Tok::Punct("," | ";"))
    }

    pub(super) fn skip_precision(&mut self) -> Result<()> {
        self.at += 3;
        self.expect(";")
    }

    /// Whether a declaration starts here, rather than an expression.
    pub(super) fn starts_declaration(&self) -> bool {
        let Tok::Word(name) = self.tok() else {
            return false;
        };
        let text = self.names.text(name);
        if text == "struct" || IDLE_QUALIFIERS.contains(&text) || QUALIFIERS.contains(&text) {
            return true;
        }
        let is_type = Type::named(text).is_some() || self.struct_names.contains(&name);
        is_type && (matches!(self.peek(1), Tok::Word(_)) || self.array_then_name())
    }

    /// `type[..] name`, as opposed to the constructor `type[..](`.
    fn array_then_name(&self) -> bool {
        if self.peek(1) != Tok::Punct("[") {
            return false;
        }
        let rest = self.tokens.get(self.at + 2..).unwrap_or(&[]);
        // Sizes are short; looking further would let a file of brackets cost quadratic time.
        let mut depth = 1_usize;
        for (index, token) in rest.iter().take(64).enumerate() {
            match token.tok {
                Tok::Punct("[") => depth += 1,
                Tok::Punct("]") => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return matches!(rest.get(index + 1).map(|next| next.tok), Some(Tok::Word(_)));
            }
        }
        false
    }

    /// A declaration within a function, with its semicolon.
    pub(super) fn declaration(&mut self) -> Result<Declaration> {
        let line = self.line();
        let qualifiers = self.qualifiers()?;
        let ty = self.type_spec()?;
        self.variables(qualifiers, ty, line)
    }

    fn variables(&mut self, qualifiers: Qualifiers, ty: TypeSpec, line: u32) -> Result<Declaration> {
        let mut variables = Vec::new();
        while !self.take(";") {
            if !variables.is_empty() {
                self.expect(",")?;
            }
            let name = self.name()?;
            let array = self.array()?;
            let value = if self.take("=") { Some(self.assignment()?) } else { None };
            variables.push(Declarator { name, array, value });
        }
        Ok(Declaration { qualifiers, ty, variables, line })
    }

    fn qualifiers(&mut self) -> Result<Qualifiers> {
        let mut found = Qualifiers::default();
        while let Tok::Word(name) = self.tok() {
            let names = self.names;
            let text = names.text(name);
            match text {
                _ if IDLE_QUALIFIERS.contains(&text) => {}
                "const" if found.storage == Storage::None => found.storage = Storage::Const,
                // `const in` is a parameter that is never assigned to.
                "const" => {}
                "uniform" => found.storage = Storage::Uniform,
                "attribute" => found.storage = Storage::Attribute,
                "varying" => found.storage = Storage::Varying,
                "in" => found.storage = Storage::In,
                "out" => found.storage = Storage::Out,
                "inout" => found.storage = Storage::InOut,
                "flat" => found.flat = true,
                "layout" => {
                    self.at += 1;
                    self.layout(&mut found)?;
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        Ok(found)
    }

    fn layout(&mut self, found: &mut Qualifiers) -> Result<()> {
        self.expect("(")?;
        while !self.take(")") {
            let name = self.name()?;
            if self.take("=") {
                let value = self.assignment()?;
                if self.names.text(name) == "location" {
                    found.location = Some(value);
                }
            }
            if !self.is(")") {
                self.expect(",")?;
            }
        }
        Ok(())
    }

    pub(super) fn type_spec(&mut self) -> Result<TypeSpec> {
        let line = self.line();
        while let Tok::Word(name) = self.tok()
            && IDLE_QUALIFIERS.contains(&self.names.text(name))
        {
            self.at += 1;
        }
        let base = if self.is("struct") {
            self.structure()?
        } else if let Some(base) = self.type_name(0) {
            self.at += 1;
            BaseSpec::BuiltIn(base)
        } else {
            BaseSpec::Named(self.name()?)
        };
        let array = self.array()?;
        Ok(TypeSpec { base, array, line })
    }

    pub(super) fn array(&mut self) -> Result<ArraySpec> {
        if !self.take("[") {
            return Ok(ArraySpec::None);
        }
        if self.take("]") {
            return Ok(ArraySpec::Unsized);
        }
        let size = self.nested(Self::expression)?;
        self.expect("]")?;
        Ok(ArraySpec::Sized(size))
    }

    fn structure(&mut self) -> Result<BaseSpec> {
        let line = self.line();
        self.expect("struct")?;
        let name = if self.is("{") { None } else { Some(self.name()?) };
        self.struct_names.extend(name);
        let fields = self.nested(Self::fields)?;
        let number = u32::try_from(self.tree.structs.len()).unwrap_or(u32::MAX);
        self.tree.structs.push(StructSpec { name, fields, line });
        Ok(BaseSpec::Inline(number))
    }

    fn fields(&mut self) -> Result<Vec<(Name, TypeSpec)>> {
        self.expect("{")?;
        let mut fields = Vec::new();
        while !self.take("}") {
            self.qualifiers()?;
            let ty = self.type_spec()?;
            loop {
                let name = self.name()?;
                let array = self.array()?;
                let array = if array == ArraySpec::None { ty.array } else { array };
                fields.push((name, TypeSpec { array, ..ty }));
                if !self.take(",") {
                    break;
                }
            }
            self.expect(";")?;
        }
        Ok(fields)
    }

    fn uniform_block(&mut self, name: Name, line: u32) -> Result<()> {
        let fields = self.fields()?;
        let instance = match self.tok() {
            Tok::Word(_) => Some((self.name()?, self.array()?)),
            _ => None,
        };
        self.expect(";")?;
        self.tree.items.push(Item::Block(Block { name, fields, instance, line }));
        Ok(())
    }

    fn function(&mut self, name: Name, returns: TypeSpec, line: u32) -> Result<()> {
        self.expect("(")?;
        let mut parameters = Vec::new();
        if self.is("void") && self.peek(1) == Tok::Punct(")") {
            self.at += 1;
        }
        while !self.take(")") {
            if !parameters.is_empty() {
                self.expect(",")?;
            }
            let storage = self.qualifiers()?.storage;
            let mut ty = self.type_spec()?;
            let name = if matches!(self.tok(), Tok::Word(_)) { Some(self.name()?) } else { None };
            let array = self.array()?;
            ty.array = if array == ArraySpec::None { ty.array } else { array };
            parameters.push(Parameter { name, ty, storage });
        }
        let body = if self.take(";") { None } else { Some(self.statement()?) };
        self.tree.items.push(Item::Function(Function { name, returns, parameters, body, line }));
        Ok(())
    }
}
