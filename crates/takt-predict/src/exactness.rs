//! Which ways of cutting a draw change nothing on a driver, as a self-test found, and the file that keeps it.
//!
//! The specification wants pieces to show what the whole shows; drivers differ. So each way of cutting is tried on
//! the driver itself, in each state that could matter: every state by itself at every number of samples. A draw is cut
//! only if all of its states were found exact; what was not tried is not exact.
//!
//! ```text
//! takt-exact 1
//! # way samples state differing
//! ranges 1 triangles 0
//! boxes 4 triangles 207
//! ```

use std::collections::BTreeMap;
use std::fmt;

use crate::store::{seal, unseal};

/// First line of the file.
const HEAD: &str = "takt-exact 1";
/// Longest text that is read.
pub const EXACTNESS_BYTES_MAX: usize = 64 << 10;

/// A way of cutting.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Way {
    /// Into ranges of primitives.
    Ranges,
    /// Into boxes of pixels, by the scissor.
    Boxes,
}

/// State that could give a way of cutting away.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum State {
    /// Points.
    Points,
    /// Lines of one pixel.
    Lines,
    /// Wider lines.
    WideLines,
    /// Triangles.
    Triangles,
    /// Blending.
    Blend,
    /// Depth and stencil tests.
    Tests,
    /// The target is a surface.
    Surface,
    /// It is a texture.
    Texture,
    /// It is a render buffer.
    Renderbuffer,
    /// Colours of normalised whole numbers.
    Normalised,
    /// The same with the curve of sRGB.
    Srgb,
    /// Colours of 16 bits or less.
    Packed,
    /// Colours of floating point.
    Float,
    /// Colours of whole numbers.
    Integer,
    /// What vertex shaders compute is recorded.
    Feedback,
    /// No draw, but a clear.
    Clear,
    /// No draw, but a copy between framebuffers.
    Blit,
}

impl Way {
    /// All there are.
    pub const ALL: [Self; 2] = [Self::Ranges, Self::Boxes];

    const fn name(self) -> &'static str {
        match self {
            Self::Ranges => "ranges",
            Self::Boxes => "boxes",
        }
    }
}

impl State {
    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// All there are.
    pub const ALL: [Self; 17] = [
        Self::Points,
        Self::Lines,
        Self::WideLines,
        Self::Triangles,
        Self::Blend,
        Self::Tests,
        Self::Surface,
        Self::Texture,
        Self::Renderbuffer,
        Self::Normalised,
        Self::Srgb,
        Self::Packed,
        Self::Float,
        Self::Integer,
        Self::Feedback,
        Self::Clear,
        Self::Blit,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Points => "points",
            Self::Lines => "lines",
            Self::WideLines => "wide-lines",
            Self::Triangles => "triangles",
            Self::Blend => "blend",
            Self::Tests => "tests",
            Self::Surface => "surface",
            Self::Texture => "texture",
            Self::Renderbuffer => "renderbuffer",
            Self::Normalised => "normalised",
            Self::Srgb => "srgb",
            Self::Packed => "packed",
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Feedback => "feedback",
            Self::Clear => "clear",
            Self::Blit => "blit",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of states.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct States(u32);

impl States {
    /// No state.
    pub const NONE: Self = Self(0);
    /// Every format of colours.
    pub const ALL_FORMATS: Self = Self(
        State::Normalised.bit()
            | State::Srgb.bit()
            | State::Packed.bit()
            | State::Float.bit()
            | State::Integer.bit(),
    );

    /// The states of this set and of another.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The same with one more.
    #[must_use]
    pub const fn with(self, state: State) -> Self {
        Self(self.0 | state.bit())
    }

    /// The same with one more if that holds.
    #[must_use]
    pub const fn with_if(self, holds: bool, state: State) -> Self {
        if holds { self.with(state) } else { self }
    }
}

impl From<State> for States {
    fn from(state: State) -> Self {
        Self::NONE.with(state)
    }
}

/// One thing that was tried.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Case {
    /// The way of cutting.
    pub way: Way,
    /// Samples per pixel; 1 without any.
    pub samples: u32,
    /// The state.
    pub state: State,
}

/// What a self-test found.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Exactness {
    /// How many values differed in each case.
    cases: BTreeMap<Case, u64>,
    /// States without a difference, by way and number of samples.
    exact: [[u32; SAMPLES.len()]; Way::ALL.len()],
}

/// Numbers of samples per pixel that drivers have; 1 stands for none.
pub const SAMPLES: [u32; 5] = [1, 2, 4, 8, 16];

/// States that are not cut into boxes before that was tried.
const BOXES_UNTRIED: [State; 4] = [State::Points, State::Feedback, State::Clear, State::Blit];

/// Why a file cannot be used.
#[derive(Clone, PartialEq, Eq, thiserror::Error, Debug)]
#[error("{0}")]
pub struct BadExactness(String);

impl Exactness {
    /// What may be believed of a driver that was never tried: what the specification says outright. Multisampled
    /// targets, points, clears and blits are not cut into boxes.
    pub fn untried() -> Self {
        let mut exactness = Self::default();
        let believed = |case: &Case| {
            case.way == Way::Ranges || case.samples == 1 && !BOXES_UNTRIED.contains(&case.state)
        };
        let all = Way::ALL.into_iter().flat_map(|way| {
            SAMPLES.into_iter().flat_map(move |samples| State::ALL.map(|state| Case { way, samples, state }))
        });
        all.filter(believed).for_each(|case| exactness.found(case, 0));
        exactness
    }

