//! The integer expressions of `#if` and `#elif`.

use super::error::{GlslError, Result};
use super::limits::CONDITION_DEPTH_MAX;
use super::preprocess::Preprocessor;
use super::token::{Tok, Token};

/// Whether the expression of an `#if` is not zero.
pub(super) fn holds(preprocessor: &mut Preprocessor, line: u32, tokens: &[Token]) -> Result<bool> {
    let resolved = resolve_defined(preprocessor, line, tokens)?;
    let mut expanded = Vec::new();
    preprocessor.expand(&resolved, &mut Vec::new(), &mut expanded)?;
    let mut parser = ConditionParser { tokens: &expanded, at: 0, line, depth: 0 };
    let value = parser.binary(0)?;
    if parser.at < expanded.len() {
        return Err(GlslError::syntax(line, "#if: operator expected"));
    }
    Ok(value != 0)
}

/// Replaces `defined X` before macros are, because X itself must stay.
fn resolve_defined(preprocessor: &Preprocessor, line: u32, tokens: &[Token]) -> Result<Vec<Token>> {
    let mut resolved = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        let is_defined = matches!(token.tok, Tok::Word(name) if preprocessor.text(name) == "defined");
        if !is_defined {
            resolved.push(*token);
            continue;
        }
        let brackets = tokens.get(at).is_some_and(|next| next.tok == Tok::Punct("("));
        let place = at + usize::from(brackets);
        let Some(Token { tok: Tok::Word(name), .. }) = tokens.get(place) else {
            return Err(GlslError::syntax(line, "defined needs a name"));
        };
        at = place + 1;
        if brackets {
            if tokens.get(at).is_none_or(|next| next.tok != Tok::Punct(")")) {
                return Err(GlslError::syntax(line, "defined without `)`"));
            }
            at += 1;
        }
        let value = u32::from(preprocessor.is_defined(*name));
        resolved.push(Token { tok: Tok::Int(value), ..*token });
    }
    Ok(resolved)
}

struct ConditionParser<'a> {
    tokens: &'a [Token],
    at: usize,
    line: u32,
    depth: usize,
}

impl ConditionParser<'_> {
    fn binary(&mut self, least: u8) -> Result<i64> {
        let mut left = self.unary()?;
        while let Some(Token { tok: Tok::Punct(operator), .. }) = self.tokens.get(self.at) {
            let Some(strength) = strength(operator).filter(|strength| *strength >= least) else {
                break;
            };
            self.at += 1;
            self.depth += 1;
            if self.depth > CONDITION_DEPTH_MAX {
                return Err(GlslError::limit(self.line, "CONDITION_DEPTH_MAX"));
            }
            let right = self.binary(strength + 1)?;
            self.depth -= 1;
            left = apply(operator, left, right);
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<i64> {
        self.depth += 1;
        if self.depth > CONDITION_DEPTH_MAX {
            return Err(GlslError::limit(self.line, "CONDITION_DEPTH_MAX"));
        }
        let token = self.tokens.get(self.at).map(|token| token.tok);
        self.at += 1;
        let value = match token {
            Some(Tok::Int(value) | Tok::Uint(value)) => i64::from(value),
            // A name that is no macro is an error in ES; drivers say 0, and so do we.
            Some(Tok::Word(_)) => 0,
            Some(Tok::Punct("-")) => self.unary()?.wrapping_neg(),
            Some(Tok::Punct("+")) => self.unary()?,
            Some(Tok::Punct("!")) => i64::from(self.unary()? == 0),
            Some(Tok::Punct("~")) => !self.unary()?,
            Some(Tok::Punct("(")) => {
                let value = self.binary(0)?;
                if self.tokens.get(self.at).is_none_or(|token| token.tok != Tok::Punct(")")) {
                    return Err(GlslError::syntax(self.line, "#if: `)` expected"));
                }
                self.at += 1;
                value
            }
            _ => return Err(GlslError::syntax(self.line, "#if: value expected")),
        };
        self.depth -= 1;
        Ok(value)
    }
}

fn strength(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | ">" | "<=" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

fn apply(operator: &str, left: i64, right: i64) -> i64 {
    let shift = u32::try_from(right & 63).unwrap_or(0);
    match operator {
        "||" => i64::from(left != 0 || right != 0),
        "&&" => i64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => i64::from(left == right),
        "!=" => i64::from(left != right),
        "<" => i64::from(left < right),
        ">" => i64::from(left > right),
        "<=" => i64::from(left <= right),
        ">=" => i64::from(left >= right),
        "<<" => left.wrapping_shl(shift),
        ">>" => left.wrapping_shr(shift),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right).unwrap_or(0),
        _ => left.checked_rem(right).unwrap_or(0),
    }
}
