//! Why Takt sees nothing of a process that has a window or uses a GPU, and what to do about it.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use super::uses::{self, MappedLibraries, Uses};
use crate::hook::program::{self, Gain};
use crate::hook::{self, Hooking, Way};

/// What a process draws or computes with, and why that passes by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passing {
    /// What it was called by.
    name: String,
    process: u32,
    cause: Cause,
    /// What to do about it.
    remedy: String,
}

impl Passing {
    /// What is the same for processes of one program.
    pub(super) fn kind(&self) -> (String, Cause) {
        (self.name.clone(), self.cause)
    }

    /// Without the remedy.
    pub(crate) fn found(&self) -> String {
        format!("{} (process {}) {}", self.name, self.process, self.cause)
    }

    /// Whether its work reaches a GPU.
    pub(crate) fn uses_gpu(&self) -> bool {
        self.cause.uses_gpu()
    }

    pub(crate) fn remedy(&self) -> &str {
        &self.remedy
    }
}

impl fmt::Display for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, so it is not scheduled; {}", self.found(), self.remedy)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Cause {
    Vulkan,
    OpenCl,
    /// GL, in a sandbox that hides what Takt puts in front of drivers.
    Sandbox,
    /// GL, in an environment that lacks Takt's variables.
    Environment,
    /// GLX, where the loader of libraries is led elsewhere.
    Path,
    /// GL, in a program whose environment is ignored.
    Gains(Gain),
    /// GL, in a program for 32 bits.
    Bits32,
    /// GL, through libraries of its own.
    OwnGl,
    /// GLX, where only EGL is caught.
    Glx,
    /// Video engines.
    Video,
    /// A GPU's device, by a way that is not known.
    Device,
    /// It loads no libraries.
    Static,
    /// Only a window.
    Processor,
    /// A window, with GL at hand.
    Idle,
}

impl Cause {
    /// Whether its work reaches a GPU.
    pub(super) fn uses_gpu(self) -> bool {
        !matches!(self, Self::Processor | Self::Idle)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Vulkan => "draws with Vulkan, which passes Takt by",
            Self::OpenCl => "computes with OpenCL, which passes Takt by",
            Self::Sandbox => "draws with GL in a sandbox that hides Takt's files",
            Self::Environment => {
                "draws with GL, and the environment that it was started with lacks Takt's variables"
            }
            Self::Path => "draws with GLX, and LD_LIBRARY_PATH does not lead it to Takt's library any more",
            Self::Gains(gain) => {
                return write!(f, "draws with GL and {}, so that its environment is ignored", gain.what());
            }
            Self::Bits32 => "draws with GL and is a 32-bit program, which Takt's libraries do not fit",
            Self::OwnGl => "draws with GL libraries of its own, which pass Takt by",
            Self::Glx => "draws with GLX, which is seen only where the system has libglvnd",
            Self::Video => "uses video engines of the GPU, which pass Takt by",
            Self::Device => "uses a GPU by a way that Takt does not know",
            Self::Static => "is linked statically, so that Takt cannot be loaded",
            Self::Processor => "has a window and no library of a GPU: it draws on the processor",
            Self::Idle => "has a window and has drawn nothing with GL: it may draw on the processor",
        })
    }
}

/// Where Takt's files are, and what leads programs there.
#[derive(Clone, Debug)]
pub(crate) struct Ways {
    way: Way,
    variables: Vec<(&'static str, String)>,
    files: Option<PathBuf>,
}

impl Ways {
    pub(crate) fn of(hooking: &Hooking) -> Self {
        let variables = hooking.variables.iter();
        let variables =
            variables.map(|(name, value)| (*name, value.to_string_lossy().into_owned())).collect();
        Self { way: hooking.way, variables, files: hooking.files.clone() }
    }

