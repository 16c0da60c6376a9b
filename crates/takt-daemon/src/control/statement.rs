//! Whether the daemon says "guaranteed" of an app, or why not.
//!
//! The core's test says which contracts fit onto the GPU together. The promise needs more than that:
//! what `docs/guarantee.md` assumes must be so now, on this machine. `decide` is the one place that
//! says the word, and it says it only while nothing is known against it. Everything that it looks at is
//! in `Facts`, so each `Reason` is tested by itself.

use std::fmt;

use serde::Serialize;
use takt_core::{Estimate, Span};

use super::coverage::SHARED_GAPS;

/// How far the model of the GPU (slice and switch) can be relied on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GpuModel {
    /// The configuration has it.
    Given,
    /// It was measured on this machine, on the GPUs of these names in the store.
    Measured(Vec<String>),
    /// It is being measured.
    Measuring,
    /// It was not measured; why, in one clause.
    Unmeasured(String),
}

impl Default for GpuModel {
    fn default() -> Self {
        Self::Unmeasured("the GPU was not measured; takt profile does that".to_owned())
    }
}

/// A process that has the GPU open and is no client.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Outsider {
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its name, as the system has it.
    pub name: String,
    /// The device file that it has open.
    pub device: String,
}

/// Who uses the GPU without being scheduled.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Outsiders {
    /// Those that were found.
    #[serde(rename = "outsiders")]
    pub found: Vec<Outsider>,
    /// Why there may be others that the daemon cannot see, in one clause.
    pub unseen: Option<String>,
}

/// What an app was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    /// Nothing.
    Nothing,
    /// The deadlines of its frames.
    Frames,
    /// GPU time in each period.
    Server,
}

/// What was seen of an app lately.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    /// Frames, or jobs of its server, that ended in the last [`SEEN_WITHIN`].
    pub(crate) frames: usize,
    /// GPU time of these frames, in the median.
    pub(crate) usual: Span,
    /// The longest prediction of the groups that came in that time.
    pub(crate) longest: Estimate,
    /// Deadlines missed in the last [`MISSED_WITHIN`], those of its start left out.
    pub(crate) missed: Missed,
}

/// Deadlines that an app missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Missed {
    /// How many.
    pub(crate) count: u64,
    /// Those of them that passed within [`JOINED_WITHIN`] of another app's joining.
    pub(crate) joining: u64,
    /// How long ago the last one was.
    pub(crate) ago: Span,
}

/// Frames are looked for in the last two seconds.
pub(crate) const SEEN_WITHIN: Span = Span::from_ms(2_000);
/// A missed deadline counts for a minute.
pub(crate) const MISSED_WITHIN: Span = Span::from_ms(60_000);
/// For so long an app that joined may delay others, by what it had on the GPU before and by what its driver does to
/// set up its contexts.
pub(crate) const JOINED_WITHIN: Span = Span::from_ms(2_000);
/// Quantiles of measured times have three digits, and a frame may use all that it reserved.
const ROUNDING_PERMILLE: u32 = 1_002;

/// What a group takes of the budget of its server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BudgetedGroup {
    /// What the longest group needs at most, with what the GPU adds.
    pub(crate) needs: Span,
    /// The budget of each period.
    pub(crate) budget: Span,
    /// What that group takes alone, if a runtime says how much that may be.
    pub(crate) alone: Option<Span>,
}

/// Everything that the statement about an app depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) promise: Promise,
    /// Whether the core's test passes for it and all more important contracts.
    pub(crate) covered: bool,
    /// GPU time that it reserved per frame.
    pub(crate) etpf: Span,
    /// What its longest group takes of the budget of its server, and that budget.
    pub(crate) job: Option<BudgetedGroup>,
    /// Its renderer works on the CPU.
    pub(crate) on_cpu: bool,
    /// The GPU that it draws on, if it said so.
    pub(crate) gpu: Option<&'a str>,
    pub(crate) model: &'a GpuModel,
    pub(crate) outsiders: &'a Outsiders,
    /// A tool paused it.
    pub(crate) paused: bool,
    /// The policy in force, if it keeps no contracts.
    pub(crate) lax_policy: Option<&'a str>,
    /// Its frames have gaps, and other apps share them.
    pub(crate) shared_gaps: bool,
    /// Names of other apps whose work runs even if it cannot be cut and fits nowhere.
    pub(crate) uncut: &'a [String],
    pub(crate) seen: Seen,
}

