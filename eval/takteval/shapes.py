"""Programs as people run them on CUDA: inference, graphs, vectors, and the shapes of XSched's published workloads."""

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from takteval import frames, load, markdown
from takteval.crew import Crew, Failed, Skipped, run
from takteval.cuda import launches, tail
from takteval.daemon import Daemon
from takteval.machine import ROOT

# Beside this, in the repository as well as in a bundle.
MODEL = Path(__file__).resolve().parents[1] / "native/model.py"
NATIVE, TAKT, MPS = "native", "takt", "mps"
WARM_UP_S, STARTING_S = 1.0, 60.0
# What is promised to apps that have parts of the GPU: changes of contexts cost something as well.
SHARED = 0.92
# What XSched has published for its shapes, by the factor on the foreground's time alone (docs/evaluation.md).
PUBLISHED = {"resnet152-beside": "native 2.16, its level 2 1.135, level 3 1.019 (p99, GV100)",
             "shares": "74.7 : 25.3 (level 2), 71 : 24 (level 3), 70 : 26 (slices), of 75 : 25",
             "spikes": "native 2.2, its level 2 1.00 to 1.01 (76.1 ms alone)"}


@dataclass(frozen=True)
class Load:
    """A program: what it runs, and how. `share` of the GPU makes it a job by a clock, none a flood."""

    what: str
    share: float = None
    jitter: float = 0.0
    # That part of the GPU, of those that several have.
    part: float = None


@dataclass(frozen=True)
class Point:
    shape: str
    mode: str
    hero: Load
    beside: tuple = ()

    @property
    def name(self):
        return f"{self.shape}-{self.mode}"


# What programs run: PyTorch and CuPy, or kernels of a length in ms, so many in a row, as a graph or not.
MODELS = {"resnet152": ["--model", "resnet152"], "resnet152-graph": ["--model", "resnet152", "--graph"],
          "transformer": ["--model", "transformer"], "transformer-graph": ["--model", "transformer", "--graph"],
          "products": ["--model", "products"], "vectors": ["--model", "vectors"]}
KERNELS = {"kernels": (0.35, 16, False), "graph": (0.35, 16, True), "spike": (0.3, 250, False), "stencil": (1.0, 8, False)}


def points():
    """All points, the most important first."""
    made = []
    for what in ("resnet152", "kernels", "graph", "resnet152-graph", "transformer", "vectors"):
        job, flood = Load(what, share=0.2, jitter=0.5), Load(what)
        made += [Point(f"{what}-job", mode, job) for mode in (NATIVE, TAKT)]
        made += [Point(f"{what}-beside", mode, job, (flood,)) for mode in (NATIVE, TAKT, MPS)]
        made += [Point(f"{what}-alone", mode, flood) for mode in (NATIVE, TAKT)]
    for mode in (NATIVE, TAKT):
        made += [Point("products-alone", mode, Load("products")),
                 Point("shares", mode, Load("kernels", part=0.75), (Load("kernels", part=0.25),)),
                 Point("spikes-job", mode, Load("spike", share=0.38)),
                 Point("spikes", mode, Load("spike", share=0.38), (Load("stencil"),))]
    return made


