//! The tracks of the apps: marks, frames, and lanes for groups.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;

use takt_core::{AppId, FrameDone, Time};

use super::lanes::{Lane, Lanes};
use crate::export::packets::{Args, Packets, Place, TrackId};
use crate::record::{AppMeta, Meta};

/// Rank of the most important app: below the GPU's own tracks.
const FIRST_RANK: usize = 10;

/// Everything drawn per app.
#[derive(Debug)]
pub(super) struct Apps {
    root: TrackId,
    tracks: BTreeMap<AppId, AppTrack>,
    /// Tracks so far.
    drawn: usize,
}

#[derive(Debug)]
struct AppTrack {
    name: String,
    track: TrackId,
    frames: Lanes,
    /// Frames begun and not done, with the lane each is drawn on.
    open: BTreeMap<u64, (Lane, Time)>,
}

impl Apps {
    pub(super) fn new<W: Write>(out: &mut Packets<W>, meta: &Meta, root: TrackId) -> Self {
        let mut apps = Self { root, tracks: BTreeMap::new(), drawn: 0 };
        let mut order: Vec<_> = (0u32..).map(AppId).zip(&meta.apps).collect();
        order.sort_by_key(|(id, app)| (Reverse(app.priority), *id));
        for (id, app) in order {
            apps.meet(out, Time::ZERO, id, app);
        }
        apps
    }

    /// Draws `app` on a track of its own from now on, unless it is the one that was drawn there;
    /// says whether it is another one.
    pub(super) fn meet<W: Write>(
        &mut self,
        out: &mut Packets<W>,
        at: Time,
        app: AppId,
        meta: &AppMeta,
    ) -> bool {
        if self.tracks.get(&app).is_some_and(|track| track.name == meta.name) {
            return false;
        }
        self.close_frames(out, at, app);
        let title = format!("{} (priority {})", meta.name, meta.priority.0);
        let track = AppTrack::new(out, self.next_place(), meta.name.clone(), &title);
        self.drawn += 1;
        self.tracks.insert(app, track);
        true
    }

    /// The app's name; empty for an app that was not announced and has drawn nothing.
    pub(super) fn name(&self, app: AppId) -> &str {
        self.tracks.get(&app).map_or("", |track| &track.name)
    }

    /// Draws an instant on the app's own track.
    pub(super) fn mark<W: Write>(
        &mut self,
        out: &mut Packets<W>,
        at: Time,
        app: AppId,
        name: String,
        args: Args,
    ) {
        let track = self.of(out, app).track;
        out.instant(at, track, name, args);
    }

    pub(super) fn begin_frame<W: Write>(&mut self, out: &mut Packets<W>, at: Time, app: AppId, frame: u64) {
        let tracks = self.of(out, app);
        if !tracks.open.contains_key(&frame) {
            let lane = tracks.frames.take(out);
            tracks.open.insert(frame, (lane, at));
            let args = Args::new().number("frame", frame);
            out.begin(at, lane.track, format!("frame {frame}"), args);
        }
    }

    /// Ends the frame, and older ones that were never reported done.
    pub(super) fn end_frame<W: Write>(&mut self, out: &mut Packets<W>, done: &FrameDone) {
        let tracks = self.of(out, done.app);
        while let Some(entry) = tracks.open.first_entry()
            && *entry.key() <= done.frame
        {
            let args = if *entry.key() == done.frame {
                Args::new()
                    .flag("met", done.met)
                    .span("response_us", done.finished.since(done.release))
                    .span("allowed_us", done.deadline.since(done.release))
                    .span("late_us", done.finished.since(done.deadline))
            } else {
                Args::new().flag("unfinished", true)
            };
            let (lane, begun) = entry.remove();
            out.end(done.finished.max(begun), lane.track, args);
            tracks.frames.give_back(lane);
        }
    }

    pub(super) fn close_frames<W: Write>(&mut self, out: &mut Packets<W>, at: Time, app: AppId) {
        if let Some(tracks) = self.tracks.get_mut(&app) {
            tracks.close_frames(out, at);
        }
    }

    pub(super) fn close_all<W: Write>(&mut self, out: &mut Packets<W>, at: Time) {
        for tracks in self.tracks.values_mut() {
            tracks.close_frames(out, at);
        }
    }

    /// The app's own track, under which its groups are drawn.
    pub(super) fn track<W: Write>(&mut self, out: &mut Packets<W>, app: AppId) -> TrackId {
        self.of(out, app).track
    }

    fn of<W: Write>(&mut self, out: &mut Packets<W>, app: AppId) -> &mut AppTrack {
        let place = self.next_place();
        let drawn = &mut self.drawn;
        self.tracks.entry(app).or_insert_with(|| {
            *drawn += 1;
            let name = format!("app{}", app.0);
            AppTrack::new(out, place, name.clone(), &name)
        })
    }

    fn next_place(&self) -> Place {
        Place { parent: Some(self.root), rank: i32::try_from(FIRST_RANK + self.drawn).unwrap_or(i32::MAX) }
    }
}

impl AppTrack {
    fn new<W: Write>(out: &mut Packets<W>, place: Place, name: String, title: &str) -> Self {
        let track = out.track(place, title, "Missed deadlines and changes of parameters");
        let below = Place { parent: Some(track), rank: 0 };
        Self { name, track, frames: Lanes::new(below, "frames"), open: BTreeMap::new() }
    }

    fn close_frames<W: Write>(&mut self, out: &mut Packets<W>, at: Time) {
        while let Some((_, (lane, _))) = self.open.pop_first() {
            out.end(at, lane.track, Args::new().flag("unfinished", true));
            self.frames.give_back(lane);
        }
    }
}
