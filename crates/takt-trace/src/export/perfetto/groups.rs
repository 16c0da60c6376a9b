//! The slices of command groups: from submission to the end, with the phases inside.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use takt_core::{AppId, GroupId, Refusal, Span, Time};

use super::lanes::{Lane, Lanes};
use crate::export::packets::{Args, Packets, Place, TrackId};
use crate::lives::{Life, Lives, kind_name};
use crate::record::Record;

/// Groups that are drawn at the moment.
#[derive(Debug)]
pub(super) struct Groups {
    lives: Lives,
    /// The group whose story the current record ended.
    ended: Option<Life>,
    open: BTreeMap<GroupId, Open>,
    lanes: BTreeMap<AppId, Lanes>,
    in_flight: BTreeSet<GroupId>,
    in_flight_track: TrackId,
    flows: u64,
}

/// A group whose slice has begun and not ended.
#[derive(Debug)]
struct Open {
    life: Life,
    lane: Lane,
    phase: Phase,
    /// When the phase began.
    since: Time,
    /// How long it ran before it was preempted.
    ran: Span,
    /// Identity of the arrow; group numbers may be used again, these are not.
    flow: u64,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Phase {
    Waiting,
    Queued,
    Running,
}

impl Groups {
    pub(super) fn new(in_flight_track: TrackId) -> Self {
        Self {
            lives: Lives::new(),
            ended: None,
            open: BTreeMap::new(),
            lanes: BTreeMap::new(),
            in_flight: BTreeSet::new(),
            in_flight_track,
            flows: 0,
        }
    }

    /// Takes in every record, before anything else is done with it.
    pub(super) fn see(&mut self, at: Time, record: &Record) {
        self.ended = self.lives.see(at, record);
    }

    /// Begins the slice of a group below `parent`; returns the frame it belongs to.
    pub(super) fn submit<W: Write>(
        &mut self,
        out: &mut Packets<W>,
        parent: TrackId,
        at: Time,
        group: GroupId,
    ) -> Option<u64> {
        let life = *self.lives.get(group)?;
        self.close(out, at, group, Args::new().flag("unfinished", true));
        let place = Place { parent: Some(parent), rank: 1 };
        let lanes = self.lanes.entry(life.app);
        let lane = lanes.or_insert_with(|| Lanes::new(place, "groups")).take(out);
        self.flows += 1;
        let name = format!("{} {}", kind_name(life.kind), group.0);
        let waiting = Args::new().flow(self.flows);
        out.begin(at, lane.track, name, facts(&life));
        out.begin(at, lane.track, "waiting".to_owned(), waiting);
        let open = Open { life, lane, phase: Phase::Waiting, since: at, ran: Span::ZERO, flow: self.flows };
        self.open.insert(group, open);
        Some(life.frame)
    }

    /// Arrow that leads from the submission of `group` to its execution.
    pub(super) fn flow(&self, group: GroupId) -> Option<u64> {
        self.open.get(&group).map(|open| open.flow)
    }

    /// Gpu time reserved for `group`, once it is dispatched.
    pub(super) fn reserved(&self, group: GroupId) -> Option<Span> {
        self.lives.get(group)?.reserved
    }

    pub(super) fn dispatch<W: Write>(&mut self, out: &mut Packets<W>, at: Time, group: GroupId) {
        let reserved = self.reserved(group);
        if let Some(open) = self.open.get_mut(&group)
            && open.phase == Phase::Waiting
        {
            open.life.reserved = reserved;
            open.enter(out, at, Phase::Queued);
            self.in_flight.insert(group);
            self.count(out, at);
        }
    }

    /// The GPU begins the group; returns what to note on the GPU's slice.
    pub(super) fn run<W: Write>(&mut self, out: &mut Packets<W>, at: Time, group: GroupId) -> Args {
        let Some(open) = self.open.get_mut(&group) else {
            return Args::new().number("group", group.0);
        };
        let args = facts(&open.life);
        if open.phase == Phase::Running {
            // It was interrupted and goes on: the arrow led to its first slice.
            return args;
        }
        open.enter(out, at, Phase::Running);
        args.flow_end(open.flow)
    }

