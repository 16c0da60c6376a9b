//! See `takt-speedometer --help`.

#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    takt_apps::apps::speedometer::main()
}
