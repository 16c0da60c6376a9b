//! `takt replay`: a daemon's log, played again.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use schemars::JsonSchema;
use serde::Serialize;
use takt_core::scheduler::Stats;
use takt_core::{Span, Time};
use takt_trace::export::json::{BadLine, Entry, Reader, put_record};
use takt_trace::replay::{Difference, DifferenceKind, Replay, Replayed};
use takt_trace::{Deduced, Metrics, Record, RunFacts, Summary, Tenants};

use crate::Answer;
use crate::args::ReplayArgs;
use crate::capture::LiveTrace;
use crate::output;
use crate::sim::Trace;
use crate::table::{Table, ms, percent};
use crate::version;

/// What came of it, as `--json` prints it.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct Outcome {
    /// Whether the core did the very same, and broke no rule.
    equal: bool,
    /// Records played, up to the first difference.
    records: u64,
    /// Turns of the daemon's loop among them.
    turns: u64,
    /// Actions of the core among them, each equal to the recorded one.
    actions: u64,
    /// Whether the log ends in the middle of a turn or of a line: its daemon was killed.
    cut_off: bool,
    /// The first difference.
    difference: Option<FirstDifference>,
    /// The build of takt that wrote the log; null if it does not say.
    made_by: Option<String>,
    /// What became of each app, if that was asked for.
    figures: Option<Summary>,
}

/// The first difference between the log and the core.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub(crate) struct FirstDifference {
    /// Line of the log.
    line: u64,
    /// When, in nanoseconds of the daemon's clock.
    at_ns: u64,
    /// How many events the core was told until it broke an invariant; null if it is another difference.
    broken_after_event: Option<u64>,
    /// What.
    what: String,
    /// That another build of takt wrote the log, or may have; null if it was this one.
    other_build: Option<String>,
    /// The lines before it, oldest first.
    before: Vec<String>,
}

pub(crate) fn run(args: &ReplayArgs) -> anyhow::Result<Answer> {
    let mut outcome = play(&args.file)?;
    let mut said = describe(&args.file, &outcome);
    if args.figures {
        outcome.figures = Some(figures(&args.file, Duration::from_secs(args.warm_up))?);
        said += &outcome.figures.as_ref().map(table).unwrap_or_default();
    }
    if let Some(path) = &args.trace {
        let mut reader = open(&args.file)?;
        let mut trace = LiveTrace::new(Trace::create(path, reader.meta())?);
        reader.show(&mut trace).map_err(|bad| wrong(&args.file, &bad))?;
        let format = trace.finish().with_context(|| output::cannot_write(path))?;
        said += &format!("trace: {} ({format})\n", path.display());
    }
    output::json(args.json.as_deref(), &outcome)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&said)?;
    }
    Ok(if outcome.equal { Answer::Yes } else { Answer::No })
}

fn open(path: &Path) -> anyhow::Result<Reader<BufReader<File>>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Reader::new(BufReader::new(file)).map_err(|bad| wrong(path, &bad))
}

fn wrong(path: &Path, bad: &BadLine) -> anyhow::Error {
    anyhow::anyhow!("{}, {bad}", path.display())
}

fn play(path: &Path) -> anyhow::Result<Outcome> {
    let mut reader = open(path)?;
    let Some(config) = reader.config().copied() else {
        bail!(
            "{}: this log does not begin with its daemon, so it cannot be played again; write one with takt \
             serve --record",
            path.display()
        );
    };
    let policy = &reader.meta().policy;
    let mut replay = Replay::new(config, policy)
        .with_context(|| format!("{}: there is no policy {policy}", path.display()))?;
    let mut difference = None;
    while let Some((at, entry)) = reader.next_entry().map_err(|bad| wrong(path, &bad))? {
        if let Entry::Record(record) = entry
            && let Err(found) = replay.play(at, &record)
        {
            difference = Some(first(reader.line(), &found, reader.build()));
            break;
        }
    }
    let Replayed { records, turns, actions, unfinished } = replay.finish();
    let equal = difference.is_none();
    if equal && records == 0 {
        bail!("{}: there is nothing to replay after its first line", path.display());
    }
    let made_by = reader.build().map(str::to_owned);
    let cut_off = equal && (unfinished || reader.is_cut_off());
    Ok(Outcome { equal, records, turns, actions, cut_off, difference, made_by, figures: None })
}

/// What became of each app of a log, from `warm_up` after the first one came.
pub(crate) fn figures(path: &Path, warm_up: Duration) -> anyhow::Result<Summary> {
    let (mut meta, mut first) = (open(path)?.meta().clone(), None);
    let known = meta.apps.len();
    let mut reader = open(path)?;
    while let Some((at, entry)) = reader.next_entry().map_err(|bad| wrong(path, &bad))? {
        if let Entry::App(_, app) = entry {
            first.get_or_insert(at);
            meta.apps.push(app);
        }
    }
    let warm_up = Span::from_ns(u64::try_from(warm_up.as_nanos()).unwrap_or(u64::MAX));
    let from = first.unwrap_or_default() + warm_up;
    let metrics = Deduced::new(Metrics::new(meta, from.since(Time::ZERO)));
    let mut tenants = Tenants::new(metrics, known);
    let end = open(path)?.show(&mut tenants).map_err(|bad| wrong(path, &bad))?;
    let facts = RunFacts { seed: 0, event_hash: 0, stats: Stats::default(), end };
    Ok(tenants.finish().finish().finish(facts))
}

