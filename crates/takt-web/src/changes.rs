//! What was changed from here, and how to undo it.
//!
//! The daemon decides about every order and records it in its audit; what is kept here is what it takes to give the
//! opposite order.

use std::collections::VecDeque;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use takt_daemon::control::ask::{Ask, WrittenTerms};
use takt_daemon::tool::{Tool, Unanswered, app_of};

use crate::api::{ChangeAnswer, Meant, Ordered};
use crate::board::{PATIENCE, text, unix_ms};

/// Most changes that are remembered.
const CHANGES_MAX: usize = 100;

/// The changes, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    all: VecDeque<Change>,
    next: u64,
}

#[derive(Clone, Debug)]
struct Change {
    number: u64,
    at_ms: u64,
    text: String,
    /// What undoes it, and of whom; none if it was undone, or cannot be.
    undo: Option<Undo>,
}

/// The opposite of an order.
#[derive(Clone, Debug)]
pub(crate) struct Undo {
    pub(crate) order: Ask,
    pub(crate) of: Option<Meant>,
}

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotDone {
    /// It is no order, or not one of these.
    #[error("{0}")]
    Bad(String),
    /// Another app has the slot, or there is no such change.
    #[error("{0}")]
    Gone(String),
    /// The daemon does not do it.
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// An order that was carried out.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) text: String,
    undo: Option<Undo>,
    took_ms: f64,
}

impl Changes {
    /// Notes what was done.
    pub(crate) fn add(&mut self, done: Done) -> Ordered {
        if self.all.len() == CHANGES_MAX {
            self.all.pop_front();
        }
        self.next += 1;
        let (number, took_ms) = (self.next, done.took_ms);
        self.all.push_back(Change { number, at_ms: unix_ms(), text: done.text, undo: done.undo });
        Ordered { change: number, took_ms }
    }

    /// What would undo a change.
    pub(crate) fn undo_of(&self, number: u64) -> Result<Undo, NotDone> {
        let found = self.all.iter().find(|change| change.number == number);
        let change = found.ok_or_else(|| NotDone::Gone(format!("there is no change {number} any more")))?;
        change
            .undo
            .clone()
            .ok_or_else(|| NotDone::Gone(format!("change {number} cannot be undone, or was already")))
    }

    /// A change was undone.
    pub(crate) fn undone(&mut self, number: u64) {
        self.all.iter_mut().filter(|change| change.number == number).for_each(|change| change.undo = None);
    }

    /// All of them, newest first.
    pub(crate) fn answer(&self) -> Vec<ChangeAnswer> {
        let answer = |change: &Change| ChangeAnswer {
            change: change.number,
            at_ms: change.at_ms,
            text: change.text.clone(),
            undoable: change.undo.is_some(),
        };
        self.all.iter().rev().map(answer).collect()
    }
}

/// The order in a request, if it is one that a page may give.
pub(crate) fn order(value: &Value) -> Result<Ask, NotDone> {
    let ask: Ask = serde_json::from_value(value.clone())
        .map_err(|error| NotDone::Bad(format!("the order is not understood: {error}")))?;
    match ask {
        Ask::Set { .. }
        | Ask::Pause { .. }
        | Ask::Resume { .. }
        | Ask::Evict { .. }
        | Ask::Readmit { .. }
        | Ask::Policy { .. }
        | Ask::Adjust(_) => Ok(ask),
        _ => Err(NotDone::Bad(
            "that is no order of the console: use set, pause, resume, evict, readmit, policy or adjust"
                .to_owned(),
        )),
    }
}

/// What an order would do, as the daemon says.
pub(crate) fn preview(socket: &Path, order: Ask, of: Option<&Meant>) -> Result<Value, NotDone> {
    let tool = Tool::connect(socket, PATIENCE)?;
    let (order, _) = settled(&tool, order, of)?;
    Ok(tool.ask(&Ask::Preview { order: Box::new(order) })?)
}

/// Gives an order.
pub(crate) fn give(socket: &Path, order: Ask, of: Option<&Meant>) -> Result<Done, NotDone> {
    let tool = Tool::connect(socket, PATIENCE)?;
    let (order, app) = settled(&tool, order, of)?;
    let undo = opposite(&tool, &order, app.as_ref())?;
    let began = Instant::now();
    tool.ask(&order)?;
    let took_ms = began.elapsed().as_secs_f64() * 1000.0;
    let name = app
        .as_ref()
        .map_or_else(|| order.changed_app().unwrap_or_default().to_owned(), |app| text(app, "name"));
    Ok(Done { text: said(&order, &name), undo, took_ms })
}

