//! Which crate may use which others.
//!
//! [`LAYERS`] is the only place where this is decided. `ARCHITECTURE.md` prints it between two
//! markers, and the check compares both the page and every `Cargo.toml` with it.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::tidy::Finding;
use crate::tree::Tree;
use crate::workspace::{Kind, Package, Workspace};

/// A crate's place in the workspace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layer {
    /// Name of the crate.
    pub(crate) name: &'static str,
    /// What it is for, in a few words.
    job: &'static str,
    /// Which crates of the workspace it may use; test dependencies included.
    uses: Uses,
    /// Whether it must not reach the outside world: no clock, file, thread, environment.
    pub(crate) pure: bool,
    /// Whether it must not use any crate from elsewhere (test dependencies may).
    alone: bool,
}

#[derive(Clone, Copy, Debug)]
enum Uses {
    Only(&'static [&'static str]),
    Anything,
}

/// The crate that every other may use, if only for tests where it stands alone.
const FOR_ALL: &str = "takt-rng";

/// The layers, lowest first.
pub(crate) const LAYERS: &[Layer] = &[
    Layer {
        name: FOR_ALL,
        job: "random numbers that a seed repeats; every crate may use it, the core for tests alone",
        uses: Uses::Only(&[]),
        pure: true,
        alone: true,
    },
    Layer {
        name: "takt-core",
        job: "decides what runs on the GPU and when",
        uses: Uses::Only(&[]),
        pure: true,
        alone: true,
    },
    Layer {
        name: "takt-analysis",
        job: "what other rules could promise of task sets, offline",
        uses: Uses::Only(&["takt-core"]),
        pure: true,
        alone: true,
    },
    Layer {
        name: "takt-policies",
        job: "policies by name: Takt's own and those it is compared with",
        uses: Uses::Only(&["takt-core", "takt-analysis"]),
        pure: true,
        alone: true,
    },
    Layer {
        name: "takt-predict",
        job: "predicts what command groups cost",
        uses: Uses::Only(&["takt-core"]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-gl-api",
        job: "names of GL, GL ES, EGL and GLX, generated",
        uses: Uses::Only(&[]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-cuda-api",
        job: "names of the CUDA driver API, generated",
        uses: Uses::Only(&[]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-cuda-fake",
        job: "a CUDA driver without a GPU, for tests",
        uses: Uses::Only(&["takt-cuda-api"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-gl-driver",
        job: "the system's EGL and GL ES, loaded and called safely",
        uses: Uses::Only(&["takt-gl-api"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-gl-oracle",
        job: "real drivers and shaders, for tests to compare with",
        uses: Uses::Only(&["takt-gl-api", "takt-gl-driver", "takt-predict"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-gl",
        job: "what happens under a program that draws with GL ES or GL",
        uses: Uses::Only(&["takt-client", "takt-core", "takt-gl-api", "takt-ipc", "takt-os", "takt-predict"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-hook",
        job: "the library that programs load which use EGL",
        uses: Uses::Only(&["takt-gl", "takt-gl-api"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-hook-glx",
        job: "the library that programs load which use GLX",
        uses: Uses::Only(&["takt-gl", "takt-gl-api"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-calibrate",
        job: "measures what work costs on a GPU",
        uses: Uses::Only(&["takt-gl", "takt-gl-api", "takt-gl-driver", "takt-predict"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-trace",
        job: "records, metrics, causes of misses, exports",
        uses: Uses::Only(&["takt-core", "takt-policies"]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-sim",
        job: "the simulated world that drives the core",
        uses: Uses::Only(&["takt-core", "takt-analysis", "takt-policies", "takt-predict", "takt-trace"]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-audit",
        job: "records of decisions in a chain of hashes, and rules over them",
        uses: Uses::Only(&[]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-config",
        job: "what is wrong in a configuration file",
        uses: Uses::Only(&[]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-cockpit",
        job: "rules of a cockpit: its displays, windows, input and domains",
        uses: Uses::Only(&["takt-config", "takt-core"]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-os",
        job: "answers of the operating system",
        uses: Uses::Only(&["takt-core"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-nvml",
        job: "which processes use NVIDIA GPUs, as their driver tells",
        uses: Uses::Only(&[]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-ipc",
        job: "what crosses a process boundary",
        uses: Uses::Only(&["takt-core", "takt-os"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-slices",
        job: "a process's own time slices on NVIDIA GPUs",
        uses: Uses::Only(&[]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-slices-hook",
        job: "the library that sees a program's channel groups",
        uses: Uses::Only(&["takt-slices"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-client",
        job: "what every interposed API needs to be scheduled",
        uses: Uses::Only(&["takt-core", "takt-ipc", "takt-os", "takt-slices"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-cuda",
        job: "what happens under a CUDA program",
        uses: Uses::Only(&["takt-client", "takt-core", "takt-cuda-api", "takt-ipc", "takt-os"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-cuda-hook",
        job: "the library that CUDA programs load",
        uses: Uses::Only(&["takt-cuda", "takt-cuda-api"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-cuda-capi",
        job: "libtakt-cuda: for programs that say deadlines of streams and frames themselves",
        uses: Uses::Only(&[]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-daemon",
        job: "schedules live clients",
        uses: Uses::Only(&[
            "takt-audit",
            "takt-client",
            "takt-config",
            "takt-core",
            "takt-ipc",
            "takt-nvml",
            "takt-os",
            "takt-policies",
            "takt-trace",
        ]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-capi",
        job: "libtakt: for programs that ask for time themselves, in C",
        uses: Uses::Only(&["takt-client", "takt-core", "takt-daemon", "takt-ipc", "takt-os"]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-compositor",
        job: "the cockpit itself: Wayland clients, and their pictures on displays",
        uses: Uses::Only(&[
            "takt-audit",
            "takt-client",
            "takt-cockpit",
            "takt-config",
            "takt-core",
            "takt-daemon",
            "takt-ipc",
            "takt-os",
        ]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-report",
        job: "pages that show results to people",
        uses: Uses::Only(&["takt-core", "takt-trace"]),
        pure: true,
        alone: false,
    },
    Layer {
        name: "takt-cli",
        job: "the `takt` command: arguments, files, terminal",
        uses: Uses::Only(&[
            "takt-core",
            "takt-analysis",
            "takt-audit",
            "takt-policies",
            "takt-gl",
            "takt-predict",
            "takt-trace",
            "takt-sim",
            "takt-report",
            "takt-client",
            "takt-ipc",
            "takt-os",
            "takt-daemon",
            "takt-calibrate",
            "takt-cockpit",
        ]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-web",
        job: "the console: pages for browsers, an API and counters",
        uses: Uses::Only(&[
            "takt-core",
            "takt-daemon",
            "takt-ipc",
            "takt-os",
            "takt-policies",
            "takt-sim",
            "takt-trace",
        ]),
        pure: false,
        alone: false,
    },
    Layer {
        name: "takt-apps",
        job: "small GL ES apps to schedule, measure and show",
        uses: Uses::Only(&["takt-gl-api", "takt-gl-driver"]),
        pure: false,
        alone: false,
    },
    Layer { name: "xtask", job: "chores of the workspace", uses: Uses::Anything, pure: false, alone: false },
];

/// The page that prints the table.
const PAGE: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- layers:begin, written by `cargo xtask layers --write` -->";
const END: &str = "<!-- layers:end -->";

impl Layer {
    /// The layer of the crate of that name.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        LAYERS.iter().find(|layer| layer.name == name)
    }

    /// Whether it uses nothing at all, the standard library included.
    pub(crate) const fn stands_alone(&self) -> bool {
        self.alone
    }

    fn may_use(&self, other: &str, kind: Kind) -> bool {
        match self.uses {
            Uses::Only(_) if other == FOR_ALL => !self.alone || kind == Kind::Dev,
            Uses::Only(names) => names.contains(&other),
            Uses::Anything => true,
        }
    }
}

/// The table as Markdown.
pub(crate) fn render() -> String {
    let mut table = String::from("| crate | what it is | may use | pure |\n| --- | --- | --- | --- |\n");
    for layer in LAYERS {
        let uses = match layer.uses {
            Uses::Anything => "anything".to_owned(),
            Uses::Only([]) if layer.alone => "nothing, not even crates from elsewhere".to_owned(),
            Uses::Only([]) => "nothing".to_owned(),
            Uses::Only(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                names.join(", ")
            }
        };
        let pure = if layer.pure { "yes" } else { "no" };
        table += &format!("| `{}` | {} | {uses} | {pure} |\n", layer.name, layer.job);
    }
    table
}

/// Puts the table between the markers of the page.
pub(crate) fn write(root: &Path) -> Result<()> {
    let path = root.join(PAGE);
    let page = fs::read_to_string(&path).with_context(|| format!("cannot read {PAGE}"))?;
    let (before, _, after) =
        split(&page).with_context(|| format!("{PAGE} lacks the markers {BEGIN} and {END}"))?;
    fs::write(&path, format!("{before}{BEGIN}\n{}{END}{after}", render()))
        .with_context(|| format!("cannot write {PAGE}"))
}

/// Compares the manifests and the page with the table.
pub(crate) fn check(workspace: &Workspace, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = tree.file(&package.manifest).map_or("", |file| &file.text);
        check_package(workspace, package, manifest, &mut findings);
    }
    for layer in LAYERS {
        if workspace.package(layer.name).is_none() {
            let message = format!("LAYERS lists {}, which is not in the workspace", layer.name);
            findings.push(Finding::error("xtask/src/layers.rs", 1, message));
        }
    }
    let page = tree.file(PAGE).map_or("", |file| &file.text);
    findings.extend(check_page(page));
    findings
}

fn check_package(workspace: &Workspace, package: &Package, manifest: &str, findings: &mut Vec<Finding>) {
    let Some(layer) = Layer::of(&package.name) else {
        let message =
            format!("crate {} is in no layer: add it to LAYERS in xtask/src/layers.rs", package.name);
        findings.push(Finding::error(&package.manifest, 1, message));
        return;
    };
    for dependency in &package.dependencies {
        let line = line_of(manifest, &dependency.name);
        let internal = workspace.package(&dependency.name).is_some();
        if internal && !layer.may_use(&dependency.name, dependency.kind) {
            let message =
                format!("{} must not use {} (layer table in {PAGE})", package.name, dependency.name);
            findings.push(Finding::error(&package.manifest, line, message));
        }
        if !internal && layer.alone && dependency.kind != Kind::Dev {
            let message =
                format!("{} must not use crates from elsewhere, here {}", package.name, dependency.name);
            findings.push(Finding::error(&package.manifest, line, message));
        }
    }
}

fn check_page(page: &str) -> Option<Finding> {
    let Some((before, table, _)) = split(page) else {
        let message = format!("the layer table's markers are missing: {BEGIN} and {END}");
        return Some(Finding::error(PAGE, 1, message));
    };
    (table != render()).then(|| {
        let line = before.lines().count() + 1;
        Finding::error(PAGE, line, "the layer table is stale: run `cargo xtask layers --write`")
    })
}

/// The page before the table, the table, and the page after it.
fn split(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (table, after) = rest.split_once(END)?;
    Some((before, table.strip_prefix('\n').unwrap_or(table), after))
}

/// The line of a manifest that declares a dependency.
fn line_of(manifest: &str, dependency: &str) -> usize {
    let declares = |line: &str| {
        let rest = line.trim_start().strip_prefix(dependency);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(declares).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests;
