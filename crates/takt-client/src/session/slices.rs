//! The time slices that a program sets for its contexts while it is scheduled.

use takt_ipc::message::TimeSlices;
use takt_slices::{Keeper, Report, Slices};

use super::Session;

impl Session {
    /// Sets the time slices that the program is to have as long as it is scheduled, if something changed. Where the
    /// library for that is not loaded, as on all GPUs but NVIDIA's, nothing happens.
    pub(super) fn keep_slices(&self) {
        let keeper = self.slices.get_or_init(|| Keeper::new(Slices::find()));
        if !keeper.is_able() {
            return;
        }
        let turn_us = self.wish.want(self.view.turn_us());
        keeper.want((turn_us > 0).then_some(turn_us));
        if let Some(slices) = keeper.keep().as_ref().and_then(told) {
            self.locked(|link| link.has_slices(slices));
        }
        self.keep_told();
    }
}

/// What the daemon hears of time slices; nothing if there are none yet.
fn told(report: &Report) -> Option<TimeSlices> {
    let us = |us: u64| u32::try_from(us).unwrap_or(u32::MAX);
    let known = TimeSlices { shortest_us: us(report.shortest_us), longest_us: us(report.longest_us) };
    let is_known = report.status == takt_slices::abi::OK;
    (report.groups > 0).then_some(if is_known { known } else { TimeSlices::UNKNOWN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slices_that_were_all_read_are_told() {
        let report = Report { groups: 2, kept: 1, shortest_us: 300, longest_us: 2_048, ..Report::default() };
        assert_eq!(told(&report), Some(TimeSlices { shortest_us: 300, longest_us: 2_048 }));
        assert_eq!(
            told(&Report { status: 27, ..report }),
            Some(TimeSlices::UNKNOWN),
            "one could not be read"
        );
        assert_eq!(told(&Report::default()), None, "it has no contexts");
    }
}
