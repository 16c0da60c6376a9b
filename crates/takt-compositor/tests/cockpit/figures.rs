//! Figures of a busy cockpit: frames of an instrument, and how soon input is heard and answered. With
//! `TAKT_SLOW_TESTS=1`; `TAKT_FIGURES_S` says for how many seconds (10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use takt_cockpit::control::{Reply, Status};

use crate::admin::Tool;
use crate::chaos::{Dial, Twin};
use crate::program::Program;
use crate::wayland::Client;
use crate::world::path;

const CONFIG: &str = "
[[output]]
name = 'cluster'
size = '1440x540'
driver = true

[[output]]
name = 'center'
size = '800x480'
refresh_hz = 30
etpf_ms = 6.0
priority = 500

[[domain]]
name = 'instruments'

[[domain]]
name = 'apps'

[[window]]
name = 'dial'
domain = 'instruments'
app_id = 'dial'
output = 'cluster'
area = '540x540+90+0'
must_be_visible = true
animation_s_max = inf
input = []

[[window]]
name = 'menu'
domain = 'instruments'
app_id = 'menu'
output = 'cluster'
area = '400x400+900+0'

[[window]]
name = 'game'
domain = 'apps'
app_id = 'game'
output = 'center'
area = '400x480+0+0'

[[window]]
name = 'flood'
domain = 'apps'
app_id = 'flood'
output = 'center'
area = '400x480+400+0'

[[input]]
name = 'wheel'
kind = 'keys'
hands = 0
";

/// A client that draws when it hears something, and at no other time.
fn answer(mut menu: Client, ended: &AtomicBool) {
    let window = menu.window("menu");
    menu.paint(&window.surface, (400, 400), 0xFF00_0000);
    let mut colour = 0;
    while !ended.load(Ordering::Relaxed) {
        if menu.turn().is_err() {
            return;
        }
        if menu.heard.input.drain(..).any(|input| input.ends_with("down")) {
            colour = (colour + 1) % 255;
            menu.paint(&window.surface, (400, 400), 0xFF00_0000 | colour);
        }
    }
}

fn press(tool: &mut Tool) {
    let keys = "[{\"do\":\"key-down\",\"key\":28},{\"do\":\"key-up\",\"key\":28}]";
    let request = format!("{{\"ask\":\"input\",\"device\":\"wheel\",\"acts\":{keys}}}");
    // Until its window is there, the menu hears nothing.
    let reply = tool.ask(&request);
    assert!(matches!(reply, Reply::Done | Reply::Refused { .. }), "{reply:?}");
}

#[test]
#[expect(clippy::print_stderr, reason = "figures are what it is for")]
fn an_instrument_beside_a_game_and_a_flood() {
    if std::env::var_os("TAKT_SLOW_TESTS").is_none() {
        return eprintln!("skipped: TAKT_SLOW_TESTS is not set");
    }
    let seconds = std::env::var("TAKT_FIGURES_S").ok().and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
    let socket = path("daemon");
    let daemon = Twin::start("daemon", &socket);
    let cockpit = Program::with(CONFIG, &["--socket", socket.to_str().expect("text")]);
    let apps = cockpit.folder.join("apps");
    let others = [Twin::start("game", &apps), Twin::start("flood", &apps)];
    let mut dial = Dial::sized(&cockpit.folder, (540, 540));
    dial.draw(60);
    dial.forget();
    let until = Instant::now() + Duration::from_secs(seconds);
    let stream = std::os::unix::net::UnixStream::connect(cockpit.folder.join("instruments"));
    let mut menu = Client::new(stream.expect("it listens"));
    menu.listen();
    let ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&ended);
    let answering = std::thread::Builder::new().name("menu".to_owned()).spawn(move || answer(menu, &told));
    let mut tool = Tool::new(&cockpit.folder);
    while Instant::now() < until {
        // A press in about a tenth of a second, at any time of a refresh.
        dial.draw(6);
        press(&mut tool);
    }
    let status: Status = tool.status();
    ended.store(true, Ordering::Relaxed);
    let menu = status.windows.iter().find(|window| window.name.as_deref() == Some("menu"));
    let input = menu.and_then(|menu| menu.input).expect("it heard something");
    let (frames, lost) = (dial.seen.len() as u64, dial.lost);
    let share = 100.0 * frames as f64 / (frames + lost) as f64;
    eprintln!(
        "instrument: {frames} frames seen, {lost} refreshes without a new one, {share:.2} % in {seconds} s"
    );
    for output in &status.outputs {
        eprintln!(
            "{}: {} composed, {} late, {} refreshes slept through, longest {:.2} ms",
            output.name,
            output.composed,
            output.late,
            output.skipped,
            output.longest_ns as f64 / 1e6
        );
    }
    eprintln!(
        "input: {} heard, 99 % after {:.2} ms, longest {:.2} ms",
        input.delivered, input.delivery_ms_p99, input.delivery_ms_max
    );
    eprintln!(
        "{} answers, 99 % after {:.2} ms, longest {:.2} ms; {} silent",
        input.answered, input.response_ms_p99, input.response_ms_max, input.silent
    );
    assert!(frames > 0 && input.answered > 0);
    answering.expect("a thread").join().expect("no panic");
    drop((others, daemon));
    std::fs::remove_file(socket).unwrap_or_default();
}
