"""The page about kinds of floods and ways of pacing."""

from takteval import outsider, traps
from takteval.kinds import FLOODS, FPS, KINDS, LENGTH_MS, NO_SWAP, OWN, PACES, SWAP
from takteval.markdown import number, table

# What must be shown: deadlines met, and the 99th percentile of responses against the median alone, by pacing.
MET_PERCENT = 99.9
P99_TIMES = {SWAP: 1.5, OWN: 2.0, NO_SWAP: 2.0}
SHARE_PERCENT = 80
WORDS = {SWAP: "its swap", OWN: "its own clock", NO_SWAP: "its own clock, no swap"}
HEADS = ["floods", "native FPS", "native met", "native p99 ms", "FPS", "met", "p50 ms", "p99 ms", "p99 × alone", "max ms",
         "floods' share of the rest", "the daemon says", "measured"]


def page(report):
    results = report.results
    if not results.of("kinds"):
        return None
    verdicts(report)
    alone = alone_ms(results)
    loads = (f"The app draws {FPS} frames per second of {number(results.prepared('kinds').get('hero_ms'), 1)} ms GPU time each, "
             f"beside {FLOODS} floods of one kind that repeat what takes about {results.prepared('kinds').get('length_ms', LENGTH_MS)} ms "
             "([kinds](../apps.md#the-flood)). The daemon's configuration is empty; the app says its priority, its rate and its "
             "GPU time per frame, and the floods say a lower priority. A response goes from the release by the app's own "
             "clock to the end on the GPU; paced by its swap, an app is released when the swap before comes back. Natively a "
             "pbuffer's swap holds nothing, so its clock paces the app there, and responses are given from where it begins a frame. *Alone* is the "
             "median of frames that follow each other at once, or beside others if that is less, so that both are at the clock "
             f"of a busy GPU: {number(alone)} ms here.")
    parts = [loads]
    for pace in PACES:
        parts += [f"## Paced by {WORDS[pace]}", table(HEADS, [row(results, kind, pace) for kind in (None, *KINDS)])]
    return [*parts, *causes(results), *floods(results), *outsiders(results), *exactness(results), *profile(results)]


def names(kind, pace):
    """The points with and without Takt."""
    return f"kinds-{kind or 'none'}-takt-{pace}", f"kinds-{kind or 'none'}-native" + (pace == NO_SWAP) * f"-{NO_SWAP}"


def native(results, kind, pace):
    """The app without Takt. By its swap, its frames are released where they begin."""
    figures = results.figures(names(kind, pace)[1]) or {}
    return figures.get("by_begin", {}) if pace == SWAP else figures


def row(results, kind, pace):
    """An app beside floods of a kind, natively and under Takt."""
    without, name = native(results, kind, pace), names(kind, pace)[0]
    percent = lambda figures: number(figures.get("met_percent"), 2, " %")
    head = [kind or "none", number(without.get("fps"), 1), percent(without), number(without.get("p99_ms"))]
    figures = results.figures(name)
    if figures is None:
        return head + ["?"] * 8 + ["failed" if "error" in results.points.get(name, {}) else "no time"]
    return head + [number(figures["fps"], 1), percent(figures), number(figures["p50_ms"]), number(figures["p99_ms"]),
                   number(times_alone(results, figures)), number(figures["max_ms"]),
                   number(share(results, name), 1, " %") if kind else "-", statement(figures),
                   results.measured(results.points[name])]


def statement(figures):
    """What the daemon said of the app in the middle."""
    said = figures.get("stated") or {}
    if said.get("guaranteed") is None:
        return "?"
    return "guaranteed" if said["guaranteed"] else f"not: {said['reason']}"


def alone_ms(results):
    """The app's median at full clock: with frames one after the other, or beside others if that is less."""
    beside = [point["figures"]["p50_ms"] for point in results.of("kinds").values()
              if (point.get("figures") or {}).get("p50_ms")]
    return min(beside) if results.figures("kinds-busy") else None


def times_alone(results, figures):
    alone = alone_ms(results)
    return figures["p99_ms"] / alone if alone and figures["p99_ms"] else None


def share(results, name):
    """Floods' work in per cent of one flood's that is not cut, in the time that the app leaves; none if not known."""
    point, alone = results.points[name], alone_ms(results)
    reference = results.figures(f"kinds-{point['about']['kind']}-alone")
    if not alone or not reference or not sum(reference["flood_draws_per_s"]):
        return None
    left = 1 - point["figures"]["fps"] * alone / 1000
    return 100 * sum(point["figures"]["flood_draws_per_s"]) / sum(reference["flood_draws_per_s"]) / left


def causes(results):
    """Why deadlines were missed, as the daemon sees it; it counts from its start."""
    rows = []
    for kind in (None, *KINDS):
        for pace in PACES:
            figures = results.figures(names(kind, pace)[0]) or {}
            hero = next((app for app in figures.get("found", []) if app["name"] == "hero"), {})
            if figures.get("missed") and figures.get("why"):
                counted = ", ".join(f"{count} {cause}" for cause, count in (hero.get("causes") or {}).items())
                rows.append([kind or "none", WORDS[pace], figures["missed"], counted, figures["why"][-1]])
    return ["## Why deadlines were missed", "What the daemon says, which counts the app's start as well, and the last sentence of "
            "`takt why`.", table(["floods", "paced by", "missed", "causes", "the last one"], rows)] if rows else []


