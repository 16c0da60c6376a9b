"""Which measurements there are, in which order, and how long each may take."""

from dataclasses import dataclass, field
from typing import Callable

# How soon a point comes: what must be shown, what explains it, what completes tables, the rest.
MUST, SOON, LATER, LAST = range(4)


@dataclass
class Point:
    """One measurement. `measure(folder, seconds)` gives its figures."""

    experiment: str
    name: str
    measure: Callable
    rank: int = LATER
    want_s: float = 20.0
    least_s: float = 5.0
    # Starting and ending programs.
    extra_s: float = 3.0
    # Takes as long as it takes: others need what it makes, so only its whole name changes its length.
    fixed: bool = False
    about: dict = field(default_factory=dict)

    def begins(self, names):
        """Whether it belongs to one of these: experiments, or beginnings of names."""
        return any(self.name.startswith(name) or self.experiment == name for name in names if name)


class Lengths:
    """How long points are to measure, as users say it: `10`, or `must=20,floods=5,mixed-takt=10`."""

    def __init__(self, text):
        self.rules = []
        for part in filter(None, (text or "").split(",")):
            name, equals, length = part.rpartition("=")
            try:
                seconds = float(length)
            except ValueError:
                seconds = 0.0
            if not seconds > 0 or (equals and not name):
                raise ValueError(f"{part}: write SECONDS, or NAME=SECONDS, such as floods=5")
            self.rules.append((name, seconds))

    def set(self, point):
        """The last rule that fits counts."""
        for name, seconds in self.rules:
            if fits(name, point):
                point.want_s = point.least_s = seconds


def fits(name, point):
    """Whether a rule with that name, or without one, is about a point."""
    if point.fixed:
        return name == point.name
    return not name or (name == "must" and point.rank == MUST) or point.begins([name])


def seconds_for(points, left_s):
    """How long the first of `points` may measure; nothing if there is no time for it.

    As many points as fit get their least time; what is left goes to the first ones.
    """
    first = points[0]
    left_s -= first.extra_s + first.least_s
    if left_s < 0:
        return None
    for point in points[1:]:
        if left_s < point.extra_s + point.least_s:
            break
        left_s -= point.extra_s + point.least_s
    return min(first.want_s, first.least_s + left_s)


def outlook(points, left_s):
    """Each point and how long it will measure, or nothing, if everything takes as long as is thought."""
    plan = []
    for at, point in enumerate(points):
        seconds = seconds_for(points[at:], left_s)
        plan.append((point, seconds))
        left_s -= 0 if seconds is None else seconds + point.extra_s
    return plan
