//! Roughly how much one invocation of a compute shader does.
//!
//! Compute shaders work on memory that this front end does not model, so they are not lowered as vertex
//! and fragment shaders are. Their words are counted instead: operators, calls and subscripts, times the
//! iterations of the loops around them, functions where they are called. That tells a copy from a
//! simulation; measured times correct it.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{ErrorKind, GlslError, Result};
use super::limits::{NESTING_MAX, TRIPS_ASSUMED};
use super::preprocess::{WITH_COMPUTE, preprocess};
use super::token::{Name, Names, Tok, Token};

/// What one invocation does.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Effort {
    /// Operations, roughly.
    pub operations: f64,
    /// Whether the source tells how often each of its loops runs; `TRIPS_ASSUMED` stands in where not.
    pub sure: bool,
    /// Whether each invocation does all of that: nothing chooses between ways, and nothing ends early.
    pub straight: bool,
    /// Whether workgroups may wait for one another: a loop without a known end looks at what others write.
    /// GLSL promises to none of them that the others run.
    pub waits: bool,
}

/// Counts what a compute shader does.
///
/// # Errors
///
/// Says what is wrong with the source, or which bound it reached.
pub fn effort(source: &str, extensions: &[&str]) -> Result<Effort> {
    let unit = preprocess(source, extensions, WITH_COMPUTE)?;
    let mut counter = OperationCounter::new(&unit.names, &unit.tokens);
    counter.find_functions();
    let operations = counter.function("main")?;
    let shared = unit.tokens.iter().any(|token| {
        let Tok::Word(name) = token.tok else { return false };
        matches!(unit.names.text(name), "coherent" | "volatile")
    });
    let waits = counter.unsure && (shared || counter.waits);
    let straight = !unit.tokens.iter().any(|token| chooses(&unit.names, token.tok));
    Ok(Effort { operations, sure: !counter.unsure, straight, waits })
}

struct OperationCounter<'a> {
    names: &'a Names,
    tokens: &'a [Token],
    /// Where brackets are closed.
    brackets: BTreeMap<usize, usize>,
    /// Bodies of functions, without their braces.
    functions: BTreeMap<&'a str, Vec<(usize, usize)>>,
    /// Constants with a number behind them.
    constants: BTreeMap<Name, u32>,
    known: BTreeMap<&'a str, f64>,
    open: BTreeSet<&'a str>,
    depth: usize,
    unsure: bool,
    /// A loop without a known end contains an atomic operation.
    waits: bool,
}

impl<'a> OperationCounter<'a> {
    fn new(names: &'a Names, tokens: &'a [Token]) -> Self {
        Self {
            names,
            tokens,
            brackets: brackets(tokens),
            functions: BTreeMap::new(),
            constants: BTreeMap::new(),
            known: BTreeMap::new(),
            open: BTreeSet::new(),
            depth: 0,
            unsure: false,
            waits: false,
        }
    }

