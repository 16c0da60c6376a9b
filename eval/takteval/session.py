"""One run: prepares, measures point by point within the budget, packs what came out."""

import contextlib
import json
import signal
import sys
import tarfile
import time
import traceback

from takteval import crew, floods, kinds, mixed, overhead, plan, prediction, smoke
from takteval.awake import awake
from takteval.idle import Idle
from takteval.machine import Machine, busy_stalls_ms
from takteval.results import NO_TIME, STOPPED, worth
from takteval.screen import Screen

EXPERIMENTS = ("smoke", "kinds", "floods", "mixed", "overhead", "prediction")
# Time to write and pack results.
PACKING_S = 8.0
# Exit code where processors stand still for too long.
NOT_CALM = 3
# Below this there is no time to show everything at length.
SHORT_BUDGET_S = 400.0


class Stop(Exception):
    """The run was told to end."""


class Session:
    def __init__(self, args):
        self.args = args
        self.began = time.monotonic()
        self.out = args.out.resolve()
        self.failed = 0
        self.lines = []
        self.experiments = {}

    def run(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):
            signal.signal(number, self.stop)
        # Whatever hangs, what was measured until then is packed in time.
        signal.setitimer(signal.ITIMER_REAL, max(1.0, self.args.budget - PACKING_S + 1))
        with awake() if self.args.awake and not self.args.list else contextlib.nullcontext():
            return self.run_on()

    def run_on(self):
        if self.args.calm is not None and (longest := busy_stalls_ms()) > self.args.calm:
            print(f"eval: busy processors stand still for up to {longest:.1f} ms here; --calm allows {self.args.calm:g}",
                  file=sys.stderr)
            return NOT_CALM
        machine = Machine(self.args.device, dict(pair.split("=", 1) for pair in self.args.env), self.args.config)
        machine.screen = Screen()
        try:
            return self.measure_all(machine)
        finally:
            machine.screen.close()
            machine.close()

    def stop(self, number, _frame):
        raise Stop(signal.Signals(number).name)

    def left_s(self):
        return self.args.budget - PACKING_S - (time.monotonic() - self.began)

    def say(self, line):
        """Prints a line that the summary keeps; its output may be closed."""
        self.lines.append(line)
        try:
            print(line, flush=True)
        except OSError:
            pass

    def measure_all(self, machine):
        self.experiments = self.experiments_on(machine)
        points = self.points()
        if mistake := self.mistake():
            print(f"eval: {mistake}", file=sys.stderr)
            return 2
        if self.args.list:
            for point, seconds in plan.outlook(points, self.left_s()):
                self.say(f"{point.experiment:<12}{point.name:<40}{'no time' if seconds is None else f'{seconds:.0f} s'}")
            return 0
        (self.out / "points").mkdir(parents=True, exist_ok=True)
        facts = machine.facts()
        self.say(f"{facts['renderer']}; commit {facts['commit']}; {len(points)} points in {self.args.budget:.0f} s")
        left_out = [point.name for point, seconds in plan.outlook(points, self.left_s()) if seconds is None]
        if left_out:
            self.say(f"{len(left_out)} will be left out: {' '.join(left_out)}")
        run = {"environment": facts, "arguments": vars(self.args) | {"out": str(self.out)}, "prepared": {}}
        try:
            self.idle = Idle(machine)
            self.go_through(points, run)
        except Stop as stop:
            self.say(f"stopped by {stop}; {len(points)} points are left")
            self.leave_out(points)
        finally:
            # Whatever happened, what was measured is packed.
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.write(run)
            self.pack(machine)
        return 1 if self.failed else 0

    def mistake(self):
        """What is wrong with the arguments, if anything: a run that measures something else costs time."""
        every = self.every()
        named = [("--only", name) for name in self.args.only.split(",")]
        named += [("--skip", name) for name in self.args.skip.split(",")]
        named += [("--seconds", name) for name, _ in plan.Lengths(self.args.seconds).rules if name != "must"]
        for option, name in named:
            if name and not any(point.begins([name]) for point in every):
                return f"{option} {name}: no point begins so; --list alone shows them"
        for option, folders in (("--done", self.args.done), ("--like", self.args.like)):
            for folder in folders:
                if not (folder / "run.json").exists():
                    return f"{option} {folder}: there is no run.json; unpack results-*.tar.gz"
        return None

    def go_through(self, points, run):
        """Measures all points; an experiment is packed with its last one."""
        prepared = {}
        while points:
            point = points[0]
            if plan.seconds_for(points, self.left_s()) is not None and point.experiment not in prepared:
                self.experiments[point.experiment].chosen = [one for one in points if one.experiment == point.experiment]
                prepared[point.experiment] = self.prepare(point.experiment, run["prepared"])
            self.one(point, points, prepared.get(point.experiment))
            points.pop(0)
            if points and all(other.experiment != point.experiment for other in points):
                self.write(run)
                self.pack_one(point.experiment)

    def leave_out(self, points):
        """Notes what was not measured because the run was stopped."""
        for point in points:
            file = self.out / "points" / f"{point.name}.json"
            if not file.exists():
                file.write_text(json.dumps({"experiment": point.experiment, "point": point.name, "about": point.about,
                                            "seconds": None, "skipped": STOPPED}, indent=1, default=str))

    def write(self, run):
        """What there is besides points."""
        run["seconds"] = time.monotonic() - self.began
        (self.out / "run.json").write_text(json.dumps(run, indent=1, default=str))
        (self.out / "summary.txt").write_text("\n".join(self.lines) + "\n")

    def experiments_on(self, machine):
        """Made once: their points use what they prepare."""
        small = self.args.device == "mesa"
        return {"smoke": smoke.Experiment(machine), "kinds": kinds.Experiment(machine.without_store(), small),
                "floods": floods.Experiment(machine, small),
                "mixed": mixed.Experiment(machine, small), "overhead": overhead.Experiment(machine, small),
                "prediction": prediction.Experiment(machine, small)}

    def every(self):
        """All points that there are."""
        return [point for experiment in self.experiments.values() for point in experiment.points()]

    def points(self):
        """Those that were asked for, in their order."""
        small = self.args.device == "mesa"
        every = self.every()
        for point in every:
            if point.rank == plan.MUST and self.args.budget >= SHORT_BUDGET_S:
                point.least_s = point.want_s
        # Those of one rank stay in the order of experiments.
        chosen = sorted(filter(self.chosen, every), key=lambda point: point.rank)
        if small:
            # llvmpipe has no such extension.
            chosen = [point for point in chosen if point.about.get("mode") != "egl-priority"]
        lengths = plan.Lengths(self.args.seconds)
        for point in chosen:
            if small:
                point.least_s = min(point.least_s, 2.0)
            lengths.set(point)
        return chosen

    def chosen(self, point):
        begins = lambda text: point.begins(text.split(","))
        wanted = (not self.args.only or begins(self.args.only)) and not begins(self.args.skip)
        return wanted and not any(is_measured(folder / "points" / f"{point.name}.json") for folder in self.args.done)

    def prepare(self, name, notes):
        """What points of an experiment need; why they cannot run, or nothing."""
        try:
            known = next(filter(None, (prepared(folder, name) for folder in self.args.done + self.args.like)), None)
            notes[name] = self.restored(name, known) or self.experiments[name].prepare()
            return None
        except crew.Failed as failure:
            self.say(f"{name} cannot be prepared: {failure}")
            return f"could not be prepared: {failure}"

    def restored(self, name, known):
        """What an earlier run has found, if that is all that is needed."""
        try:
            return self.experiments[name].restore(known) if known else None
        except KeyError as missing:
            self.say(f"{name}: the earlier run does not know {missing}, so it is found out again")
            return None

    def one(self, point, points, hindrance):
        """Measures a point, and writes down what came of it."""
        seconds = plan.seconds_for(points, self.left_s())
        record = {"experiment": point.experiment, "point": point.name, "about": point.about, "seconds": seconds}
        began = time.monotonic()
        folder = self.out / "raw" / point.experiment / point.name
        try:
            if hindrance:
                raise crew.Failed(hindrance)
            if seconds is None:
                record["skipped"] = NO_TIME
            else:
                folder.mkdir(parents=True, exist_ok=True)
                record["small_draw_ms"] = self.idle.await_it()
                record["figures"] = point.measure(folder, seconds)
        except Stop:
            record["skipped"] = STOPPED
            raise
        except crew.Skipped as reason:
            record["skipped"] = str(reason)
        except crew.Failed as failure:
            record["error"] = str(failure)
        except Exception:  # noqa: BLE001: one broken point must not cost the others
            record["error"] = traceback.format_exc()
        finally:
            record["took_s"] = round(time.monotonic() - began, 2)
            (self.out / "points" / f"{point.name}.json").write_text(json.dumps(record, indent=1, default=str))
            self.failed += "error" in record
            if not hindrance:
                self.say(self.line(record))

    def line(self, record):
        """A point in one line."""
        if "figures" in record:
            brief = self.brief(record)
        else:
            brief = "FAILED: " + record["error"].strip() if "error" in record else \
                "skipped: " + record.get("skipped", "the run broke")
        took = time.monotonic() - self.began
        return f"{took:6.1f} s  {record['point']:<34} {brief}"

    def brief(self, record):
        """Figures in a few words; what cannot be told costs no run."""
        try:
            return self.experiments[record["experiment"]].brief(record["figures"])
        except Stop:
            raise
        except Exception as error:  # noqa: BLE001: figures are written already
            return f"measured, but has no words for it: {error!r}"

    def pack(self, machine):
        """One archive per experiment, small enough to be carried, and one of constants and models."""
        raw = self.out / "raw"
        for folder in sorted(raw.iterdir()) if raw.exists() else ():
            path = self.pack_one(folder.name)
            self.say(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
        if (machine.work / "data").exists():
            with tarfile.open(self.out / "store.tar.gz", "w:gz") as archive:
                archive.add(machine.work / "data", "store")

    def pack_one(self, experiment):
        """The archive of an experiment, or nothing if none of its points ran. It is never half there."""
        folder = self.out / "raw" / experiment
        if not folder.exists():
            return None
        path = self.out / f"results-{experiment}.tar.gz"
        part = path.with_name(f"{path.name}.part")
        with tarfile.open(part, "w:gz", compresslevel=5) as archive:
            for name in ("run.json", "summary.txt", "points"):
                archive.add(self.out / name, name)
            archive.add(folder, f"raw/{experiment}")
        part.replace(path)
        return path


def is_measured(path):
    """Whether an earlier run has figures of a point that the machine's host has not spoilt."""
    return path.exists() and worth(json.loads(path.read_text()))[1]


def prepared(folder, name):
    """What an earlier run found out for an experiment, so that loads stay the same."""
    path = folder / "run.json"
    return json.loads(path.read_text())["prepared"].get(name) if path.exists() else None
