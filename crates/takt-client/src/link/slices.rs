//! Which time slices the program is to have on the GPU.

use takt_slices::Role;

use super::Link;

impl Link {
    /// How long a turn of the program's contexts is to last, in microseconds; 0 for the driver's own: it is not
    /// scheduled.
    pub(crate) fn turn_us(&self) -> u64 {
        let role = |contract| if contract { Role::Contract } else { Role::BestEffort };
        self.welcome().map_or(0, |welcome| role(welcome.standing.contract).slice_us())
    }
}
