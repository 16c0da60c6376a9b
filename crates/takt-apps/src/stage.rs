//! Where an app draws: a display of EGL, and on it a surface with a context.

use std::ffi::c_void;

use anyhow::{Context as _, bail};
use takt_gl_api::egl;
use takt_gl_driver::{Egl, Fences, Gl};

use crate::options::{Options, Platform, Priority, Size};
use crate::sys::{wayland, x11};

/// A display that is ready for contexts; a handle that threads may copy.
#[derive(Clone)]
pub(crate) struct Display {
    egl: Egl,
    handle: usize,
    config: usize,
    /// What it is, for people.
    pub(crate) platform: String,
}

/// What connects a display to the screen.
pub(crate) enum Connection {
    /// Nothing is shown.
    OffScreen,
    X11(x11::X11Connection),
    Wayland(wayland::WaylandConnection),
}

enum Window {
    OffScreen,
    X11(x11::X11Window),
    Wayland(wayland::WaylandWindow),
}

/// Opens the display that the options ask for.
pub(crate) fn open(options: &Options) -> anyhow::Result<(Display, Connection)> {
    let egl = Egl::load()?;
    match choose(options.platform) {
        Platform::X11 => {
            let connection = x11::X11Connection::open()?;
            let display = egl.platform_display(egl::PLATFORM_X11_KHR, connection.native());
            let display = Display::start(egl, display, "x11", egl::WINDOW_BIT, options)?;
            Ok((display, Connection::X11(connection)))
        }
        Platform::Wayland => {
            let connection = wayland::WaylandConnection::open()?;
            let display = egl.platform_display(egl::PLATFORM_WAYLAND_KHR, connection.native());
            let display = Display::start(egl, display, "wayland", egl::WINDOW_BIT, options)?;
            Ok((display, Connection::Wayland(connection)))
        }
        Platform::Surfaceless => Ok((surfaceless(egl, options)?, Connection::OffScreen)),
        Platform::Device(number) => Ok((device(egl, number, options)?, Connection::OffScreen)),
        Platform::OffScreen | Platform::Auto => {
            let display = device(egl, None, options).or_else(|first| {
                surfaceless(egl, options).map_err(|error| error.context(format!("{first:#}; then")))
            });
            Ok((display?, Connection::OffScreen))
        }
    }
}

fn choose(wanted: Platform) -> Platform {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match wanted {
        Platform::Auto if set("WAYLAND_DISPLAY") => Platform::Wayland,
        Platform::Auto if set("DISPLAY") => Platform::X11,
        Platform::Auto => Platform::OffScreen,
        other => other,
    }
}

fn surfaceless(egl: Egl, options: &Options) -> anyhow::Result<Display> {
    let display = egl.platform_display(egl::PLATFORM_SURFACELESS_MESA, std::ptr::null::<c_void>());
    Display::start(egl, display, "surfaceless", egl::PBUFFER_BIT, options)
}

