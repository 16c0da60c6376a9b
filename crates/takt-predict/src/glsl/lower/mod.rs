//! From syntax to instructions.
//!
//! Lowering is a run of the shader with unknown inputs. Functions are followed into their bodies,
//! loops are run while their conditions are constants, both sides of a branch are run and their
//! results joined by selection. What remains is straight code over scalars, with loops only where
//! the number of iterations depends on data or is too large.
//!
//! The run has bounds on its steps, its depth and its output, so any source ends it in time.

mod builtins;
mod call;
mod construct;
mod control;
mod declare;
mod env;
mod expr;
mod loops;
mod operator;
mod place;
mod texture;

use std::collections::BTreeMap;

use super::ast::{Function, Item, Tree};
use super::code::{Code, Id};
use super::error::{ErrorKind, GlslError, Result};
use super::interface::{Interface, Stage};
use super::limits::{LOWERING_DEPTH_MAX, STEPS_MAX};
use super::preprocess::Unit;
use super::token::{Name, Names};
use super::types::{Struct, Type};

use env::{Frame, Scope};

/// A value during lowering: its type and one scalar per component.
#[derive(Clone, Debug)]
struct Value {
    ty: Type,
    ids: Vec<Id>,
}

/// What lowering found out besides the code.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Facts {
    /// A loop was kept whose iterations are counted, or assumed.
    pub(super) assumed_trips: bool,
    /// A loop may end earlier than it was counted.
    pub(super) early_exit: bool,
    /// A loop was kept as a loop, with a known number of iterations.
    pub(super) kept_loop: bool,
}

/// The outcome of lowering.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) code: Code,
    pub(super) interface: Interface,
    pub(super) facts: Facts,
    /// Scalars of `gl_Position`, in a vertex shader that writes it.
    pub(super) position: Option<[Id; 4]>,
    /// Scalars of everything that leaves the shader.
    pub(super) results: Vec<Id>,
    /// Conditions of branches, for counting.
    pub(super) branches: Vec<Id>,
}

struct Lowerer<'a> {
    tree: &'a Tree,
    names: &'a Names,
    stage: Stage,
    code: Code,
    interface: Interface,
    facts: Facts,
    structs: Vec<Struct>,
    functions: BTreeMap<Name, Vec<&'a Function>>,
    scopes: Vec<Scope>,
    frames: Vec<Frame>,
    /// Current scalar of each slot.
    slots: Vec<Id>,
    /// Overwritten scalars while a branch is open.
    journal: Vec<(u32, Id)>,
    open: usize,
    /// Whether the current statement runs at all.
    path: Id,
    steps: u64,
    depth: usize,
    branches: Vec<Id>,
    discards: Vec<Id>,
    outputs: env::Outputs,
}

/// Lowers a shader.
pub(super) fn lower(unit: &Unit, tree: &Tree, stage: Stage) -> Result<Lowered> {
    let mut code = Code::default();
    let path = code.bool(true)?;
    let mut lowerer = Lowerer {
        tree,
        names: &unit.names,
        stage,
        code,
        interface: Interface::default(),
        facts: Facts::default(),
        structs: Vec::new(),
        functions: BTreeMap::new(),
        scopes: vec![Scope::default()],
        frames: Vec::new(),
        slots: Vec::new(),
        journal: Vec::new(),
        open: 0,
        path,
        steps: 0,
        depth: 0,
        branches: Vec::new(),
        discards: Vec::new(),
        outputs: env::Outputs::default(),
    };
    lowerer.run()?;
    Ok(lowerer.finish())
}

impl<'a> Lowerer<'a> {
    fn run(&mut self) -> Result<()> {
        self.declare_built_ins()?;
        let tree = self.tree;
        for item in &tree.items {
            match item {
                Item::Function(function) => {
                    self.functions.entry(function.name).or_default().push(function);
                    self.resolve_signature(function)?;
                }
                Item::Declare(declaration) => self.declare_global(declaration)?,
                Item::Block(block) => self.declare_block(block)?,
            }
        }
        let main = self.names.find("main").and_then(|name| self.functions.get(&name).cloned());
        let main = main.unwrap_or_default();
        let main = main.iter().find(|function| function.body.is_some() && function.parameters.is_empty());
        let main = main.ok_or_else(|| GlslError::new(0, ErrorKind::NoMain))?;
        self.inline(main, Vec::new())?;
        Ok(())
    }

    fn finish(mut self) -> Lowered {
        let read = |slots: &[Id], first: u32, scalars: u32| -> Vec<Id> {
            (first..first + scalars).filter_map(|slot| slots.get(slot as usize).copied()).collect()
        };
        let mut results = Vec::new();
        for output in &self.outputs.variables {
            let ids = read(&self.slots, output.slot, output.scalars);
            // What still holds its first value was never written.
            let written = ids.iter().any(|id| *id != output.unwritten);
            if let Some(variable) = output.variable.and_then(|index| self.interface.outputs.get_mut(index)) {
                variable.active = written;
            }
            results.extend(ids.into_iter().filter(|id| *id != output.unwritten));
        }
        results.extend(&self.discards);
        let position = self.outputs.position.and_then(|output| {
            let ids = read(&self.slots, output.slot, output.scalars);
            let written = ids.iter().any(|id| *id != output.unwritten);
            ids.try_into().ok().filter(|_| written)
        });
        Lowered {
            code: self.code,
            interface: self.interface,
            facts: self.facts,
            position,
            results,
            branches: self.branches,
        }
    }

    /// Accounts for work, and stops when there was too much.
    fn spend(&mut self, line: u32, steps: usize) -> Result<()> {
        self.steps += steps as u64;
        if self.steps > STEPS_MAX { Err(GlslError::limit(line, "STEPS_MAX")) } else { Ok(()) }
    }

    /// Runs `inner` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, line: u32, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= LOWERING_DEPTH_MAX {
            return Err(GlslError::limit(line, "LOWERING_DEPTH_MAX"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn text(&self, name: Name) -> &'a str {
        self.names.text(name)
    }

    fn is_vertex(&self) -> bool {
        self.stage == Stage::Vertex
    }
}
