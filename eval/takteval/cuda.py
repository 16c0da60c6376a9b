"""CUDA beside CUDA and beside graphics: a job at 60 Hz, an app at 60 FPS, and floods of both kinds; and the set of
HERCULES D5.2."""

import json
from dataclasses import dataclass

from takteval import frames, load, markdown
from takteval.crew import Crew, Failed, run
from takteval.daemon import Daemon
from takteval.machine import ROOT

HZ = 60
FLOODS = 5
LONG, SHORT = "long", "short"
WARM_UP_S = 1.0
# How long programs may take to make their contexts and to load their code.
STARTING_S = 20.0
NATIVE, TAKT = "native", "takt"
# A job or an app is sized by what it takes alone at full clock; what people write for that is a little more.
RUNTIME_ROOM = 1.05
# The set of HERCULES D5.2 with times of scenarios/hercules-upload.toml, the most important first: what it is, how long
# it takes in ms, its rate, and its deadline in ms. The network takes its worst time in one job of eight, the sphere in
# each frame.
HERCULES = "hercules"
SET = {"network": ("cuda", 1.5, 25, 4.0), "sphere": ("gl", 3.3, 30, 32.0), "gears": ("gl", 0.6, 60, None),
       "textures": ("gl", 3.0, 0, None)}
NETWORK_RUNTIME_MS, NETWORK_WORST_MS, NETWORK_WORST_EVERY = 3.0, 2.5, 8
# Who is measured, and what runs beside it.
JOB, GL, NO_HERO = "job", "gl", "none"
CUDA_LONG, CUDA_SHORT, GL_FLOOD = f"cuda-{LONG}", f"cuda-{SHORT}", "gl-flood"


@dataclass(frozen=True)
class Point:
    hero: str
    flood: str
    count: int
    mode: str

    @property
    def name(self):
        beside = f"{self.count}x{self.flood}" if self.count else "alone"
        return f"{self.hero}-{beside}-{self.mode}"


