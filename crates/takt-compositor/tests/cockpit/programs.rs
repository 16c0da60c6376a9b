//! Programs that the cockpit starts.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use takt_cockpit::control::{ProgramStatus, Status};

use crate::admin::Tool;
use crate::program::Program;
use crate::wayland::{Client, patiently};
use crate::world::path;

/// Says that this test is a client, and shows a window until the cockpit ends.
const IS_CLIENT: &str = "TAKT_TEST_IS_CLIENT";

fn config(sections: &str) -> String {
    format!(
        "[[output]]\nname='center'\nsize='200x100'\n[[domain]]\nname='apps'\n\
         [[window]]\nname='app'\ndomain='apps'\napp_id='app'\noutput='center'\n{sections}"
    )
}

fn section(name: &str, command: &[&str], more: &str) -> String {
    format!("[[client]]\nname='{name}'\ndomain='apps'\ncommand={command:?}\n{more}\n")
}

fn program<'a>(status: &'a Status, name: &str) -> &'a ProgramStatus {
    status.programs.iter().find(|program| program.name == name).expect("listed")
}

/// Whether a process runs; one that has ended, and whose new parent has not noticed, does not.
fn is_there(pid: u32) -> bool {
    let known = Pid::from_raw(pid.cast_signed()).is_some_and(|pid| test_kill_process(pid).is_ok());
    known && takt_os::process::can_run(pid)
}

#[test]
fn a_client_is_started_with_its_socket_and_ends_with_the_cockpit() {
    if std::env::var_os(IS_CLIENT).is_some() {
        let display = std::env::var_os("WAYLAND_DISPLAY").expect("it is told");
        let mut client = Client::new(UnixStream::connect(display).expect("it listens"));
        let window = client.window("app");
        client.paint(&window.surface, (200, 100), 0xFF65_4321);
        client.until_cut();
        return;
    }
    let this = std::env::current_exe().expect("this test");
    let name = "programs::a_client_is_started_with_its_socket_and_ends_with_the_cockpit";
    let command = [this.to_str().expect("text"), "--exact", name];
    let config = config(&section("app", &command, &format!("environment={{ {IS_CLIENT}='1' }}")));
    // A stand-in for takt that says how it was called, and executes the program.
    let takt = path("takt");
    let script = "#!/bin/sh\necho \"$@\" > \"$0.called\"\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
    std::fs::write(&takt, script).expect("written");
    std::fs::set_permissions(&takt, std::fs::Permissions::from_mode(0o755)).expect("set");
    let program_ = Program::with(&config, &["--takt", takt.to_str().expect("text")]);
    let mut tool = Tool::new(&program_.folder);
    let shot = "{\"ask\":\"shot\",\"output\":\"center\"}";
    patiently("it is shown", || (tool.colour(shot, (100, 50)) == 0x65_4321).then_some(()));
    let status = tool.status();
    let app = program(&status, "app");
    assert_eq!((app.starts, app.pid), (1, Some(status.windows[0].pid)), "it is the process that connected");
    let called = takt.with_extension("called");
    let called_with = std::fs::read_to_string(&called).expect("it was called");
    let expected = "run --schedule --name app --socket /nonexistent/takt -- ";
    assert!(called_with.starts_with(expected), "{called_with}");
    let pid = app.pid.expect("it runs");
    let (ended, _, records) = program_.end(Signal::TERM);
    assert_eq!(ended.code(), Some(0));
    assert!(!is_there(pid), "{records:?}");
    let about = |event: &str| {
        records.iter().find(|record| record["event"] == event).map(|record| record["about"].clone())
    };
    assert_eq!((about("program-started"), about("program-ended")), (Some("app".into()), Some("app".into())));
    for file in [takt, called] {
        std::fs::remove_file(file).expect("removed");
    }
}

