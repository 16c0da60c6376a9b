"""Does everything run here at all? A minute that saves many."""

from takteval import load
from takteval.crew import Crew, run
from takteval.daemon import Daemon
from takteval.machine import APPS
from takteval.plan import MUST, Point
from takteval.scenes import glmark2, offscreen, rate

SIZE = "320x240"


class Experiment:
    def __init__(self, machine):
        self.machine = machine

    def prepare(self):
        return {}

    def restore(self, _known):
        return self.prepare()

    def points(self):
        checks = {"apps": self.apps, "glmark2": self.glmark2, "gears": self.gears, "doctor": self.doctor,
                  "scheduled": self.scheduled}
        return [Point("smoke", f"smoke-{name}", measure, MUST, want_s=1, least_s=1, extra_s=5)
                for name, measure in checks.items()]

    @staticmethod
    def brief(figures):
        return f"works: {figures['said']}"

    def apps(self, _folder, _seconds):
        for app in APPS:
            more = ["--iterations", "5"] if app == "takt-flood" else []
            run([self.machine.bin / app, *load.FINISH, *more, "--size", "64x64", "--frames", "3", "--fps", "0"],
                self.machine.env(), 30)
        return {"said": f"{len(APPS)} apps draw"}

    def glmark2(self, _folder, _seconds):
        scene = glmark2(self.machine, "build", 0.3, SIZE)
        native = rate(run(scene, self.machine.env(native_windows=True, size=SIZE), 60))
        hooked = rate(run([*offscreen(self.machine, SIZE), "--", *scene], self.machine.env(), 60))
        return {"said": f"build, native {native:.0f} FPS, with Takt underneath {hooked:.0f} FPS"}

    def gears(self, folder, _seconds):
        table = folder / "gears.csv"
        with Crew(folder) as crew:
            under = offscreen(self.machine, SIZE, "--measure", table)
            crew.start("gears", [*under, "--", self.machine.bin / "es2gears_x11"], self.machine.env())
            swaps = lambda: table.exists() and table.read_text().count(",swap,")
            crew.wait_for("frames of es2gears", lambda: swaps() > 10)
        return {"said": f"{swaps()} frames of es2gears"}

    def doctor(self, folder, _seconds):
        out = run([self.machine.bin / "takt", "doctor", "--", self.machine.bin / "takt-speedometer", *load.FINISH,
                   "--frames", "10"], self.machine.env(), 30)
        (folder / "doctor.txt").write_text(out)
        return {"said": "doctor.txt has its findings"}

    def scheduled(self, folder, _seconds):
        with Crew(folder) as crew:
            daemon = Daemon(self.machine, crew)
            hero = [*daemon.options("hero", priority=9, fps=60, etpf_ms=2), "--", self.machine.bin / "takt-speedometer",
                    *load.FINISH, "--fps", "0", "--size", "64x64"]
            crew.start("hero", hero, self.machine.env())
            apps = []
            crew.wait_for("the daemon knows the app", lambda: apps.extend(daemon.list()["apps"]) or apps)
        return {"said": apps[0]["admission"]}
