//! Tools that control a cockpit over its socket.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use takt_cockpit::control::{REQUEST_BYTES_MAX, Reply, SOCKET, Status};
use takt_cockpit::geometry::Rect;
use takt_compositor::admin::Admin;
use takt_daemon::control::rights::Domains;

use crate::PATIENCE;
use crate::wayland::patiently;
use crate::world::{ONE, World, path};

/// A connection of a tool.
pub(crate) struct Tool(BufReader<UnixStream>);

impl Tool {
    pub(crate) fn new(folder: &Path) -> Self {
        let stream = UnixStream::connect(folder.join(SOCKET)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Self(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &[u8]) {
        // A connection that is over takes nothing.
        self.0.get_mut().write_all(bytes).unwrap_or_default();
    }

    fn heard(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line, or the end");
        (!line.is_empty())
            .then(|| serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}")))
    }

    pub(crate) fn ask(&mut self, request: &str) -> Reply {
        self.send(format!("{request}\n").as_bytes());
        self.heard().expect("an answer")
    }

    pub(crate) fn status(&mut self) -> Status {
        match self.ask("{\"ask\":\"status\"}") {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, request: &str) -> String {
        match self.ask(request) {
            Reply::Refused { reason } => reason,
            other => panic!("{request}: {other:?}"),
        }
    }

    /// A picture, and its colour at a place.
    pub(crate) fn colour(&mut self, request: &str, (x, y): (usize, usize)) -> u32 {
        let reply = self.ask(request);
        let Reply::Shot(shot) = reply else { panic!("{reply:?}") };
        let mut png = vec![0; usize::try_from(shot.bytes).expect("small")];
        self.0.read_exact(&mut png).expect("all of it");
        let mut picture = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a picture");
        let mut bytes = vec![0; picture.output_buffer_size().expect("small")];
        let info = picture.next_frame(&mut bytes).expect("a picture");
        assert_eq!(
            (info.width.cast_signed(), info.height.cast_signed()),
            (shot.size.width, shot.size.height)
        );
        let at = (y * info.width as usize + x) * 3;
        u32::from(bytes[at]) << 16 | u32::from(bytes[at + 1]) << 8 | u32::from(bytes[at + 2])
    }
}

/// A cockpit with a socket for tools.
fn world() -> (World, Admin, PathBuf) {
    let folder = path("admin");
    std::fs::create_dir(&folder).expect("made");
    let nowhere = PathBuf::from("/nonexistent/takt");
    let world = World::with(ONE, nowhere, Some(folder.clone()), Domains::default());
    let admin = Admin::start(&folder, world.cockpit.controls().clone()).expect("it listens");
    (world, admin, folder)
}

#[test]
fn tools_see_and_change_what_is_shown() {
    let (world, admin, folder) = world();
    let mut client = world.client("apps");
    let window = client.window("app");
    client.paint(&window.surface, (80, 60), 0xFF20_80C0);
    let mut tool = Tool::new(&folder);
    let whole = "{\"ask\":\"shot\",\"output\":\"center\"}";
    patiently("it is shown", || (tool.colour(whole, (25, 35)) == 0x20_80C0).then_some(()));
    let status = tool.status();
    assert_eq!((status.outputs[0].name.as_str(), status.clients), ("center", 1));
    let [shown] = status.windows.as_slice() else { panic!("{status:?}") };
    assert_eq!((shown.name.as_deref(), shown.output.as_deref()), (Some("app"), Some("center")));
    assert_eq!((shown.area, shown.pid), (Some(Rect::new(20, 30, 80, 60)), std::process::id()));
    let part = "{\"ask\":\"shot\",\"output\":\"center\",\"part\":\"10x10+15+30\"}";
    assert_eq!((tool.colour(part, (4, 0)), tool.colour(part, (5, 0))), (0, 0x20_80C0));
    for (order, wanted) in [
        ("{\"ask\":\"hide\",\"window\":\"app\"}", 0),
        ("{\"ask\":\"show\",\"window\":\"app\"}", 0x20_80C0),
        ("{\"ask\":\"place\",\"window\":\"app\",\"area\":\"80x60+120+40\"}", 0),
        (&format!("{{\"ask\":\"place\",\"window\":{}}}", shown.id), 0x20_80C0),
        ("{\"ask\":\"opacity\",\"window\":\"app\",\"opacity\":0}", 0),
        ("{\"ask\":\"opacity\",\"window\":\"app\",\"opacity\":1}", 0x20_80C0),
        ("{\"ask\":\"raise\",\"window\":\"app\"}", 0x20_80C0),
    ] {
        assert_eq!(tool.ask(order), Reply::Done, "{order}");
        patiently(order, || (tool.colour(whole, (25, 35)) == wanted).then_some(()));
    }
    assert_eq!(tool.ask("{\"ask\":\"motion\",\"motion\":\"parked\"}"), Reply::Done);
    assert_eq!(tool.status().motion, takt_cockpit::windows::Motion::Parked);
    assert_eq!(tool.ask("{\"ask\":\"close\",\"window\":\"app\"}"), Reply::Done);
    client.until("asked to close", |heard| heard.closed == 1);
    drop(admin);
    assert!(!folder.join(SOCKET).exists(), "it is gone with the cockpit");
    drop(world);
    std::fs::remove_dir(folder).expect("nothing is left in it");
}

#[test]
fn nonsense_of_tools_is_refused_and_stalls_nothing() {
    let (world, _admin, folder) = world();
    let mut tool = Tool::new(&folder);
    for (request, reason) in [
        ("nonsense", "not a request of a cockpit: expected ident at line 1"),
        ("{}", "not a request of a cockpit: missing field `ask`"),
        ("{\"ask\":\"fly\"}", "unknown variant `fly`"),
        ("{\"ask\":\"hide\"}", "missing field `window`"),
        ("{\"ask\":\"hide\",\"window\":\"radio\"}", "no window is there by the rule \"radio\""),
        ("{\"ask\":\"hide\",\"window\":99}", "there is no window 99"),
        ("{\"ask\":\"opacity\",\"window\":\"app\",\"opacity\":7}", "opacity = 7: use 0 to 1"),
        ("{\"ask\":\"shot\",\"output\":\"left\"}", "there is no output \"left\": use one of center"),
        (
            "{\"ask\":\"shot\",\"output\":\"center\",\"part\":\"1x1+200+0\"}",
            "1x1+200+0 is not inside of center",
        ),
        ("\u{1}\u{2}", "not a request"),
    ] {
        let said = tool.refused(request);
        assert!(said.contains(reason), "{request}: {said}");
    }
    tool.send(&[0xFF, 0xFE, b'\n', b'\n']);
    assert!(matches!(tool.heard(), Some(Reply::Refused { .. })), "no text at all, and an empty line");
    assert_eq!(tool.status().outputs.len(), 1, "it is served all the same");
    tool.send(&vec![b'x'; REQUEST_BYTES_MAX + 1]);
    let Some(Reply::Refused { reason }) = tool.heard() else { panic!("a request without an end") };
    assert!(reason.contains("4096 bytes at most"), "{reason}");
    // Many that say nothing, or half a request, or go away before the answer.
    let mut silent: Vec<Tool> = (0..7).map(|_| Tool::new(&folder)).collect();
    silent.iter_mut().for_each(|tool| tool.send(b"{\"ask\":"));
    for _ in 0..20 {
        Tool::new(&folder).send(b"{\"ask\":\"shot\",\"output\":\"center\"}\n");
    }
    assert_eq!(world.cockpit.controls().status().expect("a status").outputs.len(), 1);
    patiently("a tool is served beside them", || {
        let mut tool = Tool::new(&folder);
        matches!(tool.ask("{\"ask\":\"status\"}"), Reply::Status(_)).then_some(())
    });
    let one_more = Tool::new(&folder);
    let refused = patiently("there is a bound", || match Tool::new(&folder).heard_at_once() {
        Some(Reply::Refused { reason }) => Some(reason),
        _ => None,
    });
    assert_eq!(refused, "8 tools are connected already");
    drop((one_more, silent));
}

impl Tool {
    /// What it is told without asking.
    fn heard_at_once(&mut self) -> Option<Reply> {
        let moment = std::time::Duration::from_millis(100);
        self.0.get_mut().set_read_timeout(Some(moment)).expect("set");
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|length| *length > 0)?;
        serde_json::from_str(&line).ok()
    }
}

/// Where the other process of the test below connects.
const CONNECT_TO: &str = "TAKT_TEST_ADMIN";

#[test]
#[expect(clippy::print_stderr, reason = "says that it was skipped")]
fn other_users_are_refused() {
    if let Some(folder) = std::env::var_os(CONNECT_TO) {
        let Some(Reply::Refused { reason }) = Tool::new(Path::new(&folder)).heard() else {
            panic!("refused")
        };
        assert!(reason.starts_with("user 65534 may not control this cockpit"), "{reason}");
        return;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can run a program as another user");
        return;
    }
    let (_world, _admin, folder) = world();
    // Even if the file lets them.
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o777);
    std::fs::set_permissions(folder.join(SOCKET), open.clone()).expect("set");
    std::fs::set_permissions(&folder, open).expect("set");
    let this = std::env::current_exe().expect("this test");
    let other = Command::new(this)
        .args(["--exact", "admin::other_users_are_refused"])
        .env(CONNECT_TO, &folder)
        .stdout(Stdio::null())
        .current_dir("/")
        .uid(65_534)
        .status();
    match other {
        Err(error) => eprintln!("skipped: another user cannot execute this test: {error}"),
        Ok(status) => assert!(status.success()),
    }
}