#[test]
fn programs_that_end_are_started_again_and_leave_nothing_behind() {
    let notes = path("notes");
    std::fs::create_dir(&notes).expect("made");
    let note = |name: &str| notes.join(name).display().to_string();
    // One ends with a child of its own still there, one is told to stay, one does not exist.
    let ends =
        format!("sleep 1000 & echo $! > {}; ls /proc/self/fd > {}; exit 3", note("child"), note("open"));
    let stays = format!("trap '' TERM; env > {}; sleep 1000 & wait; sleep 1000", note("environment"));
    let sections = section("ends", &["sh", "-c", &ends], "restart=true")
        + &section("stays", &["sh", "-c", &stays], "")
        + &section("missing", &["/nonexistent/program"], "restart=true")
        + &section("once", &["true"], "");
    // It puts nothing under programs.
    let no_takt = notes.join("takt");
    std::fs::write(&no_takt, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
        .expect("written");
    std::fs::set_permissions(&no_takt, std::fs::Permissions::from_mode(0o755)).expect("set");
    let cockpit = Program::with(&config(&sections), &["--takt", no_takt.to_str().expect("text")]);
    let mut tool = Tool::new(&cockpit.folder);
    let status = patiently("they were started again", || {
        let status = tool.status();
        let again = ["ends", "missing"].iter().all(|name| program(&status, name).starts >= 3);
        let over = program(&status, "once").ended.is_some();
        (again && over && Path::new(&note("environment")).exists()).then_some(status)
    });
    assert_eq!(program(&status, "ends").ended.as_deref(), Some("exit code 3"));
    assert_eq!((program(&status, "once").starts, program(&status, "once").pid), (1, None));
    assert!(program(&status, "missing").ended.is_some());
    let read = |name: &str| std::fs::read_to_string(note(name)).expect("written");
    let open = patiently("files are listed", || Some(read("open")).filter(|text| text.contains('2')));
    let open: Vec<&str> = open.split_whitespace().collect();
    // The fourth is the folder that ls reads.
    assert!(open.len() <= 4 && open.iter().all(|fd| ["0", "1", "2", "3"].contains(fd)), "{open:?}");
    let environment = patiently("its environment", || {
        Some(read("environment")).filter(|text| text.contains("WAYLAND_DISPLAY="))
    });
    assert!(environment.contains(&format!("WAYLAND_DISPLAY={}", cockpit.folder.join("apps").display())));
    assert!(!environment.contains("NOTIFY_SOCKET"), "it does not speak for the cockpit");
    let child = patiently("its child is noted", || read("child").trim().parse::<u32>().ok());
    let stays = program(&status, "stays").pid.expect("it runs");
    let (ended, _, records) = cockpit.end(Signal::TERM);
    assert_eq!(ended.code(), Some(0), "{records:?}");
    patiently("they are gone", || (!is_there(stays) && !is_there(child)).then_some(()));
    std::fs::remove_dir_all(notes).expect("removed");
}

#[test]
fn programs_end_even_if_the_cockpit_is_killed() {
    let notes = path("killed");
    std::fs::write(&notes, "#!/bin/sh\nexec sleep 1000\n").expect("written");
    std::fs::set_permissions(&notes, std::fs::Permissions::from_mode(0o755)).expect("set");
    let cockpit =
        Program::with(&config(&section("app", &["unused"], "")), &["--takt", notes.to_str().expect("text")]);
    let mut tool = Tool::new(&cockpit.folder);
    let pid = patiently("it runs", || program(&tool.status(), "app").pid);
    kill_process(Pid::from_raw(cockpit.pid().cast_signed()).expect("a number"), Signal::KILL)
        .expect("it runs");
    patiently("its program is gone", || (!is_there(pid)).then_some(()));
    std::fs::remove_file(notes).expect("removed");
}

#[test]
#[expect(clippy::print_stderr, reason = "says that it was skipped")]
fn root_starts_programs_as_the_users_that_sections_name() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can run a program as another user");
        return;
    }
    let notes = path("user");
    std::fs::create_dir(&notes).expect("made");
    std::fs::set_permissions(&notes, std::fs::Permissions::from_mode(0o777)).expect("set");
    let (note, rights) = (notes.join("note"), notes.join("daemon.toml"));
    let command = format!(
        "id -u > {0}; id -G >> {0}; echo $HOME >> {0}; test -w \"$WAYLAND_DISPLAY\" && echo may >> {0}",
        note.display()
    );
    let config = config(&section("app", &["sh", "-c", &command], "user='daemon'"));
    let file = notes.join("cockpit.toml");
    std::fs::write(&file, &config).expect("written");
    std::fs::write(&rights, "[[domain]]\nname='apps'\nuser='daemon'\n").expect("written");
    let check = |text: &str| {
        std::fs::write(&file, text).expect("written");
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_takt-compositor"));
        let output = command.arg(&file).arg("--check").output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = check(&config);
    assert!(
        code == Some(2) && said.contains("client \"app\": user = daemon: processes of another"),
        "{said}"
    );
    let (code, said) = check(&config.replace("'daemon'", "'no-such-user'"));
    assert!(code == Some(2) && said.contains("there is no such user"), "{said}");
    let takt = notes.join("takt");
    std::fs::write(&takt, "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n")
        .expect("written");
    std::fs::set_permissions(&takt, std::fs::Permissions::from_mode(0o755)).expect("set");
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let cockpit = Program::with(&config, &["--takt", &text(&takt), "--rights", &text(&rights)]);
    let lines = patiently("it ran", || {
        let lines: Vec<String> = std::fs::read_to_string(&note).ok()?.lines().map(str::to_owned).collect();
        (lines.len() == 4).then_some(lines)
    });
    let account = takt_os::users::account("daemon").expect("every system has that user");
    assert_eq!(lines[0], account.uid.to_string());
    assert_eq!(lines[1], account.gid.to_string(), "none of root's groups");
    assert_eq!((lines[2].as_str(), lines[3].as_str()), (account.home.as_str(), "may"));
    let (ended, _, records) = cockpit.end(Signal::TERM);
    assert_eq!(ended.code(), Some(0), "{records:?}");
    std::fs::remove_dir_all(notes).expect("removed");
}
