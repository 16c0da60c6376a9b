//! A run as a trace for the Perfetto UI.
//!
//! ```text
//! takt: scenario (policy)
//! ├── GPU                one slice per executed group, named by its app
//! ├── GPU compute        the same of apps whose work the GPU interrupts; only if there are any
//! ├── decisions          dispatches, holds and refusals as instants
//! ├── vsync              one slice per refresh period
//! ├── in flight          counter
//! ├── GPU busy           counter, per refresh period
//! ├── GPU state          stalls, and a counter of the clock; only if they occur
//! └── one track per app, most important on top: missed deadlines as instants
//!     ├── frames         from the first submission to the end of the frame
//!     └── groups         from submission to the end; inside: waiting, queued, running
//! ```
//!
//! Frames and groups of one app overlap in time, but slices of one Perfetto track must nest. So
//! each is drawn on a lane that is free at the time; lanes of an app bear the same name, which
//! makes the UI show them as one track with several rows.

mod apps;
mod groups;
mod lanes;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::iter;

use takt_core::{Action, AppId, Event, GroupId, Hold, Period, Time};

use self::apps::Apps;
use self::groups::Groups;
use super::packets::{Args, Packets, Place, TrackId};
use crate::record::{AppMeta, GpuRecord, Meta, Observer, Record, why_held};

/// Writes a Perfetto trace.
#[derive(Debug)]
pub struct Perfetto<W> {
    out: Packets<W>,
    decisions: TrackId,
    vsync: Vsync,
    gpu: Gpu,
    apps: Apps,
    groups: Groups,
    last: Time,
}

impl<W: Write> Perfetto<W> {
    /// Writes the tracks to `out`.
    pub fn new(out: W, meta: &Meta) -> io::Result<Self> {
        let mut out = Packets::new(out);
        let place = Place { parent: None, rank: 0 };
        let title = format!("takt: {} ({})", meta.scenario, meta.policy);
        let root = out.track(place, &title, "");
        let below = |rank| Place { parent: Some(root), rank };
        let gpu = out.track(below(0), "GPU", "What the GPU executed, named by app");
        let decisions = out.track(below(2), "decisions", "What the scheduler decided, and why");
        let vsync = out.track(below(3), "vsync", "Refresh periods of the display");
        let in_flight = out.counter_track(below(4), "in flight", "groups");
        let busy = out.counter_track(below(5), "GPU busy in the period before", "%");
        let apps = Apps::new(&mut out, meta, root);
        out.check()?;
        Ok(Self {
            out,
            decisions,
            vsync: Vsync { track: vsync, busy_track: busy, begun: None, busy_ns: 0 },
            gpu: Gpu::new(root, gpu),
            apps,
            groups: Groups::new(in_flight),
            last: Time::ZERO,
        })
    }

    /// Closes what is still open at the time of the last record, and flushes.
    pub fn finish(mut self) -> io::Result<()> {
        let (at, out) = (self.last, &mut self.out);
        self.groups.close_all(out, at);
        self.apps.close_all(out, at);
        let vsync = self.vsync.begun.map(|_| self.vsync.track);
        for track in self.gpu.busy_tracks().chain(vsync) {
            out.end(at, track, Args::new().flag("unfinished", true));
        }
        self.out.finish()
    }

