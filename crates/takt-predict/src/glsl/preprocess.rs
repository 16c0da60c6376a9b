//! Directives and macros.
//!
//! The whole text is cut into tokens first, so a directive is the run of tokens up to the next one
//! that is first on its line. Two bounds keep hostile macros in check: how many tokens replacement
//! may touch in all, and how deep arguments may nest.

use std::collections::BTreeMap;

use super::condition;
use super::error::{ErrorKind, GlslError, Result};
use super::limits::{CONDITION_DEPTH_MAX, EXPANSION_MAX, MACRO_DEPTH_MAX, SOURCE_BYTES_MAX};
use super::token::{Name, Names, Tok, Token, scan};

/// A shader's text after preprocessing.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) tokens: Vec<Token>,
    pub(super) names: Names,
    /// 100, 300, 310 or 320.
    pub(super) version: u32,
}

/// What a macro stands for.
#[derive(Clone, Debug)]
struct Macro {
    /// `None` for a macro without parentheses.
    parameters: Option<Vec<Name>>,
    body: Vec<Token>,
}

/// An `#if` that is open.
#[derive(Clone, Copy, Debug)]
struct Branch {
    /// Whether the tokens of the current part count.
    active: bool,
    /// Whether an earlier part was taken already, or must not be looked at.
    taken: bool,
    after_else: bool,
}

pub(super) struct Preprocessor {
    names: Names,
    macros: BTreeMap<Name, Macro>,
    branches: Vec<Branch>,
    output: Vec<Token>,
    budget: usize,
    version: u32,
    /// Versions of the language that are understood.
    versions: &'static [u32],
    line_name: Name,
}

/// Versions whose shaders [`analyse`](super::analyse) reads.
pub(super) const ANALYSED: &[u32] = &[100, 300];
/// Versions with compute shaders.
pub(super) const WITH_COMPUTE: &[u32] = &[310, 320];

/// Runs the preprocessor; `defines` are macros that stand for 1, extensions among them.
pub(super) fn preprocess(source: &str, defines: &[&str], versions: &'static [u32]) -> Result<Unit> {
    if source.len() > SOURCE_BYTES_MAX {
        return Err(GlslError::limit(0, "SOURCE_BYTES_MAX"));
    }
    let mut names = Names::default();
    let tokens = scan(source, &mut names)?;
    let line_name = names.intern("__LINE__");
    let mut state = Preprocessor {
        names,
        macros: BTreeMap::new(),
        branches: Vec::new(),
        output: Vec::with_capacity(tokens.len()),
        budget: EXPANSION_MAX,
        version: 100,
        versions,
        line_name,
    };
    for define in ["GL_ES", "GL_FRAGMENT_PRECISION_HIGH"].iter().chain(defines) {
        state.define_number(define, 1);
    }
    state.define_number("__FILE__", 0);
    state.run(&tokens)?;
    Ok(Unit { tokens: state.output, names: state.names, version: state.version })
}

impl Preprocessor {
    fn define_number(&mut self, name: &str, value: u32) {
        let token = Token { tok: Tok::Int(value), line: 0, first: false, glued: false };
        let name = self.names.intern(name);
        self.macros.insert(name, Macro { parameters: None, body: vec![token] });
    }

    pub(super) fn is_defined(&self, name: Name) -> bool {
        self.macros.contains_key(&name) || ["__LINE__", "__VERSION__"].contains(&self.names.text(name))
    }

    pub(super) fn text(&self, name: Name) -> &str {
        self.names.text(name)
    }

    fn active(&self) -> bool {
        self.branches.last().is_none_or(|branch| branch.active)
    }

