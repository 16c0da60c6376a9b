//! Clears, blits, uploads, copies and read-backs. Some need no grant; see [`takt_client::stream::Ungranted`].
//!
//! What such a command takes is hardly known before one like it was measured, by the same call and of about the
//! same size. So the first of them is a group of its own: what it takes is charged to nothing else, and the
//! models know from then on.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use takt_predict::predictor::Work;

use super::context::State;
use crate::measure;
use crate::session::session;
use crate::slice::{self, Variant};

impl State {
    /// A copy is about to be made, of so many bytes as are stated: asks for a grant where that matters.
    pub fn about_to_copy(&mut self, work: Work) {
        let bytes = work.bytes();
        if bytes > MOVED_MAX {
            return;
        }
        let look = session().is_wanted() && self.stream.ungranted.wants_look(bytes);
        let apart = look && self.begins_apart(bytes, ());
        if look && !apart {
            self.make_room();
        }
        self.work(work);
        self.measure_apart |= apart;
        if look && !self.stream.has_grant() && (apart || self.stream.ungranted.is_too_much(self.pending())) {
            self.ask();
        }
        self.begins();
    }

    /// Work that moves so many bytes is about to be given, which `note` adds; `kind` tells it from other work of the
    /// same call.
    fn about_to_work(&mut self, bytes: u64, kind: impl Hash, note: impl FnOnce(&mut Self)) {
        let apart = self.begins_apart(bytes, kind);
        if !apart {
            self.make_room();
        }
        note(self);
        self.measure_apart |= apart;
        self.ask();
        self.begins();
    }

    /// What the program reads is about to be read, with the call that is being made: whether that is a group of
    /// its own, which ends with the call.
    pub fn about_to_read(&mut self, bytes: u64) -> bool {
        if !session().is_wanted() || bytes > MOVED_MAX {
            return false;
        }
        let others = !self.stream.gathering.is_alone();
        let asks = bytes >= TELLING_BYTES || bytes > 0 && others && self.stream.ungranted.reads_little();
        if asks {
            self.about_to_work(bytes, (), |state| state.work(Work::Read { bytes }));
        }
        asks
    }

    /// A command is in the group that is not cut, and of which only measured times say what it takes. The group ends
    /// with it until one like it was measured: many of them in a group could take many times what was granted.
    pub(super) fn meets(&mut self, kind: Variant) {
        let others = session().is_wanted() && !self.stream.gathering.is_alone();
        if others && !self.was_measured(kind) && measure::is_possible(self.id.display) {
            if !self.follow.programs.contains(&kind) {
                self.follow.programs.push(kind);
            }
            self.measure_apart = true;
        }
    }

    /// Whether work that moves so many bytes is to be measured apart from all else; then nothing is pending
    /// afterwards.
    pub(super) fn begins_apart(&mut self, bytes: u64, kind: impl Hash) -> bool {
        if bytes < TELLING_BYTES || !session().is_wanted() {
            return false;
        }
        let mut hash = DefaultHasher::new();
        (self.builder.current_call(), bytes.checked_ilog2(), kind).hash(&mut hash);
        let variant = Variant(hash.finish());
        if self.apart.len() >= APART_MAX || slice::is_measured(variant) || !self.apart.insert(variant) {
            return false;
        }
        self.make_room();
        self.make_way();
        self.follow.programs.push(variant);
        true
    }
}

/// What moves less is short everywhere.
pub(super) const TELLING_BYTES: u64 = 64 << 10;

/// No command moves more: a terabyte is beyond the memory of any GPU, so GL refuses it.
const MOVED_MAX: u64 = 1 << 40;

/// Kinds of work that a context has measured apart; a program with more of them makes them up.
const APART_MAX: usize = 256;
