//! Who plays in an experiment with real programs, and what each of them needs.
//!
//! Loads depend on the machine, so every program is measured alone first: what a frame takes
//! decides how much is reserved for it, and what its frames are worth when shares are counted.

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::stage::Stage;

/// A set of programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cast {
    /// Instruments and a map, beside floods.
    Car,
    /// One app that needs a third of the time, beside floods.
    Floods,
    /// One app beside one flood.
    Pair,
}

/// One program of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Role {
    /// How people call it.
    pub(crate) name: String,
    /// The program.
    pub(crate) program: &'static str,
    /// What makes it as heavy as it is.
    pub(crate) arguments: Vec<String>,
    /// Its importance under Takt.
    pub(crate) priority: u32,
    /// Frames per second it is to have; 0 if it takes what it gets.
    pub(crate) fps: f64,
    /// What a frame takes on the idle machine, in milliseconds: the median, and the slowest but
    /// one in a hundred.
    pub(crate) alone_ms: [f64; 2],
    /// What the median was to be, if its load was chosen for that.
    pub(crate) wanted_ms: Option<f64>,
}

impl Role {
    /// GPU time to reserve for a frame: what the slow ones took alone, and something for asking
    /// leave several times.
    pub(crate) fn etpf_ms(&self) -> Option<f64> {
        (self.fps > 0.0).then(|| self.alone_ms[1] * 1.2 + 0.5)
    }

    /// What it reserves, as a share of what the machine renders.
    pub(crate) fn reserved_share(&self) -> f64 {
        self.etpf_ms().map_or(0.0, |etpf_ms| etpf_ms * self.fps / 1000.0)
    }

    /// The size that was chosen for it, if one was.
    pub(crate) fn size(&self) -> Option<[u32; 2]> {
        let at = self.arguments.iter().position(|argument| argument == "--size")?;
        let (width, height) = self.arguments.get(at + 1)?.split_once('x')?;
        Some([width.parse().ok()?, height.parse().ok()?])
    }

    /// Whether its load is far from the wanted one: the machine has other things to do.
    pub(crate) fn is_off(&self) -> bool {
        self.wanted_ms.is_some_and(|wanted| (self.alone_ms[0] / wanted - 1.0).abs() > TOO_FAR)
    }

    /// Whether it is best effort.
    pub(crate) fn is_flood(&self) -> bool {
        self.fps == 0.0
    }
}

/// A load that is off by more than this makes figures hard to compare.
const TOO_FAR: f64 = 0.25;
/// How many floods there are, and how long their draws are.
const FLOODS: u32 = 5;
const FLOOD_MS: f64 = 50.0;
/// What a frame of the heavy app takes.
const HEAVY_MS: f64 = 11.0;
/// Small, so that loops decide on the length.
const HEAVY_SIZE: &str = "400x300";
/// An app with a frame rate, of which the first version is taken that leaves enough time for others.
struct Sized {
    name: &'static str,
    program: &'static str,
    priority: u32,
    /// From the usual one down.
    sizes: &'static [&'static str],
    /// From the usual one down, once the smallest size is too much.
    rates: &'static [f64],
    /// What it may reserve, as a share of what the machine renders.
    share: f64,
}

/// Sizes of a dial.
const DIALS: [&str; 4] = ["456x456", "320x320", "228x228", "160x160"];
/// What the three reserve together, at most, as a share of what the machine renders.
pub(super) const RESERVED_MAX: f64 = 0.7;
const INSTRUMENTS: [Sized; 3] = [
    Sized {
        name: "speedometer",
        program: "takt-speedometer",
        priority: 90,
        sizes: &DIALS,
        rates: &[60.0, 30.0, 15.0],
        share: 0.2,
    },
    Sized {
        name: "tachometer",
        program: "takt-tachometer",
        priority: 80,
        sizes: &DIALS,
        rates: &[60.0, 30.0, 15.0],
        share: 0.2,
    },
    Sized {
        name: "map",
        program: "takt-map",
        priority: 70,
        sizes: &["1280x480", "960x360", "640x240", "480x180", "320x120"],
        rates: &[30.0, 15.0, 7.5],
        share: 0.3,
    },
];
/// The app of two programs.
const DIAL: Sized = Sized { name: "dial", share: 0.3, ..INSTRUMENTS[0] };

