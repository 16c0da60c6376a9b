//! A Wayland client that does what a test says, and remembers what it hears.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use wayland_client::backend::WaylandError;
use wayland_client::protocol::{
    wl_buffer, wl_callback, wl_compositor, wl_keyboard, wl_output, wl_pointer, wl_region, wl_registry,
    wl_seat, wl_shm, wl_shm_pool, wl_subcompositor, wl_subsurface, wl_surface, wl_touch,
};
use wayland_client::{Connection, Dispatch, EventQueue, QueueHandle, WEnum, delegate_noop};
use wayland_protocols::wp::presentation_time::client::{wp_presentation, wp_presentation_feedback};
use wayland_protocols::wp::viewporter::client::{wp_viewport, wp_viewporter};
use wayland_protocols::xdg::shell::client::{
    xdg_popup, xdg_positioner, xdg_surface, xdg_toplevel, xdg_wm_base,
};

use crate::PATIENCE;

/// What the client has heard.
#[derive(Default, Debug)]
pub(crate) struct Heard {
    /// Globals: name, interface, version.
    pub(crate) globals: Vec<(u32, String, u32)>,
    /// Sizes that windows were told to have.
    pub(crate) configured: Vec<(i32, i32)>,
    /// Frame callbacks that were done: their number, and the time.
    pub(crate) done: Vec<(u32, u32)>,
    /// Feedback by number.
    pub(crate) feedback: BTreeMap<u32, Feedback>,
    /// Outputs that surfaces entered and left.
    pub(crate) entered: u32,
    pub(crate) left: u32,
    /// Buffers that came back.
    pub(crate) released: u32,
    pub(crate) closed: u32,
    /// What input devices there are, as bits, and what they did, one line each.
    pub(crate) capabilities: u32,
    pub(crate) input: Vec<String>,
}

/// What became of a picture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Feedback {
    /// Seen at that time in nanoseconds, at the refresh of that number, with that time between two.
    Presented { at_ns: u64, sequence: u64, refresh_ns: u32 },
    /// Never seen.
    Discarded,
}

/// A client.
pub(crate) struct Client {
    pub(crate) heard: Heard,
    pub(crate) connection: Connection,
    queue: EventQueue<Heard>,
    pub(crate) handle: QueueHandle<Heard>,
    pub(crate) compositor: wl_compositor::WlCompositor,
    pub(crate) subcompositor: wl_subcompositor::WlSubcompositor,
    pub(crate) shm: wl_shm::WlShm,
    pub(crate) shell: Option<xdg_wm_base::XdgWmBase>,
    pub(crate) presentation: wp_presentation::WpPresentation,
    pub(crate) viewporter: wp_viewporter::WpViewporter,
    counted: u32,
}

/// A window.
pub(crate) struct Window {
    pub(crate) surface: wl_surface::WlSurface,
    pub(crate) xdg: xdg_surface::XdgSurface,
    pub(crate) toplevel: xdg_toplevel::XdgToplevel,
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> Self {
        let connection = Connection::from_socket(stream).expect("a connection");
        let mut queue = connection.new_event_queue();
        let handle = queue.handle();
        let registry = connection.display().get_registry(&handle, ());
        let mut heard = Heard::default();
        queue.roundtrip(&mut heard).expect("globals");
        let find = |interface: &str| heard.globals.iter().find(|(_, name, _)| name == interface).cloned();
        let name =
            |interface: &str| find(interface).map_or_else(|| panic!("{interface} is offered"), |it| it.0);
        let shell = find("xdg_wm_base").map(|(name, ..)| registry.bind(name, 3, &handle, ()));
        let _outputs: Vec<wl_output::WlOutput> = heard
            .globals
            .iter()
            .filter(|(_, interface, _)| interface == "wl_output")
            .map(|(name, ..)| registry.bind(*name, 4, &handle, ()))
            .collect();
        Self {
            compositor: registry.bind(name("wl_compositor"), 4, &handle, ()),
            subcompositor: registry.bind(name("wl_subcompositor"), 1, &handle, ()),
            shm: registry.bind(name("wl_shm"), 1, &handle, ()),
            presentation: registry.bind(name("wp_presentation"), 1, &handle, ()),
            viewporter: registry.bind(name("wp_viewporter"), 1, &handle, ()),
            shell,
            heard,
            connection,
            queue,
            handle,
            counted: 0,
        }
    }

