//! Dialogues, which can be left at any time.

use takt_core::Time;

use super::{Action, Kind, Note, WindowId, Windows};

impl Windows {
    /// The dialogue in front on an output.
    pub fn dialogue(&self, output: usize) -> Option<WindowId> {
        let in_front = self.scenes.get(output)?.windows.iter().rev().map(|placed| placed.id);
        in_front.into_iter().find(|id| self.rule(*id).is_some_and(|rule| rule.dialogue))
    }

    /// Leaves a dialogue: its client is asked to close it, and it is not shown any more, whatever the client does.
    /// One that law or traffic requires stays.
    pub fn exit(&mut self, now: Time, id: WindowId, asked: String) -> Result<(), String> {
        let Some(rule) = self.rule(id) else {
            return Err("it is gone".to_owned());
        };
        let stays =
            (rule.required || rule.must_be_visible).then(|| format!("{} is required: it stays", rule.name));
        let allowed = Some(stays.is_none());
        let reason = stays.clone().unwrap_or_default();
        let rule = if stays.is_some() { "required" } else { "dialogue" }.to_owned();
        self.record_about(Some(id), Note { allowed, asked, reason, rule, ..Note::about(Kind::Input) });
        if let Some(reason) = stays {
            return Err(reason);
        }
        if let Some(window) = self.windows.get_mut(&id) {
            window.left = true;
        }
        self.act(Action::Close(id));
        self.arrange(now);
        Ok(())
    }
}