/// Why an app is not guaranteed anything.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Reason {
    /// It has no contract.
    NoContract,
    /// A tool paused it.
    Paused,
    /// The policy of that name keeps no contracts.
    Policy(String),
    /// The contracts do not fit together.
    NotCovered,
    /// Its frames have both gaps and sources.
    SharedGaps,
    /// Its renderer works on the CPU, whose time depends on other processes.
    OnCpu,
    /// The GPU was not measured, or not this one.
    NoModel(String),
    /// Processes use the GPU and are not scheduled.
    Outsiders(String),
    /// There may be such processes.
    Unseen(String),
    /// Apps may run work that cannot be cut, whatever it delays.
    Uncut(String),
    /// No frame ended lately.
    NoFrames,
    /// Its frames take longer than it reserved.
    OverReserved {
        /// The median of the last ones.
        usual: Span,
        /// What it reserved.
        etpf: Span,
    },
    /// A group is longer than its runtime: it needs slack, and no promise covers it.
    OverRuntime(BudgetedGroup),
    /// It missed deadlines lately.
    Missed(Missed),
}

impl Reason {
    /// Its name in JSON, metrics and logs.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::NoContract => "no-contract",
            Self::Paused => "paused",
            Self::Policy(_) => "policy",
            Self::NotCovered => "not-covered",
            Self::SharedGaps => "shared-gaps",
            Self::OnCpu => "cpu-renderer",
            Self::NoModel(_) => "gpu-unmeasured",
            Self::Outsiders(_) => "outsiders",
            Self::Unseen(_) => "unseen",
            Self::Uncut(_) => "uncut",
            Self::NoFrames => "no-frames",
            Self::OverReserved { .. } => "over-reserved",
            Self::OverRuntime(_) => "over-runtime",
            Self::Missed(_) => "missed",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |span: &Span| span.as_ns() as f64 / 1e6;
        match self {
            Self::NoContract => f.write_str("it reserves no GPU time"),
            Self::Paused => f.write_str("it is paused; takt set --resume lets it go on"),
            Self::Policy(name) => write!(f, "policy {name} keeps no contracts; timeline does"),
            Self::NotCovered => f.write_str(
                "it and the more important apps reserve more than the GPU has; lower an etpf, a runtime or a frame \
                 rate",
            ),
            Self::SharedGaps => f.write_str(SHARED_GAPS),
            Self::OnCpu => {
                f.write_str("its renderer works on the CPU, where every other process can delay it")
            }
            Self::NoModel(why) | Self::Outsiders(why) | Self::Unseen(why) => f.write_str(why),
            Self::Uncut(names) => {
                write!(f, "{names} may run work that cannot be cut, whatever it delays (uncut = \"run\")")
            }
            Self::NoFrames => {
                write!(f, "none of its frames ended in the last {} s", SEEN_WITHIN.as_ns() / 1_000_000_000)
            }
            Self::OverReserved { usual, etpf } => {
                let (usual, etpf) = (ms(usual), ms(etpf));
                write!(f, "half of its frames took {usual:.2} ms or more, and it reserved {etpf}")
            }
            Self::OverRuntime(BudgetedGroup { needs, budget, .. }) if *needs >= Span::FOREVER => {
                write!(f, "a group of unknown length came, and {:.2} ms are reserved for it", ms(budget))
            }
            Self::OverRuntime(BudgetedGroup { needs, budget, alone }) => {
                let (needs, budget) = (ms(needs), ms(budget));
                write!(
                    f,
                    "a group takes up to {needs:.2} ms with what the GPU adds, and {budget:.2} ms are reserved for it"
                )?;
                // Rounded up, or it would not.
                let enough = alone.map(|alone| (ms(&alone) * 100.0).ceil() / 100.0);
                enough.map_or(Ok(()), |enough| write!(f, ": a runtime of {enough:.2} ms holds it"))
            }
            Self::Missed(missed) => missed.fmt(f),
        }
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = |span: Span| span.as_ns() / 1_000_000_000;
        let Self { count, joining, ago } = *self;
        let deadlines = if count == 1 { "deadline" } else { "deadlines" };
        write!(
            f,
            "it missed {count} {deadlines} in the last {} s, the last one {} s ago",
            s(MISSED_WITHIN),
            s(ago)
        )?;
        match joining {
            0 => Ok(()),
            all if all == count => write!(f, ", while another app started"),
            some => write!(f, ", {some} of them while another app started"),
        }
    }
}

