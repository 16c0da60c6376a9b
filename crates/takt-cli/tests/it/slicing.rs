//! Draws that are cut into pieces show what they show in one piece.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use takt_ipc::client::{self, Joined};
use takt_ipc::message::Hello;

use crate::support::daemon::{Daemon, PATIENCE, Talking, alone, assert_same, await_that, environment};
use crate::support::server::Server;
use crate::support::{GL, app, column, is_slow_wanted, products, takt, takt_command, text, trap};

/// So little that nearly every draw is too long for it.
const TINY: [&str; 3] = ["--verbose", "--max-slice-ms", "0.05"];

/// Draws that were cut, and how many pieces there were; none if nothing was long.
fn cut(said: &str) -> Option<(u64, u64)> {
    let line = said.lines().find_map(|line| line.strip_prefix("takt: slicing: "))?;
    let mut numbers = line.split_ascii_whitespace().filter_map(|word| word.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The program was scheduled to the end, and some of its draws were cut.
fn assert_cut(said: &str, name: &str) {
    let (draws, pieces) = cut(said).unwrap_or_default();
    assert!(draws > 0 && pieces > draws, "{name}: {said}");
    assert!(!said.contains("unscheduled"), "{name}: {said}");
}

/// An app for which draws of others are cut. It asks for nothing.
fn company(daemon: &Daemon) -> Joined {
    let hello = Hello { name: "company".to_owned(), ..Hello::default() };
    client::join(&daemon.socket, &hello, PATIENCE).expect("it may join")
}

#[test]
fn what_was_cut_is_told_of_a_program_that_a_signal_ends() {
    let daemon = Daemon::start("slicing-killed");
    let _company = company(&daemon);
    let arguments = ["--platform", "surfaceless", "--iterations", "40", "--size", "160x96"];
    let mut program = Talking::start(&mut daemon.run(&TINY, &app("takt-flood"), &arguments));
    program.says("scheduled as ");
    await_that("it draws", || {
        let told = text(&daemon.ask(&["list", "--json", "-"]).stdout);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap_or_default();
        let apps = told["summary"]["apps"].as_array().cloned().unwrap_or_default();
        apps.iter().any(|one| one["name"] == "takt-flood" && one["frames"].as_u64() > Some(2))
    });
    let end = format!("kill -KILL {}", program.id());
    assert!(Command::new("sh").args(["-c", &end]).status().expect("a shell").success());
    let line = program.says("slicing: ");
    assert!(line.starts_with(&format!("takt: process {}: slicing: ", program.id())), "{line}");
}

#[test]
fn our_apps_show_the_same_in_pieces() {
    let daemon = Daemon::start("slicing-apps");
    let _company = company(&daemon);
    let apps: [(&str, &[&str]); 7] = [
        ("takt-speedometer", &[]),
        ("takt-tachometer", &[]),
        ("takt-map", &[]),
        ("takt-menu", &[]),
        ("takt-scene", &["--shader", "marble", "--objects", "3"]),
        ("takt-flood", &["--iterations", "40"]),
        ("takt-flood", &["--iterations", "40", "--primitives", "100"]),
    ];
    for (name, arguments) in apps {
        let small = ["--size", "160x96", "--frames", "3", "--fps", "0", "--validate"];
        let arguments = [arguments, &small].concat();
        let hash = |bytes: &[u8]| text(bytes).lines().find(|line| line.contains("hash")).map(str::to_owned);
        let whole = alone(&app(name), &arguments);
        let output = daemon.run(&TINY, &app(name), &arguments).output().expect("takt starts");
        let said = text(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert!(hash(&whole.stdout).is_some(), "{name}: {}", text(&whole.stdout));
        assert_eq!(hash(&output.stdout), hash(&whole.stdout), "{name}: {said}");
        assert_cut(&said, name);
    }
}

#[test]
fn groups_of_several_pieces_show_the_same() {
    let arguments = ["--iterations", "60", "--size", "160x96", "--frames", "12", "--fps", "0", "--validate"];
    let hash = |bytes: &[u8]| text(bytes).lines().find(|line| line.contains("hash")).map(str::to_owned);
    let whole = alone(&app("takt-flood"), &arguments);
    let run = |daemon: &Daemon| {
        let _company = company(daemon);
        let output = daemon.run(&TINY, &app("takt-flood"), &arguments).output().expect("takt starts");
        let said = text(&output.stderr);
        assert_eq!(hash(&output.stdout), hash(&whole.stdout), "{said}");
        assert_cut(&said, "flood");
        let (draws, groups) = cut(&said).unwrap_or_default();
        (groups as f64 / draws as f64, said)
    };
    let (single, _) = run(&Daemon::start("slicing-single"));
    let (several, said) = run(&Daemon::with("slicing-stretched", "max_stretch_ms = 20", &[]));
    assert!(several < single, "{several} groups per draw, and {single}: {said}");
}

#[test]
fn no_state_of_gl_gives_pieces_away() {
    let daemon = Daemon::start("slicing-states");
    let _company = company(&daemon);
    let program = trap("slices", &GL);
    let output = daemon.run(&TINY, &program, &[]).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[]), "slices");
    let said = text(&output.stderr);
    assert_cut(&said, "slices");
    for reason in ["transform feedback", "shader writes to memory"] {
        assert!(said.contains(reason), "{reason}: {said}");
    }
}

/// Commands of the table in `docs/slicing.md`, and what it says of them.
fn commands() -> Vec<(String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/slicing.md");
    let page = std::fs::read_to_string(path).expect("the page is there");
    let rows = page.lines().skip_while(|line| !line.starts_with("| commands of GL ES 3.2")).skip(2);
    let mut commands = Vec::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let how = cells[2].split([',', ' ']).next().expect("a word").to_owned();
        let names = cells[1].split('`').skip(1).step_by(2).map(|name| (name.to_owned(), how.clone()));
        commands.extend(names);
    }
    assert!(commands.len() > 40, "{commands:?}");
    commands
}

