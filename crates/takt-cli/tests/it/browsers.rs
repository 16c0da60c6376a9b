//! Browsers keep their sandboxes under Takt, and draw. With `TAKT_SLOW_TESTS=1`, where they are installed.
//!
//! Root's browser has no sandbox, so a test of root has it run as another user, with what Takt needs in a folder that
//! all users may read.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::daemon::await_that;
use crate::support::server::Server;
use crate::support::{app, is_slow_wanted, skipped, takt_command, text};

/// How long a browser draws before it is judged.
const DRAWS: Duration = Duration::from_secs(60);
/// A page that draws with WebGL and writes into its title by what and how often.
const PAGE: &str = r#"<canvas id="c" width="200" height="150"></canvas><script>
const gl = document.getElementById('c').getContext('webgl');
const info = gl && gl.getExtension('WEBGL_debug_renderer_info');
let frames = 0;
const draw = () => {
  gl.clearColor((frames % 60) / 60, 0.5, 0.2, 1); gl.clear(gl.COLOR_BUFFER_BIT);
  const pixel = new Uint8Array(4); gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
  frames += 1;
  document.title = `WebGL;${gl.getParameter(info.UNMASKED_RENDERER_WEBGL)};${pixel[1]};${frames}`;
  requestAnimationFrame(draw);
};
draw();
</script>"#;

/// A folder that every user may use, with everything that the browser needs.
struct Place {
    folder: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("takt-browser-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("our own folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("our own folder");
        for name in ["takt", "libEGL_takt.so", "libGLX_takt.so"] {
            fs::copy(app(name), folder.join(name)).expect("it was built");
        }
        fs::write(folder.join("page.html"), PAGE).expect("our own folder");
        Self { folder }
    }

    /// Chromium with its own profile; under Takt or without it.
    fn start(&self, server: &Server, name: &str, takt: bool) -> Browser {
        let home = self.folder.join(name);
        let mut words: Vec<String> = Vec::new();
        if rustix::process::geteuid().is_root() {
            let user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--"];
            words.extend(user.map(str::to_owned));
        }
        if takt {
            let command = self.folder.join("takt").display().to_string();
            words.extend([&command, "run", "--schedule", "--name", "browser", "--"].map(str::to_owned));
        }
        let profile = home.join("profile").display().to_string();
        let page = self.folder.join("page.html").display().to_string();
        words.extend(["chromium", "--no-first-run", "--remote-debugging-port=0"].map(str::to_owned));
        // Mesa's renderer and its cache have threads, with which Chromium gives its sandbox up also without Takt; the
        // variables below leave them out.
        words.extend(["--use-gl=angle", "--use-angle=gl", "--ignore-gpu-blocklist"].map(str::to_owned));
        words.extend([format!("--user-data-dir={profile}"), format!("file://{page}")]);
        fs::create_dir_all(home.join("run")).expect("our own folder");
        for folder in [home.clone(), home.join("run")] {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("our own folder");
        }
        let log = fs::File::create(home.join("log")).expect("our own folder");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &home);
        command.env("XDG_RUNTIME_DIR", home.join("run")).env("LP_NUM_THREADS", "0");
        command.env("MESA_SHADER_CACHE_DISABLE", "true").env("LIBGL_ALWAYS_SOFTWARE", "1");
        command.env("TAKT_PATIENCE_MS", "10000");
        command.envs(server.variables.iter().map(|(name, value)| (name, value)));
        command.current_dir(&home).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let process = command.spawn().expect("it starts");
        Browser { process, profile: PathBuf::from(profile), home }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Temporary files of ours.
        fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

struct Browser {
    process: Child,
    profile: PathBuf,
    home: PathBuf,
}

/// What is seen of a browser from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen {
    /// The mode of system call filters of its GPU process.
    seccomp: String,
    /// By what WebGL draws, and a colour that it drew.
    renderer: String,
    green: String,
}

impl Browser {
    /// Its processes with their command lines.
    fn processes(&self) -> Vec<(u32, String)> {
        let numbers = fs::read_dir("/proc").expect("there").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let words = |process: u32| {
            let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
            Some((process, text(&words).replace('\0', " ")))
        };
        let profile = self.profile.display().to_string();
        numbers.filter_map(words).filter(|(_, words)| words.contains(&profile)).collect()
    }

    fn gpu_process(&self) -> Option<u32> {
        let found = self.processes().into_iter().find(|(_, words)| words.contains("--type=gpu-process"));
        found.map(|(process, _)| process)
    }

    /// The title of its page, in parts.
    fn title(&self) -> Option<Vec<String>> {
        let port = fs::read_to_string(self.profile.join("DevToolsActivePort")).ok()?;
        let mut stream = TcpStream::connect(("127.0.0.1", port.lines().next()?.parse().ok()?)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        stream.write_all(b"GET /json/list HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = Vec::new();
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = stream.read(&mut part) {
            answer.extend_from_slice(&part[..length]);
            if text(&answer).trim_end().ends_with(']') {
                break;
            }
        }
        let told = text(&answer);
        let title = told.lines().find_map(|line| line.trim().strip_prefix("\"title\": \"WebGL;"))?;
        Some(title.trim_end_matches("\",").split(';').map(str::to_owned).collect())
    }

    fn frames(&self) -> u64 {
        self.title().and_then(|title| title.get(2)?.parse().ok()).unwrap_or(0)
    }

    /// Waits until it draws; what is seen of it then.
    fn draws(&self) -> Seen {
        await_that(&format!("it draws: {}", self.said()), || self.frames() > 10);
        let title = self.title().expect("it has one");
        let process = self.gpu_process().expect("it has one");
        let status = fs::read_to_string(format!("/proc/{process}/status")).expect("it lives");
        let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:")).expect("Linux has it");
        Seen { seccomp: seccomp.trim().to_owned(), renderer: title[0].clone(), green: title[1].clone() }
    }

    fn said(&self) -> String {
        fs::read_to_string(self.home.join("log")).unwrap_or_default()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        for (process, _) in self.processes() {
            // It may have ended with others.
            let _gone =
                Command::new("kill").args(["-KILL", &process.to_string()]).stderr(Stdio::null()).status();
        }
        self.process.wait().ok();
    }
}

#[test]
fn chromium_keeps_its_sandbox_and_draws_for_a_minute() {
    if !is_slow_wanted() {
        return skipped("TAKT_SLOW_TESTS is not set");
    }
    if !Path::new("/usr/bin/chromium").exists() {
        return skipped("chromium is not installed");
    }
    // Builds what is copied.
    let _built = takt_command("help");
    let (server, place) = (Server::x11(), Place::new());
    let alone = place.start(&server, "alone", false).draws();
    if alone.seccomp != "2" {
        return skipped("Chromium has no sandbox for its GPU process on this machine, with or without Takt");
    }
    let browser = place.start(&server, "takt", true);
    assert_eq!(browser.draws(), alone, "{}", browser.said());
    let process = browser.gpu_process().expect("it has one");
    assert!(browser.said().contains("scheduled as browser"), "{}", browser.said());
    let until = Instant::now() + DRAWS;
    while Instant::now() < until {
        let before = browser.frames();
        await_that("it draws on", || browser.frames() > before + 20);
    }
    assert_eq!(browser.gpu_process(), Some(process), "its GPU process ended: {}", browser.said());
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it lives").flatten();
    let names = threads.map(|thread| fs::read_to_string(thread.path().join("comm")).unwrap_or_default());
    assert!(names.into_iter().any(|name| name.trim() == "takt-measure"), "Takt has seen its work");
}
