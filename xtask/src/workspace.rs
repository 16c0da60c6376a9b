//! What cargo knows about the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The workspace's packages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
}

/// One package.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml` from the root of the repository.
    pub(crate) manifest: String,
    /// Paths of the roots of its libraries and programs from the root of the repository.
    pub(crate) roots: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

impl Package {
    /// Its folder from the root of the repository.
    pub(crate) fn folder(&self) -> &str {
        self.manifest.strip_suffix("/Cargo.toml").unwrap_or("")
    }
}

/// A dependency as declared.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: Kind,
}

/// What a dependency is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Normal,
    Build,
    Dev,
}

/// The root of the repository: the folder above this package.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

impl Workspace {
    /// Asks cargo, without touching the network.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let json = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
        Self::parse(&json)
    }

    /// Takes what is needed out of cargo's answer.
    pub(crate) fn parse(json: &Value) -> Result<Self> {
        let root = json["workspace_root"].as_str().context("cargo metadata has no workspace_root")?;
        let listed = json["packages"].as_array().context("cargo metadata has no packages")?;
        let relative = |value: &Value| {
            let path = value.as_str().unwrap_or("");
            path.strip_prefix(root).unwrap_or(path).trim_start_matches('/').to_owned()
        };
        let mut packages: Vec<Package> = listed
            .iter()
            .map(|package| Package {
                name: package["name"].as_str().unwrap_or("").to_owned(),
                manifest: relative(&package["manifest_path"]),
                roots: array(&package["targets"])
                    .filter(|target| array(&target["kind"]).any(|kind| kind == "lib" || kind == "bin"))
                    .map(|target| relative(&target["src_path"]))
                    .collect(),
                dependencies: array(&package["dependencies"])
                    .map(|dependency| Dependency {
                        name: dependency["name"].as_str().unwrap_or("").to_owned(),
                        kind: match dependency["kind"].as_str() {
                            Some("dev") => Kind::Dev,
                            // The model checker: only its tests are built with it.
                            _ if dependency["target"] == "cfg(loom)" => Kind::Dev,
                            Some("build") => Kind::Build,
                            _ => Kind::Normal,
                        },
                    })
                    .collect(),
            })
            .collect();
        packages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { packages })
    }

    /// The package of that name.
    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.name == name)
    }
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_what_cargo_prints() {
        let json = serde_json::json!({
            "workspace_root": "/somewhere/takt",
            "packages": [{
                "name": "takt-sim",
                "manifest_path": "/somewhere/takt/crates/takt-sim/Cargo.toml",
                "targets": [
                    {"kind": ["lib"], "src_path": "/somewhere/takt/crates/takt-sim/src/lib.rs"},
                    {"kind": ["test"], "src_path": "/somewhere/takt/crates/takt-sim/tests/a.rs"},
                ],
                "dependencies": [
                    {"name": "takt-core", "kind": null},
                    {"name": "proptest", "kind": "dev"},
                    {"name": "loom", "kind": null, "target": "cfg(loom)"},
                ],
            }],
        });
        let workspace = Workspace::parse(&json).unwrap();
        let package = workspace.package("takt-sim").unwrap();
        assert_eq!(package.folder(), "crates/takt-sim");
        assert_eq!(package.roots, ["crates/takt-sim/src/lib.rs"]);
        assert_eq!(package.dependencies[0].kind, Kind::Normal);
        assert_eq!(package.dependencies[1].kind, Kind::Dev);
        assert_eq!(package.dependencies[2].kind, Kind::Dev);
    }

    #[test]
    fn an_answer_without_packages_is_an_error() {
        assert!(Workspace::parse(&serde_json::json!({"workspace_root": "/"})).is_err());
    }
}
