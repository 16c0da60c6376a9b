"""Experiment 1: an app that must be on time beside floods of long draws."""

import math

from takteval import frames, load, reality
from takteval.crew import Crew, Failed
from takteval.daemon import LOG, Daemon
from takteval.monitor import Monitor
from takteval.plan import LAST, LATER, MUST, SOON, Point

FPS = 60
LENGTHS_MS = (1, 10, 100, 1000)
SLICES_MS = (0.25, 0.5, 1, 2, 4)
WARM_UP_S = 1.0
MODES = ("native", "egl-priority", "takt", "takt-unsliced")
# How long floods may delay the app; in mode takt-deadlines as long as no deadline is in danger.
MAX_BLOCKING_MS = 0.3
# How long pieces may be in mode takt-stretched, where no release is near.
MAX_STRETCH_MS = 4
# Floods of another make: triangles enough to be cut into ranges of them, or sides so many times as long, for the same
# time, so that there are more fragments and each is shorter.
RANGES, WIDE = "ranges", "wide"
PRIMITIVES = 2000
WIDER = 4


class Experiment:
    def __init__(self, machine, small):
        self.machine = machine
        self.small = small
        # llvmpipe is no GPU: small loads show that everything works.
        self.hero_ms = 1.5 if small else 3.0
        self.scale = 0.1 if small else 1.0
        self.hero_loops = self.floods = self.alone = None

    def prepare(self):
        self.floods = load.Floods.timed(self.machine, "128x96" if self.small else "800x480")
        self.hero_loops = self.floods.loops(self.hero_ms)
        return {"hero_ms": self.hero_ms, "hero_loops": self.hero_loops, **self.floods.facts()}

    def restore(self, known):
        self.floods = load.Floods.known(known)
        self.hero_loops = known["hero_loops"]
        return known

    def points(self):
        """All measurements."""
        points = [self.point(0, 0, mode, rank=MUST) for mode in ("native", "takt")]
        points += [self.alone_point(length, rank=MUST) for length in (100, 1)]
        points += [self.point(5, length, mode, rank=MUST, record=True) for length in (100, 1) for mode in MODES[:3]]
        # What decides how much is left to floods: pieces, and how many of them are in flight. A GPU drains
        # after each piece, so that short ones waste its time.
        points += [self.point(5, 100, "takt-stretched", rank=MUST, record=True)]
        points += [self.point(5, 100, "takt", rank=SOON, slice_ms=2.0)]
        points += [self.point(5, 100, "takt", rank=SOON, slice_ms=ms, mpcg=mpcg)
                   for ms, mpcg in ((4.0, 2), (1.0, 3), (2.0, 3))]
        points += [self.point(5, 100, mode, rank=SOON) for mode in ("takt-unsliced", "takt-deadlines")]
        points += [self.point(5, 10, mode) for mode in MODES[:3]] + [self.alone_point(10)]
        points += [self.point(1, 100, mode) for mode in MODES[:3]]
        points += [self.point(5, 100, "takt", slice_ms=ms) for ms in (0.25, 0.5)]
        points += [self.point(5, 100, "takt", make=RANGES), self.alone_point(100, make=RANGES)]
        points += [self.point(5, 1, "takt-deadlines")]
        points += [self.point(5, 1000, mode) for mode in MODES[:3]] + [self.alone_point(1000)]
        points += [self.point(1, length, mode, rank=LAST) for length in (1, 10, 1000) for mode in MODES[:3]]
        points += [self.point(5, 100, "takt", rank=LAST, mpcg=mpcg) for mpcg in (1, 4)]
        for count, length in ((1, 1000), (5, 100)):
            points += [self.point(count, length, "takt", rank=LAST, make=WIDE), self.alone_point(length, make=WIDE, rank=LAST)]
        points += [self.point(count, length, "takt-unsliced", rank=LAST) for count in (1, 5) for length in LENGTHS_MS
                   if (count, length) != (5, 100)]
        return points

    def flood_command(self, length_ms, make, log):
        # What is behind a long draw would only be waited for at the end.
        in_flight = 1 if length_ms >= 1000 else 2
        floods = self.floods.wider(WIDER) if make == WIDE else self.floods
        return [self.machine.bin / "takt-flood", "--platform", "device", "--size", floods.size, "--iterations",
                floods.loops(length_ms * self.scale), "--in-flight", in_flight, "--json", "--frame-log", log,
                *(["--primitives", PRIMITIVES] if make == RANGES else [])]

    def alone_point(self, length_ms, make=None, rank=LATER):
        """How much one flood gets done without other programs: all of the GPU."""
        def measure(folder, seconds):
            with Crew(folder) as crew:
                crew.start("flood-1", self.flood_command(length_ms, make, folder / "flood-1.csv"),
                           self.machine.env())
                window = load.measured(crew, [folder / "flood-1.csv"], WARM_UP_S, seconds)
            work = frames.done(frames.read(folder / "flood-1.csv"), window)
            if work <= 0:
                raise Failed("the flood finished no frame")
            return {"window_s": window.seconds, "draws_per_s": work / window.seconds,
                    "draw_ms": 1000 * window.seconds / work}
        name = f"flood-alone-{length_ms}ms" + (f"-{make}" if make else "")
        about = {"mode": "native", "floods": 1, "draw_ms": length_ms, "make": make, "alone": True}
        want_s = 12 if length_ms >= 1000 else 8 if rank == MUST else 5
        return Point("floods", name, measure, rank, want_s=want_s, least_s=4, extra_s=2, about=about)

    def point(self, count, length_ms, mode, rank=LATER, *, slice_ms=1.0, mpcg=2, make=None, record=False):
        about = {"mode": mode, "floods": count, "draw_ms": length_ms, "make": make,
                 "mpcg": mpcg if mode.startswith("takt") else None,
                 "slice_ms": {"takt": slice_ms, "takt-stretched": slice_ms, "takt-deadlines": slice_ms,
                              "takt-unsliced": 0}.get(mode)}

        def measure(folder, seconds):
            with Crew(folder) as crew:
                logged = record and mode.startswith("takt") and self.machine.can_record()
                hero, flood = self.starts(crew, mode, about, logged)
                hero(["--frame-log", folder / "hero.csv"])
                # The app is at work before others disturb it, as in a car that has started.
                crew.sleep(0.5)
                logs = [folder / f"flood-{number}.csv" for number in range(1, count + 1)]
                for log in logs:
                    flood(log.stem, self.flood_command(length_ms, make, log))
                with Monitor(self.machine, crew) as monitor:
                    window = load.measured(crew, logs, WARM_UP_S, seconds)
                killed = crew.stop(patience_s=min(5.0, 2 + 2 * count * length_ms * self.scale / 1000))
            if logged:
                reality.pack(folder / LOG)
            figures = {"window_s": window.seconds, "killed": killed, "monitor": monitor.figures(),
                       **frames.judge(frames.read(folder / "hero.csv"), window, FPS)}
            if figures["fps"] > 1.1 * FPS:
                raise Failed(f"the app was not paced: {figures['fps']} FPS; hero.err says why")
            work = [frames.done(frames.read(log), window) for log in logs if log.exists()]
            return figures | {"flood_draws_per_s": [round(each / window.seconds, 4) for each in work]}

        name = f"hero-{count}x{length_ms}ms-{mode}" if count else f"hero-alone-{mode}"
        name += f"-slice{slice_ms:g}" * (slice_ms != 1.0) + f"-mpcg{mpcg}" * (mpcg != 2) + (f"-{make}" if make else "")
        # Floods of long draws take as long to start and to end.
        extra_s = 3.0 if length_ms < 1000 else 8.0
        want_s = 20 if rank == MUST else 5 if length_ms < 1000 else 8
        return Point("floods", name, measure, rank, want_s=want_s, least_s=min(want_s, 5), extra_s=extra_s, about=about)

    def starts(self, crew, mode, about, record):
        """How the app and floods are started in a mode."""
        env = self.machine.env()
        hero = [self.machine.bin / "takt-flood", *load.FINISH, "--size", self.floods.size, "--iterations",
                self.hero_loops, "--json"]
        if mode in ("native", "egl-priority"):
            priority = lambda level: ["--egl-priority", level] if mode == "egl-priority" else []
            return (lambda more: crew.start("hero", [*hero, "--fps", FPS, *priority("high"), *more], env),
                    lambda name, command: crew.start(name, [*command, *priority("low")], env))
        blocking_ms = math.inf if mode == "takt-deadlines" else MAX_BLOCKING_MS
        daemon = Daemon(self.machine, crew, max_slice_ms=about["slice_ms"], max_blocking_ms=blocking_ms,
                        max_stretch_ms=MAX_STRETCH_MS if mode == "takt-stretched" else None, mpcg=about["mpcg"],
                        record=record)
        # The swap paces it, and its own draw is never cut: no more important app waits for it.
        wanted = daemon.options("hero", priority=90, fps=FPS, etpf_ms=round(self.hero_ms * 1.2 + 2, 3),
                                max_slice_ms=0)
        return (lambda more: crew.start("hero", [*wanted, "--", *hero, "--fps", "0", *more], env),
                lambda name, command: crew.start(name, [*daemon.options(name, priority=10), "--", *command], env))

    @staticmethod
    def brief(figures):
        """The figures of a point in one line."""
        if "draws_per_s" in figures:
            return f"{figures['draws_per_s']:.2f} draws/s, {figures['draw_ms']:.3f} ms each"
        ms = lambda key: "-" if figures[key] is None else f"{figures[key]:.2f}"
        return (f"{figures['fps']:.1f} FPS, {figures['missed']} of {figures['frames'] + figures['skipped']} missed, "
                f"p50 {ms('p50_ms')} p99 {ms('p99_ms')} max {ms('max_ms')} ms; "
                f"floods {sum(figures['flood_draws_per_s']):.2f} draws/s")
