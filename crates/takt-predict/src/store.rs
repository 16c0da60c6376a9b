//! How profiles and models are kept per GPU and driver: names of folders and files, and a seal
//! that shows damage. Where the folders are, and reading and writing, is up to others.

use std::fmt::Write as _;

use crate::cost::ProgramId;
use crate::mars::fnv_1a;

/// Constants of a machine, as a sealed [profile](crate::profile).
pub const PROFILE: &str = "profile.txt";
/// Trained [models](crate::shaders); they have hashes of their own.
pub const MODELS: &str = "shaders.txt";
/// Rates of [programs](crate::programs) that were measured one by one.
pub const RATES: &str = "programs.txt";
/// Which ways of cutting are [exact](crate::exactness).
pub const EXACTNESS: &str = "exact.txt";
/// Folder with sources of programs that were seen.
pub const PROGRAMS: &str = "programs";

/// The file with the sources of a program, in [`PROGRAMS`].
pub fn sources_file(program: ProgramId) -> String {
    format!("{:016x}{SOURCES_END}", program.0)
}

/// How names of such files end.
pub const SOURCES_END: &str = ".glsl";

/// Letters of a GPU's name that are kept, for people to recognise it.
const NAME_MAX: usize = 40;

/// The folder of a GPU with a driver: what both are called, as far as file names can say it, and
/// a hash of all of it.
pub fn folder(gpu: &str, driver: &str) -> String {
    let mut name = String::new();
    for letter in gpu.chars() {
        if letter.is_ascii_alphanumeric() {
            name.push(letter.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= NAME_MAX {
            break;
        }
    }
    let hash = fnv_1a(format!("{gpu}\0{driver}").as_bytes());
    let name = name.trim_end_matches('-');
    format!("{}-{hash:016x}", if name.is_empty() { "gpu" } else { name })
}

/// How the last line of a sealed text begins: a remark, to all that know remarks.
const SEAL: &str = "# sum ";

/// The hash that seals have: it finds damage, not malice.
pub fn sum(text: &str) -> u64 {
    fnv_1a(text.as_bytes())
}

/// A text with its hash as last line.
pub fn seal(mut text: String) -> String {
    let sum = fnv_1a(text.as_bytes());
    writeln!(text, "{SEAL}{sum:016x}").expect("a string grows");
    text
}

/// A text that was sealed, if nothing is missing or changed.
pub fn unseal(text: &str) -> Result<&str, Damaged> {
    let end = text.rfind(SEAL).ok_or(Damaged)?;
    let (body, seal) = text.split_at(end);
    if seal == format!("{SEAL}{:016x}\n", fnv_1a(body.as_bytes())) { Ok(body) } else { Err(Damaged) }
}

/// A text that does not match its checksum.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error, Debug)]
#[error("the file is damaged: its last line is not the hash of the others")]
pub struct Damaged;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_can_be_recognised_and_differ() {
        let name = folder("llvmpipe (LLVM 15.0.6, 256 bits)", "OpenGL ES 3.2 Mesa 22.3.6");
        assert!(name.starts_with("llvmpipe-llvm-15-0-6-256-bits-"), "{name}");
        assert_ne!(name, folder("llvmpipe (LLVM 15.0.6, 256 bits)", "OpenGL ES 3.2 Mesa 22.3.7"));
        assert!(folder("../../etc", "").starts_with("etc-"));
        assert!(folder("", "").starts_with("gpu-"));
        assert!(folder(&"x y".repeat(300), "").len() < 64);
    }

    #[test]
    fn every_change_breaks_the_seal() {
        let sealed = seal("takt-profile 1\nflush_ns = 3\n".to_owned());
        assert_eq!(unseal(&sealed), Ok("takt-profile 1\nflush_ns = 3\n"));
        for at in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..at]), Err(Damaged), "cut at {at}");
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] ^= 1;
            assert_eq!(unseal(&String::from_utf8(bytes).unwrap()), Err(Damaged), "changed at {at}");
        }
    }
}
