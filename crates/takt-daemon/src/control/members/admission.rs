//! On which terms an app is scheduled, if it is: its rights, and whether its contract can be kept.

use takt_core::contract::has_contract;
use takt_core::{AppId, AppParams, Clock, Priority, Span, Time};
use takt_ipc::message::Hello;
use takt_ipc::name;

use super::families::Part;
use super::member::at_first;
use super::promises::Candidate;
use super::sources::Partner;
use super::{Member, Members};
use crate::control::config::{Admission, AppSettings, Client, Settings};
use crate::control::contract;
use crate::control::identity::Identity;
use crate::control::rights::{Asked, BAND, Decision, Domain, Rule, Used, decide};
use crate::control::statement::{Reason, Statement};
use crate::control::terms::Terms;

/// Importance of an app without a priority.
const PRIORITY_DEFAULT: u32 = 10;
/// How long an app waits before it asks for a slot again.
const AGAIN: Span = Span::from_ms(1_000);

/// Why an app is not scheduled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) rule: Rule,
    pub(crate) reason: String,
    /// When it may ask again; none if that would change nothing.
    pub(crate) again: Option<Span>,
}

impl Refusal {
    /// The answer may differ when other apps leave.
    pub(crate) fn for_now(rule: Rule, reason: String) -> Self {
        Self { rule, reason, again: Some(AGAIN) }
    }
}

impl From<String> for Refusal {
    /// The request makes no sense, and the answer would be the same.
    fn from(reason: String) -> Self {
        Self { rule: Rule::Malformed, reason, again: None }
    }
}

/// What a client that joins gets.
struct Granted {
    /// The configuration lists it.
    listed: bool,
    decision: Decision,
    terms: Terms,
    asked_priority: u32,
    /// Another one if that was taken.
    priority: u32,
}

impl Members {
    /// Puts an app on the list, or says why not.
    pub(crate) fn admit(
        &mut self,
        now: Time,
        hello: &Hello,
        who: &Identity,
        settings: &Settings,
    ) -> Result<&Member, Refusal> {
        check_name(&hello.name)?;
        let domain = settings.domains.of(who);
        let client = Client { name: &hello.name, domain, who };
        self.check_quota(&client, settings)?;
        let app = self.vacant()?;
        let asked = Terms::try_from(hello)?;
        let family = hello.family.map(|number| self.part(number, &client));
        let Granted { listed, decision, terms, asked_priority, priority } =
            self.granted_at_first(client, family, &asked, settings)?;
        let (mut params, fps_mhz) = terms.lower(Priority(domain.core_priority(priority)), settings)?;
        params.service.divisible = hello.divisible && self.may_divide(domain, settings);
        let waits_itself = terms.waits_itself(period(&params));
        let (feeds, shares) = (terms.feeds.unwrap_or_default(), terms.shares.unwrap_or_default());
        let partner = Partner { app, client, feeds: &feeds, shares: &shares };
        let (params, served) = self.linked(&partner, params, settings);
        let protected = self.judge(app, &params, settings);
        self.check_promises(&Candidate { app, client, params: &params }, settings)?;
        let member = Member {
            app,
            name: hello.name.clone(),
            identity: who.clone(),
            domain: domain.clone(),
            listed,
            rule: decision.rule(),
            limits: decision.text(),
            fps_mhz,
            params,
            waits_itself,
            timing: terms.timing.unwrap_or_default(),
            pace: terms.pace.unwrap_or_default(),
            pacing: terms.pacing,
            interrupted: hello.divisible,
            slices: hello.slices,
            max_slice: terms.max_slice.unwrap_or(settings.max_slice),
            slice_now: None,
            uncut: terms.uncut.unwrap_or_default(),
            protected,
            statement: at_first(&params, protected),
            promised: false,
            wanted_priority: (priority != asked_priority).then_some(asked_priority),
            gpu: hello.gpu.clone().filter(|gpu| name::is_name(gpu)),
            on_cpu: hello.on_cpu,
            feeds,
            shares,
            served,
            paced: terms.paced.unwrap_or(false),
            asked,
            family,
            since: now,
            paused: false,
            set_aside: false,
            excused: false,
            distrusted: None,
            first_met: None,
            leaving: false,
        };
        Ok(self.slots[app.index()].insert(member))
    }

    /// A slot that no app has.
    fn vacant(&self) -> Result<AppId, Refusal> {
        let slot = self.slots.iter().position(Option::is_none).and_then(|slot| u32::try_from(slot).ok());
        let reason = || format!("all {} slots are taken", self.slots.len());
        slot.map(AppId).ok_or_else(|| Refusal::for_now(Rule::Slots, reason()))
    }

