//! Minimum shares of domains in the configuration.

use takt_core::{AppParams, Span};

use super::file::ConfigFile;
use super::{AppSettings, Settings, values};
use crate::control::contract::ms;
use crate::control::mistake::{Mistake, mistake};
use crate::control::rights::{Domain, MinShare, SHARES_MAX, ShareServer};

/// Windows that mean something.
const WINDOWS_MS: std::ops::RangeInclusive<f64> = 100.0..=60_000.0;
/// The window of a share that names none.
const WINDOW_MS: f64 = 1_000.0;
/// The whole GPU.
const WHOLE_PPM: u64 = 1_000_000;

/// A minimum share as its keys say.
pub(super) fn share_min(share: Option<f64>, window_ms: Option<f64>) -> Result<Option<MinShare>, Mistake> {
    let Some(share) = share else {
        return match window_ms {
            None => Ok(None),
            Some(ms) => Err(mistake("share_window_ms", ms, "say which share: add share_min")),
        };
    };
    let ppm = values::share_ppm("share_min", share)?;
    if ppm == 0 {
        return Err(mistake("share_min", share, "use more than 0, or leave it out"));
    }
    let ms = window_ms.unwrap_or(WINDOW_MS);
    if !WINDOWS_MS.contains(&ms) {
        return Err(mistake("share_window_ms", ms, "use 100 to 60000 ms"));
    }
    Ok(Some(MinShare { ppm, window: values::ms("share_window_ms", ms)? }))
}

impl Settings {
    /// How many clients may be scheduled at once; the other slots of the core are for minimum shares.
    pub fn slots(&self) -> usize {
        self.core.apps_max.saturating_sub(SHARES_MAX) as usize
    }

    /// The servers that keep the minimum shares of domains.
    pub fn share_servers(&self) -> Vec<ShareServer> {
        let shared = self.domains.iter().filter_map(|domain| Some((domain, domain.rights.share_min?)));
        let numbered = shared.take(SHARES_MAX as usize).enumerate();
        numbered
            .map(|(index, (domain, share))| ShareServer::new(index, self.slots(), domain, share))
            .collect()
    }

    /// The parameters of the server of that domain's share, if it has one, and its slot.
    pub(crate) fn share_of(&self, domain: &Domain) -> Option<ShareServer> {
        domain.rights.share_min?;
        self.share_servers().into_iter().find(|server| server.domain == domain.name)
    }

    /// What all listed apps reserve together, in millionths of the GPU.
    fn listed_ppm(&self) -> u64 {
        let reserved = |app: &AppSettings| {
            let domain = self.domains.named(&app.domain)?;
            self.reserved(&app.terms, domain).ok().map(|reserved| reserved.share_ppm)
        };
        self.apps.iter().filter_map(reserved).sum()
    }

    fn check_share(&self, share: MinShare, kept: u64) -> Result<(), Mistake> {
        if kept > WHOLE_PPM {
            let (all, excess) = (parts(kept), parts(kept - WHOLE_PPM));
            let remedy = format!(
                "the shares down to it and the reservations of listed apps are {all} of the GPU: lower one by {excess}"
            );
            return Err(mistake("share_min", parts(share.ppm), remedy));
        }
        let (longest, budget) = (self.max_slice, share.reserve().budget);
        if longest < Span::FOREVER && budget < longest {
            let remedy = format!(
                "that is {} ms in {} ms, less than the longest group ({} ms): raise it or share_window_ms, \
                 or lower max_slice_ms",
                ms(budget),
                ms(share.period()),
                ms(longest)
            );
            return Err(mistake("share_min", parts(share.ppm), remedy));
        }
        Ok(())
    }

    /// The contracts of the shares of all domains, most important first.
    pub(crate) fn share_params(&self) -> Vec<AppParams> {
        let mut all: Vec<AppParams> = self.share_servers().into_iter().map(|server| server.params).collect();
        all.sort_by_key(|params| std::cmp::Reverse(params.priority));
        all
    }
}

