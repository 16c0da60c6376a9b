//! What input devices do, and to whom that goes.
//!
//! A device [does](Act) something at a place of its display, or while a window has the focus. The rules say
//! whether that window may have it: by its domain, by its kind, and while the vehicle moves also by the hands
//! that the device takes off the wheel. What may pass is [delivered](Delivery), and what may not is recorded;
//! no window behind gets it instead. What began at a window stays with it until it ends, or until the window
//! may not have it any more.
//!
//! Dialogues can always be left, by a key that no client hears: see [`Windows::exit`].

mod act;
pub mod evdev;
mod focus;
mod gate;
mod refusals;
mod response;
#[cfg(test)]
mod tests;
mod times;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use takt_core::Time;

use crate::config::{Cockpit, Kind};
use crate::geometry::{Point, Rect};
use crate::windows::{WindowId, Windows};
pub use act::{ACTS_MAX, Act, FINGERS_MAX, Push};
pub use gate::{Shut, may};
use refusals::Refusals;
use response::Watch;
pub use response::{DELIVERY_MAX, Seen};
pub use times::Times;

/// Most fingers, buttons and keys of a device that are held at once; what is more is not delivered.
pub const HELD_MAX: usize = 32;
/// Most deliveries that wait to be carried out.
const DELIVERIES_MAX: usize = 4096;
/// Most steps of a knob in one act.
const STEPS_MAX: u32 = 16;
/// What clients hear of a knob that is turned, by the numbers of keys in Linux: left and right.
const KNOB_KEYS: (u32, u32) = (105, 106);

/// Something that a window hears. Places are those of its picture, in pixels.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Deed {
    /// A finger touches it.
    TouchDown(u32, Point),
    /// That finger is elsewhere.
    TouchMove(u32, Point),
    /// That finger is gone.
    TouchUp(u32),
    /// What all fingers did does not count.
    TouchCancel,
    /// The pointer is over it.
    Over(Point),
    /// The pointer is not over it any more.
    Away,
    /// A button of the pointer.
    Button(u32, Push),
    /// The wheel of the pointer turned by so many clicks, to the right and downwards.
    Scroll(i32, i32),
    /// Keys go to it from now on.
    Focus,
    /// Keys do not go to it any more.
    Unfocus,
    /// A key.
    Key(u32, Push),
}

impl Deed {
    /// Whether people expect to see something after it.
    fn wants_response(self) -> bool {
        match self {
            Self::TouchDown(..) | Self::Scroll(..) => true,
            Self::Button(_, push) | Self::Key(_, push) => push == Push::Down,
            _ => false,
        }
    }
}

/// Something for a window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Delivery {
    /// Counts deliveries.
    pub number: u64,
    /// For whom.
    pub window: WindowId,
    /// What happened.
    pub deed: Deed,
    /// When the device did that.
    pub at: Time,
}

/// What a device did, and when.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Heard {
    /// The device, as its index in the configuration.
    pub device: usize,
    /// What it did.
    pub act: Act,
    /// When it did that.
    pub at: Time,
    /// The time now.
    pub now: Time,
}

/// All input devices, and who hears them.
#[derive(Debug)]
pub struct Inputs {
    config: Arc<Cockpit>,
    devices: Vec<Device>,
    /// Of each output: the window that keys go to.
    focus: Vec<Option<WindowId>>,
    /// Of each output: the window that was touched last.
    chosen: Vec<Option<WindowId>>,
    watched: BTreeMap<WindowId, Watch>,
    refusals: Refusals,
    deliveries: VecDeque<Delivery>,
    next: u64,
    /// Deliveries that found no room.
    lost: u64,
}

/// A device.
#[derive(Clone, Debug, Default)]
struct Device {
    /// What is held, and the window that it goes to; none if it may not have it.
    held: BTreeMap<Held, Option<WindowId>>,
    /// Where its pointer is.
    pointer: Point,
    /// The window that was told that the pointer is over it.
    over: Option<WindowId>,
}

/// Something that is held until it is lifted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Held {
    Finger(u32),
    Button(u32),
    Key(u32),
}

/// Where something that a device does goes.
enum Target {
    /// To that window, at that place of its picture.
    Window(WindowId, Point),
    /// There is none.
    Nothing,
    /// It may not have it.
    Refused(Option<WindowId>, Shut),
}

