"""What the daemon says of an app while a program that it does not schedule has the GPU open."""

import time

# How often the daemon is asked, how long before the program starts, and how long after it has ended: until the app is
# guaranteed its deadlines again, but for so long at least and at most.
EVERY_S = 0.5
BEFORE_S, AFTER_S, AFTER_MOST_S = 3.0, 3.0, 20.0
NAME = "takt-scene"


def stand_in(folder):
    """A file that stands for the GPU's, where the renderer opens none."""
    file = folder / "device"
    file.touch()
    return file


def measure(machine, crew, daemon, seconds, devices):
    """Asks before, while and after a program that Takt does not know draws for so long. With `devices` it opens these,
    as its renderer opens none."""
    began, samples = time.monotonic(), []
    at = lambda: round(time.monotonic() - began, 3)

    def watch(until_s, least_s=None):
        while at() < until_s:
            sampled = sample(daemon.list()) | {"at_s": at()}
            samples.append(sampled)
            if least_s is not None and at() >= least_s and sampled["guaranteed"]:
                break
            crew.sleep(max(0.0, min(EVERY_S, until_s - at())))

    watch(BEFORE_S)
    command = [machine.bin / NAME, "--platform", "device", "--size", "64x64", "--fps", "30"]
    holding = ["sh", "-c", 'file=$1; shift; exec 9<"$file"; exec "$@"', "sh", *devices[:1]] if devices else []
    crew.start("outsider", [*holding, *command], machine.env())
    opened_s, pid = at(), crew.pids()["outsider"]
    watch(opened_s + seconds)
    crew.end("outsider")
    closed_s = at()
    watch(closed_s + AFTER_MOST_S, closed_s + AFTER_S)
    return judged(samples, opened_s, closed_s, pid) | {"samples": samples}


def sample(listed):
    """What is said at a moment."""
    hero = next((app for app in listed["apps"] if app["name"] == "hero"), {})
    daemon = listed.get("daemon") or {}
    return {"guaranteed": hero.get("guaranteed"), "reason": hero.get("reason"), "admission": hero.get("admission"),
            "outsiders": daemon.get("outsiders", []), "unseen": daemon.get("unseen")}


def judged(samples, opened_s, closed_s, pid):
    """When the guarantee was withdrawn for that program, when the program was named, and when both were over; seconds
    since it began or ended, or nothing if that was not seen."""
    meant = lambda each: any(one.get("pid") == pid for one in each["outsiders"])
    withdrawn = lambda each: not each["guaranteed"] and each["reason"] == "outsiders"
    first = lambda since_s, until_s, is_so: next(
        (round(each["at_s"] - since_s, 2) for each in samples if since_s <= each["at_s"] < until_s and is_so(each)), None)
    never = samples[-1]["at_s"] + 1
    before = [each for each in samples if each["at_s"] < opened_s][-1:] or [{}]
    named = [each["admission"] for each in samples if meant(each) and withdrawn(each)]
    keys = ("guaranteed", "reason", "unseen", "admission")
    return {"before": {key: before[0].get(key) for key in keys}, "after": {key: samples[-1][key] for key in keys},
            "withdrawn_s": first(opened_s, closed_s, withdrawn), "named_s": first(opened_s, closed_s, meant),
            "admission": named[0] if named else None,
            "gone_s": first(closed_s, never, lambda each: not meant(each)),
            "again_s": first(closed_s, never, lambda each: each["guaranteed"]),
            "back_s": first(closed_s, never, lambda each: not withdrawn(each))}


def word(state):
    """What the daemon says, in a word."""
    return "guaranteed" if state["guaranteed"] else f"not guaranteed ({state['reason']})"


def brief(figures):
    """The figures in one line."""
    after = lambda key: "never" if figures[key] is None else f"after {figures[key]:.1f} s"
    return (f"{word(figures['before'])}; named {after('named_s')}, withdrawn {after('withdrawn_s')}; "
            f"gone {after('gone_s')}, then {word(figures['after'])}")
