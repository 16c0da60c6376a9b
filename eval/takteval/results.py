"""What runs have left behind, put together."""

import json
import re
import tarfile
import tempfile
from pathlib import Path

from takteval.markdown import stolen_percent


class Results:
    """Points of several runs by name; of those measured more than once, the last that was not short, and of those that must
    be shown, the last on a calm machine, or on any if nothing was late. What is left of the others is in `superseded`."""

    def __init__(self, folders):
        self._unpacked = tempfile.TemporaryDirectory(prefix="takt-results-")
        self.points, self.runs, self.superseded = {}, [], []
        for number, folder in enumerate(folders):
            self._add(self._open(folder, number))
        if not self.runs:
            raise SystemExit(f"eval: {', '.join(map(str, folders))}: no run.json and no results-*.tar.gz in there")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._unpacked.cleanup()

    def _open(self, folder, number):
        """A folder with everything unpacked."""
        archives = sorted(folder.glob("**/results-*.tar.gz"))
        if (folder / "points").exists() or not archives:
            return folder
        inside = Path(self._unpacked.name) / str(number)
        for archive in archives:
            with tarfile.open(archive) as packed:
                packed.extractall(inside, filter="data")
        return inside

    def _add(self, folder):
        run = folder / "run.json"
        if not run.exists():
            return
        self.runs.append(json.loads(run.read_text()))
        for file in sorted((folder / "points").glob("*.json")):
            point = json.loads(file.read_text()) | {"run": len(self.runs) - 1}
            point["raw"] = folder / "raw" / point["experiment"] / point["point"]
            known = self.points.get(point["point"])
            if known is None or worth(point) >= worth(known):
                self.points[point["point"]], point = point, known
            if point is not None and "figures" in point:
                self.superseded.append(point)

    def figures(self, name):
        """Figures of a point, or nothing."""
        return self.points.get(name, {}).get("figures")

    def measured(self, point):
        """For how long a point was measured, and with which commit."""
        return f"{point['figures']['window_s']:.0f} s, {self.commit(point)}"

    def later(self, name):
        """What was measured of a point after what counts."""
        return [point for point in self.superseded
                if point["point"] == name and point["run"] > self.points[name]["run"]]

    def together(self, names):
        """These points as the last run found them that measured all of them at length; nothing if none did."""
        runs = {}
        for point in [*self.points.values(), *self.superseded]:
            if point["point"] in names and "figures" in point and lasted(point) >= SHOWN_S:
                runs.setdefault(point["run"], {})[point["point"]] = point
        whole = [run for run, points in runs.items() if len(points) == len(names)]
        return runs[max(whole)] if whole else {}

    def several(self, names):
        """A remark, where points are of several commits."""
        commits = {self.commit(self.points[name]) for name in names if self.figures(name)}
        return "Rows are of several commits, so some differences are those of the code." if len(commits) > 1 else ""

    def before(self, name):
        """What was measured of a point at length just before what counts, if anything that no host has spoilt."""
        earlier = [point for point in self.superseded if point["point"] == name and worth(point)[1]
                   and point["run"] < self.points[name]["run"] and lasted(point) >= SHOWN_S]
        return max(earlier, key=lambda point: point["run"], default=None)

    def gpu(self):
        """What the GPU of the first run is called."""
        return re.split(r"[/(,]", self.runs[0]["environment"]["renderer"])[0].strip()

    def file_name(self):
        """The same, fit for a file's name."""
        return re.sub(r"[^a-z0-9]+", "-", self.gpu().lower().removeprefix("nvidia ")) or "gpu"

    def commit(self, point):
        return (self.runs[point["run"]]["environment"].get("commit") or "?")[:7]

    def of(self, experiment):
        return {name: point for name, point in self.points.items() if point["experiment"] == experiment}

    def prepared(self, experiment):
        """What the last run that prepared an experiment found."""
        found = [run["prepared"][experiment] for run in self.runs if experiment in run["prepared"]]
        return found[-1] if found else {}


# What was measured for longer says no less than what was measured for longer still.
LONG_S = 4


# From here on a host takes so much of a processor that programs stand still for milliseconds.
STOLEN_PERCENT = 10
# What must be shown is measured for so long, and a single miss of apps that are so important counts.
SHOWN_S = 19
IMPORTANT = 12


# Why points were not tried, which says nothing about them.
NO_TIME, STOPPED = "no time was left", "the run was stopped"


def worth(point):
    """How much a measurement says."""
    if "figures" not in point:
        return -2 if point.get("skipped") in (NO_TIME, STOPPED) else -1, False
    seconds, figures = lasted(point), point["figures"]
    return min(LONG_S, round(seconds)), seconds < SHOWN_S or is_calm(figures) or is_clean(figures)


def lasted(point):
    """For how many seconds a point was measured."""
    return point["figures"].get("window_s") or point["seconds"] or 0


def is_calm(figures):
    """Whether the machine's host is known to have left its processors alone."""
    stolen = stolen_percent(figures)
    return stolen is not None and stolen < STOLEN_PERCENT


def is_clean(figures):
    """Whether nothing was late: then it does not matter what the host did, which can only do harm."""
    missed = figures.get("missed", 0) + sum(app["missed"] for app in figures.get("apps", {}).values()
                                            if app["priority"] >= IMPORTANT)
    return missed == 0 and (figures.get("p99_ms") or 0) <= 1.5 * (figures.get("p50_ms") or 0)
