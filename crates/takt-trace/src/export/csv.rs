//! One row per executed command group, as comma-separated values.
//!
//! A row is written when the group's completion arrives, so rows are in order of completion.
//! Numbers are exact: microseconds with three decimals are whole nanoseconds.

use std::fmt::Write as _;
use std::io::{self, Write};

use takt_core::{Action, AppId, Event, Span, Time};

use super::sink::Sink;
use crate::lives::{Life, Lives, kind_name};
use crate::record::{AppMeta, Meta, Observer, Record};

/// The columns, as the first line names them.
pub const HEADER: &str = "app,priority,frame,group,kind,submitted_us,dispatched_us,started_us,\
finished_us,predicted_us,reserved_us,cost_us";

/// Writes rows of executed groups.
#[derive(Debug)]
pub struct Csv<W> {
    out: Sink<W>,
    names: Vec<String>,
    priorities: Priorities,
    lives: Lives,
    row: String,
}

impl<W: Write> Csv<W> {
    /// Writes the header to `out`.
    pub fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let mut out = Sink::new(out);
        out.put(HEADER.as_bytes());
        out.put(b"\n");
        out.check()?;
        Ok(Self {
            out,
            names: meta.apps.iter().map(|app| quoted(&app.name)).collect(),
            priorities: Priorities::new(meta),
            lives: Lives::new(),
            row: String::new(),
        })
    }

    /// Writes the groups that were executed but whose completion had not arrived, and flushes.
    pub fn finish(mut self) -> io::Result<()> {
        let late: Vec<Life> = self.lives.open().copied().collect();
        for life in late.iter().filter(|life| life.finished.is_some()) {
            self.write(life);
        }
        self.out.finish()
    }

    fn write(&mut self, life: &Life) {
        let row = &mut self.row;
        row.clear();
        match self.names.get(life.app.index()) {
            Some(name) => row.push_str(name),
            None => put(row, format_args!("app{}", life.app.0)),
        }
        put(row, format_args!(",{}", self.priorities.of(life.app)));
        put(row, format_args!(",{},{}", life.frame, life.group.0));
        put(row, format_args!(",{}", kind_name(life.kind)));
        cell(row, Some(life.submitted.since(Time::ZERO)));
        for time in [life.dispatched, life.started, life.finished] {
            cell(row, time.map(|time| time.since(Time::ZERO)));
        }
        cell(row, Some(life.predicted.span()));
        cell(row, life.reserved);
        cell(row, life.cost.map(|cost| cost.span()));
        row.push('\n');
        self.out.put(row.as_bytes());
    }
}

impl<W: Write> Observer for Csv<W> {
    fn record(&mut self, at: Time, record: &Record) {
        self.priorities.see(record);
        if let Some(life) = self.lives.see(at, record) {
            self.write(&life);
        }
    }

    fn meet(&mut self, _at: Time, app: AppId, meta: &AppMeta) {
        while self.names.len() <= app.index() {
            self.names.push(format!("app{}", self.names.len()));
        }
        self.names[app.index()] = quoted(&meta.name);
        let known = self.priorities.by_slot.len().max(app.index() + 1);
        self.priorities.by_slot.resize(known, None);
    }
}

/// Current priority of each app; changes that the scheduler refuses are taken back.
#[derive(Debug)]
struct Priorities {
    by_slot: Vec<Option<u32>>,
    /// The app of the last event, if it set a priority, and what it was before.
    undo: Option<(AppId, Option<u32>)>,
}

impl Priorities {
    fn new(meta: &Meta) -> Self {
        Self { by_slot: meta.apps.iter().map(|app| Some(app.priority.0)).collect(), undo: None }
    }

    fn see(&mut self, record: &Record) {
        match record {
            Record::In(Event::Join { app, params, .. } | Event::Change { app, params }) => {
                let before = self.set(*app, Some(params.priority.0));
                self.undo = Some((*app, before));
            }
            Record::In(_) => self.undo = None,
            Record::Out(Action::Refused { app, group: None, .. }) => {
                if let Some((changed, before)) = self.undo.take_if(|(changed, _)| changed == app) {
                    self.set(changed, before);
                }
            }
            _ => {}
        }
    }