fn device(egl: Egl, number: Option<usize>, options: &Options) -> anyhow::Result<Display> {
    let devices = egl.devices();
    if let Some(number) = number.filter(|&number| number >= devices.len()) {
        bail!("there is no device {number}: EGL offers {} (counted from 0)", devices.len());
    }
    let mut problem =
        anyhow::anyhow!("EGL offers no device; is a driver installed (Debian: libgl1-mesa-dri)?");
    for (index, &device) in devices.iter().enumerate() {
        if number.is_some_and(|number| number != index) {
            continue;
        }
        let display = egl.platform_display(egl::PLATFORM_DEVICE_EXT, device);
        match Display::start(egl, display, &format!("device:{index}"), egl::PBUFFER_BIT, options) {
            Ok(display) => return Ok(display),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

impl Display {
    fn start(egl: Egl, handle: usize, name: &str, surface: i32, options: &Options) -> anyhow::Result<Self> {
        if handle == 0 {
            bail!("EGL has no display of the platform {name} (error {:#x})", egl.error());
        }
        if !egl.initialise(handle) {
            bail!("EGL cannot start the display {name} (error {:#x})", egl.error());
        }
        if egl.bind_api(egl::OPENGL_ES_API) == 0 {
            bail!("the driver of {name} has no GL ES (error {:#x})", egl.error());
        }
        let samples = i32::try_from(options.msaa).unwrap_or(i32::MAX);
        let attributes = [
            [egl::SURFACE_TYPE, surface],
            [egl::RENDERABLE_TYPE, egl::OPENGL_ES2_BIT],
            [egl::RED_SIZE, 8],
            [egl::GREEN_SIZE, 8],
            [egl::BLUE_SIZE, 8],
            [egl::DEPTH_SIZE, 16],
            [egl::SAMPLE_BUFFERS, i32::from(samples > 0)],
            [egl::SAMPLES, samples],
        ];
        let mut list: Vec<i32> = attributes.into_iter().flatten().collect();
        list.push(egl::NONE);
        let configs = egl.configs(handle, &list);
        // Eight bits, so that pixels are the same on every platform, and no alpha, lest a compositor
        // shows what is behind the window; EGL lists deeper ones first.
        let value = |config: usize, attribute| egl.config_value(handle, config, attribute);
        let plain =
            |config: &&usize| value(**config, egl::RED_SIZE) == 8 && value(**config, egl::ALPHA_SIZE) == 0;
        let Some(&config) = configs.iter().find(plain).or_else(|| configs.first()) else {
            let hint = if samples > 0 { "; try a smaller --msaa" } else { "" };
            bail!("{name} has no configuration with RGB 8, depth 16 and {samples} samples{hint}");
        };
        let platform = format!("{name} ({})", egl.string(handle, egl::VENDOR));
        Ok(Self { egl, handle, config, platform })
    }

    /// A new context, which may share objects with another one.
    pub(crate) fn context(
        &self,
        share: Option<Context>,
        priority: Option<Priority>,
    ) -> anyhow::Result<Context> {
        let mut list = vec![egl::CONTEXT_CLIENT_VERSION, 2];
        if let Some(priority) = priority {
            let name = "EGL_IMG_context_priority";
            if !self.egl.has(self.handle, name) {
                bail!("{} does not offer {name}: leave --egl-priority out", self.platform);
            }
            list.extend([egl::CONTEXT_PRIORITY_LEVEL_IMG, priority.level()]);
        }
        list.push(egl::NONE);
        let share = share.map_or(0, |context| context.0);
        let context = self.egl.new_context(self.handle, self.config, share, &list);
        if context == 0 {
            bail!("EGL cannot make a context of GL ES 2.0 (error {:#x})", self.egl.error());
        }
        Ok(Context(context))
    }

    /// Ends the display; all stages on it are gone.
    pub(crate) fn close(&self) {
        self.egl.terminate(self.handle);
        self.egl.release_thread();
    }
}

/// A context that is current nowhere yet.
#[derive(Clone, Copy)]
pub(crate) struct Context(usize);

/// A surface with a context, current on the thread that made it.
pub(crate) struct Stage {
    pub(crate) gl: Gl,
    /// For measuring without waiting; nothing if the driver cannot.
    pub(crate) fences: Option<Fences>,
    display: Display,
    surface: usize,
    context: Context,
    // Last: it goes after its surface.
    window: Window,
}

impl Stage {
    /// A window or an off-screen surface, with the context current.
    pub(crate) fn new(
        display: &Display,
        connection: Connection,
        context: Context,
        title: &str,
        size: Size,
    ) -> anyhow::Result<Self> {
        let (egl, handle, config) = (display.egl, display.handle, display.config);
        let visual = egl.config_value(handle, config, egl::NATIVE_VISUAL_ID);
        let size = (size.0, size.1);
        let window = match connection {
            Connection::OffScreen => Window::OffScreen,
            Connection::X11(connection) => Window::X11(connection.window(title, size, visual)?),
            Connection::Wayland(connection) => Window::Wayland(connection.window(title, size)?),
        };
        let surface = match &window {
            Window::OffScreen => {
                let length = |length| i32::try_from(length).unwrap_or(i32::MAX);
                let list = [egl::WIDTH, length(size.0), egl::HEIGHT, length(size.1), egl::NONE];
                egl.new_pbuffer(handle, config, &list)
            }
            Window::X11(window) => egl.new_window(handle, config, window.native()),
            Window::Wayland(window) => egl.new_window(handle, config, window.native()),
        };
        if surface == 0 {
            bail!("EGL cannot make a surface of {}x{} (error {:#x})", size.0, size.1, egl.error());
        }
        egl.bind_api(egl::OPENGL_ES_API);
        if egl.make_current(handle, surface, surface, context.0) == 0 {
            bail!("EGL cannot make the context current (error {:#x})", egl.error());
        }
        let gl = Gl::load().context("the context has no GL ES")?;
        let fences = Fences::new(&egl, handle);
        Ok(Self { gl, fences, display: display.clone(), surface, context, window })
    }

    /// Takes events; the size to draw, or nothing once the window is closed.
    pub(crate) fn poll(&mut self) -> Option<(u32, u32)> {
        match &mut self.window {
            Window::OffScreen => Some(self.size()),
            Window::X11(window) => window.poll(),
            Window::Wayland(window) => window.poll(),
        }
    }

    /// Size of the surface.
    pub(crate) fn size(&self) -> (u32, u32) {
        self.display.egl.surface_size(self.display.handle, self.surface)
    }

    /// Hands the frame over.
    pub(crate) fn swap(&self) -> anyhow::Result<()> {
        if self.display.egl.swap_buffers(self.display.handle, self.surface) == 0 {
            bail!("EGL cannot swap buffers (error {:#x})", self.display.egl.error());
        }
        if matches!(self.window, Window::OffScreen) {
            // Swapping means nothing to such a surface, so the driver may not even begin.
            self.gl.flush();
        }
        Ok(())
    }

    /// How many refreshes a swap waits for.
    pub(crate) fn set_swap_interval(&self, refreshes: u32) {
        self.display.egl.swap_interval(self.display.handle, i32::try_from(refreshes).unwrap_or(1));
    }

    /// Driver and version.
    pub(crate) fn renderer(&self) -> String {
        format!("{}, {}", self.gl.renderer(), self.gl.version())
    }

    /// The priority that the driver gave.
    pub(crate) fn priority(&self) -> &'static str {
        let (egl, display) = (&self.display.egl, self.display.handle);
        Priority::name(egl.context_value(display, self.context.0, egl::CONTEXT_PRIORITY_LEVEL_IMG))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let (egl, display) = (&self.display.egl, self.display.handle);
        egl.make_current(display, 0, 0, 0);
        egl.destroy_surface(display, self.surface);
        egl.destroy_context(display, self.context.0);
        if !matches!(self.window, Window::OffScreen) {
            // The display must not outlive the connection, which goes with the window.
            self.display.close();
        }
    }
}
