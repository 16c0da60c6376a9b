//! Asks the daemon again and again, and keeps what pages are shown.
//!
//! A thread of its own asks: every second while a page is there, and otherwise as often as the history needs. All
//! pages get the same answer, so that ten of them cost the daemon what one does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper::body::Bytes;
use serde_json::Value;
use takt_daemon::control::ask::Ask;
use takt_daemon::tool::{Tool, Unanswered, figures_of};
use tokio::sync::watch;

use crate::api::{
    AppNow, DaemonNow, EvictedNow, Guarantee, HeldNow, LateNow, Now, OutsiderNow, QuantilesNow,
};
use crate::history::{COARSE_S, FINE_S, History, Row};
use crate::routes;

/// How long the daemon may take to answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is asked while a page is there.
const OFTEN: Duration = Duration::from_secs(1);
/// Short samples of the history while a page is there, long ones always.
const FINE: Duration = Duration::from_secs(FINE_S as u64);
const COARSE: Duration = Duration::from_secs(COARSE_S as u64);
/// An app that has waited for so long is held.
const HELD_S: f64 = 0.25;
/// Most apps whose last late frame is remembered.
const LATE_MAX: usize = 256;

/// What is shown.
#[derive(Debug)]
pub(crate) struct Board {
    shared: Arc<BoardState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct BoardState {
    socket: Option<PathBuf>,
    /// The event `now`, and its time.
    shown: watch::Sender<(u64, Bytes)>,
    history: Mutex<History>,
    /// The last late frame of each app: why, when it was due by the daemon's clock, and when that was heard of.
    late: Mutex<LateFrames>,
    stop: AtomicBool,
}

type LateFrames = BTreeMap<String, (String, f64, u64)>;

impl Board {
    /// Begins to ask the daemon at `socket`, or at the usual places.
    pub(crate) fn start(socket: Option<PathBuf>) -> std::io::Result<Self> {
        let shown = watch::Sender::new(event(&Now::default()));
        let history = Mutex::new(History::default());
        let shared = Arc::new(BoardState {
            socket,
            shown,
            history,
            late: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let asking = Arc::clone(&shared);
        let thread =
            std::thread::Builder::new().name("takt-web-ask".to_owned()).spawn(move || asking.ask_on())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// What is shown, now and from now on.
    pub(crate) fn watch(&self) -> watch::Receiver<(u64, Bytes)> {
        let receiver = self.shared.shown.subscribe();
        // The thread may sleep until the next long sample.
        self.wake();
        receiver
    }

    /// What is so now, asked for this.
    pub(crate) fn now(&self) -> Now {
        let now = Asker::new(&self.shared).look(FINE_S);
        now.unwrap_or_else(|error| Now { at_ms: unix_ms(), error: Some(error.to_string()), ..Now::default() })
    }

    /// Percentiles over time.
    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.shared.history()
    }

    /// Has the daemon asked soon: something changed.
    pub(crate) fn wake(&self) {
        self.thread.iter().map(JoinHandle::thread).for_each(Thread::unpark);
    }

    /// Where the daemon is.
    pub(crate) fn socket(&self) -> PathBuf {
        self.shared.path()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.wake();
        if let Some(thread) = self.thread.take() {
            // A panic has printed its message.
            drop(thread.join());
        }
    }
}

impl BoardState {
    fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(takt_ipc::find::default_path)
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask_on(&self) {
        let mut asker = Asker::new(self);
        let (mut fine, mut coarse) = (Instant::now(), Instant::now() + COARSE);
        let mut before = Names::default();
        while !self.stop.load(Ordering::Relaxed) {
            if coarse <= Instant::now() {
                coarse = Instant::now() + COARSE;
                if let Ok(now) = asker.look(COARSE_S) {
                    self.history().add(Row::Coarse, &now);
                }
            }
            let is_watched = self.shown.receiver_count() > 0;
            if is_watched {
                let now = asker.look(FINE_S).unwrap_or_else(|error| Now {
                    at_ms: unix_ms(),
                    error: Some(error.to_string()),
                    ..Now::default()
                });
                if now.error.is_none() && fine <= Instant::now() {
                    fine = Instant::now() + FINE;
                    let mut history = self.history();
                    history.add(Row::Fine, &now);
                    before.compare(&now).iter().for_each(|text| history.mark(now.at_ms, text));
                }
                self.shown.send_replace(event(&now));
            }
            if !is_watched {
                // A daemon that was started on demand ends when no tool is there.
                asker.tool = None;
            }
            let until_coarse = coarse.saturating_duration_since(Instant::now());
            std::thread::park_timeout(if is_watched { OFTEN.min(until_coarse) } else { until_coarse });
        }
    }
}

fn event(now: &Now) -> (u64, Bytes) {
    (now.at_ms, routes::event("now", &serde_json::to_string(now).unwrap_or_default()))
}

/// Milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Asks a daemon on one connection, and looks for it again where that is gone.
struct Asker<'a> {
    shared: &'a BoardState,
    tool: Option<Tool>,
}

impl<'a> Asker<'a> {
    fn new(shared: &'a BoardState) -> Self {
        Self { shared, tool: None }
    }

