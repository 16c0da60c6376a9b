//! What a configuration file may contain, before it is checked.

use serde::Deserialize;

use crate::config::{Hands, Kind, Shell};
use crate::pattern::Pattern;

/// The whole file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CockpitFile {
    #[serde(default)]
    pub(super) output: Vec<OutputFile>,
    #[serde(default)]
    pub(super) domain: Vec<DomainFile>,
    #[serde(default)]
    pub(super) window: Vec<WindowFile>,
    #[serde(default)]
    pub(super) input: Vec<InputFile>,
    #[serde(default)]
    pub(super) client: Vec<ClientFile>,
}

/// An `[[output]]` section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputFile {
    pub(super) name: String,
    pub(super) size: String,
    pub(super) refresh_hz: Option<f64>,
    pub(super) phase_ms: Option<f64>,
    pub(super) etpf_ms: Option<f64>,
    pub(super) priority: Option<u32>,
    #[serde(default)]
    pub(super) driver: bool,
    pub(super) connector: Option<String>,
}

/// A `[[domain]]` section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DomainFile {
    pub(super) name: String,
    pub(super) shells: Option<Vec<Shell>>,
    pub(super) clients_max: Option<usize>,
    pub(super) surfaces_max: Option<usize>,
    pub(super) memory_mib_max: Option<u64>,
}

/// A `[[window]]` section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowFile {
    pub(super) name: String,
    pub(super) domain: String,
    pub(super) app_id: Option<Pattern>,
    pub(super) title: Option<Pattern>,
    pub(super) ivi_id: Option<u32>,
    pub(super) output: String,
    pub(super) area: Option<String>,
    #[serde(default)]
    pub(super) own_size: bool,
    #[serde(default)]
    pub(super) layer: i32,
    #[serde(default)]
    pub(super) priority: u32,
    #[serde(default)]
    pub(super) exclusive: bool,
    #[serde(default)]
    pub(super) must_be_visible: bool,
    #[serde(default)]
    pub(super) hidden: bool,
    #[serde(default)]
    pub(super) hidden_while_moving: bool,
    #[serde(default)]
    pub(super) dialogue: bool,
    #[serde(default)]
    pub(super) required: bool,
    pub(super) instances_max: Option<usize>,
    pub(super) visible_within_ms: Option<f64>,
    pub(super) animation_s_max: Option<f64>,
    pub(super) response_ms_max: Option<f64>,
    pub(super) input: Option<Vec<Kind>>,
    pub(super) input_while_moving: Option<Vec<Kind>>,
}

/// An `[[input]]` section.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputFile {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) device: Option<String>,
    pub(super) output: Option<String>,
    pub(super) hands: Option<Hands>,
    #[serde(default)]
    pub(super) exit_keys: Vec<u32>,
    pub(super) domains: Option<Vec<String>>,
    pub(super) range: Option<String>,
}

/// A `[[client]]` section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClientFile {
    pub(super) name: String,
    pub(super) domain: String,
    pub(super) command: Vec<String>,
    pub(super) output: Option<String>,
    pub(super) priority: Option<u32>,
    pub(super) fps: Option<f64>,
    pub(super) etpf_ms: Option<f64>,
    #[serde(default)]
    pub(super) environment: std::collections::BTreeMap<String, String>,
    #[serde(default)]
    pub(super) restart: bool,
    pub(super) user: Option<String>,
}
