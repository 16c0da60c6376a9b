//! `takt doctor`: what will be hooked and how, and what stands in the way.

mod executable;
mod system;
mod trial;

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Answer;
use crate::args::DoctorArgs;
use crate::hook::Hooking;
use crate::hook::libraries::Libraries;
use crate::output;

/// How bad something is.
#[derive(Serialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Status {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// Something will not work.
    Problem,
}

/// One thing that was looked at.
#[derive(Serialize, JsonSchema, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Finding {
    /// Which part of the system or program.
    pub(crate) topic: &'static str,
    /// How bad it is.
    pub(crate) status: Status,
    /// What was found.
    pub(crate) found: String,
    /// What to do about it.
    pub(crate) remedy: Option<String>,
}

impl Finding {
    pub(crate) fn ok(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, status: Status::Ok, found: found.into(), remedy: None }
    }

    pub(crate) fn note(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, status: Status::Note, found: found.into(), remedy: None }
    }

    pub(crate) fn problem(topic: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { topic, status: Status::Problem, found: found.into(), remedy: Some(remedy.into()) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.status {
            Status::Ok => "ok     ",
            Status::Note => "note   ",
            Status::Problem => "PROBLEM",
        };
        writeln!(f, "{mark}  {:<12} {}", self.topic, self.found)?;
        if let Some(remedy) = &self.remedy {
            writeln!(f, "{:24}remedy: {remedy}", "")?;
        }
        Ok(())
    }
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<Answer> {
    let libraries = Libraries::all();
    let mut findings = vec![system::loader(&libraries)];
    findings.extend(system::drivers(&libraries));
    findings.push(system::devices());
    findings.push(system::cuda());
    let hooking = Hooking::prepare(args.hook);
    match &hooking {
        Ok(hooking) => findings.push(Finding::ok("hooking", hooking.to_string())),
        Err(error) => findings.push(Finding::problem(
            "hooking",
            format!("{error:#}"),
            "mend what it says; until then no program can be measured or scheduled",
        )),
    }
    findings.extend(system::real_time());
    findings.push(system::wake_ups());
    findings.push(system::domain(&args.socket.path()));
    let program = args.command.first().map_or_else(Vec::new, |program| {
        let way = hooking.as_ref().map_or(args.hook, |hooking| hooking.way);
        executable::findings(&PathBuf::from(program), way)
    });
    let sound = !program.is_empty() && program.iter().all(|finding| finding.status != Status::Problem);
    findings.extend(program);
    match &hooking {
        Ok(hooking) if sound => findings.extend(trial::findings(hooking, &args.command, args.seconds)?),
        _ if args.command.is_empty() => {
            findings.push(Finding::note("measuring", "not tried: give a program, `takt doctor -- COMMAND`"));
        }
        _ => findings.push(Finding::note("measuring", "not tried, because of the problems above")),
    }
    if !output::is_stdout(args.json.as_deref()) {
        let text: String = findings.iter().map(ToString::to_string).collect();
        output::print(&text)?;
    }
    output::json(args.json.as_deref(), &findings)?;
    let healthy = findings.iter().all(|finding| finding.status != Status::Problem);
    Ok(if healthy { Answer::Yes } else { Answer::No })
}
