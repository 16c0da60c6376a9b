//! The dashboard's queries, put to a real Prometheus that scrapes a console.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::daemon::{Daemon, Drawing, PATIENCE, reserving};
use crate::http::Web;

/// A Prometheus that is killed when the test ends.
struct Prometheus {
    process: Child,
    port: u16,
}

impl Prometheus {
    fn start(folder: &Path, web: &Web) -> Option<Self> {
        std::fs::remove_dir_all(folder).unwrap_or_default();
        std::fs::create_dir_all(folder).expect("our own folder");
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let (token, target) = (&web.view, web.address);
        let config = format!(
            "global: {{ scrape_interval: 1s }}
scrape_configs:
  - job_name: takt
    authorization: {{ credentials: {token} }}
    static_configs: [{{ targets: ['{target}'] }}]
"
        );
        let file = folder.join("prometheus.yml");
        std::fs::write(&file, config).expect("our own file");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        Some(Self { process, port })
    }

    /// The result of a query; none while it does not answer.
    fn query(&self, text: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        let escaped: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let head = format!("GET /api/v1/query?query={escaped} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        serde_json::from_str(answer.split_once("\r\n\r\n")?.1).ok()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        self.process.wait().ok();
    }
}

/// The queries of the dashboard, as Grafana would put them.
fn queries() -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/grafana/takt.json");
    let text = std::fs::read_to_string(file).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let targets = dashboard["panels"].as_array().expect("panels").iter().flat_map(|panel| {
        panel["targets"]
            .as_array()
            .expect("targets")
            .iter()
            .map(|target| target["expr"].as_str().expect("a query"))
    });
    targets.map(|query| query.replace("$app", ".*").replace("$__rate_interval", "10s")).collect()
}

#[test]
fn every_query_of_the_dashboard_names_metrics_that_there_are() {
    let daemon = Daemon::start("metrics", "");
    let web = Web::start(&daemon.path);
    web.await_json("/api/v1/now", |now| now["daemon"].is_object());
    let page = web.get("/metrics").body;
    let known: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    for query in queries() {
        let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.filter(|word| word.starts_with("takt_")) {
            let is_known = known.iter().any(|name| {
                word.strip_prefix(name).is_some_and(|rest| ["", "_bucket", "_sum", "_count"].contains(&rest))
            });
            assert!(is_known, "{query}: {word} is none of {known:?}");
        }
    }
}

#[test]
fn a_real_prometheus_scrapes_the_console_and_answers_the_dashboard() {
    if std::env::var_os("TAKT_SLOW_TESTS").is_none() {
        return;
    }
    let daemon = Daemon::start("prometheus", "");
    let web = Web::start(&daemon.path);
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    let folder = std::env::temp_dir().join(format!("takt-web-prometheus-{}", std::process::id()));
    let Some(prometheus) = Prometheus::start(&folder, &web) else {
        return crate::daemon::skipped("prometheus is not installed");
    };
    let until = Instant::now() + PATIENCE;
    let await_result = |query: &str| loop {
        let answer = prometheus.query(query).unwrap_or_default();
        if answer["status"] == "success" && answer["data"]["result"][0].is_object() {
            return;
        }
        assert!(Instant::now() < until, "{query}: {answer}");
        std::thread::sleep(Duration::from_millis(200));
    };
    await_result("up{job=\"takt\"} == 1");
    await_result("rate(takt_frames_total{app=\"dial\"}[10s]) > 0");
    for query in queries() {
        await_result(&query);
    }
    drop(dial);
    std::fs::remove_dir_all(&folder).unwrap_or_default();
}