impl Inputs {
    /// Devices of these rules, of which none has done anything.
    pub fn new(config: Arc<Cockpit>) -> Self {
        let center = |output: usize| {
            let size = config.outputs[output].size;
            Point { x: size.width / 2, y: size.height / 2 }
        };
        let device =
            |input: &crate::config::Input| Device { pointer: center(input.output), ..Device::default() };
        let outputs = config.outputs.len();
        Self {
            devices: config.inputs.iter().map(device).collect(),
            focus: vec![None; outputs],
            chosen: vec![None; outputs],
            watched: BTreeMap::new(),
            refusals: Refusals::default(),
            deliveries: VecDeque::new(),
            next: 0,
            lost: 0,
            config,
        }
    }

    /// The next delivery.
    pub fn poll(&mut self) -> Option<Delivery> {
        self.deliveries.pop_front()
    }

    /// Deliveries that found no room, since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The window that keys of an output go to.
    pub fn focus(&self, output: usize) -> Option<WindowId> {
        self.focus.get(output).copied().flatten()
    }

    /// A device did something; says why a window may not have it, if so.
    pub fn hear(&mut self, windows: &mut Windows, heard: Heard) -> Result<(), String> {
        let Some(input) = self.config.inputs.get(heard.device) else {
            return Err(format!("there is no input device {}", heard.device));
        };
        if !heard.act.is_of(input.kind) {
            return Err(format!(
                "{} has the kind {:?}: it does no such thing",
                input.name,
                input.kind.name()
            ));
        }
        match heard.act {
            Act::Down { finger, at } => self.touch(windows, &heard, (finger, at)),
            Act::Drag { finger, at } => self.drag(windows, &heard, (finger, at)),
            Act::Point { at } => self.point(windows, &heard, at),
            Act::Nudge { x, y } => {
                let at = self.devices[heard.device].pointer;
                let at = Point { x: at.x.saturating_add(x), y: at.y.saturating_add(y) };
                self.point(windows, &heard, at)
            }
            Act::Press { button } => self.press(windows, &heard, button),
            Act::Scroll { x, y } => self.scroll(windows, &heard, (x, y)),
            Act::KeyDown { key } => self.key(windows, &heard, key),
            Act::Turn { steps } => self.turn(windows, &heard, steps),
            Act::Up { finger } => self.lift(&heard, Held::Finger(finger)),
            Act::Release { button } => self.lift(&heard, Held::Button(button)),
            Act::KeyUp { key } => self.lift(&heard, Held::Key(key)),
            Act::Reset => {
                self.reset(heard.device, heard.now);
                Ok(())
            }
        }
    }

    fn touch(
        &mut self,
        windows: &mut Windows,
        heard: &Heard,
        (finger, at): (u32, Point),
    ) -> Result<(), String> {
        // A finger that is down already was lifted, and that was lost.
        self.lift(heard, Held::Finger(finger))?;
        let target = self.at_place(windows, heard.device, at);
        let number = finger_number(heard.device, finger);
        self.begin(windows, heard, (Held::Finger(finger), target), |place| Deed::TouchDown(number, place))
    }

    fn drag(&mut self, windows: &Windows, heard: &Heard, (finger, at): (u32, Point)) -> Result<(), String> {
        let to = self.devices[heard.device].held.get(&Held::Finger(finger)).copied().flatten();
        if let Some((id, place)) = to.and_then(|id| Some((id, windows.inside(id, at)?))) {
            self.deliver(id, Deed::TouchMove(finger_number(heard.device, finger), place), heard.at);
        }
        Ok(())
    }

    fn point(&mut self, windows: &Windows, heard: &Heard, at: Point) -> Result<(), String> {
        let output = self.config.inputs[heard.device].output;
        let at = within(at, Rect::of(self.config.outputs[output].size));
        self.devices[heard.device].pointer = at;
        let target = match self.dragged(heard.device) {
            Some(id) => windows.inside(id, at).map(|place| (id, place)),
            None => match self.at_place(windows, heard.device, at) {
                Target::Window(id, place) => Some((id, place)),
                // A pointer that only passes over a window does nothing that would have to be recorded.
                Target::Nothing | Target::Refused(..) => None,
            },
        };
        let before = self.devices[heard.device].over;
        if let Some(before) = before.filter(|before| target.is_none_or(|(id, _)| id != *before)) {
            self.deliver(before, Deed::Away, heard.at);
        }
        self.devices[heard.device].over = target.map(|(id, _)| id);
        if let Some((id, place)) = target {
            self.deliver(id, Deed::Over(place), heard.at);
        }
        Ok(())
    }

