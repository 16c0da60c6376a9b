"""What groups cost a GPU that serves processes in turn.

The logs of an NVIDIA H200 fit a GPU that gives each process a timeslice of a millisecond and does not interrupt draws:
where one outlasts the timeslice, the next process has its turn after it, and the fence behind the draw is executed when
its own process has its turn again. So groups that are in flight together are worked on one after the other and then seen
to end together, and what each of them cost does not follow from their ends. What a frame costs alone was found before.
"""

from itertools import pairwise
from statistics import median

TIMESLICE_NS = 1_000_000
# A swap that takes no longer has had no turn: it shows nothing.
SWAP_NS = 100_000
# A change of processes costs no more than this, and is found out as precisely as that.
CHANGE_NS, PRECISION_NS = 1_000_000, 1_000


class Unplayable(Exception):
    """A log that the simulator cannot play again."""


def attribute(live, alone_ns):
    """Sets what each group cost, where `alone_ns` is what a frame of each app costs; how far apart the ends were of two
    groups that had the GPU for themselves and each outlast a timeslice.

    A frame of one group costs what it costs alone. Of frames of several, each has the part that was predicted.
    """
    frames = {app: [working(frame) for frame in whole_frames(groups)] for app, groups in live.by_app.items()}
    unknown = [facts["name"] for app, facts in live.apps.items() if app in frames and facts["name"] not in alone_ns]
    if unknown:
        raise Unplayable(f"it is not known what frames of {', '.join(unknown)} cost alone")
    known = {app: alone_ns[live.apps[app]["name"]] for app in frames}
    for group in live.finished():
        group["cost"] = 0
    for app, each in frames.items():
        for frame in each:
            together = sum(map(said, frame))
            for group in frame:
                group["cost"] = known[app] * said(group) / together
    groups = sorted(working(live.finished()), key=lambda group: (group["came"], group["ended"]))
    # Of apps whose frames are one group each, what a group costs is known.
    return ends_apart(groups, {app: known[app] for app, each in frames.items() if each and median(map(len, each)) == 1})


def change_ns(live, alone_ns, simulated):
    """What it costs to change to another process: as much as lets `simulated(change_ns)` get as much done as the live GPU."""
    wanted = work(live, alone_ns)
    if work(simulated(CHANGE_NS), alone_ns) >= wanted:
        raise Unplayable("the GPU had time to spare, so what a change of processes costs made no difference")
    if work(simulated(0), alone_ns) < wanted:
        raise Unplayable("the live GPU got more done than one for which changes of processes are free")
    low, high = 0, CHANGE_NS
    while high - low > PRECISION_NS:
        middle = (low + high) // 2
        low, high = (middle, high) if work(simulated(middle), alone_ns) > wanted else (low, middle)
    return (low + high) // 2


def work(live, alone_ns):
    """Frames that ended, by what they cost alone, as a share of the window."""
    return sum(count * alone_ns[app] for app, count in live.done().items()) / (live.end - live.start)


def whole_frames(groups):
    """Groups of an app by frame, where all that became of them is known."""
    frame, whole = [], True
    for group in groups:
        frame.append(group)
        whole &= "ended" in group and "granted" in group
        if group["kind"] == "swap":
            if whole:
                yield frame
            frame, whole = [], True


def working(groups):
    """Those that had work for the GPU."""
    return [group for group in groups if span(group) > (SWAP_NS if group["kind"] == "swap" else 0)]


def span(group):
    return group["ended"] - group["came"]


def said(group):
    """What was predicted of a group; nothing is said to be nothing at all."""
    return max(1, group["predicted"] or 0)


def ends_apart(groups, known):
    """`groups` are in the order in which they came. Who comes after the first end does not matter, or pairs would be
    chosen by what they are to show."""
    apart, over = [], 0
    after = [group["came"] for group in groups[2:]] + [float("inf")]
    for (first, second), next_came in zip(pairwise(groups), after):
        earlier = min(first["ended"], second["ended"])
        alone = over <= first["came"] and second["came"] < first["ended"] and earlier <= next_came
        if alone and all(known.get(group["app"], 0) > TIMESLICE_NS for group in (first, second)):
            apart.append(abs(first["ended"] - second["ended"]))
        over = max(over, first["ended"])
    return apart