    fn word(&self, at: usize) -> Option<&'a str> {
        match self.tokens.get(at)?.tok {
            Tok::Word(name) => Some(self.names.text(name)),
            _ => None,
        }
    }

    fn is(&self, at: usize, punct: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.tok == Tok::Punct(match_punct(punct)))
    }

    /// Behind the bracket that closes the one at `at`.
    fn behind(&self, at: usize) -> Result<usize> {
        let closed = self.brackets.get(&at).map(|close| close + 1);
        closed.ok_or_else(|| GlslError::syntax(self.line(at), "bracket without end"))
    }

    fn line(&self, at: usize) -> u32 {
        self.tokens.get(at).map_or(0, |token| token.line)
    }

    /// Notes functions and constants.
    fn find_functions(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            if self.word(at) == Some("const")
                && let (Some(Tok::Word(name)), true) =
                    (self.tokens.get(at + 2).map(|token| token.tok), self.is(at + 3, "="))
                && let Some(Tok::Int(value) | Tok::Uint(value)) =
                    self.tokens.get(at + 4).map(|token| token.tok)
            {
                self.constants.insert(name, value);
            }
            let Some(name) = self.word(at).filter(|_| self.is(at + 1, "(")) else {
                at += 1;
                continue;
            };
            let Ok(behind) = self.behind(at + 1) else { return };
            if !self.is(behind, "{") {
                at += 1;
                continue;
            }
            // A word with arguments and a block behind it is a function, or one of these.
            let Ok(end) = self.behind(behind) else { return };
            if matches!(name, "if" | "for" | "while" | "switch" | "layout") {
                at += 1;
                continue;
            }
            self.functions.entry(name).or_default().push((behind + 1, end - 1));
            at = end;
        }
    }

    /// What a call costs; of several functions of that name, the dearest.
    fn function(&mut self, name: &'a str) -> Result<f64> {
        if let Some(known) = self.known.get(name) {
            return Ok(*known);
        }
        let bodies = match self.functions.get(name) {
            Some(bodies) => bodies.clone(),
            None if name == "main" => return Err(GlslError::new(0, ErrorKind::NoMain)),
            None => return Ok(call_cost(name)),
        };
        if !self.open.insert(name) {
            return Err(GlslError::new(0, ErrorKind::Recursion(name.to_owned())));
        }
        let mut most = 0.0_f64;
        for (from, to) in bodies {
            most = most.max(self.block(from, to)?);
        }
        self.open.remove(name);
        self.known.insert(name, most);
        Ok(most)
    }

    /// What the words between two places cost.
    fn block(&mut self, from: usize, to: usize) -> Result<f64> {
        self.depth += 1;
        if self.depth > NESTING_MAX {
            return Err(GlslError::limit(self.line(from), "NESTING_MAX"));
        }
        let (mut at, mut sum) = (from, 0.0);
        while at < to {
            let (cost, next) = self.step(at)?;
            sum += cost;
            at = next;
        }
        self.depth -= 1;
        Ok(sum)
    }

    /// What begins at a place: its cost, and where the next thing begins.
    fn step(&mut self, at: usize) -> Result<(f64, usize)> {
        match self.word(at) {
            Some("for" | "while") if self.is(at + 1, "(") => self.loop_with_header(at),
            Some("do") => self.loop_with_footer(at),
            Some(name) if self.is(at + 1, "(") => Ok((self.function(name)?, at + 1)),
            Some(_) => Ok((0.0, at + 1)),
            None => Ok((punct_cost(self.tokens[at].tok), at + 1)),
        }
    }

    fn loop_with_header(&mut self, at: usize) -> Result<(f64, usize)> {
        let behind = self.behind(at + 1)?;
        let header = (at + 2, behind - 1);
        let end = self.statement(behind)?;
        let trips = if self.word(at) == Some("for") { self.trips(header) } else { None };
        let each = self.block(header.0, header.1)? + self.block(behind, end)?;
        Ok((each * self.counted(trips, at, end), end))
    }

    fn loop_with_footer(&mut self, at: usize) -> Result<(f64, usize)> {
        let body_end = self.statement(at + 1)?;
        // `while`, its condition, and a semicolon.
        let end = if self.is(body_end + 1, "(") { self.behind(body_end + 1)? } else { body_end };
        let each = self.block(at + 1, body_end)? + self.block(body_end + 1, end)?;
        Ok((each * self.counted(None, at, end), end))
    }

    /// Where the statement ends that begins at a place.
    fn statement(&self, at: usize) -> Result<usize> {
        if self.is(at, "{") {
            return self.behind(at);
        }
        let mut here = at;
        while here < self.tokens.len() && self.tokens[here].tok != Tok::End {
            match self.tokens[here].tok {
                Tok::Punct(";") => return Ok(here + 1),
                Tok::Punct("(" | "[") => here = self.behind(here)?,
                // The body of a loop or condition that is this statement.
                Tok::Punct("{") => return self.behind(here),
                _ => here += 1,
            }
        }
        Err(GlslError::syntax(self.line(at), "statement without end"))
    }

    /// How often a loop runs between two places, as a number in any case.
    fn counted(&mut self, trips: Option<f64>, from: usize, to: usize) -> f64 {
        if trips.is_none() {
            self.unsure = true;
            self.waits |= (from..to).any(|at| self.word(at).is_some_and(is_atomic));
        }
        trips.unwrap_or(TRIPS)
    }

    /// Iterations of `for (int i = 0; i < 8; i++)` and its like.
    fn trips(&self, (from, to): (usize, usize)) -> Option<f64> {
        let semicolons: Vec<usize> = (from..to).filter(|at| self.is(*at, ";")).collect();
        let [first, second] = semicolons[..] else { return None };
        if !self.is(first - 2, "=") {
            return None;
        }
        let start = self.number(first - 1)?;
        // A name, a comparison, and a number.
        let bound = (second - first == 4).then(|| self.number(second - 1)).flatten()?;
        let closed = matches!(self.tokens[first + 2].tok, Tok::Punct("<=" | ">="));
        let length = (bound - start).abs() + f64::from(u8::from(closed));
        let trips = match (to - second - 1, self.tokens[second + 2].tok) {
            (2, _) => length,
            (3, Tok::Punct("+=" | "-=")) => (length / self.number(to - 1).filter(|step| *step > 0.0)?).ceil(),
            // By a factor or a shift.
            (3, _) => length.max(2.0).log2().ceil(),
            _ => return None,
        };
        Some(trips.max(0.0))
    }

    fn number(&self, at: usize) -> Option<f64> {
        match self.tokens.get(at)?.tok {
            Tok::Int(value) | Tok::Uint(value) => Some(f64::from(value)),
            Tok::Word(name) => self.constants.get(&name).map(|value| f64::from(*value)),
            _ => None,
        }
    }
}