    /// The window that has a button of the pointer.
    fn dragged(&self, device: usize) -> Option<WindowId> {
        let held = self.devices[device].held.iter();
        held.filter(|(held, _)| matches!(held, Held::Button(_))).find_map(|(_, id)| *id)
    }

    fn press(&mut self, windows: &mut Windows, heard: &Heard, button: u32) -> Result<(), String> {
        let held = Held::Button(button);
        if self.exits(windows, heard, (held, button))? {
            return Ok(());
        }
        let place = self.devices[heard.device].pointer;
        // The window under it may be another one than when it last moved.
        self.point(windows, heard, place)?;
        let target = match self.dragged(heard.device) {
            Some(id) => Target::Window(id, windows.inside(id, place).unwrap_or_default()),
            None => self.at_place(windows, heard.device, place),
        };
        self.begin(windows, heard, (held, target), |_| Deed::Button(button, Push::Down))
    }

    fn scroll(&mut self, windows: &mut Windows, heard: &Heard, (x, y): (i32, i32)) -> Result<(), String> {
        let place = self.devices[heard.device].pointer;
        self.point(windows, heard, place)?;
        match self.at_place(windows, heard.device, place) {
            Target::Window(id, _) => {
                self.deliver(id, Deed::Scroll(x, y), heard.at);
                Ok(())
            }
            Target::Nothing => Ok(()),
            Target::Refused(id, shut) => Err(self.refuse(windows, heard, (id, shut))),
        }
    }

    fn key(&mut self, windows: &mut Windows, heard: &Heard, key: u32) -> Result<(), String> {
        let held = Held::Key(key);
        if self.devices[heard.device].held.contains_key(&held) || self.exits(windows, heard, (held, key))? {
            return Ok(());
        }
        let target = self.for_keys(windows, heard.device);
        if let Target::Window(id, _) = target {
            let output = self.config.inputs[heard.device].output;
            self.set_focus(output, Some(id), heard.at);
        }
        self.begin(windows, heard, (held, target), |_| Deed::Key(key, Push::Down))
    }

    fn turn(&mut self, windows: &mut Windows, heard: &Heard, steps: i32) -> Result<(), String> {
        let key = if steps < 0 { KNOB_KEYS.0 } else { KNOB_KEYS.1 };
        for _ in 0..steps.unsigned_abs().min(STEPS_MAX) {
            self.key(windows, heard, key)?;
            self.lift(heard, Held::Key(key))?;
        }
        Ok(())
    }

    /// Whether it leaves the dialogue in front. The key is nothing that a client hears.
    fn exits(
        &mut self,
        windows: &mut Windows,
        heard: &Heard,
        (held, code): (Held, u32),
    ) -> Result<bool, String> {
        let input = &self.config.inputs[heard.device];
        let dialogue = windows.dialogue(input.output).filter(|_| input.exit_keys.contains(&code));
        let Some(dialogue) = dialogue else {
            return Ok(false);
        };
        let by = format!("leave by key {code} of {}", input.name);
        self.hold(heard.device, held, None);
        let left = windows.exit(heard.now, dialogue, by);
        self.review(windows, heard.now);
        left.map(|()| true)
    }

    /// Something begins at a window, or goes nowhere until it ends.
    fn begin(
        &mut self,
        windows: &mut Windows,
        heard: &Heard,
        (held, target): (Held, Target),
        deed: impl FnOnce(Point) -> Deed,
    ) -> Result<(), String> {
        match target {
            Target::Window(id, place) => {
                if self.hold(heard.device, held, Some(id)) {
                    if !matches!(held, Held::Key(_)) {
                        self.choose(windows, (self.config.inputs[heard.device].output, id), heard.at);
                    }
                    self.deliver(id, deed(place), heard.at);
                }
                Ok(())
            }
            Target::Nothing => {
                self.hold(heard.device, held, None);
                Ok(())
            }
            Target::Refused(id, shut) => {
                self.hold(heard.device, held, None);
                Err(self.refuse(windows, heard, (id, shut)))
            }
        }
    }

    /// Says whether there was room.
    fn hold(&mut self, device: usize, held: Held, id: Option<WindowId>) -> bool {
        let all = &mut self.devices[device].held;
        let room = all.len() < HELD_MAX || all.contains_key(&held);
        if room {
            all.insert(held, id);
        }
        room
    }