fn parts(ppm: u64) -> f64 {
    ppm as f64 / 1e6
}

impl ConfigFile {
    /// Shares and the reservations of listed apps must fit on the GPU together, and each share must hold a group.
    pub(super) fn check_shares(&self, settings: &Settings) -> Result<(), Mistake> {
        let (mut kept, mut shares) = (settings.listed_ppm(), 0);
        for domain in settings.domains.iter() {
            let Some(share) = domain.rights.share_min else { continue };
            (shares, kept) = (shares + 1, kept.saturating_add(share.ppm));
            let checked = match shares > SHARES_MAX {
                true => {
                    let remedy = format!("use it in {SHARES_MAX} domains at most");
                    Err(mistake("share_min", parts(share.ppm), remedy))
                }
                false => settings.check_share(share, kept),
            };
            let at = self.section_of(&domain.name);
            checked.map_err(|mistake| mistake.within("domain", at, &domain.name))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domain(name: &str, keys: &str) -> String {
        format!("[[domain]]\nname = '{name}'\nuser = 1\n{keys}\n")
    }

    fn mistake_of(text: &str) -> String {
        Settings::parse(text).expect_err("a mistake").to_string()
    }

    #[test]
    fn three_shares_are_three_servers_behind_the_slots_of_clients() {
        let text = domain("a", "share_min = 0.5")
            + &domain("b", "share_min = 0.3")
            + &domain("c", "share_min = 0.2");
        let settings = Settings::parse(&text).expect("fine");
        let servers = settings.share_servers();
        let found: Vec<_> =
            servers.iter().map(|server| (server.app.index(), server.params.priority.0)).collect();
        assert_eq!(found, [(64, 2_999_999), (65, 2_999_998), (66, 2_999_997)]);
        let budgets: Vec<_> = servers.iter().map(|server| ms(server.share.reserve().budget)).collect();
        assert_eq!(budgets, [50.0, 30.0, 20.0]);
        assert_eq!(settings.slots(), 64);
    }

    #[test]
    fn shares_and_reservations_must_fit_together() {
        let two = domain("a", "share_min = 0.5") + &domain("b", "share_min = 0.6");
        let said = "line 8: domain \"b\": share_min = 0.6: the shares down to it and the reservations of listed apps \
                    are 1.1 of the GPU: lower one by 0.1";
        assert_eq!(mistake_of(&two), said);
        let listed = domain("a", "share_min = 0.9") + "[[app]]\nname = 'dial'\nfps = 60\netpf_ms = 3\n";
        assert!(
            mistake_of(&listed).contains("line 4: domain \"a\": share_min = 0.9"),
            "{}",
            mistake_of(&listed)
        );
        let own = "[[domain]]\nname = 'own'\nshare_min = 0.7\n".to_owned() + &domain("a", "share_min = 0.7");
        assert!(mistake_of(&own).contains("line 3: domain \"own\": share_min = 0.7"), "{}", mistake_of(&own));
    }

    #[test]
    fn shares_that_mean_nothing_are_mistakes() {
        for (keys, said) in [
            ("share_min = 0.0", "share_min = 0: use more than 0"),
            ("share_min = 1.5", "share_min = 1.5: use 0 to 1"),
            ("share_window_ms = 500", "share_window_ms = 500: say which share"),
            ("share_min = 0.5\nshare_window_ms = 50", "share_window_ms = 50: use 100 to 60000 ms"),
            (
                "share_min = 0.05\nshare_window_ms = 100",
                "that is 0.5 ms in 10 ms, less than the longest group (1 ms)",
            ),
        ] {
            let found = mistake_of(&domain("a", keys));
            assert!(found.contains(said), "{keys}: {found}");
        }
        let many: String = (0..17).map(|n| domain(&format!("d{n}"), "share_min = 0.01")).collect();
        assert!(mistake_of(&many).contains("domain \"d16\": share_min = 0.01: use it in 16 domains"));
    }
}
