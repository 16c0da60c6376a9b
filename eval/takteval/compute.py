"""What is to be shown of CUDA in one run, in a few minutes: points of `cuda` and `shapes`, and a table that compares them
with what they should be."""

import glob
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from takteval import cuda, markdown, shapes
from takteval.crew import Crew, run
from takteval.daemon import Daemon
from takteval.machine import ROOT

# Which programs the doctor looks at: a name, and the arguments of `shapes.Shapes.program`.
DOCTOR, LAUNCHES = "doctor", "launches"
LOOKED_AT = {"kernels": "kernels", "graph": "graph", "PyTorch": "resnet152", "PyTorch as a graph": "resnet152-graph",
             "cuBLAS": "products", "CuPy": "vectors"}
# Where the vendor's profiling interface may lie.
CUPTI = ("/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*", "/usr/local/cuda*/targets/*/lib/libcupti.so*",
         f"{sys.prefix}/lib/python*/site-packages/nvidia/*/lib/libcupti.so*", "/usr/lib/*/libcupti.so*")
# Jobs at 60 Hz that must be seen without a miss.
JOBS_S = 20.5


@dataclass(frozen=True)
class Step:
    """A point of one of the experiments, how long it is measured, and what it costs besides."""

    of: str
    name: str
    seconds: float
    besides_s: float

    @property
    def cost_s(self):
        return self.seconds + self.besides_s


def steps(quick, lengths=None):
    """All of them, the most important first; with `lengths`, points whose names begin so are measured for that long."""
    chosen = lambda step: next((s for name, s in (lengths or {}).items() if step.name.startswith(name)), step.seconds)
    return [replace(step, seconds=chosen(step)) for step in all_steps(quick)]


def all_steps(quick):
    long_s = 6.0 if quick else JOBS_S
    gpu = lambda name, seconds: Step("cuda", name, seconds, 6.0)
    # A job at a part of its peak is timed first, by the program itself.
    model = lambda name, seconds: Step("shapes", name, seconds, 20.0 if "beside-takt" in name else 9.0)
    return [
        gpu("none-1xcuda-short-native", 3), gpu("job-5xcuda-short-takt", long_s),
        gpu("none-1xgl-flood-native", 3), gpu("job-5xgl-flood-takt", long_s),
        gpu("none-1xcuda-long-native", 4), gpu("job-5xcuda-long-takt", long_s), gpu("gl-5xcuda-long-takt", long_s),
        gpu("hercules-takt", 4 if quick else 20),
        model("resnet152-graph-alone-native", 4), model("resnet152-graph-beside-takt", 5 if quick else 15),
        model("resnet152-graph-beside-native", 5 if quick else 8),
        model("products-alone-native", 3), model("products-alone-takt", 4),
        model("resnet152-alone-native", 4), model("resnet152-alone-takt", 5), model("resnet152-graph-alone-takt", 4),
        model("shares-takt", 5), Step(DOCTOR, DOCTOR, 0, 25.0),
        Step(LAUNCHES, LAUNCHES, 0, 4.0),
        gpu("job-5xcuda-short-native", 3), gpu("job-5xcuda-long-native", 4), gpu("gl-5xcuda-long-native", 3),
        gpu("job-5xgl-flood-native", 4), model("graph-alone-native", 3), model("graph-alone-takt", 3),
        model("transformer-alone-native", 3), model("transformer-alone-takt", 3),
        model("vectors-alone-native", 3), model("vectors-alone-takt", 3),
    ]


