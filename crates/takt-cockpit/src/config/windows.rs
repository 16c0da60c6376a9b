//! Rules of windows.

use takt_config::{Mistake, mistake};
use takt_core::Span;

use super::file::WindowFile;
use super::{Cockpit, Kind, Shell, values};
use crate::geometry::Rect;
use crate::pattern::Pattern;

/// Most windows of a rule, whatever the file says.
const INSTANCES_MAX: usize = 64;
/// How long a window may move before a driver's eyes while driving.
const ANIMATION_S: f64 = 2.0;
/// How soon a window must answer to input.
const RESPONSE_MS: f64 = 250.0;

/// Which windows it is about, where they are shown, and what they may do.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Its name, for people.
    pub name: String,
    /// Whose windows.
    pub domain: usize,
    /// What windows of `xdg_wm_base` must call their app.
    pub app_id: Option<Pattern>,
    /// What must be their title.
    pub title: Option<Pattern>,
    /// The number that windows of `ivi_application` must have; all others get it for controllers.
    pub ivi_id: Option<u32>,
    /// Where they are shown.
    pub output: usize,
    /// Where on that output. They never draw outside of it.
    pub area: Rect,
    /// They choose their size themselves; otherwise they are told to fill the area.
    pub own_size: bool,
    /// Windows of higher layers are in front.
    pub layer: i32,
    /// Within a layer, more important windows are in front.
    pub priority: u32,
    /// Less important windows that it would cover are hidden meanwhile.
    pub exclusive: bool,
    /// No window may cover it or hide it, and its absence is told.
    pub must_be_visible: bool,
    /// It is shown only when a controller says so.
    pub hidden: bool,
    /// It is hidden while the vehicle moves.
    pub hidden_while_moving: bool,
    /// It is a dialogue, which the driver can leave at any time.
    pub dialogue: bool,
    /// Law or traffic requires it: it cannot be left.
    pub required: bool,
    /// Most windows at once.
    pub instances_max: usize,
    /// How soon it must be seen once it has a picture.
    pub visible_within: Option<Span>,
    /// How long its picture may go on changing while the vehicle moves.
    pub animation_max: Option<Span>,
    /// How soon its picture must change after input.
    pub response_max: Option<Span>,
    /// Input that reaches it.
    pub input: Vec<Kind>,
    /// Input that reaches it while the vehicle moves.
    pub input_while_moving: Vec<Kind>,
}

impl Rule {
    /// Whether it is for windows of that shell at all.
    pub fn is_for(&self, shell: Shell) -> bool {
        match shell {
            Shell::Xdg => self.app_id.is_some() || self.title.is_some(),
            Shell::Ivi => self.ivi_id.is_some(),
        }
    }
}

pub(super) fn check(file: &WindowFile, cockpit: &Cockpit) -> Result<Rule, Mistake> {
    let domain = values::index("domain", &file.domain, &cockpit.domains, |domain| &domain.name)?;
    let output = values::index("output", &file.output, &cockpit.outputs, |output| &output.name)?;
    let display = &cockpit.outputs[output];
    let area = match &file.area {
        Some(text) => values::area(text, display.size)?,
        None => Rect::of(display.size),
    };
    let input = file.input.clone().unwrap_or_else(|| Kind::ALL.to_vec());
    let rule = Rule {
        name: file.name.clone(),
        domain,
        app_id: file.app_id.clone(),
        title: file.title.clone(),
        ivi_id: file.ivi_id,
        output,
        area,
        own_size: file.own_size,
        layer: file.layer,
        priority: file.priority,
        exclusive: file.exclusive,
        must_be_visible: file.must_be_visible,
        hidden: file.hidden,
        hidden_while_moving: file.hidden_while_moving,
        dialogue: file.dialogue,
        required: file.required,
        instances_max: values::count("instances_max", file.instances_max.unwrap_or(1), INSTANCES_MAX)?,
        visible_within: within(file, file.must_be_visible)?,
        animation_max: animation(file, display.driver)?,
        response_max: response(file.response_ms_max)?,
        input_while_moving: file.input_while_moving.clone().unwrap_or_else(|| input.clone()),
        input,
    };
    check_claims(&rule, cockpit)?;
    check_sense(&rule)?;
    Ok(rule)
}