    /// Listens to input devices from now on.
    pub(crate) fn listen(&mut self) {
        let registry = self.connection.display().get_registry(&self.handle, ());
        let seat = self.heard.globals.iter().find(|(_, name, _)| name == "wl_seat").expect("wl_seat").0;
        let _seat: wl_seat::WlSeat = registry.bind(seat, 5, &self.handle, ());
        self.roundtrip();
        // Devices that it was told of are asked for by now.
        self.roundtrip();
    }

    /// A number that no callback or feedback of this client has.
    fn next(&mut self) -> u32 {
        self.counted += 1;
        self.counted
    }

    pub(crate) fn surface(&self) -> wl_surface::WlSurface {
        self.compositor.create_surface(&self.handle, ())
    }

    /// A window that has been told its size.
    pub(crate) fn window(&mut self, app_id: &str) -> Window {
        let window = self.unconfigured(app_id);
        let before = self.heard.configured.len();
        window.surface.commit();
        self.until("configured", |heard| heard.configured.len() > before);
        window
    }

    pub(crate) fn unconfigured(&self, app_id: &str) -> Window {
        let surface = self.surface();
        let shell = self.shell.as_ref().expect("xdg_wm_base is offered");
        let xdg = shell.get_xdg_surface(&surface, &self.handle, ());
        let toplevel = xdg.get_toplevel(&self.handle, ());
        toplevel.set_app_id(app_id.to_owned());
        Window { surface, xdg, toplevel }
    }

    /// A buffer with these pixels, as 0xAARRGGBB.
    pub(crate) fn buffer(
        &self,
        width: i32,
        height: i32,
        pixel: impl Fn(i32, i32) -> u32,
    ) -> wl_buffer::WlBuffer {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let bytes: Vec<u8> = pixels.flat_map(|(x, y)| pixel(x, y).to_le_bytes()).collect();
        let file = memory(&bytes);
        let size = i32::try_from(bytes.len()).expect("small");
        let pool = self.shm.create_pool(file.as_fd(), size, &self.handle, ());
        let format = wl_shm::Format::Argb8888;
        let buffer = pool.create_buffer(0, width, height, width * 4, format, &self.handle, ());
        pool.destroy();
        buffer
    }

    /// Attaches a buffer of one colour, and commits it; the numbers of its callback and its feedback.
    pub(crate) fn paint(
        &mut self,
        surface: &wl_surface::WlSurface,
        size: (i32, i32),
        colour: u32,
    ) -> (u32, u32) {
        let buffer = self.buffer(size.0, size.1, |_, _| colour);
        surface.attach(Some(&buffer), 0, 0);
        surface.damage_buffer(0, 0, size.0, size.1);
        self.commit(surface)
    }

    /// Commits; the numbers of the callback and of the feedback.
    pub(crate) fn commit(&mut self, surface: &wl_surface::WlSurface) -> (u32, u32) {
        let (callback, feedback) = (self.next(), self.next());
        surface.frame(&self.handle, callback);
        self.presentation.feedback(surface, &self.handle, feedback);
        surface.commit();
        self.flush();
        (callback, feedback)
    }

    /// Waits until a picture was seen; when, and at which refresh.
    pub(crate) fn presented(&mut self, feedback: u32) -> (u64, u64) {
        self.until("presented", |heard| heard.feedback.contains_key(&feedback));
        match self.heard.feedback[&feedback] {
            Feedback::Presented { at_ns, sequence, .. } => (at_ns, sequence),
            Feedback::Discarded => panic!("feedback {feedback} was discarded"),
        }
    }

    pub(crate) fn flush(&self) {
        // A connection that was cut is what some tests want.
        self.connection.flush().unwrap_or_default();
    }

    /// Waits until it has heard something.
    pub(crate) fn until(&mut self, what: &str, mut wanted: impl FnMut(&Heard) -> bool) {
        let until = Instant::now() + PATIENCE;
        while !wanted(&self.heard) {
            assert!(Instant::now() < until, "{what} in time: {:?}", self.heard);
            self.turn().unwrap_or_else(|error| panic!("{what}: {error}; heard {:?}", self.heard));
        }
    }

