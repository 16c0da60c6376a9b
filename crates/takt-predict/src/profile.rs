//! The constants of one GPU with one driver: what calibration measured, as text.
//!
//! ```text
//! takt-profile 1
//! # anything after a number sign is a remark
//! gpu = llvmpipe (LLVM 15.0.6, 256 bits)
//! driver = Mesa 22.3.6
//! flush_ns = 8400
//! draw_ns = 310.5
//! ```
//!
//! Every key is in [`KEYS`] or in [`SHARING_KEYS`]; the first two numbers must be there, and all
//! others of [`KEYS`] have defaults that mean "costs nothing". The file is user input: whatever it
//! holds, reading it ends with a profile or with the line that is wrong.

mod sharing;

use thiserror::Error;

pub use sharing::{Execution, SHARING_KEYS, Sharing};

/// The version that is written, and the only one that is read.
pub const PROFILE_VERSION: u32 = 1;
/// Longest text that is read.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;
/// Longest name of a GPU or driver, in bytes.
pub const NAME_BYTES_MAX: usize = 256;
/// Largest number: 11 days, if it is a time.
pub const VALUE_MAX: f64 = 1e15;

/// Machine constants; times are in nanoseconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// `GL_RENDERER`.
    pub gpu: String,
    /// `GL_VERSION`.
    pub driver: String,
    /// What timer queries say of long work, as a share of its real time; 0 if they were not compared.
    pub timer_ratio: f64,
    /// Submitting one command group, whatever it holds.
    pub flush_ns: f64,
    /// One draw call, whatever it draws.
    pub draw_ns: f64,
    /// What a fragment costs more when the depth test is enabled.
    pub depth_ns: f64,
    /// What a fragment costs more when blending is enabled.
    pub blend_ns: f64,
    /// Share of a projected bounding box that fragments cover.
    pub coverage: f64,
    /// By how much 2, 4, 8 and 16 samples per pixel slow fragments down.
    pub msaa: [f64; 4],
    /// Longest and shortest way of a group from the decision to the GPU's queue.
    pub dispatch_ns: [f64; 2],
    /// Clearing.
    pub clear: ClearConstants,
    /// Showing, and every other resolve of a target.
    pub swap: SwapConstants,
    /// Moving bytes.
    pub memory: MemoryConstants,
    /// How processes share the GPU; none if it was not measured.
    pub sharing: Option<Sharing>,
}

/// What clearing costs.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ClearConstants {
    /// A clear that only marks the target: constant.
    pub fast_ns: f64,
    /// A clear that writes, per pixel; by the set of buffers: colour 1, depth 2, stencil 4.
    pub pixel_ns: [f64; 8],
    /// A clear of an off-screen target, per byte of its real size.
    pub byte_ns: f64,
}

/// What resolving a target costs; all zero on GPUs that draw directly.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct SwapConstants {
    /// Linear form: per pixel.
    pub pixel_ns: f64,
    /// Tile form: writing, per byte of the whole target.
    pub write_byte_ns: f64,
    /// Tile form: reading, per byte of what was drawn.
    pub read_byte_ns: f64,
    /// Tile form: bytes of a tile of 4 × 4 pixels.
    pub tile_bytes: f64,
}

/// What moving bytes costs.
#[derive(Copy, Clone, PartialEq, Default, Debug)]
pub struct MemoryConstants {
    /// Loading a target's contents when it is attached.
    pub load: Piecewise,
    /// `glTexImage2D`, `glTexSubImage2D`.
    pub upload: Piecewise,
    /// `glGenerateMipmap`, in bytes of the largest level.
    pub mipmap: Piecewise,
    /// `glCopyTex*`.
    pub copy: Piecewise,
    /// `glBufferData`, `glBufferSubData`.
    pub buffer: Piecewise,
}

/// A cost that is linear in bytes, with one knee: caches end somewhere.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Piecewise {
    /// Before the first byte.
    pub fixed_ns: f64,
    /// Per byte up to the knee.
    pub below_ns: f64,
    /// Per byte beyond it.
    pub above_ns: f64,
    /// Where the knee is, in bytes.
    pub knee_bytes: f64,
}

impl Default for Piecewise {
    fn default() -> Self {
        Self { fixed_ns: 0.0, below_ns: 0.0, above_ns: 0.0, knee_bytes: VALUE_MAX }
    }
}

impl Piecewise {
    /// Time for this many bytes.
    pub fn cost_ns(&self, bytes: f64) -> f64 {
        let below = bytes.min(self.knee_bytes);
        self.fixed_ns + below * self.below_ns + (bytes - below) * self.above_ns
    }
}

