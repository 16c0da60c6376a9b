//! `takt import` as people use it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn takt(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_takt")).args(args).output().expect("takt starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file of its own for each test.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("import");
    std::fs::create_dir_all(&folder).expect("our own folder can be made");
    let path = folder.join(name);
    std::fs::write(&path, content).expect("our own file can be written");
    path
}

fn text(path: &Path) -> &str {
    path.to_str().expect("our own names are plain")
}

#[test]
fn a_specification_becomes_a_scenario_that_runs() {
    let spec = file(
        "desktop.spec",
        b"game:HT:-:*::\nwidget:PRT:AE:*:2500:25000\na:PRT:Shared:-1:500:25000\nb:PRT:Shared:-1::\n",
    );
    let limit = file("desktop.ac", b"80\n");
    let scenario = spec.with_extension("toml");
    let output = takt(&["import", "timegraph", text(&spec), "--limit", text(&limit), "-o", text(&scenario)]);
    assert!(output.status.success(), "{}", stderr(&output));
    let check = takt(&["check", text(&scenario)]);
    assert_ne!(check.status.code(), Some(2), "{}", stderr(&check));
    let sim = takt(&["sim", text(&scenario), "--set", "duration_s=2", "--json", "-"]);
    assert!(sim.status.success(), "{}", stderr(&sim));
    let summary: serde_json::Value = serde_json::from_slice(&sim.stdout).expect("sim prints JSON");
    assert_eq!(summary["policy"], "timegraph");
    let fps: Vec<f64> =
        summary["apps"].as_array().into_iter().flatten().filter_map(|app| app["fps"].as_f64()).collect();
    assert_eq!(fps.len(), 4);
    // The two that share a reserve have 500 us in 25 ms between them: 20 frames of 1 ms each second.
    assert!(fps[..2].iter().all(|fps| *fps > 59.0), "{fps:?}");
    assert!((19.0..=22.0).contains(&(fps[2] + fps[3])), "{fps:?}");
}

#[test]
fn mistakes_are_named_with_place_value_and_remedy() {
    let bad = file("bad.spec", b"game:HT:-:*::\nwidget:PRT:AE:*:2500\n");
    let output = takt(&["import", "timegraph", text(&bad)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("bad.spec:2:21: 'widget:PRT:AE:*:2500' ends before its field T"));
    let binary = file("binary.spec", b"game:HT:-:*::\nwid\xff");
    assert!(stderr(&takt(&["import", "timegraph", text(&binary)])).contains("binary.spec:2:4: byte 0xff"));
    let good = file("good.spec", b"game:HT:-:*::\n");
    for limit in ["101", "-1", text(&bad)] {
        let option = format!("--limit={limit}");
        let output = takt(&["import", "timegraph", text(&good), &option]);
        assert_eq!(output.status.code(), Some(2), "{limit}");
        assert!(stderr(&output).contains("0 to 100"), "{}", stderr(&output));
    }
    assert_eq!(takt(&["import", "timegraph", "/dev/zero"]).status.code(), Some(2));
    assert_eq!(takt(&["import", "timegraph", "no-such-file"]).status.code(), Some(2));
}