class Compute:
    """Measures steps, and keeps what they gave."""

    def __init__(self, machine, driver, small, out):
        self.machine, self.out = machine, out
        self.cuda = cuda.Cuda(machine, driver, small)
        self.shapes = shapes.Shapes(machine, driver, small)
        self.results = {"points": {}, "took_s": {}}

    def prepare(self):
        self.results["machine"], self.results["loads"] = self.machine.facts(), self.cuda.prepare(self.out)

    def measure(self, step, folder):
        began = time.monotonic()
        if step.of == DOCTOR:
            figures = {"doctor": self.doctors()}
        elif step.of == LAUNCHES:
            figures = {"launch_ns": self.launches(folder)}
        elif step.name.startswith(cuda.HERCULES):
            figures = self.cuda.hercules(step.name.rsplit("-", 1)[-1], folder, step.seconds)
        elif step.of == "cuda":
            point = next(point for point in self.cuda.points() if point.name == step.name)
            figures = self.cuda.measure(point, folder, step.seconds)
        else:
            point = next(point for point in shapes.points() if point.name == step.name)
            figures = self.shapes.measure(point, folder, step.seconds)
        self.results["alone_ms"] = self.shapes.alone_ms | self.cuda.alone_ms
        self.results["took_s"][step.name] = round(time.monotonic() - began, 1)
        return figures

    def launches(self, folder):
        """What the call of a launch takes, natively and under Takt."""
        command = list(map(str, self.cuda.compute("launches", "--count", 50000)))
        said = {"native": json.loads(run(command, self.cuda.env(), 60))}
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew)
            words = [*map(str, daemon.options("launches", priority=10)), "--", *command]
            said["takt"] = json.loads(run(words, self.cuda.env(), 60))
        return {mode: {key: figures[key] for key in ("least_ns", "p50_ns")} for mode, figures in said.items()}

    def doctors(self):
        """What the doctor says of each program. All run at once: launches are counted, and nothing is timed."""
        commands = {name: [*self.shapes.program(what, "flood"), "--seconds", 0.5] for name, what in LOOKED_AT.items()}
        with ThreadPoolExecutor(len(commands)) as pool:
            return dict(zip(commands, pool.map(self.looked_at, commands.values())))

    def looked_at(self, command):
        """What the doctor says of the launches of a program, beside what CUPTI counted."""
        env = self.shapes.env()
        folders = {str(Path(path).parent) for pattern in CUPTI for path in glob.glob(pattern)}
        env["LD_LIBRARY_PATH"] = ":".join([env["LD_LIBRARY_PATH"], *sorted(folders)])
        words = [self.machine.bin / "takt", "doctor", "--seconds", 30, "--json", "-", "--", *command]
        try:
            # It ends with 1 where something is wrong, and says what all the same.
            done = subprocess.run([str(word) for word in words], env=env, cwd=self.out, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, errors="replace", timeout=60)
            said = json.loads(done.stdout)
        except (ValueError, subprocess.TimeoutExpired) as error:
            return f"failed: {error}"[:300]
        found = [each["found"] for each in said if each["topic"] == "cuda" and "kernels" in each["found"]]
        wrong = [each["found"] for each in said if each["status"] == "problem"]
        return (found or wrong or ["CUDA was not seen"])[-1]


def ratio(value, base, digits=3):
    return "?" if value is None or not base else f"{value / base:.{digits}f} ×"


def hero(results, name, who, goal, most=(1.05, 1.15)):
    """A row about a job or an app beside floods."""
    points, alone = results["points"], results.get("alone_ms", {}).get(who)
    native, figures = points.get(name.replace("-takt", "-native"), {}), points.get(name, {})
    if "fps" not in figures:
        return [name, goal, short(native), why(figures), ""]
    part = cuda.share(points, name, alone, results.get("alone_ms"))
    own = (f"{figures['fps']:.1f} FPS, {figures['missed']} of {figures['frames']} missed, p50 {figures['p50_ms']:.2f} "
           f"({ratio(figures['p50_ms'], alone)}), p99 {figures['p99_ms']:.2f} ({ratio(figures['p99_ms'], alone)}), "
           f"max {figures['max_ms']:.2f} ms, floods {'?' if part is None else f'{part:.0f} %'}")
    kept = [figures["missed"] == 0, bool(alone) and figures["p50_ms"] <= most[0] * alone,
            bool(alone) and figures["p99_ms"] <= most[1] * alone, part is not None and part >= 90]
    names = ("misses", "p50", "p99", "floods")
    return [name, goal, short(native), own, verdict(kept, names)]


def verdict(kept, names):
    missing = [name for good, name in zip(kept, names) if not good]
    return "yes" if not missing else "not: " + ", ".join(missing)


def short(figures):
    if "fps" not in figures:
        return why(figures)
    return f"{figures['fps']:.1f} FPS, {figures['missed']} missed"


def why(figures):
    return figures.get("error", "not measured").splitlines()[0][:120]


def set_of_hercules(results):
    figures = results["points"].get("hercules-takt", {})
    goal = "0 late (sphere 32 ms, network 4 ms)"
    if "apps" not in figures:
        return ["hercules", goal, "", why(figures), ""]
    apps = figures["apps"]
    words = [f"{name} {app['per_s']:.1f}/s, " + (f"{app['late']} of {app['frames']} late, " if app["late"] is not None else "")
             + f"p50 {markdown.number(app['p50_ms'])} max {markdown.number(app['max_ms'])}" for name, app in apps.items()]
    late = sum(app["late"] or 0 for app in apps.values())
    return ["hercules", goal, "", "; ".join(words), verdict([late == 0], ["late"])]