    /// The GPU gave the group back.
    pub(super) fn wait_again<W: Write>(
        &mut self,
        out: &mut Packets<W>,
        at: Time,
        group: GroupId,
        on_gpu: bool,
    ) {
        if let Some(open) = self.open.get_mut(&group) {
            if open.phase == Phase::Running {
                open.ran += at.since(open.since);
            }
            open.enter(out, at, if on_gpu { Phase::Queued } else { Phase::Waiting });
        }
    }

    /// The app and the start of a dispatched group whose execution was not recorded, although
    /// the current record completes it.
    pub(super) fn unseen(&self, group: GroupId) -> Option<(AppId, Time)> {
        let open = self.open.get(&group)?;
        if open.phase != Phase::Queued {
            return None;
        }
        let started = self.ended?.started?;
        Some((open.life.app, started.max(open.since)))
    }

    /// Ends the slice of a group that the GPU finished.
    pub(super) fn end<W: Write>(&mut self, out: &mut Packets<W>, at: Time, group: GroupId) {
        let measured = match self.open.get(&group) {
            Some(open) if open.phase == Phase::Running => open.ran + at.since(open.since),
            _ => Span::ZERO,
        };
        self.close(out, at, group, Args::new().span("measured_us", measured));
    }

    /// Ends the slice of a group that was not accepted.
    pub(super) fn refuse<W: Write>(
        &mut self,
        out: &mut Packets<W>,
        at: Time,
        group: GroupId,
        reason: Refusal,
    ) {
        // An unknown group is a completion's fault; the submission stands.
        if reason != Refusal::UnknownGroup {
            let args = Args::new().text("refused", reason.to_string());
            self.close(out, at, group, args);
        }
    }

    /// The scheduler no longer counts the group as in flight.
    pub(super) fn landed<W: Write>(&mut self, out: &mut Packets<W>, at: Time, group: GroupId) {
        if self.in_flight.remove(&group) {
            self.count(out, at);
        }
    }

    /// Drops what still waits of an app that leaves.
    pub(super) fn leave<W: Write>(&mut self, out: &mut Packets<W>, at: Time, app: AppId) {
        let dropped: Vec<GroupId> = self
            .open
            .iter()
            .filter(|(_, open)| open.life.app == app && open.phase == Phase::Waiting)
            .map(|(group, _)| *group)
            .collect();
        for group in dropped {
            self.close(out, at, group, Args::new().flag("dropped", true));
        }
    }

    /// The app's groups are drawn elsewhere from now on.
    pub(super) fn moved(&mut self, app: AppId) {
        self.lanes.remove(&app);
    }

    pub(super) fn close_all<W: Write>(&mut self, out: &mut Packets<W>, at: Time) {
        while let Some(group) = self.open.keys().next().copied() {
            self.close(out, at, group, Args::new().flag("unfinished", true));
        }
    }

    fn close<W: Write>(&mut self, out: &mut Packets<W>, at: Time, group: GroupId, args: Args) {
        if let Some(open) = self.open.remove(&group) {
            out.end(at, open.lane.track, Args::new());
            out.end(at, open.lane.track, args);
            if let Some(lanes) = self.lanes.get_mut(&open.life.app) {
                lanes.give_back(open.lane);
            }
        }
    }

    fn count<W: Write>(&self, out: &mut Packets<W>, at: Time) {
        let count = i64::try_from(self.in_flight.len()).unwrap_or(i64::MAX);
        out.count(at, self.in_flight_track, count);
    }
}

impl Open {
    fn enter<W: Write>(&mut self, out: &mut Packets<W>, at: Time, phase: Phase) {
        let (name, args) = match phase {
            Phase::Waiting => ("waiting", Args::new()),
            Phase::Queued => ("queued", self.reserved_args()),
            Phase::Running => ("running", Args::new()),
        };
        out.end(at, self.lane.track, Args::new());
        out.begin(at, self.lane.track, name.to_owned(), args);
        self.phase = phase;
        self.since = at;
    }

    fn reserved_args(&self) -> Args {
        let reserved = self.life.reserved;
        reserved.map_or_else(Args::new, |span| Args::new().span("reserved_us", span))
    }
}

/// What is worth telling about a group wherever it is drawn.
fn facts(life: &Life) -> Args {
    let args = Args::new()
        .number("group", life.group.0)
        .text("kind", kind_name(life.kind))
        .number("frame", life.frame)
        .span("predicted_us", life.predicted.span());
    match life.reserved {
        Some(reserved) => args.span("reserved_us", reserved),
        None => args,
    }
}
