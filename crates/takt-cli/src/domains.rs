//! `takt domains`: who may ask the daemon for what.

use std::path::Path;

use serde_json::Value;
use takt_daemon::control::ask::Ask;

use crate::Answer;
use crate::args::DomainsArgs;
use crate::live;
use crate::output;
use crate::table::Table;

pub(crate) fn run(args: &DomainsArgs) -> anyhow::Result<Answer> {
    let answer = live::ask(&args.socket.path(), &Ask::Domains)?;
    output::json(args.json.as_deref(), &answer)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&describe(&answer))?;
    }
    Ok(Answer::Yes)
}

/// The domain of this process at the daemon at `path`, in words.
pub(crate) fn yours(path: &Path) -> anyhow::Result<String> {
    let answer = live::ask(path, &Ask::Domains)?;
    let (name, all) = (&answer["yours"], answer["domains"].as_array());
    let yours = all.into_iter().flatten().find(|domain| domain["name"] == *name);
    let level = yours.map_or("", |domain| text(domain, "level"));
    let may = yours.map_or_else(String::new, |domain| rights(domain).join(", "));
    let may = if may.is_empty() { "no rights over others".to_owned() } else { format!("may {may}") };
    Ok(format!("user {} is of domain {} ({level}), {may}", answer["uid"], name.as_str().unwrap_or_default()))
}

fn describe(answer: &Value) -> String {
    let mut table = Table::new("<domain, <level, priority, etpf, share, least, apps, <may, <listed, <who");
    for domain in answer["domains"].as_array().into_iter().flatten() {
        let listed: Vec<&str> =
            domain["listed"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        table.row(vec![
            text(domain, "name").to_owned(),
            text(domain, "level").to_owned(),
            format!("..{}", domain["priority_max"]),
            used(domain, "etpf_ms", " ms"),
            used(domain, "share", ""),
            least(domain),
            used(domain, "apps", ""),
            rights(domain).join(" "),
            listed.join(" "),
            text(domain, "who").to_owned(),
        ]);
    }
    let yours = answer["yours"].as_str().unwrap_or_default();
    let you = format!("You are user {}, of domain {yours}.\n", answer["uid"]);
    table.render() + &you + &policy(&answer["policy"])
}

/// Where the domains come from, and what they wait for.
fn policy(policy: &Value) -> String {
    let mut said = String::new();
    if let (Some(file), Some(sha256)) = (policy["file"].as_str(), policy["sha256"].as_str()) {
        let sealed = if policy["sealed"] == true { "sealed" } else { "not sealed" };
        said = format!("Configuration {file}, {sealed}, sha256 {sha256}.\n");
    }
    if let Some(state) = policy["state"].as_str() {
        said.push_str(&format!("The vehicle is in state {state}.\n"));
    }
    if let Some(sha256) = policy["waiting_sha256"].as_str() {
        said.push_str(&format!("Another configuration waits for its state: sha256 {sha256}.\n"));
    }
    said
}

/// What a domain uses, of how much if there is a limit.
fn used(domain: &Value, key: &str, unit: &str) -> String {
    let number = |value: &Value| value.as_f64().map(|number| (number * 1000.0).round() / 1000.0);
    let used = number(&domain[key]).unwrap_or_default();
    match number(&domain[format!("{key}_max")]) {
        Some(most) => format!("{used} of {most}{unit}"),
        None => format!("{used}{unit}"),
    }
}

/// Its minimum share and what its apps without a contract had, with a mark if they waited and had less.
fn least(domain: &Value) -> String {
    let Some(least) = domain["share_min"].as_f64() else {
        return "-".to_owned();
    };
    let (had, missed) = (domain["share_had"].as_f64().unwrap_or_default(), &domain["share_missed"]);
    let short = if domain["share_short"] == true { ", SHORT" } else { "" };
    match missed.as_u64().unwrap_or_default() {
        0 => format!("{had} of {least}{short}"),
        times => format!("{had} of {least}{short}, {times} missed"),
    }
}

/// The names of its rights over others.
fn rights(domain: &Value) -> Vec<&'static str> {
    ["uncut", "see", "change", "set_state", "set_vsync"]
        .into_iter()
        .filter(|right| domain[*right] == true)
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn limits_and_use_are_shown_side_by_side() {
        let ivi = json!({ "name": "ivi", "level": "standard", "priority_max": 50, "etpf_ms_max": 6.0,
            "share_max": null, "apps_max": 4, "uncut": false, "see": true, "change": false, "apps": 2,
            "etpf_ms": 2.5, "share": 0.15, "share_min": 0.3, "share_had": 0.21, "share_missed": 2,
            "share_short": true, "listed": ["map"], "who": "user 1001" });
        let said = describe(&json!({ "yours": "ivi", "uid": 1001, "domains": [ivi] }));
        let row = said.lines().find(|line| line.contains("user 1001")).expect("a row");
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected =
            "ivi standard ..50 2.5 of 6 ms 0.15 0.21 of 0.3, SHORT, 2 missed 2 of 4 see map user 1001";
        assert_eq!(words.join(" "), expected, "{said}");
        assert!(said.ends_with("You are user 1001, of domain ivi.\n"), "{said}");
    }
}
