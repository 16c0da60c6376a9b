//! See `takt-map --help`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    takt_apps::apps::map::main()
}
