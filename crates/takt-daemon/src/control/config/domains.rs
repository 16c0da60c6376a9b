//! Domains in the configuration.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use takt_core::Span;
use takt_ipc::name;
use takt_os::users;

use super::file::ConfigFile;
use super::{shares, values};
use crate::control::mistake::{Mistake, mistake};
use crate::control::rights::{BAND, Belonging, Domain, Domains, Level, OWN, Rights, UNLISTED};

/// Most `[[domain]]` sections.
const DOMAINS_MAX: usize = 64;

/// A `[[domain]]` section.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileDomain {
    /// Its name; `own` and `unlisted` change those two.
    name: String,
    /// What it may do where the keys below do not say otherwise. Default: standard.
    level: Option<Level>,
    /// A user, by name or number.
    user: Option<Account>,
    /// A group, by name or number.
    group: Option<Account>,
    /// A systemd unit.
    unit: Option<String>,
    /// The path of a control group.
    cgroup: Option<String>,
    /// The name or number of a container.
    container: Option<String>,
    /// The path of an executable.
    executable: Option<PathBuf>,
    /// Highest priority within its level.
    priority_max: Option<u32>,
    /// Most GPU time per frame that its apps may reserve, all together, in milliseconds.
    etpf_ms_max: Option<f64>,
    /// Largest share of the GPU that its apps may reserve, all together (0..1).
    share_max: Option<f64>,
    /// Least share of the GPU that its apps without a contract have while they have work, all together (0..1).
    share_min: Option<f64>,
    /// The time over which that is looked at, in milliseconds. Default: 1000.
    share_window_ms: Option<f64>,
    /// Most apps at once.
    apps_max: Option<usize>,
    /// Whether its groups may be longer than `max_slice_ms`.
    uncut: Option<bool>,
    /// Whether its tools see apps of others.
    see: Option<bool>,
    /// Whether its tools change apps of others, and the daemon.
    change: Option<bool>,
    /// Whether its tools tell the state of the vehicle.
    set_state: Option<bool>,
    /// Whether its tools say when displays refresh, as compositors do.
    set_vsync: Option<bool>,
}

/// A user or a group.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(untagged)]
enum Account {
    Number(u32),
    Name(String),
}

impl Account {
    fn number(&self, key: &str, known: impl Fn(&str) -> Option<u32>) -> Result<u32, Mistake> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Name(name) => known(name).ok_or_else(|| {
                let table = if key == "user" { "passwd" } else { "group" };
                mistake(
                    key,
                    format!("{name:?}"),
                    format!("/etc/{table} has no such name; a number is possible, too"),
                )
            }),
        }
    }
}

impl ConfigFile {
    /// The domains.
    pub(super) fn domains(&self) -> Result<Domains, Mistake> {
        if self.domain.len() > DOMAINS_MAX {
            return Err(mistake("domain", self.domain.len(), format!("use {DOMAINS_MAX} sections at most")));
        }
        let mut domains = Domains::default();
        for (index, file) in self.domain.iter().enumerate() {
            let twice = self.domain[..index].iter().any(|other| other.name == file.name);
            let checked = match twice {
                true => Err(mistake("name", &file.name, "name each domain once")),
                false => file.put_into(&mut domains),
            };
            checked.map_err(|mistake| mistake.within("domain", index, &file.name))?;
        }
        Ok(domains)
    }
}

impl ConfigFile {
    /// Which section a domain of that name has.
    pub(super) fn section_of(&self, name: &str) -> usize {
        self.domain.iter().position(|file| file.name == name).unwrap_or_default()
    }
}

impl FileDomain {
    fn put_into(&self, domains: &mut Domains) -> Result<(), Mistake> {
        let belonging = self.belonging()?;
        let built_in = match self.name.as_str() {
            OWN => Some(&mut domains.own),
            UNLISTED => Some(&mut domains.unlisted),
            _ => None,
        };
        let Some(built_in) = built_in else {
            self.check_belonging(&belonging)?;
            let level = self.level.unwrap_or_default();
            let (name, rights) = (self.name.clone(), self.rights(level.rights())?);
            domains.listed.push(Arc::new(Domain { name, level, belonging, rights, unlisted: false }));
            return Ok(());
        };
        if belonging != Belonging::default() {
            let remedy = "who belongs to own and unlisted is fixed: give this domain another name";
            return Err(mistake("name", &self.name, remedy));
        }
        let level = self.level.unwrap_or(built_in.level);
        let before = if self.level.is_some() { level.rights() } else { built_in.rights };
        *built_in = Arc::new(Domain { level, rights: self.rights(before)?, ..Domain::clone(built_in) });
        Ok(())
    }

