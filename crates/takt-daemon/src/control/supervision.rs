//! Notices that a listed app stopped drawing, and says what to do about it.
//!
//! A state machine without input or output: the server tells it which apps come and finish frames, and asks
//! it now and then. An app that has left counts as one that stopped: it may have crashed.

use serde::{Deserialize, Serialize};
use takt_core::{Span, Time};

use super::config::{AppSettings, Client};

/// Most restarts of one app within [`WINDOW`]: one that always fails is not started without end.
const RESTARTS_MAX: usize = 3;
/// The time over which restarts are counted.
const WINDOW: Span = Span::from_ms(600_000);

/// What to do when an app stops drawing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reaction {
    /// Say so.
    #[default]
    Tell,
    /// Say so, and restart its systemd unit.
    Restart,
    /// Say so, and let apps that matter less stand still until it draws again.
    Degrade,
    /// All of that.
    RestartAndDegrade,
}

impl Reaction {
    /// Whether its unit is restarted.
    pub fn restarts(self) -> bool {
        matches!(self, Self::Restart | Self::RestartAndDegrade)
    }

    /// Whether others stand still meanwhile.
    pub fn degrades(self) -> bool {
        matches!(self, Self::Degrade | Self::RestartAndDegrade)
    }
}

/// How an app is supervised.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Supervision {
    /// The longest time without a finished frame.
    pub silence_max: Span,
    /// What to do then.
    pub reaction: Reaction,
    /// The unit to restart.
    pub unit: Option<String>,
}

/// What was noticed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Finding {
    /// An app stopped drawing.
    Silent {
        app: String,
        domain: String,
        silence: Span,
        /// The unit to restart, if that is to be done now.
        restart: Option<String>,
        /// It was restarted so often lately that it is not this time.
        gave_up: bool,
    },
    /// It draws again.
    Back { app: String, domain: String, silence: Span },
}

/// The supervised apps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Supervisor {
    apps: Vec<Watched>,
}

#[derive(Clone, Debug)]
struct Watched {
    app: AppSettings,
    supervision: Supervision,
    /// Its last sign of life; none before it came for the first time.
    heard: Option<Time>,
    /// It joined and has not drawn since: another join is no sign of life.
    is_due: bool,
    silent: bool,
    /// When it was restarted.
    restarts: Vec<Time>,
}

impl Supervisor {
    /// Supervises these apps from now on; what is known about apps that stay is kept.
    pub(crate) fn watch(&mut self, apps: &[AppSettings]) {
        let before = std::mem::take(&mut self.apps);
        self.apps = apps
            .iter()
            .filter_map(|app| {
                let supervision = app.supervision.clone()?;
                let known =
                    before.iter().find(|old| (&old.app.name, &old.app.domain) == (&app.name, &app.domain));
                let new = Watched {
                    app: app.clone(),
                    supervision: supervision.clone(),
                    heard: None,
                    is_due: false,
                    silent: false,
                    restarts: Vec::new(),
                };
                Some(known.map_or(new, |old| Watched { app: app.clone(), supervision, ..old.clone() }))
            })
            .collect();
    }

    /// An app was admitted: its first frame is due within the limit. One that comes again and again and draws nothing
    /// has stopped as well.
    pub(crate) fn joined(&mut self, now: Time, client: &Client<'_>) {
        let waits = |watched: &&mut Watched| !watched.silent && !watched.is_due;
        if let Some(watched) = self.find(client).filter(waits) {
            (watched.heard, watched.is_due) = (watched.heard.max(Some(now)), true);
        }
    }

    /// An app stands still, as it must: its next frame is due within the limit from then on when it goes on.
    pub(crate) fn stands_still(&mut self, now: Time, client: &Client<'_>) {
        if let Some(watched) = self.find(client).filter(|watched| !watched.silent) {
            watched.heard = watched.heard.max(Some(now));
        }
    }

    /// An app finished a frame; says whether it had stopped before.
    pub(crate) fn drew(&mut self, now: Time, client: &Client<'_>) -> Option<Finding> {
        let watched = self.find(client)?;
        let before = watched.heard.replace(now);
        watched.is_due = false;
        if !std::mem::take(&mut watched.silent) {
            return None;
        }
        let AppSettings { name: app, domain, .. } = watched.app.clone();
        Some(Finding::Back { app, domain, silence: now.since(before.unwrap_or(now)) })
    }

