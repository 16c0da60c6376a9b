//! `hpf`: the highest priority first, by whole frames.
//!
//! * **Rules.** The most important app that is attached, the *first*, dispatches whatever batch it
//!   has, to the end. Another one may dispatch a single group if the first is between two frames
//!   (it has dispatched the swap of one and submitted nothing of the next) and the group is
//!   predicted to end before the first starts its next frame. Of several such groups that of the
//!   most important app goes. An app is ready when a whole batch of it waits, or a single group
//!   where apps ask for them one by one.
//! * **Promises.** The first app meets its deadlines if its groups run no longer than predicted
//!   and its frames fit into its own periods. Other apps are promised nothing: a group that is
//!   longer than the gaps that the first one leaves never runs, and while the first one prepares a
//!   frame on the CPU, or hangs, the GPU idles.
//! * **Assumptions.** The GPU executes in order, groups run no longer than predicted, and those of
//!   the less important apps are short enough for the gaps. Apps tell where their frames end.
//! * **Command classes.** The source sorts commands into classes, which are kinds of groups here:
//!   its *swap* is [`takt_core::GroupKind::Swap`]; *synchronous* is [`takt_core::GroupKind::Sync`], and
//!   like a swap ends a batch; *draw*, *memcopy* and *unknown* are [`takt_core::GroupKind::Draw`];
//!   *CPU only* makes no group. Its exit flag is [`takt_core::GroupKind::Exit`].
//! * **Source.** Tanveer 2013 (FG-SDS), Tables 5-9, 5-13 and 5-15. The listing never marks the
//!   first app as found, so that each app would be it; the text says what is meant. It compares
//!   with the deadline of the frame that the first has just ended, which is where the next one
//!   starts; here that start itself is taken, since apps at low rates start later. It waits for
//!   each group before it decides again; here the time at which the GPU is free counts instead,
//!   so that the GPU need not run dry.
//! * **Cost.** One pass over the apps; no allocation.

use takt_core::event::Hold;
use takt_core::policy::{Context, Policy};
use takt_core::scheduler::Lane;

/// The highest priority first.
#[derive(Copy, Clone, Default, Debug)]
pub struct Hpf;

impl Policy for Hpf {
    fn name(&self) -> &'static str {
        "hpf"
    }

    fn choose(&mut self, context: &Context, lanes: &mut [Lane]) -> Option<usize> {
        let first = *lanes.first()?;
        let between_frames = first.head.is_none() && first.front.enqueued == takt_core::Span::ZERO;
        let starts = first.release_of(first.target);
        let fits = |lane: &Lane| {
            let ends = lane.head.map(|head| context.ready_c + head.conservative);
            between_frames && ends.is_some_and(|ends| ends <= starts)
        };
        let mut chosen = None;
        for (index, lane) in lanes.iter_mut().enumerate() {
            if lane.head.is_none() {
                continue;
            }
            lane.hold = Some(match chosen {
                Some(app) => Hold::Behind { app },
                None if !lane.has_batch() && !context.config.singly => Hold::Batch,
                None if index == 0 || fits(lane) => {
                    chosen = Some(lane.app);
                    continue;
                }
                None => Hold::Protects { app: first.app },
            });
        }
        lanes.iter().position(|lane| Some(lane.app) == chosen)
    }
}
