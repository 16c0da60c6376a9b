//! Which windows there are, what they claim to be, and where they are shown.
//!
//! A client's window [appears](Windows::appear) with what it claims to be. The first rule of its domain that
//! fits these claims says where it is shown; a window that no rule fits is never shown. What a window claims
//! later is compared again. More important windows are in front, and windows that must be visible are in
//! front of all others.
//!
//! Each method is an event at a time; [`Windows::poll`] returns what is to be done about it.

mod animation;
mod claims;
mod deadlines;
mod dialogues;
mod orders;
mod scene;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use takt_core::Time;

use crate::config::{Cockpit, Rule};
use crate::geometry::{Rect, Size};
use animation::Animation;
pub use claims::Claims;
use deadlines::Absence;
pub use orders::{Order, Subject};
pub use scene::{Placed, Scene};

/// Most windows of all clients together.
pub const WINDOWS_MAX: usize = 512;
/// Most windows of a client.
pub const CLIENT_WINDOWS_MAX: usize = 32;
/// After so many refused claims and orders, a client is disconnected.
pub const VIOLATIONS_MAX: u32 = 16;
/// Most decisions that wait to be carried out.
const ACTIONS_MAX: usize = 4096;
/// Most rectangles of the input region of a window; what is more does not count.
pub const INPUT_RECTS_MAX: usize = 64;

/// A window, for as long as the compositor runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct WindowId(pub u64);

/// A connection of a client, for as long as the compositor runs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientId(pub u64);

/// Whether the vehicle moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Motion {
    /// It stands.
    Parked,
    /// It moves, or that is not known.
    #[default]
    Moving,
}

impl Motion {
    /// As it is written in records and requests.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Moving => "moving",
        }
    }
}

/// What is to be done.
#[derive(Clone, PartialEq, Debug)]
pub enum Action {
    /// The window is to have that size; none lets it choose.
    Configure(WindowId, Option<Size>),
    /// The window is to close.
    Close(WindowId),
    /// The client is to be disconnected, for that reason.
    Disconnect(ClientId, String),
    /// Another scene is to be shown on that output.
    Show(usize),
    /// Something to record.
    Record(Note),
}

/// What kind of event a record is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A window claims to be something.
    Claim,
    /// A window is shown, or not any more.
    Window,
    /// A controller wants something.
    Order,
    /// A time has passed by which something had to be seen.
    Overdue,
    /// A window moved for too long.
    Animation,
    /// The vehicle moves, or stands.
    Motion,
    /// A window may not have what an input device does, or a dialogue is left.
    Input,
    /// Input was not taken, or nothing was seen after it, in time.
    Response,
}

/// Something to record.
#[derive(Clone, PartialEq, Debug)]
pub struct Note {
    /// What it is about.
    pub kind: Kind,
    /// The domain in question.
    pub domain: Option<usize>,
    /// The client in question.
    pub client: Option<ClientId>,
    /// The window in question, by the name of its rule or by what it claims to be.
    pub window: String,
    /// Whether it was allowed; none if there was nothing to allow.
    pub allowed: Option<bool>,
    /// The request.
    pub asked: String,
    /// Why, in words.
    pub reason: String,
    /// The rule or the key that decided.
    pub rule: String,
}

/// All windows.
#[derive(Debug)]
pub struct Windows {
    config: Arc<Cockpit>,
    windows: BTreeMap<WindowId, Window>,
    violations: BTreeMap<ClientId, u32>,
    motion: Motion,
    moving_since: Time,
    /// Windows that must be visible and are not, by their rule.
    absences: BTreeMap<usize, Absence>,
    arrivals: u64,
    scenes: Vec<Scene>,
    actions: VecDeque<Action>,
    /// Decisions that found no room.
    lost: u64,
}

/// A window.
#[derive(Debug)]
struct Window {
    client: ClientId,
    domain: usize,
    claims: Claims,
    /// Index of the rule that it is shown by.
    rule: Option<usize>,
    /// Whether it has a picture.
    mapped: bool,
    /// Size of its picture.
    size: Size,
    /// Where input reaches it, in pixels of its picture.
    input: Vec<Rect>,
    /// What a controller wants.
    wanted: Wanted,
    /// Order of arrival.
    arrival: u64,
    /// When it has to be seen, if it was not yet.
    due: Option<Time>,
    animation: Animation,
    /// It is a dialogue that was left, until it has a new picture after none.
    left: bool,
    /// The rule that fits it and has as many windows as it may.
    full: Option<usize>,
}

/// What a controller wants of a window.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Wanted {
    shown: Option<bool>,
    at: Option<Rect>,
    opacity: u8,
}

impl Default for Wanted {
    fn default() -> Self {
        Self { shown: None, at: None, opacity: u8::MAX }
    }
}

impl Windows {
    /// No windows, by these rules.
    pub fn new(config: Arc<Cockpit>, now: Time) -> Self {
        let scenes = vec![Scene::default(); config.outputs.len()];
        let must = |(_, rule): &(usize, &Rule)| rule.must_be_visible;
        let absent = |(index, _): (usize, &Rule)| (index, Absence::since(now));
        let absences = config.rules.iter().enumerate().filter(must).map(absent).collect();
        Self {
            config,
            windows: BTreeMap::new(),
            violations: BTreeMap::new(),
            motion: Motion::default(),
            moving_since: now,
            absences,
            arrivals: 0,
            scenes,
            actions: VecDeque::new(),
            lost: 0,
        }
    }

    /// The rules.
    pub fn config(&self) -> &Arc<Cockpit> {
        &self.config
    }

    /// The next thing to be done.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Decisions that found no room, since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the vehicle moves.
    pub fn motion(&self) -> Motion {
        self.motion
    }