/// Which bracket closes which; one that is closed by another kind is closed all the same.
fn brackets(tokens: &[Token]) -> BTreeMap<usize, usize> {
    let (mut open, mut pairs) = (Vec::new(), BTreeMap::new());
    for (at, token) in tokens.iter().enumerate() {
        match token.tok {
            Tok::Punct("(" | "[" | "{") => open.push(at),
            Tok::Punct(")" | "]" | "}") => {
                pairs.extend(open.pop().map(|from| (from, at)));
            }
            _ => {}
        }
    }
    pairs
}

/// Tokens hold texts that live for ever; this finds the one that is asked for.
fn match_punct(punct: &str) -> &'static str {
    ["(", "{", "=", ";"].into_iter().find(|known| *known == punct).unwrap_or("")
}

/// Whether invocations may differ in what they do behind such a word.
fn chooses(names: &Names, tok: Tok) -> bool {
    match tok {
        Tok::Word(name) => matches!(names.text(name), "if" | "switch" | "break" | "continue" | "return"),
        Tok::Punct(punct) => matches!(punct, "?" | "&&" | "||"),
        _ => false,
    }
}

fn is_atomic(word: &str) -> bool {
    word.starts_with("atomic") || word.starts_with("imageAtomic")
}

/// A call of a function of the language. Constructors cost nothing.
fn call_cost(name: &str) -> f64 {
    const SPECIAL: [&str; 22] = [
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "pow",
        "exp",
        "log",
        "exp2",
        "log2",
        "sqrt",
        "inversesqrt",
        "normalize",
        "length",
        "distance",
    ];
    const FREE: [&str; 5] = ["if", "switch", "float", "int", "uint"];
    let vectors = ["vec", "ivec", "uvec", "bvec", "mat"];
    match name {
        _ if name.starts_with("texture") || name.starts_with("texel") => MEMORY,
        _ if name.starts_with("image") || is_atomic(name) => MEMORY,
        _ if SPECIAL.contains(&name) => SPECIAL_COST,
        _ if FREE.contains(&name) || vectors.iter().any(|kind| name.starts_with(kind)) => 0.0,
        _ => 1.0,
    }
}

fn punct_cost(tok: Tok) -> f64 {
    match tok {
        Tok::Punct("[") => 2.0,
        Tok::Punct("(" | ")" | "]" | "{" | "}" | ";" | "," | "." | "=" | ":" | "#") => 0.0,
        Tok::Punct(_) => 1.0,
        _ => 0.0,
    }
}

