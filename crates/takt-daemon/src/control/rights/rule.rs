//! The rules by which requests are granted, reduced or refused.

use std::fmt;

use serde::Serialize;

/// Why a request was decided as it was. Logs and audit records have the names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It is within the rights of the domain.
    WithinRights,
    /// The configuration lists the app, and the client is of its domain.
    ListedApp,
    /// The configuration lists an app of that name for another domain, so its terms are not for this client.
    NameOfAnotherDomain,
    /// Its executable has other contents than the configuration lists, so it has the rights of a client that
    /// the configuration does not know.
    ExecutableHash,
    /// It asks for a higher priority than its domain may have.
    PriorityMax,
    /// The apps of its domain would reserve more GPU time per frame than they may.
    EtpfMax,
    /// The apps of its domain would reserve a larger share of the GPU than they may.
    ShareMax,
    /// The apps of a domain without a contract have a minimum share of the GPU.
    ShareMin,
    /// Its domain has as many apps as it may have.
    AppsMax,
    /// Another process of the same app has its contract.
    Family,
    /// Its groups may not be longer than those of others.
    Uncut,
    /// The time is kept for an app that the configuration lists.
    KeptForListed,
    /// Its deadlines cannot be guaranteed, and the configuration refuses such apps.
    Admission,
    /// Its user has as many slots as it may have, or all are taken.
    Slots,
    /// A client of the same user and executable broke a rule lately.
    Quarantine,
    /// The request itself makes no sense.
    Malformed,
    /// Its domain may not see apps of others.
    See,
    /// Its domain may not change apps of others, or the daemon.
    Change,
    /// Its domain may not tell the state of the vehicle.
    SetState,
    /// Its domain may not say when displays refresh.
    SetVsync,
}

impl Rule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::WithinRights => "within-rights",
            Self::ListedApp => "listed-app",
            Self::NameOfAnotherDomain => "name-of-another-domain",
            Self::ExecutableHash => "executable-hash",
            Self::PriorityMax => "priority-max",
            Self::EtpfMax => "etpf-max",
            Self::ShareMax => "share-max",
            Self::ShareMin => "share-min",
            Self::AppsMax => "apps-max",
            Self::Family => "family",
            Self::Uncut => "uncut",
            Self::KeptForListed => "kept-for-listed",
            Self::Admission => "admission",
            Self::Slots => "slots",
            Self::Quarantine => "quarantine",
            Self::Malformed => "malformed",
            Self::See => "see",
            Self::Change => "change",
            Self::SetState => "set-state",
            Self::SetVsync => "set-vsync",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
