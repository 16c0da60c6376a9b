"""Experiment 3: how well work is predicted before it runs."""

import csv
import gzip
import itertools

from takteval import load
from takteval.crew import Crew, Failed, Skipped, run
from takteval.plan import LATER, SOON, Point
from takteval.scenes import SCENES, NoSetUp, check_set_up, glmark2, offscreen

# Frames from which on a scene counts as steady: factors have been learned.
STEADY_FRAME = 60
# Scenes that come first.
FIRST = 6
# What a daemon adds to an estimate before it believes that no group takes longer (docs/daemon.md).
MARGIN_US, MARGIN_FACTOR = 100.0, 1.05
# The model that predicts for the scheduler.
SCHEDULED = "bb+profiled"
# How long a scene runs so that its programs are noted.
SEEN_S = 0.3
# Rows of a scene that go into the archive; figures are of all.
KEPT_ROWS = 3000


class Experiment:
    def __init__(self, machine, small):
        self.machine = machine
        self.small = small
        self.size = "200x150" if small else "1920x1080"

    def prepare(self):
        return {"size": self.size, "steady_from_frame": STEADY_FRAME}

    def restore(self, _known):
        return self.prepare()

    def points(self):
        """Constants and models come first: all scenes are to be predicted by the same."""
        scenes = [self.scene(name, SOON if at < FIRST else LATER) for at, name in enumerate(SCENES)]
        own = [self.app("speedometer", ["takt-speedometer"], SOON), self.gears()]
        textures = [self.app(f"texture-{side}", ["takt-scene", "--texture", side]) for side in (64, 256, 1024, 4096)]
        samples = [self.app(f"msaa-{count}", ["takt-scene", "--msaa", count]) for count in (0, 2, 4, 8)]
        return [self.constants(), self.seen(), self.programs(), self.training(), *own, *scenes, *textures, *samples]

    def constants(self):
        def measure(folder, _seconds):
            out = run([self.machine.bin / "takt", "profile", "--json", folder / "profile.json"], self.machine.env(), 60)
            (folder / "profile.txt").write_text(out)
            return {"said": out.splitlines()[:3]}
        return Point("prediction", "prediction-profile", measure, SOON, want_s=1, least_s=1, extra_s=5, fixed=True)

    def seen(self):
        """Runs all scenes for a moment, so that their programs can be measured one by one."""
        def measure(folder, _seconds):
            lost = {}
            for name in SCENES:
                try:
                    run([*offscreen(self.machine, self.size), "--compare", folder / "seen.csv", "--",
                         *glmark2(self.machine, name, SEEN_S, self.size)], self.machine.env(), 20)
                except Failed as failure:
                    lost[name] = str(failure)
                (folder / "seen.csv").unlink(missing_ok=True)
            return {"said": [f"{len(SCENES) - len(lost)} scenes were seen"], "lost": lost}
        return Point("prediction", "prediction-seen", measure, SOON, want_s=1, least_s=1,
                     extra_s=1.2 * len(SCENES), fixed=True)

    def programs(self):
        """Measures the programs that were seen."""
        def measure(folder, _seconds):
            out = run([self.machine.bin / "takt", "profile", "--programs", "--quick", "--json",
                       folder / "programs.json"], self.machine.env(), 90)
            (folder / "programs.txt").write_text(out)
            return {"said": out.splitlines()[-2:]}
        return Point("prediction", "prediction-programs", measure, SOON, want_s=1, least_s=1, extra_s=20,
                     fixed=True)

    def training(self):
        def measure(folder, seconds):
            out = run([self.machine.bin / "takt", "train", "--quick", "--json", folder / "train.json"],
                      self.machine.env(), max(seconds, 10))
            (folder / "train.txt").write_text(out)
            return {"said": out.splitlines()[:3]}
        # Points after it compare its models as well.
        length = 5 if self.small else 90
        return Point("prediction", "prediction-train", measure, SOON, want_s=length, least_s=length, extra_s=2,
                     fixed=True)

    def scene(self, name, rank):
        command = lambda seconds: glmark2(self.machine, name, seconds, self.size)
        return self.compare(name, command, rank, windows=True)

    def app(self, name, program, rank=LATER):
        command = lambda seconds: [self.machine.bin / program[0], *program[1:], *load.FINISH, "--fps", "0", "--size",
                                   self.size, "--seconds", f"{seconds:.1f}"]
        return self.compare(name, command, rank, windows=False)

    def compare(self, name, command, rank, windows):
        def measure(folder, seconds):
            table = folder / "compare.csv"
            under = offscreen(self.machine, self.size) if windows else [self.machine.bin / "takt", "run"]
            out = run([*under, "--verbose", "--compare", table, "--", *command(seconds)], self.machine.env(),
                      seconds * 3 + 25, errors=True)
            self.set_up(out, command)
            return figures(table)
        return Point("prediction", f"prediction-{name}", measure, rank, want_s=3, least_s=2, extra_s=1.5)

    def set_up(self, out, command):
        """Fails if the program could not set up its scene, unless it cannot do so without Takt either."""
        try:
            check_set_up(out)
        except NoSetUp as failure:
            alone = run(command(SEEN_S), self.machine.env(native_windows=True, size=self.size), 25, errors=True)
            try:
                check_set_up(alone)
            except NoSetUp as natively:
                raise Skipped(f"fails natively: {natively}") from None
            raise failure from None

    def gears(self):
        def measure(folder, seconds):
            table = folder / "compare.csv"
            with Crew(folder) as crew:
                crew.start("gears", [*offscreen(self.machine, self.size, "--compare", table), "--",
                                     self.machine.bin / "es2gears_x11"], self.machine.env())
                crew.sleep(seconds)
            return figures(table)
        return Point("prediction", "prediction-es2gears", measure, SOON, want_s=3, least_s=2, extra_s=1.5)

    @staticmethod
    def brief(figures):
        if "models" not in figures:
            return " ".join(figures["said"])[:110]
        steady = {name: model["steady"] for name, model in figures["models"].items()}
        known = {name: errors["mape"] for name, errors in steady.items() if errors["mape"] is not None}
        best = min(known, key=known.get, default=None)
        shown = [f"{name}{' (best)' * (name == best)}: steady {percent(steady[name]['mape'])}, above upper "
                 f"{percent(steady[name]['above_upper'])}"
                 for name in dict.fromkeys((SCHEDULED, best)) if name in steady]
        return "; ".join([f"{figures['groups']} groups", *(shown or ["no model had a steady scene"])])


