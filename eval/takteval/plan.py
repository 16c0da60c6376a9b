"""Which measurements there are, in which order, and how long each may take."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Point:
    """One measurement. `measure(folder, seconds)` gives its figures."""

    experiment: str
    name: str
    measure: Callable
    want_s: float = 20.0
    least_s: float = 5.0
    # Starting and ending programs.
    extra_s: float = 3.0
    about: dict = field(default_factory=dict)


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
