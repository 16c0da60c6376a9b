//! How a GPU shares itself between processes, as a part of a profile:
//!
//! ```text
//! sharing.execution = time-shared
//! sharing.slice_us = 1024
//! sharing.switch_us = 160
//! sharing.delay_us = 45
//! ```
//!
//! All of it may be left out: older files have none, and then nothing is known.

use super::{Problem, number};

/// How processes share a GPU.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Sharing {
    /// Who runs when several processes have work.
    pub execution: Execution,
    /// What the way to the GPU and back adds to a draw, in microseconds: dispatch and completion
    /// delay together.
    pub delay_us: f64,
}

/// Who runs when several processes have work. Times are in microseconds.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Execution {
    /// Processes run at the same time, so there is no slice and no switch: a renderer on the CPU.
    SideBySide,
    /// Work is executed in the order in which it was submitted, from all processes.
    InOrder {
        /// What a change of processes costs.
        switch_us: f64,
    },
    /// Processes take turns.
    TimeShared {
        /// How long one process keeps the GPU while another has work.
        slice_us: f64,
        /// What a change of processes costs.
        switch_us: f64,
    },
}

impl Execution {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SideBySide => "side-by-side",
            Self::InOrder { .. } => "in-order",
            Self::TimeShared { .. } => "time-shared",
        }
    }

    /// How long a process keeps the GPU, if there is such a time.
    pub const fn slice_us(self) -> Option<f64> {
        match self {
            Self::TimeShared { slice_us, .. } => Some(slice_us),
            Self::SideBySide | Self::InOrder { .. } => None,
        }
    }

    /// What a change of processes costs, if there are changes.
    pub const fn switch_us(self) -> Option<f64> {
        match self {
            Self::TimeShared { switch_us, .. } | Self::InOrder { switch_us } => Some(switch_us),
            Self::SideBySide => None,
        }
    }
}

const EXECUTION: &str = "sharing.execution";
const SLICE: &str = "sharing.slice_us";
const SWITCH: &str = "sharing.switch_us";
const DELAY: &str = "sharing.delay_us";

/// The optional keys about sharing; the first has a name as value, the others have numbers.
pub const SHARING_KEYS: [&str; 4] = [EXECUTION, SLICE, SWITCH, DELAY];

impl Sharing {
    pub(super) fn to_text(self) -> String {
        let mut text = format!("{EXECUTION} = {}\n", self.execution.name());
        let numbers = [
            (SLICE, self.execution.slice_us()),
            (SWITCH, self.execution.switch_us()),
            (DELAY, Some(self.delay_us)),
        ];
        for (key, value) in numbers {
            text += &value.map(|value| format!("{key} = {value}\n")).unwrap_or_default();
        }
        text
    }
}

/// What a file says about sharing, line by line.
#[derive(Default)]
pub(super) struct SharingLines {
    execution: Option<String>,
    slice_us: Option<f64>,
    switch_us: Option<f64>,
    delay_us: Option<f64>,
}

impl SharingLines {
    /// Takes a line; false if it is not about sharing.
    pub(super) fn read(&mut self, key: &str, value: &str) -> Result<bool, Problem> {
        let (key, place) = match key {
            EXECUTION => {
                let twice = self.execution.replace(value.to_owned()).is_some();
                return if twice { Err(Problem::Twice(EXECUTION)) } else { Ok(true) };
            }
            SLICE => (SLICE, &mut self.slice_us),
            SWITCH => (SWITCH, &mut self.switch_us),
            DELAY => (DELAY, &mut self.delay_us),
            _ => return Ok(false),
        };
        let twice = place.replace(number(key, value)?).is_some();
        if twice { Err(Problem::Twice(key)) } else { Ok(true) }
    }

    /// What all lines say together; none if there were none.
    pub(super) fn finish(self) -> Result<Option<Sharing>, Problem> {
        let Self { execution, slice_us, switch_us, delay_us } = self;
        let Some(name) = execution else {
            let some = slice_us.or(switch_us).or(delay_us).is_some();
            return if some { Err(Problem::Missing(EXECUTION)) } else { Ok(None) };
        };
        let switch = switch_us.ok_or(Problem::Missing(SWITCH));
        let execution = match name.as_str() {
            "side-by-side" if switch_us.is_some() => return Err(Problem::Stray(SWITCH)),
            "side-by-side" => Execution::SideBySide,
            "in-order" => Execution::InOrder { switch_us: switch? },
            "time-shared" => Execution::TimeShared {
                slice_us: slice_us.ok_or(Problem::Missing(SLICE))?,
                switch_us: switch?,
            },
            _ => return Err(Problem::NoExecution(EXECUTION)),
        };
        if execution.slice_us() == Some(0.0) {
            return Err(Problem::Zero(SLICE));
        }
        if slice_us.is_some() && execution.slice_us().is_none() {
            return Err(Problem::Stray(SLICE));
        }
        Ok(Some(Sharing { execution, delay_us: delay_us.unwrap_or(0.0) }))
    }
}