/// What the daemon says of an app.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Statement {
    /// Its deadlines are guaranteed; or its runtime, if it has a server.
    Guaranteed(Promise),
    /// They are not; `covered` says whether the core keeps time for it all the same.
    Not {
        /// Whether it is protected.
        covered: bool,
        /// The first reason that was found.
        why: Reason,
    },
}

impl Statement {
    /// Whether the word is said.
    pub(crate) fn is_guaranteed(&self) -> bool {
        matches!(self, Self::Guaranteed(_))
    }

    /// Why not, if so.
    pub(crate) fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Guaranteed(_) => None,
            Self::Not { why, .. } => Some(why),
        }
    }

    /// Whether both say the same but for figures, which change all the time.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.reason().map(Reason::name) == other.reason().map(Reason::name)
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Guaranteed(Promise::Server) => {
                f.write_str("protected: its runtime is guaranteed in each period")
            }
            Self::Guaranteed(_) => f.write_str("protected: its deadlines are guaranteed"),
            Self::Not { covered: true, why } => write!(f, "protected, not guaranteed: {why}"),
            Self::Not { covered: false, why } => write!(f, "not protected: {why}"),
        }
    }
}

/// What is to be said of an app: the first reason against a guarantee, by how much it takes to remove it.
pub(crate) fn decide(facts: &Facts<'_>) -> Statement {
    match against(facts) {
        None => Statement::Guaranteed(facts.promise),
        Some(why) => {
            let covered = facts.covered && facts.promise != Promise::Nothing;
            Statement::Not { covered, why }
        }
    }
}

fn against(facts: &Facts<'_>) -> Option<Reason> {
    let Facts { promise, covered, etpf, on_cpu, seen, .. } = *facts;
    let limit = etpf.scaled(ROUNDING_PERMILLE, 1000);
    if promise == Promise::Nothing {
        Some(Reason::NoContract)
    } else if facts.paused {
        Some(Reason::Paused)
    } else if let Some(policy) = facts.lax_policy {
        Some(Reason::Policy(policy.to_owned()))
    } else if !covered {
        Some(Reason::NotCovered)
    } else if facts.shared_gaps {
        Some(Reason::SharedGaps)
    } else if on_cpu {
        Some(Reason::OnCpu)
    } else if let Some(why) = without_model(facts) {
        Some(Reason::NoModel(why))
    } else if !facts.outsiders.found.is_empty() {
        Some(Reason::Outsiders(name_outsiders(&facts.outsiders.found)))
    } else if let Some(why) = &facts.outsiders.unseen {
        Some(Reason::Unseen(why.clone()))
    } else if !facts.uncut.is_empty() {
        Some(Reason::Uncut(facts.uncut.join(", ")))
    } else if seen.frames == 0 {
        Some(Reason::NoFrames)
    } else if etpf > Span::ZERO && seen.usual > limit {
        Some(Reason::OverReserved { usual: seen.usual, etpf })
    } else if let Some(job) = facts.job.filter(|job| job.needs > job.budget) {
        Some(Reason::OverRuntime(job))
    } else if seen.missed.count > 0 {
        Some(Reason::Missed(seen.missed))
    } else {
        None
    }
}

/// Why the model of the GPU says nothing about this app, if so.
fn without_model(facts: &Facts<'_>) -> Option<String> {
    match (facts.model, facts.gpu) {
        (GpuModel::Given, _) | (GpuModel::Measured(_), None) => None,
        (GpuModel::Measured(gpus), Some(gpu)) => {
            let known = gpus.iter().any(|known| known == gpu);
            (!known).then(|| format!("the GPU that it uses ({gpu}) was not measured; takt profile does that"))
        }
        (GpuModel::Measuring, _) => Some("the GPU is being measured".to_owned()),
        (GpuModel::Unmeasured(why), _) => Some(why.clone()),
    }
}

