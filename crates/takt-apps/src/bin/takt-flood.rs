//! See `takt-flood --help`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    takt_apps::apps::flood::main()
}
