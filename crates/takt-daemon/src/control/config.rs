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
//! [[app]]
//! name = "speedometer"          # as given to `takt run`, or the file name of the program
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
mod displays;

use crate::control::vsync::Vsync;
pub use apps::{AppSettings, FileApp, FileClock};
pub use displays::{Display, FileDisplay};
use rustix::thread::CpuSet;
use serde::Deserialize;
use takt_core::service::{Enforcement, Turns};
use takt_core::{Config, Gpu, Margins, Span, Tuning};

/// All there is to configure; everything has a default.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// Refresh rate of the display, if there is one. Default: 60.
    pub refresh_hz: Option<f64>,
    /// Several displays, instead.
    pub display: Vec<FileDisplay>,
    /// Who tells when the display refreshes: `timer`, or `drm:/dev/dri/card0`. Default: timer.
    pub vsync: Option<String>,
    /// Name of the policy. Default: timeline.
    pub policy: Option<String>,
    /// Most groups granted and not finished at once. Default: 2.
    pub mpcg: Option<u32>,
    /// Longest group that a client may form, in milliseconds; 0 never slices. Default: 1.
    pub max_slice_ms: Option<f64>,
    /// How long apps that reserve nothing may delay a more important one that does, in
    /// milliseconds; infinite as long as no deadline is in danger. Default: `max_slice_ms`.
    pub max_blocking_ms: Option<f64>,
    /// To how much groups of apps that reserve nothing may be stretched where nobody would wait for
    /// that, in milliseconds. Default: no more than they ask for.
    pub max_stretch_ms: Option<f64>,
    /// How long the end of a group may be overdue before its app is let go, in milliseconds. Default:
    /// 500.
    pub completion_timeout_ms: Option<f64>,
    /// How long clients look for a reply before they fall asleep, where replies have come that soon
    /// lately, in microseconds. Default: 50, and 0 on a single processor.
    pub spin_us: Option<u32>,
    /// How long the scheduling loop looks for more to do before it falls asleep, where requests have
    /// followed each other that soon lately, in microseconds. Default: the same.
    pub loop_spin_us: Option<u32>,
    /// The processor on which the scheduling loop runs, counted from 0. Default: any.
    pub processor: Option<u32>,
    /// Within what time processors must be able to wake up while an app with a frame rate is there,
    /// in microseconds; infinite lets them sleep as they like. Default: 0.
    pub wake_us: Option<f64>,
    /// What to do with an app whose deadlines cannot be guaranteed.
    pub admission: Admission,
    /// How far to distrust predictions.
    pub margins: FileMargins,
    /// How processes share the GPU.
    pub gpu: FileGpu,
    /// How `timegraph` treats apps.
    pub timegraph: FileTimegraph,
    /// What single apps get, whatever they ask for.
    pub app: Vec<FileApp>,
}

/// How processes share the GPU: they take turns.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileGpu {
    /// How long a process keeps the GPU while another one has work, in microseconds. Default: what was
    /// measured, else 1000.
    pub slice_us: Option<f64>,
    /// What a change of processes costs, in microseconds. Default: what was measured, else 0.
    pub switch_us: Option<f64>,
}

/// How `timegraph` treats apps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileTimegraph {
    /// Whether apps that reserve nothing may follow their own groups on the busy GPU.
    pub turns: FileTurns,
    /// When budgets of apps that reserve time are looked at.
    pub enforcement: FileEnforcement,
}

/// See [`Turns`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileTurns {
    /// Predictable response time.
    #[default]
    Single,
    /// High throughput.
    Following,
}

/// See [`Enforcement`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileEnforcement {
    /// Afterwards: a group may overrun, and is paid for later.
    #[default]
    Posterior,
    /// Before: what is predicted must be left.
    Apriori,
}

/// What to do with an app whose deadlines cannot be guaranteed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// Schedule it by its priority, without a guarantee.
    #[default]
    Unprotected,
    /// Do not schedule it.
    Refuse,
}

