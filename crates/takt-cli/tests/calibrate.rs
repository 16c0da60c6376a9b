//! `takt profile` and `takt train`, on a renderer that needs no GPU. Nothing here depends on how
//! long anything takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

mod support;
use support::{products, takt_command, text};

/// An empty store of this test's own.
fn store(name: &str) -> PathBuf {
    let store = products().join(format!("store-{name}"));
    // There is none the first time.
    let _none = fs::remove_dir_all(&store);
    store
}

fn command(name: &str, store: &Path) -> Command {
    let mut command = takt_command(name);
    command.arg("--store").arg(store);
    command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")]);
    command
}

fn done(command: &mut Command) -> Output {
    let output = command.output().expect("takt starts");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    output
}

/// The one file of that name in a store.
fn file(store: &Path, name: &str) -> PathBuf {
    let folders: Vec<PathBuf> =
        fs::read_dir(store).expect("a store").map(|entry| entry.expect("a folder").path()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    folders[0].join(name)
}

#[test]
fn a_profile_is_measured_kept_and_used() {
    let store = store("profile");
    let output = done(command("profile", &store).args(["--quick", "--json", "-"]));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let constants = findings["constants"].as_array().expect("a list");
    let value = |key: &str| {
        let constant = constants.iter().find(|constant| constant["key"] == key);
        constant.unwrap_or_else(|| panic!("{key} is missing"))["value"].as_f64().expect("a number")
    };
    for key in ["flush_ns", "draw_ns", "clear.pixel_ns.c", "clear.byte_ns", "swap.pixel_ns", "copy.below_ns"]
    {
        assert!(value(key) > 0.0, "{key}: {findings:#}");
    }
    assert!(value("msaa.4") >= 1.0 && value("dispatch_upper_ns") >= value("dispatch_lower_ns"));
    assert!(findings["source"].as_str().is_some_and(|source| source.starts_with("fences")), "{findings:#}");

    let path = file(&store, "profile.txt");
    assert_eq!(findings["path"], path.display().to_string());
    let shown = text(&done(command("profile", &store).arg("--show")).stdout);
    assert!(shown.contains("llvmpipe") && shown.contains("flush_ns: R²"), "{shown}");

    // The command itself is a GL ES program.
    let table = products().join("calibrate.csv");
    let under = |store: &Path| {
        let mut run = command("run", store);
        run.arg("--verbose").arg("--compare").arg(&table).arg("--").arg(env!("CARGO_BIN_EXE_takt"));
        run.args(["profile", "--quick", "--output"]).arg(products().join("other-profile.txt"));
        text(&done(&mut run).stderr)
    };
    let said = under(&store);
    assert!(said.contains(&format!("constants are those of {}", path.display())), "{said}");
    assert!(said.contains("no shader models (takt train makes them)"), "{said}");

    let whole = fs::read_to_string(&path).expect("the profile");
    fs::write(&path, &whole[..whole.len() / 2]).expect("our own file");
    let said = under(&store);
    assert!(said.contains("the file is damaged") && said.contains(path.to_str().expect("plain")), "{said}");
    let output = command("profile", &store).arg("--show").output().expect("takt starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("DAMAGED"), "{}", text(&output.stdout));
    let said = text(&done(command("profile", &store).arg("--quick")).stderr);
    assert!(said.contains("it is replaced"), "{said}");
    done(command("profile", &store).arg("--show"));
}

#[test]
fn a_training_that_is_killed_goes_on() {
    let store = store("train");
    let mut training = command("train", &store).arg("--tiny").spawn().expect("takt starts");
    let lines = || {
        let folder = fs::read_dir(&store).ok()?.next()?.ok()?.path();
        Some(fs::read_to_string(folder.join("training.part")).ok()?.lines().count())
    };
    // Four lines of header, then one for each shader.
    while lines().is_none_or(|lines| lines < 10) {
        assert!(training.try_wait().expect("it can be asked").is_none(), "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    training.kill().expect("it can be killed");
    training.wait().expect("it ends");

    let output = done(command("train", &store).args(["--tiny", "--json", "-"]));
    let said = text(&output.stderr);
    assert!(said.contains("going on after ") && said.contains(" of 48 shaders"), "{said}");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(findings["models"].as_array().map(Vec::len), Some(5), "{findings:#}");
    assert_eq!(findings["shaders"], 48, "{findings:#}");
    assert!(findings["models"][0]["cross_error_p50"].as_f64().is_some_and(f64::is_finite), "{findings:#}");
    assert!(!file(&store, "training.part").exists());
    let shown = text(&done(command("profile", &store).arg("--show")).stdout);
    assert!(shown.contains("shaders.txt"), "{shown}");

    // What was measured, with one line changed: all before it is used again.
    let measured = fs::read_to_string(file(&store, "training.txt")).expect("runs are kept");
    let line = measured.lines().nth(40).expect("48 shaders");
    fs::write(file(&store, "training.part"), measured.replace(line, "7 nonsense")).expect("our own file");
    fs::write(file(&store, "shaders.txt"), "takt-shaders 0\n").expect("our own file");
    let said = text(&done(command("train", &store).arg("--tiny")).stderr);
    assert!(said.contains("line 41 is damaged; going on after the 36 of 48 shaders before it"), "{said}");
    assert!(said.contains("shaders.txt: line 1: expected") && said.contains("it is replaced"), "{said}");

    // The same runs of another plan are of no use to this one.
    fs::write(file(&store, "training.part"), measured).expect("our own file");
    let said = text(&done(command("train", &store).args(["--tiny", "--seed", "2"])).stderr);
    assert!(said.contains("it belongs to another plan or driver; all shaders are measured anew"), "{said}");
}

#[test]
fn what_cannot_be_measured_is_said() {
    let refused = |arguments: &[&str], word: &str| {
        let output = takt_command(arguments[0]).args(&arguments[1..]).output().expect("takt starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    };
    refused(&["profile", "--device", "device:99"], "there is no device 99");
    refused(&["train", "--device", "x11"], "write auto, surfaceless or device:N");
    refused(&["profile", "--show", "--store", "/no/such/store"], "run takt profile first");
}