    /// A case was tried, and so many values differed. The worst of several tries counts.
    pub fn found(&mut self, case: Case, differing: u64) {
        let worst = self.cases.entry(case).or_default();
        *worst = (*worst).max(differing);
        let exact = *worst == 0;
        if let Some(column) = SAMPLES.iter().position(|known| *known == case.samples) {
            let states = &mut self.exact[case.way as usize][column];
            *states = if exact { *states | case.state.bit() } else { *states & !case.state.bit() };
        }
    }

    /// Whether a way of cutting changes nothing where all these states come together.
    #[inline]
    pub fn is_exact(&self, way: Way, samples: u32, states: States) -> bool {
        match SAMPLES.iter().position(|known| *known == samples.max(1)) {
            Some(column) => states.0 & !self.exact[way as usize][column] == 0,
            None => states == States::NONE,
        }
    }

    /// The cases, and how many values differed in each.
    pub fn cases(&self) -> impl Iterator<Item = (Case, u64)> {
        self.cases.iter().map(|(case, differing)| (*case, *differing))
    }

    /// The text of its file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{HEAD}\n# way samples state differing\n");
        for (Case { way, samples, state }, differing) in self.cases() {
            text += &format!("{way} {samples} {state} {differing}\n");
        }
        seal(text)
    }

    /// Reads such a file.
    ///
    /// # Errors
    ///
    /// If it is damaged, or of another version.
    pub fn parse(text: &str) -> Result<Self, BadExactness> {
        if text.len() > EXACTNESS_BYTES_MAX {
            return Err(BadExactness(format!("the file is longer than {EXACTNESS_BYTES_MAX} bytes")));
        }
        let body = unseal(text).map_err(|damaged| BadExactness(damaged.to_string()))?;
        let body =
            body.strip_prefix(HEAD).ok_or_else(|| BadExactness(format!("it does not begin with {HEAD}")))?;
        let mut exactness = Self::default();
        for (number, line) in
            body.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        {
            let wrong = || BadExactness(format!("line {} is no finding: {line:?}", number + 1));
            let (case, differing) = read(line).ok_or_else(wrong)?;
            exactness.found(case, differing);
        }
        Ok(exactness)
    }
}

fn read(line: &str) -> Option<(Case, u64)> {
    let mut words = line.split_ascii_whitespace();
    let [way, samples, state, differing] = [words.next()?, words.next()?, words.next()?, words.next()?];
    let way = Way::ALL.into_iter().find(|known| known.name() == way)?;
    let state = State::ALL.into_iter().find(|known| known.name() == state)?;
    let case = Case { way, samples: samples.parse().ok()?, state };
    words.next().is_none().then_some((case, differing.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIANGLES: Case = Case { way: Way::Boxes, samples: 4, state: State::Triangles };

    fn states(list: &[State]) -> States {
        list.iter().fold(States::NONE, |set, state| set.with(*state))
    }

    #[test]
    fn every_state_must_be_exact() {
        let mut exactness = Exactness::default();
        exactness.found(TRIANGLES, 0);
        assert!(exactness.is_exact(Way::Boxes, 4, states(&[State::Triangles])));
        assert!(!exactness.is_exact(Way::Boxes, 4, states(&[State::Triangles, State::Blend])), "never tried");
        assert!(!exactness.is_exact(Way::Ranges, 4, states(&[State::Triangles])));
        exactness.found(TRIANGLES, 3);
        exactness.found(TRIANGLES, 0);
        assert!(!exactness.is_exact(Way::Boxes, 4, states(&[State::Triangles])), "the worst counts");
    }

    #[test]
    fn files_are_read_as_they_are_written() {
        let mut exactness = Exactness::untried();
        exactness.found(TRIANGLES, 207);
        let text = exactness.to_text();
        assert_eq!(Exactness::parse(&text), Ok(exactness));
        assert!(Exactness::parse(&text[1..]).is_err());
        for (line, mistake) in [
            ("boxes 4 triangles", "line 2 is no finding"),
            ("boxes 4 triangles 0 0", "line 2"),
            ("boxes four triangles 0", "line 2"),
            ("circles 4 triangles 0", "line 2"),
        ] {
            let error = Exactness::parse(&seal(format!("{HEAD}\n{line}\n"))).unwrap_err();
            assert!(error.to_string().contains(mistake), "{error}");
        }
        assert!(Exactness::parse(&seal("takt-exact 2\n".to_owned())).is_err());
    }

    #[test]
    fn of_an_untried_driver_little_is_believed() {
        let untried = Exactness::untried();
        assert!(untried.is_exact(
            Way::Boxes,
            0,
            states(&[State::Triangles, State::Surface, State::Normalised])
        ));
        assert!(!untried.is_exact(Way::Boxes, 4, states(&[State::Triangles])));
        for state in [State::Points, State::Clear, State::Blit] {
            assert!(!untried.is_exact(Way::Boxes, 1, states(&[state])), "{state}");
        }
        assert!(untried.is_exact(Way::Ranges, 4, states(&[State::Points])));
    }
}
