"""The page about floods."""

from takteval import frames, lateness, plots
from takteval.floods import FPS, LENGTHS_MS, MAX_BLOCKING_MS, MAX_STRETCH_MS, MODES, SLICES_MS, WIDE, WIDER
from takteval.markdown import IN_PART, in_one_run, number, stolen, table

HEADS = ["floods", "mode", "FPS", "missed", "p50 ms", "p99 ms", "max ms", "floods' share of the rest", "clock MHz",
         "stolen", "measured"]
# Frames count as late that take so many times as long as alone.
LATE = 1.25


def page(report):
    results = report.results
    if not results.of("floods"):
        return None
    verdicts(report)
    prepared = results.prepared("floods")
    loads = (f"The app draws {FPS} frames per second of {number(prepared.get('hero_ms'), 1)} ms GPU time each; every "
             f"flood draws as fast as it may. What counts as missed is in [Evaluation](../evaluation.md). EGL "
             f"priorities are high for the app and low for floods. Takt's longest piece is 1 ms unless said otherwise, "
             f"and floods may delay the app by {MAX_BLOCKING_MS} ms (`max_blocking_ms`). "
             f"The clock is the mean of samples of `nvidia-smi`: a GPU with little to do lowers it. Ratios to *alone* and shares use the least "
             f"of the app's median alone and its medians beside others, so that both are at the clock of a busy GPU: {number(at_full_clock(results, 'p99_ms'))} ms here. *Stolen* is the time "
             f"for which the host stopped processors of this virtual machine that could have run, in per cent of one.")
    return [loads, "## Alone", table(HEADS, [row(results, f"hero-alone-{mode}", mode, "none") for mode in
                                            ("native", "takt")]),
            *floods_alone(results), *matrix(report), *slices(report), *depths(results), *blocking(results), *shapes(results),
            *late(results)]


def floods_alone(results):
    """What shares are of."""
    found = {name.removeprefix("flood-alone-"): point for name, point in results.of("floods").items()
             if name.startswith("flood-alone-") and "figures" in point}
    rows = [[name, number(point["figures"]["draws_per_s"]), number(point["figures"]["draw_ms"]), results.measured(point)]
            for name, point in found.items()]
    return ["One flood alone, the reference of shares:", table(["draws", "per second", "ms each", "measured"], rows)] if rows else []


def rows_of(results, names):
    """A table of points, each with its name, mode and floods, and a remark if they are of several commits."""
    return [[row(results, *each) for each in names], results.several([name for name, *_ in names])]


def depths(results):
    rows, remark = rows_of(results, [("hero-5x100ms-takt" + f"-slice{ms}" * (ms != 1) + f"-mpcg{mpcg}" * (mpcg != 2),
                                      f"{mpcg}, pieces up to {ms} ms", "5 × 100 ms")
                                     for mpcg, ms in ((1, 1), (2, 1), (3, 1), (4, 1), (2, 2), (3, 2))])
    heads = [head if head != "mode" else "in flight (`mpcg`)" for head in HEADS]
    return ["## How many pieces are in flight", "While one ends, the next has begun already.", table(heads, rows), remark]


def matrix(report):
    results, parts = report.results, ["## Beside floods"]
    for count in (5, 1):
        rows = [row(results, f"hero-{count}x{length}ms-{mode}", mode, f"{count} × {length} ms")
                for length in LENGTHS_MS for mode in MODES]
        groups = [f"{count} × {length} ms" for length in LENGTHS_MS]
        p99 = {mode: [figure(results, f"hero-{count}x{length}ms-{mode}", "p99_ms") for length in LENGTHS_MS]
               for mode in MODES}
        parts += [report.plot(f"floods-{count}", plots.bars(f"99th percentile of responses beside {count} flood{'s' * (count > 1)}",
                                                            groups, p99, "ms", log=True, line=(1000 / FPS, "a period"))),
                  table(HEADS, rows)]
    names = [f"hero-{count}x{length}ms-{mode}" for count in (5, 1) for length in LENGTHS_MS for mode in MODES]
    parts += [results.several(names), WORDS, *one_run(results)]
    parts.append(report.plot("floods-responses", plots.curves(
        "Responses beside 5 floods of 100 ms draws",
        {mode: responses(results, f"hero-5x100ms-{mode}") for mode in MODES}
        | {"takt-stretched": responses(results, "hero-5x100ms-takt-stretched"),
           "alone": responses(results, "hero-alone-native")}, "ms")))
    return parts


WORDS = ("Where Takt does not cut draws, it holds floods back whose draws are longer than `max_blocking_ms` allows. Their estimates "
         "decay meanwhile; then a draw runs, and delays the app after all. So floods get little, and more where there are several.")


