"""Nothing of an earlier measurement may be left when the next one begins."""

import json
import os
import signal
import time
from pathlib import Path

from takteval import load
from takteval.crew import Failed, run

# How long to wait for programs that end, and for a GPU that works off what they left.
PATIENCE_S = 10.0
PROBE = ["--size", "256x256", "--iterations", "20", "--frames", "8", "--fps", "0", "--json"]


class Idle:
    """Knows how long a small draw takes on this GPU while it has nothing else to do."""

    def __init__(self, machine):
        self._machine = machine
        self._usual_ms = None

    def draw_ms(self):
        """The median of some small draws, each finished before the next."""
        said = run([self._machine.bin / "takt-flood", *load.FINISH, *PROBE], self._machine.env(), PATIENCE_S)
        return json.loads(said)["response_us"]["p50"] / 1e3

    def await_it(self):
        """Waits until no program of the bundle runs and the GPU is as fast as in the beginning; how long
        a small draw took then, or `Failed`."""
        until = time.monotonic() + PATIENCE_S
        while left := programs(self._machine.bin):
            if time.monotonic() > until:
                raise Failed(f"programs of an earlier point are left and cannot be ended: {left}")
            for pid in left:
                end(pid)
            time.sleep(0.05)
        if self._usual_ms is None:
            self._usual_ms = min(self.draw_ms() for _ in range(2))
        while (found := self.draw_ms()) > limit_ms(self._usual_ms, self._machine.device == "mesa"):
            if time.monotonic() > until:
                raise Failed(f"the GPU is not idle: a small draw takes {found:.2f} ms, and took "
                             f"{self._usual_ms:.2f} ms in the beginning")
            time.sleep(0.2)
        return round(found, 4)


def limit_ms(usual_ms, on_processor=False):
    """Draws that take longer than this wait for another program's. A processor is never as idle as a GPU."""
    return 4 * usual_ms + 20 if on_processor else 2 * usual_ms + 0.5


def programs(folder):
    """Processes whose program lies in a folder: pid and name."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            program = Path(os.readlink(entry / "exe"))
            ended = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except OSError:
            continue
        if program.parent == folder and not ended:
            found[int(entry.name)] = program.name
    return found


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
