//! Records as messages of Diagnostic Log and Trace (AUTOSAR PRS_LogAndTraceProtocol, version 1).
//!
//! A local program hands `dlt-daemon` messages over a pipe or a socket, each behind a header of eight
//! bytes that says what follows: a registration, or a log message. The message itself has the standard
//! header (big endian), the extended header, and as payload one argument: the record's line.

use crate::record::{Decision, Event, Record};

/// Application ID of Takt.
pub const APID: [u8; 4] = *b"TAKT";
/// Context ID of the audit.
pub const CTID: [u8; 4] = *b"AUDT";

/// What follows the header of eight bytes.
const USER_LOG: u32 = 1;
const USER_REGISTER_APPLICATION: u32 = 2;
const USER_REGISTER_CONTEXT: u32 = 4;

/// Version 1, with an extended header, an ECU ID, a session and a time; numbers of the payload are little
/// endian.
const HEADER_TYPE: u8 = 0x20 | 0x01 | 0x04 | 0x08 | 0x10;
/// Standard header (4), ECU ID, session and time (4 each), extended header (10).
const HEADER_LEN: usize = 4 + 12 + 10;
/// A string in UTF-8.
const STRING: u32 = 0x0200 | 0x8000;
/// Longest text, so that a message and its header are written to a pipe at once or not at all.
const TEXT_MAX: usize = 3_500;

/// How important a message is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// The guarantee is lost for all.
    Fatal = 1,
    /// A guarantee is lost.
    Error = 2,
    /// Something was refused, or a rule fired.
    Warn = 3,
    /// Everything else.
    Info = 4,
}

impl Level {
    /// Of that record.
    pub fn of(record: &Record) -> Self {
        match (record.event, record.decision) {
            (Event::Broken, _) => Self::Fatal,
            (Event::Withdrawn | Event::Stalled | Event::Silent, _) => Self::Error,
            (Event::Alarm, _) if record.asked == "critical" => Self::Error,
            (Event::Alarm | Event::Lost | Event::Late, _) => Self::Warn,
            (Event::Quarantined | Event::ShareMissed | Event::EarlyEnds, _) => Self::Warn,
            (Event::Overdue | Event::NotDrawn, _) => Self::Error,
            (Event::Cut | Event::Animation | Event::Response, _) => Self::Warn,
            (_, Decision::Refused | Decision::Limited) => Self::Warn,
            _ => Self::Info,
        }
    }
}

/// Encodes messages of one process.
#[derive(Clone, Debug)]
pub struct Encoder {
    pid: u32,
    ecu: [u8; 4],
    count: u8,
}

impl Encoder {
    /// For the process of that number. The daemon puts its own ECU ID in place of this one where it has
    /// one.
    pub fn new(pid: u32) -> Self {
        Self { pid, ecu: *b"ECU1", count: 0 }
    }

    /// What a program sends first: its application and its context.
    pub fn registration(&self) -> [Vec<u8>; 2] {
        let about = |text: &str| (u32::try_from(text.len()).unwrap_or(0).to_le_bytes(), text.to_owned());
        let (length, text) = about("Takt, a real-time GPU scheduler");
        let mut application = head(USER_REGISTER_APPLICATION);
        application.extend(APID);
        application.extend(self.pid.to_le_bytes());
        application.extend(length);
        application.extend(text.bytes());
        let (length, text) = about("audit of the daemon's decisions");
        let mut context = head(USER_REGISTER_CONTEXT);
        context.extend(APID);
        context.extend(CTID);
        // Its place in a table of contexts, of which there is one; then no level and trace of its own.
        context.extend(0_u32.to_le_bytes());
        context.extend([u8::MAX - 1, u8::MAX - 1]);
        context.extend(self.pid.to_le_bytes());
        context.extend(length);
        context.extend(text.bytes());
        [application, context]
    }

    /// A log message with that text; `uptime_us` is the time since the machine started.
    pub fn log(&mut self, level: Level, uptime_us: u64, text: &str) -> Vec<u8> {
        let text = &text.as_bytes()[..text.floor_char_boundary(TEXT_MAX)];
        let payload = 4 + 2 + text.len() + 1;
        let length = u16::try_from(HEADER_LEN + payload).unwrap_or(u16::MAX);
        let mut message = head(USER_LOG);
        message.extend([HEADER_TYPE, self.count]);
        message.extend(length.to_be_bytes());
        message.extend(self.ecu);
        message.extend(self.pid.to_be_bytes());
        // In steps of 0.1 ms, which turn over after five days.
        #[expect(clippy::cast_possible_truncation, reason = "the protocol has 32 bits")]
        let time = (uptime_us / 100) as u32;
        message.extend(time.to_be_bytes());
        // Verbose (bit 0), a log message (bits 1 to 3 are zero), its level; one argument.
        message.extend([0x01 | (level as u8) << 4, 1]);
        message.extend(APID);
        message.extend(CTID);
        message.extend(STRING.to_le_bytes());
        message.extend(u16::try_from(text.len() + 1).unwrap_or(u16::MAX).to_le_bytes());
        message.extend(text);
        message.push(0);
        self.count = self.count.wrapping_add(1);
        message
    }
}

fn head(what: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(128);
    bytes.extend(*b"DUH\x01");
    bytes.extend(what.to_le_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_protocol() {
        let mut encoder = Encoder::new(0x0102_0304);
        let message = encoder.log(Level::Warn, 1_000_000, "hé");
        let expected = [
            &b"DUH\x01\x01\0\0\0"[..],
            &[0x3d, 0, 0, 36],
            b"ECU1\x01\x02\x03\x04",
            &10_000_u32.to_be_bytes(),
            &[0x31, 1],
            b"TAKTAUDT",
            &[0x00, 0x82, 0, 0, 4, 0],
            "hé\0".as_bytes(),
        ];
        assert_eq!(message, expected.concat());
        assert_eq!(encoder.log(Level::Info, 0, "")[9], 1, "messages are counted");
        let [application, context] = encoder.registration();
        assert_eq!(application[..20], *b"DUH\x01\x02\0\0\0TAKT\x04\x03\x02\x01\x1f\0\0\0");
        assert_eq!(application.len(), 20 + 0x1f);
        assert_eq!(context[..30], *b"DUH\x01\x04\0\0\0TAKTAUDT\0\0\0\0\xfe\xfe\x04\x03\x02\x01\x1f\0\0\0");
    }

    #[test]
    fn long_texts_fit_one_write_to_a_pipe() {
        let message = Encoder::new(1).log(Level::Info, u64::MAX, &"é".repeat(10_000));
        assert!(message.len() < 4096);
        let length = usize::from(u16::from_be_bytes([message[10], message[11]]));
        assert_eq!(message.len(), 8 + length);
        assert_eq!(&message[message.len() - 3..], "é\0".as_bytes());
    }
}
