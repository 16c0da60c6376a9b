//! See `takt-tachometer --help`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    takt_apps::apps::tachometer::main()
}
