//! The parts of a command group's cost.

/// What a group is mostly about. Corrections are kept for each type.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub enum GroupType {
    /// Nothing that is modelled.
    #[default]
    Other,
    /// Draws.
    Draw,
    /// A resolve for display.
    Swap,
    /// Dispatches of compute shaders.
    Compute,
    /// Moving bytes.
    Copy,
    /// Clears, and nothing else.
    Clear,
}

/// Cost of a group's commands in nanoseconds, by kind.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct GroupCost {
    /// Submissions.
    pub flush: f64,
    /// Clears.
    pub clear: f64,
    /// Draws, and resolves that they force.
    pub draw: f64,
    /// Dispatches of compute shaders.
    pub compute: f64,
    /// Resolves for display.
    pub swap: f64,
    /// Uploads, copies, mipmaps.
    pub copy: f64,
}

/// A group's cost, split into a corrected and an uncorrected part.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct Parts {
    /// What the group's type stands for.
    pub of_type_ns: f64,
    /// Everything else.
    pub aux_ns: f64,
}

impl Parts {
    /// Both together.
    pub fn total_ns(&self) -> f64 {
        self.of_type_ns + self.aux_ns
    }
}

impl GroupCost {
    /// What the group is about: a swap, if it has one, else what costs most.
    pub fn group_type(&self) -> GroupType {
        if self.swap > 0.0 {
            GroupType::Swap
        } else if self.compute > 0.0 && self.compute >= self.draw.max(self.copy) {
            GroupType::Compute
        } else if self.draw > 0.0 && self.draw >= self.copy {
            GroupType::Draw
        } else if self.copy > 0.0 {
            GroupType::Copy
        } else if self.clear > 0.0 {
            GroupType::Clear
        } else {
            GroupType::Other
        }
    }

    /// The same group without its dispatches.
    #[must_use]
    pub fn without_compute(self) -> Self {
        Self { compute: 0.0, ..self }
    }

    /// Splits the cost of a group of this type.
    pub fn parts(&self, group_type: GroupType) -> Parts {
        let of_type_ns = match group_type {
            GroupType::Draw => self.draw,
            GroupType::Compute => self.compute,
            GroupType::Swap => self.swap,
            GroupType::Copy => self.copy,
            GroupType::Clear => self.clear,
            GroupType::Other => 0.0,
        };
        let total = self.flush + self.clear + self.draw + self.compute + self.swap + self.copy;
        Parts { of_type_ns, aux_ns: total - of_type_ns }
    }
}