/// How groups end at commands that ask for nothing.
const ENDS: [(&str, &str); 6] = [
    ("glMapBufferRange", "read"),
    ("glFlush", "flush"),
    ("glFinish", "finish"),
    ("glClientWaitSync", "read"),
    ("glGetQueryObjectuiv", "read"),
    ("glBindFramebuffer", "target"),
];

/// The table of commands says what happens to each of them, and none shows it.
#[test]
fn every_command_is_handed_over_as_the_table_says() {
    let daemon = Daemon::start("slicing-commands");
    let _company = company(&daemon);
    let (program, table) = (trap("commands", &GL), products().join("slicing-commands.csv"));
    // Clears and blits are cut where that was tried.
    let store = tried_store("commands");
    std::fs::remove_file(&table).unwrap_or_default();
    let file = table.display().to_string();
    let store = store.to_str().expect("plain");
    let options = [&TINY[..], &["--measure", &file, "--store", store]].concat();
    let output = daemon.run(&options, &program, &[]).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[]), "commands");
    let printed = text(&output.stdout);
    let columns = ["command", "piece", "granted_us", "end", "vertices"].map(|name| column(&table, name));
    let groups = |command: &str| -> Vec<usize> {
        (0..columns[0].len()).filter(|row| columns[0][*row] == command).collect()
    };
    let cut = |command: &str| {
        groups(command).iter().any(|row| columns[1][*row].parse::<u32>().is_ok_and(|n| n > 1))
    };
    for (name, how) in commands() {
        assert!(printed.contains(&format!("{name}: ")), "commands.c does nothing with {name}");
        match how.as_str() {
            "cut" => assert!(cut(&name), "{name} is never cut"),
            "asked" => {
                let granted = groups(&name).iter().any(|row| !columns[2][*row].is_empty());
                assert!(granted && !cut(&name), "{name} is never asked for, or cut");
            }
            _ => {
                let end = ENDS.iter().find(|(of, _)| *of == name).map(|(_, end)| *end);
                let lines = printed.lines().filter(|line| line.ends_with(&format!(" before {name}")));
                let mut markers = lines.filter_map(|line| line.split(' ').nth(1));
                let ended = markers.any(|marker| {
                    (0..columns[0].len())
                        .any(|row| columns[4][row] == marker && Some(columns[3][row].as_str()) == end)
                });
                assert!(ended, "{name} ends no group by {end:?}");
            }
        }
    }
    for name in ["glMultiDrawArraysEXT", "glMultiDrawElementsEXT", "glDrawArraysInstancedBaseInstanceEXT"] {
        assert!(cut(name) || printed.contains(&format!("{name}: not here")), "{name} is never cut");
    }
}

