//! The more important app is granted first: real programs under a daemon, judged by the log of what it
//! did and by rules that share nothing with the core.
//!
//! Nothing here depends on how long anything takes. Whatever a machine does to programs, each
//! decision is about those who waited at that moment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;

use serde_json::Value;

use crate::support::daemon::{Background, Daemon, await_that};
use crate::support::{app, products, takt_command, text};

/// A group that waits.
#[derive(Clone, Copy)]
struct Waiting {
    app: u64,
    /// Which submission it was.
    number: u64,
}

/// What a log has told so far.
#[derive(Default)]
struct Judge {
    policy: String,
    /// Of those who are scheduled.
    priorities: BTreeMap<u64, u64>,
    /// By group.
    waiting: BTreeMap<u64, Waiting>,
    submissions: u64,
    /// Under `timeline` and `frame-deadline`, the latest period that an app was granted for while this group of the
    /// most important app waited.
    passed: BTreeMap<u64, u64>,
    /// Decisions between several apps, by policy.
    contested: BTreeMap<String, usize>,
    /// Those of them that granted the most important app.
    first: BTreeMap<String, usize>,
}

impl Judge {
    /// Hears one line of a log, and what is wrong with it.
    fn hear(&mut self, line: &str) -> Result<(), String> {
        let record: Value = serde_json::from_str(line).map_err(|error| format!("{error}: {line}"))?;
        let number = |key: &str| record[key].as_u64().ok_or_else(|| format!("no {key}: {line}"));
        match record["record"].as_str().unwrap_or_default() {
            "run" => self.policy = record["policy"].as_str().unwrap_or_default().to_owned(),
            "policy" => self.policy = record["name"].as_str().unwrap_or_default().to_owned(),
            "join" | "change" => {
                self.priorities.insert(number("app")?, number("priority")?);
            }
            "leave" => {
                let app = number("app")?;
                self.priorities.remove(&app);
                self.waiting.retain(|_, waiting| waiting.app != app);
            }
            "submit" => {
                let waiting = Waiting { app: number("app")?, number: self.submissions };
                self.waiting.insert(number("group")?, waiting);
                self.submissions += 1;
            }
            "refused" => {
                self.waiting.retain(|group, _| record["group"].as_u64() != Some(*group));
            }
            // Who waits is not known any more, only who comes from now on.
            "gap" => self.waiting.clear(),
            "dispatch" => self.dispatched(number("group")?, number("target")?)?,
            _ => {}
        }
        Ok(())
    }

    fn dispatched(&mut self, group: u64, target: u64) -> Result<(), String> {
        let Some(chosen) = self.waiting.remove(&group) else {
            return Ok(());
        };
        let top = self.priorities.iter().max_by_key(|(_, priority)| **priority).map(|(app, _)| *app);
        // While the top one waited, no app with a later deadline may have been granted.
        if let Some(passed) = self.passed.remove(&group).filter(|passed| target <= *passed) {
            return Err(format!("group {group} was passed over for period {passed}, its own is {target}"));
        }
        let others: Vec<(u64, Waiting)> =
            self.waiting.iter().map(|(group, waiting)| (*group, *waiting)).collect();
        let others: Vec<_> = others.into_iter().filter(|(_, waiting)| waiting.app != chosen.app).collect();
        if others.is_empty() {
            return Ok(());
        }
        *self.contested.entry(self.policy.clone()).or_default() += 1;
        *self.first.entry(self.policy.clone()).or_default() += usize::from(Some(chosen.app) == top);
        let priority = |app: u64| self.priorities.get(&app).copied();
        for (other, waiting) in others {
            let wrong = match self.policy.as_str() {
                "fifo" => waiting.number < chosen.number,
                "timegraph" | "edf-cbs" => priority(waiting.app) > priority(chosen.app),
                // Others may go where they fit, and who does not fit is passed over.
                "hpf" => Some(waiting.app) == top,
                // Later, when it is known which period it was for.
                "timeline" | "frame-deadline" if Some(waiting.app) == top => {
                    let passed = self.passed.entry(other).or_insert(target);
                    *passed = target.max(*passed);
                    false
                }
                _ => false,
            };
            if wrong {
                let apps = (chosen.app, waiting.app);
                return Err(format!("{}: group {group} went, {other} waited; apps {apps:?}", self.policy));
            }
        }
        Ok(())
    }
}

/// A log that is read while it is written.
struct Log {
    file: File,
    rest: String,
    lines: usize,
    judge: Judge,
}

impl Log {
    /// Hears what has come.
    fn read_on(&mut self) {
        self.file.read_to_string(&mut self.rest).expect("text");
        let whole = self.rest.rfind('\n').map_or(0, |end| end + 1);
        for line in self.rest.drain(..whole).as_str().lines() {
            self.lines += 1;
            // Most of what happens is that nothing does.
            if !line.contains("\"record\":\"turn\"") {
                self.judge.hear(line).unwrap_or_else(|wrong| panic!("line {}: {wrong}", self.lines));
            }
        }
    }

    /// Waits for more decisions between several apps.
    fn await_decisions(&mut self, why: &str) {
        self.await_more(why, 20, |judge| &judge.contested);
    }

