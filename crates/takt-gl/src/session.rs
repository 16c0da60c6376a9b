//! The session of this process with the daemon.
//!
//! Where a daemon schedules, no work reaches the driver without a grant. The whole process is one
//! client; [`takt_client::session`] says how its threads share grants, and what happens when the daemon
//! does not answer.

use std::sync::OnceLock;

use takt_client::{Session, environment};
use takt_ipc::message::{Hello, Pacing};

use crate::settings::settings;

/// The session of this process. Without a socket in the settings everything passes.
pub fn session() -> &'static Session {
    static SESSION: OnceLock<Session> = OnceLock::new();
    SESSION.get_or_init(|| {
        // What decides when frames begin shows in the first ones.
        let hello = Hello { pacing: Some(Pacing::Unknown), ..settings().hello.clone() };
        environment::session(settings().socket.clone(), hello)
    })
}

/// Most frames per second that a program may ask for.
const FPS_MAX: u32 = 1_000;
/// Most GPU time per frame, in microseconds: a minute.
const BUDGET_MAX_US: u32 = 60_000_000;

/// How a program's call to set its frame target ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Targeted {
    /// The daemon was asked, or will be.
    Done = 0,
    /// A number is out of range.
    Invalid = 1,
    /// The program is not scheduled.
    Unscheduled = 2,
}

/// The program draws so many frames per second and needs so much GPU time for each, whatever `takt run` said. If the
/// daemon refuses, the terms before stay.
pub fn set_frame_target(fps: u32, budget_us: u32) -> Targeted {
    if !session().is_wanted() {
        return Targeted::Unscheduled;
    }
    match target(&settings().hello, fps, budget_us) {
        Some(hello) => {
            session().renew(hello);
            Targeted::Done
        }
        None => Targeted::Invalid,
    }
}

/// What to ask for instead of `before`: frames of a display, or of the program's own clock as Takt finds out.
fn target(before: &Hello, fps: u32, budget_us: u32) -> Option<Hello> {
    let is_possible = (1..=FPS_MAX).contains(&fps) && (1..=BUDGET_MAX_US).contains(&budget_us);
    is_possible.then(|| Hello {
        fps_mhz: Some(fps * 1_000),
        etpf_ns: Some(u64::from(budget_us) * 1_000),
        period_ns: None,
        deadline_ns: None,
        runtime_ns: None,
        hard: false,
        pacing: Some(Pacing::Unknown),
        ..before.clone()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_target_takes_the_place_of_other_contracts() {
        let before = Hello {
            name: "game".to_owned(),
            period_ns: Some(1),
            runtime_ns: Some(1),
            hard: true,
            ..Hello::default()
        };
        let after = target(&before, 60, 3_000).expect("possible");
        assert_eq!(
            (after.fps_mhz, after.etpf_ns, after.name.as_str()),
            (Some(60_000), Some(3_000_000), "game")
        );
        assert_eq!((after.period_ns, after.runtime_ns, after.hard), (None, None, false));
        for (fps, us) in [(0, 3_000), (60, 0), (1_001, 3_000), (60, 60_000_001)] {
            assert_eq!(target(&before, fps, us), None, "{fps} {us}");
        }
    }
}