    /// A client of a domain wants to show a window; says whether there is room for it.
    pub fn appear(
        &mut self,
        now: Time,
        id: WindowId,
        client: ClientId,
        domain: usize,
        claims: Claims,
    ) -> bool {
        let own = self.windows.values().filter(|window| window.client == client).count();
        if own >= CLIENT_WINDOWS_MAX || self.windows.len() >= WINDOWS_MAX || self.windows.contains_key(&id) {
            let reason = format!("a client has {CLIENT_WINDOWS_MAX} windows at most, all have {WINDOWS_MAX}");
            let asked = claims.to_string();
            self.refuse(client, domain, &claims, Refusal { asked, reason, rule: "windows-max", full: None });
            return false;
        }
        self.arrivals += 1;
        let window = Window {
            client,
            domain,
            claims,
            rule: None,
            mapped: false,
            size: Size::default(),
            input: Vec::new(),
            wanted: Wanted::default(),
            arrival: self.arrivals,
            due: None,
            animation: Animation::default(),
            left: false,
            full: None,
        };
        self.windows.insert(id, window);
        self.choose(now, id);
        true
    }

    /// A window claims to be something else.
    pub fn claim(&mut self, now: Time, id: WindowId, claims: Claims) {
        if let Some(window) = self.windows.get_mut(&id)
            && window.claims != claims
        {
            window.claims = claims;
            self.choose(now, id);
            self.fill(now);
        }
    }

    /// A window has a picture of that size, and takes input in these parts of it.
    pub fn map(&mut self, now: Time, id: WindowId, size: Size, input: Vec<Rect>) {
        let Some(window) = self.windows.get_mut(&id) else {
            return;
        };
        window.input = input;
        window.input.truncate(INPUT_RECTS_MAX);
        (window.mapped, window.size) = (true, size);
        self.arrange(now);
    }

    /// A window has no picture any more.
    pub fn unmap(&mut self, now: Time, id: WindowId) {
        if let Some(window) = self.windows.get_mut(&id) {
            (window.mapped, window.left) = (false, false);
            self.arrange(now);
        }
    }

    /// A window is gone.
    pub fn vanish(&mut self, now: Time, id: WindowId) {
        if self.windows.remove(&id).is_some() {
            self.fill(now);
            self.arrange(now);
        }
    }

    /// A client is gone, with all its windows.
    pub fn leave(&mut self, now: Time, client: ClientId) {
        self.violations.remove(&client);
        self.windows.retain(|_, window| window.client != client);
        self.fill(now);
        self.arrange(now);
    }

    /// The vehicle moves, or stands.
    pub fn set_motion(&mut self, now: Time, motion: Motion) {
        if self.motion == motion {
            return;
        }
        (self.motion, self.moving_since) = (motion, now);
        self.record(Note { asked: motion.name().to_owned(), ..Note::about(Kind::Motion) });
        for window in self.windows.values_mut() {
            window.animation.start_over(now);
        }
        self.arrange(now);
    }

    /// All windows.
    pub fn ids(&self) -> impl Iterator<Item = WindowId> {
        self.windows.keys().copied()
    }

    /// What a window claims to be, and whether it has a picture.
    pub fn claims(&self, id: WindowId) -> Option<(&Claims, bool)> {
        self.windows.get(&id).map(|window| (&window.claims, window.mapped))
    }

    /// The rule of a window, if one fits it.
    pub fn rule(&self, id: WindowId) -> Option<&Rule> {
        self.windows.get(&id)?.rule.map(|rule| &self.config.rules[rule])
    }

    /// The client of a window.
    pub fn client(&self, id: WindowId) -> Option<ClientId> {
        self.windows.get(&id).map(|window| window.client)
    }

    fn record(&mut self, note: Note) {
        self.act(Action::Record(note));
    }

    /// Records something about a window.
    pub(crate) fn record_about(&mut self, id: Option<WindowId>, mut note: Note) {
        if let Some(window) = id.and_then(|id| self.windows.get(&id)) {
            (note.domain, note.client) = (Some(window.domain), Some(window.client));
            note.window = self.name(window);
        }
        self.record(note);
    }

    fn act(&mut self, action: Action) {
        // A scene is read when it is shown, so one order for it is enough.
        if matches!(action, Action::Show(_)) && self.actions.contains(&action) {
            return;
        }
        if self.actions.len() < ACTIONS_MAX {
            self.actions.push_back(action);
        } else {
            self.lost += 1;
        }
    }

    /// Refuses what a client wants, and disconnects a client that goes on like that.
    fn refuse(&mut self, client: ClientId, domain: usize, claims: &Claims, refusal: Refusal) {
        let Refusal { asked, reason, rule, .. } = refusal;
        self.record(Note {
            domain: Some(domain),
            client: Some(client),
            window: claims.to_string(),
            allowed: Some(false),
            asked,
            reason,
            rule: rule.to_owned(),
            ..Note::about(Kind::Claim)
        });
        let violations = self.violations.entry(client).or_default();
        *violations += 1;
        if *violations == VIOLATIONS_MAX {
            let reason = format!("{VIOLATIONS_MAX} claims were refused");
            self.act(Action::Disconnect(client, reason));
        }
    }
}

/// Why something is refused.
struct Refusal {
    asked: String,
    reason: String,
    rule: &'static str,
    /// The rule that would fit if it had fewer windows.
    full: Option<usize>,
}

impl Note {
    /// A record without details.
    pub(crate) fn about(kind: Kind) -> Self {
        Self {
            kind,
            domain: None,
            client: None,
            window: String::new(),
            allowed: None,
            asked: String::new(),
            reason: String::new(),
            rule: String::new(),
        }
    }
}