def one_run(results):
    """All modes as one run found them."""
    names = {f"hero-5x{length}ms-{mode}": (mode, f"5 × {length} ms") for length in (100, 1) for mode in MODES[:3]}
    return in_one_run(results, names, HEADS, lambda name, point: row(results, name, *names[name], point))


# Ways to cut, by how points' names end, and what verdicts say about them.
WAYS = {"-stretched": f" (pieces up to {MAX_STRETCH_MS} ms while no release is near)", "": "",
        "-slice2": " (pieces up to 2 ms)", "-slice4": " (pieces up to 4 ms)"}


def slices(report):
    results = report.results
    name = lambda ms: "hero-5x100ms-takt" + (f"-slice{ms}" if ms != 1 else "")
    rows, remark = rows_of(results, [*((name(ms), f"pieces up to {ms} ms", "5 × 100 ms") for ms in SLICES_MS),
                                     ("hero-5x100ms-takt-stretched",
                                      f"up to {MAX_STRETCH_MS} ms while no release is near, else 1 ms", "5 × 100 ms")])
    share = {"floods' share, %": [percent(shares(results, results.points.get(name(ms), {}))) for ms in SLICES_MS]}
    return ["## How long a piece may be", "Long pieces cost the floods less. How long they may delay the app is bounded by "
            "`max_blocking_ms`, at any length.",
            report.plot("floods-slices", plots.bars("Floods' share of the GPU time that the app leaves",
                                                    [f"{ms} ms" for ms in SLICES_MS], share, "%")), table(HEADS, rows), remark]


def blocking(results):
    rows, remark = rows_of(results, [(f"hero-5x{length}ms-{mode}", words, f"5 × {length} ms") for length in (100, 1) for mode, words in
                                     (("takt", f"{MAX_BLOCKING_MS} ms"), ("takt-deadlines", "while no deadline is in danger"))])
    return ["## How long floods may delay the app", table(HEADS, rows), remark]


def shapes(results):
    rows, remark = rows_of(results, [("hero-5x100ms-takt", "cut by tiles", "5 × 100 ms"),
                                     ("hero-5x100ms-takt-ranges", "2000 triangles, cut into ranges", "5 × 100 ms")])
    return ["## Tiles and ranges", table(HEADS, rows), remark, *fragments(results)]


def fragments(results):
    """What cutting costs by how long fragments are; nothing if that was not measured."""
    loads = [(count, length) for count, length in ((1, 1000), (5, 100)) if results.figures(f"hero-{count}x{length}ms-takt-{WIDE}")]
    makes = (("", "as above"), (f"-{WIDE}", f"{WIDER ** 2} times as many fragments, each as much shorter"))
    rows, remark = rows_of(results, [(f"hero-{count}x{length}ms-takt{make}", words, f"{count} × {length} ms")
                                     for count, length in loads for make, words in makes])
    return ["## How long fragments are", "A piece takes no less time than one fragment, and few long fragments do not keep a GPU "
            "busy. So pieces of long draws waste more of its time, unless draws are long because they have many fragments.",
            table(HEADS, rows), remark] if rows else []


def late(results):
    """Why frames took longer than alone, in all runs of what must be shown from the one that counts on."""
    alone = at_full_clock(results, "p99_ms")
    rows = []
    for name in [f"hero-5x{length}ms-takt{way}" for length, way in ((100, ""), (100, "-stretched"), (1, ""))]:
        for point in [results.points[name], *results.later(name)] if alone and results.figures(name) else []:
            found = lateness.causes(point["raw"], LATE * alone * 1e6)
            if found is not None:
                rows.append([name, f"`{results.commit(point)}`", stolen(point["figures"]), sum(found.values()),
                             *(found[cause] for cause in lateness.CAUSES)])
    return ["## Why frames took longer", f"Frames that took more than {LATE:g} times as long as alone, from the daemon's log. *Its own "
            f"thread stood still*: it asked {lateness.THREAD_NS / 1e6:g} ms after its frame was released, or submitted as long after "
            "its grant, instead of after a fifth of that; floods then run in its time. *A flood's "
            f"thread*: it submitted {lateness.FLOOD_NS / 1e6:g} ms after its grant. The daemon is responsible for the rest: floods "
            "that it granted too late before the frame, or that took longer than predicted.",
            table(["point", "commit", "stolen", "frames", *lateness.CAUSES], rows)] if rows else []