    /// Slots beyond the scenario's apps keep no priority: a hostile slot number must not make
    /// the table grow.
    fn set(&mut self, app: AppId, priority: Option<u32>) -> Option<u32> {
        let slot = self.by_slot.get_mut(app.index())?;
        std::mem::replace(slot, priority)
    }

    fn of(&self, app: AppId) -> String {
        let priority = self.by_slot.get(app.index()).copied().flatten();
        priority.map_or_else(String::new, |priority| priority.to_string())
    }
}

/// Appends a span in microseconds, nothing if unknown, `inf` if unbounded.
fn cell(row: &mut String, span: Option<Span>) {
    row.push(',');
    match span {
        None => {}
        Some(Span::FOREVER) => row.push_str("inf"),
        Some(span) => {
            let ns = span.as_ns();
            put(row, format_args!("{}.{:03}", ns / 1_000, ns % 1_000));
        }
    }
}

fn put(row: &mut String, text: std::fmt::Arguments<'_>) {
    // Formatting into a string cannot fail.
    row.write_fmt(text).unwrap_or_default();
}

/// A field with quotes where RFC 4180 wants them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Pick, meta, run};
    use expect_test::expect;

    fn export(records: &[(Time, Record)]) -> String {
        let mut bytes = Vec::new();
        let mut csv = Csv::new(&mut bytes, &meta("test")).unwrap();
        for (at, record) in records {
            csv.record(*at, record);
        }
        csv.finish().unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_row_per_group() {
        expect![[r#"
            app,priority,frame,group,kind,submitted_us,dispatched_us,started_us,finished_us,predicted_us,reserved_us,cost_us
            "navi, ""beta"" <b>&co",20,0,0,draw,100.000,100.000,100.000,1500.000,1540.000,1740.000,1400.000
            cluster,30,0,3,draw,100.000,1500.000,1500.000,2445.000,990.000,1190.000,945.000
            game,10,0,11,draw,100.000,2445.000,2445.000,6845.000,4400.000,4600.000,4400.000
            "navi, ""beta"" <b>&co",20,0,1,draw,250.000,6845.000,6845.000,8399.000,1540.000,1740.000,1554.000
            cluster,30,0,4,draw,250.000,8399.000,8399.000,9443.000,990.000,1190.000,1044.000
            game,10,0,12,swap,250.000,9443.000,9443.000,13603.000,4400.000,4600.000,4160.000
            "navi, ""beta"" <b>&co",20,0,2,swap,400.000,13603.000,13603.000,15073.000,1540.000,1740.000,1470.000
            cluster,30,0,5,draw,400.000,15073.000,15073.000,16063.000,990.000,1190.000,990.000
            cluster,30,0,6,swap,550.000,16063.000,16063.000,16999.000,990.000,1190.000,936.000
            cluster,30,1,7,draw,16766.000,16999.000,16999.000,17971.000,990.000,1190.000,972.000
            game,10,1,13,draw,16766.000,17971.000,17971.000,22491.000,4400.000,4600.000,4520.000
            cluster,30,1,8,draw,16916.000,22491.000,22491.000,23409.000,990.000,1190.000,918.000
            game,10,1,14,swap,16916.000,23409.000,23409.000,27689.000,4400.000,4600.000,4280.000
            cluster,30,1,9,draw,17066.000,27689.000,27689.000,28706.000,990.000,1190.000,1017.000
            cluster,30,1,10,swap,17216.000,28706.000,28706.000,29669.000,990.000,1190.000,963.000
        "#]].assert_eq(&export(&run(Pick::Oldest, 2)));
    }

    #[test]
    fn refused_changes_keep_the_old_priority() {
        let meta = meta("test");
        let mut priorities = Priorities::new(&meta);
        let app = AppId(1);
        let params = takt_core::AppParams {
            priority: takt_core::Priority(99),
            stride: takt_core::Stride::ONE,
            etpf: Span::ZERO,
            clock: takt_core::Clock::default(),
            service: takt_core::Service::default(),
        };
        priorities.see(&Record::In(Event::Change { app, params }));
        assert_eq!(priorities.of(app), "99");
        priorities.see(&Record::Out(Action::Refused {
            app,
            group: None,
            reason: takt_core::Refusal::UnknownApp,
        }));
        assert_eq!(priorities.of(app), "30");
        assert_eq!(priorities.of(AppId(77)), "");
    }
}
