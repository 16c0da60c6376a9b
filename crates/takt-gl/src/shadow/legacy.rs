//! What only desktop GL has, as far as it decides what may be added to the program's calls, and whether the
//! shadow still tells the truth.
//!
//! Between `glBegin` and `glEnd` GL takes no other commands, and while a display list is compiled commands go
//! into the list instead of taking effect. Lists and stacks of attributes change state later and unseen.

/// See the module.
#[derive(Default, Debug)]
pub struct Legacy {
    begun: bool,
    compiling: bool,
    untracked: bool,
}

impl Legacy {
    /// Whether no command may be added, and what the program commands does not take effect where it stands.
    #[inline]
    pub fn is_silent(&self) -> bool {
        self.begun || self.compiling
    }

    /// Whether state may have changed unseen.
    pub fn is_untracked(&self) -> bool {
        self.untracked
    }

    /// `glBegin`.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    /// `glEnd`, whether or not it was begun.
    pub(crate) fn end(&mut self) {
        self.begun = false;
    }

    /// `glNewList`.
    pub(crate) fn compile(&mut self) {
        self.compiling = true;
    }

    /// `glEndList`.
    pub(crate) fn compiled(&mut self) {
        self.compiling = false;
    }

    /// State changed in a way that is not followed, and from now on it may be anything.
    pub(crate) fn lose_track(&mut self) {
        self.untracked = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_added_inside_of_primitives_and_lists() {
        let mut legacy = Legacy::default();
        assert!(!legacy.is_silent());
        legacy.begin();
        assert!(legacy.is_silent());
        legacy.compile();
        legacy.end();
        assert!(legacy.is_silent(), "a list may have the end of a primitive only");
        legacy.compiled();
        assert!(!legacy.is_silent() && !legacy.is_untracked());
    }
}
