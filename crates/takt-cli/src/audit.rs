//! `takt audit`: checks, shows and scans what a daemon recorded.

mod files;
mod scan;
mod show;

use anyhow::Context;
use serde::Serialize;
use takt_audit::Report;

use crate::args::{AuditCommand, VerifyArgs};
use crate::{Answer, output};
use files::{AuditChain, load};

pub(crate) fn run(command: &AuditCommand) -> anyhow::Result<Answer> {
    match command {
        AuditCommand::Verify(args) => verify(args),
        AuditCommand::Show(args) => show::run(args),
        AuditCommand::Scan(args) => scan::run(args),
    }
}

/// What was found in one chain, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Verified {
    chain: String,
    intact: bool,
    files: usize,
    lines: u64,
    first: Option<u64>,
    head: Option<String>,
    after_kept_head: u64,
    findings: Vec<String>,
    further_findings: u64,
}

fn verify(args: &VerifyArgs) -> anyhow::Result<Answer> {
    let chains = load(&args.files.paths)?;
    let mut all = Vec::new();
    for chain in &chains {
        let noted = args.head.iter().filter(|(name, _)| *name == chain.name);
        let heads: Vec<_> = noted.map(|(_, head)| *head).collect();
        all.push(verified(chain, &chain.verify(&heads)));
    }
    for (name, head) in &args.head {
        let known = all.iter().any(|found| found.chain == *name);
        if !known {
            anyhow::bail!("--head {name}:{head}: these files have no chain {name}");
        }
    }
    output::json(args.json.as_deref(), &all).context("cannot write the outcome")?;
    if !output::is_stdout(args.json.as_deref()) {
        output::print(&all.iter().map(words).collect::<String>())?;
    }
    let intact = all.iter().all(|found| found.intact);
    Ok(if intact { Answer::Yes } else { Answer::No })
}

fn verified(chain: &AuditChain, report: &Report) -> Verified {
    Verified {
        chain: chain.name.clone(),
        intact: report.is_intact(),
        files: chain.files.len(),
        lines: report.lines,
        first: report.first,
        head: report.head.map(|head| head.to_string()),
        after_kept_head: report.after_kept,
        findings: report.findings.iter().map(ToString::to_string).collect(),
        further_findings: report.more,
    }
}

fn words(found: &Verified) -> String {
    let Verified { chain, files, lines, findings, .. } = found;
    let verdict = if found.intact { "intact" } else { "NOT INTACT" };
    let name = if chain.is_empty() { "(no chain)" } else { chain };
    let mut text = format!("{name}: {verdict}, {lines} lines in {files} files\n");
    if let Some(first) = found.first.filter(|first| *first > 0) {
        text += &format!("  begins at record {first}: older files are not there\n");
    }
    if found.after_kept_head > 0 {
        text += &format!("  {} records after the head that was kept\n", found.after_kept_head);
    }
    if let Some(head) = &found.head {
        text += &format!("  head: {name}:{head}\n");
    }
    findings.iter().for_each(|finding| text += &format!("  {finding}\n"));
    if found.further_findings > 0 {
        text += &format!("  and {} more\n", found.further_findings);
    }
    text
}
