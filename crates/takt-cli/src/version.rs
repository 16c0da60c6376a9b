//! Which build of Takt this is.

use std::sync::LazyLock;

/// The commit it was built from, if `TAKT_COMMIT` named it at build time; `make` sets that.
const COMMIT: Option<&str> = option_env!("TAKT_COMMIT");

/// The version, with the commit if that is known.
pub(crate) fn build() -> &'static str {
    static BUILD: LazyLock<String> = LazyLock::new(|| match commit() {
        Some(commit) => format!("{} ({commit})", env!("CARGO_PKG_VERSION")),
        None => env!("CARGO_PKG_VERSION").to_owned(),
    });
    &BUILD
}

/// Whether two builds that are called so are the same: from one commit, and nothing but that.
pub(crate) fn is_exact() -> bool {
    commit().is_some_and(|commit| !commit.ends_with("-dirty"))
}

/// Outside of a repository there is none to tell.
fn commit() -> Option<&'static str> {
    COMMIT.filter(|commit| !commit.is_empty())
}
