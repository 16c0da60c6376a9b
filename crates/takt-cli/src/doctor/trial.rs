//! Runs a program for a moment, to see what is really hooked.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use takt_client::family::Children;
use takt_gl::predict::Choice;
use takt_gl::settings;

use super::Finding;
use crate::hook::Hooking;
use crate::run;
use crate::temporary::fresh_folder;
use crate::watch::{self, Kin};

/// The variable by which the CUDA driver is told what to load.
const INJECTED: &str = "CUDA_INJECTION64_PATH";
/// How often the program is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// And what it has left behind.
const LOOK_AT_KIN: Duration = Duration::from_millis(200);

pub(super) fn findings(
    hooking: &Hooking,
    command: &[OsString],
    seconds: u32,
) -> anyhow::Result<Vec<Finding>> {
    let folder = fresh_folder(&std::env::temp_dir(), "takt-doctor")?;
    let (table, facts) = (folder.join("groups.csv"), folder.join("facts"));
    let mut passing = Vec::new();
    let outcome = run(hooking, command, seconds, (&table, &facts), &mut passing);
    let read = |path: &Path| fs::read_to_string(path).unwrap_or_default();
    let has_context = facts.exists();
    let groups = read(&table).lines().count().saturating_sub(1);
    let has_display = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    let cuda = compute(&read(&facts.with_extension("cuda")));
    let found = outcome.map(|ended| match cuda {
        // A program that only computes has no context of GL.
        Some(cuda) if !facts.exists() => vec![cuda, Finding::ok("trial", ended)],
        cuda => {
            let facts = Some(read(&facts)).filter(|facts| !facts.is_empty() || passing.is_empty());
            let seen = facts.map_or_else(Vec::new, |facts| judge(&ended, &facts, groups, has_display));
            seen.into_iter().chain(cuda).collect()
        }
    });
    // A program with a context may be about to draw.
    let by = passing.iter().filter(|one| one.uses_gpu() || !has_context);
    let by = by.map(|one| Finding::problem("passes by", one.found(), one.remedy()));
    let found = found.map(|found| found.into_iter().chain(by).collect());
    // A folder of ours in the user's temporary files; it stays only if it cannot go.
    let _left = fs::remove_dir_all(&folder);
    found
}

/// Runs the program until it ends or its time is over; says how it ended, and what passed Takt by until then.
fn run(
    hooking: &Hooking,
    command: &[OsString],
    seconds: u32,
    (table, facts): (&Path, &Path),
    passing: &mut Vec<watch::Passing>,
) -> anyhow::Result<String> {
    fs::write(table, takt_gl::measure::header(&Choice::default()))?;
    let (program, arguments) = command.split_first().context("no command was given")?;
    let (mark, variable) = run::mark(Children::Inherit, Path::new(program));
    let mut child = Command::new(program)
        .args(arguments)
        .envs(hooking.variables.iter().map(|(name, value)| (name, value)))
        .env(settings::MEASURE, table)
        .env(settings::FACTS, facts)
        .env(settings::FAMILY, variable)
        .envs(witness(hooking))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run '{}'", program.display()))?;
    let end = Instant::now() + Duration::from_secs(u64::from(seconds));
    let mut kin = Kin::of(child.id()).marked(mark);
    let mut status = None;
    while Instant::now() < end {
        if status.is_none() {
            status = child.try_wait()?;
        }
        // A launcher ends before what it has started.
        if let Some(status) = status {
            if kin.look().is_empty() {
                return Ok(format!("it ended with {status}"));
            }
            thread::sleep(LOOK_AT_KIN);
        }
        thread::sleep(LOOK);
    }
    let processes = kin.look();
    *passing = watch::now(&processes, &watch::Ways::of(hooking));
    for process in processes {
        let process = i32::try_from(process).ok().and_then(Pid::from_raw);
        // It may have ended with the others.
        let _ended = process.map(|process| kill_process(process, Signal::KILL));
    }
    child.wait()?;
    Ok(format!("it was ended after {seconds} s"))
}

/// Has the CUDA driver load our library a second time, so that it hears from CUPTI what reaches the driver; unless a
/// profiler is there.
fn witness(hooking: &Hooking) -> Option<(&'static str, PathBuf)> {
    let library = hooking.cuda.as_ref()?.library();
    std::env::var_os(INJECTED).is_none().then_some((INJECTED, library))
}

/// What the library noted while the program ran.
fn judge(ended: &str, facts: &str, groups: usize, has_display: bool) -> Vec<Finding> {
    if facts.is_empty() {
        let found = format!("neither a context of GL or GL ES nor CUDA was seen in the program; {ended}");
        let remedy = if has_display {
            "it may draw with Vulkan or on the processor, or bring a libEGL of its own: try --hook preload for that"
        } else {
            "neither DISPLAY nor WAYLAND_DISPLAY is set; if it needs a window, put xvfb-run -a in front of takt"
        };
        return vec![Finding::problem("trial", found, remedy)];
    }
    let fact = |name: &str| {
        let line = facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or("unknown").to_owned()
    };
    let mut findings = vec![
        Finding::ok("renderer", format!("{} ({})", fact("renderer"), fact("version"))),
        Finding::ok("trial", format!("{groups} command groups were seen; {ended}")),
    ];
    findings.push(extensions(&fact("extensions")));
    let source = fact("source");
    findings.push(match (fact("fences").as_str(), fact("software").as_str()) {
        ("yes", software) => {
            let by =
                if source == "unknown" { "fences (timer queries were not compared yet)" } else { &source };
            let calls = if software == "yes" {
                ", the processor time of the renderer's threads, and the time in calls: it uses the CPU"
            } else {
                ""
            };
            Finding::ok("measuring", format!("by {by}{calls}"))
        }
        _ => Finding::problem(
            "measuring",
            "this driver has no fences (EGL_KHR_fence_sync)",
            "use a newer driver",
        ),
    });
    findings
}

