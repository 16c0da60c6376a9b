//! Every bound of the core, by name.
//!
//! Reaching one is an event with a reason ([`crate::Refusal`]), never a panic and never a
//! reallocation.

use core::ops::RangeInclusive;

use crate::time::Span;

/// Displays one scheduler can have.
pub const DISPLAYS_MAX: usize = 4;

/// Periods that a clock of an app may have: 100 µs to 4 s.
pub const OWN_PERIODS: RangeInclusive<Span> = Span::from_us(100)..=Span::from_ms(4_000);

/// Apps one scheduler can hold.
pub const APPS_MAX: usize = 4096;

/// Command groups of one app that may wait for dispatch (the thesis uses the same depth).
pub const QUEUE_MAX: usize = 64;

/// Command groups that may be dispatched and incomplete, whether they keep a slot (`mpcg`) or not.
pub const IN_FLIGHT_MAX: usize = 64;

/// Periods a reservation profile can span: `lcm(strides) + 2` must not exceed it.
pub const LOOKAHEAD_MAX: u64 = 1024;

/// Longest stride: one frame every 240 periods (4 s at 60 Hz).
pub const STRIDE_MAX: u32 = 240;

/// Dispatches that one event can cause: every free slot may be filled.
pub const DISPATCHES_PER_EVENT_MAX: usize = IN_FLIGHT_MAX;

/// Frames that may end inside of one group; the rest of what is claimed does not count.
pub const FRAMES_PER_GROUP_MAX: u32 = 32;

/// Frames of one app that may have ended and wait for its groups, and that may end between two decisions
/// without any to wait for.
pub const FRAME_ENDS_MAX: usize = 32;

/// Gaps that an app may declare for a frame.
pub const GAPS_MAX: u32 = 1 << 16;

/// Refusals and misses that may wait to be fetched, besides two for each app.
pub const REPORTS_MAX: usize = 256;

/// Jobs of one app with a server that may have begun and not be done: one for each group that can end one, one
/// for each end without a group, and one that is open.
pub const JOBS_MAX: usize = QUEUE_MAX + IN_FLIGHT_MAX + FRAME_ENDS_MAX + 1;

const _: () = assert!(STRIDE_MAX as u64 + 2 <= LOOKAHEAD_MAX);
const _: () = assert!(QUEUE_MAX.is_power_of_two());

/// Longest time that an analysis takes, in its ticks: sums over [`APPS_MAX`] tasks stay in range.
pub const TICKS_MAX: u64 = 1 << 48;

/// Longest interval that an analysis looks at, in its ticks.
pub const HORIZON_MAX: u64 = 1 << 61;

/// Steps that an analysis takes before it gives up: far more than any set needs whose utilisation
/// is not extremely close to one.
pub const ANALYSIS_STEPS_MAX: u32 = 1 << 22;

const _: () = assert!(HORIZON_MAX as u128 + TICKS_MAX as u128 * APPS_MAX as u128 <= 1 << 62);
