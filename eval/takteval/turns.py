"""What groups cost a GPU that serves processes in turn.

An NVIDIA H200 gives each process a timeslice of a millisecond. A draw is not interrupted: where it outlasts the
timeslice, the next process has its turn after it, and the fence behind the draw is executed when its own process has
its turn again. So groups that are in flight together are worked on one after the other and then seen to end together,
and what each of them cost does not follow from their ends alone. What a frame costs alone was found out before.
"""

from dataclasses import dataclass
from itertools import pairwise
from statistics import median

TIMESLICE_NS = 1_000_000
# What ends within its timeslice whatever happens, so that its own end is seen when it ends.
SHORT_NS = 0.8 * TIMESLICE_NS
# No group costs less.
LEAST_NS = 5_000


@dataclass
class Turns:
    """How a GPU was seen to serve processes."""

    # Apps whose frames are one group each.
    single: set
    # How much later than another's end and its own cost each short group ended that waited for that end.
    changes_ns: list
    # How far apart the ends were of two groups that had the GPU for themselves and each outlast a timeslice.
    apart_ns: list

    @property
    def switch_ns(self):
        """What it costs to change to another process."""
        return max(0, median(self.changes_ns)) if self.changes_ns else 0


def attribute(live, alone_ns):
    """Sets what each group cost, where `alone_ns` is what a frame of each app costs; returns what was seen of turns.

    What that one group costs is known. Apps with several draw more, and more different things: what each of their
    groups cost is worked out, and must come to what their frames cost together.
    """
    frames = {app: [working(frame) for frame in whole_frames(groups)] for app, groups in live.by_app.items()}
    known = {app: alone_ns[live.apps[app]["name"]] for app in frames}
    single = {app for app, each in frames.items() if each and median(map(len, each)) == 1}
    for app in single:
        for frame in frames[app]:
            together = sum(map(span, frame))
            for group in frame:
                group["cost"] = known[app] * span(group) / together
    groups = sorted(working(live.finished()), key=lambda group: (group["came"], group["ended"]))
    costs = {app: known[app] for app in single}
    turns = Turns(single, after_others(groups, costs), ends_apart(groups, costs))
    follow(groups, single, turns.switch_ns)
    for app in frames.keys() - single:
        found = [sum(group["cost"] for group in frame) for frame in frames[app]]
        factor = known[app] * len(found) / max(1, sum(found))
        for frame in frames[app]:
            for group in frame:
                group["cost"] *= factor
    return turns


def whole_frames(groups):
    """Groups of an app by frame, where all that became of them is known."""
    frame = []
    for group in groups:
        if "cost" not in group:
            frame = []
            continue
        frame.append(group)
        if group["kind"] == "swap":
            yield frame
            frame = []


def working(groups):
    """Those that had work for the GPU."""
    return [group for group in groups if span(group) > 0]


def span(group):
    return group["ended"] - group["came"]


def after_others(groups, known):
    return [group["ended"] - before["ended"] - known[group["app"]]
            for before, group in pairwise(sorted(groups, key=lambda each: each["ended"]))
            if before["app"] != group["app"] and group["came"] < before["ended"]
            and known.get(group["app"], SHORT_NS) < SHORT_NS]


def ends_apart(groups, known):
    apart, over = [], 0
    after = [group["came"] for group in groups[2:]] + [float("inf")]
    for (first, second), next_came in zip(pairwise(groups), after):
        last, long = max(first["ended"], second["ended"]), lambda group: known.get(group["app"], 0) > TIMESLICE_NS
        if over <= first["came"] and last <= next_came and second["came"] < first["ended"] and long(first) and long(second):
            apart.append(abs(first["ended"] - second["ended"]))
        over = max(over, first["ended"])
    return apart


def follow(groups, single, switch_ns):
    """Works out what the others cost: the GPU works on groups in the order in which they came."""
    free, last, in_flight = 0, None, []
    for at, group in enumerate(groups):
        begin = max(group["came"], free) + (switch_ns if last not in (None, group["app"]) else 0)
        in_flight = [other for other in in_flight if other["ended"] > group["came"]]
        if group["app"] not in single:
            done = group["ended"]
            ends_between = lambda other: other["app"] != group["app"] and begin < other["ended"] < group["ended"]
            # What came before it had only its end left, and what came after it was all done after it.
            for other in filter(ends_between, in_flight):
                done = min(done, other["ended"] - switch_ns)
            for other in groups[at + 1:]:
                if other["came"] >= group["ended"]:
                    break
                if ends_between(other):
                    done = min(done, other["ended"] - switch_ns - (other["cost"] if other["app"] in single else 0))
            group["cost"] = max(LEAST_NS, done - begin)
        free, last = begin + group["cost"], group["app"]
        in_flight.append(group)