def row(results, name, mode, floods, point=None):
    """A point as it counts, or as it was found in some run."""
    point = point or results.points.get(name)
    figures = (point or {}).get("figures")
    if figures is None:
        why = "" if point is None else "failed" if "error" in point else "no time"
        return [floods, mode, *["?"] * 8, why]
    periods = figures["frames"] + figures["skipped"]
    return [floods, mode, number(figures["fps"], 1), f"{figures['missed']} of {periods}", number(figures["p50_ms"]),
            number(figures["p99_ms"]), number(figures["max_ms"]), number(percent(shares(results, point)), 1, " %"),
            number((figures.get("monitor") or {}).get("clock_mhz"), 0), stolen(figures),
            results.measured(point)]


def shares(results, point):
    """Floods' work, relative to a flood alone in the time that the app leaves; none if not known, as where a response
    is longer than what was watched."""
    figures = point.get("figures")
    if not figures or not figures["flood_draws_per_s"] or point["about"]["draw_ms"] / 1e3 > figures["window_s"] / 5:
        return None
    about = point["about"]
    make = f"-{about['make']}" if about["make"] else ""
    alone = results.figures(f"flood-alone-{about['draw_ms']}ms{make}")
    hero_ms = at_full_clock(results, "p50_ms")
    if not alone or not hero_ms:
        return None
    left = 1 - figures["fps"] * hero_ms / 1000
    return sum(figures["flood_draws_per_s"]) / alone["draws_per_s"] / left


def at_full_clock(results, key):
    """What the app takes alone, or beside others if that is less: a GPU with little to do lowers its clock, and what
    the app takes then says nothing about a GPU that is busy."""
    beside = [point["figures"]["p50_ms"] for name, point in results.of("floods").items()
              if name.startswith("hero-") and (point.get("figures") or {}).get("p50_ms")]
    alone = figure(results, "hero-alone-native", key)
    return min([alone, *beside]) if alone else None


def figure(results, name, key):
    return (results.figures(name) or {}).get(key)


def percent(share):
    return None if share is None else 100 * share


def responses(results, name):
    """Responses of a point's app, in ms; nothing if its log is not there."""
    figures = results.figures(name)
    log = results.points[name]["raw"] / "hero.csv" if figures else None
    if log is None or not log.exists():
        return []
    inside = frames.read(log)[-figures["frames"]:]
    return [(end - begin) / 1e6 for begin, end in inside]


def verdicts(report):
    results = report.results
    alone = at_full_clock(results, "p99_ms")
    for length, factor in ((100, 1.25), (1, 2)):
        name = f"hero-5x{length}ms"
        wanted = f"60 FPS, 0 missed in ≥ 1200 frames, p99 ≤ {factor} × alone"
        wanted += ", floods ≥ 80 % of the rest" * (length == 100)
        # The first way of cutting that does what is wanted, or else the usual one.
        found = [judged for way in WAYS if (judged := judge(results, f"{name}-takt{way}", factor, alone)) is not None]
        if not found:
            report.verdict(f"app + 5 floods of {length} ms", wanted, "?", None)
            continue
        words, good, counted = next(filter(lambda each: each[1], found), found[0])
        if good and counted != f"{name}-takt" and (plain := judge(results, f"{name}-takt", factor, alone)) and not plain[1]:
            words += f"; with pieces of 1 ms throughout {plain[0]}"
        native = results.figures(f"{name}-native")
        words += f"; native {native['fps']:.1f} FPS, {native['missed']} missed, p99 {native['p99_ms']:.1f} ms" \
            if native else ""
        since = results.later(counted)
        told = "; ".join(f"{results.commit(point)}, {stolen(point['figures'])} stolen: {point['figures']['missed']} missed, "
                         f"p99 {point['figures']['p99_ms']:.2f} ms" for point in since)
        report.verdict(f"app + 5 floods of {length} ms", wanted, words, IN_PART if good and since else good, "" if not since else
                       f"Later code was measured where the host took processors away ({told}); why frames were late there is on the "
                       "[page](" + f"{report.name}-floods.md#why-frames-took-longer). A calm machine would tell.")


def judge(results, point, factor, alone):
    """What was found at a point, and whether it is as wanted; nothing if not measured."""
    takt = results.figures(point)
    if not takt or not alone:
        return None
    share = shares(results, results.points[point])
    good = (takt["missed"] == 0 and takt["frames"] >= 1200 and takt["fps"] > 59.9 and takt["p99_ms"] <= factor * alone
            and ("x100ms" not in point or (share or 0) >= 0.8))
    pieces = WAYS[point.partition("-takt")[2]]
    return (f"{takt['fps']:.1f} FPS, {takt['missed']} missed in {takt['frames']} frames, p99 "
            f"{takt['p99_ms'] / alone:.2f} × alone, floods {number(percent(share), 1)} %{pieces} "
            f"[{results.measured(results.points[point])}]"), good, point