    fn run(&mut self, tokens: &[Token]) -> Result<()> {
        self.define_number("__VERSION__", 100);
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at];
            if token.tok == Tok::Punct("#") && token.first {
                let end = at + 1 + tokens[at + 1..].iter().take_while(|next| !next.first).count();
                self.directive(token.line, &tokens[at + 1..end], self.output.is_empty())?;
                at = end;
                continue;
            }
            // A macro's call may span lines, so the run up to the next directive goes in one piece.
            let directive = |next: &Token| next.tok == Tok::Punct("#") && next.first;
            let end = at + tokens[at..].iter().take_while(|next| !directive(next)).count();
            if self.active() {
                let mut expanded = Vec::new();
                self.expand(&tokens[at..end], &mut Vec::new(), &mut expanded)?;
                self.output.append(&mut expanded);
            }
            at = end;
        }
        if self.branches.is_empty() {
            self.finish(tokens);
            Ok(())
        } else {
            Err(GlslError::syntax(tokens.last().map_or(0, |token| token.line), "#if without #endif"))
        }
    }

    /// The end token is there even if an inactive part swallowed it.
    fn finish(&mut self, tokens: &[Token]) {
        if self.output.last().is_none_or(|token| token.tok != Tok::End) {
            self.output.extend(tokens.last());
        }
    }

    fn directive(&mut self, line: u32, rest: &[Token], at_start: bool) -> Result<()> {
        let Some(Token { tok: Tok::Word(name), .. }) = rest.first() else {
            // A lone `#` is allowed; anything else only in parts that are skipped.
            return if rest.is_empty() || !self.active() {
                Ok(())
            } else {
                Err(GlslError::syntax(line, "directive expected"))
            };
        };
        let name = self.names.text(*name).to_owned();
        let rest = &rest[1..];
        match name.as_str() {
            "if" | "ifdef" | "ifndef" => return self.open(line, &name, rest),
            "elif" | "else" | "endif" => return self.branch(line, &name, rest),
            _ if !self.active() => {}
            "define" => self.define(line, rest)?,
            "undef" => {
                if let Some(Token { tok: Tok::Word(name), .. }) = rest.first() {
                    self.macros.remove(name);
                }
            }
            "version" => self.set_version(line, rest, at_start)?,
            "error" => return Err(GlslError::new(line, ErrorKind::Directive(self.spell(rest)))),
            "extension" | "pragma" | "line" => {}
            _ => return Err(GlslError::syntax(line, format!("unknown directive #{name}"))),
        }
        Ok(())
    }

    fn spell(&self, tokens: &[Token]) -> String {
        let word = |token: &Token| match token.tok {
            Tok::Word(name) => self.names.text(name).to_owned(),
            Tok::Int(value) | Tok::Uint(value) => value.to_string(),
            Tok::Float(value) => value.to_string(),
            Tok::Punct(text) => text.to_owned(),
            Tok::Junk(_) | Tok::End => String::new(),
        };
        // A message is for people; a line of a megabyte is not.
        tokens.iter().take(32).map(word).collect::<Vec<_>>().join(" ")
    }

    fn set_version(&mut self, line: u32, rest: &[Token], at_start: bool) -> Result<()> {
        let Some(Token { tok: Tok::Int(version), .. }) = rest.first() else {
            return Err(GlslError::syntax(line, "#version needs a number"));
        };
        if !at_start {
            return Err(GlslError::syntax(line, "#version must come first"));
        }
        if !self.versions.contains(version) {
            return Err(GlslError::new(line, ErrorKind::Version(*version)));
        }
        self.version = *version;
        self.define_number("__VERSION__", *version);
        Ok(())
    }

    fn define(&mut self, line: u32, rest: &[Token]) -> Result<()> {
        let Some(Token { tok: Tok::Word(name), .. }) = rest.first() else {
            return Err(GlslError::syntax(line, "#define needs a name"));
        };
        let mut body = &rest[1..];
        let mut parameters = None;
        if body.first().is_some_and(|token| token.tok == Tok::Punct("(") && token.glued) {
            let close = body.iter().position(|token| token.tok == Tok::Punct(")"));
            let close = close.ok_or_else(|| GlslError::syntax(line, "parameters without `)`"))?;
            let names = body[1..close].iter().filter_map(|token| match token.tok {
                Tok::Word(name) => Some(name),
                _ => None,
            });
            parameters = Some(names.collect());
            body = &body[close + 1..];
        }
        self.macros.insert(*name, Macro { parameters, body: body.to_vec() });
        Ok(())
    }

    fn open(&mut self, line: u32, directive: &str, rest: &[Token]) -> Result<()> {
        if self.branches.len() >= CONDITION_DEPTH_MAX {
            return Err(GlslError::limit(line, "CONDITION_DEPTH_MAX"));
        }
        if !self.active() {
            self.branches.push(Branch { active: false, taken: true, after_else: false });
            return Ok(());
        }
        let holds = if directive == "if" {
            condition::holds(self, line, rest)?
        } else {
            let Some(Token { tok: Tok::Word(name), .. }) = rest.first() else {
                return Err(GlslError::syntax(line, format!("#{directive} needs a name")));
            };
            self.is_defined(*name) == (directive == "ifdef")
        };
        self.branches.push(Branch { active: holds, taken: holds, after_else: false });
        Ok(())
    }

    fn branch(&mut self, line: u32, directive: &str, rest: &[Token]) -> Result<()> {
        let stray = || GlslError::syntax(line, format!("#{directive} without #if"));
        let branch = self.branches.pop().ok_or_else(stray)?;
        if directive == "endif" {
            return Ok(());
        }
        if branch.after_else {
            return Err(stray());
        }
        let wanted = !branch.taken && (directive == "else" || condition::holds(self, line, rest)?);
        self.branches.push(Branch {
            active: wanted,
            taken: branch.taken || wanted,
            after_else: directive == "else",
        });
        Ok(())
    }

    fn spend(&mut self, line: u32, tokens: usize) -> Result<()> {
        match self.budget.checked_sub(tokens) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(GlslError::limit(line, "EXPANSION_MAX")),
        }
    }

    /// Replaces macros in `input`; those in `busy` are being replaced and stay as they are.
    pub(super) fn expand(
        &mut self,
        input: &[Token],
        busy: &mut Vec<Name>,
        output: &mut Vec<Token>,
    ) -> Result<()> {
        let mut at = 0;
        while let Some(token) = input.get(at) {
            at += 1;
            self.spend(token.line, 1)?;
            let Tok::Word(name) = token.tok else {
                output.push(*token);
                continue;
            };
            if name == self.line_name {
                output.push(Token { tok: Tok::Int(token.line), ..*token });
                continue;
            }
            let Some(found) = self.macros.get(&name).filter(|_| !busy.contains(&name)) else {
                output.push(*token);
                continue;
            };
            let opens = input.get(at).is_some_and(|next| next.tok == Tok::Punct("("));
            if found.parameters.is_some() && !opens {
                output.push(*token);
                continue;
            }
            let found = found.clone();
            self.spend(token.line, found.body.len())?;
            if busy.len() >= MACRO_DEPTH_MAX {
                return Err(GlslError::limit(token.line, "MACRO_DEPTH_MAX"));
            }
            let body = match &found.parameters {
                None => found.body.iter().map(|part| Token { line: token.line, ..*part }).collect(),
                Some(parameters) => {
                    let (arguments, after) = arguments(token.line, input, at + 1)?;
                    at = after;
                    self.substitute(token, &found.body, parameters, &arguments, busy)?
                }
            };
            busy.push(name);
            self.expand(&body, busy, output)?;
            busy.pop();
        }
        Ok(())
    }

    /// The body with arguments in place of parameters.
    fn substitute(
        &mut self,
        call: &Token,
        body: &[Token],
        parameters: &[Name],
        arguments: &[&[Token]],
        busy: &mut Vec<Name>,
    ) -> Result<Vec<Token>> {
        let empty = parameters.is_empty() && arguments.iter().all(|argument| argument.is_empty());
        if parameters.len() != arguments.len() && !empty {
            return Err(GlslError::syntax(call.line, "wrong number of macro arguments"));
        }
        let mut expanded = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let mut tokens = Vec::new();
            // The depth of nested arguments counts as well, hence the marker.
            busy.push(Name(u32::MAX));
            if busy.len() >= MACRO_DEPTH_MAX {
                return Err(GlslError::limit(call.line, "MACRO_DEPTH_MAX"));
            }
            self.expand(argument, busy, &mut tokens)?;
            busy.pop();
            expanded.push(tokens);
        }
        let mut result = Vec::new();
        for token in body {
            let parameter = match token.tok {
                Tok::Word(name) => parameters.iter().position(|parameter| *parameter == name),
                _ => None,
            };
            match parameter.and_then(|index| expanded.get(index)) {
                Some(tokens) => {
                    self.spend(call.line, tokens.len())?;
                    result.extend_from_slice(tokens);
                }
                None => result.push(Token { line: call.line, ..*token }),
            }
        }
        Ok(result)
    }
}

/// The arguments of a macro call whose `(` is before `at`, and the place after its `)`.
fn arguments(line: u32, input: &[Token], at: usize) -> Result<(Vec<&[Token]>, usize)> {
    let mut arguments = Vec::new();
    let mut depth = 0_usize;
    let mut start = at;
    for (index, token) in input.iter().enumerate().skip(at) {
        match token.tok {
            Tok::Punct("(") => depth += 1,
            Tok::Punct(")") if depth == 0 => {
                arguments.push(&input[start..index]);
                return Ok((arguments, index + 1));
            }
            Tok::Punct(")") => depth -= 1,
            Tok::Punct(",") if depth == 0 => {
                arguments.push(&input[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    Err(GlslError::syntax(line, "macro call without `)`"))
}
