//! What goes through the control socket.
//!
//! A message is a datagram: a fixed head and then fields, each a number, a length and that many
//! bytes. Both sides must be of the same [version](crate::VERSION), which changes with the meaning of
//! messages. Fields that no side depends on may be added without that: a reader skips
//! fields that it does not know. A field that comes twice, is cut off or has the wrong length makes the message
//! [`Invalid`].

mod fields;

use takt_core::Span;

use self::fields::{Encoder, Fields, HEAD, MAGIC, field, kind};
use crate::{Standing, VERSION};

/// Longest message.
pub const MESSAGE_MAX: usize = 64 * 1024;
/// Longest text in a field.
pub const TEXT_MAX: usize = 60 * 1024;
/// Longest name of an app.
pub const NAME_MAX: usize = 64;

/// From a client, or from the daemon to it.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::large_enum_variant, reason = "messages are few, and none is kept")]
pub enum Message {
    /// An app wants to be scheduled.
    Hello(Hello),
    /// It is; the descriptors of its region, doorbell and the beat page come along, in this order.
    Welcome(Welcome),
    /// It is not, or not any more; it runs unscheduled.
    Refused {
        /// Why, for people.
        reason: String,
        /// In how many milliseconds it may ask again; if it may not, asking is useless.
        again_ms: Option<u32>,
    },
    /// A question or an order for the daemon, in JSON.
    Ask {
        /// The JSON text.
        text: String,
    },
    /// A piece of the answer.
    Answer {
        /// A JSON text, or a part of one.
        text: String,
        /// Whether more pieces follow.
        more: bool,
    },
}

/// What an app says of itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Hello {
    /// How people call it.
    pub name: String,
    /// Importance it asks for; the daemon's configuration decides otherwise.
    pub priority: Option<u32>,
    /// Frames per second it asks for, in millihertz.
    pub fps_mhz: Option<u32>,
    /// GPU time per frame it asks for, in nanoseconds.
    pub etpf_ns: Option<u64>,
    /// Longest group it asks for, in nanoseconds.
    pub max_slice_ns: Option<u64>,
    /// Name of the display that it draws for.
    pub display: Option<String>,
    /// Time between two frames of its own clock, or between two replenishments of its server, in
    /// nanoseconds.
    pub period_ns: Option<u64>,
    /// From the release of a frame by its own clock to its deadline, in nanoseconds.
    pub deadline_ns: Option<u64>,
    /// GPU time of its server in each period, in nanoseconds.
    pub runtime_ns: Option<u64>,
    /// Its server waits when it has no budget left.
    pub hard: bool,
    /// How often it waits for its own groups within a frame or job at most.
    pub gaps: Option<u32>,
    /// How long each of these gaps lasts at most, in nanoseconds.
    pub gap_ns: Option<u64>,
    /// The GPU that it draws on, as the store of profiles names it; none if it does not know.
    pub gpu: Option<String>,
    /// Its renderer works on the CPU.
    pub on_cpu: bool,
    /// The GPU interrupts its work, as it does with compute.
    pub divisible: bool,
    /// Name of the app that consumes what it produces.
    pub feeds: Option<String>,
    /// Name of the app whose contract it shares, instead of having one.
    pub shares: Option<String>,
    /// A display says when its frames begin, whatever the client finds out.
    pub by_display: bool,
    /// What decides when it begins its frames, as far as the client has found out; none if it does not look.
    pub pacing: Option<Pacing>,
    /// The time slices of its contexts on the GPU, as the driver says.
    pub slices: Option<TimeSlices>,
    /// The programs that it was started with as one app: one of them has the contract that all of them ask for.
    pub family: Option<u64>,
}

/// Time slices of the contexts of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeSlices {
    /// The shortest, in microseconds.
    pub shortest_us: u32,
    /// The longest, in microseconds.
    pub longest_us: u32,
}

impl TimeSlices {
    /// Not all of them could be read.
    pub const UNKNOWN: Self = Self { shortest_us: 0, longest_us: 0 };

    fn encode(self) -> [u8; 8] {
        (u64::from(self.shortest_us) | u64::from(self.longest_us) << 32).to_le_bytes()
    }

    fn decode([s0, s1, s2, s3, l0, l1, l2, l3]: [u8; 8]) -> Self {
        let (shortest_us, longest_us) = ([s0, s1, s2, s3], [l0, l1, l2, l3]);
        Self { shortest_us: u32::from_le_bytes(shortest_us), longest_us: u32::from_le_bytes(longest_us) }
    }
}

/// What decides when a program begins its frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pacing {
    /// That is not known yet.
    Unknown,
    /// A display, for which its swaps wait.
    Display,
    /// Nothing: its swaps do not wait, and it does not sleep.
    Free,
    /// The program itself, which sleeps in between.
    Own {
        /// The usual time between two frames.
        period: Span,
        /// Whether frames come by a clock of that period, and not as they like.
        steady: bool,
    },
}

