//! `takt list`, `takt why`: a running daemon is asked.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use takt_daemon::control::ask::Ask;
use takt_daemon::tool::Tool;
pub(crate) use takt_daemon::tool::{app_of as of, figures_of as figures};

use crate::Answer;
use crate::args::{ListArgs, WhyArgs};
use crate::output;
use crate::table::{Table, percent};

/// How long the daemon may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Figures are of this many seconds.
const WINDOW_S: u32 = 2;
/// From so many seconds on, waiting is worth a word.
const HELD_LONG_S: f64 = 1.0;
/// Causes are remembered for this many seconds.
const MEMORY_S: u64 = takt_daemon::observe::recent::KEPT.as_ns() / 1_000_000_000;

pub(crate) fn list(args: &ListArgs) -> anyhow::Result<Answer> {
    let path = args.socket.path();
    let apps = ask(&path, &Ask::Apps)?;
    let summary = ask(&path, &Ask::Summary { window_s: WINDOW_S })?;
    let daemon = ask(&path, &Ask::Daemon)?;
    let all = serde_json::json!({ "daemon": daemon, "apps": apps, "summary": summary });
    output::json(args.json.as_deref(), &all)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&(alarm(&daemon) + &describe(&apps, &summary) + &outsiders(&daemon)))?;
    }
    Ok(Answer::Yes)
}

pub(crate) fn why(args: &WhyArgs) -> anyhow::Result<Answer> {
    let (path, app) = (args.socket.path(), numbered(&args.app));
    let known = ask(&path, &Ask::Why { app: app.clone(), frame: args.frame })?;
    let all = known["misses"].as_array().context(OTHER_BUILD)?;
    let misses = if args.all || args.frame.is_some() { all } else { after_start(all, &known["first_met"]) };
    output::json(args.json.as_deref(), &all)?;
    if !output::is_stdout(args.json.as_deref()) {
        let mut said: String = misses.iter().map(|miss| format!("{}\n", text(miss, "sentence"))).collect();
        if misses.len() < all.len() {
            said.push_str(&left_out(&app, all.len() - misses.len()));
        }
        match known["left_s"].as_f64() {
            Some(left_s) => said.push_str(&left(&app, left_s, misses.len())),
            None => {
                let apps = ask(&path, &Ask::Apps)?;
                if misses.is_empty() {
                    said = none_missed(&apps, &app);
                }
                said.push_str(&held(&apps, &app));
                said.push_str(&not_guaranteed(&apps, &app));
            }
        }
        output::print(&said)?;
    }
    Ok(if misses.is_empty() { Answer::No } else { Answer::Yes })
}

/// The misses from the first frame on that was in time; all of them if there are no others.
fn after_start<'a>(misses: &'a [Value], first_met: &Value) -> &'a [Value] {
    let first = first_met.as_u64().unwrap_or_default();
    let start = misses.iter().take_while(|miss| miss["frame"].as_u64() < Some(first)).count();
    if start == misses.len() { misses } else { &misses[start..] }
}

/// A sentence about misses that are not listed.
fn left_out(app: &str, misses: usize) -> String {
    let were = if misses == 1 { "deadline was" } else { "deadlines were" };
    format!(
        "{misses} more {were} missed before the first frame of {app} that was in time, while it started; \
         --all lists these, too.\n"
    )
}

/// A sentence about an app that has left, of which so many missed deadlines are still known.
fn left(app: &str, left_s: f64, misses: usize) -> String {
    let known = match misses {
        0 => "no such deadline that it missed is remembered",
        1 => "this is from before",
        _ => "these are from before",
    };
    format!(
        "{app} left {left_s:.0} s ago; {known}. The daemon remembers {MEMORY_S} s; a log of takt serve --record \
         has all of it, and takt replay LOG --figures --json - the causes.\n"
    )
}

/// A sentence about an app of which no missed deadline is known.
fn none_missed(apps: &Value, app: &str) -> String {
    let found = of(apps, app);
    if found.is_some_and(|found| found["judged"] == false) {
        return format!(
            "{app} has no frame rate and no server, so no deadlines to miss; takt set {app} --fps gives it one.\n"
        );
    }
    format!("{app} missed no such deadline in the last {MEMORY_S} s.\n")
}

/// A sentence about an app that waits for long, and what can be done about it.
fn held(apps: &Value, app: &str) -> String {
    let found = of(apps, app);
    let held = found.map_or(&Value::Null, |found| &found["held"]);
    match held["for_s"].as_f64() {
        Some(for_s) if for_s >= HELD_LONG_S => {
            let promise =
                held["promise"].as_str().map_or_else(String::new, |said| format!(", promised {said}"));
            format!(
                "{app} has been held back for {for_s:.0} s ({}{promise}); a higher priority or reserved time would \
                 help it.\n",
                text(held, "why")
            )
        }
        _ => String::new(),
    }
}

