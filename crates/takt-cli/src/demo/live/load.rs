//! What other programs do to the processors, which are the GPU here.

use std::collections::BTreeMap;
use std::fs;

use serde::Serialize;

/// Times of all processors and of all processes, in ticks of the kernel.
#[derive(Clone, Default, Debug)]
pub(crate) struct Load {
    total: u64,
    busy: u64,
    /// This process and all that it has started and that has ended.
    own: u64,
    /// Names and times by process. Those of ended children may be older than the measurement.
    processes: BTreeMap<u32, (String, u64)>,
}

/// Work of other programs in a while.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub(crate) struct Foreign {
    /// As a share of all processors.
    pub(crate) share: f64,
    /// The busiest programs, with their shares.
    pub(crate) programs: Vec<(String, f64)>,
}

/// Other programs do not matter below this.
const LITTLE: f64 = 0.05;
/// So many are named.
const NAMED: usize = 3;

impl Load {
    pub(crate) fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (total, busy) = processors(&stat).unwrap_or_default();
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let stat = |process: u32| fs::read_to_string(format!("/proc/{process}/stat")).ok();
        let me = std::process::id();
        let own = stat(me).and_then(|stat| times(&stat)).map_or(0, |times| times.with_children);
        let read = |process: u32| times(&stat(process)?).map(|times| (process, (times.name, times.alone)));
        let processes = numbers.filter(|process| *process != me).filter_map(read).collect();
        Self { total, busy, own, processes }
    }

    /// What others did since then, if everything that this process had started meanwhile has ended.
    pub(crate) fn foreign_since(&self, before: &Self) -> Foreign {
        let total = self.total.saturating_sub(before.total).max(1) as f64;
        let busy = self.busy.saturating_sub(before.busy);
        let own = self.own.saturating_sub(before.own);
        let share = busy.saturating_sub(own) as f64 / total;
        let mut by_name: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, (name, ticks)) in &self.processes {
            let old = before.processes.get(process).filter(|(old, _)| old == name).map_or(0, |(_, old)| *old);
            *by_name.entry(name).or_default() += ticks.saturating_sub(old);
        }
        let mut programs: Vec<(String, f64)> =
            by_name.into_iter().map(|(name, ticks)| (name.to_owned(), ticks as f64 / total)).collect();
        programs.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        programs.retain(|(_, share)| *share >= LITTLE / 5.0);
        programs.truncate(NAMED);
        Foreign { share, programs }
    }
}

impl Foreign {
    /// In words, if it matters.
    pub(crate) fn text(&self) -> Option<String> {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let named: Vec<String> =
            self.programs.iter().map(|(name, share)| format!("{name} {}", percent(*share))).collect();
        let named = if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) };
        (self.share >= LITTLE)
            .then(|| format!("other programs used {} of the processors{named}", percent(self.share)))
    }
}

/// All and busy ticks of all processors. Idle time and waiting for disks are not busy; guests count as users already.
fn processors(stat: &str) -> Option<(u64, u64)> {
    let ticks = stat.lines().next()?.strip_prefix("cpu ")?.split_ascii_whitespace().take(8);
    let ticks: Vec<u64> = ticks.filter_map(|tick| tick.parse().ok()).collect();
    let total: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Some((total, total - idle))
}

/// What the kernel says of a process.
#[derive(PartialEq, Eq, Debug)]
struct Times {
    name: String,
    alone: u64,
    /// With its ended children.
    with_children: u64,
}

fn times(stat: &str) -> Option<Times> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let ticks = rest.split_ascii_whitespace().skip(11).take(4);
    let ticks: Vec<u64> = ticks.filter_map(|tick| tick.parse().ok()).collect();
    let (alone, with_children) = (ticks.iter().take(2).sum(), ticks.iter().sum());
    Some(Times { name: name.to_owned(), alone, with_children })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(busy: u64, own: u64, others: &[(u32, &str, u64)]) -> Load {
        let processes = others.iter().map(|(process, name, ticks)| (*process, ((*name).to_owned(), *ticks)));
        Load { total: 1000 + busy, busy, own, processes: processes.collect() }
    }

    #[test]
    fn what_we_start_is_not_foreign() {
        let before = load(0, 50, &[(1, "init", 5), (7, "make", 10)]);
        let mut after = load(500, 350, &[(1, "init", 5), (7, "make", 160), (8, "rustc", 40)]);
        after.total = 2000;
        let foreign = after.foreign_since(&before);
        assert!((foreign.share - 0.2).abs() < 1e-9, "{foreign:?}");
        assert_eq!(
            foreign.text().as_deref(),
            Some("other programs used 20 % of the processors (make 15 %, rustc 4 %)")
        );
        assert_eq!(load(10, 10, &[]).foreign_since(&load(0, 0, &[])).text(), None);
    }

    #[test]
    fn times_are_read_where_the_kernel_writes_them() {
        assert_eq!(processors("cpu  10 1 4 80 5 0 0 0 3 0\ncpu0 1\n"), Some((100, 15)));
        let stat = "7 (a (b) c) S 1 7 7 0 -1 0 0 0 0 0 11 12 13 14 20 0 1";
        assert_eq!(times(stat), Some(Times { name: "a (b) c".to_owned(), alone: 23, with_children: 50 }));
        assert!(Load::now().total > 0);
    }
}