/// Marks a steady period in the number that stands for a pacing.
const STEADY: u64 = 1 << 63;
/// The shortest period of a program: smaller numbers stand for something else.
const PERIOD_NS_MIN: u64 = 3;

impl Pacing {
    /// Whether a program that is paced so keeps to that period by itself, but for a quarter: it need not be
    /// held back after a frame.
    pub fn keeps(self, period: Span) -> bool {
        match self {
            Self::Unknown | Self::Display | Self::Free => false,
            Self::Own { period: own, .. } => own.scaled(5, 4) >= period,
        }
    }

    /// As a number; small ones are no period.
    fn encode(self) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Display => 1,
            Self::Free => 2,
            Self::Own { period, steady } => {
                let period_ns = period.as_ns().clamp(PERIOD_NS_MIN, STEADY - 1);
                if steady { period_ns | STEADY } else { period_ns }
            }
        }
    }

    fn decode(number: u64) -> Self {
        match number {
            0 => Self::Unknown,
            1 => Self::Display,
            2 => Self::Free,
            _ => {
                let period_ns = (number & !STEADY).max(PERIOD_NS_MIN);
                Self::Own { period: Span::from_ns(period_ns), steady: number & STEADY != 0 }
            }
        }
    }
}

/// What the daemon says to an app that it schedules.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Welcome {
    /// Its slot.
    pub app: u32,
    /// Whether its deadlines are guaranteed, or why not, for people.
    pub admission: String,
    /// How it stands; the ring tells when that changes.
    pub standing: Standing,
    /// How long it may look for a reply before it falls asleep, in microseconds.
    pub spin_us: u32,
}

/// Why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Invalid {
    /// Not from us.
    #[error("this is no message of takt")]
    Foreign,
    /// From another version.
    #[error("the other side speaks version {0}, this one {VERSION}; upgrade the older one")]
    Version(u16),
    /// No such kind of message.
    #[error("{0} is no kind of message")]
    Kind(u16),
    /// A field is cut off, comes twice, has the wrong length or is no text.
    #[error("field {0} is damaged")]
    Field(u16),
    /// A field is missing.
    #[error("field {0} is missing")]
    Missing(u16),
    /// Longer than a message may be.
    #[error("the message is longer than {MESSAGE_MAX} bytes")]
    TooLong,
}

impl Message {
    /// The bytes to send. Texts that are too long are cut at a character.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(hello) => hello.encode(),
            Self::Welcome(welcome) => {
                Encoder::new(kind::WELCOME)
                    .text(&welcome.admission, TEXT_MAX)
                    .optional(field::APP, Some(welcome.app.to_le_bytes()))
                    .optional(field::PACED, welcome.standing.paced.then_some([]))
                    .optional(field::PROTECTED, welcome.standing.protected.then_some([]))
                    .optional(field::GUARANTEED, welcome.standing.guaranteed.then_some([]))
                    .optional(field::OWN, welcome.standing.own.then_some([]))
                    .optional(field::CONTRACT, welcome.standing.contract.then_some([]))
                    .optional(field::SPIN, Some(welcome.spin_us.to_le_bytes()))
                    .bytes
            }
            Self::Refused { reason, again_ms } => {
                Encoder::new(kind::REFUSED)
                    .text(reason, TEXT_MAX)
                    .optional(field::AGAIN, again_ms.map(u32::to_le_bytes))
                    .bytes
            }
            Self::Ask { text } => Encoder::new(kind::ASK).text(text, TEXT_MAX).bytes,
            Self::Answer { text, more } => {
                Encoder::new(kind::ANSWER)
                    .text(text, TEXT_MAX)
                    .optional(field::MORE, more.then_some([]))
                    .bytes
            }
        }
    }

    /// Checks and reads a message.
    pub fn decode(bytes: &[u8]) -> Result<Self, Invalid> {
        if bytes.len() > MESSAGE_MAX {
            return Err(Invalid::TooLong);
        }
        let (head, rest) = bytes.split_first_chunk::<HEAD>().ok_or(Invalid::Foreign)?;
        let [m0, m1, m2, m3, v0, v1, k0, k1] = *head;
        if [m0, m1, m2, m3] != MAGIC {
            return Err(Invalid::Foreign);
        }
        let version = u16::from_le_bytes([v0, v1]);
        if version != VERSION {
            return Err(Invalid::Version(version));
        }
        let kind = u16::from_le_bytes([k0, k1]);
        let fields = Fields::read(rest)?;
        match kind {
            kind::HELLO => Ok(Self::Hello(Hello::decode(&fields)?)),
            kind::WELCOME => Ok(Self::Welcome(Welcome {
                admission: fields.text(TEXT_MAX)?,
                app: fields
                    .optional(field::APP)?
                    .map(u32::from_le_bytes)
                    .ok_or(Invalid::Missing(field::APP))?,
                standing: Standing {
                    paced: fields.optional::<0>(field::PACED)?.is_some(),
                    protected: fields.optional::<0>(field::PROTECTED)?.is_some(),
                    guaranteed: fields.optional::<0>(field::GUARANTEED)?.is_some(),
                    own: fields.optional::<0>(field::OWN)?.is_some(),
                    contract: fields.optional::<0>(field::CONTRACT)?.is_some(),
                },
                spin_us: fields.optional(field::SPIN)?.map_or(0, u32::from_le_bytes),
            })),
            kind::REFUSED => Ok(Self::Refused {
                reason: fields.text(TEXT_MAX)?,
                again_ms: fields.optional(field::AGAIN)?.map(u32::from_le_bytes),
            }),
            kind::ASK => Ok(Self::Ask { text: fields.text(TEXT_MAX)? }),
            kind::ANSWER => Ok(Self::Answer {
                text: fields.text(TEXT_MAX)?,
                more: fields.optional::<0>(field::MORE)?.is_some(),
            }),
            other => Err(Invalid::Kind(other)),
        }
    }
}

