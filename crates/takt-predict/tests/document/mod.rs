//! Tables of `docs/experiments` that tests make.

use std::path::Path;
use std::{env, fs};

/// Compares text with what a document has between its markers, or puts it there.
pub(crate) fn compare(document: &str, text: &str) {
    const BEGIN: &str = "<!-- measured:begin -->\n";
    const END: &str = "<!-- measured:end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/experiments").join(document);
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (old, tail) = rest.split_once(END).unwrap();
    if env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{text}{END}{tail}")).unwrap();
    } else {
        assert_eq!(old, text, "run this test with UPDATE_EXPECT=1 to write {}", path.display());
    }
}
