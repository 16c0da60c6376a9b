//! Every record as one line of JSON.
//!
//! The first line describes the run, each further line is one record. Names and units here are a
//! promise to other programs, so they are spelt out rather than derived from the core's types,
//! whose names may change.
//!
//! * `line`, `params`, `head`: what the lines look like.
//! * `to_line`, `from_line`: records as lines and back, without loss.
//! * [`read`]: what was written, as records again.

mod from_line;
mod head;
mod line;
mod params;
pub mod read;
mod to_line;

use std::io::{self, Write};

use serde::Serialize;
use takt_core::{AppId, Config, Time};

pub use self::from_line::Entry;
pub use self::read::{BadLine, Reader};

use self::head::Head;
use self::line::{Line, Stamped};
use super::sink::Sink;
use crate::record::{AppMeta, Meta, Observer, Record};

/// Version of the format, in the first line; grows when a reader would have to change.
pub const VERSION: u32 = 1;

/// How a core was started whose records are there from then on.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    /// Its parameters.
    pub config: &'a Config,
    /// The build of Takt that it belongs to: another one's core may decide otherwise.
    pub build: &'a str,
}

/// Appends the line that describes a run; with `start` it can be [replayed](crate::replay).
pub fn put_head(lines: &mut Vec<u8>, meta: &Meta, start: Option<Start<'_>>) {
    put(lines, &Head::new(VERSION, meta, start));
}

/// Appends the line of a record.
pub fn put_record(lines: &mut Vec<u8>, at: Time, record: &Record) {
    put(lines, &Stamped { at_ns: at.as_ns(), what: to_line::line_of(record) });
}

/// Appends the line that says whose slot it is.
pub fn put_app(lines: &mut Vec<u8>, at: Time, app: AppId, meta: &AppMeta) {
    let (name, priority, fps_mhz) = (meta.name.clone(), meta.priority.0, meta.fps_mhz);
    put(lines, &Stamped { at_ns: at.as_ns(), what: Line::App { app: app.0, name, priority, fps_mhz } });
}

fn put(lines: &mut Vec<u8>, line: &impl Serialize) {
    let before = lines.len();
    // Serialising these types into memory cannot fail; if it did, the line is dropped.
    match serde_json::to_writer(&mut *lines, line) {
        Ok(()) => lines.push(b'\n'),
        Err(_) => lines.truncate(before),
    }
}

/// Writes records as lines of JSON.
#[derive(Debug)]
pub struct Json<W> {
    out: Sink<W>,
    line: Vec<u8>,
}

impl<W: Write> Json<W> {
    /// Writes the line that describes the run to `out`.
    pub fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let mut json = Self { out: Sink::new(out), line: Vec::new() };
        put_head(&mut json.line, meta, None);
        json.put();
        json.out.check()?;
        Ok(json)
    }

    /// Flushes; returns the first error there was.
    pub fn finish(self) -> io::Result<()> {
        self.out.finish()
    }

    fn put(&mut self) {
        self.out.put(&self.line);
        self.line.clear();
    }
}

