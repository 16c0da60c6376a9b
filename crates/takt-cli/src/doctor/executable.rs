//! What kind of program it is, as far as hooking depends on it.

use std::env;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Finding;

/// The beginning of an ELF file with its program headers.
const HEAD_BYTES: u64 = 4096;

pub(super) fn findings(program: &Path, vendor: bool) -> Vec<Finding> {
    let Some(path) = find(program) else {
        let found = format!("cannot find the command '{}'", program.display());
        return vec![Finding::problem("program", found, "check the spelling, or give its path")];
    };
    let mut findings = Vec::new();
    let mode = fs::metadata(&path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o6000 != 0 {
        findings.push(Finding::problem(
            "program",
            format!("{} changes its user: the loader ignores the environment there", path.display()),
            "run it as that user, without the setuid or setgid bit",
        ));
    }
    findings.push(match kind(&head(&path), vendor) {
        Ok(kind) => Finding::ok("program", format!("{}: {kind}", path.display())),
        Err((found, remedy)) => Finding::problem("program", format!("{}: {found}", path.display()), remedy),
    });
    findings
}

fn head(path: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    // What cannot be read is no ELF file; the shell will say so as well.
    let _short = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    head
}

/// What the file is, or why it cannot be hooked and what to do.
fn kind(head: &[u8], vendor: bool) -> Result<&'static str, (&'static str, &'static str)> {
    const CLASS: usize = 4;
    if head.starts_with(b"#!") {
        return Ok("a script; what it runs is hooked");
    }
    if !head.starts_with(b"\x7fELF") {
        return Err(("neither a program nor a script", "give the program itself"));
    }
    if head.get(CLASS) != Some(&2) {
        return Err(("a 32-bit program", "only 64-bit programs can be hooked"));
    }
    match (has_interpreter(head), vendor) {
        (true, _) => Ok("a 64-bit program"),
        (false, _) => Err(("statically linked: it loads no libraries", "use a dynamically linked build")),
    }
}

/// Whether an ELF file asks for a loader of libraries.
fn has_interpreter(head: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let half = |at: usize| {
        head.get(at..at + 2).map_or(0, |bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    };
    let (size, count) = (half(54), half(56));
    let start =
        head.get(32..40).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let start = usize::try_from(start).unwrap_or(0);
    (0..count).any(|number| {
        let at = start.saturating_add(number.saturating_mul(size));
        let word = head.get(at..).and_then(|rest| rest.first_chunk());
        word.is_some_and(|word| u32::from_le_bytes(*word) == PT_INTERP)
    })
}

/// The file that a shell would run.
fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_scripts_and_others_are_told_apart() {
        let own = head(&env::current_exe().unwrap());
        assert_eq!(kind(&own, true), Ok("a 64-bit program"));
        assert!(kind(b"#!/bin/sh\n", true).is_ok());
        assert!(kind(b"hello", true).is_err());
        assert!(kind(b"\x7fELF\x01", true).unwrap_err().0.contains("32-bit"));
        assert!(kind(b"\x7fELF\x02", true).unwrap_err().0.contains("statically"));
        assert_eq!(find(Path::new("no-such-command-of-ours")), None);
        assert!(find(Path::new("sh")).is_some());
    }
}
