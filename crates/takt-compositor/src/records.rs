//! What was decided, one line each, for people or for machines.
//!
//! A thread of its own writes: the thread that decides never waits for a full disk or a slow reader. Lines
//! that find no room are counted, and a line tells how many there were.

use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use takt_audit::time::utc;
use takt_audit::{Decision, Event, Record, Subject};
use takt_cockpit::config::Cockpit as Config;
use takt_cockpit::windows::Kind;
use takt_daemon::observe::audit::{Ledger, Told};

use crate::client::Peer;
use crate::manager::{Connection, Entry, Recorder};

/// Most lines that wait to be written.
const LINES_MAX: usize = 4096;
/// Longest text in a line; longer ones are cut.
const TEXT_MAX: usize = 512;
/// How often the audit is looked after.
const TICK: Duration = Duration::from_secs(1);

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Time, event, then `key=value`.
    #[default]
    Text,
    /// A JSON object.
    Json,
}

/// A line.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Line {
    /// When, as a date.
    pub at: String,
    /// What happened.
    pub event: &'static str,
    /// In which domain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// To which window, output or program.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub about: String,
    /// The client's process, by the kernel's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// What it executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// What was asked, or what happened.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub asked: String,
    /// What was decided.
    pub decision: Decision,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The rule or the key that decided.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rule: String,
}

impl Line {
    /// A line about the cockpit itself.
    pub fn new(event: &'static str, asked: impl Into<String>) -> Self {
        Self { event, asked: asked.into(), ..Self::default() }
    }

    /// The line of a record.
    pub fn of(entry: &Entry, config: &Config) -> Self {
        let domain = |index: usize| config.domains.get(index).map(|domain| domain.name.clone());
        match entry {
            Entry::Note(note, peer) => Self {
                event: event(note.kind),
                domain: note.domain.and_then(domain),
                about: note.window.clone(),
                asked: note.asked.clone(),
                decision: decision(note.allowed),
                reason: note.reason.clone(),
                rule: note.rule.clone(),
                ..Self::default()
            }
            .with_peer(peer.as_ref()),
            Entry::Client { domain: index, peer, what } => {
                let line = Self { domain: domain(*index), ..Self::of_connection(what) };
                line.with_peer(Some(peer))
            }
            Entry::Input(index, said) => {
                let about = config.inputs.get(*index).map(|input| input.name.clone()).unwrap_or_default();
                Self { event: "input-device", about, asked: said.clone(), ..Self::default() }
            }
            Entry::Output(index, reason) => {
                let about = config.outputs.get(*index).map(|output| output.name.clone());
                let about = about.unwrap_or_default();
                Self { event: "not-drawn", about, reason: reason.clone(), ..Self::default() }
            }
        }
    }

    fn of_connection(what: &Connection) -> Self {
        let refused = |event, rule: &str, reason: &str| Self {
            event,
            decision: Decision::Refused,
            rule: rule.to_owned(),
            reason: reason.to_owned(),
            ..Self::default()
        };
        match what {
            Connection::Opened => Self { event: "connected", decision: Decision::Granted, ..Self::default() },
            Connection::Refused(rule, reason) => refused("refused", rule, reason),
            Connection::Cut(rule, reason) => refused("cut", rule, reason),
            Connection::Closed(reason) => Self { event: "closed", reason: reason.clone(), ..Self::default() },
        }
    }

    fn with_peer(self, peer: Option<&Peer>) -> Self {
        let Some(peer) = peer else {
            return self;
        };
        Self { pid: Some(peer.pid), uid: Some(peer.uid), exe: peer.executable.clone(), ..self }
    }

    /// As it is recorded in an audit; none if audits have no such event.
    fn record(&self) -> Option<Record> {
        let event = match self.event {
            "stopping" => Event::Stopped,
            event => Event::named(event)?,
        };
        let about = Some(self.about.clone()).filter(|about| !about.is_empty());
        let subject = Subject {
            domain: self.domain.clone(),
            user: self.uid,
            pid: self.pid,
            exe: self.exe.clone(),
            app: about,
            // Clients that are refused belong to no domain, and have a chain of their own.
            listed: self.event != "refused",
            protected: false,
        };
        let (asked, reason, rule) = (self.asked.clone(), self.reason.clone(), self.rule.clone());
        Some(Record { subject, asked, decision: self.decision, reason, rule, ..Record::new(0, event) })
    }

