"""The page about seventeen live apps."""

from statistics import mean

from takteval import lateness, plots
from takteval.daemon import LOG
from takteval.markdown import IN_PART, in_one_run, number, stolen, table
from takteval.mixed import MISPREDICTED, MISPREDICTIONS, POLICIES
from takteval.reality import Live, lines
from takteval.results import IMPORTANT

MPCG = range(1, 11)
# Runs of the scenario of which the daemon's log is kept, by groups in flight.
RECORDED = {2: "mixed-takt", 3: "mixed-takt-mpcg3"}
# All runs of which it is kept.
KEPT = (*RECORDED.values(), "mixed-takt-mpcg1", "mixed-takt-mpcg5", "mixed-takt-endless")


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
    return ["Apps, rates and GPU times per frame are those of Table 4.1 in Schnitzer's thesis; the size of surfaces "
            f"was chosen so that frames take that long here, within the largest size: *found* is the measured time. `{MISPREDICTED}` is a map with some 300 draws per frame. Priorities 17 to 12 "
            "have reserved time. *10 to 1* is the mean share of deadlines that the last ten meet. *Work* is frames times what they take alone. *GPU busy* is the share of time in which at "
            "least one group was with the driver and not finished, by fences; *granted* counts from the grant, so it includes the "
            "time in which apps make commands; `nvidia-smi` samples by rules of its own. *Stolen* is the time for "
            "which the host stopped processors of this virtual machine that could have run, in per cent of one.", loads,
            "## Native, EGL priorities, Takt", plot(report, "modes", modes), compared(results, "mode", modes),
            *in_one_run(results, list(modes.values()), heads("mode"),
                        lambda name, point: one(results, name, name.removeprefix("mixed-"), point)), apps(results, modes),
            *starved(results), *why(results),
            "## Groups in flight (`mpcg`)", plot_busy(report, "mpcg", depths), compared(results, "mpcg", depths),
            "## How long apps without reserved time may delay others", compared(results, "`max_blocking_ms`", bounds),
            f"## Predictions of `{MISPREDICTED}` wrong", f"Predictions that are too short let `{MISPREDICTED}` start groups that do not fit, and apps with "
            "reserved time are late; predictions that are far too long keep it off the GPU until they decay.", compared(results, "factor", wrong),
            "## Policies", "Policies that let all apps with reserved time meet their deadlines differ in the time that the "
            "others get, and in how long the GPU waits: *10 to 1*, *work* and *GPU busy*.",
            plot_each(report, "policies", policies), compared(results, "policy", policies)]


def starved(results):
    """Who did not get to draw."""
    waiting = {name: figures["without_first_frame"] for name, point in results.of("mixed").items()
               if (figures := point.get("figures")) and figures.get("without_first_frame")}
    told = "; ".join(f"{name.removeprefix('mixed-')}: {', '.join(apps)}" for name, apps in waiting.items())
    return ["All apps together want more than twice the GPU's time. Natively every app gets a little; with priorities, the last "
            "apps get the rest, which can be one frame in seconds" +
            (f". Some had drawn nothing yet when counting began ({told})." if told else ".")]


def why(results):
    """Why important apps missed deadlines, where the daemon's log was kept."""
    rows = []
    for name, points in {name: [results.before(name), results.points.get(name)] for name in KEPT}.items():
        for point in filter(None, points):
            log = point["raw"] / f"{LOG}.gz"
            if "live" in point.get("figures", {}) and log.exists():
                live = Live(lines(log), *point["figures"]["live"]["window_ns"])
                rows += [[name, f"`{results.commit(point)}`", app, number(late_ns / 1e6, 1, " ms"), cause]
                         for app, late_ns, cause in lateness.missed(live, IMPORTANT)]
    return ["Work of apps with reserved time that was on the GPU at its deadline, where the daemon's log was kept "
            f"({', '.join(KEPT)}), and how much later its end was seen; each such frame can delay the next ones of its app. *A thread that stood still*: the app had finished its frame, and asked for its swap, "
            "before the thread that polls fences saw the end. *Its own thread*: it had a grant, and nothing else was on the GPU.",
            table(["point", "commit", "app", "late by", "why"], rows)] if rows else []


def apps(results, modes):
    """Rates and met deadlines of all apps, in one run if one has measured all modes."""
    together = results.together(set(modes.values()))
    found = lambda name: together[name]["figures"] if together else results.figures(name)
    measured = {mode: figures["apps"] for mode, name in modes.items() if (figures := found(name))}
    names = next(iter(measured.values()), {})
    cells = lambda name: (cell for found in measured.values()
                          for cell in (number(found[name]["fps"], 1), f"{found[name]['met_percent']:.2f} %"))
    heads = [head for mode in measured for head in (f"{mode}: FPS", "met")]
    return table(["app", "priority", "wanted FPS", *heads],
                 [[name, app["priority"], app["target_fps"], *cells(name)] for name, app in names.items()])


