"""Experiment: an app that must be on time beside each kind of flood, paced in three ways, with Takt's defaults.

The daemon's configuration is empty, and the app says its priority, rate and GPU time per frame alone.
"""

from takteval import frames, load, outsider, traps
from takteval.crew import Crew, Failed, run
from takteval.daemon import Daemon
from takteval.monitor import Monitor
from takteval.plan import LAST, LATER, MUST, SOON, Point

FPS = 60
FLOODS = 5
LENGTH_MS, LONGER = 100, 3
WARM_UP_S = 1.0
# Those first of which least is known.
FIRST = ("compute", "feedback")
KINDS = (*FIRST, "fragment", "vertex", "many-draws", "render-to-texture", "upload", "blit", "mipmap")
# How the app begins its frames, natively and under Takt. A pbuffer's swap waits for nothing by itself, so with `swap` it is
# told that a display paces it, as it would find in a window; natively nothing could hold its swap.
SWAP, OWN, NO_SWAP = "swap", "own", "no-swap"
PACES = {SWAP: ["--pace", "swap"], OWN: ["--finish"], NO_SWAP: ["--no-swap", "--warm-up", "3"]}
TERMS = {SWAP: {"pace": "display"}, OWN: {}, NO_SWAP: {}}
HERO, FLOOD = {"priority": 90, "fps": FPS}, {"priority": 10}
# An app that holds a contract and hardly draws, so that what cutting costs a flood is seen by itself.
IDLE = ["--size", "16x16", "--iterations", "1"]
# Points whose daemon keeps its log, from which one sees where the GPU's time goes.
RECORDED = (("fragment", SWAP), ("many-draws", SWAP))
# How long measuring the GPU may take.
PROFILE_S = 90
# How much of what programs say is kept with the figures.
SAID, SENTENCES = 4000, 6