    /// As it is written, with its end.
    fn render(mut self, format: Format) -> String {
        for text in [&mut self.about, &mut self.asked, &mut self.reason] {
            text.truncate(text.floor_char_boundary(TEXT_MAX));
        }
        match format {
            Format::Json => serde_json::to_string(&self).unwrap_or_default() + "\n",
            Format::Text => self.text(),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("{} {}", self.at, self.event);
        let number = |number: Option<u32>| number.map(|number| number.to_string()).unwrap_or_default();
        let (pid, uid) = (number(self.pid), number(self.uid));
        let decision = if self.decision == Decision::Noted { "" } else { self.decision.name() };
        let known = |text: &Option<String>| text.clone().unwrap_or_default();
        for (key, value) in [
            ("domain", known(&self.domain).as_str()),
            ("about", &self.about),
            ("pid", &pid),
            ("uid", &uid),
            ("exe", &known(&self.exe)),
            ("asked", &self.asked),
            ("decision", decision),
            ("reason", &self.reason),
            ("rule", &self.rule),
        ] {
            if value.is_empty() {
                continue;
            }
            let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./+@:".contains(letter);
            // Writing to a string cannot fail. What clients say is quoted, so no client makes lines of its own.
            let _ok = match value.chars().all(plain) {
                true => write!(text, " {key}={value}"),
                false => write!(text, " {key}={value:?}"),
            };
        }
        text + "\n"
    }
}

fn event(kind: Kind) -> &'static str {
    match kind {
        Kind::Claim => "claim",
        Kind::Window => "window",
        Kind::Order => "order",
        Kind::Overdue => "overdue",
        Kind::Animation => "animation",
        Kind::Motion => "motion",
        Kind::Input => "input",
        Kind::Response => "response",
    }
}

fn decision(allowed: Option<bool>) -> Decision {
    match allowed {
        None => Decision::Noted,
        Some(true) => Decision::Granted,
        Some(false) => Decision::Refused,
    }
}

/// Takes lines, and has them written.
#[derive(Clone, Debug)]
pub struct Journal {
    lines: SyncSender<Line>,
    lost: Arc<AtomicU64>,
}

/// The thread that writes; waits for the last line when it is dropped, which comes when all journals are gone.
#[derive(Debug)]
pub struct Writer(Option<JoinHandle<()>>);

impl Journal {
    /// Writes there, and into an audit if there is one.
    pub fn new(
        out: Box<dyn Write + Send>,
        format: Format,
        audit: Option<Ledger>,
    ) -> std::io::Result<(Self, Writer)> {
        let (lines, written) = sync_channel(LINES_MAX);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        let run = move || Writing { out, format, audit }.run(&written, &counted);
        let thread = std::thread::Builder::new().name("takt-journal".to_owned()).spawn(run)?;
        Ok((Self { lines, lost }, Writer(Some(thread))))
    }

    /// Has a line written; never waits.
    pub fn tell(&self, mut line: Line) {
        line.at = now();
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes the records of a cockpit.
    pub fn recorder(&self, config: Arc<Config>) -> Recorder {
        let journal = self.clone();
        Box::new(move |entry| journal.tell(Line::of(entry, &config)))
    }
}

/// What the thread that writes has.
struct Writing {
    out: Box<dyn Write + Send>,
    format: Format,
    audit: Option<Ledger>,
}

impl Writing {
    fn run(mut self, lines: &Receiver<Line>, lost: &AtomicU64) {
        loop {
            match lines.recv_timeout(TICK) {
                Ok(line) => self.put(line),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let lost = lost.swap(0, Ordering::Relaxed);
            if lost > 0 {
                let asked = format!("{lost} lines found no room");
                self.put(Line { at: now(), ..Line::new("lost", asked) });
            }
            if let Some(audit) = &mut self.audit {
                audit.tick();
            }
            self.tell_audit();
        }
        if let Some(audit) = &mut self.audit {
            audit.close();
        }
        self.tell_audit();
    }

    fn put(&mut self, line: Line) {
        if let (Some(audit), Some(record)) = (&mut self.audit, line.record()) {
            audit.tell(record);
        }
        self.print(line);
    }

    fn print(&mut self, line: Line) {
        let text = line.render(self.format);
        // A log that cannot be written is no reason to end.
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).unwrap_or_default();
    }

