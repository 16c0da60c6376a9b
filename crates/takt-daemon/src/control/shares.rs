//! Counts what each domain with a minimum share had, and notices when it had less while it had work.
//!
//! A state machine without input or output. The core keeps the shares, by a server for each; this looks whether it
//! did. A window is *short* if the domain had work in nine tenths of it, waited for a grant in at least half of
//! what its share leaves to others, and had less than nine tenths of its share of the time with work. A tenth is
//! what groups that straddle windows, and gaps between two groups of an app, make.

use std::collections::BTreeMap;

use takt_core::{Action, AppId, Event, Span, Time};
use takt_trace::{Observer, Record};

use super::rights::{MinShare, ShareServer};
use crate::rt::endpoint::owner;

/// The tenths of a window with work, and of a share, that count as all of it.
const ENOUGH: (u64, u64) = (9, 10);
/// Records come late by less than this.
const LATE_MAX: Span = Span::from_ms(100);
/// The whole GPU.
const WHOLE_PPM: u64 = 1_000_000;

/// What a domain had.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Had {
    /// GPU time in the last whole window.
    pub(crate) gpu: Span,
    /// How long it had work in that.
    pub(crate) busy: Span,
    /// Whether that window was short.
    pub(crate) short: bool,
    /// Short windows so far.
    pub(crate) violations: u64,
}

impl Had {
    /// The part of a window that it had the GPU, in thousandths that are rounded.
    pub(crate) fn part_of(&self, window: Span) -> f64 {
        (self.gpu.as_ns() as f64 / window.as_ns().max(1) as f64 * 1e3).round() / 1e3
    }
}

/// A domain has less than its share from now on, or not any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShareFinding {
    pub(crate) domain: String,
    pub(crate) share: MinShare,
    pub(crate) had: Had,
}

/// All domains with a minimum share.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShareAccounts {
    accounts: Vec<ShareAccount>,
    /// The account of each app that runs on a share.
    of: BTreeMap<AppId, usize>,
    work: BTreeMap<AppId, AppWork>,
    /// The last time of which something is known.
    now: Time,
    findings: Vec<ShareFinding>,
}

/// Groups of an app.
#[derive(Clone, Copy, Debug, Default)]
struct AppWork {
    waiting: u32,
    in_flight: u32,
}

#[derive(Clone, Debug)]
struct ShareAccount {
    server: ShareServer,
    /// Groups of all its apps.
    work: AppWork,
    window: Window,
    had: Had,
}

#[derive(Clone, Copy, Debug, Default)]
struct Window {
    began: Time,
    gpu: Span,
    /// Time with a group that waits or is in flight, and with one that waits.
    busy: Span,
    waited: Span,
    /// Records are missing, so it is not judged.
    void: bool,
}

impl ShareAccounts {
    /// Keeps these shares from `now` on; what is known about domains that stay is kept.
    pub(crate) fn keep(&mut self, now: Time, servers: &[ShareServer]) {
        self.now = self.now.max(now);
        let before = std::mem::take(&mut self.accounts);
        let account = |server: &ShareServer| {
            let old = before.iter().find(|old| old.server.domain == server.domain);
            let had = old.map(|old| old.had).unwrap_or_default();
            let window = Window { began: self.now, void: true, ..Window::default() };
            ShareAccount { server: server.clone(), work: AppWork::default(), window, had }
        };
        self.accounts = servers.iter().map(account).collect();
        self.belong(&BTreeMap::new());
    }

    /// These apps run on the shares of these servers, and no others.
    pub(crate) fn belong(&mut self, servers: &BTreeMap<AppId, AppId>) {
        let place = |server: &AppId| self.accounts.iter().position(|account| account.server.app == *server);
        let of = servers.iter().filter_map(|(app, server)| Some((*app, place(server)?))).collect();
        if self.of == of {
            return;
        }
        self.of = of;
        self.accounts.iter_mut().for_each(|account| account.work = AppWork::default());
        for (app, account) in &self.of {
            let (all, own) =
                (&mut self.accounts[*account].work, self.work.get(app).copied().unwrap_or_default());
            *all = AppWork { waiting: all.waiting + own.waiting, in_flight: all.in_flight + own.in_flight };
        }
    }

    /// What is new at `now`: records up to a moment before were seen.
    pub(crate) fn look(&mut self, now: Time) -> Vec<ShareFinding> {
        self.advance(now - LATE_MAX);
        std::mem::take(&mut self.findings)
    }

