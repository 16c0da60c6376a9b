//! The daemon's configuration file.
//!
//! ```toml
//! refresh_hz = 60
//! policy = "timeline"
//! mpcg = 2
//! max_slice_ms = 1.0
//! admission = "unprotected"     # or "refuse"
//!
//! [margins]
//! fixed_us = 50
//!
//! [[domain]]
//! name = "cluster"              # who may ask for what: here all programs of a unit
//! unit = "cluster.service"
//! level = "safety-critical"
//!
//! [[app]]
//! name = "speedometer"          # as given to `takt run`, or the file name of the program
//! domain = "cluster"            # its terms are for programs of that domain alone
//! priority = 90
//! fps = 60
//! etpf_ms = 3.5
//!
//! [[app]]
//! name = "detector"
//! runtime_ms = 3                # a server: 3 ms in each 40
//! period_ms = 40
//! ```

mod apps;
mod audit;
mod displays;
mod domains;
mod file;
mod review;
mod shares;
mod values;

use std::path::{Path, PathBuf};

use takt_audit::Hash;
use takt_core::{Config, Divisible, Gpu, Margins, Priority, Span, Tuning};

use super::contract;
use super::limits::Given;
use super::mistake::{Mistake, mistake};
use super::outsiders::OutsiderSettings;
use super::rights::{Domain, Domains, Level, Reserved, SHARES_MAX};
use super::terms::Terms;
use super::vsync::Vsync;
use crate::observe::audit::AuditSettings;
pub use apps::{AppSettings, Client};
pub use displays::Display;
pub use file::{Admission, Effective, Timegraph};
use file::{ConfigFile, FileGpu, FileMargins};
pub use review::AppReview;
pub use values::time_shared;
pub(crate) use values::{blocking, mpcg, ms_if, rate, slice};

/// Slice of a GPU that was not measured, as in [`Gpu::TURNS`].
const SLICE_US: f64 = 1000.0;
/// Slices that NVIDIA's driver sets for compute, and for graphics.
const COMPUTE_SLICE_US: f64 = 2048.0;
const GRAPHICS_SLICE_US: f64 = 1024.0;

/// Which time slices a file says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct GivenSlices {
    /// Those of apps whose work the GPU interrupts.
    pub divisible: bool,
    /// Those of all others.
    pub own: bool,
}

/// A checked configuration; `docs/daemon.md` describes the keys.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Of the core.
    pub core: Config,
    /// Whether the file says how processes share the GPU.
    pub gpu_is_given: bool,
    /// How the GPU interrupts work, while an app is there whose work it interrupts.
    pub divisible: Divisible,
    /// Which of its slices the file says; the others follow from what clients say.
    pub given_slices: GivenSlices,
    /// Which processes count as users of the GPU outside of Takt.
    pub outsiders: OutsiderSettings,
    /// The displays; apps that name none draw for the first.
    pub displays: Vec<Display>,
    /// The source of refreshes.
    pub vsync: Vsync,
    /// Name of the policy.
    pub policy: String,
    /// Longest group that a client may form.
    pub max_slice: Span,
    /// Which limits the file sets; the others follow from the contracts and the GPU.
    pub given: Given,
    /// How long clients poll for a reply before they sleep, in microseconds.
    pub spin_us: u32,
    /// How long the scheduling loop polls for work before it sleeps, in microseconds.
    pub loop_spin_us: u32,
    /// The processor on which the scheduling loop runs, if it is pinned.
    pub processor: Option<usize>,
    /// Longest time to wake up of a processor while an app with a frame rate is scheduled, in
    /// microseconds, if there is a limit.
    pub wake_us: Option<u32>,
    /// What to do with an app whose deadlines cannot be guaranteed.
    pub admission: Admission,
    /// How `timegraph` treats apps.
    pub timegraph: Timegraph,
    /// The program that restarts units.
    pub systemctl: PathBuf,
    /// When another version is in force.
    pub effective: Effective,
    /// Who may ask for what.
    pub domains: Domains,
    /// Terms of single apps.
    pub apps: Vec<AppSettings>,
    /// Where decisions are recorded, and which rules run over the records.
    pub audit: AuditSettings,
    /// The hash of the file.
    pub hash: Hash,
}