/// How far to distrust predictions, and how long the path to the GPU takes.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileMargins {
    /// Added to a prediction. Default: 100.
    pub fixed_us: Option<f64>,
    /// Factor on a prediction. Default: 1.05.
    pub upper: Option<f64>,
    /// Longest delay from grant to GPU. Default: 150.
    pub dispatch_upper_us: Option<f64>,
    /// Longest delay from the end of a group to the daemon hearing of it. Default: 300.
    pub completion_upper_us: Option<f64>,
}

/// A configuration that makes sense.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Of the core.
    pub core: Config,
    /// Whether the file says how processes share the GPU.
    pub gpu_is_given: bool,
    /// The displays, the one of apps that name none first.
    pub displays: Vec<Display>,
    /// Who tells when the display refreshes.
    pub vsync: Vsync,
    /// Name of the policy.
    pub policy: String,
    /// Longest group that a client may form.
    pub max_slice: Span,
    /// How long clients look for a reply before they fall asleep, in microseconds.
    pub spin_us: u32,
    /// How long the scheduling loop looks for more to do before it falls asleep, in microseconds.
    pub loop_spin_us: u32,
    /// The processor on which the scheduling loop runs, if it matters.
    pub processor: Option<usize>,
    /// Within how many microseconds processors must be able to wake up while an app with a frame rate
    /// is there, if anybody cares.
    pub wake_us: Option<u32>,
    /// What to do with an app whose deadlines cannot be guaranteed.
    pub admission: Admission,
    /// How apps follow themselves, and when their budgets are looked at (`timegraph`).
    pub timegraph: (Turns, Enforcement),
    /// What single apps get.
    pub apps: Vec<AppSettings>,
}

/// Why a configuration is none.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Mistake {
    /// Not TOML, or not these keys; the text names line and column.
    #[error("{0}")]
    Syntax(String),
    /// A value out of range.
    #[error("{key} = {value}: {remedy}")]
    Value {
        /// Which one.
        key: String,
        /// What it is.
        value: String,
        /// What it should be.
        remedy: String,
    },
}

/// Longest time in a configuration.
const MS_MAX: f64 = 60_000.0;

impl Settings {
    /// Reads a configuration.
    pub fn parse(text: &str) -> Result<Self, Mistake> {
        let file: File = toml::from_str(text).map_err(|error| Mistake::Syntax(error.to_string()))?;
        file.check()
    }

    /// The settings of the app of that name.
    pub fn app(&self, name: &str) -> Option<&AppSettings> {
        self.apps.iter().find(|app| app.name == name)
    }
}

impl Default for Settings {
    fn default() -> Self {
        File::default().check().expect("an empty file makes sense, as a test makes sure")
    }
}

impl File {
    fn check(&self) -> Result<Settings, Mistake> {
        let policy = self.policy.clone().unwrap_or_else(|| takt_policies::NAMES[0].to_owned());
        if !takt_policies::NAMES.contains(&policy.as_str()) {
            return Err(mistake(
                "policy",
                &policy,
                format!("use one of {}", takt_policies::NAMES.join(", ")),
            ));
        }
        let vsync = self
            .vsync
            .as_deref()
            .map_or(Ok(Vsync::Timer), |text| text.parse().map_err(|remedy| mistake("vsync", text, remedy)))?;
        let displays = self.displays()?;
        let max_slice = slice("max_slice_ms", self.max_slice_ms.unwrap_or(1.0))?;
        Ok(Settings {
            core: self.core(&displays, max_slice)?,
            gpu_is_given: self.gpu != FileGpu::default(),
            apps: self.apps(&displays)?,
            displays,
            vsync,
            policy,
            max_slice,
            spin_us: spin("spin_us", self.spin_us)?,
            loop_spin_us: spin("loop_spin_us", self.loop_spin_us)?,
            processor: self.processor.map(processor).transpose()?,
            wake_us: wake(self.wake_us.unwrap_or(0.0))?,
            admission: self.admission,
            timegraph: self.timegraph.check(),
        })
    }