/// The order with the slot of the app that it means, and that app.
fn settled(tool: &Tool, mut order: Ask, of: Option<&Meant>) -> Result<(Ask, Option<Value>), NotDone> {
    let (Ask::Set { app, .. } | Ask::Pause { app } | Ask::Resume { app } | Ask::Evict { app, .. }) =
        &mut order
    else {
        return Ok((order, None));
    };
    let apps = tool.ask(&Ask::Apps)?;
    let found = app_of(&apps, app).ok_or_else(|| NotDone::Gone(format!("there is no app {app} any more")))?;
    if let Some(of) = of
        && (found["name"] != *of.name || found["pid"] != of.pid)
    {
        let (name, pid) = (&of.name, of.pid);
        return Err(NotDone::Gone(format!("{name} (process {pid}) has left, and another app has its slot")));
    }
    *app = found["app"].to_string();
    let found = found.clone();
    Ok((order, Some(found)))
}

/// What undoes an order, as things are before it is given.
fn opposite(tool: &Tool, order: &Ask, app: Option<&Value>) -> Result<Option<Undo>, NotDone> {
    let meant = app.map(|app| Meant {
        name: text(app, "name"),
        pid: app["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap_or_default(),
    });
    let back = match order {
        Ask::Set { app: slot, .. } => {
            let terms = app.map(|app| serde_json::from_value::<WrittenTerms>(app["terms"].clone()));
            let Some(Ok(terms)) = terms else { return Ok(None) };
            Ask::Set { app: slot.clone(), terms }
        }
        Ask::Pause { app } => Ask::Resume { app: app.clone() },
        Ask::Resume { app } => Ask::Pause { app: app.clone() },
        Ask::Evict { .. } => {
            let name = meant.map(|meant| meant.name).unwrap_or_default();
            return Ok(Some(Undo { order: Ask::Readmit { app: name }, of: None }));
        }
        Ask::Policy { .. } => Ask::Policy { name: text(&tool.ask(&Ask::Daemon)?, "policy") },
        Ask::Adjust(_) => match serde_json::from_value(tool.ask(&Ask::Daemon)?["limits"].take()) {
            Ok(limits) => Ask::Adjust(limits),
            Err(_) => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(Undo { order: back, of: meant }))
}

/// An order in a few words.
fn said(order: &Ask, name: &str) -> String {
    let fields = |value: &Value| -> String {
        let all = value.as_object().into_iter().flatten();
        let given = all.filter(|(key, value)| !value.is_null() && !["ask", "app"].contains(&key.as_str()));
        given.map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
    };
    match order {
        Ask::Pause { .. } => format!("{name}: paused"),
        Ask::Resume { .. } => format!("{name}: resumed"),
        Ask::Evict { .. } => format!("{name}: evicted"),
        Ask::Readmit { .. } => format!("{name}: may come back"),
        Ask::Policy { name } => format!("policy {name}"),
        Ask::Adjust(_) => format!("limits: {}", fields(&serde_json::to_value(order).unwrap_or_default())),
        _ => format!("{name}: {}", fields(&serde_json::to_value(order).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pages_give_orders_and_nothing_else() {
        for good in [
            json!({ "ask": "set", "app": "dial", "priority": 3 }),
            json!({ "ask": "pause", "app": "dial" }),
            json!({ "ask": "policy", "name": "fifo" }),
            json!({ "ask": "adjust", "mpcg": 2 }),
        ] {
            order(&good).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for bad in [
            json!({ "ask": "stop" }),
            json!({ "ask": "watch" }),
            json!({ "ask": "apps" }),
            json!({ "ask": "state", "name": "parked" }),
            json!({ "ask": "preview", "order": { "ask": "stop" } }),
            json!({ "ask": "set", "app": "dial", "prio": 3 }),
            json!("stop"),
            json!(null),
        ] {
            assert!(matches!(order(&bad), Err(NotDone::Bad(_))), "{bad}");
        }
    }

    #[test]
    fn orders_are_told_in_words() {
        let told = |value: Value| said(&order(&value).expect("an order"), "dial");
        assert_eq!(
            told(json!({ "ask": "set", "app": "3", "priority": 5, "fps": 30.0 })),
            "dial: fps 30.0, priority 5"
        );
        assert_eq!(told(json!({ "ask": "evict", "app": "3" })), "dial: evicted");
        assert_eq!(told(json!({ "ask": "adjust", "mpcg": 2 })), "limits: mpcg 2");
    }

    #[test]
    fn changes_are_bounded_and_undone_once() {
        let mut changes = Changes::default();
        for _ in 0..CHANGES_MAX + 5 {
            let undo = Some(Undo { order: Ask::Resume { app: "1".to_owned() }, of: None });
            changes.add(Done { text: "x".to_owned(), undo, took_ms: 1.0 });
        }
        let last = CHANGES_MAX as u64 + 5;
        assert_eq!((changes.answer().len(), changes.answer()[0].change), (CHANGES_MAX, last));
        assert!(changes.undo_of(1).is_err(), "forgotten");
        changes.undo_of(last).expect("there");
        changes.undone(last);
        assert!(matches!(changes.undo_of(last), Err(NotDone::Gone(_))));
    }
}
