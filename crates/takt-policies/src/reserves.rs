//! Which app is served from which budget.
//!
//! * **Rule.** A reserve of an app's own is admitted as long as all admitted ones together stay
//!   within the limit; beyond it, its app is served from the background reserve. Those that were
//!   admitted stay, the more important of the others come first, and an app that was turned away is
//!   tried again whenever apps come, go or change. The background reserve itself is not counted.
//! * **Sharing.** An app that shares is served from the reserve of the app it names, and from the
//!   background reserve while that one has none of its own.
//! * **Source.** TimeGraph, sections 3 and 5.1.
//! * **Cost.** Linear in apps when they change; constant otherwise. No allocation after
//!   [`Reserves::prepare`].

use alloc::vec::Vec;

use crate::account::Account;
use takt_core::app::AppId;
use takt_core::config::Config;
use takt_core::scheduler::Lane;
use takt_core::service::{Reservation, Reserve};
use takt_core::time::Time;

/// The accounts of all reserves.
#[derive(Clone, Default, Debug)]
pub(crate) struct Reserves {
    /// The admitted reserves by slot of their owner; the background reserve last.
    accounts: Vec<Option<Account>>,
    /// Which account each slot is served from.
    served_from: Vec<Option<usize>>,
    limit_ppm: u128,
    background: Option<Reserve>,
}

impl Reserves {
    /// Takes all memory.
    pub(crate) fn prepare(&mut self, config: &Config) {
        let apps = config.apps_max as usize;
        self.accounts = alloc::vec![None; apps + 1];
        self.served_from = alloc::vec![None; apps];
        self.limit_ppm = u128::from(config.tuning.admission_permille) * 1000;
        self.background = Some(config.tuning.background);
    }

    /// Admits reserves anew.
    pub(crate) fn apps_changed(&mut self, now: Time, lanes: &[Lane]) {
        let background = self.accounts.len() - 1;
        if self.accounts[background].is_none() {
            self.accounts[background] = self.background.map(|terms| Account::open(terms, now));
        }
        self.served_from.fill(None);
        for lane in lanes.iter().filter(|lane| own(lane).is_some()) {
            self.served_from[lane.app.index()] = Some(lane.app.index());
        }
        // An app that left, or asks for no reserve any more, has no account.
        for (slot, account) in self.accounts[..background].iter_mut().enumerate() {
            *account = account.filter(|_| self.served_from[slot] == Some(slot));
        }
        self.admit(now, lanes);
        for lane in lanes {
            let owner = match lane.service.reservation {
                Reservation::None => None,
                Reservation::Own(_) => Some(lane.app.index()),
                Reservation::Shared(owner) => Some(owner.index()),
                Reservation::Background => Some(background),
            };
            let has_account = |slot: usize| self.accounts.get(slot).is_some_and(Option::is_some);
            let account = owner.map(|slot| if has_account(slot) { slot } else { background });
            self.served_from[lane.app.index()] = account;
        }
    }

    /// Opens the accounts of those that are admitted: first those that were before, then the most important.
    fn admit(&mut self, now: Time, lanes: &[Lane]) {
        let mut admitted = 0;
        for keep in [true, false] {
            for lane in lanes {
                let (slot, Some(terms)) = (lane.app.index(), own(lane)) else { continue };
                if self.accounts[slot].is_some_and(|account| account.has_terms(terms)) != keep {
                    continue;
                }
                let share = Account::share_ppm(terms);
                if admitted + share > self.limit_ppm {
                    self.accounts[slot] = None;
                    continue;
                }
                admitted += share;
                match &mut self.accounts[slot] {
                    Some(account) if !keep => account.renegotiate(terms, now),
                    Some(_) => {}
                    None => self.accounts[slot] = Some(Account::open(terms, now)),
                }
            }
        }
    }

    /// The account that the app is served from; `None` if nothing limits it.
    pub(crate) fn of(&mut self, app: AppId) -> Option<&mut Account> {
        self.accounts[self.served_from[app.index()]?].as_mut()
    }

    /// Brings all accounts up to date; what waits for budget is found out anew.
    pub(crate) fn replenish(&mut self, now: Time) {
        for account in self.accounts.iter_mut().flatten() {
            account.replenish(now);
            account.await_nothing();
        }
    }
}

/// The reserve that the app asks for itself.
fn own(lane: &Lane) -> Option<Reserve> {
    match lane.service.reservation {
        Reservation::Own(terms) => Some(terms),
        Reservation::None | Reservation::Shared(_) | Reservation::Background => None,
    }
}
