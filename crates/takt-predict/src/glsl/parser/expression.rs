//! Expressions.

use super::Parser;
use crate::glsl::ast::{ArraySpec, BaseSpec, BinaryOp, ExprId, ExprKind, Step, TypeSpec, UnaryOp};
use crate::glsl::error::Result;
use crate::glsl::token::Tok;

impl Parser<'_> {
    /// An expression with commas.
    pub(super) fn expression(&mut self) -> Result<ExprId> {
        let mut left = self.assignment()?;
        while self.is(",") {
            let line = self.line();
            self.at += 1;
            let right = self.assignment()?;
            left = self.add_expr(line, ExprKind::Comma(left, right));
        }
        Ok(left)
    }

    /// An expression without commas, as in argument lists.
    pub(super) fn assignment(&mut self) -> Result<ExprId> {
        self.nested(|parser| {
            let left = parser.choice()?;
            let Tok::Punct(text) = parser.tok() else {
                return Ok(left);
            };
            let Some(operator) = assignment_operator(text) else {
                return Ok(left);
            };
            let line = parser.line();
            parser.at += 1;
            let right = parser.assignment()?;
            Ok(parser.add_expr(line, ExprKind::Assign(operator, left, right)))
        })
    }

    fn choice(&mut self) -> Result<ExprId> {
        let condition = self.binary(0)?;
        if !self.is("?") {
            return Ok(condition);
        }
        let line = self.line();
        self.at += 1;
        let first = self.nested(Self::expression)?;
        self.expect(":")?;
        let second = self.assignment()?;
        Ok(self.add_expr(line, ExprKind::Choice(condition, first, second)))
    }

    fn binary(&mut self, least: u8) -> Result<ExprId> {
        let mut left = self.unary()?;
        while let Tok::Punct(text) = self.tok() {
            let Some((operator, strength)) = binary_operator(text).filter(|(_, strength)| *strength >= least)
            else {
                break;
            };
            let line = self.line();
            self.at += 1;
            // At most one level per strength, so the depth of the nesting bounds this too.
            let right = self.binary(strength + 1)?;
            left = self.add_expr(line, ExprKind::Binary(operator, left, right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<ExprId> {
        let line = self.line();
        let operator = match self.tok() {
            Tok::Punct("+") => UnaryOp::Plus,
            Tok::Punct("-") => UnaryOp::Minus,
            Tok::Punct("!") => UnaryOp::Not,
            Tok::Punct("~") => UnaryOp::BitNot,
            Tok::Punct(text @ ("++" | "--")) => {
                self.at += 1;
                let operand = self.nested(Self::unary)?;
                let step = Step { up: text == "++", prefix: true };
                return Ok(self.add_expr(line, ExprKind::Step(step, operand)));
            }
            _ => return self.postfix(),
        };
        self.at += 1;
        let operand = self.nested(Self::unary)?;
        Ok(self.add_expr(line, ExprKind::Unary(operator, operand)))
    }

    fn postfix(&mut self) -> Result<ExprId> {
        let mut operand = self.primary()?;
        let mut links = 0;
        loop {
            let line = self.line();
            // A chain is a deep tree, and lowering walks down it.
            links += 1;
            if links > crate::glsl::limits::NESTING_MAX {
                return Err(crate::glsl::GlslError::limit(line, "NESTING_MAX"));
            }
            let kind = match self.tok() {
                Tok::Punct("[") => {
                    self.at += 1;
                    let index = self.nested(Self::expression)?;
                    self.expect("]")?;
                    ExprKind::Index(operand, index)
                }
                Tok::Punct(".") => {
                    self.at += 1;
                    let field = self.name()?;
                    if self.names.text(field) == "length" && self.take("(") {
                        self.expect(")")?;
                        ExprKind::Length(operand)
                    } else {
                        ExprKind::Field(operand, field)
                    }
                }
                Tok::Punct(text @ ("++" | "--")) => {
                    self.at += 1;
                    ExprKind::Step(Step { up: text == "++", prefix: false }, operand)
                }
                _ => return Ok(operand),
            };
            operand = self.add_expr(line, kind);
        }
    }

    fn primary(&mut self) -> Result<ExprId> {
        let line = self.line();
        let kind = match self.tok() {
            Tok::Int(value) => ExprKind::Int(value),
            Tok::Uint(value) => ExprKind::Uint(value),
            Tok::Float(value) => ExprKind::Float(value),
            Tok::Punct("(") => {
                self.at += 1;
                let inner = self.nested(Self::expression)?;
                self.expect(")")?;
                return Ok(inner);
            }
            Tok::Word(name) => match self.names.text(name) {
                "true" => ExprKind::Bool(true),
                "false" => ExprKind::Bool(false),
                _ => return self.word(line),
            },
            _ => return Err(self.unexpected("an expression")),
        };
        self.at += 1;
        Ok(self.add_expr(line, kind))
    }

    /// A variable, a call or a constructor.
    fn word(&mut self, line: u32) -> Result<ExprId> {
        let built_in = self.type_name(0);
        let name = self.name()?;
        let array = if self.is("[") && (built_in.is_some() || self.struct_names.contains(&name)) {
            self.array()?
        } else {
            ArraySpec::None
        };
        let base = built_in.map_or(BaseSpec::Named(name), BaseSpec::BuiltIn);
        let constructs = built_in.is_some() || array != ArraySpec::None;
        if !self.is("(") {
            let variable = ExprKind::Variable(name);
            return if constructs { Err(self.unexpected("`(`")) } else { Ok(self.add_expr(line, variable)) };
        }
        let arguments = self.arguments()?;
        let kind = if constructs {
            ExprKind::Construct(TypeSpec { base, array, line }, arguments)
        } else {
            ExprKind::Call(name, arguments)
        };
        Ok(self.add_expr(line, kind))
    }

    fn arguments(&mut self) -> Result<Vec<ExprId>> {
        self.expect("(")?;
        let mut arguments = Vec::new();
        if self.is("void") {
            self.at += 1;
        }
        while !self.take(")") {
            if !arguments.is_empty() {
                self.expect(",")?;
            }
            arguments.push(self.nested(Self::assignment)?);
        }
        Ok(arguments)
    }
}

/// The operator of an assignment; the inner one is none for a plain `=`.
#[expect(clippy::option_option, reason = "no assignment, plain assignment, assignment with operator")]
fn assignment_operator(text: &str) -> Option<Option<BinaryOp>> {
    Some(match text {
        "=" => None,
        "+=" => Some(BinaryOp::Add),
        "-=" => Some(BinaryOp::Sub),
        "*=" => Some(BinaryOp::Mul),
        "/=" => Some(BinaryOp::Div),
        "%=" => Some(BinaryOp::Rem),
        "<<=" => Some(BinaryOp::Shl),
        ">>=" => Some(BinaryOp::Shr),
        "&=" => Some(BinaryOp::BitAnd),
        "^=" => Some(BinaryOp::BitXor),
        "|=" => Some(BinaryOp::BitOr),
        _ => return None,
    })
}

fn binary_operator(text: &str) -> Option<(BinaryOp, u8)> {
    Some(match text {
        "||" => (BinaryOp::Or, 0),
        "^^" => (BinaryOp::Xor, 1),
        "&&" => (BinaryOp::And, 2),
        "|" => (BinaryOp::BitOr, 3),
        "^" => (BinaryOp::BitXor, 4),
        "&" => (BinaryOp::BitAnd, 5),
        "==" => (BinaryOp::Equal, 6),
        "!=" => (BinaryOp::NotEqual, 6),
        "<" => (BinaryOp::Less, 7),
        ">" => (BinaryOp::Greater, 7),
        "<=" => (BinaryOp::LessEqual, 7),
        ">=" => (BinaryOp::GreaterEqual, 7),
        "<<" => (BinaryOp::Shl, 8),
        ">>" => (BinaryOp::Shr, 8),
        "+" => (BinaryOp::Add, 9),
        "-" => (BinaryOp::Sub, 9),
        "*" => (BinaryOp::Mul, 10),
        "/" => (BinaryOp::Div, 10),
        "%" => (BinaryOp::Rem, 10),
        _ => return None,
    })
}
