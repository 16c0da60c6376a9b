//! Policies can be read: their functions are short, and they do not know how the GPU executes.

use crate::lexer::{Source, find_words, is_word, line_at};
use crate::purity::without_tests;
use crate::tidy::Finding;
use crate::tree::{File, Tree};

/// Where Takt's own policy is, and what policies share.
const OWN: &str = "crates/takt-core/src/policy/";

/// Where the policies are that it is compared with.
const OTHERS: &str = "crates/takt-policies/src/";

/// No function of a policy has more lines, counted from its name to its closing brace.
const FUNCTION_LINES_MAX: usize = 40;

/// Names of execution models. A policy asks the GPU a question that has a name.
const MODELS: &[&str] = &[
    "InOrder",
    "Preemptive",
    "TimeShared",
    "AnyOrder",
    "is_time_shared",
    "any_order",
    "in_order",
    "in_turn",
];

/// Checks the sources of all policies.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files().iter().filter(|file| file.is_rust()) {
        if file.path.starts_with(OWN) || file.path.starts_with(OTHERS) {
            let (code, _) = without_tests(&Source::new(&file.text).code);
            findings.extend(models(file, &code));
            findings.extend(functions(file, &code));
        }
    }
    findings
}

fn models(file: &File, code: &str) -> Vec<Finding> {
    let found = MODELS.iter().flat_map(|model| find_words(code, model).map(move |at| (at, model)));
    let name = |(at, model): (usize, &&str)| {
        let message = format!("a policy must not name {model}: ask the GPU a question that has a name");
        Finding::error(&file.path, line_at(code, at), message)
    };
    found.map(name).collect()
}

fn functions(file: &File, code: &str) -> Vec<Finding> {
    let long = |at: usize| {
        let (name, lines) = function(&code[at..])?;
        let message =
            format!("{name} has {lines} lines, at most {FUNCTION_LINES_MAX} are allowed in a policy");
        (lines > FUNCTION_LINES_MAX).then(|| Finding::error(&file.path, line_at(code, at), message))
    };
    find_words(code, "fn").filter_map(long).collect()
}

/// Name and lines of the function that begins there, if it has a body.
fn function(code: &str) -> Option<(&str, usize)> {
    let name = code["fn".len()..].trim_start();
    let name = &name[..name.find(|character| !is_word(character)).filter(|end| *end > 0)?];
    let (mut depth, mut brackets) = (0u32, 0u32);
    for (at, character) in code.char_indices() {
        match character {
            // As in the type of an array.
            '[' | '(' if depth == 0 => brackets += 1,
            ']' | ')' if depth == 0 => brackets = brackets.checked_sub(1)?,
            ';' if depth == 0 && brackets == 0 => return None,
            '{' => depth += 1,
            '}' if depth <= 1 => return Some((name, code[..at].matches('\n').count() + 1)),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(&Tree::of(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn functions_of_policies_are_short() {
        let path = "crates/takt-core/src/policy/timeline/rule.rs";
        let of = |lines: usize| {
            let body = "    { let _ = [0; 2]; }\n".repeat(lines - 2);
            format!(
                "trait A {{\n    fn short(&self, a: [u8; 2]);\n}}\nfn long<'a>() -> [u8; 2] {{\n{body}}}\n"
            )
        };
        assert_eq!(found(path, &of(40)), Vec::<String>::new());
        let message = "error: long has 41 lines, at most 40 are allowed in a policy";
        assert_eq!(found(path, &of(41)), [format!("{path}:4: {message}")]);
        assert_eq!(found("crates/takt-policies/src/germ.rs", &of(41)).len(), 1);
        assert_eq!(found("crates/takt-sim/src/gpu.rs", &of(41)), Vec::<String>::new());
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", of(60));
        assert_eq!(found(path, &test), Vec::<String>::new());
    }

    #[test]
    fn no_policy_names_an_execution_model() {
        let path = "crates/takt-policies/src/runlist.rs";
        let text = "// Gpu::InOrder\nfn f() {\n    gpu == Gpu::TimeShared;\n    gpu.is_time_shared()\n}\n";
        let found = found(path, text);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with(&format!("{path}:3: error: a policy must not name TimeShared")));
        assert!(found[1].contains(":4: "), "{found:?}");
    }
}