    /// Figures of that many seconds.
    fn look(&mut self, window_s: u32) -> Result<Now, Unanswered> {
        let apps = self.ask(&Ask::Apps)?;
        let summary = self.ask(&Ask::Summary { window_s })?;
        let daemon = self.ask(&Ask::Daemon)?;
        let mut now = now_of(&apps, &summary, &daemon);
        let mut late = self.shared.late.lock().unwrap_or_else(PoisonError::into_inner);
        remember(&mut late, &summary);
        for app in &mut now.apps {
            app.late = late.get(&app.name).map(|(sentence, _, then)| LateNow {
                sentence: sentence.clone(),
                ago_s: (now.at_ms.saturating_sub(*then)) as f64 / 1000.0,
            });
        }
        Ok(now)
    }

    fn ask(&mut self, ask: &Ask) -> Result<Value, Unanswered> {
        let kept = self.tool.take();
        let answer = kept.as_ref().map(|tool| tool.ask(ask));
        let (tool, answer) = match (kept, answer) {
            // The daemon may be another one by now.
            (Some(_), Some(Err(error))) if !matches!(error, Unanswered::Refused(_)) => self.fresh(ask)?,
            (Some(tool), Some(answer)) => (tool, answer),
            _ => self.fresh(ask)?,
        };
        self.tool = Some(tool);
        answer
    }

