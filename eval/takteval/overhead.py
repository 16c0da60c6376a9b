"""Experiment 4: what Takt costs a program that has the GPU for itself."""

import csv
import json

from takteval import frames, load, reality
from takteval.crew import Crew, Failed, Skipped, run
from takteval.daemon import LOG, Daemon
from takteval.plan import LATER, SOON, Point
from takteval.scenes import SCENES, NoSetUp, glmark2, offscreen, rate

MODES = ("native", "hooked", "measured", "scheduled")
# Modes take turns so often, every other time backwards, so that a drift of the machine favours no mode.
ROUNDS = 2
# What a run begins with, and no rate contains.
WARM_UP_S = 0.3
# Scenes that come first.
FIRST = 8
# Those whose daemon is recorded as well, in a run of its own.
RECORDED = ("own-scene", "build", "jellyfish", "ideas", "buffer-subdata")
RECORDED_S = 0.7


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
            length = run_length(seconds)
            program = glmark2(self.machine, name, length, self.size, WARM_UP_S)

            def drawn(mode):
                try:
                    return rate(self.run(mode, program, folder, length))
                except NoSetUp as failure:
                    # What fails under Takt only is Takt's fault.
                    raise Skipped(f"fails natively: {failure}") if mode == "native" else failure from None
            rates = rounds(drawn)
            return compared(rates) | {"gpu_busy": busy(folder / "groups.csv", length)} | self.recorded(
                name, glmark2(self.machine, name, RECORDED_S, self.size), folder)
        return Point("overhead", f"overhead-{name}", measure, rank, want_s=8, least_s=6, extra_s=extra_s(name),
                     about={"scene": SCENES[name], "size": self.size})

    def own_scene(self):
        """An app that ends each frame on the GPU itself, so that no queue hides what is added."""
        def measure(folder, seconds):
            length, log = run_length(seconds), folder / "frames.csv"
            program = lambda seconds: [self.machine.bin / "takt-scene", *load.FINISH, "--fps", "0", "--size", self.size,
                                       "--seconds", f"{seconds:.2f}", "--frame-log", log]

            def drawn(mode):
                self.run(mode, program(WARM_UP_S + length), folder, length)
                return steady(frames.read(log))
            found = rounds(drawn)
            of = lambda at: {mode: [each[at] for each in runs] for mode, runs in found.items()}
            return compared(of(0)) | {
                "gpu_busy": busy(folder / "groups.csv", length),
                "response_p50_us": {mode: mean(each) for mode, each in of(1).items()},
            } | self.recorded("own-scene", program(RECORDED_S), folder)
        return Point("overhead", "overhead-own-scene", measure, SOON, want_s=8, least_s=6, extra_s=extra_s("own-scene"),
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

    def recorded(self, name, program, folder):
        """Keeps a daemon's log of some scenes. Nothing of that run is timed, as recording takes time."""
        if name not in RECORDED or not self.machine.can_record():
            return {}
        try:
            self.run("scheduled", program, folder, RECORDED_S, record=True)
            reality.pack(folder / LOG)
        except (Failed, OSError) as failure:
            return {"not_recorded": str(failure)}
        return {}

    def run(self, mode, program, folder, length, record=False):
        """What a program says that runs alone in a mode."""
        timeout_s = length * 3 + 25
        if mode == "native":
            return run(program, self.machine.env(native_windows=True, size=self.size), timeout_s, errors=True)
        under = offscreen(self.machine, self.size)
        if mode == "measured":
            under += ["--measure", folder / "groups.csv"]
        if mode != "scheduled":
            return run([*under, "--", *program], self.machine.env(), timeout_s, errors=True)
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew, record=record)
            under += ["--schedule", "--socket", daemon.socket]
            return run([*under, "--", *program], self.machine.env(), timeout_s, errors=True)

    @staticmethod
    def brief(figures):
        if "bench" in figures:
            return "decisions and grants measured"
        shares = ", ".join(f"{mode} {share:.1f} %" for mode, share in figures["percent_of_native"].items())
        return f"native {figures['fps']['native']:.0f} FPS; {shares}; GPU busy {figures['gpu_busy']} %"


def run_length(seconds):
    """How long each run of a point is, without its start."""
    return max(0.5, seconds / len(MODES) / ROUNDS)


def extra_s(name):
    """What starting and warming up takes, and recording."""
    return (0.7 + WARM_UP_S) * len(MODES) * ROUNDS + (RECORDED_S + 0.8) * (name in RECORDED)


def rounds(measure):
    """What `measure` gives for each mode in each round. Native comes first: what fails there is not tried again."""
    found = {mode: [] for mode in MODES}
    for number in range(ROUNDS):
        for mode in reversed(MODES) if number % 2 else MODES:
            found[mode].append(measure(mode))
    return found


def mean(values):
    return sum(values) / len(values)


def compared(rounds_fps):
    """Means of all rounds, beside each other."""
    fps = {mode: mean(each) for mode, each in rounds_fps.items()}
    return {"fps": fps, "rounds_fps": rounds_fps,
            "percent_of_native": {mode: round(100 * each / fps["native"], 2) for mode, each in fps.items()
                                  if mode != "native"}}


def steady(log):
    """Frames per second and the median response in us, of frames that begin after the start."""
    log = [frame for frame in log if frame[0] >= log[0][0] + WARM_UP_S * 1e9]
    if len(log) < 2:
        raise Failed("too few frames were drawn after the start")
    return ((len(log) - 1) * 1e9 / (log[-1][1] - log[0][1]),
            frames.percentile(sorted((end - begin) / 1e3 for begin, end in log), 0.5))


def busy(path, length):
    """Share of time in which groups were on the GPU, in per cent; a quarter or what is start-up is left out.

    By the GPU's own clock where that is right, so time in which it waits for the processor or for a fence to be
    noticed does not count.
    """
    spans = []
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            spans.append((float(row["completed_us"]), float(row["measured_us"])))
    path.unlink()
    spans = spans[int(len(spans) * max(0.25, WARM_UP_S / (WARM_UP_S + length) + 0.1)):]
    if len(spans) < 2:
        return None
    length = spans[-1][0] - spans[0][0]
    return round(min(100, 100 * sum(cost for _, cost in spans[1:]) / length), 1) if length > 0 else None