impl Settings {
    /// Reads a configuration file.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let file: ConfigFile = toml::from_str(text).map_err(|error| Mistake::Syntax(error.to_string()))?;
        let settings = file.check().map_err(|mistake| mistake.located(text))?;
        Ok(Self { hash: Hash::of(text.as_bytes()), ..settings })
    }

    /// What the file has for a client.
    pub fn section(&self, client: &Client<'_>) -> Option<&AppSettings> {
        self.apps.iter().find(|app| app.is_for(client))
    }

    /// Whether the file names that executable.
    pub fn names(&self, executable: &Path) -> bool {
        let is_it = |app: &AppSettings| app.executable.as_deref() == Some(executable);
        self.domains.names(executable) || self.apps.iter().any(is_it)
    }

    /// Whether the file says enough to be sealed: the contents of all safety-critical apps.
    pub fn check_sealed(&self) -> Result<(), Mistake> {
        let level = |app: &AppSettings| self.domains.named(&app.domain).map(|domain| domain.level);
        let is_open = |app: &AppSettings| level(app) == Some(Level::SafetyCritical) && app.sha256.is_none();
        match self.apps.iter().position(is_open) {
            None => Ok(()),
            Some(index) => {
                let app = &self.apps[index];
                let remedy =
                    "it is safety-critical, and the configuration is sealed: add executable and sha256";
                Err(mistake("domain", &app.domain, remedy).within("app", index, &app.name))
            }
        }
    }

    /// Whether the file has something for an app of that name, of whichever domain.
    pub fn is_listed(&self, name: &str) -> bool {
        self.apps.iter().any(|app| app.name == name)
    }

    /// The time that an app of a domain would reserve on these terms.
    pub fn reserved(&self, terms: &Terms, domain: &Domain) -> Result<Reserved, String> {
        let priority = Priority(domain.core_priority(terms.priority.unwrap_or_default()));
        let (params, _) = terms.clone().complete(self).lower(priority, self)?;
        Ok(contract::reserved(&params, &self.core))
    }
}

impl Default for Settings {
    fn default() -> Self {
        ConfigFile::default().check().expect("a test checks that an empty file makes sense")
    }
}

impl ConfigFile {
    /// The program that restarts units.
    fn systemctl(&self) -> Result<PathBuf, Mistake> {
        match &self.systemctl {
            None => Ok(PathBuf::from("systemctl")),
            Some(path) if path.is_absolute() => Ok(path.clone()),
            Some(path) => Err(mistake("systemctl", path.display(), "use an absolute path")),
        }
    }

    fn check(&self) -> Result<Settings, Mistake> {
        let policy = self.policy.clone().unwrap_or_else(|| takt_policies::NAMES[0].to_owned());
        if !takt_policies::NAMES.contains(&policy.as_str()) {
            return Err(mistake(
                "policy",
                &policy,
                format!("use one of {}", takt_policies::NAMES.join(", ")),
            ));
        }
        let vsync = self.vsync.as_deref().map_or(Ok(Vsync::Timer), |text| {
            text.parse().map_err(|remedy: String| mistake("vsync", text, remedy))
        })?;
        let (displays, domains) = (self.displays()?, self.domains()?);
        let max_slice = slice(Some(self.max_slice_ms.unwrap_or(1.0)))?.unwrap_or(Span::FOREVER);
        let settings = Settings {
            core: self.core(&displays, max_slice)?,
            gpu_is_given: self.gpu.slice_us.is_some() || self.gpu.switch_us.is_some(),
            divisible: self.gpu.divisible()?,
            given_slices: GivenSlices {
                divisible: self.gpu.divisible_slice_us.is_some(),
                own: self.gpu.own_slice_us.is_some(),
            },
            outsiders: self.gpu.outsiders(&domains)?,
            apps: self.apps(&displays, &domains)?,
            displays,
            domains,
            vsync,
            policy,
            max_slice,
            given: Given { blocking: self.max_blocking_ms.is_some(), stretch: self.max_stretch_ms.is_some() },
            spin_us: values::spin("spin_us", self.spin_us)?,
            loop_spin_us: values::spin("loop_spin_us", self.loop_spin_us)?,
            processor: self.processor.map(values::processor).transpose()?,
            wake_us: values::wake(self.wake_us.unwrap_or(0.0))?,
            admission: self.admission,
            timegraph: self.timegraph,
            systemctl: self.systemctl()?,
            effective: self.effective.clone(),
            audit: self.audit.check()?,
            hash: Hash::of(b""),
        };
        apps::check_rights(&settings)?;
        self.check_shares(&settings)?;
        Ok(settings)
    }

