"""What the driver's own tool says about the GPU while something is measured."""

import subprocess

EVERY_MS = 500


class Monitor:
    """`nvidia-smi`, where there is one, twice a second between `with` and its end.

    Its utilisation is the share of time, in its own sample periods, in which something ran on the GPU.
    """

    def __init__(self, machine):
        self._env = machine.env()
        self._wanted = machine.device == "nvidia"
        self._process = None
        self.percent, self.clock_mhz = [], []

    def __enter__(self):
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
        if self._process is None:
            return
        self._process.terminate()
        out, _ = self._process.communicate()
        self.take(out)

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
        """Means; the first sample is about the time before, and left out. None if there are no others."""
        if len(self.percent) < 2:
            return None
        mean = lambda values: round(sum(values[1:]) / (len(values) - 1), 1)
        return {"samples": len(self.percent) - 1, "utilisation_percent": mean(self.percent),
                "clock_mhz": mean(self.clock_mhz)}
