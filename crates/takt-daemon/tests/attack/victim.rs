//! A protected app that draws at 60 frames per second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_daemon::rt::realtime;
use takt_ipc::client::Joined;
use takt_ipc::{Reply, Request};
use takt_os::clock;

use crate::canary::Canaries;
use crate::support::await_reply;

/// Of the display, and of the app.
const PERIOD: Span = Span::from_us(16_667);
/// What each frame costs.
const COST: Span = Span::from_us(500);
/// Frames before the first that counts.
const WARM_UP: u64 = 10;

/// The app, on a thread of its own.
pub(crate) struct Victim {
    over: Arc<AtomicBool>,
    drawn: Arc<AtomicU64>,
    thread: Option<JoinHandle<Frames>>,
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// What became of its frames.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Frames {
    pub(crate) drawn: u64,
    /// Late, although the machine did not stand still.
    pub(crate) lost: u64,
    /// Late, and in time without the standstills of the machine.
    pub(crate) starved: u64,
    /// The longest wait for a grant of a frame that counts.
    pub(crate) wait_max: Span,
    /// Whether the system gave it a real-time priority; without, any busy program delays it.
    pub(crate) is_urgent: bool,
}

/// When one frame was released, begun and granted.
struct Frame {
    release: Time,
    begun: Time,
    granted: Time,
}

impl Victim {
    pub(crate) fn start(app: Joined, canaries: Arc<Canaries>) -> Self {
        let (over, drawn) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stop, count) = (Arc::clone(&over), Arc::clone(&drawn));
        let draw = move || Drawing { app, group: 0 }.run(&stop, &count, &canaries);
        let thread = std::thread::Builder::new().name("victim".to_owned()).spawn(draw).expect("a thread");
        Self { over, drawn, thread: Some(thread) }
    }

    /// Frames so far.
    pub(crate) fn drawn(&self) -> u64 {
        self.drawn.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Ends it.
    pub(crate) fn finish(&mut self) -> Frames {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join).expect("it is ended once");
        ended.expect("it was served to the end")
    }
}

struct Drawing {
    app: Joined,
    group: u64,
}

impl Drawing {
    fn run(mut self, over: &AtomicBool, count: &AtomicU64, canaries: &Canaries) -> Frames {
        let mut frames = Frames { is_urgent: realtime::real_time().is_ok(), ..Frames::default() };
        let mut late = Vec::new();
        let mut release = clock::now();
        while !over.load(Ordering::Relaxed) {
            let frame = self.draw(release);
            release = self.released();
            count.fetch_add(1, Ordering::Relaxed);
            if self.group <= WARM_UP {
                continue;
            }
            frames.drawn += 1;
            frames.wait_max = frames.wait_max.max(frame.granted.since(frame.begun));
            if frame.granted > frame.release + PERIOD {
                late.push(frame);
            }
        }
        let is_starved = |frame: &&Frame| {
            let took = frame.granted.since(frame.release);
            took <= PERIOD + canaries.stood_still(frame.release, frame.granted)
        };
        frames.starved = late.iter().filter(is_starved).count() as u64;
        frames.lost = late.len() as u64 - frames.starved;
        frames
    }

    fn draw(&mut self, release: Time) -> Frame {
        std::thread::sleep(Duration::from_nanos(release.since(clock::now()).as_ns()));
        let (begun, group) = (clock::now(), GroupId(self.group));
        self.group += 1;
        let submit = Request::Submit { group, kind: GroupKind::Swap, estimate: Estimate::new(COST) };
        self.app.sender.send(&submit).expect("room");
        await_reply(&mut self.app, |reply| match reply {
            Reply::Farewell => panic!("it was evicted"),
            Reply::Grant { group: granted, .. } => (granted == group).then_some(()),
            _ => None,
        });
        let granted = clock::now();
        let complete = Request::Complete { group, finished: granted, cost: COST, frames: 0 };
        self.app.sender.send(&complete).expect("room");
        Frame { release, begun, granted }
    }

    fn released(&mut self) -> Time {
        await_reply(&mut self.app, |reply| match reply {
            Reply::Farewell => panic!("it was evicted"),
            Reply::Release { at } => Some(at),
            _ => None,
        })
    }
}
