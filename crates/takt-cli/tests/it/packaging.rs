//! Debian packages: what is in them works where it is put.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{built, products, takt_command, text};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn done(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// Whether there is a program of that name.
fn is_there(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Builds the packages of what tests build, and unpacks them into an empty root.
fn unpacked() -> PathBuf {
    // This builds the libraries and the apps.
    drop(takt_command("help"));
    let built = built::packages(&["takt-capi", "takt-cuda-capi", "takt-compositor", "takt-web"]);
    let (packages, target) = (products().join("deb"), products().join("deb-root"));
    for folder in [&packages, &target] {
        std::fs::remove_dir_all(folder).unwrap_or_default();
    }
    let mut build = Command::new(root().join("packaging/build-deb.sh"));
    done(build.arg(&built).arg(&packages).env("DEB_COMPRESSION", "none"));
    let found: Vec<PathBuf> =
        std::fs::read_dir(&packages).expect("packages").flatten().map(|entry| entry.path()).collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for package in &found {
        done(Command::new("dpkg-deb").arg("--info").arg(package));
        done(Command::new("dpkg-deb").arg("--extract").arg(package).arg(&target));
    }
    target
}

#[test]
fn packages_work_where_they_are_put() {
    if !is_there("dpkg-deb") {
        // Packages of Debian are made on Debian.
        return;
    }
    let target = unpacked();
    let takt = || {
        let mut command = Command::new(target.join("usr/bin/takt"));
        command.env("XDG_CACHE_HOME", products().join("cache"));
        command
    };
    let version = text(&done(takt().arg("--version")).stdout);
    assert!(version.starts_with(concat!("takt ", env!("CARGO_PKG_VERSION"))), "{version}");
    let web = text(&done(takt().args(["web", "--help"])).stdout);
    assert!(web.contains("--read-only"), "the console lies beside it: {web}");
    let run = done(takt().args(["run", "--verbose", "--", "true"]));
    assert!(text(&run.stderr).contains("deb-root/usr/lib/takt/libEGL_takt.so"), "{}", text(&run.stderr));
    pages_are_there(&target);
    the_configuration_is_read(&target, &mut takt());
    units_are_sound(&target);
    c_programs_build(&target);
    the_cockpit_is_there(&target);
}

/// Its program, its page, and a configuration that it reads.
fn the_cockpit_is_there(target: &Path) {
    let mut cockpit = Command::new(target.join("usr/bin/takt-compositor"));
    let said = text(&done(cockpit.arg(target.join("etc/takt/cockpit.toml")).arg("--check")).stdout);
    assert!(said.contains("2 outputs, 2 domains"), "{said}");
    let page = target.join("usr/share/man/man1/takt-compositor.1.gz");
    let roff = text(&done(Command::new("gzip").arg("-dc").arg(page)).stdout);
    assert!(roff.contains(".TH takt-compositor 1") && roff.contains("audit"), "{roff}");
    let unit = std::fs::read_to_string(target.join("usr/lib/systemd/system/takt-cockpit.service"));
    assert!(unit.expect("a unit").contains("ExecStart=/usr/bin/takt-compositor /etc/takt/cockpit.toml"));
}

/// A page and completions for each command.
fn pages_are_there(target: &Path) {
    let page = target.join("usr/share/man/man1/takt-serve.1.gz");
    let roff = text(&done(Command::new("gzip").arg("-dc").arg(page)).stdout);
    assert!(roff.contains(".TH takt-serve 1") && roff.contains("daemon"), "{roff}");
    for file in [
        "usr/share/bash-completion/completions/takt",
        "usr/share/zsh/vendor-completions/_takt",
        "usr/share/fish/vendor_completions.d/takt.fish",
    ] {
        let script = std::fs::read_to_string(target.join(file)).expect("completions");
        assert!(script.contains("serve") && script.contains("demo"), "{file}");
    }
}

/// The file that is installed makes sense, as it is and with everything in it switched on.
fn the_configuration_is_read(target: &Path, takt: &mut Command) {
    let text_of = std::fs::read_to_string(target.join("etc/takt/takt.toml")).expect("a configuration");
    let switched_on: String = text_of
        .lines()
        .map(|line| line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line))
        .map(|line| format!("{line}\n"))
        .collect();
    assert!(switched_on.contains("\n[[app]]\n") && switched_on.contains("\nmax_slice_ms = 1.0\n"));
    for (name, text_of, good) in
        [("on", &switched_on, true), ("off", &text_of, true), ("bad", &"policy = 1".to_owned(), false)]
    {
        assert_eq!(takt_daemon::control::config::Settings::parse(text_of).is_ok(), good, "{name}");
    }
    // And where the unit looks for it.
    let unit = std::fs::read_to_string(target.join("usr/lib/systemd/system/takt.service")).expect("a unit");
    assert!(
        unit.contains("ExecStart=/usr/bin/takt serve --no-measure --config /etc/takt/takt.toml"),
        "{unit}"
    );
    let help = text(&done(takt.args(["serve", "--help"])).stdout);
    assert!(help.contains("--config") && help.contains("--socket"), "{help}");
}