impl<W: Write> Observer for Json<W> {
    fn record(&mut self, at: Time, record: &Record) {
        put_record(&mut self.line, at, record);
        self.put();
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        put_app(&mut self.line, at, app, meta);
        self.put();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::GpuRecord;
    use crate::sample::{Pick, meta, run};
    use expect_test::expect;
    use takt_core::event::{LostBy, Refusal};
    use takt_core::{
        Action, AppId, AppParams, Broken, Estimate, Event, GroupId, GroupKind, Hold, Invariant, Refresh,
        Service, Span,
    };

    fn export(records: &[(Time, Record)]) -> String {
        let mut bytes = Vec::new();
        let mut json = Json::new(&mut bytes, &meta("test")).unwrap();
        for (at, record) in records {
            json.record(*at, record);
        }
        json.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn first_of_each_kind(text: &str) -> String {
        let mut kinds = std::collections::BTreeSet::new();
        let mut firsts = String::new();
        for line in text.lines() {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            if kinds.insert(value["record"].as_str().unwrap().to_owned()) {
                firsts.push_str(line);
                firsts.push('\n');
            }
        }
        firsts
    }

    /// The first line of each kind pins names and units.
    /// A record of each kind that no ordinary run has.
    fn rare_records(app: AppId, group: GroupId) -> [Record; 21] {
        let broken = Broken { what: Invariant::InFlight, app: Some(app), at: Time::ZERO };
        [
            Record::In(Event::Leave { app }),
            Record::In(Event::Refresh { display: takt_core::DisplayId(1), refresh: Refresh::HZ_60 }),
            Record::In(Event::Adjust(Config::default().adjustable())),
            Record::In(Event::Revise { app, group, estimate: Estimate::new(Span::from_us(5)) }),
            Record::In(Event::EndFrame { app }),
            Record::Out(Action::Release { app, at: Time::from_us(9) }),
            Record::In(Event::Focus { app: Some(app) }),
            Record::Out(Action::Hold { app, reason: Hold::NoBudget { until: Time::from_us(9) } }),
            Record::Out(Action::Preempt { app, group }),
            Record::Out(Action::Ranked { app, priority: takt_core::Priority(7) }),
            Record::Out(Action::Refused {
                app,
                group: Some(group),
                reason: Refusal::LookaheadTooLong { periods: 420 },
            }),
            Record::Out(Action::Left { app, dropped: 2 }),
            Record::Out(Action::Lost { app, group, by: LostBy::Order }),
            Record::Out(Action::Broken(broken)),
            Record::Gpu(GpuRecord::Queued { app, group }),
            Record::Gpu(GpuRecord::Preempted { app, group, started: Some(Time::ZERO), stays: false }),
            Record::Gpu(GpuRecord::Stalled { until: Time::from_us(9) }),
            Record::Gpu(GpuRecord::Clock { permille: 700 }),
            Record::Turn,
            Record::Policy("fifo"),
            Record::Gap { records: 3 },
        ]
    }

    #[test]
    fn names_are_stable() {
        let (app, group) = (AppId(2), GroupId(9));
        let mut records = run(Pick::Oldest, 3);
        records.extend(rare_records(app, group).map(|record| (Time::from_us(1), record)));
        let firsts = first_of_each_kind(&export(&records));
        expect![[r#"
            {"record":"run","version":1,"scenario":"three made-up apps","policy":"test","refresh_mhz":60000,"origin_ns":0,"apps":[{"app":0,"name":"navi, \"beta\" <b>&co","priority":20,"fps_mhz":30000},{"app":1,"name":"cluster","priority":30,"fps_mhz":60000},{"app":2,"name":"game","priority":10,"fps_mhz":60000}]}
            {"at_ns":0,"record":"vsync","period":0}
            {"at_ns":0,"record":"join","app":0,"priority":20,"stride":2,"etpf_ns":3000000,"phase":0}
            {"at_ns":100000,"record":"submit","app":0,"group":0,"kind":"draw","predicted_ns":1540000}
            {"at_ns":100000,"record":"dispatch","app":0,"group":0,"target":1,"start_ns":100000,"reserved_ns":1740000}
            {"at_ns":100000,"record":"hold","app":1,"reason":"behind","by":0}
            {"at_ns":100000,"record":"gpu-started","app":0,"group":0}
            {"at_ns":1500000,"record":"gpu-finished","app":0,"group":0,"started_ns":100000}
            {"at_ns":1500000,"record":"complete","group":0,"finished_ns":1500000,"cost_ns":1400000}
            {"at_ns":13603000,"record":"frame-done","app":2,"frame":0,"period":0,"release_ns":0,"deadline_ns":16666000,"finished_ns":13603000,"met":true}
            {"at_ns":16666000,"record":"missed","app":1,"frame":0,"period":0,"deadline_ns":16666000,"count":1}
            {"at_ns":1000,"record":"leave","app":2}
            {"at_ns":1000,"record":"refresh","display":1,"refresh_mhz":60000,"origin_ns":0}
            {"at_ns":1000,"record":"adjust","mpcg":5,"margins":{"fixed_ns":100000,"upper_permille":1050,"lower_permille":900,"dispatch_upper_ns":150000,"dispatch_lower_ns":50000,"completion_upper_ns":0,"group_min_ns":30000},"blocking_ns":null,"stretch_ns":0}
            {"at_ns":1000,"record":"revise","app":2,"group":9,"predicted_ns":5000}
            {"at_ns":1000,"record":"end-frame","app":2}
            {"at_ns":1000,"record":"release","app":2,"release_ns":9000}
            {"at_ns":1000,"record":"focus","app":2}
            {"at_ns":1000,"record":"preempt","app":2,"group":9}
            {"at_ns":1000,"record":"ranked","app":2,"priority":7}
            {"at_ns":1000,"record":"refused","app":2,"group":9,"reason":"lookahead-too-long","detail":"deadlines would repeat only every 420 periods","number":420}
            {"at_ns":1000,"record":"left","app":2,"dropped":2}
            {"at_ns":1000,"record":"lost","app":2,"group":9,"by":"order"}
            {"at_ns":1000,"record":"broken","invariant":"in-flight","app":2,"noticed_ns":0,"detail":"groups in flight are counted for their app"}
            {"at_ns":1000,"record":"gpu-queued","app":2,"group":9}
            {"at_ns":1000,"record":"gpu-preempted","app":2,"group":9,"started_ns":0,"stays":false}
            {"at_ns":1000,"record":"gpu-stalled","until_ns":9000}
            {"at_ns":1000,"record":"gpu-clock","permille":700}
            {"at_ns":1000,"record":"turn"}
            {"at_ns":1000,"record":"policy","name":"fifo"}
            {"at_ns":1000,"record":"gap","records":3}
        "#]].assert_eq(&firsts);
    }

    #[test]
    fn unbounded_estimates_are_null() {
        let submit = Record::In(Event::Submit {
            app: AppId(0),
            group: GroupId(1),
            kind: GroupKind::Sync,
            estimate: Estimate::UNBOUNDED,
        });
        let text = export(&[(Time::ZERO, submit)]);
        assert!(text.ends_with("\"kind\":\"sync\",\"predicted_ns\":null}\n"), "{text}");
    }

    /// A configuration in which everything that a log tells is unlike the default.
    fn unusual_config() -> Config {
        let mut config = Config { mpcg: 3, singly: true, ..Config::default() };
        let [slice, quantum, own_slice, switch] = [74, 75, 76, 77].map(Span::from_us);
        config.divisible = Some(takt_core::Divisible { slice, quantum, own_slice, switch });
        config.tuning.blocking = Span::from_us(70);
        config.tuning.late_after = Span::from_us(71);
        config.tuning.unknown_runs_max = Span::from_us(72);
        config.tuning.join_delay_max = Span::from_us(73);
        config.tuning.late_permille = 78;
        config.tuning.given_up_max = 79;
        config.tuning.clear_parts = 74;
        config.tuning.unstretched_parts = 75;
        config
    }

    /// Everything that can be written is read again as it was.
    /// Parameters that are all unlike the default.
    fn unusual_params() -> AppParams {
        AppParams {
            priority: takt_core::Priority(4),
            stride: takt_core::Stride::ONE,
            etpf: Span::from_us(7),
            clock: takt_core::Clock::default(),
            service: Service {
                turns: takt_core::service::Turns::Following,
                reservation: takt_core::service::Reservation::Own(
                    takt_core::config::Tuning::default().background,
                ),
                feeds: Some(AppId(1)),
                level: takt_core::service::Level::High,
                timeslice: Span::from_us(3),
                divisible: true,
                gaps: takt_core::service::Gaps { count: 2, length: Span::from_us(5) },
                ..Service::default()
            },
        }
    }

    #[test]
    fn nothing_is_lost_on_the_way() {
        let (app, group, at) = (AppId(2), GroupId(9), Time::from_us(9));
        let mut records = run(Pick::Oldest, 3);
        let end = records.last().map_or(Time::ZERO, |(at, _)| *at);
        let params = unusual_params();
        let taken = Refusal::PriorityTaken { by: app, priority: params.priority };
        let refused = |reason| Record::Out(Action::Refused { app, group: None, reason });
        let held = |reason| Record::Out(Action::Hold { app, reason });
        let mut rare = vec![
            Record::In(Event::Change { app, params }),
            Record::In(Event::Refresh {
                display: takt_core::DisplayId(1),
                refresh: Refresh::HZ_60.with_origin(at),
            }),
            Record::In(Event::EndFrame { app }),
            Record::In(Event::Focus { app: None }),
            Record::In(Event::Revise { app, group, estimate: Estimate::UNBOUNDED }),
            Record::In(Event::Adjust(Config { mpcg: 7, ..Config::default() }.adjustable())),
            Record::Out(Action::Lost { app, group, by: LostBy::Timeout }),
            Record::Gpu(GpuRecord::Preempted { app, group, started: None, stays: true }),
            Record::Gap { records: 3 },
        ];
        rare.extend([taken, Refusal::LookaheadTooLong { periods: 4 }].map(refused));
        rare.extend([Refusal::Exited, Refusal::TooManyFrames].map(refused));
        rare.extend([Hold::Tick { at }, Hold::NoBudget { until: at }, Hold::Turn { app }].map(held));
        rare.extend([Hold::Batch, Hold::Unbounded, Hold::Exhausted { app }, Hold::Clears { app }].map(held));
        rare.push(held(Hold::LookAhead));
        let broken = |what| Record::Out(Action::Broken(Broken { what, app: None, at }));
        rare.extend(Invariant::ALL.map(broken));
        rare.extend(takt_policies::NAMES.iter().map(|name| Record::Policy(name)));
        records.extend(rare.into_iter().map(|record| (end, record)));

        let config = unusual_config();
        let mut lines = Vec::new();
        put_head(&mut lines, &meta("fifo"), Some(Start { config: &config, build: "0.1.0 (abc)" }));
        put_app(&mut lines, Time::ZERO, app, &meta("fifo").apps[1]);
        for (at, record) in &records {
            put_record(&mut lines, *at, record);
        }
        let mut reader = Reader::new(&lines[..]).unwrap();
        assert_eq!((reader.meta(), reader.config()), (&meta("fifo"), Some(&config)));
        assert_eq!(reader.build(), Some("0.1.0 (abc)"));
        // As logs were before they said so.
        let older = String::from_utf8(lines.clone()).unwrap().replacen(",\"build\":\"0.1.0 (abc)\"", "", 1);
        assert_eq!(Reader::new(older.as_bytes()).unwrap().build(), None);
        let first = reader.next_entry().unwrap();
        assert_eq!(first, Some((Time::ZERO, Entry::App(app, meta("fifo").apps[1].clone()))));
        for (at, record) in records {
            assert_eq!(reader.next_entry(), Ok(Some((at, Entry::Record(record)))), "line {}", reader.line());
        }
        assert_eq!(reader.next_entry(), Ok(None));
        assert!(!reader.is_cut_off());
    }

    /// They ran with these values before these had names.
    #[test]
    fn old_logs_have_the_values_of_old() {
        let mut lines = Vec::new();
        put_head(&mut lines, &meta("fifo"), Some(Start { config: &Config::default(), build: "old" }));
        let mut head: serde_json::Value = serde_json::from_slice(&lines).unwrap();
        let tuning = head["config"]["tuning"].as_object_mut().unwrap();
        let durations = ["late_after_ns", "unknown_runs_max_ns", "join_delay_max_ns"];
        let numbers = ["late_permille", "given_up_max", "clear_parts", "unstretched_parts"];
        for name in durations.into_iter().chain(numbers) {
            assert!(tuning.remove(name).is_some(), "{name}");
        }
        let reader = Reader::new(head.to_string().as_bytes()).unwrap().config().unwrap().tuning;
        assert_eq!(reader.late_after, Span::from_ms(2));
        assert_eq!(reader.unknown_runs_max, Span::from_ms(10_000));
        assert_eq!(reader.join_delay_max, Span::from_ms(1_000));
        assert_eq!((reader.late_permille, reader.given_up_max), (1000, 16));
        assert_eq!((reader.clear_parts, reader.unstretched_parts), (32, 4));
    }

    #[test]
    fn bad_lines_are_named() {
        let problem = |text: &str| match Reader::new(text.as_bytes()) {
            Ok(mut reader) => reader.show(&mut ()).expect_err("a bad line").to_string(),
            Err(error) => error.to_string(),
        };
        let head = export(&[]);
        assert!(problem("rubbish").starts_with("line 1: this is no log of takt"), "{}", problem("rubbish"));
        assert!(problem("").starts_with("line 1: this is no log of takt"));
        let newer = head.replace("\"version\":1", "\"version\":7");
        assert_eq!(problem(&newer), "line 1: version 7; this takt reads version 1");
        let unknown = format!("{head}{{\"at_ns\":1,\"record\":\"dance\"}}\n");
        assert!(problem(&unknown).starts_with("line 2: unknown variant `dance`"), "{}", problem(&unknown));
        let join = "{\"at_ns\":1,\"record\":\"join\",\"app\":0,\"priority\":1,";
        let stride = format!("{join}\"stride\":0,\"etpf_ns\":0,\"phase\":0}}");
        assert_eq!(problem(&format!("{head}{stride}\n")), "line 2: stride = 0: use 1 to 240");
        let backwards = "{\"at_ns\":2,\"record\":\"turn\"}\n{\"at_ns\":1,\"record\":\"turn\"}\n";
        assert!(problem(&format!("{head}{backwards}")).starts_with("line 3: at_ns is before"));
        // Observers have a place for each app, and count deadlines.
        let beyond = r#"{"at_ns":1,"record":"leave","app":4294967295}"#;
        assert_eq!(problem(&format!("{head}{beyond}\n")), "line 2: app 4294967295: there are 4096 at most");
        for count in ["0", "18446744073709551615"] {
            let missed = format!(
                r#"{{"at_ns":1,"record":"missed","app":0,"frame":0,"period":1,"deadline_ns":1,"count":{count}}}"#
            );
            let said = problem(&format!("{head}{missed}\n"));
            assert_eq!(said, format!("line 2: count = {count}: a miss is of 1 to 4294967295 deadlines"));
        }
        let text = format!("{head}{{\"at_ns\":2,\"reco");
        let mut cut = Reader::new(text.as_bytes()).unwrap();
        assert_eq!(cut.next_entry(), Ok(None));
        assert!(cut.is_cut_off());
    }
}
