//! Recursive descent with a bound on its depth.
//!
//! Only what a well-formed shader needs is told apart: the driver has compiled the source before
//! Takt looks at it, so accepting a little more than the language does no harm.

mod declaration;
mod expression;
mod statement;

use std::collections::BTreeSet;

use super::ast::{Expr, ExprId, ExprKind, Stmt, StmtId, StmtKind, Tree};
use super::error::{GlslError, Result};
use super::limits::NESTING_MAX;
use super::preprocess::Unit;
use super::token::{Name, Names, Tok, Token};
use super::types::{Base, Type};

pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    names: &'a Names,
    at: usize,
    depth: usize,
    tree: Tree,
    /// Names of structures, which start declarations.
    struct_names: BTreeSet<Name>,
}

/// Parses a preprocessed shader.
pub(super) fn parse(unit: &Unit) -> Result<Tree> {
    let mut parser = Parser {
        tokens: &unit.tokens,
        names: &unit.names,
        at: 0,
        depth: 0,
        tree: Tree::default(),
        struct_names: BTreeSet::new(),
    };
    while parser.tok() != Tok::End {
        parser.item()?;
    }
    Ok(parser.tree)
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Tok {
        self.tokens.get(self.at + ahead).map_or(Tok::End, |token| token.tok)
    }

    fn tok(&self) -> Tok {
        self.peek(0)
    }

    fn line(&self) -> u32 {
        self.tokens.get(self.at).or_else(|| self.tokens.last()).map_or(0, |token| token.line)
    }

    fn is(&self, text: &str) -> bool {
        match self.tok() {
            Tok::Punct(found) => found == text,
            Tok::Word(name) => self.names.text(name) == text,
            _ => false,
        }
    }

    /// Takes the token if it is the given one.
    fn take(&mut self, text: &str) -> bool {
        let found = self.is(text);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, text: &str) -> Result<()> {
        if self.take(text) { Ok(()) } else { Err(self.unexpected(&format!("`{text}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> GlslError {
        let found = match self.tok() {
            Tok::Word(name) => format!("`{}`", self.names.text(name).chars().take(40).collect::<String>()),
            Tok::Punct(text) => format!("`{text}`"),
            Tok::Int(_) | Tok::Uint(_) | Tok::Float(_) => "a number".to_owned(),
            Tok::Junk(byte) => format!("byte {byte:#04x}"),
            Tok::End => "the end".to_owned(),
        };
        GlslError::syntax(self.line(), format!("{wanted} expected, found {found}"))
    }

    fn name(&mut self) -> Result<Name> {
        match self.tok() {
            Tok::Word(name) => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Runs `inner` one level deeper, unless that is too deep.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= NESTING_MAX {
            return Err(GlslError::limit(self.line(), "NESTING_MAX"));
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// The built-in type at that distance.
    fn type_name(&self, ahead: usize) -> Option<Base> {
        match self.peek(ahead) {
            Tok::Word(name) => Type::named(self.names.text(name)),
            _ => None,
        }
    }

    fn add_expr(&mut self, line: u32, kind: ExprKind) -> ExprId {
        // The number of nodes is bounded by the number of tokens.
        let id = ExprId(u32::try_from(self.tree.exprs.len()).unwrap_or(u32::MAX));
        self.tree.exprs.push(Expr { kind, line });
        id
    }

    fn add_stmt(&mut self, line: u32, kind: StmtKind) -> StmtId {
        let id = StmtId(u32::try_from(self.tree.stmts.len()).unwrap_or(u32::MAX));
        self.tree.stmts.push(Stmt { kind, line });
        id
    }
}
