//! What tools ask of a running cockpit, and what it answers.
//!
//! Requests and replies are JSON objects, one per line, over the socket [`SOCKET`] in the folder of the
//! cockpit's sockets. The picture of a [`Reply::Shot`] follows its line, as so many bytes of PNG.

use serde::{Deserialize, Serialize};

use crate::geometry::{Rect, Size};
use crate::input::Act;
use crate::windows::{Motion, Order, Subject};

/// Name of the socket. Sockets of domains cannot have it: their names have no dot.
pub const SOCKET: &str = "admin.sock";
/// Longest request, with its end of line.
pub const REQUEST_BYTES_MAX: usize = 4096;
/// Longest reply, without the picture that may follow.
pub const REPLY_BYTES_MAX: usize = 4 << 20;
/// Largest picture that may follow a reply: a few times of what the largest display has.
pub const SHOT_BYTES_MAX: u64 = 4 << 30;

/// What a tool wants.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// How everything is.
    Status,
    /// Show a window.
    Show {
        /// Which one.
        window: Subject,
    },
    /// Do not show it.
    Hide {
        /// Which one.
        window: Subject,
    },
    /// Show it there.
    Place {
        /// Which one.
        window: Subject,
        /// Where; none is where its rule says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        area: Option<Rect>,
    },
    /// Make it that opaque.
    Opacity {
        /// Which one.
        window: Subject,
        /// 0 is not seen, 1 is fully opaque.
        opacity: f64,
    },
    /// Bring it in front of windows that matter as much.
    Raise {
        /// Which one.
        window: Subject,
    },
    /// Ask its client to close it.
    Close {
        /// Which one.
        window: Subject,
    },
    /// The vehicle moves, or stands.
    Motion {
        /// Which of both.
        motion: Motion,
    },
    /// An input device of a section without a file does something.
    Input {
        /// Its name.
        device: String,
        /// What it does, one after the other; [`ACTS_MAX`](crate::input::ACTS_MAX) at most.
        acts: Vec<Act>,
    },
    /// A picture of what an output shows.
    Shot {
        /// Its name.
        output: String,
        /// The part of it; none is all of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Rect>,
    },
}

impl Request {
    /// The order about a window that it is, if it is one.
    pub fn order(&self) -> Result<Option<(Subject, Order)>, String> {
        let (window, order) = match self {
            Self::Show { window } => (window, Order::Show),
            Self::Hide { window } => (window, Order::Hide),
            Self::Place { window, area } => (window, Order::Place(*area)),
            Self::Opacity { window, opacity } => (window, Order::Fade(steps(*opacity)?)),
            Self::Raise { window } => (window, Order::Raise),
            Self::Close { window } => (window, Order::Close),
            Self::Status | Self::Motion { .. } | Self::Input { .. } | Self::Shot { .. } => return Ok(None),
        };
        Ok(Some((window.clone(), order)))
    }
}

/// Opacity as displays blend it.
fn steps(opacity: f64) -> Result<u8, String> {
    if !(0.0..=1.0).contains(&opacity) {
        return Err(format!("opacity = {opacity}: use 0 to 1"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range")]
    let steps = (opacity * 255.0).round() as u8;
    Ok(steps)
}

/// The answer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum Reply {
    /// Done.
    Done,
    /// It is not possible.
    Refused {
        /// Why, in words.
        reason: String,
    },
    /// How everything is.
    Status(Status),
    /// A picture, whose bytes follow the line.
    Shot(Shot),
}

/// What a picture shows.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Shot {
    /// The output.
    pub output: String,
    /// Its width and height in pixels.
    pub size: Size,
    /// Number of the refresh from which on it was shown.
    pub refresh: u64,
    /// When that was, in nanoseconds of the monotonic clock.
    pub at_ns: u64,
    /// Bytes of PNG that follow the line.
    pub bytes: u64,
}

/// How everything is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Status {
    /// Whether the vehicle moves.
    pub motion: Motion,
    /// Displays.
    pub outputs: Vec<OutputStatus>,
    /// Windows of all clients, by falling importance per output, then those that are not shown.
    pub windows: Vec<WindowStatus>,
    /// Programs that the cockpit started.
    pub programs: Vec<ProgramStatus>,
    /// Connections of clients.
    pub clients: usize,
    /// Records that found no room, since the start.
    pub records_lost: u64,
}