impl Default for Profile {
    /// A machine on which everything is free, so that nothing is forgotten silently: learn its
    /// constants before you rely on it.
    fn default() -> Self {
        Self {
            gpu: String::new(),
            driver: String::new(),
            timer_ratio: 0.0,
            flush_ns: 0.0,
            draw_ns: 0.0,
            depth_ns: 0.0,
            blend_ns: 0.0,
            coverage: crate::fragments::COVERAGE,
            msaa: [1.0; 4],
            dispatch_ns: [0.0; 2],
            clear: ClearConstants { fast_ns: 0.0, pixel_ns: [0.0; 8], byte_ns: 0.0 },
            swap: SwapConstants { pixel_ns: 0.0, write_byte_ns: 0.0, read_byte_ns: 0.0, tile_bytes: 64.0 },
            memory: MemoryConstants::default(),
            sharing: None,
        }
    }
}

/// The numbers of a profile, by the names they have in the file.
#[rustfmt::skip]
pub const KEYS: [&str; 45] = [
    "flush_ns", "draw_ns", "depth_ns", "blend_ns", "coverage",
    "msaa.2", "msaa.4", "msaa.8", "msaa.16", "dispatch_upper_ns", "dispatch_lower_ns",
    "clear.fast_ns", "clear.pixel_ns.c", "clear.pixel_ns.d", "clear.pixel_ns.cd", "clear.pixel_ns.s",
    "clear.pixel_ns.cs", "clear.pixel_ns.ds", "clear.pixel_ns.cds", "clear.byte_ns",
    "swap.pixel_ns", "swap.write_byte_ns", "swap.read_byte_ns", "swap.tile_bytes",
    "load.fixed_ns", "load.below_ns", "load.above_ns", "load.knee_bytes",
    "upload.fixed_ns", "upload.below_ns", "upload.above_ns", "upload.knee_bytes",
    "mipmap.fixed_ns", "mipmap.below_ns", "mipmap.above_ns", "mipmap.knee_bytes",
    "copy.fixed_ns", "copy.below_ns", "copy.above_ns", "copy.knee_bytes",
    "buffer.fixed_ns", "buffer.below_ns", "buffer.above_ns", "buffer.knee_bytes", "timer_ratio",
];
/// The first so many of them must be there.
const REQUIRED: usize = 2;
const _: () = assert!(KEYS.len() <= 64, "one bit each");

impl Profile {
    /// All numbers, in the order of [`KEYS`].
    fn numbers(&mut self) -> [&mut f64; KEYS.len()] {
        let Self {
            flush_ns,
            draw_ns,
            depth_ns,
            blend_ns,
            coverage,
            msaa,
            dispatch_ns,
            clear,
            swap,
            memory,
            timer_ratio,
            ..
        } = self;
        let [m2, m4, m8, m16] = msaa;
        let [upper, lower] = dispatch_ns;
        let ClearConstants { fast_ns, pixel_ns: [_, c, d, cd, s, cs, ds, cds], byte_ns } = clear;
        let SwapConstants { pixel_ns, write_byte_ns, read_byte_ns, tile_bytes } = swap;
        let MemoryConstants { load, upload, mipmap, copy, buffer } = memory;
        let [l0, l1, l2, l3] = load.numbers();
        let [u0, u1, u2, u3] = upload.numbers();
        let [m0, m1, m02, m3] = mipmap.numbers();
        let [c0, c1, c2, c3] = copy.numbers();
        let [b0, b1, b2, b3] = buffer.numbers();
        #[rustfmt::skip]
        let all = [
            flush_ns, draw_ns, depth_ns, blend_ns, coverage, m2, m4, m8, m16, upper, lower,
            fast_ns, c, d, cd, s, cs, ds, cds, byte_ns, pixel_ns, write_byte_ns, read_byte_ns, tile_bytes,
            l0, l1, l2, l3, u0, u1, u2, u3, m0, m1, m02, m3, c0, c1, c2, c3, b0, b1, b2, b3,
            timer_ratio,
        ];
        all
    }

