"""Experiment 5: a live run played again in the simulator.

The daemon's log says when each app asked, when it was granted, and when its work ended. That becomes
a scenario whose apps replay their own groups, under a scheduler with the daemon's own parameters; what
the simulator then predicts is held against what was observed.
"""

import gzip
import json
import math
from collections import defaultdict
from pathlib import Path
from statistics import stdev

from takteval import turns

KEPT = ("run", "app", "join", "submit", "end-frame", "revise", "dispatch", "gpu-queued", "complete", "release", "missed", "frame-done")
# What the simulator plays before it counts.
WARM_UP_S = 1


def lines(path):
    """Records of a log, packed or not; a last line that was cut off is left out."""
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt") as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)


def pack(path):
    """Keeps what is needed of a log, in a tenth of its size."""
    kept = tuple(f'"record":"{name}"' for name in KEPT)
    with open(path) as plain, gzip.open(f"{path}.gz", "wt", 4) as packed:
        packed.writelines(line for line in plain if any(name in line[:200] for name in kept))
    Path(path).unlink()


class Live:
    """What happened between two times of a log."""

    @classmethod
    def of(cls, log, start_ns, end_ns):
        """Of a log that was packed."""
        return cls(lines(f"{log}.gz"), start_ns, end_ns)

    def __init__(self, records, start_ns, end_ns):
        self.start, self.end = start_ns, end_ns
        self.policy, self.config, self.apps, self.terms = None, None, {}, {}
        self.groups, self.revised = {}, 0
        self.by_app = defaultdict(list)
        self.released = defaultdict(list)
        self.judged = defaultdict(list)
        for record in records:
            getattr(self, "on_" + record["record"].replace("-", "_"), lambda _: None)(record)
        self.costs()

    def on_run(self, record):
        self.policy, self.config = record["policy"], record.get("config")
        for app in record["apps"]:
            self.on_app(app)

    def on_app(self, record):
        self.apps[record["app"]] = {key: record[key] for key in ("name", "priority", "fps_mhz")}

    def on_join(self, record):
        self.terms[record["app"]] = record

    def on_submit(self, record):
        group = {"app": record["app"], "kind": record["kind"], "asked": record["at_ns"],
                 "predicted": record["predicted_ns"]}
        self.groups[record["group"]] = group
        self.by_app[record["app"]].append(group)

    def on_end_frame(self, record):
        """A swap that shows nothing, and was no group: the simulator makes the same of one that takes no time."""
        at = record["at_ns"]
        self.by_app[record["app"]].append({"app": record["app"], "kind": "swap", "asked": at, "predicted": 0, "granted": at,
                                           "came": at, "ended": at, "heard": at, "cost": 0})

    def on_revise(self, record):
        """The daemon does not believe an estimate any more, which the simulator would for ever."""
        self.groups[record["group"]]["predicted"] = record["predicted_ns"]
        self.revised += 1

    def on_dispatch(self, record):
        self.groups[record["group"]]["granted"] = record["at_ns"]

    def on_gpu_queued(self, record):
        """A simulator knows when a group came to the GPU."""
        self.groups[record["group"]]["queued"] = record["at_ns"]

    def on_complete(self, record):
        group = self.groups.get(record["group"])
        if group is not None:
            told = record["finished_ns"] - group["queued"] if "queued" in group else record["cost_ns"]
            group.update(ended=record["finished_ns"], told=told, heard=record["at_ns"])

    def on_release(self, record):
        self.released[record["app"]].append(record["release_ns"])

    def on_frame_done(self, record):
        self.judged[record["app"]].append((record["deadline_ns"], int(record["met"]), 0))

    def on_missed(self, record):
        self.judged[record["app"]].append((record["deadline_ns"], 0, record.get("count", 1)))

    def costs(self):
        """How long each group had the GPU if that executes one after the other, and how long its app took to make it
        after it was granted.

        A group is with the driver from when its app handed it over, or from the end of the app's group
        before it, if that was later: that is what apps tell.
        """
        groups = sorted(self.finished(), key=lambda each: each["ended"])
        for group in groups:
            told = group["told"] if group["told"] is not None else group["ended"] - group["granted"]
            group["came"] = max(group["granted"], group["ended"] - told)
        one_by_one(groups)
        for groups in self.by_app.values():
            self.making(groups)

    @staticmethod
    def making(groups):
        """A group that followed another of its app at once was made while that one ran, in as much time as
        others."""
        alone, hidden, before = defaultdict(list), [], 0
        for group in filter(lambda each: "came" in each, groups):
            group["make"] = group["came"] - group["granted"]
            if group["came"] > before:
                alone[group["kind"]].append(group["make"])
            else:
                hidden.append(group)
            before = group["ended"]
        usual = {kind: sorted(times)[len(times) // 2] for kind, times in alone.items()}
        for group in hidden:
            group["make"] = min(group["make"], usual.get(group["kind"], 0))

    def inside(self):
        return [group for group in self.groups.values() if "cost" in group and self.start <= group["ended"] < self.end]

    def met(self, start=None, end=None):
        """Share of deadlines met, by app; of those between two times of the window, if given."""
        start, end = self.start if start is None else start, self.end if end is None else end
        shares = {}
        for app, judged in self.judged.items():
            inside = [(met, missed) for deadline, met, missed in judged if start <= deadline < end]
            met, missed = map(sum, zip(*inside)) if inside else (0, 0)
            if met + missed:
                shares[self.apps[app]["name"]] = met / (met + missed)
        return shares

    def done(self):
        """How many frames of each app ended for deadlines in the window."""
        return {self.apps[app]["name"]: sum(not missed and self.start <= deadline < self.end for deadline, _, missed in judged)
                for app, judged in self.judged.items()}

    def met_errors(self, parts=10):
        """Standard errors of these shares, from as many parts of the window."""
        length = (self.end - self.start) // parts
        found = defaultdict(list)
        for begin in range(self.start, self.start + parts * length, length):
            for app, share in self.met(begin, begin + length).items():
                found[app].append(share)
        return {app: stdev(shares) / math.sqrt(len(shares)) for app, shares in found.items() if len(shares) > 1}

    def reserving(self):
        """Names of apps with reserved time."""
        return {facts["name"] for app, facts in self.apps.items() if self.terms.get(app, {}).get("etpf_ns", 0) > 0}

    def utilisation(self):
        """Share of time in which at least one group was with the driver and not finished."""
        return self.covered((group["came"], group["ended"]) for group in self.finished())

    def granted(self):
        """The same from when groups were granted: with the time in which apps make commands."""
        return self.covered((group["granted"], group["ended"]) for group in self.finished())

    def finished(self):
        return [group for group in self.groups.values() if "ended" in group and "granted" in group]

    def covered(self, spans):
        """Share of the window that lies in at least one of these spans."""
        total, until = 0, self.start
        for begin, end in sorted(spans):
            begin, end = max(begin, until), min(end, self.end)
            if end > begin:
                total += end - begin
                until = end
        return total / (self.end - self.start)

    def figures(self):
        return {"met": self.met(), "utilisation": self.utilisation(), "granted": self.granted(),
                "window_ns": [self.start, self.end], "delays_us": self.delays_us()}

    def delays_us(self):
        """Usual delays from a grant to the GPU, and from an end to the daemon hearing of it."""
        inside = self.inside()
        return (bounds([group["make"] for group in inside]),
                bounds([group["heard"] - group["ended"] for group in inside]))


def one_by_one(groups):
    """Each group had the GPU when no group had it that ended earlier."""
    taken = []
    for group in groups:
        group["cost"] = take(taken, group["came"], group["ended"])


def take(taken, begin, end):
    """How much of a span is not in `taken`, disjoint spans that end before it and are sorted; adds it."""
    free = end - begin
    while taken and taken[-1][1] > begin:
        earlier = taken.pop()
        free -= earlier[1] - max(begin, earlier[0])
        begin = min(begin, earlier[0])
    taken.append((begin, end))
    return free


def bounds(delays_ns):
    """The range in which nine of ten delays lie, in µs."""
    ordered = sorted(max(0, delay) for delay in delays_ns) or [0]
    at = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))] / 1e3, 3)
    return [at(0.05), at(0.95)]