class Experiment:
    def __init__(self, machine, small):
        # llvmpipe is no GPU: small loads show that everything works.
        self.machine, self.small = machine, small
        self.hero_ms, self.length_ms, self.size = (1.5, 20, "128x96") if small else (3.0, LENGTH_MS, "800x480")
        self.etpf_ms = round(self.hero_ms * 1.2 + 2, 3)
        self.loops, self.kinds = None, {}
        # The points that are to be measured; all of them if nothing says so.
        self.chosen = None

    def prepare(self):
        floods = load.Floods.timed(self.machine, self.size)
        self.loops = floods.loops(self.hero_ms)
        self.kinds = {kind: self.sized(kind) for kind in self.needed()}
        return {"hero_ms": self.hero_ms, "hero_loops": self.loops, "size": self.size, "length_ms": self.length_ms, "kinds": self.kinds,
                "profile": self.profile()}

    def needed(self):
        """Floods that the points need: sizing one takes seconds."""
        if self.chosen is None:
            return KINDS
        needs = {kind for point in self.chosen for kind in point.about.get("needs", [point.about.get("kind")])}
        return [kind for kind in KINDS if kind in needs]

    def restore(self, known):
        self.loops = known["hero_loops"]
        found = {kind: each for kind, each in known["kinds"].items() if "error" not in each}
        self.kinds = found | {kind: self.sized(kind) for kind in self.needed() if kind not in found}
        return known | {"kinds": self.kinds, "profile": self.profile()}

    def sized(self, kind):
        """How often a flood repeats its work, or why that is not known."""
        found = None
        # Where once is longer than that already, a longer one does.
        for ms in (self.length_ms, LONGER * self.length_ms):
            try:
                return load.of_kind(self.machine, kind, self.size, ms)
            except Failed as failure:
                found = {"error": str(failure)}
        return found

    def profile(self):
        """Has the GPU measured, as the daemon does at its first start, so that no point contains that."""
        takt = self.machine.bin / "takt"
        try:
            found = run([takt, "profile", "--new"], self.machine.env(), PROFILE_S, errors=True)
            kept = run([takt, "profile", "--show"], self.machine.env(), PROFILE_S, errors=True)
        except Failed as failure:
            return {"error": str(failure)}
        place = lambda text: text.replace(str(self.machine.data), "$XDG_DATA_HOME")
        return {"new": place(found), "kept": place(kept)}

    def points(self):
        """All measurements, in the order of their importance: without a deadline that is met, no share counts."""
        under = lambda kinds, rank, *paces: [self.point(kind, "takt", pace, rank) for kind in kinds for pace in paces]
        points = [self.busy_point(), *under(FIRST, MUST, *PACES), *under(KINDS[len(FIRST):], SOON, *PACES)]
        points += [self.outsider_point("", {}, SOON)]
        points += [self.share_point(kind, "alone", LATER) for kind in KINDS] + [self.traps_point(LATER)]
        points += [self.share_point(kind, "cut", LATER) for kind in KINDS]
        # What does not depend on Takt may be known from an earlier run.
        points += [self.point(kind, "native", OWN, LAST) for kind in (*KINDS, None)]
        points += [self.point(None, "takt", pace, LAST) for pace in PACES]
        points += [self.outsider_point("-trusting", {"gpu": {"unseen": "ignore"}}, LAST)]
        return points + [self.point(kind, "native", NO_SWAP, LAST) for kind in (None, *KINDS)]

    def hero(self, pace, fps=FPS):
        """The app that must be on time."""
        return [self.machine.bin / "takt-flood", "--platform", "device", *PACES[pace], "--fps", fps, "--size", self.size,
                "--iterations", self.loops, "--json"]

    def flood(self, kind, log):
        """A flood of a kind, if it could be sized."""
        known = self.kinds.get(kind, {"error": "it was not sized"})
        if "error" in known:
            raise Failed(f"there is no flood of {kind}: {known['error']}")
        return [self.machine.bin / "takt-flood", "--platform", "device", "--kind", kind, "--size", self.size,
                "--iterations", known["iterations"], "--in-flight", 2, "--json", "--frame-log", log]

    def starts(self, crew, mode, pace, *, record=False, settings=None):
        """How the app and floods are started, and the daemon if there is one."""
        env = self.machine.env()
        if mode == "native":
            return (lambda command: crew.start("hero", command, env),
                    lambda name, command: crew.start(name, command, env), None)
        daemon = Daemon(self.machine, crew, record=record, **(settings or {}))
        wanted = daemon.options("hero", **HERO, etpf_ms=self.etpf_ms, **TERMS[pace])
        return (lambda command: crew.start("hero", [*wanted, "--", *command], env),
                lambda name, command: crew.start(name, [*daemon.options(name, **FLOOD), "--", *command], env), daemon)

    def point(self, kind, mode, pace, rank):
        """The app beside floods of a kind, or beside nothing."""
        count = FLOODS if kind else 0

        def measure(folder, seconds):
            with Crew(folder) as crew:
                logs = [folder / f"flood-{number}.csv" for number in range(1, count + 1)]
                commands = [self.flood(kind, log) for log in logs]
                hero, flood, daemon = self.starts(crew, mode, pace, record=(kind, pace) in RECORDED)
                hero([*self.hero(pace), "--frame-log", folder / "hero.csv"])
                # The app is at work before others disturb it.
                crew.sleep(0.5)
                for log, command in zip(logs, commands):
                    flood(log.stem, command)
                middle = []
                with Monitor(self.machine, crew, tool=daemon is None) as monitor:
                    window = load.measured(crew, [folder / "hero.csv", *logs], WARM_UP_S, seconds,
                                           halfway=lambda: daemon and middle.append(stated(daemon.list())))
                why = explained(daemon.list()) if daemon else {}
                killed = crew.stop(patience_s=3.0)
            return why | {"window_s": window.seconds, "killed": killed, "monitor": monitor.figures(),
                    **self.judged(folder, window), **work(logs, window), **(said(folder, middle[0]) if daemon else {})}

        name = f"kinds-{kind or 'none'}-{mode}" + (f"-{pace}" if mode == "takt" or pace != OWN else "")
        about = {"mode": mode, "kind": kind, "pace": pace, "floods": count, "draw_ms": self.length_ms}
        return Point("kinds", name, measure, rank, want_s=10, least_s=10 if kind else 5, extra_s=5, about=about)

    @staticmethod
    def judged(folder, window):
        """The app by its releases, and by when it began its frames."""
        log = folder / "hero.csv"
        if not log.exists():
            raise Failed("the app has drawn nothing; hero.err says why")
        figures = frames.judge(frames.read(log, released=True), window, FPS)
        if figures["fps"] > 1.1 * FPS:
            raise Failed(f"the app was not paced: {figures['fps']} FPS; hero.err says why")
        return figures | {"by_begin": frames.judge(frames.read(log), window, FPS)}

    def share_point(self, kind, way, rank):
        """How much one flood gets done by itself: in one piece natively, or cut, beside an app that hardly draws."""
        def measure(folder, seconds):
            log = folder / "flood-1.csv"
            with Crew(folder) as crew:
                command = self.flood(kind, log)
                hero, flood, daemon = self.starts(crew, "takt" if way == "cut" else "native", SWAP)
                if daemon:
                    hero([self.machine.bin / "takt-flood", "--platform", "device", *PACES[SWAP], "--fps", FPS, *IDLE])
                    crew.sleep(0.5)
                flood("flood-1", command)
                middle = []
                window = load.measured(crew, [log], WARM_UP_S, seconds,
                                       halfway=lambda: daemon and middle.append(stated(daemon.list())))
                crew.stop(patience_s=3.0)
            return {"window_s": window.seconds, **work([log], window), **(said(folder, middle[0]) if daemon else {})}

        about = {"mode": way, "kind": kind, "floods": 1, "draw_ms": self.length_ms}
        return Point("kinds", f"kinds-{kind}-{way}", measure, rank, want_s=5, least_s=4, extra_s=4, about=about)

    def busy_point(self):
        """What the app takes at full clock: a GPU with little to do lowers it, so frames follow each other at once."""
        def measure(folder, seconds):
            with Crew(folder) as crew:
                crew.start("hero", [*self.hero(OWN, fps=0), "--frame-log", folder / "hero.csv"], self.machine.env())
                with Monitor(self.machine, crew) as monitor:
                    window = load.measured(crew, [folder / "hero.csv"], WARM_UP_S, seconds)
            return {"window_s": window.seconds, "monitor": monitor.figures(),
                    **frames.judge(frames.read(folder / "hero.csv"), window, None)}
        return Point("kinds", "kinds-busy", measure, MUST, want_s=3, least_s=2, extra_s=3, about={"mode": "native"})

    def outsider_point(self, more, settings, rank):
        """What the daemon says while a program that it does not know has the GPU open."""
        def measure(folder, seconds):
            with Crew(folder) as crew:
                gpu = dict(settings.get("gpu", {}))
                if self.small:
                    # llvmpipe opens no device file, so another file stands for it.
                    gpu["devices"] = [str(outsider.stand_in(folder))]
                hero, flood, daemon = self.starts(crew, "takt", OWN, settings={"gpu": gpu} if gpu else {})
                hero([*self.hero(OWN), "--frame-log", folder / "hero.csv"])
                # A GPU with little to do lowers its clock, and the app's frames take longer than it reserves.
                crew.sleep(0.5)
                flood("flood-1", self.flood("fragment", folder / "flood-1.csv"))
                load.measured(crew, [folder / "hero.csv", folder / "flood-1.csv"], 0.0, 0.0)
                figures = outsider.measure(self.machine, crew, daemon, seconds, gpu.get("devices", []))
                crew.stop(patience_s=3.0)
            return figures | {"window_s": figures["samples"][-1]["at_s"], "daemon_said": tail(folder / "daemon.err")}
        return Point("kinds", f"kinds-outsider{more}", measure, rank, want_s=5, least_s=5, extra_s=28,
                     fixed=True, about={"mode": "takt", "settings": settings, "needs": ["fragment"]})

    def traps_point(self, rank):
        """Whether programs that look at every value see that their work is cut."""
        def measure(folder, _seconds):
            with Crew(folder) as crew:
                daemon = Daemon(self.machine, crew)
                # Work is cut for others; beside a contract, what cannot be cut would wait until that is gone.
                crew.start("company", [*daemon.options("company"), "--", self.machine.bin / "takt-flood", "--platform",
                                       "device", *PACES[OWN], "--fps", FPS, *IDLE], self.machine.env())
                return traps.measure(self.machine, daemon, folder, self.kinds)
        return Point("kinds", "kinds-traps", measure, rank, want_s=20, least_s=20, extra_s=10, fixed=True,
                     about={"mode": "takt", "needs": list(traps.PICTURES)})

    @staticmethod
    def brief(figures):
        """The figures of a point in one line."""
        if "samples" in figures:
            return outsider.brief(figures)
        if "programs" in figures:
            return traps.brief(figures)
        floods = f"floods {sum(figures.get('flood_draws_per_s', [])):.2f}/s"
        if "frames" not in figures:
            return floods
        ms = lambda key: "-" if figures[key] is None else f"{figures[key]:.2f}"
        missed = "" if "missed" not in figures else f"{figures['missed']} of {figures['frames'] + figures['skipped']} missed, "
        state = figures.get("stated", {})
        word = "" if not state else "; guaranteed" if state.get("guaranteed") else f"; not guaranteed: {state.get('reason')}"
        return (f"{figures['fps']:.1f} FPS, {missed}p50 {ms('p50_ms')} p99 {ms('p99_ms')} max {ms('max_ms')} ms; "
                f"{floods}{word}")


