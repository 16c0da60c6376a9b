//! The page, which is a part of the program.

/// A file of the page.
#[derive(Debug)]
pub(crate) struct Asset {
    pub(crate) path: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

macro_rules! asset {
    ($path:literal, $kind:ident, $file:literal) => {
        Asset { path: $path, kind: $kind, text: include_str!(concat!("../page/", $file)) }
    };
}

/// All files of the page.
pub(crate) const ASSETS: &[Asset] = &[
    asset!("/", HTML, "index.html"),
    asset!("/console.css", CSS, "console.css"),
    asset!("/icon.svg", SVG, "icon.svg"),
    asset!("/main.js", SCRIPT, "main.js"),
    asset!("/api.js", SCRIPT, "api.js"),
    asset!("/elements.js", SCRIPT, "elements.js"),
    asset!("/chart.js", SCRIPT, "chart.js"),
    asset!("/now.js", SCRIPT, "now.js"),
    asset!("/timeline.js", SCRIPT, "timeline.js"),
    asset!("/history.js", SCRIPT, "history.js"),
    asset!("/steer.js", SCRIPT, "steer.js"),
    asset!("/whatif.js", SCRIPT, "whatif.js"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that a browser loads at most.
    const BYTES_MAX: usize = 500_000;

    #[test]
    fn the_page_is_small_and_loads_nothing_from_elsewhere() {
        let bytes: usize = ASSETS.iter().map(|asset| asset.text.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        for asset in ASSETS {
            let text = asset.text.replace("http://www.w3.org/", "");
            for banned in [
                "http://",
                "https://",
                "innerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                " style=",
            ] {
                assert!(!text.contains(banned), "{}: {banned}", asset.path);
            }
        }
    }

    #[test]
    fn every_module_that_is_imported_is_there() {
        let modules = ASSETS.iter().filter(|asset| asset.kind == SCRIPT);
        for module in modules {
            for line in module.text.lines().filter(|line| line.starts_with("import ")) {
                let path = line.rsplit('\'').nth(1).and_then(|path| path.strip_prefix('.')).expect("a path");
                assert!(ASSETS.iter().any(|asset| asset.path == path), "{}: {path}", module.path);
            }
        }
    }
}