impl Hello {
    fn encode(&self) -> Vec<u8> {
        let encoder = Encoder::new(kind::HELLO)
            .text(&self.name, NAME_MAX)
            .optional(field::PRIORITY, self.priority.map(u32::to_le_bytes))
            .optional(field::FPS, self.fps_mhz.map(u32::to_le_bytes))
            .optional(field::ETPF, self.etpf_ns.map(u64::to_le_bytes))
            .optional(field::MAX_SLICE, self.max_slice_ns.map(u64::to_le_bytes))
            .optional(field::PERIOD, self.period_ns.map(u64::to_le_bytes))
            .optional(field::DEADLINE, self.deadline_ns.map(u64::to_le_bytes))
            .optional(field::RUNTIME, self.runtime_ns.map(u64::to_le_bytes))
            .optional(field::GAPS, self.gaps.map(u32::to_le_bytes))
            .optional(field::GAP, self.gap_ns.map(u64::to_le_bytes))
            .optional(field::HARD, self.hard.then_some([]))
            .optional(field::ON_CPU, self.on_cpu.then_some([]))
            .optional(field::DIVISIBLE, self.divisible.then_some([]))
            .optional(field::BY_DISPLAY, self.by_display.then_some([]))
            .optional(field::PACING, self.pacing.map(|pacing| pacing.encode().to_le_bytes()))
            .optional(field::SLICES, self.slices.map(TimeSlices::encode))
            .optional(field::FAMILY, self.family.map(u64::to_le_bytes));
        let names = [
            (field::DISPLAY, &self.display),
            (field::GPU, &self.gpu),
            (field::FEEDS, &self.feeds),
            (field::SHARES, &self.shares),
        ];
        names.into_iter().fold(encoder, |encoder, (field, name)| encoder.name(field, name.as_deref())).bytes
    }