    fn lift(&mut self, heard: &Heard, held: Held) -> Result<(), String> {
        let Some(Some(id)) = self.devices[heard.device].held.remove(&held) else {
            return Ok(());
        };
        let deed = match held {
            Held::Finger(finger) => Deed::TouchUp(finger_number(heard.device, finger)),
            Held::Button(button) => Deed::Button(button, Push::Up),
            Held::Key(key) => Deed::Key(key, Push::Up),
        };
        self.deliver(id, deed, heard.at);
        Ok(())
    }

    /// What a device holds does not count any more, since events were lost.
    fn reset(&mut self, device: usize, now: Time) {
        let held = std::mem::take(&mut self.devices[device].held);
        for (held, id) in held.into_iter().filter_map(|(held, id)| Some((held, id?))) {
            self.cancel(held, id, now);
        }
        if let Some(over) = self.devices[device].over.take() {
            self.deliver(over, Deed::Away, now);
        }
    }

    fn cancel(&mut self, held: Held, id: WindowId, now: Time) {
        let deed = match held {
            Held::Finger(_) => Deed::TouchCancel,
            Held::Button(button) => Deed::Button(button, Push::Up),
            Held::Key(key) => Deed::Key(key, Push::Up),
        };
        self.deliver(id, deed, now);
    }

    /// The window at a place of a device's output, and whether it may have what the device does.
    fn at_place(&self, windows: &Windows, device: usize, at: Point) -> Target {
        let output = self.config.inputs[device].output;
        match windows.hit(output, at) {
            Some((id, place)) => self.gate(windows, device, (id, place)),
            None => Target::Nothing,
        }
    }

    fn gate(&self, windows: &Windows, device: usize, (id, place): (WindowId, Point)) -> Target {
        let Some(rule) = windows.rule(id) else {
            return Target::Nothing;
        };
        match may(&self.config.inputs[device], rule, windows.motion()) {
            Ok(()) => Target::Window(id, place),
            Err(shut) => Target::Refused(Some(id), shut),
        }
    }

    fn refuse(&mut self, windows: &mut Windows, heard: &Heard, what: (Option<WindowId>, Shut)) -> String {
        let (id, shut) = what;
        let said = shut.reason.to_owned();
        let (kind, name) = (heard.act.name(), &self.config.inputs[heard.device].name);
        let asked = format!("{kind} of {name}");
        self.refusals.put(windows, (heard.device, id, shut), (asked, heard.now));
        said
    }

    /// Takes back what windows may not have any more, after windows or rules changed.
    pub fn review(&mut self, windows: &Windows, now: Time) {
        for device in 0..self.devices.len() {
            let lost = |id: &WindowId| !self.still_may(windows, device, *id);
            let held = self.devices[device].held.iter();
            let ended: Vec<(Held, WindowId)> =
                held.filter_map(|(held, id)| Some((*held, (*id)?))).filter(|(_, id)| lost(id)).collect();
            for (held, id) in ended {
                self.devices[device].held.insert(held, None);
                self.cancel(held, id, now);
            }
            let over = self.devices[device].over;
            if let Some(over) = over.filter(|id| !self.still_may(windows, device, *id)) {
                self.devices[device].over = None;
                self.deliver(over, Deed::Away, now);
            }
        }
        self.review_focus(windows, now);
        self.forget_unseen(windows);
    }

    fn still_may(&self, windows: &Windows, device: usize, id: WindowId) -> bool {
        let shown = windows.shown_on(id).is_some();
        shown && matches!(self.gate(windows, device, (id, Point::default())), Target::Window(..))
    }

    fn deliver(&mut self, window: WindowId, deed: Deed, at: Time) {
        if self.deliveries.len() >= DELIVERIES_MAX {
            self.lost += 1;
            return;
        }
        self.next += 1;
        self.deliveries.push_back(Delivery { number: self.next, window, deed, at });
    }

    /// Kinds of devices that a domain may ever hear.
    pub fn kinds(config: &Cockpit, domain: usize) -> impl Iterator<Item = Kind> {
        let heard = move |input: &&crate::config::Input| gate::hears(input, domain);
        config.inputs.iter().filter(heard).map(|input| input.kind)
    }
}

/// Fingers of different devices have different numbers.
fn finger_number(device: usize, finger: u32) -> u32 {
    u32::try_from(device).unwrap_or_default() * FINGERS_MAX + finger
}

/// The place that is nearest to one, and inside.
fn within(place: Point, rect: Rect) -> Point {
    let x = place.x.clamp(rect.at.x, rect.right().saturating_sub(1).max(rect.at.x));
    let y = place.y.clamp(rect.at.y, rect.bottom().saturating_sub(1).max(rect.at.y));
    Point { x, y }
}
