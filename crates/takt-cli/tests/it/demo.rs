//! The part of the demonstration with real programs: that it plays and tells, not what comes of it,
//! which depends on the machine.

use serde_json::Value;

use crate::support::{products, takt_command, text};

#[test]
fn real_programs_are_played_without_and_with_takt() {
    let out = products().join("demo-floods");
    let mut command = takt_command("demo");
    command
        .args(["--experiment", "floods", "--rounds", "1", "--seconds", "2", "--json", "-", "--out"])
        .arg(&out);
    let output = command.output().expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let runs = told["live"]["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2, "{told}");
    for (run, scheduled) in runs.iter().zip([false, true]) {
        assert_eq!(run["scheduled"], scheduled);
        let apps = run["apps"].as_array().expect("apps");
        let names: Vec<&str> = apps.iter().filter_map(|app| app["name"].as_str()).collect();
        assert_eq!(names, ["scene", "flood-1", "flood-2", "flood-3", "flood-4", "flood-5"]);
        // How many depends on when programs began and on what they caught up.
        let [due, met] = ["due", "met"].map(|key| apps[0][key].as_u64().expect("a number"));
        assert!(due > 0 && met <= due, "{run}");
        let said: Vec<&str> =
            run["said"].as_array().expect("words").iter().filter_map(Value::as_str).collect();
        let joined = said.iter().filter(|line| line.contains(": scheduled as ")).count();
        assert!(if scheduled { joined >= 6 } else { said.is_empty() }, "{said:?}");
    }
    let page = std::fs::read_to_string(out.join("live.html")).expect("a page");
    assert_eq!(page.matches("data-source=\"timeline-").count(), 2);
    assert!(out.join("live/takt-1/scene.csv").exists() && out.join("live/figures.json").exists());
    assert!(!out.join("index.html").exists(), "nothing was simulated");
}

#[test]
fn without_egl_the_simulation_remains() {
    let out = products().join("demo-blind");
    let mut command = takt_command("demo");
    command.args(["--seconds", "2", "--out"]).arg(&out);
    // No driver to be found, as on a machine that has none.
    command.env("__EGL_VENDOR_LIBRARY_DIRS", "/nonexistent");
    let output = command.output().expect("takt starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("GPU busy: fifo"), "{}", text(&output.stdout));
    let said = text(&output.stderr);
    assert!(said.contains("The second part, with real programs, is left out: takt-speedometer: "), "{said}");
    assert!(out.join("index.html").exists() && !out.join("live.html").exists());
}
