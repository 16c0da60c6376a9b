//! From asking for leave to having it: ring, daemon's decision, ring, wake-up.

use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use takt_core::{Estimate, GroupId, GroupKind, Span};
use takt_daemon::clock;
use takt_daemon::config::Settings;
use takt_daemon::server::Server;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;
use takt_ipc::{Reply, Request};

use super::Measurement;

const PATIENCE: Duration = Duration::from_secs(10);
/// Between two rounds the daemon and the app fall asleep, as they do between frames.
const PAUSE: Duration = Duration::from_micros(200);

/// A daemon and one app that asks for `rounds` groups, one after the other.
pub(super) fn measure_all(rounds: u64) -> anyhow::Result<Vec<Measurement>> {
    let path = std::env::temp_dir().join(format!("takt-bench-{}", std::process::id()));
    let mut server = Server::start(path.clone(), Settings::default()).context("cannot start a daemon")?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(|| stop.load(std::sync::atomic::Ordering::Relaxed)));
        let measured = measure(&path, rounds);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        measured.map(|measurement| vec![measurement])
    })
}

fn measure(path: &std::path::Path, rounds: u64) -> anyhow::Result<Measurement> {
    let hello = Hello { name: "bench".to_owned(), ..Hello::default() };
    let mut app = join(path, &hello, PATIENCE)?;
    let mut histogram = Histogram::<u64>::new(3)?;
    for group in 0..rounds {
        std::thread::sleep(PAUSE);
        let start = Instant::now();
        let estimate = Estimate::new(Span::from_us(10));
        let kind = GroupKind::Draw;
        app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate })?;
        app.receiver.spin(Duration::from_micros(app.welcome.spin_us.into()));
        wait_for(&mut app, group, start)?;
        histogram.record(u64::try_from(start.elapsed().as_nanos())?)?;
        let (finished, cost) = (clock::now(), Span::from_us(10));
        app.sender.send(&Request::Complete { group: GroupId(group), finished, cost, frames: 0 })?;
    }
    Ok(Measurement {
        name: "grant".to_owned(),
        n: 1,
        mean_ns: histogram.mean(),
        p50_ns: histogram.value_at_quantile(0.5) as f64,
        p99_ns: histogram.value_at_quantile(0.99) as f64,
        allocations: 0,
        per_second: None,
    })
}

fn wait_for(app: &mut Joined, wanted: u64, start: Instant) -> anyhow::Result<()> {
    while start.elapsed() < PATIENCE {
        match app.receiver.next_reply()? {
            Some(Reply::Grant { group, .. }) if group.0 == wanted => return Ok(()),
            Some(_) => {}
            None => app.receiver.sleep(Duration::from_millis(100)),
        }
    }
    bail!("no grant for group {wanted} in {} s", PATIENCE.as_secs())
}
