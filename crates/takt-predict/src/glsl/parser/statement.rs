//! Statements.

use super::Parser;
use crate::glsl::ast::{
    ArraySpec, Declaration, Declarator, ExprKind, Loop, Qualifiers, StmtId, StmtKind, Storage, TypeSpec,
};
use crate::glsl::error::Result;
use crate::glsl::token::Tok;

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<StmtId> {
        self.nested(Self::statement_inner)
    }

    fn statement_inner(&mut self) -> Result<StmtId> {
        let line = self.line();
        if self.is("{") {
            let inner = self.block()?;
            return Ok(self.add_stmt(line, StmtKind::Block(inner)));
        }
        if self.take(";") {
            return Ok(self.add_stmt(line, StmtKind::Empty));
        }
        let Tok::Word(word) = self.tok() else {
            return self.expression_statement();
        };
        let names = self.names;
        match names.text(word) {
            "if" => self.if_statement(line),
            "for" => self.for_statement(line),
            "while" => self.while_statement(line),
            "do" => self.do_statement(line),
            "switch" => self.switch_statement(line),
            "case" | "default" => self.case_label(line),
            "return" => {
                self.at += 1;
                let value = if self.is(";") { None } else { Some(self.expression()?) };
                self.end(line, StmtKind::Return(value))
            }
            "break" => self.jump(line, StmtKind::Break),
            "continue" => self.jump(line, StmtKind::Continue),
            "discard" => self.jump(line, StmtKind::Discard),
            "precision" => {
                self.skip_precision()?;
                Ok(self.add_stmt(line, StmtKind::Empty))
            }
            _ if self.starts_declaration() => self.declaration_statement(),
            _ => self.expression_statement(),
        }
    }

    fn jump(&mut self, line: u32, kind: StmtKind) -> Result<StmtId> {
        self.at += 1;
        self.end(line, kind)
    }

    fn end(&mut self, line: u32, kind: StmtKind) -> Result<StmtId> {
        self.expect(";")?;
        Ok(self.add_stmt(line, kind))
    }

    pub(super) fn block(&mut self) -> Result<Vec<StmtId>> {
        self.expect("{")?;
        let mut inner = Vec::new();
        while !self.take("}") {
            inner.push(self.statement()?);
        }
        Ok(inner)
    }

    fn expression_statement(&mut self) -> Result<StmtId> {
        let line = self.line();
        let expression = self.expression()?;
        self.end(line, StmtKind::Expr(expression))
    }

    fn declaration_statement(&mut self) -> Result<StmtId> {
        let line = self.line();
        let declaration = self.declaration()?;
        Ok(self.add_stmt(line, StmtKind::Declare(declaration)))
    }

    fn if_statement(&mut self, line: u32) -> Result<StmtId> {
        self.at += 1;
        self.expect("(")?;
        let condition = self.expression()?;
        self.expect(")")?;
        let then = self.statement()?;
        let otherwise = if self.take("else") { Some(self.statement()?) } else { None };
        Ok(self.add_stmt(line, StmtKind::If(condition, then, otherwise)))
    }

    fn for_statement(&mut self, line: u32) -> Result<StmtId> {
        self.at += 1;
        self.expect("(")?;
        let start = if self.take(";") {
            None
        } else if self.starts_declaration() {
            Some(self.declaration_statement()?)
        } else {
            Some(self.expression_statement()?)
        };
        let condition = if self.is(";") { None } else { Some(self.condition()?) };
        self.expect(";")?;
        let step = if self.is(")") { None } else { Some(self.expression()?) };
        self.expect(")")?;
        let body = self.statement()?;
        Ok(self.add_stmt(line, StmtKind::Loop(Loop { start, condition, step, body, body_first: false })))
    }

    fn while_statement(&mut self, line: u32) -> Result<StmtId> {
        self.at += 1;
        self.expect("(")?;
        let condition = Some(self.condition()?);
        self.expect(")")?;
        let body = self.statement()?;
        let parts = Loop { start: None, condition, step: None, body, body_first: false };
        Ok(self.add_stmt(line, StmtKind::Loop(parts)))
    }

    fn do_statement(&mut self, line: u32) -> Result<StmtId> {
        self.at += 1;
        let body = self.statement()?;
        self.expect("while")?;
        self.expect("(")?;
        let condition = Some(self.condition()?);
        self.expect(")")?;
        let parts = Loop { start: None, condition, step: None, body, body_first: true };
        self.end(line, StmtKind::Loop(parts))
    }

    /// A loop's condition: an expression, or `type name = value`.
    fn condition(&mut self) -> Result<StmtId> {
        let line = self.line();
        if !self.starts_declaration() {
            let expression = self.expression()?;
            return Ok(self.add_stmt(line, StmtKind::Expr(expression)));
        }
        let ty: TypeSpec = self.type_spec()?;
        let name = self.name()?;
        self.expect("=")?;
        let value = Some(self.assignment()?);
        let variables = vec![Declarator { name, array: ArraySpec::None, value }];
        let qualifiers = Qualifiers { storage: Storage::None, ..Qualifiers::default() };
        let declare = self.add_stmt(line, StmtKind::Declare(Declaration { qualifiers, ty, variables, line }));
        let read = self.add_expr(line, ExprKind::Variable(name));
        let read = self.add_stmt(line, StmtKind::Expr(read));
        Ok(self.add_stmt(line, StmtKind::Block(vec![declare, read])))
    }

    fn switch_statement(&mut self, line: u32) -> Result<StmtId> {
        self.at += 1;
        self.expect("(")?;
        let selector = self.expression()?;
        self.expect(")")?;
        let inner = self.block()?;
        Ok(self.add_stmt(line, StmtKind::Switch(selector, inner)))
    }

    fn case_label(&mut self, line: u32) -> Result<StmtId> {
        let value = if self.take("default") {
            None
        } else {
            self.at += 1;
            Some(self.expression()?)
        };
        self.expect(":")?;
        Ok(self.add_stmt(line, StmtKind::Case(value)))
    }
}
