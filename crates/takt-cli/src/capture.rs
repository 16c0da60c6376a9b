//! `takt trace`: what a daemon does, into a file.

use std::io::BufReader;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use takt_core::{AppId, Time};
use takt_trace::export::json::{Entry, Reader};
use takt_trace::{AppMeta, Deduced, Observer, Record};

use crate::Answer;
use crate::args::TraceArgs;
use crate::sim::Trace;
use crate::{output, signals};
use takt_daemon::tool::Stream;

pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<Answer> {
    let stop = signals::flag(&[SIGINT, SIGTERM])?;
    let stream = Stream::open(&args.socket.path(), stop, args.seconds.map(Duration::from_secs))?;
    let gone = stream.gone();
    let mut reader = Reader::new(BufReader::new(stream)).context("the daemon does not tell what it does")?;
    let mut file = LiveTrace::new(Trace::create(&args.output, reader.meta())?);
    let path = args.output.display();
    if args.seconds.is_none() {
        output::warn(&format!("takt: writing {path}; stop with Ctrl-C"));
    }
    let (mut records, mut lost) = (0u64, 0u64);
    while let Some((at, entry)) = reader.next_entry().context("the daemon tells nonsense")? {
        entry.show(at, &mut file);
        records += 1;
        if let Entry::Record(Record::Gap { records }) = entry {
            lost += records;
        }
    }
    let format = file.finish().with_context(|| output::cannot_write(&args.output))?;
    let mut said = format!("{path}: {records} records ({format})");
    if lost > 0 {
        said += &format!("; {lost} more are missing, because this machine was too busy to take them");
    }
    if gone.load(Ordering::Relaxed) {
        said += "; the daemon hung up";
    }
    output::print(&(said + "\n"))?;
    Ok(Answer::Yes)
}

/// A trace file of a live run. People's formats get what the GPU must have done; the log is as told.
pub(crate) enum LiveTrace {
    AsTold(Trace),
    Deduced(Box<Deduced<Trace>>),
}

impl LiveTrace {
    pub(crate) fn new(trace: Trace) -> Self {
        if matches!(trace, Trace::Json(_)) {
            Self::AsTold(trace)
        } else {
            Self::Deduced(Box::new(Deduced::new(trace)))
        }
    }

    /// Completes the file; what people call its format.
    pub(crate) fn finish(self) -> std::io::Result<&'static str> {
        let trace = match self {
            Self::AsTold(trace) => trace,
            Self::Deduced(deduced) => deduced.finish(),
        };
        let format = trace.format();
        trace.finish().map(|()| format)
    }
}

impl Observer for LiveTrace {
    fn record(&mut self, at: Time, record: &Record) {
        match self {
            Self::AsTold(trace) => trace.record(at, record),
            Self::Deduced(trace) => trace.record(at, record),
        }
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        match self {
            Self::AsTold(trace) => trace.meet(at, app, meta),
            Self::Deduced(trace) => trace.meet(at, app, meta),
        }
    }
}