    /// What a client that joins gets of the terms that it asks for.
    fn granted_at_first(
        &self,
        client: Client<'_>,
        family: Option<Part>,
        asked: &Terms,
        settings: &Settings,
    ) -> Result<Granted, Refusal> {
        self.check_kept_slots(&client, settings)?;
        let section = settings.section(&client);
        let wanted = asked.clone().under(section.map(|section| &section.terms)).complete(settings);
        let request = Request { app: None, client, family: family.map(|part| part.number), wanted };
        let (decision, terms) = self.granted(&request, settings)?;
        let default = PRIORITY_DEFAULT.min(client.domain.rights.priority_max);
        let asked_priority = terms.priority.unwrap_or(default);
        let priority = self.unused_priority(&client, asked_priority, settings);
        let priority = priority.ok_or_else(|| all_taken(client.domain))?;
        Ok(Granted { listed: section.is_some(), decision, terms, asked_priority, priority })
    }

    /// Which of the terms that an app wants it gets, by its rights.
    fn granted(&self, request: &Request<'_>, settings: &Settings) -> Result<(Decision, Terms), Refusal> {
        let Request { app, client, family, wanted } = request;
        let domain = client.domain;
        let held = self.held_by_kin(*app, client, *family).filter(|_| wanted.has_contract());
        let less = held.as_ref().map(|_| wanted.clone().without_contract());
        let wanted = less.as_ref().unwrap_or(wanted);
        let by = match (settings.section(client), settings.is_listed(client.name)) {
            _ if client.who.tampered => Rule::ExecutableHash,
            (Some(_), _) => Rule::ListedApp,
            (None, true) => Rule::NameOfAnotherDomain,
            (None, false) => Rule::WithinRights,
        };
        let reserved = settings.reserved(wanted, domain)?;
        let refuses = settings.admission == Admission::Refuse;
        let asked = Asked { terms: wanted, reserved, slice_max: settings.max_slice, by, refuses };
        let mut decision = decide(domain, &asked, &self.used(request, settings));
        decision.limits.extend(held);
        match decision.terms.clone() {
            Some(terms) => Ok((decision, terms)),
            None => Err(Refusal::for_now(decision.rule(), decision.text())),
        }
    }

    /// What the other apps of a domain have, and what is kept for its listed apps that are not there.
    fn used(&self, request: &Request<'_>, settings: &Settings) -> Used {
        let Request { app, client, .. } = request;
        let domain = client.domain;
        let mut used = Used::default();
        for member in self.of_domain(domain).filter(|member| Some(member.app) != *app) {
            // An app that is scheduled stays, however many there are.
            used.apps += usize::from(app.is_none());
            used.reserved = used.reserved + member.reserved(&settings.core);
        }
        let is_listed = settings.section(client).is_some();
        let is_kept = |listed: &&AppSettings| listed.domain == domain.name && !listed.is_for(client);
        for listed in self.absent(settings).filter(is_kept) {
            // A place for each of them, which they have among themselves.
            used.apps += usize::from(app.is_none() && !is_listed);
            used.reserved = used.reserved + settings.reserved(&listed.terms, domain).unwrap_or_default();
        }
        used
    }

