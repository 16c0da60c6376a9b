//! Copies: uploads, moves inside of the GPU's memory, and mipmaps. See [`takt_client::stream::Ungranted`].

use takt_predict::predictor::Work;

use super::context::State;
use crate::session::session;

impl State {
    /// A copy is about to be made, of so many bytes as are stated: asks for a grant where that matters.
    pub fn about_to_copy(&mut self, work: Work) {
        let look = session().is_wanted() && self.stream.ungranted.wants_look(bytes(&work));
        if look {
            self.make_room();
        }
        self.work(work);
        if look && !self.stream.has_grant() && self.stream.ungranted.is_too_much(self.pending()) {
            self.ask();
        }
        self.begins();
    }
}

fn bytes(work: &Work) -> u64 {
    match *work {
        Work::Load { bytes }
        | Work::Upload { bytes }
        | Work::Mipmap { bytes }
        | Work::Copy { bytes }
        | Work::Buffer { bytes } => bytes,
        Work::Clear { .. } | Work::Resolve(_) => 0,
    }
}