class Cuda:
    def __init__(self, machine, driver, small):
        self.machine, self.driver, self.small = machine, driver, small
        # A driver without a GPU, and llvmpipe, show that everything works.
        self.job_ms, self.gl_ms = (2.0, 1.5) if small else (5.6, 3.0)
        self.flood_ms = {LONG: 40.0, SHORT: 1.1} if small else {LONG: 268.0, SHORT: 1.1}
        self.gl_flood_ms, self.size = (10, "128x96") if small else (100, "800x480")
        self.loops, self.gl, self.each_ns, self.fixed_ns = {}, None, None, 0.0
        # What the job and the app take alone, at the clock of a busy GPU.
        self.alone_ms = {}

    def env(self):
        env = self.machine.env()
        if self.driver:
            env["LD_LIBRARY_PATH"] = f"{self.driver.resolve()}:{env['LD_LIBRARY_PATH']}"
        return env

    def compute(self, *arguments):
        return [ROOT / "native/compute", *arguments]

    def prepare(self, out):
        """How long loads take here; the GPU must have nothing else to do."""
        said = json.loads(run(list(map(str, self.compute("calibrate"))), self.env(), 60))
        self.fixed_ns, self.each_ns = 1e3 * said["fixed_us"], said["per_iteration_ns"]
        self.loops = {JOB: self.kernel(self.job_ms),
                      **{length: self.kernel(ms) for length, ms in self.flood_ms.items()}}
        again = self.compute("flood", "--iterations", self.loops[JOB], "--seconds", 1)
        self.alone_ms[JOB] = json.loads(run(list(map(str, again)), self.env(), 30))["p50_ms"]
        facts = {"alone_ms": self.alone_ms, "calibrated": said, "loops": self.loops, "job_ms": self.job_ms, "flood_ms": self.flood_ms,
                 "gl_ms": self.gl_ms, "gl_flood_ms": self.gl_flood_ms}
        try:
            self.gl = load.Floods.timed(self.machine, self.size)
            facts["gl"] = self.gl.facts()
            alone = [self.machine.bin / "takt-flood", "--size", self.gl.size, "--iterations", self.gl.loops(self.gl_ms)]
            self.alone_ms[GL] = load.frame_ms(self.machine, alone)
        except Exception as error:  # CUDA is measured without GL, too.
            facts["gl_error"] = str(error)
        if not self.small:
            # A daemon would do so at its first start, beside the first point.
            try:
                facts["profile"] = run([self.machine.bin / "takt", "profile", "--new"], self.env(), 60, errors=True)[-600:]
            except Failed as failure:
                facts["profile"] = f"failed: {failure}"
        (out / "loads.json").write_text(json.dumps(facts, indent=1) + "\n")
        return facts

    def kernel(self, ms):
        """Iterations of a kernel that takes so long."""
        return max(1, round((1e6 * ms - self.fixed_ns) / self.each_ns))

    def points(self):
        both = (NATIVE, TAKT)
        points = [Point(JOB, "", 0, mode) for mode in both]
        points += [Point(JOB, flood, FLOODS, mode) for flood in (CUDA_LONG, CUDA_SHORT) for mode in both]
        points += [Point(NO_HERO, flood, count, NATIVE) for flood in (CUDA_LONG, CUDA_SHORT) for count in (1,)]
        points += [Point(GL, "", 0, mode) for mode in both] + [Point(GL, CUDA_LONG, FLOODS, mode) for mode in both]
        points += [Point(NO_HERO, GL_FLOOD, 1, NATIVE)]
        points += [Point(JOB, GL_FLOOD, FLOODS, mode) for mode in both]
        points += [Point(NO_HERO, flood, FLOODS, mode) for flood in (CUDA_LONG,) for mode in both]
        return points + [Point(NO_HERO, CUDA_SHORT, 1, TAKT), Point(GL, CUDA_SHORT, FLOODS, NATIVE),
                         Point(GL, CUDA_SHORT, FLOODS, TAKT)]

    def command(self, what, mode, log):
        """A program, and the terms that it asks for under Takt."""
        if what == JOB:
            terms = {"priority": 90, "period_ms": round(1000 / HZ, 3), "runtime_ms": round(RUNTIME_ROOM * self.job_ms, 1)}
            return self.compute("job", "--iterations", self.loops[JOB], "--hz", HZ, "--log", log), terms
        if what in (CUDA_LONG, CUDA_SHORT):
            return self.compute("flood", "--iterations", self.loops[what.removeprefix("cuda-")], "--log", log), {"priority": 10}
        if self.gl is None:
            raise Failed("GL could not be measured; loads.json says why")
        ms = self.gl_flood_ms if what == GL_FLOOD else self.gl_ms
        command = [self.machine.bin / "takt-flood", "--platform", "device", "--size", self.gl.size, "--iterations",
                   self.gl.loops(ms), "--json", "--frame-log", log]
        if what == GL_FLOOD:
            return [*command, "--in-flight", 2], {"priority": 10}
        terms = {"priority": 90, "fps": HZ, "etpf_ms": round(1.2 * self.gl_ms + 1, 2), "pace": "display"}
        # Under Takt the swap paces it, natively a clock of its own does.
        return [*command, "--finish", "--fps", HZ if mode == NATIVE else 0], terms

    def start(self, crew, daemon, name, what, mode):
        command, terms = self.command(what, mode, crew.folder / f"{name}.csv")
        env = self.env()
        if daemon:
            # What the library saw of the program's launches.
            env["TAKT_FACTS"] = str(crew.folder / f"{name}.facts")
            command = [*daemon.options(name, **terms), "--", *command]
        crew.start(name, command, env)

    def measure(self, point, folder, seconds):
        names = [f"flood-{number}" for number in range(1, point.count + 1)]
        hero = point.hero != NO_HERO
        listed = {}
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew) if point.mode == TAKT else None
            if hero:
                self.start(crew, daemon, "hero", point.hero, point.mode)
                crew.wait_for("the hero's first frame", lambda: load.drawn(folder / "hero.csv"), STARTING_S)
            for name in names:
                self.start(crew, daemon, name, point.flood, point.mode)
            logs = [folder / f"{name}.csv" for name in names]
            window = load.measured(crew, logs, WARM_UP_S, seconds, STARTING_S)
            if daemon:
                listed = daemon.list()
            killed = crew.stop(patience_s=3 + 0.6 * point.count)
        figures = {"window_s": window.seconds, "killed": killed, "list": listed}
        if hero:
            figures |= frames.judge(frames.read(folder / "hero.csv"), window, HZ)
        figures["flood_per_s"] = [round(frames.done(frames.read(log), window) / window.seconds, 4) for log in logs]
        figures["launches"] = {name: launches(folder, name) for name in (["hero"] if hero else []) + names}
        figures["said"] = {name: tail(folder / f"{name}.err") for name in ["daemon", "hero", *names]}
        return figures | {"brief": brief(figures)}


    def hercules(self, mode, folder, seconds):
        """The set of HERCULES: its figures by app."""
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew) if mode == TAKT else None
            for name in SET:
                command, terms = self.of_set(name, mode, folder / f"{name}.csv")
                env = self.env()
                if daemon:
                    env["TAKT_FACTS"] = str(folder / f"{name}.facts")
                    command = [*daemon.options(name, **terms), "--", *command]
                crew.start(name, command, env)
            logs = {name: folder / f"{name}.csv" for name in SET}
            window = load.measured(crew, logs.values(), WARM_UP_S, seconds, STARTING_S)
            listed = daemon.list() if daemon else {}
            killed = crew.stop(patience_s=4)
        figures = {"window_s": window.seconds, "killed": killed, "list": listed, "apps": {}}
        for name, (_, _, _, deadline_ms) in SET.items():
            figures["apps"][name] = judged(frames.read(logs[name]), window, deadline_ms)
        figures["said"] = {name: tail(folder / f"{name}.err") for name in ["daemon", *SET]}
        figures["launches"] = {"network": launches(folder, "network")}
        return figures

    def of_set(self, name, mode, log):
        """A program of the set of HERCULES, and the terms that it asks for under Takt."""
        kind, ms, rate, deadline_ms = SET[name]
        ms = ms / 2 if self.small else ms
        priority = 90 - list(SET).index(name)
        if kind == "cuda":
            terms = {"priority": priority, "period_ms": round(1000 / rate, 3), "runtime_ms": NETWORK_RUNTIME_MS,
                     "deadline_ms": deadline_ms}
            worst_ms = NETWORK_WORST_MS / 2 if self.small else NETWORK_WORST_MS
            return self.compute("job", "--iterations", self.kernel(ms), "--worst", self.kernel(worst_ms), "--every",
                                NETWORK_WORST_EVERY, "--hz", rate, "--log", log), terms
        if self.gl is None:
            raise Failed("GL could not be measured; loads.json says why")
        held = rate if mode == NATIVE else 0
        command = [self.machine.bin / "takt-flood", "--platform", "device", "--size", self.gl.size, "--iterations",
                   self.gl.loops(ms), "--json", "--frame-log", log, "--finish", "--fps", held]
        terms = {"priority": priority} | ({"fps": rate, "pace": "display"} if rate else {})
        return command, terms | ({"etpf_ms": round(1.2 * ms + 1, 2)} if deadline_ms else {})