    /// The listed apps that are not scheduled.
    pub(super) fn absent<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = &'a AppSettings> {
        let there =
            |listed: &AppSettings| self.staying().any(|member| member.listed && member.name == listed.name);
        settings.apps.iter().filter(move |listed| !there(listed))
    }

    /// Remembers the terms that a member asks for now; the missing ones stay.
    pub(crate) fn ask_again(&mut self, app: AppId, asked: Terms) {
        if let Some(member) = self.get_mut(app) {
            member.asked = asked.or(std::mem::take(&mut member.asked));
        }
    }

    /// The terms that a member gets if it asks for these itself: no more than a client that joins with
    /// them. The missing ones stay.
    pub(crate) fn allowed(
        &self,
        app: AppId,
        asked: Terms,
        settings: &Settings,
    ) -> Result<(Decision, Terms), Refusal> {
        let member = self.get(app).ok_or_else(|| "no such app".to_owned())?;
        let client = member.client();
        let section = settings.section(&client);
        let wanted = asked.under(section.map(|section| &section.terms)).or(member.terms());
        let request = Request { app: Some(app), client, family: member.family_number(), wanted };
        let (decision, terms) = self.granted(&request, settings)?;
        let mut changed = self.clone();
        if let Ok(member) = changed.change(app, terms.clone(), settings) {
            let (client, params) = (member.client(), &member.params);
            self.check_promises(&Candidate { app, client, params }, settings)?;
        }
        Ok((decision, terms))
    }

    /// The terms of a member under another configuration: what it asked for itself and what that says. A
    /// member stays, without the time that it may not have any more.
    pub(crate) fn renewed(&self, member: &Member, settings: &Settings) -> Result<Terms, String> {
        self.granted_again(member, settings).map(|(_, terms)| terms)
    }

    /// The same with what it does not get.
    pub(crate) fn granted_again(
        &self,
        member: &Member,
        settings: &Settings,
    ) -> Result<(Decision, Terms), String> {
        let settings = &Settings { admission: Admission::Unprotected, ..settings.clone() };
        let client = member.client();
        let section = settings.section(&client);
        let wanted = member.asked.clone().under(section.map(|section| &section.terms)).complete(settings);
        let request = Request { app: Some(member.app), client, family: member.family_number(), wanted };
        self.granted(&request, settings).map_err(|refusal| refusal.reason)
    }

    /// Finds the domain of each member anew; returns the apps whose domain is another one, or has other
    /// rights.
    pub(crate) fn regroup(&mut self, settings: &Settings) -> Vec<AppId> {
        let mut moved = Vec::new();
        for member in self.slots.iter_mut().flatten() {
            let domain = settings.domains.of(&member.identity);
            if member.domain != *domain {
                member.domain = domain.clone();
                moved.push(member.app);
            }
            member.listed = settings.section(&member.client()).is_some();
        }
        moved
    }

    /// Changes a member's terms, or says why not.
    pub(crate) fn change(
        &mut self,
        app: AppId,
        terms: Terms,
        settings: &Settings,
    ) -> Result<&Member, String> {
        let member = self.get(app).ok_or("no such app")?;
        let terms = terms.or(member.terms());
        let priority = Priority(member.domain.core_priority(terms.priority.unwrap_or_default()));
        if let Some(other) =
            self.staying().find(|other| other.app != app && other.params.priority == priority)
        {
            return Err(format!("priority {} belongs to {}", other.priority(), other.name));
        }
        if settings.share_params().iter().any(|share| share.priority == priority) {
            return Err(format!("priority {} belongs to a minimum share", priority.0 % BAND));
        }
        let (mut params, fps_mhz) = terms.lower(priority, settings)?;
        let waits_itself = terms.waits_itself(period(&params));
        let (feeds, shares) = (terms.feeds.unwrap_or_default(), terms.shares.unwrap_or_default());
        params.service.divisible = member.params.service.divisible;
        let partner = Partner { app, client: member.client(), feeds: &feeds, shares: &shares };
        let (params, served) = self.linked(&partner, params, settings);
        let protected = self.judge(app, &params, settings);
        let member = self.get_mut(app).ok_or("no such app")?;
        (member.feeds, member.shares, member.served) = (feeds, shares, served);
        member.fps_mhz = fps_mhz;
        member.params = params;
        member.waits_itself = waits_itself;
        member.timing = terms.timing.unwrap_or_default();
        (member.pace, member.pacing) = (terms.pace.unwrap_or_default(), terms.pacing);
        member.max_slice = terms.max_slice.unwrap_or(member.max_slice);
        // Its terms are told with the change.
        member.slice_now = None;
        member.paced = terms.paced.unwrap_or(member.paced);
        member.uncut = terms.uncut.unwrap_or(member.uncut);
        member.wanted_priority = None;
        (member.protected, member.statement) = (protected, at_first(&params, protected));
        Ok(member)
    }

    /// Pauses a member, or lets it go on; returns whether that is a change.
    pub(crate) fn set_paused(&mut self, app: AppId, paused: bool, settings: &Settings) -> bool {
        self.stand(app, settings, |member| std::mem::replace(&mut member.paused, paused) != paused)
    }

    /// Sets a member aside until a supervised app draws again, or lets it go on; returns whether that is a change.
    pub(crate) fn set_aside(&mut self, app: AppId, aside: bool, settings: &Settings) -> bool {
        self.stand(app, settings, |member| std::mem::replace(&mut member.set_aside, aside) != aside)
    }

    /// Changes why a member stands still; what stands still is not protected. Returns whether it was a change.
    fn stand(&mut self, app: AppId, settings: &Settings, change: impl FnOnce(&mut Member) -> bool) -> bool {
        let Some(member) = self.get_mut(app) else { return false };
        if !change(member) {
            return false;
        }
        let (stands, params) = (member.stands_still(), member.params);
        let protected = !stands && self.judge(app, &params, settings);
        if let Some(member) = self.get_mut(app) {
            member.protected = protected;
        }
        true
    }

    /// A tool lets a member go on although a supervised app does not draw, until that draws again, or although its
    /// ends contradict others.
    pub(crate) fn excuse(&mut self, app: AppId) {
        if let Some(member) = self.get_mut(app) {
            (member.excused, member.distrusted) = (true, None);
        }
    }

    /// The ends of a member are not believed until then.
    pub(crate) fn distrust(&mut self, app: AppId, until: Time) {
        if let Some(member) = self.get_mut(app) {
            member.distrusted = member.distrusted.max(Some(until));
        }
    }

    /// Forgets what is over.
    pub(crate) fn believe(&mut self, now: Time) {
        for member in self.slots.iter_mut().flatten() {
            member.distrusted = member.distrusted.filter(|until| *until > now);
        }
    }

    /// The supervised apps draw again: what tools said is over.
    pub(crate) fn all_draw(&mut self) {
        self.slots.iter_mut().flatten().for_each(|member| member.excused = false);
    }

    /// Takes the core's verdict whether a member is protected; returns the member if that differs.
    pub(crate) fn judged(&mut self, app: AppId, protected: bool) -> Option<&Member> {
        let member = self.get_mut(app)?;
        if member.protected == protected {
            return None;
        }
        (member.protected, member.statement) = (protected, at_first(&member.params, protected));
        Some(member)
    }

    /// Takes what is to be said of a member now; returns the member if that is more than other figures.
    pub(crate) fn stated(&mut self, app: AppId, statement: Statement) -> Option<&Member> {
        let member = self.get_mut(app)?;
        let before = std::mem::replace(&mut member.statement, statement);
        (!before.is_like(&member.statement)).then_some(member)
    }

    /// Notes whether a member has a guarantee; returns the member if that is to be told. One that draws nothing
    /// keeps it: nothing is due.
    pub(crate) fn promised(&mut self, app: AppId) -> Option<&Member> {
        let member = self.get_mut(app)?;
        let is_idle = matches!(member.statement.reason(), Some(Reason::NoFrames));
        let promised = member.statement.is_guaranteed() || (is_idle && member.promised);
        if std::mem::replace(&mut member.promised, promised) == promised {
            return None;
        }
        Some(member)
    }

    /// Whether the contract of an app with these parameters will be covered beside the others: by the
    /// core's own test, to answer before the core has judged.
    fn judge(&self, app: AppId, params: &AppParams, settings: &Settings) -> bool {
        let counts = |other: &&Member| {
            other.app != app && other.params.priority > params.priority && !other.stands_still()
        };
        let mut shares = settings.share_params();
        shares.retain(|share| share.priority > params.priority);
        let above = self.staying().filter(counts).map(|other| &other.params);
        let covered = || contract::is_covered(params, shares.iter().chain(above), settings);
        has_contract(params) && covered()
    }

    /// The priority nearest to the wanted one that no member has and that is kept for no other listed app,
    /// lower ones first.
    pub(crate) fn unused_priority(
        &self,
        client: &Client<'_>,
        wanted: u32,
        settings: &Settings,
    ) -> Option<u32> {
        let domain = client.domain;
        let absent = self.absent(settings).filter(|listed| !listed.is_for(client));
        let shares = settings.share_params().into_iter().map(|share| share.priority.0);
        let listed = absent.filter_map(|listed| kept_priority(listed, settings));
        let kept: Vec<u32> = listed.chain(shares).collect();
        let is_free = |priority: &u32| {
            let priority = domain.core_priority(*priority);
            !kept.contains(&priority) && !self.staying().any(|member| member.params.priority.0 == priority)
        };
        let mut above = wanted.saturating_add(1)..=domain.rights.priority_max;
        (0..=wanted).rev().find(is_free).or_else(|| above.find(is_free))
    }
}

