//! `takt audit show`.

use std::time::Duration;

use takt_audit::time::utc;
use takt_audit::{Record, Subject};

use super::files::{load, records};
use crate::args::ShowArgs;
use crate::table::Table;
use crate::{Answer, output};

pub(super) fn run(args: &ShowArgs) -> anyhow::Result<Answer> {
    let mut found: Vec<Record> = records(&load(&args.files.paths)?);
    found.retain(|record| is_wanted(record, args));
    if let Some(last) = args.last {
        found.drain(..found.len().saturating_sub(last));
    }
    output::json(args.json.as_deref(), &found)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&table(&found))?;
    }
    Ok(Answer::Yes)
}

fn is_wanted(record: &Record, args: &ShowArgs) -> bool {
    let Subject { domain, user, app, .. } = &record.subject;
    let time = when(record);
    let is = |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
    (args.event.is_empty() || args.event.contains(&record.event))
        && (args.user.is_none() || args.user == *user)
        && is(&args.domain, domain)
        && is(&args.app, app)
        && args.rule.as_ref().is_none_or(|rule| *rule == record.rule)
        // Dates of this form are in order as texts are.
        && args.since.as_ref().is_none_or(|since| time.as_str() >= since.as_str())
        && args.until.as_ref().is_none_or(|until| time.as_str() < until.as_str())
}

fn when(record: &Record) -> String {
    utc(Duration::from_micros(record.at_us))
}

fn table(records: &[Record]) -> String {
    let mut table = Table::new(
        "<time, <event, <decision, <rule, <domain, user, pid, <app, times, <asked, <reason, <executable",
    );
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    for record in records {
        let Subject { domain, user, pid, exe, app, .. } = &record.subject;
        table.row(vec![
            when(record),
            record.event.name().to_owned(),
            record.decision.name().to_owned(),
            or_dash(&record.rule),
            text(domain),
            number(*user),
            number(*pid),
            text(app),
            record.times.to_string(),
            or_dash(&record.asked),
            or_dash(&record.reason),
            text(exe),
        ]);
    }
    table.render()
}