def heads(first):
    return [first, *(str(priority) for priority in range(17, 11, -1)), f"{MISPREDICTED} FPS", "10 to 1", "work",
            "GPU busy", "granted", "nvidia-smi", "clock MHz", "daemon's CPU", "stolen", "measured"]


def compared(results, head, points):
    """A column of met deadlines per priority, a row per point."""
    return "\n\n".join(filter(None, [table(heads(head), [one(results, name, label) for label, name in points.items()]),
                                      results.several(points.values())]))


def one(results, name, label, point=None):
    """A point as it counts, or as it was found in some run."""
    point = point or results.points.get(name, {})
    figures = point.get("figures")
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
            number((figures["daemon"] or {}).get("cpu_percent"), 1, " %"), stolen(figures), results.measured(point)]


def plot(report, name, points):
    figures = {label: report.results.figures(point) for label, point in points.items()}
    by_priority = {label: {app["priority"]: app["met_percent"] for app in found["apps"].values()}
                   for label, found in figures.items() if found}
    if not by_priority:
        return ""
    groups = [str(priority) for priority in range(17, 0, -1)]
    series = {label: [met.get(int(group)) for group in groups] for label, met in by_priority.items()}
    return report.plot(f"mixed-{name}", plots.bars("Deadlines met, by priority", groups, series, "%"))


def plot_each(report, name, points):
    """The same with a group of bars for each of many points."""
    figures = {label: found for label, point in points.items() if (found := report.results.figures(point))}
    met = lambda found, least, most: [app["met_percent"] for app in found["apps"].values() if least <= app["priority"] <= most]
    bars = {str(priority): (priority, priority) for priority in range(17, 11, -1)} | {"11 to 1, mean": (1, 11)}
    series = {label: [mean(met(found, *span)) for found in figures.values()] for label, span in bars.items()}
    return report.plot(f"mixed-{name}", plots.bars("Deadlines met, by priority", list(figures), series, "%")) if figures else ""


def plot_busy(report, name, points):
    """What the GPU did, and what came of it for the important ones."""
    figures = {label: found for label, point in points.items() if (found := report.results.figures(point)) and "live" in found}
    series = {"GPU busy": [100 * found["live"]["utilisation"] for found in figures.values()],
              "work": [found["work_percent"] for found in figures.values()],
              "met, least of 17 to 12": [min(app["met_percent"] for app in found["apps"].values() if app["priority"] >= 12)
                                         for found in figures.values()]}
    return report.plot(f"mixed-{name}", plots.bars("By groups in flight", list(figures), series, "%")) if figures else ""


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
    measured = lambda each: f"mpcg {each} [{report.results.measured(report.results.points[RECORDED[each]])}]"
    more = "" if best == mpcg else f"; {tuned[best]:.1f} % busy with {measured(best)}"
    good = judged[mpcg][1] and tuned.get(best, 0) >= 99
    since = [(each, point) for each in {mpcg, best} for point in report.results.later(RECORDED[each])]
    told = "; ".join(f"{report.results.commit(point)}, mpcg {each}, {stolen(point['figures'])} stolen: "
                     f"{judge(point['figures'])[0]}" for each, point in since)
    before = report.results.before(RECORDED[mpcg])
    found = "" if good or before is None else f"; the run before ({report.results.commit(before)}) found {judge(before['figures'])[0]}"
    once = before is not None and judge(before["figures"])[1]
    return report.verdict(
        what, wanted, f"{judged[mpcg][0]} with {measured(mpcg)}{more}{bounded(report.results)}{found}", IN_PART if good and since or not good and once else good,
        f"Later code was measured where the host took processors away ({told}). A calm machine would tell." if since else
        "" if good else f"What was late, and why, is on the [page]({report.name}-mixed.md#native-egl-priorities-takt).")


def bounded(results):
    """What the daemon's usual bound makes of it, if that was measured."""
    figures = results.figures("mixed-takt-bounded")
    return "" if not figures else (f"; all that while nothing but deadlines bounds how long others may delay them (`max_blocking_ms = inf`); with 1 ms, "
                                   f"which is usual, {judge(figures)[0]} [{results.measured(results.points['mixed-takt-bounded'])}]")


def judge(figures):
    """What became of the scenario, and whether it is as wanted."""
    met = {app["priority"]: app["met_percent"] for app in figures["apps"].values()}
    high, middle = min(met[priority] for priority in range(17, 13, -1)), min(met[13], met[12])
    busy = 100 * figures.get("live", {}).get("utilisation", 0)
    good = high == 100 and middle >= 99.9 and busy >= 97 and figures["window_s"] >= 19
    return f"{high:.2f} %, {middle:.2f} %, {busy:.1f} % busy", good
