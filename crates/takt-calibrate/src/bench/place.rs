//! Where to measure: displays of EGL that need no window system.

use std::fmt;
use std::str::FromStr;

use crate::Problem;
use takt_gl_api::egl;
use takt_gl_driver::Egl;

/// Which GPU.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Place {
    /// The first device that works, or else Mesa's surfaceless platform.
    #[default]
    Auto,
    /// Mesa's surfaceless platform.
    Surfaceless,
    /// A device by number.
    Device(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Surfaceless => f.write_str("surfaceless"),
            Self::Device(number) => write!(f, "device:{number}"),
        }
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "surfaceless" => Ok(Self::Surfaceless),
            _ => {
                let number = text.strip_prefix("device:").and_then(|number| number.parse().ok());
                number.map(Self::Device).ok_or_else(|| "write auto, surfaceless or device:N".to_owned())
            }
        }
    }
}

/// An initialised display, a configuration of it, and what it is called.
pub(super) fn open(egl: Egl, place: Place) -> Result<(usize, usize, String), Problem> {
    let devices = egl.devices();
    let device = |number: usize| {
        let native = *devices.get(number).ok_or(Problem::NoDevice { number, offered: devices.len() })?;
        start(egl, egl.platform_display(egl::PLATFORM_DEVICE_EXT, native), &Place::Device(number).to_string())
    };
    let surfaceless =
        || start(egl, egl.platform_display(egl::PLATFORM_SURFACELESS_MESA, std::ptr::null()), "surfaceless");
    match place {
        Place::Device(number) => device(number),
        Place::Surfaceless => surfaceless(),
        Place::Auto => (0..devices.len()).map(device).find_map(Result::ok).map_or_else(surfaceless, Ok),
    }
}

fn start(egl: Egl, display: usize, place: &str) -> Result<(usize, usize, String), Problem> {
    let fail = |step| Problem::Egl { place: place.to_owned(), step, error: egl.error() };
    if display == 0 {
        return Err(fail("find a display"));
    }
    if !egl.initialise(display) {
        return Err(fail("start the display"));
    }
    if egl.bind_api(egl::OPENGL_ES_API) == 0 {
        return Err(fail("bind GL ES"));
    }
    let config = config(egl, display, 0);
    let config = config.ok_or_else(|| fail("offer colours of 8 bits with depth and stencil"))?;
    Ok((display, config, place.to_owned()))
}

/// A configuration as apps have it, with so many samples per pixel: eight bits, no alpha; EGL lists deeper ones first.
pub(super) fn config(egl: Egl, display: usize, samples: u32) -> Option<usize> {
    let attributes = [
        [egl::SURFACE_TYPE, egl::PBUFFER_BIT],
        [egl::RENDERABLE_TYPE, egl::OPENGL_ES2_BIT],
        [egl::RED_SIZE, 8],
        [egl::GREEN_SIZE, 8],
        [egl::BLUE_SIZE, 8],
        [egl::DEPTH_SIZE, 16],
        [egl::STENCIL_SIZE, 8],
        [egl::SAMPLES, samples.cast_signed()],
    ];
    let mut list: Vec<i32> = attributes.into_iter().flatten().collect();
    list.push(egl::NONE);
    let value = |config: usize, attribute| egl.config_value(display, config, attribute);
    let mut configs = egl.configs(display, &list);
    configs.retain(|config| value(*config, egl::SAMPLES) == samples.cast_signed());
    let plain =
        |config: &&usize| value(**config, egl::RED_SIZE) == 8 && value(**config, egl::ALPHA_SIZE) == 0;
    configs.iter().find(plain).or_else(|| configs.first()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for place in [Place::Auto, Place::Surfaceless, Place::Device(3)] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        assert!("device:".parse::<Place>().is_err() && "x11".parse::<Place>().is_err());
    }
}