    fn fresh(&self, ask: &Ask) -> Result<(Tool, Result<Value, Unanswered>), Unanswered> {
        let tool = Tool::connect(&self.shared.path(), PATIENCE)?;
        let answer = tool.ask(ask);
        match answer {
            Err(error) if !matches!(error, Unanswered::Refused(_)) => Err(error),
            answer => Ok((tool, answer)),
        }
    }
}

/// Notes the newest late frame of each app.
fn remember(late: &mut LateFrames, summary: &Value) {
    for miss in summary["misses"].as_array().into_iter().flatten() {
        let (name, due_s) = (text(miss, "app"), number(miss, "deadline_s"));
        let is_new = late.get(&name).is_none_or(|(_, before, _)| *before < due_s);
        if is_new && (late.len() < LATE_MAX || late.contains_key(&name)) {
            late.insert(name, (text(miss, "sentence"), due_s, unix_ms()));
        }
    }
}

/// Asks one question on a connection of its own.
pub(crate) fn ask(socket: &Path, ask: &Ask) -> Result<Value, Unanswered> {
    Tool::connect(socket, PATIENCE)?.ask(ask)
}

/// What the answers of the daemon say.
fn now_of(apps: &Value, summary: &Value, daemon: &Value) -> Now {
    let list = apps.as_array().map_or(&[][..], Vec::as_slice);
    let apps: Vec<AppNow> = list.iter().map(|app| app_of(app, figures_of(summary, app))).collect();
    Now {
        at_ms: unix_ms(),
        error: None,
        daemon: Some(daemon_of(daemon)),
        guarantee: guarantee_of(&apps, list),
        gpu: number(&summary["gpu"], "utilisation"),
        outsiders: list_of(daemon, "outsiders", |one| OutsiderNow {
            pid: small(one, "pid"),
            name: text(one, "name"),
            device: text(one, "device"),
        }),
        unseen: daemon["unseen"].as_str().map(str::to_owned),
        alarms: alarms_of(daemon),
        evicted: list_of(daemon, "evicted", |one| EvictedNow {
            name: text(one, "name"),
            for_s: number(one, "for_s"),
        }),
        apps,
    }
}

fn daemon_of(daemon: &Value) -> DaemonNow {
    DaemonNow {
        policy: text(daemon, "policy"),
        refresh_hz: number(daemon, "refresh_hz"),
        decisions: daemon["decisions"].as_u64().unwrap_or_default(),
        turns: daemon["turns"].as_u64().unwrap_or_default(),
        turn_us_mean: number(daemon, "turn_us_mean"),
        turn_us_max: number(daemon, "turn_us_max"),
        limits: daemon["limits"].clone(),
    }
}

fn app_of(app: &Value, figures: &Value) -> AppNow {
    let held = app["held"].as_object().map(|_| HeldNow {
        why: text(&app["held"], "why"),
        for_s: number(&app["held"], "for_s"),
        promise: app["held"]["promise"].as_str().map(str::to_owned),
    });
    let fps = number(figures, "fps");
    let is_held = held.as_ref().is_some_and(|held| held.for_s >= HELD_S);
    let is_active = number(figures, "gpu_share") > 0.0 || fps > 0.0;
    let state = if app["paused"] == true {
        "paused"
    } else if app["set_aside"] == true {
        "set aside"
    } else if is_held {
        "held"
    } else if is_active {
        "running"
    } else {
        "idle"
    };
    let is_judged = app["judged"] == true;
    AppNow {
        app: small(app, "app"),
        name: text(app, "name"),
        pid: small(app, "pid"),
        uid: small(app, "uid"),
        domain: text(app, "domain"),
        priority: small(app, "priority"),
        contract: text(app, "contract"),
        guaranteed: app["guaranteed"] == true,
        promised: app["reason"] != "no-contract",
        admission: text(app, "admission"),
        state: state.to_owned(),
        held,
        fps_target: (app["paced"] == true).then(|| number(app, "fps")),
        fps,
        met: figures["met"].as_f64().filter(|_| is_judged),
        missed: figures["missed"].as_u64().filter(|_| is_judged).unwrap_or_default(),
        response_us: quantiles(&figures["response_us"]),
        frame_gpu_us: quantiles(&figures["frame_gpu_us"]),
        gpu: number(figures, "gpu_share"),
        etpf_ms: number(app, "etpf_ms"),
        max_slice_ms: app["max_slice_ms"].as_f64(),
        terms: app["terms"].clone(),
        late: None,
    }
}

fn guarantee_of(apps: &[AppNow], list: &[Value]) -> Guarantee {
    let promised = || apps.iter().zip(list).filter(|(app, _)| app.promised);
    let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let reasons = promised().filter(|(app, _)| !app.guaranteed);
    Guarantee {
        contracts: count(promised().count()),
        guaranteed: count(promised().filter(|(app, _)| app.guaranteed).count()),
        reasons: reasons.map(|(app, _)| (app.name.clone(), app.admission.clone())).collect(),
    }
}

fn alarms_of(daemon: &Value) -> Vec<String> {
    let mut alarms = Vec::new();
    if let Some(broken) = daemon["broken"].as_str() {
        alarms.push(format!(
            "Not scheduled: the daemon contradicted itself and lets all apps run free ({broken}). Restart takt serve."
        ));
    }
    if let Some(app) = daemon["degraded"].as_str() {
        alarms.push(format!("Degraded: apps that matter less stand still until {app} draws again."));
    }
    let silent = daemon["silent"].as_array().into_iter().flatten().filter_map(Value::as_str);
    alarms.extend(silent.map(|app| format!("Not drawing: {app}.")));
    alarms
}

/// Which apps were there, to say who came and who left.
#[derive(Default)]
struct Names(Option<BTreeMap<(u32, u32), (String, String)>>);

impl Names {
    /// What differs from the last time, in words.
    fn compare(&mut self, now: &Now) -> Vec<String> {
        let key = |app: &AppNow| (app.app, app.pid);
        let terms = |app: &AppNow| format!("priority {}, {}", app.priority, app.contract);
        let is: BTreeMap<_, _> =
            now.apps.iter().map(|app| (key(app), (app.name.clone(), terms(app)))).collect();
        let Some(was) = self.0.replace(is.clone()) else {
            return Vec::new();
        };
        let mut said = Vec::new();
        for (key, (name, terms)) in &is {
            match was.get(key) {
                None => said.push(format!("{name} joined")),
                Some((_, before)) if before != terms => said.push(format!("{name}: {terms}")),
                Some(_) => {}
            }
        }
        said.extend(
            was.iter().filter(|(key, _)| !is.contains_key(key)).map(|(_, (name, _))| format!("{name} left")),
        );
        said
    }
}

fn list_of<T>(value: &Value, key: &str, read: impl Fn(&Value) -> T) -> Vec<T> {
    value[key].as_array().into_iter().flatten().map(read).collect()
}

fn quantiles(value: &Value) -> QuantilesNow {
    QuantilesNow { p50: number(value, "p50"), p99: number(value, "p99"), max: number(value, "max") }
}

pub(crate) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_default()
}

fn small(value: &Value, key: &str) -> u32 {
    value[key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_between_two_looks_are_said_once() {
        let app = |app: u32, name: &str, priority| AppNow {
            app,
            pid: 7,
            name: name.to_owned(),
            priority,
            contract: "60 fps".to_owned(),
            ..AppNow::default()
        };
        let now = |apps: &[AppNow]| Now { apps: apps.to_vec(), ..Now::default() };
        let mut names = Names::default();
        assert!(names.compare(&now(&[app(0, "dial", 9)])).is_empty(), "the first look is no change");
        let said = names.compare(&now(&[app(0, "dial", 5), app(1, "map", 3)]));
        assert_eq!(said, ["dial: priority 5, 60 fps", "map joined"]);
        assert_eq!(names.compare(&now(&[app(1, "map", 3)])), ["dial left"]);
        assert!(names.compare(&now(&[app(1, "map", 3)])).is_empty());
    }
}
