"""What the driver's own tool says about the GPU while something is measured, and what the system says about
processors."""

import os
import subprocess
import time
from pathlib import Path

EVERY_MS = 500


class Monitor:
    """`nvidia-smi`, where there is one, twice a second between `with` and its end.

    Its utilisation is the share of time, in its own sample periods, in which something ran on the GPU.
    Without `tool` it is left out: it has the GPU open, so that the daemon counts it among those outside of Takt.
    Of processes it notes how long their threads ran, and waited for a processor.
    """

    def __init__(self, machine, crew, tool=True):
        self._env = machine.env()
        self._crew = crew
        self.processors = None
        self._wanted = tool and machine.device == "nvidia"
        self._process = None
        self.percent, self.clock_mhz = [], []

    def __enter__(self):
        self._before = times(self._crew.pids())
        if self._wanted:
            try:
                self._process = subprocess.Popen(
                    ["nvidia-smi", "--query-gpu=utilization.gpu,clocks.gr", "--format=csv,noheader,nounits",
                     f"--loop-ms={EVERY_MS}"], env=self._env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL, text=True, start_new_session=True)
            except OSError:
                self._process = None
        return self

    def __exit__(self, *_):
        if self._process is not None:
            self._process.terminate()
            out, _ = self._process.communicate()
            self.take(out)
        self.processors = compared(self._before, times(self._crew.pids()))

    def take(self, out):
        """Reads what it said; lines that are no figures say that it does not know."""
        for line in out.splitlines():
            try:
                percent, clock = (float(cell) for cell in line.split(","))
            except ValueError:
                continue
            self.percent.append(percent)
            self.clock_mhz.append(clock)

    def figures(self):
        """Means; the first sample is about the time before, and left out. Of processors alone if there are no others."""
        if len(self.percent) < 2:
            return {"processors": self.processors}
        mean = lambda values: round(sum(values[1:]) / (len(values) - 1), 1)
        return {"samples": len(self.percent) - 1, "utilisation_percent": mean(self.percent),
                "clock_mhz": mean(self.clock_mhz), "processors": self.processors}


def times(pids):
    """What was used until now: by the clock, stolen by the host, and by the threads of processes, running and waiting."""
    ticks = Path("/proc/stat").read_text().splitlines()[0].split()
    used = {name: scheduled(pid) for name, pid in pids.items()}
    return time.monotonic(), int(ticks[8]) / os.sysconf("SC_CLK_TCK") if len(ticks) > 8 else 0.0, used


def scheduled(pid):
    """Seconds for which threads of a process ran, and for which they could have run but had no processor."""
    ran = waited = 0
    for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            fields = task.read_text().split()
            ran, waited = ran + int(fields[0]), waited + int(fields[1])
        except (OSError, ValueError, IndexError):
            # It has ended, or the system keeps no such account.
            continue
    return ran / 1e9, waited / 1e9


def compared(before, after):
    """Shares of the time between, in per cent of one processor."""
    seconds = max(1e-9, after[0] - before[0])
    # Threads that have ended take their times along.
    share = lambda now, then: round(max(0.0, 100 * (now - then) / seconds), 2)
    return {"stolen_percent": share(after[1], before[1]),
            "ran_percent": {name: share(used[0], before[2][name][0]) for name, used in after[2].items()
                            if name in before[2]},
            "waited_percent": {name: share(used[1], before[2][name][1]) for name, used in after[2].items()
                               if name in before[2]}}
