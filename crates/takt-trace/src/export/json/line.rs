//! The fields of each kind of line.

use serde::{Deserialize, Serialize};

use takt_core::GroupKind;
use takt_core::config::Adjustable;
use takt_core::event::LostBy;

use super::head::AdjustableLine;
use super::params::{Params, is_default};
use crate::summary::HeldBy;

/// A line with its time.
#[derive(Serialize, Deserialize)]
pub(super) struct Stamped {
    pub(super) at_ns: u64,
    #[serde(flatten)]
    pub(super) what: Line,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub(super) enum Line {
    App {
        app: u32,
        name: String,
        priority: u32,
        fps_mhz: u32,
    },
    Join {
        app: u32,
        #[serde(flatten)]
        params: Params,
        phase: u32,
    },
    Leave {
        app: u32,
    },
    Change {
        app: u32,
        #[serde(flatten)]
        params: Params,
    },
    Submit {
        app: u32,
        group: u64,
        #[serde(with = "Kind")]
        kind: GroupKind,
        predicted_ns: Option<u64>,
    },
    EndFrame {
        app: u32,
    },
    Revise {
        app: u32,
        group: u64,
        predicted_ns: Option<u64>,
    },
    Complete {
        group: u64,
        finished_ns: u64,
        cost_ns: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frames: Option<u32>,
    },
    Focus {
        app: Option<u32>,
    },
    Refresh {
        #[serde(default, skip_serializing_if = "is_default")]
        display: u8,
        refresh_mhz: u32,
        origin_ns: u64,
    },
    Adjust(#[serde(with = "AdjustableLine")] Adjustable),
    Dispatch {
        app: u32,
        group: u64,
        target: u64,
        start_ns: u64,
        reserved_ns: Option<u64>,
    },
    Release {
        app: u32,
        release_ns: u64,
    },
    Hold {
        app: u32,
        reason: HeldBy,
        by: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        until_ns: Option<u64>,
    },
    Preempt {
        app: u32,
        group: u64,
    },
    Ranked {
        app: u32,
        priority: u32,
    },
    Refused {
        app: u32,
        group: Option<u64>,
        reason: Refused,
        detail: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        number: Option<u64>,
    },
    Missed {
        app: u32,
        frame: u64,
        period: u64,
        deadline_ns: u64,
        count: u64,
    },
    FrameDone {
        app: u32,
        frame: u64,
        period: u64,
        release_ns: u64,
        deadline_ns: u64,
        finished_ns: u64,
        met: bool,
    },
    Left {
        app: u32,
        dropped: u32,
    },
    Lost {
        app: u32,
        group: u64,
        #[serde(with = "By")]
        by: LostBy,
    },
    Broken {
        invariant: String,
        app: Option<u32>,
        noticed_ns: u64,
        detail: String,
    },
    GpuQueued {
        app: u32,
        group: u64,
    },
    GpuStarted {
        app: u32,
        group: u64,
    },
    GpuFinished {
        app: u32,
        group: u64,
        started_ns: u64,
    },
    GpuPreempted {
        app: u32,
        group: u64,
        started_ns: Option<u64>,
        stays: bool,
    },
    GpuStalled {
        until_ns: u64,
    },
    GpuClock {
        permille: u32,
    },
    Vsync {
        period: u64,
    },
    Turn,
    Policy {
        name: String,
    },
    Gap {
        records: u64,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "GroupKind", rename_all = "kebab-case")]
enum Kind {
    Draw,
    Swap,
    Sync,
    Exit,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Refused {
    NoSuchSlot,
    ImpossibleClock,
    NoSuchDisplay,
    SlotTaken,
    UnknownApp,
    PriorityTaken,
    LookaheadTooLong,
    QueueFull,
    UnknownGroup,
    Exited,
    TooManyFrames,
    FeedsItself,
    SourceOfSource,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "LostBy", rename_all = "kebab-case")]
enum By {
    Order,
    Timeout,
}
