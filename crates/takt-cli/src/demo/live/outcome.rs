//! What came of an experiment: figures, sentences, a table, a page.

use std::time::Duration;

use serde::Serialize;
use takt_report::frames::{App, FramesPage, Run, Strip};
use takt_trace::Quantiles;
use takt_trace::frames::{FrameFigures, judge};

use super::cast::{Cast, RESERVED_MAX, Role};
use super::load::Foreign;
use super::stage::Played;
use crate::table::Table;

/// All that was measured.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LiveFigures {
    /// The played scene.
    title: &'static str,
    /// Version of Takt.
    version: &'static str,
    /// Processors, which are the GPU here.
    processors: usize,
    /// Seconds judged of each run.
    seconds: u32,
    /// The programs.
    roles: Vec<Role>,
    /// Every run in order, without and with Takt in turn.
    runs: Vec<RunFigures>,
}

/// A run.
#[derive(Clone, Debug, Serialize)]
struct RunFigures {
    /// Whether Takt was underneath.
    scheduled: bool,
    apps: Vec<LiveAppFigures>,
    /// What Takt said in the programs.
    said: Vec<String>,
    /// What other programs did meanwhile.
    foreign: Foreign,
    /// How long groups of the most important app that were ready waited while others ran.
    blocked_us: Option<Quantiles>,
    /// The floods' share of one renderer's time.
    floods_share: f64,
    /// The same as a share of what the other apps left of it. More than 1 where several processors
    /// render at once, which they do only without Takt.
    floods_share_of_rest: f64,
    /// The same as a share of what the other apps left of all processors.
    floods_share_of_processors: f64,
}

#[derive(Clone, Debug, Serialize)]
struct LiveAppFigures {
    name: String,
    #[serde(flatten)]
    figures: FrameFigures,
    gpu_share: f64,
}

/// Runs as they come in.
pub(super) struct Runs {
    figures: LiveFigures,
    /// The first run of each kind, to be shown.
    shown: Vec<Run>,
}

