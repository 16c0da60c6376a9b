//! What kind of program it is, as far as hooking depends on it.

use std::path::Path;

use super::Finding;
use crate::hook::{Way, program};

pub(super) fn findings(command: &Path, way: Way) -> Vec<Finding> {
    let Some(path) = program::find(command) else {
        let found = format!("cannot find the command '{}'", command.display());
        return vec![Finding::problem("program", found, "check the spelling, or give its path")];
    };
    let mut findings = Vec::new();
    match program::gain(&path) {
        Some(gain) if gain.keeps_out(way) => {
            findings.push(Finding::problem("program", format!("{} {gain}", path.display()), gain.remedy()));
        }
        gain => findings.extend(gain.map(|gain| Finding::note("program", gain.without_glx()))),
    }
    findings.push(match kind(&program::head(&path)) {
        Ok(kind) => Finding::ok("program", format!("{}: {kind}", path.display())),
        Err((found, remedy)) => Finding::problem("program", format!("{}: {found}", path.display()), remedy),
    });
    findings
}

/// What the file is, or why it cannot be hooked and what to do.
fn kind(head: &[u8]) -> Result<&'static str, (&'static str, &'static str)> {
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
    match has_interpreter(head) {
        true => Ok("a 64-bit program"),
        false => Err(("statically linked: it loads no libraries", "use a dynamically linked build")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_scripts_and_others_are_told_apart() {
        let own = program::head(&std::env::current_exe().unwrap());
        assert_eq!(kind(&own), Ok("a 64-bit program"));
        assert!(kind(b"#!/bin/sh\n").is_ok());
        assert!(kind(b"hello").is_err());
        assert!(kind(b"\x7fELF\x01").unwrap_err().0.contains("32-bit"));
        assert!(kind(b"\x7fELF\x02").unwrap_err().0.contains("statically"));
    }
}
