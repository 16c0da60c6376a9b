//! See `takt-scene --help`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    takt_apps::apps::scene::main()
}
