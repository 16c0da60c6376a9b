//! Input devices.

use serde::Deserialize;
use takt_config::{Mistake, mistake};

use super::file::InputFile;
use super::{Cockpit, values};
use crate::geometry::Size;

/// Most keys that leave dialogues.
const EXIT_KEYS_MAX: usize = 8;

/// What kind of device it is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Fingers on a display.
    Touch,
    /// A pointer with buttons.
    Pointer,
    /// Keys and buttons.
    Keys,
    /// A knob that turns and can be pushed.
    Rotary,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Touch, Self::Pointer, Self::Keys, Self::Rotary];

    /// Its name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Touch => "touch",
            Self::Pointer => "pointer",
            Self::Keys => "keys",
            Self::Rotary => "rotary",
        }
    }
}

/// How many hands a device takes off the steering wheel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "u8")]
pub enum Hands {
    /// It is on the wheel.
    None,
    /// One hand stays on the wheel.
    One,
    /// It takes both.
    Both,
}

impl TryFrom<u8> for Hands {
    type Error = String;

    fn try_from(number: u8) -> Result<Self, String> {
        match number {
            0 => Ok(Self::None),
            1 => Ok(Self::One),
            2 => Ok(Self::Both),
            _ => Err(format!("hands = {number}: use 0, 1 or 2, the hands that it takes off the wheel")),
        }
    }
}

/// An input device.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The device file that it is read from; without one, tools inject what it does.
    pub device: Option<String>,
    /// The display that it is on, or whose windows hear it.
    pub output: usize,
    /// How many hands it takes.
    pub hands: Hands,
    /// Keys that leave the dialogue in front, by their numbers in Linux.
    pub exit_keys: Vec<u32>,
    /// Domains whose windows hear it; none stands for all.
    pub domains: Option<Vec<usize>>,
    /// Width and height in the coordinates of the device, where the device itself does not tell.
    pub range: Option<Size>,
}

pub(super) fn check(file: &InputFile, cockpit: &Cockpit) -> Result<Input, Mistake> {
    let output = match &file.output {
        Some(name) => values::index("output", name, &cockpit.outputs, |output| &output.name)?,
        None => 0,
    };
    if let Some(device) = file.device.as_ref().filter(|device| !device.starts_with('/')) {
        return Err(mistake("device", device, "use an absolute path, as in /dev/input/by-path/…"));
    }
    if file.exit_keys.len() > EXIT_KEYS_MAX {
        return Err(mistake("exit_keys", file.exit_keys.len(), format!("use {EXIT_KEYS_MAX} at most")));
    }
    let domain = |name: &String| values::index("domains", name, &cockpit.domains, |domain| &domain.name);
    let domains = file.domains.as_ref().map(|names| names.iter().map(domain).collect::<Result<_, _>>());
    let default = if file.kind == Kind::Keys { Hands::Both } else { Hands::One };
    Ok(Input {
        name: file.name.clone(),
        kind: file.kind,
        device: file.device.clone(),
        output,
        hands: file.hands.unwrap_or(default),
        exit_keys: file.exit_keys.clone(),
        domains: domains.transpose()?,
        range: file.range.as_ref().map(|text| values::size("range", text)).transpose()?,
    })
}

/// Every dialogue can be left: there is a key for that on its output.
pub(super) fn check_exits(cockpit: &Cockpit) -> Result<(), Mistake> {
    for (index, rule) in cockpit.rules.iter().enumerate().filter(|(_, rule)| rule.dialogue && !rule.required)
    {
        let leaves = |input: &&Input| input.output == rule.output && !input.exit_keys.is_empty();
        if !cockpit.inputs.iter().any(|input| leaves(&input)) {
            let output = &cockpit.outputs[rule.output].name;
            let remedy = format!(
                "no key leaves it: add exit_keys to an [[input]] with output = {output:?}, or required"
            );
            return Err(mistake("dialogue", true, remedy).within("window", index, &rule.name));
        }
    }
    Ok(())
}
