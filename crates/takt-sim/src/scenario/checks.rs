//! What apps must agree on with one another: their number, names, priorities and strides.

use std::collections::BTreeMap;

use takt_core::limits::{APPS_MAX, LOOKAHEAD_MAX};
use takt_core::refresh::lcm;
use takt_core::{Priority, Service, Stride, Time};

use super::decimal::{ITEMS_MAX, NAME_CHARS_MAX};
use super::diagnostic::{Report, Spot};
use super::lower_app::LoweredApp;
use crate::model::{AppSpec, Work};

/// One app, and the `[[app]]` table it comes from.
pub(super) struct Expanded {
    pub(super) spec: AppSpec,
    pub(super) table: usize,
}

impl Expanded {
    /// Changes what the app is promised, at the start and by each change.
    pub(super) fn promise(&mut self, change: impl Fn(&mut Service)) {
        change(&mut self.spec.params.service);
        for later in &mut self.spec.changes {
            change(&mut later.params.service);
        }
    }
}

/// Replaces `count` by as many apps, within bounds.
pub(super) fn expand(report: &mut Report<'_>, lowered: &[LoweredApp]) -> Option<Vec<Expanded>> {
    let (mut apps, mut items) = (0, 0_usize);
    for app in lowered {
        apps += app.count as usize;
        items = items.saturating_add((app.count as usize).saturating_mul(size(&app.spec)));
        let (problem, remedy) = if apps > APPS_MAX {
            ("too many apps in all", format!("have at most {APPS_MAX} (APPS_MAX)"))
        } else if items > ITEMS_MAX {
            (
                "too many draws, changes and phases in all",
                format!("have at most {ITEMS_MAX} (ITEMS_MAX), counting each app"),
            )
        } else {
            continue;
        };
        report.value(&app.spots.count, problem, remedy);
        return None;
    }
    let tables = lowered.iter().enumerate();
    Some(tables.flat_map(|(table, app)| copies(app, table)).collect())
}

/// How much memory an app takes, in items.
fn size(spec: &AppSpec) -> usize {
    let work = match &spec.work {
        Work::Drawn { parts, swap } => {
            let buckets = parts.iter().map(|part| 1 + part.cost.buckets.len());
            buckets.sum::<usize>() + swap.buckets.len()
        }
        Work::Recorded(_) => 0,
    };
    1 + work + spec.changes.len() + spec.phases.len()
}

fn copies(app: &LoweredApp, table: usize) -> impl Iterator<Item = Expanded> {
    (0..app.count).map(move |index| {
        let mut spec = app.spec.clone();
        if app.count > 1 {
            spec.name = format!("{}-{}", spec.name, index + 1);
        }
        let lowered = |priority: Priority| Priority(priority.0.saturating_sub(index));
        spec.params.priority = lowered(spec.params.priority);
        for change in &mut spec.changes {
            change.params.priority = lowered(change.params.priority);
        }
        Expanded { spec, table }
    })
}

/// Checks all apps against each other.
pub(super) fn between_apps(report: &mut Report<'_>, tables: &[LoweredApp], apps: &[Expanded]) {
    let mut check = Check { report, tables };
    check.names(apps);
    check.priorities(apps);
    check.strides(apps);
}

struct Check<'r, 'a> {
    report: &'r mut Report<'a>,
    tables: &'r [LoweredApp],
}

/// A priority an app has from one time to another, both inclusive.
struct Tenure<'s> {
    priority: Priority,
    from: Time,
    until: Time,
    app: usize,
    spot: &'s Spot,
}

impl Check<'_, '_> {
    fn names(&mut self, apps: &[Expanded]) {
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for app in apps {
            let Some(table) = self.tables.get(app.table) else {
                continue;
            };
            let spot = &table.spots.name;
            let name = app.spec.name.as_str();
            if name.len() > NAME_CHARS_MAX {
                self.report.value(
                    spot,
                    format_args!("{name} is longer than {NAME_CHARS_MAX} characters"),
                    "use a shorter name",
                );
            }
            if let Some(first) = seen.insert(name, spot.span.start) {
                let line = self.report.sources.line(first);
                self.report.value(
                    spot,
                    format_args!("another app is called {name} ({line})"),
                    "give each app its own name",
                );
            }
        }
    }

