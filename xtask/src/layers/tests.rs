use super::*;
use crate::workspace::Dependency;

fn package(name: &str, uses: &[(&str, Kind)]) -> Package {
    Package {
        name: name.to_owned(),
        manifest: format!("crates/{name}/Cargo.toml"),
        roots: Vec::new(),
        dependencies: uses
            .iter()
            .map(|(name, kind)| Dependency { name: (*name).to_owned(), kind: *kind })
            .collect(),
    }
}

fn messages(package: &Package, manifest: &str) -> Vec<String> {
    let packages = LAYERS.iter().map(|layer| self::package(layer.name, &[])).collect();
    let mut findings = Vec::new();
    check_package(&Workspace { packages }, package, manifest, &mut findings);
    findings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_layer_may_not_use_one_above_it() {
    let manifest = "[package]\nname = \"takt-trace\"\n[dependencies]\n\
                    takt-core.workspace = true\ntakt-sim.workspace = true\n";
    let uses = [("takt-core", Kind::Normal), ("takt-sim", Kind::Normal)];
    assert_eq!(
        messages(&package("takt-trace", &uses), manifest),
        ["crates/takt-trace/Cargo.toml:5: error: \
          takt-trace must not use takt-sim (layer table in ARCHITECTURE.md)"]
    );
}

#[test]
fn tests_follow_the_table_too() {
    let found = messages(&package("takt-core", &[("takt-sim", Kind::Dev)]), "");
    assert_eq!(found.len(), 1);
}

#[test]
fn the_core_stands_alone_except_in_tests() {
    let uses = [("serde", Kind::Normal), ("proptest", Kind::Dev)];
    let found = messages(&package("takt-core", &uses), "serde = \"1\"\n");
    assert_eq!(
        found,
        ["crates/takt-core/Cargo.toml:1: error: takt-core must not use crates from elsewhere, here serde"]
    );
    assert!(messages(&package("takt-trace", &uses), "").is_empty());
}

#[test]
fn random_numbers_are_for_all_but_not_inside_the_core() {
    let uses = |kind| [(FOR_ALL, kind)];
    assert!(messages(&package("takt-trace", &uses(Kind::Normal)), "").is_empty());
    assert!(messages(&package("takt-core", &uses(Kind::Dev)), "").is_empty());
    assert_eq!(messages(&package("takt-core", &uses(Kind::Normal)), "").len(), 1);
}

#[test]
fn a_new_crate_must_find_its_layer() {
    assert!(messages(&package("takt-new", &[]), "")[0].contains("in no layer"));
}

#[test]
fn the_page_must_print_the_table() {
    let fresh = format!("# A\n{BEGIN}\n{}{END}\n", render());
    assert_eq!(check_page(&fresh), None);
    let stale = fresh.replace("takt-sim", "takt-sum");
    assert_eq!(check_page(&stale).map(|finding| finding.line), Some(2));
    assert!(check_page("# A\n").is_some());
}
