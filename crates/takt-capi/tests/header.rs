//! The header that C programs include is what this crate says.

use std::path::Path;

#[test]
fn the_header_is_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src/lib.rs"));
    let mut text = Vec::new();
    builder.generate().expect("a header").write(&mut text);
    // What Rust calls safety is what C calls using a function.
    let fresh = String::from_utf8(text).expect("text").replace("// # Safety\n//\n", "");
    let path = root.join("include/takt.h");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &fresh).expect("our own file can be written");
    }
    let committed = std::fs::read_to_string(&path).expect("the header is there");
    assert!(
        committed == fresh,
        "include/takt.h is stale: UPDATE_EXPECT=1 cargo test -p takt-capi --test header"
    );
}
