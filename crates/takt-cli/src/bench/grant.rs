//! From a request to its grant: ring, decision of the daemon, ring, wake-up.
//!
//! The machine takes most of that time: it wakes the daemon first and then the app. So this also
//! measures a bare wake-up, and the same path without any.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use hdrhistogram::Histogram;
use takt_core::{Estimate, GroupId, GroupKind, Span, Time};
use takt_daemon::control::config::Settings;
use takt_daemon::control::server::Server;
use takt_ipc::client::{Joined, join};
use takt_ipc::message::Hello;
use takt_ipc::spin::SpinBudget;
use takt_ipc::wake::Bell;
use takt_ipc::{Reply, Request};
use takt_os::clock;

use super::Measurement;

const PATIENCE: Duration = Duration::from_secs(10);
/// The app pauses between two rounds, as between frames, and both sides go to sleep if they are to.
const PAUSE: Duration = Duration::from_micros(200);
/// Longer than the pause: a side that spins for so long never sleeps.
const SPIN_US: u32 = 1_000;

/// A bare wake-up; then a daemon and one app that asks for `rounds` groups, one after the other: both
/// sleep while they wait, as by default, and both spin.
pub(super) fn measure_all(rounds: u64) -> anyhow::Result<Vec<Measurement>> {
    let usual = Settings::default();
    let with_spin = |us| Settings { spin_us: us, loop_spin_us: us, ..usual.clone() };
    Ok(vec![
        measurement("wake-up", &wake_ups(rounds)?),
        measurement("grant-asleep", &grants(with_spin(0), rounds)?),
        measurement("grant", &grants(usual.clone(), rounds)?),
        measurement("grant-spinning", &grants(with_spin(SPIN_US), rounds)?),
    ])
}

fn measurement(name: &str, histogram: &Histogram<u64>) -> Measurement {
    Measurement {
        name: name.to_owned(),
        n: 1,
        mean_ns: histogram.mean(),
        p50_ns: histogram.value_at_quantile(0.5) as f64,
        p99_ns: histogram.value_at_quantile(0.99) as f64,
        allocations: 0,
        per_second: None,
    }
}

/// From ringing a bell until the sleeper runs.
fn wake_ups(rounds: u64) -> anyhow::Result<Histogram<u64>> {
    let mut histogram = Histogram::new(3)?;
    let bell = Bell::default();
    let (rung, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut heard = 0;
            while !stop.load(Ordering::Relaxed) {
                bell.sleep(PATIENCE, || rung.load(Ordering::Acquire) != heard);
                let now = clock::now();
                let rings = rung.load(Ordering::Acquire);
                if rings != heard {
                    heard = rings;
                    // At the end no receiver is left.
                    tell.send(now).unwrap_or_default();
                }
            }
        });
        let measured = (0..rounds).try_for_each(|_| {
            std::thread::sleep(PAUSE);
            let start = clock::now();
            rung.fetch_add(1, Ordering::Release);
            bell.ring();
            let woken: Time = told.recv_timeout(PATIENCE).context("the sleeper was not woken")?;
            Ok::<_, anyhow::Error>(histogram.record(woken.since(start).as_ns())?)
        });
        drop(told);
        stop.store(true, Ordering::Relaxed);
        rung.fetch_add(1, Ordering::Release);
        bell.ring();
        measured
    })?;
    Ok(histogram)
}

fn grants(settings: Settings, rounds: u64) -> anyhow::Result<Histogram<u64>> {
    let path = std::env::temp_dir().join(format!("takt-bench-{}", std::process::id()));
    let mut server = Server::start(path.clone(), settings).context("cannot start a daemon")?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(|| stop.load(Ordering::Relaxed)));
        let measured = ask_on(&path, rounds);
        stop.store(true, Ordering::Relaxed);
        measured
    })
}

fn ask_on(path: &Path, rounds: u64) -> anyhow::Result<Histogram<u64>> {
    // The daemon keeps processors out of deep sleep for apps that have a frame rate.
    let hello = Hello { name: "bench".to_owned(), fps_mhz: Some(60_000), ..Hello::default() };
    let mut app = join(path, &hello, PATIENCE)?;
    let mut spin = SpinBudget::new(Span::from_us(app.welcome.spin_us.into()));
    let mut histogram = Histogram::new(3)?;
    for group in 0..rounds {
        std::thread::sleep(PAUSE);
        let start = clock::now();
        let estimate = Estimate::new(Span::from_us(10));
        let kind = GroupKind::Draw;
        app.sender.send(&Request::Submit { group: GroupId(group), kind, estimate })?;
        app.receiver.spin(Duration::from_nanos(spin.limit().as_ns()));
        wait_for(&mut app, group)?;
        let finished = clock::now();
        let took = finished.since(start);
        spin.waited(took);
        histogram.record(took.as_ns())?;
        app.sender.send(&Request::Complete {
            group: GroupId(group),
            finished,
            cost: Span::from_us(10),
            frames: 0,
        })?;
    }
    Ok(histogram)
}

fn wait_for(app: &mut Joined, wanted: u64) -> anyhow::Result<()> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        match app.receiver.next_reply()? {
            Some(Reply::Grant { group, .. }) if group.0 == wanted => return Ok(()),
            Some(_) => {}
            None => app.receiver.sleep(Duration::from_millis(100)),
        }
    }
    bail!("no grant for group {wanted} in {} s", PATIENCE.as_secs())
}