def percent(share):
    return "-" if share is None else f"{100 * share:.2f} %"


def figures(table):
    """Errors of each model for draws, in the first frame and once the scene is steady."""
    if not table.exists():
        raise Failed("the program left no table: it has drawn nothing under Takt")
    with open(table, newline="") as file:
        rows = [row for row in csv.DictReader(file) if row.get("kind") == "draw" and row.get("measured_us")]
    names = [column[5:-3] for column in (rows[0] if rows else {}) if column.startswith("pred_")]
    first = [row for row in rows if row["frame"] == "0"]
    steady = [row for row in rows if int(row["frame"]) >= STEADY_FRAME]
    with open(table, "rb") as plain, gzip.open(f"{table}.gz", "wb", 5) as packed:
        packed.writelines(itertools.islice(plain, KEPT_ROWS))
    table.unlink()
    if not rows:
        raise Failed("no draw was measured")
    return {"groups": len(rows), "models": {name: {"first": errors(first, name), "steady": errors(steady, name)}
                                            for name in names}}


def errors(rows, model):
    """Mean error relative to what was measured, with and without what was learned on the way, and how often
    that was above the estimates: the model's own upper one, and what a daemon makes of it."""
    found = [(float(row["measured_us"]), float(row[f"pred_{model}_us"]), row.get(f"upper_{model}_us"),
              row.get(f"raw_{model}_us"))
             for row in rows if row[f"pred_{model}_us"] and float(row["measured_us"]) > 0]
    if not found:
        return {"groups": 0, "mape": None, "raw_mape": None, "under": None, "above_upper": None, "above_reserved": None}
    share = lambda values: round(sum(values) / len(values), 5) if values else None
    uppers = [(measured, float(upper)) for measured, _, upper, _ in found if upper]
    return {
        "groups": len(found),
        "mape": share([abs(guess / measured - 1) for measured, guess, _, _ in found]),
        "raw_mape": share([abs(float(raw) / measured - 1) for measured, _, _, raw in found if raw]),
        "under": share([measured > guess for measured, guess, _, _ in found]),
        "above_upper": share([measured > upper for measured, upper in uppers]),
        "above_reserved": share([measured > (upper + MARGIN_US) * MARGIN_FACTOR for measured, upper in uppers]),
    }
