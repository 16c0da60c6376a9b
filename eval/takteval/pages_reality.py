"""The page about the simulator and what it makes of live runs."""

import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean, quantiles

from takteval import reality as live_runs
from takteval.daemon import LOG
from takteval.markdown import IN_PART, number, table
from takteval.pages_mixed import RECORDED
from takteval.turns import NoTurns

# Runs of the simulator for each live one.
SEEDS = 5
WANTED = "met rates within 1 %, utilisation within 2 %"


def page(report):
    """Plays the recorded runs in the simulator."""
    parts, found, verdicts, seen, apart = [], [], [], [], {}
    for mpcg, name in RECORDED.items():
        played = play(report, name)
        if played is None:
            continue
        if isinstance(played, str):
            found.append(f"with mpcg {mpcg}, {played}")
            verdicts.append(False)
            continue
        found.append(f"with mpcg {mpcg}, met rates of apps with reserved time {played.worst(True):.2f} % off at worst, of "
                     f"others {played.worst(False):.2f} %, utilisation {played.busy[0]:.2f} % observed, "
                     f"{played.busy[1]:.2f} % simulated{played.left_out()}")
        verdicts.append(played.verdict())
        seen += played.seen(mpcg)
        for commit, points in played.apart():
            apart[commit] = max(points, apart.get(commit, 0.0))
        parts += [f"## {mpcg} groups in flight",
                  table(["app", "priority", "met, observed", "standard error", f"observed before{played.commit_before()}",
                         "met, simulated", "difference"], played.rows()),
                  played.remark(), table(["what", "p50", "p99", "longest"], played.latencies())]
    if not found:
        report.verdict("simulator against reality", WANTED, "no recording, or no takt command", None)
        return None
    good = False if False in verdicts else IN_PART if IN_PART in verdicts else True
    report.verdict("simulator against reality", WANTED, "; ".join(found), good, "" if good is True else
                   "Apps without reserved time want more than is left, and which of their frames just end in time hangs on "
                   f"little{live_apart(apart)}: what groups of several draws cost is not known one by one, nor after how many of their draws the "
                   "GPU changed to another process. The costs of draws, from time stamps around each, would tell.")
    return ["The daemon's log of the mixed scenario became a scenario whose apps replay their own groups: when they "
            "asked, what they predicted, how long they made it and what it cost the GPU. The simulator then decided anew, "
            f"with the daemon's own parameters; the mean of {SEEDS} runs is told. Met is by the daemon's log here, to which a frame "
            "is done when its swap is; other pages judge by what apps noted themselves, from the moment they begin to draw, and count "
            "periods without a frame of theirs as missed. The standard error is that of ten parts of the live run.",
            "The simulated GPU serves processes in turn, as this one does ([how](../evaluation.md#turns)). What a frame costs "
            "is what it was found to cost alone; what a change of processes costs follows from the log. Busy is a GPU "
            "while a group is with its driver, so changes count.", *parts, *served(seen)]


def live_apart(apart):
    """How far live runs are from those before them, by commit."""
    told = [f"of {commit} up to {points:.1f} points" for commit, points in sorted(apart.items())]
    return f" (live runs before differ from these, those {', those '.join(told)})" if told else ""


def served(seen):
    """What the logs say about turns."""
    if not seen:
        return []
    return ["## How the GPU serves processes",
            table(["mpcg", "what", "times", "5 %", "median", "95 %"], seen),
            "A short group, which ends within its timeslice of a millisecond, ends later than the end it waited for by what it "
            "costs alone and what it costs to change to its process. Two groups that each outlast a timeslice, and have the GPU "
            "for themselves until one of them ends, end together, whatever they cost: as if neither were interrupted, and the "
            "fence behind the first were executed only after the second has worked."]


