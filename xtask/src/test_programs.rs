//! Every file of a test program is a module of it: the compiler leaves out files that none names.
//!
//! Tests of a crate are modules of one program, `tests/it/main.rs`, because each program is linked by itself.

use crate::lexer::Source;
use crate::tidy::Finding;
use crate::tree::{File, Tree};

const FOLDER: &str = "/tests/it/";

/// Checks the files of all test programs.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().iter().filter_map(|file| check_file(file, tree)).collect()
}

fn check_file(file: &File, tree: &Tree) -> Option<Finding> {
    let (root, name) = file.path.split_once(FOLDER)?;
    let name = name.strip_suffix(".rs").filter(|name| *name != "main" && !name.contains('/'))?;
    let main = format!("{root}{FOLDER}main.rs");
    let wanted = format!("mod {name};");
    let is_named = |main: &File| Source::new(&main.text).code.lines().any(|line| line.trim() == wanted);
    let message = format!("not tested: {main} must say `{wanted}`");
    (!tree.file(&main).is_some_and(is_named)).then(|| Finding::error(&file.path, 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_no_program_names_are_found() {
        let main = ("crates/a/tests/it/main.rs", "mod b;\n// mod c;\n");
        let files = [main, ("crates/a/tests/it/b.rs", ""), ("crates/a/tests/it/c.rs", "")];
        let found: Vec<String> = check(&Tree::of(&files)).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("a/tests/it/c.rs:1: error: not tested"), "{found:?}");
        assert!(check(&Tree::of(&[("crates/a/tests/b.rs", "")])).is_empty());
        assert_eq!(check(&Tree::of(&[("crates/a/tests/it/b.rs", "")])).len(), 1);
    }
}