    /// Parameters of the core.
    fn core(&self, displays: &[Display], max_slice: Span) -> Result<Config, Mistake> {
        let defaults = Config::default();
        let mut more_displays = defaults.more_displays;
        for (grid, display) in more_displays.iter_mut().zip(&displays[1..]) {
            *grid = display.refresh;
        }
        // Without a contract; `control::limits` says what holds beside one.
        let blocking = self.max_blocking_ms.map_or(Ok(max_slice), blocking)?;
        let stretch = ms_if("max_stretch_ms", self.max_stretch_ms)?.unwrap_or(defaults.tuning.stretch);
        let timeout = ms_if("completion_timeout_ms", self.completion_timeout_ms)?;
        Ok(Config {
            refresh: displays[0].refresh,
            more_displays,
            mpcg: mpcg(self.mpcg.unwrap_or(2))?,
            margins: self.margins.check()?,
            // Processes finish in an order of their own.
            gpu: self.gpu.check()?,
            singly: true,
            tuning: Tuning { blocking, stretch, ..defaults.tuning },
            completion_timeout: timeout.unwrap_or(defaults.completion_timeout),
            apps_max: defaults.apps_max + SHARES_MAX,
            ..defaults
        })
    }
}

impl FileGpu {
    fn check(&self) -> Result<Gpu, Mistake> {
        time_shared(self.slice_us.unwrap_or(SLICE_US), self.switch_us.unwrap_or(0.0))
    }

    fn divisible(&self) -> Result<Divisible, Mistake> {
        let slice = |key, us: Option<f64>, default| values::slice_us(key, us.unwrap_or(default));
        Ok(Divisible {
            slice: slice("gpu.divisible_slice_us", self.divisible_slice_us, COMPUTE_SLICE_US)?,
            quantum: values::piece_us("gpu.divisible_piece_us", self.divisible_piece_us.unwrap_or(0.0))?,
            own_slice: slice("gpu.own_slice_us", self.own_slice_us, GRAPHICS_SLICE_US)?,
            switch: self.check()?.switch(),
        })
    }

    fn outsiders(&self, domains: &Domains) -> Result<OutsiderSettings, Mistake> {
        let defaults = OutsiderSettings::default();
        let devices = self.devices.clone().unwrap_or(defaults.devices);
        let is_path = |path: &&String| {
            let name = path.strip_suffix('*').unwrap_or(path);
            name.starts_with('/') && !name.contains('*')
        };
        if let Some(wrong) = devices.iter().find(|path| !is_path(path)) {
            let remedy = "write a path from the root; a * may stand for the rest of the last name";
            return Err(mistake("gpu.devices", wrong, remedy));
        }
        Ok(OutsiderSettings {
            devices,
            users: domains.users().collect(),
            beside: self.beside.clone().unwrap_or(defaults.beside),
            unseen: self.unseen.unwrap_or_default(),
        })
    }
}