impl Runs {
    pub(super) fn new(cast: Cast, roles: Vec<Role>, seconds: u32) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let version = env!("CARGO_PKG_VERSION");
        let title = cast.title();
        Self {
            figures: LiveFigures { title, version, processors, seconds, roles, runs: vec![] },
            shown: vec![],
        }
    }

    pub(super) fn figures(&self) -> LiveFigures {
        self.figures.clone()
    }

    /// Judges a run.
    pub(super) fn add(&mut self, scheduled: bool, played: Played) {
        let Played { window, frames, said, log, foreign } = played;
        let mut apps = Vec::new();
        for (role, frames) in self.figures.roles.iter().zip(frames) {
            let (figures, missed) = judge(&frames, role.fps, window);
            let busy_s = figures.frames as f64 * role.alone_ms[0] / 1000.0;
            let gpu_share = busy_s / window.seconds();
            let (name, priority, fps) = (role.name.clone(), role.priority, role.fps);
            apps.push(App { name, priority, fps, frames, figures, missed, gpu_share });
        }
        let share = |flood: bool| -> f64 {
            let both = self.figures.roles.iter().zip(&apps);
            both.filter(|(role, _)| role.is_flood() == flood).map(|(_, app)| app.gpu_share).sum()
        };
        let (floods, others) = (share(true), share(false));
        let kept = |app: &App| LiveAppFigures {
            name: app.name.clone(),
            figures: app.figures.clone(),
            gpu_share: app.gpu_share,
        };
        self.figures.runs.push(RunFigures {
            scheduled,
            apps: apps.iter().map(kept).collect(),
            said,
            foreign,
            blocked_us: log.and_then(|log| log.apps.into_iter().next()).map(|app| app.blocking_us),
            floods_share: floods,
            floods_share_of_rest: floods / (1.0 - others).max(0.01),
            floods_share_of_processors: floods / (self.figures.processors as f64 - others).max(0.01),
        });
        if self.shown.len() < 2 {
            self.shown.push(Run { name: name(scheduled).to_owned(), window, apps });
        }
    }

    /// A page that shows the first run of each kind.
    pub(super) fn page(&self, took: Duration, strips: Vec<Strip>) -> FramesPage {
        let LiveFigures { title, version, processors, seconds, .. } = self.figures;
        FramesPage {
            title: title.to_owned(),
            subtitle: format!(
                "Takt {version} · real programs drawn by {processors} processors (llvmpipe, one thread each) · \
                 {seconds} s of each run judged · {:.0} s in all",
                took.as_secs_f64()
            ),
            findings: self.findings(),
            strips,
            runs: self.shown.clone(),
        }
    }

    /// The runs that the page shows.
    pub(super) fn shown(&self) -> &[Run] {
        &self.shown
    }

    /// The table and what is to be learned from it.
    pub(super) fn text(&self) -> String {
        let mut table = Table::new(
            "prio, <app, target, needs ms, |, native FPS, met, p99 ms, work, |, takt FPS, met, p99 ms, work",
        );
        for (index, role) in self.figures.roles.iter().enumerate() {
            let target = if role.is_flood() { "-".to_owned() } else { role.fps.to_string() };
            let alone = format!("{:.1}", role.alone_ms[0]);
            let mut row = vec![role.priority.to_string(), role.name.clone(), target, alone];
            for scheduled in [false, true] {
                row.push("|".to_owned());
                row.extend(self.cells(scheduled, index));
            }
            table.row(row);
        }
        let rounds = self.figures.runs.len() / 2;
        let runs = if rounds == 1 { String::new() } else { format!(", mean of {rounds} runs each") };
        let findings: Vec<String> = self.findings().iter().map(|finding| format!("{finding}\n")).collect();
        format!(
            "Real programs for {} s{runs}, as they are (left) and with Takt (right).\n\
             needs: what a frame takes on the idle machine. work: that of all frames, as a share of one renderer's time.\n\n{}\n{}",
            self.figures.seconds,
            table.render(),
            findings.concat()
        )
    }

    fn cells(&self, scheduled: bool, index: usize) -> Vec<String> {
        let mean =
            |value: &dyn Fn(&LiveAppFigures) -> f64| self.mean(scheduled, |run| value(&run.apps[index]));
        let or_none = |is_there: bool, cell: String| if is_there { cell } else { "-".to_owned() };
        let due = self.figures.roles[index].fps > 0.0;
        let met = mean(&|app| app.figures.met_share.unwrap_or(0.0));
        let fps = mean(&|app| app.figures.fps);
        vec![
            format!("{fps:.1}"),
            or_none(due, rough(met)),
            or_none(fps > 0.0, rough_ms(mean(&|app| app.figures.response_us.p99))),
            rough(mean(&|app| app.gpu_share)),
        ]
    }

    fn mean(&self, scheduled: bool, value: impl Fn(&RunFigures) -> f64) -> f64 {
        let runs: Vec<f64> =
            self.figures.runs.iter().filter(|run| run.scheduled == scheduled).map(value).collect();
        runs.iter().sum::<f64>() / runs.len().max(1) as f64
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (index, role) in self.figures.roles.iter().enumerate().filter(|(_, role)| !role.is_flood()) {
            let met =
                |scheduled| self.mean(scheduled, |run| run.apps[index].figures.met_share.unwrap_or(0.0));
            findings.push(format!(
                "The {} met {} of its deadlines without Takt, and {} with it.",
                role.name,
                rough(met(false)),
                rough(met(true))
            ));
        }
        let blocked: Vec<&Quantiles> =
            self.figures.runs.iter().filter_map(|run| run.blocked_us.as_ref()).collect();
        if let (Some(role), false) = (self.figures.roles.first(), blocked.is_empty()) {
            let p99 = blocked.iter().map(|run| run.p99).sum::<f64>() / blocked.len() as f64;
            findings.push(format!(
                "With Takt, work of the {} that was ready waited for that of others for {} ms at most in 99 of \
                 100 cases, {} ms in the worst.",
                role.name,
                rough_ms(p99),
                rough_ms(blocked.iter().map(|run| run.max).fold(0.0, f64::max))
            ));
        }
        let rest = |scheduled| rough(self.mean(scheduled, |run| run.floods_share_of_rest));
        let all = |scheduled| rough(self.mean(scheduled, |run| run.floods_share_of_processors));
        findings.push(format!(
            "The floods did {} of what one renderer can do in the time that the others left without Takt, and {} \
             with it. (Without Takt, {} processors render at once: {} of all their time; with it, one at a time: {}.)",
            rest(false),
            rest(true),
            self.figures.processors,
            all(false),
            all(true)
        ));
        findings.extend(self.doubts());
        findings.push(self.figures.in_short());
        findings
    }

    /// What speaks against the figures.
    fn doubts(&self) -> Vec<String> {
        let mut findings = Vec::new();
        if let Some(role) = self.figures.roles.iter().find(|role| role.is_off()) {
            findings.push(format!(
                "The machine was busy with other things: a frame of the {} takes {:.1} ms, not {:.0}. \
                 Repeat this on an idle one.",
                role.name,
                role.alone_ms[0],
                role.wanted_ms.unwrap_or_default()
            ));
        }
        findings.extend(self.reserves_too_much());
        for run in &self.figures.runs {
            if let Some(text) = run.foreign.text() {
                findings.push(format!(
                    "While it ran {}, {text}; repeat this on a quiet machine.",
                    name(run.scheduled)
                ));
            }
        }
        let said = self.figures.runs.iter().flat_map(|run| &run.said);
        let lost: Vec<&String> =
            said.filter(|line| line.contains("unscheduled") || line.contains("not scheduled")).collect();
        if let Some(first) = lost.first() {
            findings.push(format!(
                "{} times a program went on without the daemon ({first}), so these runs are not all under Takt.",
                lost.len()
            ));
        }
        findings
    }

    /// Says so if not even the smallest versions leave enough time.
    fn reserves_too_much(&self) -> Option<String> {
        let share: f64 = self.figures.roles.iter().map(Role::reserved_share).sum();
        (share > RESERVED_MAX).then(|| {
            format!(
                "This machine is slow: the smallest versions reserve {} of what it renders, more than the {} that \
                 leave room for the rest.",
                rough(share),
                rough(RESERVED_MAX)
            )
        })
    }
}

