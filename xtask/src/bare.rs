//! Shows that the core, its policies and its analyses need no operating system.
//!
//! The best witness is a build for a target that has none. Where no such target is installed, the
//! next best is a compiler whose library folder holds `core` and `alloc` of the host but no
//! `std`: anything that names the standard library fails to compile there. What that cannot show
//! is that the core fits a particular machine (atomics, pointer width).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{Kind, Workspace};

/// Each may use those before it.
const CRATES: &[&str] = &["takt-core", "takt-analysis", "takt-policies"];

/// The libraries that exist without an operating system.
const BARE_LIBRARIES: &[&str] = &["libcore-", "liballoc-", "libcompiler_builtins-"];

/// Compiles the crates without a standard library and says how that was done.
pub(crate) fn check(root: &Path, workspace: &Workspace) -> Result<String> {
    let names = CRATES.join(", ");
    if let Some(target) = installed_bare_target() {
        let mut cargo = Command::new(cargo());
        cargo.args(["build", "--quiet", "--lib", "--target", &target]);
        cargo.args(CRATES.iter().flat_map(|name| ["--package", name]));
        run(cargo.current_dir(root))?;
        return Ok(format!("bare: {names} build for {target}, which has no operating system"));
    }
    let stage = Stage::without_std()?;
    for name in CRATES {
        let package = workspace.package(name).with_context(|| format!("there is no {name}"))?;
        let used = package.dependencies.iter().filter(|dependency| dependency.kind != Kind::Dev);
        let used: Vec<&str> = used.map(|used| used.name.as_str()).collect();
        if let Some(foreign) = used.iter().find(|used| !CRATES.contains(used)) {
            bail!("{name} depends on {foreign}: only a bare target could show that this is harmless");
        }
        let source = package.roots.first().with_context(|| format!("{name} has no library"))?;
        stage.compile(name, &used, &root.join(source))?;
    }
    Ok(format!(
        "bare: {names} compile on the host with core and alloc alone (no std to be found, no other dependency); \
         no bare target is installed, so none was built"
    ))
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

fn rustc() -> std::ffi::OsString {
    std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// A target without an operating system whose libraries rustup has installed.
fn installed_bare_target() -> Option<String> {
    let output = Command::new("rustup").args(["target", "list", "--installed"]).output().ok()?;
    let list = String::from_utf8_lossy(&output.stdout).into_owned();
    bare_target(&list).map(str::to_owned)
}

fn bare_target(list: &str) -> Option<&str> {
    list.lines().map(str::trim).find(|target| target.split('-').any(|part| part == "none"))
}

fn ask(arguments: &[&str]) -> Result<String> {
    let output = Command::new(rustc()).args(arguments).output().context("cannot run rustc")?;
    ensure!(output.status.success(), "rustc {} failed", arguments.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("more than core and alloc is needed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// A copy of the compiler's folder that lacks `std`, with what was compiled against it; it vanishes with the value.
struct Stage {
    path: PathBuf,
}

impl Stage {
    fn new() -> Result<Self> {
        static COUNTER: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let count = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("takt-bare-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self { path })
    }

    fn without_std() -> Result<Self> {
        let stage = Self::new()?;
        let host = ask(&["--print", "host-tuple"])?;
        let libraries = Path::new("lib/rustlib").join(&host).join("lib");
        let from = Path::new(&ask(&["--print", "sysroot"])?).join(&libraries);
        let into = stage.path.join(&libraries);
        fs::create_dir_all(&into)?;
        let mut copied = 0;
        for entry in fs::read_dir(&from).with_context(|| format!("cannot list {}", from.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if BARE_LIBRARIES.iter().any(|library| name.starts_with(library)) {
                fs::copy(entry.path(), into.join(&name))?;
                copied += 1;
            }
        }
        ensure!(copied >= BARE_LIBRARIES.len(), "{} lacks core or alloc", from.display());
        Ok(stage)
    }

    /// Compiles a library, which uses some that were compiled before.
    fn compile(&self, name: &str, uses: &[&str], source: &Path) -> Result<()> {
        let mut compiler = Command::new(rustc());
        compiler.args(["--edition", "2024", "--crate-type", "rlib", "--emit", "metadata"]);
        compiler.args(uses.iter().flat_map(|used| ["--extern".to_owned(), used.replace('-', "_")]));
        compiler
            .args(["--cap-lints", "allow", "--crate-name", &name.replace('-', "_")])
            .arg("--sysroot")
            .arg(&self.path);
        run(compiler.arg("-L").arg(&self.path).arg("--out-dir").arg(&self.path).arg(source))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // Left-over files in the temporary folder do no harm.
        drop(fs::remove_dir_all(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiles(text: &str) -> bool {
        let stage = Stage::new().unwrap();
        let source = stage.path.join("lib.rs");
        fs::write(&source, text).unwrap();
        Stage::without_std().unwrap().compile("bare", &[], &source).is_ok()
    }

    #[test]
    fn only_code_without_std_compiles() {
        assert!(compiles(
            "#![no_std]\nextern crate alloc;\npub fn f() -> alloc::vec::Vec<u8> { alloc::vec![1] }"
        ));
        assert!(!compiles("pub fn f() {}"));
        assert!(!compiles("#![no_std]\nextern crate std;\npub fn f() {}"));
    }

    #[test]
    fn bare_targets_are_told_from_hosted_ones() {
        assert_eq!(bare_target("x86_64-unknown-linux-gnu\n"), None);
        let list = "x86_64-unknown-linux-gnu\nthumbv7em-none-eabihf\n";
        assert_eq!(bare_target(list), Some("thumbv7em-none-eabihf"));
        assert_eq!(bare_target("aarch64-unknown-none"), Some("aarch64-unknown-none"));
    }
}