    /// Parameters of the core.
    fn core(&self, displays: &[Display], max_slice: Span) -> Result<Config, Mistake> {
        let defaults = Config::default();
        let mut more_displays = defaults.more_displays;
        for (grid, display) in more_displays.iter_mut().zip(&displays[1..]) {
            *grid = display.refresh;
        }
        // As good as it gets: what is on the GPU already is one piece long.
        let blocking = self.max_blocking_ms.map_or(Ok(max_slice), blocking)?;
        let stretch = self.max_stretch_ms.map(|value| ms("max_stretch_ms", value)).transpose()?;
        let stretch = stretch.unwrap_or(defaults.tuning.stretch);
        let timeout = self.completion_timeout_ms.map(|value| ms("completion_timeout_ms", value));
        Ok(Config {
            refresh: displays[0].refresh,
            more_displays,
            mpcg: mpcg(self.mpcg.unwrap_or(2))?,
            margins: self.margins.check()?,
            // Processes finish in an order of their own.
            gpu: self.gpu.check()?,
            singly: true,
            tuning: Tuning { blocking, stretch, ..defaults.tuning },
            completion_timeout: timeout.transpose()?.unwrap_or(defaults.completion_timeout),
            ..defaults
        })
    }

    /// What single apps get.
    fn apps(&self, displays: &[Display]) -> Result<Vec<AppSettings>, Mistake> {
        let mut apps: Vec<AppSettings> = Vec::new();
        for app in &self.app {
            let settings = app.check(displays)?;
            if apps.iter().any(|other| other.name == settings.name) {
                return Err(mistake("app.name", &app.name, "name each app once".to_owned()));
            }
            apps.push(settings);
        }
        Ok(apps)
    }
}

impl FileGpu {
    fn check(self) -> Result<Gpu, Mistake> {
        let Self { slice_us, switch_us } = self;
        time_shared(slice_us.unwrap_or(SLICE_US), switch_us.unwrap_or(0.0))
    }
}

/// Slice of a GPU that nobody measured, as in [`Gpu::TURNS`].
const SLICE_US: f64 = 1000.0;

/// A GPU whose processes take turns, with times in microseconds.
pub fn time_shared(slice_us: f64, switch_us: f64) -> Result<Gpu, Mistake> {
    if !(1.0..=1e6).contains(&slice_us) {
        return Err(mistake("gpu.slice_us", slice_us, "use 1 to 1000000".to_owned()));
    }
    if !(0.0..=1e5).contains(&switch_us) {
        return Err(mistake("gpu.switch_us", switch_us, "use 0 to 100000".to_owned()));
    }
    let slice = ms("gpu.slice_us", slice_us / 1000.0)?;
    Ok(Gpu::TimeShared { slice, switch: ms("gpu.switch_us", switch_us / 1000.0)? })
}

impl FileTimegraph {
    fn check(self) -> (Turns, Enforcement) {
        let turns = match self.turns {
            FileTurns::Single => Turns::Single,
            FileTurns::Following => Turns::Following,
        };
        let enforcement = match self.enforcement {
            FileEnforcement::Posterior => Enforcement::Posterior,
            FileEnforcement::Apriori => Enforcement::Apriori,
        };
        (turns, enforcement)
    }
}

impl FileMargins {
    fn check(&self) -> Result<Margins, Mistake> {
        let defaults = Margins::default();
        let us = |key: &str, value: Option<f64>, default: Span| {
            value.map_or(Ok(default), |value| ms(&format!("margins.{key}"), value / 1000.0))
        };
        let upper = self.upper.unwrap_or(1.05);
        if !(1.0..=10.0).contains(&upper) {
            return Err(mistake("margins.upper", upper, "use 1 to 10".to_owned()));
        }
        let dispatch_upper = us("dispatch_upper_us", self.dispatch_upper_us, defaults.dispatch_upper)?;
        Ok(Margins {
            fixed: us("fixed_us", self.fixed_us, defaults.fixed)?,
            upper_permille: permille(upper),
            dispatch_upper,
            dispatch_lower: defaults.dispatch_lower.min(dispatch_upper),
            completion_upper: us("completion_upper_us", self.completion_upper_us, Span::from_us(300))?,
            ..defaults
        })
    }
}

