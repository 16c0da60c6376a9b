//! Calls: the body of a function takes the place of the call.

use super::env::{Frame, Symbol};
use super::{Lowerer, Value};
use crate::glsl::ast::{ExprId, Function, Storage};
use crate::glsl::error::{ErrorKind, GlslError, Result};
use crate::glsl::token::Name;
use crate::glsl::types::{Base, Type};

impl<'a> Lowerer<'a> {
    pub(super) fn call(&mut self, line: u32, name: Name, arguments: &[ExprId]) -> Result<Value> {
        if let Some(Symbol::Struct(number)) = self.find(name) {
            let values = self.exprs(arguments)?;
            return self.construct(line, Type::of(Base::Struct(number)), values);
        }
        let values = self.exprs(arguments)?;
        if let Some(function) = self.overload(line, name, &values)? {
            return self.call_function(line, function, arguments, values);
        }
        let text = self.text(name);
        if let Some(value) = self.texture_function(line, text, &values)? {
            return Ok(value);
        }
        if text == "modf" {
            return self.modf(line, arguments, &values);
        }
        self.built_in(line, text, &values)
    }

    /// The function of that name and those types. A prototype stands for the body that follows.
    fn overload(&mut self, line: u32, name: Name, values: &[Value]) -> Result<Option<&'a Function>> {
        let Some(candidates) = self.functions.get(&name).cloned() else {
            return Ok(None);
        };
        self.spend(line, candidates.len())?;
        let mut declared = None;
        for function in candidates {
            if function.parameters.len() != values.len() {
                continue;
            }
            let mut fits = true;
            for (parameter, value) in function.parameters.iter().zip(values) {
                fits = fits && self.resolve(parameter.ty)? == value.ty;
            }
            if fits && function.body.is_some() {
                return Ok(Some(function));
            }
            if fits {
                declared = Some(function);
            }
        }
        if declared.is_none() {
            return Ok(None);
        }
        self.later_body(name, values)
    }

    /// The body of a function that was declared before the call and defined after it.
    fn later_body(&mut self, name: Name, values: &[Value]) -> Result<Option<&'a Function>> {
        let tree = self.tree;
        for item in &tree.items {
            let crate::glsl::ast::Item::Function(function) = item else {
                continue;
            };
            if function.name != name || function.body.is_none() || function.parameters.len() != values.len() {
                continue;
            }
            let mut fits = true;
            for (parameter, value) in function.parameters.iter().zip(values) {
                fits = fits && self.resolve(parameter.ty)? == value.ty;
            }
            if fits {
                return Ok(Some(function));
            }
        }
        Ok(None)
    }

    fn call_function(
        &mut self,
        line: u32,
        function: &'a Function,
        arguments: &[ExprId],
        values: Vec<Value>,
    ) -> Result<Value> {
        // Places come before the body runs: it must not see its own writes through them.
        let mut places = Vec::new();
        for (index, (parameter, argument)) in function.parameters.iter().zip(arguments).enumerate() {
            if matches!(parameter.storage, Storage::Out | Storage::InOut) {
                places.push((index, self.place(*argument)?));
            }
        }
        let (value, finals) = self.nested(line, |lowerer| lowerer.inline(function, values))?;
        for (index, place) in places {
            self.store(line, &place, &finals[index])?;
        }
        Ok(value)
    }

    /// Runs a function's body; gives its result and what its parameters hold at the end.
    pub(super) fn inline(
        &mut self,
        function: &'a Function,
        values: Vec<Value>,
    ) -> Result<(Value, Vec<Value>)> {
        let line = function.line;
        let identity = std::ptr::from_ref(function).addr();
        if self.frames.iter().any(|frame| frame.identity == identity) {
            let name = self.text(function.name).to_owned();
            return Err(GlslError::new(line, ErrorKind::Recursion(name)));
        }
        let returns = self.resolve(function.returns)?;
        let scopes = self.scopes.len();
        self.push_scope();
        let zero = self.code.bits(0)?;
        let returned = self.flag(line)?;
        let count = self.size(line, returns)?;
        let value = self.allocate(line, count, zero)?;
        self.frames.push(Frame { identity, scopes, returned, value, returns, loops: Vec::new() });
        let mut slots = Vec::new();
        let unnamed = self.names.find("main").unwrap_or(function.name);
        for (parameter, value) in function.parameters.iter().zip(&values) {
            slots.push(self.declare(line, parameter.name.unwrap_or(unnamed), value)?);
        }
        if let Some(body) = function.body {
            self.statement(body)?;
        }
        self.frames.pop();
        let ids = (value..value + count).map(|slot| self.read(slot)).collect();
        let last = |(slot, value): (&u32, Value)| {
            let count = u32::try_from(value.ids.len()).unwrap_or(0);
            Value { ty: value.ty, ids: (*slot..*slot + count).map(|slot| self.read(slot)).collect() }
        };
        let finals = slots.iter().zip(values).map(last).collect();
        self.pop_scope();
        Ok((Value { ty: returns, ids }, finals))
    }
}
