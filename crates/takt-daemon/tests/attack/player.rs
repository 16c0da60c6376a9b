//! An app without a contract, whose domain has a minimum share of the GPU and work all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_daemon::rt::realtime;
use takt_ipc::client::Joined;
use takt_ipc::{Reply, Request};
use takt_os::clock;

/// How long its groups are: as long as they may be beside an app with a contract.
const LENGTH: Span = Span::from_us(300);
/// Groups that it has asked for, so that one always waits.
const AHEAD: u64 = 3;

/// The app, on a thread of its own.
pub(crate) struct Player {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Player {
    pub(crate) fn start(app: Joined) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let play = move || {
            // As the victim: what is measured is what the daemon grants, not how busy the processors are.
            realtime::real_time().unwrap_or_default();
            play(app, &stop);
        };
        let thread = std::thread::Builder::new().name("player".to_owned()).spawn(play).expect("a thread");
        Self { over, thread: Some(thread) }
    }

    /// Ends it.
    pub(crate) fn finish(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it was served to the end");
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// Asks for groups until it is over, and ends each as a GPU would that serves one at a time.
fn play(mut app: Joined, over: &AtomicBool) {
    let (mut asked, mut ended) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        while asked < ended + AHEAD {
            let (group, estimate) = (GroupId(asked), Estimate::new(LENGTH));
            app.sender.send(&Request::Submit { group, kind: GroupKind::Draw, estimate }).expect("room");
            asked += 1;
        }
        match app.receiver.next_reply().expect("an honest daemon") {
            Some(Reply::Grant { group, .. }) => {
                std::thread::sleep(Duration::from_nanos(LENGTH.as_ns()));
                let (finished, cost) = (clock::now(), LENGTH);
                app.sender.send(&Request::Complete { group, finished, cost, frames: 0 }).expect("room");
                ended += 1;
            }
            Some(Reply::Farewell) => panic!("it was evicted"),
            Some(_) => {}
            None => app.receiver.sleep(Duration::from_millis(10)),
        }
    }
}
