//! Chores of the workspace.
//!
//! * `cargo xtask tidy` checks what compilers and linters do not: who may depend on whom, file
//!   sizes, purity, documents that hold together.
//! * `cargo xtask layers [--write]` prints the layer table, or puts it into `ARCHITECTURE.md`.
//! * `cargo xtask map [--write]` does so with the map of source files.
//! * `cargo xtask lines` counts lines of Rust by crate, tests apart.
//! * `cargo xtask gl DIR` writes the names of GL ES and EGL from the Khronos registry in DIR.
//! * `cargo xtask cuda FILE` writes the names of the CUDA driver API from the bindings in FILE, and
//!   `cargo xtask cuda hooks` those that Takt stands in front of.
//! * `cargo xtask bare` compiles the core, policies and analyses where there is no standard library.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool talks on its standard streams"
)]

mod bare;
mod claims;
mod cuda;
mod documents;
mod generated;
mod gl;
mod hashes;
mod layers;
mod lexer;
mod lines;
mod loaded;
mod map;
mod policies;
mod purity;
mod rust_files;
mod sentences;
mod test_programs;
mod tidy;
mod tree;
mod types;
mod words;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::tree::Tree;
use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask <command>

  tidy             check layers, sizes, purity and documents
  layers           print the layer table
  layers --write   put the layer table into ARCHITECTURE.md
  map              print the map of source files
  map --write      put the map of source files into ARCHITECTURE.md
  lines            count lines of Rust by crate, tests and generated files apart
  gl DIR           write the names of GL ES and EGL from gl.xml and egl.xml in DIR
  cuda FILE        write the names of the CUDA driver API from Rust bindings in FILE
  cuda hooks       write anew which of them Takt stands in front of
  bare             compile takt-core, takt-analysis and takt-policies without a standard library
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["layers"] => print(Ok(layers::render())),
        ["layers", "--write"] => layers::write(&workspace::root()).map(|()| ExitCode::SUCCESS),
        ["map"] => print(Tree::load(&workspace::root()).map(|tree| map::render(&tree))),
        ["map", "--write"] => map::write(&workspace::root()).map(|()| ExitCode::SUCCESS),
        ["lines"] => print(Tree::load(&workspace::root()).map(|tree| lines::render(&tree))),
        ["gl", folder] => print(gl::write(&workspace::root(), folder.as_ref())),
        ["cuda", "hooks"] => print(cuda::write_hooks(&workspace::root())),
        ["cuda", file] => print(cuda::write(&workspace::root(), file.as_ref())),
        ["bare"] => print(run_bare()),
        ["help" | "--help" | "-h"] => print(Ok(USAGE.to_owned())),
        _ => {
            eprint!("{USAGE}");
            Ok(ExitCode::from(2))
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::from(2)
    })
}

fn run_tidy() -> Result<ExitCode> {
    let root = workspace::root();
    let workspace = Workspace::load(&root)?;
    let tree = Tree::load(&root)?;
    let report = tidy::check(&workspace, &tree);
    for finding in &report {
        eprintln!("{finding}");
    }
    let errors = report.iter().filter(|finding| finding.is_error()).count();
    let warnings = report.len() - errors;
    println!("tidy: {} files, {errors} errors, {warnings} warnings", tree.files().len());
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_bare() -> Result<String> {
    let root = workspace::root();
    bare::check(&root, &Workspace::load(&root)?)
}

fn print(text: Result<String>) -> Result<ExitCode> {
    println!("{}", text?.trim_end());
    Ok(ExitCode::SUCCESS)
}
