"""The pages about seventeen live apps, and about their simulation."""

import json
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import quantiles

from takteval import plots, reality as live_runs
from takteval.daemon import LOG
from takteval.markdown import number, stolen, table
from takteval.mixed import MISPREDICTED, MISPREDICTIONS, POLICIES
from takteval.pages_others import IN_PART

MPCG = range(1, 11)
# Runs of the scenario of which the daemon's log is kept, by groups in flight.
RECORDED = {2: "mixed-takt", 3: "mixed-takt-mpcg3"}
# Runs of the simulator for each of them.
SEEDS = 5


def page(report):
    results = report.results
    if not results.of("mixed"):
        return None
    verdict(report)
    prepared = results.prepared("mixed")
    loads = table(["app", "priority", "FPS", "GPU ms per frame: wanted", "found", "size"],
                  [[name, app["priority"], app["fps"], number(app["wanted_ms"]), number(app["frame_ms"]), app["size"]]
                   for name, app in prepared.items()])
    depths = {f"{mpcg}": "mixed-takt" if mpcg == 2 else f"mixed-takt-mpcg{mpcg}" for mpcg in MPCG}
    wrong = {"right": "mixed-takt"} | {f"× {factor}": f"mixed-takt-{name}" for name, factor in MISPREDICTIONS.items()}
    bounds = {"as long as no deadline is in danger": "mixed-takt", "1 ms": "mixed-takt-bounded"}
    policies = {"frame-deadline": "mixed-takt"} | {policy: f"mixed-{policy}" for policy in POLICIES}
    modes = {mode: f"mixed-{mode}" for mode in ("native", "egl-priority", "takt")}
    return ["Apps, rates and GPU times per frame are those of Table 4.1 in Schnitzer's thesis; surfaces were made as "
            f"large as that takes here, or as large as they may be: *found* says what came of it. `{MISPREDICTED}` is a map with some 300 draws per frame. Priorities 17 to 12 "
            "have reserved time. *Work* is frames times what they take alone. *GPU busy* is the share of time in which at "
            "least one group was with the driver and not finished, by fences; *granted* counts from the grant, so the "
            "time in which apps make commands as well; `nvidia-smi` samples by rules of its own. *Stolen* is the time for "
            "which processors of this virtual machine could have run and were not let by its host, in per cent of one.", loads,
            "## Native, EGL priorities, Takt", plot(report, "modes", modes), compared(results, "mode", modes),
            apps(results, modes),
            "## Groups in flight (`mpcg`)", compared(results, "mpcg", depths),
            "## How long apps without reserved time may delay others", compared(results, "`max_blocking_ms`", bounds),
            f"## Predictions of `{MISPREDICTED}` wrong", compared(results, "factor", wrong),
            "## Policies", plot(report, "policies", policies), compared(results, "policy", policies)]


def apps(results, modes):
    """Rates and met deadlines of all apps."""
    measured = {mode: figures["apps"] for mode, name in modes.items() if (figures := results.figures(name))}
    names = next(iter(measured.values()), {})
    cells = lambda name: (cell for found in measured.values()
                          for cell in (number(found[name]["fps"], 1), f"{found[name]['met_percent']:.2f} %"))
    heads = [head for mode in measured for head in (f"{mode}: FPS", "met")]
    return table(["app", "priority", "wanted FPS", *heads],
                 [[name, app["priority"], app["target_fps"], *cells(name)] for name, app in names.items()])


def compared(results, head, points):
    """A column of met deadlines per priority, a row per point."""
    heads = [head, *(str(priority) for priority in range(17, 11, -1)), f"{MISPREDICTED} FPS", "10 to 1", "work",
             "GPU busy", "granted", "nvidia-smi", "clock MHz", "daemon's CPU", "stolen", "measured"]
    return table(heads, [one(results, name, label) for label, name in points.items()])


def one(results, name, label):
    figures = results.figures(name)
    if not figures:
        return [label, *["?"] * 16]
    met = {app["priority"]: app["met_percent"] for app in figures["apps"].values()}
    rest = [met[priority] for priority in range(10, 0, -1)]
    live, monitor = figures.get("live", {}), figures.get("monitor") or {}
    share = lambda value: number(value and 100 * value, 1, " %")
    return [label, *(f"{met[priority]:.2f} %" for priority in range(17, 11, -1)),
            number(figures["apps"][MISPREDICTED]["fps"], 1), f"{sum(rest) / len(rest):.1f} %",
            number(figures["work_percent"], 1, " %"), share(live.get("utilisation")), share(live.get("granted")),
            number(monitor.get("utilisation_percent"), 1, " %"), number(monitor.get("clock_mhz"), 0),
            number((figures["daemon"] or {}).get("cpu_percent"), 1, " %"), stolen(monitor), results.measured(name)]


