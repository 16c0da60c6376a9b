"""Why frames were late, from what apps and the daemon noted: of the app beside floods, and of seventeen apps."""

import csv
import math
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import pairwise

from takteval import reality
from takteval.daemon import LOG

# How long a thread may take for what it does in a tenth of that.
# Logs have the level of an app's domain in front of its priority.
LEVEL = 1_000_000
THREAD_NS = 500_000
# How long a flood may take to make what it is granted.
FLOOD_NS = 1_000_000
# An end is seen later than it was.
SEEN_NS = 50_000
# Programs start for so long.
STARTING_NS = 2_000_000_000

ITS_THREAD = "its own thread stood still"
A_FLOOD = "a flood's thread stood still"
FLOODS = "floods were on the GPU"
NOTHING = "nothing else was on the GPU"
CAUSES = (ITS_THREAD, A_FLOOD, FLOODS, NOTHING)

SEEN_LATE = "its end was seen late by a thread that stood still"
OTHERS = "others were on the GPU"
# An app that has finished its frame and an end that is seen of it are not further apart, or a thread stood still.
APART_NS = 1_000_000


def causes(folder, limit_ns):
    """How many frames took longer than a limit, by cause, without those of the first seconds; nothing if there is no log."""
    if not (folder / f"{LOG}.gz").exists() or not (folder / "hero.csv").exists():
        return None
    live = reality.Live(reality.lines(folder / f"{LOG}.gz"), 0, math.inf)
    app = next((app for app, facts in live.apps.items() if facts["name"] == "hero"), None)
    drawn = [group for group in live.by_app.get(app, []) if "came" in group and group["kind"] != "swap"]
    floods = sorted((group for group in live.finished() if group["app"] != app and group["kind"] != "swap"),
                    key=lambda group: group["granted"])
    asked, released = [group["asked"] for group in drawn], sorted(live.released[app])
    with open(folder / "hero.csv") as file:
        frames = [(int(frame["begin_ns"]), int(frame["end_ns"])) for frame in csv.DictReader(file)]
    counted = Counter()
    for begin, end in frames:
        at = bisect_left(asked, begin)
        if begin > frames[0][0] + STARTING_NS and end - begin > limit_ns and at < len(drawn) and asked[at] < end:
            before = bisect_right(released, begin)
            counted[cause(drawn[at], released[before - 1] if before else begin, floods)] += 1
    return counted


def cause(group, release, floods):
    """Why a group of the app, whose frame was released then, ended late."""
    if group["asked"] - release > THREAD_NS or group["came"] - group["granted"] > THREAD_NS:
        # Floods that were let in meanwhile would not have been.
        return ITS_THREAD
    before = bisect_left(floods, group["granted"], key=lambda flood: flood["granted"])
    beside = [flood for flood in floods[:before] if flood["ended"] > group["came"] + SEEN_NS]
    if any(flood["came"] - flood["granted"] > FLOOD_NS for flood in beside):
        return A_FLOOD
    return FLOODS if beside else NOTHING


def missed(live, priority):
    """Work of apps at least that important that was on the GPU at its deadline: the app, how much later it was seen to
    end, and why."""
    found = []
    for app, facts in live.apps.items():
        deadlines = sorted(deadline for deadline, met, _ in live.judged[app] if not met and live.start <= deadline < live.end)
        for group, follows in pairwise(live.by_app[app] if facts["priority"] % LEVEL >= priority else []):
            at = bisect_right(deadlines, group.get("came", math.inf))
            if group["kind"] != "swap" and at < len(deadlines) and deadlines[at] < group["ended"]:
                found.append((facts["name"], group["ended"] - deadlines[at], blame(group, follows, deadlines[at], live)))
    return found


def blame(group, follows, deadline, live):
    """Why a group was not done by its deadline. Its app asks for its swap when it has seen its end itself."""
    if follows["kind"] == "swap" and follows["asked"] < group["ended"] - APART_NS:
        return SEEN_LATE
    if group["came"] - group["granted"] > THREAD_NS:
        return ITS_THREAD
    beside = [other for other in live.finished() if other["app"] != group["app"] and other["kind"] != "swap"
              and other["came"] < deadline and other["ended"] > deadline - APART_NS]
    return OTHERS if beside else ITS_THREAD