impl Cast {
    /// What it is called.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Car => "Instruments, a map and five floods on one GPU",
            Self::Floods => "An app of 11 ms per frame beside five floods of 50 ms draws",
            Self::Pair => "An instrument beside a program that draws for 50 ms at a time",
        }
    }

    fn floods(self) -> u32 {
        if self == Self::Pair { 1 } else { FLOODS }
    }

    /// Measures each program alone. `step` is called before each.
    pub(crate) fn measure(self, stage: &Stage, step: &mut dyn FnMut(&str)) -> anyhow::Result<Vec<Role>> {
        let mut roles = match self {
            Self::Car => INSTRUMENTS.iter().map(|app| sized(stage, app, step)).collect::<Result<_, _>>()?,
            Self::Pair => vec![sized(stage, &DIAL, step)?],
            Self::Floods => {
                step("finding a scene of 11 ms");
                let length = HEAVY_MS.to_string();
                let size = ["--size", HEAVY_SIZE];
                let arguments = [&size[..], &["--frame-ms", &length]].concat();
                let (found, facts) = alone(stage, "scene", "takt-scene", 90, 30.0, &arguments)?;
                // The program measures the first frame only, which turns out shorter or longer than
                // most; so what the others take corrects it.
                let loops: f64 = fact(&facts, "loops")?.parse().context("loops are a number")?;
                let loops = (loops * HEAVY_MS / found.alone_ms[0]).round().to_string();
                let arguments = [&size[..], &["--shader", "marble", "--loops", &loops]].concat();
                let (mut role, _) = alone(stage, "scene", "takt-scene", 90, 30.0, &arguments)?;
                role.wanted_ms = Some(HEAVY_MS);
                vec![role]
            }
        };
        step("finding draws of 50 ms");
        let length = FLOOD_MS.to_string();
        let (flood, facts) = alone(stage, "flood", "takt-flood", 0, 0.0, &["--draw-ms", &length])?;
        let arguments = vec!["--iterations".to_owned(), fact(&facts, "iterations")?];
        let floods = self.floods();
        roles.extend((1..=floods).map(|number| Role {
            name: format!("flood-{number}"),
            priority: floods + 1 - number,
            arguments: arguments.clone(),
            wanted_ms: Some(FLOOD_MS),
            ..flood.clone()
        }));
        Ok(roles)
    }
}

/// An app as large and as fast as fits.
fn sized(stage: &Stage, app: &Sized, step: &mut dyn FnMut(&str)) -> anyhow::Result<Role> {
    step(&format!("measuring the {} alone", app.name));
    let rate = app.rates[0];
    let mut role = None;
    for size in app.sizes {
        let (found, _) = alone(stage, app.name, app.program, app.priority, rate, &["--size", size])?;
        let fits = found.reserved_share() <= app.share;
        role = Some(found);
        if fits {
            break;
        }
    }
    let mut role = role.context("an app has sizes")?;
    for rate in app.rates {
        role.fps = *rate;
        if role.reserved_share() <= app.share {
            break;
        }
    }
    Ok(role)
}

/// A program on the idle machine, and what it says of itself.
fn alone(
    stage: &Stage,
    name: &str,
    program: &'static str,
    priority: u32,
    fps: f64,
    arguments: &[&str],
) -> anyhow::Result<(Role, Value)> {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    let facts = stage.measure(program, &arguments)?;
    let ms = |quantile: &str| {
        let us = facts["response_us"][quantile].as_f64();
        us.map(|us| us / 1000.0).with_context(|| format!("{program} does not tell its response times"))
    };
    let alone_ms = [ms("p50")?, ms("p99")?];
    Ok((Role { name: name.to_owned(), program, arguments, priority, fps, alone_ms, wanted_ms: None }, facts))
}

fn fact(facts: &Value, name: &str) -> anyhow::Result<String> {
    match &facts[name] {
        Value::Number(number) => Ok(number.to_string()),
        _ => bail!("the program does not tell its {name}; is it of another version?"),
    }
}
