"""Experiment 2: seventeen live apps on one GPU, after Table 4.1 of Schnitzer's thesis."""

import math
from dataclasses import dataclass

from takteval import frames, load, reality
from takteval.crew import Crew
from takteval.daemon import LOG, Daemon
from takteval.monitor import Monitor
from takteval.plan import LATER, MUST, SOON, Point

# From when all apps have drawn a frame, for which they have so long.
WARM_UP_S = 1.0
STARTING_S = 3.0
# TimeGraph's four variants: predictable response time or high throughput, budgets looked at after or before.
TIMEGRAPH = {f"timegraph-{turn}-{look}": {"turns": turns, "enforcement": enforcement}
             for turn, turns in (("prt", "single"), ("ht", "following"))
             for look, enforcement in (("pe", "posterior"), ("ae", "apriori"))}
POLICIES = ("fifo", "hpf", *TIMEGRAPH, "edf-cbs", "frrs", "germ", "edf-cbs-hard", "runlist")
MISPREDICTIONS = {"quarter": 0.25, "double": 2, "endless": 1000}
# Predicted wrongly where predictions are to be wrong.
MISPREDICTED = "quake3"


@dataclass
class App:
    """An app of the table: GPU time per frame as measured on the thesis's board."""

    name: str
    priority: int
    fps: int
    program: list
    frame_ms: float
    base: tuple
    reserved: bool = False

    @property
    def kind(self):
        """Apps of one kind need one size."""
        return (tuple(self.program), self.frame_ms)


def table():
    shading = ["takt-scene", "--shader", "phong"]
    texture = ["takt-scene", "--texture", "512"]
    build = ["takt-scene", "--shader", "diffuse", "--detail", "160"]
    # Faces as large as their surfaces would be painted for seconds.
    face = ["--texture", "1024"]
    apps = [
        App("speedometer", 17, 60, ["takt-speedometer", *face], 1.635, (456, 456), True),
        App("tachometer", 16, 60, ["takt-tachometer", *face], 1.635, (456, 456), True),
        App("shading", 15, 30, shading, 1.859, (800, 600), True),
        App("texture20", 14, 20, texture, 2.119, (800, 600), True),
        App("build-1", 13, 30, build, 1.369, (800, 600), True),
        App("build-2", 12, 30, build, 1.369, (800, 600), True),
        # Quake's place: some 300 draws of very different cost per frame.
        App(MISPREDICTED, 11, 30, ["takt-map"], 17.0, (1280, 480)),
    ]
    return apps + [App(f"texture-{11 - priority}", priority, 60, texture, 2.119, (800, 600))
                   for priority in range(10, 0, -1)]