def floods(results):
    """What one flood gets done by itself, in one piece and cut."""
    rows = []
    for kind in KINDS:
        whole, cut = (sum((results.figures(f"kinds-{kind}-{way}") or {}).get("flood_draws_per_s", [])) or None
                      for way in ("alone", "cut"))
        known = results.prepared("kinds").get("kinds", {}).get(kind, {})
        if whole or cut:
            rows.append([kind, number(known.get("ms"), 1), number(whole), number(cut),
                         number(100 * cut / whole if whole and cut else None, 1, " %")])
    return ["## What cutting costs", f"One flood by itself: natively, and cut beside an app that has a contract of {FPS} frames "
            "per second and hardly draws. The first is the reference of shares.",
            table(["flood", "ms each", "native, per second", "cut, per second", "kept"], rows)] if rows else []


def outsiders(results):
    """Programs outside of Takt."""
    rows = []
    after = lambda seconds: "never" if seconds is None else f"{seconds:.1f} s"
    for more, words in (("", "empty"), ("-trusting", '`gpu.unseen = "ignore"`')):
        figures = results.figures(f"kinds-outsider{more}")
        if figures:
            rows.append([words, outsider.word(figures["before"]), after(figures["named_s"]), after(figures["withdrawn_s"]),
                         figures["admission"] or "-", after(figures["gone_s"]), after(figures.get("again_s")), at_last(figures["after"]),
                         figures["before"]["unseen"] or "-"])
    heads = ["configuration", "before", "named after", "withdrawn after", "the daemon says meanwhile", "gone after",
             "guaranteed again after", "at last", "what the daemon cannot see"]
    return ["## A program outside of Takt", f"`{outsider.NAME}` starts without Takt while the app is scheduled, draws for seconds, "
            f"and ends; the daemon is asked every {outsider.EVERY_S:g} s. Times count from its start, and from its end.",
            table(heads, rows)] if rows else []


def at_last(state):
    """What the daemon said at the end, in its own words where it did not guarantee anything."""
    said = state.get("admission")
    return said if said and not state["guaranteed"] else outsider.word(state)


def exactness(results):
    """Whether cut work gives the same."""
    figures = results.figures("kinds-traps")
    if not figures:
        return []
    rows = [[name, each["lines"], *traps.pieces(each), "the same" if each["same"] else f"**{each['lines_apart']} lines differ**"]
            for name, each in figures["programs"].items()]
    return ["## Exactness", f"What programs print, natively and with pieces of {traps.SLICE_MS:g} ms: hashes of pixels, samples, "
            "recorded vertices and buffers.", table(["program", "lines", "cut", "pieces", "prints"], rows)]


def profile(results):
    """What the first start found out."""
    found = results.prepared("kinds").get("profile", {})
    text = "\n".join(filter(None, (found.get("new", "").strip(), found.get("kept", "").strip(), found.get("error", ""))))
    return ["## The GPU", "What `takt profile --new` measured before, as the daemon does at its first start:",
            f"```text\n{text}\n```"] if text else []


def verdicts(report):
    results = report.results
    for pace in PACES:
        wanted = f"{len(KINDS)} of {len(KINDS)} kinds: ≥ {MET_PERCENT} % met, p99 ≤ {P99_TIMES[pace]:g} × alone"
        wanted += ", not worse than native" * (pace != SWAP)
        judged = {kind: holds(results, kind, pace) for kind in KINDS}
        known = [kind for kind in KINDS if judged[kind] is not None]
        missed = [kind for kind in known if not judged[kind]]
        words = f"{len(known) - len(missed)} of {len(known)} measured" + (f"; not {', '.join(missed)}" if missed else "")
        good = False if missed else True if len(known) == len(KINDS) else None
        report.verdict(f"app paced by {WORDS[pace]} beside {FLOODS} floods of each kind", wanted, words, good)
    shares = {f"{kind} ({pace})": share(results, names(kind, pace)[0]) for kind in KINDS for pace in PACES
              if results.figures(names(kind, pace)[0])}
    shares = {name: percent for name, percent in shares.items() if percent is not None}
    low = [f"{name} {percent:.0f} %" for name, percent in shares.items() if percent < SHARE_PERCENT]
    report.verdict("what floods get of what the app leaves", f"≥ {SHARE_PERCENT} % in each kind",
                   f"{len(shares) - len(low)} of {len(shares)} measured" + (f"; {', '.join(low)}" if low else ""),
                   not low if shares else None)
    figures = results.figures("kinds-outsider")
    report.verdict("a program outside of Takt", "named, and the guarantee withdrawn, within 5 s; back when it is gone",
                   outsider.brief(figures) if figures else "?", is_seen(results) if figures else None)
    figures = results.figures("kinds-traps")
    report.verdict("cut work gives the same", "every line", traps.brief(figures) if figures else "?",
                   not figures["differ"] if figures else None)


def is_seen(results):
    """Whether the guarantee went and came back with an outsider; nothing where it was never given."""
    found = [figures for more in ("", "-trusting") if (figures := results.figures(f"kinds-outsider{more}"))]
    given = [each for each in found if each["before"]["guaranteed"]]
    seen = all(None not in (each["named_s"], each["withdrawn_s"]) and each["after"]["guaranteed"] for each in given)
    return seen if given else None


def holds(results, kind, pace):
    """Whether the app is on time beside floods of a kind; nothing if not measured."""
    figures = results.figures(names(kind, pace)[0])
    if figures is None or alone_ms(results) is None:
        return None
    times, without = times_alone(results, figures), native(results, kind, pace).get("p99_ms")
    worse = pace != SWAP and without is not None and times is not None and figures["p99_ms"] > without
    return figures["met_percent"] >= MET_PERCENT and times is not None and times <= P99_TIMES[pace] and not worse