class Played:
    """A recorded run, and what the simulator made of it."""

    def __init__(self, live, simulated, busy, turns, before=None):
        self.live, self.simulated, self.busy, self.turns = live, simulated, busy, turns
        # Commit and met rates of the live run before this one.
        self.before = before
        self.observed, self.errors, self.reserving = live.met(), live.met_errors(), live.reserving()

    def difference(self, app):
        seen = self.observed.get(app)
        return None if seen is None else 100 * (self.simulated[app] - seen)

    def worst(self, reserved):
        """The largest difference of apps with reserved time, or of the others."""
        differences = (self.difference(app) for app in self.simulated if (app in self.reserving) == reserved)
        return max((abs(each) for each in differences if each is not None), default=0.0)

    def apart(self):
        """How far apps were, in points, from what they met in the live run before, and its commit."""
        commit, rates = self.before or (None, {})
        return [(commit, 100 * abs(seen - rates[app])) for app, seen in self.observed.items()
                if seen is not None and rates.get(app) is not None]

    def commit_before(self):
        return f" ({self.before[0]})" if self.before else ""

    def verdict(self):
        if self.worst(True) > 1 or abs(self.busy[0] - self.busy[1]) > 2:
            return False
        return True if self.worst(False) <= 1 else IN_PART

    def left_out(self):
        """Who is not in the figures."""
        silent = sorted({facts["name"] for facts in self.live.apps.values()} - (self.simulated.keys() & self.observed.keys()))
        return f"; without {', '.join(silent)}, of which there is no whole frame" if silent else ""

    def remark(self):
        grants, ends = self.live.delays_us()
        revised = f" Estimates of {self.live.revised} groups are those the daemon came to believe." if self.live.revised else ""
        return (f"GPU busy: {self.busy[0]:.2f} % observed, {self.busy[1]:.2f} % simulated. Nine of ten delays from a grant to the "
                f"driver lay in {grants[0]:.0f} to {grants[1]:.0f} µs, from an end to the daemon in {ends[0]:.0f} to "
                f"{ends[1]:.0f} µs.{revised}")

    def latencies(self):
        """Rows about ways to and from the daemon, of all groups."""
        inside = self.live.inside()
        ways = {"asked for to granted": [group["let_go"] - group["asked"] for group in inside],
                "granted to with the driver": [group["came"] - group["let_go"] for group in inside],
                "finished to heard of by the daemon": [group["heard"] - group["ended"] for group in inside]}
        at = lambda times, share: number(sorted(times)[int(share * (len(times) - 1))] / 1e3, 0, " µs")
        return [[way, at(times, 0.5), at(times, 0.99), at(times, 1)] for way, times in ways.items() if times]

    def seen(self, mpcg):
        """Rows about turns."""
        kinds = {} if self.turns is None else {"a change of processes": self.turns.changes_ns,
                                               "ends of two long groups apart": self.turns.apart_ns}
        rows = []
        for what, times in kinds.items():
            if len(times) >= 20:
                parts = quantiles(times, n=20)
                rows.append([mpcg, what, len(times), *(number(parts[at] / 1e3, 0, " µs") for at in (0, 9, 18))])
        return rows

    def rows(self):
        priority = {facts["name"]: facts["priority"] for facts in self.live.apps.values()}
        percent = lambda share: number(share and 100 * share, 2, " %")
        return [[app, priority[app], percent(self.observed.get(app)), percent(self.errors.get(app)),
                 percent(self.before and self.before[1].get(app)), percent(self.simulated[app]), number(self.difference(app), 2)]
                for app in sorted(self.simulated, key=lambda name: -priority[name])]


def play(report, name):
    """One recorded run. Nothing if there is no recording; why not, if it cannot be played."""
    point, figures = report.results.points.get(name, {}), report.results.figures(name)
    log = point["raw"] / f"{LOG}.gz" if figures else None
    if not figures or "live" not in figures or not log.exists() or report.takt is None:
        return None
    prepared = report.results.runs[point["run"]]["prepared"].get("mixed")
    if prepared is None:
        return "the run does not say what frames cost alone"
    alone_ns = {app: facts["frame_ms"] * 1e6 for app, facts in prepared.items()}
    with tempfile.TemporaryDirectory(prefix="takt-live-") as folder:
        live = live_runs.Live(live_runs.lines(log), *figures["live"]["window_ns"])
        try:
            path, turns = live_runs.scenario(live, Path(folder), alone_ns=alone_ns)
        except NoTurns as reason:
            return str(reason)
        trace, met, busy = Path(folder) / "trace.jsonl", defaultdict(list), []
        window = (int(live_runs.WARM_UP_S * 1e9), int(live_runs.duration_s(live) * 1e9))
        for seed in range(1, SEEDS + 1):
            done = subprocess.run([report.takt, "sim", path, "--seed", str(seed), "--json", "-", "--trace", trace],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                return f"takt sim: {done.stderr.strip()[:200]}"
            for app in json.loads(done.stdout)["apps"]:
                met[app["name"]].append(app["met"])
            busy.append(live_runs.Live(live_runs.lines(trace), *window).utilisation())
    simulated = {app: mean(shares) for app, shares in met.items()}
    before = report.results.before(name)
    known = (report.results.commit(before), before["figures"]["live"]["met"]) if before and "live" in before["figures"] else None
    return Played(live, simulated, [100 * live.utilisation(), 100 * mean(busy)], turns, known)