/// Groups of a program with that argument: for each the call that began it, why it ended, and whether it had a grant;
/// and how often it asked for draws. It shows what it shows alone.
fn groups_of(what: &str) -> (Vec<(String, String, bool)>, usize) {
    let [table, log] = ["csv", "jsonl"].map(|kind| products().join(format!("asked-{what}.{kind}")));
    std::fs::remove_file(&table).unwrap_or_default();
    let daemon = Daemon::with(&format!("asked-{what}"), "", &["--record", &log.display().to_string()]);
    let _company = company(&daemon);
    let (program, file) = (trap("asked", &GL), table.display().to_string());
    let options = ["--max-slice-ms", "0", "--measure", &file];
    let output = daemon.run(&options, &program, &[what]).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[what]), what);
    let said = text(&output.stderr);
    assert!(!said.contains("unscheduled"), "{what}: {said}");
    let [commands, ends, granted] = ["command", "end", "granted_us"].map(|name| column(&table, name));
    let groups = commands.into_iter().zip(ends).zip(granted);
    daemon.end();
    let log = std::fs::read_to_string(&log).expect("a log");
    let is_draw = |line: &&str| line.contains(r#""record":"submit""#) && line.contains(r#""kind":"draw""#);
    let asked = log.lines().filter(is_draw).count();
    (groups.map(|((command, end), granted)| (command, end, !granted.is_empty())).collect(), asked)
}

/// A grant that came long ago is no grant: the daemon has given its place to others, or the client has given it back.
#[test]
fn what_is_handed_over_late_is_asked_for_again() {
    for what in ["late", "too-late"] {
        let (groups, asked) = groups_of(what);
        let flushed: Vec<_> = groups.iter().filter(|(_, end, _)| end == "flush").collect();
        assert!(flushed.len() >= 5 && flushed.iter().all(|(.., granted)| *granted), "{what}: {groups:?}");
        assert!(asked >= 10, "{what}: before each draw, and before each flush: {asked}, {groups:?}");
    }
}

/// One read-back of a few pixels matters to no other, and a hundred of them do.
#[test]
fn many_little_read_backs_are_asked_for() {
    let (groups, _) = groups_of("little-reads");
    let granted = groups.iter().filter(|(command, _, granted)| command == "glReadPixels" && *granted).count();
    assert!((80..100).contains(&granted), "{granted}: {groups:?}");
}

/// A texture that is filled from the beginning of a buffer is filled, although the place in memory is null.
#[test]
fn texels_from_a_buffer_are_asked_for() {
    let (groups, _) = groups_of("from-buffer");
    let granted = groups.iter().filter(|(command, _, granted)| command == "glTexImage2D" && *granted).count();
    assert!(granted >= 1, "{groups:?}");
}

/// A store in which the driver's self-test says what is exact.
fn tried_store(name: &str) -> PathBuf {
    let store = products().join(format!("store-{name}"));
    let mut test = takt_command("profile");
    test.args(["--self-test", "--store"]).arg(&store);
    let found = environment(&mut test).output().expect("takt starts");
    let said = text(&found.stdout);
    assert!(found.status.success() && said.contains("ranges   exact in"), "{said}");
    store
}

/// Sequences of calls in random states leave the same images, buffers, counts and errors behind.
#[test]
fn random_sequences_give_the_same_in_pieces() {
    let daemon = Daemon::start("slicing-fuzzed");
    let _company = company(&daemon);
    let (program, store) = (trap("fuzzed", &GL), tried_store("fuzzed"));
    let options = [&TINY[..], &["--store", store.to_str().expect("plain")]].concat();
    let runs = if is_slow_wanted() {
        &[["1", "300", "80"], ["1001", "100", "200"]][..]
    } else {
        &[["1", "2", "50"]]
    };
    for arguments in runs {
        let output = daemon.run(&options, &program, arguments).output().expect("takt starts");
        assert_same(&output, &alone(&program, arguments), "fuzzed");
        assert_cut(&text(&output.stderr), "fuzzed");
    }
}

/// Two threads draw and dispatch with objects that their contexts share.
#[test]
fn threads_that_share_programs_give_the_same_in_pieces() {
    let daemon = Daemon::start("slicing-shared");
    let _company = company(&daemon);
    let program = trap("shared", &GL);
    let output =
        daemon.run(&["--verbose", "--max-slice-ms", "0.5"], &program, &[]).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[]), "shared");
    assert_cut(&text(&output.stderr), "shared");
}

/// The first frame of a program that was never seen: most of its draws are short, although models take them for
/// long, and trying out each of them would take many times as long as the frame.
#[test]
fn a_first_frame_of_many_draws_is_not_tried_out_draw_by_draw() {
    let daemon = Daemon::start("slicing-first");
    let _company = company(&daemon);
    let program = trap("first_frame", &GL);
    let options = ["--verbose", "--max-slice-ms", "1", "--overpredict", "1000"];
    let is_short = |_| {
        let output = daemon.run(&options, &program, &[]).output().expect("takt starts");
        assert_same(&output, &alone(&program, &[]), "first_frame");
        let said = text(&output.stderr);
        let (draws, pieces) = cut(&said).unwrap_or_default();
        assert!(draws >= 100, "{said}");
        // Sixteen of them are tried out, in some twelve pieces each, and the others take one.
        pieces < 16 * 24 + draws
    };
    // What else runs on this machine makes draws longer and pieces more, never fewer.
    assert!((0..8).any(is_short), "too many pieces in each of eight first frames");
}