def plot(report, name, points):
    figures = {label: report.results.figures(point) for label, point in points.items()}
    by_priority = {label: {app["priority"]: app["met_percent"] for app in found["apps"].values()}
                   for label, found in figures.items() if found}
    if not by_priority:
        return ""
    groups = [str(priority) for priority in range(17, 0, -1)]
    series = {label: [met.get(int(group)) for group in groups] for label, met in by_priority.items()}
    return report.plot(f"mixed-{name}", plots.bars("Deadlines met, by priority", groups, series, "%"))


def verdict(report):
    what, wanted = "mixed scenario", "17 to 14: 100 % met, 13 and 12: ≥ 99.9 %, GPU ≥ 97 % busy, ≥ 99 % with mpcg tuned"
    judged = {mpcg: judge(figures) for mpcg, name in RECORDED.items() if (figures := report.results.figures(name))}
    if not judged:
        return report.verdict(what, wanted, "?", None)
    # The first that does what is wanted, or else the usual one.
    mpcg = next((mpcg for mpcg, (_, good) in judged.items() if good), next(iter(judged)))
    # What was tuned has to keep its deadlines, too.
    tuned = {each: 100 * report.results.figures(name)["live"]["utilisation"] for each, name in RECORDED.items()
             if each in judged and judged[each][1]}
    best = max(tuned, key=tuned.get, default=mpcg)
    more = "" if best == mpcg else f"; {tuned[best]:.1f} % busy with mpcg {best}"
    good = judged[mpcg][1]
    return report.verdict(
        what, wanted, f"{judged[mpcg][0]} with mpcg {mpcg}{more}", good and tuned.get(best, 0) >= 99,
        "" if not good else "The GPU waits where all groups in flight are being made, and where what is set aside for apps "
        "without reserved time is not used: their estimates include turns of each other.")


def judge(figures):
    """What became of the scenario, and whether it is as wanted."""
    met = {app["priority"]: app["met_percent"] for app in figures["apps"].values()}
    high, middle = min(met[priority] for priority in range(17, 13, -1)), min(met[13], met[12])
    busy = 100 * figures.get("live", {}).get("utilisation", 0)
    good = high == 100 and middle >= 99.9 and busy >= 97 and figures["window_s"] >= 19
    return f"{high:.2f} %, {middle:.2f} %, {busy:.1f} % busy", good


def reality(report):
    """Plays the recorded runs in the simulator."""
    what, wanted = "simulator against reality", "met rates within 1 %, utilisation within 2 %"
    parts, found, verdicts, seen = [], [], [], []
    for mpcg, name in RECORDED.items():
        played = play(report, name)
        if played is None:
            continue
        if isinstance(played, str):
            found.append(f"with mpcg {mpcg}, {played}")
            verdicts.append(False)
            continue
        found.append(f"with mpcg {mpcg}, met rates of apps with reserved time {played.worst(True):.2f} % off at worst, of "
                     f"others {played.worst(False):.2f} % (the halves of the run are {played.apart():.1f} % apart), "
                     f"utilisation {played.busy[0]:.2f} % observed, {played.busy[1]:.2f} % simulated")
        verdicts.append(played.verdict())
        seen += played.seen(mpcg)
        parts += [f"## {mpcg} groups in flight", table(
            ["app", "priority", "met, observed", "its halves apart", "met, simulated", "difference"], played.rows()),
            f"GPU busy: {played.busy[0]:.2f} % observed, {played.busy[1]:.2f} % simulated. {played.remark}"]
    if not found:
        report.verdict(what, wanted, "no recording, or no takt command", None)
        return None
    good = all(verdicts) and (IN_PART if IN_PART in verdicts else True)
    report.verdict(what, wanted, "; ".join(found), good, "" if good is not IN_PART else
                   "Apps without reserved time want more than is left; by which of their frames just end in time, the two "
                   "halves of a run differ more than the simulator does from the whole.")
    return ["The daemon's log of the mixed scenario became a scenario whose apps replay their own groups: when they "
            "asked, what they predicted, how long they made it and what it cost the GPU. The simulator then decided anew, "
            f"with the daemon's own parameters; the mean of {SEEDS} runs is told. Met is by the daemon's log here; other "
            "pages judge by what apps noted themselves.",
            "The simulated GPU serves processes in turn, as this one does ([how](../evaluation.md#turns)). What a frame costs "
            "is what it was found to cost alone; what a change of processes costs follows from the log. Busy is a GPU "
            "while a group is with its driver, so changes count.", *parts, *served(seen)]