    /// Whether a variable leads the process elsewhere: it lacks the value, or a part of a list that is ours.
    fn lacks(&self, process: u32, name: &str) -> bool {
        let Some((_, wanted)) = self.variables.iter().find(|(known, _)| *known == name) else {
            return false;
        };
        let environment = uses::environment(process);
        let there = uses::value(&environment, name).unwrap_or_default();
        let is_ours = |part: &&str| {
            let files = self.files.as_ref().filter(|_| part.contains('/'));
            files.is_none_or(|files| Path::new(part).starts_with(files))
        };
        let is_there = |part: &str| there.split([':', ';']).any(|other| other == part);
        // One that cannot be read lacks nothing for sure.
        !environment.is_empty() && !wanted.split(':').filter(is_ours).all(is_there)
    }
}

/// Why Takt sees nothing of a process that has used a window or a GPU for a while.
pub(super) fn judge(process: u32, uses: &Uses, ways: &Ways) -> Option<Passing> {
    let cause = cause(process, uses, ways)?;
    let name = name(process)?;
    let remedy = remedy(cause, &name, &uses.libraries, ways);
    Some(Passing { name, process, cause, remedy })
}

/// What it was called by: many commands are links. Some programs write other things there, with spaces.
fn name(process: u32) -> Option<String> {
    let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let first = words.split(|byte| *byte == 0).next().unwrap_or_default();
    let called = Some(first).filter(|word| !word.is_empty() && !word.contains(&b' '));
    let called = called.map(|word| PathBuf::from(String::from_utf8_lossy(word).into_owned()));
    let path = called.or_else(|| fs::read_link(format!("/proc/{process}/exe")).ok())?;
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Drivers of Vulkan, beside its loader.
const VULKAN: [&str; 2] = ["libvulkan_", "libnvidia-glvkspirv"];
/// Drivers of GL.
const GL: [&str; 7] =
    ["libEGL_", "libGLX_", "libgallium", "swrast_dri", "libnvidia-eglcore", "libnvidia-glcore", "libglapi"];
const VIDEO: [&str; 3] = ["libva-drm", "libnvcuvid", "libvdpau"];

fn cause(process: u32, uses: &Uses, ways: &Ways) -> Option<Cause> {
    let libraries = &uses.libraries;
    if uses.seen || libraries.has("libtakt.so") || (uses.window.is_none() && !uses.device) {
        return computes(uses).then_some(Cause::OpenCl);
    }
    if libraries.0.is_empty() {
        // What may not be looked at is not judged.
        let is_readable =
            fs::read_to_string(format!("/proc/{process}/maps")).is_ok_and(|maps| !maps.is_empty());
        return is_readable.then_some(Cause::Static);
    }
    if libraries.has("libvulkan.so") && libraries.have_any(&VULKAN) {
        return Some(Cause::Vulkan);
    }
    if computes(uses) {
        return Some(Cause::OpenCl);
    }
    let past = |driver: &str, ours: &str| {
        let is_driver = |name: &String| name.starts_with(driver) && !name.starts_with(ours);
        libraries.0.iter().any(is_driver) && !libraries.has(ours)
    };
    let (egl, glx) = (past("libEGL_", "libEGL_takt"), past("libGLX_", "libGLX_takt"));
    let ours = uses.has_takt();
    if egl || glx || (!ours && libraries.have_any(&GL)) {
        return Some(why_past(process, Past { egl, glx }, ways));
    }
    Some(match uses {
        _ if libraries.have_any(&VIDEO) && uses.device => Cause::Video,
        _ if ours => Cause::Idle,
        Uses { device: true, .. } => Cause::Device,
        _ => Cause::Processor,
    })
}

fn computes(uses: &Uses) -> bool {
    let drivers = ["libpocl", "libMesaOpenCL", "libRusticlOpenCL", "libnvidia-opencl", "libamdocl"];
    !uses.seen && uses.libraries.has("libOpenCL.so") && uses.libraries.have_any(&drivers)
}

/// By which ways a driver of GL was loaded past Takt; by neither if a library of GL has other names.
#[derive(Clone, Copy, Default, Debug)]
struct Past {
    egl: bool,
    glx: bool,
}

/// Why a driver of GL is there, and Takt is not in front of it.
fn why_past(process: u32, past: Past, ways: &Ways) -> Cause {
    let own = PathBuf::from(format!("/proc/{process}"));
    let hidden = |files: &PathBuf| {
        let inside = files.strip_prefix("/").map(|files| own.join("root").join(files));
        own.join("root").exists() && inside.is_ok_and(|files| !files.exists())
    };
    if program::is_for_32_bits(&program::head(&own.join("exe"))) {
        return Cause::Bits32;
    }
    if let Some(gain) = program::gain(&own.join("exe")).filter(|gain| past.glx || gain.keeps_out(ways.way)) {
        return Cause::Gains(gain);
    }
    if ways.files.as_ref().is_some_and(hidden) {
        return Cause::Sandbox;
    }
    let lacks = |name: &str| ways.lacks(process, name);
    match ways.way {
        Way::Preload if lacks(hook::PRELOAD) => Cause::Environment,
        Way::Preload if past.glx && !past.egl => Cause::Glx,
        Way::Preload => Cause::OwnGl,
        _ if !past.glx && lacks(hook::FILENAMES) => Cause::Environment,
        _ if past.glx && lacks(hook::glx::NAME) => Cause::Environment,
        _ if past.glx && lacks(hook::PATH) => Cause::Path,
        _ => Cause::OwnGl,
    }
}

fn remedy(cause: Cause, name: &str, libraries: &MappedLibraries, ways: &Ways) -> String {
    match cause {
        Cause::Vulkan => match of_toolkit(name, libraries) {
            Some(setting) => format!("have it draw with GL: {setting}"),
            None => "choose its GL or GL ES renderer, if it has one".to_owned(),
        },
        Cause::OpenCl => "use CUDA, or ask for time with libtakt (docs/capi.md)".to_owned(),
        Cause::Sandbox => {
            let files = ways.files.as_deref().unwrap_or_else(|| Path::new("~/.cache/takt/hook")).display();
            format!("have the sandbox show {files} read-only, and the daemon's socket (docs/programs.md)")
        }
        Cause::Environment => {
            "put takt run in front of the program itself instead of what starts it".to_owned()
        }
        Cause::Path => {
            "have what sets LD_LIBRARY_PATH keep what is there (LD_LIBRARY_PATH=OWN:$LD_LIBRARY_PATH)"
                .to_owned()
        }
        Cause::Gains(Gain::Capabilities) => "run a copy, which has no capabilities".to_owned(),
        Cause::Gains(gain) => gain.remedy().to_owned(),
        Cause::Bits32 => "use a build for 64 bits".to_owned(),
        Cause::OwnGl => "try --hook preload, or have it use the system's libEGL and libGL".to_owned(),
        Cause::Glx => {
            "have it use EGL (SDL_VIDEO_X11_FORCE_EGL=1, QT_XCB_GL_INTEGRATION=xcb_egl), or install libglvnd"
                .to_owned()
        }
        Cause::Video => "nothing is to be done about it yet".to_owned(),
        Cause::Device => "takt doctor -- COMMAND says what Takt sees of it".to_owned(),
        Cause::Static => "use a dynamically linked build".to_owned(),
        Cause::Processor | Cause::Idle => "if it should use a GPU, look at its settings".to_owned(),
    }
}

/// How programs of a toolkit are told to draw with GL.
fn of_toolkit(name: &str, libraries: &MappedLibraries) -> Option<&'static str> {
    let is_of = |starts: &[&str]| libraries.have_any(starts);
    match name {
        "mpv" => Some("--gpu-api=opengl"),
        _ if is_of(&["libgtk-4"]) => Some("GSK_RENDERER=gl"),
        _ if is_of(&["libQt6Quick", "libQt5Quick"]) => Some("QSG_RHI_BACKEND=opengl"),
        _ if is_of(&["libSDL2", "libSDL3"]) => Some("SDL_RENDER_DRIVER=opengl"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::uses::WindowSystem;

    const X11: Option<WindowSystem> = Some(WindowSystem::X11);

    fn ways() -> Ways {
        Ways { way: Way::Vendor, variables: Vec::new(), files: None }
    }

    fn of(names: &[&str], window: Option<WindowSystem>, device: bool) -> Option<Cause> {
        let libraries = MappedLibraries(names.iter().map(|name| (*name).to_owned()).collect());
        let uses = Uses { seen: false, window, device, libraries };
        cause(std::process::id(), &uses, &ways())
    }

    #[test]
    fn causes_are_told_apart_by_libraries() {
        assert_eq!(of(&["libvulkan.so.1", "libvulkan_lvp.so"], X11, false), Some(Cause::Vulkan));
        assert_eq!(
            of(&["libvulkan.so.1", "libEGL_takt.so", "libEGL_mesa.so.0"], X11, false),
            Some(Cause::Idle)
        );
        assert_eq!(of(&["libEGL_mesa.so.0.0.0", "libc.so.6"], X11, false), Some(Cause::OwnGl));
        assert_eq!(
            of(&["libEGL_takt.so", "libEGL_mesa.so.0", "libGLX_mesa.so.0"], X11, false),
            Some(Cause::OwnGl)
        );
        assert_eq!(of(&["libc.so.6"], X11, false), Some(Cause::Processor));
        assert_eq!(of(&["libc.so.6"], X11, true), Some(Cause::Device));
        assert_eq!(of(&["libva-drm.so.2"], None, true), Some(Cause::Video));
        assert_eq!(of(&[], None, true), Some(Cause::Static));
        assert_eq!(of(&["libOpenCL.so.1", "libpocl.so.2"], None, false), Some(Cause::OpenCl));
        assert_eq!(of(&["libc.so.6", "libEGL_mesa.so.0"], None, false), None, "it shows and uses nothing");
        assert_eq!(of(&["libtakt.so.0"], X11, true), None, "it asks by itself");
    }

    #[test]
    fn an_environment_without_ours_is_named() {
        let own = std::process::id();
        let [egl, glx] = [(true, false), (false, true)].map(|(egl, glx)| Past { egl, glx });
        let variable = |name: &'static str, value: &str| (name, value.to_owned());
        let lacking = |variables: &[(&'static str, String)]| Ways { variables: variables.to_vec(), ..ways() };
        let vendor = lacking(&[variable(hook::FILENAMES, "/takt.json:/driver.json")]);
        assert_eq!(why_past(own, egl, &vendor), Cause::Environment);
        assert_eq!(why_past(own, glx, &vendor), Cause::OwnGl, "GLX does not need it");
        let both = [variable(hook::glx::NAME, "takt"), variable(hook::PATH, "/takt/glx:/other")];
        assert_eq!(why_past(own, glx, &lacking(&both)), Cause::Environment);
        assert_eq!(why_past(own, glx, &lacking(&both[1..])), Cause::Path);
        assert_eq!(why_past(own, egl, &lacking(&both)), Cause::OwnGl);
        let hidden = Ways { files: Some("/no/such/folder/of/takt".into()), ..vendor };
        assert_eq!(why_past(own, egl, &hidden), Cause::Sandbox);
        let preloaded = Ways { way: Way::Preload, ..ways() };
        assert_eq!(why_past(own, glx, &preloaded), Cause::Glx);
        let preloaded = Ways { variables: vec![variable(hook::PRELOAD, "/takt.so")], ..preloaded };
        assert_eq!(why_past(own, glx, &preloaded), Cause::Environment);
    }

    #[test]
    fn only_our_parts_of_lists_are_missed() {
        // What tests are started with anyhow.
        let path = std::env::var("PATH").expect("tests have one");
        let first = path.split(':').next().expect("a part").to_owned();
        let of = |value: String, files: &str| Ways {
            variables: vec![("PATH", value)],
            files: Some(files.into()),
            ..ways()
        };
        let own = std::process::id();
        assert!(!of(format!("{first}:/not/there"), &first).lacks(own, "PATH"));
        assert!(of(format!("/not/there:{first}"), "/not").lacks(own, "PATH"));
        assert!(!of("/not/there".to_owned(), "/not").lacks(own, "OTHER"), "nothing is wanted of it");
        assert!(of("takt".to_owned(), "/not").lacks(own, "PATH"), "a word is no path of others");
    }

    #[test]
    fn remedies_fit_the_program() {
        let gtk = MappedLibraries(vec!["libgtk-4.so.1".to_owned()]);
        assert!(remedy(Cause::Vulkan, "editor", &gtk, &ways()).contains("GSK_RENDERER=gl"));
        assert!(
            remedy(Cause::Vulkan, "mpv", &MappedLibraries::default(), &ways()).contains("--gpu-api=opengl")
        );
        assert!(!remedy(Cause::Vulkan, "vkcube", &MappedLibraries::default(), &ways()).contains('='));
    }
}
