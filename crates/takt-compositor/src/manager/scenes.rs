//! What outputs show, and what clients hear of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use takt_cockpit::windows::WindowId;

use super::Manager;
use crate::client::{ToClient, Visibility};
use crate::output::{Scene, Shown};

impl Manager {
    /// Shows the scene of an output as the rules have it now.
    pub(super) fn show(&mut self, output: usize) {
        self.generation += 1;
        let placed = self.windows.scene(output).windows.iter();
        let windows = placed.filter_map(|placed| {
            let window = Arc::clone(self.shared.get(&placed.id)?);
            let (at, clip) = (placed.at, placed.clip);
            Some(Shown { window, at, clip, opacity: placed.opacity, frozen: placed.frozen })
        });
        let scene = Scene { generation: self.generation, windows: windows.collect() };
        self.outputs[output].show(Arc::new(scene));
        self.tell_visibility();
    }

    /// Tells clients which of their windows are shown.
    fn tell_visibility(&mut self) {
        let mut now: BTreeMap<WindowId, Visibility> = BTreeMap::new();
        for output in 0..self.outputs.len() {
            for placed in &self.windows.scene(output).windows {
                let visibility =
                    if placed.frozen { Visibility::Frozen(output) } else { Visibility::Shown(output) };
                now.insert(placed.id, visibility);
            }
        }
        for (id, visibility) in &now {
            if self.visibility.get(id) != Some(visibility) {
                self.tell(*id, ToClient::Shown(*id, *visibility));
            }
        }
        for id in self.visibility.keys().filter(|id| !now.contains_key(id)) {
            self.tell(*id, ToClient::Shown(*id, Visibility::Hidden));
        }
        self.visibility = now;
    }
}
