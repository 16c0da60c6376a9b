//! `takt audit scan`.

use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use takt_audit::time::utc;
use takt_audit::{Alarm, Engine, Event, Record};
use takt_daemon::control::config::Settings;

use super::files::{load, records};
use crate::args::ScanArgs;
use crate::table::Table;
use crate::{Answer, load as input, output, serve};

/// An alarm, as `--json` prints it.
#[derive(Debug, Serialize)]
struct FoundAlarm {
    #[serde(flatten)]
    alarm: Alarm,
    /// Whether the daemon raised it as well.
    raised: bool,
}

pub(super) fn run(args: &ScanArgs) -> anyhow::Result<Answer> {
    let settings = match &args.config {
        None => Settings::default(),
        Some(file) => {
            let text = input::read(file, serve::CONFIG_BYTES_MAX)
                .with_context(|| format!("cannot read {}", file.display()))?;
            match Settings::parse(&text) {
                Ok(settings) => settings,
                Err(mistake) => bail!("{}: {mistake}", file.display()),
            }
        }
    };
    let records = records(&load(&args.files.paths)?);
    let found = scan(&mut Engine::new(settings.audit.rules), &records);
    output::json(args.json.as_deref(), &found)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&words(&found, records.len()))?;
    }
    Ok(if found.is_empty() { Answer::Yes } else { Answer::No })
}

fn scan(engine: &mut Engine, records: &[Record]) -> Vec<FoundAlarm> {
    let mut found = Vec::new();
    for record in records.iter().filter(|record| record.event != Event::Alarm) {
        found.extend(engine.observe(record).into_iter().map(|alarm| {
            // Both have the time of the record that completed it.
            let is_it = |other: &&Record| other.event == Event::Alarm && other.rule == alarm.rule;
            let raised = records.iter().filter(is_it).any(|other| other.at_us == alarm.at_us);
            FoundAlarm { alarm, raised }
        }));
    }
    found
}

fn words(found: &[FoundAlarm], records: usize) -> String {
    if found.is_empty() {
        return format!("no alarms in {records} records\n");
    }
    let mut table = Table::new("<time, <severity, <rule, <about, <counted, <raised by the daemon");
    for FoundAlarm { alarm, raised } in found {
        table.row(vec![
            utc(Duration::from_micros(alarm.at_us)),
            alarm.severity.name().to_owned(),
            alarm.rule.clone(),
            alarm.about.clone(),
            alarm.counted.clone(),
            if *raised { "yes" } else { "no" }.to_owned(),
        ]);
    }
    format!("{}{} alarms in {records} records\n", table.render(), found.len())
}