/// A sentence about an app that has a contract and no guarantee.
fn not_guaranteed(apps: &Value, app: &str) -> String {
    let found =
        of(apps, app).filter(|found| found["guaranteed"] == false && found["reason"] != "no-contract");
    found.map_or_else(String::new, |found| format!("{app} is {}.\n", text(found, "admission")))
}

/// Tells the daemon to end.
pub(crate) fn stop(path: &Path) -> anyhow::Result<Answer> {
    ask(path, &Ask::Stop)?;
    Ok(Answer::Yes)
}

/// Asks the daemon and returns its answer, unless it refuses.
pub(crate) fn ask(path: &Path, ask: &Ask) -> anyhow::Result<Value> {
    Ok(Tool::connect(path, PATIENCE)?.ask(ask)?)
}

/// What to say of an answer that cannot be understood.
pub(crate) const OTHER_BUILD: &str =
    "the daemon answers something else; takt --version says whether it is of another build";

/// A warning if the daemon does not schedule any more.
fn alarm(daemon: &Value) -> String {
    let silent = daemon["silent"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let silent: String = silent.map(|app| format!("NOT DRAWING: {app}\n")).collect();
    let degraded = daemon["degraded"].as_str().map_or_else(String::new, |app| {
        format!("DEGRADED: apps that matter less stand still until {app} draws again\n")
    });
    silent + &degraded + &broken(daemon)
}

fn broken(daemon: &Value) -> String {
    daemon["broken"].as_str().map_or_else(String::new, |broken| {
        format!(
            "NOT SCHEDULED: the daemon contradicted itself and lets all apps run free ({broken}). Restart takt \
             serve; if it was told to --record, takt replay shows where.\n"
        )
    })
}

fn describe(apps: &Value, summary: &Value) -> String {
    let mut table =
        Table::new("<app, slot, pid, <domain, priority, fps, of, met, GPU, <contract, <admission");
    for app in apps.as_array().into_iter().flatten() {
        let figures = figures(summary, app);
        let share = |key: &str| figures[key].as_f64().map_or_else(String::new, percent);
        let if_so = |key: &str, text: String| if app[key] == true { text } else { "-".to_owned() };
        table.row(vec![
            text(app, "name").to_owned(),
            app["app"].to_string(),
            app["pid"].to_string(),
            text(app, "domain").to_owned(),
            app["priority"].to_string(),
            figures["fps"].as_f64().map_or_else(String::new, |fps| format!("{fps:.1}")),
            if_so("paced", app["fps"].to_string()),
            if_so("judged", share("met")),
            share("gpu_share"),
            text(app, "contract").to_owned(),
            text(app, "admission").to_owned(),
        ]);
    }
    let stuck: String = apps.as_array().into_iter().flatten().map(uncut).collect();
    let policy = text(summary, "policy");
    format!("{}{stuck}Policy {policy}; figures of the last {WINDOW_S} s.\n", table.render())
}

/// A line about work of an app that cannot be cut and fits nowhere.
fn uncut(app: &Value) -> String {
    let Some(ms) = app["held"]["uncut_ms"].as_f64() else {
        return String::new();
    };
    let (name, why) = (text(app, "name"), text(&app["held"], "why"));
    let command = app["held"]["uncut_command"].as_str().unwrap_or("its next command");
    format!(
        "{name} waits: {command}, of {ms:.1} ms, cannot be cut and fits nowhere ({why}); uncut = \"run\" in \
         its [[app]] section lets it run.\n"
    )
}

/// A line for each process that uses the GPU without being scheduled.
pub(crate) fn outsiders(daemon: &Value) -> String {
    let line = |one: &Value| {
        let (name, pid, device) = (text(one, "name"), &one["pid"], text(one, "device"));
        format!("Outside of Takt: {name} (process {pid}) has {device} open.\n")
    };
    daemon["outsiders"].as_array().into_iter().flatten().map(line).collect()
}

/// GPU time of the frames of an app lately, in the median, if that is more than it reserved. Single
/// frames say little: where a GPU serves processes in turn, the measured time includes others' turns.
pub(crate) fn over_reserved_ms(app: &Value, figures: &Value) -> Option<f64> {
    let reserved = app["etpf_ms"].as_f64().filter(|reserved| *reserved > 0.0)?;
    let usual = figures["frame_gpu_us"]["p50"].as_f64()? / 1000.0;
    (usual > reserved * ROUNDING).then_some(usual)
}

/// Quantiles have three digits.
const ROUNDING: f64 = 1.002;

/// The app as the daemon reads it: users by number.
pub(crate) fn numbered(app: &str) -> String {
    let numbered = |(name, user): (&str, &str)| takt_os::users::user(user).map(|uid| format!("{name}@{uid}"));
    app.rsplit_once('@').and_then(numbered).unwrap_or_else(|| app.to_owned())
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_app_that_the_daemon_means_is_shown() {
        // By falling priority: the second one is listed for a less important domain.
        let apps = json!([
            { "app": 2, "name": "dial", "pid": 20, "uid": 5, "listed": false },
            { "app": 0, "name": "dial", "pid": 21, "uid": 6, "listed": true },
            { "app": 1, "name": "game", "pid": 22, "uid": 5, "listed": false },
            { "app": 3, "name": "game", "pid": 23, "uid": 7, "listed": false },
        ]);
        let slot = |app: &str| of(&apps, app).and_then(|found| found["app"].as_u64());
        assert_eq!(
            [slot("dial"), slot("dial@5"), slot("pid:20"), slot("2")],
            [Some(0), Some(2), Some(2), Some(2)]
        );
        assert_eq!([slot("game"), slot("game@7"), slot("pid:7"), slot("x")], [Some(1), Some(3), None, None]);
        assert_eq!(numbered("dial@root"), "dial@0");
        assert_eq!(
            [numbered("dial"), numbered("dial@7"), numbered("dial@no-one-here")],
            ["dial", "dial@7", "dial@no-one-here"]
        );
    }

    #[test]
    fn what_was_late_while_an_app_started_is_left_out_unless_nothing_else_was() {
        let misses: Vec<Value> = [0, 0, 1, 4, 7].iter().map(|frame| json!({ "frame": frame })).collect();
        let frames = |misses: &[Value], first_met: Value| -> Vec<u64> {
            after_start(misses, &first_met).iter().filter_map(|miss| miss["frame"].as_u64()).collect()
        };
        assert_eq!(frames(&misses, json!(2)), [4, 7]);
        assert_eq!(frames(&misses, json!(0)), [0, 0, 1, 4, 7]);
        assert_eq!(frames(&misses, Value::Null), [0, 0, 1, 4, 7], "it was never in time");
        assert_eq!(frames(&misses[..3], json!(2)), [0, 0, 1], "nothing else was late");
    }

    #[test]
    fn a_broken_daemon_says_first_that_it_does_not_schedule() {
        assert_eq!(alarm(&json!({ "broken": null })), "");
        let said = alarm(&json!({ "broken": "broken invariant 'head'" }));
        assert!(said.starts_with("NOT SCHEDULED: ") && said.contains("'head'"), "{said}");
    }

    #[test]
    fn an_app_held_for_long_is_told_for_which_promise() {
        let apps = |promise: Value| {
            let held = json!({ "why": "protects dial", "for_s": 12.3, "promise": promise });
            json!([{ "name": "flood", "app": 3, "held": held }])
        };
        let said = held(&apps(json!("60 fps, 3.0 ms")), "flood");
        assert!(said.contains("for 12 s (protects dial, promised 60 fps, 3.0 ms); "), "{said}");
        assert!(held(&apps(Value::Null), "3").contains("for 12 s (protects dial); "));
    }

    #[test]
    fn servers_have_deadlines_without_a_rate() {
        let app = |judged: bool| {
            json!({ "name": "detector", "priority": 9, "core_priority": 2_000_009, "fps": 60.0,
                "domain": "own", "paced": false, "judged": judged,
                "contract": "server 3 ms in 40 ms" })
        };
        let figures = json!({ "name": "detector", "priority": 2_000_009, "fps": 25.0, "met": 0.75 });
        let said = |judged| describe(&json!([app(judged)]), &json!({ "apps": [figures.clone()] }));
        // Frames per second, the rate that was asked for, and the share of deadlines met.
        let columns = |judged| -> Vec<String> {
            let text = said(judged);
            let row = text.lines().find(|line| line.contains("detector")).expect("a row");
            row.split_whitespace().skip(5).take(3).map(str::to_owned).collect()
        };
        assert_eq!(columns(true), ["25.0", "-", "75.00"]);
        assert_eq!(columns(false), ["25.0", "-", "-"]);
        assert!(none_missed(&json!([app(true)]), "detector").contains("missed no such deadline"));
        assert!(none_missed(&json!([app(false)]), "detector").contains("no server"));
    }

    #[test]
    fn apps_show_what_the_daemon_states_of_them() {
        let stated = "protected, not guaranteed: it missed 3 deadlines in the last 60 s";
        let app = json!({ "name": "dial", "app": 0, "priority": 80, "guaranteed": false, "reason": "missed",
            "admission": stated, "contract": "60 fps, 3.0 ms" });
        let said = describe(&json!([app.clone()]), &json!({ "policy": "fifo", "apps": [] }));
        assert!(said.contains(&format!("60 fps, 3.0 ms  {stated}\n")), "{said}");
        assert_eq!(not_guaranteed(&json!([app]), "dial"), format!("dial is {stated}.\n"));
        let best_effort = json!([{ "name": "game", "guaranteed": false, "reason": "no-contract" }]);
        assert_eq!(not_guaranteed(&best_effort, "game"), "", "it was promised nothing");
    }

    #[test]
    fn processes_outside_are_named() {
        assert_eq!(outsiders(&json!({ "outsiders": [] })), "");
        let one = json!({ "name": "blender", "pid": 7, "device": "/dev/nvidia0" });
        let said = outsiders(&json!({ "outsiders": [one] }));
        assert_eq!(said, "Outside of Takt: blender (process 7) has /dev/nvidia0 open.\n");
    }
}