    fn event(&mut self, at: Time, event: &Event) {
        let out = &mut self.out;
        match *event {
            Event::Join { app, params, .. } => {
                let args = Args::new()
                    .number("priority", u64::from(params.priority.0))
                    .number("stride", params.stride.periods())
                    .span("etpf_us", params.etpf);
                self.apps.mark(out, at, app, "joined".to_owned(), args);
                self.gpu.meet(app, params.service.divisible);
            }
            Event::Change { app, params } => {
                self.gpu.meet(app, params.service.divisible);
                let args = Args::new()
                    .number("priority", u64::from(params.priority.0))
                    .number("stride", params.stride.periods())
                    .span("etpf_us", params.etpf);
                self.apps.mark(out, at, app, "changed".to_owned(), args);
            }
            Event::Leave { app } => {
                self.apps.mark(out, at, app, "left".to_owned(), Args::new());
                self.groups.leave(out, at, app);
                self.apps.close_frames(out, at, app);
            }
            Event::Submit { app, group, .. } => {
                let parent = self.apps.track(out, app);
                if let Some(frame) = self.groups.submit(out, parent, at, group) {
                    self.apps.begin_frame(out, at, app, frame);
                }
            }
            // Its slice ends when it is done.
            Event::EndFrame { .. } => {}
            Event::Complete { group, finished, .. } => self.complete(at, group, finished),
            Event::Focus { app: Some(app) } => {
                self.apps.mark(out, at, app, "has the focus".to_owned(), Args::new());
            }
            Event::Focus { app: None } => {}
            Event::Refresh { refresh, .. } => {
                let args = Args::new().number("refresh_mhz", u64::from(refresh.mhz()));
                out.instant(at, self.decisions, "refresh changed".to_owned(), args);
            }
            Event::Revise { app, group, estimate } => {
                let args = Args::new().number("group", group.0).span("predicted_us", estimate.span());
                self.apps.mark(out, at, app, "estimate revised".to_owned(), args);
            }
            Event::Adjust(adjustable) => {
                let args = Args::new()
                    .number("mpcg", u64::from(adjustable.mpcg))
                    .span("blocking_us", adjustable.blocking)
                    .span("stretch_us", adjustable.stretch);
                out.instant(at, self.decisions, "parameters changed".to_owned(), args);
            }
        }
    }

    fn action(&mut self, at: Time, action: &Action) {
        match *action {
            Action::Dispatch { app, group, .. } => self.dispatch(at, app, group),
            Action::Preempt { app, group } => {
                let name = format!("preempt {}", self.apps.name(app));
                self.out.instant(at, self.decisions, name, Args::new().number("group", group.0));
                self.groups.landed(&mut self.out, at, group);
            }
            Action::Ranked { app, priority } => {
                let args = Args::new().number("priority", u64::from(priority.0));
                self.apps.mark(&mut self.out, at, app, "ranked".to_owned(), args);
            }
            Action::Hold { app, reason } => self.hold(at, app, reason),
            Action::Refused { app, group, reason } => {
                let name = format!("refused {}: {reason}", self.apps.name(app));
                let args = group.map_or_else(Args::new, |g| Args::new().number("group", g.0));
                self.out.instant(at, self.decisions, name, args);
                if let Some(group) = group {
                    self.groups.refuse(&mut self.out, at, group, reason);
                }
            }
            Action::Missed { app, frame, deadline, period, count } => {
                let args =
                    Args::new().number("frame", frame).number("period", period.0).number("count", count);
                let name = format!("missed deadline: frame {frame}");
                self.apps.mark(&mut self.out, deadline, app, name, args);
            }
            Action::FrameDone(done) => self.apps.end_frame(&mut self.out, &done),
            Action::Lost { app, group, .. } => {
                let name = format!("lost completion of {}", self.apps.name(app));
                let args = Args::new().number("group", group.0);
                self.out.instant(at, self.decisions, name, args);
                self.groups.landed(&mut self.out, at, group);
            }
            Action::Left { app, dropped } => {
                let name = format!("{} left", self.apps.name(app));
                let args = Args::new().number("dropped", u64::from(dropped));
                self.out.instant(at, self.decisions, name, args);
            }
            Action::Broken(broken) => {
                self.out.instant(at, self.decisions, broken.to_string(), Args::new());
            }
            // Its time lies in the future; the next frame's slice shows when it was used.
            Action::Release { .. } => {}
        }
    }

    fn dispatch(&mut self, at: Time, app: AppId, group: GroupId) {
        let name = format!("dispatch {}", self.apps.name(app));
        let mut args = Args::new().number("group", group.0);
        if let Some(flow) = self.groups.flow(group) {
            args = args.flow(flow);
        }
        if let Some(reserved) = self.groups.reserved(group) {
            args = args.span("reserved_us", reserved);
        }
        self.out.instant(at, self.decisions, name, args);
        self.groups.dispatch(&mut self.out, at, group);
    }

    fn hold(&mut self, at: Time, app: AppId, reason: Hold) {
        let why = why_held(reason, |app| self.apps.name(app).to_owned());
        let name = format!("hold {}: {why}", self.apps.name(app));
        self.out.instant(at, self.decisions, name, Args::new());
    }

