//! `takt profile` and `takt train`, on a renderer that needs no GPU. Nothing here depends on how
//! long anything takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{GL, column, products, takt_command, text, trap};

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
    // A renderer on the CPU has no slices, and none are made up.
    let sharing = &findings["sharing"];
    assert_eq!(sharing["execution"], "side-by-side", "{findings:#}");
    assert!(sharing["slice_us"].is_null() && sharing["switch_us"].is_null(), "{findings:#}");
    assert!(findings["source"].as_str().is_some_and(|source| source.starts_with("fences")), "{findings:#}");

    let path = file(&store, "profile.txt");
    assert_eq!(findings["path"], path.display().to_string());
    let shown = text(&done(command("profile", &store).arg("--show")).stdout);
    assert!(shown.contains("llvmpipe") && shown.contains("flush_ns: R²"), "{shown}");
    assert!(shown.contains("# sharing: processes run side by side: time-shared by"), "{shown}");
    let kept = fs::read_to_string(&path).expect("the profile");
    assert!(kept.contains("sharing.execution = side-by-side\n") && !kept.contains("slice_us"), "{kept}");

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

    // Within a letter, perhaps.
    let whole = fs::read(&path).expect("the profile");
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

/// A daemon's first start on new drivers has them tried; the second finds that they are known.
#[test]
fn the_first_start_of_a_daemon_tries_the_driver() {
    let data = products().join("first-start-data");
    let _none = fs::remove_dir_all(&data);
    let store = data.join("takt/gpus");
    let socket = products().join("first-start.socket");
    let start = |options: &[&str]| {
        let mut command = takt_command("serve");
        command.args(options).args(["--idle-s", "60", "--socket"]).arg(&socket);
        command.envs([("LIBGL_ALWAYS_SOFTWARE", "1"), ("LP_NUM_THREADS", "1")]).env("XDG_DATA_HOME", &data);
        command.stderr(std::process::Stdio::null()).spawn().expect("takt starts")
    };
    let end = |mut daemon: std::process::Child| {
        daemon.kill().expect("it runs");
        daemon.wait().expect("it ends");
    };
    let await_file = |path: &Path| {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !path.exists() {
            assert!(std::time::Instant::now() < until, "{} does not appear", path.display());
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let unmeasured = start(&["--no-measure"]);
    await_file(&socket);
    assert!(!store.exists(), "it was told to measure nothing");
    end(unmeasured);
    fs::remove_file(&socket).expect("a killed daemon leaves it");
    let daemon = start(&[]);
    await_file(&store.join("seen.txt"));
    end(daemon);
    let folders = || fs::read_dir(&store).expect("a store").flatten().filter(|entry| entry.path().is_dir());
    let folder = folders().next().expect("a driver").path();
    let kept = fs::read_to_string(folder.join("exact.txt")).expect("findings");
    assert!(kept.starts_with("takt-exact 1\n") && kept.contains("\nranges 1 triangles 0\n"), "{kept}");
    // A renderer on the CPU has no model that a daemon needs.
    assert!(!folder.join("profile.txt").exists());
    // What is known is not tried again.
    fs::remove_file(folder.join("exact.txt")).expect("our own file");
    let again = done(command("profile", &store).arg("--new"));
    assert!(!folder.join("exact.txt").exists(), "{}", text(&again.stderr));
    let shown = done(command("profile", &store).arg("--self-test"));
    assert!(text(&shown.stdout).contains("boxes    exact in"), "{}", text(&shown.stdout));
    assert!(text(&done(command("profile", &store).arg("--show")).stdout).contains("self-test  "));
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

/// Numbers of a column; all must be such.
fn numbers(table: &Path, name: &str) -> Vec<f64> {
    let cells = column(table, name);
    cells.iter().map(|cell| cell.parse().unwrap_or_else(|_| panic!("{name}: '{cell}'"))).collect()
}

/// Neither a program that does not link alone nor one that is damaged keeps others from being measured.
fn add_unusable_programs(noted: &Path) {
    let half = takt_predict::programs::Sources { vertex: "void".to_owned(), fragment: "main".to_owned() };
    let half_file = noted.join(takt_predict::store::sources_file(half.id()));
    fs::write(&half_file, half.to_text()).expect("our own file");
    fs::write(noted.join("0123456789abcdef.glsl"), "takt-program 1\n").expect("our own file");
}

#[test]
fn programs_are_noted_measured_and_predicted_one_by_one() {
    let store = store("programs");
    let scene = trap("scene", &GL);
    let table = products().join("profiled.csv");
    let run = || {
        let mut run = command("run", &store);
        run.arg("--verbose").arg("--compare").arg(&table).arg("--").arg(&scene);
        let output = run.output().expect("takt starts");
        // The trap ends with this.
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        text(&output.stderr)
    };
    let refused = |word: &str| {
        let output = command("profile", &store).arg("--programs").output().expect("takt starts");
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains(word), "{}", text(&output.stderr));
    };
    refused("run takt profile first");
    done(command("train", &store).arg("--tiny"));
    done(command("profile", &store).arg("--quick"));
    refused("run them with takt run --compare");

    let said = run();
    let hint = "takt profile --programs measures them";
    assert_eq!(said.matches(hint).count(), 1, "{said}");
    assert_eq!(numbers(&table, "raw_bb+profiled_us"), numbers(&table, "raw_bb+mars_us"));
    let noted = file(&store, "programs");
    let sources: Vec<PathBuf> =
        fs::read_dir(&noted).expect("noted").map(|entry| entry.expect("a file").path()).collect();
    assert!(!sources.is_empty());

    add_unusable_programs(&noted);
    let output = done(command("profile", &store).args(["--programs", "--quick", "--json", "-"]));
    let said = text(&output.stderr);
    assert!(
        said.contains("0123456789abcdef.glsl: the file is damaged") && said.contains("noted again"),
        "{said}"
    );
    assert!(said.contains("is left out: the driver refuses it by itself"), "{said}");
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let programs = findings["programs"].as_array().expect("a list");
    assert_eq!(programs.len(), sources.len() + 1, "{findings:#}");
    let measured =
        programs.iter().filter(|program| program["fragment_ns"].as_f64().is_some_and(|ns| ns > 0.0));
    assert!(measured.count() > 0, "{findings:#}");

    run();
    let [profiled, mars] =
        ["profiled", "mars"].map(|shaders| numbers(&table, &format!("raw_bb+{shaders}_us")));
    assert_ne!(profiled, mars);
    assert!(profiled.iter().chain(&mars).all(|us| us.is_finite() && *us >= 0.0));

    // A damaged file is named, shown and made anew.
    let path = file(&store, "programs.txt");
    let whole = fs::read_to_string(&path).expect("rates");
    fs::write(&path, &whole[..whole.len() - 3]).expect("our own file");
    let said = run();
    assert!(said.contains("programs.txt: the file is damaged") && said.contains(hint), "{said}");
    let output = command("profile", &store).arg("--show").output().expect("takt starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("run takt profile --programs again"), "{}", text(&output.stdout));
    let output = done(command("profile", &store).args(["--programs", "--quick"]));
    assert!(text(&output.stderr).contains("it is replaced"), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("ns/fragment"), "{}", text(&output.stdout));
    done(command("profile", &store).arg("--show"));

    // Plain profiles end with the same.
    let output = done(command("profile", &store).arg("--quick"));
    assert!(text(&output.stdout).contains("programs.txt"), "{}", text(&output.stdout));
}

/// Inputs of all kinds, in the newer language.
const MANY_INPUTS: [&str; 2] = [
    "#version 300 es
in vec3 at; in mat4 own; in int chosen; uniform mat3 turns[2]; uniform ivec2 whole; uniform uint sign;
uniform float factors[3]; uniform bool on; uniform samplerCube sky; out vec3 way;
void main() {
    way = turns[1] * at * factors[2] + float(whole.y + int(sign) + chosen);
    gl_Position = own * vec4(on ? at.xy : vec2(9.0), 0.0, 1.0) + 0.0 * textureLod(sky, way, 0.0);
}",
    "#version 300 es
precision mediump float; in vec3 way; uniform samplerCube sky; uniform sampler2D image; out vec4 colour;
void main() { colour = texture(sky, way) + texture(image, way.xy); }",
];

/// A program whose triangle is a point.
const NOWHERE: [&str; 2] = [
    "attribute vec4 at; void main() { gl_Position = at * 0.0 + vec4(0.0, 0.0, 0.0, 1.0); }",
    "void main() { gl_FragColor = vec4(1.0); }",
];

#[test]
fn programs_get_values_of_all_kinds() {
    let store = store("inputs");
    done(command("profile", &store).arg("--quick"));
    let noted = file(&store, "programs");
    fs::create_dir_all(&noted).expect("our own store");
    let note = |[vertex, fragment]: [&str; 2]| {
        let (vertex, fragment) = (vertex.to_owned(), fragment.to_owned());
        let sources = takt_predict::programs::Sources { vertex, fragment };
        let name = takt_predict::store::sources_file(sources.id());
        fs::write(noted.join(&name), sources.to_text()).expect("our own store");
        name.trim_end_matches(".glsl").to_owned()
    };
    let [many, nowhere] = [MANY_INPUTS, NOWHERE].map(note);
    let output = done(command("profile", &store).args(["--programs", "--quick", "--json", "-"]));
    let findings: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = |name: &str| {
        let programs = findings["programs"].as_array().expect("a list");
        programs.iter().find(|program| program["program"] == name).expect("it was noted").clone()
    };
    let rate = found(&many)["fragment_ns"].as_f64();
    assert!(rate.is_some_and(|ns| ns > 0.0 && ns.is_finite()), "{findings:#}");
    let problem = found(&nowhere)["problem"].to_string();
    assert!(problem.contains("its triangles cover nothing"), "{findings:#}");
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