/// Every sample of a target is the same, on a driver that was never tried and on one whose self-test says what is
/// exact.
#[test]
fn no_sample_gives_pieces_away() {
    let daemon = Daemon::start("slicing-samples");
    let _company = company(&daemon);
    let program = trap("samples", &GL);
    let whole = alone(&program, &[]);
    for store in [products().join("store-samples-untried"), tried_store("samples-tried")] {
        let options = [&TINY[..], &["--store", store.to_str().expect("plain")]].concat();
        let output = daemon.run(&options, &program, &[]).output().expect("takt starts");
        assert_same(&output, &whole, "samples");
        assert_cut(&text(&output.stderr), "samples");
    }
}

#[test]
fn compute_programs_give_the_same_in_pieces() {
    let daemon = Daemon::start("slicing-compute");
    let _company = company(&daemon);
    let program = trap("compute", &GL);
    let count = if is_slow_wanted() { "400" } else { "12" };
    for (arguments, least) in [(&[][..], 30), (&["1", count][..], 10)] {
        let output = daemon.run(&TINY, &program, arguments).output().expect("takt starts");
        assert_same(&output, &alone(&program, arguments), "compute");
        let said = text(&output.stderr);
        assert_cut(&said, "compute");
        assert!(cut(&said).is_some_and(|(dispatches, _)| dispatches >= least), "{said}");
    }
}

/// A program that keeps binaries is cut at each start: it is told that there are no formats, and a binary
/// from before is refused, as a driver may refuse any.
#[test]
fn program_binaries_are_refused_while_scheduled() {
    let daemon = Daemon::start("slicing-binaries");
    let _company = company(&daemon);
    let program = trap("binaries", &GL);
    let file = products().join("slicing-program.binary");
    std::fs::remove_file(&file).unwrap_or_default();
    let path = file.display().to_string();
    let drawn =
        |bytes: &[u8]| text(bytes).lines().filter(|line| line.starts_with("drawn")).collect::<String>();
    let first = alone(&program, &[&path]);
    assert!(text(&first.stdout).contains("formats offered") && file.exists(), "{}", text(&first.stdout));
    assert!(text(&alone(&program, &[&path]).stdout).contains("binary taken"), "the driver takes its own");
    for _start in 0..2 {
        let output = daemon.run(&TINY, &program, &[&path]).output().expect("takt starts");
        let (printed, said) = (text(&output.stdout), text(&output.stderr));
        assert!(printed.contains("formats none\nbinary refused, error 0\n"), "{printed}");
        assert_eq!(drawn(&output.stdout), drawn(&first.stdout), "{said}");
        assert_cut(&said, "binaries");
    }
}