fn units_are_sound(target: &Path) {
    if !is_there("systemd-analyze") {
        return;
    }
    let here = products();
    for (installed, who, name) in [
        ("system", "--system", "takt-measure.service"),
        ("system", "--system", "takt.service"),
        ("system", "--system", "takt-cockpit.service"),
        ("user", "--user", "takt.service"),
        ("user", "--user", "takt-web.service"),
    ] {
        let unit = target.join(format!("usr/lib/systemd/{installed}/{name}"));
        let unit = std::fs::read_to_string(unit).expect("a unit");
        // It is not installed, so what it starts is elsewhere.
        let moved = unit.replace("/usr/bin/takt", &target.join("usr/bin/takt").display().to_string());
        let folder = here.join(format!("units-{installed}"));
        std::fs::create_dir_all(&folder).expect("our own folder");
        let path = folder.join(name);
        std::fs::write(&path, moved).expect("our own file");
        let mut verify = Command::new("systemd-analyze");
        verify.args(["verify", who, "--man=no", "--recursive-errors=no"]).arg(&path);
        let output = done(verify.env("XDG_RUNTIME_DIR", &here));
        assert!(!text(&output.stderr).contains(&format!("{name}:")), "{}", text(&output.stderr));
    }
}

/// Programs find header and library by pkg-config.
fn c_programs_build(target: &Path) {
    let libraries = std::fs::read_dir(target.join("usr/lib")).expect("libraries").flatten();
    let libraries = libraries.map(|entry| entry.path()).find(|path| path.join("libtakt.so.0").exists());
    let libraries = libraries.expect("libtakt");
    let build = |package: &str, example: &str| {
        let mut config = Command::new("pkg-config");
        config.args(["--cflags", "--libs", package]);
        config.env("PKG_CONFIG_PATH", libraries.join("pkgconfig")).env("PKG_CONFIG_SYSROOT_DIR", target);
        // Folders of the system are left out unless told otherwise.
        config.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1").env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
        let flags = text(&done(&mut config).stdout);
        let program = products().join(format!("packaged-{example}"));
        let source = target.join(format!("usr/share/doc/libtakt-dev/examples/{example}.c"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-Wall", "-Werror", "-o"]).arg(&program).arg(source).args(flags.split_whitespace());
        done(gcc.args(["-lpthread", "-ldl"]));
        program
    };
    build("takt", "jobs");
    build("takt-cuda", "deadlines");
    let mut frames = Command::new(build("takt", "frames"));
    frames.args(["60", "0.1", "3"]).env("LD_LIBRARY_PATH", &libraries).env("TAKT_SOCKET", "/nonexistent");
    assert!(text(&done(&mut frames).stdout).contains("3 frames, "));
}
