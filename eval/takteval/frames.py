"""Frame logs of apps, judged by one rule.

A frame is released when its app begins to draw it: natively when the app's own clock says so, under
Takt when the swap before it returns. It must end on the GPU one period later. A period in which no
frame begins is missed as well, so nothing is gained by holding an app back.
"""

import csv
import math
from bisect import bisect_left
from dataclasses import dataclass

SECOND = 1_000_000_000


@dataclass
class Window:
    """The time that counts, in ns of CLOCK_MONOTONIC."""

    start: int
    end: int

    @property
    def seconds(self):
        return (self.end - self.start) / SECOND


def read(path, released=False):
    """Begin and end of each frame, or its release by the app's own clock and its end; a last line that was cut off is
    left out."""
    frames = []
    with open(path, newline="") as file:
        rows = csv.reader(file)
        next(rows, None)
        for row in rows:
            if len(row) == 6:
                frames.append((int(row[1 if released else 2]), int(row[4])))
    return frames


def percentile(ordered, share):
    """The smallest value that `share` of all values do not exceed."""
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def judge(frames, window, fps):
    """Figures of an app that is to draw `fps` frames per second; times in ms."""
    inside = [frame for frame in frames if window.start <= frame[0] < window.end]
    responses = sorted(end - begin for begin, end in inside)
    ms = lambda ns: None if ns is None else round(ns / 1e6, 4)
    figures = {
        "frames": len(inside),
        "fps": round(sum(window.start <= end < window.end for _, end in frames) / window.seconds, 3),
        "p50_ms": ms(percentile(responses, 0.5)),
        "p99_ms": ms(percentile(responses, 0.99)),
        "max_ms": ms(responses[-1] if responses else None),
    }
    if fps:
        period = SECOND / fps
        late = sum(response > period for response in responses)
        skipped = skipped_periods([begin for begin, _ in inside], window, period)
        periods = len(inside) + skipped
        figures.update(late=late, skipped=skipped, missed=late + skipped,
                       met_percent=round(100 * (1 - (late + skipped) / periods), 4) if periods else 0.0)
    return figures


def skipped_periods(begins, window, period):
    """Periods in which no frame began. The first and the last frame may lie anywhere in theirs."""
    if not begins:
        return round((window.end - window.start) / period)
    edges = (begins[0] - window.start, window.end - begins[-1])
    outside = sum(max(0, int(gap / period - 0.5)) for gap in edges)
    inside = round((begins[-1] - begins[0]) / period) + 1 - len(begins)
    return outside + max(0, inside)


def done(frames, window):
    """How many frames' worth of work ended in the window, parts of frames at its edges included."""
    ends = [end for _, end in frames]
    first = bisect_left(ends, window.start)
    total, before = 0.0, ends[first - 1] if first else (frames[0][0] if frames else 0)
    for end in ends[first:]:
        inside = min(end, window.end) - max(before, window.start)
        total += max(0, inside) / max(1, end - before)
        before = end
        if end >= window.end:
            break
    return total
