//! What the models of a context say about its groups.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use takt_client::gather::FrameCost;
use takt_core::Span;
use takt_predict::adapt::Disturbance;
use takt_predict::cost::{ProgramId, Target};
use takt_predict::exactness::Exactness;
use takt_predict::predictor::{Submission, Work};

use super::group::End;
use crate::predict::{Models, Predicted};
use crate::shadow::inputs::Copies;

/// What models said about a group, and which of them learn from it.
pub(crate) type Ticket = (Weak<Mutex<Models>>, Predicted);

/// The models of a context, if there are any.
#[derive(Debug)]
pub(super) struct Forecast {
    models: Option<Arc<Mutex<Models>>>,
    /// Programs that they have seen.
    pub(super) seen: Vec<ProgramId>,
    /// For vertices in client memory.
    pub(super) copies: Copies,
    /// Which ways of cutting draws are exact on its driver.
    pub(super) exactness: Arc<Exactness>,
}

impl Forecast {
    pub(super) fn new() -> Self {
        Self { models: None, seen: Vec::new(), copies: Copies::new(), exactness: Arc::default() }
    }

    pub(super) fn set(&mut self, models: Option<Models>) {
        self.models = models.map(|models| Arc::new(Mutex::new(models)));
    }

    /// The models, shared with the thread that teaches them.
    pub(super) fn shared(&self) -> Option<Arc<Mutex<Models>>> {
        self.models.clone()
    }

    /// What the current group is predicted to cost at most.
    pub(super) fn pending(&self) -> Span {
        self.models().map_or(Span::ZERO, |mut models| models.pending())
    }

    /// What the current group is likely to cost with a swap of that target, and at most.
    pub(super) fn swap(&self, target: Target) -> FrameCost {
        let (likely, most) = self.models().map(|mut models| models.swap(target)).unwrap_or_default();
        FrameCost { likely, most }
    }

    /// Work that is neither a draw nor a clear.
    pub(super) fn work(&self, work: Work) {
        if let Some(mut models) = self.models() {
            models.work(work);
        }
    }

    /// What the models say about the group, which ends.
    pub(super) fn end_group(&self, end: End, target: Target, switch: Disturbance) -> Option<Ticket> {
        let submission = match end {
            End::Finish => Submission::Finish,
            End::Swap => Submission::Swap(target),
            _ => Submission::Flush,
        };
        let predicted = self.models()?.submit(submission, switch);
        self.models.as_ref().map(|models| (Arc::downgrade(models), predicted))
    }

    fn models(&self) -> Option<MutexGuard<'_, Models>> {
        self.models.as_ref().map(|models| models.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
