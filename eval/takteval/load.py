"""Loads of known length: how many loops of `takt-flood`, or pixels of an app, take how long here."""

import json
import time

from takteval import frames
from takteval.crew import Failed, run

# One frame after the other; what a swap waits for counts for none.
FINISH = ["--platform", "device", "--finish"]
# Bytes of a frame log without frames, and how long to wait for first frames.
LOG_HEAD = 60
STARTING_S = 4.0
# How long frames are timed; the median is at the clock of a busy GPU then, not at that of one that has just been idle.
TIMED_S = 0.8
# Frames by which floods of a kind are sized, and how far off that may be.
KIND_FRAMES, NEAR_ENOUGH = 8, 0.1


def flood(machine, size, ms):
    """Loops for draws of `ms`, found by timing, and how long they really take."""
    command = [machine.bin / "takt-flood", *FINISH, "--size", size, "--draw-ms", ms, "--frames", "20", "--json"]
    for tries_left in (2, 1, 0):
        try:
            said = json.loads(run(command, machine.env(), 60))
            return said["iterations"], said["response_us"]["p50"] / 1e3
        except Failed:
            # Another program may have been at work.
            if not tries_left:
                raise


class Floods:
    """Loops for draws of any length, by a line through two lengths that were timed."""

    def __init__(self, size, ms_per_loop, base_ms):
        self.size, self.ms_per_loop, self.base_ms = size, ms_per_loop, base_ms

    @classmethod
    def timed(cls, machine, size, short_ms=1.0, long_ms=10.0):
        """By timing draws on an idle GPU."""
        points = [flood(machine, size, ms) for ms in (short_ms, long_ms)]
        (low, low_ms), (high, high_ms) = points
        if high <= low or high_ms <= low_ms:
            raise Failed(f"longer draws are not longer here: {points}; is the GPU idle?")
        ms_per_loop = (high_ms - low_ms) / (high - low)
        return cls(size, ms_per_loop, low_ms - low * ms_per_loop)

    @classmethod
    def known(cls, facts):
        """As an earlier run has found it."""
        return cls(facts["size"], facts["ms_per_loop"], facts["base_ms"])

    def wider(self, times):
        """The same where sides are so many times as long: fragments share what a draw takes."""
        size = "x".join(str(times * int(side)) for side in self.size.split("x"))
        return Floods(size, self.ms_per_loop * times ** 2, self.base_ms)

    def loops(self, ms):
        return max(1, round((ms - self.base_ms) / self.ms_per_loop))

    def facts(self):
        return {"size": self.size, "ms_per_loop": self.ms_per_loop, "base_ms": self.base_ms}


def of_kind(machine, kind, size, ms):
    """How often work of a kind of `takt-flood` must be repeated to take `ms`, and how long that really takes."""
    command = [machine.bin / "takt-flood", *FINISH, "--kind", kind, "--size", size, "--fps", "0", "--json"]
    timed = lambda *more: json.loads(run([*command, *more], machine.env(), 60))
    said = timed("--draw-ms", ms, "--frames", KIND_FRAMES)
    iterations, found_ms = said["iterations"], said["response_us"]["p50"] / 1e3
    if abs(found_ms / ms - 1) > NEAR_ENOUGH:
        # A GPU that was idle has raised its clock meanwhile.
        iterations = max(1, round(iterations * ms / found_ms))
        found_ms = timed("--iterations", iterations, "--frames", KIND_FRAMES)["response_us"]["p50"] / 1e3
    return {"iterations": iterations, "ms": found_ms}


def frame_ms(machine, command):
    """How long a frame takes on a GPU that has nothing else to do, and has raised its clock."""
    said = json.loads(run([*command, *FINISH, "--fps", "0", "--warm-up", "3", "--seconds", TIMED_S, "--json"],
                          machine.env(), 60))
    return said["response_us"]["p50"] / 1e3


def sized(machine, command, wanted_ms, base, limit):
    """The size, of the proportions of `base`, at which a frame of `command` takes `wanted_ms`; or the
    best that was found with sides up to `limit`."""
    size, best = base, None
    for _ in range(5):
        found = frame_ms(machine, [*command, "--size", f"{size[0]}x{size[1]}"])
        error = abs(found / wanted_ms - 1)
        if best is None or error < best["error"]:
            best = {"size": f"{size[0]}x{size[1]}", "frame_ms": found, "error": error}
        scale = min(4.0, max(0.25, (wanted_ms / found) ** 0.5))
        wider = tuple(min(limit, max(16, round(side * scale))) for side in size)
        if error < 0.03 or wider == size:
            break
        size = wider
    return best


def drawn(log):
    """Whether an app has drawn a frame."""
    return log.exists() and log.stat().st_size > LOG_HEAD


def measured(crew, logs, warm_up_s, seconds, starting_s=STARTING_S, halfway=lambda: None):
    """Lets everything run for a while once all apps have drawn a frame; the time that counts. `halfway` is called in
    its middle."""
    until = time.monotonic() + starting_s
    # One that still waits for its first frame shall be measured as well.
    while not all(map(drawn, logs)) and time.monotonic() < until:
        crew.sleep(0.05)
    crew.sleep(warm_up_s)
    start = time.monotonic_ns()
    crew.sleep(seconds / 2)
    halfway()
    crew.sleep(max(0.0, seconds - (time.monotonic_ns() - start) / 1e9))
    return frames.Window(start, time.monotonic_ns())
