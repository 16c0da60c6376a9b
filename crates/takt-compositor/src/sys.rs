//! Calls that the compiler cannot check: making a GL context, asking an input device, and preparing a process
//! before it executes a program.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Gid, Uid};
use smithay::backend::egl::{EGLContext, EGLDevice, EGLDisplay};
use smithay::backend::renderer::gles::GlesRenderer;
use takt_cockpit::input::evdev::{Axes, Axis};
use takt_os::users::Account;

/// Which device of EGL draws.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceChoice {
    /// A GPU if there is one, else a processor.
    #[default]
    Any,
    /// A GPU.
    Hardware,
    /// A processor.
    Software,
}

/// Why there is no GL.
#[derive(Debug, thiserror::Error)]
pub enum NoGl {
    /// No device that fits.
    #[error(
        "EGL knows no {0} device; install a driver (Debian: libegl-mesa0, libgl1-mesa-dri), or choose another"
    )]
    NoDevice(&'static str),
    /// EGL failed.
    #[error("EGL: {0}")]
    Egl(#[from] smithay::backend::egl::Error),
    /// GL failed.
    #[error("GL: {0}")]
    Gl(#[from] smithay::backend::renderer::gles::GlesError),
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// The thread ended.
    #[error("the thread of the output ended at once")]
    Ended,
}

/// A renderer of this thread's own, without a screen, and whether it works on the CPU. It must stay in the
/// thread.
pub fn renderer(choice: DeviceChoice) -> Result<(GlesRenderer, bool), NoGl> {
    let devices: Vec<EGLDevice> = EGLDevice::enumerate()?.collect();
    let hardware = devices.iter().find(|device| !device.is_software());
    let software = devices.iter().find(|device| device.is_software());
    let device = match choice {
        DeviceChoice::Any => hardware.or(software).ok_or(NoGl::NoDevice("usable"))?,
        DeviceChoice::Hardware => hardware.ok_or(NoGl::NoDevice("hardware"))?,
        DeviceChoice::Software => software.ok_or(NoGl::NoDevice("software"))?,
    };
    // SAFETY: the device came from EGL itself, and stays alive: the display keeps what it needs of it.
    let display = unsafe { EGLDisplay::new(device.clone()) }?;
    let context = EGLContext::new(&display)?;
    // SAFETY: the context is new, so it is current in no other thread.
    let renderer = unsafe { GlesRenderer::new(context) }?;
    Ok((renderer, device.is_software()))
}

/// Has a program run as a user, if one is given, and end with the thread that starts it.
pub fn prepare(command: &mut Command, account: Option<&Account>) {
    use rustix::process::{Signal, set_parent_process_death_signal};
    use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
    let ids = account.map(|account| {
        let groups: Vec<Gid> = account.groups.iter().map(|group| Gid::from_raw(*group)).collect();
        (Uid::from_raw(account.uid), Gid::from_raw(account.gid), groups)
    });
    let between = move || {
        if let Some((uid, gid, groups)) = &ids {
            // The process has this one thread.
            set_thread_groups(groups)?;
            set_thread_gid(*gid)?;
            set_thread_uid(*uid)?;
        }
        // Last, since another user would clear it.
        set_parent_process_death_signal(Some(Signal::TERM))?;
        Ok(())
    };
    // SAFETY: between fork and exec it makes system calls alone: it allocates nothing and takes no lock.
    unsafe { command.pre_exec(between) };
}

/// Has an input device tell the time of the monotonic clock.
pub fn use_monotonic_clock(device: &std::fs::File) -> rustix::io::Result<()> {
    /// `EVIOCSCLOCKID`.
    const SET_CLOCK: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<i32>(b'E', 0xA0);
    const MONOTONIC: i32 = 1;
    // SAFETY: the request reads an i32, which it is given.
    let set = unsafe { rustix::ioctl::Setter::<SET_CLOCK, i32>::new(MONOTONIC) };
    // SAFETY: the request keeps nothing of what it is given.
    unsafe { rustix::ioctl::ioctl(device, set) }
}

/// The axes of an input device that knows places: those of its fingers, or its own.
pub fn axes(device: &std::fs::File) -> Option<Axes> {
    let fingers = axis::<{ read_axis(0x35) }>(device).zip(axis::<{ read_axis(0x36) }>(device));
    let (x, y) =
        fingers.or_else(|| axis::<{ read_axis(0) }>(device).zip(axis::<{ read_axis(1) }>(device)))?;
    Some(Axes { x, y })
}

/// `struct input_absinfo`.
#[repr(C)]
#[derive(Clone, Copy)]
struct AxisInfo {
    value: i32,
    minimum: i32,
    maximum: i32,
    fuzz: i32,
    flat: i32,
    resolution: i32,
}

/// `EVIOCGABS` of an axis.
const fn read_axis(axis: u8) -> rustix::ioctl::Opcode {
    rustix::ioctl::opcode::read::<AxisInfo>(b'E', 0x40 + axis)
}

fn axis<const OPCODE: rustix::ioctl::Opcode>(device: &std::fs::File) -> Option<Axis> {
    // SAFETY: the request writes a struct of this layout, whose every value is one.
    let read = unsafe { rustix::ioctl::Getter::<OPCODE, AxisInfo>::new() };
    // SAFETY: the request keeps nothing of what it is given.
    let info = unsafe { rustix::ioctl::ioctl(device, read) }.ok()?;
    (info.maximum > info.minimum).then_some(Axis { min: info.minimum, max: info.maximum })
}