class Shapes:
    def __init__(self, machine, driver, small):
        self.machine, self.driver, self.small = machine, driver, small
        self.each_ns, self.alone_ms = None, {}

    def env(self):
        env = self.machine.env()
        if self.driver:
            env["LD_LIBRARY_PATH"] = f"{self.driver.resolve()}:{env['LD_LIBRARY_PATH']}"
        return env

    def program(self, what, mode):
        """The command of a load, without what depends on the point."""
        if what in MODELS:
            return [sys.executable, MODEL, mode, *MODELS[what]]
        if self.each_ns is None:
            said = json.loads(run([str(ROOT / "native/compute"), "calibrate"], self.env(), 60))
            self.each_ns = said["per_iteration_ns"]
        ms, count, as_graph = KERNELS[what]
        count = max(1, count // 4) if self.small else count
        return [ROOT / "native/compute", mode, "--iterations", max(1, round(1e6 * ms / self.each_ns)), "--kernels", count,
                "--graph", int(as_graph)]

    def alone(self, what):
        """How long a job takes on an idle GPU."""
        if what not in self.alone_ms:
            if what in MODELS:
                words = list(map(str, self.program(what, "calibrate")))
                self.alone_ms[what] = json.loads(last_line(run(words, self.env(), 300)))["ms"]
            else:
                words = [*map(str, self.program(what, "flood")), "--seconds", "1.5"]
                self.alone_ms[what] = json.loads(run(words, self.env(), 60))["p50_ms"]
        return self.alone_ms[what]

    def command(self, each, log):
        """A load as a command, and the terms that it asks for under Takt."""
        if each.share is None:
            terms = {"priority": 10}
            if each.part:
                # Its share is in the daemon's configuration.
                terms = {"priority": round(100 * each.part)}
            return [*self.program(each.what, "flood"), "--log", log], terms
        ms = self.alone(each.what)
        # No server has a period below a millisecond.
        hz = round(min(1000 * each.share / ms, 500 * (1 - each.jitter)), 3)
        # The next job may come early by the jitter, and its budget must be there.
        period_ms = 1000 / hz * (1 - each.jitter)
        budget_ms = 1.15 * ms + 0.5
        if budget_ms > period_ms:
            raise Failed(f"jobs of {ms:.1f} ms every {period_ms:.1f} ms leave no room for a contract")
        terms = {"priority": 90, "period_ms": round(period_ms, 3), "runtime_ms": round(budget_ms, 3)}
        return [*self.program(each.what, "job"), "--hz", hz, "--jitter", each.jitter, "--log", log], terms

    def describe(self, point):
        """What a point would run, without running anything."""
        words = lambda each: each.what + (f" at {each.share:.0%} ± {each.jitter:.0%}" if each.share else "")
        return f"{point.name}: {' beside '.join(words(each) for each in (point.hero, *point.beside))}"

    def measure(self, point, folder, seconds):
        names = ["hero", *(f"beside-{number}" for number in range(1, len(point.beside) + 1))]
        commands = [self.command(each, folder / f"{name}.csv")
                    for name, each in zip(names, (point.hero, *point.beside))]
        listed = {}
        with Crew(folder) as crew:
            env = self.env() | (mps(crew, self.env()) if point.mode == MPS else {})
            daemon = Daemon(self.machine, crew, app=sections(point, names)) if point.mode == TAKT else None
            for name, (command, terms) in zip(names, commands):
                own = dict(env)
                if point.mode == MPS:
                    own["CUDA_MPS_CLIENT_PRIORITY"] = "0" if name == "hero" else "1"
                if daemon:
                    own["TAKT_FACTS"] = str(folder / f"{name}.facts")
                    command = [*daemon.options(name, **terms), "--", *command]
                crew.start(name, command, own)
            logs = [folder / f"{name}.csv" for name in names]
            window = load.measured(crew, logs, WARM_UP_S, seconds, STARTING_S)
            listed = daemon.list() if daemon else {}
            killed = crew.stop(patience_s=4)
        figures = {"window_s": window.seconds, "killed": killed, "list": listed, "published": PUBLISHED.get(point.shape)}
        figures |= frames.judge(frames.read(logs[0], released=False), window, None)
        figures["per_s"] = {name: round(frames.done(frames.read(log), window) / window.seconds, 4)
                            for name, log in zip(names, logs)}
        figures["launches"] = {name: launches(folder, name) for name in names}
        figures["said"] = {name: tail(folder / f"{name}.err") for name in ["daemon", *names]}
        return figures


def sections(point, names):
    """What the daemon's configuration says of apps that have parts of the GPU; none if there are none."""
    loads = (point.hero, *point.beside)
    return [{"name": name, "share": round(SHARED * each.part, 4)}
            for name, each in zip(names, loads) if each.part] or None


def last_line(text):
    return text.strip().splitlines()[-1]


def mps(crew, env):
    """The vendor's server, which makes one context of all programs."""
    control = shutil.which("nvidia-cuda-mps-control", path=env.get("PATH"))
    if not control:
        raise Skipped("there is no nvidia-cuda-mps-control")
    own = {"CUDA_MPS_PIPE_DIRECTORY": str(crew.folder), "CUDA_MPS_LOG_DIRECTORY": str(crew.folder)}
    crew.start("mps", [control, "-f"], env | own)
    return own


def against(points, name, key, shape):
    """A figure by that of another shape natively, or nothing."""
    other = points.get(f"{shape}-{NATIVE}", {}).get(key)
    own = points[name].get(key)
    return None if not other or own is None else own / other


def row(points, name):
    figures = points[name]
    if "error" in figures:
        return [name, figures["error"].splitlines()[0][:160]]
    shape = name.rsplit("-", 1)[0]
    base = shape.removesuffix("-beside") + "-job" if shape.endswith("-beside") else "spikes-job" if shape == "spikes" else ""
    of = lambda value, digits=2: "" if value is None else markdown.number(value, digits)
    rates = figures["per_s"]
    seen = [each for each in figures["launches"].values() if each["made"] is not None and each["seen"] is not None]
    return [name, of(figures["p50_ms"]), of(figures["p99_ms"]), of(against(points, name, "p50_ms", base), 3),
            of(against(points, name, "p99_ms", base), 3), ", ".join(of(rate) for rate in rates.values()),
            "" if not seen else "all" if all(each["made"] == each["seen"] for each in seen) else "not all",
            figures.get("published") or ""]


def table(results):
    """The points as a table."""
    heads = ["point", "p50 ms", "p99 ms", "p50 / alone", "p99 / alone", "per s", "launches seen", "published"]
    rows = [row(results["points"], name) for name in results["points"]]
    return markdown.table(heads, [[*cells, *[""] * (len(heads) - len(cells))] for cells in rows]) + "\n"
