//! `takt sweep`: one question at every point of a grid.
//!
//! Jobs run on threads and go into a journal as they are finished ([`journal`]); results are
//! written when the last one is there, in the order of jobs. So neither the number of threads, nor
//! an interruption, nor spreading a study over machines can change them.

mod charts;
mod journal;
mod results;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use anyhow::{Context, bail, ensure};
use takt_sim::scenario::{FILE_BYTES_MAX, RECORDING_BYTES_MAX, study_file};
use takt_sim::study::table::{Cell, Table};
use takt_sim::study::{Shard, Study};

use crate::Answer;
use crate::args::SweepArgs;
use crate::load;
use crate::output;
use journal::JournalFile;
pub(crate) use results::SweepOutcome;

/// Finished jobs and their cells.
type Done = BTreeMap<u64, Vec<Cell>>;

pub(crate) fn run(args: &SweepArgs) -> anyhow::Result<Answer> {
    let study = read(&args.file)?;
    let out = args.out.clone().unwrap_or_else(|| Path::new("out/sweep").join(&study.name));
    let shard = args.shard.unwrap_or(Shard::WHOLE);
    if args.dry_run {
        return output::print(&plan(&study, shard)).map(|()| Answer::Yes);
    }
    let (done, reused) = match &args.merge {
        Some(folders) if folders.is_empty() => merge(&study, std::slice::from_ref(&out))?,
        Some(folders) => merge(&study, folders)?,
        None => compute(&study, &out, shard, args.threads)?,
    };
    let mut outcome = SweepOutcome::new(&study, shard, reused);
    if shard == Shard::WHOLE {
        let rows = done.into_iter().map(|(job, cells)| study.row(job, cells)).collect();
        let table = Table { columns: study.columns(), rows };
        outcome.files = results::write(&study, &table, &out)?;
        outcome.add(table);
    }
    output::json(args.json.as_deref(), &outcome)?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&outcome.describe(&out))?;
    }
    Ok(Answer::Yes)
}

fn read(path: &Path) -> anyhow::Result<Study> {
    let name = path.display().to_string();
    let text = load::read(path, FILE_BYTES_MAX as u64).with_context(|| format!("cannot read {name}"))?;
    let open = |path: &str| {
        load::read(Path::new(path), RECORDING_BYTES_MAX as u64).map_err(|error| format!("{path}: {error}"))
    };
    study_file::parse(&name, &text, &open).map_err(|found| {
        let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", lines.join("\nerror: "))
    })
}

/// What would be done.
fn plan(study: &Study, shard: Shard) -> String {
    let jobs = (0..study.jobs()).filter(|job| shard.has(*job));
    let columns: Vec<String> = study.columns().into_iter().map(|column| column.name).collect();
    let mut text = format!("{}: {} jobs, fingerprint {:016x}\n", study.name, study.jobs(), study.fingerprint);
    for axis in &study.axes {
        let choices: Vec<String> = axis.choices.iter().map(|choice| choice.label.to_string()).collect();
        text += &format!("  {}: {}\n", axis.name, choices.join(", "));
    }
    text += &format!("columns: {}\n", columns.join(", "));
    if shard != Shard::WHOLE {
        text += &format!("part {shard}: {} jobs\n", jobs.count());
    }
    text
}

/// Does what is not done yet; all jobs of the part, and how many of them were done before.
fn compute(study: &Study, out: &Path, shard: Shard, threads: Option<u32>) -> anyhow::Result<(Done, u64)> {
    let (mut journal, mut done) = JournalFile::open(out, study, shard)?;
    same_program(study, &done, journal.path())?;
    let reused = done.len() as u64;
    let pending: Vec<u64> =
        (0..study.jobs()).filter(|job| shard.has(*job) && !done.contains_key(job)).collect();
    let threads = threads
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), |threads| threads as usize);
    let bar = output::progress(pending.len() as u64 + reused, &study.name);
    bar.set_position(reused);
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::sync_channel(2 * threads);
    let work = |send: mpsc::SyncSender<(u64, Result<Vec<Cell>, String>)>| {
        while let Some(job) = pending.get(next.fetch_add(1, Ordering::Relaxed)) {
            // Once a job has failed, no receiver is left.
            if send.send((*job, study.run(*job))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..threads.min(pending.len()) {
            let (work, send) = (&work, send.clone());
            thread::Builder::new().name(format!("sweep-{number}")).spawn_scoped(scope, move || work(send))?;
        }
        drop(send);
        for (job, cells) in receive {
            let cells = cells.map_err(|problem| anyhow::anyhow!("{problem}"))?;
            journal.append(job, &cells)?;
            done.insert(job, cells);
            bar.inc(1);
        }
        anyhow::Ok(())
    })?;
    bar.finish_and_clear();
    Ok((done, reused))
}

/// Results of different versions of the program must not be mixed: does one job of the journal
/// give the same today?
fn same_program(study: &Study, done: &Done, journal: &Path) -> anyhow::Result<()> {
    let Some((job, before)) = done.first_key_value() else {
        return Ok(());
    };
    let now = study.run(*job).map_err(|problem| anyhow::anyhow!("{problem}"))?;
    let written = |cells: &[Cell]| takt_sim::study::journal::entry(*job, cells);
    ensure!(
        written(&now) == written(before),
        "{}: job {job} ({}) gives other results now: the journal is that of another version of takt. \
         Remove it to compute everything anew, or give another --out",
        journal.display(),
        study.describe(*job)
    );
    Ok(())
}

/// Puts parts together; complains unless they make a whole.
fn merge(study: &Study, folders: &[PathBuf]) -> anyhow::Result<(Done, u64)> {
    let mut all = Done::new();
    let mut shards: Vec<Shard> = Vec::new();
    let journals = journal::find(folders)?;
    for path in &journals {
        let (shard, done) = journal::read(path, study)?;
        same_program(study, &done, path)?;
        shards.push(shard);
        for (job, cells) in done {
            let written = |cells: &[Cell]| takt_sim::study::journal::entry(job, cells);
            if let Some(other) = all.get(&job)
                && written(other) != written(&cells)
            {
                bail!("{}: job {job} ({}) has other results elsewhere", path.display(), study.describe(job));
            }
            all.insert(job, cells);
        }
    }
    if all.len() as u64 != study.jobs() {
        bail!("{}", incomplete(study, &shards, &all));
    }
    let reused = all.len() as u64;
    Ok((all, reused))
}

/// Which parts lack what.
fn incomplete(study: &Study, shards: &[Shard], done: &Done) -> String {
    let missing = |shard: Shard| {
        (0..study.jobs()).filter(|job| shard.has(*job) && !done.contains_key(job)).count() as u64
    };
    let mut text = format!("{} of {} jobs are missing:", missing(Shard::WHOLE), study.jobs());
    let of = shards.iter().map(|shard| shard.of).max().unwrap_or(1);
    let parts = (1..=of).map(|part| Shard { part, of }).filter(|shard| missing(*shard) > 0);
    for (count, shard) in parts.enumerate() {
        if count == PARTS_LISTED {
            text += "\n  …";
            break;
        }
        let begun = if shards.contains(&shard) { "is not finished" } else { "is not there" };
        text += &format!("\n  part {shard} {begun}: {} jobs", missing(shard));
    }
    text + "\n  help: run takt sweep --shard I/N for these parts again; what is finished is kept"
}

/// Parts that an error names.
const PARTS_LISTED: usize = 20;
