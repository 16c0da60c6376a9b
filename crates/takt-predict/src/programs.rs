//! Programs that are profiled one by one: files with their sources, and a file with their rates.
//!
//! A process that sees a program notes its sources; one that has the GPU to itself measures it later. Both
//! kinds of files are [sealed](crate::store), so damage shows.

use std::collections::BTreeMap;

use crate::cost::{ProgramId, ShaderRates};
use crate::store::{seal, unseal};

/// First line of a file with sources.
const SOURCES: &str = "takt-program 1";
/// First line of a file with rates.
const RATES: &str = "takt-rates 1";
/// Bytes of both sources together that are noted.
pub const SOURCES_BYTES_MAX: usize = 1 << 18;
/// Programs that are noted for one GPU.
pub const PROGRAMS_MAX: usize = 256;
/// Rates above this are nonsense: a second per vertex.
const RATE_MAX_NS: f64 = 1e9;

/// Why a file cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct BadPrograms(String);

/// The sources that a program was linked from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sources {
    /// Of the vertex shader.
    pub vertex: String,
    /// Of the fragment shader.
    pub fragment: String,
}

impl Sources {
    /// Names the program.
    pub fn id(&self) -> ProgramId {
        ProgramId::of(&self.vertex, &self.fragment)
    }

    /// Whether they are short enough to be noted.
    pub fn fit(&self) -> bool {
        self.vertex.len() + self.fragment.len() <= SOURCES_BYTES_MAX
    }

    /// The text of their file: each source after a line with its name and length.
    pub fn to_text(&self) -> String {
        let Self { vertex, fragment } = self;
        let (vertex_bytes, fragment_bytes) = (vertex.len(), fragment.len());
        seal(format!("{SOURCES}\nvertex {vertex_bytes}\n{vertex}\nfragment {fragment_bytes}\n{fragment}\n"))
    }

    /// Reads such a file.
    ///
    /// # Errors
    ///
    /// If it is damaged, or of another version.
    pub fn parse(text: &str) -> Result<Self, BadPrograms> {
        let body = body(text, SOURCES)?;
        let (vertex, rest) = part(body, "vertex")?;
        let (fragment, rest) = part(rest, "fragment")?;
        if !rest.is_empty() {
            return Err(BadPrograms("something follows the fragment shader".to_owned()));
        }
        Ok(Self { vertex: vertex.to_owned(), fragment: fragment.to_owned() })
    }
}

/// What is below the first line of a sealed text, if that line is this one.
fn body<'a>(text: &'a str, first: &str) -> Result<&'a str, BadPrograms> {
    if !text.starts_with(first) {
        let found = text.lines().next().unwrap_or("").chars().take(40).collect::<String>();
        return Err(BadPrograms(format!("line 1: expected '{first}', found '{found}'")));
    }
    let body = unseal(text).map_err(|damaged| BadPrograms(damaged.to_string()))?;
    let rest = body.strip_prefix(first).and_then(|rest| rest.strip_prefix('\n'));
    rest.ok_or_else(|| BadPrograms(format!("line 1: expected '{first}' alone")))
}

/// A source of this name, and what is behind it.
fn part<'a>(text: &'a str, name: &str) -> Result<(&'a str, &'a str), BadPrograms> {
    let found = || {
        let (bytes, rest) = text.strip_prefix(name)?.strip_prefix(' ')?.split_once('\n')?;
        let (source, rest) = rest.split_at_checked(bytes.parse().ok()?)?;
        Some((source, rest.strip_prefix('\n')?))
    };
    found().ok_or_else(|| BadPrograms(format!("there is no whole {name} shader")))
}

/// What programs cost on one GPU with one driver.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct ProgramRates {
    rates: BTreeMap<u64, ShaderRates>,
}

impl ProgramRates {
    /// Rates of a program, if it was measured.
    pub fn get(&self, program: ProgramId) -> Option<ShaderRates> {
        self.rates.get(&program.0).copied()
    }

    /// Keeps the rates of a program.
    pub fn insert(&mut self, program: ProgramId, rates: ShaderRates) {
        self.rates.insert(program.0, rates);
    }

    /// Takes over what others know and this does not.
    pub fn add(&mut self, others: &Self) {
        for (program, rates) in &others.rates {
            self.rates.entry(*program).or_insert(*rates);
        }
    }

    /// Programs that were measured.
    pub fn len(&self) -> usize {
        self.rates.len()
    }

    /// Whether no program was measured.
    pub fn is_empty(&self) -> bool {
        self.rates.is_empty()
    }

