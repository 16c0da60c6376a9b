#!/usr/bin/env python3
"""Reads a Perfetto trace with Perfetto's own message definitions and checks its structure.

Usage: check_perfetto.py TRACE     (needs `pip install perfetto`)

The Rust tests read traces back with the same field numbers they were written with; this script
is the independent opinion. It fails if a field is unknown to Perfetto, a track is not announced, a slice is
not balanced, or a flow ends that never began.
"""

import collections
import sys

from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto


def check(trace):
    tracks, depth, flows = {}, collections.Counter(), set()
    kinds = collections.Counter()
    events = []
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            assert track.uuid not in tracks, "track announced twice"
            assert not track.parent_uuid or track.parent_uuid in tracks, "unknown parent"
            tracks[track.uuid] = track.name
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    for _, event in sorted(events, key=lambda pair: pair[0]):
        assert event.track_uuid in tracks, "event on an unknown track"
        kinds[proto.TrackEvent.Type.Name(event.type)] += 1
        flows.update(event.flow_ids)
        assert flows.issuperset(event.terminating_flow_ids), "flow ends before it begins"
        depth[event.track_uuid] += {1: 1, 2: -1}.get(event.type, 0)
        assert depth[event.track_uuid] >= 0, "slice ends before it begins"
    assert not any(depth.values()), "slice never ends"
    return tracks, kinds


def main():
    with open(sys.argv[1], "rb") as file:
        data = file.read()
    trace = proto.Trace.FromString(data)
    # Unknown fields survive a round trip, so discard them: a difference is a wrong number.
    known = proto.Trace.FromString(data)
    known.DiscardUnknownFields()
    assert known.ByteSize() == trace.ByteSize(), "fields that Perfetto does not know"
    tracks, kinds = check(trace)
    print(f"{len(trace.packet)} packets, {len(tracks)} tracks, {dict(kinds)}")


if __name__ == "__main__":
    main()