    fn gpu(&mut self, at: Time, record: &GpuRecord) {
        match *record {
            GpuRecord::Queued { .. } => {}
            GpuRecord::Started { app, group } => {
                self.start_gpu(at, app, group);
            }
            GpuRecord::Finished { group, .. } => {
                self.stop_gpu(at, group);
                self.groups.end(&mut self.out, at, group);
            }
            GpuRecord::Preempted { group, stays, .. } => {
                self.stop_gpu(at, group);
                self.groups.wait_again(&mut self.out, at, group, stays);
            }
            GpuRecord::Stalled { until } => {
                let state = self.gpu.state(&mut self.out);
                let from = at.max(state.stalled_until);
                if until > from {
                    let name = "stalled".to_owned();
                    self.out.begin(from, state.track, name, Args::new());
                    self.out.end(until, state.track, Args::new());
                    state.stalled_until = until;
                }
            }
            GpuRecord::Clock { permille } => {
                let state = self.gpu.state(&mut self.out);
                self.out.gauge(at, state.clock, f64::from(permille) / 10.0);
            }
        }
    }

    /// Where the GPU itself was not recorded, the completion tells what it did.
    fn complete(&mut self, at: Time, group: GroupId, finished: Time) {
        if let Some((app, started)) = self.groups.unseen(group) {
            let started = started.max(self.gpu.engine(&mut self.out, app).last_change());
            self.start_gpu(started, app, group);
            self.stop_gpu(finished.max(started), group);
            self.groups.end(&mut self.out, finished.max(started), group);
        }
        self.groups.landed(&mut self.out, at, group);
    }

    /// Begins a slice on the track of an app's engine, which has room for one at a time.
    fn start_gpu(&mut self, at: Time, app: AppId, group: GroupId) {
        if let Some((before, _)) = self.gpu.engine(&mut self.out, app).running {
            self.stop_gpu(at, before);
        }
        let args = self.groups.run(&mut self.out, at, group);
        let name = self.apps.name(app).to_owned();
        let was_idle = self.gpu.is_idle();
        let engine = self.gpu.engine(&mut self.out, app);
        self.out.begin(at, engine.track, name, args);
        engine.running = Some((group, at));
        if was_idle {
            self.gpu.busy_since = at;
        }
    }

    /// Ends the slice of a group, if it has one.
    fn stop_gpu(&mut self, at: Time, group: GroupId) {
        let Some(track) = self.gpu.stop(at, group) else { return };
        self.out.end(at, track, Args::new());
        if self.gpu.is_idle() {
            self.vsync.add_busy(self.gpu.busy_since, at);
        }
    }
}

impl<W: Write> Observer for Perfetto<W> {
    fn record(&mut self, at: Time, record: &Record) {
        self.last = self.last.max(at);
        self.groups.see(at, record);
        match record {
            Record::In(event) => self.event(at, event),
            Record::Out(action) => self.action(at, action),
            Record::Gpu(gpu) => self.gpu(at, gpu),
            Record::Vsync(period) => {
                if !self.gpu.is_idle() {
                    self.vsync.add_busy(self.gpu.busy_since, at);
                }
                self.vsync.next(&mut self.out, at, *period);
            }
            Record::Policy(name) => {
                self.out.instant(at, self.decisions, format!("policy {name}"), Args::new());
            }
            Record::Gap { records } => {
                let args = Args::new().number("records", *records);
                self.out.instant(at, self.decisions, "records are missing".to_owned(), args);
                self.groups.close_all(&mut self.out, at);
            }
            Record::Turn => {}
        }
    }

    fn meet(&mut self, at: Time, app: AppId, meta: &AppMeta) {
        if self.apps.meet(&mut self.out, at, app, meta) {
            self.groups.moved(app);
        }
    }
}

/// The track of refresh periods, and how busy the GPU was in each.
#[derive(Debug)]
struct Vsync {
    track: TrackId,
    busy_track: TrackId,
    begun: Option<Time>,
    busy_ns: u64,
}

