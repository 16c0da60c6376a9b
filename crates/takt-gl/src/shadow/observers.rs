//! State that forbids to cut draws: queries, transform feedback and the like.

/// What other calls say about how draws may be cut.
#[derive(Default, Debug)]
pub struct Observers {
    /// Queries in flight, by target.
    pub(crate) queries: Vec<u32>,
    pub(crate) feedback: bool,
    pub(crate) viewports: bool,
    pub(crate) resolves: bool,
    pub(crate) debugged: bool,
}

impl Observers {
    /// `glBeginQuery` and the like.
    pub fn begin_query(&mut self, target: u32) {
        if !self.queries.contains(&target) {
            self.queries.push(target);
        }
    }

    /// `glEndQuery` and the like.
    pub fn end_query(&mut self, target: u32) {
        self.queries.retain(|active| *active != target);
    }

    /// Transform feedback begins or goes on, ends or pauses. It cannot change hands without a pause.
    pub fn feedback(&mut self, on: bool) {
        self.feedback = on;
    }

    /// The program knows of several viewports.
    pub fn several_viewports(&mut self) {
        self.viewports = true;
    }

    /// The program draws to targets that give up their samples.
    pub fn implicit_resolve(&mut self) {
        self.resolves = true;
    }

    /// The program listens to the driver's messages.
    pub fn debugged(&mut self, on: bool) {
        self.debugged = on;
    }
}