def judged(frames_of, window, deadline_ms):
    """Responses in a window, and how many were late."""
    ms = sorted((end - begin) / 1e6 for begin, end in frames_of if window.start <= begin < window.end)
    at = lambda share: round(frames.percentile(ms, share), 3) if ms else None
    late = None if deadline_ms is None else sum(each > deadline_ms for each in ms)
    bins = {}
    for each in ms:
        bins[int(4 * each) / 4] = bins.get(int(4 * each) / 4, 0) + 1
    return {"frames": len(ms), "per_s": round(len(ms) / window.seconds, 2), "late": late, "p50_ms": at(0.5),
            "p99_ms": at(0.99), "max_ms": at(1.0), "histogram": bins}


def tail(path):
    return path.read_text(errors="replace")[-1500:] if path.exists() else ""


def launches(folder, name):
    """How many launches a program made, and how many its library saw."""
    facts = folder / f"{name}.cuda"
    seen = None
    if facts.exists():
        lines = dict(line.split("=", 1) for line in facts.read_text().splitlines() if "=" in line)
        seen = int(lines.get("cuda.kernels", -1))
    try:
        made = json.loads((folder / f"{name}.out").read_text()).get("launches")
    except ValueError:
        made = None
    return {"made": made, "seen": seen}


def brief(figures):
    apps = figures["list"].get("apps", [])
    kept = {app["name"]: app["slices"]["longest_us"] for app in apps if app.get("slices")}
    known = ("fps", "missed", "frames", "p50_ms", "p99_ms", "max_ms")
    return {**{key: figures[key] for key in known if key in figures},
            "floods_per_s": round(sum(figures["flood_per_s"]), 3), "slices_us": kept}


