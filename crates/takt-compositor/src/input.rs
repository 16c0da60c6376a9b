//! Input devices: each that has a file is read by a thread of its own.
//!
//! The file is one of `/dev/input`, or a pipe or a file with a recording of such events. A device that goes away
//! is looked for again; what it held counts as released. What it does goes to the manager, which decides who hears it.

use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::OFlags;
use takt_cockpit::config::{Cockpit as Config, Input};
use takt_cockpit::geometry::Size;
use takt_cockpit::input::Act;
use takt_cockpit::input::evdev::{Axes, EVENT_BYTES, Reader, Report};
use takt_core::{Span, Time};
use takt_os::clock;

use crate::mailbox::{Mailbox, Sender, mailbox};
use crate::manager::{InputNews, ToManager};
use crate::sys;

/// Events that are read at a time.
const EVENTS: usize = 64;
/// How soon a device that is not there is looked for again.
const RETRY: Span = Span::from_ms(500);
/// Events are no older than that when they are read, if the device has the clock of this system.
const AGE_MAX: Span = Span::from_ms(10_000);

/// Threads that read devices; they end when this is dropped.
#[derive(Debug, Default)]
pub struct Devices {
    threads: Vec<(Sender<()>, JoinHandle<()>)>,
}

impl Devices {
    /// Reads all devices of a configuration that have files.
    pub fn start(config: &Config, manager: &Sender<ToManager>) -> std::io::Result<Self> {
        let mut devices = Self::default();
        for (index, input) in config.inputs.iter().enumerate() {
            let Some(path) = &input.device else {
                continue;
            };
            let (end, ended) = mailbox(1)?;
            let size = config.outputs[input.output].size;
            let axes = Axes::of(input.range.unwrap_or(size));
            let (path, manager) = (path.into(), manager.clone());
            let mut device =
                Device { index, input: input.clone(), size, axes, path, manager, ended, lost: false };
            let thread = std::thread::Builder::new().name(format!("takt-{}", input.name));
            devices.threads.push((end, thread.spawn(move || device.run())?));
        }
        Ok(devices)
    }
}

impl Drop for Devices {
    fn drop(&mut self) {
        for (end, thread) in self.threads.drain(..) {
            // A thread that has ended already needs no word.
            end.send(()).unwrap_or_default();
            thread.join().unwrap_or_default();
        }
    }
}

/// A device, and the thread that reads it.
struct Device {
    index: usize,
    input: Input,
    size: Size,
    axes: Axes,
    path: std::path::PathBuf,
    manager: Sender<ToManager>,
    ended: Mailbox<()>,
    /// Whether what it did found no room.
    lost: bool,
}

/// An open device.
struct Open {
    file: std::fs::File,
    /// Whether its events have the time of the monotonic clock.
    has_clock: bool,
    axes: Option<Axes>,
    /// Whether its end is the end of a recording.
    ends: bool,
}

impl Device {
    fn run(&mut self) {
        let mut told = String::new();
        while self.ended.take().is_none() {
            let (said, is_over) = match Open::new(&self.path) {
                Ok(open) => {
                    self.tell(InputNews::State("it is read".to_owned()));
                    let axes = open.axes.filter(|_| self.input.range.is_none()).unwrap_or(self.axes);
                    let mut reader = Reader::new(self.input.kind, self.size, axes);
                    let why = self.read(&open, &mut reader);
                    self.send(vec![Report { at: clock::now(), acts: vec![Act::Reset] }]);
                    told.clear();
                    (why.to_string(), open.ends && why.kind() == ErrorKind::UnexpectedEof)
                }
                Err(error) => (error.to_string(), false),
            };
            // A device that is not there is told once.
            if told != said {
                self.tell(InputNews::State(said.clone()));
                told = said;
            }
            if is_over {
                return;
            }
            self.nap();
        }
    }

    /// Reads until it has no more; says why.
    fn read(&mut self, open: &Open, reader: &mut Reader) -> Error {
        let mut bytes = [0; EVENTS * EVENT_BYTES];
        loop {
            let mut fds = [PollFd::new(&open.file, PollFlags::IN), PollFd::new(&self.ended, PollFlags::IN)];
            // An interrupted sleep is a short one.
            poll(&mut fds, None).unwrap_or_default();
            if !fds[1].revents().is_empty() {
                return Error::other("the cockpit ends");
            }
            match (&open.file).read(&mut bytes) {
                Ok(0) => return Error::new(ErrorKind::UnexpectedEof, "it has no more"),
                Ok(length) => {
                    let now = clock::now();
                    let mut reports = reader.read(&bytes[..length]);
                    for report in &mut reports {
                        report.at = arrival(report.at, now, open.has_clock);
                    }
                    self.send(reports);
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                Err(error) => return error,
            }
        }
    }

    fn send(&mut self, mut reports: Vec<Report>) {
        if self.lost {
            reports.insert(0, Report { at: clock::now(), acts: vec![Act::Reset] });
        }
        if !reports.is_empty() {
            self.lost = self.manager.send(ToManager::Input(self.index, InputNews::Reports(reports))).is_err();
        }
    }

    fn tell(&self, news: InputNews) {
        // A manager that is gone or has no room hears it the next time.
        self.manager.send(ToManager::Input(self.index, news)).unwrap_or_default();
    }

    fn nap(&self) {
        let mut fds = [PollFd::new(&self.ended, PollFlags::IN)];
        poll(&mut fds, Some(&crate::timespec(RETRY))).unwrap_or_default();
    }
}

/// When something happened, as far as the device can be believed.
fn arrival(said: Time, now: Time, has_clock: bool) -> Time {
    if has_clock && said <= now && now.since(said) < AGE_MAX { said } else { now }
}

impl Open {
    fn new(path: &Path) -> std::io::Result<Self> {
        let kind = std::fs::metadata(path)?.file_type();
        if kind.is_dir() || kind.is_block_device() || kind.is_socket() {
            return Err(Error::other("it is no input device, no pipe and no file"));
        }
        let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
        // A pipe that is open for writing here has no end when its writer goes.
        let file =
            std::fs::OpenOptions::new().read(true).write(kind.is_fifo()).custom_flags(flags).open(path)?;
        let is_device = kind.is_char_device();
        let has_clock = is_device && sys::use_monotonic_clock(&file).is_ok();
        let axes = if is_device { sys::axes(&file) } else { None };
        Ok(Self { file, has_clock, axes, ends: kind.is_file() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_devices_are_believed_as_far_as_they_can_be() {
        let s = |s: u64| Time::from_ns(s * 1_000_000_000);
        assert_eq!(arrival(s(99), s(100), true), s(99));
        assert_eq!(arrival(s(99), s(100), false), s(100), "another clock");
        assert_eq!(arrival(s(101), s(100), true), s(100), "the future");
        assert_eq!(arrival(s(1), s(100), true), s(100), "long ago");
    }
}