/// Most outsiders that a sentence names.
const NAMED_MAX: usize = 3;

/// Outsiders in one clause.
fn name_outsiders(found: &[Outsider]) -> String {
    let named: Vec<String> =
        found.iter().take(NAMED_MAX).map(|one| format!("{} (process {})", one.name, one.pid)).collect();
    let others = match found.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        1 => " and another process".to_owned(),
        more => format!(" and {more} other processes"),
    };
    let verb = if found.len() == 1 { "has" } else { "have" };
    format!("{}{others} {verb} the GPU open outside of Takt", named.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    static FOUND: Outsiders = Outsiders { found: Vec::new(), unseen: None };

    /// An app of which everything is in order.
    fn good() -> Facts<'static> {
        Facts {
            promise: Promise::Frames,
            covered: true,
            etpf: Span::from_ms(3),
            job: None,
            on_cpu: false,
            gpu: None,
            model: &GpuModel::Given,
            outsiders: &FOUND,
            paused: false,
            lax_policy: None,
            shared_gaps: false,
            uncut: &[],
            seen: Seen { frames: 100, usual: Span::from_ms(3), ..Seen::default() },
        }
    }

    fn said(facts: &Facts<'_>) -> (String, String) {
        let statement = decide(facts);
        (statement.reason().map_or("", Reason::name).to_owned(), statement.to_string())
    }

    #[test]
    fn the_word_is_said_while_everything_holds() {
        assert_eq!(decide(&good()).to_string(), "protected: its deadlines are guaranteed");
        let server = Facts { promise: Promise::Server, etpf: Span::ZERO, ..good() };
        assert_eq!(decide(&server).to_string(), "protected: its runtime is guaranteed in each period");
        assert!(decide(&good()).is_guaranteed());
    }

    /// Each row is an app of which all is in order but for one fact, the name of the reason, and its clause.
    fn check(rows: &[(Facts<'_>, &str, &str)]) {
        for (facts, name, text) in rows {
            let (found, said) = said(facts);
            assert_eq!(found, *name, "{said}");
            assert!(said.starts_with(text), "{said}");
            assert!(!decide(facts).is_guaranteed() && !said.contains("are guaranteed"), "{said}");
        }
    }

    #[test]
    fn contracts_that_do_not_hold_withdraw_it() {
        let seen = good().seen;
        let (none, over, missed) = (
            Seen { frames: 0, ..seen },
            Seen { usual: Span::from_us(3_410), ..seen },
            Seen { missed: Missed { count: 3, joining: 0, ago: Span::from_ms(41_900) }, ..seen },
        );
        let but = "protected, not guaranteed:";
        check(&[
            (
                Facts { promise: Promise::Nothing, ..good() },
                "no-contract",
                "not protected: it reserves no GPU time",
            ),
            (Facts { paused: true, ..good() }, "paused", "protected, not guaranteed: it is paused"),
            (
                Facts { lax_policy: Some("fifo"), ..good() },
                "policy",
                "protected, not guaranteed: policy fifo keeps no contracts",
            ),
            (Facts { covered: false, ..good() }, "not-covered", "not protected: it and the more important"),
            (
                Facts { shared_gaps: true, ..good() },
                "shared-gaps",
                &format!("{but} its frames have both gaps and sources"),
            ),
            (
                Facts { seen: none, ..good() },
                "no-frames",
                &format!("{but} none of its frames ended in the last 2 s"),
            ),
            (
                Facts { seen: over, ..good() },
                "over-reserved",
                &format!("{but} half of its frames took 3.41 ms or more, and it reserved 3"),
            ),
            (
                Facts { seen: missed, ..good() },
                "missed",
                &format!("{but} it missed 3 deadlines in the last 60 s, the last one 41 s ago"),
            ),
        ]);
    }

    #[test]
    fn a_group_longer_than_the_runtime_withdraws_it() {
        let budget = Span::from_us(6_740);
        let server = |needs| Facts {
            promise: Promise::Server,
            etpf: Span::ZERO,
            job: Some(BudgetedGroup { needs, budget, alone: Some(Span::from_us(5_700)) }),
            ..good()
        };
        assert!(decide(&server(budget)).is_guaranteed());
        let but = "protected, not guaranteed:";
        check(&[
            (
                server(Span::from_us(7_300)),
                "over-runtime",
                &format!(
                    "{but} a group takes up to 7.30 ms with what the GPU adds, and 6.74 ms are reserved for it: a \
                     runtime of 5.70 ms holds it"
                ),
            ),
            (
                server(Span::FOREVER),
                "over-runtime",
                &format!("{but} a group of unknown length came, and 6.74 ms are reserved for it"),
            ),
        ]);
    }

    #[test]
    fn a_gpu_that_does_something_else_withdraws_it() {
        let games = ["game", "video"].map(str::to_owned);
        let hidden = Some("processes of other users are hidden".to_owned());
        let unseen = Outsiders { unseen: hidden, ..Outsiders::default() };
        let one = Outsider { pid: 7, uid: 1, name: "blender".to_owned(), device: "/dev/nvidia0".to_owned() };
        let outside = Outsiders { found: vec![one], unseen: None };
        let (unmeasured, measured) = (GpuModel::default(), GpuModel::Measured(vec!["h200-1".to_owned()]));
        let other = Facts { model: &measured, gpu: Some("other-2"), ..good() };
        let but = |why: &str| format!("protected, not guaranteed: {why}");
        check(&[
            (Facts { on_cpu: true, ..good() }, "cpu-renderer", &but("its renderer works on the CPU")),
            (Facts { model: &unmeasured, ..good() }, "gpu-unmeasured", &but("the GPU was not measured")),
            (
                Facts { model: &GpuModel::Measuring, ..good() },
                "gpu-unmeasured",
                &but("the GPU is being measured"),
            ),
            (other, "gpu-unmeasured", &but("the GPU that it uses (other-2) was not measured")),
            (
                Facts { outsiders: &outside, ..good() },
                "outsiders",
                &but("blender (process 7) has the GPU open outside of Takt"),
            ),
            (Facts { outsiders: &unseen, ..good() }, "unseen", &but("processes of other users are hidden")),
            (Facts { uncut: &games, ..good() }, "uncut", &but("game, video may run work that cannot be cut")),
        ]);
        assert!(decide(&Facts { model: &measured, gpu: Some("h200-1"), ..good() }).is_guaranteed());
        let unnamed = Facts { model: &measured, ..good() };
        assert!(decide(&unnamed).is_guaranteed(), "it does not say on which GPU");
    }

    #[test]
    fn outsiders_are_named_and_the_rest_counted() {
        let of = |count: u32| -> String {
            let one = |pid| Outsider { pid, uid: 0, name: format!("p{pid}"), device: String::new() };
            name_outsiders(&(1..=count).map(one).collect::<Vec<_>>())
        };
        assert_eq!(of(2), "p1 (process 1), p2 (process 2) have the GPU open outside of Takt");
        assert!(of(4).contains("p3 (process 3) and another process have"), "{}", of(4));
        assert!(of(9).contains(" and 6 other processes have"), "{}", of(9));
    }

    #[test]
    fn misses_say_when_and_beside_what() {
        let of = |count: u64, joining: u64| Missed { count, joining, ago: Span::from_ms(7_000) }.to_string();
        let begins = "it missed 1 deadline in the last 60 s, the last one 7 s ago";
        assert_eq!(of(1, 0), begins);
        assert_eq!(of(1, 1), format!("{begins}, while another app started"));
        assert!(of(5, 2).ends_with("7 s ago, 2 of them while another app started"), "{}", of(5, 2));
    }

    #[test]
    fn other_figures_are_the_same_statement() {
        let missed = |count| {
            let missed = Missed { count, ..Missed::default() };
            decide(&Facts { seen: Seen { missed, ..good().seen }, ..good() })
        };
        assert!(missed(3).is_like(&missed(4)) && !missed(0).is_like(&missed(1)));
    }
}
