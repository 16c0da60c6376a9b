//! State that forbids to cut draws: queries, transform feedback and the like.

use crate::gl;

/// What queries count that pieces could change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Counted {
    /// Nothing.
    #[default]
    Nothing,
    /// Primitives of draws.
    Primitives,
    /// Anything: performance monitors, and queries of extensions.
    Everything,
}

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

    /// What queries in flight count.
    pub fn counted(&self) -> Counted {
        let of = |target: &u32| match *target {
            // Whether any sample passed is so if it is so of one piece, and elapsed time is wanted as a sum.
            gl::ANY_SAMPLES_PASSED | gl::ANY_SAMPLES_PASSED_CONSERVATIVE | gl::TIME_ELAPSED_EXT => {
                Counted::Nothing
            }
            gl::PRIMITIVES_GENERATED | gl::TRANSFORM_FEEDBACK_PRIMITIVES_WRITTEN => Counted::Primitives,
            _ => Counted::Everything,
        };
        self.queries.iter().map(of).max().unwrap_or_default()
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