impl FileMargins {
    fn check(&self) -> Result<Margins, Mistake> {
        let defaults = Margins::default();
        let us = |key: &str, value: Option<f64>, default: Span| {
            ms_if(key, value.map(|us| us / 1000.0)).map(|span| span.unwrap_or(default))
        };
        let dispatch_upper =
            us("margins.dispatch_upper_us", self.dispatch_upper_us, defaults.dispatch_upper)?;
        Ok(Margins {
            fixed: us("margins.fixed_us", self.fixed_us, defaults.fixed)?,
            upper_permille: values::permille("margins.upper", self.upper.unwrap_or(1.05))?,
            dispatch_upper,
            dispatch_lower: defaults.dispatch_lower.min(dispatch_upper),
            completion_upper: us(
                "margins.completion_upper_us",
                self.completion_upper_us,
                Span::from_us(300),
            )?,
            ..defaults
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        Settings::parse(text).expect_err("a mistake").to_string()
    }

    #[test]
    fn the_empty_file_and_the_example_make_sense() {
        assert_eq!(Settings::parse(""), Ok(Settings::default()));
        let source = include_str!("config.rs");
        let example: String = source
            .lines()
            .skip_while(|line| *line != "//! ```toml")
            .skip(1)
            .take_while(|line| *line != "//! ```")
            .map(|line| format!("{}\n", line.trim_start_matches("//! ").trim_start_matches("//!")))
            .collect();
        let settings = Settings::parse(&example).expect("the example");
        let app = &settings.apps[0].terms;
        assert_eq!((app.priority, app.etpf), (Some(90), Some(Span::from_us(3500))));
        assert_eq!(settings.core.margins.fixed, Span::from_us(50));
    }

    #[test]
    fn mistakes_name_key_value_and_remedy() {
        assert!(problem("polcy = 1").contains("line 1, column 1"), "{}", problem("polcy = 1"));
        assert_eq!(
            problem("policy = 'x'"),
            format!("line 1: policy = x: use one of {}", takt_policies::NAMES.join(", "))
        );
        assert!(
            problem("vsync = 'x'").starts_with("line 1: vsync = x: use \"timer\""),
            "{}",
            problem("vsync = 'x'")
        );
        let turns = problem("timegraph = { turns = 'x' }");
        assert!(turns.contains("expected `single` or `following`"), "{turns}");
        assert_eq!(problem("mpcg = 0"), "line 1: mpcg = 0: use 1 to 64");
        assert_eq!(problem("max_blocking_ms = -1"), "line 1: max_blocking_ms = -1: use 0 to 60000 ms");
        assert_eq!(problem("max_stretch_ms = -1"), "line 1: max_stretch_ms = -1: use 0 to 60000 ms");
        let overdue = problem("completion_timeout_ms = 1e6");
        assert_eq!(overdue, "line 1: completion_timeout_ms = 1000000: use 0 to 60000 ms");
        assert_eq!(problem("spin_us = 1001"), "line 1: spin_us = 1001: use 0 to 1000");
        assert_eq!(problem("processor = 5000"), "line 1: processor = 5000: use 0 to 1023");
        assert_eq!(problem("systemctl = 'x'"), "line 1: systemctl = x: use an absolute path");
        assert_eq!(problem("wake_us = -1"), "line 1: wake_us = -1: use 0 to 10000, or inf");
        assert_eq!(problem("max_slice_ms = -1"), "line 1: max_slice_ms = -1: use 0 to 60000 ms");
        assert_eq!(problem("refresh_hz = nan"), "line 1: refresh_hz = NaN: use a rate from 0.001 to 1000");
        let odd = problem("[[app]]\nname = 'a'\nfps = 45");
        assert!(odd.starts_with("line 3: app \"a\": fps = 45: 45 FPS does not divide"), "{odd}");
        assert!(problem("[[app]]\nname='a'\n[[app]]\nname='a'").ends_with("name each app once"));
    }

    #[test]
    fn contradictions_name_app_key_value_and_remedy() {
        let of = |keys: &str| problem(&format!("[[app]]\nname = 'a'\n{keys}"));
        for (keys, said) in [
            (
                "period_ms = 10\ndeadline_ms = 20",
                "deadline_ms = 20: use more than 0, and no more than period_ms (10)",
            ),
            (
                "period_ms = 10\nruntime_ms = 20",
                "runtime_ms = 20: use more than 0, and no more than period_ms (10)",
            ),
            ("period_ms = 10\nruntime_ms = 2\netpf_ms = 3", "etpf_ms = 3: a server (runtime_ms) has jobs"),
            (
                "period_ms = 10\nruntime_ms = 2\ndeadline_ms = 30",
                "deadline_ms = 30: use more than 0, and no more than period_ms (10)",
            ),
            (
                "period_ms = 10\nruntime_ms = 2\ndeadline_ms = 3\nhard = true",
                "hard = true: only a server can be hard",
            ),
            (
                "period_ms = 10\nruntime_ms = 2\ndeadline_ms = 3\netpf_ms = 2",
                "etpf_ms = 2: runtime_ms says that already",
            ),
            ("runtime_ms = 2", "runtime_ms = 2: add period_ms"),
            ("etpf_ms = 3\ngaps = 2", "gaps = 2: add gap_ms"),
            ("etpf_ms = 3\ngap_ms = 2", "gap_ms = 2: add gaps"),
            ("period_ms = 10\nfps = 30", "fps = 30: an app with a clock of its own"),
            ("period_ms = 10\netpf_ms = 11", "etpf_ms = 11: no frame of that length ends within 10 ms"),
            ("period_ms = 0.5", "period_ms = 0.5: use 1 to 4000 ms"),
            ("period_ms = 5000", "period_ms = 5000: use 1 to 4000 ms"),
            ("deadline_ms = 5", "deadline_ms = 5: it counts from a clock of its own: add period_ms"),
            ("clock = 'own'", "clock = own: add fps, or period_ms"),
            ("clock = 'display'\nperiod_ms = 5", "period_ms = 5: the display sets the period"),
            ("clock = 'auto'\nperiod_ms = 5", "period_ms = 5: a clock of its own has a period"),
            ("clock = 'display'\nfps = 45", "fps = 45: "),
            ("hard = true", "hard = true: only a server can be hard"),
            ("display = 'b'", "display = b: there is no display b; displays have names in"),
            ("share = 1.5", "share = 1.5: use more than 0, and 1 at most"),
            ("share = 0.1\nruntime_ms = 1", "share = 0.1: a share sets the runtime"),
            ("share = 0.1\nfps = 30", "fps = 30: a server (runtime_ms) has jobs"),
        ] {
            let key = said.split(' ').next().unwrap_or_default();
            let line = 3 + keys.lines().position(|line| line.starts_with(key)).expect("the key is there");
            let (found, said) = (of(keys), format!("line {line}: app \"a\": {said}"));
            assert!(found.starts_with(&said), "{keys}: {found}");
        }
        assert!(
            of("clock = 'x'").contains("expected one of `display`, `own`, `auto`"),
            "{}",
            of("clock = 'x'")
        );
    }

    #[test]
    fn displays_have_names_rates_and_phases() {
        let text = "[[display]]\nname='a'\nrefresh_hz=60\n[[display]]\nname='b'\nrefresh_hz=30\nphase_ms=4";
        let settings = Settings::parse(text).expect("fine");
        assert_eq!(settings.core.refresh.mhz(), 60_000);
        assert_eq!(settings.core.more_displays[0].mhz(), 30_000);
        let (id, rate) = settings.display("b").expect("there");
        assert_eq!((id.0, rate.mhz(), settings.displays[1].phase), (1, 30_000, Span::from_ms(4)));
        assert_eq!(settings.display("").expect("the first").0.0, 0);
        for (text, said) in [
            (format!("refresh_hz = 60\n{text}"), "refresh_hz = 60: there are [[display]] sections; move it"),
            (format!("{text}\n[[display]]\nname='a'"), "display \"a\": name = a: name each display once"),
            ("[[display]]\nname=''".to_owned(), "display \"\": name = \"\": give it a name"),
            (
                "[[display]]\nname='a'\nphase_ms=1".to_owned(),
                "display \"a\": phase_ms = 1: phases count from",
            ),
            (text.replace("=4", "=34"), "display \"b\": phase_ms = 34: use less than its period, 33.333 ms"),
            (text.replace("=30", "=0"), "display \"b\": refresh_hz = 0: use a rate"),
            (
                format!("{text}\n[[app]]\nname='x'\ndisplay='c'"),
                "app \"x\": display = c: there is no display c; there are a, b",
            ),
            (
                format!("{text}\n[[app]]\nname='x'\ndisplay='b'\nfps=60"),
                "app \"x\": fps = 60: 60 FPS does not divide",
            ),
        ] {
            let found = problem(&text);
            let (line, found) = found.split_once(": ").expect("a line");
            assert!(line.starts_with("line ") && found.starts_with(said), "{line}: {found}");
        }
        let many: String = (0..5).map(|number| format!("[[display]]\nname='{number}'\n")).collect();
        assert_eq!(problem(&many), "line 1: display = 5: use 4 sections at most");
    }

    #[test]
    fn how_the_gpu_is_shared_can_be_said() {
        let gpu =
            |text: &str| Settings::parse(text).map(|settings| (settings.core.gpu, settings.gpu_is_given));
        assert_eq!(gpu(""), Ok((Gpu::TURNS, false)));
        let given = Gpu::TimeShared { slice: Span::from_us(2000), switch: Span::from_us(150) };
        assert_eq!(gpu("[gpu]\nslice_us = 2000\nswitch_us = 150"), Ok((given, true)));
        assert_eq!(problem("gpu = { slice_us = 0 }"), "line 1: gpu.slice_us = 0: use 1 to 1000000");
        assert_eq!(problem("gpu = { switch_us = -1 }"), "line 1: gpu.switch_us = -1: use 0 to 100000");
    }

    #[test]
    fn it_can_be_said_who_may_use_the_gpu_beside_takt() {
        let text = "[gpu]\ndevices = ['/dev/mali*']\nbeside = ['Xorg']\nunseen = 'ignore'\n\
                    [[domain]]\nname = 'desktop'\nuser = 64011";
        let settings = Settings::parse(text).expect("fine");
        let OutsiderSettings { devices, beside, users, unseen } = settings.outsiders;
        assert_eq!(users.into_iter().collect::<Vec<u32>>(), [64_011], "whose names are believed");
        assert_eq!((devices, beside), (vec!["/dev/mali*".to_owned()], vec!["Xorg".to_owned()]));
        assert_eq!(unseen, crate::control::outsiders::Unseen::Ignore);
        assert!(!settings.gpu_is_given, "that says nothing about turns");
        for wrong in ["dev/x", "/dev/*/x"] {
            let said = problem(&format!("gpu = {{ devices = ['{wrong}'] }}"));
            assert!(said.starts_with(&format!("line 1: gpu.devices = {wrong}: write a path")), "{said}");
        }
    }

    #[test]
    fn zero_never_slices() {
        let settings = Settings::parse("max_slice_ms = 0").expect("fine");
        assert_eq!(settings.max_slice, Span::FOREVER);
    }
}