/// Iterations of a loop whose number the source does not tell.
const TRIPS: f64 = TRIPS_ASSUMED as f64;
/// What a lookup or an atomic operation costs, in operations.
const MEMORY: f64 = 8.0;
/// What a sine costs.
const SPECIAL_COST: f64 = 4.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Effort {
        let source = format!(
            "#version 310 es\nlayout(local_size_x = 8) in;\nconst int N = 10;\n\
             layout(std430, binding = 0) buffer Data {{ float data[]; }};\n{body}"
        );
        effort(&source, &[]).expect("it can be read")
    }

    #[test]
    fn loops_multiply_and_functions_count_where_they_are_called() {
        let once = of("void main() { float a = 1.0; a = a * a + 2.0; }");
        assert_eq!(once, Effort { operations: 2.0, sure: true, straight: true, waits: false });
        let body = |header: &str| {
            of(&format!("void main() {{ float a = 1.0; for ({header}) {{ a = a * a + 2.0; }} }}"))
        };
        let ten = body("int i = 0; i < 10; i++");
        assert!(ten.sure && (ten.operations - 10.0 * 4.0).abs() < 1e-9, "{ten:?}");
        assert_eq!(body("int i = 0; i < N; ++i"), ten, "a constant");
        assert_eq!(body("int i = 1; i <= 10; i += 1").operations, 40.0, "the last one counts");
        assert_eq!(body("uint i = 64u; i > 0u; i >>= 1u").operations, 6.0 * 4.0, "halves");
        let called = of("float f(float x) { return sin(x) + sin(x); } \
             void main() { for (int i = 0; i < 10; i++) data[0] = f(1.0); }");
        assert_eq!(called.operations, 10.0 * (9.0 + 2.0 + 2.0));
    }

    #[test]
    fn what_chooses_between_ways_is_not_straight() {
        assert!(of("void main() { for (int i = 0; i < 8; i++) data[i] = sin(1.0); }").straight);
        for body in ["if (data[0] > 0.0) data[1] = 1.0;", "data[0] = data[1] > 0.0 ? 1.0 : 2.0;", "return;"] {
            assert!(!of(&format!("void main() {{ {body} }}")).straight, "{body}");
        }
    }

    #[test]
    fn unknown_ends_are_assumed_and_said() {
        let long = of("uniform int n; void main() { for (int i = 0; i < n; i++) { data[i] = 1.0; } }");
        assert!(!long.sure && !long.waits && long.operations > 1024.0, "{long:?}");
        let within =
            of("uniform int n; void main() { int i = 0; do { i++; } while (i < n); while (i > 0) i--; }");
        assert!(!within.sure && within.operations > 4000.0, "{within:?}");
    }

    #[test]
    fn loops_that_wait_for_others_are_noticed() {
        let buffer = "layout(binding = 1) buffer Flags { uint flag; };";
        assert!(of(&format!("{buffer} void main() {{ while (atomicAdd(flag, 0u) < 4u) {{}} }}")).waits);
        assert!(of(&format!("coherent {buffer} void main() {{ while (flag < 4u) {{}} }}")).waits);
        assert!(!of(&format!("coherent {buffer} void main() {{ atomicAdd(flag, 1u); }}")).waits);
        assert!(
            !of(&format!("{buffer} void main() {{ for (int i = 0; i < 4; i++) atomicAdd(flag, 1u); }}"))
                .waits
        );
    }

    #[test]
    fn what_is_no_shader_is_an_error() {
        let all = |source: &str| effort(source, &[]).unwrap_err();
        assert_eq!(all("#version 310 es\nvoid f() {}").kind, ErrorKind::NoMain);
        assert_eq!(all("#version 300 es\nvoid main() {}").kind, ErrorKind::Version(300));
        assert!(matches!(
            all("#version 310 es\nvoid f() { f(); } void main() { f(); }").kind,
            ErrorKind::Recursion(_)
        ));
        all("#version 310 es\nvoid main() { for (int i");
        all("#version 310 es\nvoid main() { for (;;) ");
        let deep = format!("#version 310 es\nvoid main() {{ {} ; }}", "for (;;) ".repeat(200));
        assert!(all(&deep).is_limit());
    }
}
