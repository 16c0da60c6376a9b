//! What an app asks for, as a line says it.
//!
//! Types of the core have no formats. Those here say field by field how serde reads and writes them.

use serde::{Deserialize, Serialize};
use takt_core::service::{Enforcement, Gaps, Level, Reservation, Reserve, Turns};
use takt_core::{AppId, AppParams, Clock, DisplayId, Priority, Service, Span, Stride};

/// Modules for `#[serde(with = "..")]`: a value of the core, and what a line has for it.
macro_rules! written_as {
    ($($name:ident: $value:ty as $line:ty, $write:expr, $read:expr;)*) => {$(
        pub(super) mod $name {
            use super::*;

            pub(in super::super) fn serialize<S: serde::Serializer>(value: &$value, to: S) -> Result<S::Ok, S::Error> {
                let write: fn($value) -> $line = $write;
                write(*value).serialize(to)
            }

            pub(in super::super) fn deserialize<'a, D: serde::Deserializer<'a>>(from: D) -> Result<$value, D::Error> {
                <$line>::deserialize(from).map($read)
            }
        }
    )*};
}
pub(super) use written_as;

written_as! {
    ns: Span as u64, Span::as_ns, Span::from_ns;
    bounded_ns: Span as Option<u64>, finite, forever;
    app_id: AppId as u32, |app| app.0, AppId;
    fed_app: Option<AppId> as Option<u32>, |app| app.map(|app| app.0), |app: Option<u32>| app.map(AppId);
    display_id: DisplayId as u8, |display| display.0, DisplayId;
    apriori: Enforcement as bool,
        |enforcement| enforcement == Enforcement::Apriori,
        |apriori| if apriori { Enforcement::Apriori } else { Enforcement::Posterior };
    following: Turns as bool,
        |turns| turns == Turns::Following,
        |following| if following { Turns::Following } else { Turns::Single };
}

#[derive(Serialize, Deserialize)]
pub(super) struct Params {
    priority: u32,
    stride: u32,
    etpf_ns: u64,
    /// What releases its frames; left out if that is the first display.
    #[serde(default, skip_serializing_if = "is_default", with = "ClockLine")]
    clock: Clock,
    /// What only some policies look at; left out if nothing is asked for.
    #[serde(default, skip_serializing_if = "is_default", with = "ServiceLine")]
    service: Service,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Clock", rename_all = "kebab-case")]
enum ClockLine {
    Display(#[serde(with = "display_id")] DisplayId),
    Own {
        #[serde(rename = "period_ns", with = "ns")]
        period: Span,
        #[serde(rename = "deadline_ns", with = "ns")]
        deadline: Span,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Service")]
struct ServiceLine {
    follows_focus: bool,
    #[serde(rename = "follows_itself", with = "following")]
    turns: Turns,
    #[serde(with = "ReservationLine")]
    reservation: Reservation,
    #[serde(default, with = "fed_app")]
    feeds: Option<AppId>,
    #[serde(with = "LevelLine")]
    level: Level,
    #[serde(rename = "timeslice_ns", with = "ns")]
    timeslice: Span,
    uninterruptible: bool,
    /// Left out if it is not.
    #[serde(default, skip_serializing_if = "is_default")]
    divisible: bool,
    /// Left out if there are none.
    #[serde(default, skip_serializing_if = "is_default", with = "GapsLine")]
    gaps: Gaps,
}

/// The gaps within frames.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Gaps")]
struct GapsLine {
    count: u32,
    #[serde(rename = "length_ns", with = "ns")]
    length: Span,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Reservation", rename_all = "kebab-case")]
enum ReservationLine {
    None,
    Own(#[serde(with = "ReserveLine")] Reserve),
    Shared(#[serde(with = "app_id")] AppId),
    Background,
}

/// A reserve as a line says it.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Reserve")]
pub(super) struct ReserveLine {
    #[serde(rename = "budget_ns", with = "ns")]
    budget: Span,
    #[serde(rename = "period_ns", with = "ns")]
    period: Span,
    #[serde(rename = "deadline_ns", with = "ns")]
    deadline: Span,
    #[serde(rename = "apriori", with = "apriori")]
    enforcement: Enforcement,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Level", rename_all = "kebab-case")]
enum LevelLine {
    Low,
    Medium,
    High,
}

impl Params {
    pub(super) fn of(params: &AppParams) -> Self {
        Self {
            priority: params.priority.0,
            stride: params.stride.get(),
            etpf_ns: params.etpf.as_ns(),
            clock: params.clock,
            service: params.service,
        }
    }

    pub(super) fn params(&self) -> Result<AppParams, String> {
        let stride = Stride::new(self.stride);
        Ok(AppParams {
            priority: Priority(self.priority),
            stride: stride.ok_or_else(|| format!("stride = {}: use 1 to 240", self.stride))?,
            etpf: Span::from_ns(self.etpf_ns),
            clock: self.clock,
            service: self.service,
        })
    }
}

/// Whether a line leaves it out.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Unbounded spans become `null`: a reader must not calculate with a sentinel.
pub(super) fn finite(span: Span) -> Option<u64> {
    (span < Span::FOREVER).then(|| span.as_ns())
}

/// The span of a member that may be `null`.
pub(super) fn forever(ns: Option<u64>) -> Span {
    ns.map_or(Span::FOREVER, Span::from_ns)
}