/// How a display is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct OutputStatus {
    /// Its name.
    pub name: String,
    /// Width and height in pixels.
    pub size: Size,
    /// Refreshes per second.
    pub refresh_hz: f64,
    /// Refreshes since the start.
    pub refreshes: u64,
    /// Of these, those that its thread slept through.
    pub skipped: u64,
    /// Pictures that were composed.
    pub composed: u64,
    /// Of these, those that were not ready in time.
    pub late: u64,
    /// Nanoseconds of the longest composition.
    pub longest_ns: u64,
    /// Nanoseconds of all.
    pub busy_ns: u64,
    /// Whether the daemon schedules compositions.
    pub scheduled: bool,
    /// Whether it guarantees them.
    pub guaranteed: bool,
    /// Names of its windows from back to front.
    pub windows: Vec<String>,
}

/// How a window is.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct WindowStatus {
    /// Its number.
    pub id: u64,
    /// The rule that it is shown by; none fits if there is none, and it is never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it claims to be.
    pub claims: String,
    /// The domain of its client.
    pub domain: String,
    /// The process of its client; 0 if the kernel does not tell.
    pub pid: u32,
    /// The output that it is on, if it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Where it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub area: Option<Rect>,
    /// How opaque it is: 0 is not seen, 1 is fully opaque.
    pub opacity: f64,
    /// Whether it has a picture.
    pub mapped: bool,
    /// Whether it keeps its picture because it moved for too long.
    pub frozen: bool,
    /// The connection that it belongs to, as the cockpit counts them.
    #[serde(default)]
    pub client: u64,
    /// The number of its surface in that connection.
    #[serde(default)]
    pub surface: u32,
    /// Whether keys go to it.
    #[serde(default)]
    pub focus: bool,
    /// What it heard of input devices, and how soon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<InputStatus>,
}

/// How soon a window hears input, and answers.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct InputStatus {
    /// What it was sent, and its client took.
    pub delivered: u64,
    /// Milliseconds from the device to the client of 99 of 100.
    pub delivery_ms_p99: f64,
    /// Of the slowest.
    pub delivery_ms_max: f64,
    /// Input after which its picture changed.
    pub answered: u64,
    /// Input after which it did not, within the time of its rule.
    pub silent: u64,
    /// Milliseconds from the device to the changed picture of 99 of 100.
    pub response_ms_p99: f64,
    /// Of the slowest.
    pub response_ms_max: f64,
}

/// How a program is that the cockpit started.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// The name of its section.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// Its process, if it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was started.
    pub starts: u64,
    /// How it ended the last time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::windows::WindowId;

    fn request(text: &str) -> Result<Request, String> {
        // TOML has the same data model as JSON for these, and is what this crate reads anyway.
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn orders_name_windows_by_rule_or_by_number() {
        let place = request("ask='place'\nwindow='map'\narea='10x20+3+4'").expect("fine");
        let name = Subject::Name("map".to_owned());
        let at = Order::Place(Some(Rect::new(3, 4, 10, 20)));
        assert_eq!(place.order(), Ok(Some((name.clone(), at))));
        let back = request("ask='place'\nwindow=7").expect("fine");
        assert_eq!(back.order(), Ok(Some((Subject::Id(WindowId(7)), Order::Place(None)))));
        let half = request("ask='opacity'\nwindow='map'\nopacity=0.5").expect("fine");
        assert_eq!(half.order(), Ok(Some((name, Order::Fade(128)))));
        assert_eq!(request("ask='motion'\nmotion='parked'").expect("fine").order(), Ok(None));
    }

    #[test]
    fn nonsense_is_refused() {
        for opacity in ["1.5", "-0.1", "nan"] {
            let wrong = request(&format!("ask='opacity'\nwindow='map'\nopacity={opacity}")).expect("read");
            assert!(wrong.order().is_err_and(|reason| reason.contains("use 0 to 1")), "{opacity}");
        }
        for text in [
            "ask='fly'",
            "ask='show'",
            "ask='show'\nwindow='map'\nnow=true",
            "ask='place'\nwindow='map'\narea='10x20'",
            "ask='shot'\noutput='center'\npart='0x5+0+0'",
            "ask='motion'\nmotion='flying'",
        ] {
            assert!(request(text).is_err(), "{text}");
        }
    }
}