    /// No two apps may have the same priority at the same time, not even for an instant.
    fn priorities(&mut self, apps: &[Expanded]) {
        let mut tenures: Vec<Tenure<'_>> = Vec::new();
        for (index, app) in apps.iter().enumerate() {
            if let Some(table) = self.tables.get(app.table) {
                tenures.extend(tenures_of(index, app, table));
            }
        }
        tenures.sort_by_key(|t| (t.priority, t.from, t.app));
        let mut longest: Option<&Tenure<'_>> = None;
        for tenure in &tenures {
            let rival = longest.filter(|l| l.priority == tenure.priority && l.until >= tenure.from);
            match rival {
                Some(rival) if rival.app != tenure.app => {
                    let name = apps.get(rival.app).map_or("", |app| app.spec.name.as_str());
                    let line = self.report.sources.line(rival.spot.span.start);
                    self.report.value(
                        tenure.spot,
                        format_args!("app {name} has priority {} too ({line})", rival.priority.0),
                        "give each app its own priority",
                    );
                }
                _ => {}
            }
            if rival.is_none_or(|rival| rival.until < tenure.until) {
                longest = Some(tenure);
            }
        }
    }

    /// The strides in use at any one time must repeat within the scheduler's horizon.
    fn strides(&mut self, apps: &[Expanded]) {
        let mut users: BTreeMap<u32, usize> = BTreeMap::new();
        for app in apps {
            let Some(table) = self.tables.get(app.table) else {
                continue;
            };
            let new = add_stride(&mut users, app.spec.params.stride);
            if new && self.beyond_horizon(&users, &table.spots.rate) {
                return;
            }
        }
        let mut changes: Vec<(Time, Stride, Stride, &Spot)> = Vec::new();
        for app in apps {
            let Some(table) = self.tables.get(app.table) else {
                continue;
            };
            let mut before = app.spec.params.stride;
            for (change, spots) in app.spec.changes.iter().zip(&table.spots.changes) {
                changes.push((change.at, before, change.params.stride, &spots.rate));
                before = change.params.stride;
            }
        }
        changes.sort_by_key(|(at, ..)| *at);
        for (_, old, new, spot) in changes {
            drop_stride(&mut users, old);
            if add_stride(&mut users, new) && self.beyond_horizon(&users, spot) {
                return;
            }
        }
    }

    fn beyond_horizon(&mut self, users: &BTreeMap<u32, usize>, spot: &Spot) -> bool {
        let repeat = users.keys().fold(1, |all, stride| lcm(all, u64::from(*stride)));
        if repeat + 2 <= LOOKAHEAD_MAX {
            return false;
        }
        let strides: Vec<String> = users.keys().map(u32::to_string).collect();
        let strides = strides.join(", ");
        self.report.value(
            spot,
            format_args!("the apps' strides ({strides}) repeat only every {repeat} periods"),
            format!(
                "use rates with a common multiple of at most {} periods (LOOKAHEAD_MAX)",
                LOOKAHEAD_MAX - 2
            ),
        );
        true
    }
}

fn tenures_of<'s>(index: usize, app: &'s Expanded, table: &'s LoweredApp) -> Vec<Tenure<'s>> {
    let mut tenures = vec![Tenure {
        priority: app.spec.params.priority,
        from: Time::ZERO,
        until: Time::NEVER,
        app: index,
        spot: &table.spots.priority,
    }];
    for (change, spots) in app.spec.changes.iter().zip(&table.spots.changes) {
        if let Some(last) = tenures.last_mut()
            && last.priority != change.params.priority
        {
            last.until = change.at;
            tenures.push(Tenure {
                priority: change.params.priority,
                from: change.at,
                until: Time::NEVER,
                app: index,
                spot: &spots.priority,
            });
        }
    }
    tenures
}

/// Counts a user of a stride; whether it is the first.
fn add_stride(users: &mut BTreeMap<u32, usize>, stride: Stride) -> bool {
    let count = users.entry(stride.get()).or_insert(0);
    *count += 1;
    *count == 1
}

fn drop_stride(users: &mut BTreeMap<u32, usize>, stride: Stride) {
    if let Some(count) = users.get_mut(&stride.get()) {
        *count -= 1;
        if *count == 0 {
            users.remove(&stride.get());
        }
    }
}