def two_models(results):
    points, what = results["points"], "resnet152-graph"
    alone = results.get("alone_ms", {}).get(what)
    native, figures = (points.get(f"{what}-beside-{mode}", {}) for mode in ("native", "takt"))
    goal = "p50 ≤ 1.05 ×, p99 ≤ 1.4 ×, background ≥ 90 %"
    words = lambda figures: why(figures) if "p50_ms" not in figures else (
        f"p50 {ratio(figures['p50_ms'], alone)}, p99 {ratio(figures['p99_ms'], alone)}, background "
        f"{figures['per_s']['beside-1']:.1f}/s")
    if "p50_ms" not in figures:
        return ["two ResNet-152", goal, words(native), words(figures), ""]
    peak = points.get(f"{what}-alone-native", {}).get("per_s", {}).get("hero")
    left = peak and peak * (1 - figures["per_s"]["hero"] * alone / 1000)
    part = 100 * figures["per_s"]["beside-1"] / left if left else None
    kept = [figures["p50_ms"] <= 1.05 * alone, figures["p99_ms"] <= 1.4 * alone, part is not None and part >= 90]
    own = words(figures) + (f" = {part:.0f} % of the rest" if part else "")
    return ["two ResNet-152", goal, words(native), own, verdict(kept, ["p50", "p99", "background"])]


def shares(results):
    figures = results["points"].get("shares-takt", {})
    if "per_s" not in figures:
        return ["shares", "75 : 25 ± 2", "", why(figures), ""]
    first, second = figures["per_s"]["hero"], figures["per_s"]["beside-1"]
    part = 100 * first / (first + second) if first + second else 0
    return ["shares", "75 : 25 ± 2", "", f"{part:.1f} : {100 - part:.1f}", verdict([abs(part - 75) <= 2], ["share"])]


def alone(results, what, name):
    """A program that has the GPU for itself."""
    points = results["points"]
    rate = lambda mode: points.get(f"{what}-alone-{mode}", {}).get("per_s", {}).get("hero")
    native, own = rate("native"), rate("takt")
    if not native or not own:
        return [f"{name} alone", "≥ 98 %", markdown.number(native), why(points.get(f"{what}-alone-takt", {})), ""]
    part = 100 * own / native
    return [f"{name} alone", "≥ 98 %", f"{native:.1f}/s", f"{own:.1f}/s, {part:.1f} %", verdict([part >= 98], ["rate"])]


def seen(results):
    """Launches that were made and seen, by the programs' own counts."""
    pairs = [pair for figures in results["points"].values() for pair in figures.get("launches", {}).values()]
    known = [pair for pair in pairs if pair["made"] is not None and pair["seen"] is not None]
    missing = sum(pair["made"] - pair["seen"] for pair in known)
    all_made = sum(pair["made"] for pair in known)
    rows = [["launches of our loads", "100 %", "", f"{all_made - missing} of {all_made} seen, {len(known)} programs",
             verdict([bool(known) and missing == 0], ["all"])]]
    taken = results["points"].get(LAUNCHES, {}).get("launch_ns")
    if taken:
        added = taken["takt"]["p50_ns"] - taken["native"]["p50_ns"]
        of = lambda mode: f"p50 {taken[mode]['p50_ns']:.0f}, least {taken[mode]['least_ns']:.0f} ns"
        rows.append(["a launch", "150 ns more", of("native"), f"{of('takt')}, {added:.0f} ns more",
                     verdict([added < 150], ["launch"])])
    for name, said in results["points"].get(DOCTOR, {}).get("doctor", {}).items():
        rows.append([f"launches, {name}", "all that CUPTI counts", "", said[-170:],
                     verdict(["that CUPTI counted were seen" in said], ["all"])])
    return rows


def table(results):
    """What should be, and what is."""
    beside = "0 missed, p50 ≤ 1.05 ×, p99 ≤ 1.15 ×, floods ≥ 90 %"
    rows = [lambda: hero(results, "job-5xcuda-long-takt", cuda.JOB, beside),
            lambda: hero(results, "job-5xcuda-short-takt", cuda.JOB, beside),
            lambda: hero(results, "gl-5xcuda-long-takt", cuda.GL, "0 missed, p99 ≤ 1.3 ×, floods ≥ 90 %", (9, 1.3)),
            lambda: hero(results, "job-5xgl-flood-takt", cuda.JOB, "0 missed", (9, 9)),
            lambda: set_of_hercules(results), lambda: two_models(results), lambda: shares(results),
            *(lambda what=what, name=name: alone(results, what, name) for what, name in
              (("resnet152", "PyTorch eager"), ("resnet152-graph", "PyTorch as a graph"), ("products", "cuBLAS"),
               ("transformer", "transformer"), ("graph", "graph of kernels"), ("vectors", "CuPy")))]
    made = []
    for make in rows:
        try:
            made.append(make())
        except Exception as error:  # The figures are in the JSON.
            made.append(["?", "", "", f"{type(error).__name__}: {error}", ""])
    made += seen(results)
    alone_ms = ", ".join(f"{name} {ms:.3f}" for name, ms in results.get("alone_ms", {}).items())
    return f"alone, ms: {alone_ms}\n\n" + markdown.table(["what", "goal", "native", "Takt", "kept"], made) + "\n"