class Experiment:
    def __init__(self, machine, small):
        self.machine = machine
        self.small = small
        self.apps = table()
        self.sizes = {}

    def prepare(self):
        """Finds sizes at which frames take as long as on the thesis's board."""
        scale, limit = (0.2, 600) if self.small else (1.0, 12_000)
        for app in self.apps:
            if app.kind not in self.sizes:
                base = tuple(side // 8 for side in app.base) if self.small else app.base
                command = [self.machine.bin / app.program[0], *app.program[1:]]
                self.sizes[app.kind] = load.sized(self.machine, command, app.frame_ms * scale, base, limit)
        return {app.name: {"wanted_ms": app.frame_ms * scale, "fps": app.fps, "priority": app.priority,
                           **self.sizes[app.kind]} for app in self.apps}

    def restore(self, known):
        for app in self.apps:
            self.sizes[app.kind] = {key: known[app.name][key] for key in ("size", "frame_ms")}
        return known

    def points(self):
        # What a user gets without a file, then what the pages of earlier runs compare.
        points = [self.point("defaults", MUST, "takt", policy=None, mpcg=None, blocking_ms=None, keep=True)]
        points += [self.point(f"timeline{more}", MUST, "takt", policy="timeline", mpcg=mpcg, keep=True)
                   for more, mpcg in (("", 2), ("-mpcg3", 3))]
        points += [self.point("takt", MUST, "takt", keep=True), self.point("takt-mpcg3", MUST, "takt", mpcg=3, keep=True),
                  self.point("native", MUST), self.point("egl-priority", MUST)]
        points += [self.point(f"takt-mpcg{mpcg}", SOON, "takt", mpcg=mpcg, keep=True) for mpcg in (1, 5)]
        points += [self.point("takt-bounded", SOON, "takt", blocking_ms=1)]
        points += [self.point(policy, SOON, "takt", policy=policy) for policy in POLICIES[:7]]
        points += [self.point(f"takt-{name}", SOON, "takt", factor=factor, keep=factor == 1000)
                   for name, factor in MISPREDICTIONS.items()]
        points += [self.point(f"takt-mpcg{mpcg}", LATER, "takt", mpcg=mpcg) for mpcg in (4, 10, 6, 7, 8, 9)]
        points += [self.point(policy, LATER, "takt", policy=policy) for policy in POLICIES[7:]]
        return points

    def point(self, name, rank, mode=None, *, policy="frame-deadline", mpcg=2, factor=None, blocking_ms=math.inf, keep=False):
        mode = mode or name
        about = {"mode": mode, "policy": policy if mode == "takt" else None, "mpcg": mpcg, "overpredict": factor,
                 "max_blocking_ms": None if blocking_ms is None else str(blocking_ms)}

        def run(folder, seconds):
            with Crew(folder) as crew:
                daemon = self.daemon(crew, policy, mpcg, blocking_ms) if mode == "takt" else None
                for app in self.apps:
                    options = ["--overpredict", factor] if factor and app.name == MISPREDICTED else []
                    crew.start(app.name, self.command(app, mode, daemon, options, folder), self.machine.env())
                logs = [folder / f"{app.name}.csv" for app in self.apps]
                load.measured(crew, logs, WARM_UP_S, 0.0, STARTING_S)
                waiting = [log.stem for log in logs if not load.drawn(log)]
                before_s = crew.cpu_s("daemon") if daemon else 0.0
                with Monitor(self.machine, crew) as monitor:
                    window = load.measured(crew, [], 0.0, seconds)
                seen = {"cpu_percent": round(100 * (crew.cpu_s("daemon") - before_s) / window.seconds, 2),
                        "list": daemon.list()} if daemon else None
                crew.stop(patience_s=3.0)
            figures = self.figures(folder, window) | {"daemon": seen, "monitor": monitor.figures(),
                                                      "without_first_frame": waiting}
            if (folder / LOG).exists():
                reality.pack(folder / LOG)
                figures["live"] = reality.Live.of(folder / LOG, window.start, window.end).figures()
                if not keep:
                    (folder / f"{LOG}.gz").unlink()
            return figures

        want_s = 20 if rank == MUST else 8
        return Point("mixed", f"mixed-{name}", run, rank, want_s=want_s, least_s=min(want_s, 8), extra_s=7, about=about)

    def daemon(self, crew, policy, mpcg, blocking_ms):
        """A daemon with that policy, or that variant of it, and its own defaults for what is None. Deadlines are to be
        kept here, and the GPU to be busy, so nothing else is promised unless said."""
        settings = {"policy": "timegraph", "timegraph": TIMEGRAPH[policy]} if policy in TIMEGRAPH else {"policy": policy}
        return Daemon(self.machine, crew, mpcg=mpcg, max_blocking_ms=blocking_ms, record=self.machine.can_record(),
                      **settings)

    def command(self, app, mode, daemon, options, folder):
        """How an app is started."""
        program = [self.machine.bin / app.program[0], *app.program[1:], *load.FINISH, "--size",
                   self.sizes[app.kind]["size"], "--frame-log", folder / f"{app.name}.csv", "--json"]
        if mode == "takt":
            # Work of apps with reserved time is not cut: few wait for it, and pieces have margins.
            reserved = {"etpf_ms": round(self.sizes[app.kind]["frame_ms"] * 1.2 + 2, 3), "max_slice_ms": 0}
            under = daemon.options(app.name, priority=app.priority, fps=app.fps, **(reserved if app.reserved else {}))
            return [*under, *options, "--", *program, "--fps", "0"]
        level = "high" if app.reserved else "medium" if app.priority > 10 else "low"
        priority = ["--egl-priority", level] if mode == "egl-priority" else []
        return [*program, "--fps", app.fps, *priority]

    def figures(self, folder, window):
        """Each app's frames, and how much of the GPU's time their work is."""
        judged, busy_ms = {}, 0.0
        for app in self.apps:
            log = frames.read(folder / f"{app.name}.csv")
            judged[app.name] = {"priority": app.priority, "target_fps": app.fps,
                                **frames.judge(log, window, app.fps)}
            busy_ms += frames.done(log, window) * self.sizes[app.kind]["frame_ms"]
        return {"window_s": window.seconds, "apps": judged,
                "work_percent": round(busy_ms / window.seconds / 10, 3)}

    @staticmethod
    def brief(figures):
        met = {app["priority"]: app["met_percent"] for app in figures["apps"].values()}
        rates = {name: app["fps"] for name, app in figures["apps"].items()}
        busy = (figures.get("live") or {}).get("utilisation")
        return (f"met % 17-12: {' '.join(f'{met[at]:g}' for at in range(17, 11, -1))}; {MISPREDICTED} "
                f"{rates[MISPREDICTED]:.1f} FPS; work {figures['work_percent']:.1f} % of the GPU"
                + (f", busy {100 * busy:.1f} %" if busy is not None else ""))