#[test]
fn a_benchmark_validates_its_scenes_in_pieces() {
    let (daemon, server) = (Daemon::start("slicing-benchmark"), Server::x11());
    let _company = company(&daemon);
    let few = ["build", "texture", "shading:shading=phong", "bump:bump-render=normals", "loop", "function"];
    let scenes = if is_slow_wanted() { &[][..] } else { &few[..] };
    let validate = |command: &mut Command| {
        command.args(["--validate", "--size", "800x600"]);
        scenes.iter().for_each(|scene| {
            command.args(["-b", scene]);
        });
        let variables = server.variables.iter().map(|(name, value)| (name, value));
        let output = environment(command).envs(variables).output().expect("it starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        let lines: Vec<String> =
            lines.lines().filter(|line| line.contains("Validation")).map(str::to_owned).collect();
        (lines, text(&output.stderr))
    };
    let (whole, _) = validate(&mut Command::new("glmark2-es2"));
    let options = ["--verbose", "--max-slice-ms", "1"];
    let (pieces, said) = validate(&mut daemon.run(&options, "glmark2-es2".as_ref(), &[]));
    assert_eq!(pieces, whole, "{said}");
    assert!(whole.iter().filter(|line| line.contains("Success")).count() >= 4, "{whole:?}");
    assert_cut(&said, "glmark2");
}

#[test]
fn pieces_are_numbered_and_can_be_switched_off() {
    let daemon = Daemon::start("slicing-off");
    let _company = company(&daemon);
    let flood = app("takt-flood");
    let arguments = ["--iterations", "200", "--size", "320x240", "--frames", "4"];
    let run = |limit: &str| {
        let table = products().join(format!("slicing-{limit}.csv"));
        std::fs::remove_file(&table).unwrap_or_default();
        let file = table.display().to_string();
        let options = ["--verbose", "--max-slice-ms", limit, "--measure", &file];
        let output = daemon.run(&options, &flood, &arguments).output().expect("takt starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let pieces: Vec<u32> = column(&table, "piece").iter().map(|cell| cell.parse().unwrap()).collect();
        (text(&output.stderr), pieces)
    };
    let (said, pieces) = run("1");
    assert_cut(&said, "flood");
    assert!(pieces.windows(2).all(|two| two[1] <= 1 || two[1] == two[0] + 1), "{pieces:?}");
    assert!(pieces.iter().any(|piece| *piece > 4), "{pieces:?}");
    let (said, pieces) = run("0");
    assert_eq!(cut(&said), None, "{said}");
    assert!(pieces.iter().all(|piece| *piece == 0), "{pieces:?}");
}

#[test]
fn without_a_daemon_nothing_is_cut() {
    let table = products().join("slicing-alone.csv");
    std::fs::remove_file(&table).unwrap_or_default();
    let mut command = takt();
    command.arg("--verbose").arg("--measure").arg(&table).arg("--").arg(app("takt-flood"));
    command.args(["--iterations", "100", "--size", "160x96", "--frames", "2"]);
    let output = environment(&mut command).output().expect("takt starts");
    assert_eq!(cut(&text(&output.stderr)), None);
    assert!(column(&table, "piece").iter().all(|piece| piece == "0"));
}

#[test]
fn a_renderer_that_is_late_to_unlock_a_fence_finds_it_there() {
    let daemon = Daemon::start("slicing-unlock");
    let _company = company(&daemon);
    let (program, late) = (trap("long_draws", &GL), trap("late_unlock", &["-shared", "-fPIC", "-ldl"]));
    let mut command = daemon.run(&[&TINY[..], &["--hook", "vendor"]].concat(), &program, &[]);
    let output = command.env("LD_PRELOAD", late).output().expect("takt starts");
    assert_same(&output, &alone(&program, &[]), "long_draws");
    let said = text(&output.stderr);
    assert!(said.contains("late_unlock: "), "the renderer has no threads: {said}");
    assert_cut(&said, "long_draws");
}

/// What the app at slot 0 asked for since it joined, and since another app did, in milliseconds.
fn asked_for(log: &Path) -> (Vec<f64>, Vec<f64>) {
    let lines = std::fs::read_to_string(log).unwrap_or_default();
    // The last line may be half written.
    let records = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let (mut alone, mut among, mut joined) = (Vec::new(), Vec::new(), false);
    for record in records {
        match (record["record"].as_str(), record["app"].as_u64()) {
            (Some("join"), Some(1)) => joined = true,
            (Some("submit"), Some(0)) => {
                let ms = record["predicted_ns"].as_f64().expect("a number") / 1e6;
                if joined { among.push(ms) } else { alone.push(ms) }
            }
            _ => {}
        }
    }
    (alone, among)
}

#[test]
fn an_app_alone_makes_way_for_the_next() {
    let log = products().join("slicing-company.jsonl");
    std::fs::remove_file(&log).unwrap_or_default();
    let daemon = Daemon::with("slicing-company", "", &["--record", &log.display().to_string()]);
    let arguments = ["--platform", "off-screen", "--size", "160x96", "--fps", "0", "--frames", "1000000"];
    let mut command = daemon.run(&[], &app("takt-scene"), &arguments);
    let mut scene = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("takt starts");
    let until = Instant::now() + PATIENCE;
    let wait = |enough: fn(&(Vec<f64>, Vec<f64>)) -> bool| loop {
        let asked = asked_for(&log);
        if enough(&asked) || Instant::now() > until {
            return asked;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    wait(|(alone, _)| alone.len() >= 30);
    let _company = company(&daemon);
    let (alone, among) = wait(|(_, among)| among.len() >= 100);
    scene.kill().expect("it runs");
    scene.wait().expect("it ends");
    let long = |asked: &[f64]| asked.iter().filter(|ms| **ms > 8.0).count();
    assert!(long(&alone) >= 10, "groups of several frames: {alone:?}");
    // One may be on its way, and one asked for ahead.
    assert!(among.len() >= 100 && long(&among) <= 2, "{among:?}");
    assert_eq!(long(&among[2..]), 0, "{among:?}");
}