    fn belonging(&self) -> Result<Belonging, Mistake> {
        if !name::is_name(&self.name) {
            return Err(mistake("name", format!("{:?}", self.name), format!("use {}", name::ALLOWED)));
        }
        let account = |key: &str, account: &Option<Account>, known: fn(&str) -> Option<u32>| {
            account.as_ref().map(|account| account.number(key, known)).transpose()
        };
        Ok(Belonging {
            user: account("user", &self.user, users::user)?,
            group: account("group", &self.group, users::group)?,
            unit: self.unit.clone(),
            cgroup: self.cgroup.clone(),
            container: self.container.clone(),
            executable: self.executable.clone(),
        })
    }

    fn check_belonging(&self, belonging: &Belonging) -> Result<(), Mistake> {
        if let Some(unit) = self.unit.as_ref().filter(|unit| !unit.contains('.') || unit.contains('/')) {
            return Err(mistake("unit", unit, "use the whole name of a systemd unit, as in dial.service"));
        }
        if let Some(path) = self.cgroup.as_ref().filter(|path| !path.starts_with('/')) {
            return Err(mistake("cgroup", path, "use a path that starts with /, as in /proc/PID/cgroup"));
        }
        if let Some(container) = self.container.as_ref().filter(|container| container.is_empty()) {
            return Err(mistake("container", format!("{container:?}"), "use its name or number"));
        }
        if let Some(path) = self.executable.as_ref().filter(|path| !path.is_absolute()) {
            return Err(mistake("executable", path.display(), "use an absolute path"));
        }
        match (&self.executable, belonging.is_bound()) {
            (_, true) => Ok(()),
            (Some(path), false) => {
                let remedy = "add a user, group, unit, cgroup or container: any user can load code of \
                              their own into a program that they start";
                Err(mistake("executable", path.display(), remedy))
            }
            (None, false) => Err(mistake(
                "name",
                &self.name,
                "say who belongs to it: user, group, unit, cgroup or container",
            )),
        }
    }