def work(logs, window):
    """What floods got done."""
    done = [frames.done(frames.read(log), window) if log.exists() else 0.0 for log in logs]
    return {"flood_draws_per_s": [round(each / window.seconds, 4) for each in done]}


def stated(listed):
    """What the daemon says of the app, and what it goes by."""
    of = next((app for app in listed["apps"] if app["name"] == "hero"), {})
    keys = ("guaranteed", "reason", "admission", "contract", "etpf_ms", "protected")
    daemon = {key: listed.get("daemon", {}).get(key) for key in ("limits", "outsiders", "unseen", "evicted")}
    error = {"error": listed["error"]} if "error" in listed else {}
    return {key: of.get(key) for key in keys} | {"daemon": daemon} | error


def explained(listed):
    """Why the app missed deadlines, as the daemon sees it, and what it found of every app."""
    summary = listed.get("summary") or {}
    keys = ("name", "causes", "blocking_us", "frame_gpu_us", "predicted_over_measured", "under_predicted", "gpu_share")
    sentences = [miss["sentence"] for miss in summary.get("misses", []) if miss.get("app") == "hero"]
    held = {app["name"]: app.get("held") for app in listed["apps"]}
    return {"why": sentences[-SENTENCES:], "held": held,
            "found": [{key: app.get(key) for key in keys} for app in summary.get("apps", [])]}


def said(folder, middle):
    """What daemon and programs said of a point."""
    takt = {file.stem: [line for line in tail(file).splitlines() if line.startswith("takt: ")]
            for file in sorted(folder.glob("*.err")) if file.stem in ("hero", "flood-1")}
    return {"stated": middle, "daemon_said": tail(folder / "daemon.err"), "takt_said": takt}


def tail(file):
    """The end of what a program said."""
    return file.read_text(errors="replace")[-SAID:] if file.exists() else ""