def share(points, name, job_ms, alone_ms=None):
    """The share of what the hero leaves that floods have, by what one of them does alone."""
    figures = points[name]
    hero, beside, _mode = name.split("-", 1)[0], name.split("x", 1)[-1].rsplit("-", 1)[0], name.rsplit("-", 1)[-1]
    alone = points.get(f"{NO_HERO}-1x{beside}-{NATIVE}", {}).get("flood_per_s")
    busy_ms = (alone_ms or {}).get(hero) or points.get(f"{hero}-alone-{NATIVE}", {}).get("p50_ms") or job_ms
    if not alone or not alone[0] or "fps" not in figures:
        return None
    left = 1 - figures["fps"] * busy_ms / 1000
    return 100 * sum(figures["flood_per_s"]) / (alone[0] * left)


def row(points, name, job_ms, alone_ms=None):
    figures = points[name]
    if "error" in figures:
        return [name, figures["error"].splitlines()[0][:160], *[""] * 8]
    of = lambda key, digits=2: markdown.number(figures.get(key), digits) if key in figures else ""
    part = share(points, name, job_ms, alone_ms)
    slices = figures["brief"]["slices_us"]
    seen = figures["launches"].values()
    whole = all(each["made"] == each["seen"] for each in seen if each["seen"] is not None)
    hero = next((app for app in figures["list"].get("apps", []) if app["name"] == "hero"), {})
    return [name, of("fps", 1), of("missed", 0), of("p50_ms"), of("p99_ms"), of("max_ms"),
            markdown.number(sum(figures["flood_per_s"]), 2) if figures["flood_per_s"] else "",
            "" if part is None else markdown.number(part, 0, " %"), ", ".join(f"{who} {us}" for who, us in slices.items()),
            ("all" if whole else "not all") if any(each["seen"] is not None for each in seen) else "",
            hero.get("admission", "")]


def table(results):
    """The points as a table."""
    points = results["points"]
    heads = ["point", "FPS", "missed", "p50 ms", "p99 ms", "max ms", "floods per s", "of the rest", "slices, µs",
             "launches seen", "the daemon says"]
    job_ms = results.get("loads", {}).get("job_ms", 0)
    rows = []
    for name in points:
        try:
            cells = row(points, name, job_ms, results.get("loads", {}).get("alone_ms"))
        except Exception as error:  # The figures are in the JSON.
            cells = [name, f"{type(error).__name__}: {error}"]
        rows.append([*cells, *[""] * (len(heads) - len(cells))])
    return markdown.table(heads, rows) + "\n"