    /// The rights: `before`, and what the keys say.
    fn rights(&self, before: Rights) -> Result<Rights, Mistake> {
        if let Some(priority) = self.priority_max.filter(|priority| *priority >= BAND) {
            return Err(mistake("priority_max", priority, format!("use 0 to {}", BAND - 1)));
        }
        let etpf: Option<Span> = values::ms_if("etpf_ms_max", self.etpf_ms_max)?;
        let share = self.share_max.map(|share| values::share_ppm("share_max", share)).transpose()?;
        Ok(Rights {
            priority_max: self.priority_max.unwrap_or(before.priority_max),
            etpf_max: etpf.or(before.etpf_max),
            share_max_ppm: share.or(before.share_max_ppm),
            share_min: shares::share_min(self.share_min, self.share_window_ms)?,
            apps_max: self.apps_max.or(before.apps_max),
            uncut: self.uncut.unwrap_or(before.uncut),
            see: self.see.unwrap_or(before.see),
            change: self.change.unwrap_or(before.change),
            set_state: self.set_state.unwrap_or(before.set_state),
            set_vsync: self.set_vsync.unwrap_or(before.set_vsync),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Settings;
    use super::*;

    #[test]
    fn mistakes_in_domains_name_line_value_and_remedy() {
        let of = |keys: &str| {
            let text = format!("[[domain]]\nname = 'a'\n{keys}");
            Settings::parse(&text).expect_err("a mistake").to_string()
        };
        for (keys, said) in [
            ("", "line 2: domain \"a\": name = a: say who belongs to it"),
            (
                "user = 'no-such-user'",
                "line 3: domain \"a\": user = \"no-such-user\": /etc/passwd has no such name",
            ),
            ("executable = '/bin/a'", "line 3: domain \"a\": executable = /bin/a: add a user, group, unit"),
            ("user = 1\nexecutable = 'a'", "line 4: domain \"a\": executable = a: use an absolute path"),
            ("unit = 'dial'", "line 3: domain \"a\": unit = dial: use the whole name"),
            ("cgroup = 'dial'", "line 3: domain \"a\": cgroup = dial: use a path that starts with /"),
            ("container = ''", "line 3: domain \"a\": container = \"\": use its name or number"),
            ("user = 1\nshare_max = 2.0", "line 4: domain \"a\": share_max = 2: use 0 to 1"),
            (
                "user = 1\npriority_max = 1000000",
                "line 4: domain \"a\": priority_max = 1000000: use 0 to 999999",
            ),
            ("user = 1\netpf_ms_max = -1", "line 4: domain \"a\": etpf_ms_max = -1: use 0 to 60000 ms"),
            ("user = 1\n[[domain]]\nname = 'a'", "line 5: domain \"a\": name = a: name each domain once"),
            (
                "user = 1\n[[domain]]\nname = 'own'\nuser = 2",
                "line 5: domain \"own\": name = own: who belongs",
            ),
        ] {
            assert!(of(keys).starts_with(said), "{keys}: {}", of(keys));
        }
        assert!(of("level = 'high'").contains("expected one of `best-effort`"), "{}", of("level = 'high'"));
    }

    #[test]
    fn sealed_configurations_list_the_contents_of_safety_critical_apps() {
        let text = |keys: &str| {
            let domain = "[[domain]]\nname='c'\nuser=0\nlevel='safety-critical'\n";
            format!("{domain}[[app]]\nname='dial'\ndomain='c'\n{keys}")
        };
        let of = |keys: &str| Settings::parse(&text(keys)).map_err(|mistake| mistake.to_string());
        let open = of("").expect("fine").check_sealed().expect_err("no hash").to_string();
        assert!(open.starts_with("app \"dial\": domain = c: it is safety-critical"), "{open}");
        let hash = "AB".repeat(32);
        let whole = of(&format!("executable='/usr/bin/dial'\nsha256='{hash}'")).expect("fine");
        whole.check_sealed().expect("it has all");
        assert_eq!(whole.apps[0].sha256.as_deref(), Some(hash.to_lowercase().as_str()));
        assert!(whole.names(std::path::Path::new("/usr/bin/dial")));
        for (keys, said) in [
            ("executable='dial'", "executable = dial: use an absolute path"),
            ("sha256='00'", "sha256 = 00: add executable"),
            ("executable='/a'\nsha256='00'", "sha256 = 00: use the 64 hexadecimal digits"),
        ] {
            let found = of(keys).expect_err("a mistake");
            assert!(found.contains(said), "{keys}: {found}");
        }
    }

    #[test]
    fn changes_wait_for_a_state_if_the_file_says_so() {
        use super::super::Effective;
        let of = |text: &str| Settings::parse(text).map(|settings| settings.effective);
        assert_eq!(of(""), Ok(Effective::Reload));
        assert_eq!(of("effective = 'reload'"), Ok(Effective::Reload));
        assert_eq!(of("effective = 'state:parked'"), Ok(Effective::State("parked".to_owned())));
        let wrong = of("effective = 'state:'").expect_err("no state").to_string();
        assert!(wrong.contains("use \"reload\", or \"state:NAME\""), "{wrong}");
    }

    #[test]
    fn levels_stand_for_rights_that_keys_change() {
        let text = "[[domain]]\nname='a'\nuser='root'\nlevel='best-effort'\nsee=true\napps_max=2\n\
            [[domain]]\nname='b'\ngroup=5\n[[domain]]\nname='unlisted'\napps_max=1\n\
            [[domain]]\nname='own'\nlevel='best-effort'";
        let domains = Settings::parse(text).expect("fine").domains;
        let a = domains.named("a").expect("there");
        assert_eq!((a.belonging.user, a.level, a.band()), (Some(0), Level::BestEffort, 1));
        let expected = Rights { see: true, apps_max: Some(2), ..Level::BestEffort.rights() };
        assert_eq!(a.rights, expected);
        let b = domains.named("b").expect("there");
        assert_eq!((b.level, b.rights), (Level::Standard, Level::Standard.rights()));
        let unlisted = domains.named(UNLISTED).expect("there");
        assert_eq!((unlisted.band(), unlisted.rights.apps_max), (0, Some(1)));
        assert_eq!(domains.named(OWN).expect("there").rights, Level::BestEffort.rights());
        assert!(domains.named("c").is_none());
    }
}