def served(seen):
    """What the logs say about turns."""
    if not seen:
        return []
    return ["## How the GPU serves processes",
            table(["mpcg", "what", "times", "a quarter below", "median", "a quarter above"], seen),
            "A short group, which ends within its timeslice of a millisecond, ends later than the end it waited for by what it "
            "costs alone and what it costs to change to its process. Two groups that each outlast a timeslice, and have the GPU "
            "for themselves, end together, whatever they cost: neither is interrupted, but the fence behind the first is "
            "executed only after the second has worked, and the fence behind the second after one more change."]


class Played:
    """A recorded run, and what the simulator made of it."""

    def __init__(self, live, simulated, busy, turns):
        self.live, self.simulated, self.busy, self.turns = live, simulated, busy, turns
        self.observed, self.apart_by_app, self.reserving = live.met(), live.halves_apart(), live.reserving()
        grants, ends = live.delays_us()
        silent = sorted({facts["name"] for facts in live.apps.values()} - simulated.keys())
        left_out = f" Left out, because no whole frame of it was recorded: {', '.join(silent)}." if silent else ""
        self.remark = (f"Nine of ten delays from a grant to the driver lay in {grants[0]:.0f} to {grants[1]:.0f} µs, "
                       f"from an end to the daemon in {ends[0]:.0f} to {ends[1]:.0f} µs.{left_out}")

    def seen(self, mpcg):
        """Rows about turns."""
        kinds = {} if self.turns is None else {"a change of processes": self.turns.changes_ns,
                                               "ends of two long groups apart": self.turns.apart_ns}
        quarters = lambda times: [number(each / 1e3, 0, " µs") for each in quantiles(times, n=4)]
        return [[mpcg, what, len(times), *quarters(times)] for what, times in kinds.items() if len(times) > 3]

    def difference(self, app):
        seen = self.observed.get(app)
        return None if seen is None else 100 * (self.simulated[app] - seen)

    def worst(self, reserved):
        """The largest difference of apps with reserved time, or of the others."""
        return max((abs(self.difference(app) or 0.0) for app in self.simulated if (app in self.reserving) == reserved),
                   default=0.0)

    def apart(self):
        return 100 * max(self.apart_by_app.values(), default=0.0)

    def verdict(self):
        """Nobody can foretell apps in overload more closely than they agree with themselves."""
        if self.worst(True) > 1 or abs(self.busy[0] - self.busy[1]) > 2 or self.worst(False) > max(1, self.apart()):
            return False
        return True if self.worst(False) <= 1 else IN_PART

    def rows(self):
        priority = {facts["name"]: facts["priority"] for facts in self.live.apps.values()}
        percent = lambda share: number(share and 100 * share, 2, " %")
        return [[app, priority[app], percent(self.observed.get(app)), percent(self.apart_by_app.get(app)), percent(self.simulated[app]),
                 number(self.difference(app), 2)]
                for app in sorted(self.simulated, key=lambda name: -priority[name])]


def play(report, name):
    """One recorded run. Nothing if there is no recording; why not, if it cannot be played."""
    point, figures = report.results.points.get(name, {}), report.results.figures(name)
    log = point["raw"] / f"{LOG}.gz" if figures else None
    if not figures or "live" not in figures or not log.exists() or report.takt is None:
        return None
    alone_ns = {app: facts["frame_ms"] * 1e6 for app, facts in report.results.runs[point["run"]]["prepared"]["mixed"].items()}
    with tempfile.TemporaryDirectory(prefix="takt-live-") as folder:
        live = live_runs.Live(live_runs.lines(log), *figures["live"]["window_ns"])
        (path, turns), trace = live_runs.scenario(live, Path(folder), alone_ns=alone_ns), Path(folder) / "trace.jsonl"
        met = defaultdict(list)
        for seed in range(1, SEEDS + 1):
            done = subprocess.run([report.takt, "sim", path, "--seed", str(seed), "--json", "-", "--trace", trace],
                                  capture_output=True, text=True, check=False)
            if done.returncode:
                return f"takt sim: {done.stderr.strip()[:200]}"
            for app in json.loads(done.stdout)["apps"]:
                met[app["name"]].append(app["met"])
        window = (int(live_runs.WARM_UP_S * 1e9), int(live_runs.duration_s(live) * 1e9))
        again = live_runs.Live(live_runs.lines(trace), *window)
    simulated = {app: sum(shares) / len(shares) for app, shares in met.items()}
    return Played(live, simulated, [100 * live.utilisation(), 100 * again.utilisation()], turns)