/// Staying awake for about twice as long as waking up takes never costs much more than the better
/// choice would have; on a single processor nothing can come while somebody looks for it.
fn default_spin_us() -> u32 {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1) { 50 } else { 0 }
}

/// How long to stay awake, in microseconds.
fn spin(key: &str, value: Option<u32>) -> Result<u32, Mistake> {
    let us = value.unwrap_or_else(default_spin_us);
    if us > 1000 { Err(mistake(key, us, "use 0 to 1000".to_owned())) } else { Ok(us) }
}

/// The number of a processor that there may be.
fn processor(number: u32) -> Result<usize, Mistake> {
    let known = usize::try_from(number).ok().filter(|number| *number < CpuSet::MAX_CPU);
    known.ok_or_else(|| mistake("processor", number, format!("use 0 to {}", CpuSet::MAX_CPU - 1)))
}

/// A time to wake up; infinity stands for any.
fn wake(us: f64) -> Result<Option<u32>, Mistake> {
    if us == f64::INFINITY {
        return Ok(None);
    }
    if !(0.0..=10_000.0).contains(&us) {
        return Err(mistake("wake_us", us, "use 0 to 10000, or inf".to_owned()));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let us = us as u32;
    Ok(Some(us))
}

fn mistake(key: &str, value: impl std::fmt::Display, remedy: String) -> Mistake {
    Mistake::Value { key: key.to_owned(), value: value.to_string(), remedy }
}

/// Milliseconds as a span.
pub(crate) fn ms(key: &str, value: f64) -> Result<Span, Mistake> {
    if !(0.0..=MS_MAX).contains(&value) {
        return Err(mistake(key, value, format!("use 0 to {MS_MAX} ms")));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let ns = (value * 1e6).round() as u64;
    Ok(Span::from_ns(ns))
}

/// How many groups may be in flight.
pub(crate) fn mpcg(value: u32) -> Result<u32, Mistake> {
    if (1..=64).contains(&value) { Ok(value) } else { Err(mistake("mpcg", value, "use 1 to 64".to_owned())) }
}

/// A longest delay by others; infinite if none is too long.
pub(crate) fn blocking(value: f64) -> Result<Span, Mistake> {
    if value == f64::INFINITY { Ok(Span::FOREVER) } else { ms("max_blocking_ms", value) }
}

/// A longest group; zero stands for none.
pub(crate) fn slice(key: &str, value: f64) -> Result<Span, Mistake> {
    let span = ms(key, value)?;
    Ok(if span == Span::ZERO { Span::FOREVER } else { span })
}

pub(crate) fn rate(key: &str, hz: f64) -> Result<u32, Mistake> {
    if !(0.001..=1000.0).contains(&hz) {
        return Err(mistake(key, hz, "use a rate from 0.001 to 1000".to_owned()));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let mhz = (hz * 1000.0).round() as u32;
    Ok(mhz)
}

fn permille(factor: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let permille = (factor * 1000.0).round() as u32;
    permille
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
        let app = settings.app("speedometer").expect("the app");
        assert_eq!((app.priority, app.etpf), (Some(90), Some(Span::from_us(3500))));
        assert_eq!(settings.core.margins.fixed, Span::from_us(50));
    }

    #[test]
    fn mistakes_name_key_value_and_remedy() {
        assert!(problem("polcy = 1").contains("line 1, column 1"), "{}", problem("polcy = 1"));
        assert_eq!(
            problem("policy = 'x'"),
            format!("policy = x: use one of {}", takt_policies::NAMES.join(", "))
        );
        assert!(problem("vsync = 'x'").starts_with("vsync = x: use \"timer\""), "{}", problem("vsync = 'x'"));
        let turns = problem("timegraph = { turns = 'x' }");
        assert!(turns.contains("expected `single` or `following`"), "{turns}");
        assert_eq!(problem("mpcg = 0"), "mpcg = 0: use 1 to 64");
        assert_eq!(problem("max_blocking_ms = -1"), "max_blocking_ms = -1: use 0 to 60000 ms");
        assert_eq!(problem("max_stretch_ms = -1"), "max_stretch_ms = -1: use 0 to 60000 ms");
        let overdue = problem("completion_timeout_ms = 1e6");
        assert_eq!(overdue, "completion_timeout_ms = 1000000: use 0 to 60000 ms");
        assert_eq!(problem("spin_us = 1001"), "spin_us = 1001: use 0 to 1000");
        assert_eq!(problem("processor = 5000"), "processor = 5000: use 0 to 1023");
        assert_eq!(problem("wake_us = -1"), "wake_us = -1: use 0 to 10000, or inf");
        assert_eq!(problem("max_slice_ms = -1"), "max_slice_ms = -1: use 0 to 60000 ms");
        assert_eq!(problem("refresh_hz = nan"), "refresh_hz = NaN: use a rate from 0.001 to 1000");
        let odd = problem("[[app]]\nname = 'a'\nfps = 45");
        assert!(odd.starts_with("app \"a\": fps = 45: 45 FPS does not divide"), "{odd}");
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
                "period_ms = 10\nruntime_ms = 2\ndeadline_ms = 3",
                "deadline_ms = 3: a server's deadline is its period",
            ),
            ("runtime_ms = 2", "runtime_ms = 2: say in which time: add period_ms"),
            ("period_ms = 10\nfps = 30", "fps = 30: an app with a clock of its own"),
            ("period_ms = 10\netpf_ms = 11", "etpf_ms = 11: no frame of that length ends within 10 ms"),
            ("period_ms = 0.5", "period_ms = 0.5: use 1 to 4000 ms"),
            ("period_ms = 5000", "period_ms = 5000: use 1 to 4000 ms"),
            ("deadline_ms = 5", "deadline_ms = 5: it counts from a clock of its own: add period_ms"),
            ("clock = 'own'", "clock = own: say how often: add period_ms"),
            ("clock = 'display'\nperiod_ms = 5", "period_ms = 5: the display says how often"),
            ("hard = true", "hard = true: only a server can be"),
            ("display = 'b'", "display = b: there is no display b; displays have names in"),
            ("share = 1.5", "share = 1.5: use more than 0, and 1 at most"),
            ("share = 0.1\nruntime_ms = 1", "share = 0.1: a share says how much"),
            ("share = 0.1\nfps = 30", "fps = 30: a server (runtime_ms) has jobs"),
        ] {
            let (found, said) = (of(keys), format!("app \"a\": {said}"));
            assert!(found.starts_with(&said), "{keys}: {found}");
        }
        assert!(of("clock = 'x'").contains("expected `display` or `own`"), "{}", of("clock = 'x'"));
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
            (format!("{text}\n[[display]]\nname='a'"), "display.name = a: name each display once"),
            ("[[display]]\nname=''".to_owned(), "display.name = \"\": give it a name"),
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
            assert!(found.starts_with(said), "{found}");
        }
        let many: String = (0..5).map(|number| format!("[[display]]\nname='{number}'\n")).collect();
        assert_eq!(problem(&many), "display = 5: use 4 sections at most");
    }

    #[test]
    fn how_the_gpu_is_shared_can_be_said() {
        let gpu =
            |text: &str| Settings::parse(text).map(|settings| (settings.core.gpu, settings.gpu_is_given));
        assert_eq!(gpu(""), Ok((Gpu::TURNS, false)));
        let given = Gpu::TimeShared { slice: Span::from_us(2000), switch: Span::from_us(150) };
        assert_eq!(gpu("[gpu]\nslice_us = 2000\nswitch_us = 150"), Ok((given, true)));
        assert_eq!(problem("gpu = { slice_us = 0 }"), "gpu.slice_us = 0: use 1 to 1000000");
        assert_eq!(problem("gpu = { switch_us = -1 }"), "gpu.switch_us = -1: use 0 to 100000");
    }

    #[test]
    fn zero_never_slices() {
        let settings = Settings::parse("max_slice_ms = 0").expect("fine");
        assert_eq!(settings.max_slice, Span::FOREVER);
    }
}
