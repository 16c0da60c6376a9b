//! Names the shared library by its interface's version, so that installed ones can be told apart.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtakt-cuda.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