fn table(summary: &Summary) -> String {
    let mut table =
        Table::new("prio, <app, target, FPS, met, p99 ms, max ms, blocked p99, blocked max, GPU, under");
    for app in &summary.apps {
        table.row(vec![
            app.priority.to_string(),
            app.name.clone(),
            format!("{:.1}", app.fps_target),
            format!("{:.2}", app.fps),
            percent(app.met),
            ms(app.response_us.p99),
            ms(app.response_us.max),
            ms(app.blocking_us.p99),
            ms(app.blocking_us.max),
            percent(app.gpu_share),
            percent(app.under_predicted),
        ]);
    }
    format!(
        "\n{}\nGPU busy {} of {:.1} s. Times in ms, from release to end of frame. blocked: a ready group waited \
         while less important ones ran. under: groups that ran longer than predicted.\n",
        table.render(),
        percent(summary.gpu.utilisation),
        summary.judged_s
    )
}

fn first(line: u64, difference: &Difference, made_by: Option<&str>) -> FirstDifference {
    // What is missing is missing in every build.
    let decided = !matches!(difference.kind, DifferenceKind::Gap(_));
    FirstDifference {
        line,
        at_ns: difference.at.as_ns(),
        broken_after_event: match difference.kind {
            DifferenceKind::Broken { event, .. } => Some(event),
            _ => None,
        },
        what: difference.kind.to_string(),
        other_build: decided.then(|| other_build(made_by)).flatten(),
        before: difference.before.iter().map(|(at, record)| text(*at, record)).collect(),
    }
}

/// That a log was written by another build, whose core may have decided otherwise, or may have been.
fn other_build(made_by: Option<&str>) -> Option<String> {
    let this = version::build();
    match made_by {
        None => Some(format!(
            "The log does not say which build of takt wrote it; this is {this}, and another one's core may \
             have decided otherwise."
        )),
        Some(other) if other != this => Some(format!(
            "The log was written by takt {}, and this is {this}: its core may have decided otherwise.",
            other.escape_debug()
        )),
        Some(_) if !version::is_exact() => Some(format!(
            "The log was written by a takt {this}, which may be another build than this one: neither is that \
             of a commit."
        )),
        Some(_) => None,
    }
}

fn text(at: Time, record: &Record) -> String {
    let mut line = Vec::new();
    put_record(&mut line, at, record);
    String::from_utf8_lossy(line.trim_ascii_end()).into_owned()
}

fn describe(path: &Path, outcome: &Outcome) -> String {
    let Outcome { records, turns, actions, .. } = outcome;
    let path = path.display();
    match &outcome.difference {
        None => {
            let cut = if outcome.cut_off { " The log ends in the middle of a turn." } else { "" };
            format!(
                "{path}: equal. {records} records, {turns} turns; all {actions} actions of the core are those of the \
                 daemon, and no rule is broken.{cut}\n"
            )
        }
        Some(difference) => {
            let before: String = difference.before.iter().map(|line| format!("  {line}\n")).collect();
            let other = difference.other_build.as_ref().map_or_else(String::new, |said| format!("{said}\n"));
            let how = if difference.broken_after_event.is_some() { "broken" } else { "different" };
            format!(
                "{path}, line {}: {how}, after {actions} actions: {}.\n{other}Before that:\n{before}",
                difference.line, difference.what
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use takt_core::{Action, AppId, Broken, Config, Invariant, Refresh};
    use takt_trace::Meta;
    use takt_trace::export::json::{Start, put_head};

    use super::*;

    const BROKEN: Broken = Broken { what: Invariant::Head, app: Some(AppId(2)), at: Time::ZERO };

    #[test]
    fn a_broken_invariant_is_told_with_its_event() {
        let kind = DifferenceKind::Broken { broken: BROKEN, event: 41, recorded: true };
        let found = first(7, &Difference { at: Time::ZERO, kind, before: Vec::new() }, None);
        assert_eq!(found.broken_after_event, Some(41));
        let outcome = Outcome {
            equal: false,
            records: 9,
            turns: 3,
            actions: 4,
            cut_off: false,
            difference: Some(found),
            made_by: None,
            figures: None,
        };
        let said = describe(Path::new("day.jsonl"), &outcome);
        let expected = "day.jsonl, line 7: broken, after 4 actions: after event 41: broken invariant 'head'";
        assert!(said.starts_with(expected) && said.contains("(slot 2), as the log says"), "{said}");
    }

    #[test]
    fn a_log_that_says_broken_is_never_equal() {
        let meta = Meta {
            scenario: "live".into(),
            policy: "fifo".into(),
            refresh: Refresh::HZ_60,
            apps: Vec::new(),
        };
        let mut lines = Vec::new();
        put_head(&mut lines, &meta, Some(Start { config: &Config::default(), build: "another" }));
        put_record(&mut lines, Time::ZERO, &Record::Turn);
        put_record(&mut lines, Time::ZERO, &Record::Out(Action::Broken(BROKEN)));
        let path = std::env::temp_dir().join(format!("takt-said-broken-{}.jsonl", std::process::id()));
        std::fs::write(&path, lines).expect("our own file can be written");
        let outcome = play(&path);
        std::fs::remove_file(&path).expect("our own file can be removed");
        let outcome = outcome.expect("a log");
        let difference = outcome.difference.expect("this core does not break");
        assert!(
            !outcome.equal && difference.line == 3 && difference.what.contains("Broken"),
            "{difference:?}"
        );
    }
}