    /// The apps that stopped since the last call.
    pub(crate) fn check(&mut self, now: Time) -> Vec<Finding> {
        self.apps.iter_mut().filter_map(|watched| watched.check(now)).collect()
    }

    /// The first app that does not draw and for which others stand still meanwhile.
    pub(crate) fn degraded(&self) -> Option<&AppSettings> {
        let degrades = |watched: &&Watched| watched.silent && watched.supervision.reaction.degrades();
        self.apps.iter().find(degrades).map(|watched| &watched.app)
    }

    /// The apps that do not draw.
    pub(crate) fn silent(&self) -> impl Iterator<Item = &AppSettings> {
        self.apps.iter().filter(|watched| watched.silent).map(|watched| &watched.app)
    }

    fn find(&mut self, client: &Client<'_>) -> Option<&mut Watched> {
        self.apps.iter_mut().find(|watched| watched.app.is_for(client))
    }
}

impl Watched {
    fn check(&mut self, now: Time) -> Option<Finding> {
        let silence = now.since(self.heard?);
        if self.silent || silence <= self.supervision.silence_max {
            return None;
        }
        self.silent = true;
        self.restarts.retain(|then| now.since(*then) < WINDOW);
        let may_restart = self.supervision.reaction.restarts();
        let gave_up = may_restart && self.restarts.len() >= RESTARTS_MAX;
        let restart = self.supervision.unit.clone().filter(|_| may_restart && !gave_up);
        if restart.is_some() {
            self.restarts.push(now);
        }
        let AppSettings { name: app, domain, .. } = self.app.clone();
        Some(Finding::Silent { app, domain, silence, restart, gave_up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::config::Settings;
    use crate::control::identity::Identity;
    use crate::control::rights::Domain;

    const UNIT: &str = "cluster.service";

    fn settings(reaction: &str) -> Settings {
        let text = format!(
            "[[domain]]\nname = 'cluster'\nunit = '{UNIT}'\n\
             [[app]]\nname = 'dial'\ndomain = 'cluster'\nsilence_ms_max = 500\non_silence = '{reaction}'\n\
             [[app]]\nname = 'map'"
        );
        Settings::parse(&text).expect("settings")
    }

    fn supervisor(settings: &Settings) -> (Supervisor, Domain) {
        let mut supervisor = Supervisor::default();
        supervisor.watch(&settings.apps);
        (supervisor, Domain::clone(settings.domains.named("cluster").expect("listed")))
    }

    fn dial<'a>(domain: &'a Domain, who: &'a Identity) -> Client<'a> {
        Client { name: "dial", domain, who }
    }

    fn names(supervisor: &Supervisor) -> Vec<String> {
        supervisor.silent().map(|app| app.name.clone()).collect()
    }

    fn silent(silence_ms: u64, restart: Option<&str>, gave_up: bool) -> Finding {
        let (app, domain) = ("dial".to_owned(), "cluster".to_owned());
        let restart = restart.map(str::to_owned);
        Finding::Silent { app, domain, silence: Span::from_ms(silence_ms), restart, gave_up }
    }

    #[test]
    fn an_app_that_stops_is_noticed_once_and_when_it_is_back() {
        let settings = settings("tell");
        let (mut supervisor, cluster) = supervisor(&settings);
        let ms = Time::from_ms;
        assert_eq!(supervisor.check(ms(10_000)), [], "it has not come yet");
        supervisor.joined(ms(10_000), &dial(&cluster, &Identity::default()));
        for at in (10_100..20_000).step_by(400) {
            assert_eq!(supervisor.drew(ms(at), &dial(&cluster, &Identity::default())), None);
            assert_eq!(supervisor.check(ms(at + 399)), []);
        }
        // An impostor of another domain with its name is not the dial.
        assert_eq!(
            supervisor.drew(ms(20_400), &dial(&settings.domains.unlisted, &Identity::default())),
            None
        );
        assert_eq!(supervisor.check(ms(20_500)), [silent(800, None, false)]);
        assert_eq!(supervisor.check(ms(30_000)), [], "it is said once");
        assert_eq!(names(&supervisor), ["dial"]);
        supervisor.joined(ms(30_000), &dial(&cluster, &Identity::default()));
        assert_eq!(names(&supervisor), ["dial"], "it draws nothing yet");
        let back = Finding::Back {
            app: "dial".to_owned(),
            domain: "cluster".to_owned(),
            silence: Span::from_ms(11_300),
        };
        assert_eq!(supervisor.drew(ms(31_000), &dial(&cluster, &Identity::default())), Some(back));
        assert_eq!((supervisor.check(ms(31_100)), names(&supervisor)), (vec![], vec![]));
    }

    #[test]
    fn an_app_that_comes_again_and_again_and_draws_nothing_is_silent() {
        let settings = settings("tell");
        let (mut supervisor, cluster) = supervisor(&settings);
        let (ms, who) = (Time::from_ms, Identity::default());
        supervisor.drew(ms(1_000), &dial(&cluster, &who));
        // It crashes and is started again every 200 ms.
        for at in (1_200..=1_600).step_by(200) {
            supervisor.joined(ms(at), &dial(&cluster, &who));
            assert_eq!(supervisor.check(ms(at)), [], "its first frame is due within the limit");
        }
        supervisor.joined(ms(1_800), &dial(&cluster, &who));
        assert_eq!(supervisor.check(ms(1_800)), [silent(600, None, false)]);
    }

    #[test]
    fn an_app_that_must_stand_still_is_not_silent() {
        let settings = settings("restart-and-degrade");
        let (mut supervisor, cluster) = supervisor(&settings);
        let (ms, who) = (Time::from_ms, Identity::default());
        supervisor.joined(ms(900), &dial(&cluster, &who));
        supervisor.drew(ms(1_000), &dial(&cluster, &who));
        for at in (1_100..5_000).step_by(100) {
            supervisor.stands_still(ms(at), &dial(&cluster, &who));
            assert_eq!(supervisor.check(ms(at)), [], "{at} ms");
        }
        assert_eq!(supervisor.check(ms(5_400)), [], "it goes on");
        assert_eq!(supervisor.check(ms(5_500)), [silent(600, Some(UNIT), false)]);
        supervisor.stands_still(ms(6_000), &dial(&cluster, &who));
        assert_eq!(names(&supervisor), ["dial"], "it draws nothing by that");
    }

    #[test]
    fn a_unit_is_restarted_but_not_without_end() {
        let settings = settings("restart");
        let (mut supervisor, cluster) = supervisor(&settings);
        let mut fail = |at_s: u64| {
            supervisor.drew(Time::from_ms(at_s * 1000), &dial(&cluster, &Identity::default()));
            supervisor.check(Time::from_ms(at_s * 1000 + 600))
        };
        for at_s in [1, 10, 20] {
            assert_eq!(fail(at_s), [silent(600, Some(UNIT), false)], "{at_s} s");
        }
        assert_eq!(fail(30), [silent(600, None, true)]);
        assert_eq!(fail(630), [silent(600, Some(UNIT), false)], "the others are long ago");
    }

    #[test]
    fn others_stand_still_until_it_draws_again_or_the_file_says_otherwise() {
        let ms = Time::from_ms;
        for (reaction, degrades, restarts) in [
            ("tell", false, false),
            ("restart", false, true),
            ("degrade", true, false),
            ("restart-and-degrade", true, true),
        ] {
            let settings = settings(reaction);
            let (mut supervisor, cluster) = supervisor(&settings);
            let is_degraded = |supervisor: &Supervisor| supervisor.degraded().is_some();
            supervisor.drew(ms(1_000), &dial(&cluster, &Identity::default()));
            assert!(!is_degraded(&supervisor));
            assert_eq!(supervisor.check(ms(2_000)), [silent(1_000, restarts.then_some(UNIT), false)]);
            assert_eq!(is_degraded(&supervisor), degrades, "{reaction}");
            supervisor.drew(ms(3_000), &dial(&cluster, &Identity::default()));
            assert!(!is_degraded(&supervisor));
            supervisor.check(ms(4_000));
            supervisor.watch(&[]);
            assert!(!is_degraded(&supervisor), "another file");
        }
    }

    #[test]
    fn another_configuration_keeps_what_is_known() {
        let (mut supervisor, cluster) = supervisor(&settings("tell"));
        supervisor.drew(Time::from_ms(1_000), &dial(&cluster, &Identity::default()));
        supervisor.watch(&settings("restart").apps);
        assert_eq!(supervisor.check(Time::from_ms(1_600)), [silent(600, Some(UNIT), false)]);
        supervisor.watch(&[]);
        assert_eq!(names(&supervisor), Vec::<String>::new());
    }
}
