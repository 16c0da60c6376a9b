//! What must hold in every run, live or simulated, under every policy.
//!
//! [`Rules`] looks at records alone and knows nothing of policies: what comes out of the core must
//! fit to what went in. Simulated and live runs are checked by the same code.

use std::collections::{BTreeMap, VecDeque};

use takt_core::{Action, AppId, Config, Event, Gpu, GroupId, Refusal, Time};

use crate::record::{Observer, Record};

/// Broken rules that are described; more are only counted.
const DESCRIBED_MAX: usize = 20;

/// Checks that records make sense together.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Most groups in flight, if known.
    mpcg: Option<u32>,
    last: Time,
    apps: BTreeMap<AppId, App>,
    /// Apps that are said to leave; the core has still to say that they are gone.
    leaving: BTreeMap<AppId, VecDeque<App>>,
    flying: BTreeMap<GroupId, AppId>,
    /// Groups that were completed at this very moment.
    landed: Vec<GroupId>,
    records: u64,
    broken: Vec<String>,
    count: u64,
}

#[derive(Clone, Debug, Default)]
struct App {
    /// Waiting groups in the order of their submission, and whether they were on the GPU before.
    waiting: VecDeque<(GroupId, bool)>,
    /// The frame that is finished next.
    next_frame: u64,
    /// The core did not refuse it.
    attached: bool,
}

impl Rules {
    /// The rules of a core with these parameters. Where groups end in any order, the core itself checks
    /// places, which groups that are late, and divisible ones, do not keep.
    pub fn of(config: &Config) -> Self {
        match config.gpu {
            Gpu::TimeShared { .. } => Self::default(),
            _ if config.divisible.is_some() => Self::default(),
            _ => Self::new(config.clamped().mpcg),
        }
    }

    /// At most `mpcg` groups may be in flight.
    fn new(mpcg: u32) -> Self {
        Self { mpcg: Some(mpcg), ..Self::default() }
    }

    /// Records seen.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Rules that were broken, in words; the first ones if there were many.
    pub fn broken(&self) -> &[String] {
        &self.broken
    }

    /// How many were broken.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn blame(&mut self, at: Time, what: impl FnOnce() -> String) {
        self.count += 1;
        if self.broken.len() < DESCRIBED_MAX {
            self.broken.push(format!("at {} ns: {}", at.as_ns(), what()));
        }
    }

    fn event(&mut self, event: &Event) {
        match *event {
            Event::Join { app, .. } => {
                self.apps.entry(app).or_default();
            }
            Event::Submit { app, group, .. } => {
                if let Some(app) = self.apps.get_mut(&app) {
                    app.waiting.push_back((group, false));
                }
            }
            Event::Complete { group, .. } => {
                if self.flying.remove(&group).is_some() {
                    self.landed.push(group);
                }
                // One that was taken back may have finished just before.
                for app in self.apps.values_mut() {
                    app.waiting.pop_front_if(|(front, taken_back)| *taken_back && *front == group);
                }
            }
            Event::Leave { app } => {
                if let Some(left) = self.apps.remove(&app) {
                    self.leaving.entry(app).or_default().push_back(left);
                }
            }
            Event::Adjust(adjustable) => {
                // What is in flight stays there.
                let flying = u32::try_from(self.flying.len()).unwrap_or(u32::MAX);
                self.mpcg = self.mpcg.map(|_| adjustable.mpcg.max(flying));
            }
            Event::Change { .. }
            | Event::EndFrame { .. }
            | Event::Refresh { .. }
            | Event::Revise { .. }
            | Event::Focus { .. } => {}
        }
    }

    /// The app that the core speaks of: one that leaves before one that takes its slot.
    fn app(&mut self, app: AppId) -> Option<&mut App> {
        let leaving = self.leaving.get_mut(&app).and_then(|apps| apps.front_mut());
        leaving.or_else(|| self.apps.get_mut(&app))
    }

    fn action(&mut self, at: Time, action: &Action) {
        match *action {
            Action::Dispatch { app, group, .. } => self.dispatched(at, app, group),
            Action::Preempt { app, group } => {
                if self.flying.remove(&group).is_none() {
                    self.blame(at, || format!("group {} is taken back, but is not in flight", group.0));
                } else if let Some(app) = self.app(app) {
                    app.waiting.push_front((group, true));
                }
            }
            Action::Hold { app, .. } => {
                if self.app(app).is_none_or(|app| app.waiting.is_empty()) {
                    self.blame(at, || format!("app {} is held back, but has nothing that waits", app.0));
                }
            }
            Action::Refused { app, group, reason } => self.refused(app, group, reason),
            Action::FrameDone(done) => {
                if done.met && done.finished > done.deadline {
                    self.blame(at, || {
                        format!("frame {} of app {} counts as met, but ended late", done.frame, done.app.0)
                    });
                }
                let Some(app) = self.app(done.app) else {
                    return self
                        .blame(at, || format!("a frame of app {} ended, which is not attached", done.app.0));
                };
                let expected = std::mem::replace(&mut app.next_frame, done.frame + 1);
                if expected != done.frame {
                    self.blame(at, || {
                        format!("frame {} of app {} ended, not frame {expected}", done.frame, done.app.0)
                    });
                }
            }
            Action::Lost { group, .. } => {
                // A completion may come when it was just given up.
                if self.flying.remove(&group).is_none() && !self.landed.contains(&group) {
                    self.blame(at, || format!("group {} is lost, but was not in flight", group.0));
                }
            }
            Action::Left { app, dropped } => self.left(at, app, dropped),
            Action::Missed { app, deadline, .. } => {
                if deadline > at {
                    self.blame(at, || format!("app {} missed a deadline that is still to come", app.0));
                }
            }
            Action::Release { app, .. } => match self.app(app) {
                Some(app) => app.attached = true,
                None => self.blame(at, || format!("app {} is released, which is not attached", app.0)),
            },
            Action::Ranked { .. } => {}
            Action::Broken(broken) => self.blame(at, || broken.to_string()),
        }
    }

    fn dispatched(&mut self, at: Time, app: AppId, group: GroupId) {
        let first = self.app(app).and_then(|app| app.waiting.pop_front());
        match first {
            Some((first, _)) if first == group => {}
            Some((first, _)) => {
                self.blame(at, || format!("group {} of app {} overtakes {}", group.0, app.0, first.0));
            }
            None => self.blame(at, || format!("group {} of app {} did not wait", group.0, app.0)),
        }
        if self.flying.insert(group, app).is_some() {
            self.blame(at, || format!("group {} is dispatched twice", group.0));
        }
        if let Some(mpcg) = self.mpcg.filter(|mpcg| self.flying.len() > *mpcg as usize) {
            self.blame(at, || format!("more than {mpcg} groups are in flight"));
        }
    }

    /// A refused submission does not wait, and a refused app is not there.
    fn refused(&mut self, id: AppId, group: Option<GroupId>, reason: Refusal) {
        let Some(app) = self.app(id) else {
            return;
        };
        match group {
            Some(group) if reason != Refusal::UnknownGroup => {
                let place = app.waiting.iter().rposition(|(waiting, _)| *waiting == group);
                place.and_then(|place| app.waiting.remove(place));
            }
            None if !app.attached && reason != Refusal::SlotTaken => {
                self.apps.remove(&id);
            }
            _ => {}
        }
    }

    fn left(&mut self, at: Time, app: AppId, dropped: u32) {
        let leaving = self.leaving.get_mut(&app).and_then(VecDeque::pop_front);
        let Some(left) = leaving.or_else(|| self.apps.remove(&app)) else {
            return self.blame(at, || format!("app {} left, which was not attached", app.0));
        };
        if left.waiting.len() != dropped as usize {
            self.blame(at, || {
                format!("app {} left with {} waiting groups, not {dropped}", app.0, left.waiting.len())
            });
        }
    }
}

