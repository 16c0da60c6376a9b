//! Apps that name each other: whose reserve or frames, whose consumer, whose beginning, whose focus.

use std::collections::BTreeMap;

use takt_core::service::Reservation;
use takt_core::{AppId, Span};

use super::checks::Expanded;
use super::diagnostic::{Report, Spot, nearest};
use super::lower::{Lower, all};
use super::lower_app::LoweredApp;
use super::raw::RawScenario;
use crate::model::{FocusChange, Pace};

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

/// The apps that one app names.
#[derive(Clone, Copy)]
struct Named {
    shared_with: Option<AppId>,
    feeds: Option<AppId>,
    starts_with: Option<AppId>,
}

impl Named {
    fn by(table: &LoweredApp, directory: &Directory<'_>, report: &mut Report<'_>) -> Option<Self> {
        let mut find = |named: &Option<(String, Spot)>| match named {
            Some((name, spot)) => directory.find(report, name, spot).map(Some),
            None => Some(None),
        };
        let shared_with = find(&table.service.shared_with);
        let feeds = find(&table.service.feeds);
        let starts_with = find(&table.starts_with);
        Some(Self { shared_with: shared_with?, feeds: feeds?, starts_with: starts_with? })
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
        let Some(named) = Named::by(table, &directory, report) else {
            sound = false;
            continue;
        };
        if let Some(app) = apps.get_mut(index) {
            app.promise(|service| {
                if let Some(owner) = named.shared_with {
                    service.reservation = Reservation::Shared(owner);
                }
                service.feeds = named.feeds;
            });
            app.spec.pace = named.starts_with.map_or(app.spec.pace, Pace::With);
        }
        let mut fault = |spot: &Option<(String, Spot)>, (problem, remedy): (&str, &str)| {
            if let Some((_, spot)) = spot {
                report.value(spot, problem, remedy);
            }
            sound = false;
        };
        if let Some(found) = named.shared_with.and_then(|owner| unshared(apps, tables, index, owner)) {
            fault(&table.service.shared_with, found);
        }
        if named.feeds.is_some() && in_circle(apps, index) {
            let remedy = "leave one of their feeds out";
            fault(&table.service.feeds, ("the apps depend on each other in a circle", remedy));
        }
        let follows =
            |app: AppId| table_of(apps, tables, app).is_some_and(|table| table.starts_with.is_some());
        if named.starts_with.is_some_and(follows) {
            let problem = "that app begins its frames with those of another one";
            fault(&table.starts_with, (problem, "name an app without a starts_with"));
        }
    }
    sound
}

fn table_of<'a>(apps: &[Expanded], tables: &'a [LoweredApp], app: AppId) -> Option<&'a LoweredApp> {
    tables.get(apps.get(app.index())?.table)
}

/// Why the app at `index` cannot share what the app `owner` has, and what to do about it.
fn unshared(
    apps: &[Expanded],
    tables: &[LoweredApp],
    index: usize,
    owner: AppId,
) -> Option<(&'static str, &'static str)> {
    let has_frames = |app: Option<&Expanded>| app.is_some_and(|app| app.spec.params.etpf > Span::ZERO);
    let service = &table_of(apps, tables, owner)?.service;
    if matches!(service.service.reservation, Reservation::Own(_)) {
        None
    } else if !has_frames(apps.get(owner.index())) {
        let remedy = "name one with a reserve_us or an etpf_us, or give it one";
        Some(("that app has neither a reserve nor frames of its own", remedy))
    } else if service.shared_with.is_some() {
        Some(("that app shares what another one has", "name an app without a shared_with"))
    } else if has_frames(apps.get(index)) {
        Some(("an app that shares frames has none of its own", "leave out etpf_us or shared_with"))
    } else {
        None
    }
}

/// Whether the chain of consumers, as far as it is known, comes back to its beginning.
fn in_circle(apps: &[Expanded], start: usize) -> bool {
    let consumer = |app: &AppId| apps.get(app.index())?.spec.params.service.feeds;
    let first = apps.get(start).and_then(|app| app.spec.params.service.feeds);
    std::iter::successors(first, consumer).take(apps.len()).any(|app| app.index() == start)
}

impl Lower<'_, '_> {
    /// The app with the focus, by time.
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