impl Vsync {
    fn next<W: Write>(&mut self, out: &mut Packets<W>, at: Time, period: Period) {
        if let Some(begun) = self.begun {
            out.end(at, self.track, Args::new());
            let length = at.since(begun).as_ns();
            if length > 0 {
                out.gauge(at, self.busy_track, percent(self.busy_ns, length));
            }
        }
        out.begin(at, self.track, format!("period {}", period.0), Args::new());
        self.begun = Some(at);
        self.busy_ns = 0;
    }

    /// Counts the part of `[from, to)` that lies in the current period.
    fn add_busy(&mut self, from: Time, to: Time) {
        let from = from.max(self.begun.unwrap_or_default());
        self.busy_ns += to.since(from).as_ns();
    }
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn percent(part_ns: u64, whole_ns: u64) -> f64 {
    (part_ns as f64 / whole_ns as f64 * 100.0).min(100.0)
}

/// The tracks of the GPU: what it executes, beside that the work that it interrupts, and its troubles, if it has any.
#[derive(Debug)]
struct Gpu {
    root: TrackId,
    graphics: Engine,
    compute: Option<Engine>,
    state: Option<GpuState>,
    /// Apps whose work the GPU interrupts: it runs between that of others.
    interrupted: BTreeSet<AppId>,
    /// Since when any engine has something to do; means nothing while none has.
    busy_since: Time,
}

/// What executes one thing at a time.
#[derive(Copy, Clone, Debug)]
struct Engine {
    track: TrackId,
    /// What it executes, and since when.
    running: Option<(GroupId, Time)>,
    /// End of the last slice.
    free: Time,
}

impl Engine {
    fn new(track: TrackId) -> Self {
        Self { track, running: None, free: Time::ZERO }
    }

    fn last_change(&self) -> Time {
        self.running.map_or(self.free, |(_, since)| since)
    }
}

#[derive(Copy, Clone, Debug)]
struct GpuState {
    track: TrackId,
    clock: TrackId,
    stalled_until: Time,
}

impl Gpu {
    fn new(root: TrackId, track: TrackId) -> Self {
        let (graphics, interrupted) = (Engine::new(track), BTreeSet::new());
        Self { root, graphics, compute: None, state: None, interrupted, busy_since: Time::ZERO }
    }

    /// An app says whether the GPU interrupts its work.
    fn meet(&mut self, app: AppId, is_interrupted: bool) {
        if is_interrupted {
            self.interrupted.insert(app);
        } else {
            self.interrupted.remove(&app);
        }
    }

    /// What executes the work of an app.
    fn engine<W: Write>(&mut self, out: &mut Packets<W>, app: AppId) -> &mut Engine {
        if !self.interrupted.contains(&app) {
            return &mut self.graphics;
        }
        let place = Place { parent: Some(self.root), rank: 1 };
        let about = "What it executed of apps whose work it interrupts, named by app";
        self.compute.get_or_insert_with(|| Engine::new(out.track(place, "GPU compute", about)))
    }

    fn engines(&self) -> impl Iterator<Item = &Engine> {
        iter::once(&self.graphics).chain(&self.compute)
    }

    fn is_idle(&self) -> bool {
        self.engines().all(|engine| engine.running.is_none())
    }

    /// Tracks of engines that are at work.
    fn busy_tracks(&self) -> impl Iterator<Item = TrackId> {
        self.engines().filter(|engine| engine.running.is_some()).map(|engine| engine.track)
    }

    /// A group does not run any more; the track that it was on, if it was on any.
    fn stop(&mut self, at: Time, group: GroupId) -> Option<TrackId> {
        let mut engines = iter::once(&mut self.graphics).chain(&mut self.compute);
        let engine = engines.find(|engine| engine.running.is_some_and(|(running, _)| running == group))?;
        (engine.running, engine.free) = (None, at);
        Some(engine.track)
    }

    fn state<W: Write>(&mut self, out: &mut Packets<W>) -> &mut GpuState {
        let root = self.root;
        self.state.get_or_insert_with(|| {
            let below = |rank| Place { parent: Some(root), rank };
            GpuState {
                track: out.track(below(6), "GPU state", "Times in which the GPU stood still"),
                clock: out.counter_track(below(7), "GPU clock", "%"),
                stalled_until: Time::ZERO,
            }
        })
    }
}
