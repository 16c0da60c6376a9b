//! Gives the library a name that `takt run` can replace in its copies: `takt-cli/src/hook/stand_in.rs` says why.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libEGL_takt.so-in-place-of-{}", "-".repeat(160));
}