    /// Waits until the compositor has ended the connection; what it said.
    pub(crate) fn until_cut(&mut self) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            assert!(Instant::now() < until, "it is cut in time");
            if let Err(error) = self.turn() {
                return self.connection.protocol_error().map_or(error, |error| error.message);
            }
        }
    }

    /// Hears what there is, and waits a moment if there is nothing.
    pub(crate) fn turn(&mut self) -> Result<(), String> {
        self.turn_within(20_000_000)
    }

    /// Hears what there is.
    pub(crate) fn turn_at_once(&mut self) -> Result<(), String> {
        self.turn_within(0)
    }

    fn turn_within(&mut self, moment_ns: i64) -> Result<(), String> {
        self.queue.dispatch_pending(&mut self.heard).map_err(|error| error.to_string())?;
        self.connection.flush().map_err(|error| error.to_string())?;
        let Some(guard) = self.queue.prepare_read() else {
            return Ok(());
        };
        let fd = guard.connection_fd();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let moment = rustix::time::Timespec { tv_sec: 0, tv_nsec: moment_ns };
        if rustix::event::poll(&mut fds, Some(&moment)).is_ok_and(|ready| ready > 0) {
            match guard.read() {
                // Another thread may have read it, or it was no event yet.
                Err(WaylandError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => drop(read.map_err(|error| error.to_string())?),
            }
        }
        Ok(())
    }

    pub(crate) fn roundtrip(&mut self) {
        self.queue.roundtrip(&mut self.heard).expect("an answer");
    }
}

/// A file in memory.
pub(crate) fn memory(bytes: &[u8]) -> OwnedFd {
    let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a file");
    std::fs::File::from(file.try_clone().expect("ours")).write_all(bytes).expect("written");
    file
}

/// Waits for something outside of the protocol.
pub(crate) fn patiently<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what} in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

impl Dispatch<wl_registry::WlRegistry, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_registry::WlRegistry,
        event: wl_registry::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wl_registry::Event::Global { name, interface, version } = event {
            heard.globals.push((name, interface, version));
        }
    }
}

impl Dispatch<wl_callback::WlCallback, u32> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_callback::WlCallback,
        event: wl_callback::Event,
        number: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wl_callback::Event::Done { callback_data } = event {
            heard.done.push((*number, callback_data));
        }
    }
}

impl Dispatch<wl_surface::WlSurface, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_surface::WlSurface,
        event: wl_surface::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            wl_surface::Event::Enter { .. } => heard.entered += 1,
            wl_surface::Event::Leave { .. } => heard.left += 1,
            _ => {}
        }
    }
}

impl Dispatch<wl_buffer::WlBuffer, ()> for Heard {
    fn event(
        heard: &mut Self,
        buffer: &wl_buffer::WlBuffer,
        event: wl_buffer::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let wl_buffer::Event::Release = event {
            heard.released += 1;
            buffer.destroy();
        }
    }
}

impl Dispatch<xdg_surface::XdgSurface, ()> for Heard {
    fn event(
        _: &mut Self,
        surface: &xdg_surface::XdgSurface,
        event: xdg_surface::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_surface::Event::Configure { serial } = event {
            surface.ack_configure(serial);
        }
    }
}

impl Dispatch<xdg_toplevel::XdgToplevel, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &xdg_toplevel::XdgToplevel,
        event: xdg_toplevel::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        match event {
            xdg_toplevel::Event::Configure { width, height, .. } => heard.configured.push((width, height)),
            xdg_toplevel::Event::Close => heard.closed += 1,
            _ => {}
        }
    }
}

impl Dispatch<xdg_wm_base::XdgWmBase, ()> for Heard {
    fn event(
        _: &mut Self,
        shell: &xdg_wm_base::XdgWmBase,
        event: xdg_wm_base::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        if let xdg_wm_base::Event::Ping { serial } = event {
            shell.pong(serial);
        }
    }
}

impl Dispatch<wp_presentation_feedback::WpPresentationFeedback, u32> for Heard {
    fn event(
        heard: &mut Self,
        _: &wp_presentation_feedback::WpPresentationFeedback,
        event: wp_presentation_feedback::Event,
        number: &u32,
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        use wp_presentation_feedback::Event;
        let wide = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
        match event {
            Event::Presented { tv_sec_hi, tv_sec_lo, tv_nsec, refresh, seq_hi, seq_lo, .. } => {
                let at_ns = wide(tv_sec_hi, tv_sec_lo) * 1_000_000_000 + u64::from(tv_nsec);
                let presented =
                    Feedback::Presented { at_ns, sequence: wide(seq_hi, seq_lo), refresh_ns: refresh };
                heard.feedback.insert(*number, presented);
            }
            Event::Discarded => drop(heard.feedback.insert(*number, Feedback::Discarded)),
            _ => {}
        }
    }
}