/// Windows that must be visible have a time by which they are, which is a second unless the file says so.
fn within(file: &WindowFile, must_be_visible: bool) -> Result<Option<Span>, Mistake> {
    let ms = file.visible_within_ms.or_else(|| must_be_visible.then_some(1000.0));
    ms.map(|ms| values::ms("visible_within_ms", ms, 1.0)).transpose()
}

/// Nothing may move for longer before a driver's eyes, unless the file says so.
fn animation(file: &WindowFile, driver: bool) -> Result<Option<Span>, Mistake> {
    let s = file.animation_s_max.unwrap_or(if driver { ANIMATION_S } else { f64::INFINITY });
    if s == f64::INFINITY {
        return Ok(None);
    }
    match (0.1..=60.0).contains(&s) {
        true => values::ms("animation_s_max", s * 1000.0, 0.0).map(Some),
        false => Err(mistake("animation_s_max", s, "use 0.1 to 60, or inf")),
    }
}

/// People expect an answer at once, unless the file says otherwise.
fn response(ms: Option<f64>) -> Result<Option<Span>, Mistake> {
    match ms.unwrap_or(RESPONSE_MS) {
        f64::INFINITY => Ok(None),
        ms => values::ms("response_ms_max", ms, 1.0).map(Some),
    }
}

fn check_claims(rule: &Rule, cockpit: &Cockpit) -> Result<(), Mistake> {
    let shells = &cockpit.domains[rule.domain].shells;
    if !shells.iter().any(|shell| rule.is_for(*shell)) {
        let remedy = match shells.as_slice() {
            [Shell::Ivi] => "its domain has the shell \"ivi\": add ivi_id",
            [Shell::Xdg] => "its domain has the shell \"xdg\": add app_id or title, or \"*\" for any",
            _ => "say which windows it is for: app_id, title or ivi_id",
        };
        return Err(mistake("name", &rule.name, remedy));
    }
    let same = |other: &&Rule| rule.ivi_id.is_some() && other.ivi_id == rule.ivi_id;
    if let Some(other) = cockpit.rules.iter().find(same) {
        let id = rule.ivi_id.unwrap_or_default();
        return Err(mistake("ivi_id", id, format!("window {:?} has it: use another number", other.name)));
    }
    if rule.ivi_id.is_some() && rule.instances_max > 1 {
        return Err(mistake("instances_max", rule.instances_max, "an ivi_id is one window: remove either"));
    }
    Ok(())
}

fn check_sense(rule: &Rule) -> Result<(), Mistake> {
    let hides = rule.hidden || rule.hidden_while_moving;
    if rule.must_be_visible && hides {
        let key = if rule.hidden { "hidden" } else { "hidden_while_moving" };
        return Err(mistake(key, true, "it must be visible: remove either key"));
    }
    if rule.must_be_visible && rule.instances_max > 1 {
        return Err(mistake("instances_max", rule.instances_max, "it must be visible: use 1"));
    }
    if rule.must_be_visible && rule.dialogue && !rule.required {
        return Err(mistake(
            "dialogue",
            true,
            "it can be left, but must be visible: add required, or remove it",
        ));
    }
    Ok(())
}

/// What rules must agree on.
pub(super) fn check_together(cockpit: &Cockpit) -> Result<(), Mistake> {
    for (index, rule) in cockpit.rules.iter().enumerate().filter(|(_, rule)| rule.must_be_visible) {
        let covers = |other: &&Rule| {
            other.must_be_visible && other.output == rule.output && other.area.overlaps(rule.area)
        };
        if let Some(other) = cockpit.rules[..index].iter().find(covers) {
            let remedy =
                format!("window {:?} at {} must be visible, too: move either", other.name, other.area);
            return Err(mistake("area", rule.area, remedy).within("window", index, &rule.name));
        }
    }
    Ok(())
}