    fn decode(fields: &Fields<'_>) -> Result<Self, Invalid> {
        let long = |number| Ok(fields.optional(number)?.map(u64::from_le_bytes));
        Ok(Self {
            name: fields.text(NAME_MAX)?,
            priority: fields.optional(field::PRIORITY)?.map(u32::from_le_bytes),
            fps_mhz: fields.optional(field::FPS)?.map(u32::from_le_bytes),
            etpf_ns: long(field::ETPF)?,
            max_slice_ns: long(field::MAX_SLICE)?,
            display: fields.text_field(field::DISPLAY, NAME_MAX)?,
            period_ns: long(field::PERIOD)?,
            deadline_ns: long(field::DEADLINE)?,
            runtime_ns: long(field::RUNTIME)?,
            gaps: fields.optional(field::GAPS)?.map(u32::from_le_bytes),
            gap_ns: long(field::GAP)?,
            hard: fields.optional::<0>(field::HARD)?.is_some(),
            gpu: fields.text_field(field::GPU, NAME_MAX)?,
            on_cpu: fields.optional::<0>(field::ON_CPU)?.is_some(),
            divisible: fields.optional::<0>(field::DIVISIBLE)?.is_some(),
            feeds: fields.text_field(field::FEEDS, NAME_MAX)?,
            shares: fields.text_field(field::SHARES, NAME_MAX)?,
            by_display: fields.optional::<0>(field::BY_DISPLAY)?.is_some(),
            pacing: long(field::PACING)?.map(Pacing::decode),
            slices: fields.optional(field::SLICES)?.map(TimeSlices::decode),
            family: long(field::FAMILY)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message() -> impl Strategy<Value = Message> {
        let display = proptest::option::of(".{0,16}");
        let hello = (".{0,16}", any::<Option<u32>>(), any::<[Option<u64>; 3]>(), display, any::<[bool; 4]>());
        let hello = hello.prop_map(|(name, word, [long, period_ns, other], display, bits)| {
            let [hard, on_cpu, divisible, by_display] = bits;
            Message::Hello(Hello {
                name,
                priority: word,
                fps_mhz: word.map(|word| word / 3),
                etpf_ns: long,
                max_slice_ns: long.map(|long| long / 5),
                gpu: display.clone(),
                feeds: display.clone(),
                shares: display.clone().map(|name| name + "s"),
                display,
                period_ns,
                deadline_ns: other,
                runtime_ns: other.map(|other| other / 7),
                gaps: word,
                gap_ns: other,
                hard,
                on_cpu,
                divisible,
                by_display,
                pacing: word.map(|word| match word % 5 {
                    0 => Pacing::Unknown,
                    1 => Pacing::Display,
                    2 => Pacing::Free,
                    kind => Pacing::Own { period: Span::from_ns(word.into()), steady: kind == 3 },
                }),
                slices: word.map(|word| TimeSlices { shortest_us: word / 11, longest_us: word }),
                family: long,
            })
        });
        let welcome = (".*", any::<u32>(), any::<[bool; 5]>()).prop_map(|(admission, app, standing)| {
            let [paced, own, contract, protected, guaranteed] = standing;
            let standing = Standing { paced, own, contract, protected, guaranteed };
            Message::Welcome(Welcome { app, admission, standing, spin_us: app / 3 })
        });
        prop_oneof![
            hello,
            welcome,
            (".*", any::<Option<u32>>()).prop_map(|(reason, again_ms)| Message::Refused { reason, again_ms }),
            ".*".prop_map(|text| Message::Ask { text }),
            (".*", any::<bool>()).prop_map(|(text, more)| Message::Answer { text, more }),
        ]
    }

    proptest! {
        #[test]
        fn messages_survive_the_wire(message in message()) {
            prop_assert_eq!(Message::decode(&message.encode()), Ok(message));
        }

        #[test]
        fn damage_is_an_error_or_another_message(message in message(), at in any::<usize>(), to in any::<u8>()) {
            let mut bytes = message.encode();
            let at = at % bytes.len();
            bytes[at] = to;
            if let Ok(read) = Message::decode(&bytes) {
                prop_assert_eq!(Message::decode(&read.encode()), Ok(read));
            }
            prop_assert!(Message::decode(&bytes[..at]).is_err() || at >= HEAD);
        }

        #[test]
        fn noise_is_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(Message::decode(&bytes).is_err());
        }
    }

    #[test]
    fn mistakes_have_names() {
        let hello = Message::Hello(Hello { name: "a".into(), ..Hello::default() }).encode();
        let mut older = hello.clone();
        older[4] = 0;
        assert_eq!(Message::decode(&older), Err(Invalid::Version(0)));
        let mut twice = hello.clone();
        twice.extend(&hello[HEAD..]);
        assert_eq!(Message::decode(&twice), Err(Invalid::Field(field::TEXT)));
        assert_eq!(Message::decode(&hello[..HEAD]), Err(Invalid::Missing(field::TEXT)));
        let mut unknown = hello.clone();
        unknown.extend([200, 0, 1, 0, 7]);
        assert!(Message::decode(&unknown).is_ok(), "fields of a newer side are skipped");
        assert_eq!(Message::decode(&vec![0; MESSAGE_MAX + 1]), Err(Invalid::TooLong));
    }

    #[test]
    fn hellos_of_older_clients_ask_for_no_contract() {
        let terms = [2, 0, 4, 0, 80, 0, 0, 0, 4, 0, 8, 0, 64, 66, 15, 0, 0, 0, 0, 0];
        let head = Message::Hello(Hello { name: "a".into(), ..Hello::default() }).encode();
        let bytes: Vec<u8> = head.into_iter().chain(terms).collect();
        let hello =
            Hello { name: "a".into(), priority: Some(80), etpf_ns: Some(1_000_000), ..Hello::default() };
        assert_eq!(Message::decode(&bytes), Ok(Message::Hello(hello.clone())));
        assert_eq!(Message::Hello(hello).encode(), bytes, "and what asks for none is as it was");
    }

    #[test]
    fn long_texts_are_cut_at_a_character() {
        let name = "é".repeat(NAME_MAX);
        let Ok(Message::Hello(hello)) =
            Message::decode(&Message::Hello(Hello { name, ..Hello::default() }).encode())
        else {
            panic!("a long name is no error");
        };
        assert_eq!(hello.name, "é".repeat(NAME_MAX / 2));
    }
}
