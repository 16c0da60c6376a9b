//! What the server shows to those who watch.

use std::io::Write;

use takt_core::Time;
use takt_trace::export::json;
use takt_trace::{Observer, Record};

use super::Server;
use crate::ask::Answer;
use crate::log::{join, meta_of};

impl Server {
    /// Writes all that happens to `out`, from the very start: to be called before anything is
    /// served. Such a log can be [replayed](takt_trace::replay).
    pub fn record_to(&mut self, out: impl Write + Send + 'static) -> std::io::Result<()> {
        let meta = self.scene().meta();
        self.feeds.record_to(out, &meta, &self.settings.core.clamped())
    }

    /// Ends scheduling, and writes the rest of what is recorded.
    pub fn finish(&mut self) -> std::io::Result<()> {
        self.end_loop();
        self.read_notes();
        self.feeds.finish()
    }

    /// A tool is told everything from now on; what is wrong with that, if anything.
    pub(super) fn watch(&mut self, index: usize) -> Option<Answer> {
        let Ok(tool) = self.sessions[index].connection.try_clone() else {
            return Some(Answer::refused("the daemon has no descriptors left".to_owned()));
        };
        // What happened before is not told any more.
        self.read_notes();
        let now = self.feeds.last();
        let (scene, members) = (self.scene(), &self.members);
        let meta = takt_trace::Meta { apps: Vec::new(), ..scene.meta() };
        let room = self.feeds.watch(tool, |lines| {
            json::put_head(lines, &meta, None);
            for member in members.iter() {
                json::put_app(lines, now, member.app, &meta_of(member));
                json::put_record(lines, now, &join(member));
            }
        });
        (!room).then(|| Answer::refused("too many tools watch already".to_owned()))
    }

    /// Somebody takes a slot.
    pub(super) fn meet(&mut self, app: takt_core::AppId) {
        if let Some(member) = self.members.get(app) {
            self.feeds.meet(self.feeds.last(), app, &meta_of(member));
        }
    }

    /// Something happened.
    pub(super) fn happened(&mut self, at: Time, record: Record) {
        self.feeds.record(at, &record);
        self.log.add(at, record);
    }
}
