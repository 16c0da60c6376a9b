//! Apps without a display: the same pixels in every run, and clear words when something is wrong.

use std::fs;
use std::process::Command;

use crate::common::{APPS, hash, results, text, validated};

#[test]
fn the_same_frames_have_the_same_pixels() {
    for (program, arguments) in APPS {
        let first = hash(&mut validated(program, arguments, "surfaceless"));
        let second = hash(&mut validated(program, arguments, "surfaceless"));
        assert_eq!(first, second, "{program}: two runs differ");
        let device = hash(&mut validated(program, arguments, "device"));
        assert_eq!(first, device, "{program}: platforms differ");
        let later = hash(validated(program, arguments, "surfaceless").args(["--first-frame", "300"]));
        assert_ne!(first, later, "{program}: nothing moves");
    }
}

#[test]
fn waiting_does_not_change_pixels() {
    let (program, arguments) = APPS[0];
    let plain = hash(validated(program, arguments, "surfaceless").args(["--warm-up", "2"]));
    let ahead = hash(validated(program, arguments, "surfaceless").args(["--in-flight", "3"]));
    let by_swap = hash(validated(program, arguments, "surfaceless").args(["--pace", "swap"]));
    assert_eq!(plain, ahead);
    assert_eq!(plain, by_swap);
}

#[test]
fn a_scene_finds_its_loops_and_repeats_them() {
    let scene = |arguments: &[&str]| {
        let mut command = Command::new(APPS[4].0);
        command.args(["--platform", "surfaceless", "--size", "64x48", "--frames", "2", "--json"]);
        results(command.args(arguments)).remove(0)
    };
    // Much longer than a frame without loops takes, on a slow or busy machine, too.
    let found = scene(&["--frame-ms", "100"]);
    let loops = found["loops"].as_u64().expect("the number is told");
    assert!(loops > 1, "{found}");
    assert!(found["calibrated_ms"].is_number(), "{found}");
    assert_eq!(scene(&["--shader", "marble", "--loops", &loops.to_string()])["loops"], loops);
}

#[test]
fn every_flood_runs_in_every_pacing() {
    let kinds = [
        "fragment",
        "vertex",
        "compute",
        "feedback",
        "many-draws",
        "render-to-texture",
        "upload",
        "blit",
        "mipmap",
    ];
    for kind in kinds {
        for pace in [&["--pace", "clock"][..], &["--pace", "swap"], &["--no-swap"]] {
            let arguments = [&["--kind", kind, "--iterations", "2", "--draws", "2"], pace].concat();
            let result = results(&mut validated(APPS[5].0, &arguments, "surfaceless")).remove(0);
            assert_eq!((&result["frames"], &result["gl_errors"]), (&5.into(), &0.into()), "{kind}: {result}");
            assert_eq!((&result["kind"], &result["iterations"]), (&kind.into(), &2.into()), "{result}");
        }
    }
}

#[test]
fn threads_draw_the_same_and_may_share() {
    for share in [&[][..], &["--share"]] {
        let mut command = validated(APPS[0].0, APPS[0].1, "off-screen");
        let threads = results(command.args(["--threads", "3"]).args(share));
        assert_eq!(threads.len(), 3);
        for thread in &threads {
            assert_eq!(thread["hash"], threads[0]["hash"]);
            assert_eq!(thread["gl_errors"], 0);
        }
    }
}

#[test]
fn samples_smooth_edges() {
    let scene = APPS[4];
    let plain = hash(&mut validated(scene.0, scene.1, "surfaceless"));
    let smooth = hash(validated(scene.0, scene.1, "surfaceless").args(["--msaa", "4"]));
    assert_ne!(plain, smooth);
}

#[test]
fn expected_hashes_decide_the_exit_code() {
    let (program, arguments) = APPS[0];
    let right = hash(&mut validated(program, arguments, "surfaceless"));
    let check = |wanted: &str| {
        validated(program, arguments, "surfaceless").args(["--expect-hash", wanted]).output().unwrap()
    };
    assert_eq!(check(&right).status.code(), Some(0));
    let wrong = check("0000000000000001");
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong).contains("validation failed, wanted hash 0000000000000001"), "{}", text(&wrong));
}

#[test]
fn pictures_and_logs_are_written() {
    let folder = env!("CARGO_TARGET_TMPDIR");
    let path = |name: &str| format!("{folder}/{name}");
    let (png, ppm, log) = (path("frame.png"), path("frame.ppm"), path("frames.csv"));
    hash(validated(APPS[0].0, &[], "surfaceless").args(["--dump", &png]));
    let logged = ["--dump", &ppm, "--dump-frame", "2", "--frame-log", &log];
    hash(validated(APPS[0].0, &[], "surfaceless").args(logged));
    assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    let picture = fs::read(&ppm).unwrap();
    assert!(picture.starts_with(b"P6\n160 120\n255\n"));
    assert_eq!(picture.len(), 15 + 160 * 120 * 3);
    let log = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[0], "frame,release_ns,begin_ns,swap_ns,end_ns,deadline_ns");
    for (number, line) in lines[1..].iter().enumerate() {
        let times: Vec<u64> = line.split(',').filter_map(|field| field.parse().ok()).collect();
        assert_eq!(times.len(), 5, "no rate, no deadline: {line}");
        assert_eq!(times[0], number as u64);
        assert!(times[1..].is_sorted(), "{line}");
    }
}

#[test]
fn mistakes_are_named() {
    let complaints: [(&[&str], &str); 7] = [
        (&["--platform", "device:99"], "there is no device 99"),
        (&["--platform", "x11"], "cannot reach the X server"),
        (&["--platform", "wayland"], "cannot reach the compositor"),
        (&["--platform", "off-screen", "--msaa", "63"], "63 samples; try a smaller --msaa"),
        (&["--platform", "off-screen", "--frames", "1", "--dump", "a.gif"], "must end in .png or .ppm"),
        (&["--size", "0x7"], "write it as 800x480"),
        (&["--expect-hash", "12"], "--validate"),
    ];
    for (arguments, wanted) in complaints {
        let mut command = Command::new(APPS[0].0);
        command.args(arguments).env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", text(&output));
        assert!(text(&output).contains(wanted), "{arguments:?}: {}", text(&output));
    }
}

#[test]
fn statistics_are_printed_for_people() {
    let mut command = Command::new(APPS[3].0);
    command.args(["--platform", "surfaceless", "--size", "64x32", "--frames", "3", "--fps", "1000"]);
    let output = text(&command.output().unwrap());
    assert!(output.starts_with("menu: 3 frames in "), "{output}");
    for part in ["missed", "late", "skipped", "response ms p50", "frame time ms p50", "platform", "renderer"]
    {
        assert!(output.contains(part), "{part}: {output}");
    }
}
