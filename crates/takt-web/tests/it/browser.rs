//! The page in a real browser: Debian's chromium, driven over the WebDriver protocol.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use crate::daemon::{Daemon, Drawing, PATIENCE, reserving, skipped};
use crate::http::Web;

/// A browser that ends with the test.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
    folder: PathBuf,
    /// The driver may go on writing.
    _out: Lines<BufReader<ChildStdout>>,
}

impl Browser {
    /// None where the programs are not installed.
    fn start(name: &str) -> Option<Self> {
        let driver =
            Command::new("chromedriver").arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut driver) = driver else {
            skipped("chromedriver is not installed");
            return None;
        };
        let mut out = BufReader::new(driver.stdout.take().expect("piped")).lines();
        // It says the port that it was asked for first, and then the one that it has.
        let said = |line: String| line.trim_end_matches('.').rsplit_once("on port ")?.1.parse().ok();
        let found = out.by_ref().map_while(Result::ok).filter_map(said).find(|port| *port > 0);
        let port = found.expect("it says its port");
        let folder = std::env::temp_dir().join(format!("takt-web-{name}-profile-{}", std::process::id()));
        let mut browser = Self { driver, port, session: String::new(), folder, _out: out };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
            &format!("--user-data-dir={}", browser.folder.display()),
        ];
        let wanted =
            json!({ "goog:loggingPrefs": { "browser": "ALL" }, "goog:chromeOptions": { "args": arguments } });
        let made = browser.call("POST", "/session", &json!({ "capabilities": { "alwaysMatch": wanted } }));
        let Some(session) = made["sessionId"].as_str() else {
            skipped(&format!("chromium does not start: {made}"));
            return None;
        };
        session.clone_into(&mut browser.session);
        Some(browser)
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let body = body.to_string();
        let head =
            format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n");
        let request = format!("{head}connection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).expect("sent");
        // It keeps the connection, so the answer ends where its head says.
        let (mut answer, mut length) = (BufReader::new(stream), 0);
        for line in answer.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()) {
            if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = said.trim().parse().expect("a length");
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).expect("an answer");
        serde_json::from_slice::<Value>(&body).expect("JSON")["value"].take()
    }

    fn order(&self, path: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{path}", self.session), body)
    }

    fn open(&self, url: &str) {
        self.order("url", &json!({ "url": url }));
    }

    /// What a script returns.
    fn run(&self, script: &str) -> Value {
        self.order("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns something that is true.
    fn until(&self, what: &str) -> Value {
        let until = Instant::now() + PATIENCE;
        loop {
            let found = self.run(&format!("return {what}"));
            if !matches!(found, Value::Null | Value::Bool(false)) && found["error"].is_null() {
                return found;
            }
            assert!(
                Instant::now() < until,
                "{what}: {found}\n{}",
                self.run("return document.body.innerText")
            );
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    fn click(&self, text: &str) {
        let button = format!(
            "[...document.querySelectorAll('button')].find((b) => b.textContent === '{text}' && !b.disabled)"
        );
        self.until(&format!("Boolean({button})"));
        self.run(&format!("{button}.click()"));
    }

    fn page(&self, id: &str) {
        self.run(&format!("document.getElementById('tab-{id}').click()"));
    }

    fn resize(&self, width: u32) {
        let metrics = json!({ "width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.order(
            "goog/cdp/execute",
            &json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": metrics }),
        );
    }

    /// What the page complained of, since the last time.
    fn complaints(&self) -> Vec<String> {
        let log = self.order("se/log", &json!({ "type": "browser" }));
        let bad = |entry: &&Value| entry["level"] == "SEVERE" || entry["level"] == "WARNING";
        log.as_array().into_iter().flatten().filter(bad).map(ToString::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &json!({}));
        }
        // A browser ends with its driver.
        self.driver.kill().unwrap_or_default();
        self.driver.wait().ok();
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

const PAGES: [(&str, &str); 5] = [
    ("now", "document.querySelector('td.name b')?.textContent === 'dial'"),
    ("timeline", "Number(document.querySelector('canvas')?.dataset.drawn) > 30"),
    ("history", "document.querySelectorAll('.legend button').length > 0"),
    ("steer", "document.querySelector('select')?.options.length === 2"),
    ("whatif", "document.querySelector('textarea')?.value.includes('[[app]]')"),
];

#[test]
fn a_person_sees_steers_and_undoes_in_a_browser() {
    let Some(browser) = Browser::start("steers") else { return };
    let daemon = Daemon::start("browser", "");
    let web = Web::start(&daemon.path);
    let apps = [
        Drawing::start(&daemon.path, &reserving("dial", 9, 4)),
        Drawing::start(&daemon.path, &reserving("map", 5, 8)),
    ];
    web.await_json("/api/v1/now", |now| now["apps"][1]["name"] == "map");
    browser.open(&format!("http://{}/#token={}", web.address, web.steer));
    for (id, shown) in PAGES {
        browser.page(id);
        browser.until(shown);
    }
    assert_eq!(
        browser.run("return location.href").as_str(),
        Some(&*format!("http://{}/", web.address)),
        "no token"
    );

    browser.page("steer");
    browser.until("document.querySelector('select')?.options.length === 2");
    let priority = || web.get("/api/v1/now").json()["apps"][0]["priority"].clone();
    browser.run("document.querySelector('input[type=number]').value = 7");
    browser.click("Preview these terms");
    browser.until(
        "document.querySelector('.preview')?.textContent.includes('No contract that holds would break')",
    );
    assert_eq!(priority(), 9, "only seen so far");
    browser.click("Apply");
    browser.click("Undo");
    browser.until("document.querySelectorAll('.changes li').length === 2");
    assert_eq!(priority(), 9, "it was changed, and back");
    let changes = web.get("/api/v1/changes").json();
    assert_eq!((&changes[1]["text"], &changes[1]["undoable"]), (&json!("dial: priority 7"), &json!(false)));

    // What is no name of an app is text as well.
    browser.page("whatif");
    browser.run("document.querySelector('textarea').value = 'name = \"<img src=x onerror=alert(1)>\"\\n<b>'");
    browser.click("Simulate both");
    browser.until("document.querySelector('p.bad')?.textContent.includes('<b>')");
    assert_eq!(browser.run("return document.images.length + document.querySelectorAll('p.bad b').length"), 0);

    for width in [390, 1280] {
        browser.resize(width);
        for (id, shown) in PAGES {
            browser.page(id);
            browser.until(shown);
            let wide = browser
                .run("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
            assert!(wide.as_i64() <= Some(0), "{id} is {wide} pixels wider than {width}");
        }
    }
    // One request was wrong on purpose.
    let complaints: Vec<String> =
        browser.complaints().into_iter().filter(|line| !line.contains("/simulate")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    drop(apps);
}

#[test]
fn a_visitor_without_the_right_sees_and_cannot_steer_and_the_page_outlives_the_daemon() {
    let Some(browser) = Browser::start("looks") else { return };
    let daemon = Daemon::start("looks", "");
    let path = daemon.path.clone();
    let web = Web::start(&path);
    let dial = Drawing::start(&path, &reserving("dial", 9, 4));
    browser.open(&format!("http://{}/#token={}", web.address, web.view));
    browser.until(PAGES[0].1);
    browser.page("steer");
    browser.until("document.body.textContent.includes('for looking only')");
    browser.click("Pause");
    browser
        .until("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Apply')?.disabled");
    browser.page("now");
    drop((dial, daemon));
    browser.until("document.getElementById('banner').textContent.includes('No daemon answers')");
    let daemon = Daemon::at(path, "");
    let dial = Drawing::start(&daemon.path, &reserving("dial", 9, 4));
    browser.until(PAGES[0].1);
    assert!(browser.complaints().is_empty(), "{:?}", browser.complaints());
    // Without a token there is a sentence, and nothing else.
    browser.run("sessionStorage.clear(); location.href = '/'");
    browser.until("document.getElementById('link')?.textContent.includes('a token is needed')");
    drop(dial);
}