def evenly(delays_ns):
    """A range whose middle is the mean of nearly all delays, and that begins where they do, in µs: a few of them
    are long, so most of the range in which they lie is all but empty."""
    ordered = sorted(max(0, delay) for delay in delays_ns) or [0]
    usual = ordered[:max(1, int(0.99 * len(ordered)))]
    least, mean = ordered[len(ordered) // 20] / 1e3, sum(usual) / len(usual) / 1e3
    return [round(min(least, mean), 3), round(max(mean, 2 * mean - least), 3)]


def recording(groups, releases, start, end, finishes):
    """An app's groups between two times as the simulator's CSV; whole frames only.

    Apps that finish each frame wait for the end of the group before the swap.
    """
    rows, frame, releases = [], [], list(releases)
    began = None
    for at, group in enumerate(groups):
        if "cost" not in group:
            frame = []
            continue
        if not frame:
            while len(releases) > 1 and releases[1] <= group["asked"]:
                releases.pop(0)
            began = releases[0] if releases and releases[0] <= group["asked"] else group["asked"]
        follows = groups[at + 1] if at + 1 < len(groups) else None
        last = finishes and group["kind"] == "draw" and follows is not None and follows["kind"] == "swap"
        waits = last or group["kind"] == "sync"
        kind = "sync" if waits else group["kind"]
        predicted = "" if group["predicted"] is None else us(group["predicted"])
        frame.append(f"{us(max(0, group['asked'] - began))},{kind},{us(group['cost'])},{predicted},{us(group['make'])}")
        # What the simulator hears of an end, it tells the app as well.
        began = group["heard"] if waits else group["granted"]
        if group["kind"] == "swap":
            if start <= group["asked"] < end:
                rows += frame
            frame = []
    return "\n".join(["delay_us,kind,cost_us,predicted_us,make_us", *rows, ""]) if rows else None


def us(ns):
    return f"{ns / 1e3:.3f}"


def scheduler(live):
    """The daemon's own parameters, from its log."""
    config, margins = live.config, live.config["margins"]
    keys = {key: us(margins[f"{key[:-3]}_ns"]) for key in
            ("fixed_us", "dispatch_upper_us", "dispatch_lower_us", "completion_upper_us", "group_min_us")}
    keys |= {key: f"{margins[f'{key}_permille'] / 1000:g}" for key in ("upper", "lower")}
    lines = [f'policy = "{live.policy}"', f"mpcg = {config['mpcg']}",
             "margins = { " + ", ".join(f"{key} = {value}" for key, value in keys.items()) + " }"]
    blocking_ns = config["tuning"]["blocking_ns"]
    if blocking_ns is not None:
        lines.append(f"max_blocking_us = {us(blocking_ns)}")
    return "\n".join(["[scheduler]", *lines, ""])


def scenario(live, folder, *, finishes=True, change_ns=None, order=sorted):
    """Writes a scenario and its recordings; its path. `change_ns` is what a change of processes costs a GPU that serves
    them in turn, in the order into which `order` puts apps."""
    folder.mkdir(parents=True, exist_ok=True)
    in_turn = change_ns is not None
    gpu = {"model": "runlist", "late_ends": True, "switch_us": change_ns / 1e3} if in_turn else {"model": live.config["execution"]}
    gpu["completion_delay_us"] = evenly(group["heard"] - group["ended"] for group in live.inside())
    text = [f'name = "live"\nduration_s = {duration_s(live)}\nwarm_up_s = {WARM_UP_S}\n', scheduler(live),
            "[gpu]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in gpu.items())]
    # What outlasts a timeslice is taken for one draw: groups of several are mostly no longer than `max_slice`, which is
    # about a timeslice.
    for app in order(live.apps):
        facts = live.apps[app]
        rows = recording(live.by_app[app], live.released[app], live.start, live.end, finishes)
        if rows is None:
            continue
        (folder / f"{facts['name']}.csv").write_text(rows)
        etpf_us = us(live.terms.get(app, {}).get("etpf_ns", 0))
        text.append(f'[[app]]\nname = "{facts["name"]}"\npriority = {facts["priority"]}\n'
                    f'fps = {facts["fps_mhz"] / 1000:g}\netpf_us = {etpf_us}\nsynchronous = true\n'
                    f'service = {{ uninterruptible = {json.dumps(in_turn)}, timeslice_us = {us(turns.TIMESLICE_NS)} }}\nrecording = "{facts["name"]}.csv"\n')
    path = folder / "live.toml"
    path.write_text("\n".join(text))
    return path


def duration_s(live):
    """How long the simulator plays what happened."""
    return int((live.end - live.start) / 1e9) + WARM_UP_S
