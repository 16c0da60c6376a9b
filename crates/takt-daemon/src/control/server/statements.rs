//! Keeps what the daemon says of each app true: it looks again several times a second, and whenever
//! something changes that the statement depends on.

use takt_core::belief::Uncut;
use takt_core::contract::has_shared_gaps;
use takt_core::{AppId, Clock, Span, Time};
use takt_os::clock;

use super::Server;
use crate::control::config::Settings;
use crate::control::contract::Timing;
use crate::control::members::Member;
use crate::control::outsiders::{OutsiderSettings, OutsiderWatch};
use crate::control::statement::{self, BudgetedGroup, Facts, GpuModel, Outsider, Outsiders, Statement};
use crate::observe::evidence::Evidence;
use crate::observe::journal::{Entry, Who};
use crate::rt::queues::Order;

/// Time between two looks.
const LOOK: Span = Span::from_ms(100);

/// What a statement depends on beyond the core.
#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) evidence: Evidence,
    model: GpuModel,
    watch: Option<OutsiderWatch>,
    /// As the watch found them, clients included.
    seen: Outsiders,
    /// Those that are no clients.
    pub(super) outsiders: Outsiders,
    next_look: Time,
}

impl Surroundings {
    pub(super) fn new(settings: &Settings) -> Self {
        let mut surroundings = Self {
            evidence: Evidence::default(),
            model: if settings.gpu_is_given { GpuModel::Given } else { GpuModel::default() },
            watch: None,
            seen: Outsiders::default(),
            outsiders: Outsiders::default(),
            next_look: Time::ZERO,
        };
        surroundings.watch(&settings.outsiders);
        surroundings
    }

    /// Looks for outsiders as these settings say.
    fn watch(&mut self, settings: &OutsiderSettings) {
        match OutsiderWatch::start(settings.clone()) {
            Ok(watch) => self.watch = Some(watch),
            Err(error) => {
                self.watch = None;
                let unseen = format!("the daemon cannot look for other users of the GPU ({error})");
                self.seen = Outsiders { found: Vec::new(), unseen: Some(unseen) };
            }
        }
    }
}

impl Server {
    /// The model of the GPU is this now. The core knows it from its start.
    pub fn set_gpu_model(&mut self, model: GpuModel) {
        self.surroundings.model = model;
        self.state_now();
    }

    /// Who uses the GPU without being scheduled.
    pub(super) fn outsiders(&self) -> &Outsiders {
        &self.surroundings.outsiders
    }

    /// Looks for outsiders by other settings from now on.
    pub(super) fn watch_outsiders(&mut self) {
        self.surroundings.watch(&self.settings.outsiders);
    }

    /// Says of each app what is true now, if it is time to look again.
    pub(super) fn state(&mut self) {
        if clock::now() >= self.surroundings.next_look {
            self.state_now();
        }
    }

    /// The same at once.
    pub(super) fn state_now(&mut self) {
        self.surroundings.next_look = clock::now() + LOOK;
        self.meet_outsiders();
        let apps: Vec<AppId> = self.members.iter().map(|member| member.app).collect();
        for app in apps {
            if self.state_quietly(app)
                && let Some(member) = self.members.get(app)
            {
                let (guaranteed, admission) = (member.statement.is_guaranteed(), &member.admission());
                self.journal.tell(&Entry::Guarantee { who: Who::of(member), guaranteed, admission });
            }
        }
    }

    /// Says of an app what is true now; returns whether that is more than other figures.
    pub(super) fn state_quietly(&mut self, app: AppId) -> bool {
        let Some((statement, before)) =
            self.members.get(app).map(|member| (self.statement(member), member.standing().guaranteed))
        else {
            return false;
        };
        let guaranteed = statement.is_guaranteed();
        let differs = self.members.stated(app, statement).is_some();
        if guaranteed != before {
            self.order(Order::Guarantee { app, guaranteed });
        }
        if let Some(member) = self.members.promised(app) {
            self.audit.guarantee(member);
        }
        differs
    }

    fn statement(&self, member: &Member) -> Statement {
        let Surroundings { evidence, model, outsiders, .. } = &self.surroundings;
        let patience = self.period(member).times(2);
        let runs = |other: &&Member| other.uncut == Uncut::Run && other.app != member.app;
        let uncut: Vec<String> = self.members.iter().filter(runs).map(|other| other.name.clone()).collect();
        let now = clock::now();
        let seen = |app: AppId| evidence.of(app, now, patience);
        let job = member.params.framed().server().map(|reserve| {
            let users = self.members.paid_by(member.app);
            let longest = users.map(|user| seen(user.app).longest).max().unwrap_or_default();
            let core = self.settings.core.adjusted(self.adjustable);
            let has_runtime = matches!(member.timing, Timing::Server { share: false, .. });
            let alone = has_runtime.then(|| longest.span());
            BudgetedGroup { needs: core.per_job(longest), budget: reserve.budget, alone }
        });
        statement::decide(&Facts {
            promise: member.promise(),
            covered: member.protected,
            etpf: member.params.framed().etpf,
            job,
            on_cpu: member.on_cpu,
            gpu: member.gpu.as_deref(),
            model,
            outsiders,
            paused: member.stands_still(),
            lax_policy: (!takt_policies::keeps_contracts(&self.policy)).then_some(self.policy.as_str()),
            shared_gaps: has_shared_gaps(&member.params, self.members.has_sources(member.app)),
            uncut: &uncut,
            seen: seen(member.app),
        })
    }

    /// The time between two frames or jobs of an app.
    fn period(&self, member: &Member) -> Span {
        let params = member.params.framed();
        let server = params.server().map(|reserve| reserve.period);
        match (server.or(member.served), params.clock) {
            (Some(period), _) => period,
            (None, Clock::Own { period, .. }) => period,
            (None, Clock::Display(display)) => {
                let refresh = self.settings.core.display(display);
                refresh.period_span().times(params.stride.periods())
            }
        }
    }

    /// Takes what the watch found, without the clients, and logs who came and went.
    fn meet_outsiders(&mut self) {
        let surroundings = &mut self.surroundings;
        if let Some(seen) = surroundings.watch.as_ref().and_then(OutsiderWatch::news) {
            surroundings.seen = seen;
        }
        let is_client = |one: &Outsider| self.members.iter().any(|member| member.identity.pid == one.pid);
        let mut now = surroundings.seen.clone();
        now.found.retain(|one| !is_client(one));
        let before = std::mem::replace(&mut surroundings.outsiders, now.clone());
        let came = now.found.iter().filter(|one| !before.found.contains(one)).map(|one| (one, false));
        let went = before.found.iter().filter(|one| !now.found.contains(one)).map(|one| (one, true));
        for (Outsider { pid, uid, name, device }, gone) in came.chain(went) {
            self.journal.tell(&Entry::Outsider { process: name, pid: *pid, uid: *uid, device, gone });
        }
    }
}
