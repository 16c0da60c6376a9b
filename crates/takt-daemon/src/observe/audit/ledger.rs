//! The audit of another program of Takt, in files of its own: the same chains, bounds and rules.

use takt_audit::{Alarm, Head, Record};

use super::{Audit, AuditSettings, News};
use crate::control::user::Rank;

/// Makes records; the files are complete when it is dropped.
#[derive(Debug)]
pub struct Ledger(Audit);

/// What people should hear of at once.
#[derive(Clone, PartialEq, Debug)]
pub enum Told {
    /// A rule fired.
    Alarm(Alarm),
    /// Records cannot be written, in words.
    Failed(String),
    /// They can be written again.
    Works,
    /// Where the chain of that name ends.
    Head(&'static str, Head),
}

impl Ledger {
    /// Begins.
    pub fn start(settings: &AuditSettings) -> std::io::Result<Self> {
        Audit::start(settings).map(Self)
    }

    /// Makes a record now; its time is set here. One about a client that no domain lists is in the chain of those.
    pub fn tell(&mut self, record: Record) {
        let subject = &record.subject;
        let rank = match (subject.user, subject.listed) {
            (None, _) => Rank::Own,
            (Some(_), true) => Rank::Listed,
            (Some(_), false) => Rank::Other,
        };
        self.0.tell(record, rank);
    }

    /// Does what is due from time to time.
    pub fn tick(&mut self) {
        self.0.tick();
    }

    /// Writes the rest.
    pub fn close(&mut self) {
        self.0.close();
    }

    /// What people should hear of, since the last call.
    pub fn told(&mut self) -> Vec<Told> {
        let told = |news| match news {
            News::Alarm(alarm) => Told::Alarm(alarm),
            News::Failed(reason) => Told::Failed(reason),
            News::Works => Told::Works,
            News::Head(chain, head) => Told::Head(chain.name(), head),
        };
        self.0.news().into_iter().map(told).collect()
    }
}
