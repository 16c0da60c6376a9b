"""Plays live runs again in the simulator."""

import json
import random
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import mean

from takteval import reality, turns
from takteval.turns import Unplayable

# Runs of the simulator for each live one.
SEEDS = 10


class Player:
    """Simulates what happened in a live run, in a folder of its own."""

    def __init__(self, takt, live, folder):
        self.takt, self.live, self.folder = takt, live, folder

    def run(self, seed=1, **how):
        """What the simulator says of each app, and its log; `how` is that of a scenario."""
        path, trace = reality.scenario(self.live, self.folder, **how), self.folder / "trace.jsonl"
        done = subprocess.run([self.takt, "sim", path, "--seed", str(seed), "--json", "-", "--trace", trace],
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unplayable(f"takt sim: {done.stderr.strip()[:200]}")
        window = (reality.WARM_UP_S, reality.duration_s(self.live))
        return json.loads(done.stdout), reality.Live(reality.lines(trace), *(int(1e9 * seconds) for seconds in window))


class Played:
    """What the simulator made of a live run whose apps have the GPU in turn, in the mean of several runs. In which order
    a GPU serves processes is nowhere to be read, so each of them has another."""

    def __init__(self, takt, live, alone_ns):
        self.apart_ns = turns.attribute(live, alone_ns)
        met, busy = defaultdict(list), []
        with tempfile.TemporaryDirectory(prefix="takt-live-") as folder:
            player = Player(takt, live, Path(folder))
            self.change_ns = turns.change_ns(live, alone_ns, lambda change_ns: player.run(change_ns=change_ns)[1])
            for seed in range(1, SEEDS + 1):
                said, log = player.run(seed, change_ns=self.change_ns, order=lambda apps: shuffled(apps, seed))
                busy.append(log.utilisation())
                for app in said["apps"]:
                    met[app["name"]].append(app["met"])
        self.met, self.utilisation = {app: mean(shares) for app, shares in met.items()}, mean(busy)
        self.bounds = {app: (min(shares), max(shares)) for app, shares in met.items()}


def shuffled(apps, seed):
    return random.Random(seed).sample(sorted(apps), len(apps))