    /// The text of their file: a line per program with its name and nanoseconds per vertex and per
    /// fragment.
    pub fn to_text(&self) -> String {
        let lines = self
            .rates
            .iter()
            .map(|(program, rates)| format!("{program:016x} {} {}\n", rates.vertex_ns, rates.fragment_ns));
        seal(format!("{RATES}\n{}", lines.collect::<String>()))
    }

    /// Reads such a file; empty lines and remarks count for nothing.
    ///
    /// # Errors
    ///
    /// If it is damaged, or of another version.
    pub fn parse(text: &str) -> Result<Self, BadPrograms> {
        let mut all = Self::default();
        for (at, line) in (2..).zip(body(text, RATES)?.lines()) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (program, rates) = rates_of(line).ok_or_else(|| {
                let shown: String = line.chars().take(60).collect();
                BadPrograms(format!("line {at}: expected a program and two times from 0 on, found '{shown}'"))
            })?;
            all.insert(program, rates);
        }
        Ok(all)
    }
}

fn rates_of(line: &str) -> Option<(ProgramId, ShaderRates)> {
    let mut words = line.split(' ');
    let program = ProgramId(u64::from_str_radix(words.next()?, 16).ok()?);
    let mut time = || words.next()?.parse().ok().filter(|ns| (0.0..=RATE_MAX_NS).contains(ns));
    let rates = ShaderRates { vertex_ns: time()?, fragment_ns: time()? };
    words.next().is_none().then_some((program, rates))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Sources {
        let vertex = "void main() {}\n# sum 0\nfragment 3\n".to_owned();
        Sources { vertex, fragment: "präzise".to_owned() }
    }

    #[test]
    fn sources_are_read_as_they_were_noted() {
        let text = sources().to_text();
        assert_eq!(Sources::parse(&text), Ok(sources()));
        assert!(sources().fit());
        let long = Sources { vertex: "x".repeat(SOURCES_BYTES_MAX), ..sources() };
        assert!(!long.fit());
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            Sources::parse(&text[..at]).unwrap_err();
        }
        // Lengths that are wrong although the seal is right.
        let wrong = seal("takt-program 1\nvertex 99\nx\nfragment 0\n\n".to_owned());
        assert_eq!(Sources::parse(&wrong).unwrap_err().to_string(), "there is no whole vertex shader");
    }

    #[test]
    fn names_of_programs_stay_what_they_are() {
        // Files of earlier versions have these names.
        assert_eq!(format!("{:016x}", sources().id().0), "416614bb2f40204e");
        let swapped = Sources { vertex: sources().fragment, fragment: sources().vertex };
        assert_ne!(swapped.id(), sources().id());
    }

    #[test]
    fn rates_are_read_as_they_were_kept_and_damage_is_named() {
        let mut rates = ProgramRates::default();
        assert_eq!(ProgramRates::parse(&rates.to_text()), Ok(rates.clone()));
        rates.insert(ProgramId(7), ShaderRates { vertex_ns: 0.125, fragment_ns: 0.0 });
        rates.insert(ProgramId(u64::MAX), ShaderRates { vertex_ns: 3.0, fragment_ns: 1e-3 });
        assert_eq!(ProgramRates::parse(&rates.to_text()), Ok(rates.clone()));
        let said = |text: &str| ProgramRates::parse(text).unwrap_err().to_string();
        let text = rates.to_text();
        assert!(said(&text[..text.len() / 2]).contains("damaged"));
        assert!(said("takt-rates 2\n").contains("line 1: expected 'takt-rates 1'"));
        for line in ["x 1 1", "7 1", "7 1 -1", "7 NaN 1", "7 inf 1", "7 1 1 1"] {
            let said = said(&seal(format!("{RATES}\n# a remark\n{line}\n")));
            assert!(said.starts_with("line 3: expected") && said.contains(line), "{said}");
        }
    }

    #[test]
    fn what_is_known_already_stays() {
        let of = |vertex_ns| ShaderRates { vertex_ns, fragment_ns: 0.0 };
        let (mut own, mut system) = (ProgramRates::default(), ProgramRates::default());
        own.insert(ProgramId(1), of(1.0));
        system.insert(ProgramId(1), of(2.0));
        system.insert(ProgramId(2), of(3.0));
        own.add(&system);
        assert_eq!((own.len(), own.is_empty()), (2, false));
        assert_eq!([1, 2, 3].map(|id| own.get(ProgramId(id))), [Some(of(1.0)), Some(of(3.0)), None]);
    }
}
