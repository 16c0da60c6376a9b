"""Experiment 4: what Takt costs a program that has the GPU for itself."""

import csv
import json

from takteval import load
from takteval.crew import Crew, run
from takteval.daemon import Daemon
from takteval.plan import LATER, SOON, Point
from takteval.scenes import SCENES, glmark2, offscreen, rate

MODES = ("native", "hooked", "measured", "scheduled")
# Scenes that come first.
FIRST = 8


class Experiment:
    def __init__(self, machine, small):
        self.machine = machine
        # Large enough that a GPU has something to do.
        self.size = "200x150" if small else "3840x2160"

    def prepare(self):
        return {"size": self.size}

    def restore(self, _known):
        return self.prepare()

    def points(self):
        scenes = [self.scene(name, SOON if at < FIRST else LATER) for at, name in enumerate(SCENES)]
        return [self.bench(), self.own_scene(), *scenes]

    def scene(self, name, rank):
        def measure(folder, seconds):
            length = max(0.5, seconds / len(MODES))
            program = glmark2(self.machine, name, length, self.size)
            rates = {mode: rate(self.run(mode, program, folder, length)) for mode in MODES}
            return compared(rates) | {"gpu_busy": busy(folder / "groups.csv")}
        return Point("overhead", f"overhead-{name}", measure, rank, want_s=8, least_s=6, extra_s=3,
                     about={"scene": SCENES[name], "size": self.size})

    def own_scene(self):
        """An app that ends each frame on the GPU itself, so that no queue hides what is added."""
        def measure(folder, seconds):
            length = max(0.5, seconds / len(MODES))
            program = [self.machine.bin / "takt-scene", *load.FINISH, "--fps", "0", "--size", self.size, "--seconds",
                       f"{length:.2f}", "--warm-up", "5", "--json"]
            said = {mode: json.loads(self.run(mode, program, folder, length)) for mode in MODES}
            return compared({mode: one["fps"] for mode, one in said.items()}) | {
                "gpu_busy": busy(folder / "groups.csv"),
                "response_p50_us": {mode: one["response_us"]["p50"] for mode, one in said.items()}}
        return Point("overhead", "overhead-own-scene", measure, SOON, want_s=8, least_s=6, extra_s=3,
                     about={"scene": "takt-scene", "size": self.size})

    def bench(self):
        """Decisions and grants on this machine's processor."""
        def measure(folder, _seconds):
            figures = {}
            for name in ("decision", "grant"):
                out = run([self.machine.bin / "takt", "bench", name, "--json", "-"], self.machine.env(), 60, folder)
                figures[name] = json.loads(out)
            return {"bench": figures}
        return Point("overhead", "overhead-bench", measure, SOON, want_s=1, least_s=1, extra_s=12)

    def run(self, mode, program, folder, length):
        """What a program says that runs alone in a mode."""
        timeout_s = length * 3 + 25
        if mode == "native":
            return run(program, self.machine.env(native_windows=True, size=self.size), timeout_s)
        under = offscreen(self.machine, self.size)
        if mode == "measured":
            under += ["--measure", folder / "groups.csv"]
        if mode != "scheduled":
            return run([*under, "--", *program], self.machine.env(), timeout_s)
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew)
            under += ["--schedule", "--socket", daemon.socket]
            return run([*under, "--", *program], self.machine.env(), timeout_s)

    @staticmethod
    def brief(figures):
        if "bench" in figures:
            return "decisions and grants measured"
        shares = ", ".join(f"{mode} {share:.1f} %" for mode, share in figures["percent_of_native"].items())
        return f"native {figures['fps']['native']:.0f} FPS; {shares}; GPU busy {figures['gpu_busy']} %"


def compared(rates):
    return {"fps": rates, "percent_of_native": {mode: round(100 * fps / rates["native"], 2)
                                                for mode, fps in rates.items() if mode != "native"}}


def busy(path):
    """Share of time in which groups were on the GPU, in per cent; the first quarter is start-up.

    By the GPU's own clock where that is right, so time in which it waits for the processor or for a fence to be
    noticed does not count.
    """
    spans = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            spans.append((float(row["completed_us"]), float(row["measured_us"])))
    path.unlink()
    spans = spans[len(spans) // 4:]
    if len(spans) < 2:
        return None
    length = spans[-1][0] - spans[0][0]
    return round(min(100, 100 * sum(cost for _, cost in spans[1:]) / length), 1) if length > 0 else None