/// The priority in the core of a listed app that is not scheduled.
pub(crate) fn kept_priority(listed: &AppSettings, settings: &Settings) -> Option<u32> {
    let domain = settings.domains.named(&listed.domain)?;
    Some(domain.core_priority(listed.terms.priority.unwrap_or(PRIORITY_DEFAULT)))
}

/// What an app wants.
struct Request<'a> {
    /// Its slot, if it has one.
    app: Option<AppId>,
    client: Client<'a>,
    /// The processes that it is one app with, if it was started so.
    family: Option<u64>,
    /// Complete terms.
    wanted: Terms,
}

fn all_taken(domain: &Domain) -> Refusal {
    let most = domain.rights.priority_max;
    let reason =
        format!("all priorities up to {most} of domain {} are taken: raise its priority_max", domain.name);
    Refusal::for_now(Rule::PriorityMax, reason)
}

/// The period of its own clock, if it has one.
fn period(params: &AppParams) -> Span {
    if let Clock::Own { period, .. } = params.clock { period } else { Span::ZERO }
}

/// Names are shown on terminals and written to logs, line by line.
fn check_name(name: &str) -> Result<(), String> {
    if name::is_name(name) {
        return Ok(());
    }
    Err(format!(
        "its name \"{}\" has other characters than {}, or none",
        name.escape_default(),
        name::ALLOWED
    ))
}
