"""The page about the simulator and what it makes of live runs."""

from statistics import median

from takteval.daemon import LOG
from takteval.markdown import IN_PART, number, table
from takteval.pages_mixed import RECORDED
from takteval.playing import SEEDS, Played
from takteval.reality import Live, lines
from takteval.turns import Unplayable

# From so many pairs of groups on, something is said about all of them.
PAIRS = 20
WANTED = "met rates within 1 %, utilisation within 2 %"


def page(report):
    """Plays the recorded runs in the simulator."""
    parts, found, verdicts, seen, apart, moved = [], [], [], [], {}, 0.0
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
        seen.append(played.seen(mpcg))
        moved = max(moved, *(100 * (most - least) for least, most in played.played.bounds.values()))
        for commit, points in played.apart():
            apart[commit] = max(points, apart.get(commit, 0.0))
        parts += [f"## {mpcg} groups in flight",
                  table(["app", "priority", "met, observed", "standard error", f"observed before{played.commit_before()}",
                         "met, simulated", "from", "to", "difference"], played.rows()),
                  played.remark(), table(["what", "p50", "p99", "longest", "assumed at most", "longer than that"], played.latencies())]
    if not found:
        report.verdict("simulator against reality", WANTED, "no recording, or no takt command", None)
        return None
    good = False if False in verdicts else IN_PART if IN_PART in verdicts else True
    report.verdict("simulator against reality", WANTED, "; ".join(found), good, "" if good is True else
                   "Apps without reserved time want more than is left, and small causes decide which of their frames just end in "
                   f"time{live_apart(apart)}. Not known are the order in which the GPU serves processes, which with other delays moves them "
                   f"by up to {moved:.1f} points, what groups of several draws cost one by one, and after how many of their draws the GPU changed to "
                   "another process. Time stamps around each draw would tell.")
    return ["The daemon's log of the mixed scenario became a scenario whose apps replay their own groups: when they "
            "asked, what they predicted, how long they made it and what it cost the GPU. The simulator then decided anew, "
            f"with the daemon's own parameters, {SEEDS} times. *Met* is judged by the daemon's log here, for which a frame "
            "ends with its swap; other pages judge by what apps noted themselves, from the moment they begin to draw, and count "
            "periods without a frame of theirs as missed. The standard error is that of ten parts of the live run.",
            "The simulated GPU serves processes in turn, as this one does ([how](../evaluation.md#turns)). A frame costs "
            "what it took alone; the cost of a change of processes is fitted (below). A GPU is busy "
            "while a group is with its driver, so changes count. No interface shows the order in which the GPU serves processes, so each "
            "run has another order, and other delays: tables have the mean of runs, and their range *from* and *to*.", *parts, *served(seen)]


def live_apart(apart):
    """How far live runs are from those before them."""
    return f" (earlier live runs differ from these by up to {max(apart.values()):.1f} points)" if apart else ""


def served(seen):
    """What the logs say about turns."""
    return ["## How the GPU serves processes",
            table(["mpcg", "a change of processes", "pairs of long groups", "median of their ends apart"], seen),
            "The cost of a change of processes is fitted so that the simulated GPU does as much work as the live one; no other "
            "figure is fitted. Two groups that each outlast a timeslice of a millisecond, and have the GPU for themselves "
            "until one of them ends, end together at any cost: as if neither were interrupted, and the fence behind the "
            "first were executed only after the second has worked."] if seen else []


class Compared:
    """A recorded run, and what the simulator made of it."""

    def __init__(self, live, played, before=None):
        self.live, self.played, self.simulated = live, played, played.met
        self.busy = 100 * live.utilisation(), 100 * played.utilisation
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
        ways = {"asked for to granted": [group["granted"] - group["asked"] for group in inside],
                "granted to with the driver": [group["came"] - group["granted"] for group in inside],
                "finished to heard of by the daemon": [group["heard"] - group["ended"] for group in inside]}
        margins = self.live.config["margins"]
        assumed = {"granted to with the driver": margins["dispatch_upper_ns"],
                   "finished to heard of by the daemon": margins["completion_upper_ns"]}
        at = lambda times, share: number(sorted(times)[int(share * (len(times) - 1))] / 1e3, 0, " µs")
        beyond = lambda times, most: number(100 * sum(time > most for time in times) / len(times), 2, " %")
        return [[way, at(times, 0.5), at(times, 0.99), at(times, 1),
                 *([number(assumed[way] / 1e3, 0, " µs"), beyond(times, assumed[way])] if way in assumed else ["", ""])]
                for way, times in ways.items() if times]

    def seen(self, mpcg):
        """What is known about turns."""
        apart = self.played.apart_ns
        return [mpcg, number(self.played.change_ns / 1e3, 0, " µs"), len(apart),
                number(median(apart) / 1e3, 0, " µs") if len(apart) >= PAIRS else "?"]

    def rows(self):
        priority = {facts["name"]: facts["priority"] for facts in self.live.apps.values()}
        percent = lambda share: number(share and 100 * share, 2, " %")
        return [[app, priority[app], percent(self.observed.get(app)), percent(self.errors.get(app)),
                 percent(self.before and self.before[1].get(app)), percent(self.simulated[app]), *map(percent, self.played.bounds[app]), number(self.difference(app), 2)]
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
    live = Live(lines(log), *figures["live"]["window_ns"])
    try:
        played = Played(report.takt, live, {app: facts["frame_ms"] * 1e6 for app, facts in prepared.items()})
    except Unplayable as reason:
        return str(reason)
    before = report.results.before(name)
    known = (report.results.commit(before), before["figures"]["live"]["met"]) if before and "live" in before["figures"] else None
    return Compared(live, played, known)