impl Observer for Rules {
    fn record(&mut self, at: Time, record: &Record) {
        self.records += 1;
        if at < self.last {
            self.blame(at, || "time runs backwards".to_owned());
        }
        if at > self.last {
            self.landed.clear();
            self.last = at;
        }
        match record {
            Record::In(event) => self.event(event),
            Record::Out(action) => self.action(at, action),
            Record::Gap { records } => {
                let records = *records;
                self.blame(at, || format!("{records} records are missing"));
            }
            Record::Gpu(_) | Record::Vsync(_) | Record::Turn | Record::Policy(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Pick, run};
    use takt_core::{GroupKind, Period, Span};

    fn judge(records: &[(Time, Record)], mpcg: u32) -> Rules {
        let mut rules = Rules::new(mpcg);
        records.iter().for_each(|(at, record)| rules.record(*at, record));
        rules
    }

    #[test]
    fn a_sound_run_breaks_no_rule_and_a_cut_one_does() {
        let whole = run(Pick::Important, 20);
        let rules = judge(&whole, 8);
        assert_eq!((rules.count(), rules.broken()), (0, &[][..]));
        assert_eq!(rules.records(), whole.len() as u64);
        let submits = |record: &Record| matches!(record, Record::In(Event::Submit { .. }));
        let first = whole.iter().position(|(_, record)| submits(record)).expect("a submission");
        let mut cut = whole.clone();
        cut.remove(first);
        assert!(judge(&cut, 8).count() > 0);
        let mut swapped = whole.clone();
        swapped.swap(0, whole.len() - 1);
        assert!(judge(&swapped, 8).broken().iter().any(|broken| broken.contains("backwards")));
        let gap = [(Time::ZERO, Record::Gap { records: 4 })];
        assert_eq!(judge(&gap, 8).broken(), ["at 0 ns: 4 records are missing"]);
    }

    #[test]
    fn every_dispatch_is_looked_at() {
        let (app, at) = (AppId(0), Time::ZERO);
        let join = run(Pick::Important, 1)
            .into_iter()
            .find(|(_, record)| matches!(record, Record::In(Event::Join { app: AppId(0), .. })));
        let submit = |group| {
            let estimate = takt_core::Estimate::default();
            (at, Record::In(Event::Submit { app, group: GroupId(group), kind: GroupKind::Draw, estimate }))
        };
        let dispatch = |group| {
            let (target, start, reserved) = (Period(0), at, Span::ZERO);
            (at, Record::Out(Action::Dispatch { app, group: GroupId(group), target, start, reserved }))
        };
        let story = |rest: &[(Time, Record)]| {
            let mut records: Vec<_> = join.iter().copied().collect();
            records.extend([submit(1), submit(2)]);
            records.extend(rest);
            judge(&records, 1).broken().to_vec()
        };
        assert_eq!(story(&[dispatch(1)]), [""; 0]);
        assert_eq!(story(&[dispatch(2)]), ["at 0 ns: group 2 of app 0 overtakes 1"]);
        assert_eq!(story(&[dispatch(1), dispatch(2)]), ["at 0 ns: more than 1 groups are in flight"]);
        let twice = story(&[dispatch(1), dispatch(1)]);
        assert_eq!(twice, ["at 0 ns: group 1 of app 0 overtakes 2", "at 0 ns: group 1 is dispatched twice"]);
    }
}
