//! Writes Perfetto packets: tracks, slices, instants and counters.

use std::io::{self, Write};

use prost::Message;
use prost::encoding::{WireType, encode_key, encode_varint};
use takt_core::{Span, Time};

use super::proto::{
    ChildOrdering, CounterDescriptor, DebugAnnotation, EventType, INCREMENTAL_STATE_CLEARED, Packet,
    TrackDescriptor, TrackEvent,
};
use super::sink::Sink;

/// All packets belong to one sequence; its number is arbitrary but not zero.
const SEQUENCE: u32 = 1;

/// Field number of packets in a trace.
const TRACE_PACKET: u32 = 1;

/// Identity of a track.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct TrackId(u64);

/// A stream of packets.
#[derive(Debug)]
pub(super) struct Packets<W> {
    out: Sink<W>,
    bytes: Vec<u8>,
    tracks: u64,
}

/// Where a new track goes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Place {
    pub(super) parent: Option<TrackId>,
    /// Position among its siblings, smallest on top.
    pub(super) rank: i32,
}

/// Details of a slice or an instant.
#[derive(Clone, Default, Debug)]
pub(super) struct Args {
    notes: Vec<DebugAnnotation>,
    flow: Option<u64>,
    last_of_flow: Option<u64>,
}

impl<W: Write> Packets<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out: Sink::new(out), bytes: Vec::new(), tracks: 0 }
    }

    pub(super) fn check(&mut self) -> io::Result<()> {
        self.out.check()
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.out.finish()
    }

    /// Announces a track of slices and instants.
    pub(super) fn track(&mut self, place: Place, name: &str, about: &str) -> TrackId {
        self.describe(place, name, about, None)
    }

    /// Announces a track that shows a number in `unit`.
    pub(super) fn counter_track(&mut self, place: Place, name: &str, unit: &str) -> TrackId {
        let counter = CounterDescriptor { unit_name: Some(unit.to_owned()) };
        self.describe(place, name, "", Some(counter))
    }

    pub(super) fn begin(&mut self, at: Time, track: TrackId, name: String, args: Args) {
        self.event(at, track, EventType::SliceBegin, Some(name), args);
    }

    /// Ends the innermost open slice of `track`.
    pub(super) fn end(&mut self, at: Time, track: TrackId, args: Args) {
        self.event(at, track, EventType::SliceEnd, None, args);
    }

    pub(super) fn instant(&mut self, at: Time, track: TrackId, name: String, args: Args) {
        self.event(at, track, EventType::Instant, Some(name), args);
    }

    pub(super) fn count(&mut self, at: Time, track: TrackId, value: i64) {
        self.track_event(
            at,
            TrackEvent {
                r#type: Some(EventType::Counter as i32),
                track_uuid: Some(track.0),
                counter_value: Some(value),
                ..TrackEvent::default()
            },
        );
    }

    pub(super) fn gauge(&mut self, at: Time, track: TrackId, value: f64) {
        self.track_event(
            at,
            TrackEvent {
                r#type: Some(EventType::Counter as i32),
                track_uuid: Some(track.0),
                double_counter_value: Some(value),
                ..TrackEvent::default()
            },
        );
    }

    fn describe(
        &mut self,
        place: Place,
        name: &str,
        about: &str,
        counter: Option<CounterDescriptor>,
    ) -> TrackId {
        let first = self.tracks == 0;
        self.tracks += 1;
        self.put(&Packet {
            trusted_packet_sequence_id: Some(SEQUENCE),
            sequence_flags: first.then_some(INCREMENTAL_STATE_CLEARED),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(self.tracks),
                name: Some(name.to_owned()),
                parent_uuid: place.parent.map(|parent| parent.0),
                child_ordering: counter.is_none().then_some(ChildOrdering::Explicit as i32),
                counter,
                sibling_order_rank: Some(place.rank),
                description: (!about.is_empty()).then(|| about.to_owned()),
            }),
            ..Packet::default()
        });
        TrackId(self.tracks)
    }

    fn event(&mut self, at: Time, track: TrackId, kind: EventType, name: Option<String>, args: Args) {
        self.track_event(
            at,
            TrackEvent {
                debug_annotations: args.notes,
                r#type: Some(kind as i32),
                track_uuid: Some(track.0),
                name,
                flow_ids: args.flow.into_iter().collect(),
                terminating_flow_ids: args.last_of_flow.into_iter().collect(),
                ..TrackEvent::default()
            },
        );
    }

    fn track_event(&mut self, at: Time, event: TrackEvent) {
        self.put(&Packet {
            timestamp: Some(at.as_ns()),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..Packet::default()
        });
    }

    /// A trace is a message whose only field repeats, so packets can be appended one by one.
    fn put(&mut self, packet: &Packet) {
        self.bytes.clear();
        encode_key(TRACE_PACKET, WireType::LengthDelimited, &mut self.bytes);
        encode_varint(packet.encoded_len() as u64, &mut self.bytes);
        packet.encode_raw(&mut self.bytes);
        self.out.put(&self.bytes);
    }
}

impl Args {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn number(self, name: &str, value: u64) -> Self {
        self.note(DebugAnnotation { uint_value: Some(value), ..named(name) })
    }

    pub(super) fn text(self, name: &str, value: impl Into<String>) -> Self {
        self.note(DebugAnnotation { string_value: Some(value.into()), ..named(name) })
    }

    pub(super) fn flag(self, name: &str, value: bool) -> Self {
        self.note(DebugAnnotation { bool_value: Some(value), ..named(name) })
    }

    /// A span in microseconds; unbounded ones are said in words.
    pub(super) fn span(self, name: &str, value: Span) -> Self {
        if value >= Span::FOREVER {
            return self.text(name, "unbounded");
        }
        self.note(DebugAnnotation { double_value: Some(micros(value)), ..named(name) })
    }

    /// An arrow leads from here to the next event with the same `id`.
    pub(super) fn flow(mut self, id: u64) -> Self {
        self.flow = Some(id);
        self
    }

    /// The arrow with this `id` ends here.
    pub(super) fn flow_end(mut self, id: u64) -> Self {
        self.last_of_flow = Some(id);
        self
    }

    fn note(mut self, note: DebugAnnotation) -> Self {
        self.notes.push(note);
        self
    }
}

fn named(name: &str) -> DebugAnnotation {
    DebugAnnotation { name: Some(name.to_owned()), ..DebugAnnotation::default() }
}

#[expect(clippy::cast_precision_loss, reason = "for display; exact up to 2^53 ns, which is 104 days")]
fn micros(span: Span) -> f64 {
    span.as_ns() as f64 / 1_000.0
}