/// The share of deadlines that an app must meet to count as on time.
const ON_TIME: f64 = 0.99;

impl LiveFigures {
    /// Whether every app with a frame rate was on time with Takt, in every run.
    pub(crate) fn is_kept(&self) -> bool {
        self.worst(true) >= ON_TIME
    }

    /// What the app that met the fewest deadlines met, in the worst run.
    fn worst(&self, scheduled: bool) -> f64 {
        let runs = self.runs.iter().filter(|run| run.scheduled == scheduled);
        let met = runs.flat_map(|run| &run.apps).filter_map(|app| app.figures.met_share);
        met.fold(1.0, f64::min)
    }

    /// The outcome in one sentence.
    fn in_short(&self) -> String {
        let names: Vec<&str> =
            self.roles.iter().filter(|role| !role.is_flood()).map(|role| role.name.as_str()).collect();
        let floods = self.roles.len() - names.len();
        let who = match names.as_slice() {
            [one] => format!("the {one}"),
            [first @ .., last] => format!("the {} and the {last}", first.join(", the ")),
            [] => "nothing".to_owned(),
        };
        let (beside, flood) = match floods {
            1 => ("a program that floods the GPU".to_owned(), "the flood"),
            _ => (format!("{floods} programs that flood the GPU"), "the floods"),
        };
        let (without, with) = (rough(self.worst(false)), rough(self.worst(true)));
        let with_takt: Vec<&RunFigures> = self.runs.iter().filter(|run| run.scheduled).collect();
        let rest =
            with_takt.iter().map(|run| run.floods_share_of_rest).sum::<f64>() / with_takt.len().max(1) as f64;
        if self.is_kept() {
            return format!(
                "In short: beside {beside}, {who} came on time with Takt ({with} of the pictures at worst, {without} \
                 without it), and {flood} still got {} of the time that was left.",
                rough(rest.min(1.0))
            );
        }
        let foreign = with_takt.iter().find_map(|run| run.foreign.text());
        let why = foreign.map_or_else(|| "see the table".to_owned(), |text| format!("{text} meanwhile"));
        format!(
            "In short: beside {beside}, {who} did not all come on time with Takt here: {with} of the pictures at \
             worst, and {without} without it; {why}."
        )
    }
}