    /// The shares, and what their domains had.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&ShareServer, &Had)> {
        self.accounts.iter().map(|account| (&account.server, &account.had))
    }

    /// What that domain had, if it has a share.
    pub(crate) fn of_domain(&self, domain: &str) -> Option<Had> {
        self.accounts.iter().find(|account| account.server.domain == domain).map(|account| account.had)
    }

    fn advance(&mut self, to: Time) {
        let from = self.now;
        self.now = from.max(to);
        for account in &mut self.accounts {
            self.findings.extend(account.advance(from, self.now));
        }
    }

    /// Groups of an app wait, go or end.
    fn change(&mut self, app: AppId, change: impl Fn(&mut AppWork)) {
        change(self.work.entry(app).or_default());
        if let Some(account) = self.of.get(&app) {
            change(&mut self.accounts[*account].work);
        }
    }

    fn ended(&mut self, app: AppId, cost: Span) {
        self.change(app, |work| work.in_flight = work.in_flight.saturating_sub(1));
        if let Some(account) = self.of.get(&app) {
            self.accounts[*account].window.gpu += cost;
        }
    }

    fn left(&mut self, app: AppId) {
        let AppWork { waiting, in_flight } = self.work.remove(&app).unwrap_or_default();
        if let Some(account) = self.of.remove(&app) {
            let all = &mut self.accounts[account].work;
            all.waiting = all.waiting.saturating_sub(waiting);
            all.in_flight = all.in_flight.saturating_sub(in_flight);
        }
    }

    /// Records are missing: which groups wait shows again with those that follow.
    fn lost_track(&mut self) {
        self.work.clear();
        for account in &mut self.accounts {
            (account.work, account.window.void) = (AppWork::default(), true);
        }
    }
}

impl ShareAccount {
    /// Counts the time from one moment to the next; says what changed with the windows that end meanwhile.
    fn advance(&mut self, mut from: Time, to: Time) -> Option<ShareFinding> {
        let mut changed = false;
        loop {
            let end = self.window.began + self.server.share.window;
            self.window.count(self.work, to.min(end).since(from));
            if to < end {
                break;
            }
            changed |= self.judge();
            let idle = self.work.waiting + self.work.in_flight == 0;
            // Windows without work need no count.
            from = if idle { to } else { end };
            self.window = Window { began: from, ..Window::default() };
        }
        let Self { server: ShareServer { domain, share, .. }, had, .. } = self;
        changed.then(|| ShareFinding { domain: domain.clone(), share: *share, had: *had })
    }

    /// Judges a window that is over; returns whether that differs from before.
    fn judge(&mut self) -> bool {
        let (Window { gpu, busy, waited, void, .. }, share) = (self.window, self.server.share);
        if void {
            return false;
        }
        let tenths = |span: Span| Span::from_ns(span.as_ns() / ENOUGH.1 * ENOUGH.0);
        let others = MinShare { ppm: WHOLE_PPM.saturating_sub(share.ppm) / 2, ..share };
        let short =
            busy >= tenths(share.window) && waited >= others.of(share.window) && gpu < tenths(share.of(busy));
        let violations = self.had.violations + u64::from(short);
        let before = std::mem::replace(&mut self.had, Had { gpu, busy, short, violations });
        before.short != short
    }
}

impl Window {
    fn count(&mut self, work: AppWork, span: Span) {
        if work.waiting > 0 {
            self.waited += span;
        }
        if work.waiting + work.in_flight > 0 {
            self.busy += span;
        }
    }
}

impl Observer for ShareAccounts {
    fn record(&mut self, at: Time, record: &Record) {
        if self.accounts.is_empty() {
            return;
        }
        self.advance(at);
        match *record {
            Record::In(Event::Submit { app, .. }) => self.change(app, |work| work.waiting += 1),
            Record::Out(Action::Dispatch { app, .. }) => self.change(app, |work| {
                (work.waiting, work.in_flight) = (work.waiting.saturating_sub(1), work.in_flight + 1);
            }),
            Record::Out(Action::Refused { app, group: Some(_), .. }) => {
                self.change(app, |work| work.waiting = work.waiting.saturating_sub(1));
            }
            Record::In(Event::Complete { group, cost, .. }) => self.ended(owner(group), cost.span()),
            Record::Out(Action::Lost { group, .. }) => self.ended(owner(group), Span::ZERO),
            Record::In(Event::Leave { app }) | Record::Out(Action::Left { app, .. }) => self.left(app),
            Record::Gap { .. } => self.lost_track(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