/// What was seen of CUDA, if the program used it.
fn compute(facts: &str) -> Option<Finding> {
    let text = |name: &str| facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let fact = |name: &str| text(name).and_then(|number| number.parse::<u64>().ok());
    let version = fact("cuda.version")?;
    let [kernels, graphs, moved, unknown] =
        ["cuda.kernels", "cuda.graphs", "cuda.moved", "cuda.unknown"].map(|name| fact(name).unwrap_or(0));
    let found = format!(
        "a driver of version {}.{}: {kernels} kernels, {graphs} graphs, and {moved} copies or memsets were seen",
        version / 1000,
        version % 1000 / 10
    );
    let found = match unknown {
        0 => found,
        _ => format!("{found}; {unknown} functions of the driver pass unscheduled"),
    };
    let launched = [fact("cuda.cupti_kernels"), fact("cuda.cupti_graphs")];
    let [Some(launched_kernels), Some(launched_graphs)] = launched else {
        let excuse = text("cuda.cupti").unwrap_or("it was not asked");
        return Some(Finding::note("cuda", format!("{found}; CUPTI counted nothing ({excuse})")));
    };
    let passed = launched_kernels.saturating_sub(kernels) + launched_graphs.saturating_sub(graphs);
    let all = launched_kernels + launched_graphs;
    Some(match (passed, unknown) {
        (0, 0) => Finding::ok("cuda", format!("{found}; all {all} launches that CUPTI counted were seen")),
        (0, _) => Finding::note("cuda", format!("{found}; all {all} launches that CUPTI counted were seen")),
        _ => Finding::problem(
            "cuda",
            format!("{found}; {passed} of {all} launches that CUPTI counted passed Takt by"),
            "the program finds the driver by another way: try --hook preload",
        ),
    })
}

/// How many extensions the driver has, and whether the one that Takt uses is among them.
fn extensions(all: &str) -> Finding {
    const TIMERS: &str = "GL_EXT_disjoint_timer_query";
    let all: Vec<&str> = all.split_ascii_whitespace().filter(|name| name.starts_with("GL_")).collect();
    let with = if all.contains(&TIMERS) { "with" } else { "without" };
    Finding::ok("extensions", format!("{} of GL, {with} {TIMERS}", all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn programs_that_compute_are_seen() {
        let facts = "cuda.version=13000\ncuda.kernels=7\ncuda.graphs=1\ncuda.moved=2\ncuda.unknown=0\n";
        let judged = |more: &str| {
            let found = compute(&format!("{facts}{more}")).expect("it used CUDA");
            assert!(
                found.found.contains("version 13.0: 7 kernels, 1 graphs, and 2 copies"),
                "{}",
                found.found
            );
            (found.status, found.found.split("; ").last().unwrap_or_default().to_owned())
        };
        let all = "all 8 launches that CUPTI counted were seen".to_owned();
        assert_eq!(judged("cuda.cupti_kernels=7\ncuda.cupti_graphs=1\n"), (Status::Ok, all));
        let some = "2 of 10 launches that CUPTI counted passed Takt by".to_owned();
        assert_eq!(judged("cuda.cupti_kernels=9\ncuda.cupti_graphs=1\n"), (Status::Problem, some));
        assert_eq!(judged("cuda.cupti=missing\n").1, "CUPTI counted nothing (missing)");
        assert_eq!(compute(&facts.replace("unknown=0", "unknown=3")).expect("it did").status, Status::Note);
        assert!(compute("").is_none());
    }

    #[test]
    fn what_was_seen_is_judged() {
        let facts = "renderer=llvmpipe\nversion=ES 3.2\nfences=yes\nsoftware=yes\n";
        let findings = judge("it ended", facts, 7, true);
        assert!(findings.iter().all(|finding| finding.status == Status::Ok), "{findings:?}");
        assert!(findings[1].found.starts_with("7 command groups"));
        assert!(findings[3].found.contains("not compared yet"), "{findings:?}");
        let all = format!("{facts}extensions=GL_A GL_EXT_disjoint_timer_query\n");
        let found = &judge("it ended", &all, 7, true)[2].found;
        assert_eq!(found, "2 of GL, with GL_EXT_disjoint_timer_query");
        let decided = judge("it ended", &format!("{facts}source=timer queries (right)\n"), 7, true);
        assert!(decided[3].found.starts_with("by timer queries (right), the processor time"), "{decided:?}");
        assert_eq!(judge("it ended", "", 0, true)[0].status, Status::Problem);
        assert!(
            judge("it ended", "fences=no\n", 0, true).iter().any(|finding| finding.status == Status::Problem)
        );
    }
}