    /// Waits for more of them that let the most important app go.
    fn await_the_first(&mut self, why: &str) {
        self.await_more(why, 5, |judge| &judge.first);
    }

    fn await_more(&mut self, why: &str, more: usize, of: fn(&Judge) -> &BTreeMap<String, usize>) {
        self.read_on();
        let policy = self.judge.policy.clone();
        let count = |judge: &Judge| of(judge).get(&policy).copied().unwrap_or(0);
        let wanted = count(&self.judge) + more;
        await_that(&format!("decisions under {policy}: {why}"), || {
            self.read_on();
            count(&self.judge) >= wanted
        });
    }

    fn await_policy(&mut self, name: &str) {
        await_that(&format!("{name} decides"), || {
            self.read_on();
            self.judge.policy == name
        });
    }
}

#[test]
fn the_more_important_app_is_granted_first_through_all_changes() {
    let path = products().join("priorities.jsonl");
    std::fs::remove_file(&path).unwrap_or_default();
    let record = path.display().to_string();
    let daemon = Daemon::with("priorities", "mpcg = 1", &["--record", &record]);
    let start = |name: &str, terms: &[&str], program: &str, arguments: &[&str]| {
        // Periods of an own clock are counted from another beginning, and would not compare.
        let options = [&["--name", name, "--pace", "display"], terms].concat();
        let arguments = [&["--platform", "off-screen", "--size", "160x96"], arguments].concat();
        Background::start(&mut daemon.run(&options, &app(program), &arguments))
    };
    let set = |arguments: &[&str]| {
        let output = daemon.ask(&[&["set"], arguments].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
    };
    let dial = start("dial", &["--priority", "80", "--fps", "60"], "takt-speedometer", &[]);
    let map = start("map", &["--priority", "40", "--fps", "30"], "takt-map", &[]);
    let flood = start("flood", &["--priority", "3"], "takt-flood", &["--iterations", "100"]);
    await_that("all are scheduled", || {
        let list = text(&daemon.ask(&["list"]).stdout);
        ["dial", "map", "flood"].iter().all(|name| list.contains(name))
    });
    let mut log = Log {
        file: File::open(&path).expect("it records"),
        rest: String::new(),
        lines: 0,
        judge: Judge::default(),
    };
    log.await_policy("timeline");
    log.await_decisions("three apps");
    log.await_the_first("three apps");
    set(&["flood", "--priority", "90"]);
    log.await_decisions("the flood is the most important");
    let late = start("late", &["--priority", "95", "--fps", "60"], "takt-menu", &[]);
    await_that("a fourth app", || {
        log.read_on();
        log.judge.priorities.len() == 4
    });
    log.await_decisions("one more");
    drop(late);
    await_that("it is gone", || {
        log.read_on();
        log.judge.priorities.len() == 3
    });
    log.await_decisions("one less");
    set(&["flood", "--priority", "3"]);
    for policy in ["fifo", "hpf", "timegraph", "edf-cbs", "frame-deadline", "timeline"] {
        set(&["--policy", policy]);
        log.await_policy(policy);
        log.await_decisions("after a swap");
        log.await_the_first("after a swap");
    }
    drop((dial, map, flood));
    daemon.end();
    log.read_on();
    // The core agrees: all of it happens again, bit by bit.
    let replay = takt_command("replay").arg(&path).output().expect("takt starts");
    assert!(replay.status.success(), "{}{}", text(&replay.stdout), text(&replay.stderr));
}

/// The verdict about this story, one letter for each thing that happens.
fn story(policy: &str, records: &[&str]) -> Result<(), String> {
    let mut judge = Judge { policy: policy.to_owned(), ..Judge::default() };
    judge.hear(r#"{"record": "join", "app": 0, "priority": 1}"#)?;
    judge.hear(r#"{"record": "join", "app": 1, "priority": 9}"#)?;
    records.iter().try_for_each(|record| judge.hear(record))
}

#[test]
fn a_judge_knows_right_from_wrong() {
    let low = r#"{"record": "submit", "app": 0, "group": 10}"#;
    let high = r#"{"record": "submit", "app": 1, "group": 20}"#;
    let low_goes = r#"{"record": "dispatch", "group": 10, "target": 5}"#;
    let high_goes = r#"{"record": "dispatch", "group": 20, "target": 5}"#;
    let high_goes_later = r#"{"record": "dispatch", "group": 20, "target": 6}"#;
    for policy in ["timeline", "frame-deadline", "hpf", "timegraph", "edf-cbs"] {
        story(policy, &[low, high, high_goes, low_goes]).expect("the more important first");
        story(policy, &[low, low_goes, high, high_goes]).expect("no other app waited");
        story(policy, &[low, high, low_goes, high_goes]).expect_err("the less important first");
    }
    story("fifo", &[low, high, low_goes, high_goes]).expect("in order");
    story("fifo", &[low, high, high_goes, low_goes]).expect_err("out of order");
    story("frame-deadline", &[low, high, low_goes, high_goes_later]).expect("an earlier deadline");
    let change = r#"{"record": "change", "app": 0, "priority": 10}"#;
    story("timegraph", &[low, high, change, low_goes]).expect("it has become more important");
    let leave = r#"{"record": "leave", "app": 1}"#;
    story("timegraph", &[low, high, leave, low_goes]).expect("the other has left");
}