/// A share as people say it: whole percents, and one digit more where that tells nearly all from all.
fn rough(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        percent if share >= 1.0 || percent < 99.0 => format!("{percent:.0} %"),
        percent => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
    }
}

/// Milliseconds from microseconds, as people say them.
fn rough_ms(us: f64) -> String {
    let ms = us / 1000.0;
    if ms < 10.0 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

pub(super) fn name(scheduled: bool) -> &'static str {
    if scheduled { "with Takt" } else { "without Takt" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use takt_trace::frames::Window;

    /// A run of two programs, of which the first met that share of its deadlines.
    fn pair(scheduled: bool, met_share: f64) -> RunFigures {
        let window = Window { from: 0, until: 1_000_000_000 };
        let figures = FrameFigures { met_share: Some(met_share), ..judge(&[], 60.0, window).0 };
        let dial = LiveAppFigures { name: "dial".to_owned(), figures, gpu_share: 0.1 };
        RunFigures {
            scheduled,
            apps: vec![dial],
            said: vec![],
            foreign: Foreign::default(),
            blocked_us: None,
            floods_share: 0.5,
            floods_share_of_rest: 0.625,
            floods_share_of_processors: 0.3,
        }
    }

    #[test]
    fn the_last_sentence_is_the_one_that_the_readme_shows() {
        let role = |name: &str, fps: f64| Role {
            name: name.to_owned(),
            program: "takt-speedometer",
            arguments: vec![],
            priority: 1,
            fps,
            alone_ms: [1.0, 2.0],
            wanted_ms: None,
        };
        let mut runs = Runs::new(Cast::Pair, vec![role("dial", 60.0), role("flood-1", 0.0)], 1);
        runs.figures.runs = vec![pair(false, 0.5), pair(true, 0.995)];
        assert!(runs.figures.is_kept());
        let said = runs.figures.in_short();
        assert!(said.contains("(99.5 % of the pictures at worst, 50 % without it)"), "{said}");
        assert!(said.ends_with("and the flood still got 62 % of the time that was left."), "{said}");
        let readme = include_str!("../../../../../README.md");
        let shown = readme
            .lines()
            .find_map(|line| line.strip_suffix(" …").filter(|line| line.starts_with("In short")));
        assert!(shown.is_some_and(|shown| said.starts_with(shown)), "{shown:?}: {said}");
        runs.figures.runs[1] = pair(true, 0.9);
        assert!(!runs.figures.is_kept() && runs.figures.in_short().contains("did not all come on time"));
    }

    #[test]
    fn shares_are_rounded_so_that_nearly_all_is_not_all() {
        for (share, said) in [
            (1.0, "100 %"),
            (0.9999, "99.9 %"),
            (0.9912, "99.1 %"),
            (0.98, "98 %"),
            (0.003, "0 %"),
            (2.45, "245 %"),
        ] {
            assert_eq!(rough(share), said);
        }
        assert_eq!([900.0, 9_940.0, 52_400.0].map(rough_ms), ["0.9", "9.9", "52"]);
    }
}