impl Dispatch<wl_seat::WlSeat, ()> for Heard {
    fn event(
        heard: &mut Self,
        seat: &wl_seat::WlSeat,
        event: wl_seat::Event,
        (): &(),
        _: &Connection,
        handle: &QueueHandle<Self>,
    ) {
        if let wl_seat::Event::Capabilities { capabilities } = event {
            heard.capabilities = u32::from(capabilities);
            let has = |one: wl_seat::Capability| heard.capabilities & u32::from(one) != 0;
            if has(wl_seat::Capability::Pointer) {
                seat.get_pointer(handle, ());
            }
            if has(wl_seat::Capability::Keyboard) {
                seat.get_keyboard(handle, ());
            }
            if has(wl_seat::Capability::Touch) {
                seat.get_touch(handle, ());
            }
        }
    }
}

impl Dispatch<wl_touch::WlTouch, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_touch::WlTouch,
        event: wl_touch::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        heard.input.push(match event {
            wl_touch::Event::Down { id, x, y, .. } => format!("touch {id} down at {x},{y}"),
            wl_touch::Event::Motion { id, x, y, .. } => format!("touch {id} at {x},{y}"),
            wl_touch::Event::Up { id, .. } => format!("touch {id} up"),
            wl_touch::Event::Cancel => "touch cancel".to_owned(),
            _ => return,
        });
    }
}

impl Dispatch<wl_pointer::WlPointer, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_pointer::WlPointer,
        event: wl_pointer::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        heard.input.push(match event {
            wl_pointer::Event::Enter { surface_x, surface_y, .. } => {
                format!("pointer enter at {surface_x},{surface_y}")
            }
            wl_pointer::Event::Leave { .. } => "pointer leave".to_owned(),
            wl_pointer::Event::Motion { surface_x, surface_y, .. } => {
                format!("pointer at {surface_x},{surface_y}")
            }
            wl_pointer::Event::Button { button, state, .. } => {
                let pressed = state == WEnum::Value(wl_pointer::ButtonState::Pressed);
                format!("button {button} {}", if pressed { "down" } else { "up" })
            }
            wl_pointer::Event::Axis { value, .. } => format!("scroll {value}"),
            _ => return,
        });
    }
}

impl Dispatch<wl_keyboard::WlKeyboard, ()> for Heard {
    fn event(
        heard: &mut Self,
        _: &wl_keyboard::WlKeyboard,
        event: wl_keyboard::Event,
        (): &(),
        _: &Connection,
        _: &QueueHandle<Self>,
    ) {
        heard.input.push(match event {
            wl_keyboard::Event::Enter { .. } => "keys enter".to_owned(),
            wl_keyboard::Event::Leave { .. } => "keys leave".to_owned(),
            wl_keyboard::Event::Key { key, state, .. } => {
                let pressed = state == WEnum::Value(wl_keyboard::KeyState::Pressed);
                format!("key {key} {}", if pressed { "down" } else { "up" })
            }
            _ => return,
        });
    }
}

delegate_noop!(Heard: wl_compositor::WlCompositor);
delegate_noop!(Heard: wl_subcompositor::WlSubcompositor);
delegate_noop!(Heard: wl_subsurface::WlSubsurface);
delegate_noop!(Heard: wl_region::WlRegion);
delegate_noop!(Heard: wl_shm_pool::WlShmPool);
delegate_noop!(Heard: xdg_positioner::XdgPositioner);
delegate_noop!(Heard: wp_viewporter::WpViewporter);
delegate_noop!(Heard: wp_viewport::WpViewport);
delegate_noop!(Heard: ignore wl_shm::WlShm);
delegate_noop!(Heard: ignore wl_output::WlOutput);
delegate_noop!(Heard: ignore xdg_popup::XdgPopup);
delegate_noop!(Heard: ignore wp_presentation::WpPresentation);