    /// Reads a profile.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let fail = |line: usize, problem: Problem| ProfileError { line, problem };
        if text.len() > PROFILE_BYTES_MAX {
            return Err(fail(1, Problem::TooLong));
        }
        let lines = text.lines().enumerate().map(|(index, line)| (index + 1, content(line)));
        let mut lines = lines.filter(|(_, line)| !line.is_empty());
        let (first, version) = lines.next().unwrap_or((1, ""));
        if version.split_whitespace().ne(["takt-profile", "1"]) {
            return Err(fail(first, Problem::Version));
        }
        let mut profile = Self::default();
        let mut seen = 0u64;
        let mut sharing = sharing::SharingLines::default();
        for (number, line) in lines {
            profile.read_line(line, &mut seen, &mut sharing).map_err(|problem| fail(number, problem))?;
        }
        let end = text.lines().count().max(1);
        profile.sharing = sharing.finish().map_err(|problem| fail(end, problem))?;
        match (0..REQUIRED).find(|key| seen & (1 << key) == 0) {
            Some(key) => Err(fail(end, Problem::Missing(KEYS[key]))),
            None => Ok(profile),
        }
    }

    fn read_line(
        &mut self,
        line: &str,
        seen: &mut u64,
        sharing: &mut sharing::SharingLines,
    ) -> Result<(), Problem> {
        let (key, value) = line.split_once('=').ok_or(Problem::NoValue)?;
        let (key, value) = (key.trim(), value.trim());
        if let Some(name) = self.name(key) {
            if value.len() > NAME_BYTES_MAX {
                return Err(Problem::LongName);
            }
            value.clone_into(name);
            return Ok(());
        }
        if sharing.read(key, value)? {
            return Ok(());
        }
        let at = KEYS.iter().position(|known| *known == key).ok_or(Problem::UnknownKey)?;
        if *seen & (1 << at) != 0 {
            return Err(Problem::Twice(KEYS[at]));
        }
        *seen |= 1 << at;
        *self.numbers()[at] = number(KEYS[at], value)?;
        Ok(())
    }

    fn name(&mut self, key: &str) -> Option<&mut String> {
        match key {
            "gpu" => Some(&mut self.gpu),
            "driver" => Some(&mut self.driver),
            _ => None,
        }
    }

    /// Writes a profile so that reading it gives the same one. What names must not hold, line
    /// breaks and number signs, is replaced.
    pub fn to_text(&self) -> String {
        let (gpu, driver) = (plain(&self.gpu), plain(&self.driver));
        let mut text = format!("takt-profile {PROFILE_VERSION}\ngpu = {gpu}\ndriver = {driver}\n");
        for (key, number) in KEYS.iter().zip(self.clone().numbers()) {
            text += &format!("{key} = {number}\n");
        }
        text + &self.sharing.map(|sharing| sharing.to_text()).unwrap_or_default()
    }
}

/// A number that may be a constant.
fn number(key: &'static str, value: &str) -> Result<f64, Problem> {
    let number: f64 = value.parse().ok().ok_or(Problem::NoNumber(key))?;
    if (0.0..=VALUE_MAX).contains(&number) { Ok(number) } else { Err(Problem::OutOfRange(key)) }
}

/// A name that fits on a line: drivers can say what they like.
fn plain(name: &str) -> String {
    let fits = |(at, letter): &(usize, char)| at + letter.len_utf8() <= NAME_BYTES_MAX;
    let letters = name.trim().char_indices().take_while(fits);
    letters.map(|(_, letter)| if letter.is_control() || letter == '#' { '_' } else { letter }).collect()
}

impl Piecewise {
    fn numbers(&mut self) -> [&mut f64; 4] {
        [&mut self.fixed_ns, &mut self.below_ns, &mut self.above_ns, &mut self.knee_bytes]
    }
}

/// A line without its remark.
fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or("").trim()
}

/// Why a text is no profile.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[error("line {line}: {problem}")]
pub struct ProfileError {
    /// Where, counted from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a line.
#[derive(Clone, PartialEq, Eq, Error, Debug)]
#[non_exhaustive]
pub enum Problem {
    /// The text is longer than [`PROFILE_BYTES_MAX`].
    #[error("longer than {PROFILE_BYTES_MAX} bytes")]
    TooLong,
    /// The first line does not name the format and a version that is known.
    #[error("expected \"takt-profile {PROFILE_VERSION}\"")]
    Version,
    /// No equals sign.
    #[error("expected \"key = value\"")]
    NoValue,
    /// A key that does not exist.
    #[error("unknown key")]
    UnknownKey,
    /// A key that was there before.
    #[error("{0} was given before")]
    Twice(&'static str),
    /// A key that is not there at all.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A value that is no number.
    #[error("{0} needs a number")]
    NoNumber(&'static str),
    /// A number that is negative, too large or not finite.
    #[error("{0} must be between 0 and {VALUE_MAX:e}")]
    OutOfRange(&'static str),
    /// An execution model that does not exist.
    #[error("{0} is one of side-by-side, in-order and time-shared")]
    NoExecution(&'static str),
    /// A slice without a length.
    #[error("{0} must be more than 0")]
    Zero(&'static str),
    /// A key that does not belong to the execution model that the file names.
    #[error("{0} does not belong to this sharing.execution")]
    Stray(&'static str),
    /// A name that is too long.
    #[error("names have {NAME_BYTES_MAX} bytes at most")]
    LongName,
}

#[cfg(test)]
mod tests;
