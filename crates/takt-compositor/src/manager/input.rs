//! What input devices do, on its way to clients.

use takt_cockpit::control::InputStatus;
use takt_cockpit::input::{Act, Heard, Inputs, Times};
use takt_cockpit::windows::WindowId;
use takt_core::{Span, Time};

use super::{Entry, InputNews, Manager};
use crate::client::ToClient;

impl Manager {
    /// A device did something.
    pub(super) fn hear_device(&mut self, device: usize, news: InputNews) {
        let reports = match news {
            InputNews::State(said) => return (self.recorder)(&Entry::Input(device, said)),
            InputNews::Reports(reports) => reports,
        };
        for report in reports {
            // What is refused is recorded, and a device cannot be told.
            self.input(device, &report.acts, report.at).unwrap_or_default();
        }
    }

    /// Does what a device did; says why a window may not have something of it, if so.
    pub(super) fn input(&mut self, device: usize, acts: &[Act], at: Time) -> Result<(), String> {
        let mut refused = Ok(());
        for act in acts {
            let heard = Heard { device, act: *act, at, now: self.now };
            // All of them are heard, and the first reason is told.
            let one = self.inputs.hear(&mut self.windows, heard);
            refused = refused.and(one);
        }
        refused
    }

    /// Sends clients what their windows hear.
    pub(super) fn send_input(&mut self) {
        while let Some(delivery) = self.inputs.poll() {
            if let Some(window) = self.shared.get(&delivery.window) {
                self.inputs.sent(&self.windows, &delivery, window.picture().look);
                window.client.tell(ToClient::Input(delivery));
            }
        }
    }

    /// Looks after what is to be answered by now.
    pub(super) fn supervise_input(&mut self) {
        let Self { inputs, windows, shared, now, .. } = self;
        inputs.pass(windows, *now, |id| shared.get(&id).map_or(u64::MAX, |window| window.taken()));
    }

    pub(super) fn input_status(&self, id: WindowId) -> Option<InputStatus> {
        let deliveries = self.shared.get(&id)?.deliveries();
        let (responses, silent) = self.inputs.times(id);
        Some(status(&deliveries, &responses, silent)).filter(|status| status.delivered > 0)
    }

    pub(super) fn has_focus(&self, id: WindowId) -> bool {
        (0..self.outputs.len()).any(|output| self.inputs.focus(output) == Some(id))
    }

    /// Kinds of devices that clients of a domain may ever hear.
    pub(super) fn kinds(&self, domain: usize) -> Vec<takt_cockpit::config::Kind> {
        Inputs::kinds(&self.config, domain).collect()
    }
}

fn status(deliveries: &Times, responses: &Times, silent: u64) -> InputStatus {
    let ms = |span: Span| span.as_ns() as f64 / 1e6;
    InputStatus {
        delivered: deliveries.count(),
        delivery_ms_p99: ms(deliveries.percentile(99)),
        delivery_ms_max: ms(deliveries.longest()),
        answered: responses.count(),
        silent,
        response_ms_p99: ms(responses.percentile(99)),
        response_ms_max: ms(responses.longest()),
    }
}
