//! Apps that name each other: whose reserve, whose consumer, whose focus.

use std::collections::BTreeMap;

use takt_core::AppId;
use takt_core::service::Reservation;

use super::checks::Expanded;
use super::diagnostic::{Report, Spot, nearest};
use super::lower::{Lower, all};
use super::lower_app::LoweredApp;
use super::raw::RawScenario;
use crate::model::FocusChange;

/// The apps by name.
struct Directory<'a> {
    names: BTreeMap<&'a str, AppId>,
}

impl<'a> Directory<'a> {
    fn new(names: impl Iterator<Item = &'a str>) -> Self {
        Self { names: names.zip((0..).map(AppId)).collect() }
    }

    /// The app of that name, or a complaint.
    fn find(&self, report: &mut Report<'_>, name: &str, spot: &Spot) -> Option<AppId> {
        if let Some(app) = self.names.get(name) {
            return Some(*app);
        }
        let remedy = match nearest(name, self.names.keys().copied()) {
            Some(like) => format!("did you mean \"{like}\"?"),
            None => "name an app; of several with a count, each has a number, such as game-2".to_owned(),
        };
        report.value(spot, "there is no such app", remedy);
        None
    }
}

/// Puts the apps that are named in services in their place; whether all could be.
pub(super) fn resolve(report: &mut Report<'_>, tables: &[LoweredApp], apps: &mut [Expanded]) -> bool {
    let names: Vec<String> = apps.iter().map(|app| app.spec.name.clone()).collect();
    let directory = Directory::new(names.iter().map(String::as_str));
    let mut sound = true;
    for index in 0..apps.len() {
        let Some(table) = apps.get(index).and_then(|app| tables.get(app.table)) else {
            continue;
        };
        let service = &table.service;
        let mut find = |named: &Option<(String, Spot)>| match named {
            Some((name, spot)) => directory.find(report, name, spot).map(Some),
            None => Some(None),
        };
        let (Some(shared_with), Some(feeds)) = (find(&service.shared_with), find(&service.feeds)) else {
            sound = false;
            continue;
        };
        let mut fault = |spot: &Option<(String, Spot)>, problem: &str, remedy: &str| {
            if let Some((_, spot)) = spot {
                report.value(spot, problem, remedy);
            }
            sound = false;
        };
        if let Some(owner) = shared_with
            && !owns_reserve(apps, owner)
        {
            let remedy = "name one with a reserve_us, or give it one";
            fault(&service.shared_with, "that app has no reserve of its own", remedy);
        }
        let Some(app) = apps.get_mut(index) else {
            continue;
        };
        app.promise(|service| {
            if let Some(owner) = shared_with {
                service.reservation = Reservation::Shared(owner);
            }
            service.feeds = feeds;
        });
        if feeds.is_some() && in_circle(apps, index) {
            let remedy = "leave one of their feeds out";
            fault(&service.feeds, "the apps feed each other in a circle", remedy);
        }
    }
    sound
}

fn owns_reserve(apps: &[Expanded], owner: AppId) -> bool {
    apps.get(owner.index())
        .is_some_and(|app| matches!(app.spec.params.service.reservation, Reservation::Own(_)))
}

/// Whether the chain of consumers, as far as it is known, comes back to its beginning.
fn in_circle(apps: &[Expanded], start: usize) -> bool {
    let consumer = |app: &AppId| apps.get(app.index())?.spec.params.service.feeds;
    let first = apps.get(start).and_then(|app| app.spec.params.service.feeds);
    std::iter::successors(first, consumer).take(apps.len()).any(|app| app.index() == start)
}

impl Lower<'_, '_> {
    /// Who has the focus, by time.
    pub(super) fn focus(&mut self, raw: &RawScenario, apps: &[Expanded]) -> Option<Vec<FocusChange>> {
        let directory = Directory::new(apps.iter().map(|app| app.spec.name.as_str()));
        let lowered = raw.focus.iter().flatten().map(|raw| {
            let at = self.time(&raw.at_s);
            let app = match &raw.app {
                Some(text) => directory.find(self.report, text.value.as_deref()?, &text.at).map(Some),
                None => Some(None),
            };
            let change = FocusChange { at: at?, app: app? };
            Some((change.at, &raw.at_s.at, change))
        });
        let lowered = all(lowered)?;
        self.by_time(lowered)
    }
}