    /// Prints what the audit has to say.
    fn tell_audit(&mut self) {
        for told in self.audit.as_mut().map(Ledger::told).unwrap_or_default() {
            let line = match told {
                Told::Alarm(alarm) => {
                    Line { rule: alarm.rule.clone(), ..Line::new("alarm", alarm.about.clone()) }
                }
                Told::Failed(reason) => Line { reason, ..Line::new("audit-failed", "") },
                Told::Works => Line::new("audit-works", ""),
                Told::Head(chain, head) => Line::new("audit-head", format!("{chain} {head}")),
            };
            self.print(Line { at: now(), ..line });
        }
    }
}

fn now() -> String {
    utc(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            thread.join().unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_daemon::control::config::Settings;

    fn refused() -> Entry {
        let peer = Peer { pid: 7, uid: 1000, executable: None };
        let what = Connection::Cut("claims-rate", "two\nlines".to_owned());
        Entry::Client { domain: 0, peer, what }
    }

    fn config() -> Config {
        Config::parse("[[output]]\nname='center'\nsize='8x8'\n[[domain]]\nname='apps'\n").expect("fine")
    }

    #[test]
    fn no_client_makes_lines_of_its_own() {
        let line = Line::of(&refused(), &config());
        let text = line.clone().render(Format::Text);
        let expected =
            " cut domain=apps pid=7 uid=1000 decision=refused reason=\"two\\nlines\" rule=claims-rate\n";
        assert!(text.ends_with(expected), "{text}");
        let json: serde_json::Value = serde_json::from_str(&line.render(Format::Json)).expect("JSON");
        assert_eq!(
            (&json["event"], &json["domain"], &json["pid"]),
            (&"cut".into(), &"apps".into(), &7.into())
        );
        assert_eq!(json["decision"], "refused");
    }

    /// A writer that takes nothing until it may.
    struct Slow(Receiver<()>, SyncSender<String>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            // The test has ended if it says nothing any more.
            self.0.recv().unwrap_or_default();
            self.1.send(String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_takes_nothing_delays_no_thread_and_losses_are_told() {
        let (go_on, wait) = sync_channel(2 * LINES_MAX);
        let (wrote, written) = sync_channel(2 * LINES_MAX);
        let (journal, writer) =
            Journal::new(Box::new(Slow(wait, wrote)), Format::Json, None).expect("started");
        let mut record = journal.recorder(Arc::new(config()));
        // One more than fits may have been taken by the writer.
        for _ in 0..LINES_MAX + 10 {
            record(&refused());
        }
        drop((journal, record));
        drop(go_on);
        drop(writer);
        let lines: Vec<String> = written.try_iter().collect();
        let lost = lines.iter().find(|line| line.contains("\"lost\"")).expect("it says so");
        assert!(lost.contains("9 lines") || lost.contains("10 lines"), "{lost}");
        assert!(lines.len() > LINES_MAX, "{}", lines.len());
    }

    #[test]
    fn an_audit_has_what_happened_in_its_chain() {
        let folder = std::env::temp_dir().join(format!("takt-cockpit-audit-{}", std::process::id()));
        let settings = Settings::parse(&format!("[audit]\nfolder = {folder:?}\n")).expect("fine").audit;
        let out = || Box::new(std::io::sink());
        for _ in 0..2 {
            let ledger = Ledger::start(&settings).expect("started");
            let (journal, writer) = Journal::new(out(), Format::Text, Some(ledger)).expect("started");
            let mut record = journal.recorder(Arc::new(config()));
            record(&refused());
            journal.tell(Line::new("no-such-event", "is in no audit"));
            journal.tell(Line::new("stopping", "the end"));
            drop((journal, record));
            drop(writer);
        }
        let files: Vec<String> = std::fs::read_dir(&folder)
            .expect("made")
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("main-"))
            .map(|entry| std::fs::read_to_string(entry.path()).expect("text"))
            .collect();
        let text = files.concat();
        let count = |what: &str| text.matches(what).count();
        assert_eq!((count("\"event\":\"cut\""), count("\"event\":\"stopped\"")), (2, 2), "{text}");
        assert!(text.contains("\"rule\":\"claims-rate\"") && count("\"hash\":\"") >= 5, "{text}");
        std::fs::remove_dir_all(folder).expect("removed");
    }
}
