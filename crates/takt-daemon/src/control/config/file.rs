//! The keys of a configuration file, as serde reads them. Every key is optional.

use std::path::PathBuf;

use serde::Deserialize;
use takt_core::service::{Enforcement, Turns};

use super::apps::FileApp;
use super::audit::FileAudit;
use super::displays::FileDisplay;
use super::domains::FileDomain;
use crate::control::outsiders::Unseen;

/// A configuration file.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ConfigFile {
    /// Refresh rate of the display, if there is one. Default: 60.
    pub(super) refresh_hz: Option<f64>,
    /// Several displays, instead.
    pub(super) display: Vec<FileDisplay>,
    /// The source of refreshes: `timer`, or `drm:/dev/dri/card0`. Default: timer.
    pub(super) vsync: Option<String>,
    /// Name of the policy. Default: timeline.
    pub(super) policy: Option<String>,
    /// Most groups granted and not finished at once. Default: 2.
    pub(super) mpcg: Option<u32>,
    /// Longest group that a client may form, in milliseconds; 0 never slices. Default: 1.
    pub(super) max_slice_ms: Option<f64>,
    /// How long apps that reserve nothing may delay a more important one that does, in
    /// milliseconds; infinite as long as no deadline is in danger. Default: `max_slice_ms`.
    pub(super) max_blocking_ms: Option<f64>,
    /// Length to which groups of apps that reserve nothing may be stretched while no other app waits,
    /// in milliseconds. Default: no more than they ask for.
    pub(super) max_stretch_ms: Option<f64>,
    /// How late the report of a group's end may be before its app is evicted, in milliseconds.
    /// Default: 500.
    pub(super) completion_timeout_ms: Option<f64>,
    /// How long clients poll for a reply before they sleep, where replies have come that soon lately,
    /// in microseconds. Default: 50, and 0 on a single processor.
    pub(super) spin_us: Option<u32>,
    /// How long the scheduling loop polls for work before it sleeps, where requests have followed each
    /// other that soon lately, in microseconds. Default: the same.
    pub(super) loop_spin_us: Option<u32>,
    /// The processor on which the scheduling loop runs, counted from 0. Default: any.
    pub(super) processor: Option<u32>,
    /// Longest time that a processor may take to wake up while an app with a frame rate is scheduled,
    /// in microseconds; infinite sets no limit. Default: 0.
    pub(super) wake_us: Option<f64>,
    /// What to do with an app whose deadlines cannot be guaranteed.
    pub(super) admission: Admission,
    /// Safety margins on predictions.
    pub(super) margins: FileMargins,
    /// How processes share the GPU.
    pub(super) gpu: FileGpu,
    /// How `timegraph` treats apps.
    pub(super) timegraph: Timegraph,
    /// The program that restarts units of supervised apps, called as systemctl is. Default: systemctl.
    pub(super) systemctl: Option<PathBuf>,
    /// When another version of this file is in force: at once, or in a state of the vehicle.
    pub(super) effective: Effective,
    /// Who may ask for what.
    pub(super) domain: Vec<FileDomain>,
    /// Where decisions are recorded, and which rules run over the records.
    pub(super) audit: FileAudit,
    /// Terms of single apps, which go before those that the app asks for.
    pub(super) app: Vec<FileApp>,
}

/// How processes share the GPU: they take turns.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileGpu {
    /// How long a process keeps the GPU while another one has work, in microseconds. Default: the
    /// measured value, else 1000.
    pub(super) slice_us: Option<f64>,
    /// Cost of a change of processes, in microseconds. Default: the measured value, else 0.
    pub(super) switch_us: Option<f64>,
    /// How long a process keeps the GPU whose work it interrupts, as it does with compute, while another one has
    /// work, in microseconds. Default: 2048, as NVIDIA's driver sets it.
    pub(super) divisible_slice_us: Option<f64>,
    /// Longest piece of such work that is not interrupted, in microseconds. Default: 0.
    pub(super) divisible_piece_us: Option<f64>,
    /// How long any other process keeps the GPU at least while such work waits, in microseconds. Default: 1024, as
    /// NVIDIA's driver sets it for graphics.
    pub(super) own_slice_us: Option<f64>,
    /// Device files of the GPU: every process that has one open uses it. Default: those of NVIDIA's driver, of the
    /// kernel's own drivers and of AMD's compute driver.
    pub(super) devices: Option<Vec<String>>,
    /// Names of processes that may have the GPU open beside Takt. Default: nvidia-persistenced.
    pub(super) beside: Option<Vec<String>>,
    /// What to make of processes that the daemon cannot see. Default: suspect.
    pub(super) unseen: Option<Unseen>,
}

/// Safety margins on predictions, and delays on the way to the GPU and back.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct FileMargins {
    /// Added to a prediction. Default: 100.
    pub(super) fixed_us: Option<f64>,
    /// Factor on a prediction. Default: 1.05.
    pub(super) upper: Option<f64>,
    /// Longest delay from grant to GPU. Default: 150.
    pub(super) dispatch_upper_us: Option<f64>,
    /// Longest delay from the end of a group to its report. Default: 300.
    pub(super) completion_upper_us: Option<f64>,
}

/// How `timegraph` treats apps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timegraph {
    /// Whether apps that reserve nothing may follow their own groups on the busy GPU.
    #[serde(with = "TurnsName")]
    pub turns: Turns,
    /// When budgets of apps that reserve time are enforced.
    #[serde(with = "EnforcementName")]
    pub enforcement: Enforcement,
}

#[derive(Deserialize)]
#[serde(remote = "Turns", rename_all = "kebab-case")]
enum TurnsName {
    Single,
    Following,
}

#[derive(Deserialize)]
#[serde(remote = "Enforcement", rename_all = "kebab-case")]
enum EnforcementName {
    Posterior,
    Apriori,
}

/// When another version of a configuration is in force.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum Effective {
    /// As soon as it is read.
    #[default]
    Reload,
    /// In that state of the vehicle.
    State(String),
}

impl TryFrom<String> for Effective {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.strip_prefix("state:").filter(|state| takt_ipc::name::is_name(state)) {
            Some(state) => Ok(Self::State(state.to_owned())),
            None if text == "reload" => Ok(Self::Reload),
            None => {
                Err(format!("{text:?} is no time: use \"reload\", or \"state:NAME\" as in \"state:parked\""))
            }
        }
    }
}

/// What to do with an app whose deadlines cannot be guaranteed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// Schedule it by its priority, without a guarantee.
    #[default]
    Unprotected,
    /// Do not schedule it.
    Refuse,
}
